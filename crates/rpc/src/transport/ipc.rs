//! JSON-RPC on a Unix socket without HTTP around it, as geth's clients speak it: requests one after
//! the other, with or without white space in between, and answers in whatever order they are ready,
//! a line each.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::message::failure;
use crate::jsonrpc::session;
use crate::limits::{CHUNK_BYTES, CLOSE_TIME, GONE_PAUSE, READ_BYTES};
use crate::pieces::Pieces;
use crate::port::Unanswered;
use crate::transport::socket::{Heard, Socket};
use crate::transport::websocket::{Ending, Outgoing};

/// Both directions of a connection.
pub(crate) fn split(socket: Socket, message_bytes: usize) -> (Reader, Writer) {
    let heard = socket.heard();
    let (socket_in, socket_out) = tokio::io::split(socket);
    let (buffer, scanner) = (BytesMut::new(), Scanner::default());
    let reader = Reader { socket: socket_in, heard, buffer, scanner, message_bytes };
    (reader, Writer { socket: socket_out })
}

/// The requests that come.
pub(crate) struct Reader {
    socket: ReadHalf<Socket>,
    heard: Heard,
    /// What has come and is no whole message yet.
    buffer: BytesMut,
    scanner: Scanner,
    message_bytes: usize,
}

/// The answers that go.
pub(crate) struct Writer {
    socket: WriteHalf<Socket>,
}

impl session::Reader for Reader {
    type Writer = Writer;

    const ANSWERS_BEFORE_FAULTS: bool = true;

    /// The next message. Silence is no fault here: nobody gets a Unix socket between them and us
    /// that would forget the connection, and when the other side ends, the system tells.
    async fn next(
        &mut self,
        _: Duration,
        _: impl Fn() -> bool + Send,
    ) -> Result<Utf8Bytes, Ending> {
        loop {
            match self.scanner.scan(&self.buffer) {
                Scanned::Message(start, end) => {
                    let mut message = self.buffer.split_to(end).split_off(start).freeze();
                    if message.len() > self.message_bytes {
                        return Err(self.too_long());
                    }
                    // What is left of a long message's buffer is not kept with it.
                    let is_long = message.len() > READ_BYTES;
                    if self.buffer.is_empty() || (is_long && self.buffer.len() <= READ_BYTES) {
                        self.buffer = BytesMut::from(&self.buffer[..]);
                    }
                    let text = Utf8Bytes::try_from(std::mem::take(&mut message));
                    return text.map_err(|_| fault("the message is not UTF-8"));
                }
                Scanned::NoJson => {
                    return Err(fault("a message begins with a brace or a bracket"));
                }
                Scanned::Part if self.buffer.len() > self.message_bytes => {
                    return Err(self.too_long());
                }
                Scanned::Part => {}
            }
            self.buffer.reserve(READ_BYTES);
            match self.socket.read_buf(&mut self.buffer).await {
                Ok(0) if self.heard.is_gone() => return Err(Ending::Left(None)),
                Ok(0) if self.scanner.depth > 0 => {
                    return Err(fault("the last message is not complete"));
                }
                Ok(0) => return Err(Ending::Asked),
                Ok(_) => {}
                Err(fault) => return Err(broken(&fault)),
            }
        }
    }

    async fn gone(&mut self) {
        while !self.heard.is_gone() {
            tokio::time::sleep(GONE_PAUSE).await;
            // There is nothing but the end, again.
            self.socket.read_u8().await.ok();
        }
    }

    async fn send_all(writer: &mut Writer, outgoing: &mut mpsc::Receiver<Outgoing>) -> Ending {
        while let Some(next) = outgoing.recv().await {
            let (text, held) = match next {
                Outgoing::Text(text, held) => (text, held),
                Outgoing::Goodbye(ending) => return ending,
            };
            if let Err(fault) = writer.send(text.pieces).await {
                return broken(&fault);
            }
            drop(held);
        }
        Ending::Fault { code: CloseCode::Normal, reason: String::new() }
    }

    /// Says what was wrong in a last answer, which is to no request, and ends.
    async fn close(self, mut writer: Writer, ending: &Ending) {
        let goodbye = async {
            if let Ending::Fault { code, reason } = ending
                && *code != CloseCode::Normal
            {
                // Where the server ends it, nothing was wrong with what came.
                let is_ours = *code == CloseCode::Away;
                let what = if is_ours { Code::Server } else { Code::Parse };
                let last = failure(None, &Error::new(what, reason));
                writer.send(last.pieces).await?;
            }
            writer.socket.shutdown().await
        };
        match timeout(CLOSE_TIME, goodbye).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => tracing::debug!(%fault, "a connection broke while it was closed"),
            Err(_) => tracing::debug!("a connection was cut: the other side did not read"),
        }
    }
}

impl Reader {
    fn too_long(&self) -> Ending {
        fault(format!("the message is too long: at most {} bytes are taken", self.message_bytes))
    }
}

fn fault(reason: impl Into<String>) -> Ending {
    Ending::Fault { code: CloseCode::Protocol, reason: reason.into() }
}

fn broken(fault: &io::Error) -> Ending {
    Ending::Broken(format!("the connection broke: {fault}"))
}

impl Writer {
    /// Says why nothing is answered, in an answer to no request.
    pub(crate) async fn refuse(&mut self, unanswered: Unanswered) {
        let refusal = failure(None, &Error::new(Code::Server, unanswered));
        let said = timeout(CLOSE_TIME, self.send(refusal.pieces)).await;
        if !matches!(said, Ok(Ok(()))) {
            tracing::debug!("a connection was not told that there are too many");
        }
    }

    async fn send(&mut self, mut pieces: Pieces) -> io::Result<()> {
        pieces.push(Bytes::from_static(b"\n"));
        while !pieces.is_empty() {
            self.socket.write_all(&pieces.take(CHUNK_BYTES)).await?;
        }
        self.socket.flush().await
    }
}

/// Finds where JSON values end, and looks at every byte once, however they come.
#[derive(Debug, Default)]
struct Scanner {
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
enum Scanned {
    /// One message from here to before there; whether it is JSON is found when it is read.
    Message(usize, usize),
    /// The beginning of one, or nothing yet.
    Part,
    /// What no message begins with.
    NoJson,
}

impl Scanner {
    /// Looks at the bytes that came since the last time. After a message it begins anew.
    fn scan(&mut self, bytes: &[u8]) -> Scanned {
        while let Some(byte) = bytes.get(self.seen) {
            self.seen += 1;
            if self.is_in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
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
                        return Scanned::Message(start, end);
                    }
                }
                _ => {}
            }
        }
        Scanned::Part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn messages_end_where_their_last_bracket_does() {
        let text = br#" {"a":"}]\"{"} [1,[2]]{"b":[{}]} "#;
        let (mut scanner, mut rest, mut found) = (Scanner::default(), &text[..], Vec::new());
        while let Scanned::Message(start, end) = scanner.scan(rest) {
            found.push(std::str::from_utf8(&rest[start..end]).expect("UTF-8"));
            rest = &rest[end..];
        }
        assert_eq!(found, [r#"{"a":"}]\"{"}"#, "[1,[2]]", r#"{"b":[{}]}"#]);
    }

    #[test]
    fn what_begins_otherwise_is_no_message() {
        for text in ["1", "\"a\"", "null", " x{", "}", "]", "\u{0}"] {
            assert_eq!(Scanner::default().scan(text.as_bytes()), Scanned::NoJson, "{text}");
        }
        assert_eq!(Scanner::default().scan(b""), Scanned::Part);
        assert_eq!(Scanner::default().scan(b" {\"a\":[}"), Scanned::Part);
    }

    fn any_json() -> impl Strategy<Value = Value> {
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
            let (mut scanner, mut buffer, mut found) = (Scanner::default(), Vec::new(), Vec::new());
            for part in stream.chunks(step) {
                buffer.extend_from_slice(part);
                loop {
                    match scanner.scan(&buffer) {
                        Scanned::Message(start, end) => {
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
