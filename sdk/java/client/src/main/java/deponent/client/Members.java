package deponent.client;

import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * The members of an object that are read, in any order; others are passed over, and {@code null}
 * counts as absent.
 */
final class Members {
  private final String[] names;
  private final JsonReader.Names found;

  private Members(String[] names) {
    this.names = names;
    found = JsonReader.Names.of(names);
  }

  /** Of these names. */
  static Members of(String... names) {
    return new Members(names);
  }

  /** These members and others. */
  Members with(String... others) {
    String[] all = Arrays.copyOf(names, names.length + others.length);
    System.arraycopy(others, 0, all, names.length, others.length);
    return new Members(all);
  }

  /** Takes the value of a member. */
  @FunctionalInterface
  interface Taker {
    void take(String name, JsonReader json);
  }

  /** Reads an object, and has each member taken that is named and not null. */
  void read(JsonReader json, Taker taker) {
    json.beginObject();
    while (json.hasNext()) {
      int member = json.nextName(found);
      if (member < 0) {
        json.skipValue();
      } else if (!json.nextNull()) {
        String name = names[member];
        try {
          taker.take(name, json);
        } catch (MalformedException | IllegalArgumentException fault) {
          throw in(name, fault);
        }
      }
    }
    json.endObject();
  }

  private static MalformedException in(String place, RuntimeException fault) {
    return new MalformedException(place + ": " + fault.getMessage(), fault);
  }

  /** Reads an element of an array, or a value of a map. */
  @FunctionalInterface
  interface Element<T> {
    T read(JsonReader json);
  }

  /** Reads an array. */
  static <T> List<T> list(JsonReader json, Element<T> element) {
    json.beginArray();
    if (!json.hasNext()) {
      json.endArray();
      return List.of();
    }
    List<T> all = new ArrayList<>();
    do {
      try {
        all.add(element.read(json));
      } catch (MalformedException | IllegalArgumentException fault) {
        throw in("element " + all.size(), fault);
      }
    } while (json.hasNext());
    json.endArray();
    return Collections.unmodifiableList(all);
  }

  /** Reads a value that may be null. */
  static <T> Optional<T> optional(JsonReader json, Element<T> value) {
    return json.nextNull() ? Optional.empty() : Optional.of(value.read(json));
  }

  /** A member that has to be there. */
  static <T> T the(String name, @Nullable T value) {
    if (value == null) {
      throw missing(name);
    }
    return value;
  }

  /** A number that has to be there: -1 stands for none. */
  static long the(String name, long value) {
    if (value < 0) {
      throw missing(name);
    }
    return value;
  }

  private static MalformedException missing(String name) {
    return new MalformedException("'" + name + "' is missing");
  }

  /** A number, of which -1 stands for none. */
  static OptionalLong optional(long value) {
    return value < 0 ? OptionalLong.empty() : OptionalLong.of(value);
  }

  /** Reads a quantity from 0 to 255. */
  static int octet(JsonReader json) {
    long number = json.nextQuantity();
    if (number > 255) {
      throw new MalformedException("a number beyond 255: " + number);
    }
    return (int) number;
  }
}
