//! Arguments that people write: accounts, blocks, amounts, data.

use std::fmt::LowerHex;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use anyhow::Context;
use rpc::quote;
use serde_json::{Value, json};

use crate::error::Misuse;
use crate::limits::{JSON_FILE_BYTES, POWER_OF_TEN};

/// Reads an address. Capitals are a checksum (EIP-55), which finds mistyped ones.
pub(crate) fn address(text: &str) -> Result<Address, String> {
    let expected = "expected an address: 0x and 40 hex digits";
    let address: Address = text.parse().map_err(|_| expected.to_owned())?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_mixed = digits.bytes().any(|byte| byte.is_ascii_lowercase())
        && digits.bytes().any(|byte| byte.is_ascii_uppercase());
    let checksummed = address.to_checksum(None);
    if is_mixed && checksummed[2..] != *digits {
        return Err(format!(
            "expected capitals that are its checksum (EIP-55), so it may be mistyped: if it is \
             right, write {checksummed}, or no capitals"
        ));
    }
    Ok(address)
}

/// Reads a hash of 32 bytes.
pub(crate) fn hash(text: &str) -> Result<B256, String> {
    text.parse().map_err(|_| "expected a hash: 0x and 64 hex digits".to_owned())
}

/// Reads bytes in hex.
pub(crate) fn data(text: &str) -> Result<Bytes, String> {
    let bytes = hex::decode(text).map_err(|error| format!("expected hex, as 0x1234: {error}"))?;
    Ok(bytes.into())
}

/// Reads a number, in decimal or in hex.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number.ok_or_else(|| "expected a number, as 7 or 0x7, below 2^64".to_owned())
}

/// Reads a time of at least one second and at most a day.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| "expected 1 to 86400 seconds".to_owned())
}

/// Reads a slot or another 256-bit number, in decimal or in hex.
pub(crate) fn word(text: &str) -> Result<U256, String> {
    let word = match text.strip_prefix("0x") {
        Some(digits) => U256::from_str_radix(digits, 16).ok(),
        None => U256::from_str_radix(text, 10).ok(),
    };
    word.filter(|_| !matches!(text, "" | "0x"))
        .ok_or_else(|| "expected a number, as 7 or 0x7, below 2^256".to_owned())
}

/// Reads an amount in wei: a number with a unit behind it or not, as `1ether`, `1.5gwei`, `1e18`,
/// `7`, `0x7`.
pub(crate) fn wei(text: &str) -> Result<U256, String> {
    let expected = || "expected an amount, as 7, 0x7, 1e18, 1.5gwei or 1ether".to_owned();
    if text.starts_with("0x") {
        return word(text);
    }
    let end = text.find(|char: char| char.is_ascii_alphabetic() || char == ' ');
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim_start().to_ascii_lowercase();
    let power = match &*unit {
        "" | "wei" => 0,
        "gwei" => 9,
        "ether" | "eth" => 18,
        unit => {
            let power = unit.strip_prefix('e').and_then(|power| power.parse().ok());
            power.filter(|power| *power <= POWER_OF_TEN).ok_or_else(expected)?
        }
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || digits.ends_with('.') {
        return Err(expected());
    }
    if unit.is_empty() && !part.is_empty() {
        return Err("expected a whole number of wei, or a unit behind it: 1.5gwei, 1.5ether".into());
    }
    if part.len() > power {
        return Err(format!(
            "expected a whole number of wei: {power} digits at most after the point"
        ));
    }
    let digits = format!("{whole}{part}{}", "0".repeat(power - part.len()));
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let wei = is_number.then(|| U256::from_str_radix(&digits, 10).ok());
    wei.ok_or_else(expected)?.ok_or_else(|| "expected less than 2^256 wei".to_owned())
}

/// A block as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockChoice {
    Number(u64),
    Hash(B256),
    Tag(&'static str),
}

/// The names of blocks.
const TAGS: [&str; 5] = ["latest", "earliest", "pending", "safe", "finalized"];

impl BlockChoice {
    pub(crate) const LATEST: Self = Self::Tag("latest");

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(tag) = TAGS.into_iter().find(|tag| *tag == text) {
            return Ok(Self::Tag(tag));
        }
        if let Ok(hash) = text.parse() {
            return Ok(Self::Hash(hash));
        }
        number(text).map(Self::Number).map_err(|_| {
            format!("expected a number (7 or 0x7), a hash, {} or finalized", TAGS[..4].join(", "))
        })
    }

    /// The parameter of methods that read state (EIP-1898).
    pub(crate) fn of_state(self) -> Value {
        match self {
            Self::Number(number) => quantity(number),
            Self::Hash(hash) => json!({ "blockHash": hash }),
            Self::Tag(tag) => json!(tag),
        }
    }

    /// The method that answers the block, and its first parameter.
    pub(crate) fn lookup(self) -> (&'static str, Value) {
        match self {
            Self::Hash(hash) => ("eth_getBlockByHash", json!(hash)),
            _ => ("eth_getBlockByNumber", self.of_state()),
        }
    }
}

/// A number as JSON-RPC writes it.
pub(crate) fn quantity(number: impl LowerHex) -> Value {
    json!(format!("{number:#x}"))
}

/// Reads JSON: the text itself where it begins with a bracket, else the file that it names.
pub(crate) fn json_or_file(option: &str, text: &str) -> anyhow::Result<Value> {
    let fault = |why: &dyn std::fmt::Display| {
        Misuse::error(format_args!("{option}: {}: {why}", quote(text)))
    };
    let is_json = text.trim_start().starts_with(['{', '[']);
    let content = match is_json {
        true => text.to_owned(),
        false => read_file(Path::new(text)).map_err(|error| fault(&error.root_cause()))?,
    };
    serde_json::from_str(&content).map_err(|error| fault(&error))
}

/// Reads a text file of bounded length.
pub(crate) fn read_file(path: &Path) -> anyhow::Result<String> {
    let mut content = String::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let read = file.take(JSON_FILE_BYTES + 1).read_to_string(&mut content);
    read.with_context(|| path.display().to_string())?;
    if content.len() as u64 > JSON_FILE_BYTES {
        anyhow::bail!("{}: longer than {JSON_FILE_BYTES} bytes", path.display());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_number_with_a_unit() {
        let check = |text: &str, expected: u128| {
            assert_eq!(wei(text), Ok(U256::from(expected)), "{text}");
        };
        check("7", 7);
        check("0x7", 7);
        check("1wei", 1);
        check("1.5gwei", 1_500_000_000);
        check("1ether", 1_000_000_000_000_000_000);
        check("1 ether", 1_000_000_000_000_000_000);
        check("0.000000000000000001ether", 1);
        check("1.23e2", 123);
        for wrong in ["", ".", "1.", ".5ether", "ether", "1.5", "0.5wei", "1 euro", "-1", "1e78"] {
            wei(wrong).expect_err(wrong);
        }
        assert!(wei("1e77").is_ok() && wei("2e77").is_err());
    }

    #[test]
    fn capitals_of_an_address_are_its_checksum() {
        let right = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
        let parsed = address(right).expect("right");
        assert_eq!(address(&right.to_lowercase()), Ok(parsed));
        let wrong = right.replace("Fd6", "fd6");
        assert!(address(&wrong).expect_err("no checksum").contains(right));
        address("0x12").expect_err("too short");
    }

    #[test]
    fn a_block_is_a_number_a_hash_or_a_tag() {
        let check = |text: &str, expected| assert_eq!(BlockChoice::parse(text), Ok(expected));
        check("7", BlockChoice::Number(7));
        check("0x1f", BlockChoice::Number(31));
        check("safe", BlockChoice::Tag("safe"));
        check(&B256::with_last_byte(3).to_string(), BlockChoice::Hash(B256::with_last_byte(3)));
        for wrong in ["", "0x", "-1", "head", "1.5", "0x10000000000000000"] {
            BlockChoice::parse(wrong).expect_err(wrong);
        }
    }
}
