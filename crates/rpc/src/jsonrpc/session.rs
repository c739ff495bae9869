//! The server's end of a connection that lasts: several messages are answered at a time, and there
//! are subscriptions.

mod short_calls;

use std::future::{pending, ready};
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::json::Json;
use crate::jsonrpc::message::{CallRequest, answer_by};
use crate::jsonrpc::params::Params;
use crate::jsonrpc::schedule::Lane;
use crate::jsonrpc::session::short_calls::{ShortCalls, is_short};
use crate::jsonrpc::subscription::{SubscriptionMethods, Subscriptions};
use crate::limits::{BODY_STEP_BYTES, OUTGOING_LEN, SHORT_BYTES, TOGETHER_LEN};
use crate::port::{Port, ReservedAnswer, Unanswered};
use crate::transport::budget::{Reservation, permits, semaphore, units};
use crate::transport::messages::{
    Ending, MessagePermits, MessageReader, OutgoingMessage, ShortTexts,
};
use crate::transport::slot::ConnectionSlot;
use crate::transport::turns::{Turn, TurnQueue};

/// Serves one connection until it ends, or until `stopped` closes and its messages are answered.
pub(crate) async fn converse<R: MessageReader>(
    port: Arc<Port>,
    mut reader: R,
    mut writer: R::Writer,
    slot: Arc<ConnectionSlot>,
    stopped: watch::Receiver<()>,
) {
    let (outgoing, mut queue) = mpsc::channel(OUTGOING_LEN);
    let session = Arc::new(Session::new(port, slot, outgoing));
    let ending = tokio::select! {
        ending = session.run(&mut reader, stopped) => ending,
        ending = R::send_all(&mut writer, &mut queue) => ending,
        () = session.slot.unread.evicted().notified() => Ending::Broken(ENDED_FOR_OTHERS.into()),
    };
    // The answers of calls that still run are dropped, and subscriptions end.
    drop(queue);
    tracing::debug!(%ending, "a conversation ends");
    reader.close(writer, &ending).await;
}

/// Logged when a connection is cut because others need its memory or its slot.
pub(crate) const ENDED_FOR_OTHERS: &str =
    "a connection was cut: it was idle, or read too slowly, while others had no room";

/// The shared state of the messages of one connection.
struct Session {
    port: Arc<Port>,
    slot: Arc<ConnectionSlot>,
    turns: Arc<TurnQueue>,
    outgoing: mpsc::Sender<OutgoingMessage>,
    subscriptions: Arc<Subscriptions>,
    short_calls: ShortCalls,
    /// One permit for each message that may be on the way to its answer.
    slots: Arc<Semaphore>,
    /// The memory of these messages, in units of the port's budgets.
    bytes: Arc<Semaphore>,
}

impl Session {
    fn new(
        port: Arc<Port>,
        slot: Arc<ConnectionSlot>,
        outgoing: mpsc::Sender<OutgoingMessage>,
    ) -> Self {
        let (limits, all) = (&port.limits, Arc::clone(&port.budgets.subscriptions));
        let subscriptions =
            Subscriptions::new(limits.subscriptions, all, slot.peer, outgoing.clone());
        Self {
            slot,
            turns: Arc::default(),
            outgoing,
            subscriptions: Arc::new(subscriptions),
            short_calls: ShortCalls::new(Arc::clone(&port.budgets)),
            slots: Arc::new(Semaphore::new(limits.messages)),
            bytes: semaphore(limits.body_bytes),
            port,
        }
    }

    /// Reads and answers. At a stop, or when the other side has asked everything, no more is read,
    /// and the messages that were read are answered.
    async fn run<R: MessageReader>(
        self: &Arc<Self>,
        reader: &mut R,
        mut stopped: watch::Receiver<()>,
    ) -> Ending {
        let goodbye = tokio::select! {
            ending = self.read(reader) => match ending {
                Ending::Asked => ending,
                Ending::Fault { .. } if R::ANSWERS_BEFORE_FAULTS => ending,
                ending => return ending,
            },
            _ = stopped.changed() => {
                Ending::Fault { code: CloseCode::Away, reason: "the server is stopping".into() }
            }
        };
        let all = u32::try_from(self.port.limits.messages).unwrap_or(u32::MAX);
        tokio::select! {
            slots = permits(&self.slots, all) => drop(slots),
            () = reader.gone(), if matches!(goodbye, Ending::Asked) => return Ending::Left(None),
        }
        self.outgoing.send(OutgoingMessage::Goodbye(goodbye)).await.unwrap_or_default();
        // It comes back from the writer.
        pending().await
    }

    async fn read<R: MessageReader>(self: &Arc<Self>, reader: &mut R) -> Ending {
        let limits = &self.port.limits;
        // The message that is being read is not waited for.
        let waited_for = || self.slots.available_permits() + 1 < limits.messages;
        // The answers to quick calls that were read together leave together.
        let mut together = ShortTexts::default();
        loop {
            // Without a free slot nothing is read, and the client has to wait.
            let slot = match Arc::clone(&self.slots).try_acquire_owned() {
                Ok(slot) => slot,
                Err(_) => {
                    self.send_together(&mut together).await;
                    permits(&self.slots, 1).await
                }
            };
            let next = {
                let mut next = pin!(reader.next(limits.silence, waited_for));
                tokio::select! {
                    biased;
                    next = &mut next => next,
                    () = ready(()) => {
                        self.send_together(&mut together).await;
                        next.await
                    }
                }
            };
            let message = match next {
                Ok(message) => message,
                Err(ending) => {
                    if R::ANSWERS_BEFORE_FAULTS || matches!(ending, Ending::Asked) {
                        self.send_together(&mut together).await;
                    }
                    return ending;
                }
            };
            match self.port.methods.lane(&message) {
                Lane::Quick => {
                    self.slot.note_progress();
                    match self.answer_short(&message) {
                        Some(answer) if is_short(&answer) => together.push(answer.pieces, slot),
                        Some(answer) => self.send_long(message, answer, slot),
                        None => {}
                    }
                    if together.texts.len() >= TOGETHER_LEN {
                        self.send_together(&mut together).await;
                    }
                }
                Lane::Short => self.call_in_queue(message, slot),
                Lane::Own => {
                    if let Err(ending) = self.begin(reader.take_reservation(), message, slot).await
                    {
                        return ending;
                    }
                }
            }
        }
    }

    /// Sends short answers, if there are any.
    async fn send_together(&self, together: &mut ShortTexts) {
        if !together.texts.is_empty() {
            let message = OutgoingMessage::ShortTexts(std::mem::take(together));
            self.outgoing.send(message).await.unwrap_or_default();
        }
    }

    /// Begins to answer a message that is no short call.
    async fn begin(
        self: &Arc<Self>,
        complete: Option<Reservation>,
        message: Utf8Bytes,
        slot: OwnedSemaphorePermit,
    ) -> Result<(), Ending> {
        let most_bytes = self.port.limits.body_bytes;
        // Until then the message is a part of the connection's buffers.
        let first = self.first_memory(message.len()).await;
        let first = first.map_err(|unanswered| Ending::fault(CloseCode::Again, unanswered))?;
        // It is released by calls that run.
        let bytes = permits(&self.bytes, units(message.len(), most_bytes)).await;
        let message_memory = Some((bytes, [first, complete]));
        let permits = MessagePermits { _slot: slot, message: message_memory, _answer: None };
        let is_in_order = self.port.methods.may_be_in_order(message.as_bytes());
        let turn = is_in_order.then(|| self.turns.enter());
        tokio::spawn(Arc::clone(self).answer(message, turn, permits));
        Ok(())
    }

    /// Waits for memory for the first 64 KiB of a message that is not short.
    async fn first_memory(&self, bytes: usize) -> Result<Option<Reservation>, Unanswered> {
        if bytes <= SHORT_BYTES {
            return Ok(None);
        }
        let bytes = bytes.next_power_of_two().min(BODY_STEP_BYTES);
        let evicted = Arc::default();
        let reserved = self.port.budgets.small_bodies.reserve(self.slot.peer, bytes, &evicted);
        Ok(Some(self.port.granted(reserved).await?))
    }

    async fn answer(self: Arc<Self>, message: Utf8Bytes, turn: Option<Turn>, of: MessagePermits) {
        if let Some(turn) = &turn {
            turn.wait().await;
        }
        let (answered, is_answered) = watch::channel(false);
        let session = Arc::clone(&self);
        let calls = move |request: &CallRequest<'_>| session.call(request, &is_answered);
        let called = if self.port.methods.waits(message.as_bytes()) {
            tokio::select! {
                answered = self.port.answer_later(&self.slot, message.clone()) => answered,
                // Nobody is there any more whom the answer would reach.
                () = self.outgoing.closed() => Ok(None),
            }
        } else {
            self.port.answer_now(&self.slot, message.clone(), calls).await
        };
        drop(turn);
        if self.finish(message, called, of).await {
            // From now on subscriptions that it began may send their notifications.
            answered.send_replace(true);
        } else {
            // Those that it began are of no use: the client never learns their ids.
            drop(answered);
            self.subscriptions.forget_unanswered();
        }
    }

    /// Waits for memory for the answer to a short call, and sends it.
    fn send_long(self: &Arc<Self>, message: Utf8Bytes, answer: Json, slot: OwnedSemaphorePermit) {
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let _call = session.slot.call();
            let reserved = session.port.reserve_answer(&session.slot, answer).await;
            session.finish(message, reserved.map(Some), slot.into()).await
        });
    }

    /// Sends what a message is answered, or the reason why it is not. Returns whether the answer is
    /// on its way.
    async fn finish(
        &self,
        message: Utf8Bytes,
        called: Result<Option<ReservedAnswer<Json>>, Unanswered>,
        mut permits: MessagePermits,
    ) -> bool {
        let (text, is_refused) = match called {
            Ok(answered) => {
                drop(message);
                let answered = answered.map(|ReservedAnswer { answer, memory }| {
                    permits._answer = Some(memory);
                    answer
                });
                (answered, false)
            }
            Err(unanswered) => {
                let refusal = self.refuse(message, unanswered).await;
                let bytes = refusal.as_ref().map_or(0, |refusal| refusal.pieces.held_bytes());
                let Ok(memory) = self.port.refusal_memory(&self.slot, bytes) else {
                    let goodbye = Ending::fault(CloseCode::Again, unanswered);
                    let goodbye = OutgoingMessage::Goodbye(goodbye);
                    self.outgoing.send(goodbye).await.unwrap_or_default();
                    return false;
                };
                permits._answer = memory;
                (refusal, true)
            }
        };
        // The message is dropped before its answer waits for others to be sent.
        permits.message = None;
        let Some(text) = text else { return false };
        let message = OutgoingMessage::Text(text.pieces, Some(permits.into()));
        self.outgoing.send(message).await.is_ok() && !is_refused
    }

    /// Answers each request of a message with the reason why it was not called.
    async fn refuse(&self, message: Utf8Bytes, unanswered: Unanswered) -> Option<Json> {
        let code = match unanswered {
            Unanswered::Busy(_) | Unanswered::Full | Unanswered::Stopping => Code::Server,
            Unanswered::Lost => Code::Internal,
        };
        let port = Arc::clone(&self.port);
        let refuse = move || {
            let mut calls = |_: &CallRequest<'_>| Err(Error::new(code, unanswered));
            answer_by(message.as_bytes(), &port.limits, &mut calls)
        };
        self.port.spawn(refuse).await.unwrap_or_default()
    }

    fn call(
        &self,
        request: &CallRequest<'_>,
        answered: &watch::Receiver<bool>,
    ) -> Result<Json, Error> {
        if self.outgoing.is_closed() {
            return Err(Error::hung_up());
        }
        let handler = &self.port.handler;
        let method = &*request.method;
        match handler.subscriptions().iter().find(|kind| kind.has(method)) {
            None => handler.call_from(self.slot.peer.host, method, request.params),
            Some(kind) if kind.subscribe == method => self.subscribe(*kind, request, answered),
            Some(_) => self.unsubscribe(request),
        }
    }

    fn subscribe(
        &self,
        kind: SubscriptionMethods,
        request: &CallRequest<'_>,
        answered: &watch::Receiver<bool>,
    ) -> Result<Json, Error> {
        if request.id.is_none() {
            let detail = "without an id, nobody learns of the subscription";
            return Err(Error::new(Code::InvalidRequest, detail));
        }
        self.subscriptions.check_room()?;
        let subscription = self.port.handler.subscribe(&request.method, request.params)?;
        let id = self.port.subscription_id();
        self.subscriptions.open(&id, kind, subscription, answered.clone())?;
        Json::of(&id)
    }

    fn unsubscribe(&self, request: &CallRequest<'_>) -> Result<Json, Error> {
        let mut params = Params::of(request.params)?;
        let id: String = params.next("subscription")?;
        params.end()?;
        Json::of(&self.subscriptions.close(&request.method, &id))
    }
}

#[cfg(test)]
mod tests;
