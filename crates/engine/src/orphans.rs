//! Floor 5. Payloads whose parent is missing: they are kept, and run when it comes.

use crate::chain::events::ChainEvent;
use crate::chain::orphans::Orphans;
use crate::chain::verdict::{Missing, Verdict};
use crate::engine::Engine;
use crate::error::{Error, NO_PANIC};
use crate::limits;
use crate::new_payload::AnswerContent;
use alloy_primitives::B256;
use execution::SealedBlock;
use std::collections::VecDeque;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// How far the chain is, while it is not in step with what it was told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncProgress {
    /// The number of the head when the chain was opened.
    pub starting: u64,
    /// The number of the head.
    pub current: u64,
    /// The highest number of a block that was heard of, which the last one of a gap is
    /// ([`Engine::set_gap_target`]); that of the head where the fork choice names a head that is
    /// not known.
    pub highest: u64,
    /// The head of the last fork choice, where it was not known then.
    pub unknown_head: Option<B256>,
}

/// A block that is not known, and that others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingBlock {
    /// Its number, as its child has it; `None` of a head whose payload has not come.
    pub number: Option<u64>,
    /// Its hash.
    pub hash: B256,
    /// The head of the last fork choice, where that is unknown and waits for the block.
    pub chosen_head: Option<B256>,
}

impl Engine {
    /// The block that is missing: the first ancestor that is not known of the head of the last fork
    /// choice, else of the newest payload that waits. `None` where none is, and where what waits
    /// waits for an invalid block.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn missing(&self) -> Result<Option<MissingBlock>, Error> {
        let chosen = self.shared.chain.tree().unknown_head.filter(|head| !head.is_zero());
        let (of_head, of_newest) = {
            let orphans = self.orphans();
            let of_head = chosen.map(|head| match orphans.get(&head) {
                None => (None, head),
                Some(block) => {
                    let (number, hash) = orphans.missing_before(block);
                    (Some(number), hash)
                }
            });
            (of_head, orphans.newest().map(|block| orphans.missing_before(block)))
        };
        let is_missing = |hash: &B256| {
            let is_known = self.shared.chain.link(hash)?.is_some() || self.is_invalid(hash);
            Ok::<_, Error>(!is_known)
        };
        if let Some((number, hash)) = of_head
            && is_missing(&hash)?
        {
            return Ok(Some(MissingBlock { number, hash, chosen_head: chosen }));
        }
        match of_newest {
            Some((number, hash)) if is_missing(&hash)? => {
                Ok(Some(MissingBlock { number: Some(number), hash, chosen_head: None }))
            }
            _ => Ok(None),
        }
    }

    /// Whether a block was found invalid, and is among the newest of these.
    pub fn is_invalid(&self, hash: &B256) -> bool {
        self.shared.chain.tree().invalid.get(hash).is_some()
    }

    /// Why a block was found invalid, where it is among the newest of these.
    pub fn invalid_reason(&self, hash: &B256) -> Option<String> {
        match self.shared.chain.tree().invalid.get(hash)? {
            Verdict::Invalid { reason, .. } => Some(reason.clone()),
            _ => None,
        }
    }

    /// Remembers a block, of which there is no more than the hash, as invalid for this reason since
    /// `ancestor` is, and those that wait for it, too. Nothing is done where `ancestor` is not
    /// known as invalid.
    pub fn refuse_descendant(&self, ancestor: &B256, hash: B256, reason: String) {
        let _one_at_a_time = self.running();
        let verdict = self.shared.chain.tree().invalid.get(ancestor).cloned();
        if let Some(Verdict::Invalid { latest_valid_hash, .. }) = verdict {
            self.add_invalid(hash, Verdict::Invalid { latest_valid_hash, reason });
            self.run_orphans(hash);
        }
    }

    /// Notes that somebody fills gaps from elsewhere than the consensus client, and says in the log
    /// what is missing: the engine does not.
    pub fn gaps_are_filled(&self) {
        self.gap_filler.is_there.store(true, Ordering::Relaxed);
    }

    /// Sets the number of the last block of the gap that is filled, so that
    /// [`progress`](Self::progress) tells it; `None` without one.
    pub fn set_gap_target(&self, number: Option<u64>) {
        self.gap_filler.target.store(number.unwrap_or(0), Ordering::Relaxed);
    }

    /// Runs payloads that wait for a block that has come, for so long as a caller may wait. Whether
    /// there are more of them.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn run_waiting(&self) -> Result<bool, Error> {
        let known = || {
            let parents = self.orphans().parents();
            for parent in parents {
                if self.shared.chain.link(&parent)?.is_some() {
                    return Ok(Some(parent));
                }
            }
            Ok::<_, Error>(None)
        };
        let Some(parent) = known()? else { return Ok(false) };
        {
            let _one_at_a_time = self.running();
            self.run_orphans(parent);
        }
        Ok(known()?.is_some())
    }

    /// How far the chain is; `None` where it is in step: no payload above the head waits for its
    /// parent, the last fork choice is made, and no more than one valid block waits for the next.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn progress(&self) -> Result<Option<SyncProgress>, Error> {
        let orphan = self.orphans().highest().unwrap_or(0);
        let tree = self.shared.chain.tree();
        let (current, unknown_head) = (tree.known_link(&tree.heads.head)?.0, tree.unknown_head);
        let is_in_step = unknown_head.is_none() && orphan <= current && tree.newest <= current + 1;
        let gap = self.gap_filler.target.load(Ordering::Relaxed);
        let highest = current.max(orphan).max(tree.newest).max(gap);
        let starting = self.opened_at;
        let progress = SyncProgress { starting, current, highest, unknown_head };
        Ok((!is_in_step).then_some(progress))
    }

    /// The number and the hash of the head that the last fork choice chose (EIP-8379): the head, or
    /// the block that it named and that came later, once that is valid.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn chosen_head(&self) -> Result<(u64, B256), Error> {
        let (head, named) = {
            let tree = self.shared.chain.tree();
            let head = (tree.known_link(&tree.heads.head)?.0, tree.heads.head);
            (head, tree.unknown_head.filter(|named| tree.recent_link(named).is_some()))
        };
        let Some(named) = named else { return Ok(head) };
        let Some(record) = self.shared.chain.block(&named)? else { return Ok(head) };
        let tree = self.shared.chain.tree();
        let is_on_branch = match tree.heads.finalized {
            Some(last) => tree.is_ancestor(&last, &named)?,
            None => true,
        };
        let is_chosen = is_on_branch && !self.shared.chain.is_pruned(&record)?;
        Ok(if is_chosen { (record.number(), named) } else { head })
    }

    /// Keeps a block whose parent is not known. If only blocks are between that are kept too, they
    /// run now, and so does the block.
    pub(crate) fn keep_orphan(&self, block: SealedBlock) -> Result<Verdict, Error> {
        let (hash, waiting_number) = (block.hash(), block.header.number);
        let (number, missing) = {
            let mut orphans = self.orphans();
            let missing = orphans.missing_before(&block);
            orphans.insert(block);
            missing
        };
        self.tell_behind();
        if self.shared.chain.link(&missing)?.is_some() {
            self.run_orphans(missing);
            let tree = self.shared.chain.tree();
            if tree.recent_link(&hash).is_some() {
                return Ok(Verdict::Valid);
            }
            if let Some(invalid) = tree.invalid.get(&hash) {
                return Ok(invalid.clone());
            }
        } else {
            self.log_missing(number, missing, (waiting_number, hash))?;
        }
        Ok(Verdict::Syncing(Missing::Block { number, hash: missing }))
    }

    /// Keeps a block that waits for one that is not known, which needs no turn to run; `None` where
    /// it may be judged.
    pub(crate) fn wait_for_parent(&self, block: &SealedBlock) -> Result<Option<Verdict>, Error> {
        let (hash, parent) = (block.hash(), block.header.parent_hash);
        let chain = &self.shared.chain;
        let is_known =
            |hash: &B256| Ok::<_, Error>(chain.link(hash)?.is_some() || self.is_invalid(hash));
        if is_known(&parent)? || is_known(&hash)? {
            return Ok(None);
        }
        let (number, missing) = {
            let mut orphans = self.orphans();
            let missing = orphans.missing_before(block);
            orphans.insert(block.clone());
            missing
        };
        // From here on the one who brings it finds the block among those that wait.
        if is_known(&missing)? {
            self.orphans().take(&hash);
            return Ok(None);
        }
        self.tell_behind();
        self.log_missing(number, missing, (block.header.number, hash))?;
        Ok(Some(Verdict::Syncing(Missing::Block { number, hash: missing })))
    }

    /// Tells listeners that ancestors are missing.
    pub(crate) fn tell_behind(&self) {
        let _tree = self.shared.chain.tree_mut();
        self.shared.chain.events.tell(&ChainEvent::Behind);
    }

    /// Runs the blocks that have waited for this one, and those that have waited for them, for so
    /// long as a caller may wait. The rest runs with the next payload.
    pub(crate) fn run_orphans(&self, parent: B256) {
        let start = Instant::now();
        let mut next = VecDeque::from(self.orphans().children_of(&parent));
        while start.elapsed() < limits::ORPHANS_TIME
            && let Some(hash) = next.pop_front()
        {
            let taken = self.orphans().take(&hash);
            let Some(block) = taken else { continue };
            let number = block.header.number;
            match self.judge_block(block, None, AnswerContent::Nothing.asked()) {
                Ok(verdict) => {
                    tracing::info!(number, %hash, ?verdict, "a payload has run that waited");
                    next.extend(self.orphans().children_of(&hash));
                }
                // The consensus client is told when it sends the block again.
                Err(error) => {
                    tracing::error!(number, %hash, %error, "a payload that waited cannot run");
                    return;
                }
            }
        }
    }

    /// Says what is missing: at once, then seldom.
    fn log_missing(&self, number: u64, hash: B256, waiting: (u64, B256)) -> Result<(), Error> {
        let count = {
            let mut orphans = self.orphans();
            if !orphans.is_log_due(Instant::now()) {
                return Ok(());
            }
            orphans.count()
        };
        let (payload, payload_hash) = waiting;
        let first_block = self.first_number();
        if number <= first_block {
            let first_hash = self.heads().genesis;
            tracing::warn!(
                payload, %payload_hash, missing = number, missing_hash = %hash, first_block,
                %first_hash,
                "a payload is of another chain, or from before the first block of this one: give \
                 the consensus client and --chain the same network"
            );
            return Ok(());
        }
        if self.gap_filler.is_there.load(Ordering::Relaxed) {
            return Ok(());
        }
        tracing::warn!(
            missing = number, missing_hash = %hash, payload, %payload_hash, waiting = count,
            "a block is missing, and the payloads after it wait: if the consensus client does not \
             send it, restart the client, or stop the node and import the missing blocks \
             (docs/operations.md, a missing block)"
        );
        Ok(())
    }

    /// Says that the head of a fork choice is not known: at once, then seldom.
    pub(crate) fn log_unknown_head(&self, hash: B256) {
        if self.gap_filler.is_there.load(Ordering::Relaxed) {
            return;
        }
        let mut orphans = self.orphans();
        let is_due = orphans.is_log_due(Instant::now());
        drop(orphans);
        if is_due {
            tracing::warn!(
                %hash,
                "the fork choice names a head that is not known: it and the blocks before it have \
                 to come from the consensus client"
            );
        }
    }

    pub(crate) fn orphans(&self) -> MutexGuard<'_, Orphans> {
        self.orphans.lock().expect(NO_PANIC)
    }
}

#[cfg(test)]
mod tests;
