//! Receipts of archives, as RLP: whole in era1 files, without blooms (slim) in ere files.
//!
//! A whole receipt is `[status, gas, bloom, logs]`, in a string behind its type unless that is 0; a
//! slim one is `[type, status, gas, logs]`. `status` is the state root before Byzantium, `gas` the
//! block's gas up to there.
//!
//! Lists are read in place: one that unpacks to many short items takes no more than its own bytes.

use alloy_consensus::proofs::ordered_trie_root_with_encoder;
use alloy_primitives::{B256, Bloom, BloomInput};
use alloy_rlp::{Decodable, Error, Header, Result};

/// The root of the trie of receipts, from the RLP of their list, which has no more than `most`.
///
/// The trie's values are the items of the list: a legacy receipt's RLP, or the content of the
/// string that holds a typed receipt.
pub(super) fn root(list: &[u8], most: usize) -> Result<B256> {
    let receipts = items(list, most)?;
    Ok(ordered_trie_root_with_encoder(&receipts, |item, out| out.extend_from_slice(value(item))))
}

/// The root of the trie of receipts, from the RLP of the list of slim ones.
pub(super) fn slim_root(list: &[u8], most: usize) -> Result<B256> {
    let receipts = items(list, most)?;
    receipts.iter().try_for_each(|slim| Slim::decode(slim)?.bloom().map(drop))?;
    Ok(ordered_trie_root_with_encoder(&receipts, |slim, out| {
        let slim = Slim::decode(slim).expect("checked above");
        let bloom = alloy_rlp::encode(slim.bloom().expect("checked above"));
        if slim.kind != 0 {
            out.push(slim.kind);
        }
        put_list(&[slim.status, slim.gas, &bloom, slim.logs], out);
    }))
}

/// The RLP of the list of slim receipts, from that of the list of whole ones.
pub(super) fn slim(list: &[u8], most: usize) -> Result<Vec<u8>> {
    let (mut content, mut out) = (Vec::new(), Vec::new());
    for item in items(list, most)? {
        let (kind, whole) = match value(item) {
            [kind @ ..0xc0, whole @ ..] => (*kind, whole),
            whole => (0, whole),
        };
        let [status, gas, _, logs] = four(whole)?;
        put_list(&[&alloy_rlp::encode(kind), status, gas, logs], &mut content);
    }
    put_list(&[&content], &mut out);
    Ok(out)
}

/// A slim receipt; all but its type is RLP.
struct Slim<'a> {
    kind: u8,
    status: &'a [u8],
    gas: &'a [u8],
    logs: &'a [u8],
}

impl<'a> Slim<'a> {
    fn decode(rlp: &'a [u8]) -> Result<Self> {
        let [mut kind, status, gas, logs] = four(rlp)?;
        Ok(Self { kind: u8::decode(&mut kind)?, status, gas, logs })
    }

    /// The bloom of the logs, each `[address, [topic …], data]`.
    fn bloom(&self) -> Result<Bloom> {
        let mut bloom = Bloom::ZERO;
        let mut logs = Header::decode_bytes(&mut &*self.logs, true)?;
        while !logs.is_empty() {
            let mut log = Header::decode_bytes(&mut logs, true)?;
            bloom.accrue(BloomInput::Raw(Header::decode_bytes(&mut log, false)?));
            let mut topics = Header::decode_bytes(&mut log, true)?;
            while !topics.is_empty() {
                bloom.accrue(BloomInput::Raw(Header::decode_bytes(&mut topics, false)?));
            }
        }
        Ok(bloom)
    }
}

/// The trie's value of a whole receipt in a list: the content of a string, else the item.
fn value(item: &[u8]) -> &[u8] {
    match Header::decode_bytes(&mut &*item, false) {
        Ok(content) => content,
        Err(_) => item,
    }
}

/// The items of a list, each with its prefix, and no more than `most`.
fn items(mut list: &[u8], most: usize) -> Result<Vec<&[u8]>> {
    let mut content = Header::decode_bytes(&mut list, true)?;
    if !list.is_empty() {
        return Err(Error::UnexpectedLength);
    }
    let mut items = Vec::new();
    while !content.is_empty() {
        if items.len() == most {
            return Err(Error::ListLengthMismatch { expected: most, got: most + 1 });
        }
        let mut rest = content;
        let header = Header::decode(&mut rest)?;
        let bytes = content.len() - rest.len() + header.payload_length;
        let (item, rest) = content.split_at(bytes);
        items.push(item);
        content = rest;
    }
    Ok(items)
}

fn four(list: &[u8]) -> Result<[&[u8]; 4]> {
    let items = items(list, 4)?;
    let got = items.len();
    items.try_into().map_err(|_| Error::ListLengthMismatch { expected: 4, got })
}

/// Appends the RLP of the list with these items.
fn put_list(items: &[&[u8]], out: &mut Vec<u8>) {
    let payload_length = items.iter().map(|item| item.len()).sum();
    Header { list: true, payload_length }.encode(out);
    items.iter().for_each(|item| out.extend_from_slice(item));
}
