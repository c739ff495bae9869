use crate::build::Build;
use crate::tree::{BlockRecord, BlockTree, Bounded, InvalidRecord};
use crate::view::View;
use crate::{Error, Genesis, Heads, limits};
use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::{Block as AlloyBlock, BlockBody, Transaction as _};
use alloy_primitives::{Address, B256, Bytes};
use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar};
use execution::{BlockError, ChainSpec, InvalidBlock, SealedBlock, Transaction, Validated};
use rayon::ThreadPool;
use rayon::prelude::*;
use state::Store;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
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
    pool: ThreadPool,
}

impl Engine {
    /// A chain that consists of `genesis`, in memory.
    ///
    /// # Errors
    /// [`Error::Genesis`] when the header's state root is not that of the accounts.
    pub fn new(chain: ChainSpec, genesis: Genesis) -> Result<Self, Error> {
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
        let pool = rayon::ThreadPoolBuilder::new()
            .thread_name(|index| format!("engine-{index}"))
            .build()
            .map_err(|error| Error::Genesis(format!("threads: {error}")))?;
        Ok(Self {
            chain,
            store,
            tree: RwLock::new(BlockTree::new(record)),
            builds: Mutex::new(Bounded::new(limits::BUILDS)),
            pool,
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
            Ok((block, access_list)) => self.new_block(block, access_list),
            Err(reason) => {
                // The hash cannot be trusted to name these bytes: it is not remembered.
                tracing::debug!(%block_hash, %reason, "payload refused");
                Ok(Verdict::Invalid { latest_valid_hash: None, reason: reason.to_string() })
            }
        }
    }

    /// Validates a block, running it unless the answer is known already. `access_list` is the
    /// block access list that came with it, from Amsterdam on.
    pub fn new_block(
        &self,
        block: SealedBlock,
        access_list: Option<Bytes>,
    ) -> Result<Verdict, Error> {
        if let Err(reason) = execution::validate_roots(&block) {
            // Another body may be the right one for this hash: it is not remembered.
            let reason = reason.to_string();
            return Ok(Verdict::Invalid { latest_valid_hash: None, reason });
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
        match self.run(&parent, &block) {
            Ok((validated, senders)) => {
                self.remember(block, senders, validated, access_list);
                Ok(Verdict::Valid)
            }
            Err(BlockError::Invalid(reason)) => {
                let record = InvalidRecord {
                    latest_valid_hash: Some(parent_hash),
                    reason: reason.to_string(),
                };
                self.tree_mut().insert_invalid(hash, record.clone());
                Ok(Verdict::invalid(record))
            }
            Err(BlockError::State(error)) => Err(error.into()),
        }
    }

    /// The witness of a valid block other than genesis, whatever branch it is on. Kept witnesses
    /// are handed out; the others are made again by running the block again, which changes nothing.
    ///
    /// `None` when no such block is known.
    pub fn witness(&self, block_hash: B256) -> Result<Option<Arc<Witness>>, Error> {
        let (record, parent) = {
            let tree = self.tree();
            if let Some(witness) = tree.witness(&block_hash) {
                return Ok(Some(witness));
            }
            let Some(record) = tree.block(&block_hash).cloned() else { return Ok(None) };
            let Some(parent) = tree.block(&record.block.header.parent_hash).cloned() else {
                return Ok(None);
            };
            (record, parent)
        };
        let (validated, _) = self.run(&parent, &record.block).map_err(|error| match error {
            BlockError::State(error) => Error::State(error),
            BlockError::Invalid(error) => unreachable!("a valid block stays valid: {error}"),
        })?;
        let witness = Arc::new(validated.witness);
        self.tree_mut().insert_witness(block_hash, witness.clone());
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

    /// The heads that the consensus layer has chosen.
    pub fn heads(&self) -> Heads {
        self.tree().heads
    }

    fn run(
        &self,
        parent: &Arc<BlockRecord>,
        block: &SealedBlock,
    ) -> Result<(Validated, Vec<Address>), BlockError> {
        let senders = self.recover(&block.body.transactions)?;
        let view = self.view(parent.clone());
        let header = &parent.block.header;
        let validated =
            execution::validate(&self.chain, header, parent.block.hash(), block, &senders, &view)?;
        Ok((validated, senders))
    }

    pub(crate) fn recover(
        &self,
        transactions: &[Transaction],
    ) -> Result<Vec<Address>, InvalidBlock> {
        let recover = |(index, transaction): (usize, &Transaction)| {
            transaction
                .recover_signer()
                .map_err(|error| InvalidBlock::Signature { index, reason: error.to_string() })
        };
        match transactions.len() {
            // Waking other threads costs more than one signature.
            0 | 1 => execution::recover_senders(transactions),
            _ => self.pool.install(|| transactions.par_iter().enumerate().map(recover).collect()),
        }
    }

    fn remember(
        &self,
        block: SealedBlock,
        senders: Vec<Address>,
        validated: Validated,
        access_list: Option<Bytes>,
    ) {
        let Validated { executed, witness, new_nodes } = validated;
        self.store.commit(new_nodes, executed.new_codes);
        let mut tree = self.tree_mut();
        tree.insert_witness(block.hash(), Arc::new(witness));
        tree.insert(BlockRecord {
            block,
            senders,
            requests: executed.requests,
            block_access_list: access_list.or(executed.block_access_list),
        });
    }

    pub(crate) fn view(&self, parent: Arc<BlockRecord>) -> View<'_> {
        View::new(self.store.snapshot(), &self.tree, parent)
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

/// The block that a payload describes, if its hash and versioned hashes are right.
fn decode(payload: Payload) -> Result<(SealedBlock, Option<Bytes>), InvalidBlock> {
    let Payload { execution, sidecar } = payload;
    let got = execution.block_hash();
    let access_list = match &execution {
        ExecutionPayload::V4(payload) => Some(payload.block_access_list.clone()),
        _ => None,
    };
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
    Ok((block, access_list))
}

#[cfg(test)]
mod tests;
