//! Floor 5. A payload, from its bytes to its verdict: the path of a block through the engine.

use crate::after::queue::RanBlock;
use crate::block::ahead::{BeforeTurn, RunAhead, RunningBlock, Schedule};
use crate::block::live::{BlockTries, FinishedTries};
use crate::block::plan::{Plan, is_worth_threads};
use crate::block::prefetch::{ColdWatch, ReadAhead};
use crate::block::senders::{BlockSenders, SendersAhead};
use crate::chain::events::ChainEvent;
use crate::chain::figures::BlockFigures;
use crate::chain::record::BlockRecord;
use crate::chain::sealed::Seal;
use crate::chain::timings::Timings;
use crate::chain::verdict::{JudgedPayload, Missing, Verdict};
use crate::engine::{Engine, LastBlock};
use crate::invalid_log::log_invalid;
use crate::threads::pool;
use crate::witnesses::assembled::Assembled;
use crate::witnesses::recent::RecentWitness;
use crate::{Error, limits};
use alloy_primitives::B256;
use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar};
use execution::{
    AccessList, AheadOutcomes, BlockError, Executed, InvalidBlock, RunOptions, SealedBlock,
};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// A payload as the Engine API hands it over.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The execution payload.
    pub execution: ExecutionPayload,
    /// The other parameters of `engine_newPayload`: versioned hashes, beacon root, requests.
    pub sidecar: ExecutionPayloadSidecar,
}

/// The content of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerContent {
    /// No answer is sent.
    Nothing,
    /// No answer is sent, and the block is in the journal already.
    Journaled,
    Verdict,
    Witness,
}

/// The question that the engine is asked about a block, and since when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) wanted: AnswerContent,
    pub(crate) since: Instant,
    /// How long it has waited for other blocks and for the disk.
    pub(crate) waited: Duration,
}

impl AnswerContent {
    /// Asked for now.
    pub(crate) fn asked(self) -> Asked {
        Asked { wanted: self, since: Instant::now(), waited: Duration::ZERO }
    }
}

/// Why a block was not validated: because of the block, or because of us.
enum Failure {
    Block(BlockError),
    Engine(Error),
}

impl Engine {
    /// Validates a payload, running it unless the answer is known already.
    ///
    /// # Errors
    /// When the engine cannot say: [`Error::State`] and [`Error::Storage`] where the database
    /// fails, [`Error::Evm`]. An invalid payload is no error.
    pub fn new_payload(&self, payload: Payload) -> Result<Verdict, Error> {
        self.judge_payload(payload).map(|judged| judged.verdict)
    }

    /// As [`new_payload`](Self::new_payload), and whether the block ran for the answer.
    ///
    /// # Errors
    /// As for [`new_payload`](Self::new_payload).
    pub fn judge_payload(&self, payload: Payload) -> Result<JudgedPayload, Error> {
        self.new_payload_wanted(payload, AnswerContent::Verdict)
    }

    /// As [`new_payload`](Self::new_payload), and the witness of a valid block, which the first
    /// block of a chain alone has not. It is put together before anything else is done with the
    /// block.
    ///
    /// # Errors
    /// As for [`new_payload`](Self::new_payload).
    pub fn new_payload_with_witness(
        &self,
        payload: Payload,
    ) -> Result<(Verdict, Option<Assembled>), Error> {
        let (judged, assembled) = self.judge_payload_with_witness(payload)?;
        Ok((judged.verdict, assembled))
    }

    /// As [`new_payload_with_witness`](Self::new_payload_with_witness), and whether the block ran
    /// for the answer.
    ///
    /// # Errors
    /// As for [`new_payload`](Self::new_payload).
    pub fn judge_payload_with_witness(
        &self,
        payload: Payload,
    ) -> Result<(JudgedPayload, Option<Assembled>), Error> {
        let block_hash = payload.execution.block_hash();
        let judged = self.new_payload_wanted(payload, AnswerContent::Witness)?;
        let assembled = match judged.verdict {
            Verdict::Valid => self.assembled(block_hash)?,
            _ => None,
        };
        Ok((judged, assembled))
    }

    /// Validates a block, running it unless the answer is known already.
    ///
    /// # Errors
    /// As for [`new_payload`](Self::new_payload).
    pub fn new_block(&self, block: SealedBlock) -> Result<Verdict, Error> {
        if let Err(reason) = execution::validate_body_roots(&block) {
            // Another body may be the right one for this hash: it is not remembered.
            return Ok(Verdict::Invalid { latest_valid_hash: None, reason: shortened(&reason) });
        }
        self.after.queue.seal_now();
        let judged = self.new_listed_block(block, None, AnswerContent::Nothing.asked())?;
        Ok(judged.verdict)
    }

    /// As [`new_block`](Self::new_block), for a block whose body has the roots of its header:
    /// [`execution::validate_body_roots`] has said so. A list is the one to which the header
    /// commits.
    ///
    /// # Errors
    /// As for [`new_payload`](Self::new_payload).
    pub fn new_checked_block(
        &self,
        block: SealedBlock,
        list: Option<AccessList>,
    ) -> Result<Verdict, Error> {
        debug_assert!(execution::validate_body_roots(&block).is_ok(), "it was checked");
        self.after.queue.seal_now();
        let judged = self.new_listed_block(block, list, AnswerContent::Nothing.asked())?;
        Ok(judged.verdict)
    }

    /// The gas of a block from which on it runs faster where its access list is given.
    pub fn list_gas(&self) -> u64 {
        self.shared.options.parallel_gas
    }

    /// Runs a block of the journal again.
    pub(crate) fn new_journaled_block(&self, block: SealedBlock) -> Result<Verdict, Error> {
        self.after.queue.seal_now();
        let judged = self.new_listed_block(block, None, AnswerContent::Journaled.asked())?;
        Ok(judged.verdict)
    }

    fn new_payload_wanted(
        &self,
        payload: Payload,
        wanted: AnswerContent,
    ) -> Result<JudgedPayload, Error> {
        let asked = wanted.asked();
        // Its state is wanted by the time that the payload is decoded.
        self.after.queue.seal_now();
        if let Some(parent) = self.shared.chain.tree().recent(&payload.execution.parent_hash()) {
            parent.seal.want();
        }
        let block_hash = payload.execution.block_hash();
        match decode(payload) {
            Ok((block, list)) => self.new_listed_block(block, list, asked),
            Err(reason) => {
                // The hash cannot be trusted to name these bytes: it is not remembered.
                let reason = shortened(&reason);
                log_invalid(block_hash, &reason);
                self.shared.chain.events.tell(&ChainEvent::Invalid(block_hash, reason.clone()));
                let verdict = Verdict::Invalid { latest_valid_hash: None, reason };
                Ok(JudgedPayload { verdict, timings: None })
            }
        }
    }

    /// Validates a block whose header has the roots of its body, and that may have come with an
    /// access list.
    fn new_listed_block(
        &self,
        block: SealedBlock,
        list: Option<AccessList>,
        mut asked: Asked,
    ) -> Result<JudgedPayload, Error> {
        let is_answered = matches!(asked.wanted, AnswerContent::Verdict | AnswerContent::Witness);
        if is_answered && let Some(verdict) = self.wait_for_parent(&block)? {
            return Ok(JudgedPayload { verdict, timings: None });
        }
        let start = Instant::now();
        // Before anything is held that the fork choice may need.
        self.wait_for_room()?;
        let _one_at_a_time = self.running();
        asked.waited = start.elapsed();
        let hash = block.hash();
        self.orphans().take(&hash);
        let of_block = || self.last_timings().filter(|(last, _)| *last == hash);
        // A valid block does not run again.
        let was_last = of_block().is_some();
        let verdict = self.judge_block(block, list, asked)?;
        let timings = of_block().filter(|_| !was_last).map(|(_, timings)| timings);
        if !matches!(verdict, Verdict::Syncing(_)) {
            self.run_orphans(hash);
        }
        Ok(JudgedPayload { verdict, timings })
    }

    /// The same for one block alone, when no other runs.
    pub(crate) fn judge_block(
        &self,
        block: SealedBlock,
        list: Option<AccessList>,
        asked: Asked,
    ) -> Result<Verdict, Error> {
        if let Some(verdict) = self.known(&block)? {
            return Ok(verdict);
        }
        let (hash, number, parent_hash) =
            (block.hash(), block.header.number, block.header.parent_hash);
        let Some(parent) = self.shared.chain.block(&parent_hash)? else {
            if matches!(asked.wanted, AnswerContent::Verdict | AnswerContent::Witness) {
                return self.keep_orphan(block);
            }
            let number = number.saturating_sub(1);
            return Ok(Verdict::Syncing(Missing::Block { number, hash: parent_hash }));
        };
        let mut block = Some(block);
        match self.validate(&parent, &mut block, list, asked) {
            Ok(()) => Ok(Verdict::Valid),
            Err(failure) => {
                let verdict = self.judge(hash, &parent, failure);
                if let (Ok(Verdict::Invalid { .. }), Some(block)) = (&verdict, block) {
                    self.shared.chain.bad_blocks().add(block);
                }
                verdict
            }
        }
    }

    /// Waits until not too much waits to be sealed, nor for the disk.
    fn wait_for_room(&self) -> Result<(), Error> {
        let (chain, background) = (&self.shared.chain, &self.shared.background);
        let limit = self.shared.options.unpersisted_bytes;
        if chain.unsealed.are_above(limit) {
            let _wanted = background.want();
            chain.unsealed.wait(limit);
        }
        while chain.database.unpersisted_bytes() > limit {
            let _wanted = background.want();
            self.after.queue.want_persist();
            chain.database.wait_for_room(limit, limits::ROOM_PAUSE)?;
            chain.check()?;
        }
        chain.check()
    }

    /// The verdict on a block that was validated before, or whose parent is invalid.
    fn known(&self, block: &SealedBlock) -> Result<Option<Verdict>, Error> {
        let (hash, parent_hash) = (block.hash(), block.header.parent_hash);
        let chain = &self.shared.chain;
        let is_new = chain.tree().is_new(&hash, &parent_hash);
        if !is_new && chain.link(&hash)?.is_some() {
            return Ok(Some(Verdict::Valid));
        }
        let tree = chain.tree();
        if let Some(invalid) = tree.invalid.get(&hash) {
            return Ok(Some(invalid.clone()));
        }
        let Some(invalid) = tree.invalid.get(&parent_hash).cloned() else { return Ok(None) };
        drop(tree);
        self.add_invalid(hash, invalid.clone());
        Ok(Some(invalid))
    }

    /// Remembers an invalid block, and tells listeners of it.
    pub(crate) fn add_invalid(&self, hash: B256, invalid: Verdict) {
        let mut tree = self.shared.chain.tree_mut();
        if let Verdict::Invalid { reason, .. } = &invalid {
            self.shared.chain.events.tell(&ChainEvent::Invalid(hash, reason.clone()));
        }
        tree.invalid.insert(hash, invalid);
    }

    /// Runs a block, and takes and remembers it when it is valid.
    fn validate(
        &self,
        parent: &Arc<BlockRecord>,
        given: &mut Option<SealedBlock>,
        list: Option<AccessList>,
        asked: Asked,
    ) -> Result<(), Failure> {
        let _runs = self.shared.background.block_runs();
        let block = given.as_ref().expect("it is taken at the end");
        self.validate_ancestry(parent, block)?;
        let mut unsealed = self.shared.chain.unsealed.begin(block.header.number);
        let (mut timings, start) = (Timings::default(), Instant::now());
        let senders =
            BlockSenders::new(self.chain(), block.header.number, &block.body.transactions);
        let (state, executed) = self.run(parent, block, list, &senders, &mut timings)?;
        timings.add(state.timings, senders.spent(), start.elapsed());
        let signers = senders.signers().map_err(BlockError::from)?;
        let (senders, public_keys): (Vec<_>, _) =
            signers.into_iter().map(|signer| (signer.address, signer.public_key)).unzip();
        let is_small = !is_worth_threads(&self.shared.options, &block.header);
        let figures = state.figures(block, &executed);
        let Executed { codes_read, new_codes, receipts, requests, block_access_list, .. } =
            executed;
        let (code_hashes, codes) = codes_read.into_iter().unzip();
        let FinishedTries { read_set, tries, has_all_nodes } =
            state.finish(code_hashes, executed.first_ancestor);
        let record = Arc::new(BlockRecord {
            total_difficulty: parent.total_difficulty + block.header.difficulty,
            block: given.take().expect("it is taken here alone"),
            senders,
            receipts,
            requests,
            block_access_list,
            read_set: Some(read_set),
            seal: Seal::default(),
        });
        unsealed.holds(limits::UNSEALED_NODE_BYTES * tries.nodes_count() as u64);
        let hash = record.hash();
        if asked.wanted != AnswerContent::Journaled {
            let start = Instant::now();
            self.note_block(&record.block)?;
            timings.journal = start.elapsed();
        }
        // The tree comes last: a block that is in it has its witness.
        let nodes = if has_all_nodes { Arc::downgrade(&tries) } else { Weak::new() };
        let old_witness = self.shared.recent.begin(RecentWitness::new(hash, nodes, codes));
        *self.last() = Some(LastBlock { hash, public_keys, timings });
        let old_records = self.add_validated(&record);
        self.answer_last(asked, figures);
        if is_small {
            // It leaves sweeping to larger blocks, as long as the log is not too long.
            record.seal.want();
        }
        let ran = RanBlock {
            parent: parent.seal.clone(),
            record,
            tries,
            has_all_nodes,
            new_codes,
            unsealed,
            freed: (old_records, old_witness),
        };
        if is_small && matches!(asked.wanted, AnswerContent::Nothing | AnswerContent::Journaled) {
            // No client waits for an answer, and waking a thread takes a good part of the time.
            self.after.seal_here(ran);
        } else {
            self.after.queue.push(ran);
        }
        Ok(())
    }

    /// Adds a block to the tree, and tells listeners of it.
    fn add_validated(&self, record: &Arc<BlockRecord>) -> Vec<Arc<BlockRecord>> {
        let mut tree = self.shared.chain.tree_mut();
        self.shared.chain.events.tell(&ChainEvent::Valid(record.hash()));
        tree.add_validated(record.clone())
    }

    /// Runs a block on the state after its parent: with the help of its access list if it has one,
    /// and once more without if the list names more than the block reads.
    fn run(
        &self,
        parent: &Arc<BlockRecord>,
        block: &SealedBlock,
        list: Option<AccessList>,
        senders: &BlockSenders<'_>,
        timings: &mut Timings,
    ) -> Result<(BlockTries<'_>, Executed), Failure> {
        let senders_ahead = SendersAhead(senders);
        let running = RunningBlock {
            chain: &self.shared.chain,
            spec: self.chain(),
            codes: &self.codes,
            parent,
            block,
            senders: &senders_ahead,
        };
        let list = list.filter(|_| is_worth_threads(&self.shared.options, &block.header));
        let (state, executed) = self.run_once(running, senders, list, timings)?;
        if state.has_asked_for_all_listed() {
            return Ok((state, executed));
        }
        tracing::warn!(hash = %block.hash(), "the access list names more than the block reads");
        drop((state, executed));
        self.run_once(running, senders, None, timings)
    }

    /// Runs a block with the threads that it gets, in one scope: all that helps begins in it, and
    /// has ended when it ends.
    fn run_once(
        &self,
        running: RunningBlock<'_>,
        senders: &BlockSenders<'_>,
        list: Option<AccessList>,
        timings: &mut Timings,
    ) -> Result<(BlockTries<'_>, Executed), Failure> {
        let RunningBlock { spec, parent, block, .. } = running;
        let plan = Plan::new(&self.threads, &self.shared.options, spec, block, list.is_some());
        let (ahead, reads) = (OnceLock::<RunAhead<'_>>::new(), OnceLock::<ReadAhead<'_>>::new());
        let recover = || senders.recover_ahead();
        let run_ahead = || ahead.get().into_iter().for_each(RunAhead::run);
        let read_ahead = || reads.get().into_iter().for_each(ReadAhead::run);
        pool::scope(|scope| {
            let _stop_recovery = senders.stopping();
            if let Some((pool, count)) = plan.senders {
                scope.ask(pool, count, &recover);
            }
            let start = Instant::now();
            let mut state = BlockTries::new(&self.shared, parent.clone(), plan.tries, list)?;
            timings.parent += start.elapsed();
            let (version, listed) = (state.version(), state.listed.clone());
            let schedule = plan.ahead.map(|(pool, count)| {
                let before = match &listed {
                    Some(listed) => BeforeTurn::Listed(listed.clone()),
                    None => BeforeTurn::Guessed(state.guess()),
                };
                let ahead = ahead.get_or_init(|| RunAhead::new(running, version, before, count));
                scope.ask(pool, count, &run_ahead);
                &ahead.schedule
            });
            let _stop_ahead = schedule.map(Schedule::stopping);
            let schedule = schedule.map(|schedule| schedule as &dyn AheadOutcomes);
            let watch = plan.readers.map(|pool| ColdWatch {
                reads: reads.get_or_init(|| ReadAhead::new(running, version, listed)),
                inner: schedule,
                waited: state.waited.clone(),
                limit: self.shared.options.prefetch_after,
                scope,
                pool,
                read: Cell::new(Some(&read_ahead)),
            });
            if let Some(watch) = watch.as_ref().filter(|_| self.was_cold.load(Ordering::Relaxed)) {
                watch.begin();
            }
            let ahead = watch.as_ref().map(|watch| watch as &dyn AheadOutcomes).or(schedule);
            let help = RunOptions { codes: Some(&self.codes), ahead };
            let (header, hash) = (&parent.block.header, parent.hash());
            let executed =
                execution::validate(spec, header, hash, block, senders, help, &mut state);
            if let Some(watch) = &watch {
                self.was_cold.store(watch.has_waited_long(), Ordering::Relaxed);
            }
            Ok((state, executed?))
        })
    }

    /// Puts the witness of the block that has just run together if the answer has it, and tells
    /// listeners what the block cost.
    fn answer_last(&self, asked: Asked, figures: BlockFigures) {
        let start = Instant::now();
        let is_with_witness = asked.wanted == AnswerContent::Witness;
        if is_with_witness {
            // It is kept for the answer. Why there is none, the caller is told again.
            let _ = self.assembled(figures.hash);
        }
        let mut last = self.last();
        let last = last.as_mut().expect("a block has just run");
        if is_with_witness {
            last.timings.witness = start.elapsed();
        }
        let (timings, chain) = (last.timings, &self.shared.chain);
        chain.events.tell(&ChainEvent::Ran(BlockFigures {
            timings,
            total: asked.since.elapsed(),
            waited: asked.waited,
            unpersisted_bytes: chain.database.unpersisted_bytes(),
            ..figures
        }));
    }

    /// The verdict on a block that was not validated.
    fn judge(&self, hash: B256, parent: &BlockRecord, failure: Failure) -> Result<Verdict, Error> {
        match failure {
            Failure::Block(BlockError::Invalid(reason)) => {
                // Paris, payload validation, point 3: zero when that is a block of proof of work.
                let is_mined = !parent.block.header.difficulty.is_zero();
                let latest_valid_hash = Some(if is_mined { B256::ZERO } else { parent.hash() });
                let reason = shortened(&reason);
                log_invalid(hash, &reason);
                let invalid = Verdict::Invalid { latest_valid_hash, reason };
                self.add_invalid(hash, invalid.clone());
                Ok(invalid)
            }
            // Paris, `engine_newPayloadV1`, point 6: what it takes to validate it is missing, where
            // the chain begins later than BLOCKHASH reaches.
            Failure::Block(BlockError::State(witness::StateError::MissingHeader(number))) => {
                tracing::warn!(%hash, number, "a block needs an ancestor that is not there");
                Ok(Verdict::Syncing(Missing::Header { number }))
            }
            Failure::Block(BlockError::State(error)) => Err(error.into()),
            Failure::Block(BlockError::Internal(reason)) => Err(Error::Evm(reason)),
            // The same.
            Failure::Engine(Error::Pruned(parent)) => {
                tracing::warn!(%hash, %parent, "a block needs a state that is not kept any more");
                Ok(Verdict::Syncing(Missing::State { parent }))
            }
            Failure::Engine(error) => Err(error),
        }
    }

    /// Checks a block of proof of work against the ancestors before its parent.
    fn validate_ancestry(
        &self,
        parent: &Arc<BlockRecord>,
        block: &SealedBlock,
    ) -> Result<(), Failure> {
        if block.header.difficulty.is_zero() && parent.block.header.difficulty.is_zero() {
            return Ok(());
        }
        let mut records = vec![parent.clone()];
        while !block.body.ommers.is_empty() && records.len() < execution::OMMER_GENERATIONS {
            let next = records[records.len() - 1].block.header.parent_hash;
            let Some(record) = self.shared.chain.block(&next)? else { break };
            records.push(record);
        }
        let ancestors: Vec<_> = records.iter().map(|record| &record.block).collect();
        let total_difficulty = parent.total_difficulty;
        execution::validate_ancestry(self.chain(), block, total_difficulty, &ancestors)
            .map_err(|reason| Failure::Block(reason.into()))
    }
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        Self::Block(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// The rule broken, in words. A block may give long ones, which are cut.
fn shortened(reason: &InvalidBlock) -> String {
    let mut reason = reason.to_string();
    let end = (0..=limits::REASON_BYTES).rev().find(|end| reason.is_char_boundary(*end));
    reason.truncate(end.expect("every text has a boundary at 0"));
    reason
}

/// The block that a payload describes, if its hash and versioned hashes are right, and its access
/// list, to which the hash commits. Bytes that are no list are known to be wrong before the block
/// is run (execution-apis #869: INVALID, and null as the latest valid hash).
fn decode(payload: Payload) -> Result<(SealedBlock, Option<AccessList>), InvalidBlock> {
    let Payload { execution, sidecar } = payload;
    let got = execution.block_hash();
    let list = execution.block_access_list().cloned();
    let block = execution::decode_payload(execution, &sidecar)?;
    if block.hash() != got {
        return Err(InvalidBlock::BlockHash { got, expected: block.hash() });
    }
    if let Some(given) = sidecar.versioned_hashes() {
        execution::validate_versioned_hashes(&block, given)?;
    }
    let gas_limit = block.header.gas_limit;
    let list = list.map(|list| AccessList::decode(&list, gas_limit)).transpose()?.flatten();
    Ok((block, list))
}

#[cfg(test)]
mod tests;
