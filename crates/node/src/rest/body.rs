//! Bodies that have a witness: its items are sent from where they are, unless they are few.

use std::sync::Arc;

use alloy_primitives::{Bytes, bytes};
use engine_api::ssz::{with_witness_bytes, write_with_witness};
use rpc::{MappedFiles as _, Pieces};
use witness::container::{MAX_BYTES, Offsets, SszError, check_length};
use witness::ssz::{List, Lists, Sink};
use witness::{DecodeError, Items, PublicKey, Witness};

use crate::api::Stored;
use crate::limits::JOINED_BODY_BYTES;

/// A witness on its way to a client.
#[derive(Debug)]
pub(super) struct WitnessBody {
    witness: Arc<Witness>,
    /// Those of its codes that are sent, unless all are.
    codes: Option<Vec<Bytes>>,
    /// The list of where the others are, which follows the answer in a container of the two.
    behind: Option<Vec<u8>>,
}

impl WitnessBody {
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
        let mut body = BodyPieces { witness_body: Arc::new(self), pieces: Pieces::default() };
        body.witness_body.clone().lists().write(&mut body)?;
        Ok(body.pieces())
    }

    /// That of a status or a built payload with it.
    pub(super) fn body_with(self, content: &[u8], keys: &[PublicKey]) -> Result<Pieces, SszError> {
        let answer_bytes = with_witness_bytes(content, Some(self.lists()), keys);
        let behind_bytes = self.behind.as_ref().map_or(0, |list| FIXED_BYTES + list.len());
        let body_bytes = answer_bytes + behind_bytes;
        check_length("answer", body_bytes, MAX_BYTES)?;
        if body_bytes <= JOINED_BODY_BYTES {
            let mut joined = JoinedBody(Vec::with_capacity(body_bytes));
            self.write(answer_bytes, content, keys, &mut joined)?;
            return Ok(joined.0.into());
        }
        let mut body = BodyPieces { witness_body: Arc::new(self), pieces: Pieces::default() };
        body.witness_body.clone().write(answer_bytes, content, keys, &mut body)?;
        Ok(body.pieces())
    }

    /// Hands over the answer, which has so many bytes, or its container.
    fn write(
        &self,
        answer_bytes: usize,
        content: &[u8],
        keys: &[PublicKey],
        sink: &mut impl Sink,
    ) -> Result<(), SszError> {
        if let Some(list) = &self.behind {
            let mut fixed = Vec::with_capacity(FIXED_BYTES);
            let mut offsets = Offsets::behind(FIXED_BYTES);
            offsets.write(answer_bytes, &mut fixed);
            offsets.write(list.len(), &mut fixed);
            sink.bytes(fixed);
        }
        write_with_witness(content, Some(self.lists()), keys, sink)?;
        self.behind.iter().for_each(|list| sink.bytes(list.clone()));
        Ok(())
    }
}

/// Bytes of the two offsets of a container of an answer and a list.
const FIXED_BYTES: usize = 8;

/// A small body, in one buffer.
struct JoinedBody(Vec<u8>);

impl Sink for JoinedBody {
    fn bytes(&mut self, bytes: Vec<u8>) {
        self.0.extend_from_slice(&bytes);
    }

    fn items(&mut self, _: List, items: Items<'_>, _: usize) {
        items.iter().for_each(|item| Stored.append(item, &mut self.0));
    }
}

struct BodyPieces {
    witness_body: Arc<WitnessBody>,
    pieces: Pieces,
}

impl BodyPieces {
    fn pieces(mut self) -> Pieces {
        self.pieces.read_from(&Stored);
        self.pieces
    }
}

impl Sink for BodyPieces {
    fn bytes(&mut self, bytes: Vec<u8>) {
        self.pieces.push(bytes);
    }

    fn items(&mut self, list: List, _: Items<'_>, len_bytes: usize) {
        self.pieces.push_items(Arc::new(SharedItems(self.witness_body.clone(), list)), len_bytes);
    }
}

struct SharedItems(Arc<WitnessBody>, List);

impl rpc::ItemList for SharedItems {
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
    use engine_api::ssz::with_witness_parts;

    /// Small bodies, which are joined, and large ones.
    #[test]
    fn a_body_is_the_same_joined_or_not() {
        let keys = [PublicKey::repeat_byte(3); 2];
        for count in [0, 1, 37, JOINED_BODY_BYTES / 532, JOINED_BODY_BYTES / 500, 1_000] {
            let state = (0..count).map(|node| Bytes::from(vec![node as u8; 532])).collect();
            let codes = vec![Bytes::from(vec![0x5b; 24]), Bytes::new()];
            let witness = Witness { state, codes, headers: vec![Bytes::from(vec![1; 600])] };
            for keys in [&keys[..], &[]] {
                let parts = with_witness_parts(b"a status", Some(&witness), keys).unwrap();
                let expected = parts.concat();
                let whole = Arc::new(witness.clone());
                let body = WitnessBody::whole(whole.clone()).body_with(b"a status", keys).unwrap();
                assert_eq!(body.to_vec(), expected, "{count}");
                let witness_body =
                    WitnessBody::in_part(whole, witness.codes.clone(), vec![1, 2, 3, 4]);
                let body = witness_body.body_with(b"a status", keys).unwrap();
                let offsets = [8, 8 + expected.len() as u32].map(u32::to_le_bytes);
                let expected = [&offsets.concat()[..], &expected, &[1, 2, 3, 4]].concat();
                assert_eq!(body.to_vec(), expected, "{count}");
            }
        }
    }
}
