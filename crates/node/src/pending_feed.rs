//! Transactions that become pending, as notifications to subscribers.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use alloy_primitives::B256;
use engine::Engine;
use pool::Pool;
use rpc::{Json, Published, Subscription, Topic};

use crate::inclusions::Inclusions;
use crate::limits::{OBSERVER_PAUSE, PENDING_AT_ONCE};
use crate::pending::PendingBlocks;
use crate::priority::lower_priority;
use crate::unmined::Unmined;

/// The topics of pending transactions, and the pool from which they are filled.
pub(crate) struct PendingFeed {
    engine: Arc<Engine>,
    pool: Arc<Pool>,
    topics: Mutex<PendingTopics>,
    /// The next block, as it would be built out of the pool.
    pub(crate) blocks: Arc<PendingBlocks>,
    /// The transactions that are waited for.
    pub(crate) inclusions: Arc<Inclusions>,
    is_over: AtomicBool,
}

#[derive(Debug, Clone)]
struct PendingTopics {
    hashes: Topic,
    whole: Topic,
}

impl PendingTopics {
    fn new() -> Self {
        Self { hashes: Topic::new(), whole: Topic::new() }
    }
}

/// The thread that fills them. It ends, and is waited for, when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingThread {
    feed: Arc<PendingFeed>,
    thread: Option<JoinHandle<()>>,
}

impl PendingFeed {
    /// Begins to tell subscribers of the transactions that become pending in a pool.
    ///
    /// # Errors
    /// Where there can be no thread.
    pub(crate) fn start(
        engine: Arc<Engine>,
        pool: Arc<Pool>,
    ) -> std::io::Result<(Arc<Self>, PendingThread)> {
        let topics = Mutex::new(PendingTopics::new());
        let (blocks, inclusions, is_over) = Default::default();
        let feed = Arc::new(Self { engine, pool, topics, blocks, inclusions, is_over });
        let runs = feed.clone();
        let thread = std::thread::Builder::new().name("pending".into());
        let thread = thread.spawn(move || {
            lower_priority();
            runs.run();
        })?;
        Ok((feed.clone(), PendingThread { feed, thread: Some(thread) }))
    }

    /// The pool.
    pub(crate) const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// `eth_subscribe("newPendingTransactions")`: their hashes, or whole ones.
    pub(crate) fn subscribe(&self, whole: bool) -> Subscription {
        let topics = self.topics();
        if whole { topics.whole.subscribe() } else { topics.hashes.subscribe() }
    }

    fn run(&self) {
        let mut next = self.pool.pending_count();
        while !self.is_over.load(Ordering::Relaxed) {
            self.pool.wait_for_pending(next, OBSERVER_PAUSE);
            // A subscriber that comes after this is told of what comes after this.
            let count = self.pool.pending_count();
            let topics = self.topics().clone();
            if !topics.hashes.has_subscriptions() && !topics.whole.has_subscriptions() {
                next = count;
                continue;
            }
            match self.pool.became_pending(next, PENDING_AT_ONCE) {
                Some(hashes) => {
                    next += hashes.len() as u64;
                    self.publish(&topics, &hashes);
                }
                None => {
                    tracing::warn!(
                        "subscribers are ended: transactions became pending faster than they are \
                         told"
                    );
                    next = count;
                    // Their connections end with the topics.
                    *self.topics() = PendingTopics::new();
                }
            }
        }
    }

    fn publish(&self, topics: &PendingTopics, hashes: &[B256]) {
        let PendingTopics { hashes: short, whole } = topics;
        if short.has_subscriptions() {
            publish(short, hashes.iter().map(json).collect());
        }
        if whole.has_subscriptions() {
            let found = |hash: &_| Unmined::find(&self.engine, &self.pool, *hash);
            publish(whole, hashes.iter().filter_map(found).map(|it| json(&it)).collect());
        }
    }

    fn topics(&self) -> MutexGuard<'_, PendingTopics> {
        self.topics.lock().expect("nothing panics while it is held")
    }
}

/// The notifications are one value, so that many at once are not lost because they are many.
fn publish(topic: &Topic, items: Vec<Json>) {
    if !items.is_empty() {
        topic.publish_all(Published { items, source: Arc::new(()) });
    }
}

fn json(value: &impl serde::Serialize) -> Json {
    Json::of(value).expect("its members have a JSON form")
}

impl fmt::Debug for PendingFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingFeed").field("pool", &self.pool.status()).finish_non_exhaustive()
    }
}

impl Drop for PendingThread {
    fn drop(&mut self) {
        self.feed.is_over.store(true, Ordering::Relaxed);
        self.feed.pool.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of pending transactions has panicked");
        }
    }
}
