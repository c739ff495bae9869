//! What both ends of a WebSocket do: messages of text in, in text or binary frames, and out, pings,
//! goodbyes (RFC 6455).

use std::fmt;
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
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, Utf8Bytes};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};

use crate::jsonrpc::json::Json;
use crate::jsonrpc::session;
use crate::limits::{
    BODY_STEP_BYTES, CLOSE_TIME, DISCARD_BYTES, FRAME_BYTES, READ_BYTES, REASON_BYTES, UNSENT_BYTES,
};
use crate::pieces::Pieces;
use crate::port::Port;
use crate::transport::room::Place;
use crate::transport::short_frames::ShortFrames;
use crate::transport::socket::{Heard, Socket};

/// One end of a WebSocket.
pub(crate) struct WebSocket {
    frames: WebSocketStream<ShortFrames<Socket>>,
    heard: Heard,
}

/// What is on its way out.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A message, with what is given back when the operating system has it, or the connection has
    /// ended.
    Text(Json, Option<Held>),
    /// The last word, after all that is on its way already.
    Goodbye(Ending),
}

/// The room that a message takes.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) _place: OwnedSemaphorePermit,
    /// Until it is answered.
    pub(crate) message: Option<(OwnedSemaphorePermit, Option<Place>)>,
    pub(crate) _answer: Option<Arc<Place>>,
}

/// How a conversation ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The other side has asked all that it will, and may read the answers yet.
    Asked,
    /// The other side says goodbye, and perhaps why.
    Left(Option<CloseFrame>),
    /// This side does, and says why.
    Fault { code: CloseCode, reason: String },
    /// The other side gives no sign of life, and no answer to a goodbye can be hoped for.
    Silent(Duration),
    /// Nothing more can be said.
    Broken(String),
}

impl Ending {
    fn fault(code: CloseCode, reason: impl fmt::Display) -> Self {
        Self::Fault { code, reason: reason.to_string() }
    }

    fn not_utf8() -> Self {
        Self::fault(CloseCode::Invalid, "the message is not UTF-8")
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("the other side has asked everything"),
            Self::Left(None) => f.write_str("the other side left without a word"),
            Self::Left(Some(CloseFrame { code, reason })) if reason.is_empty() => {
                write!(f, "the other side left ({code})")
            }
            Self::Left(Some(CloseFrame { code, reason })) => {
                write!(f, "the other side left ({code}): {reason}")
            }
            Self::Fault { code, reason } => write!(f, "{reason} ({code})"),
            Self::Silent(limit) => write!(f, "no answer to a ping for {limit:?}"),
            Self::Broken(reason) => f.write_str(reason),
        }
    }
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
    /// Takes a connection over from HTTP, once both sides have agreed to.
    ///
    /// The connection is a [`Socket`], under hyper.
    pub(crate) async fn after(upgraded: Upgraded, role: Role, message_bytes: usize) -> Self {
        let socket = upgraded.downcast::<TokioIo<Socket>>();
        let Parts { io, read_buf, .. } = socket.expect("all connections are such sockets");
        let socket = io.into_inner();
        let heard = socket.heard();
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(UNSENT_BYTES)
            .max_message_size(Some(message_bytes))
            .max_frame_size(Some(message_bytes));
        let socket = ShortFrames::new(socket, &read_buf, message_bytes);
        let frames = WebSocketStream::from_raw_socket(socket, role, Some(config)).await;
        Self { frames, heard }
    }

    /// Two halves that are used at the same time, by one task.
    pub(crate) fn split(self) -> (Reader, Writer) {
        let (frames_out, frames_in) = self.frames.split();
        // One at a time: a second ping says no more.
        let (ping, pings) = mpsc::channel(1);
        (
            Reader { frames: frames_in, heard: self.heard, ping, room: None },
            Writer { frames: frames_out, pings },
        )
    }
}

/// The messages that come.
pub(crate) struct Reader {
    frames: SplitStream<WebSocketStream<ShortFrames<Socket>>>,
    heard: Heard,
    ping: mpsc::Sender<()>,
    room: Option<MessageRoom>,
}

/// The room of the message that is being read: of what is more than its first 64 KiB.
struct MessageRoom {
    port: Arc<Port>,
    place: Option<Place>,
    /// That of the last message, which has come.
    whole: Option<Place>,
    bytes: usize,
    /// Notified when it is to be given back.
    over: Arc<Notify>,
}

impl MessageRoom {
    /// Makes room for a message of which so many bytes have come.
    async fn grow(&mut self, bytes: usize) -> Result<(), Ending> {
        let wanted = bytes.saturating_sub(BODY_STEP_BYTES).next_multiple_of(BODY_STEP_BYTES);
        let more = wanted.saturating_sub(self.bytes);
        if more > 0 {
            let grown = async {
                match &mut self.place {
                    Some(place) => place.grow(more).await,
                    None => self.place = Some(self.port.bodies.take(more, &self.over).await),
                }
            };
            let over = Arc::clone(&self.over);
            tokio::select! {
                biased;
                () = over.notified() => return Err(Self::too_slow()),
                grown = self.port.in_time(grown) => {
                    grown.map_err(|unanswered| Ending::fault(CloseCode::Again, unanswered))?;
                }
            }
            self.bytes = wanted;
            self.place.iter().for_each(Place::goes_on);
        }
        Ok(())
    }

    fn too_slow() -> Ending {
        let reason = "the message came too slowly while others had no room, try again";
        Ending::fault(CloseCode::Again, reason)
    }

    /// The message has come: it has its room as long as it wants, unless it was told to go.
    fn finish(&mut self) -> Result<(), Ending> {
        self.bytes = 0;
        self.whole = self.place.take();
        match self.whole.as_ref().is_none_or(Place::keep) {
            true => Ok(()),
            false => Err(Self::too_slow()),
        }
    }
}

/// What a reader waits for.
enum Next {
    Message(Option<Result<Message, Error>>),
    Silence,
    /// The message that comes needs more room.
    More,
    /// Its room is needed.
    Over,
}

impl Reader {
    /// Has long messages wait for room, which all connections of the port share.
    pub(crate) fn take_room_for_messages(&mut self, port: &Arc<Port>) {
        self.heard.count();
        let (port, over) = (Arc::clone(port), Arc::default());
        self.room = Some(MessageRoom { port, place: None, whole: None, bytes: 0, over });
    }

    fn finish(&mut self) -> Result<(), Ending> {
        self.heard.forget();
        self.room.as_mut().map_or(Ok(()), MessageRoom::finish)
    }

    async fn wait(&mut self, silence: Duration) -> Next {
        let over = self.room.as_ref().map(|room| Arc::clone(&room.over));
        let is_over = async {
            match over {
                Some(over) => over.notified().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            message = timeout(silence, self.frames.next()) => {
                message.map_or(Next::Silence, Next::Message)
            }
            () = self.heard.more() => Next::More,
            () = is_over => Next::Over,
        }
    }
}

impl session::Reader for Reader {
    type Writer = Writer;

    /// RFC 6455 section 7.1.7.
    const ANSWERS_BEFORE_FAULTS: bool = false;

    fn take_room(&mut self) -> Option<Place> {
        self.room.as_mut().and_then(|room| room.whole.take())
    }

    /// It pings whenever nothing came for `silence`, and gives up when that was twice in a row.
    async fn next(
        &mut self,
        silence: Duration,
        waited_for: impl Fn() -> bool + Send,
    ) -> Result<Utf8Bytes, Ending> {
        let mut pinged = false;
        loop {
            let message = match self.wait(silence).await {
                Next::Message(message) => message,
                Next::Silence => {
                    let silent = !self.heard.anything();
                    if pinged && silent && !waited_for() {
                        return Err(Ending::Silent(silence));
                    }
                    // Where one is on its way already, that will do.
                    self.ping.try_send(()).unwrap_or_default();
                    pinged = true;
                    continue;
                }
                Next::More => {
                    let bytes = self.heard.counted();
                    if let Some(room) = &mut self.room {
                        room.grow(bytes).await?;
                    }
                    continue;
                }
                Next::Over => return Err(MessageRoom::too_slow()),
            };
            match message {
                Some(Ok(Message::Text(text))) => return self.finish().map(|()| text),
                // They are no part of the message between whose frames they may come.
                Some(Ok(Message::Ping(bytes) | Message::Pong(bytes))) => {
                    self.heard.uncount(CONTROL_FRAME_BYTES + bytes.len());
                }
                Some(Ok(Message::Frame(_))) => {}
                // JSON all the same: web3.py sends it so.
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

    async fn send_all(writer: &mut Writer, outgoing: &mut mpsc::Receiver<Outgoing>) -> Ending {
        writer.send_all(outgoing).await
    }

    /// Waits for the other side to say goodbye too.
    async fn close(self, writer: Writer, ending: &Ending) {
        close(self, writer, ending).await;
    }
}

/// What a frame of a client takes beside its content, when that is short (RFC 6455 section 5.2).
const CONTROL_FRAME_BYTES: usize = 6;

/// The messages that go.
pub(crate) struct Writer {
    frames: SplitSink<WebSocketStream<ShortFrames<Socket>>, Message>,
    pings: mpsc::Receiver<()>,
}

impl Writer {
    /// Sends until a goodbye, or until nothing can come any more, which is [`CloseCode::Normal`],
    /// or something fails.
    pub(crate) async fn send_all(&mut self, outgoing: &mut mpsc::Receiver<Outgoing>) -> Ending {
        loop {
            let sent = tokio::select! {
                biased;
                Some(()) = self.pings.recv() => self.send(Message::Ping(Bytes::new())).await,
                next = outgoing.recv() => match next {
                    Some(Outgoing::Text(text, held)) => self.send_text(text, held).await,
                    Some(Outgoing::Goodbye(ending)) => return ending,
                    None => return Ending::fault(CloseCode::Normal, ""),
                },
            };
            if let Err(fault) = sent {
                return match fault.into() {
                    // The reader knows why.
                    Ending::Left(_) => pending().await,
                    ending => ending,
                };
            }
        }
    }

    async fn send_text(&mut self, text: Json, held: Option<Held>) -> Result<(), Error> {
        for frame in Frames::new(text) {
            if self.pings.try_recv().is_ok() {
                self.send(Message::Ping(Bytes::new())).await?;
            }
            self.send(Message::Frame(frame)).await?;
        }
        drop(held);
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), Error> {
        // Pongs may wait, and with them a whole frame is over the bound.
        self.frames.flush().await?;
        self.frames.send(message).await
    }
}

/// Says goodbye, waits for the other side to do so too, and closes the connection.
pub(crate) async fn close(reader: Reader, writer: Writer, ending: &Ending) {
    let Reader { frames, room, .. } = reader;
    let mut frames = frames.reunite(writer.frames).expect("the halves of one");
    let goodbye = async move {
        match ending {
            // The library has the answer ready, and gives it on the way to the end.
            Ending::Left(_) => while frames.next().await.transpose()?.is_some() {},
            // Its message is kept no more, nor what is still to come of it: the room is for others.
            Ending::Fault { code: code @ CloseCode::Again, reason } => {
                say_goodbye(&mut frames, *code, reason).await?;
                let mut socket = frames.into_inner();
                drop(room);
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
    frames: &mut WebSocketStream<ShortFrames<Socket>>,
    code: CloseCode,
    reason: &str,
) -> Result<(), Error> {
    let end = reason.floor_char_boundary(REASON_BYTES);
    frames.flush().await?;
    frames.close(Some(CloseFrame { code, reason: reason[..end].into() })).await
}

async fn await_goodbye(frames: &mut WebSocketStream<ShortFrames<Socket>>) -> Result<(), Error> {
    let mut answered = false;
    while let Some(Ok(message)) = frames.next().await {
        answered |= message.is_close();
    }
    if answered {
        return Ok(());
    }
    // What comes cannot be understood any more.
    Ok(read_and_forget(frames.get_mut()).await?)
}

/// Lets the other side, still writing, read why and not a reset connection.
async fn read_and_forget(socket: &mut ShortFrames<Socket>) -> io::Result<()> {
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
    fn new(text: Json) -> Self {
        Self { text: text.pieces, kind: Data::Text }
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
            let text = Json::from(Pieces::from(parts));
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
