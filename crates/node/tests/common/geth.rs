//! Where geth is.

use std::path::PathBuf;

/// The program that `GETH` names, else the one on the path, else where `go install` puts it.
pub(crate) fn binary() -> Option<PathBuf> {
    let home = std::env::home_dir().map(|home| home.join("go/bin/geth"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("geth"));
    let named = std::env::var_os("GETH").map(PathBuf::from);
    named.into_iter().chain(on_path).chain(home).find(|file| file.is_file())
}
