//! JSON-RPC on a Unix socket without HTTP around it, as geth's clients speak it: requests one after
//! the other, with or without white space in between, and answers in whatever order they are ready,
//! a line each.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::json::failure;
use crate::limits::{CHUNK_BYTES, CLOSE_TIME, GONE_PAUSE, READ_BYTES, WRITE_BYTES};
use crate::pieces::Pieces;
use crate::transport::budget::{Budget, Reservation};
use crate::transport::json_scanner::{JsonScanner, Scanned};
use crate::transport::message_memory::MessageMemory;
use crate::transport::messages::{Ending, MessageReader, OutgoingMessage, ShortTexts};
use crate::transport::slot::ConnectionSlot;
use crate::transport::socket::{Socket, SocketActivity};

/// The two halves of a connection.
pub(crate) fn split(socket: Socket, message_bytes: usize) -> (IpcReader, IpcWriter) {
    let activity = socket.activity();
    let (socket_in, socket_out) = tokio::io::split(socket);
    let (buffer, scanner) = (BytesMut::new(), JsonScanner::default());
    let memory = None;
    let reader = IpcReader { socket: socket_in, activity, buffer, scanner, message_bytes, memory };
    (reader, IpcWriter { socket: socket_out })
}

/// The half that receives messages.
pub(crate) struct IpcReader {
    socket: ReadHalf<Socket>,
    activity: SocketActivity,
    /// Bytes that are not a complete message yet.
    buffer: BytesMut,
    scanner: JsonScanner,
    message_bytes: usize,
    memory: Option<MessageMemory>,
}

/// The half that sends messages.
pub(crate) struct IpcWriter {
    socket: WriteHalf<Socket>,
}

impl MessageReader for IpcReader {
    type Writer = IpcWriter;

    const ANSWERS_BEFORE_FAULTS: bool = true;

    /// The next message. Silence is no fault here: nothing between the ends of a Unix socket can
    /// forget the connection, and the system tells when the other side ends.
    async fn next(
        &mut self,
        _: Duration,
        _: impl Fn() -> bool + Send,
    ) -> Result<Utf8Bytes, Ending> {
        loop {
            match self.scanner.scan(&self.buffer) {
                Scanned::Message(range) => {
                    let message = self.buffer.split_to(range.end).split_off(range.start).freeze();
                    if message.len() > self.message_bytes {
                        return Err(self.too_long());
                    }
                    // The rest of the buffer does not keep a long message's memory.
                    let is_long = message.len() > READ_BYTES;
                    if self.buffer.is_empty() || (is_long && self.buffer.len() <= READ_BYTES) {
                        self.buffer = BytesMut::from(&self.buffer[..]);
                    }
                    self.memory.as_mut().map_or(Ok(()), MessageMemory::finish)?;
                    let text = Utf8Bytes::try_from(message);
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
            if let Some(memory) = &mut self.memory {
                memory.grow(self.buffer.len()).await?;
            }
            self.buffer.reserve(READ_BYTES);
            match self.socket.read_buf(&mut self.buffer).await {
                Ok(0) if self.activity.is_gone() => return Err(Ending::Left(None)),
                Ok(0) if self.scanner.is_inside() => {
                    return Err(fault("the last message is not complete"));
                }
                Ok(0) => return Err(Ending::Asked),
                Ok(_) => {}
                Err(fault) => return Err(broken(&fault)),
            }
        }
    }

    fn take_reservation(&mut self) -> Option<Reservation> {
        self.memory.as_mut().and_then(MessageMemory::take_complete)
    }

    async fn gone(&mut self) {
        while !self.activity.is_gone() {
            tokio::time::sleep(GONE_PAUSE).await;
            // It reads the end of the stream again.
            self.socket.read_u8().await.ok();
        }
    }

    async fn send_all(
        writer: &mut IpcWriter,
        outgoing: &mut mpsc::Receiver<OutgoingMessage>,
    ) -> Ending {
        while let Some(next) = outgoing.recv().await {
            match writer.send_at_hand(next, outgoing).await {
                Ok(None) => {}
                Ok(Some(goodbye)) => return goodbye,
                Err(fault) => return broken(&fault),
            }
        }
        Ending::Fault { code: CloseCode::Normal, reason: String::new() }
    }

    /// Says what was wrong in a last answer, with the id `null`, and ends.
    async fn close(self, mut writer: IpcWriter, ending: &Ending) {
        let goodbye = async {
            if let Ending::Fault { code, reason } = ending
                && *code != CloseCode::Normal
            {
                // When the server stops, or a subscription falls behind, no text was malformed.
                let is_ours = matches!(code, CloseCode::Away | CloseCode::Policy);
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

impl IpcReader {
    /// Has long messages reserve memory, for which they wait at most for `most_wait`.
    pub(crate) fn reserve_for_messages(
        &mut self,
        slot: Arc<ConnectionSlot>,
        budget: Arc<Budget>,
        most_wait: Duration,
    ) {
        self.memory = Some(MessageMemory::new(slot, budget, most_wait));
    }

    fn too_long(&self) -> Ending {
        fault(format!("the message is too long: at most {} bytes are taken", self.message_bytes))
    }
}

/// Ends each answer.
const NEWLINE: Bytes = Bytes::from_static(b"\n");

fn fault(reason: impl Into<String>) -> Ending {
    Ending::Fault { code: CloseCode::Protocol, reason: reason.into() }
}

fn broken(fault: &io::Error) -> Ending {
    Ending::Broken(format!("the connection broke: {fault}"))
}

impl IpcWriter {
    /// Says why nothing is answered, in an answer with the id `null`.
    pub(crate) async fn refuse(&mut self, unanswered: &impl std::fmt::Display) {
        let refusal = failure(None, &Error::new(Code::Server, unanswered));
        let said = timeout(CLOSE_TIME, self.send(refusal.pieces)).await;
        if !matches!(said, Ok(Ok(()))) {
            tracing::debug!("a connection was not told that there are too many");
        }
    }

    /// Sends a message, and those behind it that are at hand: short ones are written together.
    async fn send_at_hand(
        &mut self,
        first: OutgoingMessage,
        outgoing: &mut mpsc::Receiver<OutgoingMessage>,
    ) -> io::Result<Option<Ending>> {
        // The permits of what is not written yet.
        let (mut lines, mut unsent) = (Pieces::default(), Vec::new());
        let add = |lines: &mut Pieces, text: Pieces| {
            lines.append(text);
            lines.push(NEWLINE);
        };
        let mut next = Some(first);
        let mut goodbye = None;
        while let Some(message) = next {
            match message {
                OutgoingMessage::Goodbye(ending) => {
                    goodbye = Some(ending);
                    break;
                }
                OutgoingMessage::Text(text, permits) => {
                    add(&mut lines, text);
                    unsent.push((permits, None));
                }
                OutgoingMessage::ShortTexts(ShortTexts { texts, permits }) => {
                    texts.into_iter().for_each(|text| add(&mut lines, text));
                    unsent.push((None, permits));
                }
            }
            next = (lines.len_bytes() < WRITE_BYTES).then(|| outgoing.try_recv().ok()).flatten();
        }
        self.write(lines).await?;
        Ok(goodbye)
    }

    async fn send(&mut self, mut pieces: Pieces) -> io::Result<()> {
        pieces.push(NEWLINE);
        self.write(pieces).await
    }

    async fn write(&mut self, mut pieces: Pieces) -> io::Result<()> {
        while !pieces.is_empty() {
            self.socket.write_all(&pieces.take(CHUNK_BYTES)).await?;
        }
        self.socket.flush().await
    }
}
