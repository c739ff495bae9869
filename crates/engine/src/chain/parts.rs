//! Floor 2. Parts of a block as the database keeps it, found without decoding the rest.

use crate::error::Error;
use alloy_primitives::{B256, keccak256};
use alloy_rlp::Header;

/// The parts of a [stored](crate::BlockRecord) block that indexes and searches need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredParts<'a> {
    /// The RLP of the block's header.
    pub(crate) header: &'a [u8],
    /// The content of the list of transactions.
    transactions: &'a [u8],
    /// The content of the list of receipts.
    receipts: &'a [u8],
}

impl<'a> StoredParts<'a> {
    /// The parts of a block that [`to_stored`](crate::BlockRecord::to_stored) wrote.
    pub(crate) fn of(stored: &'a [u8]) -> Result<Self, Error> {
        let find = || {
            let mut fields = Header::decode_bytes(&mut &stored[..], true)?;
            let mut block = Header::decode_bytes(&mut fields, false)?;
            let mut rest = Header::decode_bytes(&mut block, true)?;
            let header = item(&mut rest)?;
            let transactions = Header::decode_bytes(&mut rest, true)?;
            let _senders = item(&mut fields)?;
            let receipts = Header::decode_bytes(&mut fields, true)?;
            Ok(Self { header, transactions, receipts })
        };
        find().map_err(damaged)
    }

    /// The header.
    pub(crate) fn decode_header(&self) -> Result<alloy_consensus::Header, Error> {
        alloy_rlp::Decodable::decode(&mut &self.header[..]).map_err(damaged)
    }

    /// The hash of each transaction.
    pub(crate) fn transaction_hashes(&self) -> Result<Vec<B256>, Error> {
        self.transactions().map(|transaction| Ok(keccak256(transaction?))).collect()
    }

    /// Each transaction in the encoding of EIP-2718: a legacy one is the list itself, any other
    /// the content of a string.
    pub(crate) fn transactions(&self) -> impl Iterator<Item = Result<&'a [u8], Error>> {
        items(self.transactions)
    }

    /// Each receipt in the encoding of EIP-2718.
    pub(crate) fn receipts(&self) -> impl Iterator<Item = Result<&'a [u8], Error>> {
        items(self.receipts)
    }
}

/// The items of a list: lists with their headers, strings without.
fn items(mut list: &[u8]) -> impl Iterator<Item = Result<&[u8], Error>> {
    std::iter::from_fn(move || {
        if list.is_empty() {
            return None;
        }
        let found = match list[0] {
            0xc0.. => item(&mut list),
            _ => Header::decode_bytes(&mut list, false),
        };
        if found.is_err() {
            list = &[];
        }
        Some(found.map_err(damaged))
    })
}

/// The next item with its header.
fn item<'a>(rest: &mut &'a [u8]) -> alloy_rlp::Result<&'a [u8]> {
    let start = *rest;
    let is_list = start.first().is_some_and(|byte| *byte >= 0xc0);
    Header::decode_bytes(rest, is_list)?;
    Ok(&start[..start.len() - rest.len()])
}

fn damaged(error: alloy_rlp::Error) -> Error {
    Error::Storage(format!("a block's record cannot be read back: {error}"))
}
