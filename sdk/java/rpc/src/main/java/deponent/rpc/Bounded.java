package deponent.rpc;

import deponent.eth.ProtocolException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/** What is unpacked, up to a number of bytes. */
final class Bounded extends FilterInputStream {
  private final long longest;
  private long bytes;

  Bounded(InputStream in, long longest) {
    super(in);
    this.longest = longest;
  }

  @Override
  public int read(byte[] into, int from, int length) throws IOException {
    int read = super.read(into, from, length);
    bytes += Math.max(read, 0);
    if (bytes > longest) {
      throw tooLong(longest);
    }
    return read;
  }

  static Fatal tooLong(long longest) {
    String what = "an answer is longer than answerBytes, " + longest;
    return new Fatal(1009, new ProtocolException(what));
  }
}
