//! Floor 2. The nodes and codes that a block read: its witness, by reference.

use crate::error::Error;
use crate::tries::Tries;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::{Decodable, RlpDecodable, RlpEncodable};
use std::sync::OnceLock;
use trie::versioned::NodeAddress;

/// The nodes and codes that a block read, by reference: its witness, as long as the database has
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadSet {
    /// The nodes, which are listed after the verdict.
    nodes: OnceLock<ReadNodes>,
    /// About how many these are.
    about: usize,
    /// The codes' hashes.
    pub(crate) codes: Vec<B256>,
    /// The number of the first ancestor whose header belongs to the witness; the parent is the
    /// last.
    pub(crate) first_ancestor: u64,
}

/// The nodes that a block read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadNodes {
    /// Their records, ascending, each once.
    pub(crate) addresses: Vec<NodeAddress>,
    /// How many bytes they have, at most; the database does not know.
    pub(crate) bytes: Option<usize>,
}

impl ReadNodes {
    /// All nodes of its witness that a block's tries have.
    pub(crate) fn of(tries: &Tries) -> Self {
        let (_, bytes) = tries.witness_size();
        Self { addresses: tries.witness_addresses(), bytes: Some(bytes) }
    }
}

impl ReadSet {
    /// ReadNodes that are still to be listed, about so many.
    pub(crate) fn new(about: usize, codes: Vec<B256>, first_ancestor: u64) -> Self {
        Self { nodes: OnceLock::new(), about, codes, first_ancestor }
    }

    /// Lists the nodes. What was listed stays.
    pub(crate) fn list(&self, nodes: impl FnOnce() -> ReadNodes) {
        self.nodes.get_or_init(nodes);
    }

    /// The nodes' records, ascending, each once; waits until they are listed.
    pub(crate) fn addresses(&self) -> &[NodeAddress] {
        &self.nodes.wait().addresses
    }

    /// The nodes, if they are listed.
    pub(crate) fn listed(&self) -> Option<&ReadNodes> {
        self.nodes.get()
    }

    /// About the bytes it holds in memory.
    pub(crate) const fn bytes(&self) -> usize {
        8 * self.about + 32 * self.codes.len()
    }

    /// The list as the database keeps it: each address as its distance from the one before, in
    /// groups of seven bits, the lowest first.
    pub(crate) fn to_stored(&self) -> Bytes {
        let nodes = self.addresses();
        let mut distances = Vec::with_capacity(2 * nodes.len());
        let mut last = 0;
        for node in nodes {
            let mut distance = node.offset() - last;
            last = node.offset();
            while distance >= 0x80 {
                distances.push(distance as u8 | 0x80);
                distance >>= 7;
            }
            distances.push(distance as u8);
        }
        let codes = self.codes.clone();
        let stored = StoredReadSet {
            distances: distances.into(),
            codes,
            first_ancestor: self.first_ancestor,
        };
        alloy_rlp::encode(stored).into()
    }

    /// The list that [`to_stored`](Self::to_stored) wrote.
    pub(crate) fn from_stored(stored: &[u8]) -> Result<Self, Error> {
        let damaged =
            |what| Error::Storage(format!("the list of what a block read is damaged: {what}"));
        let stored =
            StoredReadSet::decode(&mut &stored[..]).map_err(|error| damaged(error.to_string()))?;
        let (mut nodes, mut last) = (Vec::new(), 0u64);
        let (mut distance, mut shift) = (0u64, 0u32);
        for byte in &stored.distances {
            if shift > 42 {
                return Err(damaged("an address of more than 48 bits".into()));
            }
            distance |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                last += distance;
                if last >> 48 != 0 {
                    return Err(damaged("an address of more than 48 bits".into()));
                }
                nodes.push(NodeAddress::new(last));
                (distance, shift) = (0, 0);
            }
        }
        if shift != 0 {
            return Err(damaged("it ends within an address".into()));
        }
        let about = nodes.len();
        Ok(Self {
            nodes: ReadNodes { addresses: nodes, bytes: None }.into(),
            about,
            codes: stored.codes,
            first_ancestor: stored.first_ancestor,
        })
    }
}

#[derive(RlpEncodable, RlpDecodable)]
struct StoredReadSet {
    distances: Bytes,
    codes: Vec<B256>,
    first_ancestor: u64,
}

#[cfg(test)]
mod tests;
