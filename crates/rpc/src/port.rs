//! What the connections of one listening port share: the handler, turns to run, room to send.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{block_in_place, spawn_blocking};
use tokio::time::timeout;

use crate::http::resource as rest;
use crate::jsonrpc::json::Json;
use crate::jsonrpc::message::{Handler, panic_text};
use crate::jwt::JwtSecret;
use crate::limits::{
    ACCEPT_PAUSE, CODERS, Limits, SMALL_ANSWER_BYTES, SMALL_ANSWERS_BYTES, SMALL_ANSWERS_WAITING,
    SMALL_BODIES_BYTES,
};
use crate::pieces::Pieces;
use crate::seldom::Seldom;
use crate::transport::descriptor::Files;
use crate::transport::room::{Place, Room, Untaken, permits};
use crate::transport::socket::{Listener, Stream};

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
    /// For requests over HTTP, and for the beginning of each.
    pub(crate) bodies: Arc<Room>,
    pub(crate) small_bodies: Arc<Room>,
    /// WebSockets and bare connections.
    pub(crate) sessions: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    answers: Arc<Room>,
    /// For small answers alone: whoever waits for much of a room goes before all others.
    small_answers: Arc<Room>,
    /// Answers that wait for room, large ones and small ones.
    waiting: Semaphore,
    small_waiting: Semaphore,
    subscriptions_begun: AtomicU64,
    /// In which answers are passed by descriptor.
    pub(crate) files: Arc<Files>,
    /// For those who code answers, beside the room of these.
    pub(crate) coders: Arc<Semaphore>,
    /// When it was last said that a request has no valid token.
    pub(crate) unauthorized: Seldom,
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
    pub(crate) room: Arc<Place>,
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
            connections,
            sessions,
            running_calls,
            messages,
            answers_bytes,
            bodies_bytes,
            body_bytes,
            room_time,
            ..
        } = limits;
        assert!(
            [connections, sessions, running_calls, messages, answers_bytes, body_bytes]
                .iter()
                .all(|n| *n > 0),
            "a port without connections, calls, messages or answers serves nobody"
        );
        assert!(bodies_bytes >= body_bytes, "there is no room for the longest of bodies");
        Self {
            connections: Arc::new(Semaphore::new(connections)),
            bodies: Room::new(bodies_bytes, room_time),
            small_bodies: Room::new(bodies_bytes.min(SMALL_BODIES_BYTES), room_time),
            sessions: Arc::new(Semaphore::new(sessions)),
            calls: Arc::new(Semaphore::new(running_calls)),
            answers: Room::new(answers_bytes, room_time),
            small_answers: Room::new(answers_bytes.min(SMALL_ANSWERS_BYTES), room_time),
            waiting: Semaphore::new(running_calls),
            small_waiting: Semaphore::new(SMALL_ANSWERS_WAITING),
            subscriptions_begun: AtomicU64::new(0),
            files: Arc::new(Files::new(limits.descriptor_bytes)),
            coders: Arc::new(Semaphore::new(CODERS)),
            unauthorized: Seldom::default(),
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
    /// its turn, and runs where nobody else waits for the thread. `untaken` are the connection's
    /// answers, to which it is added.
    pub(crate) async fn run<A: Answer>(
        &self,
        pace: Pace,
        untaken: &Untaken,
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
        let room = self.room(answer.pieces().held_bytes(), untaken.over()).await?;
        Ok(Some(Answered { answer, room: untaken.add(room) }))
    }

    /// Waits for room for an answer of so many bytes: a small one never behind larger ones.
    async fn room(&self, bytes: usize, cut: &Arc<Notify>) -> Result<Place, Unanswered> {
        let (answers, waiting) = match bytes {
            ..=SMALL_ANSWER_BYTES => (&self.small_answers, &self.small_waiting),
            _ => (&self.answers, &self.waiting),
        };
        if let Some(room) = answers.try_take(bytes, cut) {
            return Ok(room);
        }
        // Those that wait hold their memory, and no turn that others could have.
        let _place = waiting.try_acquire().map_err(|_| Unanswered::Full)?;
        self.in_time(answers.take(bytes, cut)).await
    }

    /// Waits for a turn, as long as a client may have to.
    pub(crate) async fn turn(
        &self,
        queue: &Arc<Semaphore>,
        count: u32,
    ) -> Result<OwnedSemaphorePermit, Unanswered> {
        self.in_time(permits(queue, count)).await
    }

    /// Waits for something, as long as a client may have to.
    pub(crate) async fn in_time<T>(
        &self,
        waited_for: impl Future<Output = T>,
    ) -> Result<T, Unanswered> {
        let wait = self.limits.turn_wait;
        timeout(wait, waited_for).await.map_err(|_| Unanswered::Busy(wait))
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
