//! Building a whole state from sorted accounts and slots, in little memory.
//!
//! ```
//! use alloy_primitives::{B256, KECCAK256_EMPTY, U256};
//! use deponent_trie::{AccountInfo, bulk::StateBuilder, versioned::{self, MemoryRecords}};
//!
//! let mut records = MemoryRecords::default();
//! let mut builder = StateBuilder::new(&mut records);
//! let (address, slot) = (B256::repeat_byte(1), B256::repeat_byte(2));
//! let info = AccountInfo { nonce: 1, balance: U256::ZERO, code_hash: KECCAK256_EMPTY };
//! builder.account(address, info)?;
//! builder.slot(slot, U256::from(3))?;
//! let version = builder.finish();
//!
//! let (account, storage) = versioned::account(&records, &version, &address).unwrap().unwrap();
//! assert_eq!(account.nonce, 1);
//! assert_eq!(versioned::slot(&records, &storage, &slot), Ok(U256::from(3)));
//! # Ok::<(), deponent_trie::bulk::OrderError>(())
//! ```

use crate::{
    Account, AccountInfo,
    keccak::keccak256_many,
    versioned::{
        NodeAddress, RecordSink, Version,
        key::{KEY_NIBBLES, hex_prefix, nibble, shared_nibbles},
        record::{NO_CHILD, begin_account_leaf, begin_branch, begin_extension, begin_slot_leaf},
    },
};
use alloy_primitives::{B256, U256, keccak256};
use alloy_rlp::{Encodable, Header};

mod spine;

pub use spine::SpineError;

#[cfg(test)]
mod tests;

/// Why an account or a slot was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The key is not above that of the account, or of the slot of the same account, before it.
    #[error("key {got} does not come after {last}")]
    NotAscending {
        /// The hashed address, or the hashed slot.
        got: B256,
        /// The one before it.
        last: B256,
    },
    /// There is no account yet of which this could be a slot.
    #[error("slot {hashed_slot} comes before any account")]
    SlotWithoutAccount {
        /// The hashed slot.
        hashed_slot: B256,
    },
}

/// Builds a state from nothing, and writes its nodes as records, children before parents.
///
/// Accounts come in the order of their hashed addresses, each followed by its slots in the order
/// of their hashes. Memory holds the branches on the path of the last key, each with the RLP of
/// its children: less than a mebibyte, however large the state.
///
/// Where an account is known only after its slots, they are set by [`next_slot`](Self::next_slot),
/// and the account is added by [`end_storage`](Self::end_storage) and
/// [`whole_account`](Self::whole_account).
///
/// A call that fails changes nothing, and the builder can go on.
#[derive(Debug)]
pub struct StateBuilder<S> {
    sink: S,
    accounts: TrieBuilder,
    /// The last account's hashed address.
    last: Option<B256>,
    /// The last account, while its storage is not complete.
    account: Option<AccountInfo>,
    storage: TrieBuilder,
    /// The last slot of that account, whatever its value.
    slot: Option<B256>,
}

impl<S: RecordSink> StateBuilder<S> {
    /// A state without accounts. The records go to `sink`.
    pub fn new(sink: S) -> Self {
        Self {
            sink,
            accounts: TrieBuilder::default(),
            last: None,
            account: None,
            storage: TrieBuilder::default(),
            slot: None,
        }
    }

    /// Adds an account, as it is: whether one that is empty exists is for the caller to decide.
    ///
    /// # Errors
    /// If its key is not above the last account's.
    pub fn account(&mut self, hashed_address: B256, info: AccountInfo) -> Result<(), OrderError> {
        check_order(hashed_address, self.last)?;
        self.end_account();
        (self.last, self.account) = (Some(hashed_address), Some(info));
        Ok(())
    }

    /// Sets a slot of the last account. One with value zero is left out, since zero is the value
    /// of every slot that is not set; its place in the order is checked all the same.
    ///
    /// # Errors
    /// If its key is not above the last slot's, or there is no account.
    pub fn slot(&mut self, hashed_slot: B256, value: U256) -> Result<(), OrderError> {
        if self.account.is_none() {
            return Err(OrderError::SlotWithoutAccount { hashed_slot });
        }
        check_order(hashed_slot, self.slot)?;
        self.slot = Some(hashed_slot);
        if !value.is_zero() {
            self.storage.insert(hashed_slot, &value, None, &mut self.sink);
        }
        Ok(())
    }

    /// Sets a slot of the account that the next [`whole_account`](Self::whole_account) adds, as
    /// [`slot`](Self::slot) does.
    ///
    /// # Errors
    /// If its key is not above that of the slot before it.
    ///
    /// # Panics
    /// If an account that [`account`](Self::account) has added is still to end.
    pub fn next_slot(&mut self, hashed_slot: B256, value: U256) -> Result<(), OrderError> {
        assert!(self.account.is_none(), "the account before it has all its slots");
        check_order(hashed_slot, self.slot)?;
        self.slot = Some(hashed_slot);
        if !value.is_zero() {
            self.storage.insert(hashed_slot, &value, None, &mut self.sink);
        }
        Ok(())
    }

    /// Ends the slots of the account to come. Returns its storage, which is not in the state before
    /// [`whole_account`](Self::whole_account) puts it there.
    ///
    /// # Panics
    /// As [`next_slot`](Self::next_slot).
    pub fn end_storage(&mut self) -> Version {
        assert!(self.account.is_none(), "the account before it has all its slots");
        self.slot = None;
        self.storage.finish(&mut self.sink)
    }

    /// Adds an account with the storage that [`end_storage`](Self::end_storage) returned.
    ///
    /// # Errors
    /// If its key is not above the last account's.
    ///
    /// # Panics
    /// As [`next_slot`](Self::next_slot), and if slots have come since.
    pub fn whole_account(
        &mut self,
        hashed_address: B256,
        info: AccountInfo,
        storage: Version,
    ) -> Result<(), OrderError> {
        assert!(self.account.is_none() && self.slot.is_none(), "its storage has ended");
        check_order(hashed_address, self.last)?;
        self.last = Some(hashed_address);
        self.insert_account(hashed_address, info, storage);
        Ok(())
    }

    /// The hashed address of the last account.
    pub const fn last_account(&self) -> Option<B256> {
        self.last
    }

    /// The last slot of an account that has not ended, whatever its value.
    pub const fn last_slot(&self) -> Option<B256> {
        self.slot
    }

    /// The sink, between two entries.
    pub const fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Writes the remaining nodes. Returns the root hash of the state and the address of its
    /// record.
    pub fn finish(self) -> Version {
        self.end().0
    }

    /// As [`finish`](Self::finish); returns the sink too.
    pub fn end(mut self) -> (Version, S) {
        self.end_account();
        (self.accounts.finish(&mut self.sink), self.sink)
    }

    /// Ends the last account: it has all its slots. Adding the next account does so too. Returns
    /// the finished account; `None` if it has ended before or there is none.
    #[expect(clippy::missing_panics_doc, reason = "an account has a hash")]
    pub fn end_account(&mut self) -> Option<(B256, Account)> {
        self.slot = None;
        let info = self.account.take()?;
        let hashed_address = self.last.expect("there is an account");
        let storage = self.storage.finish(&mut self.sink);
        Some((hashed_address, self.insert_account(hashed_address, info, storage)))
    }

    fn insert_account(&mut self, key: B256, info: AccountInfo, storage: Version) -> Account {
        let AccountInfo { nonce, balance, code_hash } = info;
        let account = Account { nonce, balance, storage_root: storage.root, code_hash };
        self.accounts.insert(key, &account, Some(storage.address), &mut self.sink);
        account
    }
}

fn check_order(got: B256, last: Option<B256>) -> Result<(), OrderError> {
    match last {
        Some(last) if got <= last => Err(OrderError::NotAscending { got, last }),
        _ => Ok(()),
    }
}

/// Builds one trie from ascending keys.
#[derive(Debug, Default)]
struct TrieBuilder {
    /// The branches on the path of the last key that are certain to be there, from the root on.
    open: Vec<OpenBranch>,
    /// Branches that were written, kept for reuse of their memory.
    spare: Vec<OpenBranch>,
    /// The last key. The next key decides the depth of its leaf.
    last: Option<B256>,
    /// The value of the last key, as RLP.
    value: Vec<u8>,
    /// If the last key is an account's, the address of its storage's root.
    storage: Option<NodeAddress>,
    record: RecordBuilder,
}

/// A branch that may still get children.
#[derive(Debug, Default)]
struct OpenBranch {
    /// The depth of the branch, in nibbles.
    depth: usize,
    /// The addresses of the children so far, by nibble.
    addresses: [NodeAddress; 16],
    /// The end of each child's RLP in `rlp`, by nibble; 0 if there is no child.
    ends: [usize; 16],
    /// The RLP of the children so far. They are hashed together, once all are known.
    rlp: Vec<u8>,
    /// A bit for each child whose hash stands in `rlp` instead, as it will in the branch.
    hashed: u16,
}

/// A record under construction.
#[derive(Debug, Default)]
struct RecordBuilder {
    bytes: Vec<u8>,
    /// The start of the RLP.
    start: usize,
}

impl TrieBuilder {
    /// Adds a key above all before it.
    fn insert(
        &mut self,
        key: B256,
        value: &impl Encodable,
        storage: Option<NodeAddress>,
        sink: &mut impl RecordSink,
    ) {
        if let Some(last) = self.last {
            self.close_below(shared_nibbles(&last, &key), &last, sink);
        }
        self.last = Some(key);
        self.value.clear();
        value.encode(&mut self.value);
        self.storage = storage;
    }

    /// Writes the root and what else is left, and begins again with an empty trie.
    fn finish(&mut self, sink: &mut impl RecordSink) -> Version {
        let Some(last) = self.last.take() else { return Version::EMPTY };
        let address = match self.open.first().map(|root| root.depth) {
            None => self.record.leaf(&last, 0, &self.value, self.storage, sink),
            Some(depth) => {
                self.close_below(depth, &last, sink);
                let root = self.open.pop().expect("the one at this depth is left");
                let address = self.record.branch(&root, &last, 0, sink);
                self.spare.push(root);
                address
            }
        };
        assert!(!address.is_none(), "with keys of 32 bytes, no root is shorter than 32 bytes");
        Version { root: keccak256(self.record.rlp()), address }
    }

    /// Writes the leaf of the last key and all branches above it that are deeper than `depth`,
    /// and leaves open a branch at that depth, of which they are in the last child.
    fn close_below(&mut self, depth: usize, last: &B256, sink: &mut impl RecordSink) {
        let parent = self.open_at_least(depth);
        let from = self.open[parent].depth + 1;
        let address = self.record.leaf(last, from, &self.value, self.storage, sink);
        self.open[parent].push(last, address, self.record.rlp());
        while self.open.last().is_some_and(|branch| branch.depth > depth) {
            let branch = self.open.pop().expect("it was there");
            let parent = self.open_at_least(depth);
            let from = self.open[parent].depth + 1;
            let address = self.record.branch(&branch, last, from, sink);
            self.open[parent].push(last, address, self.record.rlp());
            self.spare.push(branch);
        }
    }

    /// The index of the deepest branch, a new one at `depth` if all are above that.
    fn open_at_least(&mut self, depth: usize) -> usize {
        if self.open.last().is_none_or(|branch| branch.depth < depth) {
            let mut branch = self.spare.pop().unwrap_or_default();
            branch.depth = depth;
            branch.addresses = [NodeAddress::NONE; 16];
            branch.ends = [0; 16];
            branch.rlp.clear();
            branch.hashed = 0;
            self.open.push(branch);
        }
        self.open.len() - 1
    }
}

impl OpenBranch {
    /// Adds the child that is on the path of `key`.
    fn push(&mut self, key: &B256, address: NodeAddress, rlp: &[u8]) {
        let nibble = nibble(key, self.depth);
        self.rlp.extend_from_slice(rlp);
        self.addresses[nibble] = address;
        self.ends[nibble] = self.rlp.len();
    }

    /// The RLP of each child, empty where there is none.
    fn children(&self) -> [&[u8]; 16] {
        let mut start = 0;
        self.ends.map(|end| {
            let rlp = self.rlp.get(start..end).unwrap_or_default();
            start = start.max(end);
            rlp
        })
    }
}

impl RecordBuilder {
    fn rlp(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Writes a leaf with the path of `key` from nibble `from` on.
    fn leaf(
        &mut self,
        key: &B256,
        from: usize,
        value: &[u8],
        storage: Option<NodeAddress>,
        sink: &mut impl RecordSink,
    ) -> NodeAddress {
        match storage {
            Some(storage) => begin_account_leaf(&mut self.bytes, storage),
            None => begin_slot_leaf(&mut self.bytes),
        }
        let (path, path_bytes) = hex_prefix(key, from, KEY_NIBBLES, true);
        let path = &path[..path_bytes];
        self.begin_list(path.length() + value.length());
        path.encode(&mut self.bytes);
        value.encode(&mut self.bytes);
        self.append(sink)
    }

    /// Writes a branch, and above it an extension if it is deeper than `from`.
    fn branch(
        &mut self,
        branch: &OpenBranch,
        key: &B256,
        from: usize,
        sink: &mut impl RecordSink,
    ) -> NodeAddress {
        let children = branch.children();
        let hashes = hashes(&children, branch.hashed);
        let lengths = children.iter().map(|child| match child.len() {
            0 => 1,
            embedded @ 1..32 => embedded,
            _ => 33,
        });
        begin_branch(&mut self.bytes, &branch.addresses);
        self.begin_list(lengths.sum::<usize>() + 1);
        for (nibble, (child, hash)) in children.iter().zip(&hashes).enumerate() {
            match child.len() {
                0 => self.bytes.push(NO_CHILD),
                1..32 => self.bytes.extend_from_slice(child),
                _ if branch.hashed >> nibble & 1 == 1 => self.bytes.extend_from_slice(child),
                _ => hash.encode(&mut self.bytes),
            }
        }
        self.bytes.push(NO_CHILD);
        let address = self.append(sink);
        if branch.depth > from {
            self.extension(key, from, branch.depth, address, sink)
        } else {
            address
        }
    }

    /// Writes an extension to the branch at `to`, which is the node written last.
    fn extension(
        &mut self,
        key: &B256,
        from: usize,
        to: usize,
        child: NodeAddress,
        sink: &mut impl RecordSink,
    ) -> NodeAddress {
        let mut reference = Vec::with_capacity(33);
        match self.rlp() {
            embedded if embedded.len() < 32 => reference.extend_from_slice(embedded),
            rlp => keccak256(rlp).encode(&mut reference),
        }
        begin_extension(&mut self.bytes, child);
        let (path, path_bytes) = hex_prefix(key, from, to, false);
        let path = &path[..path_bytes];
        self.begin_list(path.length() + reference.len());
        path.encode(&mut self.bytes);
        self.bytes.extend_from_slice(&reference);
        self.append(sink)
    }

    /// Begins the RLP.
    fn begin_list(&mut self, payload_length: usize) {
        self.start = self.bytes.len();
        Header { list: true, payload_length }.encode(&mut self.bytes);
    }

    /// Hands the record over, unless the node is to be embedded in its parent.
    fn append(&mut self, sink: &mut impl RecordSink) -> NodeAddress {
        if self.rlp().len() < 32 {
            return NodeAddress::NONE;
        }
        let address = sink.append(&self.bytes);
        assert!(!address.is_none(), "a record stands somewhere");
        address
    }
}

/// The hashes of the children that are not embedded and not hashed yet; those of the others are
/// zero.
fn hashes(children: &[&[u8]; 16], hashed: u16) -> [B256; 16] {
    let mut nibbles = [0; 16];
    let mut inputs: [&[u8]; 16] = [&[]; 16];
    let mut count = 0;
    for (nibble, child) in children.iter().enumerate() {
        if child.len() < 32 || hashed >> nibble & 1 == 1 {
            continue;
        }
        (nibbles[count], inputs[count]) = (nibble, *child);
        count += 1;
    }
    let mut found = [B256::ZERO; 16];
    keccak256_many(&inputs[..count], &mut found[..count]);
    let mut hashes = [B256::ZERO; 16];
    for (&nibble, hash) in nibbles.iter().zip(&found[..count]) {
        hashes[nibble] = *hash;
    }
    hashes
}
