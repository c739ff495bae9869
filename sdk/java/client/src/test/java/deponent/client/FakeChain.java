package deponent.client;

import deponent.eth.Address;
import deponent.eth.Hash;
import deponent.eth.Hex;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** A chain of blocks with logs and nothing else, that reorganises, and what asks for it. */
final class FakeChain implements Wire.Answers {
  /** A block, with the number of its logs. */
  record Block(long number, Hash hash, Hash parent, int logs) {
    /** What stands for its logs in a list. */
    List<String> names() {
      List<String> names = new ArrayList<>();
      for (int i = 0; i < logs; i++) {
        names.add(hash + "/" + i);
      }
      return names;
    }
  }

  private final Random random;
  private final List<Block> chain = new ArrayList<>();
  private final Map<Hash, Block> all = new HashMap<>();
  private final Map<String, Wire.Peer> subscribers = new HashMap<>();
  private int subscriptions;

  /** Blocks of a range and logs of an answer that the server gives at most. */
  int mostBlocks = Integer.MAX_VALUE;

  int mostLogs = Integer.MAX_VALUE;

  /** The first block of which it has logs. */
  long pruned;

  /** One request of so many closes its connection; 0 for none. */
  int drops;

  /** Requests of logs. */
  int asked;

  FakeChain(Random random) {
    this.random = random;
    append(0);
  }

  private Hash hash() {
    byte[] bytes = new byte[Hash.SIZE];
    random.nextBytes(bytes);
    return Hash.of(bytes);
  }

  private void append(int logs) {
    Block last = chain.isEmpty() ? null : chain.getLast();
    Hash parent = last == null ? Hash.ZERO : last.hash;
    Block block = new Block(chain.size(), hash(), parent, logs);
    chain.add(block);
    all.put(block.hash, block);
  }

  /** Removes {@code blocks}, and appends some with so many logs each. */
  synchronized void reorganise(int blocks, int... logs) {
    for (int i = 0; i < blocks && chain.size() > 1; i++) {
      chain.removeLast();
    }
    for (int count : logs) {
      append(count);
      Block block = chain.getLast();
      subscribers.forEach(
          (id, peer) -> {
            try {
              peer.send(
                  "{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":{\"subscription\":"
                      + id
                      + ",\"result\":"
                      + header(block)
                      + "}}");
            } catch (IOException gone) {
              // It subscribes again.
            }
          });
    }
  }

  synchronized void grow(int... logs) {
    reorganise(0, logs);
  }

  synchronized long head() {
    return chain.getLast().number;
  }

  /** The logs of the chain from a block on. */
  synchronized List<String> logs(long from) {
    List<String> names = new ArrayList<>();
    chain.stream().filter(block -> block.number >= from).forEach(b -> names.addAll(b.names()));
    return names;
  }

  /** The hashes of the chain from a block on. */
  synchronized List<Hash> hashes(long from) {
    return chain.stream().filter(block -> block.number >= from).map(Block::hash).toList();
  }

  @Override
  public synchronized String answer(String method, List<Object> params, Wire.Peer peer)
      throws IOException {
    if (drops > 0 && random.nextInt(drops) == 0) {
      throw new IOException("dropped");
    }
    return switch (method) {
      case "eth_getBlockByNumber" -> {
        Block block = block((String) params.get(0));
        yield block == null ? "null" : header(block);
      }
      case "eth_getLogs" -> logs((Map<?, ?>) params.get(0));
      case "eth_subscribe" -> {
        String id = "\"0x" + Integer.toHexString(++subscriptions) + "\"";
        subscribers.values().remove(peer);
        subscribers.put(id, peer);
        yield id;
      }
      case "eth_unsubscribe" -> {
        subscribers.values().remove(peer);
        yield "true";
      }
      default -> throw new Wire.Refusal(-32601, "no method " + method);
    };
  }

  private Block block(String id) {
    if (id.startsWith("0x")) {
      long number = Long.decode(id);
      return number < chain.size() ? chain.get((int) number) : null;
    }
    return id.equals("earliest") ? chain.getFirst() : chain.getLast();
  }

  private String logs(Map<?, ?> filter) {
    asked++;
    List<Block> blocks = new ArrayList<>();
    Object hash = filter.get("blockHash");
    if (hash != null) {
      Block block = all.get(Hash.of((String) hash));
      if (block == null) {
        throw new Wire.Refusal(-32000, "unknown block");
      }
      blocks.add(block);
    } else {
      long from = Long.decode((String) filter.get("fromBlock"));
      long to = Long.decode((String) filter.get("toBlock"));
      if (to - from >= mostBlocks) {
        throw new Wire.Refusal(-32602, "a range of more than " + mostBlocks + " blocks");
      }
      if (from >= chain.size()) {
        throw new Wire.Refusal(-32000, "the range begins behind the head");
      }
      chain.stream().filter(b -> b.number >= from && b.number <= to).forEach(blocks::add);
    }
    if (blocks.stream().anyMatch(block -> block.number < pruned)) {
      throw new Wire.Refusal(4444, "pruned history unavailable");
    }
    if (blocks.stream().mapToInt(Block::logs).sum() > mostLogs) {
      throw new Wire.Refusal(-32005, "query returned more than " + mostLogs + " results");
    }
    StringBuilder logs = new StringBuilder("[");
    for (Block block : blocks) {
      for (int i = 0; i < block.logs; i++) {
        logs.append(logs.length() > 1 ? "," : "").append(log(block, i));
      }
    }
    return logs.append(']').toString();
  }

  private static String log(Block block, int index) {
    return "{\"address\":\""
        + Hex.encode(Address.ZERO.toBytes())
        + "\",\"topics\":[],\"data\":\"0x"
        + "\",\"blockHash\":\""
        + block.hash
        + "\",\"blockNumber\":\"0x"
        + Long.toHexString(block.number)
        + "\",\"transactionHash\":\""
        + block.hash
        + "\",\"transactionIndex\":\"0x0\",\"logIndex\":\"0x"
        + Integer.toHexString(index)
        + "\",\"removed\":false}";
  }

  static String header(Block block) {
    String zero = Hash.ZERO.toString();
    return "{\"number\":\"0x"
        + Long.toHexString(block.number)
        + "\",\"hash\":\""
        + block.hash
        + "\",\"parentHash\":\""
        + block.parent
        + "\",\"sha3Uncles\":\""
        + zero
        + "\",\"miner\":\""
        + Hex.encode(Address.ZERO.toBytes())
        + "\",\"stateRoot\":\""
        + zero
        + "\",\"transactionsRoot\":\""
        + zero
        + "\",\"receiptsRoot\":\""
        + zero
        + "\",\"logsBloom\":\"0x"
        + "00".repeat(256)
        + "\",\"difficulty\":\"0x0\",\"gasLimit\":\"0x1"
        + "\",\"gasUsed\":\"0x0\",\"timestamp\":\"0x1\",\"extraData\":\"0x\",\"mixHash\":\""
        + zero
        + "\",\"nonce\":\"0x0000000000000000\"}";
  }
}
