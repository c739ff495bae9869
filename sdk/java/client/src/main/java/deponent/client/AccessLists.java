package deponent.client;

import deponent.eth.AccessListEntry;
import deponent.eth.Address;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Access lists (EIP-2930) in JSON. */
final class AccessLists {
  private static final Members MEMBERS = Members.of("address", "storageKeys");

  private AccessLists() {}

  static AccessListEntry entry(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return new AccessListEntry(Members.the("address", parts.address), parts.storageKeys);
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Address address;
    private List<Hash> storageKeys = List.of();

    @Override
    public void take(String name, JsonReader json) {
      if (name.equals("address")) {
        address = json.nextAddress();
      } else {
        storageKeys = Members.list(json, JsonReader::nextHash);
      }
    }
  }

  static void write(List<AccessListEntry> entries, JsonWriter json) {
    json.beginArray();
    for (AccessListEntry entry : entries) {
      json.beginObject().name("address").value(entry.address());
      json.name("storageKeys").beginArray();
      entry.storageKeys().forEach(json::value);
      json.endArray().endObject();
    }
    json.endArray();
  }
}
