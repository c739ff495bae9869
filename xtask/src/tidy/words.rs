//! Names and words: banned ones, doubled ones, comments that are riddles, places of `unsafe`.

use super::Problem;
use super::source::{Crate, SourceFile, blanked, line_of, whole_words};
use super::tables::rows;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Words that say nothing of what a type or a file is.
const BANNED: [&str; 6] = ["helper", "base", "common", "util", "manager", "core"];

/// Crates, files and types with a banned word in their names; and folders, in tests too.
pub(super) fn banned_names(one: &Crate) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(
        banned(one.name().split(['-', '_']))
            .map(|word| Problem::new(&one.folder, format!("{word} is a banned name"))),
    );
    for file in &one.files {
        let below = file.path.strip_prefix(&one.folder).unwrap_or(&file.path);
        problems.extend(
            banned(below.trim_end_matches(".rs").split(['/', '_']))
                .map(|word| Problem::new(&file.path, format!("{word} is a banned name"))),
        );
        for (line, name) in types(&file.shipped) {
            let place = format!("{}:{line}", file.path);
            let words = camel_words(&name);
            problems.extend(
                banned(words.iter().map(String::as_str))
                    .map(|word| Problem::new(&place, format!("{name}: {word} is a banned name"))),
            );
        }
    }
    problems
}

fn banned<'a>(words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'static str> {
    let words: BTreeSet<String> =
        words.map(|word| word.trim_end_matches('s').to_lowercase()).collect();
    BANNED.into_iter().filter(move |banned| words.contains(*banned))
}

fn camel_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for char in name.chars() {
        if char.is_uppercase() {
            words.push(String::new());
        }
        words.last_mut().expect("one is there").push(char);
    }
    words
}

/// A name that two types of a crate have; tests aside, and files named `elsewhere.rs`, which take
/// the place of others on systems that lack something.
pub(super) fn doubled_types(one: &Crate) -> Vec<Problem> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, file) in one.modules().filter(|(module, _)| !module.ends_with("elsewhere")) {
        for (line, name) in types(&file.shipped) {
            places.entry(name).or_default().push(format!("{}:{line}", file.path));
        }
    }
    places.retain(|_, places| places.len() > 1);
    let problem = |(name, places): (String, Vec<String>)| {
        Problem::new(
            &one.folder,
            format!("{name} is the name of {} types: {}", places.len(), places.join(", ")),
        )
    };
    places.into_iter().map(problem).collect()
}

/// The types that a file defines outside of functions, in modules too, each with its line; not
/// those that take the place of others where these are compiled out (`#[cfg(not(..))]`).
pub(super) fn types(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut start, mut outside) = (0, Vec::new());
    for (at, char) in code.char_indices().filter(|(_, char)| ['{', '}', ';'].contains(char)) {
        let head = &code[start..at];
        start = at + 1;
        let (item, is_alternative) = without_attributes(head);
        let is_module = item.starts_with("mod ");
        let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
        let rest = kinds.iter().find_map(|kind| item.strip_prefix(kind));
        if let Some(rest) = rest.filter(|_| outside.iter().all(|is_module| *is_module)) {
            let end = rest.find(|char: char| !(char.is_alphanumeric() || char == '_'));
            let name = &rest[..end.unwrap_or(rest.len())];
            if !is_alternative {
                found.push((line_of(code, at - rest.len()), name.to_owned()));
            }
        }
        match char {
            '{' => outside.push(is_module),
            '}' => drop(outside.pop()),
            _ => {}
        }
    }
    found
}

/// An item behind its attributes and `pub(..)`, and whether it is one of `#[cfg(not(..))]`.
fn without_attributes(head: &str) -> (&str, bool) {
    let (mut item, mut is_alternative) = (head.trim_start(), false);
    while item.starts_with("#[") || item.starts_with("#![") {
        is_alternative |= item.starts_with("#[cfg(not(");
        let mut depth = 0usize;
        let end = item.find(|char| {
            depth += usize::from(char == '[');
            depth -= usize::from(char == ']' && depth > 0);
            char == ']' && depth == 0
        });
        item = end.map_or("", |end| item[end + 1..].trim_start());
    }
    if let Some(rest) = item.strip_prefix("pub") {
        let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        item = inside.map_or(rest, |(_, rest)| rest).trim_start();
    }
    (item.strip_prefix("unsafe ").unwrap_or(item), is_alternative)
}

/// Comments that begin with What, Who or Whoever: the subject is to come first.
pub(super) fn riddles(one: &Crate) -> usize {
    one.files.iter().map(|file| riddles_in(&file.text)).sum()
}

fn riddles_in(text: &str) -> usize {
    let is_riddle = |line: &&str| {
        let words =
            line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']));
        let first = words.and_then(|words| words.split_whitespace().next()).unwrap_or_default();
        ["What", "Who", "Whoever", "What's", "Who's"].contains(&first)
    };
    text.lines().filter(is_riddle).count()
}

/// Files of another crate or from outside, compiled into this one: `#[path = ".."]`, also in
/// `cfg_attr`, and `include!("..")`.
pub(super) fn foreign_paths(one: &Crate, file: &SourceFile) -> Vec<Problem> {
    let code = blanked(&file.text);
    let below = file.path.strip_prefix(&one.folder).unwrap_or(&file.path);
    // Folders between the crate's own and the file.
    let depth = below.trim_start_matches('/').matches('/').count();
    let attributes = code.match_indices("#[").filter(|(at, _)| {
        let attribute = code[*at..].split(']').next().unwrap_or_default();
        whole_words(attribute, "path").next().is_some()
    });
    let includes = whole_words(&code, "include")
        .filter(|at| code[at + "include".len()..].trim_start().starts_with('!'));
    attributes
        .map(|(at, _)| (at, "#[path]"))
        .chain(includes.map(|at| (at, "include!")))
        .filter(|(at, _)| {
            let end = code[*at..].find([']', ';']).map_or(code.len(), |end| at + end);
            file.text[*at..end].split('"').skip(1).step_by(2).any(|path| leads_out(path, depth))
        })
        .map(|(at, what)| {
            let place = format!("{}:{}", file.path, line_of(&code, at));
            Problem::new(place, format!("{what} out of a crate"))
        })
        .collect()
}

/// The path in `fuzz/Cargo.toml` out of its crate: cargo-fuzz needs a package of its own, and the
/// targets are those that the tests of the node run.
const FUZZ_TARGETS: &str = "../crates/node/tests/fuzz/targets.rs";

/// Paths in a manifest that make a file of another crate a part of this one.
pub(super) fn foreign_targets(one: &Crate) -> Vec<Problem> {
    let lines = one.manifest.lines().map(str::trim);
    let paths = lines.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().strip_prefix('"')?.split('"').next()?;
        let is_foreign = ["path", "build"].contains(&key.trim()) && value.ends_with(".rs");
        (is_foreign && leads_out(value, 0)).then_some(value)
    });
    paths
        .filter(|path| !(one.folder == "fuzz" && *path == FUZZ_TARGETS))
        .map(|path| {
            Problem::new(format!("{}/Cargo.toml", one.folder), format!("{path} is out of a crate"))
        })
        .collect()
}

/// Whether a path is absolute, or leads up further than `depth` folders.
fn leads_out(path: &str, depth: usize) -> bool {
    let mut left = depth;
    let is_up = |part: &str| {
        match part {
            "" | "." => {}
            ".." if left == 0 => return true,
            ".." => left -= 1,
            _ => left += 1,
        }
        false
    };
    Path::new(path).is_absolute() || path.split(['/', '\\']).any(is_up)
}

/// A thread that sleeps instead of waiting for something, outside of tests and of `bench`.
pub(super) fn sleeps(one: &Crate, file: &SourceFile) -> Vec<Problem> {
    if file.is_test() || one.name() == "bench" {
        return Vec::new();
    }
    let sleeps = file.shipped.match_indices("thread::sleep(");
    sleeps
        .map(|(at, _)| {
            let place = format!("{}:{}", file.path, line_of(&file.shipped, at));
            Problem::new(place, "sleeps; wait for a condition instead")
        })
        .collect()
}

/// The table of unsafe code in ARCHITECTURE.md is exact.
pub(super) fn unsafe_files(crates: &[Crate], architecture: &str) -> Vec<Problem> {
    let mut found = BTreeSet::new();
    for one in crates {
        let tests = one.test_files();
        let shipped = one.files.iter().filter(|file| !tests.contains(file.path.as_str()));
        let is_unsafe = |file: &&SourceFile| whole_words(&file.shipped, "unsafe").next().is_some();
        found.extend(shipped.filter(is_unsafe).map(|file| file.path.as_str()));
    }
    let rows = rows(architecture, &["File", "Why"]);
    let listed: BTreeSet<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    let mut problems = Vec::new();
    problems.extend(
        found
            .difference(&listed)
            .map(|path| Problem::new(path, "unsafe code that ARCHITECTURE.md does not list")),
    );
    problems.extend(listed.difference(&found).map(|path| {
        Problem::new("ARCHITECTURE.md", format!("lists unsafe code in {path}, which has none"))
    }));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_words_are_found_as_words() {
        let found = |name: &str| banned(camel_words(name).iter().map(String::as_str)).next();
        assert_eq!(found("PoolHelper"), Some("helper"));
        assert_eq!(found("Helpers"), Some("helper"));
        assert_eq!(found("Core"), Some("core"));
        assert_eq!(found("Score"), None);
        assert_eq!(found("DatabaseFile"), None);
        assert_eq!(found("BaseFee"), Some("base"));
    }

    #[test]
    fn types_are_found_with_their_lines() {
        let code = "pub(crate) struct One<T>;\nimpl X { type Error = E; }\n\
                    fn a() {\n    struct Inner;\n}\nenum Two {}\n";
        assert_eq!(types(code), [(1, "One".to_owned()), (6, "Two".to_owned())]);
        assert_eq!(
            types("#[cfg(not(unix))]\n#[derive(Debug)]\nstruct One;\nstruct Two;\n").len(),
            1
        );
        let code = "pub(in crate::a) struct A;\nmod b {\n    #[derive(Debug)]\n\
                    pub struct B { a: u8 }\n\
                    }\nfn c() { struct D; }\nimpl B { type E = u8; }\n";
        assert_eq!(types(code), [(1, "A".to_owned()), (4, "B".to_owned())]);
    }

    #[test]
    fn comments_that_begin_with_what_are_counted() {
        let text = "/// What a block read.\n//! Who has it.\n// Whatever comes\n\
                    let what = 1; // What?\n/// The nodes.";
        assert_eq!(riddles_in(text), 2);
    }
}
