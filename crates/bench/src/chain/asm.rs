//! An assembler of a few lines for the contracts of the workload.
//!
//! A word is an opcode in lower case, a number (pushed, as short as it is), `#number` (pushed as
//! two bytes), `:label` (a `jumpdest` with a name) or `@label` (its place, pushed as two bytes).
//! `//` begins a comment.

use std::collections::HashMap;

/// The opcodes that the contracts use: each byte before its name.
const OPCODES: &str = "
    00 stop          01 add           03 sub           09 mulmod        10 lt
    14 eq            16 and           17 or            1c shr           20 keccak256
    30 address       33 caller        35 calldataload  36 calldatasize  37 calldatacopy
    38 codesize      39 codecopy      3b extcodesize   3c extcodecopy   42 timestamp
    50 pop           51 mload         52 mstore        54 sload         55 sstore
    56 jump          57 jumpi         5a gas           80 dup1          81 dup2
    82 dup3          84 dup5          85 dup6          86 dup7          90 swap1
    a3 log3          a4 log4          f1 call          f3 return        f5 create2
    fd revert        ff selfdestruct
";

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
        } else if let Some(number) = word.strip_prefix('#') {
            code.push(PUSH0 + 2);
            code.extend(number.parse::<u16>().expect("a number of two bytes").to_be_bytes());
        } else if let Ok(number) = word.parse::<u64>() {
            let bytes = number.to_be_bytes();
            let short = &bytes[(number.leading_zeros() / 8) as usize..];
            code.push(PUSH0 + short.len() as u8);
            code.extend_from_slice(short);
        } else {
            code.push(opcode(word));
        }
    }
    for (label, at) in places {
        let target = labels.get(label).unwrap_or_else(|| panic!("no label {label}"));
        let target = u16::try_from(*target).expect("codes are short");
        code[at..at + 2].copy_from_slice(&target.to_be_bytes());
    }
    code
}

fn opcode(word: &str) -> u8 {
    let mut words = OPCODES.split_whitespace();
    while let (Some(byte), Some(name)) = (words.next(), words.next()) {
        if name == word {
            return u8::from_str_radix(byte, 16).expect("two hex digits");
        }
    }
    panic!("no opcode {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_pushed_as_short_as_they_are_and_labels_have_two_bytes() {
        let check = |text: &str, expected: &[u8]| assert_eq!(assemble(text), expected, "{text}");
        check("0 1 256 #1", &[0x5f, 0x60, 1, 0x61, 1, 0, 0x61, 0, 1]);
        check(":a @a jump // here", &[0x5b, 0x61, 0, 0, 0x56]);
        check("@end jump :end stop", &[0x61, 0, 4, 0x56, 0x5b, 0]);
    }
}
