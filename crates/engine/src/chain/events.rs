//! Floor 2. Changes of the chain, and the listeners that are told of them.

use crate::chain::tree::Heads;
use crate::error::NO_PANIC;
use alloy_primitives::B256;
use std::fmt;
use std::sync::RwLock;

/// A change of the chain. Events come in the order in which the changes were made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "two come with each block, and none is kept for long")]
pub enum ChainEvent {
    /// A block became valid: its record and its witness are there.
    Valid(B256),
    /// A fork choice changed the head, the safe or the finalized block.
    Chosen(HeadChange),
    /// A block or a head came whose ancestors are missing, so that the chain may be behind
    /// ([`Engine::progress`](crate::Engine::progress)).
    Behind,
}

/// How a fork choice changed the canonical chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadChange {
    /// The heads before.
    pub before: Heads,
    /// The heads now.
    pub now: Heads,
    /// The blocks that left the canonical chain, the newest first, down to the common ancestor of
    /// both heads.
    pub left: Vec<B256>,
    /// The blocks that became canonical, the oldest first, up to the head.
    pub joined: Vec<B256>,
}

/// Is called with each event.
type EventListener = Box<dyn Fn(&ChainEvent) + Send + Sync>;

/// The listeners for events.
#[derive(Default)]
pub(crate) struct EventListeners(RwLock<Vec<EventListener>>);

impl EventListeners {
    /// Tells the listeners. The tree is locked for writing, which keeps events in order.
    pub(crate) fn tell(&self, event: &ChainEvent) {
        self.0.read().expect(NO_PANIC).iter().for_each(|listener| listener(event));
    }

    pub(crate) fn add(&self, listener: EventListener) {
        self.0.write().expect(NO_PANIC).push(listener);
    }
}

impl fmt::Debug for EventListeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventListeners")
    }
}
