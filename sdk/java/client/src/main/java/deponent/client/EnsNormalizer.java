package deponent.client;

import deponent.client.EnsTables.Emoji;
import deponent.client.EnsTables.Group;
import deponent.client.UnicodeForms.Buffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Normalises the labels of names (ENSIP-15). */
final class EnsNormalizer {
  /** The character that asks for the coloured form of an emoji. */
  static final int EMOJI_STYLE = 0xfe0f;

  /** Marks on one character at most. */
  private static final int MOST_MARKS = 4;

  private static final EnsTables TABLES = EnsTables.get();

  private EnsNormalizer() {}

  /** A part of a label: an emoji, or text in the form NFC. */
  private record Token(int[] codePoints, boolean emoji) {}

  /**
   * The label in its one form.
   *
   * @throws IllegalArgumentException if it has none
   */
  static String label(String label) {
    List<Token> tokens = tokens(label);
    if (tokens.isEmpty()) {
      throw new IllegalArgumentException("a label is empty, or has ignored characters alone");
    }
    Buffer all = new Buffer(label.length());
    Buffer text = new Buffer(label.length());
    for (Token token : tokens) {
      all.addAll(token.codePoints);
      if (!token.emoji) {
        text.addAll(token.codePoints);
      }
    }
    int[] whole = all.toArray();
    if (!text.isEmpty()) {
      check(tokens, whole, text.toArray());
    }
    return new String(whole, 0, whole.length);
  }

  private static List<Token> tokens(String label) {
    int[] input = label.codePoints().toArray();
    List<Token> tokens = new ArrayList<>();
    Buffer text = new Buffer(input.length);
    int at = 0;
    while (at < input.length) {
      Match match = longest(TABLES.emoji, input, at);
      if (match != null) {
        text = flush(text, tokens);
        tokens.add(new Token(match.sequence, true));
        at = match.end;
        continue;
      }
      int codePoint = input[at++];
      if (TABLES.valid.get(codePoint)) {
        text.add(codePoint);
        continue;
      }
      int[] mapped = TABLES.mapped.get(codePoint);
      if (mapped != null) {
        text.addAll(mapped);
      } else if (!TABLES.ignored.contains(codePoint)) {
        throw new IllegalArgumentException("names have no " + shown(codePoint));
      }
    }
    flush(text, tokens);
    return tokens;
  }

  private static Buffer flush(Buffer text, List<Token> tokens) {
    if (text.isEmpty()) {
      return text;
    }
    tokens.add(new Token(TABLES.forms.composed(text.toArray()), false));
    return new Buffer(16);
  }

  private record Match(int[] sequence, int end) {}

  /** The longest emoji sequence from {@code at} on, in which U+FE0F may be left out. */
  private static @Nullable Match longest(Emoji node, int[] input, int at) {
    int[] whole = node.whole;
    Match best = whole == null ? null : new Match(whole, at);
    Emoji styled = node.next(EMOJI_STYLE);
    if (styled != null) {
      best = longer(best, longest(styled, input, at));
    }
    Emoji next = at < input.length ? node.next(input[at]) : null;
    return next == null ? best : longer(best, longest(next, input, at + 1));
  }

  private static @Nullable Match longer(@Nullable Match one, @Nullable Match other) {
    return one == null || other != null && other.end > one.end ? other : one;
  }

  /** Checks a label with text. */
  private static void check(List<Token> tokens, int[] whole, int[] text) {
    boolean plain = tokens.size() == 1 && Arrays.stream(whole).allMatch(one -> one < 0x80);
    checkUnderscores(whole);
    if (plain) {
      if (whole.length >= 4 && whole[2] == '-' && whole[3] == '-') {
        throw new IllegalArgumentException("the third and fourth characters are hyphens");
      }
      return;
    }
    checkFenced(whole);
    for (Token token : tokens) {
      if (!token.emoji && TABLES.marks.contains(token.codePoints[0])) {
        String mark = shown(token.codePoints[0]);
        throw new IllegalArgumentException(mark + " combines with no character before it");
      }
    }
    int[] unique = Arrays.stream(text).distinct().toArray();
    Group group = group(unique);
    if (group.marksChecked()) {
      checkMarks(TABLES.forms.decomposed(text));
    }
    checkConfused(unique);
  }

  private static void checkUnderscores(int[] whole) {
    boolean begun = false;
    for (int one : whole) {
      if (one == '_' && begun) {
        throw new IllegalArgumentException("an underscore is allowed at the beginning alone");
      }
      begun |= one != '_';
    }
  }

  private static void checkFenced(int[] whole) {
    boolean fenced = true;
    for (int i = 0; i < whole.length; i++) {
      boolean now = TABLES.fenced.contains(whole[i]);
      if (now && (fenced || i == whole.length - 1)) {
        throw new IllegalArgumentException(
            shown(whole[i]) + " is allowed between other characters alone");
      }
      fenced = now;
    }
  }

  /** The first group with all characters. */
  private static Group group(int[] unique) {
    List<Group> left = TABLES.groups;
    for (int codePoint : unique) {
      List<Group> with = left.stream().filter(group -> group.has(codePoint)).toList();
      if (with.isEmpty()) {
        throw new IllegalArgumentException(
            left.size() == TABLES.groups.size()
                ? "no script has " + shown(codePoint)
                : shown(codePoint) + " does not go with characters of " + left.get(0).name());
      }
      left = with;
    }
    return left.get(0);
  }

  private static void checkMarks(int[] decomposed) {
    for (int i = 0; i < decomposed.length; i++) {
      Set<Integer> marks = new LinkedHashSet<>();
      while (i < decomposed.length && TABLES.nonSpacing.contains(decomposed[i])) {
        if (!marks.add(decomposed[i])) {
          throw new IllegalArgumentException(
              "a character has " + shown(decomposed[i]) + " more than once");
        }
        if (marks.size() > MOST_MARKS) {
          throw new IllegalArgumentException("a character has more than four marks");
        }
        i++;
      }
    }
  }

  /** Whether the same can be written with characters that look alike, of another script. */
  private static void checkConfused(int[] unique) {
    List<Group> left = null;
    Buffer rest = new Buffer(unique.length);
    for (int codePoint : unique) {
      Set<Group> others = TABLES.confused.get(codePoint);
      if (others != null) {
        List<Group> before = left == null ? TABLES.groups : left;
        left = before.stream().filter(others::contains).toList();
        if (left.isEmpty()) {
          return;
        }
      } else if (!TABLES.shared.get(codePoint)) {
        // Its one script is the name's.
        return;
      } else {
        rest.add(codePoint);
      }
    }
    if (left == null) {
      return;
    }
    int[] plain = rest.toArray();
    for (Group group : left) {
      if (Arrays.stream(plain).allMatch(group::has)) {
        throw new IllegalArgumentException("it looks like a name in the script of " + group.name());
      }
    }
  }

  private static String shown(int codePoint) {
    String name = Character.getName(codePoint);
    return String.format("U+%04X", codePoint) + (name == null ? "" : " (" + name + ")");
  }
}
