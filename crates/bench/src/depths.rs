//! Witnesses of older blocks, asked for while newer ones are validated.
//!
//! Of one block in [`EVERY`] the witness is asked for when the block is new, and again when the
//! head is further: what a depth costs is the ratio of the two, and the answers have to be equal.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use alloy_primitives::B256;
use anyhow::Context;
use rpc::RawValue;
use serde::Serialize;
use serde_json::json;

use crate::chain::{Chain, Part};
use crate::client::{Client, Contender, Program};
use crate::run::micros;
use crate::stats::Sorted;
use crate::sync::{self, Ancestry};
use crate::wire::Connection;

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
) -> anyhow::Result<String> {
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
    let report = report(&answers);
    std::fs::write(results.join("report.md"), &report)?;
    let lines = answers.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    std::fs::write(results.join("samples.jsonl"), lines.join("\n") + "\n")?;
    Ok(report)
}

fn feed(
    client: &mut Client,
    contender: Contender,
    chain: &Chain,
    blocks: usize,
) -> anyhow::Result<Vec<Answer>> {
    let mut ancestry = Ancestry::before(chain, Part::Warm)?;
    let connection = client.public.another()?;
    let (sender, questions) = sync_channel(WAITING);
    let asker = std::thread::spawn(move || ask(contender, connection, &questions));
    let mut hashes = Vec::new();
    for (index, payload) in chain.payloads(Part::Warm)?.take(blocks).enumerate() {
        let payload = payload?;
        ancestry.push(&payload);
        client.new_payload(&payload, contender.with_witness)?;
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

fn report(answers: &[Answer]) -> String {
    let mut report = String::from(
        "# Witnesses of older blocks\n\ndebug_executionWitness while blocks are validated without \
         a pause. The ratio is that of the same block's\nwitness to when it was new, the median \
         over blocks.\n\n| client | depth | witnesses | MB | p50 ms | ratio to depth 0 | equal | \
         met |\n|---|--:|--:|--:|--:|--:|---|---|\n",
    );
    let mut groups: BTreeMap<(&str, usize), Vec<&Answer>> = BTreeMap::new();
    let mut first: HashMap<(&str, B256), &Answer> = HashMap::new();
    for answer in answers {
        groups.entry((&answer.client, answer.depth)).or_default().push(answer);
        if answer.depth == 0 && answer.refusal.is_none() {
            first.insert((&answer.client, answer.hash), answer);
        }
    }
    for ((client, depth), group) in groups {
        let refused = group.iter().find_map(|answer| answer.refusal.as_ref());
        if let Some(refusal) = refused {
            let refusal: String = refusal.chars().take(90).collect();
            writeln!(report, "| {client} | {depth} | {} | {refusal} | | | | |", group.len())
        } else {
            let first = |answer: &Answer| first.get(&(client, answer.hash));
            let ratios = group.iter().filter_map(|a| Some(a.micros / first(a)?.micros));
            let ratio = Sorted::new(ratios).median();
            let are_equal = group.iter().all(|a| first(a).is_some_and(|f| f.digest == a.digest));
            let of = |read: fn(&Answer) -> f64| Sorted::new(group.iter().map(|a| read(a))).median();
            writeln!(
                report,
                "| {client} | {depth} | {} | {:.2} | {:.1} | {ratio:.2} | {} | {} |",
                group.len(),
                of(|answer| answer.bytes as f64 / 1e6),
                of(|answer| answer.micros / 1e3),
                if are_equal { "yes" } else { "**no**" },
                if ratio <= RATIO && are_equal { "yes" } else { "**no**" },
            )
        }
        .expect("a string takes everything");
    }
    report
}
