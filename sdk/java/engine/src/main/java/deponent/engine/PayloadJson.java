package deponent.engine;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;

/** {@code ExecutionPayloadV1} to {@code V4} in JSON. {@code null} counts as absent. */
final class PayloadJson {
  /** Transactions in a payload, as in SSZ. */
  private static final int TRANSACTIONS = 1 << 20;

  /** Withdrawals in a payload: test networks have had more than SSZ takes. */
  private static final int WITHDRAWALS = 1 << 16;

  private static final List<String> MEMBERS =
      List.of(
          "parentHash",
          "feeRecipient",
          "stateRoot",
          "receiptsRoot",
          "logsBloom",
          "prevRandao",
          "blockNumber",
          "gasLimit",
          "gasUsed",
          "timestamp",
          "extraData",
          "baseFeePerGas",
          "blockHash",
          "transactions",
          "withdrawals",
          "blobGasUsed",
          "excessBlobGas",
          "blockAccessList",
          "slotNumber");
  private static final JsonReader.Names NAMES = JsonReader.Names.of(MEMBERS.toArray(String[]::new));
  private static final JsonReader.Names WITHDRAWAL =
      JsonReader.Names.of("index", "validatorIndex", "address", "amount");

  private PayloadJson() {}

  static ExecutionPayload read(JsonReader json) {
    ExecutionPayloadBuilder payload = ExecutionPayload.builder();
    int seen = 0;
    json.beginObject();
    while (json.hasNext()) {
      int member = json.nextName(NAMES);
      if (member < 0) {
        throw new MalformedException(
            "executionPayload has a member of no structure, before byte " + json.position());
      }
      if ((seen & 1 << member) != 0) {
        throw new MalformedException("executionPayload." + MEMBERS.get(member) + " is there twice");
      }
      seen |= 1 << member;
      if (!json.nextNull()) {
        member(member, json, payload);
      }
    }
    json.endObject();
    try {
      return payload.build();
    } catch (IllegalArgumentException missing) {
      throw new MalformedException(missing.getMessage(), missing);
    }
  }

  private static void member(int member, JsonReader json, ExecutionPayloadBuilder payload) {
    switch (member) {
      case 0 -> payload.parentHash(json.nextHash());
      case 1 -> payload.feeRecipient(json.nextAddress());
      case 2 -> payload.stateRoot(json.nextHash());
      case 3 -> payload.receiptsRoot(json.nextHash());
      case 4 -> payload.logsBloom(json.nextBytes());
      case 5 -> payload.prevRandao(json.nextHash());
      case 6 -> payload.blockNumber(number(json));
      case 7 -> payload.gasLimit(number(json));
      case 8 -> payload.gasUsed(number(json));
      case 9 -> payload.timestamp(number(json));
      case 10 -> payload.extraData(json.nextBytes());
      case 11 -> payload.baseFeePerGas(json.nextWei());
      case 12 -> payload.blockHash(json.nextHash());
      case 13 -> payload.transactions(byteLists("transactions", json, TRANSACTIONS));
      case 14 -> payload.withdrawals(withdrawals(json));
      case 15 -> payload.blobGasUsed(number(json));
      case 16 -> payload.excessBlobGas(number(json));
      case 17 -> payload.blockAccessList(json.nextBytes());
      default -> payload.slotNumber(number(json));
    }
  }

  static List<Withdrawal> withdrawals(JsonReader json) {
    List<Withdrawal> withdrawals = new ArrayList<>();
    json.beginArray();
    while (json.hasNext()) {
      checkCount("withdrawals", withdrawals.size(), WITHDRAWALS);
      withdrawals.add(withdrawal(json));
    }
    json.endArray();
    return withdrawals;
  }

  private static Withdrawal withdrawal(JsonReader json) {
    long[] numbers = new long[4];
    Address address = Address.ZERO;
    int seen = 0;
    json.beginObject();
    while (json.hasNext()) {
      int member = json.nextName(WITHDRAWAL);
      if (member < 0 || (seen & 1 << member) != 0) {
        throw new MalformedException(
            "withdrawals: a member of no structure or twice, before byte " + json.position());
      }
      seen |= 1 << member;
      if (member == 2) {
        address = json.nextAddress();
      } else {
        numbers[member] = number(json);
      }
    }
    json.endObject();
    if (seen != 0b1111) {
      throw new MalformedException("withdrawals: a member is missing");
    }
    return new Withdrawal(numbers[0], numbers[1], address, numbers[3]);
  }

  /** A list of at most {@code most} byte strings. */
  static List<Bytes> byteLists(String field, JsonReader json, int most) {
    List<Bytes> items = new ArrayList<>();
    json.beginArray();
    while (json.hasNext()) {
      checkCount(field, items.size(), most);
      items.add(json.nextBytes());
    }
    json.endArray();
    return items;
  }

  static void checkCount(String field, int before, int most) {
    if (before == most) {
      throw new MalformedException(field + ": more than " + most + " items");
    }
  }

  /** A number of 64 bits without a sign. */
  static long number(JsonReader json) {
    BigInteger number = json.nextBigQuantity();
    if (number.bitLength() > 64) {
      throw new MalformedException("a number of more than 64 bits, before byte " + json.position());
    }
    return number.longValue();
  }

  static void write(ExecutionPayload payload, JsonWriter json) {
    json.beginObject();
    json.name("parentHash").value(payload.parentHash());
    json.name("feeRecipient").value(payload.feeRecipient());
    json.name("stateRoot").value(payload.stateRoot());
    json.name("receiptsRoot").value(payload.receiptsRoot());
    json.name("logsBloom").value(payload.logsBloom());
    json.name("prevRandao").value(payload.prevRandao());
    number(json.name("blockNumber"), payload.blockNumber());
    number(json.name("gasLimit"), payload.gasLimit());
    number(json.name("gasUsed"), payload.gasUsed());
    number(json.name("timestamp"), payload.timestamp());
    json.name("extraData").value(payload.extraData());
    json.name("baseFeePerGas").quantity(payload.baseFeePerGas());
    json.name("blockHash").value(payload.blockHash());
    byteLists(json.name("transactions"), payload.transactions());
    if (payload.version() >= 2) {
      withdrawals(json.name("withdrawals"), payload.withdrawals());
    }
    if (payload.version() >= 3) {
      number(json.name("blobGasUsed"), payload.blobGasUsed());
      number(json.name("excessBlobGas"), payload.excessBlobGas());
    }
    if (payload.version() >= 4) {
      json.name("blockAccessList").value(payload.blockAccessList());
      number(json.name("slotNumber"), payload.slotNumber());
    }
    json.endObject();
  }

  static void byteLists(JsonWriter json, List<Bytes> items) {
    json.beginArray();
    items.forEach(json::value);
    json.endArray();
  }

  static void withdrawals(JsonWriter json, List<Withdrawal> withdrawals) {
    json.beginArray();
    for (Withdrawal one : withdrawals) {
      json.beginObject();
      number(json.name("index"), one.index());
      number(json.name("validatorIndex"), one.validatorIndex());
      json.name("address").value(one.address());
      number(json.name("amount"), one.amount());
      json.endObject();
    }
    json.endArray();
  }

  static void number(JsonWriter json, long unsigned) {
    if (unsigned >= 0) {
      json.quantity(unsigned);
    } else {
      json.quantity(new BigInteger(Long.toUnsignedString(unsigned)));
    }
  }
}
