//! Values of the ABI as text and as JSON.

use alloy_dyn_abi::{DynSolType, DynSolValue};
use alloy_primitives::{I256, U256, hex};
use serde_json::{Value, json};

use super::last_line;
use crate::input;

/// Bits of the integers that all programs read from a JSON number, which many keep as a 64-bit
/// float.
const NUMBER_BITS: usize = 48;

/// Digits of a number that is repeated as a power of ten, from five digits on.
const MANTISSA_DIGITS: usize = 4;

/// Reads a value. A mistyped address is found by its checksum.
pub(super) fn read(ty: &DynSolType, text: &str) -> Result<DynSolValue, String> {
    match ty {
        DynSolType::Address => input::address(text.trim()).map(DynSolValue::Address),
        _ => ty.coerce_str(text).map_err(|error| expected(ty).unwrap_or_else(|| last_line(&error))),
    }
}

/// The texts that are values of a simple type.
fn expected(ty: &DynSolType) -> Option<String> {
    Some(match ty {
        DynSolType::Uint(bits) => {
            format!("expected a whole number from 0 to 2^{bits}-1, as 7, 0x7 or 1ether")
        }
        DynSolType::Int(bits) => {
            let bits = bits - 1;
            format!("expected a whole number from -2^{bits} to 2^{bits}-1, as -7")
        }
        DynSolType::Bool => "expected true or false".into(),
        DynSolType::FixedBytes(size) => {
            format!("expected 0x and {} hex digits", 2 * size)
        }
        DynSolType::Bytes => "expected hex, as 0x1234".into(),
        _ => return None,
    })
}

/// Values, each on a line. Of a large integer, its power of ten is shown, too.
pub(crate) fn text_of(values: &[DynSolValue]) -> String {
    values.iter().map(|value| text(value) + "\n").collect()
}

/// A value as text, in the form that [`read`] takes: strings are quoted.
pub(super) fn text(value: &DynSolValue) -> String {
    let list = |values: &[DynSolValue]| values.iter().map(text).collect::<Vec<_>>().join(", ");
    match value {
        DynSolValue::Bool(value) => value.to_string(),
        DynSolValue::Int(value, _) => integer(value.is_negative(), &value.unsigned_abs()),
        DynSolValue::Uint(value, _) => integer(false, value),
        DynSolValue::FixedBytes(word, size) => hex::encode_prefixed(&word[..(*size).min(32)]),
        DynSolValue::Address(address) => address.to_checksum(None),
        DynSolValue::Function(function) => function.to_string(),
        DynSolValue::Bytes(bytes) => hex::encode_prefixed(bytes),
        DynSolValue::String(text) => format!("{text:?}"),
        DynSolValue::Array(values) | DynSolValue::FixedArray(values) => {
            format!("[{}]", list(values))
        }
        DynSolValue::Tuple(values) | DynSolValue::CustomStruct { tuple: values, .. } => {
            format!("({})", list(values))
        }
    }
}

fn integer(is_negative: bool, size: &U256) -> String {
    let (sign, digits) = (if is_negative { "-" } else { "" }, size.to_string());
    if digits.len() <= MANTISSA_DIGITS {
        return format!("{sign}{digits}");
    }
    let mantissa = digits[..MANTISSA_DIGITS].trim_end_matches('0');
    let (first, rest) = mantissa.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{digits} [{sign}{first}{point}{rest}e{}]", digits.len() - 1)
}

/// A value as JSON: integers of more than 48 bits and bytes are strings, lists and tuples lists.
pub(crate) fn to_json(value: &DynSolValue) -> Value {
    match value {
        DynSolValue::Bool(value) => json!(value),
        DynSolValue::Int(value, bits) if *bits <= NUMBER_BITS => {
            i64::try_from(*value).map_or_else(|_| json!(value.to_string()), |small| json!(small))
        }
        DynSolValue::Uint(value, bits) if *bits <= NUMBER_BITS => {
            u64::try_from(*value).map_or_else(|_| json!(value.to_string()), |small| json!(small))
        }
        DynSolValue::Int(value, _) => json!(I256::to_string(value)),
        DynSolValue::Uint(value, _) => json!(value.to_string()),
        DynSolValue::String(text) => json!(text),
        DynSolValue::Array(values)
        | DynSolValue::FixedArray(values)
        | DynSolValue::Tuple(values)
        | DynSolValue::CustomStruct { tuple: values, .. } => values.iter().map(to_json).collect(),
        DynSolValue::FixedBytes(..)
        | DynSolValue::Address(_)
        | DynSolValue::Function(_)
        | DynSolValue::Bytes(_) => json!(text(value)),
    }
}
