//! Subscriptions: the topics of a handler, and the subscriptions of one connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::AbortHandle;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::json::Json;
use crate::limits::TOPIC_LEN;
use crate::pieces::Pieces;
use crate::transport::budget::{Budget, Reservation};
use crate::transport::messages::{Ending, OutgoingMessage};
use crate::transport::peer::Peer;

/// The names of one kind of subscription: `eth_subscribe`, `eth_unsubscribe` and
/// `eth_subscription`, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionMethods {
    /// Begins one; its result is the subscription's id, a string.
    pub subscribe: &'static str,
    /// Ends the one whose id is the only parameter; its result says whether there was one. Several
    /// kinds may share it.
    pub unsubscribe: &'static str,
    /// The method of the notifications. Their `params` are an object with `subscription`, the id,
    /// and `result`, the value.
    pub notification: &'static str,
}

impl SubscriptionMethods {
    /// Whether a client calls `method` for this kind.
    pub(crate) fn has(&self, method: &str) -> bool {
        [self.subscribe, self.unsubscribe].contains(&method)
    }
}

/// A channel on which a handler publishes values to any number of subscriptions.
///
/// Clones are the same topic. When the last one is gone, the connections of its subscriptions are
/// closed.
///
/// ```
/// let persisted = deponent_rpc::Topic::new();
/// let subscription = persisted.subscribe();
/// persisted.publish(deponent_rpc::Json::of(&7)?);
/// # drop(subscription);
/// # Ok::<(), deponent_rpc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Topic(Arc<TopicValues>);

#[derive(Debug)]
struct TopicValues {
    id: u64,
    values: broadcast::Sender<(u64, Json)>,
    /// The number of the last value. It is locked while a value is sent, so that a subscription
    /// knows which come after it.
    last: Mutex<u64>,
}

impl Topic {
    /// A topic without subscriptions.
    #[expect(clippy::new_without_default, reason = "a topic alone is not a sensible default")]
    pub fn new() -> Self {
        static TOPICS: AtomicU64 = AtomicU64::new(0);
        let id = TOPICS.fetch_add(1, Ordering::Relaxed);
        let values = broadcast::Sender::new(TOPIC_LEN);
        Self(Arc::new(TopicValues { id, values, last: Mutex::default() }))
    }

    /// Gives a value to all current subscriptions, without waiting for any: one that falls more
    /// than 1,024 values behind is lost, and its connection closed.
    pub fn publish(&self, value: Json) {
        let mut last = self.last();
        *last += 1;
        // A topic without subscriptions is no error.
        self.0.values.send((*last, value)).unwrap_or_default();
    }

    /// The values published from now on.
    pub fn subscribe(&self) -> Subscription {
        let last = self.last();
        Subscription { topic: self.0.id, values: self.0.values.subscribe(), after: *last }
    }

    fn last(&self) -> MutexGuard<'_, u64> {
        self.0.last.lock().expect("nothing panics while it is locked")
    }
}

/// The values of a [`Topic`] on their way to one client.
#[derive(Debug)]
pub struct Subscription {
    topic: u64,
    values: broadcast::Receiver<(u64, Json)>,
    /// The number of the last value before it.
    after: u64,
}

/// The subscriptions of one connection.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    /// How many there may be.
    most: usize,
    /// How many there may be of all connections.
    all: Arc<Budget>,
    peer: Peer,
    live: Mutex<LiveSubscriptions>,
    outgoing: mpsc::Sender<OutgoingMessage>,
}

/// A topic has one task on each connection, however many subscriptions it has there: to publish a
/// value wakes no more tasks than there are connections.
#[derive(Debug, Default)]
struct LiveSubscriptions {
    by_id: HashMap<String, Arc<LiveSubscription>>,
    /// The tasks of topics, and their subscriptions in the order in which they began.
    topics: HashMap<u64, (AbortHandle, Vec<Arc<LiveSubscription>>)>,
}

#[derive(Debug)]
struct LiveSubscription {
    id: String,
    methods: SubscriptionMethods,
    topic: u64,
    after: u64,
    /// Turns true when the client knows the id.
    answered: watch::Receiver<bool>,
    _permit: Reservation,
}

impl Subscriptions {
    pub(crate) fn new(
        most: usize,
        all: Arc<Budget>,
        peer: Peer,
        outgoing: mpsc::Sender<OutgoingMessage>,
    ) -> Self {
        Self { most, all, peer, live: Mutex::default(), outgoing }
    }

    /// Whether there may be another one.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        self.forget_unanswered();
        self.check(self.live().by_id.len())
    }

    /// Ends those whose ids the client never learns, and frees what they have of the port's bound.
    pub(crate) fn forget_unanswered(&self) {
        self.live().forget_unanswered();
    }

    fn check(&self, count: usize) -> Result<(), Error> {
        if count < self.most {
            return Ok(());
        }
        let detail = format_args!(
            "this connection has {count} subscriptions, {} are allowed: end one, or open another \
             connection",
            self.most
        );
        Err(Error::new(Code::Server, detail))
    }

    /// Opens a subscription. Its notifications begin when `answered` turns true, so that the client
    /// knows its id; it is forgotten if that never happens.
    pub(crate) fn open(
        self: &Arc<Self>,
        id: &str,
        methods: SubscriptionMethods,
        subscription: Subscription,
        answered: watch::Receiver<bool>,
    ) -> Result<(), Error> {
        let permit = self.all.try_reserve(self.peer, 1, &Arc::default()).ok_or_else(|| {
            let most = self.all.shares.most;
            let detail =
                format_args!("busy: all {most} subscriptions of this port are taken, try later");
            Error::new(Code::Server, detail)
        })?;
        let mut live = self.live();
        // Calls of one connection run at the same time.
        self.check(live.by_id.len())?;
        let Subscription { topic, values, after } = subscription;
        let id = id.to_owned();
        let opened = LiveSubscription { id, methods, topic, after, answered, _permit: permit };
        let opened = Arc::new(opened);
        live.by_id.insert(opened.id.clone(), Arc::clone(&opened));
        let forward = || {
            let forward = Arc::clone(self).forward(topic, values);
            (tokio::spawn(forward).abort_handle(), Vec::new())
        };
        // A task that is there has not come to the values after this one.
        live.topics.entry(topic).or_insert_with(forward).1.push(opened);
        Ok(())
    }

    /// Ends the subscription of that id and kind, if there is one: no more notifications are sent.
    pub(crate) fn close(&self, unsubscribe: &str, id: &str) -> bool {
        let mut live = self.live();
        let of_kind = live.by_id.get(id).filter(|live| live.methods.unsubscribe == unsubscribe);
        let is_there = of_kind.is_some();
        if is_there {
            live.end(id);
        }
        is_there
    }

    /// Forwards the values of a topic to the connection, until either ends.
    async fn forward(self: Arc<Self>, topic: u64, mut values: Receiver<(u64, Json)>) {
        let (code, reason) = loop {
            let value = tokio::select! {
                () = self.outgoing.closed() => return,
                value = values.recv() => value,
            };
            match value {
                Ok((number, value)) => {
                    if self.send_to_all(topic, number, &value).await.is_none() {
                        return;
                    }
                }
                Err(RecvError::Lagged(lost)) => {
                    break (CloseCode::Policy, format!("it fell behind, {lost} values are lost"));
                }
                Err(RecvError::Closed) => break (CloseCode::Away, "its source has ended".into()),
            }
        };
        let Some(first) = self.live().of(topic).first().cloned() else { return };
        let reason = format!("subscription {}: {reason}", first.id);
        let goodbye = OutgoingMessage::Goodbye(Ending::Fault { code, reason });
        // The connection may have ended meanwhile.
        self.outgoing.send(goodbye).await.unwrap_or_default();
    }

    /// Sends a value to each subscription of a topic; `None` where the connection has ended.
    async fn send_to_all(&self, topic: u64, number: u64, value: &Json) -> Option<()> {
        let all = self.live().of(topic).to_vec();
        for subscription in all.iter().filter(|subscription| subscription.after < number) {
            let mut answered = subscription.answered.clone();
            if answered.wait_for(|answered| *answered).await.is_err() {
                self.live().end(&subscription.id);
                continue;
            }
            let permit = self.outgoing.reserve().await.ok()?;
            let live = self.live();
            // After the answer to its end no notification may follow.
            if live.by_id.contains_key(&subscription.id) {
                let method = subscription.methods.notification;
                let text = notification(method, &subscription.id, value.clone());
                permit.send(OutgoingMessage::Text(text, None));
            }
        }
        Some(())
    }

    fn live(&self) -> MutexGuard<'_, LiveSubscriptions> {
        self.live.lock().expect("nothing panics while it is held")
    }
}

impl LiveSubscriptions {
    fn of(&self, topic: u64) -> &[Arc<LiveSubscription>] {
        self.topics.get(&topic).map_or(&[], |(_, all)| all)
    }

    fn forget_unanswered(&mut self) {
        let is_lost = |live: &&Arc<LiveSubscription>| {
            live.answered.has_changed().is_err() && !*live.answered.borrow()
        };
        let lost: Vec<_> = self.by_id.values().filter(is_lost).map(Arc::clone).collect();
        lost.iter().for_each(|lost| self.end(&lost.id));
    }

    fn end(&mut self, id: &str) {
        let Some(ended) = self.by_id.remove(id) else { return };
        if let Some((forwarder, all)) = self.topics.get_mut(&ended.topic) {
            all.retain(|other| other.id != id);
            if all.is_empty() {
                forwarder.abort();
                self.topics.remove(&ended.topic);
            }
        }
    }
}

fn notification(method: &str, id: &str, value: Json) -> Pieces {
    let head = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\
         \"params\":{{\"subscription\":\"{id}\",\"result\":"
    );
    let mut pieces = Pieces::default();
    pieces.push(head);
    pieces.append(value.pieces);
    pieces.push(Bytes::from_static(b"}}"));
    pieces
}

#[cfg(test)]
mod tests;
