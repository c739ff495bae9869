//! The blocks of a long run, as its consensus client knows them.

use std::collections::HashMap;

use alloy_primitives::B256;
use alloy_rpc_types_engine::ForkchoiceState;
use anyhow::{Context, ensure};

use crate::chain::format::Payload;

/// Blocks between the head and the safe block, and the finalized one.
const SAFE_DEPTH: u64 = 32;
pub(crate) const FINAL_DEPTH: u64 = 64;
/// Blocks behind the head whose payloads are kept for nodes that lack them: more than a node is
/// ever away.
const KEPT: u64 = 512;

/// A block tree, with the payloads of its newest blocks.
pub(crate) struct BlockStore {
    payloads: HashMap<B256, Payload>,
    /// The chain that ends in the head, from block 0 on.
    canonical: Vec<B256>,
}

impl BlockStore {
    pub(crate) fn new(genesis: B256) -> Self {
        Self { payloads: HashMap::new(), canonical: vec![genesis] }
    }

    /// Adds a block whose parent is known, or is the first block.
    pub(crate) fn add(&mut self, payload: Payload) {
        self.payloads.insert(payload.hash, payload);
    }

    pub(crate) fn head(&self) -> B256 {
        *self.canonical.last().expect("the first block is there")
    }

    /// The number of the head.
    pub(crate) fn height(&self) -> u64 {
        self.canonical.len() as u64 - 1
    }

    /// The canonical chain, from block 0 on.
    pub(crate) fn canonical(&self) -> &[B256] {
        &self.canonical
    }

    pub(crate) fn is_canonical(&self, number: u64, hash: B256) -> bool {
        self.canonical.get(number as usize) == Some(&hash)
    }

    /// The number of the finalized block.
    pub(crate) fn finalized(&self) -> u64 {
        self.height().saturating_sub(FINAL_DEPTH)
    }

    pub(crate) fn payload(&self, hash: B256) -> Option<&Payload> {
        self.payloads.get(&hash)
    }

    /// Makes a block the head. Gives the number of blocks that left the chain.
    pub(crate) fn choose(&mut self, head: B256) -> anyhow::Result<u64> {
        let path = self.path(head, |number, hash| self.is_canonical(number, hash))?;
        let path: Vec<(u64, B256)> = path.iter().map(|block| (block.number, block.hash)).collect();
        let Some((first, _)) = path.first() else {
            ensure!(head == self.head(), "{head} is below the head");
            return Ok(0);
        };
        let left = self.canonical.len() as u64 - first;
        self.canonical.truncate(*first as usize);
        self.canonical.extend(path.iter().map(|(_, hash)| *hash));
        let oldest = self.height().saturating_sub(KEPT);
        self.payloads.retain(|_, payload| payload.number >= oldest);
        Ok(left)
    }

    /// The blocks up to `head` that come after one that `is_known`, in rising order.
    pub(crate) fn path(
        &self,
        head: B256,
        is_known: impl Fn(u64, B256) -> bool,
    ) -> anyhow::Result<Vec<&Payload>> {
        let (mut path, mut next) = (Vec::new(), head);
        while next != self.canonical[0] {
            let payload = self.payloads.get(&next);
            let number = payload.map(|payload| payload.number);
            // A block that is known needs no payload; its number is that below the last one.
            let below = path.last().map(|above: &&Payload| above.number - 1);
            let place = number.or(below).or_else(|| (next == self.head()).then(|| self.height()));
            if place.is_some_and(|number| is_known(number, next)) {
                break;
            }
            let payload = payload.with_context(|| format!("no payload of {next} is kept"))?;
            path.push(payload);
            next = payload.parent;
        }
        path.reverse();
        Ok(path)
    }

    /// Whether a head that moves from one block to another may be this one on its way: the other
    /// one or an ancestor of it, and none of those before the one.
    pub(crate) fn is_between(&self, from: B256, hash: B256, to: B256) -> bool {
        let leads = |to: B256| {
            let mut ancestors =
                std::iter::successors(Some(to), |below| Some(self.payload(*below)?.parent));
            ancestors.any(|below| below == hash)
        };
        leads(to) && !leads(from)
    }

    /// The fork choice of `head`: the safe and the finalized block are on the canonical chain, of
    /// which every head here is a branch that is younger.
    pub(crate) fn heads(&self, head: B256) -> ForkchoiceState {
        let at = |depth: u64| match self.height().checked_sub(depth) {
            Some(number) if number > 0 => self.canonical[number as usize],
            _ => B256::ZERO,
        };
        ForkchoiceState {
            head_block_hash: head,
            safe_block_hash: at(SAFE_DEPTH),
            finalized_block_hash: at(FINAL_DEPTH),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hash(branch: u8, number: u64) -> B256 {
        let mut hash = B256::with_last_byte(number as u8);
        hash.0[0] = if number == 0 { 0 } else { branch };
        hash
    }

    fn payload(branch: u8, number: u64, parent: B256) -> Payload {
        let params = json!([{
            "blockNumber": format!("{number:#x}"), "blockHash": hash(branch, number),
            "parentHash": parent, "stateRoot": B256::ZERO, "gasLimit": "0x0", "gasUsed": "0x0",
            "transactions": [],
        }]);
        Payload::of("engine_newPayloadV4", &params).expect("a payload")
    }

    #[test]
    fn a_head_on_a_branch_takes_the_blocks_of_the_branch_in_and_those_of_the_other_out() {
        let mut store = BlockStore::new(B256::ZERO);
        for number in 1..=5 {
            store.add(payload(1, number, hash(1, number - 1)));
        }
        assert_eq!(store.choose(hash(1, 5)).expect("known"), 0);
        store.add(payload(2, 4, hash(1, 3)));
        store.add(payload(2, 5, hash(2, 4)));
        store.add(payload(2, 6, hash(2, 5)));
        assert_eq!(store.choose(hash(2, 6)).expect("known"), 2);
        assert_eq!((store.head(), store.height()), (hash(2, 6), 6));
        assert!(store.is_canonical(3, hash(1, 3)) && !store.is_canonical(4, hash(1, 4)));
        let known = |number: u64, at: B256| number <= 3 && at == hash(1, number);
        let path = |head| {
            let path = store.path(head, known).expect("known");
            path.iter().map(|block| block.number).collect::<Vec<_>>()
        };
        assert_eq!(path(hash(2, 6)), [4, 5, 6]);
        assert_eq!(path(hash(1, 5)), [4, 5]);
        assert_eq!(path(hash(1, 2)), [0u64; 0]);
        assert!(store.path(hash(3, 9), known).is_err());
        let is_between = |from, number_and_branch: (u8, u64), to| {
            store.is_between(from, hash(number_and_branch.0, number_and_branch.1), to)
        };
        // From 1.5 back to 3, and up to 2.6.
        let (from, to) = (hash(1, 5), hash(2, 6));
        assert!([(2, 4), (2, 5), (2, 6)].iter().all(|at| is_between(from, *at, to)));
        assert!(![(1, 2), (1, 3), (1, 4), (1, 5)].iter().any(|at| is_between(from, *at, to)));
        assert!(is_between(hash(1, 1), (1, 2), to) && !is_between(hash(1, 1), (1, 4), to));
    }
}
