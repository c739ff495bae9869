//! Messages in a stream of bytes, of either end: HTTP/1.1, WebSocket, and JSON alone.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

use super::answer::{End, is_space};

/// Room to read into, at least: many small messages come with one call to the system.
const ROOM_BYTES: usize = 256 << 10;
/// Longest head of HTTP.
const HEAD_BYTES: usize = 64 << 10;
/// Longest message: a witness of 500 MB in hex, four times.
const MESSAGE_BYTES: usize = 4 << 30;

/// How messages are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Wire {
    Http,
    WebSocket,
    /// A value of JSON follows the other, as geth frames them over its Unix socket.
    Ipc,
}

impl Wire {
    pub(crate) const ALL: [Self; 3] = [Self::Http, Self::WebSocket, Self::Ipc];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::WebSocket => "ws",
            Self::Ipc => "ipc",
        }
    }
}

/// A message that is there whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// Where it lies in [`Messages::bytes`].
    pub(super) body: Range<usize>,
    /// Of an answer over HTTP; zero of anything else.
    pub(super) status: u16,
    /// Nothing comes after it.
    pub(super) is_last: bool,
    /// What an HTTP server asks to wait, in seconds.
    pub(super) retry_after: Option<u64>,
    /// A ping of a WebSocket, which wants its payload back.
    pub(super) is_ping: bool,
}

/// Why there are no more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The WebSocket was closed, as it should be.
    Closed,
    /// What came is no message.
    Malformed,
}

/// What was read, and what of it is no message yet.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) wire: Wire,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// For a message of JSON alone, how far it was looked at.
    looked: usize,
    json: End,
}

impl Messages {
    pub(super) fn new(wire: Wire) -> Self {
        let json = End::default();
        Self { wire, buffer: vec![0; ROOM_BYTES], start: 0, end: 0, looked: 0, json }
    }

    /// Reads what is there; zero at the end.
    pub(super) fn read(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.buffer.len() - self.end < ROOM_BYTES && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < ROOM_BYTES {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match stream.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn bytes(&self, body: &Range<usize>) -> &[u8] {
        &self.buffer[body.clone()]
    }

    /// The next message, once it is there whole.
    pub(super) fn next(&mut self) -> Result<Option<Message>, Broken> {
        if self.end - self.start > MESSAGE_BYTES {
            return Err(Broken::Malformed);
        }
        match self.wire {
            Wire::Http => self.next_http(),
            Wire::WebSocket => self.next_frames(),
            Wire::Ipc => self.next_json(),
        }
    }

    fn next_http(&mut self) -> Result<Option<Message>, Broken> {
        let bytes = &self.buffer[self.start..self.end];
        let Some(head) = line_end(bytes, b"\r\n\r\n") else {
            return if bytes.len() > HEAD_BYTES { Err(Broken::Malformed) } else { Ok(None) };
        };
        let head = Head::read(&bytes[..head])?;
        let start = self.start + head.bytes;
        let (body, end) = match head.length {
            Length::Bytes(length) => (start..start + length, start + length),
            Length::Chunks => match chunks(&self.buffer[..self.end], start)? {
                None => return Ok(None),
                Some((pieces, end)) => (self.join(&pieces, start), end),
            },
        };
        if end > self.end {
            return Ok(None);
        }
        self.start = end;
        let Head { status, is_last, retry_after, .. } = head;
        Ok(Some(Message { body, status, is_last, retry_after, is_ping: false }))
    }

    fn next_frames(&mut self) -> Result<Option<Message>, Broken> {
        let mut at = self.start;
        let mut pieces: Vec<Range<usize>> = Vec::new();
        loop {
            let Some(frame) = Frame::read(&self.buffer[at..self.end])? else { return Ok(None) };
            let payload = at + frame.head..at + frame.head + frame.payload;
            if payload.end > self.end {
                return Ok(None);
            }
            if let Some(mask) = frame.mask {
                let masked = &mut self.buffer[payload.clone()];
                masked
                    .iter_mut()
                    .zip(mask.into_iter().cycle())
                    .for_each(|(byte, key)| *byte ^= key);
                // It is looked at again where the message is not whole yet, and is bare then.
                self.buffer[at + frame.head - 4..at + frame.head].fill(0);
            }
            match frame.kind {
                CLOSE => return Err(Broken::Closed),
                PING => {
                    // It is looked at again, as something that wants no answer.
                    self.buffer[at] = FINAL | PONG;
                    return Ok(Some(Message {
                        body: payload,
                        is_ping: true,
                        ..Message::default()
                    }));
                }
                PONG if pieces.is_empty() => self.start = payload.end,
                PONG => {}
                _ if frame.is_final => {
                    self.start = payload.end;
                    // Nearly every message has one frame.
                    let body = match pieces.first() {
                        None => payload,
                        Some(first) => {
                            let start = first.start;
                            pieces.push(payload);
                            self.join(&pieces, start)
                        }
                    };
                    return Ok(Some(Message { body, ..Message::default() }));
                }
                _ => pieces.push(payload.clone()),
            }
            at = at + frame.head + frame.payload;
        }
    }

    fn next_json(&mut self) -> Result<Option<Message>, Broken> {
        if self.looked == 0 {
            let waiting = &self.buffer[self.start..self.end];
            let spaces = waiting.iter().position(|byte| !is_space(*byte));
            self.start += spaces.unwrap_or(waiting.len());
            if !matches!(self.buffer[self.start..self.end].first(), None | Some(b'{' | b'[')) {
                return Err(Broken::Malformed);
            }
        }
        let Some(len) = self.json.find(&self.buffer[self.start + self.looked..self.end]) else {
            self.looked = self.end - self.start;
            return Ok(None);
        };
        let body = self.start..self.start + self.looked + len;
        (self.start, self.looked, self.json) = (body.end, 0, End::default());
        Ok(Some(Message { body, ..Message::default() }))
    }

    /// Moves the pieces of a message together.
    fn join(&mut self, pieces: &[Range<usize>], start: usize) -> Range<usize> {
        let mut end = start;
        for piece in pieces {
            self.buffer.copy_within(piece.clone(), end);
            end += piece.len();
        }
        start..end
    }
}

/// Where a line ends, its end included.
fn line_end(bytes: &[u8], end: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == end[0])?;
        if bytes[at..].starts_with(end) {
            return Some(at + end.len());
        }
        at += 1;
    }
}

/// What of a head of HTTP/1.1 matters here.
struct Head {
    bytes: usize,
    status: u16,
    length: Length,
    is_last: bool,
    retry_after: Option<u64>,
}

enum Length {
    Bytes(usize),
    Chunks,
}

impl Head {
    fn read(head: &[u8]) -> Result<Self, Broken> {
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.next().unwrap_or_default();
        // A request has none.
        let status = match first.starts_with(b"HTTP/1.") {
            true => number(first.get(9..12).unwrap_or_default()).ok_or(Broken::Malformed)? as u16,
            false => 0,
        };
        let (mut length, mut chunked, mut is_last, mut retry_after) = (None, false, false, None);
        for line in lines.filter(|line| !line.is_empty()) {
            let colon = line.iter().position(|byte| *byte == b':').ok_or(Broken::Malformed)?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            if is("content-length") {
                length = Some(number(value).ok_or(Broken::Malformed)? as usize);
            } else if is("transfer-encoding") {
                chunked = value.eq_ignore_ascii_case(b"chunked");
            } else if is("connection") {
                is_last = value.eq_ignore_ascii_case(b"close");
            } else if is("retry-after") {
                // The other form, a date, is not read: the pause is our own then.
                retry_after = number(value);
            }
        }
        let length = match length {
            _ if chunked => Length::Chunks,
            Some(length) if length <= MESSAGE_BYTES => Length::Bytes(length),
            Some(_) => return Err(Broken::Malformed),
            // The body goes on until the connection ends; without it there is nothing to read.
            None if status == 200 => return Err(Broken::Malformed),
            None => {
                is_last |= status >= 200;
                Length::Bytes(0)
            }
        };
        Ok(Self { bytes: head.len(), status, length, is_last, retry_after })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The chunks of a body, and where that ends.
type Chunked = (Vec<Range<usize>>, usize);

/// Reads a body in chunks (RFC 9112 section 7.1), once it is there whole.
fn chunks(bytes: &[u8], mut at: usize) -> Result<Option<Chunked>, Broken> {
    let mut chunks = Vec::new();
    loop {
        let Some(line) = line_end(&bytes[at..], b"\r\n") else { return Ok(None) };
        let digits = bytes[at..at + line].split(|byte| *byte == b';').next().unwrap_or_default();
        let digits = std::str::from_utf8(digits.trim_ascii()).map_err(|_| Broken::Malformed)?;
        let len = usize::from_str_radix(digits, 16).map_err(|_| Broken::Malformed)?;
        let chunk = at + line..(at + line).saturating_add(len);
        if len == 0 {
            // Fields may follow, up to an empty line.
            let Some(end) = line_end(&bytes[chunk.end - 2..], b"\r\n\r\n") else { return Ok(None) };
            return Ok(Some((chunks, chunk.end - 2 + end)));
        }
        if len > MESSAGE_BYTES {
            return Err(Broken::Malformed);
        }
        at = chunk.end + 2;
        if at > bytes.len() {
            return Ok(None);
        }
        chunks.push(chunk);
    }
}

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;

/// The head of a frame (RFC 6455 section 5.2).
struct Frame {
    kind: u8,
    is_final: bool,
    /// Bytes before the payload.
    head: usize,
    payload: usize,
    /// What is not zero of a mask.
    mask: Option<[u8; 4]>,
}

impl Frame {
    fn read(bytes: &[u8]) -> Result<Option<Self>, Broken> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        let short = usize::from(second & 0x7f);
        let digits = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let Some(length) = rest.get(..digits) else { return Ok(None) };
        let long = length.iter().fold(0, |length, digit| length << 8 | u64::from(*digit));
        let payload = if digits == 0 { short } else { long as usize };
        if payload > MESSAGE_BYTES || first & 0x70 != 0 {
            return Err(Broken::Malformed);
        }
        let (kind, is_final) = (first & 0xf, first & FINAL != 0);
        let mut head = 2 + digits;
        let mut mask = None;
        if second & MASKED != 0 {
            let Some(key) = bytes[head..].first_chunk::<4>() else { return Ok(None) };
            mask = Some(*key).filter(|key| *key != [0; 4]);
            head += 4;
        }
        Ok(Some(Self { kind, is_final, head, payload, mask }))
    }
}

/// Writes the head of a frame with a whole message.
///
/// A client's frame is masked with zeros, which costs nothing at either end. Clients are to choose
/// masks that nobody can predict, lest a page in a browser writes what a proxy takes for HTTP (RFC
/// 6455 section 10.3); here who chooses the bytes is who runs the benchmark.
pub(crate) fn push_frame_head(out: &mut Vec<u8>, is_pong: bool, is_client: bool, len: usize) {
    let mask = if is_client { MASKED } else { 0 };
    out.push(FINAL | if is_pong { PONG } else { TEXT });
    if len < 126 {
        out.push(mask | len as u8);
    } else if let Ok(len) = u16::try_from(len) {
        out.push(mask | 126);
        out.extend(len.to_be_bytes());
    } else {
        out.push(mask | 127);
        out.extend((len as u64).to_be_bytes());
    }
    if is_client {
        out.extend([0; 4]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// What comes in pieces of random lengths.
    struct Pieces<'a>(&'a [u8], Random);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = 1 << self.1.below(12);
            let count = self.1.between(1, most) as usize;
            let (piece, left) = self.0.split_at(count.min(self.0.len()).min(into.len()));
            into[..piece.len()].copy_from_slice(piece);
            self.0 = left;
            Ok(piece.len())
        }
    }

    fn read_all(wire: Wire, bytes: &[u8], random: Random) -> Vec<(u16, bool, Vec<u8>)> {
        let (mut messages, mut pieces) = (Messages::new(wire), Pieces(bytes, random));
        let mut all = Vec::new();
        while messages.read(&mut pieces).expect("it is there") > 0 {
            while let Some(message) = messages.next().expect("it is well formed") {
                let body = messages.bytes(&message.body).to_vec();
                all.push((message.status, message.is_ping, body));
            }
        }
        all
    }

    fn body(random: &mut Random) -> Vec<u8> {
        let most = [3, 200, 2_000, 100_000][random.below(4) as usize];
        let len = random.below(most);
        let digits = random.bytes(len as usize).into_iter().map(|byte| b'a' + byte % 16);
        [b"{\"a}\":[\"".to_vec(), digits.collect(), b"\\\"]\"]}".to_vec()].concat()
    }

    fn push(wire: Wire, body: &[u8], random: &mut Random, out: &mut Vec<u8>) {
        let pieces = if body.is_empty() { vec![] } else { split(body, random) };
        match wire {
            Wire::Ipc => {
                out.extend_from_slice(body);
                out.extend_from_slice([&b""[..], b"\n", b" \r\n\t"][random.below(3) as usize]);
            }
            Wire::Http if random.chance(0.5) => {
                let len = body.len();
                let head = format!("HTTP/1.1 200 OK\r\nX: y\r\ncontent-LENGTH:{len}\r\n\r\n");
                out.extend(head.bytes());
                out.extend_from_slice(body);
            }
            Wire::Http => {
                out.extend_from_slice(b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n");
                for piece in pieces {
                    out.extend(format!("{:x};a=b\r\n", piece.len()).bytes());
                    out.extend_from_slice(piece);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(
                    [&b"0\r\n\r\n"[..], b"0\r\nA: b\r\n\r\n"][random.below(2) as usize],
                );
            }
            Wire::WebSocket => {
                let (is_client, last) = (random.chance(0.5), pieces.len() - 1);
                for (at, piece) in pieces.into_iter().enumerate() {
                    let head = out.len();
                    push_frame_head(out, false, is_client, piece.len());
                    out[head] = if at == 0 { TEXT } else { 0 } | if at == last { FINAL } else { 0 };
                    let mask: [u8; 4] = if is_client {
                        random.word().to_le_bytes()[..4].try_into().expect("four")
                    } else {
                        [0; 4]
                    };
                    if is_client {
                        let end = out.len();
                        out[end - 4..].copy_from_slice(&mask);
                    }
                    out.extend(piece.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
                    if random.chance(0.3) {
                        push_frame_head(out, true, false, 2);
                        out.extend_from_slice(b"po");
                    }
                }
            }
        }
    }

    fn split<'a>(body: &'a [u8], random: &mut Random) -> Vec<&'a [u8]> {
        body.chunks(1 + random.below(body.len() as u64) as usize).collect()
    }

    #[test]
    fn messages_are_told_apart_in_whatever_pieces_they_come() {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            for wire in Wire::ALL {
                let bodies: Vec<_> = (0..random.below(30)).map(|_| body(&mut random)).collect();
                let mut bytes = Vec::new();
                bodies.iter().for_each(|body| push(wire, body, &mut random, &mut bytes));
                let read = read_all(wire, &bytes, random.clone());
                let status = if wire == Wire::Http { 200 } else { 0 };
                let expected: Vec<_> =
                    bodies.into_iter().map(|body| (status, false, body)).collect();
                assert!(read == expected, "seed {seed}, {wire:?}");
            }
        }
    }

    #[test]
    fn a_ping_is_told_even_within_a_message_and_once() {
        let mut bytes = vec![TEXT, 1, b'{'];
        bytes.extend([FINAL | PING, 2, b'h', b'i', FINAL, 1, b'}', FINAL | PING, 0]);
        let expected =
            vec![(0, true, b"hi".to_vec()), (0, false, b"{}".to_vec()), (0, true, vec![])];
        assert_eq!(read_all(Wire::WebSocket, &bytes, Random::new(1)), expected);
    }

    #[test]
    fn a_head_says_when_to_come_again_and_whether_it_is_the_last() {
        let check = |text: &str, status, is_last, retry_after, body: &str| {
            let mut messages = Messages::new(Wire::Http);
            messages.read(&mut text.as_bytes()).expect("it is there");
            let message = messages.next().expect("it is well formed").expect("it is whole");
            assert_eq!(
                (message.status, message.is_last, message.retry_after),
                (status, is_last, retry_after)
            );
            assert_eq!(messages.bytes(&message.body), body.as_bytes());
        };
        let limited = "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno";
        check(limited, 429, false, Some(7), "no");
        let date = "HTTP/1.1 429 No\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n";
        check(date, 429, true, None, "");
        check(
            "HTTP/1.0 500 No\r\nConnection: Close\r\ncontent-length: 0\r\n\r\n",
            500,
            true,
            None,
            "",
        );
        check("HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\n\r\n\u{1}\u{0}", 101, false, None, "");
        check("POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n1", 0, false, None, "1");
    }

    #[test]
    fn what_is_no_message_is_malformed() {
        let check = |wire, text: &[u8], expected| {
            let mut messages = Messages::new(wire);
            messages.read(&mut &*text).expect("it is there");
            assert_eq!(messages.next(), Err(expected), "{text:?}");
        };
        check(Wire::Http, b"HTTP/1.1 x\r\n\r\n", Broken::Malformed);
        check(Wire::Http, b"HTTP/1.1 200 OK\r\n\r\n", Broken::Malformed);
        check(Wire::Http, b"HTTP/1.1 200 OK\r\nnothing\r\n\r\n", Broken::Malformed);
        check(Wire::Http, b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Broken::Malformed);
        check(
            Wire::Http,
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            Broken::Malformed,
        );
        check(
            Wire::Http,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ng\r\n",
            Broken::Malformed,
        );
        check(Wire::Http, &[b'a'; HEAD_BYTES + 1], Broken::Malformed);
        check(Wire::Ipc, b" x", Broken::Malformed);
        check(Wire::WebSocket, &[FINAL | CLOSE, 0], Broken::Closed);
        check(Wire::WebSocket, &[0xff, 0], Broken::Malformed);
        check(Wire::WebSocket, &[FINAL | TEXT, 127, 255, 0, 0, 0, 0, 0, 0, 0], Broken::Malformed);
    }
}
