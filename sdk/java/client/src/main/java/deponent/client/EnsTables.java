package deponent.client;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.zip.Inflater;
import java.util.zip.InflaterInputStream;
import org.jspecify.annotations.Nullable;

/** The data of ENSIP-15 (spec.json) and of Unicode's forms NFC and NFD, out of a resource. */
final class EnsTables {
  /** Characters that a label may have together; a {@code restricted} one is of a rare script. */
  record Group(
      String name,
      boolean restricted,
      boolean marksChecked,
      CodePoints primary,
      CodePoints secondary) {
    boolean has(int codePoint) {
      return primary.contains(codePoint) || secondary.contains(codePoint);
    }
  }

  /** A node of the tree of emoji sequences. */
  static final class Emoji {
    private final Map<Integer, Emoji> next = new HashMap<>();

    /** The sequence that ends here, without U+FE0F, or null. */
    int @Nullable [] whole;

    @Nullable Emoji next(int codePoint) {
      return next.get(codePoint);
    }

    Set<Integer> keys() {
      return next.keySet();
    }
  }

  private static final class Holder {
    static final EnsTables TABLES = new EnsTables();
  }

  final Map<Integer, int[]> mapped;
  final CodePoints ignored;
  final CodePoints fenced;
  final CodePoints marks;
  final CodePoints nonSpacing;
  final List<Group> groups;

  /** Characters of a group, and their parts. */
  final BitSet valid = new BitSet();

  /** Characters of more than one group. */
  final BitSet shared = new BitSet();

  /** Characters that look like others, with the groups that have the others. */
  final Map<Integer, Set<Group>> confused = new HashMap<>();

  final Emoji emoji = new Emoji();
  final UnicodeForms forms;

  private final InputStream in;

  /** The tables, which are read once. */
  static EnsTables get() {
    return Holder.TABLES;
  }

  private EnsTables() {
    InputStream resource = EnsTables.class.getResourceAsStream("ens.bin");
    if (resource == null) {
      throw new IllegalStateException("the jar of deponent-client has no ens.bin");
    }
    Inflater inflater = new Inflater(true);
    try (InputStream opened =
        new BufferedInputStream(new InflaterInputStream(resource, inflater))) {
      in = opened;
      mapped = map();
      ignored = set();
      fenced = set();
      marks = set();
      nonSpacing = set();
      groups = groups();
      List<Alike> alike = new ArrayList<>();
      for (int left = number(); left > 0; left--) {
        alike.add(Alike.of(set(), set()));
      }
      emoji();
      List<CodePoints> classes = new ArrayList<>();
      for (int left = number(); left > 0; left--) {
        classes.add(set());
      }
      CodePoints excluded = set();
      forms = new UnicodeForms(classes, excluded, map());
      gather(alike);
    } catch (IOException unread) {
      throw new UncheckedIOException(unread);
    } finally {
      inflater.end();
    }
  }

  /** A number of seven bits a byte, the lowest first. */
  private int number() throws IOException {
    int number = 0;
    for (int shift = 0; ; shift += 7) {
      int one = in.read();
      if (one < 0) {
        throw new EOFException("ens.bin ends too early");
      }
      number |= (one & 0x7f) << shift;
      if (one < 0x80) {
        return number;
      }
    }
  }

  /** The lengths of gaps and ranges in turn. */
  private CodePoints set() throws IOException {
    int[] bounds = new int[2 * number()];
    int at = 0;
    for (int i = 0; i < bounds.length; i++) {
      at += number();
      bounds[i] = at;
    }
    return new CodePoints(bounds);
  }

  /** Keys by their distance, values by their distance from the key, whose lowest bit is a sign. */
  private Map<Integer, int[]> map() throws IOException {
    Map<Integer, int[]> map = new HashMap<>();
    int key = 0;
    for (int left = number(); left > 0; left--) {
      key += number();
      int[] values = new int[number()];
      for (int i = 0; i < values.length; i++) {
        int folded = number();
        values[i] = key + (folded >>> 1 ^ -(folded & 1));
      }
      map.put(key, values);
    }
    return map;
  }

  private List<Group> groups() throws IOException {
    List<Group> all = new ArrayList<>();
    for (int left = number(); left > 0; left--) {
      String name = new String(in.readNBytes(number()), StandardCharsets.US_ASCII);
      int flags = number();
      all.add(new Group(name, (flags & 1) != 0, (flags & 2) == 0, set(), set()));
    }
    return List.copyOf(all);
  }

  /** Each sequence behind what it has in common with the one before. */
  private void emoji() throws IOException {
    int[] sequence = {};
    for (int left = number(); left > 0; left--) {
      int common = number();
      sequence = Arrays.copyOf(sequence, common + number());
      for (int i = common; i < sequence.length; i++) {
        sequence[i] = number();
      }
      Emoji at = emoji;
      for (int codePoint : sequence) {
        at = at.next.computeIfAbsent(codePoint, any -> new Emoji());
      }
      at.whole = Arrays.stream(sequence).filter(one -> one != EnsNormalizer.EMOJI_STYLE).toArray();
    }
  }

  /** Characters that look alike, in ascending order, and those of them that confuse. */
  private record Alike(int[] members, CodePoints confusing) {
    static Alike of(CodePoints valid, CodePoints confusing) {
      IntStream all = IntStream.concat(valid.stream(), confusing.stream());
      return new Alike(all.sorted().toArray(), confusing);
    }
  }

  /** Gathers what the groups have together. */
  private void gather(List<Alike> alike) {
    Map<Integer, List<Group>> groupsOf = new HashMap<>();
    for (Alike set : alike) {
      for (int member : set.members) {
        groupsOf.put(member, new ArrayList<>());
      }
    }
    for (Group group : groups) {
      BitSet its = new BitSet();
      group.primary.addTo(its);
      group.secondary.addTo(its);
      groupsOf.forEach(
          (member, of) -> {
            if (its.get(member)) {
              of.add(group);
            }
          });
      BitSet both = (BitSet) its.clone();
      both.and(valid);
      shared.or(both);
      valid.or(its);
    }
    int[] whole = valid.stream().filter(forms::hasParts).toArray();
    for (int part : forms.decomposed(whole)) {
      valid.set(part);
    }
    alike.forEach(set -> confuse(set, groupsOf));
  }

  /** Characters of a set that look alike and are connected by groups, with these groups. */
  private record Extent(Set<Group> groups, List<Integer> members) {}

  /**
   * Notes characters that look alike. In ascending order, each joins the first extent that shares a
   * group with it, as the reference does it.
   */
  private void confuse(Alike set, Map<Integer, List<Group>> groupsOf) {
    List<Extent> extents = new ArrayList<>();
    Set<Group> all = new HashSet<>();
    for (int member : set.members) {
      List<Group> its = Objects.requireNonNull(groupsOf.get(member));
      Extent extent = null;
      for (Extent one : extents) {
        if (extent == null && its.stream().anyMatch(one.groups::contains)) {
          extent = one;
        }
      }
      if (extent == null) {
        extent = new Extent(new HashSet<>(), new ArrayList<>());
        extents.add(extent);
      }
      extent.members.add(member);
      extent.groups.addAll(its);
      all.addAll(its);
    }
    for (Extent extent : extents) {
      Set<Group> rest = new HashSet<>(all);
      rest.removeAll(extent.groups);
      for (int member : extent.members) {
        if (set.confusing.contains(member)) {
          confused.put(member, rest);
        }
      }
    }
  }
}
