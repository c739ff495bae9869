package deponent.testing;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests a {@link DevNode} or its {@link TestClient} as a parameter. The tests of a class
 * share it; it is started for the first parameter, and ends after the last test.
 *
 * <pre>{@code
 * @ExtendWith(DevNodeExtension.class)
 * class TokenTest {
 *   @Test
 *   void itIsDeployed(DevNode node) {
 *     // ..
 *   }
 * }
 * }</pre>
 *
 * A chain with other settings is a field: see {@link DevNode}.
 */
public final class DevNodeExtension
    implements BeforeAllCallback, AfterAllCallback, AfterEachCallback, ParameterResolver {
  private @Nullable JUnitNode node;
  private int classes;

  /** JUnit makes one for each class. */
  public DevNodeExtension() {}

  private synchronized JUnitNode started() {
    JUnitNode one = node;
    if (one == null) {
      one = new JUnitNode(DevNode.builder());
      one.classes(classes);
      node = one;
    }
    return one;
  }

  @Override
  public synchronized void beforeAll(ExtensionContext context) {
    classes++;
    if (node != null) {
      node.beforeAll(context);
    }
  }

  @Override
  public void afterEach(ExtensionContext context) {
    JUnitNode one;
    synchronized (this) {
      one = node;
    }
    if (one != null) {
      one.afterEach(context);
    }
  }

  @Override
  public synchronized void afterAll(ExtensionContext context) {
    classes--;
    if (node != null) {
      node.afterAll(context);
    }
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return JUnitNode.gives(parameter);
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return started().resolveParameter(parameter, context);
  }
}
