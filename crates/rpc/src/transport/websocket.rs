//! Both ends of a WebSocket (RFC 6455): messages in text or binary frames, pings, goodbyes.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{Parts, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, Utf8Bytes};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};

use crate::limits::{
    CLOSE_TIME, DISCARD_BYTES, FRAME_BYTES, READ_BYTES, REASON_BYTES, SHORT_BYTES, UNSENT_BYTES,
    WRITE_BYTES,
};
use crate::pieces::Pieces;
use crate::transport::budget::{Budget, Reservation};
use crate::transport::message_memory::MessageMemory;
use crate::transport::messages::{
    Ending, MessagePermits, MessageReader, OutgoingMessage, ShortTexts,
};
use crate::transport::slot::ConnectionSlot;
use crate::transport::socket::{Socket, SocketActivity};
use crate::transport::split_frames::SplitFrames;

/// One end of a WebSocket.
pub(crate) struct WebSocket {
    frames: WebSocketStream<SplitFrames<Socket>>,
    activity: SocketActivity,
}

impl From<Error> for Ending {
    fn from(error: Error) -> Self {
        match error {
            Error::ConnectionClosed | Error::AlreadyClosed => Self::Left(None),
            Error::Capacity(CapacityError::MessageTooLong { max_size, .. }) => {
                let reason =
                    format_args!("the message is too long: at most {max_size} bytes are taken");
                Self::fault(CloseCode::Size, reason)
            }
            Error::Utf8(_) => Self::not_utf8(),
            Error::Protocol(
                ProtocolError::ResetWithoutClosingHandshake | ProtocolError::SendAfterClosing,
            ) => Self::Broken("the connection was cut".into()),
            Error::Protocol(fault) => Self::fault(CloseCode::Protocol, fault),
            fault => Self::Broken(format!("the connection broke: {fault}")),
        }
    }
}

impl WebSocket {
    /// Takes a connection over from hyper, once both sides have agreed to it. The connection is a
    /// [`Socket`].
    pub(crate) async fn after(upgraded: Upgraded, role: Role, message_bytes: usize) -> Self {
        let socket = upgraded.downcast::<TokioIo<Socket>>();
        let Parts { io, read_buf, .. } = socket.expect("all connections are sockets");
        let socket = io.into_inner();
        let activity = socket.activity();
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(WRITE_BYTES)
            .max_write_buffer_size(UNSENT_BYTES)
            .max_message_size(Some(message_bytes))
            .max_frame_size(Some(message_bytes));
        let socket = SplitFrames::new(socket, &read_buf, message_bytes);
        let frames = WebSocketStream::from_raw_socket(socket, role, Some(config)).await;
        Self { frames, activity }
    }

    /// The two halves, which one task uses at the same time.
    pub(crate) fn split(self) -> (WsReader, WsWriter) {
        let (frames_out, frames_in) = self.frames.split();
        // One at a time: a second ping says no more.
        let (ping, pings) = mpsc::channel(1);
        (
            WsReader { frames: frames_in, activity: self.activity, ping, memory: None },
            WsWriter { frames: frames_out, pings },
        )
    }
}

/// The half that receives messages.
pub(crate) struct WsReader {
    frames: SplitStream<WebSocketStream<SplitFrames<Socket>>>,
    activity: SocketActivity,
    ping: mpsc::Sender<()>,
    memory: Option<MessageMemory>,
}

/// The events that a reader waits for.
enum ReadEvent {
    Message(Option<Result<Message, Error>>),
    Silence,
    /// The message that comes needs more memory.
    More,
    /// The message that comes is evicted.
    Evicted,
}

impl WsReader {
    /// Has long messages reserve memory, for which they wait at most for `most_wait`.
    pub(crate) fn reserve_for_messages(
        &mut self,
        slot: Arc<ConnectionSlot>,
        budget: Arc<Budget>,
        most_wait: Duration,
    ) {
        self.activity.count();
        self.memory = Some(MessageMemory::new(slot, budget, most_wait));
    }

    fn finish(&mut self) -> Result<(), Ending> {
        self.activity.forget();
        self.memory.as_mut().map_or(Ok(()), MessageMemory::finish)
    }

    async fn wait(&mut self, silence: Duration) -> ReadEvent {
        let evicted = self.memory.as_ref().map(MessageMemory::evicted);
        let is_evicted = async {
            match evicted {
                Some(evicted) => evicted.notified().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            message = timeout(silence, self.frames.next()) => {
                message.map_or(ReadEvent::Silence, ReadEvent::Message)
            }
            () = self.activity.more() => ReadEvent::More,
            () = is_evicted => ReadEvent::Evicted,
        }
    }
}

impl MessageReader for WsReader {
    type Writer = WsWriter;

    /// RFC 6455 section 7.1.7.
    const ANSWERS_BEFORE_FAULTS: bool = false;

    fn take_reservation(&mut self) -> Option<Reservation> {
        self.memory.as_mut().and_then(MessageMemory::take_complete)
    }

    /// Pings whenever nothing came for `silence`, and gives up after twice in a row.
    async fn next(
        &mut self,
        silence: Duration,
        waited_for: impl Fn() -> bool + Send,
    ) -> Result<Utf8Bytes, Ending> {
        let mut pinged = false;
        loop {
            let message = match self.wait(silence).await {
                ReadEvent::Message(message) => message,
                ReadEvent::Silence => {
                    let silent = !self.activity.anything();
                    if pinged && silent && !waited_for() {
                        return Err(Ending::Silent(silence));
                    }
                    // A ping that is on its way already will do.
                    self.ping.try_send(()).unwrap_or_default();
                    pinged = true;
                    continue;
                }
                ReadEvent::More => {
                    let bytes = self.activity.counted();
                    if let Some(memory) = &mut self.memory {
                        memory.grow(bytes).await?;
                    }
                    continue;
                }
                ReadEvent::Evicted => return Err(MessageMemory::too_slow()),
            };
            match message {
                Some(Ok(Message::Text(text))) => return self.finish().map(|()| text),
                // They may come between the frames of a message, and are no part of it.
                Some(Ok(Message::Ping(bytes) | Message::Pong(bytes))) => {
                    self.activity.uncount(CONTROL_FRAME_BYTES + bytes.len());
                }
                Some(Ok(Message::Frame(_))) => {}
                // web3.py sends JSON so.
                Some(Ok(Message::Binary(bytes))) => {
                    self.finish()?;
                    return Utf8Bytes::try_from(bytes).map_err(|_| Ending::not_utf8());
                }
                Some(Ok(Message::Close(why))) => return Err(Ending::Left(why)),
                Some(Err(fault)) => return Err(fault.into()),
                None => return Err(Ending::Left(None)),
            }
        }
    }

    async fn send_all(
        writer: &mut WsWriter,
        outgoing: &mut mpsc::Receiver<OutgoingMessage>,
    ) -> Ending {
        writer.send_all(outgoing).await
    }

    /// Waits for the other side to say goodbye too.
    async fn close(self, writer: WsWriter, ending: &Ending) {
        close(self, writer, ending).await;
    }
}

/// The header of a short frame of a client, in bytes (RFC 6455 section 5.2).
const CONTROL_FRAME_BYTES: usize = 6;

/// The half that sends messages.
pub(crate) struct WsWriter {
    frames: SplitSink<WebSocketStream<SplitFrames<Socket>>, Message>,
    pings: mpsc::Receiver<()>,
}

impl WsWriter {
    /// Sends until a goodbye, or until nothing can come any more, which is [`CloseCode::Normal`],
    /// or something fails.
    pub(crate) async fn send_all(
        &mut self,
        outgoing: &mut mpsc::Receiver<OutgoingMessage>,
    ) -> Ending {
        loop {
            let sent = tokio::select! {
                biased;
                Some(()) = self.pings.recv() => self.send(Message::Ping(Bytes::new())).await,
                next = outgoing.recv() => match next {
                    Some(message) => match self.send_at_hand(message, outgoing).await {
                        Ok(None) => Ok(()),
                        Ok(Some(goodbye)) => return goodbye,
                        Err(fault) => Err(fault),
                    },
                    None => return Ending::fault(CloseCode::Normal, ""),
                },
            };
            if let Err(fault) = sent {
                return match fault.into() {
                    // The reader knows the reason.
                    Ending::Left(_) => pending().await,
                    ending => ending,
                };
            }
        }
    }

    /// Sends a message, and those behind it that are at hand: short ones are written together.
    async fn send_at_hand(
        &mut self,
        first: OutgoingMessage,
        outgoing: &mut mpsc::Receiver<OutgoingMessage>,
    ) -> Result<Option<Ending>, Error> {
        // The permits of what the operating system may not have yet.
        let (mut unsent, mut unsent_bytes) = (Vec::new(), 0);
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                OutgoingMessage::Goodbye(ending) => {
                    self.frames.flush().await?;
                    return Ok(Some(ending));
                }
                OutgoingMessage::Text(text, permits) if text.len_bytes() > SHORT_BYTES => {
                    self.send_text(text, permits).await?;
                    unsent.clear();
                    break;
                }
                OutgoingMessage::Text(text, permits) => {
                    unsent_bytes += self.write(text).await?;
                    unsent.push((permits, None));
                }
                OutgoingMessage::ShortTexts(ShortTexts { texts, permits }) => {
                    for text in texts {
                        unsent_bytes += self.write(text).await?;
                    }
                    unsent.push((None, permits));
                }
            }
            next = (unsent_bytes < WRITE_BYTES).then(|| outgoing.try_recv().ok()).flatten();
        }
        self.frames.flush().await?;
        Ok(None)
    }

    /// Has the library take a short text, which is sent at the next flush.
    async fn write(&mut self, mut text: Pieces) -> Result<usize, Error> {
        let bytes = text.len_bytes();
        let frame = Frame::message(text.take(SHORT_BYTES), OpCode::Data(Data::Text), true);
        self.frames.feed(Message::Frame(frame)).await?;
        Ok(bytes)
    }

    async fn send_text(
        &mut self,
        text: Pieces,
        permits: Option<Box<MessagePermits>>,
    ) -> Result<(), Error> {
        for frame in Frames::new(text) {
            if self.pings.try_recv().is_ok() {
                self.send(Message::Ping(Bytes::new())).await?;
            }
            self.send(Message::Frame(frame)).await?;
        }
        drop(permits);
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), Error> {
        // Short texts and pongs may wait, which with a whole frame would exceed the bound.
        self.frames.flush().await?;
        self.frames.send(message).await
    }
}

/// Says goodbye, waits for the other side to do so too, and closes the connection.
pub(crate) async fn close(reader: WsReader, writer: WsWriter, ending: &Ending) {
    let WsReader { frames, memory, .. } = reader;
    let mut frames = frames.reunite(writer.frames).expect("the halves of one");
    let goodbye = async move {
        match ending {
            // The library has the answer ready, and sends it on the way to the end.
            Ending::Left(_) => while frames.next().await.transpose()?.is_some() {},
            // The message is dropped, and the rest of it read and forgotten: others need the
            // memory.
            Ending::Fault { code: code @ CloseCode::Again, reason } => {
                say_goodbye(&mut frames, *code, reason).await?;
                let mut socket = frames.into_inner();
                drop(memory);
                read_and_forget(&mut socket).await?;
            }
            Ending::Fault { code, reason } => {
                say_goodbye(&mut frames, *code, reason).await?;
                await_goodbye(&mut frames).await?;
            }
            Ending::Silent(_) => {
                say_goodbye(&mut frames, CloseCode::Error, &ending.to_string()).await?;
            }
            Ending::Asked | Ending::Broken(_) => {}
        }
        Ok::<_, Error>(())
    };
    match timeout(CLOSE_TIME, goodbye).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => tracing::debug!(%fault, "a WebSocket broke while it was closed"),
        Err(_) => tracing::debug!("a WebSocket was cut: the other side did not say goodbye"),
    }
}

async fn say_goodbye(
    frames: &mut WebSocketStream<SplitFrames<Socket>>,
    code: CloseCode,
    reason: &str,
) -> Result<(), Error> {
    let end = reason.floor_char_boundary(REASON_BYTES);
    frames.flush().await?;
    frames.close(Some(CloseFrame { code, reason: reason[..end].into() })).await
}

async fn await_goodbye(frames: &mut WebSocketStream<SplitFrames<Socket>>) -> Result<(), Error> {
    let mut answered = false;
    while let Some(Ok(message)) = frames.next().await {
        answered |= message.is_close();
    }
    if answered {
        return Ok(());
    }
    // The rest of the stream cannot be understood.
    Ok(read_and_forget(frames.get_mut()).await?)
}

/// Reads on, so that the other side, still writing, reads the reason and not a reset connection.
async fn read_and_forget(socket: &mut SplitFrames<Socket>) -> io::Result<()> {
    socket.shutdown().await?;
    let (mut bytes, mut forgotten) = (0, vec![0; READ_BYTES]);
    while bytes < DISCARD_BYTES {
        match socket.read(&mut forgotten).await? {
            0 => break,
            count => bytes += count,
        }
    }
    Ok(())
}

/// A text in frames of at most [`FRAME_BYTES`].
struct Frames {
    text: Pieces,
    kind: Data,
}

impl Frames {
    fn new(text: Pieces) -> Self {
        Self { text, kind: Data::Text }
    }
}

impl Iterator for Frames {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        if self.text.is_empty() {
            return None;
        }
        let piece = self.text.take(FRAME_BYTES);
        let kind = std::mem::replace(&mut self.kind, Data::Continue);
        Some(Frame::message(piece, OpCode::Data(kind), self.text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_are_the_text_in_pieces_and_the_last_one_says_so(
            lengths in prop::collection::vec(
                prop_oneof![0..20usize, 0..3 * FRAME_BYTES, Just(FRAME_BYTES)], 1..8),
        ) {
            let mut byte = 0u8;
            let mut part = |length: usize| -> Bytes {
                (0..length).map(|_| { byte = byte.wrapping_add(1) % 251; byte }).collect()
            };
            let mut parts: Vec<Bytes> = lengths.into_iter().map(&mut part).collect();
            parts.push(part(1));
            let text = Pieces::from(parts);
            let expected = text.to_vec();
            let frames: Vec<Frame> = Frames::new(text).collect();
            let count = frames.len();
            prop_assert!(frames.iter().all(|frame| frame.payload().len() <= FRAME_BYTES));
            let mut joined = Vec::new();
            for (place, frame) in frames.iter().enumerate() {
                let kind = if place == 0 { Data::Text } else { Data::Continue };
                prop_assert_eq!(frame.header().opcode, OpCode::Data(kind));
                prop_assert_eq!(frame.header().is_final, place + 1 == count);
                joined.extend_from_slice(frame.payload());
            }
            prop_assert!(joined == expected);
        }
    }

    #[test]
    fn an_ending_says_who_ended_it_and_why() {
        let check = |ending: Ending, expected: &str| assert_eq!(ending.to_string(), expected);
        let why = |code, reason: &'static str| {
            Ending::Left(Some(CloseFrame { code, reason: reason.into() }))
        };
        check(Ending::Left(None), "the other side left without a word");
        check(why(CloseCode::Away, ""), "the other side left (1001)");
        check(why(CloseCode::Policy, "slow"), "the other side left (1008): slow");
        check(Error::Utf8(String::new()).into(), "the message is not UTF-8 (1007)");
        check(
            Error::Capacity(CapacityError::MessageTooLong { size: 9, max_size: 8 }).into(),
            "the message is too long: at most 8 bytes are taken (1009)",
        );
    }
}
