package deponent.client;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * A method of a {@link Contract} that calls a function, and sends no transaction. It returns what
 * the function returns, a {@link java.util.concurrent.CompletableFuture} of it, or the {@link
 * deponent.rpc.Request}, which batches take.
 *
 * <p>One more parameter of the type {@code Wei}, the last, is the ether of a payable function.
 */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target(ElementType.METHOD)
public @interface View {
  /**
   * The signature with its results, such as {@code "balanceOf(address owner) returns (uint256)"};
   * with a JSON ABI the name, or {@code name(types)} of an overloaded one, or nothing where the
   * method has the name.
   */
  String value() default "";
}
