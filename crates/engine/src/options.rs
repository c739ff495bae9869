//! Floor 0. How an engine is set up.

use crate::limits;
use crate::remote::Remote;
use alloy_primitives::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// How the engine works; the defaults are for a node on a machine of its own.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Blocks that may wait in memory before they are persisted (`--engine.persistence-threshold`).
    pub persistence_threshold: usize,
    /// Bytes that may wait to be persisted; beyond them `newPayload` waits for the disk.
    pub unpersisted_bytes: u64,
    /// Keys handed to the trie workers at a time (`--engine.multiproof-chunk-size`).
    pub multiproof_chunk_size: usize,
    /// Gas from which on a block is worth the trie workers; a smaller one runs on one thread.
    pub parallel_gas: u64,
    /// Gas from which on the transactions of a block run side by side.
    pub ahead_gas: u64,
    /// Threads that run transactions ahead of a block that came without an access list
    /// (`--engine.ahead-threads`); 0 is none. Half of the cores but one by default, up to 7, and
    /// none below four cores.
    pub ahead_threads: usize,
    /// Threads that load tries while a block runs (`--engine.trie-workers`); `None` is as many as
    /// there are cores besides the block's and those of `ahead_threads`, 16 at most.
    pub trie_workers: Option<usize>,
    /// Threads that read ahead of a block that waits for the disk; 0 is none.
    pub prefetch_threads: usize,
    /// How long a block waits for the disk before its reads are made ahead.
    pub prefetch_after: Duration,
    /// Bytes of the log of nodes, the newest, that are read into the cache in the background when
    /// the chain is opened.
    pub read_ahead_bytes: u64,
    /// Bytes of nodes below which the log is not swept.
    pub sweep_min_bytes: u64,
    /// Bytes of nodes that are worth a step of the sweep.
    pub sweep_step_bytes: u64,
    /// Bytes of memory for codes made ready to run (`--cache.code-bytes`).
    pub code_cache_bytes: usize,
    /// Bytes of memory for the nodes of the newest witnesses (`--cache.witness-bytes`).
    pub witness_cache_bytes: usize,
    /// Blocks before the head whose state is kept (`--history.retain-blocks`).
    pub retain_history: u64,
    /// Blocks whose witness is kept as a copy of its own (`--witness.retain-blocks`).
    pub retain_witness_blocks: u64,
    /// Bytes of such copies (`--witness.retain-bytes`).
    pub retain_witness_bytes: u64,
    /// The gas limit towards which built blocks move, where the consensus layer names none
    /// (`--builder.gas-limit`); `None` keeps the parent's.
    pub target_gas_limit: Option<u64>,
    /// The extra data of blocks that are built for the consensus layer (`--builder.extra-data`),
    /// 32 bytes at most.
    pub extra_data: Bytes,
    /// Whether threads behind the answers have the lowest priority, so that blocks go first. A
    /// chain whose calls wait for those threads is starved by it on a busy machine.
    pub low_priority: bool,
    /// The most blobs of a built block, where the fork allows more (`--builder.max-blobs`).
    pub max_blobs: Option<u64>,
    /// The state after the first block, where that is elsewhere.
    pub remote: Option<Arc<Remote>>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            persistence_threshold: 0,
            unpersisted_bytes: limits::UNPERSISTED_BYTES,
            multiproof_chunk_size: limits::MULTIPROOF_CHUNK_SIZE,
            parallel_gas: limits::PARALLEL_GAS,
            ahead_gas: limits::AHEAD_GAS,
            ahead_threads: limits::ahead_threads(processors()),
            trie_workers: None,
            prefetch_threads: limits::PREFETCH_THREADS,
            prefetch_after: limits::COLD_BLOCK,
            read_ahead_bytes: 0,
            sweep_min_bytes: limits::SWEEP_MIN_BYTES,
            sweep_step_bytes: limits::SWEEP_STEP_BYTES,
            code_cache_bytes: limits::CODE_CACHE_BYTES,
            witness_cache_bytes: limits::WITNESS_CACHE_BYTES,
            retain_history: limits::RETAIN_HISTORY,
            retain_witness_blocks: limits::RETAIN_WITNESS_BLOCKS,
            retain_witness_bytes: limits::RETAIN_WITNESS_BYTES,
            target_gas_limit: None,
            extra_data: Bytes::from_static(b"deponent"),
            low_priority: true,
            max_blobs: None,
            remote: None,
        }
    }
}

/// How many threads can run at once.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
