package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Wei;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * What of an account a transaction touched, or how it left it.
 *
 * @param balance its balance
 * @param nonce its nonce
 * @param code its code
 * @param codeHash the hash of its code
 * @param storage slots of its storage
 */
public record AccountState(
    Optional<Wei> balance,
    OptionalLong nonce,
    Optional<Bytes> code,
    Optional<Hash> codeHash,
    Map<Hash, Hash> storage) {
  private static final Members MEMBERS =
      Members.of("balance", "nonce", "code", "codeHash", "storage");

  /** With copies. */
  public AccountState {
    storage = Members.copy(storage);
  }

  static AccountState read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Wei balance;
    private long nonce = -1;
    private @Nullable Bytes code;
    private @Nullable Hash codeHash;
    private Map<Hash, Hash> storage = Map.of();

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "balance" -> balance = json.nextWei();
        case "nonce" -> nonce = Members.number(json);
        case "code" -> code = json.nextBytes();
        case "codeHash" -> codeHash = json.nextHash();
        case "storage" -> storage = Members.map(json, Hash::of, JsonReader::nextHash);
        default -> throw new AssertionError(name);
      }
    }

    AccountState made() {
      return new AccountState(
          Optional.ofNullable(balance),
          Members.optional(nonce),
          Optional.ofNullable(code),
          Optional.ofNullable(codeHash),
          storage);
    }
  }
}
