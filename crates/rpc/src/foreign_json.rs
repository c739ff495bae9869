//! JSON that others wrote, read into types of ours.

use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use crate::quote::{quote, shortened};

/// Reads JSON that may come from anywhere.
///
/// It reads what [`serde_json::from_str`] does, but for two things. The error repeats at most 200
/// characters of a text that it names, and takes no more memory than that: serde's own
/// would be up to six times as long as a text of the wrong type. And a struct is read from an
/// object alone, not from an array that lists its members.
///
/// # Errors
/// If the text is not JSON, or not a `T`.
///
/// ```
/// let error = deponent_rpc::read_json::<u64>(&format!("\"{}\"", "a".repeat(1 << 20)));
/// let text = error.expect_err("no number").to_string();
/// assert!(text.starts_with("invalid type: string \"aaa") && text.len() < 300, "{text}");
/// ```
pub fn read_json<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(Foreign(&mut json))?;
    json.end()?;
    Ok(value)
}

/// As [`read_json`], from bytes that should be UTF-8.
///
/// # Errors
/// As [`read_json`], and if they are not.
pub fn read_json_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = T::deserialize(Foreign(&mut json))?;
    json.end()?;
    Ok(value)
}

/// A deserializer, a visitor, or another part of reading, whose values are foreign.
pub(crate) struct Foreign<T>(pub(crate) T);

/// A visitor of a struct.
struct StructVisitor<V>(V);

/// An error whose text is short.
#[derive(Debug)]
struct ShortError(String);

impl fmt::Display for ShortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ShortError {}

impl de::Error for ShortError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(shortened(text))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            Unexpected::Str(text) => {
                let text = quote(text);
                Self(format!("invalid type: string \"{text}\", expected {expected}"))
            }
            found => Self(format!("invalid type: {found}, expected {expected}")),
        }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            Unexpected::Str(text) => {
                let text = quote(text);
                Self(format!("invalid value: string \"{text}\", expected {expected}"))
            }
            found => Self(format!("invalid value: {found}, expected {expected}")),
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let names = expected.join(", ");
        Self(format!("unknown variant \"{}\", expected one of {names}", quote(variant)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let names = expected.join(", ");
        Self(format!("unknown field \"{}\", expected one of {names}", quote(field)))
    }
}

/// Forwards to the functions of the same names.
macro_rules! forward {
    ($($name:ident ($($argument:ident: $type:ty),*),)*) => {$(
        fn $name<V: Visitor<'de>>(self, $($argument: $type,)* to: V) -> Result<V::Value, D::Error> {
            self.0.$name($($argument,)* Foreign(to))
        }
    )*};
}

/// Takes any value, which the visitor accepts or not: asked for one kind, `serde_json` would write
/// the error itself.
macro_rules! any {
    ($($name:ident ($($argument:ident: $type:ty),*),)*) => {$(
        fn $name<V: Visitor<'de>>(self, $($argument: $type,)* to: V) -> Result<V::Value, D::Error> {
            $(_ = $argument;)*
            self.0.deserialize_any(Foreign(to))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Foreign<D> {
    type Error = D::Error;

    // Their errors have no text of a value; large numbers, raw values and keys need the function.
    forward! {
        deserialize_any(), deserialize_i128(), deserialize_u128(), deserialize_char(),
        deserialize_str(), deserialize_string(), deserialize_bytes(), deserialize_byte_buf(),
        deserialize_option(), deserialize_newtype_struct(name: &'static str),
        deserialize_identifier(), deserialize_ignored_any(),
        deserialize_enum(name: &'static str, variants: &'static [&'static str]),
    }

    any! {
        deserialize_bool(), deserialize_i8(), deserialize_i16(), deserialize_i32(),
        deserialize_i64(), deserialize_u8(), deserialize_u16(), deserialize_u32(),
        deserialize_u64(), deserialize_f32(), deserialize_f64(), deserialize_unit(),
        deserialize_unit_struct(name: &'static str), deserialize_seq(),
        deserialize_tuple(len: usize), deserialize_tuple_struct(name: &'static str, len: usize),
        deserialize_map(),
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(StructVisitor(to))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for StructVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<V::Value, E> {
        Err(E::custom(ShortError::invalid_type_of(text, &self)))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Foreign(members))
    }
}

impl ShortError {
    fn invalid_type_of(text: &str, expected: &dyn Expected) -> Self {
        de::Error::invalid_type(Unexpected::Str(text), expected)
    }
}

macro_rules! visit {
    ($($name:ident: $type:ty,)*) => {$(
        fn $name<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$name::<ShortError>(value).map_err(E::custom)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Foreign<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128,
        visit_f64: f64, visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none::<ShortError>().map_err(E::custom)
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit::<ShortError>().map_err(E::custom)
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Foreign(json))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Foreign(json))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Foreign(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Foreign(members))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Foreign(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Foreign<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Foreign(json))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Foreign<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Foreign(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Foreign<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Foreign(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Foreign(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Foreign<A> {
    type Error = A::Error;
    type Variant = Foreign<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, content) = self.0.variant_seed(Foreign(seed))?;
        Ok((name, Foreign(content)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Foreign<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Foreign(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, to: V) -> Result<V::Value, A::Error> {
        self.0.newtype_variant_seed(AnyOf(Foreign(to)))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, A::Error> {
        self.0.newtype_variant_seed(AnyOf(StructVisitor(to)))
    }
}

/// Any value, for a visitor.
struct AnyOf<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for AnyOf<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        json.deserialize_any(self.0)
    }
}

#[cfg(test)]
mod tests;
