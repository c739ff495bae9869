package deponent.testing;

/** Where JUnit is named first: an application without it gets an error here, and not before. */
final class JUnit {
  private JUnit() {}

  /**
   * A node that is an extension of JUnit.
   *
   * @throws NoClassDefFoundError without JUnit
   */
  static DevNode node(DevNodeBuilder settings) {
    return new JUnitNode(settings);
  }
}
