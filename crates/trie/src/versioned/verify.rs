use super::{
    NodeAddress, Records, Version,
    hash::bits,
    record::{self, RecordChild, RecordNode},
};
use crate::{Account, EMPTY_ROOT_HASH, Error};
use alloy_primitives::{B256, keccak256};

/// Reads every node of a version, its storages included, and checks that each hashes to what the
/// node above it says. Returns the number of nodes; `progress` receives now and then the number
/// read so far, and about which fraction of the whole that is, from 0 to 1.
///
/// # Errors
/// [`Error::Record`], [`Error::MalformedRecord`] and [`Error::HashMismatch`] where the store is
/// damaged.
pub fn verify<R: Records + ?Sized>(
    records: &R,
    version: &Version,
    progress: &mut dyn FnMut(u64, f64),
) -> Result<u64, Error> {
    let mut walk = VerifyWalk { records, nodes_count: 0, progress };
    walk.root(version.address, &version.root, true, KeyShare { before: 0.0, size: 1.0 })?;
    Ok(walk.nodes_count)
}

struct VerifyWalk<'a, R: ?Sized> {
    records: &'a R,
    nodes_count: u64,
    progress: &'a mut dyn FnMut(u64, f64),
}

/// The fraction of all keys below a node, and the fraction before it.
#[derive(Clone, Copy)]
struct KeyShare {
    before: f64,
    size: f64,
}

impl KeyShare {
    fn of_child(self, nibble: usize) -> Self {
        let size = self.size / 16.0;
        Self { before: self.before + nibble as f64 * size, size }
    }
}

impl<R: Records + ?Sized> VerifyWalk<'_, R> {
    fn root(
        &mut self,
        at: NodeAddress,
        hash: &B256,
        is_accounts: bool,
        share: KeyShare,
    ) -> Result<(), Error> {
        match at.is_none() {
            true if *hash == EMPTY_ROOT_HASH => Ok(()),
            true => Err(Error::HashMismatch { address: at, expected: *hash, got: EMPTY_ROOT_HASH }),
            false => self.node(at, hash, is_accounts, share),
        }
    }

    fn node(
        &mut self,
        at: NodeAddress,
        hash: &B256,
        is_accounts: bool,
        share: KeyShare,
    ) -> Result<(), Error> {
        let record = self.records.record(at)?;
        let malformed = |reason| Error::MalformedRecord { address: at, reason };
        let node = record::parse(record.as_ref()).map_err(malformed)?;
        let got = keccak256(node.rlp());
        if got != *hash {
            return Err(Error::HashMismatch { address: at, expected: *hash, got });
        }
        self.nodes_count += 1;
        if self.nodes_count.is_multiple_of(1 << 16) {
            (self.progress)(self.nodes_count, share.before);
        }
        match node {
            RecordNode::Branch(branch) => {
                branch.children().map_err(malformed)?;
                for nibble in bits(branch.records) {
                    let child = branch.child(nibble).map_err(malformed)?;
                    self.child(child, is_accounts, share.of_child(nibble))?;
                }
                Ok(())
            }
            RecordNode::Extension(extension) => self.child(extension.child, is_accounts, share),
            RecordNode::Leaf(leaf) if is_accounts => {
                let account = Account::from_rlp(leaf.value)
                    .map_err(|_| malformed("leaf whose value is no account"))?;
                let storage =
                    leaf.storage.ok_or_else(|| malformed("slot's leaf among the accounts"))?;
                self.root(storage, &account.storage_root, false, share)
            }
            RecordNode::Leaf(_) => Ok(()),
        }
    }

    fn child(
        &mut self,
        child: RecordChild<'_>,
        is_accounts: bool,
        share: KeyShare,
    ) -> Result<(), Error> {
        match child {
            RecordChild::Record { address, hash } => {
                self.node(address, &B256::from(*hash), is_accounts, share)
            }
            // Part of the node above, whose hash is right.
            RecordChild::Embedded(_) | RecordChild::Empty => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::StateBuilder;
    use crate::versioned::{MemoryRecords, RecordSink};
    use crate::{AccountInfo, Error};
    use alloy_primitives::U256;

    #[test]
    fn every_node_is_read_and_every_changed_one_found() {
        let mut records = MemoryRecords::default();
        let mut builder = StateBuilder::new(&mut records);
        for account in 0..40u8 {
            let info = AccountInfo {
                nonce: account.into(),
                balance: U256::from(1),
                code_hash: B256::repeat_byte(7),
            };
            builder.account(B256::repeat_byte(account), info).unwrap();
            for slot in 0..account % 4 {
                builder.slot(B256::repeat_byte(slot), U256::MAX).unwrap();
            }
        }
        let version = builder.finish();
        let count = records.end().offset() - 1;
        assert_eq!(verify(&records, &version, &mut |_, _| {}), Ok(count));
        for offset in 1..=count {
            let address = NodeAddress::new(offset);
            let record = records.record(address).unwrap();
            let mut changed = record.to_vec();
            *changed.last_mut().unwrap() ^= 1;
            records.replace(address, &changed);
            let error = verify(&records, &version, &mut |_, _| {}).unwrap_err();
            assert!(
                matches!(error, Error::HashMismatch { .. } | Error::MalformedRecord { .. }),
                "{error}"
            );
            records.replace(address, &record);
        }
        assert!(records.append(&[0]) > version.address);
    }

    /// The hash is over the RLP alone, and does not tell.
    #[test]
    fn a_branch_that_lost_a_record_is_found() {
        let mut records = MemoryRecords::default();
        let mut builder = StateBuilder::new(&mut records);
        for account in 0..3u8 {
            let info = AccountInfo { nonce: 1, balance: U256::ZERO, code_hash: B256::ZERO };
            builder.account(B256::repeat_byte(account << 4), info).unwrap();
        }
        let version = builder.finish();
        let mut record = records.record(version.address).unwrap().to_vec();
        // The kind, the mask, the addresses.
        assert_eq!(record[1..3], [0b111, 0]);
        record[1] = 0b110;
        record.drain(3..3 + NodeAddress::BYTES);
        records.replace(version.address, &record);
        let error = verify(&records, &version, &mut |_, _| {}).unwrap_err();
        assert!(matches!(error, Error::MalformedRecord { .. }), "{error}");
    }
}
