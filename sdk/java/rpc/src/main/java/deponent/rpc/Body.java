package deponent.rpc;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.regex.Pattern;

/** The body of an HTTP/1.1 response: of a known length, in chunks, or up to the end. */
final class Body extends InputStream {
  private static final Pattern LENGTH = Pattern.compile("[0-9]{1,18}");
  private static final Pattern CHUNK = Pattern.compile("[0-9a-fA-F]{1,15}");

  private final SockInput in;
  private long longest;

  /** Bytes that are to come, of the body or of its chunk; -1 where the end is the peer's. */
  private long left;

  private boolean chunked;
  private boolean first;
  private boolean ended = true;
  private long bytes;

  Body(SockInput in, long longest) {
    this.in = in;
    this.longest = longest;
  }

  /** Allows bodies of so many bytes from here on. */
  void longest(long bytes) {
    longest = bytes;
  }

  /** Begins the body behind {@code head}. */
  void begin(Head head) throws IOException {
    bytes = 0;
    first = true;
    ended = false;
    chunked = head.has("transfer-encoding", "chunked");
    String length = head.header("content-length");
    left = chunked ? 0 : -1;
    if (!chunked && length != null) {
      if (!LENGTH.matcher(length).matches()) {
        throw Head.wrong("a content-length of " + Head.quoted(length));
      }
      left = Long.parseLong(length);
      ended = left == 0;
    }
    if (head.status() == 204 || head.status() == 304) {
      ended = true;
    } else if (left > longest) {
      throw Bounded.tooLong(longest);
    }
  }

  /** Bytes that are to come, or -1 where only the end will tell. */
  long left() {
    return ended ? 0 : chunked ? -1 : left;
  }

  /** Whether it was read to its end, and the connection can be used again. */
  boolean isWhole() {
    return ended && left >= 0;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public int read(byte[] into, int from, int length) throws IOException {
    if (!ended && chunked && left == 0) {
      chunk();
    }
    if (ended) {
      return -1;
    }
    return counted(in.read(into, from, left < 0 ? length : (int) Math.min(length, left)));
  }

  /** Reads at least one byte, without a copy where the memory is outside of the heap. */
  int read(ByteBuffer into) throws IOException {
    if (!ended && chunked && left == 0) {
      chunk();
    }
    if (ended) {
      return -1;
    }
    int limit = into.limit();
    if (left >= 0 && left < into.remaining()) {
      into.limit(into.position() + (int) left);
    }
    try {
      return counted(in.read(into));
    } finally {
      into.limit(limit);
    }
  }

  private int counted(int read) throws IOException {
    if (read < 0) {
      if (left >= 0) {
        throw new EOFException("the peer closed the connection within a body");
      }
      ended = true;
      return -1;
    }
    bytes += read;
    if (bytes > longest) {
      throw Bounded.tooLong(longest);
    }
    if (left > 0) {
      left -= read;
      ended = left == 0 && !chunked;
    }
    return read;
  }

  private void chunk() throws IOException {
    if (!first && !line().isEmpty()) {
      throw Head.wrong("a chunk without its end");
    }
    first = false;
    String line = line();
    int semicolon = line.indexOf(';');
    String size = (semicolon < 0 ? line : line.substring(0, semicolon)).strip();
    if (!CHUNK.matcher(size).matches()) {
      throw Head.wrong("a chunk's size of " + Head.quoted(size));
    }
    left = Long.parseLong(size, 16);
    if (left == 0) {
      for (int i = 0; !line().isEmpty(); i++) {
        if (i == 100) {
          throw Head.wrong("more than 100 trailers");
        }
      }
      ended = true;
    }
  }

  private String line() throws IOException {
    StringBuilder line = new StringBuilder();
    for (int one = in.next(); one != '\n'; one = in.next()) {
      if (line.length() == 4096) {
        throw Head.wrong("a line of more than 4096 bytes");
      }
      line.append((char) one);
    }
    return line.toString().stripTrailing();
  }
}
