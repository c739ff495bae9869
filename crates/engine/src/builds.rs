//! Floor 2. What a build is asked for, and what it gives.

use crate::chain::tree::Bounded;
use crate::error::NO_PANIC;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{B256, Bytes, U256};
use alloy_rpc_types_engine::PayloadAttributes;
use execution::SealedBlock;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use witness::Witness;

/// The payload that `engine_forkchoiceUpdated` asks to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRequest {
    /// The attributes of the payload.
    pub attributes: PayloadAttributes,
    /// The version of `engine_forkchoiceUpdated`; the first byte of the payload's identifier.
    pub version: u8,
    /// Whether `engine_getPayload` is to carry the witness.
    pub with_witness: bool,
}

/// A payload that the engine built. It is valid, but not part of the chain before
/// [`Engine::new_payload`](crate::Engine::new_payload) has seen it.
#[derive(Debug, Clone)]
pub struct Built {
    /// Header and body.
    pub block: SealedBlock,
    /// The fee recipient's earnings, in wei.
    pub block_value: U256,
    /// The block's EIP-7685 requests.
    pub requests: Requests,
    /// RLP of the block access list, from Amsterdam on.
    pub block_access_list: Option<Bytes>,
    /// The block's witness.
    pub witness: Witness,
    /// Whether the request asked for the witness.
    pub with_witness: bool,
}

/// Parts of a header that whoever has a block built may choose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderChoice {
    /// The extra data, 32 bytes at most.
    pub extra_data: Bytes,
    /// The base fee of a unit of gas, in wei, which a chain for tests alone takes; `None` is the
    /// one that follows from the parent.
    pub base_fee: Option<u64>,
    /// The gas limit, which a chain for tests alone takes; `None` is one towards the target.
    pub gas_limit: Option<u64>,
}

impl From<Bytes> for HeaderChoice {
    /// This extra data, and nothing else.
    fn from(extra_data: Bytes) -> Self {
        Self { extra_data, ..Self::default() }
    }
}

/// Builds that were begun, and the one that is worked at.
#[derive(Debug)]
pub(crate) struct Builds {
    builds: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    begun: Bounded<Build>,
    /// The newest, unless it is over.
    current: Option<B256>,
    is_closed: bool,
}

/// A build, begun by a fork choice.
#[derive(Debug, Clone)]
pub(crate) struct Build {
    pub(crate) parent: B256,
    pub(crate) request: BuildRequest,
    /// The best payload so far, and how long it took.
    pub(crate) best: Option<(Arc<Built>, Duration)>,
    /// Whether the payload has been asked for: it stays as it is.
    is_over: bool,
}

impl Builds {
    pub(crate) fn new(capacity: usize) -> Self {
        let begun = Bounded::new(capacity);
        let builds = Mutex::new(State { begun, current: None, is_closed: false });
        Self { builds, changed: Condvar::new() }
    }

    /// Begins a build, and ends the one before. False if it is there already.
    pub(crate) fn begin(&self, id: B256, parent: B256, request: BuildRequest) -> bool {
        let mut state = self.lock();
        if state.begun.get(&id).is_some() {
            return false;
        }
        state.begun.insert(id, Build { parent, request, best: None, is_over: false });
        state.current = Some(id);
        self.changed.notify_all();
        true
    }

    /// The payload that was asked for, which stays as it is from now on. Waits a little for one
    /// that is being made. Whether it was asked for before is told, too; `None` when there is no
    /// such build.
    pub(crate) fn end(&self, id: &B256, wait: Duration) -> Option<(Build, bool)> {
        let state = self.lock();
        let is_awaited = |state: &mut State| {
            state.current == Some(*id)
                && state.begun.get(id).is_some_and(|build| build.best.is_none())
        };
        let waited = self.changed.wait_timeout_while(state, wait, is_awaited);
        let mut state = waited.expect(NO_PANIC).0;
        if state.current == Some(*id) {
            state.current = None;
        }
        let build = state.begun.get_mut(id)?;
        let was_over = std::mem::replace(&mut build.is_over, true);
        let build = build.clone();
        self.changed.notify_all();
        Some((build, was_over))
    }

    /// Keeps a payload: the better one of a build that is worked at, the first one of another.
    /// Returns the one that is kept.
    pub(crate) fn keep(&self, id: &B256, built: Arc<Built>, took: Duration) -> Arc<Built> {
        let mut state = self.lock();
        let Some(build) = state.begun.get_mut(id) else { return built };
        let is_better = match &build.best {
            Some((best, _)) => !build.is_over && best.block_value < built.block_value,
            None => true,
        };
        if is_better {
            build.best = Some((built, took));
        }
        let kept = build.best.as_ref().expect("there is one now").0.clone();
        self.changed.notify_all();
        kept
    }

    /// Waits for a build to work at; `None` when the engine ends.
    pub(crate) fn next(&self) -> Option<(B256, Build)> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(id) = state.current
                && let Some(build) = state.begun.get(&id)
            {
                return Some((id, build.clone()));
            }
            state = self.changed.wait(state).expect(NO_PANIC);
        }
    }

    /// The best payload so far, which may yet be replaced.
    #[cfg(test)]
    pub(crate) fn peek(&self, id: &B256) -> Option<Arc<Built>> {
        Some(self.lock().begun.get(id)?.best.as_ref()?.0.clone())
    }

    /// Whether a build is still worked at.
    pub(crate) fn is_current(&self, id: &B256) -> bool {
        self.lock().current == Some(*id)
    }

    /// Waits so long, or until the build is over. Returns whether it goes on.
    pub(crate) fn pause(&self, id: &B256, pause: Duration) -> bool {
        let is_current = |state: &mut State| state.current == Some(*id);
        let waited = self.changed.wait_timeout_while(self.lock(), pause, is_current);
        waited.expect(NO_PANIC).0.current == Some(*id)
    }

    /// No more work at this build.
    pub(crate) fn give_up(&self, id: &B256) {
        let mut state = self.lock();
        if state.current == Some(*id) {
            state.current = None;
            self.changed.notify_all();
        }
    }

    /// Ends the thread that works at builds.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        (state.is_closed, state.current) = (true, None);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.builds.lock().expect(NO_PANIC)
    }
}
