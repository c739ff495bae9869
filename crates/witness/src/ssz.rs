//! SSZ: `ExecutionWitness { state, codes, headers }`, each a list of byte lists (execution-apis
//! #885 and EIP-8025, whose progressive lists serialise alike).

use crate::parts::Part;
use crate::{DecodeError, Witness, limits};
use alloy_primitives::Bytes;

const OFFSET_BYTES: usize = 4;
const FIXED_BYTES: usize = 3 * OFFSET_BYTES;

/// Length of the encoding in bytes. Over [`limits::SSZ_BYTES`] there is no encoding.
pub fn encoded_len(witness: &Witness) -> usize {
    FIXED_BYTES + lists(witness).map(list_len).iter().sum::<usize>()
}

/// Hands the encoding to `sink` slice by slice, in order; items are passed as they are, uncopied.
///
/// # Errors
/// When the encoding is longer than 32-bit offsets reach; nothing has been written then.
pub fn write(witness: &Witness, sink: &mut impl FnMut(&[u8])) -> Result<(), DecodeError> {
    check(witness)?;
    for_each_part(witness, &mut |part| sink(part.bytes()));
    Ok(())
}

/// The encoding as byte strings that follow each other, to be sent without being joined: offsets,
/// and items as they are. Errors as [`write()`].
pub fn parts(witness: &Witness) -> Result<Vec<Bytes>, DecodeError> {
    check(witness)?;
    let items_count = lists(witness).map(<[_]>::len).iter().sum::<usize>();
    let mut parts = Vec::with_capacity(items_count + 3);
    let mut between = Vec::new();
    for_each_part(witness, &mut |part| match part {
        Part::Between(bytes) => between.extend_from_slice(bytes),
        Part::Item(item) if item.is_empty() => {}
        Part::Item(item) => {
            if !between.is_empty() {
                parts.push(std::mem::take(&mut between).into());
            }
            parts.push(item.clone());
        }
    });
    parts.extend((!between.is_empty()).then(|| between.into()));
    Ok(parts)
}

/// The encoding in one buffer; errors as [`write()`].
pub fn encode(witness: &Witness) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::with_capacity(encoded_len(witness));
    write(witness, &mut |part| out.extend_from_slice(part))?;
    Ok(out)
}

/// Reads a witness; its items are slices of `input`.
pub fn decode(input: &Bytes) -> Result<Witness, DecodeError> {
    if input.len() < FIXED_BYTES {
        return Err(DecodeError::malformed("witness", "shorter than its three offsets"));
    }
    let starts = [0, 1, 2].map(|index| read_offset(input, index * OFFSET_BYTES));
    if starts[0] != FIXED_BYTES {
        let reason = format!("first offset is {}, not {FIXED_BYTES}", starts[0]);
        return Err(DecodeError::malformed("witness", reason));
    }
    let ends = [starts[1], starts[2], input.len()];
    let list = |field, index: usize, limit| {
        let (start, end) = (starts[index], ends[index]);
        if start > end || end > input.len() {
            return Err(DecodeError::malformed(field, "offsets out of order or out of bounds"));
        }
        read_list(field, &input.slice(start..end), limit)
    };
    Ok(Witness {
        state: list("state", 0, limits::ITEMS)?,
        codes: list("codes", 1, limits::ITEMS)?,
        headers: list("headers", 2, limits::HEADERS)?,
    })
}

fn check(witness: &Witness) -> Result<(), DecodeError> {
    DecodeError::check("witness", encoded_len(witness), limits::SSZ_BYTES)
}

/// Hands the encoding of a witness that was checked to `sink`.
fn for_each_part(witness: &Witness, sink: &mut dyn FnMut(Part<'_>)) {
    let mut offset = FIXED_BYTES;
    for items in lists(witness) {
        write_offset(offset, sink);
        offset += list_len(items);
    }
    for items in lists(witness) {
        let mut offset = OFFSET_BYTES * items.len();
        for item in items {
            write_offset(offset, sink);
            offset += item.len();
        }
        items.iter().for_each(|item| sink(Part::Item(item)));
    }
}

fn lists(witness: &Witness) -> [&[Bytes]; 3] {
    [&witness.state, &witness.codes, &witness.headers]
}

fn list_len(items: &[Bytes]) -> usize {
    items.iter().map(|item| OFFSET_BYTES + item.len()).sum()
}

fn write_offset(offset: usize, sink: &mut dyn FnMut(Part<'_>)) {
    let offset = u32::try_from(offset).expect("the whole length was checked");
    sink(Part::Between(&offset.to_le_bytes()));
}

fn read_offset(input: &[u8], at: usize) -> usize {
    let bytes = input[at..at + OFFSET_BYTES].try_into().expect("four bytes");
    u32::from_le_bytes(bytes) as usize
}

fn read_list(field: &'static str, input: &Bytes, limit: usize) -> Result<Vec<Bytes>, DecodeError> {
    if input.is_empty() {
        return Ok(Vec::new());
    }
    if input.len() < OFFSET_BYTES {
        return Err(DecodeError::malformed(field, "shorter than one offset"));
    }
    let first = read_offset(input, 0);
    if first == 0 || !first.is_multiple_of(OFFSET_BYTES) || first > input.len() {
        return Err(DecodeError::malformed(field, format!("first offset is {first}")));
    }
    let count = first / OFFSET_BYTES;
    DecodeError::check(field, count, limit)?;
    let mut items = Vec::with_capacity(count);
    let mut start = first;
    for index in 1..=count {
        let end = match index < count {
            true => read_offset(input, index * OFFSET_BYTES),
            false => input.len(),
        };
        if end < start || end > input.len() {
            let reason = format!("offset {index} out of order or out of bounds");
            return Err(DecodeError::malformed(field, reason));
        }
        DecodeError::check(field, end - start, limits::ITEM_BYTES)?;
        items.push(input.slice(start..end));
        start = end;
    }
    Ok(items)
}

#[cfg(test)]
mod tests;
