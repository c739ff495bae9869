//! Connections that carry messages: what a session needs of a WebSocket, or of bare JSON-RPC.

use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::pieces::Pieces;
use crate::transport::budget::Reservation;

/// Reads messages, whatever carries them.
pub(crate) trait MessageReader: Send + Sized {
    /// The other half of the connection, which sends answers.
    type Writer: Send;

    /// Whether complete messages are answered before a fault behind them ends the connection: the
    /// outcome is then the same whether both come at once or one after the other.
    const ANSWERS_BEFORE_FAULTS: bool;

    /// The next text. Where the connection could die unnoticed, it is probed when nothing came for
    /// `silence`, and given up after as long again, unless the other side waits for something:
    /// `waited_for`.
    fn next(
        &mut self,
        silence: Duration,
        waited_for: impl Fn() -> bool + Send,
    ) -> impl Future<Output = Result<Utf8Bytes, Ending>> + Send;

    /// The memory reserved for the last text.
    fn take_reservation(&mut self) -> Option<Reservation> {
        None
    }

    /// Waits until the other side, which has [asked](Ending::Asked) everything, is gone too.
    fn gone(&mut self) -> impl Future<Output = ()> + Send {
        pending()
    }

    /// Sends until a goodbye, or until nothing can come any more, which is [`CloseCode::Normal`],
    /// or something fails.
    fn send_all(
        writer: &mut Self::Writer,
        outgoing: &mut mpsc::Receiver<OutgoingMessage>,
    ) -> impl Future<Output = Ending> + Send;

    /// Says goodbye as far as the ending leaves anything to say, and closes the connection.
    fn close(self, writer: Self::Writer, ending: &Ending) -> impl Future<Output = ()> + Send;
}

/// A message on its way out.
#[derive(Debug)]
pub(crate) enum OutgoingMessage {
    /// A text, and the permits that are released when the operating system has it, or the
    /// connection has ended.
    Text(Pieces, Option<Box<MessagePermits>>),
    /// Short texts, a message each, which are parts of the connection's buffers.
    ShortTexts(ShortTexts),
    /// The last message, after all that are on their way already.
    Goodbye(Ending),
}

/// Answers that leave together, each of at most [`SHORT_BYTES`](crate::limits::SHORT_BYTES).
#[derive(Debug, Default)]
pub(crate) struct ShortTexts {
    pub(crate) texts: Vec<Pieces>,
    /// A permit for each of their messages, until the operating system has the text.
    pub(crate) permits: Option<OwnedSemaphorePermit>,
}

impl ShortTexts {
    pub(crate) fn push(&mut self, text: Pieces, permit: OwnedSemaphorePermit) {
        self.texts.push(text);
        match &mut self.permits {
            Some(permits) => permits.merge(permit),
            None => self.permits = Some(permit),
        }
    }
}

/// The permits and the memory of a message, until its answer is sent.
#[derive(Debug)]
pub(crate) struct MessagePermits {
    /// One of the messages of the connection that may be on their way.
    pub(crate) _slot: OwnedSemaphorePermit,
    /// The memory of the message, until it is answered: its part of the connection's bytes and of
    /// the port's.
    pub(crate) message: Option<(OwnedSemaphorePermit, [Option<Reservation>; 2])>,
    /// The memory of the answer.
    pub(crate) _answer: Option<Arc<Reservation>>,
}

impl From<OwnedSemaphorePermit> for MessagePermits {
    /// The permit of a message that is a part of the connection's buffers.
    fn from(slot: OwnedSemaphorePermit) -> Self {
        Self { _slot: slot, message: None, _answer: None }
    }
}

/// How a conversation ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The other side has asked everything, and may still read the answers.
    Asked,
    /// The other side says goodbye, and perhaps why.
    Left(Option<CloseFrame>),
    /// This side says goodbye, and why.
    Fault { code: CloseCode, reason: String },
    /// The other side gives no sign of life, so it will not answer a goodbye.
    Silent(Duration),
    /// Nothing more can be sent.
    Broken(String),
}

impl Ending {
    pub(crate) fn fault(code: CloseCode, reason: impl fmt::Display) -> Self {
        Self::Fault { code, reason: reason.to_string() }
    }

    pub(crate) fn not_utf8() -> Self {
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
