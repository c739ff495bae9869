//! The records of sorted files: accounts, each followed by its slots.
//!
//! An account is its hashed address, its position in the source (8 bytes), its nonce (8), flags
//! (1), the length of its balance (1) and the balance; the code hash and the storage root where the
//! flags have them; if the flags say so, the number of its parts (1) and their numbers (4 each);
//! and the number of slots that follow (8). A slot is its hash, the length of its value (1) and the
//! value. Numbers are little-endian, balances and values big-endian without leading zeros.

use alloy_primitives::{B256, U256};

use crate::error::Error;
use crate::input::Input;

const CODE: u8 = 1;
const ROOT: u8 = 2;
const PARTS: u8 = 4;

/// The most bytes of an account before its parts: five words, two numbers and four bytes.
const HEAD_BYTES: usize = 4 * 32 + 2 * 8 + 3;
const SLOT_BYTES: usize = 65;

/// An account in a sorted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccountRecord {
    pub(super) hashed_address: B256,
    /// The line in a dump of lines, else the offset in bytes.
    pub(super) place: u64,
    pub(super) nonce: u64,
    pub(super) balance: U256,
    pub(super) code_hash: Option<B256>,
    pub(super) storage_root: Option<B256>,
    /// The files with its slots. If there are any, no slots follow it.
    pub(super) parts: Vec<u32>,
    /// The number of slots that follow it.
    pub(super) slots: u64,
}

impl AccountRecord {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let flag = |is_there, flag| if is_there { flag } else { 0 };
        out.extend_from_slice(&self.hashed_address[..]);
        out.extend_from_slice(&self.place.to_le_bytes());
        out.extend_from_slice(&self.nonce.to_le_bytes());
        out.push(
            flag(self.code_hash.is_some(), CODE)
                | flag(self.storage_root.is_some(), ROOT)
                | flag(!self.parts.is_empty(), PARTS),
        );
        write_number(out, self.balance);
        for hash in [self.code_hash, self.storage_root].into_iter().flatten() {
            out.extend_from_slice(&hash[..]);
        }
        if !self.parts.is_empty() {
            out.push(u8::try_from(self.parts.len()).expect("parts are merged before"));
            self.parts.iter().for_each(|part| out.extend_from_slice(&part.to_le_bytes()));
        }
        out.extend_from_slice(&self.slots.to_le_bytes());
    }

    /// The next account; `None` at the end.
    pub(super) fn read(input: &mut Input) -> Result<Option<Self>, Error> {
        let start = input.offset();
        let shown = input.fill(HEAD_BYTES)?;
        if shown.is_empty() {
            return Ok(None);
        }
        let mut rest = RecordBytes { bytes: shown };
        let Some((mut record, flags)) = rest.head() else { return Err(damaged(input, start)) };
        let taken = shown.len() - rest.bytes.len();
        input.advance(taken);
        if flags & PARTS != 0 {
            let [count] = input.array()?;
            for _ in 0..count {
                record.parts.push(u32::from_le_bytes(input.array()?));
            }
        }
        record.slots = u64::from_le_bytes(input.array()?);
        Ok(Some(record))
    }
}

/// Appends a slot.
pub(super) fn write_slot(out: &mut Vec<u8>, slot: &B256, value: U256) {
    out.extend_from_slice(&slot[..]);
    write_number(out, value);
}

/// The next slot; `None` at the end.
pub(super) fn read_slot(input: &mut Input) -> Result<Option<(B256, U256)>, Error> {
    let start = input.offset();
    let shown = input.fill(SLOT_BYTES)?;
    if shown.is_empty() {
        return Ok(None);
    }
    let mut rest = RecordBytes { bytes: shown };
    let slot = rest.word().zip(rest.number());
    let taken = shown.len() - rest.bytes.len();
    let Some(slot) = slot else { return Err(damaged(input, start)) };
    input.advance(taken);
    Ok(Some(slot))
}

/// The error that a sorted file is damaged.
pub(super) fn damaged(input: &Input, offset: u64) -> Error {
    input.error(offset, "a sorted file is damaged: remove its directory and start over")
}

fn write_number(out: &mut Vec<u8>, number: U256) {
    let bytes = number.to_be_bytes::<32>();
    let zeroes = number.leading_zeros() / 8;
    out.push((32 - zeroes) as u8);
    out.extend_from_slice(&bytes[zeroes..]);
}

/// The bytes still to be decoded.
struct RecordBytes<'a> {
    bytes: &'a [u8],
}

impl RecordBytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }

    fn word(&mut self) -> Option<B256> {
        self.take().map(B256::new)
    }

    fn number(&mut self) -> Option<U256> {
        let [bytes] = self.take()?;
        let (taken, rest) = self.bytes.split_at_checked(usize::from(bytes))?;
        self.bytes = rest;
        U256::try_from_be_slice(taken)
    }

    /// An account up to its parts.
    fn head(&mut self) -> Option<(AccountRecord, u8)> {
        let hashed_address = self.word()?;
        let (place, nonce) = (u64::from_le_bytes(self.take()?), u64::from_le_bytes(self.take()?));
        let [flags] = self.take()?;
        let balance = self.number()?;
        let code_hash = if flags & CODE != 0 { Some(self.word()?) } else { None };
        let storage_root = if flags & ROOT != 0 { Some(self.word()?) } else { None };
        let (parts, slots) = (Vec::new(), 0);
        let record = AccountRecord {
            hashed_address,
            place,
            nonce,
            balance,
            code_hash,
            storage_root,
            parts,
            slots,
        };
        Some((record, flags))
    }
}
