//! Parameters that tools write in more than one form.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;

/// A number: QUANTITY, decimal digits in a text, or a number of JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HexOrDecimal(pub(super) u64);

impl<'de> Deserialize<'de> for HexOrDecimal {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(json)?;
        let number = match &json {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            },
            _ => None,
        };
        number.map(Self).ok_or_else(|| D::Error::custom("a number of at most 64 bits is expected"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_in_each_form() {
        let read = |json: &str| serde_json::from_str(json).ok().map(|HexOrDecimal(number)| number);
        for json in ["\"0x1f\"", "\"0x1F\"", "\"31\"", "31"] {
            assert_eq!(read(json), Some(31), "{json}");
        }
        for json in ["\"\"", "\"0x\"", "-1", "1.5", "null", "[]", "\"0x10000000000000000\""] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
