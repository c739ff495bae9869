//! Floor 3. The ancestors of a block.

use crate::chain::record::BlockRecord;
use crate::error::{Error, storage_error};
use crate::shared::Chain;
use alloy_primitives::{B256, Bytes};
use std::sync::Arc;
use witness::StateError;

/// The ancestors of a block that stands on `parent`, the parent among them.
#[derive(Debug)]
pub(crate) struct Ancestors<'a> {
    chain: &'a Chain,
    parent: Arc<BlockRecord>,
    /// Hashes from the parent downwards, as far as they have been asked for.
    hashes: Vec<B256>,
    /// For a message call, which has no witness: headers need not be there.
    pub(crate) is_call: bool,
}

impl<'a> Ancestors<'a> {
    pub(crate) fn new(chain: &'a Chain, parent: Arc<BlockRecord>) -> Self {
        let hashes = vec![parent.hash()];
        Self { chain, parent, hashes, is_call: false }
    }

    /// The hash of ancestor `number`, `None` when its header is not there.
    pub(crate) fn hash(&mut self, number: u64) -> Result<Option<B256>, Error> {
        match self.named(number)? {
            Some(hash) if self.is_call || self.chain.ancestor_link(&hash)?.is_some() => {
                Ok(Some(hash))
            }
            _ => Ok(None),
        }
    }

    /// The hash of ancestor `number`, whose header may not be there: the first block of a chain
    /// names its parent. `None` where no header names it.
    fn named(&mut self, number: u64) -> Result<Option<B256>, Error> {
        let Some(depth) = self.parent.number().checked_sub(number) else { return Ok(None) };
        let depth = usize::try_from(depth).expect("blocks are counted in memory");
        if let Some(hash) = self.hashes.get(depth) {
            return Ok(Some(*hash));
        }
        while self.hashes.len() <= depth {
            let last = self.hashes.last().expect("the parent is there");
            let above = self.parent.number() - (self.hashes.len() - 1) as u64;
            // A call with another block number may ask for any ancestor.
            if self.is_call
                && let Some(found) = self.canonical((above, *last), number)?
                && (found.is_some() || self.chain.remote.is_none())
            {
                return Ok(found);
            }
            let Some((_, next)) = self.chain.ancestor_link(last)? else { return Ok(None) };
            self.hashes.push(next);
        }
        Ok(Some(self.hashes[depth]))
    }

    /// The hash of an ancestor of this block, found in the index of numbers, if there is one that
    /// is known. `None` where the block is not canonical.
    fn canonical(
        &self,
        (above, hash): (u64, B256),
        number: u64,
    ) -> Result<Option<Option<B256>>, Error> {
        let is_canonical = || Ok::<_, Error>(self.chain.canonical_hash(above)? == Some(hash));
        if !is_canonical()? {
            return Ok(None);
        }
        let mut found = self.chain.canonical_hash(number)?;
        // The first block of a chain names its parent.
        if found.is_none()
            && let Some(child) = self.chain.canonical_hash(number + 1)?
        {
            found = self.chain.link(&child)?.map(|(_, parent)| parent);
        }
        // The head may have moved to another branch meanwhile.
        Ok(is_canonical()?.then_some(found))
    }

    /// The hash of ancestor `number`, as `BLOCKHASH` asks for it.
    pub(crate) fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        let hash = self.hash(number).map_err(|error| match error {
            Error::State(error) => error,
            error => storage_error(error),
        })?;
        hash.ok_or(StateError::MissingHeader(number))
    }

    /// The RLP of the headers from ancestor `first` to the parent, ascending.
    pub(crate) fn headers(&mut self, first: u64) -> Result<Vec<Bytes>, Error> {
        let last = self.parent.number();
        let mut headers = Vec::new();
        for number in first..last {
            let hash = self.hash(number)?;
            let header = hash.map(|hash| self.chain.ancestor_rlp(&hash)).transpose()?;
            headers.push(header.flatten().ok_or(StateError::MissingHeader(number))?);
        }
        headers.push(alloy_rlp::encode(&self.parent.block.header).into());
        Ok(headers)
    }
}
