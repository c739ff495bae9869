use crate::limits;
use crate::tree::{BlockRecord, BlockTree};
use alloy_primitives::{B256, Bytes};
use state::Store;
use std::sync::{Arc, OnceLock, RwLock};
use trie::NodeSource;
use witness::{Ancestor, Source};

/// The state and the ancestors as a child of `parent` sees them.
#[derive(Debug)]
pub(crate) struct View<'a> {
    store: &'a Store,
    tree: &'a RwLock<BlockTree>,
    parent: Arc<BlockRecord>,
    /// The parent and its ancestors within reach, newest first; filled on the first question.
    ancestors: OnceLock<Vec<Arc<BlockRecord>>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(
        store: &'a Store,
        tree: &'a RwLock<BlockTree>,
        parent: Arc<BlockRecord>,
    ) -> Self {
        Self { store, tree, parent, ancestors: OnceLock::new() }
    }

    fn ancestors(&self) -> &[Arc<BlockRecord>] {
        self.ancestors.get_or_init(|| {
            let tree = self.tree.read().expect("no thread panics while it holds the lock");
            let next =
                |record: &Arc<BlockRecord>| tree.block(&record.block.header.parent_hash).cloned();
            std::iter::successors(Some(self.parent.clone()), next)
                .take(limits::BLOCK_HASH_REACH as usize)
                .collect()
        })
    }
}

impl NodeSource for View<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.store.node(hash)
    }
}

impl Source for View<'_> {
    fn code(&self, code_hash: &B256) -> Option<Bytes> {
        self.store.code(code_hash)
    }

    fn ancestor(&self, number: u64) -> Option<Ancestor> {
        let depth = self.parent.block.header.number.checked_sub(number)?;
        let record = match depth {
            0 => &self.parent,
            _ => self.ancestors().get(usize::try_from(depth).ok()?)?,
        };
        let rlp = alloy_rlp::encode(&record.block.header).into();
        Some(Ancestor { hash: record.block.hash(), rlp })
    }
}
