package deponent.descriptor;

import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.engine.EngineClient;
import deponent.engine.ForkchoiceState;
import deponent.engine.ForkchoiceUpdated;
import deponent.engine.NewPayload;
import deponent.engine.PayloadAttributes;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Transaction;
import deponent.eth.Wei;
import deponent.rpc.Request;
import deponent.wallet.PrivateKey;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** A chain with contracts of long codes, and a block that calls all of them. */
final class Codes {
  /** Of a code. */
  static final int BYTES = 24_000;

  private static final Hash ROOT = Hash.of("0x" + "06".repeat(32));
  private static final PrivateKey KEY = PrivateKey.of("0x" + "45".repeat(32));
  private static final Address CALLER = Address.of("0x00000000000000000000000000000000000ca113");

  /** Where the contracts begin: the first is behind it. */
  private static final int BASE = 0x10000;

  private Codes() {}

  /** Of the caller: it calls the contracts from the last one down to the first. */
  private static String caller(int contracts) {
    return "61%04x5b5f5f5f5f8462%06x015afa50600190038060035700".formatted(contracts, BASE);
  }

  static String genesis(int contracts) throws IOException {
    Path root = Path.of("").toAbsolutePath().getParent().getParent().getParent();
    String without = Files.readString(root.resolve("docs/genesis.json"));
    StringBuilder genesis = new StringBuilder(without.length() + contracts * (2 * BYTES + 100));
    String begin = "\"alloc\": {";
    int at = without.indexOf(begin) + begin.length();
    genesis.append(without, 0, at);
    genesis.append("\"").append(KEY.address()).append("\": {\"balance\": \"0xffffffffffffffff\"},");
    genesis.append("\"").append(CALLER).append("\": {\"balance\": \"0x0\", \"code\": \"0x");
    genesis.append(caller(contracts)).append("\"},");
    for (int i = 1; i <= contracts; i++) {
      genesis.append("\"0x%040x\": {\"balance\": \"0x0\", \"code\": \"0x".formatted(BASE + i));
      genesis.append("00%06x".formatted(i).repeat(BYTES / 4)).append("\"},");
    }
    return genesis.append(without, at, without.length()).toString();
  }

  /** A block that calls all contracts; it is not sent. */
  static NewPayload block(EngineClient client) throws InterruptedException {
    Transaction all =
        Transaction.to(CALLER)
            .chainId(1337)
            .nonce(0)
            .gasLimit(16_000_000)
            .fees(Wei.gwei("10"), Wei.of(1))
            .build();
    Bytes transaction = KEY.sign(all).encode();
    client
        .jsonRpc()
        .request(
            Request.of(
                "eth_sendRawTransaction", json -> json.value(transaction), JsonReader::nextHash));
    Hash genesis =
        client
            .jsonRpc()
            .request(
                Request.of(
                    "eth_getBlockByNumber",
                    json -> json.value("latest").value(false),
                    Codes::hash));
    long pause = 50;
    for (long time = 1; ; time++, pause *= 2) {
      PayloadAttributes attributes =
          PayloadAttributes.of(time, ROOT, CALLER).withdrawals(List.of());
      ForkchoiceUpdated begun =
          client.forkchoiceUpdated(
              ForkchoiceState.of(genesis), attributes.parentBeaconBlockRoot(ROOT));
      // The build goes on until the payload is asked for: all codes are read for the first time.
      Thread.sleep(pause);
      NewPayload payload = client.getPayload(begun.payloadId().orElseThrow()).toNewPayload(ROOT);
      if (!payload.payload().transactions().isEmpty()) {
        return payload;
      }
      assertTrue(time < 14, "the pool's transaction is in no payload");
    }
  }

  private static Hash hash(JsonReader json) {
    Hash found = Hash.ZERO;
    json.beginObject();
    while (json.hasNext()) {
      if (json.nextName().equals("hash")) {
        found = json.nextHash();
      } else {
        json.skipValue();
      }
    }
    json.endObject();
    return found;
  }
}
