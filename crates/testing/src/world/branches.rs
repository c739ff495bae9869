use std::iter::successors;

use alloy_consensus::Header;
use alloy_primitives::Address;
use alloy_primitives::map::B256Map;
use execution::{ChainSpec, SealedBlock};
use witness::Witness;

use super::{StartAccount, World};

/// A [`World`] with blocks on any branch: nodes by hash in a map, tries made for each block; no
/// versions, threads, caches or files.
#[derive(Debug)]
pub struct Branches {
    /// Its headers are those of one branch.
    world: World,
    /// The headers of all valid blocks.
    pub headers: B256Map<Header>,
    /// Their witnesses, but for the first block's.
    pub witnesses: B256Map<Witness>,
}

impl Branches {
    /// A chain that begins with these accounts, the system contracts, and this header.
    ///
    /// # Panics
    /// If the header has another state root.
    pub fn new(
        chain: ChainSpec,
        accounts: impl IntoIterator<Item = (Address, StartAccount)>,
        header: Header,
    ) -> Self {
        let world = World::new(chain, accounts);
        assert_eq!(world.parent().state_root, header.state_root);
        let headers = [(header.hash_slow(), header)].into_iter().collect();
        Self { world, headers, witnesses: B256Map::default() }
    }

    /// Whether a block is valid on its parent, which is; remembers it then.
    pub fn validate(&mut self, block: &SealedBlock) -> bool {
        let parent = |header: &Header| self.headers.get(&header.parent_hash).cloned();
        self.world.headers = successors(parent(&block.header), parent).collect();
        self.world.headers.reverse();
        let Ok(validated) = self.world.validate(block) else { return false };
        self.headers.insert(block.hash(), block.header.clone());
        self.witnesses.insert(block.hash(), validated.witness.clone());
        self.world.extend(block, validated);
        true
    }
}
