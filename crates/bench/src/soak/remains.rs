//! The files and the log that a node leaves.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

/// The files of a data directory that no process has open, with digits as `N`; beside them the
/// genesis, the log and the secret that this program makes.
const FILES: [&str; 14] = [
    "bench.log",
    "chain/blocks-N",
    "chain/codes-N",
    "chain/format",
    "chain/index",
    "chain/journal-N",
    "chain/lock",
    "chain/nodes-N",
    "chain/witnesses-N",
    "genesis.json",
    "jwt.hex",
    "nodekey",
    "pool/lock",
    "pool/records-N",
];

/// The warnings that troubles of ours bring about.
const DESIGNED: [&str; 12] = [
    "a block is missing, and the payloads after it wait",
    "the fork choice names a head that is not known",
    "no consensus client has called",
    "the consensus client calls, but has sent no block and no fork choice",
    "the journal ends in a torn record",
    "an invalid block",
    "connections cut at shutdown",
    // A call that has waited at a frozen node for a minute.
    "iat N differs from now",
    "slow block",
    "an upstream has not given what it was asked for",
    "no upstream of --follow answers",
    "an upstream of --follow does not say which chain it has",
];

/// Files of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

/// The files below a folder by their names, digits as `N`.
pub(crate) fn files_of(folder: &Path) -> anyhow::Result<BTreeMap<String, Kept>> {
    let mut files = BTreeMap::new();
    walk(folder, "", &mut files).with_context(|| format!("cannot read {}", folder.display()))?;
    Ok(files)
}

fn walk(folder: &Path, above: &str, files: &mut BTreeMap<String, Kept>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let (entry, name) = (entry.as_ref().ok(), entry.as_ref().ok().map(|e| e.file_name()));
        let (Some(entry), Some(name)) = (entry, name) else { continue };
        let name = format!("{above}{}", name.to_string_lossy());
        let about = entry.metadata()?;
        if about.is_dir() {
            walk(&entry.path(), &format!("{name}/"), files)?;
            continue;
        }
        let kept = files.entry(without_numbers(&name)).or_default();
        (kept.count, kept.bytes) = (kept.count + 1, kept.bytes + about.len());
    }
    Ok(())
}

/// Whether a file belongs to a node that has stopped.
pub(crate) fn is_expected(name: &str) -> bool {
    FILES.contains(&name)
}

/// Each run of hexadecimal digits that has a decimal one becomes `N`.
fn without_numbers(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let run = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        let is_word_end = !out.ends_with(|c: char| c.is_ascii_alphabetic());
        if is_word_end && rest[..run].bytes().any(|byte| byte.is_ascii_digit()) {
            out.push('N');
            rest = &rest[run..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// Lines of a log above INFO, each told by its words: how many, and whether they are designed.
pub(crate) fn warnings_of(log: &str) -> BTreeMap<String, (u64, bool)> {
    let mut found = BTreeMap::new();
    for line in log.lines() {
        let mut words = line.split_whitespace();
        let level = words.nth(1).unwrap_or_default();
        if !matches!(level, "WARN" | "ERROR") && !line.contains("panicked at") {
            continue;
        }
        let words = words.skip(1).filter(|word| !word.contains('='));
        let words: Vec<&str> =
            words.map(|word| if word.starts_with("0x") { "0xN" } else { word }).collect();
        let text = format!("{level} {}", words.join(" "));
        let text = without_numbers(&text);
        let is_designed = level == "WARN" && DESIGNED.iter().any(|known| text.contains(known));
        found.entry(text).or_insert((0, is_designed)).0 += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_names_without_numbers() {
        let check = |name: &str, expected: &str| assert_eq!(without_numbers(name), expected);
        check("chain/nodes-0000000000ab0000", "chain/nodes-N");
        check("chain/index", "chain/index");
        check("pool/records-0000000000000001", "pool/records-N");
        check("chain/nodes-1.partial", "chain/nodes-N.partial");
        assert!(is_expected("chain/nodes-N") && !is_expected("chain/nodes-N.partial"));
        let folder = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(folder.path().join("chain")).expect("made");
        for name in ["chain/nodes-01", "chain/nodes-02", "jwt.hex"] {
            std::fs::write(folder.path().join(name), "abc").expect("written");
        }
        let files = files_of(folder.path()).expect("there");
        let nodes = Kept { count: 2, bytes: 6 };
        assert_eq!((files.len(), &files["chain/nodes-N"]), (2, &nodes));
    }

    #[test]
    fn lines_above_info_are_counted_by_their_words() {
        let log = "$ deponent node\n\
            2026-11-30T17:50:21Z  INFO deponent_node: chain opened number=0\n\
            2026-11-30T17:50:22Z  WARN deponent_engine::orphans: a block is missing, and the \
            payloads after it wait: if missing=7 waiting=2\n\
            2026-11-30T17:50:23Z  WARN deponent_engine::orphans: a block is missing, and the \
            payloads after it wait: if missing=8 waiting=1\n\
            2026-11-30T17:50:23Z  WARN follow: an upstream has not given what it was asked for \
            error=it has no block 0xcafe2\n\
            2026-11-30T17:50:24Z  WARN follow: an upstream has not given what it was asked for \
            error=it has no block 0x7aface\n\
            2026-11-30T17:50:24Z ERROR deponent_node: the engine failed error=x\n\
            thread 'main' panicked at src/lib.rs:7:1:\n";
        let found: Vec<(String, (u64, bool))> = warnings_of(log).into_iter().collect();
        let counts: Vec<(u64, bool)> = found.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [(1, false), (1, false), (2, true), (2, true)], "{found:?}");
        assert_eq!(found[1].0, "ERROR the engine failed");
    }
}
