//! The part of a [`StateBuilder`] that its records do not have: the branches on the path of the
//! last key, with the hashes of their children. With it and the records the building goes on.
//!
//! It is a version (1 byte), then the last account, the last slot, the trie of accounts and that of
//! the slots. A key is a flag (1 byte) and its 32 bytes. A trie is its last key; where there is
//! one, the value's length (1) and RLP, a flag (1) and the address of the account's storage (6);
//! then the number of open branches (1) and each of these: its depth (1), the bits of its children
//! (2, big-endian), and for each child its address (6), the length of its reference (1) and that.

use super::{OpenBranch, RecordSink, StateBuilder, TrieBuilder, hashes};
use crate::versioned::{NodeAddress, key::KEY_NIBBLES};
use alloy_primitives::B256;
use alloy_rlp::Encodable;

const VERSION: u8 = 1;

/// The bytes of a child's hash as it stands in a branch.
const HASH_BYTES: usize = 33;

/// Bytes are not a spine that this version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state of an unfinished build is not one that this version has written")]
pub struct SpineError;

impl<S: RecordSink> StateBuilder<S> {
    /// The most bytes of a [`spine`](Self::spine): two tries, each with a branch at every depth.
    pub const MAX_SPINE_BYTES: usize = 256 + 2 * KEY_NIBBLES * (3 + 16 * (7 + HASH_BYTES));

    /// The bytes that [`resume`](Self::resume) needs, beside the records written so far.
    ///
    /// # Panics
    /// If an account that [`account`](Self::account) has added is still to end.
    pub fn spine(&mut self) -> Vec<u8> {
        assert!(self.account.is_none(), "an account without its slots");
        let mut out = vec![VERSION];
        write_key(&mut out, self.last);
        write_key(&mut out, self.slot);
        self.accounts.write(&mut out);
        self.storage.write(&mut out);
        debug_assert!(out.len() <= Self::MAX_SPINE_BYTES);
        out
    }

    /// The builder that had this spine when all records in `sink` had been written.
    ///
    /// # Errors
    /// If the bytes are no spine.
    pub fn resume(sink: S, mut spine: &[u8]) -> Result<Self, SpineError> {
        let bytes = &mut spine;
        if take(bytes)? != [VERSION] {
            return Err(SpineError);
        }
        let mut builder = Self::new(sink);
        (builder.last, builder.slot) = (read_key(bytes)?, read_key(bytes)?);
        builder.accounts = TrieBuilder::read(bytes)?;
        builder.storage = TrieBuilder::read(bytes)?;
        if bytes.is_empty() { Ok(builder) } else { Err(SpineError) }
    }

    /// Drops the slots of an account that has not been added.
    ///
    /// # Panics
    /// As [`spine`](Self::spine).
    pub fn drop_slots(&mut self) {
        assert!(self.account.is_none(), "an account without its slots");
        self.slot = None;
        self.storage = TrieBuilder::default();
    }
}

impl TrieBuilder {
    fn write(&mut self, out: &mut Vec<u8>) {
        write_key(out, self.last);
        if self.last.is_some() {
            out.push(u8::try_from(self.value.len()).expect("an account has at most 110 bytes"));
            out.extend_from_slice(&self.value);
            out.push(u8::from(self.storage.is_some()));
            out.extend_from_slice(&self.storage.unwrap_or(NodeAddress::NONE).to_bytes());
        }
        out.push(u8::try_from(self.open.len()).expect("a branch for each nibble at most"));
        for branch in &mut self.open {
            branch.hash_children();
            branch.write(out);
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, SpineError> {
        let mut trie = Self { last: read_key(bytes)?, ..Self::default() };
        if trie.last.is_some() {
            let [length] = take(bytes)?;
            trie.value = take_some(bytes, length.into())?.to_vec();
            let [is_account] = take(bytes)?;
            let storage = NodeAddress::from_bytes(take(bytes)?);
            trie.storage = (is_account == 1).then_some(storage);
        }
        let [open] = take(bytes)?;
        for _ in 0..open {
            let branch = OpenBranch::read(bytes)?;
            let is_deeper = trie.open.last().is_none_or(|above| above.depth < branch.depth);
            if trie.last.is_none() || !is_deeper {
                return Err(SpineError);
            }
            trie.open.push(branch);
        }
        Ok(trie)
    }
}

impl OpenBranch {
    /// Puts the hashes of all children in their places.
    fn hash_children(&mut self) {
        let children = self.children();
        let hashes = hashes(&children, self.hashed);
        let (mut rlp, mut ends, mut hashed) = (Vec::new(), [0; 16], self.hashed);
        for (nibble, child) in children.iter().enumerate().filter(|(_, child)| !child.is_empty()) {
            if child.len() < 32 || hashed >> nibble & 1 == 1 {
                rlp.extend_from_slice(child);
            } else {
                hashes[nibble].encode(&mut rlp);
                hashed |= 1 << nibble;
            }
            ends[nibble] = rlp.len();
        }
        (self.rlp, self.ends, self.hashed) = (rlp, ends, hashed);
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::try_from(self.depth).expect("a nibble's number"));
        let children = self.children();
        let present = (0..16).filter(|nibble| !children[*nibble].is_empty());
        let bits = present.fold(0u16, |bits, nibble| bits | 1 << nibble);
        out.extend_from_slice(&bits.to_be_bytes());
        for (child, address) in children.iter().zip(&self.addresses) {
            if !child.is_empty() {
                out.extend_from_slice(&address.to_bytes());
                out.push(u8::try_from(child.len()).expect("a reference has at most 33 bytes"));
                out.extend_from_slice(child);
            }
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, SpineError> {
        let [depth] = take(bytes)?;
        let mut branch = Self { depth: depth.into(), ..Self::default() };
        let bits = u16::from_be_bytes(take(bytes)?);
        for nibble in (0..16).filter(|nibble| bits >> nibble & 1 == 1) {
            branch.addresses[nibble] = NodeAddress::from_bytes(take(bytes)?);
            let [length] = take(bytes)?;
            let length = usize::from(length);
            if length == HASH_BYTES {
                branch.hashed |= 1 << nibble;
            } else if !(1..32).contains(&length) {
                return Err(SpineError);
            }
            branch.rlp.extend_from_slice(take_some(bytes, length)?);
            branch.ends[nibble] = branch.rlp.len();
        }
        if branch.depth < KEY_NIBBLES { Ok(branch) } else { Err(SpineError) }
    }
}

fn write_key(out: &mut Vec<u8>, key: Option<B256>) {
    out.push(u8::from(key.is_some()));
    out.extend_from_slice(&key.unwrap_or_default()[..]);
}

fn read_key(bytes: &mut &[u8]) -> Result<Option<B256>, SpineError> {
    let [is_there] = take(bytes)?;
    let key = B256::new(take(bytes)?);
    Ok((is_there == 1).then_some(key))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], SpineError> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(SpineError)?;
    *bytes = rest;
    Ok(*taken)
}

fn take_some<'b>(bytes: &mut &'b [u8], count: usize) -> Result<&'b [u8], SpineError> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(SpineError)?;
    *bytes = rest;
    Ok(taken)
}
