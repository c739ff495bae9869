package deponent.eth;

/**
 * A parameter, or a member of a tuple. The name may be empty; only those of events are indexed.
 *
 * @param name its name, or ""
 * @param type its type
 * @param indexed whether it is a topic of an event's log
 */
public record AbiParameter(String name, AbiType type, boolean indexed) {
  /** As in a human-readable signature. */
  @Override
  public String toString() {
    String text = type + (indexed ? " indexed" : "");
    return name.isEmpty() ? text : text + " " + name;
  }
}
