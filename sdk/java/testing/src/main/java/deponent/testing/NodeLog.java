package deponent.testing;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/** The last lines that a node printed. */
final class NodeLog {
  /** Lines that are kept. */
  static final int LINES = 500;

  /** Characters of a line that are kept. */
  static final int LENGTH = 1_000;

  private final Deque<String> lines = new ArrayDeque<>();

  synchronized void add(String line) {
    if (lines.size() == LINES) {
      lines.removeFirst();
    }
    lines.add(line.length() > LENGTH ? line.substring(0, LENGTH) + ".." : line);
  }

  synchronized void clear() {
    lines.clear();
  }

  synchronized List<String> lines() {
    return List.copyOf(lines);
  }
}
