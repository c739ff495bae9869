//! Hashing what has changed: level by level, the deepest first, many nodes at a time.

use super::{
    key::{KEY_NIBBLES, hex_prefix},
    node::{AccountValue, Body, Branch, Leaf, Link, Reference, Target, Value},
    overlay::Overlay,
    record::{self, HASH_HEADER, NO_CHILD},
};
use crate::{
    Account,
    keccak::{keccak256_many, prefetch},
};
use alloy_primitives::{B256, U256};

/// Nodes whose bodies are built before they are hashed: enough to fill the lanes, few enough to
/// stay in the processor's nearest cache but one.
const BATCH_NODES: usize = 256;

/// The longest RLP of a branch: list header, sixteen hashes and no value.
const MAX_BRANCH_BYTES: usize = 3 + 16 * 33 + 1;

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
        self.bodies.reserve(queue.iter().map(|link| self.likely_bytes(*link)).sum());
        let mut left = budget;
        let mut batch = Batch::default();
        for level in levels.windows(2).rev() {
            for links in queue[level[0]..level[1]].chunks(BATCH_NODES) {
                let links = &links[..links.len().min(left)];
                self.hash_batch(links, &mut batch);
                left -= links.len();
            }
        }
        budget - left
    }

    /// About how long the next body of a node is, so that the bodies need not move.
    fn likely_bytes(&self, link: Link) -> usize {
        match link.target() {
            Target::Branch(_) => MAX_BRANCH_BYTES,
            _ => MAX_LEAF_BYTES,
        }
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
        for &link in links {
            let body = match link.target() {
                Target::Branch(id) => self.build_branch(id),
                Target::Extension(id) => self.build_extension(id),
                Target::Leaf(id) => self.build_leaf(id),
                _ => unreachable!("only loaded nodes are hashed"),
            };
            let embedded = (body.len < 32).then(|| Reference::to_embedded(self.body(body)));
            let head = self.head_mut(link).expect("the node is loaded");
            head.body = body;
            match embedded {
                Some(reference) => head.hashed(reference),
                None => {
                    prefetch(self.body(body));
                    batch.links.push((link, body));
                }
            }
        }
        let inputs = batch.links.iter().map(|(_, body)| self.body(*body));
        let inputs: Vec<&[u8]> = inputs.collect();
        batch.hashes.resize(inputs.len(), B256::ZERO);
        keccak256_many(&inputs, &mut batch.hashes);
        for ((link, _), hash) in batch.links.iter().zip(&batch.hashes) {
            let head = self.head_mut(*link).expect("the node is loaded");
            head.hashed(Reference::to_hash(hash));
        }
    }

    fn build_leaf(&mut self, id: usize) -> Body {
        let leaf = &self.leaves[id];
        let (rlp, len) = encode_leaf(leaf, &self.accounts);
        put(&mut self.bodies, leaf.head.body, &rlp[..len])
    }

    fn build_extension(&mut self, id: usize) -> Body {
        let extension = &self.extensions[id];
        let (from, to) = (usize::from(extension.depth), usize::from(extension.end));
        let (path, path_bytes) = hex_prefix(&extension.key, from, to, false);
        let mut payload = Vec::with_capacity(72);
        if path_bytes > 1 {
            payload.push(NO_CHILD + path_bytes as u8);
        }
        payload.extend_from_slice(&path[..path_bytes]);
        match self.child_reference(extension.child) {
            Some(reference) => reference.encode(&mut payload),
            None => payload.extend_from_slice(extension.origin_item(&self.base)),
        }
        let mut rlp = Vec::with_capacity(72);
        list_header(&mut rlp, payload.len());
        rlp.extend_from_slice(&payload);
        put(&mut self.bodies, extension.head.body, &rlp)
    }

    /// The reference that a link stands for; `None` if that is in the record of the node above.
    fn child_reference(&self, link: Link) -> Option<Reference> {
        match link.target() {
            Target::Blinded(index) => Some(Reference::to_hash(&self.blinded[index].hash)),
            _ => self.head(link).map(|head| head.reference),
        }
    }

    fn build_branch(&mut self, id: usize) -> Body {
        let is_patchable = self.branches[id].is_patchable();
        let patched = if is_patchable { self.patch(id) } else { None };
        let body = patched.unwrap_or_else(|| self.assemble(id));
        self.branches[id].dirty = 0;
        body
    }

    /// Builds a branch from its origin, with the hashes of changed children written over those
    /// there. `None` if a child is embedded.
    fn patch(&mut self, id: usize) -> Option<Body> {
        let branch = &self.branches[id];
        let origin = branch.head.origin?.rlp(&self.base);
        let mut rlp = [0; MAX_BRANCH_BYTES];
        let rlp = &mut rlp[..origin.len()];
        rlp.copy_from_slice(origin);
        let first = record::Branch::header_bytes(rlp.len(), branch.origin_mask);
        for nibble in bits(branch.changed) {
            let reference = match branch.children[nibble].target() {
                Target::Branch(id) => &self.branches[id].head.reference,
                Target::Leaf(id) => &self.leaves[id].head.reference,
                Target::Extension(id) => &self.extensions[id].head.reference,
                _ => unreachable!("a changed child is loaded"),
            };
            let below = (branch.origin_mask & ((1 << nibble) - 1)).count_ones() as usize;
            let at = first + nibble + 1 + 32 * below;
            rlp[at..at + 32].copy_from_slice(reference.hash()?);
        }
        Some(put(&mut self.bodies, branch.head.body, rlp))
    }

    /// Builds a branch child by child.
    fn assemble(&mut self, id: usize) -> Body {
        let branch = &self.branches[id];
        let origin = branch.origin_items(&self.base);
        let mut payload = Vec::with_capacity(532);
        for (link, item) in branch.children.iter().zip(origin) {
            match self.child_reference(*link) {
                Some(reference) => reference.encode(&mut payload),
                None if *link == Link::EMPTY => payload.push(NO_CHILD),
                None => payload.extend_from_slice(item),
            }
        }
        payload.push(NO_CHILD);
        let mut rlp = Vec::with_capacity(payload.len() + 3);
        list_header(&mut rlp, payload.len());
        rlp.extend_from_slice(&payload);
        put(&mut self.bodies, branch.head.body, &rlp)
    }
}

/// The nodes of a batch that are hashed.
#[derive(Default)]
struct Batch {
    links: Vec<(Link, Body)>,
    hashes: Vec<B256>,
}

impl Branch {
    /// The items of the children in the origin's RLP.
    fn origin_items<'a>(&self, base: &'a [u8]) -> [&'a [u8]; 16] {
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

/// Puts a body where the node's last one is, if that has the same length.
fn put(bodies: &mut Vec<u8>, old: Body, rlp: &[u8]) -> Body {
    if usize::from(old.len) == rlp.len() {
        bodies[old.start as usize..][..rlp.len()].copy_from_slice(rlp);
        return old;
    }
    let start = u32::try_from(bodies.len()).expect("a block changes less than 4 GiB of nodes");
    bodies.extend_from_slice(rlp);
    Body { start, len: rlp.len() as u16 }
}

/// Appends the header of a list whose payload has less than 64 KiB.
pub(crate) fn list_header(rlp: &mut Vec<u8>, payload_bytes: usize) {
    match payload_bytes {
        ..56 => rlp.push(0xc0 + payload_bytes as u8),
        56..256 => rlp.extend([0xf8, payload_bytes as u8]),
        _ => rlp.extend([0xf9, (payload_bytes >> 8) as u8, payload_bytes as u8]),
    }
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
