//! Bodies that have a witness: its items are sent from where they are.

use std::sync::Arc;

use alloy_primitives::{Bytes, bytes};
use client::ssz::write_with_witness;
use rpc::Pieces;
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
}

impl Sending {
    pub(super) const fn whole(witness: Arc<Witness>) -> Self {
        Self { witness, codes: None }
    }

    pub(super) const fn with_codes(witness: Arc<Witness>, codes: Vec<Bytes>) -> Self {
        Self { witness, codes: Some(codes) }
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
    pub(super) fn body_with(self, content: &[u8], keys: &[PublicKey]) -> Result<Pieces, SszError> {
        let mut body = Body { sending: Arc::new(self), pieces: Pieces::default() };
        write_with_witness(content, Some(body.sending.clone().lists()), keys, &mut body)?;
        Ok(body.pieces())
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
