//! A small chain in memory, and signed transactions for it.

mod accounts;
mod ahead;
mod branches;
mod chains;
mod signer;

pub use accounts::{BUILDER_CONTRACTS, StartAccount, genesis_alloc, marker, system_contracts};
pub use ahead::{FollowedState, RanBefore, RunInBatches, summary};
pub use branches::Branches;
pub use chains::{CHAIN_ID, COINBASE, GAS_PRICE, chain, config, old_chain};
pub use signer::Signer;

use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::{BlockBody, Header, Transaction as _, proofs};
use alloy_eips::eip4895::Withdrawal;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::map::B256Map;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use execution::{
    AccessList, AheadExecutor, AheadOutcomes, Block, BlockError, ChainSpec, CodeCache,
    CommittedChanges, Executed, InvalidBlock, PriorChanges, RunOptions, SealedBlock, Transaction,
};
use std::collections::BTreeMap;
use trie::{AccountChange, AccountInfo, EMPTY_ROOT_HASH, NodeSource, StateChanges, StateTrie};
use witness::{Ancestor, BlockState, Source, State, StateError, TrieState, Witness};

/// Small enough that codes are evicted.
const CODE_CACHE_BYTES: usize = 4096;

/// The result of validating a block of a [`World`].
#[derive(Debug)]
pub struct Validated {
    /// Receipts, changes and the like.
    pub executed: Executed,
    /// The block's canonical witness.
    pub witness: Witness,
    /// The trie nodes of the post-state that the pre-state does not have, by hash.
    pub new_nodes: Vec<(B256, Bytes)>,
}

/// A chain in memory: every header, and every trie node and code of all states.
#[derive(Debug, Clone)]
pub struct World {
    /// The rules.
    pub chain: ChainSpec,
    /// Headers by number, without gaps; the last is the parent of the next block.
    pub headers: Vec<Header>,
    /// Trie nodes by hash.
    pub nodes: B256Map<Bytes>,
    /// Codes by hash.
    pub codes: B256Map<Bytes>,
    code_cache: CodeCache,
}

impl World {
    /// A chain whose first block has these accounts, and the system contracts.
    pub fn new(
        chain: ChainSpec,
        accounts: impl IntoIterator<Item = (Address, StartAccount)>,
    ) -> Self {
        let accounts: BTreeMap<_, _> = system_contracts().into_iter().chain(accounts).collect();
        let mut world = Self {
            chain,
            headers: Vec::new(),
            nodes: B256Map::default(),
            codes: B256Map::default(),
            code_cache: CodeCache::new(CODE_CACHE_BYTES, |_| ()),
        };
        let changes = accounts.iter().map(|(address, account)| world.start(*address, account));
        let changes = StateChanges { accounts: changes.collect::<Vec<_>>() };
        for account in accounts.into_values().filter(|account| !account.code.is_empty()) {
            world.codes.insert(keccak256(&account.code), account.code);
        }
        let mut trie = StateTrie::new(EMPTY_ROOT_HASH);
        let root = trie.apply(&changes, &B256Map::<Bytes>::default()).expect("all is at hand");
        trie.new_nodes(&mut |hash, rlp| drop(world.nodes.insert(hash, rlp)));
        world.headers.push(world.first_header(root));
        world
    }

    fn start(&self, address: Address, account: &StartAccount) -> AccountChange {
        let StartAccount { nonce, balance, code, storage } = account;
        let code_hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(code) };
        let slots = storage.iter().filter(|(_, value)| !value.is_zero());
        AccountChange {
            hashed_address: keccak256(address),
            account: Some(AccountInfo { nonce: *nonce, balance: *balance, code_hash }),
            storage_wiped: false,
            storage: slots.map(|(slot, value)| (trie::hashed_slot(*slot), *value)).collect(),
        }
    }

    fn first_header(&self, state_root: B256) -> Header {
        let merged = self.chain.is_merged_at(0) == Some(true);
        let genesis = alloy_genesis::Genesis {
            difficulty: U256::from(if merged { 0 } else { 1_000_000 }),
            gas_limit: 100_000_000,
            base_fee_per_gas: Some(7),
            ..Default::default()
        };
        execution::first_header(&genesis, &self.chain, state_root).expect("a small base fee")
    }

    /// Puts `count` blocks in which nothing happens on top, without running them.
    pub fn with_ancestors(mut self, count: usize) -> Self {
        for _ in 0..count {
            let header = self.draft(Vec::new(), Vec::new()).header;
            self.headers.push(Header { state_root: self.parent().state_root, ..header });
        }
        self
    }

    /// The header of the next block's parent.
    pub fn parent(&self) -> &Header {
        self.headers.last().expect("the first header")
    }

    /// The state after the parent.
    pub fn state(&self) -> TrieState<&Self> {
        TrieState::new(self.parent().state_root, self)
    }

    /// An account after the parent.
    pub fn account(&self, address: Address) -> trie::Account {
        self.state().account(address).expect("all is at hand").unwrap_or_default()
    }

    /// A block on the parent. Its header lacks what running the block gives.
    pub fn draft(&self, transactions: Vec<Transaction>, withdrawals: Vec<Withdrawal>) -> Block {
        let (chain, parent) = (&self.chain, self.parent());
        let timestamp = parent.timestamp + 12;
        let cancun = chain.is_cancun_active_at_timestamp(timestamp);
        let shanghai = chain.is_shanghai_active_at_timestamp(timestamp);
        let merged = chain.is_merged_at(parent.number + 1) == Some(true);
        let difficulty = execution::next_difficulty(chain, parent, timestamp);
        let london = chain.is_london_active_at_block(parent.number + 1);
        let blob_gas = transactions.iter().map(|tx| tx.blob_gas_used().unwrap_or(0)).sum();
        let header = Header {
            parent_hash: parent.hash_slow(),
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            beneficiary: COINBASE,
            transactions_root: proofs::calculate_transaction_root(&transactions),
            number: parent.number + 1,
            gas_limit: parent.gas_limit,
            timestamp,
            mix_hash: B256::repeat_byte(7),
            difficulty: if merged { U256::ZERO } else { difficulty },
            base_fee_per_gas: london.then(|| execution::next_base_fee(parent)),
            withdrawals_root: shanghai.then(|| proofs::calculate_withdrawals_root(&withdrawals)),
            blob_gas_used: cancun.then_some(blob_gas),
            excess_blob_gas: execution::next_excess_blob_gas(chain, parent, timestamp),
            parent_beacon_block_root: cancun.then_some(B256::repeat_byte(8)),
            requests_hash: chain.is_prague_active_at_timestamp(timestamp).then_some(B256::ZERO),
            block_access_list_hash: parent.block_access_list_hash.map(|_| B256::ZERO),
            slot_number: parent.slot_number.map(|slot| slot + 1),
            ..Header::default()
        };
        let withdrawals = shanghai.then_some(withdrawals.into());
        Block { header, body: BlockBody { transactions, ommers: Vec::new(), withdrawals } }
    }

    /// Runs a draft and completes its header with the results.
    ///
    /// # Errors
    /// If the block is invalid.
    pub fn seal(&self, draft: Block) -> Result<SealedBlock, BlockError> {
        let draft = SealedBlock::new(draft);
        let senders = self.senders(&draft)?;
        let mut state = self.state();
        let executed =
            execution::run(&self.chain, &draft, &senders, RunOptions::default(), &mut state)?;
        let mut block = draft.into_block();
        let header = &mut block.header;
        header.state_root = state.apply(&executed.changes)?;
        header.gas_used = executed.gas_used;
        header.receipts_root = executed.receipts_root();
        header.logs_bloom = executed.logs_bloom();
        header.requests_hash = header.requests_hash.map(|_| executed.requests.requests_hash());
        header.block_access_list_hash = executed.block_access_list.as_ref().map(keccak256);
        Ok(SealedBlock::new(block))
    }

    fn senders(&self, block: &SealedBlock) -> Result<Vec<Address>, InvalidBlock> {
        let transactions = &block.body.transactions;
        execution::recover_senders_at(&self.chain, block.header.number, transactions)
    }

    /// The valid block with these transactions.
    ///
    /// # Panics
    /// If they are invalid.
    pub fn block(&self, transactions: Vec<Transaction>) -> SealedBlock {
        self.seal(self.draft(transactions, Vec::new())).expect("a valid block")
    }

    /// Validates a block in order.
    ///
    /// # Errors
    /// If the block is invalid.
    pub fn validate(&self, block: &SealedBlock) -> Result<Validated, BlockError> {
        self.validate_with(block, None, None)
    }

    /// Validates a block whose transactions have run ahead on its access list, but for those that
    /// are left out.
    ///
    /// # Errors
    /// If the block is invalid.
    pub fn validate_ahead(
        &self,
        block: &SealedBlock,
        list: &[u8],
        is_left_out: impl Fn(usize) -> bool,
    ) -> Result<Validated, BlockError> {
        let senders = self.senders(block)?;
        let gas_limit = block.header.gas_limit;
        let Ok(Some(list)) = AccessList::decode(list, gas_limit) else {
            return self.validate(block);
        };
        let codes = Some(&self.code_cache);
        let before = PriorChanges::List(&list);
        let of = AheadExecutor { chain: &self.chain, block, senders: &senders, before, codes };
        let ahead = RanBefore::run(&of, self.state(), is_left_out);
        self.validate_with(block, Some(&ahead), None)
    }

    /// Validates a block whose transactions run ahead, `at_once` in a batch, on the state that
    /// earlier transactions had left by then.
    ///
    /// # Errors
    /// If the block is invalid.
    pub fn validate_guessed(
        &self,
        block: &SealedBlock,
        at_once: usize,
    ) -> Result<Validated, BlockError> {
        let (senders, committed) = (self.senders(block)?, CommittedChanges::default());
        let codes = Some(&self.code_cache);
        let before = PriorChanges::Committed(&committed);
        let of = AheadExecutor { chain: &self.chain, block, senders: &senders, before, codes };
        let ahead = RunInBatches::new(of, at_once, || self.state());
        self.validate_with(block, Some(&ahead), Some(&committed))
    }

    fn validate_with(
        &self,
        block: &SealedBlock,
        ahead: Option<&dyn AheadOutcomes>,
        committed: Option<&CommittedChanges>,
    ) -> Result<Validated, BlockError> {
        let senders = self.senders(block)?;
        let (parent, chain) = (self.parent(), &self.chain);
        let hash = parent.hash_slow();
        let help = RunOptions { codes: Some(&self.code_cache), ahead };
        let mut state = FollowedState { state: self.state(), changes: BTreeMap::new(), committed };
        execution::validate_body_roots(block)?;
        let executed = execution::validate(chain, parent, hash, block, &senders, help, &mut state)?;
        let FollowedState { mut state, changes, .. } = state;
        let changes: Vec<_> = changes.into_values().collect();
        let followed = self.state().apply(&changes)?;
        assert_eq!(followed, block.header.state_root, "what was said to have changed: {changes:?}");
        let witness = executed.witness(&mut state, &block.header)?;
        let mut new_nodes = Vec::new();
        state.new_nodes(&mut |hash, rlp| new_nodes.push((hash, rlp)));
        Ok(Validated { executed, witness, new_nodes })
    }

    /// The results and the witness of the slow twin of execution.
    ///
    /// # Panics
    /// If the block is invalid.
    pub fn execute_exact(&self, block: &SealedBlock) -> (Executed, Witness) {
        let senders = self.senders(block).expect("signed");
        let mut state = self.state();
        let executed = execution::execute_exact(&self.chain, block, &senders, &mut state);
        let executed = executed.expect("a valid block");
        state.apply(&executed.changes).expect("all is at hand");
        let witness = executed.witness(&mut state, &block.header).expect("all is at hand");
        (executed, witness)
    }

    /// Validates a block, and checks its witness in every way: the slow twin and running ahead give
    /// the same, the witness verifies the block and records itself again, and no part of it can be
    /// left out.
    ///
    /// # Errors
    /// If the block is invalid, or one of these checks fails: the text says which.
    pub fn check(&self, block: &SealedBlock) -> Result<Validated, String> {
        let validated = self.validate(block).map_err(|error| error.to_string())?;
        let (exact, exact_witness) = self.execute_exact(block);
        let witness = &validated.witness;
        if summary(&exact) != summary(&validated.executed) {
            return Err(format!("twin: {exact:?}; {:?}", validated.executed));
        }
        if exact_witness != *witness {
            return Err(format!("twin: {exact_witness:?}; {witness:?}"));
        }
        if let Some(list) = &validated.executed.block_access_list {
            let ahead = self.validate_ahead(block, list, |_| false);
            validated.check_same(&ahead.map_err(|error| format!("ahead: {error}"))?)?;
        } else {
            for at_once in [1, 3, usize::MAX] {
                let guessed = self.validate_guessed(block, at_once);
                let guessed = guessed.map_err(|error| format!("{at_once} guessed: {error}"))?;
                validated.check_same(&guessed)?;
            }
        }
        let verified = execution::verify(&self.chain, block, None, witness)
            .map_err(|error| format!("stateless: {error}"))?;
        if verified.witness != *witness {
            return Err(format!("stateless: {:?}; {witness:?}", verified.witness));
        }
        self.check_nothing_can_be_left_out(block, witness)?;
        Ok(validated)
    }

    fn check_nothing_can_be_left_out(
        &self,
        block: &SealedBlock,
        witness: &Witness,
    ) -> Result<(), String> {
        let missing = |witness: &Witness| match execution::verify(&self.chain, block, None, witness)
        {
            Ok(_) => Err("accepted".to_owned()),
            Err(error) => error.missing().cloned().ok_or_else(|| error.to_string()),
        };
        for at in 0..witness.state.len() {
            let mut witness = witness.clone();
            let hash = keccak256(witness.state.remove(at));
            let expected = StateError::Trie(trie::Error::MissingNode { hash });
            if missing(&witness) != Ok(expected) {
                return Err(format!("without node {hash}: {:?}", missing(&witness)));
            }
        }
        for at in 0..witness.codes.len() {
            let mut witness = witness.clone();
            let hash = keccak256(witness.codes.remove(at));
            if missing(&witness) != Ok(StateError::MissingCode(hash)) {
                return Err(format!("without code {hash}: {:?}", missing(&witness)));
            }
        }
        Ok(())
    }

    /// Makes a valid block the parent.
    pub fn extend(&mut self, block: &SealedBlock, validated: Validated) {
        self.nodes.extend(validated.new_nodes);
        self.codes.extend(validated.executed.new_codes);
        self.headers.push(block.header.clone());
    }
}

impl Validated {
    /// Compares two runs of the same block.
    ///
    /// # Errors
    /// If they differ: the text shows where.
    pub fn check_same(&self, other: &Self) -> Result<(), String> {
        let summary = |validated: &Self| (summary(&validated.executed), validated.witness.clone());
        let (own, other) = (summary(self), summary(other));
        if own == other {
            return Ok(());
        }
        let (own, other) = (format!("{own:?}"), format!("{other:?}"));
        let at = own.bytes().zip(other.bytes()).take_while(|(own, other)| own == other).count();
        let around =
            |text: &str| text.chars().skip(at.saturating_sub(200)).take(400).collect::<String>();
        Err(format!("{}\nis not\n{}", around(&own), around(&other)))
    }
}

impl NodeSource for World {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.nodes.get(hash).cloned()
    }
}

impl Source for World {
    fn code(&self, code_hash: &B256) -> Option<Bytes> {
        self.codes.get(code_hash).cloned()
    }

    fn ancestor(&self, number: u64) -> Option<Ancestor> {
        let index = number.checked_sub(self.headers.first()?.number)?;
        let header = self.headers.get(usize::try_from(index).ok()?)?;
        let rlp = Bytes::from(alloy_rlp::encode(header));
        Some(Ancestor { hash: keccak256(&rlp), rlp })
    }
}
