package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonWriter;
import deponent.eth.Wei;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A state and a block that differ from those of the chain while a call runs. Each method gives a
 * new one.
 *
 * <pre>{@code
 * Overrides rich = Overrides.NONE.balance(me, Wei.ether("1000")).time(1_900_000_000);
 * Bytes result = eth.call(call, BlockId.LATEST, rich);
 * }</pre>
 */
public final class Overrides {
  /** No difference. */
  public static final Overrides NONE = new Overrides(Map.of(), new InBlock());

  private final Map<Address, Account> accounts;
  private final InBlock block;

  private Overrides(Map<Address, Account> accounts, InBlock block) {
    this.accounts = accounts;
    this.block = block;
  }

  /** What differs in an account. It is not changed once it has a place. */
  private static final class Account implements Cloneable {
    @Nullable Wei balance;
    long nonce = -1;
    @Nullable Bytes code;
    Map<Hash, Hash> slots = Map.of();

    /** Whether all other slots are empty. */
    boolean whole;

    @Nullable Address precompileAt;

    @Override
    protected Account clone() {
      try {
        return (Account) super.clone();
      } catch (CloneNotSupportedException impossible) {
        throw new AssertionError(impossible);
      }
    }

    void write(JsonWriter json) {
      json.beginObject();
      if (balance != null) {
        json.name("balance").quantity(balance);
      }
      if (nonce >= 0) {
        json.name("nonce").quantity(nonce);
      }
      if (code != null) {
        json.name("code").value(code);
      }
      if (whole || !slots.isEmpty()) {
        json.name(whole ? "state" : "stateDiff").beginObject();
        slots.forEach((slot, value) -> json.name(slot.toString()).value(value));
        json.endObject();
      }
      if (precompileAt != null) {
        json.name("movePrecompileToAddress").value(precompileAt);
      }
      json.endObject();
    }
  }

  /** What differs in the block. It is not changed once it has a place. */
  private static final class InBlock implements Cloneable {
    long number = -1;
    long time = -1;
    long gasLimit = -1;
    @Nullable Address feeRecipient;
    @Nullable Hash prevRandao;
    @Nullable Wei baseFeePerGas;
    @Nullable Wei blobBaseFee;
    @Nullable List<Withdrawal> withdrawals;

    @Override
    protected InBlock clone() {
      try {
        return (InBlock) super.clone();
      } catch (CloneNotSupportedException impossible) {
        throw new AssertionError(impossible);
      }
    }
  }

  private Overrides account(Address address, Consumer<Account> change) {
    Map<Address, Account> changed = new LinkedHashMap<>(accounts);
    Account before = changed.get(address);
    Account account = before == null ? new Account() : before.clone();
    change.accept(account);
    changed.put(address, account);
    return new Overrides(changed, block);
  }

  private Overrides block(Consumer<InBlock> change) {
    InBlock changed = block.clone();
    change.accept(changed);
    return new Overrides(accounts, changed);
  }

  /** The account has this balance. */
  public Overrides balance(Address account, Wei balance) {
    return account(account, changed -> changed.balance = balance);
  }

  /**
   * The account has this nonce.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public Overrides nonce(Address account, long nonce) {
    return account(account, changed -> changed.nonce = notNegative("nonce", nonce));
  }

  /** The account has this code. */
  public Overrides code(Address account, Bytes code) {
    return account(account, changed -> changed.code = code);
  }

  /** A slot of the account's storage has this value. Other slots stay as they are. */
  public Overrides slot(Address account, Hash slot, Hash value) {
    return account(
        account,
        changed -> {
          Map<Hash, Hash> slots = new LinkedHashMap<>(changed.slots);
          slots.put(slot, value);
          changed.slots = slots;
        });
  }

  /** The account's storage is this alone. */
  public Overrides storage(Address account, Map<Hash, Hash> slots) {
    Map<Hash, Hash> copy = new LinkedHashMap<>(slots);
    return account(
        account,
        changed -> {
          changed.slots = copy;
          changed.whole = true;
        });
  }

  /** The precompiled contract is at {@code to}, which leaves its own address to other code. */
  public Overrides movePrecompile(Address precompile, Address to) {
    return account(precompile, changed -> changed.precompileAt = to);
  }

  /**
   * The block has this number.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public Overrides number(long number) {
    return block(changed -> changed.number = notNegative("number", number));
  }

  /**
   * The block has this time, in seconds since 1970.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public Overrides time(long seconds) {
    return block(changed -> changed.time = notNegative("time", seconds));
  }

  /**
   * The block may use so much gas.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public Overrides gasLimit(long gasLimit) {
    return block(changed -> changed.gasLimit = notNegative("gas limit", gasLimit));
  }

  /** The block pays its fees to this account. */
  public Overrides feeRecipient(Address account) {
    return block(changed -> changed.feeRecipient = account);
  }

  /** The block has this randomness. */
  public Overrides prevRandao(Hash prevRandao) {
    return block(changed -> changed.prevRandao = prevRandao);
  }

  /** The block has this base fee. */
  public Overrides baseFeePerGas(Wei fee) {
    return block(changed -> changed.baseFeePerGas = fee);
  }

  /** The block has this base fee of blob gas. */
  public Overrides blobBaseFee(Wei fee) {
    return block(changed -> changed.blobBaseFee = fee);
  }

  /** The block has these withdrawals; {@code eth_simulateV1} alone looks at them. */
  public Overrides withdrawals(List<Withdrawal> withdrawals) {
    List<Withdrawal> copy = List.copyOf(withdrawals);
    return block(changed -> changed.withdrawals = copy);
  }

  private static long notNegative(String what, long number) {
    if (number < 0) {
      throw new IllegalArgumentException("a " + what + " is not negative: " + number);
    }
    return number;
  }

  boolean hasState() {
    return !accounts.isEmpty();
  }

  boolean hasBlock() {
    return block.number >= 0
        || block.time >= 0
        || block.gasLimit >= 0
        || block.feeRecipient != null
        || block.prevRandao != null
        || block.baseFeePerGas != null
        || block.blobBaseFee != null
        || block.withdrawals != null;
  }

  /** Writes what differs in the state. */
  void writeState(JsonWriter json) {
    json.beginObject();
    accounts.forEach((address, account) -> account.write(json.name(Members.key(address))));
    json.endObject();
  }

  /** Writes what differs in the block. */
  void writeBlock(JsonWriter json) {
    json.beginObject();
    if (block.number >= 0) {
      json.name("number").quantity(block.number);
    }
    if (block.time >= 0) {
      json.name("time").quantity(block.time);
    }
    if (block.gasLimit >= 0) {
      json.name("gasLimit").quantity(block.gasLimit);
    }
    if (block.feeRecipient != null) {
      json.name("feeRecipient").value(block.feeRecipient);
    }
    if (block.prevRandao != null) {
      json.name("prevRandao").value(block.prevRandao);
    }
    if (block.baseFeePerGas != null) {
      json.name("baseFeePerGas").quantity(block.baseFeePerGas);
    }
    if (block.blobBaseFee != null) {
      json.name("blobBaseFee").quantity(block.blobBaseFee);
    }
    if (block.withdrawals != null) {
      json.name("withdrawals").beginArray();
      block.withdrawals.forEach(one -> one.write(json));
      json.endArray();
    }
    json.endObject();
  }
}
