package deponent.client;

import deponent.eth.Address;
import deponent.eth.JsonReader;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The accounts that a transaction changed: of each, what it changed.
 *
 * @param pre before it
 * @param post after it
 */
public record StateChange(Map<Address, AccountState> pre, Map<Address, AccountState> post) {
  private static final Members MEMBERS = Members.of("pre", "post");

  /** With copies. */
  public StateChange {
    pre = Members.copy(pre);
    post = Members.copy(post);
  }

  static StateChange read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Map<Address, AccountState> pre;
    private @Nullable Map<Address, AccountState> post;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "pre" -> pre = Members.map(json, Members::address, AccountState::read);
        case "post" -> post = Members.map(json, Members::address, AccountState::read);
        default -> throw new AssertionError(name);
      }
    }

    StateChange made() {
      return new StateChange(Members.the("pre", pre), Members.the("post", post));
    }
  }
}
