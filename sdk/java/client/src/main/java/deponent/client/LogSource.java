package deponent.client;

import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.ProtocolException;
import deponent.rpc.Request;
import java.util.ArrayList;
import java.util.List;

/** The logs that a filter wants. */
final class LogSource implements FeedSource<Log> {
  private final LogFilter filter;

  LogSource(LogFilter filter) {
    this.filter = filter;
  }

  @Override
  public Head<Log> read(JsonReader json) {
    return FeedSource.skim(json);
  }

  @Override
  public List<Log> at(Head<Log> block, Asker asker) {
    List<Log> logs = asker.ask(logs(filter.atBlock(block.hash())));
    for (Log log : logs) {
      if (!log.blockHash().equals(block.hash()) || log.blockNumber() != block.number()) {
        throw new ProtocolException(
            "eth_getLogs: a log of block " + log.blockHash() + ", where " + block.hash() + " is");
      }
    }
    return logs;
  }

  @Override
  public List<Log> range(long from, long to, Asker asker) {
    List<Log> logs = asker.ask(logs(filter.fromBlock(from).toBlock(to)));
    long last = from;
    for (Log log : logs) {
      if (log.blockNumber() < last || log.blockNumber() > to) {
        throw new ProtocolException(
            "eth_getLogs: a log of block "
                + log.blockNumber()
                + " behind one of block "
                + last
                + ", where blocks "
                + from
                + " to "
                + to
                + " were asked for");
      }
      last = log.blockNumber();
    }
    return logs;
  }

  /** It is not sent again by the provider: the feed does, with a shorter range. */
  private static Request<List<Log>> logs(LogFilter filter) {
    return Request.of(
        "eth_getLogs",
        filter::write,
        json -> {
          List<Log> logs = new ArrayList<>();
          json.beginArray();
          while (json.hasNext()) {
            logs.add(Log.read(json));
          }
          json.endArray();
          return logs;
        });
  }

  @Override
  public int longest() {
    return 50_000;
  }

  @Override
  public long numberOf(Log log) {
    return log.blockNumber();
  }

  @Override
  public Hash hashOf(Log log) {
    return log.blockHash();
  }
}
