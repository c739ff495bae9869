//! RLP: `[headers, codes, state, keys]`, the blob of `engine_newPayloadWithWitness`.
//!
//! Four items are written, `keys` empty, as geth's `ExtWitness` needs them; three or four are
//! read, because some clients leave `keys` out. Headers are ordinary RLP lists, not byte strings.

use crate::parts::{self, Part};
use crate::{DecodeError, Witness, limits};
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

/// The encoding in slices, in order: large items as they are, what is between them out of one
/// buffer.
pub fn parts(witness: &Witness) -> Vec<Bytes> {
    parts::collect(|sink| for_each_part(witness, sink))
}

fn for_each_part(witness: &Witness, sink: &mut dyn FnMut(Part<'_>)) {
    write_header(true, payload_len(witness), sink);
    write_header(true, items_len(&witness.headers), sink);
    witness.headers.iter().for_each(|header| sink(Part::Item(header)));
    for items in [&witness.codes, &witness.state] {
        write_header(true, strings_len(items), sink);
        for item in items {
            if !is_single_byte(item) {
                write_header(false, item.len(), sink);
            }
            sink(Part::Item(item));
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

/// Reads a witness; its items are slices of `input`.
pub fn decode(input: &Bytes) -> Result<Witness, DecodeError> {
    let mut reader = Reader { input, rest: input };
    let end = reader.list("witness")?;
    if end != 0 {
        return Err(DecodeError::malformed("witness", format!("{end} bytes after the end")));
    }
    let headers = reader.items("headers", limits::HEADERS, Item::List)?;
    let codes = reader.items("codes", limits::ITEMS, Item::String)?;
    let state = reader.items("state", limits::ITEMS, Item::String)?;
    if !reader.rest.is_empty() {
        reader.items("keys", limits::ITEMS, Item::String)?;
    }
    if !reader.rest.is_empty() {
        return Err(DecodeError::malformed("witness", "more than four items"));
    }
    Ok(Witness { state, codes, headers })
}

fn payload_len(witness: &Witness) -> usize {
    let lists =
        [items_len(&witness.headers), strings_len(&witness.codes), strings_len(&witness.state), 0];
    lists.iter().map(|len| len + alloy_rlp::length_of_length(*len)).sum()
}

fn items_len(items: &[Bytes]) -> usize {
    items.iter().map(|item| item.len()).sum()
}

fn strings_len(items: &[Bytes]) -> usize {
    let one = |item: &Bytes| {
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
enum Item {
    List,
    String,
}

struct Reader<'a> {
    input: &'a Bytes,
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
        kind: Item,
    ) -> Result<Vec<Bytes>, DecodeError> {
        let malformed = |error| DecodeError::malformed(field, error);
        let mut list = Header::decode_bytes(&mut self.rest, true).map_err(malformed)?;
        let mut items = Vec::new();
        while !list.is_empty() {
            DecodeError::check(field, items.len() + 1, limit)?;
            let whole = list;
            let payload = Header::decode_bytes(&mut list, kind == Item::List).map_err(malformed)?;
            DecodeError::check(field, payload.len(), limits::ITEM_BYTES)?;
            // A header stays what it is, an RLP list; a string loses its prefix.
            let item = match kind {
                Item::List => &whole[..whole.len() - list.len()],
                Item::String => payload,
            };
            items.push(self.input.slice_ref(item));
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests;
