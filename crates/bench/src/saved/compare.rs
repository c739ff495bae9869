//! `report --compare`: two earlier runs of `replay` or `compare` on the same payloads.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::measure::Comparison;
use crate::report::{self, Cell, Content, Document};
use crate::run::sample::{Block, Run, names, unequal_work};
use crate::run::tables::{self, Pairing, answer_beside, verdict_columns, verdict_rows};

/// An earlier run.
struct Saved<'a> {
    /// Its name here: `A` or `B`.
    side: &'static str,
    folder: &'a Path,
    runs: Vec<Run>,
    report: Document,
}

/// A line of `samples.jsonl`.
#[derive(Deserialize)]
struct Sample {
    client: String,
    round: usize,
    block: Block,
}

/// Compares the clients that have a name in both folders, or the only one of each.
///
/// # Errors
/// A folder that has no such results, folders without a client in common, and unequal work: other
/// blocks or roots, a client that failed, a fork choice that was moved back on one side alone.
pub(crate) fn compare(folders: [&Path; 2]) -> anyhow::Result<Document> {
    let [a, b] = [Saved::read("A", folders[0])?, Saved::read("B", folders[1])?];
    let mut document = Document::new("Comparison of two earlier runs");
    let rounds = a.rounds().min(b.rounds());
    let (mut all, mut table, mut answers) = (Vec::new(), verdict_columns(), Vec::new());
    for [name_a, name_b] in common(&a, &b)? {
        let [first, other] = [a.of(name_a, rounds), b.of(name_b, rounds)];
        let sides = [format!("A {name_a}"), format!("B {name_b}")];
        let runs = [first, other].concat();
        let failed = a.fault(name_a).or_else(|| b.fault(name_b));
        let why = failed.or_else(|| unequal_work(&runs)).or_else(|| other_fork_choices(&runs));
        if let Some(why) = why {
            return Err(anyhow::Error::msg(why)).context("the work was unequal: no verdict");
        }
        let median = verdict_rows(&mut table, &runs, Pairing::Blocks, [&sides[1], &sides[0]]);
        let mut answer = answer_beside(&sides[0], "");
        answer.side(&sides[1], &median);
        answers.push(answer);
        all.extend(runs);
    }
    document.text(
        "Two earlier runs on the same payloads. They were not interleaved: what was different on \
         the machine between them, the other programs, its caches, its clock, is in the ratios, \
         and the intervals know nothing of it. A verdict is on these two runs and not on the \
         programs; for one on those, compare them with deponent bench compare, in six rounds.",
    );
    for saved in [&a, &b] {
        document.text(saved.words());
        for client in &saved.report.clients {
            let name = format!("{} {}", saved.side, client.name);
            document.client(&name, &client.version, &client.arguments);
        }
    }
    if !a.report.machine.is_like(&b.report.machine) {
        document.text("The machines were not the same: the ratios are of both together.");
    }
    if a.rounds() != b.rounds() {
        document.text(format!("Of each the first {rounds} rounds count, as many as both have."));
    }
    document.method(Comparison::WORDS).table(table);
    document.answers = answers;
    document.table(tables::latencies("newPayload", &all, |block| Some(block.new_payload)));
    document.table(tables::latencies("forkchoiceUpdated", &all, |block| Some(block.forkchoice)));
    document.table(tables::speeds(&all)).chart(tables::distribution(&all));
    Ok(document)
}

/// The clients to compare.
fn common<'a>(a: &'a Saved<'_>, b: &'a Saved<'_>) -> anyhow::Result<Vec<[&'a str; 2]>> {
    let [of_a, of_b] = [names(&a.runs), names(&b.runs)];
    let both: Vec<_> =
        of_a.iter().filter(|name| of_b.contains(name)).map(|name| [*name; 2]).collect();
    match (&both[..], &of_a[..], &of_b[..]) {
        ([], [a], [b]) => Ok(vec![[a, b]]),
        ([], ..) => {
            bail!("no client is in both: A has {}, B has {}", of_a.join(", "), of_b.join(", "))
        }
        _ => Ok(both),
    }
}

/// A fork choice that went back and forth after a block on one side alone: it disturbs the next
/// ones.
fn other_fork_choices(runs: &[Run]) -> Option<String> {
    let first = runs.first()?;
    let moved =
        |run: &Run| -> Vec<bool> { run.blocks.iter().map(|block| block.reorg.is_some()).collect() };
    let other = runs.iter().find(|run| moved(run) != moved(first))?;
    let (a, b) = (&first.client, &other.client);
    Some(format!("the fork choices of {a} and {b} went back after other blocks: --reorg"))
}

impl<'a> Saved<'a> {
    fn read(side: &'static str, folder: &'a Path) -> anyhow::Result<Self> {
        let text = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let report = report::read(&text("report.json")?);
        let reports = report.with_context(|| format!("{}/report.json", folder.display()))?;
        let [report] = <[Document; 1]>::try_from(reports).ok().with_context(|| {
            format!("{} has several reports: name the folder of one", folder.display())
        })?;
        let mut runs: Vec<Run> = Vec::new();
        for (number, line) in (1..).zip(text("samples.jsonl")?.lines()) {
            let Sample { client, round, block } =
                serde_json::from_str(line).with_context(|| {
                    let path = folder.join("samples.jsonl");
                    let path = path.display();
                    format!("{path}, line {number} is not one of replay or of compare")
                })?;
            let same = |run: &&mut Run| (&run.client, run.round) == (&client, round);
            match runs.iter_mut().find(same) {
                Some(run) => run.blocks.push(block),
                None => runs.push(Run { client, round, blocks: vec![block], ..Run::default() }),
            }
        }
        ensure!(!runs.is_empty(), "{} has no samples", folder.display());
        Ok(Self { side, folder, runs, report })
    }

    fn rounds(&self) -> usize {
        self.runs.iter().map(|run| run.round + 1).max().unwrap_or(0)
    }

    /// The first rounds of a client, under the name that it has here.
    fn of(&self, client: &str, rounds: usize) -> Vec<Run> {
        let runs = self.runs.iter().filter(|run| run.client == client && run.round < rounds);
        let name = format!("{} {client}", self.side);
        runs.map(|run| Run { client: name.clone(), ..run.clone() }).collect()
    }

    /// The failure of a client, from the report.
    fn fault(&self, client: &str) -> Option<String> {
        let tables = self.report.content.iter().filter_map(|content| match content {
            Content::Table(table) if table.title == tables::FAULTS => Some(table),
            _ => None,
        });
        let mut rows = tables.flat_map(|table| &table.rows);
        let row = rows.find(|row| row.first() == Some(&Cell::from(client)))?;
        let words = row.iter().rev().take(2).rev().map(|cell| match cell {
            Cell::Text(text) => text.as_str(),
            _ => "",
        });
        let words = words.collect::<Vec<_>>().join(": ");
        Some(format!("{} {client} failed: {words}", self.side))
    }

    /// Its folder, and the command that made it.
    fn words(&self) -> String {
        let Self { side, folder, report, .. } = self;
        let Document { made, command, machine, .. } = report;
        let (folder, machine) = (folder.display(), machine.words());
        format!("{side} is {folder}, of {made}, on {machine}: {command}")
    }
}

#[cfg(test)]
mod tests;
