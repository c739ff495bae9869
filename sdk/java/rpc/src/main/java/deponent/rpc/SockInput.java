package deponent.rpc;

import deponent.eth.ProtocolException;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;

/** The bytes of a socket, through a buffer. */
final class SockInput extends InputStream {
  private final Sock sock;
  private final byte[] buffer = new byte[1 << 16];
  private int at;
  private int end;
  private long allowed = Long.MAX_VALUE;
  private Runnable beforeBlocking = () -> {};

  /** When the last bytes came. */
  volatile long lastRead = Times.now();

  SockInput(Sock sock) {
    this.sock = sock;
  }

  /** Sets what runs before each read of the socket. */
  void beforeBlocking(Runnable action) {
    beforeBlocking = action;
  }

  /** Allows {@code bytes} to be read from here on. */
  void allow(long bytes) {
    allowed = bytes;
  }

  boolean isEmpty() {
    return at == end;
  }

  /** Bytes that are here. */
  int buffered() {
    return end - at;
  }

  /** The byte at {@code place} of those that are here. */
  int ahead(int place) {
    return buffer[at + place] & 0xff;
  }

  /** Bytes that can be here at once. */
  int room() {
    return buffer.length;
  }

  /** Gets more bytes behind those that are here; false at the end. */
  boolean gather() throws IOException {
    System.arraycopy(buffer, at, buffer, 0, end - at);
    end -= at;
    at = 0;
    int read = receive(buffer, end, buffer.length - end);
    end += Math.max(read, 0);
    return read > 0;
  }

  /** The next byte, which has to be there. */
  int next() throws IOException {
    if (at == end && !fill()) {
      throw new EOFException("the peer closed the connection");
    }
    return buffer[at++] & 0xff;
  }

  private boolean fill() throws IOException {
    at = 0;
    end = 0;
    int read = receive(buffer, 0, buffer.length);
    end = Math.max(read, 0);
    return read > 0;
  }

  private int receive(byte[] into, int from, int length) throws IOException {
    beforeBlocking.run();
    int read = sock.read(into, from, length);
    lastRead = Times.now();
    return read;
  }

  /** Reads at least one byte, past the buffer where that is empty; -1 at the end. */
  int read(ByteBuffer into) throws IOException {
    if (at < end) {
      int read = Math.min(into.remaining(), end - at);
      into.put(buffer, at, read);
      at += read;
      return read;
    }
    beforeBlocking.run();
    int read = sock.read(into);
    lastRead = Times.now();
    return read;
  }

  @Override
  public int read() throws IOException {
    return at == end && !fill() ? -1 : next();
  }

  @Override
  public int read(byte[] into, int from, int length) throws IOException {
    int read;
    if (at == end && length >= buffer.length / 2) {
      read = receive(into, from, length);
    } else if (at == end && !fill()) {
      read = -1;
    } else {
      read = Math.min(length, end - at);
      System.arraycopy(buffer, at, into, from, read);
      at += read;
    }
    if (read > 0) {
      allowed -= read;
      if (allowed < 0) {
        throw new Fatal(1009, new ProtocolException("an answer is longer than answerBytes"));
      }
    }
    return read;
  }
}
