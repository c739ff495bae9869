package deponent.client;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * A record of a {@link Contract} with the values of an error, in their order. Reverts of the
 * contract's calls are decoded by it, and the class has a constant of the record's name, a {@link
 * ContractError}.
 */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target(ElementType.TYPE)
public @interface Error {
  /**
   * The signature, such as {@code "TooLittle(uint256 offered, uint256 least)"}; with a JSON ABI the
   * name, or {@code name(types)} of an overloaded one, or nothing where the record has the name.
   */
  String value() default "";
}
