//! Witnesses as other tools write them. The canonical form of `docs/witness.md` is one of many that
//! say the same: all are read here, and what differed is told.

use std::fmt;
use std::marker::PhantomData;

use alloy_consensus::Header;
use alloy_primitives::{Bytes, hex};
use rpc::{ClientError, read_json, response};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use witness::{HeaderOrder, NodeList, Witness, limits};

/// A witness, in canonical form as far as that says nothing about its content.
#[derive(Debug)]
pub struct ForeignWitness {
    /// The witness, its headers in canonical order.
    pub witness: Witness,
    /// How the form differed from the canonical one.
    pub differences: Vec<String>,
    /// The members of answers inside which it was, the outermost first: `result`, `witness`. They
    /// are no part of its form.
    pub envelopes: Vec<&'static str>,
    /// Its `keys`, as far as they can be read: addresses and slots, before they were hashed.
    pub keys: Vec<Bytes>,
}

/// Envelopes of JSON-RPC inside one another.
const ENVELOPES: usize = 3;

impl ForeignWitness {
    /// Reads a witness: RLP in hex, or an object with `state`, `codes` and `headers`, perhaps
    /// inside `result` or `witness` of an answer.
    ///
    /// Headers may be in any order, and objects, as geth has them. Lists may be `null`, or objects
    /// whose values are the items. Hex may be of either case and without `0x`. Nothing of this can
    /// change a verdict: every item is found by its hash.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn read(json: &str) -> Result<Self, String> {
        let (mut json, mut envelopes) = (json, Vec::new());
        while let Some((name, inner)) = inside_envelope(json)? {
            if envelopes.len() == ENVELOPES {
                return Err("the witness is inside too many envelopes".into());
            }
            envelopes.push(name);
            json = inner;
        }
        let (mut differences, mut keys) = (Vec::new(), Vec::new());
        let witness = lists(json, &mut differences, &mut keys)?;
        Ok(Self { keys, envelopes, ..Self::normalised(witness, differences) })
    }

    /// Reads the content of a file: what [`read`](Self::read) takes, or RLP or SSZ, as it is or in
    /// hex. Headers may be in any order.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn read_file(content: &[u8]) -> Result<Self, String> {
        let text =
            std::str::from_utf8(content).map(|text| text.trim_start_matches('\u{feff}').trim());
        if let Some(text) = text.ok().filter(|text| text.starts_with('{')) {
            return Self::read(text);
        }
        Self::read_bytes(&files::unhexed(content).unwrap_or_else(|| content.to_vec()).into())
    }

    fn read_bytes(bytes: &Bytes) -> Result<Self, String> {
        // An SSZ container begins with its first offset, RLP with a list.
        let witness = match bytes[..] {
            [0x0c, 0, 0, 0, ..] => witness::ssz::decode(bytes),
            [0xc0..=0xff, ..] => witness::rlp::decode(bytes),
            _ => return Err("the witness is neither JSON, RLP nor SSZ".into()),
        };
        Ok(Self::normalised(witness.map_err(|fault| fault.to_string())?, Vec::new()))
    }

    /// Puts the headers in order, and says so.
    fn normalised(mut witness: Witness, mut differences: Vec<String>) -> Self {
        let order = match witness.sort_headers() {
            HeaderOrder::Ascending => None,
            HeaderOrder::Descending => Some("headers reversed"),
            HeaderOrder::Mixed => Some("headers out of order, or some twice"),
        };
        differences.extend(order.map(str::to_owned));
        Self { witness, differences, envelopes: Vec::new(), keys: Vec::new() }
    }
}

/// The content of an answer or a status, and the member that has it; `None` for a witness.
fn inside_envelope(json: &str) -> Result<Option<(&'static str, &str)>, String> {
    if json.starts_with('"') {
        return Ok(None);
    }
    let names = ["state", "result", "witness", "error"];
    let members = fields(json, names).map_err(|fault| format!("the witness is {fault}"))?;
    let [state, result, witness, error] = members;
    if state.is_some() {
        return Ok(None);
    }
    if let Some(reason) = without_result(result, error) {
        return Err(reason);
    }
    if witness == Some("null") {
        return Err("the witness is null: the server made none".into());
    }
    let inner = |name, member: Option<_>| member.map(|member| (name, member));
    Ok(inner("result", result).or(inner("witness", witness)))
}

fn lists(
    json: &str,
    differences: &mut Vec<String>,
    keys_given: &mut Vec<Bytes>,
) -> Result<Witness, String> {
    if json.starts_with('"') {
        let Hex { bytes, .. } = read_json(json).map_err(|fault| format!("the witness: {fault}"))?;
        differences.push("RLP instead of JSON".into());
        return witness::rlp::decode(&bytes).map_err(|fault| fault.to_string());
    }
    let members = fields(json, ["state", "codes", "headers", "keys"]);
    let [state, codes, headers, keys] =
        members.map_err(|fault| format!("the witness is {fault}"))?;
    if let Some(keys) = keys.filter(|keys| *keys != "[]") {
        differences.push("keys given".into());
        // They are of no consequence, so whatever is there is taken.
        let read = read_json::<Option<Items<Hex, { limits::ITEMS }>>>(keys).ok().flatten();
        keys_given.extend(read.into_iter().flat_map(|keys| keys.items).map(|key| key.bytes));
    }
    let state = items::<Hex, { limits::ITEMS }>("state", state, differences)?;
    let codes = items::<Hex, { limits::ITEMS }>("codes", codes, differences)?;
    let headers = items::<HeaderItem, { limits::HEADERS }>("headers", headers, differences)?;
    if headers.iter().any(|header| header.is_object) {
        differences.push("headers as JSON objects".into());
    }
    let headers: Vec<_> = headers.into_iter().map(|header| header.rlp).collect();
    let all = || state.iter().chain(&codes).chain(&headers);
    if all().any(|item| !item.has_prefix) {
        differences.push("hex without 0x".into());
    }
    if all().any(|item| item.is_upper) {
        differences.push("hex in upper case".into());
    }
    if let Some(long) = all().find(|item| item.bytes.len() > limits::ITEM_BYTES) {
        let (got, most) = (long.bytes.len(), limits::ITEM_BYTES);
        return Err(format!("the witness: an item of {got} bytes, at most {most} are allowed"));
    }
    let [state, codes, headers] = [state, codes, headers]
        .map(|items| items.into_iter().map(|item| item.bytes).collect::<Vec<_>>());
    Ok(Witness { state: NodeList::from(state), codes, headers })
}

/// Why an answer of JSON-RPC has no content: the server's error, or a `null`; `None` where it has,
/// or where these members are no answer's.
pub(crate) fn without_result(result: Option<&str>, error: Option<&str>) -> Option<String> {
    match (error, result) {
        (None | Some("null"), Some("null")) => {
            Some("an answer of JSON-RPC whose result is null: the server has no such block".into())
        }
        (None | Some("null"), _) => None,
        (Some(error), _) => {
            let shown = match read_json::<rpc::Error>(error) {
                Ok(error) => error.to_string(),
                Err(_) => rpc::quote(error),
            };
            Some(format!("an answer of JSON-RPC that is an error: {shown}"))
        }
    }
}

/// The members of an object with these names, as they stand there.
pub(crate) fn fields<'a, const N: usize>(
    json: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a str>; N], String> {
    response::fields(json, names).map_err(|fault| match fault {
        ClientError::Malformed(reason) => reason,
        fault => fault.to_string(),
    })
}

/// The items of a list that may be `null`.
fn items<'a, T: Deserialize<'a>, const MOST: usize>(
    name: &str,
    json: Option<&'a str>,
    differences: &mut Vec<String>,
) -> Result<Vec<T>, String> {
    let json = json.ok_or_else(|| format!("the witness: {name} is missing"))?;
    let read = read_json::<Option<Items<T, MOST>>>(json);
    let Some(items) = read.map_err(|fault| format!("the witness: {name}: {fault}"))? else {
        differences.push(format!("{name} is null"));
        return Ok(Vec::new());
    };
    if items.is_object {
        differences.push(format!("{name} as an object"));
    }
    Ok(items.items)
}

/// At most `MOST` items, in an array or as the values of an object.
struct Items<T, const MOST: usize> {
    items: Vec<T>,
    is_object: bool,
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Items<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(ItemsVisitor(PhantomData))
    }
}

struct ItemsVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> ItemsVisitor<T, MOST> {
    fn take<E: Error>(
        is_object: bool,
        mut next: impl FnMut() -> Result<Option<T>, E>,
    ) -> Result<Items<T, MOST>, E> {
        let mut items = Vec::new();
        while let Some(item) = next()? {
            if items.len() == MOST {
                return Err(E::custom(format_args!("more than {MOST} items")));
            }
            items.push(item);
        }
        Ok(Items { items, is_object })
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for ItemsVisitor<T, MOST> {
    type Value = Items<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        Self::take(false, || list.next_element())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        Self::take(true, || Ok(map.next_entry::<IgnoredAny, T>()?.map(|(_, value)| value)))
    }
}

/// Hex digits, with or without `0x`.
struct Hex {
    bytes: Bytes,
    has_prefix: bool,
    is_upper: bool,
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        engine_api::json::parse_str(json, "hex digits", |text| {
            let stripped = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            let digits = stripped.unwrap_or(text);
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err("an item is hex digits".into());
            }
            let bytes = hex::decode(digits).map_err(|fault| fault.to_string())?;
            let is_upper = text.bytes().any(|digit| digit.is_ascii_uppercase());
            Ok(Self { bytes: bytes.into(), has_prefix: stripped.is_some(), is_upper })
        })
    }
}

/// A header as RLP in hex, or as an object.
struct HeaderItem {
    rlp: Hex,
    is_object: bool,
}

impl<'de> Deserialize<'de> for HeaderItem {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = HeaderItem;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a header, as RLP in hex or as an object")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<HeaderItem, E> {
                let text = serde::de::value::StrDeserializer::new(text);
                Hex::deserialize(text).map(|rlp| HeaderItem { rlp, is_object: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<HeaderItem, A::Error> {
                let header = Header::deserialize(MapAccessDeserializer::new(members))?;
                let bytes = alloy_rlp::encode(&header).into();
                let rlp = Hex { bytes, has_prefix: true, is_upper: false };
                Ok(HeaderItem { rlp, is_object: true })
            }
        }
        json.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests;
