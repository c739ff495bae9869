package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Hex;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Function;
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

  /** Reads a number that is one of JSON, or a quantity. */
  static long number(JsonReader json) {
    if (json.peek() != JsonReader.Kind.NUMBER) {
      return json.nextQuantity();
    }
    long number = json.nextLong();
    if (number < 0) {
      throw new MalformedException("a number below 0: " + number);
    }
    return number;
  }

  /** Reads 32 bytes that may lack their leading zeros. */
  static Hash word(JsonReader json) {
    return word(json.nextBigQuantity());
  }

  /** A number of at most 256 bits as 32 bytes. */
  static Hash word(BigInteger number) {
    byte[] bytes = number.toByteArray();
    byte[] word = new byte[Hash.SIZE];
    int from = Math.max(0, bytes.length - word.length);
    int length = bytes.length - from;
    System.arraycopy(bytes, from, word, word.length - length, length);
    return Hash.of(word);
  }

  /** Reads hex that may lack its 0x. */
  static Bytes bareBytes(JsonReader json) {
    return Bytes.of(json.nextString());
  }

  /** Reads an object whose names are keys, in their order. */
  static <K, V> Map<K, V> map(JsonReader json, Function<String, K> key, Element<V> value) {
    Map<K, V> all = new LinkedHashMap<>();
    json.beginObject();
    while (json.hasNext()) {
      String name = json.nextName();
      try {
        all.put(key.apply(name), value.read(json));
      } catch (MalformedException | IllegalArgumentException fault) {
        throw in("member " + quoted(name), fault);
      }
    }
    json.endObject();
    return Collections.unmodifiableMap(all);
  }

  /** An address that is a key, of which servers write the checksum or not. */
  static Address address(String key) {
    return Address.of(key.toLowerCase(Locale.ROOT));
  }

  /** An address as a key, in lower case. */
  static String key(Address address) {
    return Hex.encode(address.toBytes());
  }

  /** Copies a map, and keeps its order. */
  static <K, V> Map<K, V> copy(Map<K, V> map) {
    return Collections.unmodifiableMap(new LinkedHashMap<>(map));
  }

  /** A text of another in a message. */
  static String quoted(String text) {
    StringBuilder shown = new StringBuilder("'");
    text.chars().limit(80).forEach(one -> shown.append(one < ' ' ? '?' : (char) one));
    return shown.append(text.length() > 80 ? "..'" : "'").toString();
  }
}
