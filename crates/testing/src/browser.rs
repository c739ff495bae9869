//! The Chromium binary that some tests run.

use std::path::PathBuf;

/// Chromium or Chrome on the path. `None` where there is none; a line on the standard output then
/// says so.
///
/// # Panics
/// If there is none in CI.
pub fn binary() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    assert!(
        found.is_some() || std::env::var_os("CI").is_none(),
        "no chromium on the path: apt-get install chromium"
    );
    if found.is_none() {
        println!("not run: no chromium on the path; Debian's package is chromium");
    }
    found
}
