package deponent.rpc.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.AbiError;
import deponent.eth.Address;
import deponent.eth.EthException;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.ProtocolException;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.rpc.Decoder;
import deponent.rpc.Params;
import deponent.rpc.Request;
import deponent.sets.Sets;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class MessagesTest {
  /** Notes what it is told; requests 1 to 9 are in flight, and have quantities as results. */
  private static final class Told implements Answers {
    final List<String> told = new ArrayList<>();
    final List<EthException> reasons = new ArrayList<>();

    @Override
    public Decoder<?> decoder(long id) {
      Decoder<Long> quantity = JsonReader::nextQuantity;
      return id >= 1 && id <= 9 ? quantity : null;
    }

    @Override
    public void answered(long id, Object result) {
      told.add(id + "=" + result);
    }

    @Override
    public void failed(long id, EthException reason) {
      told.add(id + "!" + reason.getClass().getSimpleName());
      reasons.add(reason);
    }

    @Override
    public void refused(RpcException reason) {
      told.add("refused " + reason.code());
      reasons.add(reason);
    }

    @Override
    public void notified(String subscription, JsonReader value) {
      told.add(subscription + ":" + value.nextJson());
    }
  }

  private static Told read(String... messages) {
    Told told = new Told();
    for (String message : messages) {
      Messages.read(new JsonReader(message), told);
    }
    return told;
  }

  private static void check(String message, String... told) {
    assertEquals(List.of(told), read(message).told, message);
  }

  @Test
  void aRequestIsWritten() {
    JsonWriter json = new JsonWriter();
    Request<Long> request =
        Request.of(
            "eth_getBalance",
            params -> params.value(Address.ZERO).value("latest"),
            JsonReader::nextQuantity);
    Messages.write(7, request, json);
    assertEquals(
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"eth_getBalance\",\"params\":[\"0x"
            + "0".repeat(40)
            + "\",\"latest\"]}",
        new String(json.toBytes(), StandardCharsets.UTF_8));
    assertFalse(request.isRepeatable());
    assertTrue(request.repeatable().isRepeatable());
    Duration limit = Duration.ofSeconds(1);
    assertEquals(limit, request.timeout(limit).timeout().orElseThrow());
    assertThrows(IllegalArgumentException.class, () -> request.timeout(Duration.ZERO));
    assertThrows(IllegalArgumentException.class, () -> Request.ofJson(" ", Params.NONE));
  }

  @Test
  void answersAreReadInAnyOrderOfTheirMembers() {
    check("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"0x5\"}", "1=5");
    check("{\"result\":\"0x5\",\"id\":1,\"jsonrpc\":\"2.0\"}", "1=5");
    check("{\"id\":\"1\",\"result\":\"0x5\",\"other\":{\"a\":[1]}}", "1=5");
    check("{\"id\":1,\"error\":null,\"result\":\"0x5\"}", "1=5");
    check("{\"id\":1,\"error\":{\"code\":-1,\"message\":\"m\"},\"result\":null}", "1!RpcException");
    check("{\"error\":{\"code\":-1,\"message\":\"m\"},\"id\":1}", "1!RpcException");
    check("{\"id\":77,\"result\":{\"a\":1}}");
    check("{\"id\":\"abc\",\"error\":{\"code\":-7,\"message\":\"m\"}}", "refused -7");
    check("{\"id\":null,\"error\":{\"code\":-32600,\"message\":\"batch\"}}", "refused -32600");
  }

  @Test
  void batchesAreReadOneByOne() {
    check(
        "[{\"id\":2,\"result\":\"0x2\"},{\"id\":1,\"error\":{\"code\":1}},{\"id\":3,\"result\":"
            + "\"0x3\"}]",
        "2=2",
        "1!RpcException",
        "3=3");
    check("[]");
  }

  @Test
  void notificationsAreToldToTheirSubscription() {
    check(
        "{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":{\"subscription\":\"0xa\","
            + "\"result\":{\"n\":1}}}",
        "0xa:{\"n\":1}");
    check(
        "{\"params\":{\"result\":5,\"subscription\":\"0xa\"},\"method\":\"eth_subscription\"}",
        "0xa:5");
  }

  @Test
  void errorsKeepTheirCodeAndData() {
    RpcException error =
        (RpcException)
            read("{\"id\":1,\"error\":{\"code\":-32005,\"message\":\"slow down\",\"data\":{\"in\":3}}}")
                .reasons
                .get(0);
    assertEquals(-32005, error.code());
    assertEquals("slow down", error.getMessage());
    assertEquals("{\"in\":3}", error.data());
    RpcException huge =
        (RpcException) read("{\"id\":1,\"error\":{\"code\":99999999999}}").reasons.get(0);
    assertEquals(Integer.MAX_VALUE, huge.code());
  }

  @Test
  void revertsAreKnownWithTheirReason() {
    String data = AbiError.REASON.encode("no").toString();
    for (String error :
        List.of(
            "\"code\":3,\"message\":\"execution reverted: no\"",
            "\"code\":-32000,\"message\":\"VM Exception: reverted\"")) {
      RevertException revert =
          (RevertException)
              read("{\"id\":1,\"error\":{" + error + ",\"data\":\"" + data + "\"}}").reasons.get(0);
      assertEquals("no", revert.reason());
    }
    RevertException bare =
        (RevertException)
            read("{\"id\":1,\"error\":{\"code\":3,\"message\":\"execution reverted\"}}")
                .reasons
                .get(0);
    assertTrue(bare.revertData().isEmpty());
  }

  private static Told broken(String message, String reason) {
    Told told = new Told();
    Throwable thrown =
        assertThrows(
            ProtocolException.class, () -> Messages.read(new JsonReader(message), told), message);
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
    return told;
  }

  @Test
  void whatIsNoMessageIsRefusedAndTheCallFails() {
    broken("<html>", "no value: '<html>'");
    broken("5", "not an object");
    broken("{}", "an answer without an id");
    broken("{\"id\":1}", "neither result nor error");
    broken("{\"result\":1}", "an answer without an id");
    broken("{\"id\":1,\"result\":\"0x5\"", "the text ends");
    broken("{\"method\":\"x\",\"params\":{\"result\":1}}", "no subscription");
    Told told = broken("{\"id\":1,\"result\":\"five\"}", "a quantity begins with 0x");
    assertEquals(List.of("1!ProtocolException"), told.told);
    Told later =
        broken("[{\"id\":1,\"result\":\"0x1\"},{\"id\":2,\"result\":[]}]", "not a quantity");
    assertEquals(List.of("1=1", "2!ProtocolException"), later.told);
  }

  @Test
  void changedMessagesAreRefusedOrTold() {
    Random random = Sets.random();
    byte[] message =
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"0x5\"},{\"id\":2,\"error\":{\"code\":3,"
                + "\"message\":\"execution reverted\",\"data\":\"0x08c379a0\"}},{\"method\":\"m\","
                + "\"params\":{\"subscription\":\"0xa\",\"result\":{\"n\":1}}}]")
            .getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < 20_000; i++) {
      byte[] changed = message.clone();
      changed[random.nextInt(changed.length)] = (byte) random.nextInt();
      try {
        Messages.read(new JsonReader(changed), new Told());
      } catch (ProtocolException refused) {
        assertTrue(refused.getMessage().length() < 400, refused.getMessage());
      }
    }
  }
}
