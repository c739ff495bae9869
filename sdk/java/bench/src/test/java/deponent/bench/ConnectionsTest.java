package deponent.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.util.List;
import org.junit.jupiter.api.Test;

class ConnectionsTest {
  @Test
  void aMiniatureOfTheConnections() throws Exception {
    List<String> servers = Server.names();
    for (String name : List.of("anvil", "deponent dev")) {
      if (!servers.contains(name)) {
        if (System.getenv("CI") != null) {
          fail("CI needs " + name + " (sdk/java/README.md)");
        }
        System.out.println("not run: no " + name + " (sdk/java/README.md)");
      }
    }
    String tables = new ConnectionReport(1, 20).run().tables();
    for (String name : servers) {
      assertTrue(tables.contains("Against " + name), tables);
    }
    assertEquals(9 * servers.size(), tables.split("\n\\| (WebSocket|HTTP|Unix)").length - 1);
  }

  @Test
  void ratesAreKept() throws InterruptedException {
    Rate rate = new Rate(1_000);
    long before = System.nanoTime();
    for (int i = 0; i < 5; i++) {
      rate.await(10);
    }
    assertTrue(System.nanoTime() - before >= 40_000_000);
  }

  @Test
  void mediansAndRatios() {
    Samples slow = new Samples();
    Samples fast = new Samples();
    for (int i = 1; i <= 4; i++) {
      slow.add(i);
      fast.add(i * i);
    }
    assertEquals(2.5, slow.median());
    assertEquals("**2.5** (1.0–4.0)", fast.over(slow).ratio());
    assertEquals(
        "12.3 123 1,230 12,300,000",
        List.of(12.34, 123.4, 1234.0, 12345678.0).stream()
            .map(Samples::number)
            .reduce((a, b) -> a + " " + b)
            .orElseThrow());
  }
}
