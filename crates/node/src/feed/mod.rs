//! Changes of the chain, as notifications to subscribers.
//!
//! One thread turns the engine's events into values of topics, in their order, and hands them to
//! the observers. It reads blocks that are in memory, as a rule, and makes notifications only for
//! topics that have subscriptions.

mod queue;
mod times;
mod witnesses;

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;

use alloy_primitives::B256;
use alloy_rpc_types_eth::{Header, Log};
use engine::Timings;
use engine::{BlockRecord, ChainEvent, Engine, HeadChange, Heads, PersistedBlock, SyncProgress};
use rpc::{Json, Published, Subscription, Topic};
use tokio::sync::Semaphore;

use crate::limits::{FEED_REPLAYS, OBSERVER_PAUSE};
use crate::logs::block_logs;
use crate::observe::Observer;
use crate::receipts::{block_receipts, single_receipts};
use queue::{EventQueue, Next};
use times::BlockTimes;

pub(crate) use witnesses::MissedError;
use witnesses::RolledBack;

/// The topics of a node, and the thread that fills them.
pub(crate) struct Feed {
    engine: Arc<Engine>,
    state: Mutex<FeedState>,
    /// Notified when the heads in the state have changed.
    told: Condvar,
    /// Canonical heads, as they are persisted.
    persisted: Topic,
    /// Where the time of the newest blocks went.
    times: Mutex<BlockTimes>,
    queue: Arc<EventQueue>,
    /// One permit for each subscriber that is told what it missed.
    replays: Arc<Semaphore>,
}

/// The topics, and the chain up to the last event that they were told of.
#[derive(Debug)]
struct FeedState {
    topics: Topics,
    heads: Heads,
    /// Blocks from which the head moved back, with none in their place.
    rolled_back: RolledBack,
    is_syncing: bool,
}

#[derive(Debug, Clone)]
struct Topics {
    heads: Topic,
    logs: Topic,
    receipts: Topic,
    block_receipts: Topic,
    syncing: Topic,
    witnesses: Topic,
}

impl Topics {
    fn new() -> Self {
        let new = Topic::new;
        Self {
            heads: new(),
            logs: new(),
            receipts: new(),
            block_receipts: new(),
            syncing: new(),
            witnesses: new(),
        }
    }
}

/// The thread of a feed. It ends, and is waited for, when this is dropped.
#[derive(Debug)]
pub(crate) struct FeedThread {
    queue: Arc<EventQueue>,
    thread: Option<JoinHandle<()>>,
}

impl Feed {
    /// Begins to listen to an engine, for subscribers and for these observers.
    ///
    /// # Errors
    /// Where there can be no thread.
    pub(crate) fn start(
        engine: Arc<Engine>,
        observers: Vec<Box<dyn Observer>>,
    ) -> std::io::Result<(Arc<Self>, FeedThread)> {
        let queue = Arc::new(EventQueue::default());
        let filled = queue.clone();
        let heads = engine.on_event(move |event| filled.push(event));
        let persisted = Topic::new();
        let topic = persisted.clone();
        engine.on_persisted(move |PersistedBlock { number, hash }| {
            // As reth has it, which a tool that waits for persistence expects.
            topic.publish(json(&serde_json::json!({"number": number, "hash": hash})));
        });
        let rolled_back = RolledBack::default();
        let state = FeedState { topics: Topics::new(), heads, rolled_back, is_syncing: false };
        let replays = Arc::new(Semaphore::new(FEED_REPLAYS));
        let state = Mutex::new(state);
        let feed = Arc::new(Self {
            engine,
            state,
            told: Condvar::new(),
            persisted,
            times: Mutex::default(),
            queue: queue.clone(),
            replays,
        });
        let runs = feed.clone();
        let thread = std::thread::Builder::new().name("feed".into());
        let thread = thread.spawn(move || runs.run(observers))?;
        Ok((feed, FeedThread { queue, thread: Some(thread) }))
    }

    /// `eth_subscribe("newHeads")`.
    pub(crate) fn heads(&self) -> Subscription {
        self.state().topics.heads.subscribe()
    }

    /// `eth_subscribe("logs")`: the source of each value is a `Vec<Log>`.
    pub(crate) fn logs(&self) -> Subscription {
        self.state().topics.logs.subscribe()
    }

    /// `eth_subscribe("transactionReceipts")` of some transactions: each receipt in a list. The
    /// source of each value is a `Vec<B256>`, the hashes of the transactions.
    pub(crate) fn receipts(&self) -> Subscription {
        self.state().topics.receipts.subscribe()
    }

    /// The same of all transactions: a list for each block.
    pub(crate) fn block_receipts(&self) -> Subscription {
        self.state().topics.block_receipts.subscribe()
    }

    /// `eth_subscribe("syncing")`.
    pub(crate) fn syncing(&self) -> Subscription {
        self.state().topics.syncing.subscribe()
    }

    /// `deponent_subscribePersistedBlock`.
    pub(crate) fn persisted(&self) -> Subscription {
        self.persisted.subscribe()
    }

    /// Tells subscribers and observers of something that did not happen in the engine.
    pub(crate) fn tell(&self, event: &ChainEvent) {
        self.queue.push(event);
    }

    /// Where the time of a block went, if it is one of the newest.
    pub(crate) fn timings(&self, hash: &B256) -> Option<Timings> {
        self.times().get(hash)
    }

    fn times(&self) -> MutexGuard<'_, BlockTimes> {
        self.times.lock().expect("nothing panics while it is held")
    }

    fn run(&self, mut observers: Vec<Box<dyn Observer>>) {
        let mut second = Instant::now() + OBSERVER_PAUSE;
        loop {
            match self.queue.next(second) {
                Next::Event(event) => {
                    self.handle(&event);
                    self.observe(&event, &mut observers);
                }
                Next::Quiet => {}
                Next::Lost(events) => {
                    tracing::warn!(
                        events,
                        "events were lost, and subscribers are ended: too many changes of the \
                         chain waited"
                    );
                    observers.iter_mut().for_each(|observer| observer.lost(events));
                    let heads = self.engine.heads();
                    let mut state = self.state();
                    // Their connections end with the topics.
                    (state.topics, state.heads) = (Topics::new(), heads);
                }
                Next::Closed => return,
            }
            if Instant::now() >= second {
                observers.iter_mut().for_each(|observer| observer.second());
                second = Instant::now() + OBSERVER_PAUSE;
            }
        }
    }

    fn observe(&self, event: &ChainEvent, observers: &mut [Box<dyn Observer>]) {
        let witness = match event {
            // Without waiting: subscribers would wait too.
            ChainEvent::Ran(figures) => {
                self.block(figures.hash).and_then(|record| self.engine.known_witness_size(&record))
            }
            _ => None,
        };
        observers.iter_mut().for_each(|observer| observer.event(event, witness));
    }

    fn handle(&self, event: &ChainEvent) {
        if let ChainEvent::Ran(figures) = event {
            self.times().add(figures.hash, figures.timings);
        }
        if let ChainEvent::Chosen(change) = event
            && change.before.head != change.now.head
        {
            self.publish_heads(change);
            self.publish_logs(change);
            self.publish_receipts(change);
        }
        let changes_tree =
            matches!(event, ChainEvent::Valid(_) | ChainEvent::Chosen(_) | ChainEvent::Behind);
        if changes_tree {
            self.publish_syncing();
            self.publish_witnesses(event);
        }
    }

    /// Each block that became canonical; where a head moved back, that head.
    fn publish_heads(&self, change: &HeadChange) {
        let topic = self.state().topics.heads.clone();
        let back = [change.now.head];
        let new = if change.joined.is_empty() { &back[..] } else { &change.joined };
        for hash in new {
            if !topic.has_subscriptions() {
                return;
            }
            if let Some(record) = self.block(*hash) {
                topic.publish(json(&header(&record)));
            }
        }
    }

    /// The logs of blocks that left, the newest first, then of those that became canonical. The
    /// logs of a block are one value.
    fn publish_logs(&self, change: &HeadChange) {
        let topic = self.state().topics.logs.clone();
        let HeadChange { left, joined, .. } = change;
        let left = left.iter().map(|hash| (hash, true));
        for (hash, is_removed) in left.chain(joined.iter().map(|hash| (hash, false))) {
            if !topic.has_subscriptions() {
                return;
            }
            let Some(record) = self.block(*hash) else { continue };
            let mut logs = block_logs(&record);
            if is_removed {
                logs.reverse();
                logs.iter_mut().for_each(|log: &mut Log| log.removed = true);
            }
            if !logs.is_empty() {
                let items = logs.iter().map(json).collect();
                topic.publish_all(Published { items, source: Arc::new(logs) });
            }
        }
    }

    /// The receipts of blocks that became canonical.
    fn publish_receipts(&self, change: &HeadChange) {
        let Topics { receipts, block_receipts: whole, .. } = self.state().topics.clone();
        for hash in &change.joined {
            if !receipts.has_subscriptions() && !whole.has_subscriptions() {
                return;
            }
            let record = self.block(*hash).filter(|record| !record.receipts.is_empty());
            let Some(record) = record else { continue };
            if whole.has_subscriptions() {
                whole.publish(
                    block_receipts(self.engine.chain(), (&*record).into()).expect(HAS_FORM),
                );
            }
            if receipts.has_subscriptions() {
                let items = single_receipts(self.engine.chain(), &record).expect(HAS_FORM);
                let transactions = &record.block.body.transactions;
                let hashes: Vec<B256> = transactions.iter().map(|it| *it.hash()).collect();
                receipts.publish_all(Published { items, source: Arc::new(hashes) });
            }
        }
    }

    /// Whether the chain is behind, when that changes.
    fn publish_syncing(&self) {
        let Ok(progress) = self.engine.progress() else { return };
        let mut state = self.state();
        if std::mem::replace(&mut state.is_syncing, progress.is_some()) == progress.is_some() {
            return;
        }
        // As geth has it.
        state.topics.syncing.publish(match progress {
            None => json(&false),
            Some(progress) => {
                json(&serde_json::json!({"syncing": true, "status": sync_status(progress)}))
            }
        });
    }

    /// A valid block; one that cannot be read is left out.
    fn block(&self, hash: B256) -> Option<Arc<BlockRecord>> {
        self.engine.block(hash).unwrap_or_else(|error| {
            tracing::warn!(%hash, %error, "subscribers are not told of a block");
            None
        })
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Drop for FeedThread {
    fn drop(&mut self) {
        self.queue.close();
        // It ends after the event under way, and lets go of the engine. That takes no longer than
        // reading some blocks and writing some lines of the log, which wait for the standard error
        // up to `STDERR_WAIT` and are dropped then. Where witnesses have subscribers, it may wait
        // for blocks to be sealed, which never waits for this thread.
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of notifications has panicked");
        }
    }
}

/// The members of `eth_syncing`.
pub(crate) fn sync_status(progress: SyncProgress) -> serde_json::Value {
    let SyncProgress { starting, current, highest, .. } = progress;
    let quantity = alloy_primitives::U64::from;
    serde_json::json!({
        "startingBlock": quantity(starting),
        "currentBlock": quantity(current),
        "highestBlock": quantity(highest),
    })
}

/// A header as geth gives it: without the block's size.
fn header(record: &BlockRecord) -> Header {
    let inner = record.block.header.clone();
    Header { hash: record.hash(), inner, total_difficulty: None, size: None }
}

fn json(value: &impl serde::Serialize) -> Json {
    Json::of(value).expect(HAS_FORM)
}

const HAS_FORM: &str = "its members have a JSON form";
