//! What a block access list (EIP-7928) says of its block's witness: its keys, all of them and no
//! other, are those whose paths are the witness's `state`.

use crate::draft::{STAND_INS, WithStandIns};
use crate::fixture::{FixtureBlock, Test};
use crate::judge::{FlatState, Log};
use alloy_eip7928::AccountChanges;
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rlp::Decodable;
use execution::{ChainSpec, SealedBlock};
use std::collections::{BTreeMap, BTreeSet};

/// What was compared, in blocks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// The published list alone, without the block being run, gave the published witness's `state`,
    /// byte for byte and in order.
    pub(crate) states_equal: usize,
    /// As before, but for what was altered in the published witness.
    pub(crate) states_altered: usize,
    /// What the block asked of the state were the keys of the list that it made.
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
    let Some(list) = &fixture.block_access_list else {
        return state.advance(chain, block, &senders).map(drop);
    };
    let mut log = Log::new(state);
    match execution::execute(chain, block, &senders, WithStandIns(&mut log)) {
        Ok(executed) => {
            let mut made = decode(&executed.block_access_list.ok_or("no access list")?)?;
            made.retain(|account| !STAND_INS.contains(&account.address));
            log.keys.check(&made, state)?;
            counts.keys_equal += 1;
            counts.published_keys += usize::from(AccessKeys::of(&made) == AccessKeys::of(list));
        }
        Err(_) => counts.moved += 1,
    }
    let nodes = state.advance_by(list, &block.header);
    let (Some(witness), true) = (&fixture.execution_witness, fixture.is_witness_accepted()) else {
        return Ok(());
    };
    if witness.state == nodes {
        counts.states_equal += 1;
        return Ok(());
    }
    // Sorted otherwise, or with a node more, which a verifier tolerates.
    let (nodes, published): (BTreeSet<_>, BTreeSet<_>) =
        (nodes.iter().collect(), witness.state.iter().collect());
    if !published.is_superset(&nodes) || published.len() > nodes.len() + 1 {
        let missing: Vec<_> = published.difference(&nodes).collect();
        let extra: Vec<_> = nodes.difference(&published).collect();
        return Err(format!("the list's nodes: missing {missing:?}, extra {extra:?}"));
    }
    counts.states_altered += 1;
    Ok(())
}
