import org.jspecify.annotations.NullMarked;

/** The annotation processor of contracts, which runs in the compiler. */
@NullMarked
module deponent.processor {
  requires static org.jspecify;
  requires deponent.eth;
  requires java.compiler;

  exports deponent.processor;

  provides javax.annotation.processing.Processor with
      deponent.processor.ContractProcessor;
}
