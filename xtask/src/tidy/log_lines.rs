//! Warnings and errors of the log that docs/operations.md does not explain.

use super::Problem;
use super::source::{Crate, SourceFile, line_of, whole_words};

/// The page with the tables, and the section that has them.
pub(super) const PAGE: &str = "docs/operations.md";
const SECTION: &str = "\n## The log, line by line\n";

/// The packages whose log an operator reads.
const CRATES: [&str; 5] = ["engine", "follow", "node", "rpc", "state"];

/// The texts of `warn!` and `error!` that no row of the tables in `page` has.
pub(super) fn unexplained(crates: &[Crate], page: &str) -> Vec<Problem> {
    let section = page.split_once(SECTION).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: String = section.lines().filter(|line| line.starts_with('|')).collect();
    let mut problems = Vec::new();
    for one in crates.iter().filter(|one| CRATES.contains(&one.name())) {
        let tests = one.test_files();
        let is_shipped =
            |file: &&SourceFile| !file.is_test() && !tests.contains(file.path.as_str());
        for file in one.files.iter().filter(is_shipped) {
            for (line, text) in texts(file) {
                if !rows.contains(&text) {
                    let place = format!("{}:{line}", file.path);
                    let what = format!("the log's line {text:?} is in no table of {PAGE}");
                    problems.push(Problem::new(place, what));
                }
            }
        }
    }
    problems
}

/// The texts of warnings and errors, with their lines.
fn texts(file: &SourceFile) -> Vec<(usize, String)> {
    let calls = ["warn", "error"]
        .into_iter()
        .flat_map(|name| whole_words(&file.shipped, name).map(move |at| (at, at + name.len())));
    let one = |(at, after): (usize, usize)| {
        let inside = file.shipped[after..].strip_prefix("!(")?;
        let mut depth = 1;
        let is_end = |char: char| {
            depth += i32::from(char == '(') - i32::from(char == ')');
            depth == 0
        };
        let from = after + 2;
        let end = from + inside.find(is_end)?;
        // Code has its bytes in `shipped`; text has them in `text` alone.
        Some((line_of(&file.shipped, at), known_part(&message(&file.text[from..end])?)?))
    };
    calls.filter_map(one).collect()
}

/// The string that begins an argument: the message, behind the fields.
fn message(arguments: &str) -> Option<String> {
    let begins = |(at, _): &(usize, &str)| {
        let before = arguments[..*at].trim_end();
        before.is_empty() || before.ends_with(',')
    };
    let (start, _) = arguments.match_indices('"').find(begins)?;
    let text = arguments[start + 1..].split('"').next()?;
    let lines = text.split("\\\n").map(str::trim_start);
    Some(lines.collect())
}

/// The first part of a message that is the same each time and has two words.
fn known_part(message: &str) -> Option<String> {
    let parts = message.split(['{', '}', ':', ';']).map(str::trim);
    parts.filter(|part| part.contains(' ')).map(str::to_owned).next()
}
