package deponent.client;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * A record of a {@link Contract} with the fields of an event, in their order. Of indexed strings,
 * bytes, arrays and tuples it has the {@link deponent.eth.Hash}. The class has a constant of the
 * record's name, a {@link ContractEvent}.
 */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target(ElementType.TYPE)
public @interface Event {
  /**
   * The signature, such as {@code "Paid(address indexed from, uint256 amount)"}; with a JSON ABI
   * the name, or {@code name(types)} of an overloaded one, or nothing where the record has the
   * name.
   */
  String value() default "";
}
