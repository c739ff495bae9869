//! Hashing what has changed: level by level, the deepest first, many nodes at a time.

use super::{
    base::Base,
    key::{KEY_NIBBLES, hex_prefix},
    node::{AccountValue, Branch, Extension, Leaf, Link, Reference, Target, Value},
    overlay::Overlay,
    record::{self, HASH_HEADER, NO_CHILD},
};
use crate::{
    Account,
    keccak::{PaddedInputs, prefetch},
};
use alloy_primitives::{B256, U256};

/// Nodes that are built before all of them are hashed, whether or not they fill the lanes: many
/// lanes, and few enough to stay in the processor's nearest cache but one.
const BATCH_NODES: usize = 256;

/// How many nodes earlier than it is built a node's origin is fetched into the nearest cache.
const FETCH_AHEAD: usize = 16;

/// The longest RLP of a leaf: list header, path, and an account's string header, list header,
/// nonce, balance and two hashes.
const MAX_LEAF_BYTES: usize = 2 + 34 + 2 + 2 + 9 + 33 + 33 + 33;

impl Overlay {
    /// Hashes at most `budget` of the nodes that are to be hashed in the trees with these roots,
    /// the deepest first, and says how many.
    pub(crate) fn hash(&mut self, roots: impl IntoIterator<Item = Link>, budget: usize) -> usize {
        let mut queue: Vec<Link> = Vec::new();
        queue.extend(roots.into_iter().filter(|root| self.is_unknown(*root)));
        let mut levels = vec![0];
        while *levels.last().expect("there is a level") < queue.len() {
            let (start, end) = (levels[levels.len() - 1], queue.len());
            levels.push(end);
            for index in start..end {
                self.queue_children(queue[index], &mut queue);
            }
        }
        let mut left = budget;
        let mut batch = Batch { links: Vec::new(), inputs: PaddedInputs::new() };
        for level in levels.windows(2).rev() {
            for links in queue[level[0]..level[1]].chunks(BATCH_NODES) {
                let links = &links[..links.len().min(left)];
                self.hash_batch(links, &mut batch);
                left -= links.len();
            }
        }
        budget - left
    }

    fn is_unknown(&self, link: Link) -> bool {
        self.head(link).is_some_and(|head| !head.reference.is_known())
    }

    fn queue_children(&self, link: Link, queue: &mut Vec<Link>) {
        match link.target() {
            Target::Branch(id) => {
                let branch = &self.branches[id];
                for nibble in bits(branch.dirty & branch.mask) {
                    let child = branch.children[nibble];
                    if self.is_unknown(child) {
                        queue.push(child);
                    }
                }
            }
            Target::Extension(id) => {
                let child = self.extensions[id].child;
                if self.is_unknown(child) {
                    queue.push(child);
                }
            }
            _ => {}
        }
    }

    /// Hashes these nodes, of which none is below another.
    fn hash_batch(&mut self, links: &[Link], batch: &mut Batch) {
        batch.links.clear();
        for (index, &link) in links.iter().enumerate() {
            if let Some(Target::Branch(id)) =
                links.get(index + FETCH_AHEAD).map(|link| link.target())
                && let Some(origin) = self.branches[id].head.origin
            {
                prefetch(origin.rlp(&self.base));
            }
            self.encode(link, &mut batch.inputs.bytes);
            if let Target::Branch(id) = link.target() {
                self.branches[id].dirty = 0;
            }
            let start = batch.inputs.start();
            let rlp = &batch.inputs.bytes[start..];
            if rlp.len() < 32 {
                let reference = Reference::to_embedded(rlp);
                self.head_mut(link).expect("the node is loaded").reference = reference;
                batch.inputs.bytes.truncate(start);
            } else {
                batch.links.push(link);
                batch.inputs.end();
            }
        }
        for (link, hash) in batch.links.iter().zip(batch.inputs.take_hashes()) {
            let head = self.head_mut(*link).expect("the node is loaded");
            head.reference = Reference::to_hash(&hash);
        }
    }

    /// Appends the RLP of a loaded node. What is below it has been hashed.
    pub(crate) fn encode(&self, link: Link, rlp: &mut Vec<u8>) {
        match link.target() {
            Target::Branch(id) => {
                let branch = &self.branches[id];
                if !branch.is_patchable() || self.patch(branch, rlp).is_none() {
                    self.assemble(branch, rlp);
                }
            }
            Target::Extension(id) => self.encode_extension(&self.extensions[id], rlp),
            Target::Leaf(id) => {
                let (bytes, len) = encode_leaf(&self.leaves[id], &self.accounts);
                rlp.extend_from_slice(&bytes[..len]);
            }
            _ => unreachable!("only loaded nodes are hashed"),
        }
    }

    fn encode_extension(&self, extension: &Extension, rlp: &mut Vec<u8>) {
        let (from, to) = (usize::from(extension.depth), usize::from(extension.end));
        let (path, path_bytes) = hex_prefix(&extension.key, from, to, false);
        let start = begin_list(rlp);
        if path_bytes > 1 {
            rlp.push(NO_CHILD + path_bytes as u8);
        }
        rlp.extend_from_slice(&path[..path_bytes]);
        match self.child_reference(extension.child) {
            Some(reference) => reference.encode(rlp),
            None => rlp.extend_from_slice(extension.origin_item(&self.base)),
        }
        end_list(rlp, start);
    }

    /// The reference that a link stands for; `None` if that is in the record of the node above.
    fn child_reference(&self, link: Link) -> Option<Reference> {
        match link.target() {
            Target::Blinded(index) => Some(Reference::to_hash(&self.blinded[index].hash)),
            _ => self.head(link).map(|head| head.reference),
        }
    }

    /// Appends a branch: its origin, with the hashes of changed children written over those there.
    /// `None`, and nothing is appended, if a child is embedded.
    fn patch(&self, branch: &Branch, rlp: &mut Vec<u8>) -> Option<()> {
        let origin = branch.head.origin?.rlp(&self.base);
        let start = rlp.len();
        rlp.extend_from_slice(origin);
        let patched = &mut rlp[start..];
        let first = record::Branch::header_bytes(origin.len(), branch.origin_mask);
        for nibble in bits(branch.changed) {
            let reference = match branch.children[nibble].target() {
                Target::Branch(id) => &self.branches[id].head.reference,
                Target::Leaf(id) => &self.leaves[id].head.reference,
                Target::Extension(id) => &self.extensions[id].head.reference,
                _ => unreachable!("a changed child is loaded"),
            };
            let below = (branch.origin_mask & ((1 << nibble) - 1)).count_ones() as usize;
            let at = first + nibble + 1 + 32 * below;
            let Some(hash) = reference.hash() else {
                rlp.truncate(start);
                return None;
            };
            patched[at..at + 32].copy_from_slice(hash);
        }
        Some(())
    }

    /// Appends a branch child by child.
    fn assemble(&self, branch: &Branch, rlp: &mut Vec<u8>) {
        let origin = branch.origin_items(&self.base);
        let start = begin_list(rlp);
        for (link, item) in branch.children.iter().zip(origin) {
            match self.child_reference(*link) {
                Some(reference) => reference.encode(rlp),
                None if *link == Link::EMPTY => rlp.push(NO_CHILD),
                None => rlp.extend_from_slice(item),
            }
        }
        rlp.push(NO_CHILD);
        end_list(rlp, start);
    }
}

/// The nodes of a batch that are hashed.
struct Batch {
    links: Vec<Link>,
    inputs: PaddedInputs,
}

impl Branch {
    /// The items of the children in the origin's RLP.
    fn origin_items<'a>(&self, base: &'a Base) -> [&'a [u8]; 16] {
        let Some(origin) = self.head.origin else { return [&[NO_CHILD]; 16] };
        let record::Node::Branch(branch) = origin.node(base) else {
            unreachable!("it was a branch")
        };
        branch.items().expect("the record was read before")
    }
}

/// The indices of the bits that are set.
pub(crate) fn bits(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// Leaves room for a list's header, and says where.
fn begin_list(rlp: &mut Vec<u8>) -> usize {
    rlp.extend([0; 3]);
    rlp.len() - 3
}

/// Writes the header of the list that began at `start` and has less than 64 KiB.
fn end_list(rlp: &mut Vec<u8>, start: usize) {
    let payload_bytes = rlp.len() - start - 3;
    match payload_bytes {
        ..56 => drop(rlp.splice(start..start + 3, [0xc0 + payload_bytes as u8])),
        56..256 => drop(rlp.splice(start..start + 3, [0xf8, payload_bytes as u8])),
        _ => rlp[start..start + 3].copy_from_slice(&[
            0xf9,
            (payload_bytes >> 8) as u8,
            payload_bytes as u8,
        ]),
    }
}

/// Appends a branch with these children, of which `None` is no child.
pub(crate) fn encode_branch(references: &[Option<Reference>], rlp: &mut Vec<u8>) {
    let start = begin_list(rlp);
    for reference in references {
        match reference {
            Some(reference) => reference.encode(rlp),
            None => rlp.push(NO_CHILD),
        }
    }
    rlp.push(NO_CHILD);
    end_list(rlp, start);
}

/// Bytes written one after the other.
struct Writer {
    bytes: [u8; MAX_LEAF_BYTES],
    len: usize,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// The RLP of a number.
    fn put_number(&mut self, number: &U256) {
        let bytes = number.to_be_bytes::<32>();
        let len = number.byte_len();
        if len != 1 || bytes[31] >= 0x80 {
            self.put(&[0x80 + len as u8]);
        }
        self.put(&bytes[32 - len..]);
    }

    fn put_hash(&mut self, hash: &B256) {
        self.put(&[HASH_HEADER]);
        self.put(hash.as_slice());
    }
}

/// How many bytes the RLP of a number has.
fn number_bytes(number: &U256) -> usize {
    match number.byte_len() {
        0 => 1,
        1 if number.byte(0) < 0x80 => 1,
        len => 1 + len,
    }
}

fn encode_leaf(leaf: &Leaf, accounts: &[AccountValue]) -> ([u8; MAX_LEAF_BYTES], usize) {
    let (path, path_bytes) = hex_prefix(&leaf.key, usize::from(leaf.depth), KEY_NIBBLES, true);
    let path_header = usize::from(path_bytes > 1);
    let value_bytes = match leaf.value {
        Value::Slot(value) => match number_bytes(&value) {
            1 => 1,
            len => 1 + len,
        },
        Value::Account(index) => 2 + account_bytes(&accounts[index as usize].account).0,
    };
    let mut writer = Writer { bytes: [0; MAX_LEAF_BYTES], len: 0 };
    match path_header + path_bytes + value_bytes {
        payload_bytes @ ..56 => writer.put(&[0xc0 + payload_bytes as u8]),
        payload_bytes => writer.put(&[0xf8, payload_bytes as u8]),
    }
    if path_header == 1 {
        writer.put(&[0x80 + path_bytes as u8]);
    }
    writer.put(&path[..path_bytes]);
    match leaf.value {
        Value::Slot(value) => {
            if value_bytes > 1 {
                writer.put(&[0x80 + value_bytes as u8 - 1]);
            }
            writer.put_number(&value);
        }
        Value::Account(index) => put_account(&mut writer, &accounts[index as usize].account),
    }
    (writer.bytes, writer.len)
}

/// The bytes of an account's RLP, with its list header of two and without.
fn account_bytes(account: &Account) -> (usize, usize) {
    let nonce = number_bytes(&U256::from(account.nonce));
    let payload_bytes = nonce + number_bytes(&account.balance) + 66;
    (payload_bytes + 2, payload_bytes)
}

/// An account's RLP, as a string.
fn put_account(writer: &mut Writer, account: &Account) {
    let (bytes, payload_bytes) = account_bytes(account);
    writer.put(&[0xb8, bytes as u8, 0xf8, payload_bytes as u8]);
    writer.put_number(&U256::from(account.nonce));
    writer.put_number(&account.balance);
    writer.put_hash(&account.storage_root);
    writer.put_hash(&account.code_hash);
}
