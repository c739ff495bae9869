//! Floor 2. The state after a block, and the promise of it.

use crate::error::Error;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::{Decodable, RlpDecodable, RlpEncodable};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use trie::versioned::{NodeAddress, SweepCursor, Version};

/// The state after a block, and how far it has been swept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The state's root.
    pub(crate) version: Version,
    pub(crate) sweep: SweepState,
}

/// Where the sweep of a branch of versions stands; see docs/design/state.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SweepState {
    /// No node of the version has an address below.
    pub(crate) floor: NodeAddress,
    /// The cycle under way.
    pub(crate) cycle: Option<Cycle>,
    /// Bytes in use, as the last whole cycle found; 0 before the first.
    pub(crate) live_bytes: u64,
    /// Bytes that blocks have appended and no step has answered yet.
    pub(crate) owed_bytes: u64,
}

/// One walk through the whole state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// Where the log ended when the cycle began: nodes below are moved.
    pub(crate) below: NodeAddress,
    /// Where the walk goes on.
    pub(crate) cursor: SweepCursor,
    /// Bytes moved so far.
    pub(crate) moved_bytes: u64,
}

#[derive(RlpEncodable, RlpDecodable)]
struct StoredSweep {
    floor: u64,
    live_bytes: u64,
    owed_bytes: u64,
    below: u64,
    moved_bytes: u64,
    hashed_address: B256,
    hashed_slot: B256,
}

impl SweepState {
    pub(crate) fn to_stored(self) -> Bytes {
        let cycle = self.cycle;
        let cursor = cycle.map_or_else(SweepCursor::default, |cycle| cycle.cursor);
        let stored = StoredSweep {
            floor: self.floor.offset(),
            live_bytes: self.live_bytes,
            owed_bytes: self.owed_bytes,
            below: cycle.map_or(0, |cycle| cycle.below.offset()),
            moved_bytes: cycle.map_or(0, |cycle| cycle.moved_bytes),
            hashed_address: cursor.hashed_address,
            hashed_slot: cursor.hashed_slot,
        };
        alloy_rlp::encode(stored).into()
    }

    pub(crate) fn from_stored(stored: &[u8]) -> Result<Self, Error> {
        let damaged = || Error::Storage("a version's sweep state cannot be read back".into());
        let stored = StoredSweep::decode(&mut &stored[..]).map_err(|_| damaged())?;
        if stored.floor.max(stored.below) >> 48 != 0 {
            return Err(damaged());
        }
        let StoredSweep { hashed_address, hashed_slot, .. } = stored;
        let cursor = SweepCursor { hashed_address, hashed_slot };
        let (below, moved_bytes) = (NodeAddress::new(stored.below), stored.moved_bytes);
        let cycle = (!below.is_none()).then_some(Cycle { below, cursor, moved_bytes });
        let (live_bytes, owed_bytes) = (stored.live_bytes, stored.owed_bytes);
        Ok(Self { floor: NodeAddress::new(stored.floor), cycle, live_bytes, owed_bytes })
    }
}

/// Says what the state after a block is as soon as its nodes have addresses. Clones are the same
/// promise.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seal(Arc<Promise>);

#[derive(Debug, Default)]
struct Promise {
    sealed: OnceLock<Result<Sealed, Error>>,
    /// Whether a thread waits for it, or is about to.
    is_wanted: AtomicBool,
}

impl Seal {
    /// A promise that is kept already.
    pub(crate) fn kept(sealed: Result<Sealed, Error>) -> Self {
        Self(Arc::new(Promise { sealed: sealed.into(), is_wanted: false.into() }))
    }

    /// Keeps the promise.
    pub(crate) fn keep(&self, sealed: Result<Sealed, Error>) {
        self.0.sealed.set(sealed).expect("a block is sealed once");
    }

    /// Whether waiting is over.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.sealed.get().is_some()
    }

    /// Has it kept soon: work that can wait is left for later.
    pub(crate) fn want(&self) {
        self.0.is_wanted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_wanted.load(Ordering::Relaxed)
    }

    /// Waits for the state, as long as it takes.
    pub(crate) fn wait(&self) -> Result<&Sealed, Error> {
        self.0.sealed.wait().as_ref().map_err(Clone::clone)
    }
}
