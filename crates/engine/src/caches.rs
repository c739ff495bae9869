//! Floor 5. The use of the caches.

use crate::engine::Engine;
use alloy_primitives::B256;
use execution::CodeCacheStats;
use state::CacheStats;

/// The use of each cache since the chain was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Pages of trie nodes.
    pub pages: CacheStats,
    /// Codes that are ready to run.
    pub codes: CacheStats,
    /// Codes as they are stored.
    pub stored_codes: CacheStats,
    /// Nodes of the newest witnesses: witnesses of blocks other than the last are looked up.
    pub witnesses: CacheStats,
}

impl Engine {
    /// How the caches are used.
    pub fn cache_use(&self) -> CacheUse {
        let CodeCacheStats { hits, misses, bytes, most_bytes } = self.codes.stats();
        let (bytes, most_bytes) = (bytes as u64, most_bytes as u64);
        CacheUse {
            pages: self.database().nodes().cache_stats(),
            codes: CacheStats { hits, misses, bytes, most_bytes },
            stored_codes: self.database().code_cache_stats(),
            witnesses: self.shared.recent.stats(),
        }
    }

    /// The head that would survive a crash now.
    pub fn persisted_head(&self) -> B256 {
        self.shared.chain.persisted.get().head
    }

    /// The bytes that may wait to be persisted before payloads wait for the disk
    /// ([`EngineOptions::unpersisted_bytes`](crate::EngineOptions::unpersisted_bytes)).
    pub fn most_unpersisted_bytes(&self) -> u64 {
        self.shared.options.unpersisted_bytes
    }
}
