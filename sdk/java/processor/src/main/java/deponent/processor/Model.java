package deponent.processor;

import deponent.eth.AbiConstructor;
import deponent.eth.AbiError;
import deponent.eth.AbiEvent;
import deponent.eth.AbiFunction;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A contract, as its class is written. */
final class Model {
  /** What a method does with the data of a call. */
  enum How {
    CALL,
    CALL_ASYNC,
    REQUEST,
    SEND,
    SEND_ASYNC,
    PREPARE
  }

  /**
   * A method.
   *
   * @param parameters without the ether
   * @param ether the name of the parameter with the ether, or null
   * @param result the value or values that are returned, or null
   * @param values whether {@code result} has all results of the function, and not one tuple
   * @param overrides whether the interface has it
   */
  record Function(
      AbiFunction abi,
      String method,
      How how,
      List<Shape.Member> parameters,
      @Nullable String ether,
      @Nullable Shape result,
      boolean values,
      boolean overrides) {}

  /** An event with its record. */
  record Event(AbiEvent abi, Shape.Struct fields) {}

  /** An error with its record. */
  record Failure(AbiError abi, Shape.Struct fields) {}

  /** The constructor; {@code ether} is the name of the parameter with the ether, or null. */
  record Creation(AbiConstructor abi, List<Shape.Member> parameters, @Nullable String ether) {}

  /** The interface's package, or "". */
  final String inPackage;

  /** The interface, as code of its package names it. */
  final String name;

  final boolean isPublic;
  final String className;
  final List<Function> functions = new ArrayList<>();
  final List<Event> events = new ArrayList<>();
  final List<Failure> errors = new ArrayList<>();

  /** Records that have to be written. */
  final List<Shape.Struct> records = new ArrayList<>();

  /** Types of the interface, by which others of their names are hidden in the class. */
  final Set<String> hiding = new HashSet<>();

  @Nullable Creation creation;

  /** The hex digits of the code that creates the contract. */
  Optional<String> code = Optional.empty();

  Model(String inPackage, String name, String className, boolean isPublic) {
    this.inPackage = inPackage;
    this.name = name;
    this.className = className;
    this.isPublic = isPublic;
  }
}
