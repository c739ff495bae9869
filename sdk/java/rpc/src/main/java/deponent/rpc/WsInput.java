package deponent.rpc;

import deponent.eth.ProtocolException;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The messages of a WebSocket (RFC 6455), one after the other, out of frames and fragments. Pings
 * are answered on the way.
 */
final class WsInput extends InputStream {
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private final SockInput in;
  private final Outbox out;
  private final long longest;

  /** Bytes of the frame that are to come. */
  private long left;

  private boolean last = true;
  private boolean inMessage;
  private long messageBytes;
  private final Utf8 text = new Utf8();

  WsInput(SockInput in, Outbox out, long longest) {
    this.in = in;
    this.out = out;
    this.longest = longest;
  }

  /** Waits for a message, which is read then; the one before has to be read to its end. */
  void nextMessage() throws IOException {
    messageBytes = 0;
    header();
  }

  /** What is here of the next message. */
  enum Ahead {
    /** All of it: reading it does not block. */
    WHOLE,
    /** A part of a message that can be here as a whole. */
    PART,
    /** Something that is read as it comes: a long message, a fragment, control, or a fault. */
    OTHER
  }

  /** Looks at what is here behind the message that was read. */
  Ahead ahead() {
    int here = in.buffered();
    if (here > 0 && in.ahead(0) != 0x81) {
      return Ahead.OTHER;
    }
    if (here < 4) {
      // The shortest answer is longer.
      return Ahead.PART;
    }
    int second = in.ahead(1);
    if (second > 126) {
      return Ahead.OTHER;
    }
    int whole = second < 126 ? 2 + second : 4 + (in.ahead(2) << 8 | in.ahead(3));
    if (whole > in.room()) {
      return Ahead.OTHER;
    }
    return whole <= here ? Ahead.WHOLE : Ahead.PART;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public int read(byte[] into, int from, int length) throws IOException {
    while (left == 0) {
      if (!inMessage) {
        return -1;
      }
      if (last) {
        inMessage = false;
        if (!text.isWhole()) {
          throw wrong(1007, "a text that is no UTF-8");
        }
        return -1;
      }
      header();
    }
    int read = in.read(into, from, (int) Math.min(length, left));
    if (read < 0) {
      throw new EOFException("the peer closed the connection within a frame");
    }
    left -= read;
    if (!text.check(into, from, read)) {
      throw wrong(1007, "a text that is no UTF-8");
    }
    return read;
  }

  /** Reads heads of frames up to one of data, and answers those of control. */
  private void header() throws IOException {
    while (true) {
      int first = in.next();
      int second = in.next();
      int opcode = first & 15;
      if ((first & 0x70) != 0) {
        throw wrong(1002, "a reserved bit is set");
      }
      if ((second & 0x80) != 0) {
        throw wrong(1002, "a server's frame is masked");
      }
      if (opcode >= 8) {
        control(opcode, first, second & 0x7f);
        continue;
      }
      boolean follows = opcode == 0;
      if (opcode > 2 || follows != inMessage) {
        throw wrong(1002, "a frame of opcode " + opcode + (inMessage ? " in a message" : ""));
      }
      left = length(second & 0x7f);
      last = (first & 0x80) != 0;
      inMessage = true;
      messageBytes += left;
      if (messageBytes > longest || messageBytes < 0) {
        throw wrong(1009, "a message is longer than answerBytes, " + longest);
      }
      return;
    }
  }

  private long length(int given) throws IOException {
    if (given < 126) {
      return given;
    }
    long length = 0;
    for (int i = given == 126 ? 2 : 8; i > 0; i--) {
      length = length << 8 | in.next();
    }
    if (length < 0) {
      throw wrong(1002, "a frame's length is beyond 2^63-1");
    }
    return length;
  }

  private void control(int opcode, int first, int length) throws IOException {
    if (length > 125 || (first & 0x80) == 0 || opcode > Outbox.PONG) {
      throw wrong(1002, "a frame of control of opcode " + opcode + " and length " + length);
    }
    byte[] payload = new byte[length];
    for (int i = 0; i < length; i++) {
      payload[i] = (byte) in.next();
    }
    if (opcode == Outbox.PING) {
      out.control(Outbox.PONG, payload);
    } else if (opcode == Outbox.CLOSE) {
      closed(payload);
    }
  }

  private static void closed(byte[] payload) throws IOException {
    if (payload.length < 2) {
      throw new EOFException("the peer closed the connection");
    }
    int code = (payload[0] & 0xff) << 8 | payload[1] & 0xff;
    String reason =
        new String(payload, 2, payload.length - 2, java.nio.charset.StandardCharsets.UTF_8);
    String why = reason.isEmpty() ? "" : " " + Head.quoted(reason);
    throw new EOFException("the peer closed the connection: " + code + why);
  }

  private static Fatal wrong(int code, String what) {
    return new Fatal(code, new ProtocolException("WebSocket: " + what));
  }

  /** Checks that bytes are UTF-8, piece by piece. */
  private static final class Utf8 {
    /** Bytes of a character that are to come, and the bounds of the next of them. */
    private int more;

    private int least = 0x80;
    private int most = 0xbf;

    boolean isWhole() {
      return more == 0;
    }

    boolean check(byte[] bytes, int from, int length) {
      int end = from + length;
      for (int i = from; i < end; i++) {
        if (more == 0) {
          while (i + 8 <= end && ((long) LONGS.get(bytes, i) & 0x8080808080808080L) == 0) {
            i += 8;
          }
          if (i == end) {
            return true;
          }
        }
        int one = bytes[i] & 0xff;
        if (more == 0 ? one >= 0x80 && !begin(one) : !follow(one)) {
          return false;
        }
      }
      return true;
    }

    private boolean begin(int one) {
      if (one < 0xc2 || one > 0xf4) {
        return false;
      }
      more = one < 0xe0 ? 1 : one < 0xf0 ? 2 : 3;
      // No longer form than needed, no surrogate, none beyond U+10FFFF.
      least = one == 0xe0 ? 0xa0 : one == 0xf0 ? 0x90 : 0x80;
      most = one == 0xed ? 0x9f : one == 0xf4 ? 0x8f : 0xbf;
      return true;
    }

    private boolean follow(int one) {
      if (one < least || one > most) {
        return false;
      }
      least = 0x80;
      most = 0xbf;
      more--;
      return true;
    }
  }
}
