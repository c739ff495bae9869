//! The server's end of a connection that lasts: several messages are answered at a time, and there
//! are subscriptions.

use std::future::pending;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::json::Json;
use crate::jsonrpc::message::{CallRequest, answer_by};
use crate::jsonrpc::params::Params;
use crate::jsonrpc::subscription::{SubscriptionMethods, Subscriptions};
use crate::limits::{BODY_STEP_BYTES, OUTGOING_LEN, SHORT_BYTES};
use crate::port::{Port, ReservedAnswer, Unanswered};
use crate::transport::budget::{Reservation, permits, semaphore, units};
use crate::transport::messages::{Ending, MessagePermits, MessageReader, OutgoingMessage};
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

    async fn read(self: &Arc<Self>, reader: &mut impl MessageReader) -> Ending {
        let limits = &self.port.limits;
        // The message that is being read is not waited for.
        let waited_for = || self.slots.available_permits() + 1 < limits.messages;
        loop {
            // Without a free slot nothing is read, and the client has to wait.
            let slot = permits(&self.slots, 1).await;
            let message = match reader.next(limits.silence, waited_for).await {
                Ok(message) => message,
                Err(ending) => return ending,
            };
            // Until then the message is a part of the connection's buffers.
            let first = match self.first_memory(message.len()).await {
                Ok(first) => first,
                Err(unanswered) => return Ending::fault(CloseCode::Again, unanswered),
            };
            let reservations = [first, reader.take_reservation()];
            let units = units(message.len(), limits.body_bytes);
            // It is released by calls that run.
            let bytes = permits(&self.bytes, units).await;
            let permits =
                MessagePermits { _slot: slot, message: Some((bytes, reservations)), _answer: None };
            let is_in_order = self.port.methods.may_be_in_order(message.as_bytes());
            let turn = is_in_order.then(|| self.turns.enter());
            tokio::spawn(Arc::clone(self).answer(message, turn, permits));
        }
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

    async fn answer(
        self: Arc<Self>,
        message: Utf8Bytes,
        turn: Option<Turn>,
        mut permits: MessagePermits,
    ) {
        if let Some(turn) = &turn {
            turn.wait().await;
        }
        let (answered, is_answered) = watch::channel(false);
        let session = Arc::clone(&self);
        let calls = move |request: &CallRequest<'_>| session.call(request, &is_answered);
        let called = self.port.answer_message(&self.slot, message.clone(), calls).await;
        drop(turn);
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
                    return self
                        .outgoing
                        .send(OutgoingMessage::Goodbye(goodbye))
                        .await
                        .unwrap_or(());
                };
                permits._answer = memory;
                (refusal, true)
            }
        };
        // The message is dropped before its answer waits for others to be sent.
        permits.message = None;
        let is_sent = match text {
            Some(text) => {
                let message = OutgoingMessage::Text(text.pieces, Some(permits.into()));
                self.outgoing.send(message).await.is_ok()
            }
            None => false,
        };
        if is_sent && !is_refused {
            // From now on subscriptions that it began may send their notifications.
            answered.send_replace(true);
        } else {
            // Those that it began are of no use: the client never learns their ids.
            drop(answered);
            self.subscriptions.forget_unanswered();
        }
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
