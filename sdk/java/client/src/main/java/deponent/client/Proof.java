package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Keccak256;
import deponent.eth.MalformedException;
import deponent.eth.RlpReader;
import deponent.eth.Wei;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * An account with the trie nodes that prove it, and slots of its storage with theirs (EIP-1186).
 *
 * @param address the account
 * @param balance its balance
 * @param nonce its nonce
 * @param codeHash the hash of its code; zero, or that of no code, where there is none
 * @param storageHash the root of its storage; zero, or that of an empty trie, where it has none
 * @param accountProof the nodes from the root of the state to the account
 * @param storageProof the slots
 */
public record Proof(
    Address address,
    Wei balance,
    long nonce,
    Hash codeHash,
    Hash storageHash,
    List<Bytes> accountProof,
    List<Slot> storageProof) {
  private static final Hash NO_CODE = Keccak256.hash(Bytes.EMPTY);

  private static final Members MEMBERS =
      Members.of(
          "address", "balance", "nonce", "codeHash", "storageHash", "accountProof", "storageProof");

  /** With copies. */
  public Proof {
    accountProof = List.copyOf(accountProof);
    storageProof = List.copyOf(storageProof);
  }

  /**
   * Checks that the account and the slots are so in the state with this root, that of a block whose
   * hash is trusted: then the server need not be.
   *
   * <pre>{@code
   * Proof proof = eth.proof(token, List.of(slot), BlockId.of(header.hash()));
   * proof.verify(header.stateRoot());
   * }</pre>
   *
   * @throws MalformedException if they are not, or it is not proven, with the reason
   */
  public void verify(Hash stateRoot) {
    Hash root = TrieProof.EMPTY_ROOT;
    Optional<Bytes> account = value("accountProof", stateRoot, address.toBytes(), accountProof);
    if (account.isPresent()) {
      RlpReader rlp = new RlpReader(account.get()).list();
      check("nonce", nonce == rlp.number());
      check("balance", balance.equals(rlp.wei()));
      root = rlp.hash();
      check("storageHash", storageHash.equals(root));
      check("codeHash", codeHash.equals(rlp.hash()));
      rlp.end().finish();
    } else {
      check("nonce", nonce == 0);
      check("balance", balance.equals(Wei.ZERO));
      check("storageHash", storageHash.equals(Hash.ZERO) || storageHash.equals(root));
      check("codeHash", codeHash.equals(Hash.ZERO) || codeHash.equals(NO_CODE));
    }
    for (Slot slot : storageProof) {
      String place = "storageProof of " + slot.key;
      Optional<Bytes> found = value(place, root, slot.key.toBytes(), slot.proof);
      Hash proven = found.map(Proof::word).orElse(Hash.ZERO);
      check(place, slot.value.equals(proven));
    }
  }

  private static Optional<Bytes> value(String place, Hash root, byte[] key, List<Bytes> nodes) {
    try {
      return TrieProof.value(root, key, nodes);
    } catch (MalformedException fault) {
      throw new MalformedException(place + ": " + fault.getMessage(), fault);
    }
  }

  private static Hash word(Bytes rlp) {
    RlpReader reader = new RlpReader(rlp);
    Hash word = Members.word(reader.integer());
    reader.finish();
    return word;
  }

  private static void check(String what, boolean same) {
    if (!same) {
      throw new MalformedException(what + " is another in the trie");
    }
  }

  /**
   * A slot of an account's storage with the trie nodes that prove it.
   *
   * @param key the slot
   * @param value its value; zero where it is empty
   * @param proof the nodes from the root of the storage to the slot
   */
  public record Slot(Hash key, Hash value, List<Bytes> proof) {
    private static final Members MEMBERS = Members.of("key", "value", "proof");

    /** With copies. */
    public Slot {
      proof = List.copyOf(proof);
    }

    static Slot read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private @Nullable Hash key;
      private @Nullable Hash value;
      private @Nullable List<Bytes> proof;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "key" -> key = Members.word(json);
          case "value" -> value = Members.word(json);
          case "proof" -> proof = Members.list(json, JsonReader::nextBytes);
          default -> throw new AssertionError(name);
        }
      }

      Slot made() {
        return new Slot(
            Members.the("key", key), Members.the("value", value), Members.the("proof", proof));
      }
    }
  }

  static Proof read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Address address;
    private @Nullable Wei balance;
    private long nonce = -1;
    private @Nullable Hash codeHash;
    private @Nullable Hash storageHash;
    private @Nullable List<Bytes> accountProof;
    private @Nullable List<Slot> storageProof;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "address" -> address = json.nextAddress();
        case "balance" -> balance = json.nextWei();
        case "nonce" -> nonce = json.nextQuantity();
        case "codeHash" -> codeHash = json.nextHash();
        case "storageHash" -> storageHash = json.nextHash();
        case "accountProof" -> accountProof = Members.list(json, JsonReader::nextBytes);
        case "storageProof" -> storageProof = Members.list(json, Slot::read);
        default -> throw new AssertionError(name);
      }
    }

    Proof made() {
      return new Proof(
          Members.the("address", address),
          Members.the("balance", balance),
          Members.the("nonce", nonce),
          Members.the("codeHash", codeHash),
          Members.the("storageHash", storageHash),
          Members.the("accountProof", accountProof),
          Members.the("storageProof", storageProof));
    }
  }
}
