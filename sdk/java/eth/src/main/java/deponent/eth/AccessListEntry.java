package deponent.eth;

import java.util.List;

/**
 * An account of an access list (EIP-2930), and slots of it.
 *
 * @param address the account
 * @param storageKeys the keys of its slots
 */
public record AccessListEntry(Address address, List<Hash> storageKeys) {
  /** With a copy of {@code storageKeys}. */
  public AccessListEntry {
    storageKeys = List.copyOf(storageKeys);
  }
}
