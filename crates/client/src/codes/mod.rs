//! Codes that the server need not send, because the client has them.

mod held;
mod mapped;
mod partial;

use rpc::rest::{HeaderName, HeaderValue};

pub(crate) use held::HeldCodes;
pub(crate) use mapped::{MappedFiles, PartialAnswer};

/// Which codes of the witnesses that come with payloads the server, if it is Deponent, leaves out.
/// The witnesses are whole all the same. Over JSON-RPC all codes are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodeCache {
    /// None: all codes are sent each time.
    #[default]
    Off,
    /// The client keeps copies of the codes that it receives, and is sent each of them once a
    /// connection.
    Held {
        /// Bytes of codes that may be kept between two calls, above 0. When there are more, all are
        /// dropped after the call, with the connection.
        most_bytes: usize,
    },
    /// The client reads codes in the server's files, which are mapped when they are first named.
    /// A mapping stays while there is a slice of it. Needs a Unix socket: over TCP payloads are
    /// refused, by a problem.
    ///
    /// The locations of codes are believed, as the rest of a witness is before it is verified. The
    /// files cannot be sealed: a process that can write to the server's data directory can change
    /// codes while they are read, and can cut files, which ends their reader with a `SIGBUS`.
    Mapped,
}

/// The codes that a client has.
#[derive(Debug)]
pub(crate) enum ClientCodes {
    Off,
    Held(HeldCodes),
    Mapped(MappedFiles),
}

impl From<CodeCache> for ClientCodes {
    fn from(cache: CodeCache) -> Self {
        match cache {
            CodeCache::Off | CodeCache::Held { most_bytes: 0 } => Self::Off,
            CodeCache::Held { most_bytes } => Self::Held(HeldCodes::new(most_bytes)),
            CodeCache::Mapped => Self::Mapped(MappedFiles::default()),
        }
    }
}

impl ClientCodes {
    /// The header with which a witness is asked for.
    pub(crate) const fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Off => None,
            Self::Held(_) => Some((partial::CODES, held::HELD)),
            Self::Mapped(_) => Some((partial::CODES, mapped::MAPPED)),
        }
    }
}
