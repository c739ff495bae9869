//! Block access lists (EIP-7928) against witnesses: the paths of a list's keys, and no others, are
//! the witness's `state`.

use crate::draft::{STAND_INS, WithStandIns};
use crate::fixture::{FixtureBlock, Test};
use crate::judge::{FlatState, Log};
use alloy_eip7928::{
    AccountChanges, BalanceChange, BlockAccessIndex, CodeChange, NonceChange, SlotChanges,
    StorageChange,
};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::Decodable;
use execution::{
    AccessList, AheadExecutor, AheadOutcomes, ChainSpec, PriorChanges, RunOptions, SealedBlock,
};
use std::collections::{BTreeMap, BTreeSet};
use testing::Random;
use testing::world::{RanBefore, summary};

/// The numbers of blocks compared.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// The published list alone, without the block being run, gave the published witness's `state`,
    /// byte for byte and in order.
    pub(crate) states_equal: usize,
    /// As before, but for what was altered in the published witness.
    pub(crate) states_altered: usize,
    /// Blocks whose reads were the keys of the list that they made.
    pub(crate) keys_equal: usize,
    /// Of these, the list's keys were those of the published list.
    pub(crate) published_keys: usize,
    /// Today's rules refuse the block.
    pub(crate) moved: usize,
}

impl Counts {
    pub(crate) fn print(&self) {
        let Self { states_equal, states_altered, keys_equal, published_keys, moved } = self;
        println!("access lists that alone give the published witness's state: {states_equal}");
        println!("the same, but for what was altered in that: {states_altered}");
        println!("blocks whose keys are those of the list that they make: {keys_equal}");
        println!("of these, with the published list's keys: {published_keys}");
        println!("blocks with published lists that today's rules refuse: {moved}");
    }
}

/// The keys that a block reads or writes, hashed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AccessKeys {
    pub(crate) accounts: BTreeSet<B256>,
    /// By account.
    pub(crate) slots: BTreeMap<B256, BTreeSet<B256>>,
}

impl AccessKeys {
    pub(crate) fn of(list: &[AccountChanges]) -> Self {
        let mut keys = Self::default();
        for account in list {
            let address = keccak256(account.address);
            keys.accounts.insert(address);
            for slot in account.storage_slots() {
                let slot = keccak256(slot.to_be_bytes::<32>());
                keys.slots.entry(address).or_default().insert(slot);
            }
        }
        keys
    }

    /// Leaves the slots out of accounts that had no storage before the block: they have no path.
    pub(crate) fn with_paths(mut self, before: &FlatState) -> Self {
        self.slots.retain(|account, _| before.has_storage(account));
        self
    }

    /// An error if these keys, which a block has asked for, are not those of its list.
    pub(crate) fn check(self, list: &[AccountChanges], before: &FlatState) -> Result<(), String> {
        let (asked, listed) = (self.with_paths(before), Self::of(list).with_paths(before));
        match asked == listed {
            true => Ok(()),
            false => Err(format!("asked for {asked:?}, but the access list has {listed:?}")),
        }
    }
}

/// The list in an [`Executed`](execution::Executed).
pub(crate) fn decode(list: &Bytes) -> Result<Vec<AccountChanges>, String> {
    Vec::decode(&mut &list[..]).map_err(|error| error.to_string())
}

/// Compares published lists with published witnesses, and with what the blocks read.
pub(crate) fn run(test: &Test, chain: &ChainSpec, counts: &mut Counts) -> Result<(), String> {
    let genesis = test.genesis()?;
    let mut states = BTreeMap::from([(genesis.header.hash_slow(), FlatState::new(&genesis))]);
    for (index, fixture) in test.blocks.iter().enumerate() {
        if fixture.exception().is_some() {
            continue;
        }
        let block = execution::decode_block(&fixture.rlp).map_err(|error| error.to_string())?;
        let mut state = states[&block.header.parent_hash].clone();
        run_block(chain, fixture, &block, &mut state, counts)
            .map_err(|error| format!("block {index}: {error}"))?;
        states.insert(block.hash(), state);
    }
    Ok(())
}

fn run_block(
    chain: &ChainSpec,
    fixture: &FixtureBlock,
    block: &SealedBlock,
    state: &mut FlatState,
    counts: &mut Counts,
) -> Result<(), String> {
    let senders = execution::recover_senders(&block.body.transactions);
    let senders = senders.map_err(|error| error.to_string())?;
    let Some(published) = &fixture.block_access_list else {
        return state.advance(chain, block, &senders).map(drop);
    };
    let mut log = Log::new(state);
    // Not `execute`: where a creation met storage without code (EIP-7610), it has first run what
    // the collision keeps from running, and has asked for the accounts of that.
    let options = RunOptions::default();
    match execution::run(chain, block, &senders, options, &mut WithStandIns(&mut log)) {
        Ok(executed) => {
            let list = executed.block_access_list.as_ref().ok_or("no access list")?;
            let mut made = decode(list)?;
            made.retain(|account| !STAND_INS.contains(&account.address));
            log.keys.check(&made, state)?;
            check_ahead(chain, block, &senders, state, list)?;
            counts.keys_equal += 1;
            counts.published_keys +=
                usize::from(AccessKeys::of(&made) == AccessKeys::of(published));
        }
        Err(_) => counts.moved += 1,
    }
    let nodes = state.advance_by(published, &block.header);
    let (Some(witness), true) = (&fixture.execution_witness, fixture.is_witness_accepted()) else {
        return Ok(());
    };
    if witness.state == nodes {
        counts.states_equal += 1;
        return Ok(());
    }
    // Sorted otherwise, or with a node more, which a verifier tolerates.
    let (nodes, published): (BTreeSet<_>, BTreeSet<_>) =
        (nodes.iter().map(|node| &node[..]).collect(), witness.state.iter().collect());
    if !published.is_superset(&nodes) || published.len() > nodes.len() + 1 {
        let missing: Vec<_> = published.difference(&nodes).collect();
        let extra: Vec<_> = nodes.difference(&published).collect();
        return Err(format!("the list's nodes: missing {missing:?}, extra {extra:?}"));
    }
    counts.states_altered += 1;
    Ok(())
}

/// Runs a block in order, and again with transactions that have run ahead, from its list and from
/// false ones: all must give the same.
fn check_ahead(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &[Address],
    state: &FlatState,
    list: &Bytes,
) -> Result<(), String> {
    let run = |ahead: Option<&dyn AheadOutcomes>| {
        let mut log = Log::new(state);
        let help = RunOptions { ahead, ..RunOptions::default() };
        let executed = execution::run(chain, block, &senders, help, &mut WithStandIns(&mut log));
        executed.map(|executed| (summary(&executed), log.keys)).map_err(|error| error.to_string())
    };
    let in_order = run(None);
    let mut random =
        Random::new(u64::from_be_bytes(block.hash()[..8].try_into().expect("8 bytes")));
    for attempt in 0..ATTEMPTS {
        let (list, left_out) = match attempt {
            0 => (list.clone(), 0),
            _ => (falsified(&mut random, list), random.number()),
        };
        let Ok(Some(list)) = AccessList::decode(&list, u64::MAX) else { continue };
        let before = PriorChanges::List(&list);
        let of = AheadExecutor { chain, block, senders: &senders, before, codes: None };
        let parent = WithStandIns(Log::new(state));
        let ahead = RanBefore::run(&of, parent, |index| left_out >> (index % 64) & 1 == 1);
        if run(Some(&ahead)) != in_order {
            return Err(format!("ahead, attempt {attempt}: another outcome, with {list:?}"));
        }
    }
    Ok(())
}

/// The list and false ones that a block is run with.
const ATTEMPTS: usize = 4;

/// A list that says something else.
pub(crate) fn falsified(random: &mut Random, list: &Bytes) -> Bytes {
    let mut list = Vec::<AccountChanges>::decode(&mut &list[..]).expect("a list");
    for _ in 0..=random.below(3) {
        falsify(random, &mut list);
    }
    alloy_rlp::encode(&list).into()
}

fn falsify(random: &mut Random, list: &mut Vec<AccountChanges>) {
    let at = random.below(list.len());
    let index = BlockAccessIndex::new(random.below(4) as u64);
    let (number, slot) = (random.below(5) as u64, U256::from(random.below(4)));
    let account = &mut list[at];
    match random.below(12) {
        0 => drop(list.remove(at)),
        1 => list.insert(at, AccountChanges::new(Address::from_word(B256::from(slot)))),
        2 => account.balance_changes.push(BalanceChange::new(index, U256::from(number))),
        3 => account.nonce_changes.push(NonceChange::new(index, number)),
        4 => account.code_changes.push(CodeChange::new(index, vec![number as u8; 3].into())),
        5 => {
            let changes = vec![StorageChange::new(index, U256::from(number))];
            account.storage_changes.retain(|changes| changes.slot != slot);
            account.storage_reads.retain(|read| *read != slot);
            account.storage_changes.push(SlotChanges::new(slot, changes));
            account.sort();
        }
        6 => drop(account.storage_reads.pop()),
        7 => drop(account.storage_changes.pop()),
        8 => account.balance_changes.clear(),
        9 => account.nonce_changes.clear(),
        10 => account.code_changes.clear(),
        _ => {
            for changes in &mut account.storage_changes {
                for change in &mut changes.changes {
                    change.new_value = U256::from(number);
                }
            }
        }
    }
}
