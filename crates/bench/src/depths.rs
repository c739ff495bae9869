//! Witnesses of older blocks, asked for while newer ones are validated.
//!
//! Of one block in [`EVERY`] the witness is asked for when the block is new, and again when the
//! head is further: what a depth costs is the ratio of the two, and the answers have to be equal.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use alloy_primitives::B256;
use anyhow::{Context, ensure};
use indicatif::ProgressIterator as _;
use rpc::RawValue;
use serde::Serialize;
use serde_json::json;

use crate::cells;
use crate::chain::format::{Chain, Part};
use crate::clients::client::{Client, Contender, Program};
use crate::clients::prepare::{self as sync, Ancestry};
use crate::clients::wire::Connection;
use crate::measure::Sorted;
use crate::progress;
use crate::report::{Axis, Cell, Document, Lines, Table, Unit};
use crate::run::micros;

/// Blocks between the block and the head.
const DEPTHS: [usize; 6] = [0, 8, 32, 64, 127, 1000];
const EVERY: usize = 20;
/// Questions that wait for their turn at most; the chain waits with them.
const WAITING: usize = 4;
/// Ratio of the times at a depth and at depth 0.
const RATIO: f64 = 1.2;

struct Question {
    hash: B256,
    depth: usize,
}

/// One witness that was asked for.
#[derive(Debug, Serialize)]
struct Answer {
    client: String,
    hash: B256,
    depth: usize,
    micros: f64,
    bytes: usize,
    /// Of the content, to tell whether two are equal.
    digest: u64,
    refusal: Option<String>,
}

/// Runs at most `blocks` blocks of the warm part of `chain` on each client in turn, and asks for
/// their witnesses meanwhile. Returns the report, and writes it and the samples into `results`.
pub fn depths(
    contenders: &[(Contender, Program)],
    blocks: usize,
    chain: &Chain,
    folder: &Path,
    results: &Path,
) -> anyhow::Result<Document> {
    let work = sync::working_folder(folder)?;
    let mut answers = Vec::new();
    for (contender, program) in contenders {
        let data = work.join(contender.to_string());
        sync::copy_prepared(&sync::prepared(program, chain, folder)?, &data)?;
        let mut client = program.start(&data, &chain.genesis())?;
        sync::catch_up(&mut client, chain, Part::Warm)?;
        answers.extend(feed(&mut client, *contender, chain, blocks)?);
        client.process.stop()?;
        program.clean_up(&data);
    }
    std::fs::remove_dir_all(&work).or_else(sync::absent)?;
    std::fs::create_dir_all(results)?;
    let mut document = Document::new("Witnesses of older blocks");
    fill(&mut document, &answers);
    for (contender, program) in contenders {
        program.enter(&contender.to_string(), false, &mut document)?;
    }
    document.write(results)?;
    let lines = answers.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    std::fs::write(results.join("samples.jsonl"), lines.join("\n") + "\n")?;
    Ok(document)
}

fn feed(
    client: &mut Client,
    contender: Contender,
    chain: &Chain,
    blocks: usize,
) -> anyhow::Result<Vec<Answer>> {
    ensure!(contender.transport().is_none(), "{contender}: only +witness is known here");
    let mut ancestry = Ancestry::before(chain, Part::Warm)?;
    let connection = client.public.another()?;
    let (sender, questions) = sync_channel(WAITING);
    let asker = std::thread::spawn(move || ask(contender, connection, &questions));
    let mut hashes = Vec::new();
    let blocks = chain.count(Part::Warm)?.min(blocks);
    let bar = progress::bar(contender.to_string(), blocks);
    let payloads = chain.payloads(Part::Warm)?.take(blocks).progress_with(bar);
    for (index, payload) in payloads.enumerate() {
        let payload = payload?;
        ancestry.push(&payload);
        client.new_payload(&payload, contender.witness.is_some())?;
        client.forkchoice_updated(ancestry.heads(payload.hash))?;
        hashes.push(payload.hash);
        for depth in DEPTHS {
            if let Some(asked) = index.checked_sub(depth)
                && asked.is_multiple_of(EVERY)
            {
                let question = Question { hash: hashes[asked], depth };
                sender.send(question).context("nobody asks any more")?;
            }
        }
    }
    drop(sender);
    Ok(asker.join().expect("the asking thread has no bug"))
}

fn ask(
    contender: Contender,
    mut connection: Connection,
    questions: &Receiver<Question>,
) -> Vec<Answer> {
    let mut answers = Vec::new();
    for Question { hash, depth } in questions {
        let params = json!([hash]).to_string();
        let mut answer = Answer {
            client: contender.to_string(),
            hash,
            depth,
            micros: 0.0,
            bytes: 0,
            digest: 0,
            refusal: None,
        };
        match connection.call("debug_executionWitness", &params) {
            Ok((timing, result)) if result.get() != RawValue::NULL.get() => {
                let mut hasher = DefaultHasher::new();
                hasher.write(result.get().as_bytes());
                answer.micros = micros(timing.whole);
                answer.bytes = timing.answer_bytes;
                answer.digest = hasher.finish();
            }
            Ok(_) => answer.refusal = Some("null".into()),
            Err(error) => answer.refusal = Some(format!("{error:#}")),
        }
        answers.push(answer);
    }
    answers
}

/// Writes what was answered into a document.
fn fill(document: &mut Document, answers: &[Answer]) {
    document.text(
        "debug_executionWitness while blocks are validated without a pause. The ratio is that of \
         the same block's witness to when it was new, the median over blocks.",
    );
    let mut table = Table::new("Depths")
        .column("client", Unit::Text)
        .column("depth", Unit::Count)
        .column("witnesses", Unit::Count)
        .column("answer", Unit::Mb)
        .column("p50", Unit::Ms)
        .column("ratio to depth 0", Unit::Ratio)
        .column("equal", Unit::Text)
        .column("met", Unit::Text);
    let mut groups: BTreeMap<(&str, usize), Vec<&Answer>> = BTreeMap::new();
    let mut first: HashMap<(&str, B256), &Answer> = HashMap::new();
    for answer in answers {
        groups.entry((&answer.client, answer.depth)).or_default().push(answer);
        if answer.depth == 0 && answer.refusal.is_none() {
            first.insert((&answer.client, answer.hash), answer);
        }
    }
    let mut curves: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
    for ((client, depth), group) in groups {
        let refused = group.iter().find_map(|answer| answer.refusal.as_ref());
        if let Some(refusal) = refused {
            let refusal: String = refusal.chars().take(90).collect();
            let none = Cell::Missing;
            let (no, count) = (none.clone(), group.len());
            table.row(cells![client, depth, count, none, refusal, no.clone(), no.clone(), no]);
        } else {
            let first = |answer: &Answer| first.get(&(client, answer.hash));
            let ratios = group.iter().filter_map(|a| Some(a.micros / first(a)?.micros));
            let ratio = Sorted::new(ratios).median();
            let are_equal = group.iter().all(|a| first(a).is_some_and(|f| f.digest == a.digest));
            let of = |read: fn(&Answer) -> f64| Sorted::new(group.iter().map(|a| read(a))).median();
            let time = of(|answer| answer.micros / 1e6);
            table.row(cells![
                client,
                depth,
                group.len(),
                of(|answer| answer.bytes as f64),
                time,
                ratio,
                are_equal,
                ratio <= RATIO && are_equal,
            ]);
            curves.entry(client).or_default().push([depth as f64, time]);
        }
    }
    let x = Axis::new("blocks below the head", Unit::Count);
    let mut chart = Lines::new("Time by depth", x, Axis::new("p50", Unit::Ms));
    for (client, points) in curves {
        chart.series(client, points);
    }
    document.table(table).chart(chart);
}
