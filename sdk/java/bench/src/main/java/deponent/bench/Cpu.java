package deponent.bench;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** One operation of one library: a JVM of its own has one call site, which it can inline. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Cpu {
  /** A name of {@link Library}. */
  @Param(Library.OURS)
  public String library = "";

  /** A name of {@link Inputs}. */
  @Param(Inputs.TRANSFER_HEX)
  public String operation = "";

  private Callable<Object> work = () -> "";

  /** Finds the operation. */
  @Setup
  public void find() {
    Operation found = Library.operations(library).get(operation);
    if (found == null) {
      throw new IllegalArgumentException(library + " has no " + operation);
    }
    work = found.work();
  }

  /** Runs it once. */
  @Benchmark
  public Object run() throws Exception {
    return work.call();
  }
}
