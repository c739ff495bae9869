use super::{
    NodeAddress, RecordReader, Records, Version,
    key::{KEY_NIBBLES, nibble},
    record::{self, Child, Leaf, Node},
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
pub fn account<R: Records + ?Sized>(
    records: &R,
    version: &Version,
    hashed_address: &B256,
) -> Result<Option<(Account, Version)>, Error> {
    let (at, in_leaf) = (Start::root(version), account_in_leaf(hashed_address));
    walk(&mut &*records, at, hashed_address, None, |_, _| {}, in_leaf)
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
    slot_with(&mut &*records, storage, hashed_slot)
}

/// As [`slot`], by a reader.
///
/// # Errors
/// See [`account`].
pub fn slot_with(
    records: &mut impl RecordReader,
    storage: &Version,
    hashed_slot: &B256,
) -> Result<U256, Error> {
    let (at, in_leaf) = (Start::root(storage), slot_in_leaf(hashed_slot));
    let value = walk(records, at, hashed_slot, None, |_, _| {}, in_leaf)?;
    Ok(value.unwrap_or_default())
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
        hashed_address: &B256,
    ) -> Result<Option<(Account, Version)>, Error> {
        self.walk(records, hashed_address, account_in_leaf(hashed_address))
    }

    /// As [`slot`](self::slot).
    ///
    /// # Errors
    /// See there.
    pub fn slot(
        &mut self,
        records: &mut impl RecordReader,
        hashed_slot: &B256,
    ) -> Result<U256, Error> {
        let value = self.walk(records, hashed_slot, slot_in_leaf(hashed_slot))?;
        Ok(value.unwrap_or_default())
    }

    fn walk<T>(
        &mut self,
        records: &mut impl RecordReader,
        key: &B256,
        in_leaf: impl Fn(&Leaf<'_>) -> InLeaf<T>,
    ) -> Result<Option<T>, Error> {
        let (two, three) = (usize::from(key[0]), usize::from(key[0]) << 4 | nibble(key, 2));
        let start = match (self.three[three], self.two[two]) {
            (address, _) if !address.is_none() => Start { address, depth: 3 },
            (_, address) if !address.is_none() => Start { address, depth: 2 },
            _ => Start::root(&self.version),
        };
        let pass = |depth, address| match depth {
            2 => self.two[two] = address,
            3 => self.three[three] = address,
            _ => {}
        };
        walk(records, start, key, None, pass, in_leaf)
    }
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
    let (mut records, at) = (records, Start::root(version));
    let found = walk(&mut records, at, hashed_address, Some(&mut keep), |_, _| {}, in_leaf)?;
    let proof = mem::take(&mut proof);
    let storage_root = found.map_or(Version::EMPTY, |(_, storage)| storage);
    let mut storage = Vec::with_capacity(hashed_slots.len());
    for &hashed_slot in hashed_slots {
        let mut proof = Vec::new();
        let mut keep = |rlp: &[u8]| proof.push(Bytes::copy_from_slice(rlp));
        let (at, in_leaf) = (Start::root(&storage_root), slot_in_leaf(&hashed_slot));
        let value = walk(&mut records, at, &hashed_slot, Some(&mut keep), |_, _| {}, in_leaf)?;
        storage.push(StorageProof { hashed_slot, value: value.unwrap_or_default(), proof });
    }
    Ok(AccountProof { account: found.map(|(account, _)| account), proof, storage })
}

type InLeaf<T> = Result<Result<T, Error>, record::Reason>;

fn account_in_leaf(key: &B256) -> impl Fn(&Leaf<'_>) -> InLeaf<(Account, Version)> {
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

fn slot_in_leaf(key: &B256) -> impl Fn(&Leaf<'_>) -> InLeaf<U256> {
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

/// Where a walk goes on.
enum Step<T> {
    Record(NodeAddress),
    Done(Option<T>),
}

/// A record, and how many nibbles of a key lead to it.
#[derive(Clone, Copy)]
struct Start {
    address: NodeAddress,
    depth: usize,
}

impl Start {
    fn root(version: &Version) -> Self {
        Self { address: version.address, depth: 0 }
    }
}

/// Is handed the RLP of nodes.
type See<'a> = dyn FnMut(&[u8]) + 'a;

/// Follows `key` from a record and hands over the RLP of each node that is not embedded to `see`,
/// if somebody wants it, and the place of each record that it comes to to `pass`, with its depth.
fn walk<T>(
    records: &mut impl RecordReader,
    Start { mut address, mut depth }: Start,
    key: &B256,
    mut see: Option<&mut See<'_>>,
    mut pass: impl FnMut(usize, NodeAddress),
    in_leaf: impl Fn(&Leaf<'_>) -> InLeaf<T>,
) -> Result<Option<T>, Error> {
    while !address.is_none() {
        let step = records.read(address, |record| {
            match &mut see {
                // Where the RLP is not wanted, it need not be fetched from memory.
                None if depth < KEY_NIBBLES => {
                    if let Some(next) = record::branch_child(record, nibble(key, depth)) {
                        depth += 1;
                        return Ok(Step::Record(next));
                    }
                }
                None => {}
                Some(see) => see(record::parse(record)?.rlp()),
            }
            within(record::parse(record)?, key, &mut depth, &in_leaf)
        })?;
        match step.map_err(|reason| Error::MalformedRecord { address, reason })? {
            Step::Record(next) => {
                address = next;
                pass(depth, next);
            }
            Step::Done(None) => return Ok(None),
            Step::Done(Some(found)) => return found.map(Some),
        }
    }
    Ok(None)
}

/// Follows `key` through a node and what is embedded in it.
fn within<T>(
    mut node: Node<'_>,
    key: &B256,
    depth: &mut usize,
    in_leaf: impl Fn(&Leaf<'_>) -> InLeaf<T>,
) -> Result<Step<Result<T, Error>>, record::Reason> {
    loop {
        let child = match node {
            Node::Leaf(leaf) if leaf.path.matches(key, *depth) => {
                return in_leaf(&leaf).map(|found| Step::Done(Some(found)));
            }
            Node::Leaf(_) => return Ok(Step::Done(None)),
            Node::Extension(extension) if extension.path.matches(key, *depth) => {
                *depth += extension.path.len();
                extension.child
            }
            Node::Extension(_) => return Ok(Step::Done(None)),
            Node::Branch(branch) => {
                let child = branch.child(nibble_at(key, *depth)?)?;
                *depth += 1;
                child
            }
        };
        node = match child {
            Child::Empty => return Ok(Step::Done(None)),
            Child::Record { address, .. } => return Ok(Step::Record(address)),
            Child::Embedded(rlp) => record::parse_embedded(rlp)?,
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
            let mut records = MemoryRecords::default();
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
            let mut shortcuts = Shortcuts::new(storage);
            for key in there.into_iter().chain(keys(rng, count)) {
                let expected = slot(&records, &storage, &key);
                assert_eq!(shortcuts.slot(&mut &records, &key), expected, "{key}");
                assert_eq!(shortcuts.slot(&mut &records, &key), expected, "{key} again");
            }
        }
    }
}
