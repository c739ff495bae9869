//! Where a code may jump to: found once, when the code is stored.

const JUMPDEST: u8 = 0x5b;
const PUSH1: u8 = 0x60;
const PUSH32: u8 = 0x7f;

/// Bytes of the table of a code of so many: a bit for each.
pub(crate) const fn table_bytes(code_bytes: usize) -> usize {
    code_bytes.div_ceil(8)
}

/// Appends a code's table: a bit for each byte, the lowest first, set where the byte is a
/// `JUMPDEST` and no operand of a `PUSH` (the valid jump destinations of the Yellow Paper, 9.4.3).
pub(crate) fn push_table(code: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + table_bytes(code.len()), 0);
    let table = &mut out[start..];
    let mut at = 0;
    while let Some(&instruction) = code.get(at) {
        match instruction {
            JUMPDEST => table[at / 8] |= 1 << (at % 8),
            PUSH1..=PUSH32 => at += usize::from(instruction - PUSH1) + 1,
            _ => (),
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(code: &[u8]) -> Vec<u8> {
        let mut table = Vec::new();
        push_table(code, &mut table);
        table
    }

    #[test]
    fn operands_are_no_destinations() {
        assert_eq!(table(&[]), []);
        assert_eq!(table(&[0x5b]), [1]);
        // PUSH1 5b, JUMPDEST; PUSH2 5b 5b, JUMPDEST; and a PUSH32 that ends too early.
        assert_eq!(
            table(&[0x60, 0x5b, 0x5b, 0x61, 0x5b, 0x5b, 0x5b, 0x7f, 0x5b]),
            [0b0100_0100, 0]
        );
        assert_eq!(table(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0x5b]), [0, 2]);
    }
}
