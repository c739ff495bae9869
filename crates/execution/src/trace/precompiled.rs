//! Why precompiled contracts fail, which the EVM does not say.

use alloy_primitives::{Address, Bytes, U256, uint};
use sha2::{Digest as _, Sha256};

/// Why the precompiled contract fails on this input, with so much gas, in geth's words
/// (`core/vm/contracts.go`), as far as its length and its numbers tell. geth looks at the gas
/// first, the EVM at the length.
pub(crate) fn precompiled_fault(contract: Address, input: &Bytes, gas: u64) -> &'static str {
    let length = input.len();
    let item = |size: usize| length == 0 || !length.is_multiple_of(size);
    match contract.into_word().0 {
        word if word[..31] != [0; 31] => "precompile error",
        [.., 5] if power_gas(input) > u128::from(gas) => "out of gas",
        [.., 5] => "one or more of base/exponent/modulus length exceeded 1024 bytes",
        [.., 6] if has_large_word(input, 4) => "invalid fp.Element encoding",
        [.., 7] if has_large_word(input, 2) => "invalid fp.Element encoding",
        [.., 6 | 7] => "point is not on curve",
        [.., 8] if !length.is_multiple_of(192) => "bad elliptic curve pairing size",
        [.., 8] if has_large_word(input, length / 32) => "invalid fp.Element encoding",
        [.., 8] => "point is not on curve",
        [.., 9] if length != 213 => "invalid input length",
        [.., 9] => "invalid final flag",
        [.., 0x0a] if length != 192 => "invalid input length",
        [.., 0x0a] if !has_version_of(input) => "mismatched versioned hash",
        [.., 0x0a] => "error verifying kzg proof",
        [.., 0x0b] if length != 256 => "invalid input length",
        [.., 0x0c] if item(160) => "invalid input length",
        [.., 0x0d] if length != 512 => "invalid input length",
        [.., 0x0e] if item(288) => "invalid input length",
        [.., 0x0f] if gas < 37_700 + 32_600 * (length as u64 / 384) => "out of gas",
        [.., 0x0f] if item(384) => "invalid input length",
        [.., 0x10] if length != 64 => "invalid input length",
        [.., 0x11] if length != 128 => "invalid input length",
        [.., 0x0b..=0x11] if has_top_bytes(input) => "invalid field element top bytes",
        [.., 0x0b..=0x11] => "invalid point: not on curve",
        _ => "precompile error",
    }
}

/// Whether the versioned hash is that of the commitment (EIP-4844).
fn has_version_of(input: &[u8]) -> bool {
    let hash = Sha256::digest(&input[96..144]);
    input[0] == 1 && input[1..32] == hash[1..]
}

/// Whether the first field element has more than 48 bytes (EIP-2537).
fn has_top_bytes(input: &[u8]) -> bool {
    input[..16].iter().any(|byte| *byte != 0)
}

/// A word of the input, behind whose end zeros are read.
fn word(input: &[u8], index: usize) -> U256 {
    let mut word = [0; 32];
    for (byte, found) in word.iter_mut().zip(input.iter().skip(32 * index)) {
        *byte = *found;
    }
    U256::from_be_bytes(word)
}

/// Whether one of the first words is no element of the field of BN254 (EIP-196).
fn has_large_word(input: &[u8], words: usize) -> bool {
    (0..words).any(|index| word(input, index) >= BN254_MODULUS)
}

const BN254_MODULUS: U256 =
    uint!(21888242871839275222246405745257275088696311157297823662689037894645226208583_U256);

/// The least gas of an exponentiation (EIP-7883), whatever the exponent is.
fn power_gas(input: &[u8]) -> u128 {
    let length = |index| u64::try_from(word(input, index)).unwrap_or(u64::MAX);
    let [base, exponent, modulus] = [0, 1, 2].map(|index| u128::from(length(index)));
    let longest = base.max(modulus);
    let words = longest.div_ceil(8);
    let complexity = if longest > 32 { (2 * words).saturating_mul(words) } else { 16 };
    let iterations = 16 * exponent.saturating_sub(32);
    complexity.saturating_mul(iterations.max(1)).max(500)
}
