package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.sets.Sets;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Encodings; signers and senders are those of the wallet's tests. */
class TransactionTest {
  private static final Address FRIEND = Address.of("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");

  private static BigInteger number(Map<?, ?> members, String name) {
    Object found = members.get(name);
    if (found == null || found.equals("0x")) {
      return BigInteger.ZERO;
    }
    String text = found.toString();
    return text.startsWith("0x") ? new BigInteger(text.substring(2), 16) : new BigInteger(text);
  }

  private static Address receiver(Map<?, ?> members) {
    Object to = members.get("to");
    return to == null || to.equals("0x") ? null : Address.of((String) to);
  }

  private static Bytes data(Map<?, ?> members) {
    Object data = members.get("data");
    return data == null ? Bytes.EMPTY : Bytes.of((String) data);
  }

  private static TransactionBuilder builder(Map<?, ?> members) {
    return new TransactionBuilder(receiver(members))
        .nonce(number(members, "nonce").longValue())
        .gasLimit(number(members, "gasLimit").longValue())
        .value(Wei.of(number(members, "value")))
        .data(data(members));
  }

  @Test
  void legacyTransactionsAreEncodedWithAndWithoutAChain() {
    List<Map<String, Object>> set = Sets.ethers("transactions");
    Sets.counted(set, 1_067);
    List<String> beyond = new ArrayList<>();
    for (Map<String, Object> test : set) {
      String name = (String) test.get("name");
      if (number(test, "gasLimit").bitLength() > 64) {
        // Ethereum's own tests have such a gas limit refused (ttGasLimit, GASLIMIT_OVERFLOW).
        Bytes signed = Bytes.of((String) test.get("signedTransaction"));
        assertThrows(MalformedException.class, () -> SignedTransaction.decode(signed), name);
        beyond.add(name);
        continue;
      }
      Wei price = Wei.of(number(test, "gasPrice"));
      Transaction everywhere = builder(test).gasPrice(price).build();
      Transaction chain5 = builder(test).gasPrice(price).chainId(5).build();
      assertEquals(test.get("unsignedTransaction"), everywhere.signingPayload().toString(), name);
      assertEquals(
          test.get("unsignedTransactionChainId5"), chain5.signingPayload().toString(), name);
      check(everywhere, (String) test.get("signedTransaction"), name);
      check(chain5, (String) test.get("signedTransactionChainId5"), name);
    }
    Sets.counted(beyond, 83);
  }

  private static void check(Transaction transaction, String signed, String name) {
    SignedTransaction decoded = SignedTransaction.decode(Bytes.of(signed));
    assertEquals(transaction, decoded.transaction(), name);
    assertTrue(decoded.signature().isCanonical(), name);
    assertEquals(signed, decoded.encode().toString(), name);
  }

  @Test
  void typedTransactionsAreEncoded() {
    List<Map<String, Object>> set = Sets.ethers("typed-transactions");
    Sets.counted(set, 1_792);
    for (Map<String, Object> test : set) {
      String name = (String) test.get("name");
      Map<?, ?> members = (Map<?, ?>) test.get("tx");
      TransactionBuilder builder = builder(members);
      builder.chainId(number(members, "chainId").longValue());
      builder.accessList(accessList(members.get("accessList")));
      if (number(members, "type").intValue() == 1) {
        builder.gasPrice(Wei.of(number(members, "gasPrice")));
      } else {
        builder.fees(
            Wei.of(number(members, "maxFeePerGas")),
            Wei.of(number(members, "maxPriorityFeePerGas")));
      }
      Transaction transaction = builder.build();
      assertEquals(test.get("unsigned"), transaction.signingPayload().toString(), name);
      check(transaction, (String) test.get("signed"), name);
    }
  }

  private static List<AccessListEntry> accessList(Object tree) {
    List<AccessListEntry> entries = new ArrayList<>();
    if (tree instanceof Map<?, ?> map) {
      map.forEach((address, keys) -> entries.add(entry((String) address, (List<?>) keys)));
    } else if (tree instanceof List<?> list) {
      for (Object one : list) {
        if (one instanceof Map<?, ?> members) {
          List<?> keys = (List<?>) members.get("storageKeys");
          entries.add(entry((String) members.get("address"), keys));
        } else {
          List<?> pair = (List<?>) one;
          entries.add(entry((String) pair.get(0), (List<?>) pair.get(1)));
        }
      }
    }
    return entries;
  }

  private static AccessListEntry entry(String address, List<?> keys) {
    return new AccessListEntry(
        Address.of(address), keys.stream().map(key -> Hash.of((String) key)).toList());
  }

  private static Signature random(Random random) {
    BigInteger r = new BigInteger(256, random);
    return new Signature(r, new BigInteger(255, random), random.nextInt(2));
  }

  private static Transaction transaction(Random random) {
    byte[] data = new byte[random.nextInt(80)];
    random.nextBytes(data);
    TransactionBuilder builder =
        (random.nextInt(4) == 0 ? Transaction.create(Bytes.EMPTY) : Transaction.to(FRIEND))
            .chainId(random.nextInt(3) == 0 ? Long.MAX_VALUE - 36 : random.nextInt(1_000))
            .nonce(random.nextInt(4) == 0 ? -2 : random.nextInt(1_000))
            .gasLimit(random.nextLong())
            .value(Wei.of(new BigInteger(random.nextInt(257), random)))
            .data(Bytes.of(data));
    List<AccessListEntry> list = new ArrayList<>();
    for (int i = random.nextInt(3); i > 0; i--) {
      list.add(new AccessListEntry(FRIEND, Collections.nCopies(random.nextInt(3), Hash.ZERO)));
    }
    Wei fee = Wei.of(random.nextInt(1_000));
    switch (random.nextInt(5)) {
      case 0 -> builder.gasPrice(fee);
      case 1 -> builder.gasPrice(fee).accessList(list);
      case 2 -> builder.fees(fee, Wei.of(2)).accessList(list);
      case 3 -> {
        builder = Transaction.to(FRIEND).chainId(1).fees(fee, fee);
        builder.blobs(Collections.nCopies(random.nextInt(3), Hash.ZERO), fee);
      }
      default -> {
        Authorization everywhere = Authorization.of(0, FRIEND, random.nextLong());
        builder = Transaction.to(FRIEND).chainId(1).fees(fee, fee).accessList(list);
        builder.authorizations(
            List.of(
                everywhere.signed(random(random)),
                Authorization.of(1, FRIEND, 0)
                    .signed(new Signature(BigInteger.ZERO, BigInteger.ONE, 255))));
      }
    }
    return builder.build();
  }

  @Test
  void allTypesAreDecodedToWhatWasEncoded() {
    Random random = Sets.random();
    for (int i = 0; i < 5_000; i++) {
      SignedTransaction signed = transaction(random).signed(random(random));
      Bytes encoded = signed.encode();
      assertEquals(signed, SignedTransaction.decode(encoded));
      byte[] changed = encoded.toBytes();
      changed[random.nextInt(changed.length)] ^= (byte) (1 << random.nextInt(8));
      try {
        assertEquals(Bytes.of(changed), SignedTransaction.decode(Bytes.of(changed)).encode());
      } catch (MalformedException refused) {
        assertTrue(refused.getMessage().length() < 300, refused.getMessage());
      }
    }
  }

  @Test
  void theTransactionOfEip155IsThatOfTheProposal() {
    Transaction transaction =
        Transaction.to(Address.of("0x" + "35".repeat(20)))
            .chainId(1)
            .nonce(9)
            .gasPrice(Wei.gwei("20"))
            .gasLimit(21_000)
            .value(Wei.ether("1"))
            .build();
    assertEquals(
        "0xec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080"
            + "018080",
        transaction.signingPayload().toString());
    assertEquals(
        "0xdaf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53",
        transaction.signingHash().toString());
    assertEquals(21_000, transaction.intrinsicGas());
    assertTrue(transaction.fault().isEmpty());
    assertEquals(OptionalLong.of(1), transaction.chain());
  }

  @Test
  void whatNoBlockTakesIsSaid() {
    TransactionBuilder builder =
        Transaction.to(FRIEND).chainId(1).gasLimit(20_999).fees(Wei.of(5), Wei.of(6));
    fault("a gas limit of 20999, where 21000", builder.build());
    builder.gasLimit(21_000);
    fault("a tip of 6 wei, which is more", builder.build());
    builder.fees(Wei.of(BigInteger.ONE.shiftLeft(255)), Wei.ZERO);
    fault("costs more than 2^256", builder.build());
    builder.fees(Wei.of(6), Wei.of(6));
    assertTrue(builder.build().fault().isEmpty());
    fault("no blobs", builder.blobs(List.of(), Wei.ZERO).build());
    Bytes code = Bytes.of(new byte[49_153]);
    fault(
        "49153 bytes of init code",
        Transaction.create(code).gasPrice(Wei.of(1)).gasLimit(1_000_000).build());
    // Zeros and other bytes, and the floor of EIP-7623.
    Transaction call =
        Transaction.to(FRIEND).gasPrice(Wei.of(1)).data(Bytes.of("0x000001")).build();
    assertEquals(21_000 + 2 * 4 + 16, call.intrinsicGas());
    assertEquals(21_000 + 10 * (2 + 4), call.floorGas());
  }

  private static void fault(String reason, Transaction transaction) {
    String found = transaction.fault().orElse("none");
    assertTrue(found.contains(reason), found);
  }

  @Test
  void partsThatDoNotGoTogetherAreRefused() {
    check(
        "a gas price does not go with fees",
        () -> Transaction.to(FRIEND).gasPrice(Wei.ZERO).fees(Wei.ZERO, Wei.ZERO).build());
    check("fees, or a gas price is missing", () -> Transaction.to(FRIEND).build());
    check("a chain id is missing", () -> Transaction.to(FRIEND).fees(Wei.ZERO, Wei.ZERO).build());
    check(
        "a receiver beside blobs",
        () ->
            Transaction.create(Bytes.EMPTY)
                .chainId(1)
                .fees(Wei.ZERO, Wei.ZERO)
                .blobs(List.of(), Wei.ZERO)
                .build());
    assertThrows(
        IllegalArgumentException.class,
        () -> Transaction.to(FRIEND).nonce(-1).gasPrice(Wei.ZERO).build());
    assertThrows(
        IllegalArgumentException.class,
        () -> Transaction.to(FRIEND).chainId(-1).gasPrice(Wei.ZERO).build());
  }

  private static void check(String reason, Runnable made) {
    Throwable thrown = assertThrows(IllegalStateException.class, made::run);
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
  }

  @Test
  void blobsTravelBesideTheirTransaction() {
    Bytes blob = Bytes.of(new byte[BlobSidecar.BLOB_SIZE]);
    Bytes point = Bytes.of("0xc0" + "00".repeat(47));
    BlobSidecar sidecar =
        new BlobSidecar(
            List.of(blob, blob), List.of(point, point), Collections.nCopies(256, point));
    Hash hash = Hash.of("0x010657f37554c781402a22917dee2f75def7ab966d7b770905398eba3c444014");
    assertEquals(List.of(hash, hash), sidecar.versionedHashes());
    Transaction transaction =
        Transaction.to(FRIEND)
            .chainId(1)
            .fees(Wei.of(1), Wei.of(1))
            .blobs(sidecar.versionedHashes(), Wei.of(1))
            .build();
    SignedTransaction signed = transaction.signed(random(new Random(1)));
    Bytes encoded = sidecar.encode(signed);
    assertEquals(signed, BlobSidecar.transactionOf(encoded));
    assertEquals(sidecar, BlobSidecar.of(encoded));
    assertThrows(MalformedException.class, () -> SignedTransaction.decode(encoded));
    assertThrows(MalformedException.class, () -> BlobSidecar.of(signed.encode()));
    assertThrows(
        IllegalArgumentException.class,
        () -> new BlobSidecar(List.of(blob), List.of(point), List.of(point)));
  }

  @Test
  void signaturesAre65BytesOrRefused() {
    Signature signature = new Signature(BigInteger.ONE, BigInteger.TWO, 1);
    assertEquals(signature, Signature.of(signature.toBytes()));
    assertEquals(28, signature.toBytes().at(64));
    assertTrue(signature.isCanonical());
    assertThrows(IllegalArgumentException.class, () -> Signature.of(Bytes.of("0x00")));
    Bytes wrong = Bytes.concat(signature.toBytes().slice(0, 64), Bytes.of("0x02"));
    assertThrows(IllegalArgumentException.class, () -> Signature.of(wrong));
  }

  @Test
  void messagesAreHashedByEip191() {
    Bytes hello = Bytes.of("Hello World".getBytes());
    assertEquals(
        "0xa1de988600a42c4b4ab089b619297c17d53cffae5d5120d82d8a92d0bb3b78f2",
        new SigningRequest.OfMessage(hello).hash().toString());
  }
}
