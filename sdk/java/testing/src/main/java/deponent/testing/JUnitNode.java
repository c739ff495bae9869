package deponent.testing;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** A node in a field of a test class. */
final class JUnitNode extends DevNode
    implements BeforeAllCallback, AfterAllCallback, AfterEachCallback, ParameterResolver {
  /** How many classes its tests run in: nested ones are in the outer one. */
  private int classes;

  JUnitNode(DevNodeBuilder settings) {
    super(settings);
  }

  /** It is started within so many classes. */
  synchronized void classes(int number) {
    classes = number;
  }

  @Override
  public synchronized void beforeAll(ExtensionContext context) {
    classes++;
    runAgain();
  }

  @Override
  public void afterEach(ExtensionContext context) {
    if (context.getExecutionException().isPresent()) {
      System.err.println(context.getDisplayName() + " failed. The log of " + this + ":");
      log().forEach(System.err::println);
    }
    closeUnlessUsed();
  }

  /** The node of a field that is not static ends with its test. */
  private synchronized void closeUnlessUsed() {
    if (classes == 0) {
      close();
    }
  }

  @Override
  public synchronized void afterAll(ExtensionContext context) {
    classes--;
    closeUnlessUsed();
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return gives(parameter);
  }

  static boolean gives(ParameterContext parameter) {
    Class<?> type = parameter.getParameter().getType();
    return type == DevNode.class || type == TestClient.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == DevNode.class ? this : client();
  }
}
