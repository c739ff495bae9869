use super::{
    NodeAddress, RecordReader, Records, Version,
    key::{KEY_NIBBLES, nibble},
    record::{self, RecordChild, RecordLeaf, RecordNode},
};
use crate::{
    Account, AccountProof, EMPTY_ROOT_HASH, Error, StorageProof,
    value::{decode_account, decode_slot},
};
use alloy_primitives::{B256, Bytes, U256};
use std::mem;

/// An account as a version has it, with its storage; `None` where the version proves that there
/// is no such account.
///
/// # Errors
/// [`Error::Record`] and [`Error::MalformedRecord`] where the store is damaged, and
/// [`Error::MalformedValue`].
pub fn account(
    mut records: impl RecordReader,
    version: &Version,
    hashed_address: &B256,
) -> Result<Option<(Account, Version)>, Error> {
    let (at, in_leaf) = (RecordPosition::root(version), account_in_leaf(hashed_address));
    walk(&mut records, at, hashed_address, None, |_| true, in_leaf)
}

/// The value of a slot in a version of a storage, zero if it is not set.
///
/// # Errors
/// See [`account`].
pub fn slot(
    mut records: impl RecordReader,
    storage: &Version,
    hashed_slot: &B256,
) -> Result<U256, Error> {
    let (at, in_leaf) = (RecordPosition::root(storage), slot_in_leaf(hashed_slot));
    let value = walk(&mut records, at, hashed_slot, None, |_| true, in_leaf)?;
    Ok(value.unwrap_or_default())
}

/// The value of a slot, zero if it is not set, and the record three nibbles below the storage's
/// root that the walk to it has passed. A record never changes, so the value is the same in every
/// version in which the walk passes that record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRead {
    /// The record's address; none if there is no record at that depth.
    pub past: NodeAddress,
    /// The value.
    pub value: U256,
}

/// Where the nodes below the first nibbles of a version's trie stand, as far as reads have come by
/// them: further reads begin there, past the nodes that nearly all of them would go through.
#[derive(Debug)]
pub struct Shortcuts {
    version: Version,
    /// By the first two nibbles of a key, and by three.
    two: Box<[NodeAddress; 1 << 8]>,
    three: Box<[NodeAddress; 1 << 12]>,
}

impl Shortcuts {
    /// For reads of this version, of a state or of a storage. None is known yet.
    pub fn new(version: Version) -> Self {
        Self {
            version,
            two: Box::new([NodeAddress::NONE; 1 << 8]),
            three: Box::new([NodeAddress::NONE; 1 << 12]),
        }
    }

    /// As [`account`](self::account).
    ///
    /// # Errors
    /// See there.
    pub fn account(
        &mut self,
        mut records: impl RecordReader,
        hashed_address: &B256,
    ) -> Result<Option<(Account, Version)>, Error> {
        let (start, mut pass) = self.start(hashed_address);
        let pass = |at| {
            pass(at);
            true
        };
        walk(&mut records, start, hashed_address, None, pass, account_in_leaf(hashed_address))
    }

    /// As [`slot`](self::slot). It ends early where `before`, an earlier read of the slot in any
    /// version of the storage, says what is below the record that it has come to.
    ///
    /// # Errors
    /// See [`account`](self::account).
    pub fn slot(
        &mut self,
        mut records: impl RecordReader,
        hashed_slot: &B256,
        before: Option<SlotRead>,
    ) -> Result<SlotRead, Error> {
        let (start, mut pass) = self.start(hashed_slot);
        let mut past = NodeAddress::NONE;
        let mut is_new = |at: RecordPosition| {
            pass(at);
            if at.depth == SHORTCUT_NIBBLES {
                past = at.address;
            }
            past.is_none() || before.is_none_or(|before| before.past != past)
        };
        let in_leaf = slot_in_leaf(hashed_slot);
        let mut value = None;
        if is_new(start) {
            value = walk(&mut records, start, hashed_slot, None, &mut is_new, in_leaf)?;
        }
        match before {
            Some(before) if !past.is_none() && before.past == past => Ok(before),
            _ => Ok(SlotRead { past, value: value.unwrap_or_default() }),
        }
    }

    /// Where a walk to this key begins, and what it is to tell of where it passes.
    fn start(&mut self, key: &B256) -> (RecordPosition, impl FnMut(RecordPosition)) {
        let (two, three) = (usize::from(key[0]), usize::from(key[0]) << 4 | nibble(key, 2));
        let start = match (self.three[three], self.two[two]) {
            (address, _) if !address.is_none() => {
                RecordPosition { address, depth: SHORTCUT_NIBBLES }
            }
            (_, address) if !address.is_none() => RecordPosition { address, depth: 2 },
            _ => RecordPosition::root(&self.version),
        };
        let pass = move |RecordPosition { address, depth }| match depth {
            2 => self.two[two] = address,
            SHORTCUT_NIBBLES => self.three[three] = address,
            _ => {}
        };
        (start, pass)
    }
}

/// Nibbles that shortcuts lead past, at most.
const SHORTCUT_NIBBLES: usize = 3;

/// An account of a version with the proofs of it and of these slots.
///
/// # Errors
/// See [`account`].
pub fn account_proof<R: Records + ?Sized>(
    records: &R,
    version: &Version,
    hashed_address: &B256,
    hashed_slots: &[B256],
) -> Result<AccountProof, Error> {
    let mut proof = Vec::new();
    let mut keep = |rlp: &[u8]| proof.push(Bytes::copy_from_slice(rlp));
    let in_leaf = account_in_leaf(hashed_address);
    let (mut records, at) = (records, RecordPosition::root(version));
    let found = walk(&mut records, at, hashed_address, Some(&mut keep), |_| true, in_leaf)?;
    let proof = mem::take(&mut proof);
    let storage_root = found.map_or(Version::EMPTY, |(_, storage)| storage);
    let mut storage = Vec::with_capacity(hashed_slots.len());
    for &hashed_slot in hashed_slots {
        let mut proof = Vec::new();
        let mut keep = |rlp: &[u8]| proof.push(Bytes::copy_from_slice(rlp));
        let (at, in_leaf) = (RecordPosition::root(&storage_root), slot_in_leaf(&hashed_slot));
        let value = walk(&mut records, at, &hashed_slot, Some(&mut keep), |_| true, in_leaf)?;
        storage.push(StorageProof { hashed_slot, value: value.unwrap_or_default(), proof });
    }
    Ok(AccountProof { account: found.map(|(account, _)| account), proof, storage })
}

type LeafResult<T> = Result<Result<T, Error>, record::Reason>;

fn account_in_leaf(key: &B256) -> impl Fn(&RecordLeaf<'_>) -> LeafResult<(Account, Version)> {
    |leaf| {
        let address = leaf.storage.ok_or("slot's leaf among the accounts")?;
        let account = match decode_account(key, leaf.value) {
            Ok(account) => account,
            Err(error) => return Ok(Err(error)),
        };
        check_storage(&account, address)?;
        Ok(Ok((account, Version { root: account.storage_root, address })))
    }
}

fn slot_in_leaf(key: &B256) -> impl Fn(&RecordLeaf<'_>) -> LeafResult<U256> {
    |leaf| match leaf.storage {
        None => Ok(decode_slot(key, leaf.value)),
        Some(_) => Err("account's leaf among the slots"),
    }
}

/// An account has the address of its storage exactly where it has a storage.
pub(crate) fn check_storage(account: &Account, address: NodeAddress) -> Result<(), record::Reason> {
    if (account.storage_root == EMPTY_ROOT_HASH) == address.is_none() {
        Ok(())
    } else {
        Err("storage root and the storage's address do not match")
    }
}

/// The next step of a walk.
enum WalkNext<T> {
    Record(NodeAddress),
    Done(Option<T>),
}

/// The address and the depth, in nibbles, of a record.
#[derive(Clone, Copy)]
struct RecordPosition {
    address: NodeAddress,
    depth: usize,
}

impl RecordPosition {
    fn root(version: &Version) -> Self {
        Self { address: version.address, depth: 0 }
    }
}

/// Receives the RLP of nodes.
type RlpSink<'a> = dyn FnMut(&[u8]) + 'a;

/// Follows `key` from a record. Hands the RLP of each node that is not embedded to `see`, where
/// that is given, and each record that it comes to to `pass`. Where `pass` says no it ends, with
/// nothing found.
fn walk<T>(
    records: &mut impl RecordReader,
    RecordPosition { mut address, mut depth }: RecordPosition,
    key: &B256,
    mut see: Option<&mut RlpSink<'_>>,
    mut pass: impl FnMut(RecordPosition) -> bool,
    in_leaf: impl Fn(&RecordLeaf<'_>) -> LeafResult<T>,
) -> Result<Option<T>, Error> {
    while !address.is_none() {
        let step = records.read(address, |record| {
            match &mut see {
                // If the RLP is not needed, it need not be fetched from memory.
                None if depth < KEY_NIBBLES => {
                    if let Some(next) = record::branch_child(record, nibble(key, depth)) {
                        depth += 1;
                        return Ok(WalkNext::Record(next));
                    }
                }
                None => {}
                Some(see) => see(record::parse(record)?.rlp()),
            }
            within(record::parse(record)?, key, &mut depth, &in_leaf)
        })?;
        match step.map_err(|reason| Error::MalformedRecord { address, reason })? {
            WalkNext::Record(next) => {
                address = next;
                if !pass(RecordPosition { address, depth }) {
                    return Ok(None);
                }
            }
            WalkNext::Done(None) => return Ok(None),
            WalkNext::Done(Some(found)) => return found.map(Some),
        }
    }
    Ok(None)
}

/// Follows `key` through a node and the nodes embedded in it.
fn within<T>(
    mut node: RecordNode<'_>,
    key: &B256,
    depth: &mut usize,
    in_leaf: impl Fn(&RecordLeaf<'_>) -> LeafResult<T>,
) -> Result<WalkNext<Result<T, Error>>, record::Reason> {
    loop {
        let child = match node {
            RecordNode::Leaf(leaf) if leaf.path.matches(key, *depth) => {
                return in_leaf(&leaf).map(|found| WalkNext::Done(Some(found)));
            }
            RecordNode::Leaf(_) => return Ok(WalkNext::Done(None)),
            RecordNode::Extension(extension) if extension.path.matches(key, *depth) => {
                *depth += extension.path.len();
                extension.child
            }
            RecordNode::Extension(_) => return Ok(WalkNext::Done(None)),
            RecordNode::Branch(branch) => {
                let child = branch.child(nibble_at(key, *depth)?)?;
                *depth += 1;
                child
            }
        };
        node = match child {
            RecordChild::Empty => return Ok(WalkNext::Done(None)),
            RecordChild::Record { address, .. } => return Ok(WalkNext::Record(address)),
            RecordChild::Embedded(rlp) => record::parse_embedded(rlp)?,
        };
    }
}

fn nibble_at(key: &B256, depth: usize) -> Result<usize, record::Reason> {
    if depth < KEY_NIBBLES { Ok(nibble(key, depth)) } else { Err("branch below the end of a key") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AccountInfo;
    use crate::bulk::StateBuilder;
    use crate::versioned::MemoryRecords;
    use alloy_primitives::KECCAK256_EMPTY;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::collections::{BTreeSet, HashMap};

    /// Keys that share their first nibbles in all ways: with many others, with one, with none.
    fn keys(rng: &mut StdRng, count: usize) -> BTreeSet<B256> {
        let mut key = || {
            let mut key = B256::ZERO;
            let shared = rng.random_range(0..4);
            rng.fill(&mut key[shared..]);
            key
        };
        (0..count).map(|_| key()).collect()
    }

    #[test]
    fn shortcuts_lead_where_the_root_does() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        for count in [1, 2, 20, 300, 20_000] {
            let mut records = MemoryRecords::spread_out();
            let mut builder = StateBuilder::new(&mut records);
            let owner = B256::repeat_byte(1);
            let info = AccountInfo { nonce: 1, balance: U256::ZERO, code_hash: KECCAK256_EMPTY };
            builder.account(owner, info).unwrap();
            let there = keys(rng, count);
            for key in &there {
                builder.slot(*key, U256::from_be_slice(&key[24..]) | U256::ONE).unwrap();
            }
            let version = builder.finish();
            let (_, storage) = account(&records, &version, &owner).unwrap().unwrap();
            let mut before = HashMap::new();
            // The second one has what the first one has read.
            for _ in 0..2 {
                let mut shortcuts = Shortcuts::new(storage);
                for key in there.iter().copied().chain(keys(rng, count)) {
                    let expected = slot(&records, &storage, &key).unwrap();
                    // The second time it goes by what the first one has found.
                    for _ in 0..2 {
                        let earlier = before.get(&key).copied();
                        let read = shortcuts.slot(&records, &key, earlier).unwrap();
                        assert_eq!(read.value, expected, "{key}");
                        before.insert(key, read);
                    }
                }
            }
        }
    }
}
