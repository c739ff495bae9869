//! SSZ Merkleization: binary trees of SHA-256 over 32-byte chunks.
//!
//! Rules of consensus-specs `ssz/simple-serialize.md` at a08d8a6e; progressive lists are EIP-7916
//! and progressive containers EIP-7495, both at EIPs f767a1e8. Before consensus-specs 26c608be
//! (January 2026) the two halves of a progressive node were the other way round.

use alloy_primitives::B256;
use sha2::{Digest, Sha256};
use witness::container::Item;

const CHUNK_BYTES: usize = 32;

/// Root of a progressive container (EIP-7495) all of whose fields are active.
pub(super) fn progressive_container_root(fields: &[B256]) -> B256 {
    let mut active_fields = B256::ZERO;
    for index in 0..fields.len() {
        active_fields[index / 8] |= 1 << (index % 8);
    }
    hash_pair(&merkleize_progressive(fields), &active_fields)
}

/// Root of a fixed-size item, which is a container unless it has one field only.
pub(super) fn item_root<T: Item>(item: &T) -> B256 {
    let mut bytes = Vec::with_capacity(T::BYTES);
    item.write(&mut bytes);
    let mut rest = bytes.as_slice();
    let fields = T::FIELDS_BYTES.iter().map(|&field_bytes| {
        let (field, behind) = rest.split_at(field_bytes);
        rest = behind;
        byte_vector_root(field)
    });
    let fields: Vec<_> = fields.collect();
    merkleize(&fields, fields.len())
}

/// Root of a progressive list (EIP-7916) of fixed-size items.
pub(super) fn item_list_root<T: Item>(items: &[T]) -> B256 {
    progressive_list_root(&items.iter().map(item_root).collect::<Vec<_>>())
}

/// Root of a progressive list (EIP-7916) of composite values, from their roots.
pub(super) fn progressive_list_root(roots: &[B256]) -> B256 {
    mix_in_length(&merkleize_progressive(roots), roots.len())
}

/// Root of a progressive byte list (EIP-7916).
pub(super) fn progressive_byte_list_root(bytes: &[u8]) -> B256 {
    mix_in_length(&merkleize_progressive(&pack(bytes)), bytes.len())
}

/// Root of a byte list of at most `limit` bytes.
///
/// A longer list has no root in SSZ; here its tree grows to hold it.
pub(super) fn byte_list_root(bytes: &[u8], limit: usize) -> B256 {
    let chunks = pack(bytes);
    let leaves = limit.div_ceil(CHUNK_BYTES).max(chunks.len());
    mix_in_length(&merkleize(&chunks, leaves), bytes.len())
}

/// Root of a byte vector, and of a number given as its little-endian bytes.
pub(super) fn byte_vector_root(bytes: &[u8]) -> B256 {
    let chunks = pack(bytes);
    merkleize(&chunks, chunks.len())
}

/// Root of a number.
pub(super) fn u64_root(number: u64) -> B256 {
    byte_vector_root(&number.to_le_bytes())
}

/// Root of a tree with room for `leaves` chunks, rounded up to a power of two; the rest is zero.
pub(super) fn merkleize(chunks: &[B256], leaves: usize) -> B256 {
    assert!(chunks.len() <= leaves.max(1), "{} chunks in {leaves} leaves", chunks.len());
    let depth = leaves.next_power_of_two().trailing_zeros();
    let mut layer = chunks.to_vec();
    let mut zero = B256::ZERO;
    for _ in 0..depth {
        if layer.len() % 2 == 1 {
            layer.push(zero);
        }
        for pair in 0..layer.len() / 2 {
            layer[pair] = hash_pair(&layer[2 * pair], &layer[2 * pair + 1]);
        }
        layer.truncate(layer.len() / 2);
        zero = hash_pair(&zero, &zero);
    }
    layer.first().copied().unwrap_or(zero)
}

/// Root of a progressive tree: subtrees of 1, 4, 16 … leaves, each beside the root of all later
/// ones, and zero at the end.
pub(super) fn merkleize_progressive(chunks: &[B256]) -> B256 {
    let mut subtrees = Vec::new();
    let (mut rest, mut leaves) = (chunks, 1usize);
    while !rest.is_empty() {
        let (subtree, behind) = rest.split_at(leaves.min(rest.len()));
        subtrees.push(merkleize(subtree, leaves));
        (rest, leaves) = (behind, 4 * leaves);
    }
    subtrees.iter().rev().fold(B256::ZERO, |later, subtree| hash_pair(subtree, &later))
}

/// Root of a list, from the root of its content.
pub(super) fn mix_in_length(root: &B256, length: usize) -> B256 {
    let mut chunk = B256::ZERO;
    chunk[..8].copy_from_slice(&(length as u64).to_le_bytes());
    hash_pair(root, &chunk)
}

fn pack(bytes: &[u8]) -> Vec<B256> {
    bytes.chunks(CHUNK_BYTES).map(B256::right_padding_from).collect()
}

fn hash_pair(left: &B256, right: &B256) -> B256 {
    let hash = Sha256::new().chain_update(left).chain_update(right).finalize();
    B256::from_slice(&hash)
}

#[cfg(test)]
mod tests;
