package deponent.client;

import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.rpc.Params;
import deponent.rpc.Request;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The headers of all blocks. */
final class HeadSource implements FeedSource<BlockHeader> {
  @Override
  public Head<BlockHeader> read(JsonReader json) {
    BlockHeader header = BlockHeader.read(json);
    return new Head<>(header.number(), header.hash(), header.parentHash(), header);
  }

  @Override
  public List<BlockHeader> at(Head<BlockHeader> block, Asker asker) {
    return List.of(java.util.Objects.requireNonNull(block.value()));
  }

  @Override
  public List<BlockHeader> range(long from, long to, Asker asker) {
    List<Request<@Nullable BlockHeader>> requests = new ArrayList<>();
    for (long number = from; number <= to; number++) {
      requests.add(header(number));
    }
    List<BlockHeader> headers = new ArrayList<>();
    for (BlockHeader header : asker.askAll(requests)) {
      BlockHeader last = headers.isEmpty() ? null : headers.getLast();
      if (header == null || last != null && !header.parentHash().equals(last.hash())) {
        throw new TransportException(Kind.BUSY, true, "the chain changes meanwhile", null);
      }
      headers.add(header);
    }
    return headers;
  }

  private static Request<@Nullable BlockHeader> header(long number) {
    Params params = json -> json.quantity(number).value(false);
    return Request.<@Nullable BlockHeader>of(
            "eth_getBlockByNumber", params, json -> json.nextNull() ? null : BlockHeader.read(json))
        .repeatable();
  }

  @Override
  public int longest() {
    return 64;
  }

  @Override
  public long numberOf(BlockHeader header) {
    return header.number();
  }

  @Override
  public Hash hashOf(BlockHeader header) {
    return header.hash();
  }
}
