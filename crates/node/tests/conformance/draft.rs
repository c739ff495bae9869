//! Published witnesses of blocks that today's rules refuse.
//!
//! The published Amsterdam blocks follow the draft of April 2026: other gas prices, and no EIP-8282
//! yet. Their verdicts are out of reach, but not their witnesses: what a block reads does not
//! depend on the price of reading. So the block runs with its results unjudged, on a state where
//! the two contracts of EIP-8282 are stand-ins outside the trie.

use crate::blocks::difference;
use crate::fixture::Test;
use crate::report::Witnesses;
use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, U256, address, keccak256};
use alloy_rlp::Decodable;
use execution::{ChainSpec, SealedBlock};
use std::collections::BTreeSet;
use witness::{Account, BlockState, Change, State, StateError, TrieState, Witness, WitnessIndex};

/// The contracts of EIP-8282.
pub(crate) const STAND_INS: [Address; 2] = [
    address!("0x0000bff46984e3725691fa540a8c7589300d8282"),
    address!("0x000064d678505ad48f8ccb093bc65613800e8282"),
];

/// The code of [`STAND_INS`]: `STOP`, and then bytes that no published contract has.
const STOP: [u8; 9] = *b"\0stand-in";

/// Judges the published witnesses of a test, each by itself: it must be enough to run its block,
/// and what the block then reads must be just that, or it must be refused, as the file says.
///
/// Of which tests alter their witnesses, `name` tells: those of validation, and of extra items.
pub(crate) fn run(
    name: &str,
    test: &Test,
    chain: &ChainSpec,
    counts: &mut Witnesses,
) -> Result<(), String> {
    let may_be_altered = name.contains("_validation_") || name.contains("_extra_");
    for (index, fixture) in test.blocks.iter().enumerate() {
        let Some(published) = &fixture.execution_witness else { continue };
        let block = execution::decode_block(&fixture.rlp).map_err(|error| error.to_string())?;
        match (witness(chain, &block, published), fixture.is_witness_accepted()) {
            (Ok(read), true) if read == *published => counts.published_equal += 1,
            // Sorted otherwise, or with more than is read, which a verifier tolerates.
            (Ok(read), true) if may_be_altered && is_altered(&read, published) => {
                counts.altered_tolerated += 1;
            }
            (Ok(read), true) => {
                return Err(difference(&format!("block {index}"), published, &read));
            }
            (Err(_), false) => counts.altered_refused += 1,
            (Ok(_), false) => return Err(format!("block {index}: accepted, must be refused")),
            (Err(error), true) => return Err(format!("block {index}: {error}")),
        }
    }
    Ok(())
}

/// Checks that `published` has the content of `read` in another order, or one item more.
fn is_altered(read: &Witness, published: &Witness) -> bool {
    let lists = |witness: &Witness| {
        witness.lists().map(|items| items.iter_shared().collect::<BTreeSet<Bytes>>())
    };
    let (read, published) = (lists(read), lists(published));
    let extra: usize = published.iter().zip(&read).map(|(p, r)| p.difference(r).count()).sum();
    extra <= 1 && read.iter().zip(&published).all(|(read, published)| read.is_subset(published))
}

/// The witness that running `block` gives, with `given` as the only state.
fn witness(chain: &ChainSpec, block: &SealedBlock, given: &Witness) -> Result<Witness, String> {
    let index =
        WitnessIndex::new(given, block.header.parent_hash).map_err(|error| error.to_string())?;
    let parent = Header::decode(&mut &index.parent_rlp()[..]).map_err(|error| error.to_string())?;
    let senders =
        execution::recover_senders(&block.body.transactions).map_err(|error| error.to_string())?;
    let mut state = WithStandIns(TrieState::new(parent.state_root, &index));
    let executed = execution::execute(chain, block, &senders, &mut state)
        .map_err(|error| error.to_string())?;
    let mut changes = executed.changes;
    changes.retain(|change| !STAND_INS.contains(&change.address));
    let mut state = state.0;
    state.apply(&changes).map_err(|error| error.to_string())?;
    let codes = executed.codes_read.into_values().map(|code| code.bytes);
    let codes = codes.filter(|code| code[..] != STOP).collect();
    state.witness(codes, executed.first_ancestor, parent.number).map_err(|error| error.to_string())
}

#[derive(Debug)]
pub(crate) struct WithStandIns<S>(pub(crate) S);

impl<S: BlockState> BlockState for WithStandIns<S> {
    fn restart(&mut self) -> Result<(), StateError> {
        self.0.restart()
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        self.0.apply(changes)
    }

    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        self.0.apply_transaction(changes)
    }
}

impl<S: State> State for WithStandIns<S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        if !STAND_INS.contains(&address) {
            return self.0.account(address);
        }
        Ok(Some(Account { nonce: 1, code_hash: keccak256(STOP), ..Account::default() }))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.0.storage(address, slot)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        match code_hash == keccak256(STOP) {
            true => Ok(STOP.into()),
            false => self.0.code(code_hash),
        }
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.0.block_hash(number)
    }
}
