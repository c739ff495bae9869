//! Cargo.toml against ARCHITECTURE.md: who depends on whom, and on what from outside.

use super::Problem;
use super::source::Crate;
use super::tables::{names, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A manifest's dependencies: those that are shipped, and those of tests alone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Dependencies {
    pub(super) shipped: BTreeSet<String>,
    pub(super) tests: BTreeSet<String>,
}

impl Dependencies {
    pub(super) fn of(manifest: &str) -> Self {
        let mut found = Self::default();
        let mut section = Vec::new();
        for line in manifest.lines().map(str::trim) {
            let head = line.strip_prefix('[').and_then(|line| line.split_once(']'));
            let path = match (head, line.split_once('=')) {
                (Some((name, _)), _) => {
                    section = keys(name);
                    section.clone()
                }
                (None, Some((key, _))) => section.iter().cloned().chain(keys(key)).collect(),
                (None, None) => continue,
            };
            let tables: &[String] = match path.first().map(String::as_str) {
                Some("workspace") => &path[1..],
                Some("target") => path.get(2..).unwrap_or_default(),
                _ => &path,
            };
            match tables {
                [table, name, ..] if table == "dev-dependencies" => {
                    found.tests.insert(name.clone());
                }
                [table, name, ..] if ["dependencies", "build-dependencies"].contains(&&**table) => {
                    found.shipped.insert(name.clone());
                }
                _ => {}
            }
        }
        found.tests.retain(|name| !found.shipped.contains(name));
        found
    }
}

/// The parts of a key of TOML: `target.'cfg(unix)'.dependencies` has three.
fn keys(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for char in key.trim().chars() {
        match (char, quote) {
            ('.', None) => parts.push(String::new()),
            ('"' | '\'', None) => quote = Some(char),
            (end, Some(begin)) if end == begin => quote = None,
            _ => parts.last_mut().expect("one is there").push(char),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// The table of who may depend on whom is exact, tests included.
pub(super) fn edges(crates: &[Crate], architecture: &str) -> Vec<Problem> {
    let ours: BTreeSet<&str> = crates.iter().map(Crate::name).collect();
    let table: BTreeMap<String, [Vec<String>; 2]> =
        rows(architecture, &["Crate", "rests on", "in tests also"])
            .into_iter()
            .map(|row| (row[0].clone(), [names(&row[1]), names(&row[2])]))
            .collect();
    let mut problems = Vec::new();
    for one in crates.iter().filter(|one| one.is_member()) {
        let Some(allowed) = table.get(one.name()) else {
            problems.push(Problem::new(
                "ARCHITECTURE.md",
                format!("no row for the crate {}", one.name()),
            ));
            continue;
        };
        let Dependencies { shipped, tests } = Dependencies::of(&one.manifest);
        for (found, allowed, which) in
            [(shipped, &allowed[0], "rests on"), (tests, &allowed[1], "in tests also")]
        {
            let found: BTreeSet<_> =
                found.into_iter().filter(|name| ours.contains(name.as_str())).collect();
            let allowed: BTreeSet<_> = allowed.iter().cloned().collect();
            if found != allowed {
                let what =
                    format!("{which}: Cargo.toml has {found:?}, ARCHITECTURE.md {allowed:?}");
                problems.push(Problem::new(&one.folder, what));
            }
        }
    }
    problems
}

/// The table of direct dependencies is complete, and a library that is named in one crate is.
pub(super) fn dependencies(root: &Path, crates: &[Crate], architecture: &str) -> Vec<Problem> {
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    dependencies_in(&workspace, crates, architecture)
}

fn dependencies_in(workspace: &str, crates: &[Crate], architecture: &str) -> Vec<Problem> {
    let ours: BTreeSet<&str> = crates.iter().map(Crate::name).collect();
    let mut users: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut all: BTreeSet<String> = Dependencies::of(workspace).shipped;
    for one in crates.iter().filter(|one| one.is_member()) {
        let Dependencies { shipped, tests } = Dependencies::of(&one.manifest);
        for name in &shipped {
            users.entry(name.clone()).or_default().insert(one.name());
        }
        all.extend(shipped.into_iter().chain(tests));
    }
    all.retain(|name| !ours.contains(name.as_str()));
    let table: BTreeSet<String> = rows(architecture, &["Crate", "Why", "Licence"])
        .iter()
        .flat_map(|row| names(&row[0]))
        .collect();
    let place = "ARCHITECTURE.md";
    let mut problems = Vec::new();
    problems.extend(
        all.difference(&table)
            .map(|name| Problem::new(place, format!("no row for the dependency {name}"))),
    );
    problems.extend(
        table
            .difference(&all)
            .map(|name| Problem::new(place, format!("a row for {name}, on which nothing depends"))),
    );
    for row in rows(architecture, &["Library", "only in"]) {
        let allowed: BTreeSet<String> = names(&row[1]).into_iter().collect();
        for library in names(&row[0]) {
            for user in
                users.get(&library).into_iter().flatten().filter(|user| !allowed.contains(**user))
            {
                problems.push(Problem::new(
                    format!("crates/{user}"),
                    format!("names {library}, which is only in {}", row[1]),
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, manifest: &str) -> Crate {
        Crate { folder: format!("crates/{name}"), manifest: manifest.into(), files: Vec::new() }
    }

    #[test]
    fn an_edge_that_no_table_has_is_named() {
        let crates = [
            one("trie", "[dependencies]\nrevm.workspace = true\n"),
            one(
                "state",
                "[dependencies]\ntrie.workspace = true\n[dev-dependencies]\nrand = \"1\"\n",
            ),
        ];
        let table = "| Crate | rests on | in tests also |\n|---|---|---|\n| trie | – | – |\n\
                     | `state` | trie | – |\n";
        assert_eq!(edges(&crates, table), []);
        let planted = [
            one("trie", "[dependencies]\nstate.workspace = true\n"),
            one("state", "[dependencies]\ntrie.workspace = true\n"),
        ];
        assert_eq!(edges(&planted, table).len(), 1);
        assert_eq!(edges(&crates, "").len(), 2);
    }

    #[test]
    fn dependencies_are_found_in_every_form() {
        for (manifest, shipped, tests) in [
            ("[dependencies]\na.workspace = true\n[features]\nb = []\n", "a", ""),
            ("[dependencies.a]\nversion = \"1\"\n[dev-dependencies.b]\npath = \"b\"\n", "a", "b"),
            ("[target.'cfg(a.b)'.dependencies.c]\nversion = \"1\"\n", "c", ""),
            ("[target.'cfg(unix)'.dev-dependencies] # why\na = \"1\"\n", "", "a"),
            ("[build-dependencies.a]\n[workspace.dependencies.b]\nversion = \"1\"\n", "a b", ""),
        ] {
            let found = Dependencies::of(manifest);
            let text = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(" ");
            assert_eq!(
                (&*text(found.shipped), &*text(found.tests)),
                (shipped, tests),
                "{manifest}"
            );
        }
    }

    #[test]
    fn a_dependency_without_a_row_and_a_row_without_a_dependency_are_named() {
        let crates = [one("trie", "[dependencies]\nrevm.workspace = true\n")];
        let table = "| Crate | Why | Licence |\n|---|---|---|\n| revm, rand | the EVM | MIT |\n\n\
                     | Library | only in |\n|---|---|\n| revm | execution |\n";
        let found = dependencies_in("", &crates, table);
        let found: Vec<_> = found.iter().map(|problem| problem.0.as_str()).collect();
        assert_eq!(
            found,
            [
                "ARCHITECTURE.md: a row for rand, on which nothing depends",
                "crates/trie: names revm, which is only in execution",
            ]
        );
    }
}
