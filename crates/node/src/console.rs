//! Texts of the program about itself: its version, and its errors.

/// The version with the commit that was built, which tells builds of one version apart.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("DEPONENT_COMMIT_SHOWN"));

/// An error with its causes, on one line. Each may quote a file or a server: it is cut, and printed
/// without control characters.
pub(crate) fn printed(error: &anyhow::Error) -> String {
    error.chain().map(rpc::shortened).collect::<Vec<_>>().join(": ")
}
