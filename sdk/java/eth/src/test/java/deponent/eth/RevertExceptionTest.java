package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class RevertExceptionTest {
  private static final Abi ABI = Abi.of("error InsufficientBalance(uint256 have, uint256 need)");

  private static RevertException of(String message, Bytes data) {
    return RevertException.of(3, message, data, ABI);
  }

  @Test
  void errorsOfTheAbiAreKnownByName() {
    Bytes data = ABI.error("InsufficientBalance").encode(0, 10);
    RevertException revert = of("execution reverted", data);
    assertEquals("InsufficientBalance(0, 10)", revert.reason());
    assertEquals("execution reverted: InsufficientBalance(0, 10)", revert.getMessage());
    assertEquals(10, revert.values().orElseThrow().integer("need").intValue());
    assertEquals(data, revert.revertData());
    assertEquals(data.toString(), revert.data());
    assertEquals(3, revert.code());
  }

  @Test
  void soliditysOwnReasonsAreKnown() {
    RevertException reason = of("execution reverted: no", AbiError.REASON.encode("no"));
    assertEquals("no", reason.reason());
    assertEquals("execution reverted: no", reason.getMessage());
    RevertException panic = of("execution reverted", AbiError.PANIC.encode(0x11));
    assertEquals("panic 0x11, an arithmetic operation overflowed", panic.reason());
    assertEquals("panic 0x99", of("", AbiError.PANIC.encode(0x99)).reason());
  }

  @Test
  void anAbiThatCameLaterNamesTheError() {
    Abi none = Abi.of();
    RevertException before =
        RevertException.of(3, "execution reverted", ABI.errors().get(0).encode(1, 2), none);
    assertEquals("", before.reason());
    assertEquals("InsufficientBalance(1, 2)", before.with(ABI).reason());
    RevertException known = of("", AbiError.REASON.encode("no"));
    assertSame(known, known.with(ABI));
  }

  @Test
  void otherDataHasNoReason() {
    for (String data : new String[] {"0x", "0x08c379a0", "0x12345678", "0x08"}) {
      RevertException revert = of("execution reverted", Bytes.of(data));
      assertEquals("", revert.reason());
      assertEquals("execution reverted", revert.getMessage());
      assertTrue(revert.error().isEmpty());
    }
  }
}
