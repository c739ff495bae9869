package deponent.bench;

/** Calls a second at most, as {@code DEPONENT_BENCH_RATE} says. */
final class Rate {
  private final double perSecond;
  private long free = System.nanoTime();

  Rate(double perSecond) {
    if (!(perSecond > 0)) {
      throw new IllegalArgumentException("DEPONENT_BENCH_RATE is positive, not " + perSecond);
    }
    this.perSecond = perSecond;
  }

  /** 10 a second where only {@code DEPONENT_BENCH_URL} is set: that is somebody else's server. */
  static Rate ofEnvironment() {
    String rate = System.getenv("DEPONENT_BENCH_RATE");
    if (rate != null && !rate.isEmpty()) {
      return new Rate(Double.parseDouble(rate));
    }
    boolean local = System.getenv("DEPONENT_BENCH_URL") == null;
    return new Rate(local ? Double.POSITIVE_INFINITY : 10);
  }

  /** Waits until {@code calls} may be made. */
  void await(int calls) throws InterruptedException {
    if (perSecond == Double.POSITIVE_INFINITY) {
      return;
    }
    long now = System.nanoTime();
    if (free - now > 0) {
      Thread.sleep((free - now) / 1_000_000 + 1);
      now = System.nanoTime();
    }
    free = now + (long) (calls * 1e9 / perSecond);
  }
}
