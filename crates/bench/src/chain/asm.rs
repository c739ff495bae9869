//! An assembler of a few lines for the contracts of the workload.
//!
//! A word is an opcode in lower case, a number (pushed, as short as it is), `:label` (a
//! `jumpdest` with a name) or `@label` (its place, pushed). `//` begins a comment.

use std::collections::HashMap;

const OPCODES: &[(&str, u8)] = &[
    ("stop", 0x00),
    ("add", 0x01),
    ("sub", 0x03),
    ("mulmod", 0x09),
    ("lt", 0x10),
    ("eq", 0x14),
    ("and", 0x16),
    ("or", 0x17),
    ("shr", 0x1c),
    ("keccak256", 0x20),
    ("address", 0x30),
    ("caller", 0x33),
    ("calldataload", 0x35),
    ("calldatasize", 0x36),
    ("calldatacopy", 0x37),
    ("codesize", 0x38),
    ("codecopy", 0x39),
    ("extcodesize", 0x3b),
    ("extcodecopy", 0x3c),
    ("timestamp", 0x42),
    ("pop", 0x50),
    ("mload", 0x51),
    ("mstore", 0x52),
    ("sload", 0x54),
    ("sstore", 0x55),
    ("jump", 0x56),
    ("jumpi", 0x57),
    ("gas", 0x5a),
    ("dup1", 0x80),
    ("dup2", 0x81),
    ("dup3", 0x82),
    ("dup5", 0x84),
    ("dup6", 0x85),
    ("dup7", 0x86),
    ("swap1", 0x90),
    ("log3", 0xa3),
    ("log4", 0xa4),
    ("call", 0xf1),
    ("return", 0xf3),
    ("create2", 0xf5),
    ("revert", 0xfd),
];

const PUSH0: u8 = 0x5f;
const JUMPDEST: u8 = 0x5b;

/// The code of `text`, which is ours: a mistake in it is a panic.
pub(crate) fn assemble(text: &str) -> Vec<u8> {
    let mut code = Vec::new();
    let mut labels = HashMap::new();
    let mut places = Vec::new();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    for word in lines.flat_map(str::split_whitespace) {
        if let Some(label) = word.strip_prefix(':') {
            assert!(labels.insert(label, code.len()).is_none(), "two labels {label}");
            code.push(JUMPDEST);
        } else if let Some(label) = word.strip_prefix('@') {
            places.push((label, code.len() + 1));
            code.extend_from_slice(&[PUSH0 + 2, 0, 0]);
        } else if let Ok(number) = word.parse::<u64>() {
            push(&mut code, number);
        } else {
            let known = OPCODES.iter().find(|(name, _)| *name == word);
            code.push(known.unwrap_or_else(|| panic!("no opcode {word}")).1);
        }
    }
    for (label, at) in places {
        let target = labels.get(label).unwrap_or_else(|| panic!("no label {label}"));
        let target = u16::try_from(*target).expect("codes are short");
        code[at..at + 2].copy_from_slice(&target.to_be_bytes());
    }
    code
}

fn push(code: &mut Vec<u8>, number: u64) {
    let bytes = number.to_be_bytes();
    let short = &bytes[(number.leading_zeros() / 8) as usize..];
    code.push(PUSH0 + short.len() as u8);
    code.extend_from_slice(short);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_pushed_as_short_as_they_are_and_labels_have_two_bytes() {
        let check = |text: &str, expected: &[u8]| assert_eq!(assemble(text), expected, "{text}");
        check("0 1 256", &[0x5f, 0x60, 1, 0x61, 1, 0]);
        check(":a @a jump // here", &[0x5b, 0x61, 0, 0, 0x56]);
        check("@end jump :end stop", &[0x61, 0, 4, 0x56, 0x5b, 0]);
    }
}
