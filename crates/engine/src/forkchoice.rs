//! Floor 5. The fork choice: which branch is canonical.

use crate::builds::BuildRequest;
use crate::chain::events::{ChainEvent, ForkchoiceAnswer, ForkchoiceFigures, HeadChange};
use crate::chain::record::BlockRecord;
use crate::chain::tree::{BlockTree, Branching, Heads};
use crate::chain::verdict::{Missing, Verdict};
use crate::engine::Engine;
use crate::error::Error;
use alloy_primitives::B256;
use alloy_rpc_types_engine::{ForkchoiceState, PayloadId};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The outcome of a fork choice update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkchoiceOutcome {
    /// The verdict on the head.
    pub verdict: Verdict,
    /// Whether the head is the one chosen now. One before the finalized block is valid, and is not.
    pub is_applied: bool,
    /// The build that was begun, when one was asked for.
    pub payload_id: Option<PayloadId>,
}

impl ForkchoiceAnswer {
    /// Attributes that cannot be built from leave the head applied.
    fn of(outcome: &Result<ForkchoiceOutcome, Error>) -> Self {
        match outcome {
            Ok(ForkchoiceOutcome { is_applied: true, .. }) | Err(Error::InvalidAttributes(_)) => {
                Self::Applied
            }
            Ok(ForkchoiceOutcome { verdict, .. }) => match verdict {
                Verdict::Valid => Self::Kept,
                Verdict::Syncing(_) => Self::Syncing,
                Verdict::Invalid { .. } => Self::Invalid,
            },
            Err(_) => Self::Failed,
        }
    }
}

/// The side that chooses the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leader {
    /// It begins with the last block of proof of work.
    ConsensusLayer,
    /// An import: any block of proof of work may be the head.
    None,
    /// An operator: the head may be before the finalized block.
    Operator,
    /// An earlier process, whose last fork choice is made again.
    Journal,
    /// A gap that is filled: the head is moved on, towards this unknown head where one was chosen.
    Filling(Option<B256>),
}

impl Engine {
    /// Makes `state.head_block_hash` the head of the canonical chain, and begins a build on it
    /// when `build` is given (Engine API, Paris, `engine_forkchoiceUpdatedV1`, points 1 to 9).
    ///
    /// # Errors
    /// [`Error::TooDeepReorg`] when the state after the head is not kept any more, and
    /// [`Error::InvalidForkchoiceState`] when safe or finalized are not on the head's branch, and
    /// nothing changes; [`Error::InvalidAttributes`] when the head has been set, but nothing can be
    /// built from the attributes; [`Error::Storage`] after a failed write.
    pub fn forkchoice_updated(
        &self,
        state: ForkchoiceState,
        build: Option<BuildRequest>,
    ) -> Result<ForkchoiceOutcome, Error> {
        let start = Instant::now();
        let outcome = self.update_forkchoice(state, build, Leader::ConsensusLayer);
        let took = start.elapsed();
        self.chosen_in_us.store(took.as_micros() as u64, Ordering::Relaxed);
        let (head, answer) = (state.head_block_hash, ForkchoiceAnswer::of(&outcome));
        let figures = ForkchoiceFigures { head, took, answer };
        self.shared.chain.events.tell(&ChainEvent::Forkchoice(figures));
        outcome
    }

    /// Makes `state.head_block_hash` the head as [`Engine::forkchoice_updated`] does, of a chain
    /// that no consensus layer leads: the head may be a block of proof of work before the last.
    ///
    /// # Errors
    /// As [`Engine::forkchoice_updated`].
    pub fn choose_head(&self, state: ForkchoiceState) -> Result<ForkchoiceOutcome, Error> {
        self.update_forkchoice(state, None, Leader::None)
    }

    /// Makes any valid block the head, be it before the finalized block. The safe and the finalized
    /// block stay where they are on its branch, and else there is none.
    ///
    /// # Errors
    /// As [`Engine::forkchoice_updated`].
    pub fn reset_head(&self, head: B256) -> Result<ForkchoiceOutcome, Error> {
        let state = ForkchoiceState { head_block_hash: head, ..ForkchoiceState::default() };
        self.update_forkchoice(state, None, Leader::Operator)
    }

    /// Moves the head on to a block of a gap that is filled up to `target`, so that it is
    /// persisted: on the branch of the head, or from it to another branch while the last fork
    /// choice names a head that waits for `target` ([`Engine::missing`]). Safe and finalized block
    /// stay. Whether the head is moved.
    ///
    /// # Errors
    /// As [`Engine::forkchoice_updated`].
    pub fn advance_head(&self, hash: B256, target: B256) -> Result<bool, Error> {
        let missing = self.missing()?.filter(|missing| missing.hash == target);
        self.fill_up_to(hash, missing.and_then(|missing| missing.chosen_head))
    }

    /// Makes the head of the last fork choice, which was not known then, the head if it is valid
    /// now. Whether the head is moved.
    ///
    /// # Errors
    /// As [`Engine::forkchoice_updated`].
    pub fn choose_awaited(&self) -> Result<bool, Error> {
        let awaited = self.shared.chain.tree().unknown_head;
        awaited.map_or(Ok(false), |head| self.fill_up_to(head, awaited))
    }

    fn fill_up_to(&self, hash: B256, chosen_head: Option<B256>) -> Result<bool, Error> {
        let state = ForkchoiceState { head_block_hash: hash, ..ForkchoiceState::default() };
        let outcome = self.update_forkchoice(state, None, Leader::Filling(chosen_head))?;
        Ok(outcome.is_applied)
    }

    /// Makes the last fork choice of the journal again.
    pub(crate) fn choose_journaled(
        &self,
        state: ForkchoiceState,
    ) -> Result<ForkchoiceOutcome, Error> {
        self.update_forkchoice(state, None, Leader::Journal)
    }

    fn update_forkchoice(
        &self,
        state: ForkchoiceState,
        build: Option<BuildRequest>,
        leader: Leader,
    ) -> Result<ForkchoiceOutcome, Error> {
        let head = state.head_block_hash;
        let not_applied =
            |verdict| Ok(ForkchoiceOutcome { verdict, is_applied: false, payload_id: None });
        self.shared.chain.check()?;
        // An older one is read and decoded, before others have to wait for the tree.
        let record = self.shared.chain.block(&head)?;
        let _left = {
            let mut tree = self.shared.chain.tree_mut();
            if let Some(invalid) = tree.invalid.get(&head) {
                return not_applied(invalid.clone());
            }
            let Some(record) = &record else {
                // Only what the consensus layer names is there to be waited for.
                if matches!(leader, Leader::ConsensusLayer | Leader::Journal) {
                    tree.unknown_head = Some(head);
                    drop(tree);
                    self.tell_behind();
                    self.log_unknown_head(head);
                }
                return not_applied(Verdict::Syncing(Missing::Head { hash: head }));
            };
            if let Some(refused) = self.refused_by_proof_of_work(record, leader) {
                return not_applied(refused);
            }
            // Point 2: what lies before the finalized block is valid, and no place to go back to.
            let may_go_back = matches!(leader, Leader::Operator | Leader::Journal);
            if let Some(last) = tree.heads.finalized.filter(|_| !may_go_back)
                && last != head
                && tree.is_ancestor(&head, &last)?
            {
                return not_applied(Verdict::Valid);
            }
            if let Leader::Filling(chosen) = leader
                && !tree.may_advance(&head, chosen)?
            {
                return not_applied(Verdict::Valid);
            }
            if self.shared.chain.is_pruned(record)? {
                return Err(Error::TooDeepReorg(head));
            }
            let Heads { safe, finalized, .. } = tree.heads;
            let safe = on_branch(&tree, "safe", state.safe_block_hash, safe, head)?;
            let finalized =
                on_branch(&tree, "finalized", state.finalized_block_hash, finalized, head)?;
            let heads = Heads { head, safe, finalized, ..tree.heads };
            self.choose(&mut tree, heads, leader)?;
            // The head is asked for all the time.
            tree.insert(record.clone())
        };
        self.after.queue.fork_choice_changed();
        self.sync_choice()?;
        let payload_id = match build {
            Some(request) => Some(self.begin_build(head, request)?),
            None => None,
        };
        Ok(ForkchoiceOutcome { verdict: Verdict::Valid, is_applied: true, payload_id })
    }

    /// The answer on a head with proof of work with which the consensus layer does not begin.
    fn refused_by_proof_of_work(&self, record: &BlockRecord, leader: Leader) -> Option<Verdict> {
        let (head, header, difficulty) =
            (record.hash(), &record.block.header, record.total_difficulty);
        // Point 3: the consensus layer begins with the last block of proof of work.
        let is_refused = leader == Leader::ConsensusLayer
            && !header.difficulty.is_zero()
            && !self.chain().may_end_proof_of_work(header.number, difficulty);
        is_refused.then(|| Verdict::Invalid {
            latest_valid_hash: Some(B256::ZERO),
            reason: format!(
                "block {head} has proof of work and total difficulty {difficulty}, which does not \
                 end proof of work on this chain"
            ),
        })
    }

    /// Makes these the heads: in the journal where they are to be noted, in the tree, and for the
    /// listeners.
    fn choose(&self, tree: &mut BlockTree, now: Heads, leader: Leader) -> Result<(), Error> {
        let (before, awaited) = (tree.heads, tree.unknown_head);
        if leader != Leader::Journal && now != before {
            self.note_choice(tree, now)?;
        }
        let Branching { last_kept, left, joined } = tree.set_head(now.head)?;
        if matches!(leader, Leader::Filling(_)) {
            // It is on the way to the head that was chosen.
            tree.unknown_head = awaited.filter(|awaited| *awaited != now.head);
        }
        self.shared.copies.branched_off(last_kept);
        tree.set_safe(now.safe, now.finalized);
        if now != before {
            let change = HeadChange { before, now, left, joined };
            self.shared.chain.events.tell(&ChainEvent::Chosen(change));
        }
        Ok(())
    }

    /// How long the last fork choice update took, waiting for others included; zero before one.
    pub fn last_forkchoice(&self) -> Duration {
        Duration::from_micros(self.chosen_in_us.load(Ordering::Relaxed))
    }
}

/// `hash` when it is a block on the branch of `head`. Where the consensus layer names none, by the
/// zero hash, the last one stays, if it is on that branch.
fn on_branch(
    tree: &BlockTree,
    name: &str,
    hash: B256,
    last: Option<B256>,
    head: B256,
) -> Result<Option<B256>, Error> {
    let last = || match last {
        Some(last) if tree.is_ancestor(&last, &head)? => Ok(Some(last)),
        _ => Ok(None),
    };
    if hash.is_zero() {
        return last();
    }
    if !tree.is_ancestor(&hash, &head)? {
        // A chain that begins with a later state does not know what is before that, and the
        // consensus layer names nothing else until its own first blocks are final.
        let begins_late = tree.known_link(&tree.heads.genesis)?.0 > 0;
        if begins_late && tree.heads.finalized.is_none() && tree.link(&hash)?.is_none() {
            return last();
        }
        let reason = format!("{name} block {hash} is not an ancestor of the head {head}");
        return Err(Error::InvalidForkchoiceState(reason));
    }
    Ok(Some(hash))
}

#[cfg(test)]
mod tests;
