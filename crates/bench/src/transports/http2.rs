//! One request on one connection of HTTP/2 with prior knowledge (RFC 9113), as little of it as
//! that takes: the windows are opened so far that nothing waits for them.

use std::io::{self, BufReader, Error, ErrorKind, Read, Write};

use anyhow::{bail, ensure};

use super::connection::read_some;
use crate::stream::Stream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The largest window there is.
const WINDOW_BYTES: u32 = (1 << 31) - 1;
/// What a connection's window is unless it is opened further, and a request's at the other end.
const FIRST_WINDOW_BYTES: u32 = 65_535;
/// The largest frame that we take.
const FRAME_BYTES: u32 = 1 << 20;
/// The largest frame that everybody takes.
const LEAST_FRAME_BYTES: usize = 16_384;
/// Room is given back in such steps.
const UPDATE_BYTES: usize = 64 << 20;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED_OR_PRIORITY: u8 = 0x28;

/// The stream of the one request.
const STREAM: u32 = 1;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Says what a connection begins with.
pub(super) fn begin(stream: &mut Stream) -> io::Result<()> {
    let mut settings = Vec::new();
    // ENABLE_PUSH, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE
    for (name, value) in [(2u16, 0), (4, WINDOW_BYTES), (5, FRAME_BYTES)] {
        settings.extend(name.to_be_bytes());
        settings.extend(value.to_be_bytes());
    }
    let update = (WINDOW_BYTES - FIRST_WINDOW_BYTES).to_be_bytes();
    let settings = frame(SETTINGS, 0, 0, &settings);
    stream.write_all(&[PREFACE, &settings, &frame(WINDOW_UPDATE, 0, 0, &update)].concat())
}

/// The frames of a request.
pub(super) fn request(headers: &[(&str, String)], body: &[u8]) -> anyhow::Result<Vec<u8>> {
    ensure!(body.len() <= FIRST_WINDOW_BYTES as usize, "{} bytes need a window", body.len());
    let mut block = Vec::new();
    for (name, value) in headers {
        // A literal that is not remembered, with a literal name (RFC 7541 section 6.2.2).
        block.push(0);
        push_string(&mut block, name.as_bytes());
        push_string(&mut block, value.as_bytes());
    }
    let mut frames = frame(HEADERS, END_HEADERS, STREAM, &block);
    let mut left = body;
    while !left.is_empty() {
        let (part, rest) = left.split_at(left.len().min(LEAST_FRAME_BYTES));
        let flags = if rest.is_empty() { END_STREAM } else { 0 };
        frames.extend(frame(DATA, flags, STREAM, part));
        left = rest;
    }
    Ok(frames)
}

/// A string that is not compressed (RFC 7541 sections 5.1 and 5.2).
fn push_string(block: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len().checked_sub(127) {
        None => block.push(bytes.len() as u8),
        Some(mut left) => {
            block.push(127);
            while left >= 128 {
                block.push(0x80 | (left % 128) as u8);
                left /= 128;
            }
            block.push(left as u8);
        }
    }
    block.extend_from_slice(bytes);
}

/// The body of the answer.
pub(super) struct Body<'a> {
    stream: &'a mut BufReader<Stream>,
    left: usize,
    /// Whether there are headers.
    begun: bool,
    is_last: bool,
    /// Bytes that came and were not given back to the windows.
    taken: usize,
}

/// Waits for the headers of the answer.
pub(super) fn body(stream: &mut BufReader<Stream>) -> anyhow::Result<Body<'_>> {
    let mut body = Body { stream, left: 0, begun: false, is_last: false, taken: 0 };
    while !body.begun {
        body.read_frame()?;
        if body.is_last {
            bail!("the answer ends before its headers");
        }
    }
    Ok(body)
}

impl Body<'_> {
    fn read_frame(&mut self) -> io::Result<()> {
        let fault = |text: String| Err(Error::new(ErrorKind::InvalidData, text));
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let len = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (kind, flags) = (head[3], head[4]);
        if len > FRAME_BYTES as usize {
            return fault(format!("a frame of {len} bytes"));
        }
        if matches!(kind, DATA | HEADERS) {
            if flags & PADDED_OR_PRIORITY != 0 {
                return fault("a frame with padding".into());
            }
            self.is_last = flags & END_STREAM != 0;
        }
        if kind == DATA {
            self.left = len;
            return Ok(());
        }
        let mut payload = vec![0; len];
        self.stream.read_exact(&mut payload)?;
        match kind {
            HEADERS if !self.begun => {
                // The status comes first; 200 is number 8 of the table (RFC 7541 appendix A).
                match payload.first() {
                    Some(0x88) => self.begun = true,
                    other => return fault(format!("the status is not 200: {other:x?}")),
                }
            }
            SETTINGS if flags & ACK == 0 => self.send(&frame(SETTINGS, ACK, 0, &[]))?,
            PING if flags & ACK == 0 => self.send(&frame(PING, ACK, 0, &payload))?,
            RST_STREAM | GOAWAY => return fault(format!("the server gives up: {payload:x?}")),
            _ => {}
        }
        Ok(())
    }

    fn send(&mut self, frames: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(frames)
    }
}

impl Read for Body<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 && !self.is_last {
            self.read_frame()?;
        }
        let count = read_some(self.stream, &mut self.left, into)?;
        self.taken += count;
        if self.taken >= UPDATE_BYTES {
            let update = (self.taken as u32).to_be_bytes();
            self.taken = 0;
            let updates = [0, STREAM].map(|stream| frame(WINDOW_UPDATE, 0, stream, &update));
            self.send(&updates.concat())?;
        }
        Ok(count)
    }
}
