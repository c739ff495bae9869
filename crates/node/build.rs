//! Names the commit that is built: `DEPONENT_COMMIT`, 8 hex digits, from the environment or from
//! git. Where the sources are in no repository, as in a package, it is zeroes, and `nogit` for
//! people.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=DEPONENT_COMMIT");
    let given = std::env::var("DEPONENT_COMMIT").ok().filter(|given| !given.is_empty());
    if let Some(given) = &given {
        let is_hex = given.len() >= 8 && given.bytes().all(|digit| digit.is_ascii_hexdigit());
        assert!(is_hex, "DEPONENT_COMMIT is at least 8 hex digits, and not {given:?}");
    }
    let commit = given.or_else(of_git).map(|commit| commit[..8].to_lowercase());
    let shown = commit.as_deref().unwrap_or("nogit");
    println!("cargo::rustc-env=DEPONENT_COMMIT={}", commit.as_deref().unwrap_or("00000000"));
    println!("cargo::rustc-env=DEPONENT_COMMIT_SHOWN={shown}");
}

/// The commit of the repository that this file is part of, and not of one around that.
fn of_git() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // The log grows with each commit, checkout and reset.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"]).filter(|commit| commit.len() >= 8)
}
