//! Rust source as text: which files there are, and what of them is code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A package of the repository.
#[derive(Debug)]
pub(super) struct Crate {
    /// Its folder below the repository's root: `crates/engine`.
    pub(super) folder: String,
    pub(super) manifest: String,
    pub(super) files: Vec<SourceFile>,
}

/// One file of Rust.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// Below the repository's root.
    pub(super) path: String,
    pub(super) text: String,
    /// The text with comments, strings, characters and modules of tests blanked: the same lines.
    pub(super) shipped: String,
}

impl Crate {
    pub(super) fn read(
        root: &Path,
        folder: &Path,
        manifest: String,
        read: impl Fn(&Path) -> Result<String, String>,
    ) -> Result<Self, String> {
        let mut sources = Vec::new();
        let place = root.join(folder);
        // Packages below a package are not part of it.
        let is_own = |path: &PathBuf| {
            let above = path.ancestors().skip(1).take_while(|above| **above != place);
            !above.into_iter().any(|above| above.join("Cargo.toml").is_file())
        };
        for path in files(&place, "rs").into_iter().filter(is_own) {
            let below = path.strip_prefix(root).expect("it was found below the root");
            sources.push(SourceFile::new(below.display().to_string(), read(&path)?));
        }
        let folder = folder.display().to_string();
        Ok(Self { folder, manifest, files: sources })
    }

    /// Its name in the repository: the last part of its folder.
    pub(super) fn name(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(&self.folder)
    }

    /// Whether it is one of the workspace, in a folder of `crates`.
    pub(super) fn is_member(&self) -> bool {
        self.folder.strip_prefix("crates/").is_some_and(|name| !name.contains('/'))
    }

    pub(super) fn lines(&self) -> usize {
        self.files.iter().map(|file| file.text.lines().count()).sum()
    }

    /// The files below `src` that are no tests, each with its module path: `after::seal`, or
    /// nothing for the crate's root.
    pub(super) fn modules(&self) -> impl Iterator<Item = (String, &SourceFile)> {
        let prefix = format!("{}/src/", self.folder);
        self.files.iter().filter_map(move |file| {
            let below = file.path.strip_prefix(&prefix)?.strip_suffix(".rs")?;
            let parts: Vec<_> = below.split('/').filter(|part| *part != "mod").collect();
            let is_root = ["lib", "main"].contains(&below);
            (!file.is_test())
                .then(|| (if is_root { String::new() } else { parts.join("::") }, file))
        })
    }
}

impl Crate {
    /// The files in `tests` folders and those of modules behind `#[cfg(test)]`.
    pub(super) fn test_files(&self) -> BTreeSet<&str> {
        let mut modules = BTreeSet::from([format!("{}/tests", self.folder)]);
        for file in &self.files {
            let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
            let is_root = ["lib.rs", "main.rs", "mod.rs"].contains(&name);
            let folder = if is_root { folder } else { file.path.trim_end_matches(".rs") };
            for (at, attribute) in file.shipped.match_indices("#[cfg(test)]") {
                let rest = file.shipped[at + attribute.len()..].trim_start();
                let rest = rest.strip_prefix("pub(crate) ").unwrap_or(rest);
                if let Some((name, _)) = rest.strip_prefix("mod ").and_then(|r| r.split_once(';')) {
                    modules.insert(format!("{folder}/{name}"));
                }
            }
        }
        let is_test = |path: &&str| {
            modules.iter().any(|module| {
                let rest = path.strip_prefix(module.as_str());
                rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            })
        };
        self.files.iter().map(|file| file.path.as_str()).filter(is_test).collect()
    }
}

impl SourceFile {
    pub(super) fn new(path: String, text: String) -> Self {
        let shipped = without_test_modules(&blanked(&text));
        Self { path, text, shipped }
    }

    /// Whether it is compiled for tests, benchmarks or examples alone.
    pub(super) fn is_test(&self) -> bool {
        let parts: Vec<_> = self.path.split('/').collect();
        let name = parts.last().copied().unwrap_or_default();
        let folders = ["tests", "benches", "examples", "testing", "fuzz", "simulation"];
        folders.iter().any(|folder| parts.contains(folder))
            || ["tests.rs", "samples.rs", "simulation.rs", "oracle.rs"].contains(&name)
    }
}

/// Every file below `folder` with this ending, in order; what cargo or git made is left out.
pub(super) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let hidden = name.to_string_lossy().starts_with('.');
            match entry.file_type() {
                Ok(kind)
                    if kind.is_dir() && !hidden && name != "target" && name != "node_modules" =>
                {
                    folders.push(path);
                }
                Ok(kind) if kind.is_file() => found.push(path),
                _ => {}
            }
        }
    }
    found.retain(|path| path.extension().is_some_and(|kind| kind == ending));
    found.sort();
    found
}

/// Where the lexer stands.
enum Within {
    Code,
    LineComment,
    /// So many comments deep.
    Comment(usize),
    Text,
    /// A raw string that ends with so many hashes.
    RawText(usize),
}

/// Replaces comments, strings and characters by as many spaces as they have bytes.
pub(super) fn blanked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let (mut within, mut at) = (Within::Code, 0);
    let starts = |at: usize, what: &str| {
        what.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c))
    };
    while at < chars.len() {
        let (next, taken) = match within {
            Within::Code if starts(at, "//") => (Within::LineComment, 2),
            Within::Code if starts(at, "/*") => (Within::Comment(1), 2),
            Within::Code if chars[at] == '"' => (Within::Text, 1),
            Within::Code => match raw_start(&chars, at).or_else(|| character(&chars, at)) {
                Some(started) => started,
                None => {
                    out.push(chars[at]);
                    at += 1;
                    continue;
                }
            },
            Within::LineComment if chars[at] == '\n' => (Within::Code, 1),
            Within::Comment(1) if starts(at, "*/") => (Within::Code, 2),
            Within::Comment(depth) if starts(at, "*/") => (Within::Comment(depth - 1), 2),
            Within::Comment(depth) if starts(at, "/*") => (Within::Comment(depth + 1), 2),
            Within::Text if chars[at] == '\\' => (Within::Text, 2),
            Within::Text if chars[at] == '"' => (Within::Code, 1),
            Within::RawText(hashes) if chars[at] == '"' && starts(at + 1, &"#".repeat(hashes)) => {
                (Within::Code, 1 + hashes)
            }
            inside => (inside, 1),
        };
        for char in chars.iter().skip(at).take(taken) {
            out.extend((0..char.len_utf8()).map(|_| if *char == '\n' { '\n' } else { ' ' }));
        }
        (within, at) = (next, at + taken);
    }
    out
}

/// A raw string that begins here.
fn raw_start(chars: &[char], at: usize) -> Option<(Within, usize)> {
    let is_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if chars[at] != 'r' || (is_word && chars[at - 1] != 'b') {
        return None;
    }
    let hashes = chars[at + 1..].iter().take_while(|char| **char == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then_some((Within::RawText(hashes), 2 + hashes))
}

/// A character that is written here, and not a lifetime.
fn character(chars: &[char], at: usize) -> Option<(Within, usize)> {
    if chars[at] != '\'' {
        return None;
    }
    let is_escaped = chars.get(at + 1) == Some(&'\\');
    let end = chars.iter().skip(at + 2 + usize::from(is_escaped)).position(|char| *char == '\'')?;
    (is_escaped && end < 10 || end == 0)
        .then_some((Within::Code, end + 3 + usize::from(is_escaped)))
}

/// Blanks `#[cfg(test)] mod name { .. }`.
fn without_test_modules(code: &str) -> String {
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(found) = out[from..].find("#[cfg(") {
        let start = from + found;
        from = start + 1;
        let Some(close) = out[start..].find(']') else { break };
        let attribute = &out[start..start + close];
        let rest = out[start + close + 1..].trim_start();
        let is_test = attribute.contains("test)") || attribute.contains("test,");
        if !is_test
            || attribute.contains("not(test)")
            || !(rest.starts_with("mod ") || rest.starts_with("pub(crate) mod "))
        {
            continue;
        }
        let body = out.len() - rest.len();
        let Some(end) = end_of_block(&out, body) else { continue };
        let blank: String =
            out[start..end].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
        out.replace_range(start..end, &blank);
    }
    out
}

/// Where the block ends that begins at the first brace behind `from`, if none but it comes before a
/// semicolon; those in brackets, `[u8; 32]`, are neither.
pub(super) fn end_of_block(code: &str, from: usize) -> Option<usize> {
    let mut brackets = 0usize;
    let is_end = |byte: u8| {
        match byte {
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        brackets == 0 && [b'{', b';'].contains(&byte)
    };
    let open = from + code[from..].bytes().position(is_end)?;
    if code.as_bytes()[open] == b';' {
        return None;
    }
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The words that begin with `name` as a whole word, by where they begin.
pub(super) fn whole_words<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    code.match_indices(name).map(|(at, _)| at).filter(move |at| {
        !code[..*at].ends_with(is_part) && !code[at + name.len()..].starts_with(is_part)
    })
}

/// The number of the line in which `at` lies, from 1.
pub(super) fn line_of(code: &str, at: usize) -> usize {
    code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}
