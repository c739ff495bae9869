package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.AbiFunction;
import deponent.eth.AbiType;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Keccak256;
import deponent.eth.Signature;
import java.math.BigInteger;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Signatures of keys, of contracts, and of contracts that are not there, on real chains. */
class SignatureCheckTest {
  private static final Address ACCOUNT = Address.of("0x00000000000000000000000000000000000000cc");
  private static final Address FACTORY = Address.of("0x00000000000000000000000000000000000000ff");
  private static final Hash HASH = Keccak256.hash("something".getBytes());
  private static final Hash OTHER = Keccak256.hash("another".getBytes());
  private static final Bytes SIGNED = Bytes.of("0102");
  private static final String MAGIC = "1626ba7e" + "00".repeat(28);

  /** Returns what makes a signature valid, for one hash alone; reverts for others. */
  private static final Bytes WALLET =
      Bytes.of(
          ("7f" + HASH.toString().substring(2) + "6004351460" + "2b57")
              + "5f5ffd5b"
              + ("7f" + MAGIC + "5f5260205ff3"));

  /** Creates a contract by CREATE2 of the init code that it is called with, with a salt of zero. */
  private static final Bytes CREATES = Bytes.of("365f5f375f365f5ff55f5260205ff3");

  private static final Bytes INIT =
      Bytes.concat(
          Bytes.of(String.format("60%02x600a5f3960%02x5ff3", WALLET.size(), WALLET.size())),
          WALLET);

  private static void code(Client eth, Address at, Bytes code) {
    Nodes.ask(eth, "anvil_setCode", json -> json.value(at.toString()).value(code.toString()));
  }

  /** A contract that returns so many bytes of what makes a signature valid, or something else. */
  private static Bytes returning(String word, int bytes) {
    return Bytes.of("7f" + word + "5f52" + String.format("60%02x", bytes) + "5ff3");
  }

  @Test
  void signaturesOfKeysAreTheirs() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            Address me = Nodes.key(0).address();
            Signature signature = Nodes.key(0).sign(HASH);
            Bytes bytes = signature.toBytes();
            assertTrue(eth.isSignedBy(me, HASH, bytes));
            assertTrue(eth.isSignedBy(me, HASH, bytes, BlockId.of(0)));
            assertFalse(eth.isSignedBy(me, OTHER, bytes));
            assertFalse(eth.isSignedBy(Nodes.key(1).address(), HASH, bytes));
            assertFalse(eth.isSignedBy(me, HASH, bytes.slice(0, 64)));
            assertFalse(eth.isSignedBy(me, HASH, Bytes.EMPTY));
            BigInteger order =
                new BigInteger(
                    "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16);
            Signature twin =
                new Signature(
                    signature.r(), order.subtract(signature.s()), 1 - signature.yParity());
            assertFalse(eth.isSignedBy(me, HASH, twin.toBytes()));
            byte[] none = bytes.toBytes();
            none[64] = 29;
            assertFalse(eth.isSignedBy(me, HASH, Bytes.of(none)));
          }
        });
  }

  @Test
  void signaturesOfContractsAreWhatTheyTakeForThem() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("http")) {
            code(eth, ACCOUNT, WALLET);
            assertTrue(eth.isSignedBy(ACCOUNT, HASH, SIGNED));
            assertFalse(eth.isSignedBy(ACCOUNT, OTHER, SIGNED));
            code(eth, ACCOUNT, returning(MAGIC, 32));
            assertTrue(eth.isSignedBy(ACCOUNT, OTHER, SIGNED));
            code(eth, ACCOUNT, returning(MAGIC, 64));
            assertTrue(eth.isSignedBy(ACCOUNT, OTHER, SIGNED));
            code(eth, ACCOUNT, returning(MAGIC, 4));
            assertFalse(eth.isSignedBy(ACCOUNT, OTHER, SIGNED));
            code(eth, ACCOUNT, returning("1626ba7e" + "00".repeat(27) + "01", 32));
            assertFalse(eth.isSignedBy(ACCOUNT, OTHER, SIGNED));
            code(eth, ACCOUNT, returning("00".repeat(31) + "01", 32));
            assertFalse(eth.isSignedBy(ACCOUNT, OTHER, SIGNED));
            code(eth, ACCOUNT, Bytes.of("00"));
            assertFalse(eth.isSignedBy(ACCOUNT, OTHER, SIGNED));
          }
        });
  }

  private static Bytes wrapped(Address factory, Bytes calldata) {
    AbiFunction wrap = AbiFunction.of("w(address, bytes, bytes)");
    Bytes arguments = wrap.encode(factory, calldata, SIGNED);
    Bytes suffix = Bytes.of("6492".repeat(16));
    return Bytes.concat(arguments.slice(4, arguments.size()), suffix);
  }

  @Test
  void signaturesOfContractsToComeSayHowTheyCome() throws Exception {
    Hash salt = Hash.ZERO;
    Bytes parts =
        AbiType.encodePacked(
            List.of(
                AbiType.of("bytes1"),
                AbiType.of("address"),
                AbiType.of("bytes32"),
                AbiType.of("bytes32")),
            Bytes.of("ff"),
            FACTORY,
            salt,
            Keccak256.hash(INIT));
    Address future = Address.of(Keccak256.hash(parts).toBytes(), 12);
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            code(eth, FACTORY, CREATES);
            Bytes good = wrapped(FACTORY, INIT);
            assertTrue(eth.isSignedBy(future, HASH, good));
            assertTrue(eth.code(future).isEmpty());
            assertFalse(eth.isSignedBy(future, OTHER, good));
            assertFalse(eth.isSignedBy(future, HASH, SIGNED));
            assertFalse(eth.isSignedBy(ACCOUNT, HASH, good));
            assertFalse(eth.isSignedBy(future, HASH, wrapped(FACTORY, Bytes.of("fe"))));
            assertFalse(eth.isSignedBy(future, HASH, wrapped(ACCOUNT, INIT)));
            Bytes suffix = good.slice(good.size() - 32, good.size());
            assertFalse(eth.isSignedBy(future, HASH, suffix));
            assertFalse(eth.isSignedBy(future, HASH, Bytes.concat(SIGNED, suffix)));
            // It is there, with other code than before the factory is called, and with that code.
            code(eth, future, returning(MAGIC, 32));
            assertTrue(eth.isSignedBy(future, OTHER, good));
            code(eth, future, WALLET);
            assertTrue(eth.isSignedBy(future, HASH, good));
            assertTrue(eth.isSignedBy(future, HASH, SIGNED));
            assertEquals(WALLET, eth.code(future));
          }
        });
  }
}
