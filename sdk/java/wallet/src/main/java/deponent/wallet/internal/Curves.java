package deponent.wallet.internal;

import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/** The curve that is used: chosen once. */
public final class Curves {
  /** A system property with the name of a curve that is to be used. */
  public static final String PROPERTY = "deponent.curve";

  private Curves() {}

  private static volatile @Nullable Curve chosen;

  /**
   * The one that the property names, else libsecp256k1 where it loads, else BouncyCastle's.
   *
   * @throws IllegalStateException if the property names one that does not load
   */
  public static Curve chosen() {
    Curve curve = chosen;
    if (curve == null) {
      synchronized (Curves.class) {
        curve = chosen == null ? choose() : chosen;
        chosen = curve;
      }
    }
    return curve;
  }

  private static Curve choose() {
    Curve own = new BouncyCastle();
    String wanted = System.getProperty(PROPERTY);
    if (own.name().equals(wanted)) {
      return own;
    }
    String reason = "no module provides it";
    try {
      for (Curve curve : ServiceLoader.load(Curve.class, Curve.class.getClassLoader())) {
        if (wanted == null || curve.name().equals(wanted)) {
          return curve;
        }
      }
    } catch (ServiceConfigurationError | LinkageError none) {
      // Too old a Java, another machine, or a folder from which nothing may be run.
      reason = none.toString();
    }
    if (wanted != null) {
      throw new IllegalStateException("-D" + PROPERTY + "=" + wanted + ": " + reason);
    }
    return own;
  }
}
