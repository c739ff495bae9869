//! Floor 4. The threads that help a block: which there are, and which of them a block gets.

use crate::block::live::TrieThreads;
use crate::block::trie_workers::TrieWorkers;
use crate::limits;
use crate::options::{EngineOptions, processors};
use crate::threads::affinity::Affinity;
use crate::threads::background::lower_priority;
use crate::threads::pool::ThreadPool;
use alloy_consensus::Header;
use alloy_hardforks::EthereumHardforks;
use execution::{ChainSpec, SealedBlock};
use std::sync::{Arc, OnceLock};

/// The threads, each started when a block first has work for it.
#[derive(Debug, Default)]
pub(crate) struct BlockThreads {
    /// Recovers senders, runs transactions ahead, reads and hashes tries.
    pool: OnceLock<ThreadPool>,
    workers: OnceLock<TrieWorkers>,
    /// Read ahead. They mostly wait, and when they do not, others go before them.
    readers: OnceLock<ThreadPool>,
    /// Of the threads of the first two.
    affinity: Arc<Affinity>,
}

/// Which threads help a block, decided once before it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// Threads of the pool that recover senders.
    pub(crate) senders: Option<(&'a ThreadPool, usize)>,
    /// The threads that tend the tries; without them the block runs on one thread.
    pub(crate) tries: Option<TrieThreads<'a>>,
    /// Threads of the pool that run transactions ahead.
    pub(crate) ahead: Option<(&'a ThreadPool, usize)>,
    /// The threads that read ahead, once the block waits for the disk.
    pub(crate) readers: Option<&'a ThreadPool>,
}

impl<'a> Plan<'a> {
    /// For a block that came with an access list, or without.
    pub(crate) fn new(
        threads: &'a BlockThreads,
        options: &EngineOptions,
        spec: &ChainSpec,
        block: &SealedBlock,
        has_list: bool,
    ) -> Self {
        let (gas_used, count) = (block.header.gas_used, block.body.transactions.len());
        let senders = threads.sender_threads(count);
        if !is_worth_threads(options, &block.header) {
            return Self { senders, tries: None, ahead: None, readers: None };
        }
        let pool = threads.pool();
        let workers = threads.workers(options);
        let tries = TrieThreads { workers, pool, chunk_size: options.multiproof_chunk_size };
        let ahead = match has_list {
            _ if gas_used < options.ahead_gas => 0,
            true => pool.threads_count() - 1,
            // Without its list a block of Amsterdam has no guess.
            false if spec.is_amsterdam_active_at_timestamp(block.header.timestamp) => 0,
            // Most transactions do not depend on each other.
            false => options.ahead_threads,
        };
        let ahead = ahead.min(count.saturating_sub(1));
        let ahead = (ahead > 0).then_some((pool, ahead));
        Self { senders, tries: Some(tries), ahead, readers: threads.readers(options) }
    }
}

/// Whether a block is worth waking threads for.
pub(crate) fn is_worth_threads(options: &EngineOptions, header: &Header) -> bool {
    header.gas_used >= options.parallel_gas
}

impl BlockThreads {
    pub(crate) fn pool(&self) -> &ThreadPool {
        self.pool
            .get_or_init(|| ThreadPool::start_off(processors(), "engine", self.affinity.clone()))
    }

    /// The threads that recover the senders of so many transactions beside the calling one, where
    /// that is worth it.
    pub(crate) fn sender_threads(&self, transactions: usize) -> Option<(&ThreadPool, usize)> {
        if transactions < limits::PARALLEL_SENDERS {
            return None;
        }
        let pool = self.pool();
        Some((pool, pool.threads_count().min(transactions) - 1))
    }

    fn workers(&self, options: &EngineOptions) -> &TrieWorkers {
        self.workers.get_or_init(|| {
            let left = processors().saturating_sub(1 + options.ahead_threads);
            let count = options.trie_workers.unwrap_or(left);
            TrieWorkers::start(count.clamp(1, limits::TRIE_WORKERS), self.affinity.clone())
        })
    }

    fn readers(&self, options: &EngineOptions) -> Option<&ThreadPool> {
        let count = options.prefetch_threads;
        let start = || ThreadPool::start(count, "prefetch", lower_priority);
        (count > 0).then(|| self.readers.get_or_init(start))
    }
}
