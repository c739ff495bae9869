package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Abi;
import deponent.eth.AbiError;
import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.EthException;
import deponent.eth.MalformedException;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.sets.Sets;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Calls that run together, by a contract that obeys, and by the real one. */
class MulticallTest {
  private static final Address TARGET = Address.of("0x00000000000000000000000000000000000000aa");

  private static final AbiFunction FUNCTION =
      AbiFunction.of("f(uint256 n, bytes more) view returns (uint256)");

  private static final AbiError TOO_MANY = AbiError.of("TooMany(uint256 n)");

  private static final Abi ERRORS = Abi.of("error TooMany(uint256 n)");

  private static final AbiFunction AGGREGATE =
      AbiFunction.of(
          "aggregate3((address target, bool allowFailure, bytes callData)[] calls)"
              + " returns ((bool success, bytes returnData)[])");

  /** A contract whose answers depend on the argument and the block, and perhaps Multicall3. */
  private static final class Contracts implements Wire.Answers {
    boolean multicall = true;

    /** Calls that fit into the gas of one, and calls after which the others find none. */
    int refused = Integer.MAX_VALUE;

    int gas = Integer.MAX_VALUE;

    long head = 100;
    int requests;

    @Override
    public synchronized String answer(String method, List<Object> params, Wire.Peer peer) {
      requests++;
      if (method.equals("eth_blockNumber")) {
        return "\"0x" + Long.toHexString(head) + "\"";
      }
      if (!method.equals("eth_call")) {
        throw new Wire.Refusal(-32601, method);
      }
      Map<?, ?> call = (Map<?, ?>) params.get(0);
      long block = Long.decode((String) params.get(1));
      // The chain goes on meanwhile.
      head++;
      Object input = call.get("input") == null ? call.get("data") : call.get("input");
      Bytes data = Bytes.of((String) input);
      Address to = Address.of((String) call.get("to"));
      if (to.equals(Multicall.CONTRACT)) {
        return multicall ? "\"" + aggregate(data, block) + "\"" : "\"0x\"";
      }
      assertEquals(Multicall.CONTRACT, Address.of((String) call.get("from")));
      Result result = run(data, block);
      if (!result.success) {
        throw new Wire.Refusal(3, "execution reverted", ",\"data\":\"" + result.data + "\"");
      }
      return "\"" + result.data + "\"";
    }

    private record Result(boolean success, Bytes data) {}

    private Bytes aggregate(Bytes data, long block) {
      List<Object> calls = AGGREGATE.decodeArguments(data).list(0);
      if (calls.size() > refused) {
        throw new Wire.Refusal(-32000, "out of gas");
      }
      List<Object> results = new ArrayList<>();
      for (Object one : calls) {
        AbiValues call = (AbiValues) one;
        assertEquals(TARGET, call.address(0));
        assertTrue(call.bool(1));
        boolean spent = results.size() >= gas;
        Result result = spent ? new Result(false, Bytes.EMPTY) : run(call.bytes(2), block);
        results.add(List.of(result.success, result.data));
      }
      return AGGREGATE.encodeResult(results);
    }

    private static Result run(Bytes data, long block) {
      BigInteger n = FUNCTION.decodeArguments(data).integer(0);
      return switch (n.intValue() % 6) {
        case 0 -> new Result(false, AbiError.REASON.encode("no " + n));
        case 1 -> new Result(false, Bytes.EMPTY);
        case 2 -> new Result(false, TOO_MANY.encode(n));
        case 3 -> new Result(true, Bytes.EMPTY);
        default -> {
          BigInteger value = n.multiply(BigInteger.valueOf(1_000)).add(BigInteger.valueOf(block));
          yield new Result(true, FUNCTION.encodeResult(value));
        }
      };
    }
  }

  private static String told(Outcome outcome) {
    return switch (outcome) {
      case Outcome.Value(AbiValues values) -> "value " + values;
      case Outcome.Failed(RevertException why) -> "revert " + why.revertData() + why.reason();
      case Outcome.Failed(EthException why) -> why.getClass().getSimpleName();
    };
  }

  /** What becomes of a call, asked for on its own. */
  private static String alone(Client eth, BlockId block, int n, Bytes more) {
    Call call = Call.to(TARGET).from(Multicall.CONTRACT).data(FUNCTION, n, more).errors(ERRORS);
    try {
      return told(new Outcome.Value(FUNCTION.decodeResult(eth.call(call, block))));
    } catch (RevertException | MalformedException why) {
      return told(new Outcome.Failed(why));
    }
  }

  @Test
  void outcomesAreThoseOfLoneCallsOnOneBlock() throws Exception {
    Random random = Sets.random();
    for (int i = 0; i < 40; i++) {
      Contracts contracts = new Contracts();
      contracts.multicall = random.nextInt(4) > 0;
      contracts.refused = random.nextBoolean() ? Integer.MAX_VALUE : 1 + random.nextInt(50);
      contracts.gas = random.nextBoolean() ? Integer.MAX_VALUE : random.nextInt(50);
      try (Wire wire = new Wire(contracts);
          Client eth = wire.client(random.nextBoolean() ? "ws" : "http")) {
        Multicall calls = eth.multicall().errors(ERRORS);
        List<Integer> arguments = new ArrayList<>();
        List<Bytes> more = new ArrayList<>();
        for (int left = random.nextInt(8) == 0 ? 1_200 : random.nextInt(80); left > 0; left--) {
          arguments.add(random.nextInt(1_000));
          more.add(Bytes.of(new byte[random.nextInt(20) == 0 ? 30_000 : random.nextInt(100)]));
          calls.add(TARGET, FUNCTION, arguments.getLast(), more.getLast());
        }
        BlockId block = random.nextBoolean() ? BlockId.of(77) : BlockId.LATEST;
        BlockId pinned = block == BlockId.LATEST ? BlockId.of(contracts.head) : block;
        List<Outcome> outcomes = calls.at(block).run();
        assertEquals(arguments.size(), outcomes.size());
        for (int k = 0; k < outcomes.size(); k += 1 + random.nextInt(20)) {
          String expected = alone(eth, pinned, arguments.get(k), more.get(k));
          assertEquals(expected, told(outcomes.get(k)));
        }
      }
    }
  }

  @Test
  void manyCallsAreFewRequests() throws Exception {
    Contracts contracts = new Contracts();
    try (Wire wire = new Wire(contracts);
        Client eth = wire.client("ws")) {
      Multicall calls = eth.multicall();
      for (int i = 0; i < 1_000; i++) {
        calls.add(TARGET, FUNCTION, 6 * i + 4, Bytes.EMPTY);
      }
      assertEquals(1_000, calls.run().stream().map(Outcome::get).toList().size());
      assertTrue(contracts.requests <= 4, contracts.requests + " requests");
      assertEquals(List.of(), eth.multicall().run());
    }
  }

  @Test
  void aFailureIsThrownWhereTheValueIsAskedFor() throws Exception {
    try (Wire wire = new Wire(new Contracts());
        Client eth = wire.client("ws")) {
      Multicall calls = eth.multicall().errors(ERRORS);
      calls.add(TARGET, FUNCTION, 2, Bytes.EMPTY).add(TARGET, FUNCTION, 3, Bytes.EMPTY);
      List<Outcome> outcomes = calls.run();
      RevertException revert = assertThrows(RevertException.class, () -> outcomes.get(0).get());
      assertEquals("TooMany(2)", revert.reason());
      assertThrows(MalformedException.class, () -> outcomes.get(1).get());
    }
  }

  @Test
  void aServerWithoutCallsIsAnError() throws Exception {
    Wire.Answers none =
        (method, params, peer) -> {
          if (method.equals("eth_blockNumber")) {
            return "\"0x1\"";
          }
          throw new Wire.Refusal(-32601, "no " + method);
        };
    try (Wire wire = new Wire(none);
        Client eth = wire.client("ws")) {
      Multicall calls = eth.multicall();
      for (int i = 0; i < 10; i++) {
        calls.add(TARGET, FUNCTION, i, Bytes.EMPTY);
      }
      assertEquals(-32601, assertThrows(RpcException.class, calls::run).code());
    }
  }

  /** The init code of Multicall3 as npm's viem has it, or null. */
  private static String initCode() throws Exception {
    Path modules = Sets.npm("viem");
    if (modules == null) {
      return null;
    }
    String text = Files.readString(modules.resolve("viem/constants/contracts.ts"));
    Matcher code = Pattern.compile("multicall3Bytecode =\\s*'(0x[0-9a-f]+)'").matcher(text);
    assertTrue(code.find(), "viem's constants have another form");
    return code.group(1);
  }

  @Test
  void realChainsHaveItOrNot() throws Exception {
    String initCode = initCode();
    if (initCode == null) {
      return;
    }
    AbiFunction balance = AbiFunction.of("getEthBalance(address) view returns (uint256)");
    AbiFunction none = AbiFunction.of("none() view returns (uint256)");
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            Address rich = Nodes.key(0).address();
            String code = eth.call(Call.create(Bytes.of(initCode))).toString();
            Address elsewhere = Address.of("0x00000000000000000000000000000000000000bb");
            Nodes.ask(eth, "anvil_setCode", json -> json.value(elsewhere.toString()).value(code));
            List<List<String>> both = new ArrayList<>();
            for (boolean there : new boolean[] {false, true}) {
              if (there) {
                Nodes.ask(
                    eth,
                    "anvil_setCode",
                    json -> json.value(Multicall.CONTRACT.toString()).value(code));
              }
              Multicall calls = eth.multicall();
              calls.add(elsewhere, balance, rich);
              calls.add(elsewhere, none);
              calls.add(rich, balance, rich);
              List<Outcome> outcomes = calls.run();
              BigInteger held = outcomes.get(0).get().integer(0);
              assertEquals(eth.balance(rich).toBigInteger(), held);
              both.add(outcomes.stream().map(MulticallTest::told).toList());
            }
            assertEquals(both.get(0), both.get(1));
            assertEquals("revert 0x", both.get(0).get(1));
          }
        });
  }
}
