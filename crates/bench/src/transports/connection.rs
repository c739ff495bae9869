//! Connections whose answers are read piece by piece: HTTP/1.1, HTTP/2 without TLS, WebSocket, and
//! JSON-RPC alone, over TCP or a Unix socket.
//!
//! Libraries would do all of that, but their runtimes and copies would be in every measurement.
//! What is here speaks just enough to make one call on a fresh connection.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rpc::JwtSecret;

use super::http2;
use crate::load::push_frame_head;
use crate::stream::{Stream, is_idle};

/// For a server to take a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The longest wait for more of an answer.
const READ_TIME: Duration = Duration::from_secs(600);
/// Heads and frame headers are read through it; what is longer goes where it stays.
const BUFFER_BYTES: usize = 16 << 10;
/// The longest line of a head.
const LINE_BYTES: u64 = 16 << 10;

/// Where a server listens.
#[derive(Clone, Debug)]
pub(super) enum Endpoint {
    /// `host:port`; where there is a secret, each connection or call has a token.
    Tcp { address: String, secret: Option<JwtSecret> },
    /// A socket for its owner alone.
    Unix { path: PathBuf },
}

/// What is between the bytes of a message and the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Http1,
    Http2,
    WebSocket,
    /// JSON-RPC alone: a line is an answer.
    Bare,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
}

/// A connection, mostly for one call; in HTTP/1.1 it may have more.
#[derive(Debug)]
pub(super) struct Connection {
    framing: Framing,
    host: String,
    token: Option<String>,
    stream: BufReader<Stream>,
    head: Head,
}

/// The head of the last answer in HTTP/1.1.
#[derive(Debug, Default)]
struct Head {
    status: u16,
    /// Of the body, unless that comes in chunks.
    length: Option<usize>,
    /// Names are in lower case.
    headers: Vec<(String, String)>,
}

impl Connection {
    /// Connects, and says what is said before the first request.
    pub(super) fn open(framing: Framing, endpoint: &Endpoint) -> anyhow::Result<Self> {
        let (stream, host, token) = match endpoint {
            Endpoint::Tcp { address, secret } => {
                let stream = Stream::tcp(address, CONNECT_TIME)
                    .with_context(|| format!("cannot connect to {address}"))?;
                (stream, address.clone(), secret.as_ref().map(JwtSecret::token))
            }
            Endpoint::Unix { path } => {
                let stream = Stream::unix(path)
                    .with_context(|| format!("cannot connect to {}", path.display()))?;
                (stream, "localhost".into(), None)
            }
        };
        stream.set_read_timeout(READ_TIME)?;
        let stream = BufReader::with_capacity(BUFFER_BYTES, stream);
        let mut connection = Self { framing, host, token, stream, head: Head::default() };
        match framing {
            Framing::Http2 => http2::begin(connection.stream.get_mut())?,
            Framing::WebSocket => connection.upgrade()?,
            Framing::Http1 | Framing::Bare => {}
        }
        Ok(connection)
    }

    /// Whether the server has not closed it meanwhile, and has nothing to say that was not read.
    pub(super) fn is_open(&self) -> bool {
        self.stream.buffer().is_empty() && is_idle(self.stream.get_ref())
    }

    pub(super) fn send(&mut self, request: &Request<'_>) -> anyhow::Result<()> {
        let body = request.body;
        let message = match self.framing {
            Framing::Http1 => {
                let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
                for (name, value) in self.headers(request) {
                    write!(head, "{name}: {value}\r\n")?;
                }
                head.push_str("\r\n");
                [head.as_bytes(), body].concat()
            }
            Framing::Http2 => {
                let pseudo = [
                    (":method", request.method.to_owned()),
                    (":scheme", "http".to_owned()),
                    (":path", request.path.to_owned()),
                    (":authority", self.host.clone()),
                ];
                let headers = self.headers(request).into_iter().skip(1);
                http2::request(&pseudo.into_iter().chain(headers).collect::<Vec<_>>(), body)?
            }
            Framing::WebSocket => frame(false, body),
            Framing::Bare => body.to_vec(),
        };
        Ok(self.stream.get_mut().write_all(&message)?)
    }

    /// Waits for the answer to begin; what is returned reads its body.
    pub(super) fn body(&mut self) -> anyhow::Result<Box<dyn Read + '_>> {
        Ok(match self.framing {
            Framing::Http1 => {
                let stream = &mut self.stream;
                self.head = read_head(stream)?;
                let Head { status, length, .. } = self.head;
                if status != 200 {
                    let mut text = Vec::new();
                    let left = length.unwrap_or_default().min(500);
                    stream.take(left as u64).read_to_end(&mut text)?;
                    bail!("refused with {status}: {}", String::from_utf8_lossy(&text));
                }
                match length {
                    Some(length) => Box::new(stream.take(length as u64)),
                    None => Box::new(Chunks { stream, left: 0, place: Chunk::First }),
                }
            }
            Framing::Http2 => Box::new(http2::body(&mut self.stream)?),
            Framing::WebSocket => {
                self.stream.fill_buf()?;
                Box::new(Frames { stream: &mut self.stream, left: 0, is_last: false })
            }
            Framing::Bare => {
                self.stream.fill_buf()?;
                Box::new(Line { stream: &mut self.stream, ended: false })
            }
        })
    }

    /// A header of the last answer, in HTTP/1.1.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.head.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The host comes first.
    fn headers<'a>(&self, request: &Request<'a>) -> Vec<(&'a str, String)> {
        let mut headers = vec![
            ("host", self.host.clone()),
            // Compressing a witness takes longer than sending it.
            ("accept-encoding", "identity".into()),
            ("content-length", request.body.len().to_string()),
        ];
        let token = self.token.as_ref();
        headers.extend(token.map(|token| ("authorization", format!("Bearer {token}"))));
        headers.extend(request.headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
        headers
    }

    /// The opening handshake of a WebSocket (RFC 6455 section 4.1), with the nonce of its example.
    fn upgrade(&mut self) -> anyhow::Result<()> {
        const NONCE: &str = "dGhlIHNhbXBsZSBub25jZQ==";
        let mut head = format!(
            "GET / HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {NONCE}\r\n",
            self.host
        );
        if let Some(token) = &self.token {
            write!(head, "Authorization: Bearer {token}\r\n")?;
        }
        head.push_str("\r\n");
        self.stream.get_mut().write_all(head.as_bytes())?;
        let Head { status, .. } = read_head(&mut self.stream)?;
        ensure!(status == 101, "no WebSocket: {status}");
        Ok(())
    }
}

/// Reads a head of HTTP/1.1.
fn read_head(stream: &mut BufReader<Stream>) -> anyhow::Result<Head> {
    let first = read_line(stream)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("no HTTP: {first:.100}"))?;
    let mut head = Head { status, ..Head::default() };
    loop {
        let line = read_line(stream)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').context("a header without a colon")?;
        head.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |name: &str| head.headers.iter().find(|(known, _)| known == name);
    if let Some((_, encoding)) = header("content-encoding") {
        ensure!(encoding == "identity", "it came as {encoding}");
    }
    let is_chunked = header("transfer-encoding").is_some_and(|(_, value)| value == "chunked");
    if let (Some((_, length)), false) = (header("content-length"), is_chunked) {
        head.length = Some(length.parse()?);
    }
    ensure!(status != 200 || is_chunked || head.length.is_some(), "no length");
    Ok(head)
}

/// A line of a head, without its end.
fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    stream.take(LINE_BYTES).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
}

/// Reads some of the `left` bytes of a chunk or a frame.
pub(super) fn read_some(
    stream: &mut BufReader<Stream>,
    left: &mut usize,
    into: &mut [u8],
) -> io::Result<usize> {
    let most = into.len().min(*left);
    if most == 0 {
        // The reader would wait for bytes to put nothing of them there.
        return Ok(0);
    }
    let count = stream.read(&mut into[..most])?;
    if count == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    *left -= count;
    Ok(count)
}

/// A body in chunks (RFC 9112 section 7.1).
struct Chunks<'a> {
    stream: &'a mut BufReader<Stream>,
    left: usize,
    place: Chunk,
}

#[derive(PartialEq, Eq)]
enum Chunk {
    First,
    Further,
    Ended,
}

impl Read for Chunks<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && self.place != Chunk::Ended {
            if self.place == Chunk::Further {
                read_line(self.stream)?;
            }
            let line = read_line(self.stream)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            self.left = usize::from_str_radix(size, 16)
                .map_err(|_| Error::new(ErrorKind::InvalidData, format!("a chunk of {line}")))?;
            self.place = Chunk::Further;
            if self.left == 0 {
                read_line(self.stream)?;
                self.place = Chunk::Ended;
            }
        }
        read_some(self.stream, &mut self.left, into)
    }
}

/// An answer without a frame: one line, and nothing comes after it.
struct Line<'a> {
    stream: &'a mut BufReader<Stream>,
    ended: bool,
}

impl Read for Line<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        let count = read_some(self.stream, &mut into.len(), into)?;
        self.ended = into[..count].ends_with(b"\n");
        Ok(count)
    }
}

const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FINAL: u8 = 0x80;

/// A frame of a client's WebSocket.
fn frame(is_pong: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    push_frame_head(&mut frame, is_pong, true, payload.len());
    frame.extend_from_slice(payload);
    frame
}

/// A message of a WebSocket (RFC 6455 section 5.4).
struct Frames<'a> {
    stream: &'a mut BufReader<Stream>,
    left: usize,
    is_last: bool,
}

impl Frames<'_> {
    fn read_header(&mut self) -> io::Result<()> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head)?;
        let mut len = [0; 8];
        self.left = match head[1] & 0x7f {
            126 => {
                self.stream.read_exact(&mut len[6..])?;
                u64::from_be_bytes(len) as usize
            }
            127 => {
                self.stream.read_exact(&mut len)?;
                u64::from_be_bytes(len) as usize
            }
            short => usize::from(short),
        };
        match head[0] & 0xf {
            CLOSE => Err(Error::new(ErrorKind::ConnectionAborted, "the server says goodbye")),
            PING | PONG => {
                let mut payload = vec![0; self.left.min(125)];
                self.stream.read_exact(&mut payload)?;
                self.left = 0;
                if head[0] & 0xf == PING {
                    self.stream.get_mut().write_all(&frame(true, &payload))?;
                }
                Ok(())
            }
            _ => {
                self.is_last = head[0] & FINAL != 0;
                Ok(())
            }
        }
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 && !self.is_last {
            self.read_header()?;
        }
        read_some(self.stream, &mut self.left, into)
    }
}
