package deponent.client;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * An interface of a contract, for which the annotation processor {@code deponent-processor} writes
 * the class {@code NameContract}. Methods have {@link View} or {@link Send}, nested records {@link
 * Event} or {@link Error}.
 *
 * <pre>{@code
 * @Contract
 * interface Erc20 {
 *   @View("balanceOf(address) returns (uint256)")
 *   BigInteger balanceOf(Address owner);
 *
 *   @Send("transfer(address to, uint256 value) returns (bool)")
 *   PendingTransaction transfer(Address to, BigInteger value);
 *
 *   @Event("Transfer(address indexed from, address indexed to, uint256 value)")
 *   record Transfer(Address from, Address to, BigInteger value) {}
 *
 *   @Error("ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)")
 *   record InsufficientBalance(Address sender, BigInteger balance, BigInteger needed) {}
 * }
 *
 * Erc20 token = Erc20Contract.at(account, address);
 * }</pre>
 *
 * <p>A method {@code Address address()} may be declared as well: it is the contract's.
 *
 * <p>Integers are {@code BigInteger}, those without a sign {@code Wei} too, up to 64 bits {@code
 * long}, up to 32 bits {@code int}; {@code bytes32} is {@code Hash} or {@code Bytes}, other bytes
 * are {@code Bytes}; arrays are {@code List}s, tuples and several results are records.
 *
 * <p>A class of a JSON ABI has all its functions, events, errors and structs, those that the
 * interface leaves out as well, by types that hold all values.
 */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target(ElementType.TYPE)
public @interface Contract {
  /**
   * The file of a JSON ABI, or of an artifact of solc, Foundry or Hardhat, in the folder that the
   * option {@code -Adeponent.abi=FOLDER} names. The interface is checked against it.
   */
  String abi() default "";

  /**
   * The constructor, such as {@code "constructor(string name) payable"}, where no JSON ABI has it.
   */
  String constructor() default "";
}
