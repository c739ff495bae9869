//! `cargo xtask tidy`: the rules of the house that no compiler checks. CONTRIBUTING.md has them
//! in words; the figures that may only fall are in `xtask/tidy.txt`.

mod code_map;
mod lengths;
mod links;
mod log_lines;
mod manifests;
mod modules;
mod source;
mod tables;
mod words;

use crate::{Failure, root};
use source::Crate;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Problem(String);

impl Problem {
    fn new(place: impl Display, what: impl Display) -> Self {
        Self(format!("{place}: {what}"))
    }
}

/// The repository as `tidy` reads it: every file once.
#[derive(Debug)]
struct Repository {
    root: PathBuf,
    crates: Vec<Crate>,
    /// Markdown files by their path below the root.
    markdown: Vec<(String, String)>,
    architecture: String,
    ratchets: tables::Ratchets,
}

/// Checks the repository; the error lists all problems.
pub(crate) fn check() -> Result<(), Failure> {
    println!("$ cargo xtask tidy");
    let root = root();
    let repository = Repository::read(&root).map_err(Failure::new)?;
    let mut problems = repository.problems();
    match problems.len() {
        0 => {
            println!("{}", repository.summary());
            Ok(())
        }
        count => {
            problems.sort_by(|one, other| one.0.cmp(&other.0));
            let lines: Vec<_> = problems.into_iter().map(|problem| problem.0).collect();
            Err(Failure::new(format!("{count} problems\n{}", lines.join("\n"))))
        }
    }
}

impl Repository {
    fn read(root: &Path) -> Result<Self, String> {
        let read = |path: &Path| {
            fs::read_to_string(path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let mut crates = Vec::new();
        for manifest in source::files(root, "toml") {
            let is_package = |text: &str| text.lines().any(|line| line.trim() == "[package]");
            if manifest.file_name().is_some_and(|name| name == "Cargo.toml")
                && is_package(&read(&manifest)?)
            {
                let folder = manifest.parent().expect("a manifest is in a folder");
                let below = folder.strip_prefix(root).expect("it was found below the root");
                crates.push(Crate::read(root, below, read(&manifest)?, read)?);
            }
        }
        let mut markdown = Vec::new();
        for path in source::files(root, "md") {
            let below = path.strip_prefix(root).expect("it was found below the root");
            markdown.push((below.display().to_string(), read(&path)?));
        }
        let architecture = read(&root.join("ARCHITECTURE.md"))?;
        let ratchets = tables::Ratchets::parse(&read(&root.join("xtask/tidy.txt"))?)?;
        Ok(Self { root: root.into(), crates, markdown, architecture, ratchets })
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (path, text) in &self.markdown {
            problems.extend(links::broken(&self.root, path, text));
            problems.extend(lengths::of_markdown(path, text));
        }
        for one in &self.crates {
            problems.extend(modules::circles(one));
            problems.extend(modules::upward_imports(one));
            problems.extend(words::banned_names(one));
            problems.extend(words::foreign_targets(one));
            let doubled = words::doubled_types(one);
            problems.extend(self.ratchets.left_over("doubled", one.name(), doubled));
            for file in &one.files {
                problems.extend(lengths::of_rust(file));
                problems.extend(words::foreign_paths(one, file));
                problems.extend(words::sleeps(one, file));
            }
            problems.extend(self.ratchets.lines(one));
        }
        let lines = self.crates.iter().map(Crate::lines).sum();
        problems.extend(self.ratchets.at_most("lines", "all", lines));
        let voices = self.crates.iter().map(words::riddles).sum();
        problems.extend(self.ratchets.at_most("riddles", "all", voices));
        problems.extend(manifests::edges(&self.crates, &self.architecture));
        problems.extend(manifests::dependencies(&self.root, &self.crates, &self.architecture));
        problems.extend(code_map::stale_rows(&self.crates, &self.architecture));
        problems.extend(code_map::stale_walk(&self.crates, self.page("CONTRIBUTING.md")));
        problems.extend(log_lines::unexplained(&self.crates, self.page(log_lines::PAGE)));
        problems.extend(words::unsafe_files(&self.crates, &self.architecture));
        problems
    }

    /// The text of a page, or none where it is not there.
    fn page(&self, name: &str) -> &str {
        self.markdown.iter().find(|(path, _)| path == name).map_or("", |(_, text)| text)
    }

    fn summary(&self) -> String {
        let lines: usize = self.crates.iter().map(Crate::lines).sum();
        let files: usize = self.crates.iter().map(|one| one.files.len()).sum();
        let riddles: usize = self.crates.iter().map(words::riddles).sum();
        let crates = self.crates.len();
        format!(
            "{crates} crates, {files} files, {lines} lines of Rust: no circle of files, no upward \
              import; {riddles} comments left that begin with What, Who or Whoever"
        )
    }
}

#[cfg(test)]
mod tests;
