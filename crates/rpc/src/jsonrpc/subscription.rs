//! The subscriptions of one connection.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::json::Json;
use crate::jsonrpc::topic::{
    EarlierValues, ItemFilter, Published, Subscription, TopicEnd, TopicReceiver,
};
use crate::limits::EARLIER_VALUES;
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

/// The subscriptions of a connection that one task serves: all of a topic, or one of it alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Group {
    topic: u64,
    alone: Option<String>,
}

/// The number of values that come before those of a topic.
const EARLIER: u64 = u64::MAX;

/// A topic has one task on each connection, however many subscriptions it has there: to publish a
/// value wakes no more tasks than there are connections. A subscription that is told of earlier
/// values has a task of its own.
#[derive(Debug, Default)]
struct LiveSubscriptions {
    by_id: HashMap<String, Arc<LiveSubscription>>,
    /// The tasks, and their subscriptions in the order in which they began.
    groups: HashMap<Group, (AbortHandle, Vec<Arc<LiveSubscription>>)>,
}

struct LiveSubscription {
    id: String,
    methods: SubscriptionMethods,
    group: Group,
    /// The number of the first value of the topic that it is told of.
    from: u64,
    filter: Option<ItemFilter>,
    /// Turns true when the client knows the id.
    answered: watch::Receiver<bool>,
    _permit: Reservation,
}

impl fmt::Debug for LiveSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSubscription").field("id", &self.id).finish_non_exhaustive()
    }
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
        let Subscription { topic, values, from, earlier, filter } = subscription;
        let (id, _permit) = (id.to_owned(), permit);
        // With values of its own to be sent first it keeps the topic's waiting, its own alone.
        let group = Group { topic, alone: earlier.is_some().then(|| id.clone()) };
        let opened = LiveSubscription { id, methods, group, from, filter, answered, _permit };
        let opened = Arc::new(opened);
        live.by_id.insert(opened.id.clone(), Arc::clone(&opened));
        let forward = || {
            let forward = Arc::clone(self).forward(opened.group.clone(), earlier, values);
            (tokio::spawn(forward).abort_handle(), Vec::new())
        };
        // A task that is there has not come to the values after this one.
        live.groups.entry(opened.group.clone()).or_insert_with(forward).1.push(opened);
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
    async fn forward(
        self: Arc<Self>,
        group: Group,
        earlier: Option<EarlierValues>,
        mut values: TopicReceiver,
    ) {
        let mut earlier = earlier;
        while let Some((items, rest)) = next_of(earlier).await {
            let value = Published { items, source: Arc::new(()) };
            if self.send_to_all(&group, EARLIER, &value).await.is_none() {
                return;
            }
            earlier = Some(rest);
        }
        let (code, reason) = loop {
            let value = tokio::select! {
                () = self.outgoing.closed() => return,
                value = values.recv() => value,
            };
            match value {
                Ok((number, value)) => {
                    if self.send_to_all(&group, number, &value).await.is_none() {
                        return;
                    }
                }
                Err(TopicEnd::Lagged(lost)) => {
                    break (CloseCode::Policy, format!("it fell behind, {lost} values are lost"));
                }
                Err(TopicEnd::Closed) => break (CloseCode::Away, "its source has ended".into()),
            }
        };
        let Some(first) = self.live().of(&group).first().cloned() else { return };
        let reason = format!("subscription {}: {reason}", first.id);
        let goodbye = OutgoingMessage::Goodbye(Ending::Fault { code, reason });
        // The connection may have ended meanwhile.
        self.outgoing.send(goodbye).await.unwrap_or_default();
    }

    /// Sends a value to each subscription of a group; `None` where the connection has ended.
    async fn send_to_all(&self, group: &Group, number: u64, value: &Published) -> Option<()> {
        let all = self.live().of(group).to_vec();
        for subscription in all.iter().filter(|subscription| subscription.from <= number) {
            let mut answered = subscription.answered.clone();
            if answered.wait_for(|answered| *answered).await.is_err() {
                self.live().end(&subscription.id);
                continue;
            }
            for (index, item) in value.items.iter().enumerate() {
                let filter = subscription.filter.as_ref().filter(|_| number != EARLIER);
                if filter.is_some_and(|filter| !filter(&*value.source, index)) {
                    continue;
                }
                let permit = self.outgoing.reserve().await.ok()?;
                let live = self.live();
                // After the answer to its end no notification may follow.
                if !live.by_id.contains_key(&subscription.id) {
                    break;
                }
                let method = subscription.methods.notification;
                let text = notification(method, &subscription.id, item.clone());
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
    fn of(&self, group: &Group) -> &[Arc<LiveSubscription>] {
        self.groups.get(group).map_or(&[], |(_, all)| all)
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
        if let Some((forwarder, all)) = self.groups.get_mut(&ended.group) {
            all.retain(|other| other.id != id);
            if all.is_empty() {
                forwarder.abort();
                self.groups.remove(&ended.group);
            }
        }
    }
}

/// The next of the notifications that come first, and the rest; `None` after the last.
async fn next_of(earlier: Option<EarlierValues>) -> Option<(Vec<Json>, EarlierValues)> {
    let mut earlier = earlier?;
    // They may be read from a disk.
    let next = tokio::task::spawn_blocking(move || {
        let items: Vec<_> = earlier.by_ref().take(EARLIER_VALUES).collect();
        (items, earlier)
    });
    next.await.ok().filter(|(items, _)| !items.is_empty())
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
