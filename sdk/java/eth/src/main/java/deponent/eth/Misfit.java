package deponent.eth;

/** A value that does not fit a type; the places of what holds it come before the reason. */
final class Misfit extends IllegalArgumentException {
  private static final long serialVersionUID = 1;

  private final StringBuilder place = new StringBuilder();

  Misfit(String reason) {
    super(reason);
  }

  static Misfit of(Object value, AbiType type) {
    return new Misfit(
        value.getClass().getSimpleName() + " is no value of " + type + ": " + type.taken());
  }

  /** With one more place in front. */
  Misfit in(String outer) {
    place.insert(0, outer);
    return this;
  }

  @Override
  public String getMessage() {
    return place.isEmpty() ? super.getMessage() : place + ": " + super.getMessage();
  }
}
