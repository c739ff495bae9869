//! HTTP/1.1 with pipelining (RFC 9112 section 9.3.2): requests are sent without waiting for the
//! answers to those before.
//!
//! hyper's client does not pipeline, so requests are written and answers are read here, as far as
//! JSON-RPC needs it.

use std::io;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::client::address::Address;
use crate::jsonrpc::error::quote;
use crate::jwt::JwtSecret;
use crate::limits::{ANSWER_BYTES, CHUNK_BYTES, HEADER_BYTES, READ_BYTES, TOKEN_REUSE};
use crate::transport::messages::{Ending, MessageReader, OutgoingMessage};
use crate::transport::socket::Socket;

/// The two halves of a connection to an address.
pub(super) fn split(
    socket: Socket,
    address: &Address,
    secret: Option<JwtSecret>,
) -> (PipelineReader, PipelineWriter) {
    let (socket_in, socket_out) = tokio::io::split(socket);
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
         accept-encoding: identity\r\n",
        address.path,
        address.authority()
    );
    let writer = PipelineWriter { socket: socket_out, head, secret, token: None };
    (PipelineReader { socket: socket_in, buffer: BytesMut::new() }, writer)
}

/// The half that reads answers.
pub(super) struct PipelineReader {
    socket: ReadHalf<Socket>,
    /// Bytes that are not part of an answer yet.
    buffer: BytesMut,
}

/// The half that writes requests.
pub(super) struct PipelineWriter {
    socket: WriteHalf<Socket>,
    /// The head of each request, up to its token and its length.
    head: String,
    secret: Option<JwtSecret>,
    /// The line of the last token, and when it was issued.
    token: Option<(String, Instant)>,
}

/// The parts of a head that say how to read the body.
#[derive(Debug, PartialEq, Eq)]
struct AnswerHead {
    status: u16,
    framing: BodyFraming,
    closes: bool,
}

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Debug, PartialEq, Eq)]
enum BodyFraming {
    Length(usize),
    Chunked,
    UntilClose,
}

impl MessageReader for PipelineReader {
    type Writer = PipelineWriter;

    const ANSWERS_BEFORE_FAULTS: bool = true;

    async fn next(
        &mut self,
        _: Duration,
        _: impl Fn() -> bool + Send,
    ) -> Result<Utf8Bytes, Ending> {
        let head = loop {
            let head = self.head().await?;
            // Interim answers have no body.
            if head.status >= 200 {
                break head;
            }
        };
        let body = self.body(&head.framing).await?;
        if head.status != 200 {
            let text = String::from_utf8_lossy(&body);
            let (status, text) = (head.status, quote(text.trim()));
            return Err(broken(format_args!(
                "the server refused with HTTP status {status}: {text}"
            )));
        }
        if head.closes && self.buffer.is_empty() {
            tracing::debug!("the server closes a pipelined connection");
        }
        Utf8Bytes::try_from(body).map_err(|_| Ending::not_utf8())
    }

    async fn send_all(
        writer: &mut PipelineWriter,
        outgoing: &mut mpsc::Receiver<OutgoingMessage>,
    ) -> Ending {
        while let Some(next) = outgoing.recv().await {
            let mut text = match next {
                OutgoingMessage::Text(text, _) => text,
                OutgoingMessage::Goodbye(ending) => return ending,
            };
            let mut request = writer.request_head(text.len_bytes()).into_bytes();
            while !text.is_empty() {
                request.extend_from_slice(&text.take(CHUNK_BYTES));
                if let Err(fault) = writer.socket.write_all(&request).await {
                    return broken(fault);
                }
                request.clear();
            }
            if outgoing.is_empty()
                && let Err(fault) = writer.socket.flush().await
            {
                return broken(fault);
            }
        }
        Ending::Fault { code: CloseCode::Normal, reason: String::new() }
    }

    async fn close(self, mut writer: PipelineWriter, _: &Ending) {
        writer.socket.shutdown().await.unwrap_or_default();
    }
}

impl PipelineWriter {
    fn request_head(&mut self, body_bytes: usize) -> String {
        let Some(secret) = &self.secret else {
            return format!("{}content-length: {body_bytes}\r\n\r\n", self.head);
        };
        let (token, _) = match self.token.take().filter(|(_, at)| at.elapsed() < TOKEN_REUSE) {
            Some(token) => self.token.insert(token),
            None => {
                let line = format!("authorization: Bearer {}\r\n", secret.token());
                self.token.insert((line, Instant::now()))
            }
        };
        format!("{}{token}content-length: {body_bytes}\r\n\r\n", self.head)
    }
}

impl PipelineReader {
    /// Reads more bytes.
    async fn fill(&mut self) -> Result<(), Ending> {
        self.buffer.reserve(READ_BYTES);
        match self.socket.read_buf(&mut self.buffer).await {
            Ok(0) => Err(broken("the server closed it")),
            Ok(_) => Ok(()),
            Err(fault) => Err(broken(fault)),
        }
    }

    /// Reads the lines up to an end, which is removed too.
    async fn until(&mut self, end: &[u8]) -> Result<BytesMut, Ending> {
        let mut searched = 0;
        loop {
            let unsearched = &self.buffer[searched..];
            if let Some(at) = unsearched.windows(end.len()).position(|bytes| bytes == end) {
                let lines = self.buffer.split_to(searched + at);
                self.buffer.advance(end.len());
                return Ok(lines);
            }
            if self.buffer.len() > HEADER_BYTES {
                return Err(broken("a head or a line of an answer is too long"));
            }
            searched = self.buffer.len().saturating_sub(end.len() - 1);
            self.fill().await?;
        }
    }

    async fn head(&mut self) -> Result<AnswerHead, Ending> {
        let head = self.until(b"\r\n\r\n").await?;
        parse_head(&head).ok_or_else(|| broken("the server does not speak HTTP/1.1"))
    }

    async fn body(&mut self, framing: &BodyFraming) -> Result<Bytes, Ending> {
        match *framing {
            BodyFraming::Length(bytes) => Ok(self.take(bytes).await?.freeze()),
            BodyFraming::UntilClose => {
                while self.buffer.len() <= ANSWER_BYTES && self.fill().await.is_ok() {}
                Ok(self.buffer.split().freeze())
            }
            BodyFraming::Chunked => {
                let mut body = Vec::new();
                loop {
                    let line = self.until(b"\r\n").await?;
                    let size = line[..].split(|byte| *byte == b';').next().unwrap_or_default();
                    let size = std::str::from_utf8(size).ok();
                    let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
                    let size = size.ok_or_else(|| broken("a chunk has no size"))?;
                    if size == 0 {
                        // Trailers end with an empty line.
                        while !self.until(b"\r\n").await?.is_empty() {}
                        return Ok(body.into());
                    }
                    if size > ANSWER_BYTES - body.len() {
                        return Err(too_long());
                    }
                    body.extend_from_slice(&self.take(size).await?);
                    self.until(b"\r\n").await?;
                }
            }
        }
    }

    /// Reads so many bytes.
    async fn take(&mut self, bytes: usize) -> Result<BytesMut, Ending> {
        if bytes > ANSWER_BYTES {
            return Err(too_long());
        }
        while self.buffer.len() < bytes {
            self.fill().await?;
        }
        Ok(self.buffer.split_to(bytes))
    }
}

fn parse_head(head: &[u8]) -> Option<AnswerHead> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let has_body = status >= 200 && status != 204;
    let mut found = AnswerHead {
        status,
        framing: if has_body { BodyFraming::UntilClose } else { BodyFraming::Length(0) },
        closes: false,
    };
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") && found.framing != BodyFraming::Chunked {
            found.framing = BodyFraming::Length(value.parse().ok()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            found.framing = BodyFraming::Chunked;
        } else if name.eq_ignore_ascii_case("connection") {
            found.closes = value.eq_ignore_ascii_case("close");
        }
    }
    Some(found)
}

fn broken(reason: impl std::fmt::Display) -> Ending {
    Ending::Broken(format!("the connection broke: {reason}"))
}

fn too_long() -> Ending {
    broken(io::Error::other(format!("an answer is longer than {ANSWER_BYTES} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixStream;

    #[test]
    fn a_head_says_where_its_body_ends() {
        let check = |head: &str, expected: Option<(u16, BodyFraming, bool)>| {
            let expected =
                expected.map(|(status, framing, closes)| AnswerHead { status, framing, closes });
            assert_eq!(parse_head(head.as_bytes()), expected, "{head}");
        };
        let length = BodyFraming::Length;
        check("HTTP/1.1 200 OK\r\nContent-Length: 12", Some((200, length(12), false)));
        check("HTTP/1.1 204 No Content", Some((204, length(0), false)));
        check("HTTP/1.1 200 OK\r\nConnection: close", Some((200, BodyFraming::UntilClose, true)));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3";
        check(chunked, Some((200, BodyFraming::Chunked, false)));
        for bad in ["", "HTTP/1.0 200 OK", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: x"] {
            check(bad, None);
        }
    }

    #[tokio::test]
    async fn answers_of_any_framing_are_read_one_after_the_other() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let address = Address::parse("node:1", "http").expect("an address");
        let (mut reader, _writer) =
            split(Socket::new(ours, Duration::from_secs(60)), &address, None);
        let answers = "HTTP/1.1 100 Continue\r\n\r\n\
             HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]\
             HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
             3;a=b\r\n[1,\r\n2 \r\n2]\r\n0\r\nX: y\r\n\r\n\
             HTTP/1.1 401 No\r\ncontent-length: 8\r\n\r\nno token";
        theirs.write_all(answers.as_bytes()).await.expect("written");
        for expected in ["[]", "[1,2]"] {
            let answer = reader.next(SERVER_WAIT, || true).await;
            assert_eq!(answer.expect("an answer").as_str(), expected);
        }
        let ending = reader.next(SERVER_WAIT, || true).await.expect_err("refused").to_string();
        assert!(ending.contains("401: no token"), "{ending}");
        drop(theirs);
        let ending = reader.next(SERVER_WAIT, || true).await.expect_err("closed").to_string();
        assert!(ending.contains("closed"), "{ending}");
    }

    const SERVER_WAIT: Duration = Duration::from_secs(60);
}
