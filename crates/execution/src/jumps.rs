use alloy_primitives::Bytes;
use revm::bytecode::opcode::{JUMPDEST, PUSH1, PUSH32};

/// The valid jump destinations of a code (Yellow Paper, 9.4.3): one bit for each byte of the code,
/// the lowest bit of a byte first. A bit is set where the byte is a `JUMPDEST` and not part of the
/// operand of a `PUSH`.
///
/// A store that keeps this table beside a code saves the analysis each time the code is loaded
/// ([`CodeCache`](crate::CodeCache)).
///
/// ```
/// // PUSH1 5b, JUMPDEST: the operand is no destination.
/// assert_eq!(deponent_execution::jump_table(&[0x60, 0x5b, 0x5b])[..], [0b100]);
/// ```
pub fn jump_table(code: &[u8]) -> Bytes {
    let mut table = vec![0; code.len().div_ceil(8)];
    let mut at = 0;
    while let Some(&instruction) = code.get(at) {
        match instruction {
            JUMPDEST => table[at / 8] |= 1 << (at % 8),
            PUSH1..=PUSH32 => at += usize::from(instruction - PUSH1) + 1,
            _ => (),
        }
        at += 1;
    }
    table.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_no_destinations() {
        let table = |code: &[u8]| jump_table(code).to_vec();
        assert!(table(&[]).is_empty());
        assert_eq!(table(&[0x5b]), [1]);
        // PUSH1 5b, JUMPDEST; PUSH2 5b 5b, JUMPDEST; and a PUSH32 that ends too early.
        assert_eq!(
            table(&[0x60, 0x5b, 0x5b, 0x61, 0x5b, 0x5b, 0x5b, 0x7f, 0x5b]),
            [0b0100_0100, 0]
        );
        assert_eq!(table(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0x5b]), [0, 2]);
    }
}
