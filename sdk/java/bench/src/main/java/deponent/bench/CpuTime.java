package deponent.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Collection;
import java.util.List;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;

/**
 * The time that the measuring thread was on a core, for each operation: what others on the machine
 * do is not in it, nor are the threads of the collector and the compiler.
 */
public final class CpuTime implements InternalProfiler {
  /** The name of the result. */
  static final String NAME = "cpu";

  private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
  private long before;

  @Override
  public String getDescription() {
    return "time on a core for each operation";
  }

  private long now() {
    long nanos = 0;
    for (long id : threads.getAllThreadIds()) {
      var thread = threads.getThreadInfo(id);
      if (thread != null && thread.getThreadName().contains("jmh-worker")) {
        nanos += Math.max(0, threads.getThreadCpuTime(id));
      }
    }
    return nanos;
  }

  @Override
  public void beforeIteration(BenchmarkParams benchmark, IterationParams iteration) {
    before = now();
  }

  @Override
  public Collection<? extends Result<?>> afterIteration(
      BenchmarkParams benchmark, IterationParams iteration, IterationResult result) {
    double nanos = (double) (now() - before) / result.getMetadata().getAllOps();
    return List.of(new ScalarResult(NAME, nanos, "ns/op", AggregationPolicy.AVG));
  }
}
