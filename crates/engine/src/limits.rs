//! Floor 0. Bounds of what the engine keeps, each with its unit and its reason.

use std::time::Duration;

/// Blocks remembered as invalid, so that their descendants are refused without running them. A
/// consensus client asks about few; an attacker can make many.
pub const INVALID_BLOCKS: usize = 1024;

/// Invalid blocks that are kept whole, for those who look into them.
pub const BAD_BLOCKS: usize = 16;

/// The bytes of all of them, in RLP: one of the largest blocks. As JSON and as hex they have five
/// times as many, which is below the memory that is counted for a call.
pub const BAD_BLOCKS_BYTES: usize = 12 << 20;

/// Pause between two lines of the log about invalid blocks: a caller can send thousands a second.
pub(crate) const INVALID_LOG_PAUSE: Duration = Duration::from_secs(5);

/// Characters of the reason that such a line has, which may repeat what the block says.
pub(crate) const LOGGED_REASON_CHARS: usize = 200;

/// Bytes of the reason why a block is invalid: a sentence or two, with what the block says.
pub const REASON_BYTES: usize = 1024;

/// Payloads kept whose parent is not known: a gap of an hour and a half, after which a consensus
/// client begins anew.
pub const ORPHANS: usize = 512;

/// Bytes of such payloads: as many as the newest blocks may take, some hundred large ones.
pub const ORPHAN_BYTES: usize = 64 << 20;

/// How long an answer may wait for such payloads to run: an eighth of the time after which a
/// consensus client gives up.
pub const ORPHANS_TIME: Duration = Duration::from_secs(1);

/// How often the log says that a block is missing.
pub const MISSING_LOG_PAUSE: Duration = Duration::from_secs(60);

/// Builds remembered. The consensus layer fetches a payload within its slot; geth keeps ten.
pub const BUILDS: usize = 32;

/// How long a payload is improved after its build began: a slot, after which no block can be
/// proposed on this parent.
pub const BUILD_TIME: Duration = Duration::from_secs(12);

/// The pause between two payloads of one build. geth's `miner.recommit` is 2 s, reth's
/// `builder.interval` 1 s; each takes as long as the block runs, twice.
pub const BUILD_PAUSE: Duration = Duration::from_millis(500);

/// Other orders that a round of a build tries, each of which is a run of the block. Random pools of
/// five gain nothing by more.
pub const BUILD_ORDERS: usize = 4;

/// How long `engine_getPayload` waits for the first payload of a build, before it answers with an
/// empty one: a late proposer asks at once, and gives the call a second.
pub const FIRST_PAYLOAD_WAIT: Duration = Duration::from_millis(250);

/// Bytes of blocks kept decoded, the newest: a hundred large ones. Older ones are read again.
pub const RECENT_BYTES: usize = 64 << 20;

/// Blocks of a database that are indexed in one transaction: a megabyte of log blooms.
pub(crate) const INDEX_BLOCKS: usize = 1 << 12;

/// The transactions in these from which on no more blocks are added: the pages that they change
/// take some hundred megabytes.
pub(crate) const INDEX_TRANSACTIONS: usize = 1 << 16;

/// Blocks whose number and parent are kept in memory, the newest: further back than a safe or a
/// finalized block mostly is, or an opcode asks. They are read when a database is opened, each from
/// a place of its own: a device's answer each at most, 5 ms in all where the index is small.
pub const LINKS: usize = 512;

/// Bytes that may wait for the disk before `newPayload` waits too: some thirty large blocks, and
/// little beside the page cache.
pub const UNPERSISTED_BYTES: u64 = 256 << 20;

/// About the bytes of memory that a node takes which a block has read, until the block is sealed.
/// As many as may wait for the disk may wait for that.
pub const UNSEALED_NODE_BYTES: u64 = 1 << 10;

/// How long one waits for room before it is asked again why there is none.
pub const ROOM_PAUSE: Duration = Duration::from_millis(500);

/// Keys in a chunk for the trie workers. A chunk costs its sender a wake-up, a few microseconds.
pub const MULTIPROOF_CHUNK_SIZE: usize = 60;

/// Keys that the trie workers have not come to at the end of a block, from which on they are worth
/// waking all threads for: some 100 µs of work.
pub const SHARED_KEYS: usize = 64;

/// Room made for a chunk in advance, in keys, whatever size is asked for.
pub const CHUNK_CAPACITY: usize = 1024;

/// Nodes hashed ahead before a trie worker looks for something better to do: about 20 µs.
pub const HASH_AHEAD_NODES: usize = 64;

/// Transactions from which on their senders are recovered on all cores: fewer are not worth waking
/// the other threads.
pub const PARALLEL_SENDERS: usize = 4;

/// Parts of the reads that threads share: some for each thread, so that they seldom meet.
pub const SHARED_READS_PARTS: usize = 32;

/// Processors up to which the threads that help a block are kept off its own: with more, one of
/// them is hardly ever woken there, and there are more threads to tell.
pub const FEW_PROCESSORS: usize = 8;

/// Gas of a block from which on trie workers are worth waking: below, the tries are a matter of
/// microseconds.
pub const PARALLEL_GAS: u64 = 1_000_000;

/// Gas of a block from which on transactions are worth running side by side.
pub const AHEAD_GAS: u64 = 1_000_000;

/// How many times the gas of a block may be burned ahead of its turn. Right guesses burn as much as
/// the block at most; of wrong ones each may burn its transaction's whole limit, and is waited for.
pub const AHEAD_GAS_TIMES: u64 = 2;

/// Transactions before its turn that one runs ahead at most, in a block without an access list: it
/// does not see what those between change. Of 226, 10 were wrong with 16, and 16 with 32.
pub const AHEAD_TRANSACTIONS: usize = 16;

/// Threads that run transactions ahead in such a block, with so many processors: 7 of 16, 3 of 8
/// and 1 of 4 take 0.63, 0.70 and 0.86 of the time without any; on two no processor is left for it.
pub const fn ahead_threads(processors: usize) -> usize {
    match processors {
        0..4 => 0,
        4..16 => processors / 2 - 1,
        16.. => 7,
    }
}

/// Gas of a transaction, a millisecond or so, from which on it begins before all others.
pub const LONG_GAS: u64 = 1_000_000;

/// How many of these do, at most, the longest: what a transaction may use is not what it will.
pub const LONG_TRANSACTIONS: usize = 16;

/// How long a thread that is too far ahead rests.
pub const AHEAD_PAUSE: Duration = Duration::from_micros(50);

/// How often the block's thread looks whether another is done with a transaction before it sleeps,
/// since to be woken takes as long as a short transaction.
pub const LOOKS_AHEAD: usize = 2_000;

/// Threads that tend tries at most: there are sixteen shards.
pub const TRIE_WORKERS: usize = 16;

/// The nice value of a thread whose work is not waited for, or that mostly waits for the disk: the
/// highest there is. It gets a seventieth of what one of the value 0 does, when both want all.
pub const BACKGROUND_NICE: i32 = 19;

/// How long a turn of such a thread is where the system lets it say so: the shortest that there is.
pub const BACKGROUND_TURN: Duration = Duration::from_micros(100);

/// How long after a verdict a block is sealed if no fork choice comes: the answer has to be encoded
/// and read first, and where processors are few sealing would take one away from that.
pub const SEAL_AFTER_VERDICT: Duration = Duration::from_millis(10);

/// The same after the fork choice, whose answer is short.
pub const SEAL_AFTER_CHOICE: Duration = Duration::from_micros(500);

/// How long the reading of the newest nodes rests while a block runs.
pub const READ_AHEAD_PAUSE: Duration = Duration::from_millis(5);

/// Reads of a storage in a block from which on it has shortcuts, whose 34 KiB are cleared first.
pub const SHORTCUT_READS: usize = 64;

/// Slots that are cached between blocks: 128 bytes each, beside what the cache keeps for itself, so
/// about 25 MB, which is little beside the cache of nodes.
pub const CACHED_SLOTS: usize = 200_000;

/// Threads that read ahead of a block that waits for the disk: as many requests as a solid-state
/// disk answers at once without becoming slower by much.
pub const PREFETCH_THREADS: usize = 16;

/// How long a block may wait for the disk before its reads are made ahead by others.
pub const COLD_BLOCK: Duration = Duration::from_millis(1);

/// Blocks before the head whose state is kept. A consensus client may go back 32 epochs at most in
/// practice; tools ask for a thousand blocks.
pub const RETAIN_HISTORY: u64 = 2048;

/// How long nothing is to be persisted before copies of witnesses are made: the fork choice follows
/// a block, and should not find the processors busy with them.
pub const COPY_PAUSE: Duration = Duration::from_millis(20);

/// Blocks before the head whose copies may wait for such a pause: the nodes of so many are in
/// memory. Of those that are late so many are made at a time.
pub const COPIES_BEHIND: u64 = 32;

/// How often a copy is tried that cannot be made: what a disk fails to read once it mostly reads
/// the next time.
pub const COPY_TRIES: u32 = 3;

/// Bytes that may wait for the disk while copies are made at the last moment, of which there may be
/// many.
pub const LATE_COPIES_BYTES: u64 = 16 << 20;

/// Blocks before the head whose witness is kept as a copy of its own.
pub const RETAIN_WITNESS_BLOCKS: u64 = 8192;

/// Bytes on disk of such copies.
pub const RETAIN_WITNESS_BYTES: u64 = 8 << 30;

/// Bytes of nodes that are worth a step of the sweep: fewer wait for the next block.
pub const SWEEP_STEP_BYTES: u64 = 1 << 20;

/// Bytes of nodes that one step of the sweep goes through at most: some tens of milliseconds where
/// they stand next to each other, a second where they are scattered on a disk.
pub const SWEEP_STEP_MAX_BYTES: u64 = 16 << 20;

/// Bytes of nodes that a sweep goes through before it hands over what it has appended, which takes
/// some hundred microseconds then.
pub const SWEEP_PART_BYTES: u64 = 1 << 20;

/// How many times longer than when a sweep begins the log may get before blocks that follow each
/// other closely have to wait for it.
pub const SWEEP_URGENCY: u64 = 2;

/// Bytes of nodes below which no sweep begins, whatever their use: there is little to win.
pub const SWEEP_MIN_BYTES: u64 = 256 << 20;

/// Bytes of each cache above a chain in memory.
pub const MEMORY_CACHE_BYTES: u64 = 1 << 20;

/// Bytes of a first state that are collected before they go to the disk.
pub const INIT_BATCH_BYTES: usize = 64 << 20;

/// Hashes of codes of a first state that are remembered, so that few codes are written twice: 32
/// bytes each. Mainnet has some two million codes.
pub const KNOWN_CODES: usize = 1 << 20;

/// Bytes of memory for codes made ready to run. Those that lie in files take 288 each, so it is
/// some 900,000 of them; of those that do not, it is half of what a full block can read.
pub const CODE_CACHE_BYTES: usize = 256 << 20;

/// Bytes of memory for the nodes of the newest witnesses: four megabytes for each of 128 blocks,
/// as far back as other clients keep states to make one from.
pub const WITNESS_CACHE_BYTES: usize = 512 << 20;

/// Bytes of a state that is elsewhere which are kept in memory at most: those of some millions of
/// nodes. More is an error.
pub const REMOTE_BYTES: usize = 4 << 30;

/// Addresses and slots that are kept with their hashes at most, some hundred bytes each.
pub const REMOTE_KEYS: usize = 4 << 20;

/// Nibbles of a hash that are looked for by hashing numbers, at most: about two seconds.
pub const REMOTE_SEARCH_NIBBLES: usize = 6;

/// Numbers that are hashed at most: of a million searches one fails.
pub const REMOTE_SEARCH_KEYS: u64 = 14 << (4 * REMOTE_SEARCH_NIBBLES);

/// Longest RLP of a trie node, in bytes: a branch with sixteen hashes and no value.
pub(crate) const NODE_BYTES: usize = 3 + 16 * 33 + 1;

/// Ancestors whose hashes a block may ask for (`BLOCKHASH`), its parent among them.
pub(crate) const BLOCK_HASHES: u64 = 256;

/// Longest RLP of a header, in bytes: Amsterdam's have less than 800, its extra data 32.
pub(crate) const HEADER_BYTES: usize = 1024;
