//! Long frames of a WebSocket, read as several short ones.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::limits::{FRAME_BYTES, READ_BYTES};

/// A connection of which no frame is longer than [`FRAME_BYTES`] when it is read: longer ones are
/// split into several frames of the same message (RFC 6455 section 5.4).
///
/// The WebSocket library keeps the memory of the longest frame as long as the connection lives,
/// and that of a message no longer than the message.
#[derive(Debug)]
pub(crate) struct SplitFrames<T> {
    inner: T,
    /// Longer frames stay as they are, to be refused by their length.
    longest: u64,
    /// Read, and not given yet.
    read: BytesMut,
    /// A header on its way out.
    header: BytesMut,
    /// Bytes of the current frame's content that are still to come.
    content_bytes: u64,
    /// The rest of the frame that was sent, as a frame of its own.
    rest: Option<FrameHeader>,
}

/// RFC 6455 section 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameHeader {
    /// FIN, three reserved bits and the opcode.
    first: u8,
    mask: Option<[u8; 4]>,
    content_bytes: u64,
}

const FIN: u8 = 0x80;
const OPCODE: u8 = 0x0f;
/// The first opcode of control frames, which are not split.
const CONTROL: u8 = 8;
const MASKED: u8 = 0x80;

impl FrameHeader {
    /// Reads a header, and its length; `None` while it is not complete.
    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (&first, rest) = bytes.split_first()?;
        let (&second, rest) = rest.split_first()?;
        let (content_bytes, rest) = match second & !MASKED {
            126 => {
                let (length, rest) = rest.split_first_chunk()?;
                (u16::from_be_bytes(*length).into(), rest)
            }
            127 => {
                let (length, rest) = rest.split_first_chunk()?;
                (u64::from_be_bytes(*length), rest)
            }
            length => (length.into(), rest),
        };
        let (mask, rest) = match second & MASKED {
            0 => (None, rest),
            _ => rest.split_first_chunk().map(|(mask, rest)| (Some(*mask), rest))?,
        };
        Some((Self { first, mask, content_bytes }, bytes.len() - rest.len()))
    }

    fn write(&self, bytes: &mut BytesMut) {
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        bytes.extend_from_slice(&[self.first]);
        match (u8::try_from(self.content_bytes), u16::try_from(self.content_bytes)) {
            (Ok(length @ ..126), _) => bytes.extend_from_slice(&[length | masked]),
            (_, Ok(length)) => {
                bytes.extend_from_slice(&[126 | masked]);
                bytes.extend_from_slice(&length.to_be_bytes());
            }
            _ => {
                bytes.extend_from_slice(&[127 | masked]);
                bytes.extend_from_slice(&self.content_bytes.to_be_bytes());
            }
        }
        bytes.extend_from_slice(&self.mask.unwrap_or_default()[..4 * usize::from(masked != 0)]);
    }

    /// The first part of a frame that is too long, and the rest.
    fn split(self, longest: u64) -> (Self, Option<Self>) {
        let is_control = self.first & OPCODE >= CONTROL;
        let most = FRAME_BYTES as u64;
        if is_control || self.content_bytes <= most || self.content_bytes > longest {
            return (self, None);
        }
        let first = Self { first: self.first & !FIN, content_bytes: most, ..self };
        // It is masked as if the frame went on, since the mask repeats after four bytes.
        let rest = self.content_bytes - most;
        let rest = Self { first: self.first & FIN, content_bytes: rest, ..self };
        (first, Some(rest))
    }
}

impl<T> SplitFrames<T> {
    /// `read` has been read already. Frames longer than `longest` are not split.
    pub(crate) fn new(inner: T, read: &[u8], longest: usize) -> Self {
        Self {
            inner,
            longest: longest as u64,
            read: read.into(),
            header: BytesMut::new(),
            content_bytes: 0,
            rest: None,
        }
    }

    /// Copies what has been read into `buf`, as far as it has space.
    fn fill(&mut self, buf: &mut ReadBuf<'_>) {
        loop {
            put(&mut self.header, usize::MAX, buf);
            let most = usize::try_from(self.content_bytes).unwrap_or(usize::MAX);
            self.content_bytes -= put(&mut self.read, most, buf) as u64;
            if buf.remaining() == 0 || self.content_bytes > 0 {
                return;
            }
            let (header, rest) = match self.rest.take() {
                Some(rest) => rest.split(u64::MAX),
                None => {
                    let Some((header, length)) = FrameHeader::read(&self.read) else { return };
                    self.read.advance(length);
                    header.split(self.longest)
                }
            };
            header.write(&mut self.header);
            (self.content_bytes, self.rest) = (header.content_bytes, rest);
        }
    }
}

/// Moves at most so many bytes, and returns how many.
fn put(from: &mut BytesMut, most: usize, buf: &mut ReadBuf<'_>) -> usize {
    let count = from.len().min(most).min(buf.remaining());
    buf.put_slice(&from[..count]);
    from.advance(count);
    count
}

impl<T: AsyncRead + Unpin> AsyncRead for SplitFrames<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        loop {
            self.fill(buf);
            if buf.filled().len() > before || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            let this = &mut *self;
            if this.read.is_empty() && this.content_bytes > 0 {
                // Content is read straight into the caller's buffer.
                let most = usize::try_from(this.content_bytes).unwrap_or(usize::MAX);
                let most = most.min(buf.remaining());
                let mut content = ReadBuf::new(buf.initialize_unfilled_to(most));
                ready!(Pin::new(&mut this.inner).poll_read(cx, &mut content))?;
                let count = content.filled().len();
                buf.advance(count);
                this.content_bytes -= count as u64;
                return Poll::Ready(Ok(()));
            }
            // There may be the beginning of a header.
            this.read.reserve(READ_BYTES - this.read.len());
            if ready!(pin!(this.inner.read_buf(&mut this.read)).poll(cx))? == 0 {
                // In the middle of a header: the library finds that it is cut off.
                put(&mut this.read, usize::MAX, buf);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for SplitFrames<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{SinkExt, StreamExt};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use tokio::io::{AsyncWriteExt, duplex, join, sink};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

    const LONGEST: usize = 5 * FRAME_BYTES;

    /// Messages in frames of any length, any number of them each, with pings in between.
    fn frames(rng: &mut StdRng) -> (Vec<Frame>, Vec<Message>) {
        let (mut frames, mut messages, mut message) = (Vec::new(), Vec::new(), Vec::new());
        let mut kind = Data::Text;
        for left in (0..rng.random_range(1..12)).rev() {
            let length = match rng.random_range(0..6) {
                0 => rng.random_range(0..130),
                1 => rng.random_range(65_530..65_540),
                2 => FRAME_BYTES + rng.random_range(0..3) - 1,
                3 => 2 * FRAME_BYTES + rng.random_range(0..3) - 1,
                4 => rng.random_range(0..3 * FRAME_BYTES),
                _ => rng.random_range(0..2_000),
            };
            if message.is_empty() {
                kind = if rng.random() { Data::Text } else { Data::Binary };
            }
            let opcode = if message.is_empty() { kind } else { Data::Continue };
            let content = match kind {
                Data::Binary => (0..length).map(|_| rng.random()).collect::<Vec<u8>>(),
                // Characters of four bytes and of one, which are cut anywhere.
                _ => ["😀", "a"].repeat(length / 5 + 1).concat().into_bytes(),
            };
            let is_last = left == 0 || rng.random_ratio(2, 3);
            // An empty beginning would be one again.
            message.extend_from_slice(&content);
            frames.push(Frame::message(
                content,
                OpCode::Data(opcode),
                is_last || message.is_empty(),
            ));
            if is_last || message.is_empty() {
                let message = std::mem::take(&mut message);
                messages.push(match kind {
                    Data::Binary => Message::binary(message),
                    _ => Message::text(String::from_utf8(message).expect("whole characters")),
                });
            }
            if rng.random_ratio(1, 4) {
                frames.push(Frame::ping(vec![7; 9]));
                messages.push(Message::Ping(vec![7; 9].into()));
            }
        }
        (frames, messages)
    }

    /// All that comes, the frames of a message in one.
    async fn messages<T: AsyncRead + AsyncWrite + Unpin>(
        connection: T,
        role: Role,
    ) -> Vec<Message> {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .max_message_size(None)
            .max_frame_size(Some(LONGEST));
        let read = WebSocketStream::from_raw_socket(connection, role, Some(config)).await;
        read.take_while(|message| std::future::ready(message.is_ok()))
            .map(Result::unwrap)
            .collect()
            .await
    }

    #[tokio::test]
    async fn messages_are_the_same_in_short_frames() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        for round in 0..40 {
            // Frames of a client are masked.
            let (sender, reader) = match round % 2 {
                0 => (Role::Client, Role::Server),
                _ => (Role::Server, Role::Client),
            };
            let (ours, mut theirs) = duplex(8 << 20);
            let (sent, expected) = frames(rng);
            let mut writer = WebSocketStream::from_raw_socket(ours, sender, None).await;
            let write = async {
                for frame in sent {
                    writer.send(Message::Frame(frame)).await.expect("it is read");
                }
                drop(writer);
            };
            let mut bytes = Vec::new();
            let (read, ()) = tokio::join!(theirs.read_to_end(&mut bytes), write);
            read.expect("memory");
            // A ping in the middle of a message comes before it.
            let plain = messages(join(&bytes[..], sink()), reader).await;
            let pings = |messages: &[Message]| messages.iter().filter(|one| one.is_ping()).count();
            let others = |messages: &[Message]| -> Vec<Message> {
                messages.iter().filter(|one| !one.is_ping()).cloned().collect()
            };
            assert_eq!(pings(&plain), pings(&expected));
            assert!(others(&plain) == others(&expected), "round {round}");

            // They come in any pieces, some before the connection begins.
            let (mut ours, theirs) = duplex(rng.random_range(1..100_000));
            let begun = rng.random_range(0..bytes.len().min(40));
            // Pongs go nowhere.
            let short = SplitFrames::new(join(theirs, sink()), &bytes[..begun], LONGEST);
            let write = async {
                let mut left = &bytes[begun..];
                while !left.is_empty() {
                    let (piece, rest) = left.split_at(rng.random_range(1..=left.len().min(90_000)));
                    ours.write_all(piece).await.expect("it is read");
                    left = rest;
                }
                drop(ours);
            };
            let (found, ()) = tokio::join!(messages(short, reader), write);
            assert!(found == plain, "round {round}");
        }
    }

    #[tokio::test]
    async fn no_frame_is_long_but_one_that_nobody_takes() {
        let check = |length: usize, expected: &'static [usize]| async move {
            let (ours, theirs) = duplex(LONGEST + 100);
            let frame = Frame::message(vec![1; length], OpCode::Data(Data::Text), true);
            let mut writer = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
            writer.send(Message::Frame(frame)).await.expect("there is room");
            drop(writer);
            let mut bytes = Vec::new();
            let mut short = SplitFrames::new(theirs, &[], LONGEST - 1);
            short.read_to_end(&mut bytes).await.expect("memory");
            let (mut bytes, mut lengths) = (&bytes[..], Vec::new());
            while let Some((header, length)) = FrameHeader::read(bytes) {
                let content = header.content_bytes as usize;
                let is_first = lengths.is_empty();
                lengths.push(content);
                bytes = &bytes[length + content..];
                let fin = if bytes.is_empty() { FIN } else { 0 };
                assert_eq!(header.first, fin | u8::from(is_first));
            }
            assert_eq!(lengths, expected);
        };
        check(0, &[0]).await;
        check(FRAME_BYTES, &[FRAME_BYTES]).await;
        check(FRAME_BYTES + 1, &[FRAME_BYTES, 1]).await;
        check(3 * FRAME_BYTES, &[FRAME_BYTES; 3]).await;
        check(LONGEST, &[LONGEST]).await;
    }

    #[tokio::test]
    async fn what_is_cut_off_is_cut_off() {
        for header in [&[0x82u8][..], &[0x82, 0xff, 0, 0, 0], &[0x82, 5, 1]] {
            let short = SplitFrames::new(header, &[], LONGEST);
            let mut given = Vec::new();
            pin!(short).read_to_end(&mut given).await.expect("memory");
            assert_eq!(given, header);
        }
    }
}
