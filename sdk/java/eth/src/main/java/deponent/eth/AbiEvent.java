package deponent.eth;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An event of a contract: its logs decoded, and the topics by which they are found.
 *
 * <pre>{@code
 * AbiEvent transfer =
 *     AbiEvent.of("Transfer(address indexed from, address indexed to, uint256 value)");
 * transfer.topics(null, friend);                           // any sender, this receiver
 * transfer.decode(topics, data).integer("value");
 * }</pre>
 */
public final class AbiEvent {
  private static final int MOST_TOPICS = 4;

  private final String name;
  private final AbiTuple inputs;
  final AbiTuple plain;
  private final boolean anonymous;
  private final String signature;
  private final Hash topic;

  AbiEvent(String name, List<AbiParameter> inputs, boolean anonymous) {
    this.name = name;
    this.inputs = AbiTuple.of(inputs);
    this.plain = AbiTuple.of(inputs.stream().filter(input -> !input.indexed()).toList());
    this.anonymous = anonymous;
    this.signature = name + this.inputs;
    this.topic = AbiCall.topic(signature);
    if (topicsOfLog() > MOST_TOPICS) {
      throw new IllegalArgumentException(
          signature + " has " + topicsOfLog() + " topics, where a log has four at most");
    }
  }

  /**
   * Of a human-readable signature: {@code [event] name(type [indexed] [name], ..) [anonymous]}.
   *
   * @throws IllegalArgumentException if it is none
   */
  public static AbiEvent of(String signature) {
    return AbiSignatures.event(new AbiParser(signature));
  }

  private int topicsOfLog() {
    int indexed = inputs.members().size() - plain.members().size();
    return anonymous ? indexed : indexed + 1;
  }

  /** The name. */
  public String name() {
    return name;
  }

  /** Name and types. */
  public String signature() {
    return signature;
  }

  /** The hash of the signature, which is the first topic of an event that is not anonymous. */
  public Hash topic() {
    return topic;
  }

  /** The fields, in the order in which they are declared. */
  public List<AbiParameter> inputs() {
    return inputs.members();
  }

  /** Whether logs lack the topic of the signature. */
  public boolean isAnonymous() {
    return anonymous;
  }

  /** Whether a log with these topics may be of this event. */
  public boolean isIn(List<Hash> topics) {
    return topics.size() == topicsOfLog() && (anonymous || topics.get(0).equals(topic));
  }

  /**
   * The topics of logs whose first indexed fields have these values; {@code null} stands for any.
   *
   * @throws IllegalArgumentException if a value does not fit, or there are more values than fields
   */
  public List<@Nullable Hash> topics(@Nullable Object... indexed) {
    List<@Nullable Hash> topics = new ArrayList<>();
    if (!anonymous) {
      topics.add(topic);
    }
    List<AbiParameter> fields = inputs.members().stream().filter(AbiParameter::indexed).toList();
    if (indexed.length > fields.size()) {
      throw new IllegalArgumentException(
          indexed.length + " values, where " + this + " has " + fields.size() + " indexed fields");
    }
    for (int i = 0; i < indexed.length; i++) {
      Object value = indexed[i];
      topics.add(value == null ? null : topicOf(fields.get(i), value));
    }
    return topics;
  }

  private Hash topicOf(AbiParameter field, Object value) {
    try {
      if (isWord(field.type())) {
        return Hash.of(field.type().encode(value).array, 0);
      }
      ByteArrayOutputStream packed = new ByteArrayOutputStream();
      field.type().pack(value, packed, false);
      return Keccak256.hash(packed.toByteArray());
    } catch (Misfit misfit) {
      throw misfit.in(signature + " ." + field.name());
    }
  }

  /** Whether a topic has the value itself, and not its hash. */
  private static boolean isWord(AbiType type) {
    return !type.isDynamic() && !(type instanceof AbiArray) && !(type instanceof AbiTuple);
  }

  /**
   * The fields of a log, in the order in which they are declared. Of indexed strings, bytes, arrays
   * and tuples there is the hash alone.
   *
   * @throws MalformedException if the log is of another event, or does not decode
   */
  public AbiValues decode(List<Hash> topics, Bytes data) {
    check(topics);
    AbiValues rest = new AbiDecoder(data.array, 0, data.size()).values(plain);
    Object[] values = new Object[inputs.members().size()];
    int nextTopic = anonymous ? 0 : 1;
    int nextPlain = 0;
    for (int i = 0; i < values.length; i++) {
      AbiParameter field = inputs.members().get(i);
      if (!field.indexed()) {
        values[i] = rest.get(nextPlain++);
        continue;
      }
      Hash found = topics.get(nextTopic++);
      values[i] = isWord(field.type()) ? field.type().decode(found.toBytes()) : found;
    }
    return new AbiValues(inputs.members(), values);
  }

  void check(List<Hash> topics) {
    if (!isIn(topics)) {
      throw new MalformedException(
          "a log with the topics " + topics + " is not of " + this + ", " + topic);
    }
  }

  /** As a human-readable signature. */
  @Override
  public String toString() {
    String text = "event " + name + "(" + AbiSignatures.list(inputs()) + ")";
    return anonymous ? text + " anonymous" : text;
  }
}
