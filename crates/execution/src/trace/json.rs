//! JSON as tracers write it: straight into a text, so that its bytes can be counted.

use alloy_primitives::{Address, B256, hex};
use std::fmt::{LowerHex, Write as _};

/// `"name":`, after a comma unless it is the object's first member.
pub(crate) fn member(out: &mut String, name: &str) {
    if !out.ends_with(['{', '[']) {
        out.push(',');
    }
    let _ = write!(out, "\"{name}\":");
}

/// A number in hex, without leading zeros.
pub(crate) fn quantity(out: &mut String, value: impl LowerHex) {
    let _ = write!(out, "\"{value:#x}\"");
}

/// A number in decimal.
pub(crate) fn number(out: &mut String, value: u64) {
    let _ = write!(out, "{value}");
}

/// Bytes in hex.
pub(crate) fn bytes(out: &mut String, bytes: &[u8]) {
    out.push_str("\"0x");
    for chunk in bytes.chunks(32) {
        let mut digits = [0; 64];
        let digits = &mut digits[..2 * chunk.len()];
        // The slice has two digits a byte.
        let _ = hex::encode_to_slice(chunk, digits);
        out.push_str(std::str::from_utf8(digits).unwrap_or_default());
    }
    out.push('"');
}

pub(crate) fn address(out: &mut String, address: Address) {
    bytes(out, address.as_slice());
}

pub(crate) fn word(out: &mut String, word: B256) {
    bytes(out, word.as_slice());
}

pub(crate) fn text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            control if u32::from(control) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A list of what `write` writes of each item.
pub(crate) fn list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_texts_are_read_back() {
        for given in ["", "plain", "\"quoted\\", "\u{0}\u{1f}\n\t", "ünï\u{fffd}"] {
            let mut out = String::new();
            text(&mut out, given);
            assert_eq!(serde_json::from_str::<String>(&out).ok().as_deref(), Some(given), "{out}");
        }
    }

    #[test]
    fn bytes_are_digits() {
        let mut out = String::new();
        let many: Vec<u8> = (0..100).collect();
        bytes(&mut out, &many);
        assert_eq!(out, format!("\"{}\"", hex::encode_prefixed(&many)));
    }
}
