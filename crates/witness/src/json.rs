//! JSON: `{"state": [...], "codes": [...], "headers": [...]}`, the answer of
//! `debug_executionWitness` (execution-apis #847): items in hex, headers as RLP.
//!
//! `keys` is optional there; it is never written, and ignored when read.

use crate::{DecodeError, NodeList, Witness, limits};
use alloy_primitives::Bytes;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use std::fmt::Formatter;

/// Appends the JSON object to `out`.
pub fn write(witness: &Witness, out: &mut Vec<u8>) {
    out.reserve(encoded_len(witness));
    let names = ["{\"state\":[", "],\"codes\":[", "],\"headers\":["];
    for (name, items) in names.into_iter().zip(witness.lists()) {
        out.extend_from_slice(name.as_bytes());
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            push_hex(item, out);
        }
    }
    out.extend_from_slice(b"]}");
}

/// Length of that object in bytes.
pub fn encoded_len(witness: &Witness) -> usize {
    let lists = witness.lists();
    let count: usize = lists.iter().map(|items| items.len()).sum();
    // Of each item two quotes and "0x", and a comma before all but the first of a list.
    let commas = count - lists.iter().filter(|items| !items.is_empty()).count();
    EMPTY.len() + 2 * witness.content_bytes() + 4 * count + commas
}

/// The object of a witness without items.
const EMPTY: &str = r#"{"state":[],"codes":[],"headers":[]}"#;

/// Reads the JSON object, with the limits of [`limits`]. Unknown members are ignored.
///
/// # Errors
/// When the JSON is malformed, lacks a list, or exceeds a limit.
pub fn decode(input: &[u8]) -> Result<Witness, DecodeError> {
    let Members(document) =
        serde_json::from_slice(input).map_err(|error| DecodeError::malformed("witness", error))?;
    document.try_into()
}

impl<'de> Deserialize<'de> for Witness {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Members(document) = Members::deserialize(deserializer)?;
        document.try_into().map_err(serde::de::Error::custom)
    }
}

/// A document that is an object: a derived `Deserialize` would also take an array of the lists.
struct Members(Document);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Members, A::Error> {
        Document::deserialize(MapAccessDeserializer::new(members)).map(Members)
    }
}

#[derive(Deserialize)]
struct Document {
    state: HexList<{ limits::ITEMS }>,
    codes: HexList<{ limits::ITEMS }>,
    headers: HexList<{ limits::HEADERS }>,
}

/// A list of at most `MOST` items; items beyond are only counted.
struct HexList<const MOST: usize> {
    items: Vec<HexItem>,
    count: usize,
}

impl<'de, const MOST: usize> Deserialize<'de> for HexList<MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor)
    }
}

struct ListVisitor<const MOST: usize>;

impl<'de, const MOST: usize> Visitor<'de> for ListVisitor<MOST> {
    type Value = HexList<MOST>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<HexList<MOST>, A::Error> {
        let mut items = Vec::new();
        while items.len() < MOST {
            let Some(item) = list.next_element()? else {
                return Ok(HexList { count: items.len(), items });
            };
            items.push(item);
        }
        let mut count = MOST;
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(HexList { items, count })
    }
}

/// One item: `0x` and its hex digits, the only form that the specification has.
struct HexItem(Bytes);

impl<'de> Deserialize<'de> for HexItem {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ItemVisitor)
    }
}

struct ItemVisitor;

impl Visitor<'_> for ItemVisitor {
    type Value = HexItem;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("hex digits after 0x")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<HexItem, E> {
        let wrong = || E::invalid_value(Unexpected::Other("another string"), &self);
        if !text.starts_with("0x") {
            return Err(wrong());
        }
        const_hex::decode(text).map(|bytes| HexItem(bytes.into())).map_err(|_| wrong())
    }
}

impl TryFrom<Document> for Witness {
    type Error = DecodeError;

    fn try_from(document: Document) -> Result<Self, DecodeError> {
        let Document { state, codes, headers } = document;
        for (field, items, count, limit) in [
            ("state", &state.items, state.count, limits::ITEMS),
            ("codes", &codes.items, codes.count, limits::ITEMS),
            ("headers", &headers.items, headers.count, limits::HEADERS),
        ] {
            DecodeError::check(field, count, limit)?;
            for HexItem(item) in items {
                DecodeError::check(field, item.len(), limits::ITEM_BYTES)?;
            }
        }
        let bytes = |items: Vec<HexItem>| items.into_iter().map(|HexItem(bytes)| bytes);
        let state = NodeList::from_iter(bytes(state.items));
        let (codes, headers) = (bytes(codes.items).collect(), bytes(headers.items).collect());
        Ok(Self { state, codes, headers })
    }
}

fn push_hex(item: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"0x");
    let start = out.len();
    out.resize(start + 2 * item.len(), 0);
    const_hex::encode_to_slice(item, &mut out[start..]).expect("two digits a byte");
    out.push(b'"');
}

#[cfg(test)]
mod tests;
