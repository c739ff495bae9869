//! Every bound of this crate, with its unit and its reason.
//!
//! All that clients can make a port hold, with the defaults. [`Limits::bounds`] computes it, a test
//! compares, and `deponent node --print-limits` prints it for other limits. Each row is a
//! [`Budget`](crate::transport::budget::Budget) of
//! [`PortBudgets`](crate::port::PortBudgets), or a promise that is explained at its constant.
//!
//! | MiB at most | public | engine |
//! |---|--:|--:|
//! | connections | 32 | 36 |
//! | buffers and windows of connections | 128 | 144 |
//! | requests of at most 64 KiB | 32 | 36 |
//! | longer requests | 96 | 1008 |
//! | answers of at most 64 KiB | 32 | 36 |
//! | small answers that wait for memory | 32 | 32 |
//! | longer answers, and memory files | 128 | 1008 |
//! | answers that wait for memory | 128 | 128 |
//! | a witness longer than the share of answers | 349 | 0 |
//! | answers that are compressed | 32 | 18 |
//! | subscriptions | 8 | 8 |
//! | calls that run | 1048 | 1048 |
//! | all | 2045 | 3502 |

use std::time::Duration;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

/// The bounds of one listening port. [`Limits::engine`] and [`Limits::public`] are the defaults;
/// [`with_memory`](Limits::with_memory) divides another amount of memory. The sum of all is in
/// [`Limits::bounds`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Whether whoever gets an answer is trusted: the owner of the process, or a client with a
    /// token. Then a connection may take all of a budget, and not a quarter.
    pub is_trusted: bool,
    /// Longest request body, in bytes. A longer one is answered 413. Over WebSockets, the longest
    /// message, and the most that all messages of one connection hold that await their answers: a
    /// longer message ends the connection with 1009, one too many is not read yet.
    pub body_bytes: usize,
    /// Bytes that are reserved and allocated for a body at once, if its announced length is as
    /// much; the rest is as its bytes come. A stranger's announcement is no reason to hold memory.
    pub body_start_bytes: usize,
    /// Most requests in one batch; a longer batch is refused as a whole. As geth, 2,000 on the
    /// Engine API's port, since consensus clients ask for so many at once, and 1,000 elsewhere.
    pub batch_len: usize,
    /// Once the answers of a batch hold this many bytes, the rest of its calls are refused.
    pub batch_answer_bytes: usize,
    /// Bytes of memory of all answers of more than 64 KiB that wait for their readers, and of the
    /// memory files in which answers are passed by descriptor; for a witness that is sent as hex,
    /// those of the witness. A larger answer is sent alone. It keeps slow readers of large
    /// witnesses from filling the memory.
    pub answers_bytes: usize,
    /// The same of shorter answers, which never wait behind larger ones.
    pub small_answers_bytes: usize,
    /// Shortest answer that is compressed for a client that asks for zstd, in bytes; with
    /// [`usize::MAX`] none is.
    pub zstd_bytes: usize,
    /// Answers that are compressed at a time. Others are sent as they are.
    pub encoders: usize,
    /// Bytes of all memory files in which answers are passed by descriptor, including those that
    /// wait to be reused: a part of [`answers_bytes`](Self::answers_bytes). An answer beyond that
    /// is sent through the socket.
    pub descriptor_bytes: usize,
    /// Such files, two descriptors each.
    pub descriptor_files: usize,
    /// Open connections. When there are as many, the one that has been idle for the longest time is
    /// ended for the next one; if none is idle, the next one waits in the listener's own queue.
    pub connections: usize,
    /// Bytes of memory of the protocols of all connections that have begun to speak: buffers of
    /// HTTP/1.1, windows and heads of HTTP/2, and buffers of WebSockets and bare connections. When
    /// they are used up, the connection that has been idle for the longest time is ended.
    pub protocols_bytes: usize,
    /// Bytes of the buffers of a connection of HTTP/1.1, at least 8 KiB.
    pub http1_buffer_bytes: usize,
    /// Window of a connection of HTTP/2 for what we receive, in bytes.
    pub http2_window_bytes: usize,
    /// Bytes of memory of all requests over HTTP and messages over WebSockets, from when they are
    /// received until they are answered, without the first 64 KiB of each.
    pub bodies_bytes: usize,
    /// The same of the first 64 KiB of each, so that small ones never wait behind larger ones. Of
    /// less than 1 KiB nothing is counted: so much is a part of the connection's buffers.
    pub small_bodies_bytes: usize,
    /// Open WebSockets and bare connections. For one more the one that has been idle for the
    /// longest time is ended; if none is idle, it is told that the port is busy.
    pub sessions: usize,
    /// Calls that run at the same time, each on its own thread; those that are
    /// [quick](crate::rest::Resources::is_quick) aside. A connection has at most a quarter of these
    /// turns.
    pub running_calls: usize,
    /// Bytes that one call may take while it runs, with its answer. It is what the handler
    /// promises, and counts in [`bounds`](Self::bounds) alone.
    pub call_bytes: usize,
    /// Calls that wait for a turn; one more takes the place of one of the connection with the most,
    /// or is refused. Short calls of WebSockets and bare connections, which share turns, are as
    /// many again.
    pub waiting_calls: usize,
    /// Messages of one WebSocket connection that are on the way to the end of their answers at the
    /// same time; with so many, the next one is not read yet.
    pub messages: usize,
    /// Subscriptions of one WebSocket connection; one more is refused.
    pub subscriptions: usize,
    /// Subscriptions of all connections of the port; one more is refused.
    pub all_subscriptions: usize,
    /// Longest wait for a turn to run, or for memory to send; then 503, over WebSockets an error.
    pub turn_wait: Duration,
    /// From the end of one answer to the end of the next request's headers: it cuts slow headers
    /// and idle connections alike. A connection of HTTP/2 without a request for so long is told to
    /// go away.
    pub header_read: Duration,
    /// The same for a client of HTTP on a Unix socket that has begun to speak. The state of the
    /// connection ends with it: memory files, and the codes that are not sent again.
    pub unix_header_read: Duration,
    /// Longest wait for the next bytes of a request body; then 408.
    pub body_idle: Duration,
    /// When others wait for memory, a holder without progress for so long is evicted: a request
    /// that brings no further 64 KiB, with 408, and a connection whose client reads no further 256
    /// KiB of an answer. So is an answer that takes longer than eight times as long and a second
    /// for each 4 MiB.
    pub room_time: Duration,
    /// Once the calls of a batch have run for so long, the rest of them is refused.
    pub batch_time: Duration,
    /// Longest wait for a client to read the next 256 KiB of an answer, or its last bytes; then the
    /// connection ends.
    pub write_idle: Duration,
    /// A WebSocket client that sent nothing for so long is pinged, and cut off if nothing comes for
    /// as long again, unless it waits for an answer.
    pub silence: Duration,
    /// How long a shutdown waits for running calls.
    pub shutdown_grace: Duration,
}

impl Limits {
    /// The bounds of the authenticated Engine API port, with 2304 MiB of memory.
    pub const fn engine() -> Self {
        let limits = Self {
            is_trusted: true,
            // engine_executeStatelessPayload carries a witness of up to 500 MB, in hex 1 GB.
            body_bytes: GIB,
            // The token was right by then. A payload of 30 million bytes of calldata is as long.
            body_start_bytes: 16 * MIB,
            batch_len: 2000,
            batch_answer_bytes: GIB,
            answers_bytes: 0,
            small_answers_bytes: 0,
            zstd_bytes: ZSTD_BYTES,
            encoders: 0,
            descriptor_bytes: 0,
            // Of sixteen clients that keep all they may.
            descriptor_files: 16 * LENT_FILES,
            connections: 0,
            protocols_bytes: 0,
            // A payload of a megabyte comes in sixteen reads, and a thousand connections have room.
            http1_buffer_bytes: 64 * KIB,
            // The REST Engine API wants 1 MiB a stream at least.
            http2_window_bytes: 4 * MIB,
            bodies_bytes: 0,
            small_bodies_bytes: 0,
            sessions: 1024,
            running_calls: 0,
            // The largest `eth_call` takes 124 to 128.1 MiB, for transient storage and the memory
            // of many frames. A test of the node compares.
            call_bytes: 131 * MIB,
            // Two seconds of calls of a millisecond: a crowd that comes at once.
            waiting_calls: 2048,
            // A client's next calls are at hand when a turn comes up.
            messages: 64,
            // There are a handful of things to subscribe to, and a connection may want each twice.
            subscriptions: 64,
            all_subscriptions: 0,
            // The Engine API's own timeouts are 8 seconds at most.
            turn_wait: Duration::from_secs(30),
            // A consensus client may be silent for a slot or two (12 s each).
            header_read: Duration::from_secs(30),
            // Only the owner may connect, and the system tells when a client is gone.
            unix_header_read: Duration::from_secs(3600),
            body_idle: Duration::from_secs(30),
            // Some round trips around the world.
            room_time: Duration::from_secs(2),
            // As long as a client of ours waits for an answer.
            batch_time: CALL_TIME,
            write_idle: Duration::from_secs(30),
            // As geth; many proxies cut connections that are silent for a minute.
            silence: SILENCE,
            shutdown_grace: Duration::from_secs(30),
        };
        limits.with_memory(ENGINE_BYTES)
    }

    /// The bounds of a port that anyone can reach, with 512 MiB of memory.
    pub const fn public() -> Self {
        let limits = Self {
            is_trusted: false,
            // A signed transaction with six blobs is below 2 MB in hex.
            body_bytes: 16 * MIB,
            batch_len: 1000,
            body_start_bytes: 0,
            // As geth.
            batch_time: Duration::from_secs(30),
            // geth's is 25 MB.
            batch_answer_bytes: 32 * MIB,
            http2_window_bytes: 512 * KIB,
            ..Self::engine()
        };
        limits.with_memory(PUBLIC_BYTES)
    }

    /// The same bounds, with so many bytes of memory for all that clients can make the port hold;
    /// calls that run [aside](Self::call_bytes). Each kind has a fixed share. The longest body is
    /// no longer than its share.
    pub const fn with_memory(self, bytes: usize) -> Self {
        // Parts of 128. On a trusted port long requests and answers have more of it.
        let parts = match self.is_trusted {
            true => [2, 8, 2, 56, 2, 56, 1, 1],
            false => [8, 32, 8, 24, 8, 32, 8, 2],
        };
        let [connections, protocols, small_bodies, bodies, small_answers, answers, coded, news] =
            parts;
        let part = bytes / 128;
        let (bodies_bytes, answers_bytes) = (bodies * part, answers * part);
        Self {
            connections: least(connections * part / CONNECTION_BYTES, MOST_CONNECTIONS),
            protocols_bytes: protocols * part,
            // Of little memory, windows leave room for some connections all the same.
            http2_window_bytes: least(self.http2_window_bytes, protocols * part / 16),
            small_bodies_bytes: small_bodies * part,
            bodies_bytes,
            body_bytes: least(self.body_bytes, bodies_bytes),
            small_answers_bytes: small_answers * part,
            answers_bytes,
            // A client may keep files for as long as it likes, and other answers need room too.
            descriptor_bytes: answers_bytes / 2,
            encoders: coded * part / ENCODER_BYTES,
            running_calls: turns(self.is_trusted, bytes),
            all_subscriptions: least(news * part / SUBSCRIPTION_BYTES, MOST_SUBSCRIPTIONS),
            ..self
        }
    }
}

/// As many calls run at a time as there is memory for what they work on; see
/// [`MOST_RUNNING_CALLS`].
const fn turns(is_trusted: bool, bytes: usize) -> usize {
    let turns = least(bytes / if is_trusted { 256 * MIB } else { 64 * MIB }, MOST_RUNNING_CALLS);
    if turns < 2 { 2 } else { turns }
}

/// The engine has one writer; the rest are reads, which more threads hardly speed up.
const MOST_RUNNING_CALLS: usize = 8;

const fn least(one: usize, other: usize) -> usize {
    if one < other { one } else { other }
}

/// Memory of the engine port, in bytes: a request of 1 GB, or two of the largest witnesses, by
/// descriptor, or on their way as hex; both directions at once.
const ENGINE_BYTES: usize = 2304 * MIB;
/// Memory of the public port, in bytes: a sixteenth of a machine of 8 GiB.
const PUBLIC_BYTES: usize = 512 * MIB;
/// Memory of a connection that has not begun to speak, and what the system and the runtime note of
/// any, in bytes.
pub(crate) const CONNECTION_BYTES: usize = 8 * KIB;
/// Connections of a port at most, however much memory there is: each takes a descriptor.
const MOST_CONNECTIONS: usize = 16_384;
/// Memory of an answer that is being compressed, in bytes: the tables of zstd at its first level.
pub(crate) const ENCODER_BYTES: usize = MIB;
/// Memory of a subscription, with its part of the values that wait for it, in bytes.
pub(crate) const SUBSCRIPTION_BYTES: usize = 8 * KIB;
/// Subscriptions of a port at most, however much memory there is: each value is sent to all.
const MOST_SUBSCRIPTIONS: usize = 1024;
/// The longest answer there is, in bytes: a witness of 500 MB. One that is longer than the share of
/// answers is sent alone.
pub(crate) const LONGEST_ANSWER_BYTES: usize = 500_000_000;
/// Longest answers but for witnesses, in bytes: an `eth_call` of 50 million gas returns 5 MB. As
/// many as there are turns may wait for memory.
pub(crate) const WAITING_ANSWER_BYTES: usize = 16 * MIB;
/// Bytes of an answer that a client has to read in a second, on the whole, when others wait.
pub(crate) const ROOM_BYTES_PER_SECOND: f64 = 4.0 * MIB as f64;
/// How long the calls of a batch, or short calls of one connection, have a turn before others have
/// theirs: less than anyone notices.
pub(crate) const TURN_TIME: Duration = Duration::from_millis(10);
/// How long a short call may wait behind another one of its connection before a further thread
/// takes it, and how long an answer waits for the next one: a timer's shortest time, and longer
/// than most calls take.
pub(crate) const SHORT_CALL: Duration = Duration::from_millis(1);
/// Short answers that leave together, at most.
pub(crate) const TOGETHER_LEN: usize = 16;

/// Compressing an answer of one packet gains nothing, and one of a few less than it takes.
const ZSTD_BYTES: usize = 4 * KIB;
/// The level of zstd: higher ones take longer than the saved bytes on any network.
pub(crate) const ZSTD_LEVEL: i32 = 1;
/// Largest window that is decoded, as a power of two in bytes: the one that every decoder has to
/// support (RFC 9659).
pub(crate) const ZSTD_WINDOW_LOG: u32 = 23;
/// Bytes handed to the compressor at a time: it takes some tenths of a millisecond, in which the
/// thread serves no other connection.
pub(crate) const TO_CODE_BYTES: usize = 64 * KIB;
/// Compressed bytes handed to the socket at a time, at least, and read at a time, at most.
pub(crate) const CODED_BYTES: usize = 32 * KIB;

/// Longest `id` that is echoed, and longest `method`, in bytes as written in the JSON text.
pub(crate) const ID_BYTES: usize = KIB;
/// Longest message that is parsed to find a quick call. A longer one takes its time, be it a batch,
/// a call with much to run, or a payload, in which the digits of the bloom filter alone are half of
/// that.
pub(crate) const SHORT_BYTES: usize = KIB;
/// Longest message with one call that is searched for a method in order: a fork choice with 16
/// withdrawals has 3 KiB.
pub(crate) const IN_ORDER_BYTES: usize = 64 * KIB;
/// Most parameters that one call may have; no method known takes more than 5.
pub(crate) const PARAMS_COUNT: usize = 16;
/// Request line and headers, in bytes; a token is about 200.
pub(crate) const HEADER_BYTES: usize = 32 * KIB;
/// The same of one stream of HTTP/2, of which a connection has many, as RFC 9113 section 6.5.2
/// counts them.
pub(crate) const HTTP2_HEADER_BYTES: usize = 8 * KIB;
/// Bytes of a body, or a message, that count as small; and those of a longer one that are progress.
pub(crate) const BODY_STEP_BYTES: usize = 64 * KIB;
/// Unit of the budgets of memory, in bytes: semaphores count to 2^29 at least, which would be too
/// few bytes.
pub(crate) const BUDGET_UNIT_BYTES: usize = KIB;
/// Requests, or connections, that wait for each budget at a time; one more is refused.
pub(crate) const WAITING_CONNECTIONS: usize = 512;
/// Connections to a Unix socket that wait to be accepted; more are refused by the system.
pub(crate) const BACKLOG: i32 = 1024;
/// Finished answers of an HTTP/2 connection that are forgotten together, which is cheaper than one
/// by one.
pub(crate) const FINISHED_ANSWERS_LEN: usize = 64;
/// Between two evictions by one waiter for memory.
pub(crate) const EVICTION_PAUSE: Duration = Duration::from_millis(50);
/// Between two looks at what the peer of a blocked socket has read.
pub(crate) const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// Bytes of a refused request's body that are read and forgotten, so that the client, still
/// writing, reads the refusal and not a reset connection.
pub(crate) const DISCARD_BYTES: usize = 64 * MIB;
/// The same in time.
pub(crate) const DISCARD_TIME: Duration = Duration::from_secs(5);
/// Between two looks whether a client that only reads is still there.
pub(crate) const GONE_PAUSE: Duration = Duration::from_millis(100);
/// Pause after a failed accept, most likely for want of file descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Answers and notifications of one WebSocket connection that wait for the one being sent.
pub(crate) const OUTGOING_LEN: usize = 16;
/// Memory of these, in bytes, large answers aside, which have memory of their own: notifications,
/// and errors.
pub(crate) const OUTGOING_BYTES: usize = 32 * KIB;
/// Longest WebSocket frame sent, in bytes; a longer message is sent as several. The library copies
/// a frame once, which costs little while it stays in the cache, and each connection keeps two.
pub(crate) const FRAME_BYTES: usize = 64 * KIB;
/// Bytes of short texts that are written together: what is at hand costs one system call.
pub(crate) const WRITE_BYTES: usize = 16 * KIB;
/// Unsent bytes that the WebSocket library may hold: a frame, its header, and pongs. Without this
/// bound, pings of a peer that does not read would fill the memory.
pub(crate) const UNSENT_BYTES: usize = FRAME_BYTES + 16 * KIB;
/// A stream that is opened within this time after its client was told to go away was on its way.
pub(crate) const CROSSING_TIME: Duration = Duration::from_secs(1);
/// Read from a WebSocket at a time, in bytes; each connection has twice as much, and, once a long
/// message came, another [`FRAME_BYTES`].
pub(crate) const READ_BYTES: usize = 32 * KIB;
/// Longest reason that a close frame can hold, in bytes (RFC 6455 section 5.5).
pub(crate) const REASON_BYTES: usize = 123;
/// Time of a connection without a call under way to end by itself when the server stops.
pub(crate) const GOODBYE_TIME: Duration = Duration::from_millis(500);
/// Wait for the other side of a WebSocket to say goodbye, too.
pub(crate) const CLOSE_TIME: Duration = Duration::from_secs(5);
/// Values of a topic that wait for its slowest subscription; the connection of one that falls
/// further behind is closed. One value a slot makes it hours.
pub(crate) const TOPIC_LEN: usize = 1024;
/// The same in bytes, shared by all subscriptions of the topic. The newest value stays, however
/// long it is: the logs of a heavy block have 70 MB.
pub(crate) const TOPIC_BYTES: usize = 32 * MIB;
/// Notifications that are made at a time for a subscription that begins with earlier ones.
pub(crate) const EARLIER_VALUES: usize = 16;
/// Silence after which a peer is pinged, see [`Limits::silence`].
const SILENCE: Duration = Duration::from_secs(30);
/// Characters of a foreign text (a parameter, a method, a panic, an HTTP error page) that a message
/// repeats.
pub(crate) const QUOTE_CHARS: usize = 200;
/// Characters of a message with the foreign texts in it: the longest of ours lists the names of
/// twenty members.
pub(crate) const MESSAGE_CHARS: usize = 1000;
/// Most bytes of an answer handed to the socket at a time: what is written for it, digits mostly,
/// is still in the second-level cache when the system copies it. So many a client has to take
/// within [`Limits::write_idle`].
pub(crate) const CHUNK_BYTES: usize = 256 * KIB;
/// Longest answer, in bytes, that never waits for memory behind larger ones: sockets take as much
/// at once, so it is soon sent, unless its client lets its windows of HTTP/2 fill up.
pub(crate) const SMALL_ANSWER_BYTES: usize = 64 * KIB;
/// Small answers that wait for memory; one more is refused.
pub(crate) const SMALL_ANSWERS_WAITING: usize = 512;
/// Bytes of an answer over a Unix socket that the system may hold; Linux
/// doubles it for what it notes beside them. Writer and reader take turns on one processor, and
/// with its own 208 KiB there are several times as many turns. Over TCP it finds a size itself.
/// No other bound counts this memory, which is the system's: only the owner of the process can
/// connect.
pub(crate) const SEND_BUFFER_BYTES: usize = MIB;
/// Bytes that a connection writes before others of its thread have their turn: some tenths of a
/// millisecond. A peer that reads as fast as we write would keep the thread for longer.
pub(crate) const TURN_BYTES: usize = MIB;
/// A stream of HTTP/2 has so much less of a window than its connection: others go on beside it.
pub(crate) const HTTP2_WINDOW_PARTS: u32 = 4;
/// Longest HTTP/2 frame that we take, in bytes.
pub(crate) const HTTP2_FRAME_BYTES: u32 = 256 << 10;
/// A slice of so many bytes is handed to the socket as it is; smaller ones are copied together,
/// which is cheaper than telling the system of each.
pub(crate) const LARGE_PIECE_BYTES: usize = 16 * KIB;
/// Items that are prefetched ahead of the one that is copied. A witness begins with its smallest
/// nodes, some 90 bytes each; with 8 ahead its first chunk took a fifth longer.
pub(crate) const FETCHED_ITEMS: usize = 32;
/// Bytes of an item that are prefetched: those of a node. The processor predicts the rest of a
/// longer one.
pub(crate) const FETCHED_BYTES: usize = KIB;
/// Shortest body that is worth a memory file, in bytes. A shorter one is sent through the socket,
/// even if a descriptor is asked for.
pub const DESCRIPTOR_BYTES: usize = 64 * KIB;
/// Shortest answer that two threads copy into its file, in bytes: the second takes a tenth of a
/// millisecond to start.
#[cfg(target_os = "linux")]
pub(crate) const SHARED_COPY_BYTES: usize = MIB;
/// Bytes that the first of them copies before it looks whether the second has begun: several times
/// as long as that takes where a processor is idle.
#[cfg(target_os = "linux")]
pub(crate) const FIRST_COPY_BYTES: usize = MIB;
/// Buffers of sent chunks that are kept: 4 MiB, for some clients at once.
pub(crate) const MOST_SPARE_CHUNKS: usize = 16;
/// Files lent to one connection at most; further answers are sent through the socket.
pub(crate) const LENT_FILES: usize = 8;
/// Bytes turned into hex at a time: source and target stay in the first-level cache.
pub(crate) const HEX_CHUNK_BYTES: usize = 8 * KIB;

/// A token's `iat` may differ from our clock by this much (execution-apis, authentication.md).
pub(crate) const TOKEN_AGE: Duration = Duration::from_secs(60);
/// Longest file read as a secret, in bytes: 64 digits, a prefix, and white space.
pub(crate) const SECRET_FILE_BYTES: u64 = KIB as u64;

/// Bound of opening a client's connection.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Bound of one call of a client, from its first byte written to its last byte read: geth needs 19
/// s for the largest witness on a cold process.
pub(crate) const CALL_TIME: Duration = Duration::from_secs(120);
/// Wait of a client for a connection that it has used to be ready again; then it opens another.
pub(crate) const READY_TIME: Duration = Duration::from_secs(1);
/// Longest wait of a client for the server to read 256 KiB, or all there are; over WebSockets also
/// for any sign of life when the server is pinged.
pub(crate) const SERVER_IDLE: Duration = SILENCE;
/// Notifications that wait for a subscription's reader; one that falls further behind is lost.
pub(crate) const NOTIFICATIONS_LEN: usize = 1024;
/// Most memory that a client reserves for the announced length of an answer, in bytes.
pub(crate) const RESERVED_BYTES: usize = GIB;
/// Longest text of a server that refuses a WebSocket, in bytes: an error quotes its start.
pub(crate) const REFUSAL_BYTES: usize = MIB;
/// Longest answer a client takes, in bytes: four of the largest witnesses in hex.
pub(crate) const ANSWER_BYTES: usize = 4 * GIB;
