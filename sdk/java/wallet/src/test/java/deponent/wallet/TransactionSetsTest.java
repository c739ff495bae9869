package deponent.wallet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.MalformedException;
import deponent.eth.SignedTransaction;
import deponent.eth.Transaction;
import deponent.sets.Sets;
import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** The published sets of transactions: signatures, senders, and what is to be refused. */
class TransactionSetsTest {
  /** The chain of Ethereum's tests. */
  private static final long CHAIN = 1;

  private static void check(String signed, String secret, String address, String name) {
    PrivateKey key = PrivateKey.of(secret);
    SignedTransaction decoded = SignedTransaction.decode(Bytes.of(signed));
    assertEquals(Address.of(address), Recovery.sender(decoded).orElseThrow(), name);
    assertEquals(signed, key.sign(decoded.transaction()).encode().toString(), name);
  }

  @Test
  void legacyTransactionsAreSignedAsByEthers() {
    List<Map<String, Object>> set = Sets.ethers("transactions");
    Sets.counted(set, 1_067);
    for (Map<String, Object> test : set) {
      String name = (String) test.get("name");
      if (test.get("gasLimit") instanceof String gas
          && gas.length() > 2
          && new BigInteger(gas.substring(2), 16).bitLength() > 64) {
        continue; // Refused: see TransactionTest of eth.
      }
      String secret = (String) test.get("privateKey");
      String address = (String) test.get("accountAddress");
      check((String) test.get("signedTransaction"), secret, address, name);
      check((String) test.get("signedTransactionChainId5"), secret, address, name);
    }
  }

  @Test
  void typedTransactionsAreSignedAsByEthers() {
    List<Map<String, Object>> set = Sets.ethers("typed-transactions");
    Sets.counted(set, 1_792);
    for (Map<String, Object> test : set) {
      check(
          (String) test.get("signed"),
          (String) test.get("key"),
          (String) test.get("address"),
          (String) test.get("name"));
    }
  }

  /** The newest fork of those that a test of Ethereum has. */
  private static Map<?, ?> newest(Map<?, ?> results) {
    for (String fork : List.of("Cancun", "Shanghai", "Paris", "London")) {
      if (results.get(fork) instanceof Map<?, ?> result) {
        return result;
      }
    }
    throw new AssertionError(results);
  }

  @Test
  void thePublishedTestsOfEthereumAreJudgedAsInTheNewestFork() {
    Map<String, Map<String, Object>> set = Sets.fixtures("TransactionTests");
    Sets.counted(set.keySet(), 210);
    set.forEach(
        (name, test) -> {
          Map<?, ?> expected = newest((Map<?, ?>) test.get("result"));
          Optional<SignedTransaction> decoded = decoded((String) test.get("txbytes"));
          Optional<Address> sender = decoded.flatMap(Recovery::sender);
          boolean taken =
              sender.isPresent()
                  && decoded.get().fault().isEmpty()
                  && decoded.get().transaction().chain().orElse(CHAIN) == CHAIN;
          if (expected.get("exception") != null) {
            assertFalse(taken, name + ": " + expected);
            return;
          }
          assertEquals(Address.of((String) expected.get("sender")), sender.orElse(null), name);
          if (!belowFloor(decoded.get().transaction())) {
            assertEquals(Optional.empty(), decoded.get().fault(), name);
          }
          assertEquals(Hash.of((String) expected.get("hash")), decoded.get().hash(), name);
          String gas = (String) expected.get("intrinsicGas");
          assertEquals(
              Long.parseLong(gas.substring(2), 16),
              decoded.get().transaction().intrinsicGas(),
              name);
        });
  }

  /** Whether the gas was enough before Prague, for which these tests were not made. */
  private static boolean belowFloor(Transaction transaction) {
    long gas = transaction.gasLimit();
    return gas >= transaction.intrinsicGas() && gas < transaction.floorGas();
  }

  private static Optional<SignedTransaction> decoded(String bytes) {
    try {
      return Optional.of(SignedTransaction.decode(Bytes.of(bytes)));
    } catch (MalformedException refused) {
      return Optional.empty();
    } catch (IllegalArgumentException noHex) {
      return Optional.empty();
    }
  }
}
