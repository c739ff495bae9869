//! Floor 2. What happens to the chain, and the listeners that are told of it.

use crate::chain::figures::BlockFigures;
use crate::chain::persisted::PersistedBlock;
use crate::chain::tree::Heads;
use crate::error::NO_PANIC;
use alloy_primitives::B256;
use std::fmt;
use std::sync::RwLock;
use std::time::Duration;

/// An event of the chain, or a call to it.
///
/// Changes of the block tree ([`Valid`](Self::Valid), [`Invalid`](Self::Invalid),
/// [`Chosen`](Self::Chosen), [`Behind`](Self::Behind)) come in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "four come with each block, and none is kept for long"
)]
pub enum ChainEvent {
    /// A block became valid: its record and its witness are there.
    Valid(B256),
    /// The cost of a valid block. It comes after [`Valid`](Self::Valid), and before the answer.
    Ran(BlockFigures),
    /// A payload was found invalid, for this reason. Later payloads with its hash are answered
    /// without an event, unless their hash does not name their bytes.
    Invalid(B256, String),
    /// A fork choice changed the head, the safe or the finalized block.
    Chosen(HeadChange),
    /// A fork choice of the consensus client was answered, whether it changed something or not.
    Forkchoice(ForkchoiceFigures),
    /// A payload is built.
    Build(BuildStep),
    /// This canonical block, and all before it, would survive a crash.
    Persisted(PersistedBlock),
    /// A block or a head came whose ancestors are missing, so that the chain may be behind
    /// ([`Engine::progress`](crate::Engine::progress)).
    Behind,
}

/// A fork choice that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkchoiceFigures {
    /// The head that it names.
    pub head: B256,
    /// How long it took, waiting for others included.
    pub took: Duration,
    /// Its outcome.
    pub answer: ForkchoiceAnswer,
}

/// The outcome of a fork choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkchoiceAnswer {
    /// The heads are those that it names.
    Applied,
    /// Its head is valid and before the finalized block: nothing changed.
    Kept,
    /// Its head is not known.
    Syncing,
    /// Its head is invalid.
    Invalid,
    /// It was refused, or the engine could not say.
    Failed,
}

/// A step of a payload that is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildStep {
    /// A fork choice has asked for a payload on this block.
    Begun {
        /// The parent.
        parent: B256,
    },
    /// The payload was built, when it was first asked for.
    Built {
        /// Its number.
        number: u64,
        /// How long that took.
        took: Duration,
        /// Gas that it uses.
        gas_used: u64,
    },
    /// There is no payload, for this reason: the proposal may be missed.
    Failed(String),
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
    /// Tells the listeners. For changes of the tree it is locked for writing, which keeps them in
    /// order.
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
