//! What the connections of one listening port share: the handler, turns to run, room to send.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{block_in_place, spawn_blocking};
use tokio::time::timeout;

use crate::descriptor::Files;
use crate::json::Json;
use crate::jwt::JwtSecret;
use crate::limits::{
    ACCEPT_PAUSE, Limits, SMALL_ANSWER_BYTES, SMALL_ANSWERS_BYTES, SMALL_ANSWERS_WAITING,
};
use crate::message::{Handler, panic_text};
use crate::pieces::Pieces;
use crate::rest;
use crate::socket::{Listener, Stream};

/// What makes one port different from another.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// With a secret, every request needs a fresh token made with it, and so does every WebSocket
    /// when it is opened.
    pub jwt: Option<JwtSecret>,
    /// The port's bounds.
    pub limits: Limits,
}

/// One listening port.
pub(crate) struct Port {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) jwt: Option<JwtSecret>,
    pub(crate) limits: Limits,
    connections: Arc<Semaphore>,
    pub(crate) bodies: Arc<Semaphore>,
    /// WebSockets and bare connections.
    pub(crate) sessions: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    /// One permit for each [`UNIT_BYTES`] of [`Limits::answers_bytes`].
    answers: Arc<Semaphore>,
    /// Room for small answers alone: whoever waits for much of a semaphore goes before all others.
    small_answers: Arc<Semaphore>,
    /// Answers that wait for room, large ones and small ones.
    waiting: Semaphore,
    small_waiting: Semaphore,
    subscriptions_begun: AtomicU64,
    /// In which answers are passed by descriptor.
    pub(crate) files: Arc<Files>,
}

/// Semaphores count to 2^29 at least; in bytes that would be too little.
const UNIT_BYTES: usize = 1 << 10;

/// The permits that so many bytes need of a semaphore made for `most_bytes`: what is longer
/// needs all of them.
pub(crate) fn units(bytes: usize, most_bytes: usize) -> u32 {
    let units = bytes.min(most_bytes).div_ceil(UNIT_BYTES);
    u32::try_from(units).expect("bounds in bytes are below 4 TiB")
}

/// A semaphore for so many bytes.
pub(crate) fn room(most_bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(units(most_bytes, most_bytes) as usize))
}

/// What is sent in answer to a call.
pub(crate) trait Answer: Send + 'static {
    fn pieces(&self) -> &Pieces;
}

impl Answer for Json {
    fn pieces(&self) -> &Pieces {
        &self.pieces
    }
}

impl Answer for rest::Response {
    fn pieces(&self) -> &Pieces {
        &self.body
    }
}

/// A call's answer, and the room that it takes until it is sent.
pub(crate) struct Answered<A> {
    pub(crate) answer: A,
    pub(crate) room: OwnedSemaphorePermit,
}

/// How long a call is thought to take, which says where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// [Microseconds](Handler::is_quick): on the thread that reads from all clients.
    Quick,
    /// Longer: on a thread of its own.
    Short,
    /// Still longer. As long as it is the only call, it runs where its request was read, while
    /// another thread reads from all clients: no thread has to wake for it, nor, over HTTP/1.1, for
    /// its answer, which takes 30 to 50 µs each on a processor that sleeps. With many calls at a
    /// time no processor does, and taking over costs more.
    Long,
}

/// Why a message has no answer, in words for the one who sent it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unanswered {
    /// It had no turn, or its answer no room, for so long.
    Busy(Duration),
    /// As many answers wait for room as may.
    Full,
    /// A fault of ours.
    Lost,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(wait) => {
                write!(f, "busy: this request had no turn for {wait:?}, try again later")
            }
            Self::Full => f.write_str("busy: too many answers wait to be sent, try again later"),
            Self::Lost => f.write_str("the call was lost; the log says why"),
        }
    }
}

impl Port {
    pub(crate) fn new(options: ServerOptions, handler: Arc<dyn Handler>) -> Self {
        let ServerOptions { jwt, limits } = options;
        let Limits {
            connections, bodies, running_calls, messages, answers_bytes, body_bytes, ..
        } = limits;
        assert!(
            [connections, bodies, running_calls, messages, answers_bytes, body_bytes]
                .iter()
                .all(|n| *n > 0),
            "a port without connections, calls, messages or answers serves nobody"
        );
        Self {
            connections: Arc::new(Semaphore::new(connections)),
            bodies: Arc::new(Semaphore::new(bodies)),
            sessions: Arc::new(Semaphore::new(bodies)),
            calls: Arc::new(Semaphore::new(running_calls)),
            answers: room(answers_bytes),
            small_answers: room(answers_bytes.min(SMALL_ANSWERS_BYTES)),
            waiting: Semaphore::new(running_calls),
            small_waiting: Semaphore::new(SMALL_ANSWERS_WAITING),
            subscriptions_begun: AtomicU64::new(0),
            files: Arc::new(Files::new(limits.descriptor_bytes)),
            handler,
            jwt,
            limits,
        }
    }

    /// The next connection, and the permit it lives by.
    pub(crate) async fn accept(
        &self,
        listener: &Listener,
    ) -> Option<(Stream, OwnedSemaphorePermit)> {
        let permit = permits(&self.connections, 1).await;
        match listener.accept().await {
            Ok(stream) => Some((stream, permit)),
            Err(fault) => {
                tracing::warn!(%fault, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                None
            }
        }
    }

    /// Runs `answer`, then waits for room to send what it gives. One that is not quick waits for
    /// its turn, and runs where nobody else waits for the thread.
    pub(crate) async fn run<A: Answer>(
        &self,
        pace: Pace,
        answer: impl FnOnce() -> Option<A> + Send + 'static,
    ) -> Result<Option<Answered<A>>, Unanswered> {
        let answer = if pace == Pace::Quick {
            answer()
        } else {
            let turn = self.turn(&self.calls, 1).await?;
            // The turn goes along: a client that hangs up does not end its call.
            let called = move || {
                let answered = catch_unwind(AssertUnwindSafe(answer));
                drop(turn);
                answered.map_err(|panic| panic_text(&*panic).to_string())
            };
            let is_alone = self.calls.available_permits() + 1 == self.limits.running_calls;
            let called = if pace == Pace::Long && is_alone && can_block_in_place() {
                block_in_place(called)
            } else {
                let called = spawn_blocking(called).await;
                called.unwrap_or_else(|fault| Err(fault.to_string()))
            };
            called.map_err(|reason| {
                tracing::error!(reason, "a call was lost");
                Unanswered::Lost
            })?
        };
        let Some(answer) = answer else { return Ok(None) };
        let room = self.room(answer.pieces().held_bytes()).await?;
        Ok(Some(Answered { answer, room }))
    }

    /// Waits for room for an answer of so many bytes: a small one never behind larger ones.
    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Unanswered> {
        let units = units(bytes, self.limits.answers_bytes);
        let (answers, waiting) = match bytes {
            ..=SMALL_ANSWER_BYTES => (&self.small_answers, &self.small_waiting),
            _ => (&self.answers, &self.waiting),
        };
        if let Ok(room) = Arc::clone(answers).try_acquire_many_owned(units) {
            return Ok(room);
        }
        // Those that wait hold their memory, and no turn that others could have.
        let _place = waiting.try_acquire().map_err(|_| Unanswered::Full)?;
        self.turn(answers, units).await
    }

    /// Waits for a turn, as long as a client may have to.
    pub(crate) async fn turn(
        &self,
        queue: &Arc<Semaphore>,
        count: u32,
    ) -> Result<OwnedSemaphorePermit, Unanswered> {
        let wait = self.limits.turn_wait;
        timeout(wait, permits(queue, count)).await.map_err(|_| Unanswered::Busy(wait))
    }

    /// The name of a new subscription, as a JSON string holds it: hex, as Ethereum's clients are
    /// used to, and never the same twice.
    pub(crate) fn subscription_id(&self) -> String {
        let begun = self.subscriptions_begun.fetch_add(1, Ordering::Relaxed);
        format!("0x{:x}", begun + 1)
    }
}

/// Whether another thread can take the place of this one in the runtime.
fn can_block_in_place() -> bool {
    Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread
}

pub(crate) async fn permits(semaphore: &Arc<Semaphore>, count: u32) -> OwnedSemaphorePermit {
    let permits = Arc::clone(semaphore).acquire_many_owned(count).await;
    permits.expect("these semaphores are never closed")
}
