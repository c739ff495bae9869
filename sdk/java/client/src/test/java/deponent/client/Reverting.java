package deponent.client;

import deponent.eth.AbiError;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Wei;
import java.math.BigInteger;
import java.util.List;

/** Calls that revert, in each way. */
final class Reverting {
  /** A call that reverts with data. */
  record Case(Call call, String reason, Bytes data) {}

  private static final Bytes UNKNOWN = Bytes.of("0xdeadbeef00112233");

  private final Address till;
  private final Address unknown;
  private final Address empty;
  private final long sent;

  Reverting(Account me) {
    till = created(me, Till.with(100));
    unknown = created(me, Till.reverting(UNKNOWN));
    empty = created(me, Till.reverting(Bytes.EMPTY));
    sent = me.client().transactionCount(me.address());
  }

  private static Address created(Account me, Bytes initCode) {
    return me.deploy(initCode).await().contractAddress().orElseThrow();
  }

  /** Transactions of the account by now. */
  long sent() {
    return sent;
  }

  List<Case> cases() {
    Call pay = Call.to(till).data(Till.ABI.function("pay"), "no").value(Wei.of(1));
    Bytes tooLittle = Till.ABI.error("TooLittle").encode(1, 100);
    Call share = Call.to(till).data(Till.ABI.function("share"), BigInteger.ZERO);
    return List.of(
        new Case(pay.errors(Till.ABI), "TooLittle(1, 100)", tooLittle),
        new Case(pay, "", tooLittle),
        new Case(share, "panic 0x12, division by zero", AbiError.PANIC.encode(0x12)),
        new Case(Call.to(unknown).errors(Till.ABI), "", UNKNOWN),
        new Case(Call.to(empty), "", Bytes.EMPTY));
  }
}
