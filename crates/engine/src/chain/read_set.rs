use crate::Error;
use crate::block::live::Tries;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::{Decodable, RlpDecodable, RlpEncodable};
use std::sync::OnceLock;
use trie::versioned::NodeAddress;

/// What a block read, by reference: its witness, as long as the database has what it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touched {
    /// The nodes, which are listed after the verdict.
    nodes: OnceLock<Nodes>,
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
pub(crate) struct Nodes {
    /// Their records, ascending, each once.
    pub(crate) addresses: Vec<NodeAddress>,
    /// How many bytes they have, at most; the database does not know.
    pub(crate) bytes: Option<usize>,
}

impl Nodes {
    /// All that a block's tries have of its witness, in parts with a `pause` in between.
    pub(crate) fn of(tries: &Tries, pause: impl Fn()) -> Self {
        let (_, bytes) = tries.witness_size();
        let addresses = tries.witness_addresses_in_parts(pause);
        Self { addresses, bytes: Some(bytes) }
    }
}

impl Touched {
    /// Nodes that are still to be listed, about so many.
    pub(crate) fn new(about: usize, codes: Vec<B256>, first_ancestor: u64) -> Self {
        Self { nodes: OnceLock::new(), about, codes, first_ancestor }
    }

    /// Lists the nodes. What was listed stays.
    pub(crate) fn list(&self, nodes: impl FnOnce() -> Nodes) {
        self.nodes.get_or_init(nodes);
    }

    /// The nodes' records, ascending, each once; waits until they are listed.
    pub(crate) fn addresses(&self) -> &[NodeAddress] {
        &self.nodes.wait().addresses
    }

    /// The nodes, if they are listed.
    pub(crate) fn listed(&self) -> Option<&Nodes> {
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
        let stored =
            Stored { distances: distances.into(), codes, first_ancestor: self.first_ancestor };
        alloy_rlp::encode(stored).into()
    }

    /// The list that [`to_stored`](Self::to_stored) wrote.
    pub(crate) fn from_stored(stored: &[u8]) -> Result<Self, Error> {
        let damaged =
            |what| Error::Storage(format!("the list of what a block read is damaged: {what}"));
        let stored =
            Stored::decode(&mut &stored[..]).map_err(|error| damaged(error.to_string()))?;
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
            nodes: Nodes { addresses: nodes, bytes: None }.into(),
            about,
            codes: stored.codes,
            first_ancestor: stored.first_ancestor,
        })
    }
}

#[derive(RlpEncodable, RlpDecodable)]
struct Stored {
    distances: Bytes,
    codes: Vec<B256>,
    first_ancestor: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(nodes: &[u64]) {
        let touched = Touched::new(nodes.len(), vec![B256::repeat_byte(3); nodes.len() % 3], 7);
        assert_eq!(touched.listed(), None);
        let addresses = nodes.iter().map(|offset| NodeAddress::new(*offset)).collect();
        touched.list(|| Nodes { addresses, bytes: None });
        assert_eq!(Touched::from_stored(&touched.to_stored()).unwrap(), touched);
    }

    #[test]
    fn what_is_stored_is_read_back() {
        check(&[]);
        check(&[1]);
        check(&[0x7f, 0x80, 0x81, 0x3fff, 0x4000, 1 << 47, (1 << 48) - 1]);
        check(&(1..1000).map(|n: u64| n * n * 97).collect::<Vec<_>>());
    }

    #[test]
    fn damage_is_an_error() {
        let touched = Touched::new(1, Vec::new(), 1);
        let addresses = vec![NodeAddress::new((1 << 48) - 1)];
        touched.list(|| Nodes { addresses, bytes: None });
        let stored = touched.to_stored();
        for length in 0..stored.len() {
            Touched::from_stored(&stored[..length]).unwrap_err();
        }
        for at in 0..stored.len() {
            for bit in 0..8 {
                let mut damaged = stored.to_vec();
                damaged[at] ^= 1 << bit;
                let _ = Touched::from_stored(&damaged);
            }
        }
    }
}
