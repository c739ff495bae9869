package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.eth.Wei;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What a transaction changed in an account.
 *
 * @param balance the balance
 * @param nonce the nonce
 * @param code the code
 * @param storage the slots that it changed
 */
public record AccountDiff(
    Change<Wei> balance, Change<Long> nonce, Change<Bytes> code, Map<Hash, Change<Hash>> storage) {
  private static final Members MEMBERS = Members.of("balance", "nonce", "code", "storage");

  /** With copies. */
  public AccountDiff {
    storage = Members.copy(storage);
  }

  /**
   * A value before and after; both are absent where it stayed the same.
   *
   * @param before what it was, where there was one
   * @param after what it is, where there is one
   * @param <T> its type
   */
  public record Change<T>(Optional<T> before, Optional<T> after) {
    /** Whether it stayed the same. */
    public boolean isNone() {
      return before.isEmpty() && after.isEmpty();
    }

    static <T> Change<T> read(JsonReader json, Members.Element<T> value) {
      if (json.peek() == JsonReader.Kind.STRING) {
        String word = json.nextString();
        if (!word.equals("=")) {
          throw new MalformedException("no change: " + Members.quoted(word));
        }
        return new Change<>(Optional.empty(), Optional.empty());
      }
      ChangeParts<T> parts = new ChangeParts<>(value);
      CHANGE.read(json, parts);
      return new Change<>(Optional.ofNullable(parts.before), Optional.ofNullable(parts.after));
    }
  }

  private static final Members CHANGE = Members.of("+", "-", "*");
  private static final Members ALTERED = Members.of("from", "to");

  private static final class ChangeParts<T> implements Members.Taker {
    private final Members.Element<T> value;
    private @Nullable T before;
    private @Nullable T after;

    ChangeParts(Members.Element<T> value) {
      this.value = value;
    }

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "+", "to" -> after = value.read(json);
        case "-", "from" -> before = value.read(json);
        default -> ALTERED.read(json, this);
      }
    }
  }

  static AccountDiff read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Change<Wei> balance;
    private @Nullable Change<Long> nonce;
    private @Nullable Change<Bytes> code;
    private @Nullable Map<Hash, Change<Hash>> storage;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "balance" -> balance = Change.read(json, JsonReader::nextWei);
        case "nonce" -> nonce = Change.read(json, Members::number);
        case "code" -> code = Change.read(json, JsonReader::nextBytes);
        case "storage" ->
            storage = Members.map(json, Hash::of, one -> Change.read(one, Members::word));
        default -> throw new AssertionError(name);
      }
    }

    AccountDiff made() {
      return new AccountDiff(
          Members.the("balance", balance),
          Members.the("nonce", nonce),
          Members.the("code", code),
          Members.the("storage", storage));
    }
  }
}
