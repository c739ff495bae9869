//! Reads large answers in place: nothing is copied before it is decoded.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::client::error::{ClientError, malformed};
use crate::jsonrpc::error::{Error, quote};

/// The `result` of an answer, as it stands in the body.
///
/// # Errors
/// [`ClientError::Rpc`] for an error object, [`ClientError::Malformed`] if the body is no answer.
pub fn result(body: &[u8]) -> Result<&RawValue, ClientError> {
    AnswerEnvelope::read(body)?.result()
}

/// The fields of an object with these names, as they stand there, in one scan.
///
/// # Errors
/// [`ClientError::Malformed`] if it is not an object.
///
/// ```
/// let body = br#"{"id":1,"result":{"status":"VALID","witness":"0xc0"}}"#;
/// let result = deponent_rpc::response::result(body)?;
/// let [witness, extra] = deponent_rpc::response::fields(result, ["witness", "extra"])?;
/// assert_eq!(deponent_rpc::response::bytes(witness.expect("there"))?, [0xc0]);
/// assert!(extra.is_none());
/// # Ok::<(), deponent_rpc::ClientError>(())
/// ```
pub fn fields<'a, const N: usize>(
    object: &'a RawValue,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N], ClientError> {
    find(object.get(), names)
}

/// One field of an object, as it stands there.
///
/// # Errors
/// [`ClientError::Malformed`] if it is absent, or this is not an object.
pub fn field<'a>(object: &'a RawValue, name: &str) -> Result<&'a RawValue, ClientError> {
    let [value] = fields(object, [name])?;
    value.ok_or_else(|| ClientError::Malformed(format!("the field {name} is missing")))
}

/// The members of an answer.
pub(crate) struct AnswerEnvelope<'a> {
    pub(crate) id: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> AnswerEnvelope<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, ClientError> {
        let text = std::str::from_utf8(body).map_err(malformed)?;
        let [id, result, error] = find(text, ["id", "result", "error"])?;
        // Some servers write a null beside the other one.
        let error = error.filter(|error| error.get() != "null");
        Ok(Self { id, result, error })
    }

    pub(crate) fn result(&self) -> Result<&'a RawValue, ClientError> {
        match (self.error, self.result) {
            (Some(error), _) => {
                let error = serde_json::from_str::<Error>(error.get()).map_err(malformed)?;
                Err(ClientError::Rpc(error))
            }
            (None, Some(result)) => Ok(result),
            (None, None) => Err(malformed("it has neither result nor error")),
        }
    }
}

/// The kind of a message over a connection that lasts, found by reading as little of it as
/// possible.
pub(crate) enum MessageKind<'a> {
    /// The answer to the call of this id.
    Answer { id: &'a RawValue },
    /// A value of the subscription of this id.
    Notification { subscription: &'a RawValue, result: &'a RawValue },
}

impl<'a> MessageKind<'a> {
    /// Reads an answer no further than its id, which mostly comes first.
    pub(crate) fn of(message: &'a str) -> Result<Self, ClientError> {
        let mut found = IdAndParams::default();
        let mut deserializer = serde_json::Deserializer::from_str(message);
        let read = deserializer.deserialize_map(&mut found);
        if let Some(id) = found.id {
            return Ok(Self::Answer { id });
        }
        read.map_err(malformed)?;
        let params = found.params.ok_or_else(|| malformed("it has neither id nor params"))?;
        let [subscription, result] = find(params.get(), ["subscription", "result"])?;
        match (subscription, result) {
            (Some(subscription), Some(result)) => Ok(Self::Notification { subscription, result }),
            _ => Err(malformed("a notification without subscription or result")),
        }
    }
}

/// Looks for the id of a message, and keeps its params on the way.
#[derive(Default)]
struct IdAndParams<'a> {
    id: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
}

impl<'de> Visitor<'de> for &mut IdAndParams<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(place) = map.next_key_seed(KeyIndex(&["id", "params"]))? {
            match place {
                Some(0) => {
                    self.id = Some(map.next_value()?);
                    // The way to end the scan here; it is no error.
                    return Err(serde::de::Error::custom("found"));
                }
                Some(_) => self.params = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The bytes of a `"0x..."` string.
///
/// # Errors
/// [`ClientError::Malformed`] if it is not `"0x` and pairs of hex digits.
pub fn bytes(hex: &RawValue) -> Result<Vec<u8>, ClientError> {
    let mut bytes = Vec::new();
    bytes_into(hex, &mut bytes)?;
    Ok(bytes)
}

/// As [`bytes()`], into a buffer that is reused: the first use of memory is the most expensive part
/// of decoding. After an error the content of `out` is unspecified.
///
/// # Errors
/// As [`bytes()`].
pub fn bytes_into(hex: &RawValue, out: &mut Vec<u8>) -> Result<(), ClientError> {
    let text = hex.get();
    let digits = text.strip_prefix("\"0x").and_then(|text| text.strip_suffix('"'));
    let Some(digits) = digits.filter(|digits| digits.len() % 2 == 0) else {
        let text = quote(text);
        return Err(ClientError::Malformed(format!("{text} is not \"0x\" and pairs of digits")));
    };
    // `decode_to_slice` would strip a second prefix.
    if digits.starts_with("0x") {
        return Err(ClientError::Malformed("a second 0x is not a pair of digits".into()));
    }
    out.resize(digits.len() / 2, 0);
    const_hex::decode_to_slice(digits, out).map_err(malformed)
}

/// The values of `names` in an object; the first of each, where a careless server repeats one.
fn find<'a, const N: usize>(
    object: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N], ClientError> {
    struct Find<'n, const N: usize>([&'n str; N]);
    impl<'de, const N: usize> Visitor<'de> for Find<'_, N> {
        type Value = [Option<&'de RawValue>; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = [None; N];
            while let Some(place) = map.next_key_seed(KeyIndex(&self.0))? {
                match place {
                    Some(place) if found[place].is_none() => {
                        found[place] = Some(map.next_value()?);
                    }
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(found)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(object);
    let found = deserializer.deserialize_map(Find(names)).map_err(malformed)?;
    deserializer.end().map_err(malformed)?;
    Ok(found)
}

/// Finds the index of a key in a list of names.
struct KeyIndex<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for KeyIndex<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Option<usize>, D::Error> {
        #[derive(Deserialize)]
        struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
        let key = Key::deserialize(key)?;
        Ok(self.0.iter().position(|name| key.0 == *name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(body: &str, expected: Result<&str, &str>) {
        match (result(body.as_bytes()), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.get(), expected),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_result_is_found_wherever_it_stands() {
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1, 2]}}"#, Ok(r#"{"a":[1, 2]}"#));
        check(r#" {"error":null,"result" : null ,"id":{"result":2}} "#, Ok("null"));
        check(r#"{"r\u0065sult":7}"#, Ok("7"));
    }

    #[test]
    fn an_error_object_is_an_error_with_its_code() {
        let body = br#"{"id":1,"error":{"code":-38001,"message":"Unknown payload","data":null}}"#;
        match result(body) {
            Err(ClientError::Rpc(error)) => assert_eq!(error.code, -38001),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_answer_is_malformed() {
        check("", Err("EOF"));
        check("[]", Err("an object"));
        check("{}", Err("neither result nor error"));
        check(r#"{"error":5}"#, Err("malformed"));
        check(r#"{"result":1} x"#, Err("trailing"));
        check(r#"{"result":1"#, Err("EOF"));
        assert!(result(b"{\"result\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_message_is_an_answer_or_a_notification() {
        let check = |message: &str, expected: Result<&[&str], &str>| match (
            MessageKind::of(message),
            expected,
        ) {
            (Ok(MessageKind::Answer { id }), Ok(expected)) => assert_eq!([id.get()], expected),
            (Ok(MessageKind::Notification { subscription, result }), Ok(expected)) => {
                assert_eq!([subscription.get(), result.get()], expected);
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            _ => panic!("{message} is not {expected:?}"),
        };
        check(r#"{"jsonrpc":"2.0","id":7,"result":nobody reads this"#, Ok(&["7"]));
        check(r#"{"result":{"id":1},"id":"a"}"#, Ok(&[r#""a""#]));
        check(r#"{"error":{},"id":null}"#, Ok(&["null"]));
        let notification = r#"{"method":"m","params":{"result":{"id":1},"subscription":"0x1"}}"#;
        check(notification, Ok(&[r#""0x1""#, r#"{"id":1}"#]));
        check(r#"{"params":{"subscription":2,"result":null}}"#, Ok(&["2", "null"]));
        check(r#"{"params":{"result":null}}"#, Err("without subscription"));
        check(r#"{"params":[]}"#, Err("an object"));
        check("{}", Err("neither id nor params"));
        check("[]", Err("an object"));
        check(r#"{"result":1"#, Err("EOF"));
    }

    #[test]
    fn a_field_of_a_result_is_found_or_named() {
        let result = result(br#"{"result":{"a":1,"b":"0x00ff"}}"#).expect("a result");
        let found = field(result, "b").expect("there");
        assert_eq!(bytes(found).expect("hex"), [0, 255]);
        let error = field(result, "c").expect_err("not there").to_string();
        assert!(error.contains("field c is missing"), "{error}");
    }

    #[test]
    fn only_pairs_of_digits_behind_0x_are_bytes() {
        for text in ["1", "null", "\"\"", "\"00\"", "\"0x0\"", "\"0xzz\"", "\"0x0x00\"", "[]"] {
            let raw: &RawValue = serde_json::from_str(text).expect("JSON");
            assert!(bytes(raw).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back_from_hex(expected in prop::collection::vec(any::<u8>(), 0..300)) {
            let text = format!("\"{}\"", const_hex::encode_prefixed(&expected));
            let raw: &RawValue = serde_json::from_str(&text).expect("a string");
            prop_assert_eq!(bytes(raw).expect("hex"), expected);
        }

        #[test]
        fn any_body_is_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..100)) {
            result(&body).map(RawValue::get).map_err(drop).unwrap_or_default();
        }
    }
}
