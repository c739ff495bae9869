//! The words of state files, and errors about their accounts.

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{U256, hex};

use super::{AccountPosition, FORMS};
use crate::error::{Error, Location, quote};
use crate::input::Input;

/// The file of accounts, for errors about them.
#[derive(Debug, Clone)]
pub(super) struct AccountSource {
    file: Arc<Path>,
    packed: bool,
}

impl AccountSource {
    pub(super) fn of(input: &Input) -> Self {
        Self { file: input.file().clone(), packed: input.place(0).packed }
    }

    /// An error about the account at this position.
    pub(super) fn error(&self, at: AccountPosition, problem: impl Into<String>) -> Error {
        let AccountPosition { line, offset } = at;
        let (line, offset) = (Some(line), Some(offset));
        let place = Location { offset, packed: self.packed, line, block: None };
        Error::content(&self.file, place, problem)
    }
}

/// The hex digits of a text, with or without `0x`.
pub(super) fn digits(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text)
}

/// `N` bytes in hex.
pub(super) fn fixed<const BYTES: usize>(text: &[u8]) -> Result<[u8; BYTES], String> {
    let digits = digits(text);
    if digits.len() != 2 * BYTES {
        let shown = shown(text);
        return Err(format!("{BYTES} bytes in hex expected, {shown} found"));
    }
    let mut bytes = [0; BYTES];
    hex::decode_to_slice(digits, &mut bytes).map_err(|why| format!("{why} in {}", shown(text)))?;
    Ok(bytes)
}

/// A slot or a value of storage: up to 32 bytes in hex, in geth's dumps without leading zeros.
pub(super) fn storage_word(text: &[u8]) -> Result<[u8; 32], String> {
    let digits = digits(text);
    if digits.len() == 64 {
        return fixed(digits);
    }
    if digits.len() > 64 {
        let shown = shown(text);
        return Err(format!("up to 32 bytes in hex expected, {shown} found. {FORMS}"));
    }
    let mut padded = [b'0'; 64];
    padded[64 - digits.len()..].copy_from_slice(digits);
    fixed(&padded).map_err(|_| format!("up to 32 bytes in hex expected, {} found", shown(text)))
}

/// A number: decimal, or hex with `0x`.
pub(super) fn number(text: &[u8]) -> Result<U256, String> {
    let wrong = || format!("a number expected, {} found", shown(text));
    let digits = digits(text);
    let radix = if digits.len() < text.len() { 16 } else { 10 };
    let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
    // `from_str_radix` accepts underscores, and the empty text as zero.
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    U256::from_str_radix(digits, radix).map_err(|_| wrong())
}

/// The text found, shortened for an error.
pub(super) fn shown(text: &[u8]) -> String {
    format!("\"{}\"", quote(String::from_utf8_lossy(text)))
}
