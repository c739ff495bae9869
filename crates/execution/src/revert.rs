//! Why a call reverted, as contracts of Solidity say it.

use alloy_primitives::U256;

/// The first four bytes of keccak-256 of `Error(string)`, and of `Panic(uint256)`.
const ERROR: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];
const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71];

/// The reason in what a call reverted with, if it is written as Solidity does, in geth's words.
pub fn revert_reason(output: &[u8]) -> Option<String> {
    let (selector, arguments) = output.split_first_chunk()?;
    match *selector {
        ERROR => {
            let offset = usize::try_from(word(arguments, 0)?).ok()?;
            let length = usize::try_from(word(arguments, offset)?).ok()?;
            let text = arguments[offset + 32..].get(..length)?;
            Some(String::from_utf8_lossy(text).into_owned())
        }
        PANIC => Some(panic_reason(word(arguments, 0)?)),
        _ => None,
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<U256> {
    let word = bytes.get(offset..)?.first_chunk::<32>()?;
    Some(U256::from_be_bytes(*word))
}

/// The codes of Solidity, "Panic via assert and Error via require".
fn panic_reason(code: U256) -> String {
    let reason = match u64::try_from(code) {
        Ok(0x00) => "generic panic",
        Ok(0x01) => "assert(false)",
        Ok(0x11) => "arithmetic underflow or overflow",
        Ok(0x12) => "division or modulo by zero",
        Ok(0x21) => "enum overflow",
        Ok(0x22) => "invalid encoded storage byte array accessed",
        Ok(0x31) => "out-of-bounds array access; popping on an empty array",
        Ok(0x32) => "out-of-bounds access of an array or bytesN",
        Ok(0x41) => "out of memory",
        Ok(0x51) => "uninitialized function",
        _ => return format!("unknown panic code: {code:#x}"),
    };
    reason.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &[&[u8]], expected: Option<&str>) {
        assert_eq!(revert_reason(&output.concat()).as_deref(), expected);
    }

    fn number(number: u64) -> [u8; 32] {
        U256::from(number).to_be_bytes()
    }

    #[test]
    fn a_revert_tells_its_reason() {
        check(&[&ERROR, &number(32), &number(2), b"no"], Some("no"));
        check(&[&ERROR, &number(64), &number(9), &number(2), b"no...."], Some("no"));
        check(&[&ERROR, &number(32), &number(1), b"\xff"], Some("\u{fffd}"));
        check(&[&PANIC, &number(0x12)], Some("division or modulo by zero"));
        check(&[&PANIC, &number(0x1234)], Some("unknown panic code: 0x1234"));
        check(&[&PANIC, &[0xff; 32]], Some(&format!("unknown panic code: 0x{}", "f".repeat(64))));
    }

    #[test]
    fn a_revert_that_is_no_reason_has_none() {
        check(&[], None);
        check(&[b"\x08\xc3\x79"], None);
        check(&[&ERROR], None);
        check(&[&ERROR, &number(32)], None);
        check(&[&ERROR, &number(32), &number(3), b"no"], None);
        check(&[&ERROR, &[0xff; 32], &number(0)], None);
        check(&[&ERROR, &number(32), &[0xff; 32], b"no"], None);
        check(&[&PANIC, &[0; 31]], None);
        check(&[&[1, 2, 3, 4], &number(32), &number(2), b"no"], None);
    }
}
