//! Content codings (RFC 9110 section 8.4): zstd (RFC 8878), and none.

#[cfg(feature = "client")]
pub(crate) mod decode;
#[cfg(feature = "server")]
pub(crate) mod encode;
#[cfg(feature = "server")]
pub(crate) mod negotiate;
#[cfg(all(test, feature = "server", feature = "client", feature = "zstd"))]
mod tests;

/// The name of the one coding.
pub(crate) const ZSTD: &str = "zstd";

/// The name of no coding at all.
#[cfg(feature = "client")]
pub(crate) const IDENTITY: &str = "identity";
