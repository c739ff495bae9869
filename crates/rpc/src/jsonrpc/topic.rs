//! Topics: the values that a handler publishes, until each subscriber has read them.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use crate::jsonrpc::json::Json;
use crate::limits::{TOPIC_BYTES, TOPIC_LEN};

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
pub struct Topic(Arc<Publisher>);

#[derive(Debug)]
struct Publisher {
    id: u64,
    /// Wakes the receivers; they have come to the end when it is gone.
    changed: watch::Sender<()>,
    ring: Arc<Mutex<Ring>>,
}

/// A value of a topic: notifications that stay together, in order.
pub struct Published {
    /// The notifications.
    pub items: Vec<Json>,
    /// The source of the items, which a [filter](Subscription::filtered) looks at.
    pub source: Arc<dyn Any + Send + Sync>,
}

/// Says of an item of a value, by the value's source and the item's index, whether a subscription
/// wants it.
pub type ItemFilter = Arc<dyn Fn(&(dyn Any + Send + Sync), usize) -> bool + Send + Sync>;

/// The values that some receiver has not read yet.
#[derive(Debug, Default)]
struct Ring {
    values: VecDeque<UnreadValue>,
    /// The number of the first of them, or of the next one.
    first: u64,
    bytes: usize,
    receivers: usize,
}

#[derive(Debug)]
struct UnreadValue {
    value: Arc<Published>,
    bytes: usize,
    /// How many receivers have not read it.
    unread: usize,
}

impl Topic {
    /// A topic without subscriptions.
    #[expect(clippy::new_without_default, reason = "a topic alone is not a sensible default")]
    pub fn new() -> Self {
        static TOPICS: AtomicU64 = AtomicU64::new(0);
        let id = TOPICS.fetch_add(1, Ordering::Relaxed);
        let (changed, ring) = (watch::Sender::new(()), Arc::default());
        Self(Arc::new(Publisher { id, changed, ring }))
    }

    /// Gives a value to all current subscriptions, without waiting for any: one that falls more
    /// than 1,024 values or 32 MiB behind is lost, and its connection closed.
    pub fn publish(&self, value: Json) {
        self.publish_all(Published { items: vec![value], source: Arc::new(()) });
    }

    /// The same of several notifications, which are one value: they are lost together, and none is
    /// lost because they are many.
    pub fn publish_all(&self, value: Published) {
        lock(&self.0.ring).push(value);
        self.0.changed.send_replace(());
    }

    /// Whether a value would be read.
    pub fn has_subscriptions(&self) -> bool {
        self.receiver_count() > 0
    }

    /// The values published from now on.
    pub fn subscribe(&self) -> Subscription {
        let mut ring = lock(&self.0.ring);
        ring.receivers += 1;
        let next = ring.next();
        drop(ring);
        let (ring, changed) = (Arc::clone(&self.0.ring), self.0.changed.subscribe());
        let values = TopicReceiver { ring, changed, next };
        Subscription { topic: self.0.id, values, from: next, earlier: None, filter: None }
    }

    /// How many read it.
    pub(crate) fn receiver_count(&self) -> usize {
        lock(&self.0.ring).receivers
    }

    #[cfg(test)]
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }
}

/// The values of a [`Topic`] on their way to one client.
pub struct Subscription {
    pub(crate) topic: u64,
    pub(crate) values: TopicReceiver,
    /// The number of the first value that it is told of.
    pub(crate) from: u64,
    pub(crate) earlier: Option<EarlierValues>,
    pub(crate) filter: Option<ItemFilter>,
}

/// Notifications that come before the values of a topic. They are made one by one, as they are
/// sent, on threads that may wait for a disk.
pub type EarlierValues = Box<dyn Iterator<Item = Json> + Send>;

impl Subscription {
    /// The same, told of the items alone that the filter wants.
    #[must_use]
    pub fn filtered(self, filter: ItemFilter) -> Self {
        Self { filter: Some(filter), ..self }
    }

    /// The same, told of these first.
    #[must_use]
    pub fn after(self, earlier: EarlierValues) -> Self {
        Self { earlier: Some(earlier), ..self }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl fmt::Debug for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("items", &self.items.len()).finish_non_exhaustive()
    }
}

/// Reads a topic, value by value.
#[derive(Debug)]
pub(crate) struct TopicReceiver {
    ring: Arc<Mutex<Ring>>,
    changed: watch::Receiver<()>,
    /// The number of the next value.
    next: u64,
}

/// Why a receiver has come to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TopicEnd {
    /// So many values came and went before it read them.
    Lagged(u64),
    /// The topic is gone.
    Closed,
}

impl TopicReceiver {
    /// The next value and its number.
    pub(crate) async fn recv(&mut self) -> Result<(u64, Arc<Published>), TopicEnd> {
        loop {
            if let Some(next) = self.take()? {
                return Ok(next);
            }
            if self.changed.changed().await.is_err() {
                // The last values may have come since.
                return self.take()?.ok_or(TopicEnd::Closed);
            }
        }
    }

    fn take(&mut self) -> Result<Option<(u64, Arc<Published>)>, TopicEnd> {
        let mut ring = lock(&self.ring);
        let Some(index) = self.next.checked_sub(ring.first) else {
            return Err(TopicEnd::Lagged(ring.first - self.next));
        };
        let Some(unread) = ring.values.get_mut(index as usize) else { return Ok(None) };
        unread.unread -= 1;
        let value = Arc::clone(&unread.value);
        ring.forget_read();
        let number = self.next;
        self.next += 1;
        Ok(Some((number, value)))
    }
}

impl Drop for TopicReceiver {
    fn drop(&mut self) {
        let mut ring = lock(&self.ring);
        ring.receivers -= 1;
        let read = self.next.saturating_sub(ring.first) as usize;
        ring.values.iter_mut().skip(read).for_each(|value| value.unread -= 1);
        ring.forget_read();
    }
}

impl Ring {
    /// The number of the next value.
    fn next(&self) -> u64 {
        self.first + self.values.len() as u64
    }

    fn push(&mut self, value: Published) {
        if self.receivers == 0 {
            self.first += 1;
            return;
        }
        let bytes = value.items.iter().map(Json::len_bytes).sum();
        self.bytes += bytes;
        self.values.push_back(UnreadValue { value: value.into(), bytes, unread: self.receivers });
        while self.values.len() > TOPIC_LEN || self.bytes > TOPIC_BYTES && self.values.len() > 1 {
            self.forget_first();
        }
    }

    fn forget_read(&mut self) {
        while self.values.front().is_some_and(|first| first.unread == 0) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let first = self.values.pop_front().expect("there is one");
        self.bytes -= first.bytes;
        self.first += 1;
    }
}

fn lock(ring: &Mutex<Ring>) -> MutexGuard<'_, Ring> {
    ring.lock().expect("nothing panics while it is held")
}

#[cfg(test)]
mod tests;
