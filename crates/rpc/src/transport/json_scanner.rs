//! Where the messages of bare JSON-RPC end, which follow each other without a delimiter.

use std::ops::Range;

use memchr::memchr2;

/// Finds where JSON values end. It looks at every byte once, however they come.
#[derive(Debug, Default)]
pub(crate) struct JsonScanner {
    /// Bytes looked at.
    seen: usize,
    /// Where the value begins.
    start: usize,
    /// Braces and brackets that are open.
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// A message in this range. Whether it is JSON is found when it is parsed.
    Message(Range<usize>),
    /// The beginning of a message, or nothing yet.
    Part,
    /// A byte that no message begins with.
    NoJson,
}

impl JsonScanner {
    /// Looks at the bytes that came since the last time. After a message it starts afresh: the
    /// caller removes the message from the buffer.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Scanned {
        while let Some(byte) = bytes.get(self.seen) {
            if self.is_in_string && !self.is_escaped {
                // A string may be a witness of hundreds of megabytes.
                let Some(length) = memchr2(b'"', b'\\', &bytes[self.seen..]) else {
                    self.seen = bytes.len();
                    break;
                };
                self.seen += length + 1;
                self.is_escaped = bytes[self.seen - 1] == b'\\';
                self.is_in_string = self.is_escaped;
                continue;
            }
            self.seen += 1;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'{' | b'[' => {
                    if self.depth == 0 {
                        self.start = self.seen - 1;
                    }
                    self.depth += 1;
                }
                _ if self.depth == 0 && byte.is_ascii_whitespace() => {}
                _ if self.depth == 0 => return Scanned::NoJson,
                b'"' => self.is_in_string = true,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        let (start, end) = (self.start, self.seen);
                        *self = Self::default();
                        return Scanned::Message(start..end);
                    }
                }
                _ => {}
            }
        }
        Scanned::Part
    }
}

impl JsonScanner {
    /// Whether a message has begun and is not complete.
    pub(crate) const fn is_inside(&self) -> bool {
        self.depth > 0
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn messages_end_where_their_last_bracket_does() {
        let text = br#" {"a":"}]\"{"} [1,[2]]{"b":[{}]} "#;
        let (mut scanner, mut rest, mut found) = (JsonScanner::default(), &text[..], Vec::new());
        while let Scanned::Message(range) = scanner.scan(rest) {
            found.push(std::str::from_utf8(&rest[range.clone()]).expect("UTF-8"));
            rest = &rest[range.end..];
        }
        assert_eq!(found, [r#"{"a":"}]\"{"}"#, "[1,[2]]", r#"{"b":[{}]}"#]);
    }

    #[test]
    fn no_message_begins_otherwise() {
        for text in ["1", "\"a\"", "null", " x{", "}", "]", "\u{0}"] {
            assert_eq!(JsonScanner::default().scan(text.as_bytes()), Scanned::NoJson, "{text}");
        }
        assert_eq!(JsonScanner::default().scan(b""), Scanned::Part);
        assert_eq!(JsonScanner::default().scan(b" {\"a\":[}"), Scanned::Part);
    }

    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<u32>().prop_map(Value::from),
            "[ -~]{0,12}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ -~]{0,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn messages_are_found_however_they_are_cut(
            values in prop::collection::vec(any_json().prop_map(|value| json!([value])), 1..5),
            step in 1..9usize,
        ) {
            let texts: Vec<String> = values.iter().map(Value::to_string).collect();
            let stream = texts.join(" \n").into_bytes();
            let mut scanner = JsonScanner::default();
            let (mut buffer, mut found) = (Vec::new(), Vec::new());
            for part in stream.chunks(step) {
                buffer.extend_from_slice(part);
                loop {
                    match scanner.scan(&buffer) {
                        Scanned::Message(Range { start, end }) => {
                            let message = buffer.drain(..end).skip(start).collect();
                            found.push(String::from_utf8(message).expect("UTF-8"));
                        }
                        other => {
                            prop_assert_eq!(other, Scanned::Part);
                            break;
                        }
                    }
                }
            }
            prop_assert_eq!(found, texts);
        }
    }
}
