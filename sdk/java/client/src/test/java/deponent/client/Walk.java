package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Keccak256;
import deponent.eth.Signature;
import deponent.sets.Sets;
import java.lang.reflect.RecordComponent;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Consumer;

/** Compares what a reader made of JSON with the JSON, member by member, by reflection. */
final class Walk {
  /** Components that have another name than their member. */
  private static final Map<String, String> RENAMED =
      Map.of("gas", "gasLimit", "authorizationList", "authorizations");

  /** Members that records do not have: what they say is in others. */
  private static final Set<String> KNOWN_ELSEWHERE = Set.of("v", "FlatTrace.type");

  /** Takes members that no record has. */
  private final Consumer<String> unknown;

  private Walk(Consumer<String> unknown) {
    this.unknown = unknown;
  }

  /** Checks that each member of {@code json} came out as it is in {@code value}. */
  static void equal(String place, Object json, Object value) {
    equal(place, json, value, name -> fail(name + " is unknown"));
  }

  /** The same, where members that no record has are told of. */
  static void equal(String place, Object json, Object value, Consumer<String> unknown) {
    new Walk(unknown).compare(place, json, value);
  }

  private void compare(String place, Object json, Object value) {
    switch (value) {
      case Optional<?> optional when optional.isEmpty() ->
          assertTrue(json == null || json.equals(false), place + ": " + json + " was not read");
      case Optional<?> optional -> compare(place, json, optional.get());
      case OptionalLong optional when optional.isEmpty() ->
          assertTrue(json == null, place + ": " + json + " was not read");
      case OptionalLong optional -> compare(place, json, optional.getAsLong());
      case List<?> list -> lists(place, json, list);
      case Map<?, ?> map -> maps(place, json, map);
      case AccountDiff.Change<?> change -> change(place, json, change);
      case Record record -> members(place, json, record);
      default -> scalars(place, json, value);
    }
  }

  private void change(String place, Object json, AccountDiff.Change<?> change) {
    if (json.equals("=")) {
      assertTrue(change.isNone(), place);
      return;
    }
    Map<?, ?> members = (Map<?, ?>) json;
    Map<?, ?> altered = members.get("*") instanceof Map<?, ?> inner ? inner : Map.of();
    equal(
        place, members.get("-") == null ? altered.get("from") : members.get("-"), change.before());
    compare(place, members.get("+") == null ? altered.get("to") : members.get("+"), change.after());
  }

  private void lists(String place, Object json, List<?> list) {
    if (place.endsWith("debug_executionWitness.headers")
        && ((List<?>) json).stream().allMatch(Map.class::isInstance)) {
      // geth's are objects with their hashes, the newest first.
      List<?> hashes = list.reversed().stream().map(one -> Keccak256.hash((Bytes) one)).toList();
      compare(
          place,
          ((List<?>) json).stream().map(one -> ((Map<?, ?>) one).get("hash")).toList(),
          hashes);
      return;
    }
    if (json == null) {
      assertTrue(list.isEmpty(), place);
      return;
    }
    List<?> elements = (List<?>) json;
    assertEquals(elements.size(), list.size(), place);
    for (int i = 0; i < list.size(); i++) {
      compare(place + "[" + i + "]", elements.get(i), list.get(i));
    }
  }

  private void maps(String place, Object json, Map<?, ?> map) {
    Map<String, Object> given = new LinkedHashMap<>();
    ((Map<?, ?>) json).forEach((key, value) -> given.put(lower(key), value));
    assertEquals(given.size(), map.size(), place);
    map.forEach(
        (key, value) -> {
          assertTrue(given.containsKey(lower(key)), place + ": " + key);
          compare(place + "." + key, given.get(lower(key)), value);
        });
  }

  private static String lower(Object text) {
    return text.toString().toLowerCase(Locale.ROOT);
  }

  private void members(String place, Object json, Record record) {
    Map<String, Object> read = flat(record);
    if (!(json instanceof Map<?, ?> members)) {
      throw new AssertionError(place + ": " + json + " became " + record);
    }
    members.forEach(
        (name, member) -> {
          String component = (String) name;
          if (!read.containsKey(component)) {
            component = RENAMED.getOrDefault(name, component);
          }
          if (read.containsKey(component)) {
            compare(place + "." + name, member, read.get(component));
          } else if (member != null && !KNOWN_ELSEWHERE.contains(name)) {
            String simple = record.getClass().getSimpleName();
            if (!KNOWN_ELSEWHERE.contains(simple + "." + name)) {
              unknown.accept(simple + "." + name);
            }
          }
        });
  }

  /** The components by name, with those of parts that JSON does not have apart. */
  private static Map<String, Object> flat(Record record) {
    Map<String, Object> read = new LinkedHashMap<>();
    for (RecordComponent component : record.getClass().getRecordComponents()) {
      Object value = value(record, component);
      Object inner = value instanceof Optional<?> optional ? optional.orElse(null) : value;
      if (inner instanceof BlockHeader
          || inner instanceof Block
          || inner instanceof Inclusion
          || inner instanceof Signature
          || inner instanceof Authorization) {
        read.putAll(flat((Record) inner));
      } else {
        read.put(component.getName(), value);
      }
    }
    if (record instanceof Block block) {
      read.put(
          "transactions", block.transactions().isEmpty() ? block.hashes() : block.transactions());
    }
    return read;
  }

  private static Object value(Record record, RecordComponent component) {
    try {
      component.getAccessor().setAccessible(true);
      return component.getAccessor().invoke(record);
    } catch (ReflectiveOperationException error) {
      throw new AssertionError(error);
    }
  }

  private void scalars(String place, Object json, Object value) {
    if (json == null) {
      fail(place + ": null became " + value);
    } else if (value instanceof String text && !(json instanceof String)) {
      assertEquals(json, Sets.tree(new JsonReader(text)), place);
    } else if (value instanceof Double number) {
      assertEquals(((BigDecimal) json).doubleValue(), number, place);
    } else if (json instanceof BigDecimal number) {
      assertEquals(number.toBigIntegerExact(), new BigInteger(value.toString()), place);
    } else if (json instanceof Boolean) {
      assertEquals(json, value, place);
    } else if (value instanceof Number || value instanceof deponent.eth.Wei) {
      BigInteger expected = new BigInteger(((String) json).substring(2), 16);
      assertEquals(expected, new BigInteger(value.toString()), place);
    } else if (value instanceof Hash && ((String) json).length() < 66) {
      BigInteger expected = new BigInteger(((String) json).substring(2), 16);
      assertEquals(expected, new BigInteger(value.toString().substring(2), 16), place);
    } else if (value instanceof Address) {
      assertEquals(lower(json), lower(value), place);
    } else {
      assertEquals(json, value.toString(), place);
    }
  }

  /** All records of a type within a value, at any depth. */
  static <T> List<T> within(Object value, Class<T> type) {
    List<T> found = new ArrayList<>();
    switch (value) {
      case Optional<?> optional -> optional.ifPresent(one -> found.addAll(within(one, type)));
      case List<?> list -> list.forEach(one -> found.addAll(within(one, type)));
      case Map<?, ?> map -> map.values().forEach(one -> found.addAll(within(one, type)));
      case Record record -> {
        if (type.isInstance(record)) {
          found.add(type.cast(record));
        }
        for (RecordComponent component : record.getClass().getRecordComponents()) {
          found.addAll(within(value(record, component), type));
        }
      }
      default -> {}
    }
    return found;
  }
}
