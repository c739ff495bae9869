package deponent.eth;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** The encodings of transactions. */
final class TransactionRlp {
  /** The greatest id of a chain whose {@code v} fits 64 bits (EIP-2294). */
  private static final long GREATEST_CHAIN = Long.MAX_VALUE - 36;

  /** The form of a sidecar with cell proofs. */
  private static final int SIDECAR = 1;

  private TransactionRlp() {}

  static void checkNonce(long nonce) {
    if (nonce == -1) {
      throw new IllegalArgumentException("no transaction has a nonce of 2^64-1 (EIP-2681)");
    }
  }

  static void checkChain(long chainId) {
    if (chainId < 0 || chainId > GREATEST_CHAIN) {
      throw new IllegalArgumentException(
          "the id of a chain is from 0 to 2^63-37 (EIP-2294), not " + chainId);
    }
  }

  static Bytes unsigned(Transaction transaction) {
    RlpWriter rlp = new RlpWriter(128 + transaction.data().size()).list();
    fields(transaction, rlp);
    if (transaction instanceof LegacyTransaction legacy && legacy.chain().isPresent()) {
      rlp.add(legacy.chain().getAsLong()).add(0).add(0);
    }
    return typed(transaction, rlp.end());
  }

  static Bytes signed(SignedTransaction signed) {
    return typed(signed.transaction(), body(signed));
  }

  /** The list of all fields. */
  private static RlpWriter body(SignedTransaction signed) {
    Transaction transaction = signed.transaction();
    Signature signature = signed.signature();
    RlpWriter rlp = new RlpWriter(256 + transaction.data().size()).list();
    fields(transaction, rlp);
    if (transaction instanceof LegacyTransaction legacy) {
      long chain = legacy.chain().orElse(-4);
      rlp.addUnsigned(2 * chain + 35 + signature.yParity());
    } else {
      rlp.add(signature.yParity());
    }
    return rlp.add(signature.r()).add(signature.s()).end();
  }

  private static Bytes typed(Transaction transaction, RlpWriter rlp) {
    byte[] list = rlp.toBytes();
    return transaction.type() == 0 ? Bytes.own(list) : withType(transaction.type(), list);
  }

  private static Bytes withType(int type, byte[] list) {
    byte[] bytes = new byte[1 + list.length];
    bytes[0] = (byte) type;
    System.arraycopy(list, 0, bytes, 1, list.length);
    return Bytes.own(bytes);
  }

  private static void fields(Transaction transaction, RlpWriter rlp) {
    if (transaction.type() != 0) {
      rlp.add(transaction.chain().getAsLong());
    }
    rlp.addUnsigned(transaction.nonce());
    if (transaction.type() >= 2) {
      rlp.add(transaction.maxPriorityFeePerGas());
    }
    rlp.add(transaction.maxFeePerGas()).addUnsigned(transaction.gasLimit());
    Address to = transaction.to();
    if (to == null) {
      rlp.add(Bytes.EMPTY);
    } else {
      rlp.add(to);
    }
    rlp.add(transaction.value()).add(transaction.data());
    if (transaction.type() != 0) {
      accessList(transaction.accessList(), rlp);
    }
    if (transaction instanceof BlobTransaction blob) {
      rlp.add(blob.maxFeePerBlobGas()).list();
      blob.blobVersionedHashes().forEach(rlp::add);
      rlp.end();
    }
    if (transaction instanceof SetCodeTransaction setCode) {
      authorizations(setCode.authorizations(), rlp);
    }
  }

  private static void accessList(List<AccessListEntry> entries, RlpWriter rlp) {
    rlp.list();
    for (AccessListEntry entry : entries) {
      rlp.list().add(entry.address()).list();
      entry.storageKeys().forEach(rlp::add);
      rlp.end().end();
    }
    rlp.end();
  }

  private static void authorizations(List<Authorization.Signed> all, RlpWriter rlp) {
    rlp.list();
    for (Authorization.Signed one : all) {
      Authorization authorization = one.authorization();
      rlp.list().add(authorization.chainId()).add(authorization.address());
      rlp.addUnsigned(authorization.nonce()).add(one.signature().yParity());
      rlp.add(one.signature().r()).add(one.signature().s()).end();
    }
    rlp.end();
  }

  static SignedTransaction decode(Bytes bytes) {
    int first = bytes.isEmpty() ? 0 : bytes.at(0) & 0xff;
    if (first < 0xc0 && (first < 1 || first > 4)) {
      throw new MalformedException(
          bytes.isEmpty() ? "a transaction of no bytes" : "a transaction of the type " + first);
    }
    int from = first < 0xc0 ? 1 : 0;
    RlpReader rlp = new RlpReader(bytes.array, from, bytes.size() - from);
    rlp.list();
    SignedTransaction read = read(from == 0 ? 0 : first, rlp);
    rlp.end().finish();
    return read;
  }

  /** Reads the items of the list. */
  private static SignedTransaction read(int type, RlpReader rlp) {
    try {
      return type == 0 ? legacy(rlp) : typed(type, rlp);
    } catch (IllegalArgumentException no) {
      throw new MalformedException(
          "a transaction of the type " + type + ": " + no.getMessage(), no);
    }
  }

  private static SignedTransaction legacy(RlpReader rlp) {
    long nonce = rlp.unsignedNumber();
    Wei gasPrice = rlp.wei();
    long gasLimit = rlp.unsignedNumber();
    Address to = receiver(rlp);
    Wei value = rlp.wei();
    Bytes data = rlp.bytes();
    long v = rlp.unsignedNumber();
    if (v >= 0 && v < 35 && v != 27 && v != 28) {
      throw new IllegalArgumentException("v is 27, 28 or from 35 on, not " + v);
    }
    boolean everywhere = v == 27 || v == 28;
    OptionalLong chain = everywhere ? OptionalLong.empty() : OptionalLong.of(v - 35 >>> 1);
    int yParity = (int) (everywhere ? v - 27 : v - 35 & 1);
    Transaction transaction =
        new LegacyTransaction(chain, nonce, gasPrice, gasLimit, to, value, data);
    return transaction.signed(new Signature(rlp.integer(), rlp.integer(), yParity));
  }

  private static SignedTransaction typed(int type, RlpReader rlp) {
    TransactionBuilder builder;
    long chainId = rlp.number();
    long nonce = rlp.unsignedNumber();
    Wei tip = type >= 2 ? rlp.wei() : Wei.ZERO;
    Wei fee = rlp.wei();
    long gasLimit = rlp.unsignedNumber();
    Address to = receiver(rlp);
    builder = new TransactionBuilder(to).chainId(chainId).nonce(nonce).gasLimit(gasLimit);
    builder.value(rlp.wei()).data(rlp.bytes()).accessList(accessList(rlp));
    if (type == 1) {
      builder.gasPrice(fee);
    } else {
      builder.fees(fee, tip);
    }
    if (type == 3) {
      Wei blobFee = rlp.wei();
      builder.blobs(hashes(rlp), blobFee);
    } else if (type == 4) {
      builder.authorizations(authorizations(rlp));
    }
    if (to == null && type >= 3) {
      throw new IllegalArgumentException("there is no receiver");
    }
    int yParity = parity(rlp, 1);
    Signature signature = new Signature(rlp.integer(), rlp.integer(), yParity);
    return builder.build().signed(signature);
  }

  private static int parity(RlpReader rlp, int most) {
    long parity = rlp.number();
    if (parity > most) {
      throw new IllegalArgumentException("a parity of " + parity + ", at most " + most);
    }
    return (int) parity;
  }

  private static @Nullable Address receiver(RlpReader rlp) {
    Bytes to = rlp.bytes();
    return to.isEmpty() ? null : Address.of(to.array);
  }

  private static List<AccessListEntry> accessList(RlpReader rlp) {
    List<AccessListEntry> entries = new ArrayList<>();
    rlp.list();
    while (rlp.hasNext()) {
      rlp.list();
      Address address = rlp.address();
      entries.add(new AccessListEntry(address, hashes(rlp)));
      rlp.end();
    }
    rlp.end();
    return entries;
  }

  private static List<Hash> hashes(RlpReader rlp) {
    List<Hash> hashes = new ArrayList<>();
    rlp.list();
    while (rlp.hasNext()) {
      hashes.add(rlp.hash());
    }
    rlp.end();
    return hashes;
  }

  private static List<Authorization.Signed> authorizations(RlpReader rlp) {
    List<Authorization.Signed> all = new ArrayList<>();
    rlp.list();
    while (rlp.hasNext()) {
      rlp.list();
      BigInteger chainId = rlp.integer();
      Address address = rlp.address();
      Authorization authorization = new Authorization(chainId, address, rlp.unsignedNumber());
      int yParity = parity(rlp, 255);
      all.add(authorization.signed(new Signature(rlp.integer(), rlp.integer(), yParity)));
      rlp.end();
    }
    rlp.end();
    return all;
  }

  static Bytes withBlobs(SignedTransaction signed, BlobSidecar sidecar) {
    int bytes = sidecar.blobs().size() * (BlobSidecar.BLOB_SIZE + 8_192) + 1_024;
    RlpWriter rlp = new RlpWriter(bytes).list();
    rlp.addEncoded(body(signed).toBytes()).add(SIDECAR);
    for (List<Bytes> part : List.of(sidecar.blobs(), sidecar.commitments(), sidecar.cellProofs())) {
      rlp.list();
      part.forEach(rlp::add);
      rlp.end();
    }
    return withType(3, rlp.end().toBytes());
  }

  /** A transaction and its blobs. */
  record WithBlobs(SignedTransaction transaction, BlobSidecar sidecar) {}

  static WithBlobs readWithBlobs(Bytes bytes) {
    if (bytes.isEmpty() || bytes.at(0) != 3) {
      throw new MalformedException("no transaction with blobs, which is of the type 3");
    }
    RlpReader rlp = new RlpReader(bytes.array, 1, bytes.size() - 1);
    rlp.list().list();
    SignedTransaction transaction = read(3, rlp);
    rlp.end();
    long form = rlp.number();
    if (form != SIDECAR) {
      throw new MalformedException("blobs in the form " + form + ", not 1 (EIP-7594)");
    }
    try {
      BlobSidecar sidecar = new BlobSidecar(all(rlp), all(rlp), all(rlp));
      rlp.end().finish();
      return new WithBlobs(transaction, sidecar);
    } catch (IllegalArgumentException no) {
      throw new MalformedException("blobs: " + no.getMessage(), no);
    }
  }

  private static List<Bytes> all(RlpReader rlp) {
    List<Bytes> all = new ArrayList<>();
    rlp.list();
    while (rlp.hasNext()) {
      all.add(rlp.bytes());
    }
    rlp.end();
    return all;
  }
}
