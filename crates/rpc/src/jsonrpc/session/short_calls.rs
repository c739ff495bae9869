//! Short calls of a session: those that wait have turns together, on one thread, one call after the
//! other. A thread that wakes for each call would cost more than most calls do.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::block_in_place;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::jsonrpc::error::Error;
use crate::jsonrpc::json::Json;
use crate::jsonrpc::message::answer_single;
use crate::jsonrpc::session::Session;
use crate::limits::{SHORT_BYTES, SHORT_CALL, SMALL_ANSWER_BYTES, TOGETHER_LEN, TURN_TIME};
use crate::port::{PortBudgets, Unanswered, lost};
use crate::transport::budget::Reservation;
use crate::transport::messages::{Ending, OutgoingMessage, ShortTexts};

/// A message with a short call, and its place among the messages of the session.
#[derive(Debug)]
pub(super) struct ShortCall {
    since: Instant,
    message: Utf8Bytes,
    permit: OwnedSemaphorePermit,
}

/// The short calls of a session that wait, and its runners, each of which makes one call after the
/// other while it has a turn.
#[derive(Debug)]
pub(super) struct ShortCalls {
    budgets: Arc<PortBudgets>,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<ShortCall>,
    /// Calls that run.
    running: usize,
    /// There is one as long as a call waits.
    runners: usize,
    /// Whether the only runner makes the only call in place, and sees no other that comes.
    is_in_place: bool,
}

impl ShortCalls {
    pub(super) fn new(budgets: Arc<PortBudgets>) -> Self {
        Self { budgets, state: Mutex::default() }
    }

    /// Adds a call; true if no runner would see it, so that one is to begin, which counts already.
    /// The call comes back if too many wait on the whole port, some of them here.
    fn push(&self, call: ShortCall) -> Result<bool, ShortCall> {
        let most = self.budgets.calls.shares.waiting;
        self.change(|state, runners| {
            let is_full = self.budgets.short_calls.load(Ordering::Relaxed) >= most;
            if is_full && state.waiting.len() + state.running >= runners {
                return Err(call);
            }
            state.waiting.push_back(call);
            let is_unseen = state.runners == usize::from(state.is_in_place);
            let begins = is_unseen && state.runners < runners;
            state.runners += usize::from(begins);
            Ok(begins)
        })
    }

    fn next(&self) -> Option<ShortCall> {
        self.change(|state, _| {
            let call = state.waiting.pop_front()?;
            state.running += 1;
            Some(call)
        })
    }

    fn end_call(&self) {
        self.change(|state, _| state.running -= 1);
    }

    fn end_in_place(&self) {
        self.change(|state, _| {
            state.running -= 1;
            state.is_in_place = false;
        });
    }

    /// Takes a call that is alone, if it is.
    fn next_in_place(&self) -> Option<ShortCall> {
        self.change(|state, _| {
            let is_alone = state.runners == 1 && state.waiting.len() == 1;
            state.is_in_place = is_alone;
            state.running += usize::from(is_alone);
            is_alone.then(|| state.waiting.pop_front()).flatten()
        })
    }

    /// Whether a further runner is to begin, which counts already: a call has waited for long.
    fn wants_another(&self) -> bool {
        self.change(|state, runners| {
            let first = state.waiting.front();
            let waits = first.is_some_and(|call| call.since.elapsed() >= SHORT_CALL);
            let is_wanted = waits && state.runners < runners;
            state.runners += usize::from(is_wanted);
            is_wanted
        })
    }

    /// Ends a runner, if no call waits.
    fn end_runner(&self) -> bool {
        self.change(|state, _| {
            let is_over = state.waiting.is_empty();
            state.runners -= usize::from(is_over);
            is_over
        })
    }

    /// Takes the calls that have waited for the longest time, those of one moment: no turn came.
    fn give_up(&self, unanswered: Unanswered) -> Vec<ShortCall> {
        self.change(|state, _| {
            let Some(first) = state.waiting.front() else { return Vec::new() };
            let together = first.since + SHORT_CALL;
            let count = match unanswered {
                Unanswered::Busy(_) | Unanswered::Full => {
                    state.waiting.iter().take_while(|call| call.since <= together).count()
                }
                Unanswered::Lost | Unanswered::Stopping => state.waiting.len(),
            };
            state.waiting.drain(..count).collect()
        })
    }

    /// Forgets the calls that wait.
    fn clear(&self) {
        let forgotten = self.change(|state, _| std::mem::take(&mut state.waiting));
        // Without the lock.
        drop(forgotten);
    }

    /// Changes the state, and counts the calls of the port that wait: of each session those beyond
    /// its share of turns, which is how many runners it may have.
    fn change<T>(&self, change: impl FnOnce(&mut QueueState, usize) -> T) -> T {
        let runners = self.budgets.calls.shares.connection;
        let mut state = self.state();
        let waiting =
            |state: &QueueState| (state.waiting.len() + state.running).saturating_sub(runners);
        let before = waiting(&state);
        let result = change(&mut state, runners);
        let (after, count) = (waiting(&state), &self.budgets.short_calls);
        if after > before {
            count.fetch_add(after - before, Ordering::Relaxed);
        } else if after < before {
            count.fetch_sub(before - after, Ordering::Relaxed);
        }
        result
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().expect("nothing panics while it is locked")
    }
}

/// The answers of a turn that are not on their way yet.
#[derive(Default)]
struct Unsent {
    /// Short ones: the client reads slowly.
    short: Option<OutgoingMessage>,
    /// Longer ones, which need memory.
    long: Vec<(ShortCall, Json)>,
}

impl Session {
    /// Adds a message with a short call to those that wait.
    pub(super) fn call_in_queue(
        self: &Arc<Self>,
        message: Utf8Bytes,
        permit: OwnedSemaphorePermit,
    ) {
        let since = Instant::now();
        match self.short_calls.push(ShortCall { since, message, permit }) {
            Ok(true) => drop(tokio::spawn(run(Arc::clone(self)))),
            Ok(false) => {}
            Err(call) => self.refuse_calls(vec![call], Unanswered::Full),
        }
    }

    fn refuse_calls(self: &Arc<Self>, calls: Vec<ShortCall>, unanswered: Unanswered) {
        for ShortCall { message, permit, .. } in calls {
            let (session, refused) = (Arc::clone(self), self.port.refused(unanswered));
            tokio::spawn(async move { session.finish(message, Err(refused), permit.into()).await });
        }
    }

    /// Makes calls while there is a turn.
    async fn take_turn(self: &Arc<Self>, turn: Reservation) {
        let running = self.slot.run();
        if self.port.may_run_in_place()
            && let Some(call) = self.short_calls.next_in_place()
        {
            let answer = block_in_place(|| self.answer_short(&call.message));
            self.short_calls.end_in_place();
            drop((turn, running));
            if let Some(answer) = answer {
                self.send_short(call, answer).await;
            }
            return;
        }
        let session = Arc::clone(self);
        let mut made = self.port.spawn(move || {
            let unsent = session.make_calls();
            drop(turn);
            unsent
        });
        let made = loop {
            match timeout(SHORT_CALL, &mut made).await {
                Ok(made) => break made,
                Err(_) if self.short_calls.wants_another() => {
                    tokio::spawn(run(Arc::clone(self)));
                }
                Err(_) => {}
            }
        };
        drop(running);
        let Unsent { short, long } = match made {
            Ok(unsent) => unsent,
            Err(fault) => {
                let goodbye = Ending::fault(CloseCode::Error, lost(fault.to_string()));
                let short = Some(OutgoingMessage::Goodbye(goodbye));
                Unsent { short, long: Vec::new() }
            }
        };
        for (ShortCall { message, permit, .. }, answer) in long {
            self.send_long(message, answer, permit);
        }
        if let Some(short) = short {
            self.outgoing.send(short).await.unwrap_or_default();
        }
    }

    /// Sends one answer.
    async fn send_short(self: &Arc<Self>, call: ShortCall, answer: Json) {
        if !is_short(&answer) {
            return self.send_long(call.message, answer, call.permit);
        }
        let mut together = ShortTexts::default();
        together.push(answer.pieces, call.permit);
        self.send_together(&mut together).await;
    }

    /// Makes calls for a while, and hands their answers over.
    fn make_calls(&self) -> Unsent {
        let begun = Instant::now();
        let (mut long, mut long_bytes) = (Vec::new(), 0);
        let (mut together, mut last) = (ShortTexts::default(), begun);
        let mut short = None;
        while let Some(call) = self.short_calls.next() {
            let answer = self.answer_short(&call.message);
            self.short_calls.end_call();
            match answer {
                Some(answer) if is_short(&answer) => together.push(answer.pieces, call.permit),
                Some(answer) => {
                    long_bytes += answer.pieces.held_bytes();
                    long.push((call, answer));
                }
                // It was a notification.
                None => {}
            }
            let now = Instant::now();
            if together.texts.len() >= TOGETHER_LEN || now - last >= SHORT_CALL {
                short = self.hand_over(std::mem::take(&mut together));
                last = now;
            }
            let is_over = now - begun >= TURN_TIME || long_bytes > SMALL_ANSWER_BYTES;
            if is_over || short.is_some() {
                break;
            }
        }
        Unsent { short: short.or_else(|| self.hand_over(together)), long }
    }

    /// Makes the call of a short message that has one, and begins no subscription.
    pub(super) fn answer_short(&self, message: &Utf8Bytes) -> Option<Json> {
        answer_single(message.as_bytes(), &mut |request| match self.outgoing.is_closed() {
            true => Err(Error::hung_up()),
            false => {
                let (handler, host) = (&self.port.handler, self.slot.peer.host);
                handler.call_from(host, &request.method, request.params)
            }
        })
    }

    /// Puts answers on their way, unless others wait there.
    fn hand_over(&self, together: ShortTexts) -> Option<OutgoingMessage> {
        if together.texts.is_empty() {
            return None;
        }
        match self.outgoing.try_send(OutgoingMessage::ShortTexts(together)) {
            Ok(()) | Err(TrySendError::Closed(_)) => None,
            Err(TrySendError::Full(message)) => Some(message),
        }
    }
}

/// Whether an answer is a part of the connection's buffers.
pub(super) fn is_short(answer: &Json) -> bool {
    answer.pieces.len_bytes() <= SHORT_BYTES && answer.pieces.until_sent().is_empty()
}

/// A runner: takes turn after turn until no call waits, or the connection has ended.
fn run(session: Arc<Session>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let (calls, _call) = (&session.short_calls, session.slot.call());
        loop {
            tokio::select! {
                turn = session.port.uncounted_turn(&session.slot) => match turn {
                    Ok(turn) => session.take_turn(turn).await,
                    Err(unanswered) => session.refuse_calls(calls.give_up(unanswered), unanswered),
                },
                () = session.outgoing.closed() => calls.clear(),
            }
            if calls.end_runner() {
                return;
            }
        }
    })
}

#[cfg(test)]
mod tests;
