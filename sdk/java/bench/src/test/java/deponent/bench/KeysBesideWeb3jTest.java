package deponent.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;

import deponent.eth.AccessListEntry;
import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.BlobSidecar;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Keccak256;
import deponent.eth.Signature;
import deponent.eth.SignedTransaction;
import deponent.eth.Transaction;
import deponent.eth.TransactionBuilder;
import deponent.eth.Wei;
import deponent.sets.Sets;
import deponent.wallet.Blobs;
import deponent.wallet.Keystore;
import deponent.wallet.Mnemonic;
import deponent.wallet.PrivateKey;
import deponent.wallet.PublicKey;
import deponent.wallet.Recovery;
import deponent.wallet.WordList;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.web3j.crypto.AccessListObject;
import org.web3j.crypto.AuthorizationTuple;
import org.web3j.crypto.Bip32ECKeyPair;
import org.web3j.crypto.Blob;
import org.web3j.crypto.Credentials;
import org.web3j.crypto.MnemonicUtils;
import org.web3j.crypto.RawTransaction;
import org.web3j.crypto.Sign;
import org.web3j.crypto.SignedRawTransaction;
import org.web3j.crypto.TransactionDecoder;
import org.web3j.crypto.TransactionEncoder;
import org.web3j.crypto.Wallet;
import org.web3j.crypto.WalletFile;
import tools.jackson.databind.json.JsonMapper;

/** Keys, and what they sign, beside web3j, at random. */
class KeysBesideWeb3jTest {
  private final Random random = Sets.random();

  private byte[] bytes(int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  private BigInteger number(int bits) {
    return new BigInteger(random.nextInt(bits + 1), random);
  }

  private Address address() {
    return Address.of(bytes(20));
  }

  private PrivateKey key() {
    return PrivateKey.of(bytes(32));
  }

  private static Credentials theirs(PrivateKey key) {
    return Credentials.create(Bytes.of(key.toBytes()).toString());
  }

  private List<AccessListEntry> accessList() {
    List<AccessListEntry> entries = new ArrayList<>();
    for (int i = random.nextInt(3); i > 0; i--) {
      List<Hash> slots = new ArrayList<>();
      for (int j = random.nextInt(3); j > 0; j--) {
        slots.add(Hash.of(bytes(32)));
      }
      entries.add(new AccessListEntry(address(), slots));
    }
    return entries;
  }

  private static List<AccessListObject> theirs(List<AccessListEntry> entries) {
    return entries.stream()
        .map(
            entry ->
                new AccessListObject(
                    entry.address().toString(),
                    entry.storageKeys().stream().map(Hash::toString).toList()))
        .toList();
  }

  /** A transaction of ours with all that the types share. */
  private final class Parts {
    final @Nullable Address to;
    final long chain = 1 + (number(40).longValue());
    final BigInteger nonce = number(63);
    final BigInteger gas = number(63);
    final BigInteger value = number(256);
    final BigInteger fee = number(200);
    final BigInteger tip = number(200);
    final BigInteger blobFee = number(200);
    final Bytes data = Bytes.of(bytes(random.nextInt(100)));

    Parts(boolean mayCreate) {
      to = mayCreate && random.nextInt(4) == 0 ? null : address();
    }

    TransactionBuilder ours() {
      TransactionBuilder builder = to == null ? Transaction.create(data) : Transaction.to(to);
      return builder
          .nonce(nonce.longValue())
          .gasLimit(gas.longValue())
          .value(Wei.of(value))
          .data(data);
    }

    @Nullable String receiver() {
      return to == null ? null : to.toString();
    }
  }

  /** Signs both, compares the bytes, and asks both who signed. */
  private void check(Transaction ours, RawTransaction theirs, @Nullable Long chain)
      throws Exception {
    PrivateKey key = key();
    SignedTransaction signed = key.sign(ours);
    Credentials credentials = theirs(key);
    byte[] expected =
        chain == null
            ? TransactionEncoder.signMessage(theirs, credentials)
            : TransactionEncoder.signMessage(theirs, chain, credentials);
    assertEquals(Bytes.of(expected), signed.encode(), ours.toString());
    SignedTransaction decoded = SignedTransaction.decode(Bytes.of(expected));
    assertEquals(signed, decoded);
    assertEquals(key.address(), Recovery.sender(decoded).orElseThrow());
    SignedRawTransaction read =
        (SignedRawTransaction) TransactionDecoder.decode(signed.encode().toString());
    assertEquals(key.address(), Address.of(read.getFrom().toLowerCase()));
  }

  @Test
  void legacyTransactionsAreSignedAlike() throws Exception {
    for (int i = 0; i < 200; i++) {
      Parts parts = new Parts(true);
      boolean everywhere = i % 4 == 0;
      TransactionBuilder ours = parts.ours().gasPrice(Wei.of(parts.fee));
      if (!everywhere) {
        ours.chainId(parts.chain);
      }
      RawTransaction theirs =
          RawTransaction.createTransaction(
              parts.nonce,
              parts.fee,
              parts.gas,
              parts.receiver(),
              parts.value,
              parts.data.toString());
      check(ours.build(), theirs, everywhere ? null : parts.chain);
    }
  }

  @Test
  void accessListTransactionsAreSignedAlike() throws Exception {
    for (int i = 0; i < 100; i++) {
      Parts parts = new Parts(true);
      List<AccessListEntry> list = accessList();
      TransactionBuilder ours =
          parts.ours().chainId(parts.chain).gasPrice(Wei.of(parts.fee)).accessList(list);
      RawTransaction theirs =
          RawTransaction.createTransaction(
              parts.chain,
              parts.nonce,
              parts.fee,
              parts.gas,
              parts.receiver(),
              parts.value,
              parts.data.toString(),
              theirs(list));
      check(ours.build(), theirs, null);
    }
  }

  @Test
  void feeMarketTransactionsAreSignedAlike() throws Exception {
    for (int i = 0; i < 200; i++) {
      Parts parts = new Parts(true);
      List<AccessListEntry> list = accessList();
      TransactionBuilder ours =
          parts
              .ours()
              .chainId(parts.chain)
              .fees(Wei.of(parts.fee), Wei.of(parts.tip))
              .accessList(list);
      RawTransaction theirs =
          RawTransaction.createTransaction(
              parts.chain,
              parts.nonce,
              parts.gas,
              parts.receiver(),
              parts.value,
              parts.data.toString(),
              parts.tip,
              parts.fee,
              theirs(list));
      check(ours.build(), theirs, null);
    }
  }

  @Test
  void blobTransactionsAreSignedAlike() throws Exception {
    for (int i = 0; i < 100; i++) {
      Parts parts = new Parts(false);
      List<Hash> hashes = new ArrayList<>();
      for (int j = random.nextInt(6); j >= 0; j--) {
        hashes.add(Hash.of(bytes(32)));
      }
      TransactionBuilder ours =
          parts
              .ours()
              .chainId(parts.chain)
              .fees(Wei.of(parts.fee), Wei.of(parts.tip))
              .blobs(hashes, Wei.of(parts.blobFee));
      RawTransaction theirs =
          RawTransaction.createTransaction(
              parts.chain,
              parts.nonce,
              parts.tip,
              parts.fee,
              parts.gas,
              parts.receiver(),
              parts.value,
              parts.data.toString(),
              parts.blobFee,
              hashes.stream()
                  .map(hash -> org.apache.tuweni.bytes.Bytes.wrap(hash.toBytes()))
                  .toList());
      check(ours.build(), theirs, null);
    }
  }

  @Test
  void blobsAreProvenAndWrappedAlike() {
    Parts parts = new Parts(false);
    byte[] blob = new byte[BlobSidecar.BLOB_SIZE];
    for (int i = 0; i < 100; i++) {
      // Below the field's order.
      System.arraycopy(bytes(31), 0, blob, random.nextInt(4_096) * 32 + 1, 31);
    }
    // It loads the ceremony's setup, of which a process has one, and ours takes what is loaded.
    RawTransaction theirs =
        RawTransaction.createEip7594Transaction(
            List.of(new Blob(blob)),
            parts.chain,
            parts.nonce,
            parts.tip,
            parts.fee,
            parts.gas,
            parts.receiver(),
            parts.value,
            parts.data.toString(),
            parts.blobFee);
    BlobSidecar sidecar = Blobs.sidecar(List.of(Bytes.of(blob)));
    Transaction ours =
        parts
            .ours()
            .chainId(parts.chain)
            .fees(Wei.of(parts.fee), Wei.of(parts.tip))
            .blobs(sidecar.versionedHashes(), Wei.of(parts.blobFee))
            .build();
    PrivateKey key = key();
    byte[] expected = TransactionEncoder.signMessage(theirs, theirs(key));
    assertEquals(Bytes.of(expected), sidecar.encode(key.sign(ours)));
  }

  @Test
  void setCodeTransactionsAreSignedAlike() throws Exception {
    for (int i = 0; i < 100; i++) {
      Parts parts = new Parts(false);
      List<AccessListEntry> list = accessList();
      List<Authorization.Signed> authorizations = new ArrayList<>();
      List<AuthorizationTuple> tuples = new ArrayList<>();
      for (int j = random.nextInt(3); j >= 0; j--) {
        PrivateKey authority = key();
        Address code = address();
        BigInteger nonce = number(63);
        authorizations.add(authority.sign(Authorization.of(parts.chain, code, nonce.longValue())));
        tuples.add(Sign.signAuthorization(parts.chain, code.toString(), nonce, theirs(authority)));
      }
      TransactionBuilder ours =
          parts
              .ours()
              .chainId(parts.chain)
              .fees(Wei.of(parts.fee), Wei.of(parts.tip))
              .accessList(list)
              .authorizations(authorizations);
      RawTransaction theirs =
          RawTransaction.createTransaction(
              parts.chain,
              parts.nonce,
              parts.tip,
              parts.fee,
              parts.gas,
              parts.receiver(),
              parts.value,
              parts.data.toString(),
              theirs(list),
              tuples);
      check(ours.build(), theirs, null);
    }
  }

  @Test
  void hashesAndMessagesAreSignedAndRecoveredAlike() throws Exception {
    for (int i = 0; i < 300; i++) {
      PrivateKey key = key();
      Credentials credentials = theirs(key);
      assertEquals(credentials.getAddress(), key.address().toString().toLowerCase());
      byte[] message = bytes(random.nextInt(300));
      Hash hash = Keccak256.hash(message);
      assertEquals(Hash.of(org.web3j.crypto.Hash.sha3(message)), hash);
      Sign.SignatureData theirs =
          Sign.signMessage(hash.toBytes(), credentials.getEcKeyPair(), false);
      Signature ours = key.sign(hash);
      assertEquals(joined(theirs), ours.toBytes());
      assertEquals(
          new BigInteger(1, PublicKey.recover(hash, ours).orElseThrow().toBytes().toBytes()),
          Sign.signedMessageHashToKey(hash.toBytes(), theirs));
      assertEquals(
          joined(Sign.signPrefixedMessage(message, credentials.getEcKeyPair())),
          key.signMessage(Bytes.of(message)).toBytes());
    }
  }

  private static Bytes joined(Sign.SignatureData signature) {
    return Bytes.concat(
        Bytes.of(signature.getR()), Bytes.of(signature.getS()), Bytes.of(signature.getV()));
  }

  @Test
  void keystoresAreOpenedByBoth() throws Exception {
    JsonMapper json = new JsonMapper();
    for (int i = 0; i < 8; i++) {
      PrivateKey key = key();
      String password = "p\u00e4ss" + random.nextInt();
      WalletFile theirs = Wallet.create(password, theirs(key).getEcKeyPair(), 1 << 10, 1);
      PrivateKey opened = Keystore.ofJson(json.writeValueAsString(theirs)).decrypt(password);
      assertEquals(key.address(), opened.address());
      String ours = Keystore.encrypt(key, password, new Keystore.Scrypt(1 << 10, 8, 1)).toJson();
      WalletFile read = json.readValue(ours, WalletFile.class);
      assertEquals(
          new BigInteger(1, key.toBytes()), Wallet.decrypt(password, read).getPrivateKey());
    }
  }

  @Test
  void mnemonicsHaveTheSameKeys() {
    for (int i = 0; i < 20; i++) {
      byte[] entropy = bytes(16 + 4 * random.nextInt(5));
      Mnemonic ours = Mnemonic.ofEntropy(entropy, WordList.ENGLISH);
      assertEquals(MnemonicUtils.generateMnemonic(entropy), ours.phrase());
      byte[] seed = MnemonicUtils.generateSeed(ours.phrase(), "");
      int hard = Bip32ECKeyPair.HARDENED_BIT;
      int[] path = {44 | hard, 60 | hard, hard, 0, i};
      Bip32ECKeyPair derived =
          Bip32ECKeyPair.deriveKeyPair(Bip32ECKeyPair.generateKeyPair(seed), path);
      assertEquals(
          Credentials.create(derived).getAddress(), ours.key(i).address().toString().toLowerCase());
    }
  }
}
