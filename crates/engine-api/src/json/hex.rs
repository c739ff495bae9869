//! DATA and QUANTITY, as strict as the specification (execution-apis `src/engine/common.md`,
//! "Encoding"): `0x` first, pairs of digits, no leading zeroes in a number.

use std::fmt;

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// DATA of any length: `"0x"` and pairs of hex digits.
#[derive(Debug, Default)]
pub struct Data(pub Bytes);

/// DATA of `N` bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct FixedData<const N: usize>(pub [u8; N]);

/// QUANTITY of at most 64 bits.
#[derive(Debug, Clone, Copy)]
pub struct Quantity(pub u64);

/// QUANTITY of at most 256 bits.
#[derive(Debug, Clone, Copy)]
pub struct Quantity256(pub U256);

impl From<FixedData<32>> for B256 {
    fn from(data: FixedData<32>) -> Self {
        data.0.into()
    }
}

impl From<FixedData<20>> for Address {
    fn from(data: FixedData<20>) -> Self {
        data.0.into()
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        parse_str(json, "bytes in hex, 0x first", |text| {
            let digits = digits(text)?;
            let mut bytes = vec![0; digits.len() / 2];
            decode(digits, &mut bytes)?;
            Ok(Self(bytes.into()))
        })
    }
}

impl<'de, const N: usize> Deserialize<'de> for FixedData<N> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        parse_str(json, "bytes in hex, 0x first", |text| {
            let digits = digits(text)?;
            if digits.len() != 2 * N {
                return Err(format!("{} hex digits instead of {}", digits.len(), 2 * N));
            }
            let mut bytes = [0; N];
            decode(digits, &mut bytes)?;
            Ok(Self(bytes))
        })
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        parse_str(json, "a number in hex, 0x first", |text| {
            let digits = number(text, 64)?;
            u64::from_str_radix(digits, 16).map(Self).map_err(|fault| fault.to_string())
        })
    }
}

impl<'de> Deserialize<'de> for Quantity256 {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        parse_str(json, "a number in hex, 0x first", |text| {
            let digits = number(text, 256)?;
            U256::from_str_radix(digits, 16).map(Self).map_err(|fault| fault.to_string())
        })
    }
}

/// Reads a JSON string through `read`, borrowed from the message where it has no escapes.
///
/// # Errors
/// When the JSON is no string, or with what `read` says is wrong with it. `expecting` completes the
/// sentence "expected ...".
pub fn parse_str<'de, D: Deserializer<'de>, T>(
    json: D,
    expecting: &'static str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct Text<F> {
        expecting: &'static str,
        read: F,
    }
    impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Text<F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.expecting)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            (self.read)(text).map_err(E::custom)
        }
    }
    json.deserialize_str(Text { expecting, read })
}

/// The digits of DATA.
fn digits(text: &str) -> Result<&str, String> {
    let digits = text.strip_prefix("0x").ok_or("hex must begin with 0x")?;
    // The decoder would take a second prefix away.
    if digits.starts_with("0x") {
        return Err("x is no hex digit".into());
    }
    if digits.len() % 2 == 1 {
        return Err(format!("an odd number of hex digits: {}", digits.len()));
    }
    Ok(digits)
}

fn decode(digits: &str, bytes: &mut [u8]) -> Result<(), String> {
    hex::decode_to_slice(digits, bytes).map_err(|fault| fault.to_string())
}

/// The digits of a QUANTITY of at most `bits`.
fn number(text: &str, bits: usize) -> Result<&str, String> {
    let digits = text.strip_prefix("0x").ok_or("a number must begin with 0x")?;
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err("a number is 0x and hex digits".into());
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return Err("a number has no leading zeroes".into());
    }
    if digits.len() > bits / 4 {
        return Err(format!("a number of more than {bits} bits"));
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;

    /// `None` where the JSON must be refused.
    #[track_caller]
    fn check<T: DeserializeOwned, V: PartialEq + fmt::Debug>(
        json: &str,
        value: fn(T) -> V,
        expected: Option<V>,
    ) {
        assert_eq!(serde_json::from_str::<T>(json).ok().map(value), expected, "{json}");
    }

    #[test]
    fn data_is_0x_and_pairs_of_digits() {
        let bytes = |data: Data| data.0.to_vec();
        check(r#""0x""#, bytes, Some(vec![]));
        check(r#""0x00fF""#, bytes, Some(vec![0, 255]));
        for bad in [r#""""#, r#""00""#, r#""0x0""#, r#""0xzz""#, r#""0x0x00""#, "1", "null"] {
            check(bad, bytes, None);
        }
    }

    #[test]
    fn data_of_a_length_has_that_length() {
        let bytes = |data: FixedData<2>| data.0;
        check(r#""0x0102""#, bytes, Some([1, 2]));
        for bad in [r#""0x01""#, r#""0x010203""#, r#""0102""#, r#""0x0x01""#, "[1,2]"] {
            check(bad, bytes, None);
        }
    }

    #[test]
    fn a_quantity_has_no_leading_zeroes() {
        let number = |quantity: Quantity| quantity.0;
        check(r#""0x0""#, number, Some(0));
        check(r#""0x1F""#, number, Some(31));
        check(r#""0xffffffffffffffff""#, number, Some(u64::MAX));
        for bad in
            [r#""0x""#, r#""0x01""#, r#""1""#, r#""0x+1""#, r#""0x10000000000000000""#, "1", "null"]
        {
            check(bad, number, None);
        }
    }

    #[test]
    fn a_quantity_may_have_256_bits() {
        let number = |quantity: Quantity256| quantity.0;
        check(r#""0x2""#, number, Some(U256::from(2)));
        check(&format!("\"0x{}\"", "f".repeat(64)), number, Some(U256::MAX));
        check(&format!("\"0x1{}\"", "0".repeat(64)), number, None);
    }
}
