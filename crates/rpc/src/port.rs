//! The shared state of the connections of one listening port: the handler, turns to run, memory.

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

use crate::http::resource::{self as rest, Resources};
use crate::jsonrpc::handler::Handler;
use crate::jsonrpc::json::Json;
use crate::jsonrpc::message::panic_text;
use crate::jsonrpc::schedule::{MethodTable, Pace};
use crate::jwt::JwtSecret;
use crate::limits::{
    ACCEPT_PAUSE, ENCODERS, Limits, SMALL_ANSWER_BYTES, SMALL_ANSWERS_BYTES, SMALL_ANSWERS_WAITING,
    SMALL_BODIES_BYTES,
};
use crate::log_throttle::LogThrottle;
use crate::pieces::Pieces;
use crate::transport::budget::{Busy, MemoryBudget, Reservation, UnreadAnswers, permits};
use crate::transport::descriptor::MemoryFiles;
use crate::transport::listener::Listener;
use crate::transport::socket::{Socket, Stream};

/// The options of one port.
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
    pub(crate) methods: MethodTable,
    pub(crate) jwt: Option<JwtSecret>,
    pub(crate) limits: Limits,
    connections: Arc<Semaphore>,
    /// For requests over HTTP and messages over WebSockets, without the first 64 KiB of each.
    pub(crate) bodies: Arc<MemoryBudget>,
    /// For the first 64 KiB of each request over HTTP.
    pub(crate) small_bodies: Arc<MemoryBudget>,
    /// For WebSockets and bare connections.
    pub(crate) sessions: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    answers: Arc<MemoryBudget>,
    /// For small answers alone, which must not wait behind a large one.
    small_answers: Arc<MemoryBudget>,
    /// For answers that wait for memory, large ones and small ones.
    waiting: Semaphore,
    small_waiting: Semaphore,
    subscriptions_begun: AtomicU64,
    /// For answers that are passed by descriptor.
    pub(crate) files: Arc<MemoryFiles>,
    /// For answers that are being encoded.
    pub(crate) encoders: Arc<Semaphore>,
    /// Of the log's lines on requests without a valid token.
    pub(crate) unauthorized: LogThrottle,
}

/// The answer to a call or a request.
pub(crate) trait PortAnswer: Send + 'static {
    fn pieces(&self) -> &Pieces;
}

impl PortAnswer for Json {
    fn pieces(&self) -> &Pieces {
        &self.pieces
    }
}

impl PortAnswer for rest::Response {
    fn pieces(&self) -> &Pieces {
        &self.body
    }
}

/// An answer, and the memory that it takes until it is sent.
pub(crate) struct ReservedAnswer<A> {
    pub(crate) answer: A,
    pub(crate) memory: Arc<Reservation>,
}

/// Why a message has no answer, in words for its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unanswered {
    /// It had no turn, or its answer no memory, for so long.
    Busy(Busy),
    /// Too many answers wait for memory.
    Full,
    /// A fault of ours.
    Lost,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(busy) => busy.fmt(f),
            Self::Full => f.write_str("busy: too many answers wait to be sent, try again later"),
            Self::Lost => f.write_str("the call was lost; the log says why"),
        }
    }
}

impl Port {
    pub(crate) fn new(options: ServerOptions, handler: Arc<dyn Handler>) -> Self {
        let ServerOptions { jwt, mut limits } = options;
        if cfg!(not(feature = "zstd")) {
            limits.zstd_bytes = usize::MAX;
        }
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
            bodies: MemoryBudget::new(bodies_bytes, room_time),
            small_bodies: MemoryBudget::new(bodies_bytes.min(SMALL_BODIES_BYTES), room_time),
            sessions: Arc::new(Semaphore::new(sessions)),
            calls: Arc::new(Semaphore::new(running_calls)),
            answers: MemoryBudget::new(answers_bytes, room_time),
            small_answers: MemoryBudget::new(answers_bytes.min(SMALL_ANSWERS_BYTES), room_time),
            waiting: Semaphore::new(running_calls),
            small_waiting: Semaphore::new(SMALL_ANSWERS_WAITING),
            subscriptions_begun: AtomicU64::new(0),
            files: Arc::new(MemoryFiles::new(limits.descriptor_bytes)),
            encoders: Arc::new(Semaphore::new(ENCODERS)),
            unauthorized: LogThrottle::default(),
            methods: MethodTable::new(handler.methods()),
            handler,
            jwt,
            limits,
        }
    }

    /// How long a client of HTTP may ask for nothing.
    pub(crate) fn idle_time(&self, socket: &Socket) -> Duration {
        if socket.is_unix() { self.limits.unix_header_read } else { self.limits.header_read }
    }

    /// The resources beside JSON-RPC.
    pub(crate) fn resources(&self) -> Option<&dyn Resources> {
        self.handler.resources()
    }

    /// Whether a path is that of a resource.
    pub(crate) fn is_resource(&self, path: &str) -> bool {
        self.resources().is_some_and(|resources| path.starts_with(resources.prefix()))
    }

    /// Whether requests for a resource are answered in order.
    pub(crate) fn is_resource_in_order(&self, path: &str) -> bool {
        self.resources().is_some_and(|resources| resources.is_in_order(path))
    }

    /// The next connection, and its permit.
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

    /// Runs `answer`, then waits for memory to send its result. An answer that is not quick waits
    /// for its turn, and runs on a thread that nothing else waits for. It is added to `unread`, the
    /// answers of the connection.
    pub(crate) async fn run<A: PortAnswer>(
        &self,
        pace: Pace,
        unread: &UnreadAnswers,
        answer: impl FnOnce() -> Option<A> + Send + 'static,
    ) -> Result<Option<ReservedAnswer<A>>, Unanswered> {
        let answer = if pace == Pace::Quick {
            answer()
        } else {
            let turn = self.turn(&self.calls, 1).await?;
            // The call has the turn: a client that hangs up does not end its call.
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
        let memory = self.answer_memory(answer.pieces().held_bytes(), unread.evicted()).await?;
        Ok(Some(ReservedAnswer { answer, memory: unread.add(memory) }))
    }

    /// Waits for memory for an answer of so many bytes: a small one never behind larger ones.
    async fn answer_memory(
        &self,
        bytes: usize,
        evicted: &Arc<Notify>,
    ) -> Result<Reservation, Unanswered> {
        let (answers, waiting) = match bytes {
            ..=SMALL_ANSWER_BYTES => (&self.small_answers, &self.small_waiting),
            _ => (&self.answers, &self.waiting),
        };
        if let Some(memory) = answers.try_reserve(bytes, evicted) {
            return Ok(memory);
        }
        // An answer that waits is in memory already, and holds no turn that others could have.
        let _permit = waiting.try_acquire().map_err(|_| Unanswered::Full)?;
        self.in_time(answers.reserve(bytes, evicted)).await
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
        timeout(wait, waited_for).await.map_err(|_| Unanswered::Busy(Busy(wait)))
    }

    /// The id of a new subscription, never the same twice: hex, as Ethereum's clients expect.
    pub(crate) fn subscription_id(&self) -> String {
        let begun = self.subscriptions_begun.fetch_add(1, Ordering::Relaxed);
        format!("0x{:x}", begun + 1)
    }
}

/// Whether another thread of the runtime can take over the work of this one.
fn can_block_in_place() -> bool {
    Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread
}
