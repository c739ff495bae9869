//! RLP: `[headers, codes, state, keys]`, the blob of `engine_newPayloadWithWitness`.
//!
//! Four items are written, `keys` empty, as geth's `ExtWitness` needs them; three or four are
//! read, because some clients leave `keys` out. Headers are ordinary RLP lists, not byte strings.

use crate::parts::{self, Part};
use crate::{DecodeError, Items, NodeList, Witness, limits};
use alloy_primitives::Bytes;
use alloy_rlp::{BufMut, Header};

const LIST_HEADER_BYTES: usize = 9;

/// Length of the encoding in bytes.
pub fn encoded_len(witness: &Witness) -> usize {
    let payload = payload_len(witness);
    payload + alloy_rlp::length_of_length(payload)
}

/// Hands the encoding to `sink` slice by slice, in order; items are passed as they are, uncopied.
pub fn write(witness: &Witness, sink: &mut impl FnMut(&[u8])) {
    for_each_part(witness, &mut |part| sink(part.bytes()));
}

/// The encoding in slices, in order: large items as they are, and one buffer for the bytes between
/// them.
pub fn parts(witness: &Witness) -> Vec<Bytes> {
    parts::collect(|sink| for_each_part(witness, sink))
}

fn for_each_part(witness: &Witness, sink: &mut dyn FnMut(Part<'_>)) {
    write_header(true, payload_len(witness), sink);
    let [state, codes, headers] = witness.lists();
    write_header(true, headers.content_bytes(), sink);
    for (index, bytes) in headers.iter().enumerate() {
        sink(Part::Item { list: headers, index, bytes });
    }
    for list in [codes, state] {
        write_header(true, strings_len(list), sink);
        for (index, bytes) in list.iter().enumerate() {
            if !is_single_byte(bytes) {
                write_header(false, bytes.len(), sink);
            }
            sink(Part::Item { list, index, bytes });
        }
    }
    write_header(true, 0, sink);
}

/// The encoding in one buffer.
pub fn encode(witness: &Witness) -> Vec<u8> {
    let mut out = Vec::with_capacity(encoded_len(witness));
    write(witness, &mut |part| out.extend_from_slice(part));
    out
}

/// Reads a witness, with the limits of [`limits`]; its items are slices of `input`.
///
/// # Errors
/// When `input` is not an encoding of a witness, or exceeds a limit.
pub fn decode(input: &Bytes) -> Result<Witness, DecodeError> {
    decode_within(input, limits::ITEMS, limits::HEADERS)
}

/// As [`decode`], without a limit on the number of items: for encodings that the caller itself
/// wrote, since many short items take several times their length in memory.
///
/// # Errors
/// When `input` is not an encoding of a witness, or an item is too long.
pub fn decode_own(input: &Bytes) -> Result<Witness, DecodeError> {
    decode_within(input, usize::MAX, usize::MAX)
}

fn decode_within(
    input: &Bytes,
    most_items: usize,
    most_headers: usize,
) -> Result<Witness, DecodeError> {
    let mut reader = Reader { rest: input };
    let end = reader.list("witness")?;
    if end != 0 {
        return Err(DecodeError::malformed("witness", format!("{end} bytes after the end")));
    }
    let (mut headers, mut codes, mut state) = (Vec::new(), Vec::new(), NodeList::default());
    let own = |item| input.slice_ref(item);
    reader.items("headers", most_headers, ItemKind::List, |header| headers.push(own(header)))?;
    reader.items("codes", most_items, ItemKind::String, |code| codes.push(own(code)))?;
    state.push_piece(input.clone());
    reader.items("state", most_items, ItemKind::String, |node| state.push_slice(node))?;
    if !reader.rest.is_empty() {
        reader.items("keys", most_items, ItemKind::String, |_| {})?;
    }
    if !reader.rest.is_empty() {
        return Err(DecodeError::malformed("witness", "more than four items"));
    }
    Ok(Witness { state, codes, headers })
}

fn payload_len(witness: &Witness) -> usize {
    let [state, codes, headers] = witness.lists();
    let lists = [headers.content_bytes(), strings_len(codes), strings_len(state), 0];
    lists.iter().map(|len| len + alloy_rlp::length_of_length(*len)).sum()
}

fn strings_len(items: Items<'_>) -> usize {
    let one = |item: &[u8]| {
        let header = if is_single_byte(item) { 0 } else { alloy_rlp::length_of_length(item.len()) };
        header + item.len()
    };
    items.iter().map(one).sum()
}

fn is_single_byte(item: &[u8]) -> bool {
    matches!(item, [byte] if *byte < 0x80)
}

fn write_header(list: bool, payload_length: usize, sink: &mut dyn FnMut(Part<'_>)) {
    let mut buffer = [0; LIST_HEADER_BYTES];
    let mut rest = &mut buffer[..];
    Header { list, payload_length }.encode(&mut rest);
    let unused = rest.remaining_mut();
    sink(Part::Between(&buffer[..LIST_HEADER_BYTES - unused]));
}

#[derive(Clone, Copy, PartialEq)]
enum ItemKind {
    List,
    String,
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Enters a list: `rest` becomes its payload; returns how many bytes follow it.
    fn list(&mut self, field: &'static str) -> Result<usize, DecodeError> {
        let payload = Header::decode_bytes(&mut self.rest, true)
            .map_err(|error| DecodeError::malformed(field, error))?;
        let after = self.rest.len();
        self.rest = payload;
        Ok(after)
    }

    fn items(
        &mut self,
        field: &'static str,
        limit: usize,
        kind: ItemKind,
        mut take: impl FnMut(&'a [u8]),
    ) -> Result<(), DecodeError> {
        let malformed = |error| DecodeError::malformed(field, error);
        let mut list = Header::decode_bytes(&mut self.rest, true).map_err(malformed)?;
        let mut count = 0;
        while !list.is_empty() {
            count += 1;
            DecodeError::check(field, count, limit)?;
            let whole = list;
            let payload =
                Header::decode_bytes(&mut list, kind == ItemKind::List).map_err(malformed)?;
            DecodeError::check(field, payload.len(), limits::ITEM_BYTES)?;
            // A header stays what it is, an RLP list; a string loses its prefix.
            let item = match kind {
                ItemKind::List => &whole[..whole.len() - list.len()],
                ItemKind::String => payload,
            };
            take(item);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
