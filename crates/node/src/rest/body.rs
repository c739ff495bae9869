//! Bodies that have a witness: its items are sent from where they are.

use std::sync::Arc;

use alloy_primitives::{Bytes, bytes};
use client::ssz::write_with_witness;
use rpc::{Files as _, Pieces};
use witness::container::SszError;
use witness::ssz::{List, Lists, Sink};
use witness::{DecodeError, Items, PublicKey, Witness};

use crate::api::Stored;

/// A witness on its way to a client.
#[derive(Debug)]
pub(super) struct Sending {
    witness: Arc<Witness>,
    /// Those of its codes that are sent, unless all are.
    codes: Option<Vec<Bytes>>,
    /// What says where the others are: behind the answer, in a container of the two.
    behind: Option<Vec<u8>>,
}

impl Sending {
    pub(super) const fn whole(witness: Arc<Witness>) -> Self {
        Self { witness, codes: None, behind: None }
    }

    /// With these codes alone; the list of fixed-size elements says where the others are.
    pub(super) const fn in_part(witness: Arc<Witness>, codes: Vec<Bytes>, list: Vec<u8>) -> Self {
        Self { witness, codes: Some(codes), behind: Some(list) }
    }

    fn list(&self, list: List) -> Items<'_> {
        let Witness { state, codes, headers } = &*self.witness;
        match list {
            List::State => state.into(),
            List::Codes => self.codes.as_ref().unwrap_or(codes).into(),
            List::Headers => headers.into(),
        }
    }

    fn lists(&self) -> Lists<'_> {
        Lists::new([List::State, List::Codes, List::Headers].map(|list| self.list(list)))
    }

    /// The body of an `ExecutionWitness`.
    pub(super) fn body(self) -> Result<Pieces, DecodeError> {
        let mut body = Body { sending: Arc::new(self), pieces: Pieces::default() };
        body.sending.clone().lists().write(&mut body)?;
        Ok(body.pieces())
    }

    /// That of a status or a built payload with it.
    pub(super) fn body_with(
        mut self,
        content: &[u8],
        keys: &[PublicKey],
    ) -> Result<Pieces, SszError> {
        let lists = self.lists();
        let bytes = content.len() + lists.encoded_len() + PublicKey::len_bytes() * keys.len();
        let behind_bytes = self.behind.as_ref().map_or(0, |list| FIXED_BYTES + list.len());
        if bytes + behind_bytes <= JOINED_BYTES {
            let mut joined = Joined(Vec::with_capacity(bytes + behind_bytes + OFFSETS_BYTES));
            if self.behind.is_some() {
                joined.0.extend([0; FIXED_BYTES]);
            }
            write_with_witness(content, Some(lists), keys, &mut joined)?;
            let Joined(mut joined) = joined;
            if let Some(list) = &self.behind {
                let fixed = fixed(joined.len() - FIXED_BYTES);
                joined[..FIXED_BYTES].copy_from_slice(&fixed);
                joined.extend_from_slice(list);
            }
            return Ok(joined.into());
        }
        let behind = self.behind.take();
        let mut body = Body { sending: Arc::new(self), pieces: Pieces::default() };
        write_with_witness(content, Some(body.sending.clone().lists()), keys, &mut body)?;
        let answer = body.pieces();
        let Some(list) = behind else { return Ok(answer) };
        let mut container = Pieces::default();
        container.push(fixed(answer.len_bytes()).to_vec());
        container.append(answer);
        container.push(list);
        Ok(container)
    }
}

/// Bytes of the two offsets of a container of an answer and a list.
const FIXED_BYTES: usize = 8;

/// These offsets.
fn fixed(answer_bytes: usize) -> [u8; FIXED_BYTES] {
    let behind = u32::try_from(FIXED_BYTES + answer_bytes);
    let behind = behind.expect("without its codes a witness is far below 4 GiB");
    let mut fixed = [0; FIXED_BYTES];
    fixed[..4].copy_from_slice(&(FIXED_BYTES as u32).to_le_bytes());
    fixed[4..].copy_from_slice(&behind.to_le_bytes());
    fixed
}

/// A body of up to so many bytes is put together here: that is less to do than to have its items
/// sent from where they are, and most blocks are small where most of the time is what a call costs.
const JOINED_BYTES: usize = 64 << 10;

/// What a body has besides its content, its witness and keys, at most.
const OFFSETS_BYTES: usize = 16;

/// A small body.
struct Joined(Vec<u8>);

impl Sink for Joined {
    fn bytes(&mut self, bytes: Vec<u8>) {
        self.0.extend_from_slice(&bytes);
    }

    fn items(&mut self, _: List, items: Items<'_>, _: usize) {
        items.iter().for_each(|item| Stored.append(item, &mut self.0));
    }
}

struct Body {
    sending: Arc<Sending>,
    pieces: Pieces,
}

impl Body {
    fn pieces(mut self) -> Pieces {
        self.pieces.read_from(&Stored);
        self.pieces
    }
}

impl Sink for Body {
    fn bytes(&mut self, bytes: Vec<u8>) {
        self.pieces.push(bytes);
    }

    fn items(&mut self, list: List, _: Items<'_>, len_bytes: usize) {
        self.pieces.push_items(Arc::new(ItemsOf(self.sending.clone(), list)), len_bytes);
    }
}

struct ItemsOf(Arc<Sending>, List);

impl rpc::Items for ItemsOf {
    fn get(&self, index: usize) -> Option<&[u8]> {
        self.0.list(self.1).get(index)
    }

    fn share(&self, index: usize) -> Option<bytes::Bytes> {
        self.0.list(self.1).share(index).map(bytes::Bytes::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::ssz::with_witness_parts;

    /// Small bodies, which are joined, and large ones.
    #[test]
    fn a_body_is_the_same_joined_or_not() {
        let keys = [PublicKey::repeat_byte(3); 2];
        for count in [0, 1, 37, JOINED_BYTES / 532, JOINED_BYTES / 500, 1_000] {
            let state = (0..count).map(|node| Bytes::from(vec![node as u8; 532])).collect();
            let codes = vec![Bytes::from(vec![0x5b; 24]), Bytes::new()];
            let witness = Witness { state, codes, headers: vec![Bytes::from(vec![1; 600])] };
            for keys in [&keys[..], &[]] {
                let parts = with_witness_parts(b"a status", Some(&witness), keys).unwrap();
                let expected = parts.concat();
                let whole = Arc::new(witness.clone());
                let body = Sending::whole(whole.clone()).body_with(b"a status", keys).unwrap();
                assert_eq!(body.to_vec(), expected, "{count}");
                let sending = Sending::in_part(whole, witness.codes.clone(), vec![1, 2, 3, 4]);
                let body = sending.body_with(b"a status", keys).unwrap();
                let offsets = [8, 8 + expected.len() as u32].map(u32::to_le_bytes);
                let expected = [&offsets.concat()[..], &expected, &[1, 2, 3, 4]].concat();
                assert_eq!(body.to_vec(), expected, "{count}");
            }
        }
    }
}
