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
use std::{fmt, mem};

/// An account as a version has it, with its storage; `None` where the version proves that there
/// is no such account.
///
/// # Errors
/// [`Error::Record`] and [`Error::MalformedRecord`] where the store is damaged, and
/// [`Error::MalformedValue`].
pub fn account<R: Records + ?Sized>(
    records: &R,
    version: &Version,
    hashed_address: &B256,
) -> Result<Option<(Account, Version)>, Error> {
    let (at, in_leaf) = (RecordPosition::root(version), account_in_leaf(hashed_address));
    walk(&mut &*records, at, hashed_address, None, |at| at, in_leaf)
}

/// The value of a slot in a version of a storage, zero if it is not set.
///
/// # Errors
/// See [`account`].
pub fn slot<R: Records + ?Sized>(
    records: &R,
    storage: &Version,
    hashed_slot: &B256,
) -> Result<U256, Error> {
    let (at, in_leaf) = (RecordPosition::root(storage), slot_in_leaf(hashed_slot));
    let value = walk(&mut &*records, at, hashed_slot, None, |at| at, in_leaf)?;
    Ok(value.unwrap_or_default())
}

/// As [`slot`], by a reader that remembers paths, and what an earlier read of the slot gave.
///
/// # Errors
/// See [`account`].
pub fn slot_with(
    records: &mut impl RecordReader,
    paths: &mut PathCache,
    storage: &Version,
    hashed_slot: &B256,
    before: Option<SlotRead>,
) -> Result<SlotRead, Error> {
    paths.slot(records, RecordPosition::root(storage), 0, hashed_slot, |_| {}, before)
}

/// The value of a slot, zero if it is not set, and a record on the way to it: wherever the slot's
/// way leads past the same record, in whatever version, it has the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRead {
    /// The record's place; none if the way was too short to have one.
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
        records: &mut impl RecordReader,
        paths: &mut PathCache,
        hashed_address: &B256,
    ) -> Result<Option<(Account, Version)>, Error> {
        let (start, pass) = self.start(hashed_address);
        let in_leaf = account_in_leaf(hashed_address);
        let from = (SHORTCUT_NIBBLES, NodeAddress::NONE);
        paths.walk(records, start, from, hashed_address, pass, in_leaf)
    }

    /// As [`slot_with`].
    ///
    /// # Errors
    /// See there.
    pub fn slot(
        &mut self,
        records: &mut impl RecordReader,
        paths: &mut PathCache,
        hashed_slot: &B256,
        before: Option<SlotRead>,
    ) -> Result<SlotRead, Error> {
        let (start, pass) = self.start(hashed_slot);
        paths.slot(records, start, SHORTCUT_NIBBLES, hashed_slot, pass, before)
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

/// Where walks have ended, by the record at which they began and the nibbles that they followed
/// from there: another walk from the same record along the same nibbles goes on where they lead,
/// whatever version or block it is for, since a record never changes.
///
/// A block that changes something leaves new records on the way from the root, and all that was
/// known to lie below the old ones is not found any more; so walks begin as deep as they can.
///
/// The default one takes nothing in.
#[derive(Default)]
pub struct PathCache {
    /// Sets of a line of the processor's caches, the entry used last comes first.
    sets: Box<[[CachedPath; PATHS]]>,
}

/// From the highest bits on: 48 of the address where the path begins, 24 of six nibbles, 8 of its
/// length in nibbles, which is at most six, 48 of the address where it ends.
type CachedPath = u128;

/// Paths of a set.
const PATHS: usize = 4;

/// Nibbles of a path, at most: it is known by them.
const PATH_NIBBLES: usize = 6;

/// The bits of a path below those that it is found by.
const PATH_NAME_SHIFT: u32 = 56;

impl PathCache {
    /// An empty cache of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let sets_count = (bytes / size_of::<[CachedPath; PATHS]>()).max(1);
        Self { sets: vec![[0; PATHS]; sets_count].into() }
    }

    /// As [`walk`], and past what a path leads past, which begins `from` nibbles below the root. A
    /// walk that gets to `goal` there ends.
    fn walk<T>(
        &mut self,
        records: &mut impl RecordReader,
        start: RecordPosition,
        (from, goal): (usize, NodeAddress),
        key: &B256,
        mut pass: impl FnMut(RecordPosition),
        in_leaf: impl Fn(&RecordLeaf<'_>) -> LeafResult<T>,
    ) -> Result<Option<T>, Error> {
        let (mut name, mut end) = (None, None);
        let mut pass = |at: RecordPosition| {
            pass(at);
            if at.depth == from {
                if at.address == goal {
                    return RecordPosition { address: NodeAddress::NONE, ..at };
                }
                let begun = path_name(at, key);
                name = Some(begun);
                return self.find(begun, from).unwrap_or(at);
            }
            if name.is_some() && at.depth <= from + PATH_NIBBLES {
                end = Some(at);
            }
            at
        };
        let start = pass(start);
        let found = walk(records, start, key, None, pass, in_leaf)?;
        if let (Some(name), Some(end)) = (name, end) {
            self.insert(
                name | ((end.depth - from) as CachedPath) << 48
                    | CachedPath::from(end.address.offset()),
            );
        }
        Ok(found)
    }

    /// Reads a slot, and remembers the record `from` nibbles below the root.
    fn slot(
        &mut self,
        records: &mut impl RecordReader,
        start: RecordPosition,
        from: usize,
        hashed_slot: &B256,
        mut pass: impl FnMut(RecordPosition),
        before: Option<SlotRead>,
    ) -> Result<SlotRead, Error> {
        let goal = before.map_or(NodeAddress::NONE, |before| before.past);
        let mut past = NodeAddress::NONE;
        let pass = |at: RecordPosition| {
            if at.depth == from {
                past = at.address;
            }
            pass(at);
        };
        let in_leaf = slot_in_leaf(hashed_slot);
        let value = self.walk(records, start, (from, goal), hashed_slot, pass, in_leaf)?;
        Ok(match before {
            Some(before) if before.past == past && !past.is_none() => before,
            _ => SlotRead { past, value: value.unwrap_or_default() },
        })
    }

    fn find(&mut self, name: CachedPath, from: usize) -> Option<RecordPosition> {
        let set = self.set(name)?;
        let place =
            set.iter().position(|path| path >> PATH_NAME_SHIFT == name >> PATH_NAME_SHIFT)?;
        set[..=place].rotate_right(1);
        let length = (set[0] >> 48) as u8;
        let address = NodeAddress::new(set[0] as u64 & ((1 << 48) - 1));
        Some(RecordPosition { address, depth: from + usize::from(length) })
    }

    fn insert(&mut self, path: CachedPath) {
        if let Some(set) = self.set(path) {
            set.rotate_right(1);
            set[0] = path;
        }
    }

    fn set(&mut self, name: CachedPath) -> Option<&mut [CachedPath; PATHS]> {
        let (address, nibbles) =
            ((name >> 80) as u64, (name >> PATH_NAME_SHIFT) as u64 & 0xff_ffff);
        // A multiplier without a pattern; the upper digits of the product depend on all below.
        let hash = (address ^ nibbles << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let place = (u128::from(hash) * self.sets.len() as u128) >> 64;
        self.sets.get_mut(place as usize)
    }
}

impl fmt::Debug for PathCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathCache").field("sets", &self.sets.len()).finish_non_exhaustive()
    }
}

/// The part of a [`CachedPath`] that it is found by.
fn path_name(at: RecordPosition, key: &B256) -> CachedPath {
    let bytes = key[at.depth / 2..].first_chunk().expect("paths begin in the upper half of a key");
    let nibbles = u32::from_be_bytes(*bytes) << (4 * (at.depth % 2)) >> 8;
    CachedPath::from(at.address.offset()) << 80 | CachedPath::from(nibbles) << PATH_NAME_SHIFT
}

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
    let found = walk(&mut records, at, hashed_address, Some(&mut keep), |at| at, in_leaf)?;
    let proof = mem::take(&mut proof);
    let storage_root = found.map_or(Version::EMPTY, |(_, storage)| storage);
    let mut storage = Vec::with_capacity(hashed_slots.len());
    for &hashed_slot in hashed_slots {
        let mut proof = Vec::new();
        let mut keep = |rlp: &[u8]| proof.push(Bytes::copy_from_slice(rlp));
        let (at, in_leaf) = (RecordPosition::root(&storage_root), slot_in_leaf(&hashed_slot));
        let value = walk(&mut records, at, &hashed_slot, Some(&mut keep), |at| at, in_leaf)?;
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

/// Follows `key` from a record. Calls `see`, if given, with the RLP of each node that is not
/// embedded, and `pass` with each record on the way, which returns the record to continue at.
fn walk<T>(
    records: &mut impl RecordReader,
    RecordPosition { mut address, mut depth }: RecordPosition,
    key: &B256,
    mut see: Option<&mut RlpSink<'_>>,
    mut pass: impl FnMut(RecordPosition) -> RecordPosition,
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
                RecordPosition { address, depth } = pass(RecordPosition { address: next, depth })
            }
            WalkNext::Done(None) => return Ok(None),
            WalkNext::Done(Some(found)) => return found.map(Some),
        }
    }
    Ok(None)
}

/// Follows `key` through a node and what is embedded in it.
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
    use std::collections::BTreeSet;

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
        let seed = rand::random();
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
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
            for bytes in [0, 640, 1 << 20] {
                let paths = &mut PathCache::new(bytes);
                // The second one finds the paths of the first.
                for _ in 0..2 {
                    let mut shortcuts = Shortcuts::new(storage);
                    for key in there.iter().copied().chain(keys(rng, count)) {
                        let expected = slot(&records, &storage, &key).unwrap();
                        let found = slot_with(&mut &records, paths, &storage, &key, None).unwrap();
                        assert_eq!((found.past, found.value), (storage.address, expected), "{key}");
                        let mut before = Some(found);
                        for _ in 0..2 {
                            let found = shortcuts.slot(&mut &records, paths, &key, before);
                            assert_eq!(found.as_ref().unwrap().value, expected, "{key}");
                            before = found.ok();
                        }
                    }
                }
            }
        }
    }
}
