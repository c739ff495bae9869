//! Reads large answers in place: a value is found before it is parsed, and nothing is copied before
//! it is decoded.

use std::borrow::Cow;

use memchr::memchr2;

use crate::client::error::{ClientError, malformed};
use crate::foreign_json::read_json;
use crate::jsonrpc::error::Error;
use crate::quote::quote;
use crate::transport::json_scanner::{JsonScanner, Scanned};

/// The `result` of an answer, as it stands in the body. Whether it is JSON is found when it is
/// parsed.
///
/// # Errors
/// [`ClientError::Rpc`] for an error object, [`ClientError::Malformed`] if the body is no answer.
pub fn result(body: &[u8]) -> Result<&str, ClientError> {
    AnswerEnvelope::read(body)?.result()
}

/// The fields of an object with these names, as they stand there, in one scan; the first of each,
/// where a careless server repeats one.
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
    object: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a str>; N], ClientError> {
    let mut found = [None; N];
    let mut members = MemberScanner::of(object)?;
    while let Some((name, value)) = members.next()? {
        if let Some(place) = names.iter().position(|wanted| name == *wanted) {
            found[place].get_or_insert(value);
        }
    }
    Ok(found)
}

/// One field of an object, as it stands there.
///
/// # Errors
/// [`ClientError::Malformed`] if it is absent, or this is not an object.
pub fn field<'a>(object: &'a str, name: &str) -> Result<&'a str, ClientError> {
    let [value] = fields(object, [name])?;
    value.ok_or_else(|| ClientError::Malformed(format!("the field {name} is missing")))
}

/// The members of an answer.
pub(crate) struct AnswerEnvelope<'a> {
    pub(crate) id: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> AnswerEnvelope<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, ClientError> {
        let text = std::str::from_utf8(body).map_err(malformed)?;
        let [id, result, error] = fields(text, ["id", "result", "error"])?;
        // Some servers write a null beside the other one.
        let error = error.filter(|error| *error != "null");
        Ok(Self { id, result, error })
    }

    pub(crate) fn result(&self) -> Result<&'a str, ClientError> {
        match (self.error, self.result) {
            (Some(error), _) => {
                let error = read_json::<Error>(error).map_err(malformed)?;
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
    Answer { id: &'a str },
    /// A value of the subscription of this id.
    Notification { subscription: &'a str, result: &'a str },
}

impl<'a> MessageKind<'a> {
    /// Reads an answer no further than its id, which mostly comes first.
    pub(crate) fn of(message: &'a str) -> Result<Self, ClientError> {
        let mut params = None;
        let mut members = MemberScanner::of(message)?;
        while let Some((name, value)) = members.next()? {
            match &*name {
                "id" => return Ok(Self::Answer { id: value }),
                "params" => params = Some(value),
                _ => {}
            }
        }
        let params = params.ok_or_else(|| malformed("it has neither id nor params"))?;
        match fields(params, ["subscription", "result"])? {
            [Some(subscription), Some(result)] => Ok(Self::Notification { subscription, result }),
            _ => Err(malformed("a notification without subscription or result")),
        }
    }
}

/// The bytes of a `"0x..."` string.
///
/// # Errors
/// [`ClientError::Malformed`] if it is not `"0x` and pairs of hex digits.
pub fn bytes(hex: &str) -> Result<Vec<u8>, ClientError> {
    let mut bytes = Vec::new();
    bytes_into(hex, &mut bytes)?;
    Ok(bytes)
}

/// As [`bytes()`], into a buffer that is reused: the first use of memory is the most expensive part
/// of decoding. After an error the content of `out` is unspecified.
///
/// # Errors
/// As [`bytes()`].
pub fn bytes_into(hex: &str, out: &mut Vec<u8>) -> Result<(), ClientError> {
    let digits = hex.strip_prefix("\"0x").and_then(|text| text.strip_suffix('"'));
    let Some(digits) = digits.filter(|digits| digits.len() % 2 == 0) else {
        let text = quote(hex);
        return Err(ClientError::Malformed(format!("{text} is not \"0x\" and pairs of digits")));
    };
    // `decode_to_slice` would strip a second prefix.
    if digits.starts_with("0x") {
        return Err(ClientError::Malformed("a second 0x is not a pair of digits".into()));
    }
    out.resize(digits.len() / 2, 0);
    const_hex::decode_to_slice(digits, out).map_err(malformed)
}

/// The members of a JSON object, one after the other. The end of a value is found at the speed of
/// memory, and nothing else of it is looked at: serde_json, which checks each byte, took a third of
/// the time in which a client has a large witness.
struct MemberScanner<'a> {
    rest: &'a str,
    is_first: bool,
}

impl<'a> MemberScanner<'a> {
    fn of(object: &'a str) -> Result<Self, ClientError> {
        let rest = skip_space(object).strip_prefix('{');
        let rest =
            rest.ok_or_else(|| malformed(format_args!("not an object: {}", quote(object))))?;
        Ok(Self { rest: skip_space(rest), is_first: true })
    }

    /// The name and the text of the next member; `None` after the object's end, behind which there
    /// is nothing else.
    fn next(&mut self) -> Result<Option<(Cow<'a, str>, &'a str)>, ClientError> {
        if self.skip('}') {
            return match self.rest.is_empty() {
                true => Ok(None),
                false => Err(malformed("there is more behind the object")),
            };
        }
        if !std::mem::take(&mut self.is_first) {
            self.expect(',')?;
        }
        let name = self.value()?;
        let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
            Some(name) if !name.contains('\\') => name.into(),
            _ => serde_json::from_str::<String>(name).map_err(malformed)?.into(),
        };
        self.expect(':')?;
        Ok(Some((name, self.value()?)))
    }

    fn value(&mut self) -> Result<&'a str, ClientError> {
        let length = match self.rest.as_bytes().first() {
            Some(b'"') => string_length(self.rest),
            Some(b'{' | b'[') => match JsonScanner::default().scan(self.rest.as_bytes()) {
                Scanned::Message(range) => Some(range.end),
                Scanned::Part | Scanned::NoJson => None,
            },
            _ => self.rest.find([',', ':', ']', '}', ' ', '\t', '\n', '\r']).filter(|it| *it > 0),
        };
        let (value, rest) =
            self.rest.split_at(length.ok_or_else(|| malformed("a value has no end"))?);
        self.rest = skip_space(rest);
        Ok(value)
    }

    fn expect(&mut self, sign: char) -> Result<(), ClientError> {
        match self.skip(sign) {
            true => Ok(()),
            false => Err(malformed(format_args!("there is no {sign} where one has to be"))),
        }
    }

    fn skip(&mut self, sign: char) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.map_or(self.rest, skip_space);
        rest.is_some()
    }
}

/// The length of the string that a text begins with, with its quotes.
fn string_length(text: &str) -> Option<usize> {
    let mut end = 1;
    loop {
        end += memchr2(b'"', b'\\', text.as_bytes().get(end..)?)? + 1;
        if text.as_bytes()[end - 1] == b'"' {
            return Some(end);
        }
        // The escaped character.
        end += 1;
    }
}

/// A text without the white space of JSON at its beginning.
fn skip_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    use crate::transport::json_scanner::tests::any_json;

    #[track_caller]
    fn check(body: &str, expected: Result<&str, &str>) {
        match (result(body.as_bytes()), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
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
        check("", Err("not an object"));
        check("[]", Err("not an object"));
        check("{}", Err("neither result nor error"));
        check(r#"{"error":5}"#, Err("malformed"));
        check(r#"{"result":1} x"#, Err("more behind"));
        check(r#"{"result":1"#, Err("no end"));
        check(r#"{"result":1 "#, Err("no ,"));
        check(r#"{"result" 1}"#, Err("no :"));
        check(r#"{"result":"a\"}"#, Err("no end"));
        assert!(result(b"{\"result\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_message_is_an_answer_or_a_notification() {
        let check = |message: &str, expected: Result<&[&str], &str>| match (
            MessageKind::of(message),
            expected,
        ) {
            (Ok(MessageKind::Answer { id }), Ok(expected)) => assert_eq!([id], expected),
            (Ok(MessageKind::Notification { subscription, result }), Ok(expected)) => {
                assert_eq!([subscription, result], expected);
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
        check(r#"{"result":1"#, Err("no end"));
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
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back_from_hex(expected in prop::collection::vec(any::<u8>(), 0..300)) {
            let text = format!("\"{}\"", const_hex::encode_prefixed(&expected));
            prop_assert_eq!(bytes(&text).expect("hex"), expected);
        }

        #[test]
        fn any_body_is_read_without_panic(body in "[{}\\[\\],:\"a\\\\ 1ü\u{0}]{0,40}") {
            result(body.as_bytes()).map_err(drop).unwrap_or_default();
        }

        /// The obvious twin parses everything.
        #[test]
        fn fields_are_those_that_a_parser_finds(
            members in prop::collection::btree_map("[a-d\"\\\\é]{0,2}", any_json(), 0..6),
            spread in any::<bool>(),
        ) {
            let value = Value::Object(members.into_iter().collect());
            let text = if spread { format!(" {value:#} ") } else { value.to_string() };
            for name in ["", "a", "b\"", "\\c", "dé"] {
                let [found] = fields(&text, [name]).expect("an object");
                let parsed = found.map(|text| serde_json::from_str(text).expect("JSON"));
                prop_assert_eq!(parsed.as_ref(), value.get(name), "{} in {}", name, text);
            }
            // No beginning of it is an object.
            let cut = text.trim().len() - 1;
            let cut = (0..=cut).rev().find(|cut| text.trim().is_char_boundary(*cut)).unwrap_or(0);
            prop_assert!(fields(&text.trim()[..cut], ["a"]).is_err());
        }
    }
}
