//! e2store, the container of era files: entries of a type, a length and a value.
//!
//! <https://github.com/status-im/nimbus-eth2/blob/stable/docs/e2store.md>

use std::io::{self, Read};

use snap::read::FrameDecoder;

use crate::error::Error;
use crate::input::{Input, make_room};
use crate::limits::SNAPPY_PIECE_BYTES;

pub(super) const VERSION: u16 = 0x3265;
pub(super) const COMPRESSED_BEACON_BLOCK: u16 = 0x01;
pub(super) const COMPRESSED_BEACON_STATE: u16 = 0x02;
pub(super) const COMPRESSED_HEADER: u16 = 0x03;
pub(super) const COMPRESSED_BODY: u16 = 0x04;
pub(super) const COMPRESSED_RECEIPTS: u16 = 0x05;
pub(super) const TOTAL_DIFFICULTY: u16 = 0x06;
pub(super) const ACCUMULATOR: u16 = 0x07;
pub(super) const COMPRESSED_SLIM_RECEIPTS: u16 = 0x0a;
pub(super) const PROOF: u16 = 0x0b;
pub(super) const BLOCK_INDEX: u16 = 0x3266;
pub(super) const DYNAMIC_BLOCK_INDEX: u16 = 0x3267;
pub(super) const SLOT_INDEX: u16 = 0x3269;

/// The length of an entry's header in bytes.
pub(super) const HEADER_BYTES: u64 = 8;

/// The first bytes of every e2store file: an empty entry of type Version.
pub(super) const MAGIC: [u8; 8] = [0x65, 0x32, 0, 0, 0, 0, 0, 0];

/// The header of an entry; its value follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryHeader {
    pub(super) kind: u16,
    pub(super) value_bytes: u64,
    /// The offset of the entry in bytes.
    pub(super) offset: u64,
}

/// Reads the header of the next entry; `None` at the end.
pub(super) fn next(input: &mut Input) -> Result<Option<EntryHeader>, Error> {
    let offset = input.offset();
    if input.fill(1)?.is_empty() {
        return Ok(None);
    }
    let [k0, k1, l0, l1, l2, l3, reserved @ ..] = input.array::<8>()?;
    if reserved != [0, 0] {
        let problem = format!("the head of an e2store entry ends with {reserved:?}, not with 0, 0");
        return Err(input.error(offset, problem));
    }
    let value_bytes = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
    Ok(Some(EntryHeader { kind: u16::from_le_bytes([k0, k1]), value_bytes, offset }))
}

/// Reads the header of the next entry, which must exist and be of this type.
pub(super) fn expect(input: &mut Input, kind: u16) -> Result<EntryHeader, Error> {
    let offset = input.offset();
    let found = next(input)?;
    match found {
        Some(entry) if entry.kind == kind => Ok(entry),
        Some(entry) => {
            let problem = format!("{} expected, {} found", name(kind), name(entry.kind));
            Err(input.error(offset, problem))
        }
        None => Err(input.error(offset, format!("{} expected, the file ends", name(kind)))),
    }
}

/// Reads an uncompressed value of at most `limit` bytes.
pub(super) fn value(input: &mut Input, entry: EntryHeader, limit: u64) -> Result<Vec<u8>, Error> {
    let EntryHeader { kind, value_bytes, offset } = entry;
    if value_bytes > limit {
        let problem = format!("{} of {value_bytes} bytes, over {limit}", name(kind));
        return Err(input.error(offset, problem));
    }
    let mut value = Vec::new();
    input.read_into(&mut value, value_bytes)?;
    Ok(value)
}

/// Decompresses the value (snappy) into `out`, at most `limit` bytes.
pub(super) fn unpacked(
    input: &mut Input,
    entry: EntryHeader,
    limit: u64,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let EntryHeader { kind, value_bytes, offset } = entry;
    out.clear();
    let mut packed = Read::take(&mut *input, value_bytes);
    let read = read_bounded(FrameDecoder::new(&mut packed), limit, out);
    let left = packed.limit();
    let read = match read.map_err(|error| error.downcast::<Error>()) {
        Err(Ok(error)) => return Err(error),
        Err(Err(error)) => Err(error),
        Ok(is_whole) => Ok(is_whole),
    };
    match read {
        Err(_) if left > 0 && input.fill(1)?.is_empty() => {
            Err(input.cut_off(offset + HEADER_BYTES, value_bytes))
        }
        Err(error) => {
            let problem = format!("{}: snappy frames expected: {error}", name(kind));
            Err(input.error(offset, problem))
        }
        Ok(false) => {
            let problem = format!("{} unpacks to over {limit} bytes", name(kind));
            Err(input.error(offset, problem))
        }
        Ok(true) if left > 0 => Err(input.cut_off(offset + HEADER_BYTES, value_bytes)),
        Ok(true) => Ok(()),
    }
}

/// Reads all, if that is no more than `limit` bytes; else `false`.
fn read_bounded(mut from: impl Read, limit: u64, out: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = vec![0; SNAPPY_PIECE_BYTES];
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if (out.len() + read) as u64 > limit {
            return Ok(false);
        }
        make_room(out, read, limit);
        out.extend_from_slice(&piece[..read]);
    }
}

/// An index of block or slot offsets: `first | offset … | count`, the offsets relative to the
/// beginning of its entry.
pub(super) struct OffsetIndex {
    pub(super) first: u64,
    pub(super) offsets: Vec<i64>,
}

/// Reads an index of at most `limit` offsets.
pub(super) fn index(
    input: &mut Input,
    entry: EntryHeader,
    limit: u64,
) -> Result<OffsetIndex, Error> {
    let value = value(input, entry, 8 * (limit + 2))?;
    let (words, rest) = value.as_chunks::<8>();
    let [first, offsets @ .., count] = words else {
        return Err(input.error(entry.offset, format!("{} without a count", name(entry.kind))));
    };
    let (first, count) = (u64::from_le_bytes(*first), u64::from_le_bytes(*count));
    if !rest.is_empty() || count != offsets.len() as u64 {
        let (kind, bytes) = (name(entry.kind), value.len());
        let problem = format!("{kind} of {bytes} bytes says that it has {count} offsets");
        return Err(input.error(entry.offset, problem));
    }
    let offsets = offsets.iter().map(|offset| i64::from_le_bytes(*offset)).collect();
    Ok(OffsetIndex { first, offsets })
}

/// An index of the parts of blocks: `first | offset … | parts | count`, with an offset for each
/// part of each block, relative to the beginning of its entry.
pub(super) struct PartsIndex {
    pub(super) first: u64,
    /// The number of parts of each block.
    pub(super) parts: u64,
    pub(super) offsets: Vec<i64>,
}

/// Reads an index of at most `limit` offsets.
pub(super) fn parts_index(
    input: &mut Input,
    entry: EntryHeader,
    limit: u64,
) -> Result<PartsIndex, Error> {
    let value = value(input, entry, 8 * (limit + 3))?;
    let (words, rest) = value.as_chunks::<8>();
    let [first, offsets @ .., parts, count] = words else {
        return Err(input.error(entry.offset, format!("{} without a count", name(entry.kind))));
    };
    let [first, parts, count] = [first, parts, count].map(|word| u64::from_le_bytes(*word));
    if !rest.is_empty() || parts.checked_mul(count) != Some(offsets.len() as u64) {
        let (kind, bytes) = (name(entry.kind), value.len());
        let problem = format!("{kind} of {bytes} bytes says that it has {count} x {parts} offsets");
        return Err(input.error(entry.offset, problem));
    }
    let offsets = offsets.iter().map(|offset| i64::from_le_bytes(*offset)).collect();
    Ok(PartsIndex { first, parts, offsets })
}

/// The format's name for a type of entries.
pub(super) fn name(kind: u16) -> String {
    let known = match kind {
        VERSION => "Version",
        COMPRESSED_BEACON_BLOCK => "CompressedSignedBeaconBlock",
        COMPRESSED_BEACON_STATE => "CompressedBeaconState",
        COMPRESSED_HEADER => "CompressedHeader",
        COMPRESSED_BODY => "CompressedBody",
        COMPRESSED_RECEIPTS => "CompressedReceipts",
        TOTAL_DIFFICULTY => "TotalDifficulty",
        ACCUMULATOR => "Accumulator",
        COMPRESSED_SLIM_RECEIPTS => "CompressedSlimReceipts",
        BLOCK_INDEX => "BlockIndex",
        PROOF => "Proof",
        DYNAMIC_BLOCK_INDEX => "DynamicBlockIndex",
        SLOT_INDEX => "SlotIndex",
        _ => return format!("an entry of type {kind:#06x}"),
    };
    known.into()
}

/// Appends an entry.
pub(super) fn write(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let bytes = u32::try_from(value.len()).expect("values are at most a block long");
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&bytes.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(value);
}

/// Appends an entry with its value compressed (snappy).
pub(super) fn write_packed(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    use std::io::Write;
    let mut packed = snap::write::FrameEncoder::new(Vec::new());
    packed.write_all(value).expect("memory takes all");
    write(out, kind, &packed.into_inner().expect("memory takes all"));
}

/// The value of an index that begins at this offset and ends with `counts`.
pub(super) fn index_value(first: u64, offsets: &[u64], begins: u64, counts: &[u64]) -> Vec<u8> {
    let relative = offsets.iter().map(|offset| offset.wrapping_sub(begins));
    let words = std::iter::once(first).chain(relative).chain(counts.iter().copied());
    words.flat_map(u64::to_le_bytes).collect()
}
