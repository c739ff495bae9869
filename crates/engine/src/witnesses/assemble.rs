//! Floor 3. Witnesses, put together from what is at hand of a block.

use crate::chain::read_set::{ReadNodes, ReadSet};
use crate::chain::record::{BlockRecord, WitnessBytes, WitnessSize};
use crate::read::ancestors::Ancestors;
use crate::shared::{Chain, Shared};
use crate::threads::background::Background;
use crate::threads::pool::ThreadPool;
use crate::tries::Tries;
use crate::witnesses::assembled::Assembled;
use crate::witnesses::packed::WitnessCopy;
use crate::witnesses::recent::{RecentWitness, RecentWitnesses};
use crate::{Error, limits};
use alloy_primitives::B256;
use state::Retained;
use std::cell::Cell;
use std::sync::Arc;
use trie::NodeList;
use trie::versioned::{Lister, NodeAddress};
use witness::{ReadCode, StateError, Witness};

/// The witnesses of all valid blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Witnesses<'a> {
    chain: &'a Chain,
    recent: &'a RecentWitnesses,
    background: &'a Background,
    /// Sorts the nodes of a large block beside the calling thread.
    pool: Option<&'a ThreadPool>,
}

impl<'a> Witnesses<'a> {
    /// On the calling thread alone.
    pub(crate) fn new(shared: &'a Shared) -> Self {
        let Shared { chain, recent, background, .. } = shared;
        Self { chain, recent, background, pool: None }
    }

    /// With a pool for large blocks.
    pub(crate) fn on(self, pool: &'a ThreadPool) -> Self {
        Self { pool: Some(pool), ..self }
    }

    /// The witness of a valid block; `None` when there is no such block, or it is the first of its
    /// chain. Many who ask for one have it made once.
    pub(crate) fn get(&self, hash: &B256) -> Result<Option<Assembled>, Error> {
        // The block comes first: when it is there, it is the newest, or has been handed on to be
        // sealed.
        let Some(record) = self.chain.block(hash)? else { return Ok(None) };
        let entry = self.recent.entry(hash);
        entry.get_or_assemble(|| {
            self.recent.with_lister(|lister| self.assemble(lister, &record, &entry))
        })
    }

    /// How much a block's witness is, without putting it together; `None` for the first block of a
    /// chain. It waits for a block whose nodes are still to be listed.
    pub(crate) fn size(&self, record: &BlockRecord) -> Option<WitnessSize> {
        self.size_by(record, |read_set| Some(self.addresses(read_set).len()))
    }

    /// The same, or `None` where it would take waiting.
    pub(crate) fn known_size(&self, record: &BlockRecord) -> Option<WitnessSize> {
        self.size_by(record, |read_set| Some(read_set.listed()?.addresses.len()))
    }

    /// `count` counts the nodes of a block where they are not listed yet.
    fn size_by(
        &self,
        record: &BlockRecord,
        count: impl Fn(&ReadSet) -> Option<usize>,
    ) -> Option<WitnessSize> {
        let read_set = record.read_set.as_ref()?;
        let codes = read_set.codes.len();
        let headers = (record.number() - read_set.first_ancestor) as usize;
        if let Some(Assembled { witness, .. }) = self.recent.assembled(&record.hash()) {
            let bytes = Some(WitnessBytes::Exactly(witness::ssz::encoded_len(&witness)));
            return Some(WitnessSize { nodes_at_most: witness.state.len(), codes, headers, bytes });
        }
        let newest = self.recent.newest(&record.hash());
        let tries = newest.as_ref().and_then(|newest| newest.tries.upgrade());
        let (nodes_at_most, nodes_bytes) = match (read_set.listed(), tries) {
            (None, Some(tries)) => {
                let (count, bytes) = tries.witness_size();
                (count, Some(bytes))
            }
            (Some(ReadNodes { addresses, bytes }), _) => (addresses.len(), *bytes),
            (None, None) => (count(read_set)?, None),
        };
        let code_bytes = newest.and_then(|newest| newest.codes);
        let code_bytes =
            code_bytes.map(|codes| codes.iter().map(|code| code.bytes.len()).sum::<usize>());
        let bytes = code_bytes.zip(nodes_bytes).map(|(code_bytes, nodes_bytes)| {
            let items_bytes = code_bytes + nodes_bytes + headers * limits::HEADER_BYTES;
            WitnessBytes::AtMost(items_bytes + 4 * (3 + nodes_at_most + codes + headers))
        });
        Some(WitnessSize { nodes_at_most, codes, headers, bytes })
    }

    fn assemble(
        &self,
        lister: &mut Lister,
        record: &BlockRecord,
        entry: &RecentWitness,
    ) -> Result<Option<Assembled>, Error> {
        let parent_hash = record.block.header.parent_hash;
        let parent = self.chain.block(&parent_hash)?;
        let (read_set, parent) = match (&record.read_set, parent) {
            (Some(read_set), Some(parent)) => (read_set, parent),
            (Some(_), None) => return Err(Error::UnknownBlock(parent_hash)),
            (None, Some(parent)) => return self.assemble_copy(record, parent).map(Some),
            (None, None) => return Ok(None),
        };
        let codes = match &entry.codes {
            Some(codes) => codes.to_vec(),
            None => read_set.codes.iter().map(|hash| self.code(hash)).collect::<Result<_, _>>()?,
        };
        assert_eq!(codes.len(), read_set.codes.len(), "each code has its hash");
        let mut codes: Vec<_> = codes.into_iter().zip(read_set.codes.iter().copied()).collect();
        // No two codes are the same, since their hashes are not.
        let unsorted = Cell::new(Some(&mut codes));
        let sort = || unsorted.take().into_iter().for_each(|codes| codes.sort_unstable());
        // From the fastest source to the slowest. Each gives the nodes in order.
        let hash = record.hash();
        let state = if let (Some(tries), Some(pool)) = (entry.tries.upgrade(), self.pool) {
            list_captured(&tries, lister, pool, sort)
        } else if let Some(nodes) = self.recent.nodes(&hash) {
            lister.copy(&nodes)
        } else if let Retained::Present(copy) = self.chain.database.witness(&hash)? {
            WitnessCopy::unpack(&copy)?.state
        } else {
            self.read_nodes(lister, read_set, &parent)?
        };
        sort();
        self.whole(parent, state, codes, read_set.first_ancestor).map(Some)
    }

    /// The witness of a block of which nothing is kept but the copy.
    fn assemble_copy(
        &self,
        record: &BlockRecord,
        parent: Arc<BlockRecord>,
    ) -> Result<Assembled, Error> {
        let Retained::Present(copy) = self.chain.database.witness(&record.hash())? else {
            return Err(Error::PrunedWitness(record.hash()));
        };
        let copy = WitnessCopy::unpack(&copy)?;
        let with_code = |hash: B256| Ok((self.code(&hash)?, hash));
        let codes = copy.code_hashes.into_iter().map(with_code);
        let mut codes: Vec<_> = codes.collect::<Result<_, Error>>()?;
        codes.sort_unstable();
        self.whole(parent, copy.state, codes, copy.first_ancestor)
    }

    fn whole(
        &self,
        parent: Arc<BlockRecord>,
        state: NodeList,
        codes: Vec<(ReadCode, B256)>,
        first_ancestor: u64,
    ) -> Result<Assembled, Error> {
        let (codes, code_hashes): (_, Vec<_>) =
            codes.into_iter().map(|(code, hash)| (code.bytes, hash)).unzip();
        let headers = Ancestors::new(self.chain, parent).headers(first_ancestor)?;
        let witness = Arc::new(Witness { state, codes, headers });
        Ok(Assembled { witness, code_hashes: code_hashes.into() })
    }

    fn code(&self, hash: &B256) -> Result<ReadCode, Error> {
        let code = self.chain.database.stored_code(hash)?;
        let code = code.ok_or(StateError::MissingCode(*hash))?;
        Ok(ReadCode { first: code.first, bytes: code.code() })
    }

    /// The nodes that a block read, from the version that it read them from.
    pub(crate) fn read_nodes(
        &self,
        lister: &mut Lister,
        read_set: &ReadSet,
        parent: &BlockRecord,
    ) -> Result<NodeList, Error> {
        self.chain.sealed(self.background, parent)?;
        Ok(lister.list(self.chain.database.nodes(), self.addresses(read_set))?)
    }

    /// Waits until a block's nodes are listed.
    fn addresses<'r>(&self, read_set: &'r ReadSet) -> &'r [NodeAddress] {
        let _wanted = read_set.listed().is_none().then(|| self.background.want());
        read_set.addresses()
    }
}

/// The nodes that a block's tries have captured, in order. The calling thread runs `first` while
/// others wake.
fn list_captured(
    tries: &Arc<Tries>,
    lister: &mut Lister,
    pool: &ThreadPool,
    first: impl Fn(),
) -> NodeList {
    tries.witness(lister, pool.threads_count(), &|units| match units {
        // Another thread would have to wake.
        [unit] => unit.run(),
        units => pool.run_behind(&first, units),
    })
}
