//! Subscriptions: the topics of a handler, and the subscriptions of one connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::AbortHandle;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::json::Json;
use crate::limits::TOPIC_LEN;
use crate::pieces::Pieces;
use crate::transport::messages::{Ending, OutgoingMessage};

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
pub struct Topic(broadcast::Sender<Json>);

impl Topic {
    /// A topic without subscriptions.
    #[expect(clippy::new_without_default, reason = "a topic alone is not a sensible default")]
    pub fn new() -> Self {
        Self(broadcast::Sender::new(TOPIC_LEN))
    }

    /// Gives a value to all current subscriptions, without waiting for any: one that falls more
    /// than 1,024 values behind is lost, and its connection closed.
    pub fn publish(&self, value: Json) {
        // A topic without subscriptions is no error.
        self.0.send(value).unwrap_or_default();
    }

    /// The values published from now on.
    pub fn subscribe(&self) -> Subscription {
        Subscription(self.0.subscribe())
    }
}

/// The values of a [`Topic`] on their way to one client.
#[derive(Debug)]
pub struct Subscription(broadcast::Receiver<Json>);

/// The subscriptions of one connection.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    /// How many there may be.
    most: usize,
    live: Mutex<HashMap<String, LiveSubscription>>,
    outgoing: mpsc::Sender<OutgoingMessage>,
}

#[derive(Debug)]
struct LiveSubscription {
    unsubscribe: &'static str,
    forwarder: AbortHandle,
}

impl Subscriptions {
    pub(crate) fn new(most: usize, outgoing: mpsc::Sender<OutgoingMessage>) -> Self {
        Self { most, live: Mutex::default(), outgoing }
    }

    /// Whether there may be another one.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        self.check(self.live().len())
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
        let mut live = self.live();
        // Calls of one connection run at the same time.
        self.check(live.len())?;
        let forward =
            Arc::clone(self).forward(id.into(), methods.notification, subscription, answered);
        let forwarder = tokio::spawn(forward).abort_handle();
        live.insert(id.into(), LiveSubscription { unsubscribe: methods.unsubscribe, forwarder });
        Ok(())
    }

    /// Ends the subscription of that id and kind, if there is one: no more notifications are sent.
    pub(crate) fn close(&self, unsubscribe: &str, id: &str) -> bool {
        let mut live = self.live();
        if live.get(id).is_none_or(|live| live.unsubscribe != unsubscribe) {
            return false;
        }
        let closed = live.remove(id);
        closed.is_some_and(|closed| {
            closed.forwarder.abort();
            true
        })
    }

    /// Forwards the values of one subscription to the connection, until either ends.
    async fn forward(
        self: Arc<Self>,
        id: String,
        method: &'static str,
        subscription: Subscription,
        mut answered: watch::Receiver<bool>,
    ) {
        if answered.wait_for(|answered| *answered).await.is_err() {
            self.live().remove(&id);
            return;
        }
        let Subscription(mut values) = subscription;
        let (code, reason) = loop {
            let value = tokio::select! {
                () = self.outgoing.closed() => return,
                value = values.recv() => value,
            };
            let value = match value {
                Ok(value) => value,
                Err(RecvError::Lagged(lost)) => {
                    break (CloseCode::Policy, format!("it fell behind, {lost} values are lost"));
                }
                Err(RecvError::Closed) => break (CloseCode::Away, "its source has ended".into()),
            };
            let Ok(permit) = self.outgoing.reserve().await else { return };
            let live = self.live();
            // After the answer to its end no notification may follow.
            if !live.contains_key(&id) {
                return;
            }
            permit.send(OutgoingMessage::Text(notification(method, &id, value), None));
        };
        let reason = format!("subscription {id}: {reason}");
        let goodbye = OutgoingMessage::Goodbye(Ending::Fault { code, reason });
        // The connection may have ended meanwhile.
        self.outgoing.send(goodbye).await.unwrap_or_default();
    }

    fn live(&self) -> MutexGuard<'_, HashMap<String, LiveSubscription>> {
        self.live.lock().expect("nothing panics while it is held")
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
