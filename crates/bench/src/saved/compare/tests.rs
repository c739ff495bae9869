//! Folders with a few made-up blocks each.

use std::fmt::Write as _;

use alloy_primitives::B256;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::cells;
use crate::report::{Table, Unit};

/// The blocks of each round.
const BLOCKS: u64 = 7;

/// Runs of `clients`, whose blocks take so many seconds in each of the rounds.
fn runs(clients: &[&str], seconds: &[f64]) -> Vec<Run> {
    let block = |number: u64, seconds: f64| Block {
        number,
        hash: B256::with_last_byte(number as u8),
        state_root: B256::repeat_byte(number as u8),
        gas_limit: 30_000_000,
        gas_used: 1_000_000,
        transactions: 1,
        warm_up: number == 0,
        new_payload: seconds,
        first_byte: seconds,
        answer_bytes: 100,
        ended: number as f64,
        ..Block::default()
    };
    let run = |client: &&str, round: usize| Run {
        client: (*client).to_owned(),
        round,
        blocks: (0..BLOCKS).map(|number| block(number, seconds[round])).collect(),
        ..Run::default()
    };
    (0..seconds.len())
        .flat_map(|round| clients.iter().map(move |client| (client, round)))
        .map(|(client, round)| run(client, round))
        .collect()
}

/// A folder that has these runs.
fn saved(runs: &[Run], document: &Document) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut samples = String::new();
    for run in runs {
        for block in &run.blocks {
            let line = json!({"client": run.client, "round": run.round, "block": block});
            writeln!(samples, "{line}").expect("a string takes everything");
        }
    }
    fs::write(folder.path().join("samples.jsonl"), samples).expect("written");
    document.write(folder.path()).expect("written");
    folder
}

fn compared(a: &[Run], b: &[Run]) -> anyhow::Result<Document> {
    let document = Document::new("Replay");
    let folders = [saved(a, &document), saved(b, &document)];
    compare(folders.each_ref().map(TempDir::path))
}

/// The rows of verdicts: who, against whom, and the verdict on the p50.
fn verdicts(document: &Document) -> Vec<[String; 3]> {
    let table = document.content.iter().find_map(|content| match content {
        Content::Table(table) if table.title.starts_with("verdicts") => Some(table),
        _ => None,
    });
    let text = |cell: &Cell| match cell {
        Cell::Text(text) => text.clone(),
        other => panic!("{other:?} is no text"),
    };
    let rows = table.expect("it has verdicts").rows.iter();
    let medians = rows.filter(|row| row[2] == Cell::from("p50"));
    medians.map(|row| [&row[0], &row[1], &row[row.len() - 1]].map(text)).collect()
}

fn row(client: &str, against: &str, verdict: &str) -> [String; 3] {
    [client, against, verdict].map(str::to_owned)
}

#[test]
fn two_runs_have_a_verdict_and_a_warning() {
    // Blocks are the pairs, the first one aside, which warms up.
    for (a, b, expected) in [
        (&[1.0][..], &[2.0][..], "slower"),
        (&[2.0], &[1.0], "faster"),
        (&[1.0], &[1.0], "no difference"),
        (&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2], "slower"),
        (&[1.0, 1.1], &[1.0, 1.1], "no difference"),
        // Of three and one, one counts.
        (&[1.0, 9.0, 9.0], &[2.0], "slower"),
    ] {
        let document = compared(&runs(&["geth"], a), &runs(&["geth"], b)).expect("equal work");
        assert_eq!(verdicts(&document), [row("B geth", "A geth", expected)]);
        let text = report::markdown(&[document]);
        for words in ["not interleaved", "A is /", "B is /", "A geth", "B geth"] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        assert_eq!(text.contains("first 1 rounds"), a.len() != b.len(), "{text}");
    }
}

#[test]
fn clients_are_those_of_one_name_or_the_only_ones() {
    let check = |a: &[&str], b: &[&str], expected: &[[String; 3]]| {
        let document = compared(&runs(a, &[1.0]), &runs(b, &[2.0])).expect("equal work");
        assert_eq!(verdicts(&document), expected);
    };
    check(&["geth"], &["deponent"], &[row("B deponent", "A geth", "slower")]);
    let both =
        ["geth", "k=1"].map(|name| row(&format!("B {name}"), &format!("A {name}"), "slower"));
    check(&["geth", "k=1", "k=2"], &["k=3", "k=1", "geth"], &both);
    let none = compared(&runs(&["a", "b"], &[1.0]), &runs(&["c"], &[1.0])).expect_err("no client");
    assert_eq!(none.to_string(), "no client is in both: A has a, b, B has c");
}

#[test]
fn unequal_work_has_no_verdict() {
    let right = runs(&["geth"], &[1.0]);
    let check = |change: fn(&mut Vec<Block>), words: &str| {
        let mut wrong = right.clone();
        change(&mut wrong[0].blocks);
        for [a, b] in [[&right, &wrong], [&wrong, &right]] {
            let error = format!("{:#}", compared(a, b).expect_err(words));
            assert!(error.starts_with("the work was unequal: no verdict"), "{error}");
            assert!(error.contains(words), "{words} is not in {error}");
        }
    };
    check(|blocks| blocks[2].hash = B256::ZERO, "ran block 2");
    check(|blocks| blocks[2].state_root = B256::ZERO, "ran block 2");
    check(|blocks| blocks[0].gas_used += 1, "ran block 0");
    check(|blocks| blocks.truncate(3), " blocks, B geth, round 1 ");
    check(|blocks| blocks[1].reorg = Some([1.0; 2]), "--reorg");

    let mut report = Document::new("Replay");
    let mut faults = Table::new(tables::FAULTS)
        .column("client", Unit::Text)
        .column("fault", Unit::Text)
        .column("what was seen", Unit::Text);
    faults.row(cells!["geth", "wrong verdict", "bad root"]);
    report.table(faults);
    let compared_to = |name: &str| {
        let (a, b) = (runs(&["geth", "reth"], &[1.0]), runs(&[name], &[1.0]));
        let folders = [saved(&a, &report), saved(&b, &Document::new("Replay"))];
        compare(folders.each_ref().map(TempDir::path))
    };
    let error = format!("{:#}", compared_to("geth").expect_err("it failed"));
    assert!(error.contains("A geth failed: wrong verdict: bad root"), "{error}");
    // A client that is not compared may fail.
    compared_to("reth").expect("equal work");
}

#[test]
fn what_is_no_folder_of_such_results_is_called_that() {
    let good = saved(&runs(&["geth"], &[1.0]), &Document::new("Replay"));
    let two = report::json(&["a", "b"].map(Document::new));
    for (file, content, words) in [
        ("samples.jsonl", None, "cannot read"),
        ("report.json", None, "report.json"),
        ("samples.jsonl", Some(""), "no samples"),
        ("samples.jsonl", Some("{\"client\": \"a\"}"), "line 1 is not one of replay"),
        ("report.json", Some(&*two), "several reports"),
    ] {
        let bad = saved(&runs(&["geth"], &[1.0]), &Document::new("Replay"));
        let file = bad.path().join(file);
        match content {
            None => fs::remove_file(file).expect("it is there"),
            Some(content) => fs::write(file, content).expect("written"),
        }
        let error = format!("{:#}", compare([good.path(), bad.path()]).expect_err(words));
        assert!(error.contains(words), "{words} is not in {error}");
    }
}
