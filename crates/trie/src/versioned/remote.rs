//! Nodes of tries that are elsewhere: their records, in which the children have addresses before
//! they are there.

use super::{
    NodeAddress, RecordSink,
    key::{KEY_NIBBLES, compare_prefixes, with_nibble},
    memory::MemoryRecords,
    record::{self, HASH_HEADER, RecordNode, begin_account_leaf, begin_branch, begin_extension},
    record::{Reason, begin_slot_leaf},
};
use crate::{Account, EMPTY_ROOT_HASH};
use alloy_primitives::B256;
use std::cmp::Ordering;

/// Where a node is in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodePlace {
    /// The account in whose storage it is, by its hashed address; `None` among the accounts.
    pub owner: Option<B256>,
    /// A key below it, of which only the first nibbles are meant.
    pub key: B256,
    /// The number of those nibbles.
    pub depth: u8,
}

impl NodePlace {
    /// The root of the accounts.
    pub const ROOT: Self = Self { owner: None, key: B256::ZERO, depth: 0 };

    /// The root of an account's storage.
    pub const fn storage(owner: B256) -> Self {
        Self { owner: Some(owner), key: B256::ZERO, depth: 0 }
    }

    /// Whether a key of the same trie is below it.
    pub fn is_above(&self, key: &B256) -> bool {
        compare_prefixes(&self.key, key, self.depth.into()) == Ordering::Equal
    }

    /// The first key that is below it.
    pub fn first_key(&self) -> B256 {
        (self.depth.into()..KEY_NIBBLES).fold(self.key, |key, index| with_nibble(key, index, 0))
    }
}

/// A node that its parent names, or the root of an account's storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedNode {
    /// Its hash.
    pub hash: B256,
    /// Where it is.
    pub place: NodePlace,
}

/// The record of the node with this RLP at this place. `address` gives an address to each node that
/// it names, in order.
///
/// # Errors
/// The reason why this is no node that can be there.
pub fn remote_record(
    rlp: &[u8],
    place: &NodePlace,
    mut address: impl FnMut(NamedNode) -> NodeAddress,
) -> Result<Vec<u8>, &'static str> {
    let mut record = Vec::with_capacity(rlp.len() + 1 + 16 * NodeAddress::BYTES);
    let depth = usize::from(place.depth);
    let mut named = |item: &[u8], key, depth: usize| match item {
        [HASH_HEADER, hash @ ..] => {
            let place = NodePlace { owner: place.owner, key, depth: depth as u8 };
            address(NamedNode { hash: B256::from_slice(hash), place })
        }
        _ => NodeAddress::NONE,
    };
    match record::parse_bare(rlp)? {
        RecordNode::Branch(branch) if depth < KEY_NIBBLES => {
            let mut children = [NodeAddress::NONE; 16];
            for (nibble, item) in branch.items()?.into_iter().enumerate() {
                children[nibble] = named(item, with_nibble(place.key, depth, nibble), depth + 1);
            }
            begin_branch(&mut record, &children);
        }
        RecordNode::Branch(_) => return Err("branch below the end of a key"),
        RecordNode::Extension(extension) => {
            let end = depth + extension.path.len();
            let key = extension.path.write(place.key, depth).filter(|_| end < KEY_NIBBLES);
            let key = key.ok_or("path longer than a key")?;
            let child = named(extension.item(), key, end);
            begin_extension(&mut record, child);
        }
        RecordNode::Leaf(leaf) => {
            let key = leaf.path.write(place.key, depth);
            let key = key.filter(|_| depth + leaf.path.len() == KEY_NIBBLES);
            let key = key.ok_or("leaf with a key of other than 32 bytes")?;
            match place.owner {
                Some(_) => begin_slot_leaf(&mut record),
                None => begin_account_leaf(&mut record, storage(leaf.value, key, &mut address)?),
            }
        }
    }
    record.extend_from_slice(rlp);
    check(&record)?;
    Ok(record)
}

/// The address of the storage of the account with this RLP.
fn storage(
    account: &[u8],
    owner: B256,
    address: &mut impl FnMut(NamedNode) -> NodeAddress,
) -> Result<NodeAddress, Reason> {
    let account = Account::from_rlp(account).map_err(|_| "leaf with a value that is no account")?;
    let hash = account.storage_root;
    Ok(match hash == EMPTY_ROOT_HASH {
        true => NodeAddress::NONE,
        false => address(NamedNode { hash, place: NodePlace::storage(owner) }),
    })
}

/// Checks what the parsers of records take for granted of those that this crate has written.
fn check(record: &[u8]) -> Result<(), Reason> {
    if record.len() > MemoryRecords::MAX_RECORD_BYTES {
        return Err("node longer than those of a state");
    }
    let node = record::parse(record)?;
    if node.start() + node.rlp().len() != record.len() {
        return Err("bytes behind the node");
    }
    match node {
        RecordNode::Branch(branch) => branch.children().map(drop),
        RecordNode::Extension(_) | RecordNode::Leaf(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::StateBuilder;
    use crate::versioned::{Records, Version, account, account_proof, slot};
    use crate::{AccountInfo, by_hash};
    use alloy_primitives::{Bytes, KECCAK256_EMPTY, U256, keccak256, map::B256Map};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::sync::{Arc, Mutex};

    /// Nodes by hash, which become records when they are read.
    #[derive(Clone, Debug, Default)]
    struct Elsewhere {
        nodes: Arc<B256Map<Bytes>>,
        named: Arc<Mutex<Vec<NamedNode>>>,
    }

    impl Elsewhere {
        fn address(&self, node: NamedNode) -> NodeAddress {
            let mut named = self.named.lock().unwrap();
            named.push(node);
            NodeAddress::new(NodeAddress::FIRST_REMOTE + named.len() as u64)
        }
    }

    impl Records for Elsewhere {
        type Record = Vec<u8>;

        fn record(&self, at: NodeAddress) -> Result<Vec<u8>, crate::versioned::RecordError> {
            assert!(at.is_remote());
            let index = (at.offset() - NodeAddress::FIRST_REMOTE - 1) as usize;
            let node = self.named.lock().unwrap()[index];
            let rlp = &self.nodes[&node.hash];
            Ok(remote_record(rlp, &node.place, |child| self.address(child)).unwrap())
        }
    }

    #[test]
    fn a_state_that_is_elsewhere_reads_as_it_does_here() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        for accounts in [1, 2, 30, 400] {
            let mut records = MemoryRecords::default();
            let mut builder = StateBuilder::new(&mut records);
            let mut owners: Vec<B256> =
                (0..accounts).map(|_| B256::from(rng.random::<[u8; 32]>())).collect();
            owners.sort_unstable();
            let mut slots: Vec<B256> =
                (0..20).map(|_| B256::from(rng.random::<[u8; 32]>())).collect();
            slots.sort_unstable();
            let info = AccountInfo { nonce: 1, balance: U256::ZERO, code_hash: KECCAK256_EMPTY };
            for owner in &owners {
                builder.account(*owner, info).unwrap();
                for slot in &slots[rng.random_range(0..20)..] {
                    builder.slot(*slot, U256::from(rng.random_range(1..9))).unwrap();
                }
            }
            let version = builder.finish();
            let keys: Vec<_> =
                owners.iter().copied().chain([B256::from(rng.random::<[u8; 32]>())]).collect();
            let proofs = keys.iter().map(|key| account_proof(&records, &version, key, &slots));
            let proofs: Vec<_> = proofs.map(Result::unwrap).collect();
            let all = proofs.iter().flat_map(|proof| {
                proof.proof.iter().chain(proof.storage.iter().flat_map(|slot| &slot.proof)).cloned()
            });
            let there = Elsewhere { nodes: Arc::new(by_hash(all)), ..Elsewhere::default() };
            let root = NamedNode { hash: version.root, place: NodePlace::ROOT };
            let remote = Version { root: version.root, address: there.address(root) };
            for (key, proof) in keys.iter().zip(proofs) {
                assert_eq!(account_proof(&there, &remote, key, &slots).unwrap(), proof);
                let (here, far) = (account(&records, &version, key), account(&there, &remote, key));
                let Some((_, storage)) = here.unwrap() else { continue };
                let (_, far) = far.unwrap().unwrap();
                for key in &slots {
                    assert_eq!(slot(&there, &far, key), slot(&records, &storage, key));
                }
            }
        }
    }

    #[test]
    fn what_is_no_node_of_a_state_has_no_record() {
        let hash = keccak256("child");
        let address = |_: NamedNode| NodeAddress::new(NodeAddress::FIRST_REMOTE);
        let below = |depth| NodePlace { depth, ..NodePlace::storage(B256::ZERO) };
        let refused = |rlp: &[u8], place: &NodePlace, reason: &str| {
            assert_eq!(remote_record(rlp, place, address).unwrap_err(), reason);
        };
        // A branch with two children and fifteen empty items.
        let mut branch = vec![0xf8, 66 + 15];
        for _ in 0..2 {
            branch.push(HASH_HEADER);
            branch.extend(hash);
        }
        branch.extend([0x80; 15]);
        remote_record(&branch, &below(63), address).unwrap();
        refused(&branch, &below(64), "branch below the end of a key");
        let trailing = [&branch[..], &[0]].concat();
        refused(&trailing, &below(0), "bytes behind the node");
        let mut one = vec![0xf1, HASH_HEADER];
        one.extend(hash);
        one.extend([0x80; 16]);
        refused(&one, &below(0), "branch with fewer than two children");
        let mut extension = vec![0xe2, 0x11, HASH_HEADER];
        extension.extend(hash);
        remote_record(&extension, &below(62), address).unwrap();
        refused(&extension, &below(63), "path longer than a key");
        refused(&[0xc2, 0x20, 5], &below(0), "leaf with a key of other than 32 bytes");
        remote_record(&[0xc2, 0x20, 5], &below(64), address).unwrap();
        let among = NodePlace { owner: None, ..below(64) };
        refused(&[0xc2, 0x20, 5], &among, "leaf with a value that is no account");
        for junk in [&[][..], &[0x80], &[0xc0], &[0xf8], &[0xc1, 0x80], &[0xb8, 1]] {
            remote_record(junk, &below(0), address).unwrap_err();
        }
    }

    #[test]
    fn keys_are_below_a_place() {
        let key = B256::repeat_byte(0xab);
        let place = NodePlace { owner: None, key, depth: 3 };
        let first = place.first_key();
        assert_eq!(first[..4], [0xab, 0xa0, 0, 0]);
        assert!(place.is_above(&key) && place.is_above(&first) && !place.is_above(&B256::ZERO));
        assert!(NodePlace::ROOT.is_above(&key));
    }
}
