//! The errors of clients.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::jsonrpc::error::Error;
use crate::quote::shortened;

/// Why a client has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server answered with an error object.
    #[error("the server answered: {0}")]
    Rpc(#[source] Error),
    /// The server refused the HTTP request.
    #[error("the server refused with HTTP status {status}: {text}")]
    Http {
        /// The HTTP status.
        status: u16,
        /// The start of the body.
        text: String,
    },
    /// The call took too long. An HTTP connection is given up, and the next call opens another; the
    /// connection of a session goes on.
    #[error("no answer from {address} within {limit:?}")]
    Timeout {
        /// Where the call went.
        address: String,
        /// How long it may take.
        limit: Duration,
    },
    /// The address cannot be used.
    #[error("cannot use \"{address}\" as an address: {reason}")]
    Address {
        /// The text that was given.
        address: String,
        /// The fault.
        reason: String,
    },
    /// No server listens there, or the network is at fault.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Where to.
        address: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The connection broke. The call may have run or not; the next call opens another.
    #[error("the connection to {address} broke before the answer was complete: {source}")]
    Broken {
        /// Where to.
        address: String,
        /// How it broke.
        source: hyper::Error,
    },
    /// A connection that lasts is closed. Calls may have run or not, and subscriptions are over.
    #[error("the connection to {address} is closed: {reason}")]
    Closed {
        /// Where to.
        address: String,
        /// The side that closed it and its reason, or how it broke.
        reason: String,
    },
    /// Notifications of a subscription came faster than they were read, and it was given up.
    #[error("the subscription fell behind: {limit} notifications waited to be read")]
    FellBehind {
        /// How many may wait.
        limit: usize,
    },
    /// The answer is longer than a client takes.
    #[error("the answer is longer than {limit_bytes} bytes")]
    TooLong {
        /// The bound.
        limit_bytes: usize,
    },
    /// The answer is not what it should be.
    #[error("the answer is malformed: {0}")]
    Malformed(String),
    /// The parameters have no JSON form, so nothing was sent.
    #[error("cannot write the parameters of {method} as JSON: {source}")]
    Params {
        /// The call.
        method: String,
        /// The serialiser's reason.
        source: serde_json::Error,
    },
}

/// [`ClientError::Malformed`], with the start of a long reason.
pub(crate) fn malformed(fault: impl fmt::Display) -> ClientError {
    ClientError::Malformed(shortened(fault))
}
