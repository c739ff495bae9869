//! Every bound of this crate, with its unit and its reason.

use std::time::Duration;

/// How long an idle thread for calls is kept: five slots. Otherwise a block would wait until a new
/// one has started.
pub const THREAD_KEPT: Duration = Duration::from_secs(60);

/// Threads for calls of the public port: as many as there are turns, and as many again for messages
/// that are refused while these are taken. A thread takes up to 2 MiB.
pub const PUBLIC_THREADS: usize = 16;

/// The most bodies that one `engine_getPayloadBodies` call may request. The specification demands
/// 32; geth and reth serve 1024.
pub const BODIES: u64 = 1024;

/// The most bytes of blocks in one answer with bodies, before hex: the specification demands 32 of
/// the largest blocks.
pub const BODIES_BYTES: usize = 256 << 20;

/// The most versioned hashes in one `engine_getBlobs` call, which the specification demands.
pub const BLOB_HASHES: usize = 128;

/// The most names in one `engine_exchangeCapabilities` call: all specifications together have some
/// sixty.
pub const CAPABILITIES: usize = 4096;

/// The most slots in one `eth_getProof` call: a proof has about 4 KB. geth serves 1024.
pub const PROOF_SLOTS: usize = 1024;

/// The most slots in one `eth_getStorageValues` call, and the most accounts: as many as geth serves
/// slots.
pub const STORAGE_VALUES: usize = 1024;

/// The longest answer with transactions of the pool, in bytes of JSON: a full pool of the usual
/// transactions has a tenth of it.
pub const POOL_ANSWER_BYTES: usize = 64 << 20;

/// Blocks of a reorganisation, on either side, whose transactions the pool looks at: geth's.
pub(crate) const POOL_REORG_BLOCKS: usize = 64;

/// How long `eth_sendRawTransactionSync` waits for a block unless it says so: geth's.
pub(crate) const INCLUSION_TIME: Duration = Duration::from_secs(20);

/// How long it waits at most: geth's.
pub(crate) const LONGEST_INCLUSION_TIME: Duration = Duration::from_secs(60);

/// How long a pending block is kept: geth's.
pub(crate) const PENDING_TIME: Duration = Duration::from_secs(2);

/// Transactions of one value for subscribers to pending ones: as objects they have some 64 KB.
pub(crate) const PENDING_AT_ONCE: usize = 64;

/// The most hashes that a subscription to receipts names: geth's.
pub(crate) const RECEIPT_HASHES: usize = 200;

/// Time between two looks for queued transactions that have waited for hours: geth's.
pub(crate) const POOL_STALE_PAUSE: Duration = Duration::from_secs(60);

/// The most gas of one call, even if it asks for more: geth's default, a second of work.
pub const CALL_GAS: u64 = 50_000_000;

/// The most blobs of a transaction (EIP-7594).
pub(crate) const TRANSACTION_BLOBS: usize = 6;

/// The most accounts whose state one `eth_call` may override: each takes a kilobyte, and a body of
/// 16 MiB could name 350,000.
pub const OVERRIDDEN_ACCOUNTS: usize = 1 << 14;

/// The most slots that one `eth_simulateV1` may override: the root after them takes a kilobyte for
/// each, and a body of 16 MiB could name 120,000.
pub const SIMULATED_SLOTS: usize = 100_000;

/// The most blocks of an `eth_simulateV1`: geth's.
pub const SIMULATED_BLOCKS: usize = 256;

/// The most calls of a block of an `eth_simulateV1`: geth's.
pub const BLOCK_CALLS: usize = 5_000;

/// The most calls of an `eth_simulateV1`: geth's.
pub const SIMULATED_CALLS: usize = 10_000;

/// The most bytes of an answer of `eth_simulateV1`, about. With the gas of a call, logs could have
/// 60 MB, and returned data 200 MB.
pub const SIMULATION_BYTES: usize = 16 << 20;

/// The most time that one answer runs calls for, and a trace unless its configuration says
/// otherwise: geth's default.
pub const CALL_TIME: Duration = Duration::from_secs(5);

/// The longest time that the configuration of a trace may ask for: so long another one waits.
pub(crate) const LONGEST_EVM_TRACE_TIME: Duration = Duration::from_secs(60);

/// The most bytes of the answer to one call that traces: struct logs of a full block have more,
/// and geth makes gigabytes of a loop.
pub(crate) const EVM_TRACE_BYTES: usize = 64 << 20;

/// The most blocks of a `trace_filter`: each runs again.
pub(crate) const TRACED_BLOCKS: u64 = 100;

/// The most accounts or slots of an answer of `debug_accountRange` and `debug_storageRangeAt`, as
/// geth.
pub(crate) const STATE_RANGE: usize = 256;

/// The most accounts of an answer of `debug_getModifiedAccountsBy*`: several full blocks change as
/// many.
pub(crate) const MODIFIED_ACCOUNTS: usize = 100_000;

/// The most calls of a `trace_callMany`.
pub(crate) const TRACED_CALLS: usize = 1_000;

/// Traces that run at a time: two answers of the largest size are made then.
pub(crate) const EVM_TRACES: usize = 2;

/// Traces that wait for these. Each keeps one of the threads of the port.
pub(crate) const EVM_TRACES_WAITING: usize = 4;

/// The most threads that a flag may ask for: more than the processors of any machine, and too few
/// to exhaust one.
pub(crate) const THREADS: usize = 1024;

/// The longest configuration file, in bytes: all flags with long lists have some kilobytes.
pub const CONFIG_BYTES: u64 = 1 << 20;

/// The longest file with a header that `deponent init` reads, in bytes: a header has some 600, and
/// an answer of `eth_getBlockByHash` with the hashes of 14,000 transactions a megabyte.
pub const HEADER_FILE_BYTES: u64 = 1 << 20;

/// Memory for the pages of the state that `deponent init` has written, in bytes: it reads none.
pub const INIT_CACHE_BYTES: u64 = 16 << 20;

/// Bytes of accounts and slots of a dump by hashed keys that go from its reader to the builder at a
/// time: enough to outweigh the cost of sending.
pub const DUMP_BATCH_BYTES: usize = 1 << 20;

/// Such batches that wait for the builder.
pub const DUMP_BATCHES: usize = 4;

/// Accounts that must be missing behind the last key of a dump, by its place among all keys, for
/// the dump to count as cut off. A whole dump looks so with a probability of e^-40.
pub const MISSING_ACCOUNTS: f64 = 40.0;

/// The longest file that `deponent verify` reads, and the longest answer, in bytes: a block and a
/// witness of 600 MB, in hex. The largest witness that a block has had in our measurements has
/// 500 MB.
pub const VERIFY_FILE_BYTES: u64 = 1280 << 20;

/// Blocks that `deponent verify --rpc` fetches and verifies at once: enough that the endpoint and
/// the processor both work, and few enough that four of the largest witnesses fit in memory.
pub const VERIFY_BLOCKS: usize = 4;

/// The most blocks of one range of `deponent verify --rpc`: their names take 50 MB.
pub const VERIFY_RANGE: u64 = 1 << 20;

/// How long `deponent verify --rpc` waits for an answer: clients that make a witness anew take
/// seconds.
pub const VERIFY_CALL_TIME: Duration = Duration::from_secs(120);

/// The most addresses that are hashed to find those of the accounts in a witness: a second of work.
pub(crate) const NAMES_TRIED: usize = 1 << 20;

/// The most items of a witness that `deponent_inspectWitness` looks at: each takes some 300 bytes,
/// so that a call stays below the memory that is counted for it.
pub(crate) const INSPECTED_ITEMS: usize = 1 << 17;

/// The most bytes of such a witness: each is hashed, in some 0.3 seconds for all.
pub(crate) const INSPECTED_BYTES: usize = 64 << 20;

/// The most accounts in the answer, and four times as many as items: 200 KB.
pub(crate) const INSPECTED_ROWS: usize = 400;

/// The most blocks of one `deponent_overview` call: each is read from the disk and decoded.
pub(crate) const OVERVIEW_BLOCKS: u64 = 64;

/// Blocks of which the node remembers where their time went, as many as the page shows.
pub(crate) const TIMED_BLOCKS: usize = 256;

/// The most codes that one connection numbers for a client that caches them; then numbering starts
/// over. A full block of 60 million gas reads some 20,000.
pub const HELD_CODES: usize = 1 << 18;

/// Bodies with a witness up to this many bytes are copied into one buffer: sending so few items
/// from their own places takes longer. An empty block's body has 16 KB, a full one's megabytes.
pub const JOINED_BODY_BYTES: usize = 64 << 10;

/// The free bytes of the data directory's disk below which a node stops: eight times as much as may
/// wait to be written. A heavy block writes some hundred megabytes, and none is to fail between two
/// looks.
pub const MIN_FREE_BYTES: u64 = 2 << 30;

/// How often the free space is looked at. It takes microseconds.
pub const DISK_PAUSE: Duration = Duration::from_secs(10);

/// How often the log says that there is little of it.
pub const DISK_WARNING_PAUSE: Duration = Duration::from_secs(600);

/// The bytes that the public port has to let go of before free memory is given to the system, which
/// takes tens of milliseconds of a thread, and the next block some more to get memory again.
pub const GIVEN_BACK_BYTES: usize = 64 << 20;

/// How often it is looked whether the public port let go of so much. It takes microseconds.
pub const GIVE_BACK_PAUSE: Duration = Duration::from_secs(1);

/// The least memory of a port, in bytes: some connections, and an answer of a megabyte.
pub const LEAST_PORT_BYTES: u64 = 64 << 20;

/// The least memory of a node, in bytes: a block, the ports, and caches of some megabytes.
pub const LEAST_NODE_BYTES: u64 = 2 << 30;

/// About the memory of a block while it runs, in bytes: up to 300 MiB were measured.
pub const BLOCK_BYTES: u64 = 300 << 20;

/// About the memory of a node that does nothing, in bytes.
pub const PROGRAM_BYTES: u64 = 100 << 20;

/// The nice value of threads that run calls of the public port: blocks go first, and a call is
/// served before work in the background.
pub const PUBLIC_NICE: i32 = 10;

/// Connections of a port at least, however few descriptors there are.
pub(crate) const LEAST_CONNECTIONS: usize = 64;

/// The file descriptors that connections leave to files and everything else: the logs of a chain of
/// 200 GB have some hundred segments.
pub(crate) const OTHER_DESCRIPTORS: usize = 512;

/// The most blocks of one `eth_feeHistory` call, as geth.
pub(crate) const FEE_HISTORY_BLOCKS: u64 = 1024;

/// The most percentiles of one `eth_feeHistory` call, as geth.
pub(crate) const FEE_PERCENTILES: usize = 100;

/// The longest file that is read as the node's key, in bytes: 64 digits, and white space.
pub(crate) const KEY_FILE_BYTES: u64 = 1 << 10;

/// Events of the chain that wait to be turned into notifications: five come with each block
/// (validated, its cost, the fork choice, its change of the head, persisted), so these are 8,192
/// blocks, a minute of catching up. They take some 16 MB. Beyond them subscribers are ended.
pub(crate) const FEED_EVENTS: usize = 5 << 13;

/// How long a line of the log waits for room on the standard error: a reader that is busy reads on
/// within this time, and one that has stopped must not stop the node.
pub(crate) const STDERR_WAIT: Duration = Duration::from_secs(1);

/// Hashes of blocks in these events: 4 MiB.
pub(crate) const FEED_HASHES: usize = 1 << 17;

/// How often those who observe the chain are called where nothing happens.
pub(crate) const OBSERVER_PAUSE: Duration = Duration::from_secs(1);

/// The least time between two lines about blocks: a person can read so many.
pub(crate) const BLOCK_LOG_PAUSE: Duration = Duration::from_secs(1);

/// How long `deponent status` waits for an answer, which takes some look-ups in the index.
pub(crate) const STATUS_TIME: Duration = Duration::from_secs(5);

/// How long no call may show a consensus client before the log says so, and `/ready` is not: five
/// slots.
pub(crate) const CLIENT_MISSING_TIME: Duration = Duration::from_secs(60);

/// How long one that calls may send no block and no fork choice before the log says so, and
/// `/ready` is not: ten slots, as geth waits.
pub(crate) const CLIENT_IDLE_TIME: Duration = Duration::from_secs(120);

/// How often the log says so then.
pub(crate) const CLIENT_MISSING_PAUSE: Duration = Duration::from_secs(600);

/// How long a consensus client may send blocks without a fork choice before the log says so, and
/// how often then: some slots.
pub(crate) const HEADLESS_LOG_PAUSE: Duration = Duration::from_secs(30);

/// Subscribers that are told at a time what they missed: each holds hashes of 400 KiB at most.
pub(crate) const FEED_REPLAYS: usize = 16;

/// Blocks that a subscriber is told of that it missed, as many as there are witnesses kept by
/// default.
pub(crate) const FEED_REPLAY_BLOCKS: u64 = 8192;

/// Attempts to find the chain as subscribers were told of it last, while it moves on.
pub(crate) const FEED_ATTEMPTS: usize = 16;

/// The longest wait of such an attempt for the next event, which is on its way.
pub(crate) const FEED_WAIT: Duration = Duration::from_millis(500);

/// The most addresses in a filter of logs, and the most alternatives for a topic, as geth.
pub(crate) const FILTER_ENTRIES: usize = 1000;

/// The most blocks in the range of one `eth_getLogs` call, as reth: their blooms are 26 MB.
pub(crate) const LOG_BLOCKS: u64 = 100_000;

/// The most logs in the answer to one `eth_getLogs` call over more than a block, as reth.
pub(crate) const LOGS: usize = 20_000;

/// The most bytes of these, as JSON.
pub(crate) const LOG_ANSWER_BYTES: usize = 32 << 20;

/// The most bytes of the logs of one block, as JSON: three quarters of the memory that is counted
/// for a call. A block of 60 million gas that does nothing but log has 70 MB.
pub const BLOCK_LOGS_BYTES: usize = 96 << 20;

/// The bytes of logs that are written to one buffer: one that grew with the answer would take up to
/// twice as much.
pub(crate) const LOG_PIECE_BYTES: usize = 64 << 10;

/// The room in that buffer before another log is written to it, in bytes: most logs are shorter.
pub(crate) const LOG_BYTES: usize = 4 << 10;

/// The most bytes of blocks that one such call reads: a second of work.
pub(crate) const LOG_READ_BYTES: usize = 256 << 20;

/// The bytes that a block counts for there at least, in memory or not: finding it takes as long.
pub(crate) const LOG_BLOCK_BYTES: usize = 4 << 10;

/// The most filters of a port; more end those that were asked for the longest time ago. Each takes
/// 200 bytes beside its addresses and topics.
pub const FILTERS: usize = 4096;

/// The most bytes of addresses and topics of one filter: 1,000 of each kind have 52,000.
pub const FILTER_BYTES: usize = 64 << 10;

/// The most bytes of addresses and topics of all filters of a port, whose tables take twice as
/// much.
pub const FILTERS_BYTES: usize = 16 << 20;

/// The part of these that one address may have, as of connections: a quarter.
pub(crate) const FILTERS_SHARE: usize = 4;

/// How long a filter lives after it was last asked: geth's.
pub(crate) const FILTER_TIME: Duration = Duration::from_secs(5 * 60);

/// The most transactions of the pool as objects in an answer of a filter: each is looked up.
pub(crate) const FILTER_TRANSACTIONS: usize = 4096;

/// The most topics of a log, and so of a filter.
pub(crate) const FILTER_TOPICS: usize = 4;

/// Memory of the port of metrics, in bytes: a handful of programs ask for some hundred kilobytes.
pub(crate) const METRICS_PORT_BYTES: usize = 16 << 20;

/// Connections of the port of metrics.
pub(crate) const METRICS_CONNECTIONS: usize = 32;

/// The longest text of metrics, in bytes: a series has some 100, and there are at most 2,000, most
/// of them of methods that were called.
pub(crate) const METRICS_TEXT_BYTES: usize = 1 << 20;

/// Traces that wait to be sent; more are lost. A slot has some five.
pub(crate) const TRACES_WAITING: usize = 1024;

/// Traces of one request to the collector: some hundred kilobytes.
pub(crate) const TRACE_BATCH: usize = 128;

/// Between two requests, so that spans come together.
pub(crate) const TRACE_PAUSE: Duration = Duration::from_millis(500);

/// How long a collector may take for a request.
pub(crate) const TRACE_TIME: Duration = Duration::from_secs(10);

/// Bytes of a collector's answer, which says little.
pub(crate) const TRACE_ANSWER_BYTES: usize = 64 << 10;

/// The gas limit towards which built blocks move: geth's.
pub(crate) const BUILDER_GAS_LIMIT: u64 = 60_000_000;

/// Bytes of a block's extra data (yellow paper, 4.4.4).
pub(crate) const EXTRA_DATA_BYTES: usize = 32;

/// Bytes of a state that a chain for tests unpacks: JSON of some hundred thousand accounts.
pub(crate) const DEV_STATE_BYTES: usize = 256 << 20;

/// Blocks of a chain for tests that wait to be printed, for a terminal that stands still a while.
pub(crate) const UNPRINTED_BLOCKS: usize = 4096;

/// Bytes of the calls of a block that is printed, of which lines of console.log and reasons are
/// shown: some ten thousand calls.
pub(crate) const PRINTED_TRACE_BYTES: usize = 8 << 20;

/// How long a block runs again to be printed: the blocks after it wait as long.
pub(crate) const PRINTED_TRACE_TIME: Duration = Duration::from_secs(2);

/// Blocks of a chain for tests whose state is kept: as many as anvil keeps, all that a test makes.
pub(crate) const DEV_CHAIN_HISTORY: u64 = 1_000_000;

/// Calls to the endpoint of a fork at a time.
pub(crate) const FORK_CALLS: usize = 16;

/// How long one may take.
pub(crate) const FORK_CALL_TIME: Duration = Duration::from_secs(10);

/// How often one is made that gets no answer.
pub(crate) const FORK_TRIES: u32 = 4;

/// Before the second try; it doubles with each.
pub(crate) const FORK_PAUSE: Duration = Duration::from_millis(200);

/// How long a call on a fork may take that reads a state: with answers of the endpoint to some
/// hundreds of reads.
pub(crate) const FORK_EVM_TIME: Duration = Duration::from_secs(30);

/// Bytes of an answer: of a large block, or of many logs.
pub(crate) const FORK_ANSWER_BYTES: usize = 256 << 20;

/// Bytes on disk of all that was fetched of states at endpoints.
pub(crate) const FORK_CACHE_BYTES: u64 = 1 << 30;

/// Files of one block's: beyond them they are made one.
pub(crate) const FORK_CACHE_FILES: usize = 16;

/// Blocks of a node without a state: those whose header and verdict are kept, a day and three hours
/// of mainnet, and those that may wait.
pub(crate) const STATELESS_BLOCKS: usize = 8192;

/// Bytes of the newest blocks that are kept whole: some dozen of mainnet.
pub(crate) const STATELESS_BODY_BYTES: usize = 8 << 20;

/// Bytes of the blocks in one answer with bodies, each time that one is asked for: more than all
/// that are kept.
pub(crate) const STATELESS_BODIES_BYTES: usize = 32 << 20;

/// Bytes of blocks that wait: beyond them the highest are fetched again when it is their turn.
pub(crate) const STATELESS_PAYLOAD_BYTES: usize = 32 << 20;

/// Blocks behind a valid one whose witnesses are fetched at a time.
pub(crate) const STATELESS_AHEAD: usize = 4;

/// Bytes of witnesses beyond which no other is fetched ahead: some of mainnet.
pub(crate) const STATELESS_AHEAD_BYTES: usize = 24 << 20;

/// Bytes of an answer with an ordinary witness, in JSON: one of mainnet has 5 to 15 MB.
pub(crate) const STATELESS_ANSWER_BYTES: usize = 48 << 20;

/// Bytes of the longest answer, of which one at a time is read: a witness of 128 MB in hex.
pub(crate) const STATELESS_LONGEST_ANSWER_BYTES: usize = 256 << 20;

/// Bytes of codes that are kept for witnesses that lack them.
pub(crate) const STATELESS_CODE_BYTES: usize = 16 << 20;

/// How long a payload waits for its verdict: half of the eight seconds that the Engine API gives
/// to `engine_newPayload`.
pub(crate) const STATELESS_VERDICT_TIME: Duration = Duration::from_secs(4);

/// How long a call to a source may take.
pub(crate) const STATELESS_CALL_TIME: Duration = Duration::from_secs(20);

/// How long one source has time to answer before another is asked as well.
pub(crate) const STATELESS_HEDGE_TIME: Duration = Duration::from_secs(1);

/// Half of the first pause before a source is asked again that does not have a witness yet.
pub(crate) const STATELESS_ABSENT_PAUSE: Duration = Duration::from_millis(50);

/// The age of a payload from which on its witness is asked for seldom: a slot of mainnet.
pub(crate) const STATELESS_RECENT_TIME: Duration = Duration::from_secs(12);

/// The first pause after an answer that cannot be used, or none; it doubles with each.
pub(crate) const STATELESS_FAILED_PAUSE: Duration = Duration::from_millis(250);

/// The same after a witness that was refused.
pub(crate) const STATELESS_REFUSED_PAUSE: Duration = Duration::from_millis(500);

/// The longest of these pauses.
pub(crate) const STATELESS_LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// By how much later a source is asked for each bad witness since its last good one.
pub(crate) const STATELESS_DISTRUST: Duration = Duration::from_millis(200);

/// How long a block of another branch waits.
pub(crate) const STATELESS_WAITING_TIME: Duration = Duration::from_secs(15 * 60);

/// The most sources of witnesses, each with two threads.
pub(crate) const STATELESS_SOURCES: usize = 8;

/// Bytes of memory of the ports of a node without a state, where no flag says another.
pub(crate) const STATELESS_PORT_BYTES: u64 = 128 << 20;

/// Tries of `deponent follow` to reach an upstream that is not there at the start, and the pause
/// after each: both may be started at the same time.
pub(crate) const UPSTREAM_TRIES: u32 = 60;
/// The pause.
pub(crate) const UPSTREAM_PAUSE: Duration = Duration::from_secs(1);

/// Accounts of a first state that `deponent follow` asks an upstream for: devnets have some
/// hundreds. They are held in memory.
pub(crate) const FIRST_STATE_ACCOUNTS: usize = 100_000;

/// Slots of it: 64 MiB of them. Deposit contracts of devnets have some 30.
pub(crate) const FIRST_STATE_SLOTS: usize = 1 << 20;

/// The same in one answer: most clients give 256.
pub(crate) const FIRST_STATE_PAGE: usize = 256;
