//! The tables that rules are read from: those of ARCHITECTURE.md, and `xtask/tidy.txt`.

use super::Problem;
use super::source::Crate;
use std::collections::BTreeMap;

/// The rows of the Markdown table that begins with these columns, without backquotes; empty if
/// there is none.
pub(super) fn rows(markdown: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let inside = line.trim().trim_matches('|');
        inside.split('|').map(|cell| cell.replace('`', "").trim().to_owned()).collect()
    };
    let is_head = |line: &&str| {
        let head = cells(line);
        line.starts_with('|')
            && head.len() >= columns.len()
            && head.iter().zip(columns).all(|(one, other)| one == other)
    };
    let table = markdown.lines().skip_while(|line| !is_head(line)).skip(2);
    table.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// The names in a cell: `a, b`; a dash is none.
pub(super) fn names(cell: &str) -> Vec<String> {
    cell.split(',')
        .map(str::trim)
        .filter(|name| !["", "–", "-"].contains(name))
        .map(Into::into)
        .collect()
}

/// Figures that may only fall: `KIND NAME NUMBER` a line.
#[derive(Debug)]
pub(super) struct Ratchets(BTreeMap<(String, String), usize>);

impl Ratchets {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut ratchets = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let parts: Vec<_> = line.split_whitespace().collect();
            let [kind, name, number] = parts[..] else {
                return Err(format!("tidy.txt: a line has three words: {line}"));
            };
            let number = number.parse().map_err(|_| format!("tidy.txt: no number: {line}"))?;
            ratchets.insert((kind.to_owned(), name.to_owned()), number);
        }
        Ok(Self(ratchets))
    }

    /// The problems of a kind, unless no more than so many are left to mend in a crate.
    pub(super) fn left_over(&self, kind: &str, name: &str, found: Vec<Problem>) -> Vec<Problem> {
        let left = self.0.get(&(kind.to_owned(), name.to_owned())).copied().unwrap_or(0);
        if found.len() <= left { Vec::new() } else { found }
    }

    /// The lines of a crate, which has a budget.
    pub(super) fn lines(&self, one: &Crate) -> Option<Problem> {
        self.at_most("lines", one.name(), one.lines())
    }

    pub(super) fn at_most(&self, kind: &str, name: &str, found: usize) -> Option<Problem> {
        match self.0.get(&(kind.to_owned(), name.to_owned())) {
            Some(most) if found <= *most => None,
            Some(most) => Some(Problem::new(
                "xtask/tidy.txt",
                format!("{found} {kind} in {name}, at most {most}"),
            )),
            None => {
                Some(Problem::new("xtask/tidy.txt", format!("has no line `{kind} {name} {found}`")))
            }
        }
    }
}
