//! Floor 0. The tries of one block.

use state::NodeStore;
use trie::versioned::BlockTrie;

/// The tries of one block, above the database.
pub(crate) type Tries = BlockTrie<NodeStore>;
