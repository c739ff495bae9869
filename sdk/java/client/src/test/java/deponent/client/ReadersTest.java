package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.AbiEvent;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.Wei;
import deponent.rpc.Request;
import deponent.sets.Sets;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** What readers make of members in any order, of those that are missing, and of wrong ones. */
class ReadersTest {
  private static final Address ONE = Address.of("0x00000000000000000000000000000000000000a1");
  private static final Hash HASH = Hash.of("0x" + "ab".repeat(32));

  private static Map<String, Object> transaction() {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("hash", HASH.toString());
    members.put("type", "0x2");
    members.put("blockHash", HASH.toString());
    members.put("blockNumber", "0x7");
    members.put("transactionIndex", "0x1");
    members.put("from", "0x00000000000000000000000000000000000000a1");
    members.put("to", "0x00000000000000000000000000000000000000a2");
    members.put("nonce", "0x9");
    members.put("gas", "0x5208");
    members.put("value", "0xde0b6b3a7640000");
    members.put("input", "0x0102");
    members.put("gasPrice", "0x3b9aca00");
    members.put("maxFeePerGas", "0x77359400");
    members.put("maxPriorityFeePerGas", "0x1");
    members.put("accessList", List.of());
    members.put("chainId", "0x1");
    members.put("v", "0x1");
    members.put("r", "0x5");
    members.put("s", "0x6");
    members.put("yParity", "0x1");
    return members;
  }

  private static Map<String, Object> log() {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("address", "0x00000000000000000000000000000000000000a1");
    members.put("topics", List.of(HASH.toString()));
    members.put("data", "0x");
    members.put("blockHash", HASH.toString());
    members.put("blockNumber", "0x7");
    members.put("transactionHash", HASH.toString());
    members.put("transactionIndex", "0x1");
    members.put("logIndex", "0x2");
    members.put("removed", false);
    return members;
  }

  private static Map<String, Object> receipt() {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("transactionHash", HASH.toString());
    members.put("transactionIndex", "0x1");
    members.put("blockHash", HASH.toString());
    members.put("blockNumber", "0x7");
    members.put("from", "0x00000000000000000000000000000000000000a1");
    members.put("gasUsed", "0x5208");
    members.put("cumulativeGasUsed", "0xffff");
    members.put("effectiveGasPrice", "0x2");
    members.put("logs", List.of(log()));
    members.put("logsBloom", "0x" + "00".repeat(256));
    return members;
  }

  private static Map<String, Object> header() {
    Map<String, Object> members = new LinkedHashMap<>();
    for (String name :
        List.of(
            "hash",
            "parentHash",
            "sha3Uncles",
            "stateRoot",
            "transactionsRoot",
            "receiptsRoot",
            "mixHash")) {
      members.put(name, HASH.toString());
    }
    members.put("miner", "0x00000000000000000000000000000000000000a1");
    members.put("logsBloom", "0x" + "00".repeat(256));
    members.put("number", "0x7");
    members.put("gasLimit", "0x1c9c380");
    members.put("gasUsed", "0x0");
    members.put("timestamp", "0x64");
    members.put("extraData", "0x");
    members.put("nonce", "0x0000000000000000");
    return members;
  }

  private static Map<String, Object> block() {
    Map<String, Object> members = header();
    members.put("size", "0x200");
    members.put("uncles", List.of());
    members.put("transactions", List.of(transaction()));
    return members;
  }

  private static <T> T read(Request<T> request, Object tree) {
    return request.result().read(new JsonReader(ExecutionApisTest.json(tree)));
  }

  private record Sample(Request<?> request, Map<String, Object> members, List<String> optional) {}

  private static List<Sample> samples() {
    return List.of(
        new Sample(
            Eth.transaction(HASH),
            transaction(),
            List.of(
                "type",
                "blockHash",
                "to",
                "gasPrice",
                "maxFeePerGas",
                "maxPriorityFeePerGas",
                "accessList",
                "chainId",
                "v",
                "r",
                "s",
                "yParity")),
        new Sample(Eth.receipt(HASH), receipt(), List.of()),
        new Sample(Eth.header(BlockId.LATEST), header(), List.of("hash")),
        new Sample(Eth.block(BlockId.LATEST), block(), List.of("hash", "size")));
  }

  @Test
  void membersComeInAnyOrderAndOthersArePassedOver() {
    Random random = Sets.random();
    for (Sample sample : samples()) {
      Object expected = read(sample.request, sample.members);
      for (int i = 0; i < 50; i++) {
        List<String> names = new ArrayList<>(sample.members.keySet());
        Collections.shuffle(names, random);
        Map<String, Object> shuffled = new LinkedHashMap<>();
        for (String name : names) {
          shuffled.put("other" + name, List.of(Map.of("hash", 1, "x", List.of())));
          shuffled.put(name, sample.members.get(name));
        }
        assertEquals(expected, read(sample.request, shuffled));
      }
    }
  }

  @Test
  void aMissingMemberIsNamed() {
    for (Sample sample : samples()) {
      for (String name : sample.members.keySet()) {
        for (boolean isNull : new boolean[] {false, true}) {
          Map<String, Object> less = new LinkedHashMap<>(sample.members);
          if (isNull) {
            less.put(name, null);
          } else {
            less.remove(name);
          }
          if (sample.optional.contains(name)) {
            read(sample.request, less);
          } else {
            MalformedException fault =
                assertThrows(MalformedException.class, () -> read(sample.request, less), name);
            assertEquals("'" + name + "' is missing", fault.getMessage());
          }
        }
      }
    }
  }

  @Test
  void aWrongMemberIsNamedWithItsPlace() {
    for (Sample sample : samples()) {
      for (String name : sample.members.keySet()) {
        for (Object wrong : List.of("zz", true, 5, Map.of("a", 1), List.of(1), "0xzz")) {
          if (wrong.equals(sample.members.get(name))
              || wrong instanceof Boolean && sample.members.get(name) instanceof Boolean) {
            continue;
          }
          Map<String, Object> other = new LinkedHashMap<>(sample.members);
          other.put(name, wrong);
          MalformedException fault =
              assertThrows(
                  MalformedException.class, () -> read(sample.request, other), name + ": " + wrong);
          assertTrue(fault.getMessage().startsWith(name + ": "), fault.getMessage());
        }
      }
    }
  }

  @Test
  void numbersBeyondTheirBoundsAreRefused() {
    for (String name : List.of("nonce", "gas", "blockNumber", "transactionIndex", "chainId")) {
      Map<String, Object> large = transaction();
      large.put(name, "0x8000000000000000");
      MalformedException fault =
          assertThrows(MalformedException.class, () -> read(Eth.transaction(HASH), large));
      assertTrue(fault.getMessage().startsWith(name + ": "), fault.getMessage());
      assertTrue(fault.getMessage().contains("beyond 2^63-1"), fault.getMessage());
      large.put(name, "0x7fffffffffffffff");
      read(Eth.transaction(HASH), large);
    }
    for (String name : List.of("value", "gasPrice", "maxFeePerGas", "r", "s")) {
      Map<String, Object> large = transaction();
      large.put(name, "0x1" + "0".repeat(64));
      MalformedException fault =
          assertThrows(MalformedException.class, () -> read(Eth.transaction(HASH), large));
      assertTrue(fault.getMessage().startsWith(name + ": "), fault.getMessage());
    }
    Map<String, Object> type = transaction();
    type.put("type", "0x100");
    assertThrows(MalformedException.class, () -> read(Eth.transaction(HASH), type));
  }

  @Test
  void aPlaceWithinListsIsNamed() {
    Map<String, Object> block = block();
    Map<String, Object> second = transaction();
    second.put("nonce", "9");
    block.put("transactions", List.of(transaction(), second));
    MalformedException fault =
        assertThrows(MalformedException.class, () -> read(Eth.block(BlockId.LATEST), block));
    assertTrue(
        fault.getMessage().startsWith("transactions: element 1: nonce: JSON at byte "),
        fault.getMessage());
    block.put("transactions", List.of(transaction(), HASH.toString()));
    assertThrows(MalformedException.class, () -> read(Eth.block(BlockId.LATEST), block));
    Map<String, Object> receipt = receipt();
    Map<String, Object> log = log();
    log.remove("logIndex");
    receipt.put("logs", List.of(log));
    fault = assertThrows(MalformedException.class, () -> read(Eth.receipt(HASH), receipt));
    assertEquals("logs: element 0: 'logIndex' is missing", fault.getMessage());
  }

  @Test
  void aFeeThatIsNoAmountIsTheServersFault() {
    Map<String, Object> receipt = receipt();
    receipt.put("effectiveGasPrice", "0x" + "f".repeat(64));
    receipt.put("gasUsed", "0x2");
    Receipt read = read(Eth.receipt(HASH), receipt).orElseThrow();
    assertThrows(ProtocolException.class, read::fee);
  }

  @Test
  void whatIsPendingHasNoPlace() {
    Map<String, Object> header = header();
    for (String name : List.of("hash", "nonce", "miner", "logsBloom")) {
      header.put(name, null);
    }
    BlockHeader pending = read(Eth.header(BlockId.PENDING), header).orElseThrow();
    assertTrue(pending.isPending());
    assertEquals(Hash.ZERO, pending.hash());
    assertEquals(256, pending.logsBloom().size());
    Map<String, Object> transaction = transaction();
    for (String name : List.of("blockHash", "blockNumber", "transactionIndex")) {
      transaction.put(name, null);
    }
    assertTrue(read(Eth.transaction(HASH), transaction).orElseThrow().inclusion().isEmpty());
    assertEquals(Optional.empty(), read(Eth.transaction(HASH), null));
    assertEquals(Optional.empty(), read(Eth.block(BlockId.LATEST), null));
  }

  @Test
  void typesOfOtherChainsAreReadAndNotSigned() {
    Map<String, Object> deposit = transaction();
    deposit.put("type", "0x7e");
    deposit.put("sourceHash", HASH.toString());
    for (String name : List.of("maxFeePerGas", "maxPriorityFeePerGas", "accessList", "chainId")) {
      deposit.remove(name);
    }
    ChainTransaction read = read(Eth.transaction(HASH), deposit).orElseThrow();
    assertEquals(0x7e, read.type());
    assertTrue(read.signed().isEmpty());
  }

  @Test
  void legacySignaturesSayTheirChain() {
    Map<String, Object> legacy = transaction();
    for (String name : List.of("type", "chainId", "yParity", "accessList", "maxFeePerGas")) {
      legacy.remove(name);
    }
    legacy.put("v", "0x1b");
    ChainTransaction any = read(Eth.transaction(HASH), legacy).orElseThrow();
    assertEquals(OptionalLong.empty(), any.chainId());
    assertEquals(0, any.signature().orElseThrow().yParity());
    legacy.put("v", "0x26");
    ChainTransaction one = read(Eth.transaction(HASH), legacy).orElseThrow();
    assertEquals(OptionalLong.of(1), one.chainId());
    assertEquals(1, one.signature().orElseThrow().yParity());
    BigInteger large = BigInteger.valueOf(Long.MAX_VALUE).shiftLeft(1).add(BigInteger.valueOf(35));
    legacy.put("v", "0x" + large.toString(16));
    ChainTransaction last = read(Eth.transaction(HASH), legacy).orElseThrow();
    assertEquals(OptionalLong.of(Long.MAX_VALUE), last.chainId());
  }

  @Test
  void filtersKeepWhatIsAnyAndMatchWhatTheyAskFor() {
    AbiEvent transfer =
        AbiEvent.of("Transfer(address indexed from, address indexed to, uint256 value)");
    LogFilter filter = LogFilter.of(transfer, null, ONE).from(ONE).fromBlock(7);
    String word = "0x00000000000000000000000000000000000000000000000000000000000000a1";
    assertEquals(
        "{\"fromBlock\":\"0x7\",\"address\":[\"0x00000000000000000000000000000000000000a1\"],"
            + ("\"topics\":[\"" + transfer.topic() + "\",null,\"" + word + "\"]}"),
        filter.toString());
    Map<String, Object> members = log();
    members.put("topics", List.of(transfer.topic().toString(), HASH.toString(), word));
    Log log = read(Eth.logs(filter), List.of(members)).getFirst();
    assertTrue(filter.matches(log));
    assertTrue(LogFilter.ALL.topic(1, Hash.ZERO, HASH).matches(log));
    assertFalse(LogFilter.ALL.topic(1, Hash.ZERO).matches(log));
    assertFalse(LogFilter.ALL.topic(3, HASH).matches(log));
    assertFalse(filter.from(Address.ZERO).matches(log));
    assertEquals(LogFilter.ALL, LogFilter.ALL.topic(2, HASH).topic(2));
    assertThrows(IllegalArgumentException.class, () -> LogFilter.ALL.topic(4, HASH));
    BlockId byHash = BlockId.of(HASH);
    assertThrows(IllegalArgumentException.class, () -> LogFilter.ALL.fromBlock(byHash));
  }

  @Test
  void callsDoNotChange() {
    Call call = Call.to(ONE).value(Wei.of(1));
    Call other = call.value(Wei.of(2)).data(Bytes.of("0x01"));
    assertEquals(Optional.of(Wei.of(1)), call.value());
    assertEquals(Bytes.EMPTY, call.data());
    assertEquals(call, Call.to(ONE).value(Wei.of(1)));
    assertFalse(call.equals(other));
    assertThrows(IllegalArgumentException.class, () -> call.nonce(-1));
    assertThrows(IllegalArgumentException.class, () -> BlockId.of(-1));
    assertThrows(IllegalArgumentException.class, () -> Eth.feeHistory(0, BlockId.LATEST));
    assertThrows(IllegalArgumentException.class, () -> Eth.feeHistory(1, BlockId.of(HASH)));
    assertThrows(IllegalArgumentException.class, () -> Eth.feeHistory(1, BlockId.LATEST, 101));
  }

  @Test
  void accessListsOfBlocksAreRead() {
    Map<String, Object> value = Map.of("index", "0x1", "value", "0x5563590ac0");
    Map<String, Object> account =
        Map.of(
            "address",
            ONE.toString(),
            "storageChanges",
            List.of(Map.of("key", HASH.toString(), "changes", List.of(value))),
            "storageReads",
            List.of("0x1", HASH.toString()),
            "balanceChanges",
            List.of(value),
            "nonceChanges",
            List.of(value),
            "codeChanges",
            List.of(Map.of("index", "0x2", "code", "0x6001")));
    Object tree = List.of(account, Map.of("address", ONE.toString()));
    Walk.equal("accounts", tree, read(Eth.blockAccessList(BlockId.LATEST), tree));
    assertEquals(Optional.empty(), read(Eth.blockAccessList(BlockId.LATEST), null));
  }
}
