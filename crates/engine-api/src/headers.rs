//! The names of headers, and the values that have a meaning of their own.
//!
//! Names are in lower case, as HTTP/2 has them. The header by which memory is lent over a Unix
//! socket, `deponent-descriptor`, belongs to the transport and is defined there.

/// Names the [`Fork`](crate::Fork) of a request over REST, by [`Fork::name`](crate::Fork::name)
/// (execution-apis #793).
pub const EXECUTION_VERSION: &str = "eth-execution-version";

/// Names the consensus client that asks (execution-apis #793).
pub const CLIENT_VERSION: &str = "x-engine-client-version";

/// Asks for a witness without the codes that the client has, with one of the values [`HELD`] and
/// [`MAPPED`]; in the answer, says how codes were left out: `mapped`, or the number of the first
/// code that was sent.
pub const CODES: &str = "deponent-codes";

/// The value of [`CODES`] of a client that keeps every code that came on its connection.
pub const HELD: &str = "held";

/// The value of [`CODES`] of a client that maps the server's files of codes.
pub const MAPPED: &str = "mapped";

/// The path of the witness of a block that was found VALID.
pub const WITNESS: &str = "deponent-witness";

/// The number of items and bytes of the witness, and the milliseconds that its assembly took.
pub const WITNESS_ITEMS: &str = "deponent-witness-items";

/// Milliseconds of each part of the validation, in the form of `Server-Timing`.
pub const TIMINGS: &str = "deponent-timings";

/// The media type of bodies in SSZ.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// The media type of refusals over REST (RFC 9457).
pub const PROBLEM_JSON: &str = "application/problem+json";
