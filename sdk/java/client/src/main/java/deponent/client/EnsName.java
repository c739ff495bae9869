package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Hex;
import deponent.eth.Keccak256;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A name of ENS in its normal form (ENSIP-15): names that look alike or differ in case alone are
 * one name, or none.
 *
 * <pre>{@code
 * EnsName.of("Nick.ETH").toString();                       // nick.eth
 * EnsName.of("nick.eth").node();                           // 0x05a67c0ee82964c4f7394cdd47fee7f4d9503a23c09c38341779ea012afe6e00
 * }</pre>
 */
public final class EnsName {
  /** Bytes of a label in a name's wire format at most. */
  private static final int LONGEST_LABEL = 255;

  private final List<String> labels;
  private final Hash node;

  private EnsName(List<String> labels) {
    this.labels = labels;
    this.node = namehash(labels);
  }

  /**
   * A name in its normal form. The empty one is the root's.
   *
   * @throws IllegalArgumentException if there is none, with the label and the reason
   */
  public static EnsName of(String name) {
    if (name.isEmpty()) {
      return new EnsName(List.of());
    }
    List<String> labels = new ArrayList<>();
    for (String label : name.split("\\.", -1)) {
      try {
        labels.add(isPlain(label) ? label : EnsNormalizer.label(label));
      } catch (IllegalArgumentException fault) {
        throw new IllegalArgumentException(
            "no name of ENS: label " + (labels.size() + 1) + ": " + fault.getMessage(), fault);
      }
    }
    return new EnsName(List.copyOf(labels));
  }

  /** Whether it is of lower-case letters and digits alone, as most are: no rule changes it. */
  private static boolean isPlain(String label) {
    for (int i = 0; i < label.length(); i++) {
      char one = label.charAt(i);
      if ((one < 'a' || one > 'z') && (one < '0' || one > '9')) {
        return false;
      }
    }
    return !label.isEmpty();
  }

  /**
   * The name that has the record of an address's name on Ethereum and on chains like it (ENSIP-19).
   *
   * @param coinType the chain, such as {@link CoinType#ETHER}
   * @throws IllegalArgumentException if the type is negative
   */
  public static EnsName reverse(Address address, long coinType) {
    return reverse(Bytes.of(address.toBytes()), coinType);
  }

  /**
   * The name that has the record of an address's name on a chain (ENSIP-19).
   *
   * @param address the address as ENS has it, in bytes (ENSIP-9)
   * @throws IllegalArgumentException if the address has no bytes, or the type is negative
   */
  public static EnsName reverse(Bytes address, long coinType) {
    if (address.isEmpty() || coinType < 0) {
      throw new IllegalArgumentException(
          "an address has bytes, and a coin type is not negative: " + address + ", " + coinType);
    }
    String chain = Long.toHexString(coinType);
    if (coinType == CoinType.ETHER) {
      chain = "addr";
    } else if (coinType == CoinType.ANY_EVM) {
      chain = "default";
    }
    return new EnsName(List.of(address.toString().substring(2), chain, "reverse"));
  }

  /** The labels, the deepest first. */
  public List<String> labels() {
    return labels;
  }

  /** The namehash (ENSIP-1), by which contracts know the name. */
  public Hash node() {
    return node;
  }

  private static Hash namehash(List<String> labels) {
    byte[] pair = new byte[2 * Hash.SIZE];
    Hash node = Hash.ZERO;
    for (int i = labels.size() - 1; i >= 0; i--) {
      node.copyTo(pair, 0);
      labelhash(labels.get(i)).copyTo(pair, Hash.SIZE);
      node = Keccak256.hash(pair);
    }
    return node;
  }

  private static Hash labelhash(String label) {
    return Keccak256.hash(label.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * The name in DNS's wire format (RFC 1035, 3.1), as resolvers take it (ENSIP-10). A label of more
   * than 255 bytes is its hash in brackets.
   */
  public Bytes dns() {
    ByteArrayOutputStream wire = new ByteArrayOutputStream();
    for (String label : labels) {
      byte[] bytes = label.getBytes(StandardCharsets.UTF_8);
      if (bytes.length > LONGEST_LABEL) {
        String hash = Hex.encode(Keccak256.hash(bytes).toBytes()).substring(2);
        bytes = ("[" + hash + "]").getBytes(StandardCharsets.US_ASCII);
      }
      wire.write(bytes.length);
      wire.writeBytes(bytes);
    }
    wire.write(0);
    return Bytes.of(wire.toByteArray());
  }

  /** The labels with dots between. */
  @Override
  public String toString() {
    return String.join(".", labels);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof EnsName name && labels.equals(name.labels);
  }

  @Override
  public int hashCode() {
    return node.hashCode();
  }
}
