//! A small chain in memory for tests, and signed transactions for it.
//!
//! Other crates' tests include this file by its path, so it uses public names only.
#![allow(dead_code)] // each of those tests uses a part of it

use alloy_consensus::constants::{EMPTY_OMMER_ROOT_HASH, EMPTY_WITHDRAWALS};
use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_consensus::{
    BlockBody, EthereumTxEnvelope, Header, SignableTransaction, Signed, Transaction as _,
    TxEip1559, TxEip4844, TxEip7702, TxLegacy, proofs,
};
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_eips::{eip2935, eip4788, eip7002, eip7251};
use alloy_genesis::ChainConfig;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::map::B256Map;
use alloy_primitives::{
    Address, B256, Bytes, KECCAK256_EMPTY, Signature, TxKind, U256, address, keccak256,
};
use execution::{
    AccessList, AheadExecutor, AheadOutcome, AheadOutcomes, Block, BlockError, ChainSpec,
    CodeCache, CommittedChanges, Executed, InvalidBlock, PriorChanges, RunOptions, SealedBlock,
    Transaction,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Debug;
use trie::{AccountChange, AccountInfo, EMPTY_ROOT_HASH, NodeSource, StateChanges, StateTrie};
use witness::{Ancestor, BlockState, Change, Source, State, StateError, TrieState, Witness};

pub(crate) const CHAIN_ID: u64 = 1;
pub(crate) const COINBASE: Address = address!("0x00000000000000000000000000000000c01ba5e0");
/// What a transaction here offers for its gas, in wei; base fees stay below.
pub(crate) const GAS_PRICE: u128 = 1_000_000_000;

/// Little enough that codes are driven out.
const CODE_CACHE_BYTES: usize = 4096;

/// Contracts that EIP-8282 calls at the end of a block.
pub(crate) const BUILDER_CONTRACTS: [Address; 2] = [
    address!("0x0000BFF46984E3725691FA540A8C7589300D8282"),
    address!("0x000064D678505AD48F8CCB093BC65613800E8282"),
];

/// The rules with all forks up to `fork` active from the first block on.
pub(crate) fn chain(fork: &str) -> ChainSpec {
    ChainSpec::from_config(&config(fork)).expect("a configuration in order")
}

pub(crate) fn config(fork: &str) -> ChainConfig {
    let forks = ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"];
    let last = forks.iter().position(|name| *name == fork).expect("a fork's name");
    let time = |name: &str| {
        let at = forks.iter().position(|fork| *fork == name).expect("a fork's name");
        (at <= last).then_some(0)
    };
    ChainConfig {
        chain_id: CHAIN_ID,
        homestead_block: Some(0),
        eip150_block: Some(0),
        eip155_block: Some(0),
        eip158_block: Some(0),
        byzantium_block: Some(0),
        constantinople_block: Some(0),
        petersburg_block: Some(0),
        istanbul_block: Some(0),
        berlin_block: Some(0),
        london_block: Some(0),
        terminal_total_difficulty: Some(U256::ZERO),
        terminal_total_difficulty_passed: true,
        shanghai_time: time("shanghai"),
        cancun_time: time("cancun"),
        prague_time: time("prague"),
        osaka_time: time("osaka"),
        amsterdam_time: time("amsterdam"),
        ..ChainConfig::default()
    }
}

/// Rules with proof of work, with all forks up to `fork` active from the first block on.
pub(crate) fn old_chain(fork: &str) -> ChainSpec {
    let forks = ["frontier", "homestead", "eip158", "byzantium", "istanbul", "london"];
    let last = forks.iter().position(|name| *name == fork).expect("a fork's name");
    let number = |at: usize| (at <= last).then_some(0);
    let config = ChainConfig {
        chain_id: CHAIN_ID,
        homestead_block: number(1),
        eip150_block: number(2),
        eip155_block: number(2),
        eip158_block: number(2),
        byzantium_block: number(3),
        constantinople_block: number(4),
        petersburg_block: number(4),
        istanbul_block: number(4),
        berlin_block: number(5),
        london_block: number(5),
        ..ChainConfig::default()
    };
    ChainSpec::from_config(&config).expect("a configuration in order")
}

/// An account before the first block.
#[derive(Debug, Clone, Default)]
pub(crate) struct StartAccount {
    pub(crate) nonce: u64,
    pub(crate) balance: U256,
    pub(crate) code: Bytes,
    pub(crate) storage: BTreeMap<U256, U256>,
}

impl StartAccount {
    pub(crate) fn contract(code: impl Into<Bytes>) -> Self {
        Self { nonce: 1, code: code.into(), ..Self::default() }
    }

    /// An account without code that can pay for much.
    pub(crate) fn rich() -> Self {
        Self { balance: U256::from(10u128.pow(24)), ..Self::default() }
    }

    pub(crate) fn storage(mut self, slots: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let words = |(slot, value)| (U256::from(slot), U256::from(value));
        self.storage.extend(slots.into_iter().map(words));
        self
    }
}

/// The system contracts of all forks, with their real codes where there are such.
pub(crate) fn system_contracts() -> Vec<(Address, StartAccount)> {
    let codes = [
        (eip4788::BEACON_ROOTS_ADDRESS, eip4788::BEACON_ROOTS_CODE.clone()),
        (eip2935::HISTORY_STORAGE_ADDRESS, eip2935::HISTORY_STORAGE_CODE.clone()),
        (
            eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS,
            eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_CODE.clone(),
        ),
        (
            eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
            eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_CODE.clone(),
        ),
        (BUILDER_CONTRACTS[0], Bytes::from_static(&[0])),
        (BUILDER_CONTRACTS[1], Bytes::from_static(&[0])),
    ];
    codes.map(|(address, code)| (address, StartAccount::contract(code))).into()
}

/// A valid block of a [`World`].
#[derive(Debug)]
pub(crate) struct Validated {
    pub(crate) executed: Executed,
    pub(crate) witness: Witness,
    /// The trie nodes of the post-state that the pre-state does not have, by hash.
    pub(crate) new_nodes: Vec<(B256, Bytes)>,
}

/// A chain in memory: every header, every node and code of all states.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) chain: ChainSpec,
    /// By number, from 0 on; the last is the parent of the block to come.
    pub(crate) headers: Vec<Header>,
    pub(crate) nodes: B256Map<Bytes>,
    pub(crate) codes: B256Map<Bytes>,
    code_cache: CodeCache,
}

impl World {
    /// A chain whose first block has these accounts, and the system contracts.
    pub(crate) fn new(
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
        let chain = &self.chain;
        let cancun = chain.is_cancun_active_at_timestamp(0);
        let amsterdam = chain.is_amsterdam_active_at_timestamp(0);
        let merged = chain.is_merged_at(0) == Some(true);
        Header {
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            state_root,
            difficulty: U256::from(if merged { 0 } else { 1_000_000 }),
            gas_limit: 100_000_000,
            base_fee_per_gas: chain.is_london_active_at_block(0).then_some(7),
            withdrawals_root: chain.is_shanghai_active_at_timestamp(0).then_some(EMPTY_WITHDRAWALS),
            blob_gas_used: cancun.then_some(0),
            excess_blob_gas: cancun.then_some(0),
            parent_beacon_block_root: cancun.then_some(B256::ZERO),
            requests_hash: chain.is_prague_active_at_timestamp(0).then_some(B256::ZERO),
            block_access_list_hash: amsterdam.then_some(B256::ZERO),
            slot_number: amsterdam.then_some(0),
            ..Header::default()
        }
    }

    /// Puts `count` blocks in which nothing happens on top, without running them.
    pub(crate) fn with_ancestors(mut self, count: usize) -> Self {
        for _ in 0..count {
            let header = self.draft(Vec::new(), Vec::new()).header;
            self.headers.push(Header { state_root: self.parent().state_root, ..header });
        }
        self
    }

    pub(crate) fn parent(&self) -> &Header {
        self.headers.last().expect("the first header")
    }

    /// The state after the parent.
    pub(crate) fn state(&self) -> TrieState<&Self> {
        TrieState::new(self.parent().state_root, self)
    }

    pub(crate) fn account(&self, address: Address) -> trie::Account {
        self.state().account(address).expect("all is at hand").unwrap_or_default()
    }

    /// A block on the parent that has yet to run.
    pub(crate) fn draft(
        &self,
        transactions: Vec<Transaction>,
        withdrawals: Vec<Withdrawal>,
    ) -> Block {
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

    /// Runs a draft and writes what that gave into its header.
    pub(crate) fn seal(&self, draft: Block) -> Result<SealedBlock, BlockError> {
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
    pub(crate) fn block(&self, transactions: Vec<Transaction>) -> SealedBlock {
        self.seal(self.draft(transactions, Vec::new())).expect("a valid block")
    }

    pub(crate) fn validate(&self, block: &SealedBlock) -> Result<Validated, BlockError> {
        self.validate_with(block, None, None)
    }

    /// Validates a block whose transactions have run ahead, from what this access list says, but
    /// for those that are left out.
    pub(crate) fn validate_ahead(
        &self,
        block: &SealedBlock,
        list: &[u8],
        is_left_out: impl Fn(usize) -> bool,
    ) -> Result<Validated, BlockError> {
        let senders = self.senders(block)?;
        let gas_limit = block.header.gas_limit;
        let Some(list) = AccessList::decode(list, gas_limit) else { return self.validate(block) };
        let codes = Some(&self.code_cache);
        let before = PriorChanges::List(&list);
        let of = AheadExecutor { chain: &self.chain, block, senders: &senders, before, codes };
        let ahead = RanBefore::run(&of, self.state(), is_left_out);
        self.validate_with(block, Some(&ahead), None)
    }

    /// Validates a block whose transactions have run ahead, so many at once, on what those before
    /// them had left by then.
    pub(crate) fn validate_guessed(
        &self,
        block: &SealedBlock,
        at_once: usize,
    ) -> Result<Validated, BlockError> {
        let (senders, committed) = (self.senders(block)?, CommittedChanges::default());
        let codes = Some(&self.code_cache);
        let before = PriorChanges::Committed(&committed);
        let of = AheadExecutor { chain: &self.chain, block, senders: &senders, before, codes };
        let guessing = Guessing { of, world: self, at_once, ran: RefCell::default() };
        self.validate_with(block, Some(&guessing), Some(&committed))
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
        let mut state = Following { state: self.state(), changes: BTreeMap::new(), committed };
        execution::validate_body_roots(block)?;
        let executed = execution::validate(chain, parent, hash, block, &senders, help, &mut state)?;
        let Following { mut state, changes, .. } = state;
        let changes: Vec<_> = changes.into_values().collect();
        let followed = self.state().apply(&changes)?;
        assert_eq!(followed, block.header.state_root, "what was said to have changed: {changes:?}");
        let witness = executed.witness(&mut state, &block.header)?;
        let mut new_nodes = Vec::new();
        state.new_nodes(&mut |hash, rlp| new_nodes.push((hash, rlp)));
        Ok(Validated { executed, witness, new_nodes })
    }

    /// What the slow twin of execution gives for the same block, and its witness.
    pub(crate) fn execute_exact(&self, block: &SealedBlock) -> (Executed, Witness) {
        let senders = self.senders(block).expect("signed");
        let mut state = self.state();
        let executed = execution::execute_exact(&self.chain, block, &senders, &mut state);
        let executed = executed.expect("a valid block");
        state.apply(&executed.changes).expect("all is at hand");
        let witness = executed.witness(&mut state, &block.header).expect("all is at hand");
        (executed, witness)
    }

    /// Validates a block, and its witness in every way that there is: the slow twin gives the same,
    /// and so does the block with its transactions run ahead, the witness verifies the block and
    /// records itself again, and nothing in it can be left out.
    pub(crate) fn check(&self, block: &SealedBlock) -> Result<Validated, String> {
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
    pub(crate) fn extend(&mut self, block: &SealedBlock, validated: Validated) {
        self.nodes.extend(validated.new_nodes);
        self.codes.extend(validated.executed.new_codes);
        self.headers.push(block.header.clone());
    }
}

impl Validated {
    /// An error if the same block gave something else, be it run in another way.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), String> {
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

/// Transactions that have all run before the first one's turn, the last one first.
#[derive(Debug)]
pub(crate) struct RanBefore(RefCell<Vec<Option<AheadOutcome>>>);

impl RanBefore {
    pub(crate) fn run(
        of: &AheadExecutor<'_>,
        state: impl State,
        is_left_out: impl Fn(usize) -> bool,
    ) -> Self {
        let mut ran: Vec<_> = of.block.body.transactions.iter().map(|_| None).collect();
        let mut next = (0..ran.len()).rev().filter(|index| !is_left_out(*index));
        of.run(state, || next.next(), |index, outcome, _| ran[index] = outcome);
        Self(RefCell::new(ran))
    }
}

impl AheadOutcomes for RanBefore {
    fn take(&self, index: usize) -> Option<AheadOutcome> {
        self.0.borrow_mut()[index].take()
    }
}

/// Transactions that run ahead when the turn of the first of them has come.
#[derive(Debug)]
pub(crate) struct Guessing<'a> {
    pub(crate) of: AheadExecutor<'a>,
    pub(crate) world: &'a World,
    /// How many of them.
    pub(crate) at_once: usize,
    /// Those that have run.
    pub(crate) ran: RefCell<Vec<Option<AheadOutcome>>>,
}

impl AheadOutcomes for Guessing<'_> {
    fn take(&self, index: usize) -> Option<AheadOutcome> {
        let mut ran = self.ran.borrow_mut();
        let count = self.of.block.body.transactions.len();
        if ran.len() <= index {
            let mut next = index..count.min(index.saturating_add(self.at_once));
            self.of.run(self.world.state(), || next.next(), |_, outcome, _| ran.push(outcome));
        }
        ran[index].take()
    }
}

/// What execution gave, in an order of its own.
pub(crate) fn summary(executed: &Executed) -> impl PartialEq + Debug + use<> {
    let mut accounts = executed.changes.clone();
    accounts.sort_unstable_by_key(|change| change.address);
    accounts.iter_mut().for_each(|change| change.slots.sort_unstable());
    let new_codes: BTreeMap<_, _> = executed.new_codes.iter().cloned().collect();
    let codes_read: BTreeMap<_, _> = executed.codes_read.clone().into_iter().collect();
    (
        executed.receipts.clone(),
        executed.requests.clone(),
        [executed.gas_used, executed.blob_gas_used, executed.block_access_list_items],
        executed.block_access_list.clone(),
        executed.first_ancestor,
        accounts,
        new_codes,
        codes_read,
    )
}

/// State that adds up what it is told while the block runs.
#[derive(Debug)]
pub(crate) struct Following<'a> {
    pub(crate) state: TrieState<&'a World>,
    pub(crate) changes: BTreeMap<Address, Change>,
    /// Who is told as well.
    pub(crate) committed: Option<&'a CommittedChanges>,
}

impl State for Following<'_> {
    fn account(&mut self, address: Address) -> Result<Option<trie::Account>, StateError> {
        self.state.account(address)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.state.storage(address, slot)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        self.state.code(code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.state.block_hash(number)
    }

    fn ran(&mut self, changes: &mut dyn Iterator<Item = Change>) {
        for change in changes {
            if let Some(committed) = self.committed {
                committed.put(&change);
            }
            match self.changes.entry(change.address) {
                Entry::Vacant(entry) => _ = entry.insert(change),
                Entry::Occupied(mut entry) => entry.get_mut().then(&change),
            }
        }
    }
}

impl BlockState for Following<'_> {
    fn restart(&mut self) -> Result<(), StateError> {
        self.changes.clear();
        self.state.restart()
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        self.state.apply(changes)
    }

    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        self.state.apply_transaction(changes)
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
        let rlp = Bytes::from(alloy_rlp::encode(self.headers.get(usize::try_from(number).ok()?)?));
        Some(Ancestor { hash: keccak256(&rlp), rlp })
    }
}

/// Someone who signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signer(B256);

impl Signer {
    /// The signer of this number, other than zero.
    pub(crate) fn new(number: u8) -> Self {
        Self(B256::with_last_byte(number))
    }

    pub(crate) fn address(&self) -> Address {
        let hash = B256::repeat_byte(1);
        self.sign(hash).recover_address_from_prehash(&hash).expect("just signed")
    }

    pub(crate) fn sign(&self, hash: B256) -> Signature {
        sign_message(self.0, hash).expect("a key in range")
    }

    fn envelope<T: SignableTransaction<Signature>>(&self, transaction: T) -> Transaction
    where
        EthereumTxEnvelope<TxEip4844>: From<Signed<T>>,
    {
        let signature = self.sign(transaction.signature_hash());
        transaction.into_signed(signature).into()
    }

    /// A call with this calldata and a million gas.
    pub(crate) fn call(&self, nonce: u64, to: Address, input: impl Into<Bytes>) -> Transaction {
        self.transact(nonce, TxKind::Call(to), U256::ZERO, input.into())
    }

    pub(crate) fn transact(
        &self,
        nonce: u64,
        to: TxKind,
        value: U256,
        input: Bytes,
    ) -> Transaction {
        self.envelope(TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: 1_000_000,
            max_fee_per_gas: GAS_PRICE,
            max_priority_fee_per_gas: 1,
            to,
            value,
            input,
            ..TxEip1559::default()
        })
    }

    pub(crate) fn legacy(&self, nonce: u64, to: TxKind, input: impl Into<Bytes>) -> Transaction {
        self.envelope(TxLegacy {
            chain_id: Some(CHAIN_ID),
            nonce,
            gas_limit: 1_000_000,
            gas_price: GAS_PRICE,
            to,
            input: input.into(),
            ..TxLegacy::default()
        })
    }

    /// A transaction as before EIP-155, which names no chain.
    pub(crate) fn unprotected(
        &self,
        nonce: u64,
        to: TxKind,
        value: U256,
        input: impl Into<Bytes>,
    ) -> Transaction {
        let (gas_limit, gas_price, input) = (1_000_000, GAS_PRICE, input.into());
        let chain_id = None;
        self.envelope(TxLegacy { chain_id, nonce, gas_limit, gas_price, to, value, input })
    }

    /// A transaction with one blob.
    pub(crate) fn blob(&self, nonce: u64, to: Address) -> Transaction {
        let mut versioned_hash = B256::repeat_byte(9);
        versioned_hash[0] = 1;
        self.envelope(TxEip4844 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: 100_000,
            max_fee_per_gas: GAS_PRICE,
            max_priority_fee_per_gas: 1,
            to,
            max_fee_per_blob_gas: GAS_PRICE,
            blob_versioned_hashes: vec![versioned_hash],
            ..TxEip4844::default()
        })
    }

    pub(crate) fn delegate(
        &self,
        nonce: u64,
        to: Address,
        input: impl Into<Bytes>,
        authorization_list: Vec<SignedAuthorization>,
    ) -> Transaction {
        self.delegate_with_gas(1_000_000, nonce, to, input, authorization_list)
    }

    pub(crate) fn delegate_with_gas(
        &self,
        gas_limit: u64,
        nonce: u64,
        to: Address,
        input: impl Into<Bytes>,
        authorization_list: Vec<SignedAuthorization>,
    ) -> Transaction {
        self.envelope(TxEip7702 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit,
            max_fee_per_gas: GAS_PRICE,
            max_priority_fee_per_gas: 1,
            to,
            input: input.into(),
            authorization_list,
            ..TxEip7702::default()
        })
    }

    /// The signer's authorization to run the code of `address` in its name (EIP-7702).
    pub(crate) fn authorize(&self, nonce: u64, address: Address) -> SignedAuthorization {
        let authorization = Authorization { chain_id: U256::from(CHAIN_ID), address, nonce };
        let signature = self.sign(authorization.signature_hash());
        authorization.into_signed(signature)
    }
}

/// The code of an account that delegates to `target` (EIP-7702).
pub(crate) fn marker(target: Address) -> Bytes {
    [&[0xef, 0x01, 0x00], target.as_slice()].concat().into()
}
