package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import deponent.eth.Abi;
import deponent.eth.AbiError;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

/** Reverts in the words of all servers. */
class RevertsTest {
  private static final Bytes NO = AbiError.REASON.encode("no");

  private static RpcException decoded(int code, String message, String data) {
    return Reverts.decoded(new RpcException(code, message, data), Reverts.NONE);
  }

  private static void is(String reason, Bytes bytes, int code, String message, String data) {
    RevertException revert =
        assertInstanceOf(RevertException.class, decoded(code, message, data), message);
    assertEquals(reason, revert.reason());
    assertEquals(bytes, revert.revertData());
    assertEquals(code, revert.code());
  }

  private static String quoted(Object text) {
    return "\"" + text + "\"";
  }

  @Test
  void allServersReasonsAreRead() {
    // geth, reth, Erigon, anvil, newer Nethermind and Besu, Deponent.
    is("no", NO, 3, "execution reverted: no", quoted(NO));
    // Older Besu and geth.
    is("no", NO, -32000, "Execution reverted", quoted(NO));
    is("", Bytes.EMPTY, -32000, "execution reverted", null);
    is("", Bytes.EMPTY, 3, "execution reverted", quoted("0x"));
    // Older Nethermind, OpenEthereum.
    is("no", NO, -32015, "VM execution error.", quoted("Reverted " + NO));
    is("", Bytes.EMPTY, -32015, "VM execution error.", quoted("Reverted 0x"));
    is("", Bytes.EMPTY, -32015, "VM execution error.", quoted("revert"));
    // Hardhat, ganache.
    String hardhat = "VM Exception while processing transaction: reverted with reason string 'no'";
    is(
        "no",
        NO,
        -32603,
        hardhat,
        "{\"message\":\"x\",\"txHash\":\"0x12\",\"data\":\"" + NO + "\"}");
    is(
        "no",
        NO,
        -32000,
        "VM Exception: revert no",
        "{\"result\":\"" + NO + "\",\"reason\":\"no\"}");
    // A provider before a node.
    String inner = "{\"code\":3,\"data\":\"" + NO + "\",\"message\":\"execution reverted: no\"}";
    is("no", NO, -32603, "Internal error: reverted", "{\"originalError\":" + inner + "}");
  }

  @Test
  void otherErrorsStayWhatTheyAre() {
    RpcException funds = new RpcException(-32000, "insufficient funds for gas", null);
    assertSame(funds, Reverts.decoded(funds, Reverts.NONE));
    for (String data : new String[] {null, "\"0x\"", "{}", "[1]", "\"0x1\"", "7"}) {
      assertEquals(RpcException.class, decoded(-32000, "out of gas", data).getClass());
    }
    assertEquals(RpcException.class, decoded(-32015, "VM execution error.", null).getClass());
    assertEquals(
        RpcException.class,
        decoded(-32015, "VM execution error.", quoted("Bad instruction fe")).getClass());
  }

  @Test
  void dataThatIsNoHexIsAnEmptyRevert() {
    for (String data : new String[] {quoted("0x1"), quoted("0xzz"), "{\"data\":{\"data\":[]}}"}) {
      is("", Bytes.EMPTY, 3, "execution reverted", data);
    }
    String deep = "{\"data\":".repeat(40) + quoted(NO) + "}".repeat(40);
    is("", Bytes.EMPTY, 3, "execution reverted", deep);
  }

  @Test
  void callsAndFuturesFailWithReverts() throws Exception {
    Abi abi = Abi.of("error TooLittle(uint256 offered, uint256 least)");
    Bytes data = abi.error("TooLittle").encode(1, 2);
    Client eth =
        Scripted.client(
            (method, params) -> {
              throw new RpcException(3, "execution reverted", quoted(data));
            });
    Call call = Call.to(Address.ZERO);
    RevertException bytes = assertThrows(RevertException.class, () -> eth.call(call));
    assertEquals("", bytes.reason());
    assertEquals(data, bytes.revertData());
    Call known = call.errors(abi);
    assertEquals(
        "TooLittle(1, 2)", assertThrows(RevertException.class, () -> eth.call(known)).reason());
    RevertException estimate = assertThrows(RevertException.class, () -> eth.estimateGas(known));
    assertEquals("TooLittle(1, 2)", estimate.reason());
    ExecutionException failed =
        assertThrows(ExecutionException.class, () -> eth.async(Eth.call(call)).get());
    assertEquals(
        "TooLittle(1, 2)",
        assertInstanceOf(RevertException.class, failed.getCause()).with(abi).reason());
    // Where no contract runs, an error is an error.
    RpcException other = assertThrows(RpcException.class, eth::blockNumber);
    assertEquals(RpcException.class, other.getClass());
  }
}
