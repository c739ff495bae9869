package deponent.client;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * A method of a {@link Contract} that sends a transaction, which calls a function. It returns a
 * {@link PendingTransaction}, a {@link java.util.concurrent.CompletableFuture} of one, or the
 * {@link Call} that would be sent, to which more can be added.
 *
 * <p>One more parameter of the type {@code Wei}, the last, is the ether of a payable function.
 */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target(ElementType.METHOD)
public @interface Send {
  /**
   * The signature, such as {@code "deposit(address to) payable"}; with a JSON ABI the name, or
   * {@code name(types)} of an overloaded one, or nothing where the method has the name.
   */
  String value() default "";
}
