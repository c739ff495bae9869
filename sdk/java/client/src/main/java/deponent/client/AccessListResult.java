package deponent.client;

import deponent.eth.AccessListEntry;
import deponent.eth.JsonReader;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The accounts and slots that a call touches.
 *
 * @param accessList them, without those that are warm anyway
 * @param gasUsed the gas that the call uses with this access list
 * @param error why the call fails, if it does
 */
public record AccessListResult(
    List<AccessListEntry> accessList, long gasUsed, Optional<String> error) {
  private static final Members MEMBERS = Members.of("accessList", "gasUsed", "error");

  /** With copies. */
  public AccessListResult {
    accessList = List.copyOf(accessList);
  }

  static AccessListResult read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable List<AccessListEntry> accessList;
    private long gasUsed = -1;
    private @Nullable String error;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "accessList" -> accessList = Members.list(json, AccessLists::entry);
        case "gasUsed" -> gasUsed = json.nextQuantity();
        case "error" -> error = json.nextString();
        default -> throw new AssertionError(name);
      }
    }

    AccessListResult made() {
      return new AccessListResult(
          Members.the("accessList", accessList),
          Members.the("gasUsed", gasUsed),
          Optional.ofNullable(error));
    }
  }
}
