//! The shared state of the connections of one listening port: the handler, turns to run, memory.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, block_in_place, spawn_blocking};
use tokio::time::timeout;

use crate::bounds::{
    ANSWERS, BODIES, CALLS, CONNECTIONS, PROTOCOLS, SESSIONS, SMALL_ANSWERS, SMALL_BODIES,
    SUBSCRIPTIONS, WAITING_ANSWERS,
};
use crate::http::origin::AllowedOrigins;
use crate::http::resource::{self as rest, Resources};
use crate::jsonrpc::handler::Handler;
use crate::jsonrpc::json::Json;
use crate::jsonrpc::message::panic_text;
use crate::jsonrpc::schedule::{MethodTable, Pace};
use crate::jwt::JwtSecret;
use crate::limits::{
    ACCEPT_PAUSE, Limits, SHORT_BYTES, SMALL_ANSWER_BYTES, SMALL_ANSWERS_WAITING,
    WAITING_CONNECTIONS,
};
use crate::log_throttle::LogThrottle;
use crate::pieces::Pieces;
use crate::transport::budget::{Budget, Busy, QueueFull, Reservation, Shares};
use crate::transport::descriptor::MemoryFiles;
use crate::transport::listener::Listener;
use crate::transport::peer::Peer;
use crate::transport::slot::ConnectionSlot;
use crate::transport::socket::Socket;

/// The options of one port.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// With a secret, every request needs a fresh token made with it, and so does every WebSocket
    /// when it is opened.
    pub jwt: Option<JwtSecret>,
    /// The port's bounds.
    pub limits: Limits,
    /// The memory that the port shares with others, whose limits are the same; `None` is memory of
    /// its own.
    pub memory: Option<PortMemory>,
    /// The runtime on whose blocking threads calls run that are not quick; `None` is the one that
    /// serves the port. Threads of another may have another priority.
    pub calls: Option<Handle>,
    /// The names and the web pages that it serves.
    pub origins: AllowedOrigins,
}

impl ServerOptions {
    /// A port with memory of its own, whose calls run on the runtime that serves it, and which is
    /// called by IP addresses and as `localhost`, by no web page.
    pub fn new(jwt: Option<JwtSecret>, limits: Limits) -> Self {
        Self { jwt, limits, memory: None, calls: None, origins: AllowedOrigins::default() }
    }
}

/// Memory, turns and slots of one port, or of several together. Clones are the same.
#[derive(Clone, Debug)]
pub struct PortMemory(Arc<PortBudgets>);

impl PortMemory {
    /// As much as the limits say.
    pub fn new(limits: &Limits) -> Self {
        Self(Arc::new(PortBudgets::new(limits)))
    }

    /// The bytes that requests, answers and connections hold of it now.
    pub fn held_bytes(&self) -> usize {
        let PortBudgets { protocols, bodies, small_bodies, answers, small_answers, .. } = &*self.0;
        [protocols, bodies, small_bodies, answers, small_answers]
            .iter()
            .map(|budget| budget.held())
            .sum()
    }

    /// The parts of it that are held now, and counts of what was refused.
    pub fn usage(&self) -> PortUse {
        let PortBudgets { connections, sessions, calls, subscriptions, files, .. } = &*self.0;
        let Refusals { busy, full, lost, stopping, unauthorized, forbidden } = &self.0.refusals;
        let refused = [
            ("busy", busy),
            ("full", full),
            ("lost", lost),
            ("stopping", stopping),
            ("unauthorized", unauthorized),
            ("forbidden", forbidden),
        ];
        let refused = refused.map(|(reason, count)| (reason, count.load(Ordering::Relaxed)));
        PortUse {
            connections: connections.held(),
            sessions: sessions.held(),
            running_calls: calls.held(),
            subscriptions: subscriptions.held(),
            lent_files: files.lent_count(),
            held_bytes: self.held_bytes(),
            refused: refused.to_vec(),
        }
    }
}

/// The use of a port, or of several that share their memory: what connections have now, and what
/// was refused so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortUse {
    /// Open connections.
    pub connections: usize,
    /// Those of them that are WebSockets or bare.
    pub sessions: usize,
    /// Calls that have a turn.
    pub running_calls: usize,
    /// Subscriptions.
    pub subscriptions: usize,
    /// Memory files that clients have not given back.
    pub lent_files: usize,
    /// Bytes of memory, as [`PortMemory::held_bytes`].
    pub held_bytes: usize,
    /// Requests, connections and messages that were refused, by the reason in one word.
    pub refused: Vec<(&'static str, u64)>,
}

/// All that the connections of a port share, each with its bound in [`Limits::bounds`].
#[derive(Debug)]
pub(crate) struct PortBudgets {
    connections: Arc<Budget>,
    /// Bytes of buffers and windows.
    pub(crate) protocols: Arc<Budget>,
    /// For requests over HTTP and messages over WebSockets, without the first 64 KiB of each.
    pub(crate) bodies: Arc<Budget>,
    /// For the first 64 KiB of each.
    pub(crate) small_bodies: Arc<Budget>,
    /// For WebSockets and bare connections.
    pub(crate) sessions: Arc<Budget>,
    /// Turns of calls.
    pub(crate) calls: Arc<Budget>,
    pub(crate) answers: Arc<Budget>,
    /// For answers that are made and wait for memory among the others.
    waiting_answers: Arc<Budget>,
    /// For small answers alone, which must not wait behind a large one.
    small_answers: Arc<Budget>,
    pub(crate) subscriptions: Arc<Budget>,
    /// For answers that are passed by descriptor; their memory is that of answers.
    pub(crate) files: Arc<MemoryFiles>,
    /// For answers that are being encoded.
    pub(crate) encoders: Arc<Semaphore>,
    /// The short calls of sessions that wait: of each session those beyond its share of turns.
    pub(crate) short_calls: AtomicUsize,
    pub(crate) refusals: Refusals,
}

/// How often the port has refused something, by the reason.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    busy: AtomicU64,
    full: AtomicU64,
    lost: AtomicU64,
    stopping: AtomicU64,
    pub(crate) unauthorized: AtomicU64,
    pub(crate) forbidden: AtomicU64,
}

impl PortBudgets {
    pub(crate) fn new(limits: &Limits) -> Self {
        let time = limits.room_time;
        let quarters = Shares::quarters;
        // A client with a token may have it all.
        let shares = |most, waiting| match limits.is_trusted {
            true => Shares::whole(most, waiting),
            false => Shares::quarters(most, waiting),
        };
        let queue = WAITING_CONNECTIONS;
        let answers = shares(limits.answers_bytes, limits.running_calls);
        let answers = Budget::new(ANSWERS, answers, time);
        let waiting_answers = Shares::whole(limits.waiting_answers_bytes(), 0);
        let small_answers = shares(limits.small_answers_bytes, SMALL_ANSWERS_WAITING);
        let most_files = (limits.descriptor_files, limits.descriptor_bytes);
        let calls = shares(limits.running_calls, limits.waiting_calls).least_first();
        let bodies = shares(limits.bodies_bytes, queue);
        let small_bodies = shares(limits.small_bodies_bytes, queue);
        let subscriptions = Shares::whole(limits.all_subscriptions, 0);
        Self {
            connections: Budget::new(CONNECTIONS, quarters(limits.connections, queue), time),
            protocols: Budget::new(PROTOCOLS, quarters(limits.protocols_bytes, queue), time),
            bodies: Budget::new(BODIES, bodies, time),
            small_bodies: Budget::new(SMALL_BODIES, small_bodies, time),
            sessions: Budget::new(SESSIONS, quarters(limits.sessions, queue), time),
            calls: Budget::new(CALLS, calls, time),
            files: Arc::new(MemoryFiles::new(most_files, Arc::clone(&answers))),
            answers,
            waiting_answers: Budget::new(WAITING_ANSWERS, waiting_answers, time),
            small_answers: Budget::new(SMALL_ANSWERS, small_answers, time),
            subscriptions: Budget::new(SUBSCRIPTIONS, subscriptions, time),
            encoders: Arc::new(Semaphore::new(limits.encoders)),
            short_calls: AtomicUsize::new(0),
            refusals: Refusals::default(),
        }
    }

    /// All budgets, for tests of their bounds.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<Arc<Budget>> {
        let Self { connections, protocols, bodies, small_bodies, sessions, calls, .. } = self;
        // Those of the last two are bounded by others: a budget, and the table's own test.
        let Self { answers, waiting_answers, small_answers, subscriptions, .. } = self;
        let first = [connections, protocols, bodies, small_bodies, sessions, calls];
        let others = [answers, waiting_answers, small_answers, subscriptions];
        first.into_iter().chain(others).map(Arc::clone).collect()
    }
}

/// One listening port.
pub(crate) struct Port {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) methods: MethodTable,
    pub(crate) jwt: Option<JwtSecret>,
    pub(crate) origins: AllowedOrigins,
    pub(crate) limits: Limits,
    /// Whether the server stops.
    stopping: watch::Sender<bool>,
    pub(crate) budgets: Arc<PortBudgets>,
    /// Where calls run that are not quick, if elsewhere.
    calls_run: Option<Handle>,
    subscriptions_begun: AtomicU64,
    /// Of the log's lines on requests without a valid token.
    pub(crate) unauthorized: LogThrottle,
    /// Of those on connections that cannot be accepted.
    unaccepted: LogThrottle,
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
    /// Too many wait for a turn, or for memory.
    Full,
    /// A fault of ours.
    Lost,
    /// The server stops.
    Stopping,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(busy) => busy.fmt(f),
            Self::Full => f.write_str(
                "busy: too many requests wait for a turn or for memory, try again later",
            ),
            Self::Lost => f.write_str("the call was lost; the log says why"),
            Self::Stopping => f.write_str("the server stops: try again when it is back"),
        }
    }
}

impl From<QueueFull> for Unanswered {
    fn from(_: QueueFull) -> Self {
        Self::Full
    }
}

impl Port {
    pub(crate) fn new(options: ServerOptions, handler: Arc<dyn Handler>) -> Self {
        let ServerOptions { jwt, mut limits, memory, calls, origins } = options;
        if cfg!(not(feature = "zstd")) {
            limits.zstd_bytes = usize::MAX;
        }
        let Limits { connections, sessions, running_calls, messages, answers_bytes, .. } = limits;
        let Limits { bodies_bytes, body_bytes, protocols_bytes, .. } = limits;
        assert!(
            [connections, sessions, running_calls, messages, answers_bytes, body_bytes]
                .iter()
                .all(|n| *n > 0),
            "a port without connections, calls, messages or answers serves nobody"
        );
        assert!(bodies_bytes >= body_bytes, "there is no room for the longest of bodies");
        let protocols = [limits.http1_bytes(), limits.http2_bytes(), limits.session_bytes()];
        let has_room = protocols.iter().all(|bytes| *bytes <= protocols_bytes / 4);
        assert!(has_room, "there is no room for the buffers and windows of four connections");
        let PortMemory(budgets) = memory.unwrap_or_else(|| PortMemory::new(&limits));
        Self {
            budgets,
            calls_run: calls,
            subscriptions_begun: AtomicU64::new(0),
            unauthorized: LogThrottle::default(),
            unaccepted: LogThrottle::minutely(),
            methods: MethodTable::new(handler.methods(), handler.subscriptions()),
            stopping: watch::Sender::new(false),
            handler,
            jwt,
            origins,
            limits,
        }
    }

    /// Turns true when the server stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Gives no turn and no memory any more.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Whether the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
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

    /// The next connection, and its slot. Where there is none, the connection that has been idle
    /// for the longest time is ended.
    pub(crate) async fn accept(
        &self,
        listener: &Listener,
    ) -> Option<(Socket, Arc<ConnectionSlot>)> {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(fault) => {
                if let Some(count) = self.unaccepted.count() {
                    tracing::warn!(%fault, count, "cannot accept connections");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                return None;
            }
        };
        let socket = Socket::new(stream, self.limits.write_idle);
        let (peer, unread) = (Peer::new(address), socket.unread_answers());
        let slot = self.budgets.connections.reserve(peer, 1, unread.evicted()).await.ok()?;
        // A client that need not show a token is trusted where all are.
        let is_trusted = self.jwt.is_none() && self.limits.is_trusted;
        Some((socket, ConnectionSlot::new(peer, unread, slot, is_trusted)))
    }

    /// Takes memory for buffers and windows of a connection.
    pub(crate) async fn speak(
        &self,
        slot: &ConnectionSlot,
        bytes: usize,
    ) -> Result<(), Unanswered> {
        let reserved = self.budgets.protocols.reserve(slot.peer, bytes, slot.unread.evicted());
        slot.keep_protocol(self.granted(reserved).await?);
        Ok(())
    }

    /// Takes a place among the sessions, and memory for its buffers.
    pub(crate) async fn begin_session(&self, slot: &ConnectionSlot) -> Result<(), Unanswered> {
        let reserved = self.budgets.sessions.reserve(slot.peer, 1, slot.unread.evicted());
        let session = self.granted(reserved).await?;
        self.speak(slot, self.limits.session_bytes()).await?;
        slot.keep_session(session);
        Ok(())
    }

    /// Runs `answer`, then waits for memory to send its result. An answer that is not quick waits
    /// for its turn, and runs on a thread that nothing else waits for. It is added to the unread
    /// answers of the connection.
    pub(crate) async fn run<A: PortAnswer>(
        &self,
        pace: Pace,
        slot: &ConnectionSlot,
        answer: impl FnOnce() -> Option<A> + Send + 'static,
    ) -> Result<Option<ReservedAnswer<A>>, Unanswered> {
        let _call = slot.call();
        let answer = match pace {
            Pace::Quick => answer(),
            Pace::Slow => {
                let turn = self.turn(slot).await?;
                let _running = slot.run();
                match self.may_run_in_place() {
                    true => {
                        let answered = block_in_place(called(Some(turn), answer));
                        answered.map_err(|reason| self.refused(lost(reason)))?
                    }
                    false => self.call_in_turn(Some(turn), answer).await?,
                }
            }
        };
        let Some(answer) = answer else { return Ok(None) };
        self.reserve_answer(slot, answer).await.map(Some)
    }

    /// Waits for memory to send an answer.
    pub(crate) async fn reserve_answer<A: PortAnswer>(
        &self,
        slot: &ConnectionSlot,
        answer: A,
    ) -> Result<ReservedAnswer<A>, Unanswered> {
        let mut memory = self.answer_memory(slot, answer.pieces().held_bytes()).await?;
        memory.keep(answer.pieces().until_sent());
        Ok(ReservedAnswer { answer, memory: slot.unread.add(memory) })
    }

    /// Waits for a turn of a call.
    pub(crate) async fn turn(&self, slot: &ConnectionSlot) -> Result<Reservation, Unanswered> {
        self.uncounted_turn(slot).await.map_err(|unanswered| self.refused(unanswered))
    }

    /// Waits for a turn of calls; the caller counts those that are not answered.
    pub(crate) async fn uncounted_turn(
        &self,
        slot: &ConnectionSlot,
    ) -> Result<Reservation, Unanswered> {
        if self.is_stopping() {
            return Err(Unanswered::Stopping);
        }
        let reserved = self.budgets.calls.reserve(slot.peer, 1, slot.unread.evicted());
        self.in_time(reserved).await?.map_err(Unanswered::from)
    }

    /// Calls something that has a turn, on another thread. The call has the turn: a client that
    /// hangs up does not end its call.
    pub(crate) async fn call_in_turn<T: Send + 'static>(
        &self,
        turn: Option<Reservation>,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let called = self.spawn(called(turn, call)).await;
        let called = called.unwrap_or_else(|fault| Err(fault.to_string()));
        called.map_err(|reason| self.refused(lost(reason)))
    }

    /// Runs something where calls run.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.calls_run {
            Some(runtime) => runtime.spawn_blocking(run),
            None => spawn_blocking(run),
        }
    }

    /// Whether the call that has a turn runs where its request was read, while another thread reads
    /// from all clients: it is the only one. No thread has to wake for it, nor, over HTTP/1.1, for
    /// its answer, which takes 30 to 50 µs each on a processor that sleeps. With many calls at a
    /// time no processor sleeps, and taking over costs more.
    pub(crate) fn may_run_in_place(&self) -> bool {
        let runtime = Handle::current();
        let is_here = self.calls_run.as_ref().is_none_or(|calls| calls.id() == runtime.id());
        is_here
            && runtime.runtime_flavor() != RuntimeFlavor::CurrentThread
            && self.budgets.calls.held() == 1
    }

    /// Waits for memory for an answer of so many bytes: a small one never behind larger ones. An
    /// answer that waits is in memory already, and holds no turn that others could have; where too
    /// much waits, it is refused.
    pub(crate) async fn answer_memory(
        &self,
        slot: &ConnectionSlot,
        bytes: usize,
    ) -> Result<Reservation, Unanswered> {
        let PortBudgets { answers, small_answers, waiting_answers, files, .. } = &*self.budgets;
        let (peer, evicted) = (slot.peer, slot.unread.evicted());
        if bytes <= SMALL_ANSWER_BYTES {
            return self.granted(small_answers.reserve(peer, bytes, evicted)).await;
        }
        if let Some(memory) = answers.try_reserve(peer, bytes, evicted) {
            return Ok(memory);
        }
        files.free_idle();
        let _waits = waiting_answers
            .try_reserve(peer, bytes, &Arc::default())
            .ok_or_else(|| self.refused(Unanswered::Full))?;
        self.granted(answers.reserve(peer, bytes, evicted)).await
    }

    /// Memory for the refusal of a message, which waits for none: that of a batch repeats its ids.
    /// A short one is a part of its connection's buffers.
    pub(crate) fn refusal_memory(
        &self,
        slot: &ConnectionSlot,
        bytes: usize,
    ) -> Result<Option<Arc<Reservation>>, QueueFull> {
        let PortBudgets { answers, small_answers, .. } = &*self.budgets;
        if bytes <= SHORT_BYTES {
            return Ok(None);
        }
        let budget = if bytes <= SMALL_ANSWER_BYTES { small_answers } else { answers };
        let memory = budget.try_reserve(slot.peer, bytes, slot.unread.evicted());
        memory.map(|memory| Some(slot.unread.add(memory))).ok_or(QueueFull)
    }

    /// Waits for a part of a budget, as long as a client may have to, and until the server stops.
    pub(crate) async fn granted<T>(
        &self,
        reserved: impl Future<Output = Result<T, QueueFull>>,
    ) -> Result<T, Unanswered> {
        let granted = self.in_time(reserved).await;
        let granted = granted.and_then(|granted| granted.map_err(Unanswered::from));
        granted.map_err(|unanswered| self.refused(unanswered))
    }

    /// Counts something that is not answered.
    pub(crate) fn refused(&self, unanswered: Unanswered) -> Unanswered {
        let Refusals { busy, full, lost, stopping, .. } = &self.budgets.refusals;
        let count = match unanswered {
            Unanswered::Busy(_) => busy,
            Unanswered::Full => full,
            Unanswered::Lost => lost,
            Unanswered::Stopping => stopping,
        };
        count.fetch_add(1, Ordering::Relaxed);
        unanswered
    }

    /// Waits for something, as long as a client may have to, and until the server stops.
    pub(crate) async fn in_time<T>(
        &self,
        waited_for: impl Future<Output = T>,
    ) -> Result<T, Unanswered> {
        let wait = self.limits.turn_wait;
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            biased;
            done = timeout(wait, waited_for) => done.map_err(|_| Unanswered::Busy(Busy(wait))),
            _ = stopping.wait_for(|is_stopping| *is_stopping) => Err(Unanswered::Stopping),
        }
    }

    /// The id of a new subscription, never the same twice: hex, as Ethereum's clients expect.
    pub(crate) fn subscription_id(&self) -> String {
        let begun = self.subscriptions_begun.fetch_add(1, Ordering::Relaxed);
        format!("0x{:x}", begun + 1)
    }
}

/// A call that has a turn. Its panic is an error.
fn called<T>(
    turn: Option<Reservation>,
    call: impl FnOnce() -> T,
) -> impl FnOnce() -> Result<T, String> {
    move || {
        let answered = catch_unwind(AssertUnwindSafe(call));
        drop(turn);
        answered.map_err(|panic| panic_text(&*panic).to_string())
    }
}

/// Logs why a call was lost.
pub(crate) fn lost(reason: String) -> Unanswered {
    tracing::error!(reason, "a call was lost");
    Unanswered::Lost
}

#[cfg(test)]
mod tests;
