//! The code map of ARCHITECTURE.md and the newcomer's walk of CONTRIBUTING.md: what they name is
//! there.

use super::Problem;
use super::source::{Crate, whole_words};
use super::words::types;

/// Files and folders in the tables of the code map that a crate lacks.
pub(super) fn stale_rows(crates: &[Crate], architecture: &str) -> Vec<Problem> {
    let map = architecture.split("\n## ").find(|section| section.starts_with("Code map"));
    let mut one = None;
    let mut problems = Vec::new();
    for line in map.unwrap_or_default().lines() {
        if let Some((name, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
            one = crates.iter().find(|one| one.name() == name);
        }
        let Some(one) = one.filter(|_| line.starts_with('|')) else { continue };
        let Some((module, does)) = line.trim_matches('|').split_once('|') else { continue };
        let modules: Vec<_> = quoted(module).flat_map(expanded).collect();
        let missing = modules.iter().filter(|path| !has(one, path)).cloned();
        // The text beside a folder names files in it.
        let is_missing = |path: &&str| {
            let inside = modules.iter().filter(|module| module.ends_with('/'));
            path.ends_with(".rs")
                && !has(one, path)
                && !inside.clone().any(|folder| has(one, &format!("{folder}{path}")))
        };
        let missing = missing.chain(quoted(does).filter(is_missing).map(str::to_owned));
        problems.extend(
            missing.map(|path| Problem::new("ARCHITECTURE.md", no_file(one.name(), &path))),
        );
    }
    problems
}

/// Files and names in the newcomer's walk that the code lacks.
pub(super) fn stale_walk(crates: &[Crate], contributing: &str) -> Vec<Problem> {
    let section = contributing.split("\n## ").find(|one| one.starts_with("A newcomer's walk"));
    let mut problems = Vec::new();
    let mut add = |what| problems.push(Problem::new("CONTRIBUTING.md", what));
    let rows = section.unwrap_or_default().lines().filter(|line| line.starts_with('|')).skip(2);
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split('|').collect();
        let [_, places, names] = cells[..] else { continue };
        let mut read = Vec::new();
        for place in places.split(';') {
            let name = place.split(',').next().unwrap_or_default().trim();
            let Some(one) = crates.iter().find(|one| one.name() == name) else {
                add(format!("no crate {name}"));
                continue;
            };
            for path in quoted(place).filter(|path| !has(one, path)) {
                add(no_file(name, path));
            }
            read.push(one);
        }
        let files = || read.iter().flat_map(|one| &one.files);
        for name in quoted(names).flat_map(|path| path.split("::")) {
            let is_there =
                if name.starts_with(char::is_uppercase) && !names.contains(&format!("::{name}")) {
                    files().any(|file| types(&file.shipped).iter().any(|found| found.1 == name))
                } else {
                    files().any(|file| whole_words(&file.shipped, name).next().is_some())
                };
            if !is_there {
                add(format!("nothing is named {name} there"));
            }
        }
    }
    problems
}

fn no_file(name: &str, path: &str) -> String {
    format!("the crate {name} has no src/{path}")
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// `a/{b, c}.rs` as `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(before, rest)| {
        rest.split_once('}').map(|(inside, after)| (before, inside, after))
    });
    let Some((before, inside, after)) = parts else { return vec![path.to_owned()] };
    inside.split(',').map(|part| format!("{before}{}{after}", part.trim())).collect()
}

/// Whether a crate has this file or, with a slash at its end, this folder.
fn has(one: &Crate, path: &str) -> bool {
    let path = format!("{}/src/{path}", one.folder);
    one.files
        .iter()
        .any(|file| file.path == path || path.ends_with('/') && file.path.starts_with(&path))
}
