//! Floor 4. Payloads made on a block: of given transactions, or of the best that there are; and the
//! thread that improves the payload which the consensus layer is going to ask for.

use crate::block::live::BlockTries;
use crate::builds::{Build, Builds, Built, HeaderChoice};
use crate::chain::events::{BuildStep, ChainEvent};
use crate::chain::record::BlockRecord;
use crate::error::Error;
use crate::limits;
use crate::read::pending::PendingBlock;
use crate::read::view::VersionState;
use crate::shared::Shared;
use crate::threads::background::lower_priority;
use crate::threads::joined::JoinedThread;
use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::{Block as AlloyBlock, BlockBody, Header, Transaction as _, proofs};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::map::HashSet;
use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_rpc_types_engine::PayloadAttributes;
use execution::{
    BlockError, Candidates, ChainSpec, CodeCache, Executed, RunOptions, SealedBlock, Selection,
    Transaction, TransactionSource,
};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use witness::BlockState as _;

/// Makes payloads, and has the builds that the consensus layer has asked for.
#[derive(Debug)]
pub(crate) struct Builder {
    chain: ChainSpec,
    shared: Arc<Shared>,
    codes: CodeCache,
    source: OnceLock<Arc<dyn TransactionSource>>,
    pub(crate) builds: Builds,
}

/// A block that has run, and its tries.
struct Ran<'a> {
    block: SealedBlock,
    executed: Executed,
    state: BlockTries<'a>,
}

/// The thread that improves payloads. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct BuildThread {
    builder: Arc<Builder>,
    _thread: JoinedThread,
}

impl BuildThread {
    /// From now on, builds take their transactions from `source`.
    pub(crate) fn start(builder: &Arc<Builder>) -> Self {
        let worker = builder.clone();
        let thread = JoinedThread::start("build".into(), move || {
            lower_priority();
            while let Some((id, build)) = worker.builds.next() {
                worker.improve(&id, &build);
            }
        });
        Self { builder: builder.clone(), _thread: thread }
    }
}

impl Drop for BuildThread {
    fn drop(&mut self) {
        self.builder.builds.close();
    }
}

impl Builder {
    pub(crate) fn new(chain: ChainSpec, shared: Arc<Shared>, codes: CodeCache) -> Self {
        let builds = Builds::new(limits::BUILDS);
        Self { chain, shared, codes, source: OnceLock::new(), builds }
    }

    /// From now on, builds take their transactions from `source`. False if there is one already.
    pub(crate) fn draw_from(&self, source: Arc<dyn TransactionSource>) -> bool {
        self.source.set(source).is_ok()
    }

    pub(crate) fn has_source(&self) -> bool {
        self.source.get().is_some()
    }

    /// Works at a build until it is over: a payload at once, then one in a better order, and both
    /// again whenever there are new transactions, but not more often than
    /// [`limits::BUILD_PAUSE`].
    fn improve(&self, id: &B256, build: &Build) {
        let begun = Instant::now();
        let mut seen = None;
        loop {
            let arrivals = self.source.get().map(|source| source.arrivals());
            if seen != Some(arrivals) {
                seen = Some(arrivals);
                match self.round(id, build) {
                    Ok(()) => {}
                    // The payload so far stays.
                    Err(_) if !self.builds.is_current(id) => return,
                    Err(error) => {
                        self.tell(BuildStep::Failed(error.to_string()));
                        return self.builds.give_up(id);
                    }
                }
            }
            if begun.elapsed() > limits::BUILD_TIME {
                return self.builds.give_up(id);
            }
            if !self.builds.pause(id, limits::BUILD_PAUSE) {
                return;
            }
        }
    }

    /// Keeps a payload of what the source has now, and then one in a better order, if there is one.
    fn round(&self, id: &B256, build: &Build) -> Result<(), Error> {
        let start = Instant::now();
        let parent = self.shared.chain.known_block(&build.parent)?;
        let attributes = &build.request.attributes;
        let choice = self.shared.options.extra_data.clone().into();
        let keep = |selection: Selection| -> Result<(), Error> {
            let Selection { transactions, senders, .. } = selection;
            let made = self.make(&parent, attributes.clone(), transactions, &senders, &choice)?;
            let built = Built { with_witness: build.request.with_witness, ..made };
            self.builds.keep(id, Arc::new(built), start.elapsed());
            Ok(())
        };
        let first = self.selection(&parent, attributes, &choice, Some(id), Vec::new())?;
        keep(first.clone())?;
        match self.better_order(&parent, attributes, &choice, Some(id), first)? {
            Some(better) => keep(better),
            None => Ok(()),
        }
    }

    /// A selection that pays more than `best`, where a transaction that had not enough gas left
    /// comes earlier. Tries at most [`limits::BUILD_ORDERS`] orders.
    pub(crate) fn better_order(
        &self,
        parent: &Arc<BlockRecord>,
        attributes: &PayloadAttributes,
        choice: &HeaderChoice,
        id: Option<&B256>,
        mut best: Selection,
    ) -> Result<Option<Selection>, Error> {
        let (mut at, mut is_better) = (0, false);
        for _ in 0..limits::BUILD_ORDERS {
            let Some(order) = best.other_order(at) else { break };
            let found = self.selection(parent, attributes, choice, id, order)?;
            match found.fees > best.fees {
                true => (best, at, is_better) = (found, 0, true),
                false => at += 1,
            }
        }
        Ok(is_better.then_some(best))
    }

    /// Makes the payload of the source's transactions that pay most by gas.
    pub(crate) fn make_best(
        &self,
        parent: &Arc<BlockRecord>,
        attributes: PayloadAttributes,
        choice: &HeaderChoice,
    ) -> Result<Built, Error> {
        let Selection { transactions, senders, .. } =
            self.selection(parent, &attributes, choice, None, Vec::new())?;
        self.make(parent, attributes, transactions, &senders, choice)
    }

    /// Makes the block that [`make_best`](Self::make_best) would make, without a witness.
    pub(crate) fn make_pending(
        &self,
        parent: &Arc<BlockRecord>,
        attributes: PayloadAttributes,
        choice: &HeaderChoice,
    ) -> Result<PendingBlock, Error> {
        let Selection { transactions, senders, .. } =
            self.selection(parent, &attributes, choice, None, Vec::new())?;
        let Ran { block, executed, .. } =
            self.run(parent, attributes, transactions, &senders, choice)?;
        Ok(PendingBlock::new(parent.clone(), block, senders, executed))
    }

    /// The transactions for a block on `parent`, as long as build `id` goes on: those in `order`,
    /// and then the best ones of the source.
    pub(crate) fn selection(
        &self,
        parent: &Arc<BlockRecord>,
        attributes: &PayloadAttributes,
        choice: &HeaderChoice,
        id: Option<&B256>,
        order: Vec<(Transaction, Address)>,
    ) -> Result<Selection, Error> {
        self.check_attributes(parent, attributes)?;
        let draft = SealedBlock::new(self.draft(parent, attributes.clone(), Vec::new(), choice));
        let Some(source) = self.source.get() else { return Ok(Selection::default()) };
        let (chain, background) = (&self.shared.chain, &self.shared.background);
        let version = chain.sealed(background, parent)?.version;
        let state = VersionState::new(chain, parent, version);
        let base_fee = draft.header.base_fee_per_gas.unwrap_or(0);
        let mut candidates = BuildCandidates {
            ordered: order.iter().map(|(transaction, _)| *transaction.tx_hash()).collect(),
            order: order.into_iter(),
            is_other: false,
            source: source.candidates(base_fee),
            builds: &self.builds,
            id,
        };
        let max_blobs = self.shared.options.max_blobs;
        execution::select(&self.chain, &draft, max_blobs, &self.codes, &mut candidates, state)
            .map_err(|error| self.failed(parent, error))
    }

    /// Makes a payload on `parent` of just these transactions, in this order.
    pub(crate) fn make(
        &self,
        parent: &Arc<BlockRecord>,
        attributes: PayloadAttributes,
        transactions: Vec<Transaction>,
        senders: &[Address],
        choice: &HeaderChoice,
    ) -> Result<Built, Error> {
        let Ran { block, executed, state } =
            self.run(parent, attributes, transactions, senders, choice)?;
        Ok(Built {
            block_value: block_value(&block.header, &block.body.transactions, &executed),
            witness: state.witness(&executed)?,
            block,
            requests: executed.requests,
            block_access_list: executed.block_access_list,
            with_witness: false,
        })
    }

    /// Runs these transactions in a block on `parent`, which is valid then.
    fn run(
        &self,
        parent: &Arc<BlockRecord>,
        attributes: PayloadAttributes,
        transactions: Vec<Transaction>,
        senders: &[Address],
        choice: &HeaderChoice,
    ) -> Result<Ran<'_>, Error> {
        let draft = SealedBlock::new(self.draft(parent, attributes, transactions, choice));
        let header = &parent.block.header;
        let mut state = BlockTries::new(&self.shared, parent.clone(), None, None)?;
        let help = RunOptions { codes: Some(&self.codes), ..RunOptions::default() };
        let executed = execution::run(&self.chain, &draft, &senders, help, &mut state)
            .map_err(|error| self.failed(parent, error))?;
        let state_root = state.apply(&executed.changes)?;
        let mut block = draft.into_block();
        seal(&mut block.header, &executed, state_root);
        let block = SealedBlock::new(block);
        // A payload that the engine would refuse is none.
        let parent_hash = parent.block.hash();
        execution::validate_header(&self.chain, &block.header, header, parent_hash)
            .and_then(|()| execution::validate_body(&self.chain, &block))
            .and_then(|()| execution::validate_access_list(&block.header, &executed))
            .map_err(Error::Build)?;
        Ok(Ran { block, executed, state })
    }

    pub(crate) fn tell(&self, step: BuildStep) {
        self.shared.chain.events.tell(&ChainEvent::Build(step));
    }

    fn failed(&self, parent: &BlockRecord, error: BlockError) -> Error {
        match (error, self.shared.chain.sealed(&self.shared.background, parent)) {
            (BlockError::Invalid(error), _) => Error::Build(error),
            // Its nodes were deleted while it was read.
            (BlockError::State(_), Err(pruned)) => pruned,
            (BlockError::State(error), Ok(_)) => Error::State(error),
            (BlockError::Internal(reason), _) => Error::Evm(reason),
        }
    }

    pub(crate) fn check_attributes(
        &self,
        parent: &BlockRecord,
        attributes: &PayloadAttributes,
    ) -> Result<(), Error> {
        let (timestamp, after) = (attributes.timestamp, parent.block.header.timestamp);
        if timestamp <= after {
            let reason = format!("timestamp {timestamp} is not after the head's {after}");
            return Err(Error::InvalidAttributes(reason));
        }
        let chain = &self.chain;
        let shanghai = chain.is_shanghai_active_at_timestamp(timestamp);
        let cancun = chain.is_cancun_active_at_timestamp(timestamp);
        let amsterdam = chain.is_amsterdam_active_at_timestamp(timestamp);
        let fields = [
            ("withdrawals", attributes.withdrawals.is_some(), shanghai),
            ("parentBeaconBlockRoot", attributes.parent_beacon_block_root.is_some(), cancun),
            ("slotNumber", attributes.slot_number.is_some(), amsterdam),
        ];
        for (name, present, active) in fields {
            if present != active {
                let problem = if active { "is missing" } else { "is not known yet" };
                let reason = format!("{name} {problem} at {timestamp}");
                return Err(Error::InvalidAttributes(reason));
            }
        }
        Ok(())
    }

    /// The block before it has run: everything that the parent and the attributes decide.
    fn draft(
        &self,
        parent: &BlockRecord,
        attributes: PayloadAttributes,
        transactions: Vec<Transaction>,
        choice: &HeaderChoice,
    ) -> execution::Block {
        let (chain, parent_hash) = (&self.chain, parent.block.hash());
        let parent = &parent.block.header;
        let target = attributes.target_gas_limit.or(self.shared.options.target_gas_limit);
        let timestamp = attributes.timestamp;
        let withdrawals = attributes.withdrawals;
        let blob_gas = transactions.iter().map(|tx| tx.blob_gas_used().unwrap_or(0)).sum();
        let cancun = chain.is_cancun_active_at_timestamp(timestamp);
        let base_fee = choice.base_fee.unwrap_or_else(|| execution::next_base_fee(parent));
        let header = Header {
            parent_hash,
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            beneficiary: attributes.suggested_fee_recipient,
            transactions_root: proofs::calculate_transaction_root(&transactions),
            number: parent.number + 1,
            gas_limit: choice.gas_limit.unwrap_or_else(|| gas_limit(parent.gas_limit, target)),
            timestamp,
            extra_data: choice.extra_data.clone(),
            mix_hash: attributes.prev_randao,
            base_fee_per_gas: Some(base_fee),
            withdrawals_root: withdrawals.as_ref().map(|w| proofs::calculate_withdrawals_root(w)),
            blob_gas_used: cancun.then_some(blob_gas),
            excess_blob_gas: execution::next_excess_blob_gas(chain, parent, timestamp),
            parent_beacon_block_root: attributes.parent_beacon_block_root,
            slot_number: attributes.slot_number,
            requests_hash: chain.is_prague_active_at_timestamp(timestamp).then_some(B256::ZERO),
            ..Header::default()
        };
        let withdrawals = withdrawals.map(Into::into);
        AlloyBlock { header, body: BlockBody { transactions, ommers: Vec::new(), withdrawals } }
    }
}

/// Candidates in a given order, and then the others of a source. They end when the build does.
struct BuildCandidates<'a> {
    order: std::vec::IntoIter<(Transaction, Address)>,
    ordered: HashSet<B256>,
    /// Whether the last one came from the source.
    is_other: bool,
    source: Box<dyn Candidates + 'a>,
    builds: &'a Builds,
    id: Option<&'a B256>,
}

impl Candidates for BuildCandidates<'_> {
    fn next(&mut self) -> Option<(Transaction, Address)> {
        if self.id.is_some_and(|id| !self.builds.is_current(id)) {
            return None;
        }
        let next = self.order.next();
        self.is_other = next.is_none();
        next.or_else(|| {
            loop {
                let (transaction, sender) = self.source.next()?;
                if !self.ordered.contains(transaction.tx_hash()) {
                    return Some((transaction, sender));
                }
            }
        })
    }

    fn skip_sender(&mut self) {
        // Later ones of the order cannot run: their nonces are too high.
        if self.is_other {
            self.source.skip_sender();
        }
    }
}

/// Writes what execution gave into the header.
fn seal(header: &mut Header, executed: &Executed, state_root: B256) {
    header.state_root = state_root;
    header.gas_used = executed.gas_used;
    header.receipts_root = executed.receipts_root();
    header.logs_bloom = executed.logs_bloom();
    header.requests_hash = header.requests_hash.map(|_| executed.requests.requests_hash());
    header.block_access_list_hash = executed.block_access_list.as_ref().map(keccak256);
}

/// The parent's gas limit, moved towards `target` as far as one block may: by less than 1/1024.
fn gas_limit(parent: u64, target: Option<u64>) -> u64 {
    let step = (parent / 1024).saturating_sub(1);
    let (low, high) = (parent.saturating_sub(step), parent.saturating_add(step));
    target.unwrap_or(parent).clamp(low, high).max(execution::GAS_LIMIT_MINIMUM)
}

/// The fee recipient's priority fees, in wei.
fn block_value(header: &Header, transactions: &[Transaction], executed: &Executed) -> U256 {
    let mut before = 0;
    let mut value = U256::ZERO;
    for (transaction, receipt) in transactions.iter().zip(&executed.receipts) {
        let gas = receipt.cumulative_gas_used() - before;
        before = receipt.cumulative_gas_used();
        let tip = transaction.effective_tip_per_gas(header.base_fee_per_gas.unwrap_or(0));
        value += U256::from(tip.unwrap_or(0)) * U256::from(gas);
    }
    value
}
