package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.Wei;
import deponent.sets.Sets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class FeesTest {
  /** A block of a history. */
  private record Past(long base, boolean empty, long tip) {}

  private static String quantity(long number) {
    return "\"0x" + Long.toHexString(number) + "\"";
  }

  private static String joined(List<String> parts) {
    return parts.stream().collect(Collectors.joining(",", "[", "]"));
  }

  private static String history(List<Past> past, long next) {
    List<String> bases = new ArrayList<>(past.stream().map(one -> quantity(one.base)).toList());
    bases.add(quantity(next));
    String rewards =
        joined(past.stream().map(one -> "[" + quantity(one.empty ? 0 : one.tip) + "]").toList());
    String ratios = joined(past.stream().map(one -> one.empty ? "0" : "0.25").toList());
    return "{\"oldestBlock\":\"0x1\",\"baseFeePerGas\":"
        + joined(bases)
        + ",\"gasUsedRatio\":"
        + ratios
        + ",\"reward\":"
        + rewards
        + "}";
  }

  private static final long PROPOSED = 77;

  private static Client with(List<Past> past, long next, boolean baseFees) {
    return Scripted.client(
        (method, params) ->
            switch (method) {
              case "eth_feeHistory" -> {
                assertEquals("[\"0xa\",\"latest\",[50]]", params);
                yield history(past, next);
              }
              case "eth_maxPriorityFeePerGas" -> quantity(PROPOSED);
              case "eth_gasPrice" -> quantity(1_000);
              case "eth_getBlockByNumber" -> Blocks.block(9, 1, baseFees ? "0x0" : null);
              default -> throw new AssertionError(method);
            });
  }

  /** The tip that half of the others are below or at, found by trying all. */
  private static long tip(List<Past> past) {
    List<Long> tips = past.stream().filter(one -> !one.empty).map(Past::tip).toList();
    for (long one : tips) {
      long below = tips.stream().filter(other -> other < one).count();
      long above = tips.stream().filter(other -> other > one).count();
      if (below <= tips.size() / 2 && above <= (tips.size() - 1) / 2) {
        return one == 0 ? PROPOSED : one;
      }
    }
    return PROPOSED;
  }

  @Test
  void theMarketIsTheMedianTipUponTwiceTheBaseFee() {
    Random random = Sets.random();
    for (int i = 0; i < 2_000; i++) {
      List<Past> past = new ArrayList<>();
      int blocks = random.nextInt(11);
      int distinct = 1 + random.nextInt(6);
      for (int block = 0; block < blocks; block++) {
        past.add(
            new Past(random.nextLong(1L << 40), random.nextInt(3) == 0, random.nextInt(distinct)));
      }
      long next = 1 + random.nextLong(1L << 40);
      Wei tip = Wei.of(tip(past));
      assertEquals(
          new Fee.Market(Wei.of(2 * next).plus(tip), tip),
          Fees.market().fee(with(past, next, true)),
          () -> past + ", " + next);
    }
  }

  @Test
  void aChainWithoutBaseFeesHasGasPrices() {
    List<Past> past = List.of(new Past(0, false, 5));
    assertEquals(new Fee.Legacy(Wei.of(1_000)), Fees.market().fee(with(past, 0, false)));
    Fee free = new Fee.Market(Wei.of(5), Wei.of(5));
    assertEquals(free, Fees.market().fee(with(past, 0, true)));
    Client old =
        Scripted.client(
            (method, params) -> {
              if (method.equals("eth_gasPrice")) {
                return quantity(8);
              }
              throw new RpcException(-32601, "the method " + method + " does not exist", null);
            });
    assertEquals(new Fee.Legacy(Wei.of(8)), Fees.market().fee(old));
    assertEquals(new Fee.Legacy(Wei.of(8)), Fees.legacy().fee(old));
  }

  @Test
  void aServerThatProposesNoTipIsAskedForItsPrice() {
    Client eth =
        Scripted.client(
            (method, params) ->
                switch (method) {
                  case "eth_feeHistory" -> history(List.of(), 100);
                  case "eth_gasPrice" -> quantity(130);
                  default -> throw new RpcException(-32601, "no " + method, null);
                });
    assertEquals(new Fee.Market(Wei.of(230), Wei.of(30)), Fees.market().fee(eth));
  }

  @Test
  void errorsOfTheServerAreNotHidden() {
    Client eth =
        Scripted.client(
            (method, params) -> {
              throw new RpcException(-32000, "header not found", null);
            });
    assertThrows(RpcException.class, () -> Fees.market().fee(eth));
  }

  @Test
  void feesOfAServerThatAreNoAmountsAreItsFault() {
    String most = "\"0x" + "f".repeat(64) + "\"";
    Client lying =
        Scripted.client(
            (method, params) ->
                method.equals("eth_feeHistory")
                    ? "{\"oldestBlock\":\"0x1\",\"baseFeePerGas\":["
                        + most
                        + "],\"gasUsedRatio\":[0.5],\"reward\":[["
                        + most
                        + "]]}"
                    : most);
    ProtocolException fault = assertThrows(ProtocolException.class, () -> Fees.market().fee(lying));
    assertEquals(
        "the server's fees are too high: a product beyond 2^256-1 wei", fault.getMessage());
    assertThrows(ProtocolException.class, () -> Fees.market().blobFee(lying));
    String empty = "{\"oldestBlock\":\"0x1\",\"baseFeePerGas\":[],\"gasUsedRatio\":[]}";
    Client silent =
        Scripted.client((method, params) -> method.equals("eth_feeHistory") ? empty : "null");
    fault = assertThrows(ProtocolException.class, () -> Fees.market().fee(silent));
    assertEquals("eth_feeHistory: no base fee of the next block", fault.getMessage());
  }

  @Test
  void boundsAndFixedFees() {
    Client none =
        Scripted.client(
            (method, params) -> {
              throw new AssertionError(method);
            });
    Fee fee = Fees.fixed(Wei.of(100), Wei.of(3)).fee(none);
    assertEquals(new Fee.Market(Wei.of(100), Wei.of(3)), fee);
    assertEquals(Wei.of(100), fee.most());
    assertEquals(new Fee.Legacy(Wei.of(9)), Fees.fixed(Wei.of(9)).fee(none));
    assertThrows(IllegalArgumentException.class, () -> Fees.fixed(Wei.of(1), Wei.of(2)));
    Fees fees = Fees.fixed(Wei.of(100), Wei.of(30));
    assertEquals(new Fee.Market(Wei.of(20), Wei.of(20)), Fees.bounded(fees, Wei.of(20)).fee(none));
    assertEquals(fees.fee(none), Fees.bounded(fees, Wei.of(200)).fee(none));
    assertEquals(
        new Fee.Legacy(Wei.of(5)), Fees.bounded(Fees.fixed(Wei.of(9)), Wei.of(5)).fee(none));
  }

  @Test
  void blobsPayTwiceTheirBaseFeeAtMost() {
    Client eth = Scripted.client((method, params) -> quantity(21));
    assertEquals(Wei.of(42), Fees.market().blobFee(eth));
    assertEquals(Wei.of(42), Fees.bounded(Fees.legacy(), Wei.of(1)).blobFee(eth));
    assertEquals(Wei.of(1), Fees.market().blobFee(Scripted.client((m, p) -> "\"0x0\"")));
  }
}
