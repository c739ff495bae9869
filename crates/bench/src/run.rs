//! The run: each block goes to all clients, one after the other, and what each took is kept.
//!
//! A client's turn is `engine_newPayload`, `engine_forkchoiceUpdated`, and a pause in which it does
//! what it does between blocks. Unless told otherwise, the others are stopped meanwhile
//! (`SIGSTOP`): on few cores their background work would be in its measurements, and its own in
//! theirs. What it wrote is on the disk before the next one's turn begins (`syncfs`), for the
//! system writes for a stopped client too. Who comes first changes from block to block.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy_primitives::B256;
use anyhow::{Context, ensure};
use indicatif::ProgressIterator as _;
use serde::Serialize;

use crate::chain::format::{Chain, Part, Payload};
use crate::clients::client::{Client, Contender, Program};
use crate::clients::prepare::{self as sync, Ancestry};
use crate::clients::process::Usage;
use crate::progress;
use crate::transports::WitnessLane;
use crate::turns::whose;

/// Where our node says how long the last block's stages took: numbers are microseconds.
const TIMINGS: &str = "deponent_lastTimings";

/// The stages that make up our node's own time, in their order.
pub(crate) const STAGES: [&str; 5] = ["recovery", "parent", "execution", "root", "witness"];

/// What a run does.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who runs, in the order of the first block.
    pub contenders: Vec<(Contender, Program)>,
    /// The parts to measure.
    pub parts: Vec<Part>,
    /// Measured blocks of each part, at most.
    pub blocks: usize,
    /// Blocks of the warm part that are fed before the measurement begins.
    pub warm_up: usize,
    /// How long each client is left alone after a block.
    pub pause: Duration,
    /// Whether the others are stopped during a client's turn.
    pub freeze: bool,
    /// Whether the system forgets cached files before the cold part; it needs to be permitted.
    pub drop_page_cache: bool,
    /// Whether witnesses are asked for in half of the blocks alone.
    pub alternate: bool,
    /// Whether each block of the reorgs has a twin that is invalid, which comes before the fork
    /// choice and is not timed.
    pub invalid: bool,
}

/// One block of one client.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) part: Part,
    pub(crate) client: String,
    pub(crate) number: u64,
    pub(crate) hash: B256,
    pub(crate) gas_used: u64,
    pub(crate) transactions: usize,
    /// Its place in this block's order of clients.
    pub(crate) place: usize,
    /// Whether it came before the measurement began.
    pub(crate) warm_up: bool,
    /// Blocks of the branch that is left for it; 0 where its parent was the head.
    pub(crate) left: u64,
    /// Whether the witness was asked for.
    pub(crate) with_witness: bool,
    pub(crate) new_payload_us: f64,
    pub(crate) first_byte_us: f64,
    pub(crate) answer_bytes: usize,
    pub(crate) forkchoice_us: f64,
    pub(crate) resident_kib: u64,
    pub(crate) peak_kib: u64,
    /// Processor time of the whole turn, to the kernel's 10 ms.
    pub(crate) cpu_ms: u64,
    /// What the client itself says that it took, in microseconds.
    pub(crate) server_us: BTreeMap<String, f64>,
}

/// How long nobody runs after the page cache was dropped. A guest of a hypervisor gives back what
/// has become free, some gigabytes then, in rounds of two seconds or so; meanwhile all that runs in
/// it is slow.
const SETTLING: Duration = Duration::from_secs(30);

/// All that was measured.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Measured {
    pub(crate) samples: Vec<Sample>,
    /// What could not be done as planned, in sentences.
    pub(crate) remarks: Vec<String>,
}

/// Runs all parts, as far as it comes. `folder` holds the prepared directories; copies of them run
/// in `work`.
pub(crate) fn run(
    options: &Options,
    chain: &Chain,
    folder: &Path,
    work: &Path,
    measured: &mut Measured,
) -> anyhow::Result<()> {
    let mut runners = Vec::new();
    for (contender, program) in &options.contenders {
        let data = work.join(contender.to_string());
        sync::copy_prepared(&sync::prepared(program, chain, folder)?, &data)?;
        runners.push((contender, program, data));
    }
    if options.contenders.iter().any(|(_, program)| program.disk_bytes.is_some()) {
        // Or the first sync of a throttled client would write the copy.
        sync_files();
    }
    let disk = std::fs::File::open(work).context("the directory of this run")?;
    let mut teams: Option<Vec<Runner>> = None;
    for part in &options.parts {
        if *part == Part::Cold {
            // Nothing is to be made good after the restart, which would warm the caches.
            let mut team = match teams.take() {
                Some(team) => team,
                None => start(&runners, chain)?,
            };
            for runner in &mut team {
                runner.catch_up(chain, *part, options)?;
            }
            for runner in team {
                runner.client.process.stop()?;
            }
            if options.drop_page_cache {
                match drop_page_cache() {
                    Ok(()) => std::thread::sleep(SETTLING),
                    Err(remark) => measured.remarks.push(remark),
                }
            }
        }
        let mut team = match teams.take() {
            Some(team) => team,
            None => start(&runners, chain)?,
        };
        for runner in &mut team {
            if *part == Part::Cold {
                // It has caught up before.
                runner.wait_for_turn(options)?;
                continue;
            }
            let fed = runner.catch_up(chain, *part, options)?;
            if fed > 0 {
                let (name, part) = (&runner.name, part.name());
                let remark = format!("{name}: {fed} blocks were fed right before the {part} part.");
                measured.remarks.push(remark);
            }
        }
        measure(options, chain, *part, &mut team, &disk, measured)?;
        teams = Some(team);
    }
    let last = measured.samples.last().map(|sample| sample.number);
    for (runner, (_, program, data)) in teams.context("no part to run")?.into_iter().zip(&runners) {
        runner.client.process.stop()?;
        if program.disk_bytes.is_some() {
            let mut client = program.start(data, &chain.genesis())?;
            let head = client.block_number()?;
            ensure!(Some(head) == last, "{}: block {last:?} was lost: {head}", runner.name);
            measured
                .remarks
                .push(format!("{}: after a restart block {head} is head.", runner.name));
            client.process.stop()?;
        }
    }
    Ok(())
}

fn start(
    runners: &[(&Contender, &Program, PathBuf)],
    chain: &Chain,
) -> anyhow::Result<Vec<Runner>> {
    let started = runners.iter().map(|(contender, program, data)| {
        let name = contender.to_string();
        let Some(transport) = contender.transport() else {
            let client = program.start(data, &chain.genesis())?;
            let way = if contender.witness.is_some() { Way::Witness } else { Way::Verdict };
            return Ok(Runner { name, way, client, timings: true });
        };
        let client = program.start_with_socket(data, &chain.genesis())?;
        let way = Way::Transport(WitnessLane::open(transport, &client, chain)?);
        Ok(Runner { name, way, client, timings: true })
    });
    started.collect()
}

/// Writes all dirty pages.
fn sync_files() {
    std::process::Command::new("sync").status().ok();
}

/// Writes all dirty pages and forgets the clean ones; a remark when that is not permitted.
fn drop_page_cache() -> Result<(), String> {
    // Dirty pages cannot be dropped.
    sync_files();
    let dropped = std::fs::write("/proc/sys/vm/drop_caches", "3");
    dropped.map_err(|error| {
        format!("The page cache was not dropped ({error}): the cold part is only a restart.")
    })
}

/// A client in a run.
struct Runner {
    name: String,
    way: Way,
    client: Client,
    /// Whether it still seems to know [`TIMINGS`].
    timings: bool,
}

/// How payloads are sent.
enum Way {
    /// `engine_newPayload`.
    Verdict,
    /// `engine_newPayloadWithWitness`.
    Witness,
    /// With the witness, over a transport of its own.
    Transport(WitnessLane),
}

impl Runner {
    /// Feeds it all blocks before a part; how many.
    fn catch_up(&mut self, chain: &Chain, part: Part, options: &Options) -> anyhow::Result<u64> {
        self.client.process.thaw()?;
        let fed = sync::catch_up(&mut self.client, chain, part)?;
        self.wait_for_turn(options)?;
        Ok(fed)
    }

    fn wait_for_turn(&mut self, options: &Options) -> anyhow::Result<()> {
        if options.freeze {
            self.client.process.freeze()?;
        }
        Ok(())
    }

    /// One block: the payload, its invalid `twin`, the fork choice, the pause. `is_asked` is
    /// whether the witness is asked for where this client is one to ask.
    fn turn(
        &mut self,
        payload: &Payload,
        twin: Option<&Payload>,
        ancestry: &Ancestry,
        is_asked: bool,
        options: &Options,
    ) -> anyhow::Result<Sample> {
        let before = Usage::of(self.client.process.id());
        if options.freeze {
            self.client.process.thaw()?;
        }
        let with_witness = is_asked && !matches!(self.way, Way::Verdict);
        let by_lane = match &mut self.way {
            Way::Transport(lane) => lane.new_payload(payload, with_witness)?,
            Way::Verdict | Way::Witness => None,
        };
        let validated = match by_lane {
            Some(timing) => timing,
            None => self.client.new_payload(payload, with_witness)?,
        };
        if let Some(twin) = twin {
            self.client.engine.invalid_payload(twin)?;
        }
        let chosen = self.client.forkchoice_updated(ancestry.heads(payload.hash))?;
        let server_us = server_timings(&mut self.client, &mut self.timings);
        std::thread::sleep(options.pause);
        let after = Usage::of(self.client.process.id());
        if options.freeze {
            self.client.process.freeze()?;
        }
        Ok(Sample {
            part: Part::Warm,
            client: self.name.clone(),
            number: payload.number,
            hash: payload.hash,
            gas_used: payload.gas_used,
            transactions: payload.transactions,
            place: 0,
            warm_up: false,
            left: 0,
            with_witness,
            new_payload_us: micros(validated.whole),
            first_byte_us: micros(validated.first_byte),
            answer_bytes: validated.answer_bytes,
            forkchoice_us: micros(chosen.whole),
            resident_kib: after.resident_kib,
            peak_kib: after.peak_kib,
            cpu_ms: after.cpu_ms - before.cpu_ms,
            server_us,
        })
    }
}

/// What a client says of its last block, in microseconds; `known` is whether it seems to know
/// [`TIMINGS`].
pub(crate) fn server_timings(client: &mut Client, known: &mut bool) -> BTreeMap<String, f64> {
    if !*known {
        return BTreeMap::new();
    }
    let answer = client.engine.call(TIMINGS, "[]").ok();
    let read = answer.and_then(|(_, said)| serde_json::from_str(said.get()).ok());
    let read: Option<BTreeMap<String, serde_json::Value>> = read;
    *known = read.is_some();
    let stages = read.into_iter().flatten();
    stages.filter_map(|(name, time)| Some((name, time.as_f64()?))).collect()
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn measure(
    options: &Options,
    chain: &Chain,
    part: Part,
    team: &mut [Runner],
    disk: &std::fs::File,
    measured: &mut Measured,
) -> anyhow::Result<()> {
    // A throttled client's pages would be waited for at the pace of its disk.
    let is_throttled = options.contenders.iter().any(|(_, program)| program.disk_bytes.is_some());
    let writes_out = options.freeze && team.len() > 1 && !is_throttled;
    let mut ancestry = Ancestry::before(chain, part)?;
    let skipped = if part == Part::Warm { options.warm_up } else { 0 };
    let (blocks, clients) = (chain.count(part)?.min(skipped + options.blocks), team.len());
    if blocks <= skipped {
        let name = part.name();
        let remark =
            format!("Nothing is counted of {name}: all {blocks} blocks are its --warm-up.");
        measured.remarks.push(remark);
    }
    let bar = progress::bar(part.name(), blocks);
    let mut head = None;
    for (index, payload) in chain.payloads(part)?.take(blocks).progress_with(bar).enumerate() {
        let payload = payload?;
        ancestry.push(&payload);
        let left = match head.replace((payload.hash, payload.number)) {
            Some((hash, number)) if hash != payload.parent => number + 1 - payload.number,
            _ => 0,
        };
        let has_twin = options.invalid && part == Part::Reorgs;
        let twin = has_twin.then(|| payload.invalid_twin()).transpose()?;
        // Each client has had each place in the order when this may change. It does by the
        // Thue-Morse sequence: in half of the blocks, and in step with nothing that comes back
        // among them, as branches of one to three blocks do.
        let is_asked = !options.alternate || (index / clients).count_ones().is_multiple_of(2);
        for place in 0..clients {
            let runner = &mut team[whose(index, place, clients)];
            let sample = runner.turn(&payload, twin.as_ref(), &ancestry, is_asked, options)?;
            if writes_out {
                rustix::fs::syncfs(disk).context("what was written could not be synced")?;
            }
            measured.samples.push(Sample { part, place, left, warm_up: index < skipped, ..sample });
        }
    }
    Ok(())
}

impl Measured {
    /// One JSON object a line.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        for sample in &self.samples {
            serde_json::to_writer(&mut file, sample)?;
            file.write_all(b"\n")?;
        }
        Ok(file.flush()?)
    }
}
