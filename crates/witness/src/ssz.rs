//! SSZ: `ExecutionWitness { state, codes, headers }`, each a list of byte lists (execution-apis
//! #885 and EIP-8025, whose progressive lists serialise alike).

use crate::{DecodeError, Items, NodeList, Witness, limits};
use alloy_primitives::Bytes;

const OFFSET_BYTES: usize = 4;
const FIXED_BYTES: usize = 3 * OFFSET_BYTES;

/// The lists of a witness, and their lengths.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// The lists in the encoding's order.
    all: [(List, Items<'a>); 3],
    /// Bytes of the items of each list together.
    lens: [usize; 3],
}

/// A list of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// [`Witness::state`].
    State,
    /// [`Witness::codes`].
    Codes,
    /// [`Witness::headers`].
    Headers,
}

/// Takes an encoding in the order of its bytes, to send it without joining it.
pub trait Sink {
    /// Takes bytes between items.
    fn bytes(&mut self, bytes: Vec<u8>);
    /// Takes all items of a list, one after the other, with nothing between them: `len_bytes` bytes
    /// in all.
    fn items(&mut self, list: List, items: Items<'_>, len_bytes: usize);
}

/// Collects the encoding as slices.
impl Sink for Vec<Bytes> {
    fn bytes(&mut self, bytes: Vec<u8>) {
        self.push(bytes.into());
    }

    fn items(&mut self, _: List, items: Items<'_>, _: usize) {
        self.extend(items.iter_shared().filter(|item| !item.is_empty()));
    }
}

impl<'a> From<&'a Witness> for Lists<'a> {
    fn from(witness: &'a Witness) -> Self {
        Self::new(witness.lists())
    }
}

impl<'a> Lists<'a> {
    /// The items that are encoded as each list of a witness, in the order of its fields.
    pub fn new(lists @ [state, codes, headers]: [Items<'a>; 3]) -> Self {
        let all = [(List::State, state), (List::Codes, codes), (List::Headers, headers)];
        Self { all, lens: lists.map(Items::content_bytes) }
    }

    /// As [`encoded_len()`].
    pub fn encoded_len(self) -> usize {
        let count: usize = self.all.iter().map(|(_, items)| items.len()).sum();
        FIXED_BYTES + OFFSET_BYTES * count + self.lens.iter().sum::<usize>()
    }

    /// Hands the encoding to `sink`.
    ///
    /// # Errors
    /// As [`write()`].
    pub fn write(self, sink: &mut impl Sink) -> Result<(), DecodeError> {
        DecodeError::check("witness", self.encoded_len(), limits::SSZ_BYTES)?;
        let (mut fixed, mut offset) = (Vec::with_capacity(FIXED_BYTES), FIXED_BYTES);
        for ((_, items), len) in self.all.iter().zip(self.lens) {
            push_offset(offset, &mut fixed);
            offset += OFFSET_BYTES * items.len() + len;
        }
        sink.bytes(fixed);
        for ((list, items), len) in self.all.into_iter().zip(self.lens) {
            if items.is_empty() {
                continue;
            }
            let mut offset = OFFSET_BYTES * items.len();
            let mut offsets = Vec::with_capacity(offset);
            for item in items.iter() {
                push_offset(offset, &mut offsets);
                offset += item.len();
            }
            sink.bytes(offsets);
            sink.items(list, items, len);
        }
        Ok(())
    }
}

/// Length of the encoding in bytes. Over [`limits::SSZ_BYTES`] there is no encoding.
pub fn encoded_len(witness: &Witness) -> usize {
    Lists::from(witness).encoded_len()
}

/// Hands the encoding to `sink` slice by slice, in order; items are passed as they are, uncopied.
///
/// # Errors
/// When the encoding is longer than 32-bit offsets reach; nothing has been written then.
pub fn write(witness: &Witness, sink: &mut impl FnMut(&[u8])) -> Result<(), DecodeError> {
    struct Slices<'a, F>(&'a mut F);
    impl<F: FnMut(&[u8])> Sink for Slices<'_, F> {
        fn bytes(&mut self, bytes: Vec<u8>) {
            (self.0)(&bytes);
        }

        fn items(&mut self, _: List, items: Items<'_>, _: usize) {
            items.iter().for_each(|item| (self.0)(item));
        }
    }
    Lists::from(witness).write(&mut Slices(sink))
}

/// The encoding as byte strings that follow each other, to be sent without being joined: offsets,
/// and items as they are.
///
/// # Errors
/// As [`write()`].
pub fn parts(witness: &Witness) -> Result<Vec<Bytes>, DecodeError> {
    let mut parts = Vec::new();
    Lists::from(witness).write(&mut parts)?;
    Ok(parts)
}

/// The encoding in one buffer.
///
/// # Errors
/// As [`write()`].
pub fn encode(witness: &Witness) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::with_capacity(encoded_len(witness));
    write(witness, &mut |part| out.extend_from_slice(part))?;
    Ok(out)
}

/// Reads a witness, with the limits of [`limits`]; its items are slices of `input`.
///
/// # Errors
/// When `input` is not an encoding of a witness, or exceeds a limit.
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
    let list = |field, index: usize| {
        let (start, end) = (starts[index], ends[index]);
        if start > end || end > input.len() {
            return Err(DecodeError::malformed(field, "offsets out of order or out of bounds"));
        }
        Ok(input.slice(start..end))
    };
    let strings = |field, list: Bytes, limit| -> Result<Vec<Bytes>, DecodeError> {
        read_list(field, &list, limit)?.map(|item| Ok(list.slice_ref(item?))).collect()
    };
    let nodes = list("state", 0)?;
    let state = NodeList::of_piece(&nodes, read_list("state", &nodes, limits::ITEMS)?)?;
    let codes = strings("codes", list("codes", 1)?, limits::ITEMS)?;
    let headers = strings("headers", list("headers", 2)?, limits::HEADERS)?;
    Ok(Witness { state, codes, headers })
}

fn push_offset(offset: usize, out: &mut Vec<u8>) {
    let offset = u32::try_from(offset).expect("the whole length was checked");
    out.extend_from_slice(&offset.to_le_bytes());
}

fn read_offset(input: &[u8], at: usize) -> usize {
    let bytes = input[at..at + OFFSET_BYTES].try_into().expect("four bytes");
    u32::from_le_bytes(bytes) as usize
}

/// The items of a list.
fn read_list<'a>(
    field: &'static str,
    input: &'a [u8],
    limit: usize,
) -> Result<impl ExactSizeIterator<Item = Result<&'a [u8], DecodeError>>, DecodeError> {
    if (1..OFFSET_BYTES).contains(&input.len()) {
        return Err(DecodeError::malformed(field, "shorter than one offset"));
    }
    let is_empty = input.is_empty();
    let first = if is_empty { 0 } else { read_offset(input, 0) };
    if !is_empty && (first == 0 || !first.is_multiple_of(OFFSET_BYTES) || first > input.len()) {
        return Err(DecodeError::malformed(field, format!("first offset is {first}")));
    }
    let count = first / OFFSET_BYTES;
    DecodeError::check(field, count, limit)?;
    let mut start = first;
    Ok((0..count).map(move |index| {
        let next = index + 1;
        let end = match next < count {
            true => read_offset(input, next * OFFSET_BYTES),
            false => input.len(),
        };
        if end < start || end > input.len() {
            let reason = format!("offset {next} out of order or out of bounds");
            return Err(DecodeError::malformed(field, reason));
        }
        DecodeError::check(field, end - start, limits::ITEM_BYTES)?;
        let item = &input[start..end];
        start = end;
        Ok(item)
    }))
}

#[cfg(test)]
mod tests;
