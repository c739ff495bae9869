use super::{
    NodeAddress, Records, Version,
    key::nibble,
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
    walk(records, version.address, hashed_address, |_| {}, account_in_leaf(hashed_address))
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
    let value = walk(records, storage.address, hashed_slot, |_| {}, slot_in_leaf(hashed_slot))?;
    Ok(value.unwrap_or_default())
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
    let found = walk(records, version.address, hashed_address, &mut keep, in_leaf)?;
    let proof = mem::take(&mut proof);
    let storage_root = found.map_or(NodeAddress::NONE, |(_, storage)| storage.address);
    let mut storage = Vec::with_capacity(hashed_slots.len());
    for &hashed_slot in hashed_slots {
        let mut proof = Vec::new();
        let keep = |rlp: &[u8]| proof.push(Bytes::copy_from_slice(rlp));
        let value = walk(records, storage_root, &hashed_slot, keep, slot_in_leaf(&hashed_slot))?;
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

/// Follows `key` from the record at `address` and hands over the RLP of each node that is not
/// embedded.
fn walk<R: Records + ?Sized, T>(
    records: &R,
    mut address: NodeAddress,
    key: &B256,
    mut see: impl FnMut(&[u8]),
    in_leaf: impl Fn(&Leaf<'_>) -> InLeaf<T>,
) -> Result<Option<T>, Error> {
    let mut depth = 0;
    while !address.is_none() {
        let record = records.record(address)?;
        let malformed = |reason| Error::MalformedRecord { address, reason };
        let node = record::parse(record.as_ref()).map_err(malformed)?;
        see(node.rlp());
        let step = within(node, key, &mut depth, &in_leaf).map_err(malformed)?;
        match step {
            Step::Record(next) => address = next,
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
    if depth < super::key::KEY_NIBBLES {
        Ok(nibble(key, depth))
    } else {
        Err("branch below the end of a key")
    }
}
