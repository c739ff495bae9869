//! How long lines, files, functions and pages may be.

use super::Problem;
use super::source::{SourceFile, end_of_block, line_of, whole_words};

/// Characters in a line of Rust.
const LINE_CHARS: usize = 100;

/// Lines in a file of Rust.
const FILE_LINES: usize = 1000;

/// Lines of a function from its name to its last brace: a screen.
const FUNCTION_LINES: usize = 70;

/// Characters in a line of a page, tables and code aside.
const PAGE_LINE_CHARS: usize = 120;

/// Lines of a report, which has the newest build alone.
const REPORT_LINES: usize = 150;

/// Bytes of a page: more is a log, and not a page.
const PAGE_BYTES: usize = 64 << 10;

/// Lines, the file and functions over their limits.
pub(super) fn of_rust(file: &SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let chars = line.chars().count();
        if chars > LINE_CHARS && !is_table(line) {
            let place = format!("{}:{}", file.path, index + 1);
            problems.push(Problem::new(place, format!("{chars} characters, at most {LINE_CHARS}")));
        }
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES {
        problems.push(Problem::new(&file.path, format!("{lines} lines, at most {FILE_LINES}")));
    }
    if !file.is_test() {
        problems.extend(long_functions(file));
    }
    problems
}

/// Whether a line is a row of a table in documentation, which cannot be broken.
fn is_table(line: &str) -> bool {
    let text = line.trim_start();
    let text = text.strip_prefix("//!").or_else(|| text.strip_prefix("///"));
    text.is_some_and(|text| text.trim_start().starts_with('|'))
}

fn long_functions(file: &SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    for at in whole_words(&file.shipped, "fn") {
        let Some(end) = end_of_block(&file.shipped, at) else { continue };
        let lines = file.shipped[at..end].matches('\n').count() + 1;
        if lines > FUNCTION_LINES {
            let place = format!("{}:{}", file.path, line_of(&file.shipped, at));
            problems.push(Problem::new(
                place,
                format!("a function of {lines} lines, at most {FUNCTION_LINES}"),
            ));
        }
    }
    problems
}

/// Pages and lines of pages over their limits.
pub(super) fn of_markdown(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    if text.len() > PAGE_BYTES {
        problems.push(Problem::new(path, format!("{} bytes, at most {PAGE_BYTES}", text.len())));
    }
    let lines = text.lines().count();
    if path.starts_with("docs/reports/") && lines > REPORT_LINES {
        problems.push(Problem::new(path, format!("{lines} lines, at most {REPORT_LINES}")));
    }
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        let chars = line.chars().count();
        if chars > PAGE_LINE_CHARS && !in_code && !line.starts_with('|') {
            let place = format!("{path}:{}", index + 1);
            problems.push(Problem::new(
                place,
                format!("{chars} characters, at most {PAGE_LINE_CHARS}"),
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let file = SourceFile::new("src/a.rs".into(), text.into());
        let found: Vec<_> = of_rust(&file).into_iter().map(|problem| problem.0).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_files_and_functions_over_their_limits_are_named() {
        check(&"é".repeat(100), &[]);
        check(&format!("//! | {} |", "a".repeat(101)), &[]);
        check(&format!("\n{}", "a".repeat(101)), &["src/a.rs:2: 101 characters, at most 100"]);
        check(&"\n".repeat(1000), &[]);
        check(&"\n".repeat(1001), &["src/a.rs: 1001 lines, at most 1000"]);
        check(&format!("\nfn a() {{{}}}", "\n".repeat(69)), &[]);
        let text = format!("\nfn a() {{ let s = \"}}\";{}}}", "\n".repeat(70));
        check(&text, &["src/a.rs:2: a function of 71 lines, at most 70"]);
        check(&format!("#[cfg(test)]\nmod tests {{\nfn a() {{{}}}\n}}", "\n".repeat(80)), &[]);
    }

    #[test]
    fn pages_over_their_limits_are_named() {
        let long = "a".repeat(121);
        assert_eq!(of_markdown("docs/a.md", &long).len(), 1);
        assert_eq!(of_markdown("README.md", &long).len(), 1);
        assert_eq!(of_markdown("docs/a.md", &format!("|{long}")).len(), 0);
        assert_eq!(of_markdown("docs/a.md", &format!("```\n{long}\n```")).len(), 0);
        assert_eq!(of_markdown("docs/reports/a.md", &"a\n".repeat(151)).len(), 1);
        assert_eq!(of_markdown("docs/a.md", &"a\n".repeat(40_000)).len(), 1);
    }
}
