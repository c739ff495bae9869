//! Node records: the addresses of a node's children, then the RLP of the node.
//!
//! ```text
//! branch        01  mask u16  address u48 of each child in the mask  RLP
//! extension     02  address u48 of the child                         RLP
//! slot's leaf   03                                                   RLP
//! account leaf  04  address u48 of the storage's root                RLP
//! ```
//!
//! All numbers are little endian. The mask has bit `n` for the child at nibble `n`, if that child
//! has a record. A child whose RLP is shorter than 32 bytes stands in its parent's RLP and has
//! none; for an extension's child that is address zero. The RLP determines the end of the record.
//!
//! Keys have 32 bytes, so no branch has a value. Nothing that a record holds can cause a panic.

use super::{
    NodeAddress,
    key::{KEY_NIBBLES, nibble, with_nibble},
};
use alloy_primitives::B256;

#[cfg(test)]
mod tests;

pub(crate) const BRANCH: u8 = 1;
const EXTENSION: u8 = 2;
const SLOT_LEAF: u8 = 3;
const ACCOUNT_LEAF: u8 = 4;

/// The offset of the children's addresses in the record of a branch.
const BRANCH_ADDRESSES: usize = 3;

/// The RLP of an empty child.
pub(crate) const NO_CHILD: u8 = 0x80;

/// The first byte of a hash in RLP.
pub(crate) const HASH_HEADER: u8 = 0xa0;

const ENDS_EARLY: &str = "record ends early";

/// The reason why bytes are no record.
pub(crate) type Reason = &'static str;

/// A parsed record, or a parsed node embedded in one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordNode<'a> {
    Branch(RecordBranch<'a>),
    Extension(RecordExtension<'a>),
    Leaf(RecordLeaf<'a>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordBranch<'a> {
    /// The children that have a record.
    pub(crate) records: u16,
    addresses: &'a [u8],
    /// The start of the RLP in the record.
    pub(crate) start: usize,
    pub(crate) rlp: &'a [u8],
    header: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordExtension<'a> {
    pub(crate) path: HexPath<'a>,
    pub(crate) child: RecordChild<'a>,
    pub(crate) start: usize,
    pub(crate) rlp: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordLeaf<'a> {
    pub(crate) path: HexPath<'a>,
    pub(crate) value: &'a [u8],
    /// Of an account's leaf the address of the storage's root; `None` for a slot's leaf.
    pub(crate) storage: Option<NodeAddress>,
    pub(crate) start: usize,
    pub(crate) rlp: &'a [u8],
}

/// The child of a branch or an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordChild<'a> {
    Empty,
    Record {
        address: NodeAddress,
        hash: &'a [u8; 32],
    },
    /// The RLP of a node in its parent's.
    Embedded(&'a [u8]),
}

impl<'a> RecordNode<'a> {
    /// The start of the RLP in the record.
    pub(crate) fn start(&self) -> usize {
        match self {
            RecordNode::Branch(branch) => branch.start,
            RecordNode::Extension(extension) => extension.start,
            RecordNode::Leaf(leaf) => leaf.start,
        }
    }

    pub(crate) fn rlp(&self) -> &'a [u8] {
        match self {
            RecordNode::Branch(branch) => branch.rlp,
            RecordNode::Extension(extension) => extension.rlp,
            RecordNode::Leaf(leaf) => leaf.rlp,
        }
    }
}

/// The address of a branch's child at this nibble, if the record is a branch's and the child has a
/// record. Only the first bytes are read, not the RLP.
pub(crate) fn branch_child(record: &[u8], nibble: usize) -> Option<NodeAddress> {
    let (&[BRANCH, low, high], addresses) = record.split_first_chunk()? else { return None };
    let mask = u16::from_le_bytes([low, high]);
    let below = (mask & ((1 << nibble) - 1)).count_ones() as usize;
    let address = addresses.get(below * NodeAddress::BYTES..)?.first_chunk()?;
    (mask & 1 << nibble != 0).then(|| NodeAddress::from_bytes(*address))
}

/// Parses a record. Of a branch's RLP only the length is read.
pub(crate) fn parse(record: &[u8]) -> Result<RecordNode<'_>, Reason> {
    let (&kind, rest) = record.split_first().ok_or(ENDS_EARLY)?;
    match kind {
        BRANCH => {
            let (mask, rest) = rest.split_first_chunk::<2>().ok_or(ENDS_EARLY)?;
            let records = u16::from_le_bytes(*mask);
            let count = records.count_ones() as usize;
            let (addresses, rest) =
                rest.split_at_checked(count * NodeAddress::BYTES).ok_or(ENDS_EARLY)?;
            let start = BRANCH_ADDRESSES + addresses.len();
            branch(rest, start, records, addresses).map(RecordNode::Branch)
        }
        EXTENSION => {
            let (address, rest) = split_address(rest)?;
            match short(rest, 1 + NodeAddress::BYTES, address)? {
                RecordNode::Extension(extension) => Ok(RecordNode::Extension(extension)),
                _ => Err("leaf recorded as an extension"),
            }
        }
        SLOT_LEAF | ACCOUNT_LEAF => {
            let (storage, rest) = match kind {
                SLOT_LEAF => (None, rest),
                _ => split_address(rest).map(|(address, rest)| (Some(address), rest))?,
            };
            match short(rest, record.len() - rest.len(), NodeAddress::NONE)? {
                RecordNode::Leaf(leaf) => Ok(RecordNode::Leaf(RecordLeaf { storage, ..leaf })),
                _ => Err("extension recorded as a leaf"),
            }
        }
        _ => Err("unknown kind of record"),
    }
}

/// Parses the RLP of a node that has no record yet. Of a branch's children it knows nothing but
/// their items; the child of an extension that is a hash gets the address 1.
pub(crate) fn parse_bare(rlp: &[u8]) -> Result<RecordNode<'_>, Reason> {
    let (_, payload) = list(rlp)?;
    let path = item_bytes(payload)?;
    let is_to_hash = payload.get(path) == Some(&HASH_HEADER);
    let is_short = payload.len() == path + item_bytes(&payload[path..])?;
    if is_short && is_to_hash && HexPath::new(string(&payload[..path])?)?.is_extension() {
        return short(rlp, 0, NodeAddress::new(1));
    }
    parse_embedded(rlp)
}

/// Parses the RLP of a node that is embedded in another.
pub(crate) fn parse_embedded(rlp: &[u8]) -> Result<RecordNode<'_>, Reason> {
    let (header_bytes, payload) = list(rlp)?;
    let first = item_bytes(payload)?;
    let second = item_bytes(&payload[first..])?;
    if first + second == payload.len() {
        return short(rlp, 0, NodeAddress::NONE);
    }
    let branch = RecordBranch { records: 0, addresses: &[], start: 0, rlp, header: header_bytes };
    Ok(RecordNode::Branch(branch))
}

fn split_address(bytes: &[u8]) -> Result<(NodeAddress, &[u8]), Reason> {
    let (address, rest) = bytes.split_first_chunk().ok_or(ENDS_EARLY)?;
    Ok((NodeAddress::from_bytes(*address), rest))
}

fn branch<'a>(
    rest: &'a [u8],
    start: usize,
    records: u16,
    addresses: &'a [u8],
) -> Result<RecordBranch<'a>, Reason> {
    let (header_bytes, payload) = list(rest)?;
    let rlp = &rest[..header_bytes + payload.len()];
    if payload.len() < 17 + 32 * records.count_ones() as usize {
        return Err("branch too short for its children");
    }
    Ok(RecordBranch { records, addresses, start, rlp, header: header_bytes })
}

/// A leaf or an extension; `address` is that of the extension's child.
fn short(rest: &[u8], start: usize, address: NodeAddress) -> Result<RecordNode<'_>, Reason> {
    let (header_bytes, payload) = list(rest)?;
    let rlp = &rest[..header_bytes + payload.len()];
    let path_bytes = item_bytes(payload)?;
    let (path, second) = payload.split_at(path_bytes);
    if item_bytes(second)? != second.len() {
        return Err("neither two items nor seventeen");
    }
    let path = HexPath::new(string(path)?)?;
    if path.is_leaf() {
        let value = string(second)?;
        if value.is_empty() {
            return Err("leaf with an empty value");
        }
        return Ok(RecordNode::Leaf(RecordLeaf { path, value, storage: None, start, rlp }));
    }
    if path.len() == 0 {
        return Err("extension with an empty path");
    }
    let child = match second {
        [HASH_HEADER, hash @ ..] if !address.is_none() => {
            let hash = hash.try_into().map_err(|_| "child that is no hash")?;
            RecordChild::Record { address, hash }
        }
        [0xc0..=0xff, ..] if address.is_none() && second.len() < 32 => {
            RecordChild::Embedded(second)
        }
        _ => return Err("extension whose child and address do not match"),
    };
    Ok(RecordNode::Extension(RecordExtension { path, child, start, rlp }))
}

impl<'a> RecordBranch<'a> {
    /// The child at `nibble`. The other children's RLP is read only as far as needed.
    pub(crate) fn child(&self, nibble: usize) -> Result<RecordChild<'a>, Reason> {
        let bit = 1 << nibble;
        let count = self.records.count_ones() as usize;
        let has_record = self.records & bit != 0;
        let items = &self.rlp[self.header..];
        if items.len() == 17 + 32 * count {
            if !has_record {
                return Ok(RecordChild::Empty);
            }
            let below = (self.records & (bit - 1)).count_ones() as usize;
            return self.recorded(nibble, &items[nibble + 32 * below..]);
        }
        let mut items = items;
        for _ in 0..nibble {
            items = &items[item_bytes(items)?..];
        }
        match items.first() {
            _ if has_record => self.recorded(nibble, items),
            Some(&NO_CHILD) => Ok(RecordChild::Empty),
            Some(0xc0..) => match item_bytes(items)? {
                bytes @ 0..32 => Ok(RecordChild::Embedded(&items[..bytes])),
                _ => Err("embedded node of 32 bytes or more"),
            },
            _ => Err("child without a record that is neither a node nor nothing"),
        }
    }

    /// The items of the children.
    pub(crate) fn items(&self) -> Result<[&'a [u8]; 16], Reason> {
        let mut rest = &self.rlp[self.header..];
        let mut items = [rest; 16];
        for item in &mut items {
            (*item, rest) = rest.split_at(item_bytes(rest)?);
        }
        Ok(items)
    }

    /// The bytes of the list header in the RLP of a branch all of whose children are hashes.
    pub(crate) fn header_bytes(rlp_bytes: usize, children: u16) -> usize {
        rlp_bytes - 17 - 32 * children.count_ones() as usize
    }

    fn recorded(&self, nibble: usize, item: &'a [u8]) -> Result<RecordChild<'a>, Reason> {
        let below = (self.records & ((1 << nibble) - 1)).count_ones() as usize;
        let (address, _) = split_address(&self.addresses[NodeAddress::BYTES * below..])?;
        match item {
            [HASH_HEADER, hash @ ..] if !address.is_none() => {
                let hash = hash.first_chunk().ok_or(ENDS_EARLY)?;
                Ok(RecordChild::Record { address, hash })
            }
            [HASH_HEADER, ..] => Err("child with a hash and no address"),
            _ => Err("child with a record and no hash"),
        }
    }

    /// Checks the whole node, and returns a mask of its children.
    pub(crate) fn children(&self) -> Result<u16, Reason> {
        let mut items = &self.rlp[self.header..];
        let mut children = 0u16;
        for nibble in 0..16 {
            let has_record = self.records & 1 << nibble != 0;
            let bytes = match items.first().ok_or(ENDS_EARLY)? {
                &HASH_HEADER if has_record => 33,
                &NO_CHILD if !has_record => 1,
                0xc0.. if !has_record => match item_bytes(items)? {
                    bytes @ ..32 => bytes,
                    _ => return Err("embedded node of 32 bytes or more"),
                },
                _ => return Err("children and their records do not match"),
            };
            if bytes > 1 {
                children |= 1 << nibble;
            }
            items = items.get(bytes..).ok_or(ENDS_EARLY)?;
        }
        if items != [NO_CHILD] {
            return Err("branch with a value, or of other than seventeen items");
        }
        if children.count_ones() < 2 {
            return Err("branch with fewer than two children");
        }
        let mut addresses = self.addresses.chunks_exact(NodeAddress::BYTES);
        if addresses.any(|address| *address == [0; NodeAddress::BYTES]) {
            return Err("child with a hash and no address");
        }
        Ok(children)
    }
}

impl<'a> RecordExtension<'a> {
    /// The item of the child.
    pub(crate) fn item(&self) -> &'a [u8] {
        match self.child {
            RecordChild::Record { .. } => &self.rlp[self.rlp.len() - 33..],
            RecordChild::Embedded(rlp) => rlp,
            RecordChild::Empty => unreachable!("an extension has a child"),
        }
    }
}

/// A path in its hex-prefix encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HexPath<'a>(&'a [u8]);

impl<'a> HexPath<'a> {
    fn new(encoded: &'a [u8]) -> Result<Self, Reason> {
        match encoded {
            [0x00 | 0x10..=0x1f | 0x20 | 0x30..=0x3f, rest @ ..] if rest.len() <= 32 => {
                Ok(Self(encoded))
            }
            _ => Err("path without hex prefix, or longer than a key"),
        }
    }

    fn is_leaf(self) -> bool {
        self.0[0] >= 0x20
    }

    fn is_extension(self) -> bool {
        !self.is_leaf()
    }

    fn is_odd(self) -> bool {
        self.0[0] & 0x10 != 0
    }

    /// How many nibbles the path has.
    pub(crate) fn len(self) -> usize {
        2 * (self.0.len() - 1) + usize::from(self.is_odd())
    }

    /// The key `key` with this path from `depth` on, if there is room in a key.
    pub(crate) fn write(self, mut key: B256, depth: usize) -> Option<B256> {
        if depth + self.len() > KEY_NIBBLES {
            return None;
        }
        let mut depth = depth;
        if self.is_odd() {
            key = with_nibble(key, depth, usize::from(self.0[0] & 0xf));
            depth += 1;
        }
        let bytes = &self.0[1..];
        if depth.is_multiple_of(2) {
            key[depth / 2..depth / 2 + bytes.len()].copy_from_slice(bytes);
        } else {
            for (index, byte) in bytes.iter().enumerate() {
                key = with_nibble(key, depth + 2 * index, usize::from(byte >> 4));
                key = with_nibble(key, depth + 2 * index + 1, usize::from(byte & 0xf));
            }
        }
        Some(key)
    }

    /// Whether `key` has this path from `depth` on.
    pub(crate) fn matches(self, key: &B256, depth: usize) -> bool {
        if depth + self.len() > KEY_NIBBLES {
            return false;
        }
        let mut depth = depth;
        if self.is_odd() {
            if nibble(key, depth) != usize::from(self.0[0] & 0xf) {
                return false;
            }
            depth += 1;
        }
        let bytes = &self.0[1..];
        if depth.is_multiple_of(2) {
            return key[depth / 2..depth / 2 + bytes.len()] == *bytes;
        }
        bytes.iter().enumerate().all(|(index, byte)| {
            nibble(key, depth + 2 * index) == usize::from(byte >> 4)
                && nibble(key, depth + 2 * index + 1) == usize::from(byte & 0xf)
        })
    }
}

/// The length of a list's header, and its payload.
fn list(bytes: &[u8]) -> Result<(usize, &[u8]), Reason> {
    let (header, payload) = match *bytes {
        [first @ 0xc0..=0xf7, ..] => (1, usize::from(first - 0xc0)),
        [0xf8, length @ 56..=0xff, ..] => (2, usize::from(length)),
        [0xf9, high @ 1..=0xff, low, ..] => (3, usize::from(high) << 8 | usize::from(low)),
        _ => return Err("not a list"),
    };
    Ok((header, bytes.get(header..header + payload).ok_or(ENDS_EARLY)?))
}

/// The length of the first item, its header included.
fn item_bytes(bytes: &[u8]) -> Result<usize, Reason> {
    let length = match *bytes {
        [..=0x7f, ..] => 1,
        [first @ 0x80..=0xb7, ..] => 1 + usize::from(first - 0x80),
        [0xb8, length, ..] => 2 + usize::from(length),
        [0xc0..=0xff, ..] => list(bytes).map(|(header, payload)| header + payload.len())?,
        _ => return Err("invalid RLP"),
    };
    if length > bytes.len() { Err(ENDS_EARLY) } else { Ok(length) }
}

/// The payload of an item that is a string, of which the length has been checked.
fn string(item: &[u8]) -> Result<&[u8], Reason> {
    match *item {
        [..=0x7f] => Ok(item),
        [0x80..=0xb7, ref payload @ ..] | [0xb8, _, ref payload @ ..] => Ok(payload),
        _ => Err("list in the place of a path or a value"),
    }
}

/// Begins the record of a branch with these children, which have a record where they have an
/// address. The RLP is to follow.
pub(crate) fn begin_branch(record: &mut Vec<u8>, children: &[NodeAddress; 16]) {
    record.clear();
    record.extend([BRANCH, 0, 0]);
    let mut mask = 0u16;
    for (nibble, address) in children.iter().enumerate().filter(|(_, child)| !child.is_none()) {
        mask |= 1 << nibble;
        record.extend(address.to_bytes());
    }
    record[1..BRANCH_ADDRESSES].copy_from_slice(&mask.to_le_bytes());
}

/// Begins the record of an extension; the child's address is none if it is embedded.
pub(crate) fn begin_extension(record: &mut Vec<u8>, child: NodeAddress) {
    record.clear();
    record.push(EXTENSION);
    record.extend(child.to_bytes());
}

/// Begins the record of a storage slot's leaf.
pub(crate) fn begin_slot_leaf(record: &mut Vec<u8>) {
    record.clear();
    record.push(SLOT_LEAF);
}

/// Begins the record of an account's leaf; the storage's address is none if it is empty.
pub(crate) fn begin_account_leaf(record: &mut Vec<u8>, storage: NodeAddress) {
    record.clear();
    record.push(ACCOUNT_LEAF);
    record.extend(storage.to_bytes());
}
