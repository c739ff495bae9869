use super::{
    NodeAddress, Records, Version,
    key::{KEY_NIBBLES, compare_prefixes, nibble, with_nibble},
    read::check_storage,
    record::{self, RecordChild, RecordLeaf, RecordNode},
};
use crate::{
    Account, Error,
    value::{decode_account, decode_slot},
};
use alloy_primitives::{B256, U256};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// Visits the accounts of a version in the order of their hashed addresses, from `start` on, until
/// `visit` breaks. Each comes with its storage.
///
/// # Errors
/// See [`account`](super::account).
pub fn accounts_from<R: Records + ?Sized>(
    records: &R,
    version: &Version,
    start: &B256,
    mut visit: impl FnMut(B256, Account, Version) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut visit = |key: B256, leaf: &RecordLeaf<'_>| -> Visited {
        let address = leaf.storage.ok_or("slot's leaf among the accounts")?;
        let account = match decode_account(&key, leaf.value) {
            Ok(account) => account,
            Err(error) => return Ok(Err(error)),
        };
        check_storage(&account, address)?;
        let storage = Version { root: account.storage_root, address };
        Ok(Ok(visit(key, account, storage)))
    };
    from(records, version, start, &mut visit)
}

/// Visits the slots of a storage in the order of their hashed keys, from `start` on, until `visit`
/// breaks.
///
/// # Errors
/// See [`account`](super::account).
pub fn slots_from<R: Records + ?Sized>(
    records: &R,
    storage: &Version,
    start: &B256,
    mut visit: impl FnMut(B256, U256) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut visit = |key: B256, leaf: &RecordLeaf<'_>| -> Visited {
        match leaf.storage {
            None => Ok(decode_slot(&key, leaf.value).map(|value| visit(key, value))),
            Some(_) => Err("account's leaf among the slots"),
        }
    };
    from(records, storage, start, &mut visit)
}

/// Visits the hashed addresses of the accounts of a version that another version does not have
/// like that, in order, until `visit` breaks. What both have in common is not read.
///
/// # Errors
/// See [`account`](super::account).
pub fn changed_accounts<R: Records + ?Sized>(
    records: &R,
    before: &Version,
    after: &Version,
    mut visit: impl FnMut(B256) -> ControlFlow<()>,
) -> Result<(), Error> {
    if before.root == after.root {
        return Ok(());
    }
    let mut visit = |key: B256, leaf: &RecordLeaf<'_>| -> Visited {
        let account = match decode_account(&key, leaf.value) {
            Ok(account) => account,
            Err(error) => return Ok(Err(error)),
        };
        let other = super::account(records, before, &key);
        Ok(other.map(|other| match other {
            Some((other, _)) if other == account => ControlFlow::Continue(()),
            _ => visit(key),
        }))
    };
    let mut enter = |at: Position, hash: Option<&[u8; 32]>| -> Result<bool, Error> {
        match hash {
            Some(hash) => Ok(hash_at(records, before, at)?.is_none_or(|other| other.0 != *hash)),
            None => Ok(true),
        }
    };
    walk(records, after, &mut enter, &mut visit)
}

fn from<R: Records + ?Sized>(
    records: &R,
    version: &Version,
    start: &B256,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let mut enter = |at: Position, _: Option<&[u8; 32]>| -> Result<bool, Error> {
        Ok(compare_prefixes(&at.key, start, at.depth) != Ordering::Less)
    };
    let mut visit = |key: B256, leaf: &RecordLeaf<'_>| -> Visited {
        match key < *start {
            true => Ok(Ok(ControlFlow::Continue(()))),
            false => visit(key, leaf),
        }
    };
    walk(records, version, &mut enter, &mut visit)
}

/// Whether to go on, or why a leaf or its record is damaged.
type Visited = Result<Result<ControlFlow<()>, Error>, record::Reason>;

/// Is called with each leaf and its key.
type Visit<'a> = dyn FnMut(B256, &RecordLeaf<'_>) -> Visited + 'a;

/// Tells whether to go on below a node, of which the hash is there if it has a record.
type Enter<'a> = dyn FnMut(Position, Option<&[u8; 32]>) -> Result<bool, Error> + 'a;

/// The first nibbles of a key.
#[derive(Clone, Copy)]
struct Position {
    key: B256,
    depth: usize,
}

fn walk<R: Records + ?Sized>(
    records: &R,
    version: &Version,
    enter: &mut Enter<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    if !version.address.is_none() {
        let at = Position { key: B256::ZERO, depth: 0 };
        let _ = RangeWalk { records, enter, visit }.record(version.address, at)?;
    }
    Ok(())
}

struct RangeWalk<'a, 'e, 'v, R: ?Sized> {
    records: &'a R,
    enter: &'a mut Enter<'e>,
    visit: &'a mut Visit<'v>,
}

impl<R: Records + ?Sized> RangeWalk<'_, '_, '_, R> {
    fn record(&mut self, address: NodeAddress, at: Position) -> Result<ControlFlow<()>, Error> {
        let record = self.records.record(address)?;
        let malformed = |reason| Error::MalformedRecord { address, reason };
        let node = record::parse(record.as_ref()).map_err(malformed)?;
        self.node(address, node, at)
    }

    /// Visits what is below a node, which stands in the record at `address`.
    fn node(
        &mut self,
        address: NodeAddress,
        node: RecordNode<'_>,
        at: Position,
    ) -> Result<ControlFlow<()>, Error> {
        let malformed = |reason| Error::MalformedRecord { address, reason };
        let too_deep = || malformed("path that is longer than a key");
        match node {
            RecordNode::Leaf(leaf) => {
                let key = leaf.path.write(at.key, at.depth).ok_or_else(too_deep)?;
                (self.visit)(key, &leaf).map_err(malformed)?
            }
            RecordNode::Extension(extension) => {
                let key = extension.path.write(at.key, at.depth).ok_or_else(too_deep)?;
                let at = Position { key, depth: at.depth + extension.path.len() };
                self.child(address, extension.child, at)
            }
            RecordNode::Branch(_) if at.depth >= KEY_NIBBLES => Err(too_deep()),
            RecordNode::Branch(branch) => {
                for nibble in 0..16 {
                    let key = with_nibble(at.key, at.depth, nibble);
                    let at = Position { key, depth: at.depth + 1 };
                    let child = branch.child(nibble).map_err(malformed)?;
                    if self.child(address, child, at)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    fn child(
        &mut self,
        parent: NodeAddress,
        child: RecordChild<'_>,
        at: Position,
    ) -> Result<ControlFlow<()>, Error> {
        let hash = match child {
            RecordChild::Empty => return Ok(ControlFlow::Continue(())),
            RecordChild::Record { hash, .. } => Some(hash),
            RecordChild::Embedded(_) => None,
        };
        if !(self.enter)(at, hash)? {
            return Ok(ControlFlow::Continue(()));
        }
        match child {
            RecordChild::Record { address, .. } => self.record(address, at),
            RecordChild::Embedded(rlp) => {
                let malformed = |reason| Error::MalformedRecord { address: parent, reason };
                self.node(parent, record::parse_embedded(rlp).map_err(malformed)?, at)
            }
            RecordChild::Empty => Ok(ControlFlow::Continue(())),
        }
    }
}

/// The hash of the node that a version has right behind these nibbles, if it has one there.
fn hash_at<R: Records + ?Sized>(
    records: &R,
    version: &Version,
    at: Position,
) -> Result<Option<B256>, Error> {
    let (mut address, mut depth, mut hash) = (version.address, 0, version.root);
    while depth < at.depth {
        if address.is_none() {
            return Ok(None);
        }
        let record = records.record(address)?;
        let malformed = |reason| Error::MalformedRecord { address, reason };
        let child = match record::parse(record.as_ref()).map_err(malformed)? {
            RecordNode::Leaf(_) => return Ok(None),
            RecordNode::Extension(extension) => {
                if !extension.path.matches(&at.key, depth) {
                    return Ok(None);
                }
                depth += extension.path.len();
                extension.child
            }
            RecordNode::Branch(branch) => {
                let child = branch.child(nibble(&at.key, depth)).map_err(malformed)?;
                depth += 1;
                child
            }
        };
        let RecordChild::Record { address: next, hash: of_child } = child else { return Ok(None) };
        (address, hash) = (next, B256::from(*of_child));
    }
    Ok((depth == at.depth).then_some(hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AccountInfo;
    use crate::bulk::StateBuilder;
    use crate::versioned::{MemoryRecords, account};
    use alloy_primitives::KECCAK256_EMPTY;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::collections::BTreeMap;

    /// Accounts by hashed address, with their slots.
    type World = BTreeMap<B256, (u64, BTreeMap<B256, U256>)>;

    /// A key that shares its first nibbles with others.
    fn key(rng: &mut StdRng) -> B256 {
        let mut key = B256::ZERO;
        let shared = rng.random_range(0..4);
        rng.fill(&mut key[shared..]);
        key
    }

    fn world(rng: &mut StdRng, count: usize) -> World {
        let mut account = || {
            let slots = rng.random_range(0..4) * rng.random_range(0..30);
            let slots = (0..slots).map(|_| (key(rng), U256::from(rng.random_range(1..300_u64))));
            let slots = slots.collect();
            (key(rng), (rng.random_range(1..9), slots))
        };
        (0..count).map(|_| account()).collect()
    }

    fn build(records: &mut MemoryRecords, world: &World) -> Version {
        let mut builder = StateBuilder::new(records);
        for (address, (nonce, slots)) in world {
            let balance = U256::from(1);
            let info = AccountInfo { nonce: *nonce, balance, code_hash: KECCAK256_EMPTY };
            builder.account(*address, info).unwrap();
            for (slot, value) in slots {
                builder.slot(*slot, *value).unwrap();
            }
        }
        builder.finish()
    }

    #[test]
    fn ranges_are_those_of_a_map() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        for count in [0, 1, 2, 20, 400] {
            let world = world(rng, count);
            let mut records = MemoryRecords::spread_out();
            let version = build(&mut records, &world);
            let there: Vec<_> = world.keys().copied().collect();
            let starts = there.iter().copied().chain((0..40).map(|_| key(rng)));
            let starts: Vec<_> =
                [B256::ZERO, B256::repeat_byte(0xff)].into_iter().chain(starts).collect();
            for start in starts.into_iter().take(90) {
                let most = rng.random_range(1..20);
                let mut found = Vec::new();
                accounts_from(&records, &version, &start, |key, account, storage| {
                    assert_eq!(storage.root, account.storage_root);
                    found.push((key, account.nonce));
                    if found.len() == most {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })
                .unwrap();
                let expected = world.range(start..).map(|(key, (nonce, _))| (*key, *nonce));
                assert_eq!(found, expected.take(most).collect::<Vec<_>>(), "{start}");
            }
            for (address, (_, slots)) in world.iter().take(50) {
                let (_, storage) = account(&records, &version, address).unwrap().unwrap();
                let start = key(rng);
                let mut found = Vec::new();
                slots_from(&records, &storage, &start, |key, value| {
                    found.push((key, value));
                    ControlFlow::Continue(())
                })
                .unwrap();
                let expected = slots.range(start..).map(|(key, value)| (*key, *value));
                assert_eq!(found, expected.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn changed_accounts_are_those_that_differ() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        for count in [1, 2, 20, 400] {
            let before = world(rng, count);
            let mut after = before.clone();
            for _ in 0..rng.random_range(0..1 + count / 4) {
                after.extend(world(rng, 1));
            }
            after.retain(|_, _| rng.random_range(0..9) > 0);
            for (nonce, slots) in after.values_mut() {
                match rng.random_range(0..12) {
                    0 => *nonce += 1,
                    1 => drop(slots.insert(key(rng), U256::from(7))),
                    _ => {}
                }
            }
            let mut records = MemoryRecords::spread_out();
            let versions = [build(&mut records, &before), build(&mut records, &after)];
            let mut found = Vec::new();
            changed_accounts(&records, &versions[0], &versions[1], |key| {
                found.push(key);
                ControlFlow::Continue(())
            })
            .unwrap();
            let changed = after.iter().filter(|(key, account)| before.get(*key) != Some(account));
            assert_eq!(found, changed.map(|(key, _)| *key).collect::<Vec<_>>());
        }
    }
}
