use crate::build::Build;
use crate::tree::{BlockRecord, BlockTree, Bounded, InvalidRecord};
use crate::view::View;
use crate::{Error, Genesis, Heads, limits};
use alloy_consensus::{Block as AlloyBlock, BlockBody, Transaction as _};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256};
use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar};
use execution::{BlockError, ChainSpec, InvalidBlock, SealedBlock, Transaction, Validated};
use rayon::ThreadPool;
use rayon::prelude::*;
use state::Store;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use witness::Witness;

/// A payload as the Engine API hands it over.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The execution payload.
    pub execution: ExecutionPayload,
    /// The other parameters of `engine_newPayload`: versioned hashes, beacon root, requests.
    pub sidecar: ExecutionPayloadSidecar,
}

/// The answer on a payload or a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The block and all its ancestors are valid; it is itself the latest valid block.
    Valid,
    /// The block, or one before it, breaks a rule.
    Invalid {
        /// The last valid block of the branch, `None` when that is not known.
        latest_valid_hash: Option<B256>,
        /// The rule broken.
        reason: String,
    },
    /// The block's parent is not known, so nothing can be said.
    Syncing,
}

impl Verdict {
    pub(crate) fn invalid(record: InvalidRecord) -> Self {
        let InvalidRecord { latest_valid_hash, reason } = record;
        Self::Invalid { latest_valid_hash, reason }
    }
}

/// The chain of one network: validates payloads, follows the fork choice, builds payloads.
///
/// All functions may be called from any thread; those that change the chain wait for each other.
#[derive(Debug)]
pub struct Engine {
    chain: ChainSpec,
    store: Store,
    tree: RwLock<BlockTree>,
    /// Held by the one call that writes; what it guards are the builds under way.
    builds: Mutex<Bounded<Build>>,
    /// The last witness that was made again. Held meanwhile, so that many who ask for one make it
    /// once, and kept apart, so that they do not drive out those of recent blocks.
    remade: Mutex<Option<(B256, Arc<Witness>)>>,
    /// Made when a block first has work for it.
    pool: OnceLock<ThreadPool>,
}

impl Engine {
    /// A chain that consists of `genesis`, in memory.
    ///
    /// # Errors
    /// [`Error::Genesis`] when the header's state root is not that of the accounts, or the chain
    /// begins with proof of work.
    pub fn new(chain: ChainSpec, genesis: Genesis) -> Result<Self, Error> {
        if !chain.is_paris_active_at_block(genesis.header.number.saturating_add(1)) {
            let reason = "the chain begins with proof of work, which is not supported; \
                          after the merge, terminalTotalDifficulty is 0 or passed";
            return Err(Error::Genesis(reason.into()));
        }
        if genesis.header.base_fee_per_gas.is_none() {
            let reason = "London is not active at genesis, but the merge builds on it: \
                          londonBlock must not be after the first block";
            return Err(Error::Genesis(reason.into()));
        }
        if genesis.header.gas_limit < execution::GAS_LIMIT_MINIMUM {
            let (got, least) = (genesis.header.gas_limit, execution::GAS_LIMIT_MINIMUM);
            let reason = format!("gasLimit is {got}, no block can have less than {least}");
            return Err(Error::Genesis(reason));
        }
        execution::validate_parent(&genesis.header)
            .map_err(|error| Error::Genesis(error.to_string()))?;
        let state = genesis.state()?;
        let store = Store::in_memory();
        store.commit(state.nodes, state.codes);
        let withdrawals = genesis.header.withdrawals_root.map(|_| Default::default());
        let body = BlockBody { transactions: Vec::new(), ommers: Vec::new(), withdrawals };
        let record = BlockRecord {
            block_access_list: genesis.header.block_access_list_hash.map(|_| [0xc0].into()),
            block: SealedBlock::new(AlloyBlock { header: genesis.header, body }),
            senders: Vec::new(),
            requests: Default::default(),
        };
        Ok(Self {
            chain,
            store,
            tree: RwLock::new(BlockTree::new(record)),
            builds: Mutex::new(Bounded::new(limits::BUILDS)),
            remade: Mutex::new(None),
            pool: OnceLock::new(),
        })
    }

    /// The chain's rules.
    pub const fn chain(&self) -> &ChainSpec {
        &self.chain
    }

    /// Validates a payload, running it unless the answer is known already.
    pub fn new_payload(&self, payload: Payload) -> Result<Verdict, Error> {
        let block_hash = payload.execution.block_hash();
        match decode(payload) {
            Ok(block) => self.new_block(block),
            Err(reason) => {
                // The hash cannot be trusted to name these bytes: it is not remembered.
                tracing::debug!(%block_hash, %reason, "payload refused");
                Ok(Verdict::Invalid { latest_valid_hash: None, reason: told(&reason) })
            }
        }
    }

    /// Validates a block, running it unless the answer is known already.
    pub fn new_block(&self, block: SealedBlock) -> Result<Verdict, Error> {
        if let Err(reason) = execution::validate_body_roots(&block) {
            // Another body may be the right one for this hash: it is not remembered.
            return Ok(Verdict::Invalid { latest_valid_hash: None, reason: told(&reason) });
        }
        let _writer = self.writer();
        let (hash, parent_hash) = (block.hash(), block.header.parent_hash);
        let parent = {
            let tree = self.tree();
            if tree.block(&hash).is_some() {
                return Ok(Verdict::Valid);
            }
            if let Some(invalid) = tree.invalid(&hash) {
                return Ok(Verdict::invalid(invalid.clone()));
            }
            match (tree.block(&parent_hash), tree.invalid(&parent_hash)) {
                (Some(parent), _) => parent.clone(),
                (None, Some(invalid)) => {
                    let record = invalid.clone();
                    drop(tree);
                    self.tree_mut().insert_invalid(hash, record.clone());
                    return Ok(Verdict::invalid(record));
                }
                (None, None) => return Ok(Verdict::Syncing),
            }
        };
        let validated = self.recover(&block.body.transactions).map_err(BlockError::from);
        let validated =
            validated.and_then(|senders| Ok((self.validate(&parent, &block, &senders)?, senders)));
        match validated {
            Ok((validated, senders)) => {
                self.remember(block, senders, validated);
                Ok(Verdict::Valid)
            }
            Err(BlockError::Invalid(reason)) => {
                let record =
                    InvalidRecord { latest_valid_hash: Some(parent_hash), reason: told(&reason) };
                self.tree_mut().insert_invalid(hash, record.clone());
                Ok(Verdict::invalid(record))
            }
            Err(BlockError::State(error)) => Err(error.into()),
            Err(BlockError::Internal(reason)) => Err(Error::Evm(reason)),
        }
    }

    /// The witness of a valid block other than genesis, whatever branch it is on. Kept witnesses
    /// are handed out; the others are made again by running the block again, which changes nothing.
    ///
    /// `None` when no such block is known.
    pub fn witness(&self, block_hash: B256) -> Result<Option<Arc<Witness>>, Error> {
        if let Some(witness) = self.tree().witness(&block_hash) {
            return Ok(Some(witness));
        }
        let mut remade = self.remade.lock().expect("no thread panics while it holds the lock");
        if let Some((_, witness)) = remade.as_ref().filter(|(hash, _)| *hash == block_hash) {
            return Ok(Some(witness.clone()));
        }
        let (record, parent) = {
            let tree = self.tree();
            let Some(record) = tree.block(&block_hash).cloned() else { return Ok(None) };
            let Some(parent) = tree.block(&record.block.header.parent_hash).cloned() else {
                return Ok(None);
            };
            (record, parent)
        };
        let validated = self.validate(&parent, &record.block, &record.senders).map_err(
            |error| match error {
                BlockError::State(error) => Error::State(error),
                BlockError::Internal(reason) => Error::Evm(reason),
                BlockError::Invalid(error) => unreachable!("a valid block stays valid: {error}"),
            },
        )?;
        let witness = Arc::new(validated.witness);
        *remade = Some((block_hash, witness.clone()));
        Ok(Some(witness))
    }

    /// A valid block by its hash, whatever branch it is on.
    pub fn block(&self, hash: B256) -> Option<Arc<BlockRecord>> {
        self.tree().block(&hash).cloned()
    }

    /// The hash of block `number` of the canonical chain.
    pub fn canonical_hash(&self, number: u64) -> Option<B256> {
        self.tree().canonical_hash(number)
    }

    /// Blocks `start` to before `end` of the canonical chain, as far as it goes, all of them as one
    /// fork choice left it.
    pub fn canonical_range(&self, start: u64, end: u64) -> Vec<Arc<BlockRecord>> {
        let tree = self.tree();
        let block = |number| tree.block(&tree.canonical_hash(number)?).cloned();
        (start..end).map_while(block).collect()
    }

    /// The heads that the consensus layer has chosen.
    pub fn heads(&self) -> Heads {
        self.tree().heads
    }

    fn validate(
        &self,
        parent: &Arc<BlockRecord>,
        block: &SealedBlock,
        senders: &[Address],
    ) -> Result<Validated, BlockError> {
        let view = self.view(parent.clone());
        let (header, hash) = (&parent.block.header, parent.block.hash());
        execution::validate(&self.chain, header, hash, block, senders, &view)
    }

    /// The senders of `transactions`, recovered on all cores.
    pub(crate) fn recover(
        &self,
        transactions: &[Transaction],
    ) -> Result<Vec<Address>, InvalidBlock> {
        if transactions.len() < PARALLEL_RECOVERY {
            return execution::recover_senders(transactions);
        }
        let pool = self.pool.get_or_init(thread_pool);
        // The first wrong signature is the one to name, whichever thread finds one first.
        let recover = |(index, transaction)| execution::recover_sender(index, transaction);
        let senders: Vec<_> =
            pool.install(|| transactions.par_iter().enumerate().map(recover).collect());
        senders.into_iter().collect()
    }

    fn remember(&self, block: SealedBlock, senders: Vec<Address>, validated: Validated) {
        let Validated { executed, witness, new_nodes } = validated;
        self.store.commit(new_nodes, executed.new_codes);
        let mut tree = self.tree_mut();
        tree.insert_witness(block.hash(), Arc::new(witness));
        tree.insert(BlockRecord {
            block,
            senders,
            requests: executed.requests,
            block_access_list: executed.block_access_list,
        });
    }

    pub(crate) fn view(&self, parent: Arc<BlockRecord>) -> View<'_> {
        View::new(&self.store, &self.tree, parent)
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Bounded<Build>> {
        self.builds.lock().expect("no thread panics while it holds the lock")
    }

    pub(crate) fn tree(&self) -> RwLockReadGuard<'_, BlockTree> {
        self.tree.read().expect("no thread panics while it holds the lock")
    }

    pub(crate) fn tree_mut(&self) -> RwLockWriteGuard<'_, BlockTree> {
        self.tree.write().expect("no thread panics while it holds the lock")
    }
}

/// The rule broken, in words; what a block says of itself may be long, and is cut.
fn told(reason: &InvalidBlock) -> String {
    let mut told = reason.to_string();
    let end = (0..=limits::REASON_BYTES).rev().find(|end| told.is_char_boundary(*end));
    told.truncate(end.expect("every text has a boundary at 0"));
    told
}

/// Transactions from which on their senders are recovered on all cores: fewer are not worth waking
/// the other threads.
const PARALLEL_RECOVERY: usize = 4;

fn thread_pool() -> ThreadPool {
    rayon::ThreadPoolBuilder::new()
        .thread_name(|index| format!("engine-{index}"))
        .build()
        .expect("the system starts a thread a core")
}

/// The block that a payload describes, if its hash and versioned hashes are right.
fn decode(payload: Payload) -> Result<SealedBlock, InvalidBlock> {
    let Payload { execution, sidecar } = payload;
    let got = execution.block_hash();
    let block = execution
        .try_into_block_with_sidecar::<Transaction>(&sidecar)
        .map_err(|error| InvalidBlock::Payload(error.to_string()))?;
    let block = SealedBlock::new(block);
    if block.hash() != got {
        return Err(InvalidBlock::BlockHash { got, expected: block.hash() });
    }
    if let Some(versioned_hashes) = sidecar.versioned_hashes() {
        let transactions = block.body.transactions.iter();
        let expected = transactions.flat_map(|tx| tx.blob_versioned_hashes().into_iter().flatten());
        if !expected.eq(versioned_hashes) {
            return Err(InvalidBlock::VersionedHashes);
        }
    }
    Ok(block)
}

#[cfg(test)]
mod tests;
