package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Wei;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a block did with an account (EIP-7928).
 *
 * @param address the account
 * @param storageChanges the slots that it wrote
 * @param storageReads the slots that it only read
 * @param balanceChanges the balances that it had
 * @param nonceChanges the nonces that it had
 * @param codeChanges the codes that it had
 */
public record AccountChanges(
    Address address,
    List<Slot> storageChanges,
    List<Hash> storageReads,
    List<Balance> balanceChanges,
    List<Nonce> nonceChanges,
    List<Code> codeChanges) {
  private static final Members MEMBERS =
      Members.of(
          "address",
          "storageChanges",
          "storageReads",
          "balanceChanges",
          "nonceChanges",
          "codeChanges");

  /** With copies. */
  public AccountChanges {
    storageChanges = List.copyOf(storageChanges);
    storageReads = List.copyOf(storageReads);
    balanceChanges = List.copyOf(balanceChanges);
    nonceChanges = List.copyOf(nonceChanges);
    codeChanges = List.copyOf(codeChanges);
  }

  /**
   * What a block wrote to a slot.
   *
   * @param key the slot
   * @param changes the values, in their order
   */
  public record Slot(Hash key, List<Value> changes) {
    private static final Members MEMBERS = Members.of("key", "changes");

    /** With copies. */
    public Slot {
      changes = List.copyOf(changes);
    }

    static Slot read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private @Nullable Hash key;
      private @Nullable List<Value> changes;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "key" -> key = Members.word(json);
          case "changes" -> changes = Members.list(json, Value::read);
          default -> throw new AssertionError(name);
        }
      }

      Slot made() {
        return new Slot(Members.the("key", key), Members.the("changes", changes));
      }
    }
  }

  /**
   * A value that a block wrote to a slot.
   *
   * @param index after which transaction of the block, from 1 on; 0 is before all
   * @param value the value
   */
  public record Value(long index, Hash value) {
    private static final Members MEMBERS = Members.of("index", "value");

    static Value read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private long index = -1;
      private @Nullable Hash value;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "index" -> index = json.nextQuantity();
          case "value" -> value = Members.word(json);
          default -> throw new AssertionError(name);
        }
      }

      Value made() {
        return new Value(Members.the("index", index), Members.the("value", value));
      }
    }
  }

  /**
   * A balance that an account had in a block.
   *
   * @param index after which transaction of the block, from 1 on; 0 is before all
   * @param value the balance
   */
  public record Balance(long index, Wei value) {
    private static final Members MEMBERS = Members.of("index", "value");

    static Balance read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private long index = -1;
      private @Nullable Wei value;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "index" -> index = json.nextQuantity();
          case "value" -> value = json.nextWei();
          default -> throw new AssertionError(name);
        }
      }

      Balance made() {
        return new Balance(Members.the("index", index), Members.the("value", value));
      }
    }
  }

  /**
   * A nonce that an account had in a block.
   *
   * @param index after which transaction of the block, from 1 on; 0 is before all
   * @param value the nonce
   */
  public record Nonce(long index, long value) {
    private static final Members MEMBERS = Members.of("index", "value");

    static Nonce read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private long index = -1;
      private long value = -1;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "index" -> index = json.nextQuantity();
          case "value" -> value = json.nextQuantity();
          default -> throw new AssertionError(name);
        }
      }

      Nonce made() {
        return new Nonce(Members.the("index", index), Members.the("value", value));
      }
    }
  }

  /**
   * A code that an account had in a block.
   *
   * @param index after which transaction of the block, from 1 on; 0 is before all
   * @param code the code
   */
  public record Code(long index, Bytes code) {
    private static final Members MEMBERS = Members.of("index", "code");

    static Code read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private long index = -1;
      private @Nullable Bytes code;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "index" -> index = json.nextQuantity();
          case "code" -> code = json.nextBytes();
          default -> throw new AssertionError(name);
        }
      }

      Code made() {
        return new Code(Members.the("index", index), Members.the("code", code));
      }
    }
  }

  static AccountChanges read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Address address;
    private List<Slot> storageChanges = List.of();
    private List<Hash> storageReads = List.of();
    private List<Balance> balanceChanges = List.of();
    private List<Nonce> nonceChanges = List.of();
    private List<Code> codeChanges = List.of();

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "address" -> address = json.nextAddress();
        case "storageChanges" -> storageChanges = Members.list(json, Slot::read);
        case "storageReads" -> storageReads = Members.list(json, Members::word);
        case "balanceChanges" -> balanceChanges = Members.list(json, Balance::read);
        case "nonceChanges" -> nonceChanges = Members.list(json, Nonce::read);
        case "codeChanges" -> codeChanges = Members.list(json, Code::read);
        default -> throw new AssertionError(name);
      }
    }

    AccountChanges made() {
      return new AccountChanges(
          Members.the("address", address),
          storageChanges,
          storageReads,
          balanceChanges,
          nonceChanges,
          codeChanges);
    }
  }
}
