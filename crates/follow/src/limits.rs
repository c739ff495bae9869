//! Bounds of what is asked of upstreams and kept of their answers, each with its unit and its
//! reason.

use std::time::Duration;

/// Bound of a request, from its first byte written to its last byte read: a public endpoint that is
/// busy answers within some seconds, and a slot has twelve.
pub const REQUEST_TIME: Duration = Duration::from_secs(20);

/// Requests of one upstream that are on their way at a time: one is answered while another travels,
/// and public endpoints refuse many.
pub const REQUESTS: usize = 3;

/// Longest answer, in bytes: of the longest block, 12 MiB, as hex and as JSON.
pub const ANSWER_BYTES: usize = 64 << 20;

/// Pause after an error or a lie; each further one in a row doubles it.
pub const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest such pause: an upstream that was restarted is found within it.
pub const MOST_PAUSE: Duration = Duration::from_secs(300);

/// Longest pause before an upstream is asked again for a block that it does not have: it may be a
/// slot behind.
pub const ABSENT_PAUSE: Duration = Duration::from_secs(8);

/// Headers that are asked for in one request: about 2 MiB where each names 200 transactions.
pub const HEADERS: usize = 128;

/// Blocks that are asked for in one request at most.
pub const BLOCKS: usize = 32;

/// Bytes of blocks that one request asks for, by what the last ones had: so that an answer travels
/// while the one before it runs, and ends within [`REQUEST_TIME`] at 1 Mbit/s.
pub const REQUEST_BYTES: usize = 1 << 20;

/// About the bytes of a block before the first one has come: those of mainnet have as many.
pub const FIRST_BLOCK_BYTES: usize = 64 << 10;

/// How long headers, or the blocks that are needed next, may be on their way before another
/// upstream is asked for them, too, where nothing else is to be done.
pub const LATE_TIME: Duration = Duration::from_secs(3);

/// The shortest wait for an upstream to be ready again.
pub const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// Bytes of the blocks that were asked for and have not run.
pub const WINDOW_BYTES: usize = 64 << 20;

/// The number of these blocks.
pub const WINDOW_BLOCKS: usize = 256;

/// How long a gap is filled at least before a newer head moves its end, where that makes headway:
/// to move it costs what is on its way.
pub const TARGET_HOLD: Duration = LATE_TIME;

/// Pause between two looks whether the end of a gap may be moved.
pub const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Pause before a gap is tried again that could not be filled; each further one doubles it.
pub const FIRST_RETRY: Duration = Duration::from_secs(60);

/// Longest such pause: the reasons hardly ever go away without the operator.
pub const MOST_RETRY: Duration = Duration::from_secs(3600);

/// Hashes that are kept of a gap: 32 MB, and four months of mainnet. What is further behind is
/// faster to import from archives.
pub const HASHES: usize = 1_000_000;

/// Blocks that run before the head is moved: a crash loses no more.
pub const BLOCKS_A_HEAD: u64 = 64;

/// Pause between two lines of the log about the same.
pub const LOG_PAUSE: Duration = Duration::from_secs(10);

/// Pause between two questions for the headers before the first block.
pub const FIRST_HEADERS_PAUSE: Duration = Duration::from_secs(60);

/// Upstreams at most: each has its connections and its metrics.
pub const UPSTREAMS: usize = 16;

/// Pause between two questions for the chain of an upstream that has another one, or does not
/// answer: it may be restarted.
pub const CHAIN_PAUSE: Duration = Duration::from_secs(10);

/// Pause between two questions for the head of an upstream that tells of none: a slot of a chain
/// for tests has a second or two.
pub const HEAD_POLL: Duration = Duration::from_secs(1);

/// The same where a subscription tells of new heads: one may get lost, and nothing tells of the
/// safe and the finalized block, which move once in six minutes.
pub const HEAD_CHECK: Duration = Duration::from_secs(5);

/// Longest pause of an upstream whose head is followed: an upstream that was restarted is found
/// within it.
pub const HEAD_PAUSE: Duration = Duration::from_secs(4);

/// How long an upstream is left alone that has another chain: it may be restarted with the right
/// one.
pub const HEAD_UNFIT: Duration = Duration::from_secs(10);

/// How long a later upstream is followed before an earlier one is tried again.
pub const HEAD_RETURN: Duration = Duration::from_secs(60);
