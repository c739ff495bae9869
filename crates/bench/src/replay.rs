//! Payload files against the Engine API of one client or of several: `replay` and its sweeps, and
//! what `compare` rests on.
//!
//! A *heat* is one pass over the files: by one client, or by several that take turns block by
//! block while the others are stopped. A client is started for each heat on a directory that was
//! reset. What goes wrong in a heat ends that client's part in it and is in its [`Run`], with all
//! blocks until then; the others go on.

mod report;
mod sweep;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use anyhow::{Context, anyhow, bail, ensure};
use rpc::JwtSecret;
use serde::{Deserialize, Serialize};

use crate::args::count;
use crate::chain::format::{Payload, count_of, payloads_of};
use crate::chain::world::short_hash;
use crate::clients::client::Heads;
use crate::clients::persisted::Persisted;
use crate::clients::prepare::{self as sync, Ancestry};
use crate::clients::process::{self, Process};
use crate::clients::target::{Reset, Target, Targets};
use crate::clients::wire::{Connection, Timing};
use crate::fault::Fault;
use crate::progress;
use crate::report::results_folder;
use crate::report::{Document, Ran};
use crate::turns::whose;

pub(crate) use self::report::{
    FAULTS, clients, distribution, faults, latencies, names, sent, speeds,
};
use self::sweep::Sweep;

/// Between two attempts to reach a client that has gone away.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// What `replay` is given.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub(crate) feed: Feed,
    /// The client that is started: a table of the targets, with or without +witness.
    #[arg(long, value_name = "NAME", default_value = "deponent", conflicts_with = "engine_url")]
    target: String,
    /// Further arguments for it, separated by spaces.
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    target_args: String,
    /// The Engine API of a client that runs, instead: host:port. It has its chain already, and is
    /// not started again, so that nothing goes with it that says how.
    #[arg(long, value_name = "URL", requires = "jwt_secret")]
    #[arg(conflicts_with_all = ["genesis", "targets", "target_args", "rounds"])]
    engine_url: Option<String>,
    /// Its secret: 64 hex digits in a file.
    #[arg(long, value_name = "FILE", requires = "engine_url")]
    jwt_secret: Option<PathBuf>,
    /// Its WebSocket, for --wait-for-persistence: host:port.
    #[arg(long, value_name = "URL", requires = "engine_url")]
    ws_url: Option<String>,
    /// Ask the client that runs for witnesses.
    #[arg(long, requires = "engine_url")]
    witness: bool,
    /// Seconds in which a client that runs may come back after it closed the connection.
    #[arg(long, value_name = "S", default_value_t = 60, requires = "engine_url")]
    reconnect: u64,
    /// Seconds that an answer of a client that runs may take.
    #[arg(long, value_name = "S", default_value_t = 60, requires = "engine_url")]
    #[arg(value_parser = count::<u64>)]
    answer_time: u64,
    /// Restart the client with --KEY VALUE for each value, as many times as there are rounds:
    /// engine.multiproof-chunk-size=15,30,60.
    #[arg(long, value_name = "KEY=V1,V2,..", conflicts_with = "engine_url")]
    sweep: Option<Sweep>,
    /// Heats of each client or value, interleaved; one unless it is a sweep, which has six.
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    rounds: Option<usize>,
}

/// What is sent to a client, and at which pace.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Feed {
    /// Payload files, one after the other: lines {"method": .., "params": [..]}, plain, gzip, zstd.
    #[arg(required = true)]
    pub(crate) payloads: Vec<PathBuf>,
    /// The genesis, in geth's format, of a client that is started.
    #[arg(long, value_name = "FILE")]
    pub(crate) genesis: Option<PathBuf>,
    /// Payload files before the measured ones: fed once to each client, whose directory is kept.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    pub(crate) setup: Vec<PathBuf>,
    /// Targets beside those that we know, or instead of them: see targets.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) targets: Option<PathBuf>,
    /// A slot: payloads are sent so far apart, however long answers take. 400ms, 12s.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wait_time: Option<Duration>,
    /// Wait until a block is persisted before the next one is sent: always, never, or after each
    /// N blocks.
    #[arg(long, value_name = "WHEN", default_value = "never", default_missing_value = "always")]
    #[arg(num_args = 0..=1, require_equals = true)]
    pub(crate) wait_for_persistence: Persistence,
    /// How long a block may take until it is persisted.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "120s")]
    pub(crate) persistence_timeout: Duration,
    /// Payloads left out: the client has them.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: usize,
    /// Payloads sent and not counted, after those left out.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warm_up: usize,
    /// Payloads counted, at most; otherwise all.
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    pub(crate) count: Option<usize>,
    /// After each DEPTH blocks the fork choice goes back by as many, and forth again: 32 at most,
    /// where the safe block is. Branches that are in the files are switched to in any case.
    #[arg(long, value_name = "DEPTH", value_parser = clap::value_parser!(u64).range(1..=32))]
    pub(crate) reorg: Option<u64>,
    /// Where prepared directories and running copies are kept.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    pub(crate) dir: PathBuf,
    /// Where the report goes; otherwise a new folder below the directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
}

impl Feed {
    /// Finds mistakes before anything is started.
    fn check(&self) -> anyhow::Result<()> {
        count_of(&self.setup).context("--setup")?;
        if let Some(genesis) = &self.genesis {
            File::open(genesis).with_context(|| format!("--genesis {}", genesis.display()))?;
        }
        // A line that is none would end all runs, in the middle.
        payloads_of(&self.payloads)?.try_for_each(|payload| payload.map(drop))?;
        let (payloads, skip, warm_up) = (count_of(&self.payloads)?, self.skip, self.warm_up);
        ensure!(
            payloads > skip.saturating_add(warm_up),
            "no payload is left to measure: there are {payloads}, --skip leaves out {skip} and \
             --warm-up {warm_up}"
        );
        Ok(())
    }
}

/// When it is waited for that a block is persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Never,
    /// After so many blocks.
    Every(usize),
}

impl FromStr for Persistence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("never", _) => Ok(Self::Never),
            ("always", _) => Ok(Self::Every(1)),
            (_, Ok(blocks)) if blocks > 0 => Ok(Self::Every(blocks)),
            _ => Err(format!("{text}: always, never, or a number of blocks")),
        }
    }
}

/// `400ms`, `12s`; a number alone is in milliseconds.
fn duration(text: &str) -> Result<Duration, String> {
    let parse = |digits: &str, seconds: f64| {
        let count: f64 = digits.parse().ok()?;
        Duration::try_from_secs_f64(count * seconds).ok()
    };
    let parsed = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => parse(digits, 1e-3),
        (None, Some(digits)) => parse(digits, 1.0),
        (None, None) => parse(text, 1e-3),
    };
    parsed.ok_or_else(|| format!("{text}: 400ms, 12s, or milliseconds"))
}

/// One block of one client. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) number: u64,
    pub(crate) hash: B256,
    pub(crate) state_root: B256,
    pub(crate) gas_limit: u64,
    pub(crate) gas_used: u64,
    pub(crate) transactions: usize,
    /// Sent before the measurement began.
    pub(crate) warm_up: bool,
    pub(crate) new_payload: f64,
    pub(crate) first_byte: f64,
    pub(crate) answer_bytes: usize,
    pub(crate) forkchoice: f64,
    /// Between the beginning of its slot and when it could be sent.
    pub(crate) queue_wait: f64,
    /// Until it was persisted, after the fork choice, where somebody waited.
    pub(crate) persistence_wait: Option<f64>,
    /// Of the fork choices back and forth.
    pub(crate) reorg: Option<[f64; 2]>,
    /// When all of that was done, since the first slot began; the turns of others left out.
    pub(crate) ended: f64,
    /// The client went away and came back during this block, which does not count.
    pub(crate) interrupted: bool,
}

impl Block {
    /// Whether statistics are about it.
    pub(crate) const fn counts(&self) -> bool {
        !self.warm_up && !self.interrupted
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// The block that was being sent.
    pub(crate) block: Option<u64>,
    pub(crate) said: String,
}

/// One client's part in a heat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) client: String,
    /// Counted from 0.
    pub(crate) round: usize,
    pub(crate) with_witness: bool,
    pub(crate) blocks: Vec<Block>,
    pub(crate) failure: Option<Failure>,
    /// What else there is to say, in sentences.
    pub(crate) remarks: Vec<String>,
}

impl Run {
    fn of(client: &str, round: usize, with_witness: bool) -> Self {
        Self { client: client.into(), round, with_witness, ..Self::default() }
    }

    pub(crate) fn counted(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.counts())
    }

    fn fail(&mut self, usual: Fault, block: Option<u64>, error: &anyhow::Error) {
        let interrupted = Fault::Interrupted.error("blocks are missing".into());
        let error = if process::interrupted() { &interrupted } else { error };
        let fault = Fault::of(error).unwrap_or(usual);
        let said = format!("{error:#}");
        let said = said.strip_prefix(&format!("{fault}: ")).unwrap_or(&said).to_owned();
        eprintln!("{}, round {}: {fault}: {said}", self.client, self.round + 1);
        self.failure.get_or_insert(Failure { fault, block, said });
    }

    /// What is said names the log where it is kept.
    fn name_log(&mut self, log: &Path, kept: &Path) {
        let [log, kept] = [log, kept].map(|path| path.display().to_string());
        let said = self.failure.as_mut().map(|failure| &mut failure.said);
        said.into_iter().chain(&mut self.remarks).for_each(|it| *it = it.replace(&log, &kept));
    }
}

/// A client that takes part in heats.
#[derive(Clone, Debug)]
pub(crate) struct Entrant {
    /// As reports call it.
    pub(crate) name: String,
    pub(crate) target: Target,
}

/// A client in a heat.
struct Session {
    engine: Connection,
    with_witness: bool,
    /// Its process, when we started it.
    process: Option<Process>,
    /// How long it may be away; zero for one that we started.
    reconnect: Duration,
    persisted: Option<Persisted>,
    run: Run,
}

impl Session {
    /// One block: the payload, the fork choice, and what is waited for.
    fn turn(
        &mut self,
        payload: &Payload,
        ancestry: &Ancestry,
        feed: &Feed,
        sent: usize,
        slot: Instant,
    ) -> anyhow::Result<Block> {
        let queue_wait = slot.elapsed();
        let heads = ancestry.heads(payload.hash);
        let ([validated, chosen], interrupted) = match self.send(payload, heads) {
            Ok(timings) => (timings, false),
            Err(error) => (self.send_again(payload, heads, error)?, true),
        };
        let mut persistence_wait = None;
        if let (Persistence::Every(blocks), Some(persisted)) =
            (feed.wait_for_persistence, &mut self.persisted)
            && sent.is_multiple_of(blocks)
        {
            let began = Instant::now();
            persisted.wait_for(payload.hash, feed.persistence_timeout)?;
            persistence_wait = Some(began.elapsed().as_secs_f64());
        }
        let depth = feed.reorg.map(|depth| depth as usize);
        let depth = depth.filter(|depth| sent.is_multiple_of(*depth));
        let back = depth.map(|depth| ancestry.ancestor(payload.hash, depth));
        let mut reorg = None;
        if let Some(ancestor) = back.filter(|ancestor| !ancestor.is_zero()) {
            let there = self.engine.forkchoice_updated(Heads { head: ancestor, ..heads })?;
            let and_back = self.engine.forkchoice_updated(heads)?;
            reorg = Some([there, and_back].map(|timing| timing.whole.as_secs_f64()));
        }
        Ok(Block {
            number: payload.number,
            hash: payload.hash,
            state_root: payload.state_root,
            gas_limit: payload.gas_limit,
            gas_used: payload.gas_used,
            transactions: payload.transactions,
            warm_up: false,
            new_payload: validated.whole.as_secs_f64(),
            first_byte: validated.first_byte.as_secs_f64(),
            answer_bytes: validated.answer_bytes,
            forkchoice: chosen.whole.as_secs_f64(),
            queue_wait: queue_wait.as_secs_f64(),
            persistence_wait,
            reorg,
            ended: 0.0,
            interrupted,
        })
    }

    /// The payload and its fork choice.
    fn send(&mut self, payload: &Payload, heads: Heads) -> anyhow::Result<[Timing; 2]> {
        let validated = self.engine.new_payload(payload, self.with_witness)?;
        Ok([validated, self.engine.forkchoice_updated(heads)?])
    }

    /// The same again, to a client that went away and may come back; otherwise `error`.
    fn send_again(
        &mut self,
        payload: &Payload,
        heads: Heads,
        error: anyhow::Error,
    ) -> anyhow::Result<[Timing; 2]> {
        let began = Instant::now();
        let mut last = error;
        while went_away(&last) && began.elapsed() < self.reconnect && !process::interrupted() {
            std::thread::sleep(RECONNECT_PAUSE);
            match self.send(payload, heads) {
                Ok(timings) => {
                    let (number, seconds) = (payload.number, began.elapsed().as_secs_f64());
                    self.run.remarks.push(format!(
                        "It went away during block {number} and answered again after \
                         {seconds:.1} s: the block does not count."
                    ));
                    return Ok(timings);
                }
                Err(error) if Fault::of(&error) == Some(Fault::Behind) => {
                    return Err(error.context("it came back without its last blocks"));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Ends its part: the head has to be the block that was sent last.
    fn end(mut self) -> Run {
        if let (None, Some(last)) = (&self.run.failure, self.run.blocks.last()) {
            let number = Some(last.number);
            match self.engine.head() {
                Ok(head) if head != last.hash => {
                    let error =
                        Fault::Lying.error(format!("its head is {head}, not {}", last.hash));
                    self.run.fail(Fault::Lying, number, &error);
                }
                Ok(_) => {}
                Err(error) => {
                    self.run.remarks.push(format!("It does not tell its head: {error:#}."));
                }
            }
        }
        // One that failed is killed.
        if let (None, Some(process)) = (&self.run.failure, self.process.take())
            && let Err(error) = process.stop()
        {
            self.run.remarks.push(format!("{error:#}."));
        }
        self.run
    }
}

/// Whether an error is the end of a connection.
fn went_away(error: &anyhow::Error) -> bool {
    matches!(Fault::of(error), Some(Fault::HungUp | Fault::Truncated | Fault::Unreachable))
}

/// Sends the payloads to all of `sessions`, block by block in turns.
fn heat(
    sessions: &mut [Session],
    feed: &Feed,
    ancestry: &Ancestry,
    samples: &mut File,
    work: &Path,
) -> anyhow::Result<()> {
    let mut ancestry = ancestry.clone();
    let is_alone = sessions.len() == 1;
    let disk = File::open(work).with_context(|| format!("cannot open {}", work.display()))?;
    if !is_alone {
        sessions
            .iter()
            .filter_map(|session| session.process.as_ref())
            .try_for_each(Process::freeze)?;
    }
    let before = feed.skip.saturating_add(feed.warm_up);
    let last = feed.count.map_or(usize::MAX, |count| before.saturating_add(count));
    let blocks = count_of(&feed.payloads)?.min(last).saturating_sub(feed.skip);
    let names: Vec<&str> = sessions.iter().map(|session| session.run.client.as_str()).collect();
    let bar = progress::bar(names.join(", "), blocks);
    let (mut first, mut first_slot) = (None, None);
    for (index, payload) in payloads_of(&feed.payloads)?.take(last).enumerate() {
        let payload = payload?;
        ancestry.push(&payload);
        let Some(sent) = index.checked_sub(feed.skip) else { continue };
        // What is passed over takes its time too.
        let first = *first.get_or_insert_with(Instant::now);
        if process::interrupted() {
            let failed =
                |session: &mut Session| session.failed(payload.number, anyhow!("interrupted"));
            sessions.iter_mut().for_each(failed);
            break;
        }
        let mut is_over = true;
        for place in 0..sessions.len() {
            let at = whose(sent, place, sessions.len());
            let session = &mut sessions[at];
            if session.run.failure.is_some() {
                continue;
            }
            is_over = false;
            let slot = match feed.wait_time {
                Some(time) if is_alone => {
                    let first_slot = *first_slot.get_or_insert_with(Instant::now);
                    first_slot + time.saturating_mul(u32::try_from(sent)?)
                }
                _ => Instant::now(),
            };
            process::sleep_until(slot);
            if let (false, Some(process)) = (is_alone, &session.process) {
                process.thaw()?;
            }
            match session.turn(&payload, &ancestry, feed, sent + 1, slot) {
                Ok(mut block) => {
                    // Where clients take turns, only its own turns count.
                    let before = session.run.blocks.last().map_or(0.0, |block| block.ended);
                    block.ended = match is_alone {
                        true => first_slot.unwrap_or(first).elapsed().as_secs_f64(),
                        false => before + slot.elapsed().as_secs_f64(),
                    };
                    block.warm_up = sent < feed.warm_up;
                    let Run { client, round, .. } = &session.run;
                    let line =
                        serde_json::json!({"client": client, "round": round, "block": block});
                    samples.write_all(format!("{line}\n").as_bytes())?;
                    session.run.blocks.push(block);
                }
                Err(error) => session.failed(payload.number, error),
            }
            if !is_alone {
                process::sleep_until(slot + feed.wait_time.unwrap_or_default());
                if let (None, Some(process)) = (&session.run.failure, &session.process) {
                    process.freeze()?;
                    // The system writes for a stopped client too, in the next one's turn.
                    rustix::fs::syncfs(&disk).context("what was written could not be synced")?;
                }
            }
        }
        if is_over {
            break;
        }
        bar.inc(1);
    }
    for process in sessions.iter().filter_map(|session| session.process.as_ref()) {
        process.thaw().ok();
    }
    Ok(())
}

impl Session {
    fn failed(&mut self, block: u64, error: anyhow::Error) {
        let process = self.process.as_mut().filter(|_| went_away(&error));
        let error = match process.and_then(Process::ended_soon) {
            Some(how) => Fault::Died.error(format!("it {how}")),
            None if self.run.blocks.is_empty() && Fault::of(&error) == Some(Fault::Behind) => {
                let said = error.root_cause();
                Fault::Behind.error(format!("{said}: has it the blocks before? --setup FILES"))
            }
            None => error,
        };
        self.run.fail(Fault::Refusing, Some(block), &error);
        if let Some(process) = &self.process {
            self.run.remarks.push(process.last_words());
        }
        // It is killed: nothing of it disturbs the others.
        self.process = None;
    }
}

/// The folders of a command, and what its heats begin with.
pub(crate) struct Course<'a> {
    feed: &'a Feed,
    work: PathBuf,
    results: PathBuf,
    ancestry: Ancestry,
    samples: File,
}

impl Drop for Course<'_> {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.work).or_else(sync::absent).ok();
    }
}

impl<'a> Course<'a> {
    pub(crate) fn new(feed: &'a Feed) -> anyhow::Result<Self> {
        feed.check()?;
        let results = results_folder(feed.results.as_ref(), &feed.dir)?;
        let mut ancestry = Ancestry::default();
        for payload in payloads_of(&feed.setup)? {
            ancestry.push(&payload?);
        }
        let samples = File::create(results.join("samples.jsonl"))?;
        Ok(Self { feed, work: sync::working_folder(&feed.dir)?, results, ancestry, samples })
    }

    pub(crate) fn results(&self) -> &Path {
        &self.results
    }

    /// As many heats of each entrant as there are rounds; `after` is told all runs so far after
    /// each heat. Heats are of one entrant, in turns, or each of all of them.
    pub(crate) fn heats(
        &mut self,
        entrants: &[Entrant],
        rounds: usize,
        together: bool,
        mut after: impl FnMut(&[Run]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Run>> {
        ensure!(self.feed.genesis.is_some(), "a client is started from a genesis: --genesis FILE");
        let mut runs = Vec::new();
        for round in 0..rounds {
            let size = if together { entrants.len() } else { 1 };
            for heat_of in entrants.chunks(size) {
                let (mut sessions, mut failed) = (Vec::new(), Vec::new());
                for entrant in heat_of {
                    let mut run = Run::of(&entrant.name, round, entrant.target.with_witness);
                    eprintln!("{}, round {} of {rounds}", entrant.name, round + 1);
                    match self.start(entrant) {
                        Ok(session) => sessions.push(Session { run, ..session }),
                        Err(error) => {
                            run.fail(Fault::NotStarting, None, &error);
                            failed.push(run);
                        }
                    }
                }
                heat(&mut sessions, self.feed, &self.ancestry, &mut self.samples, &self.work)?;
                runs.extend(sessions.into_iter().map(Session::end).chain(failed));
                for entrant in heat_of {
                    let log = self.data(entrant).join("bench.log");
                    let name = format!("{}-{}.log", file_name(&entrant.name), round + 1);
                    let kept = self.results.join(name);
                    if fs::copy(&log, &kept).is_ok() {
                        let log = log.canonicalize()?;
                        let of_it =
                            |run: &&mut Run| (&run.client, run.round) == (&entrant.name, round);
                        runs.iter_mut().filter(of_it).for_each(|run| run.name_log(&log, &kept));
                    }
                    fs::remove_dir_all(self.data(entrant)).or_else(sync::absent)?;
                }
                report::write_csv(&runs, &self.results)?;
                after(&runs)?;
                if process::interrupted() {
                    return Ok(runs);
                }
            }
        }
        Ok(runs)
    }

    /// One heat of a client that runs.
    fn endpoint(&mut self, args: &Args, url: &str) -> anyhow::Result<(Run, Ran)> {
        let secret = args.jwt_secret.as_ref().context("--jwt-secret FILE")?;
        let secret = JwtSecret::load(secret).context("--jwt-secret")?;
        let (scheme, address) = url.split_once("://").unwrap_or(("http", url));
        ensure!(scheme == "http", "--engine-url {url}: host:port, or http://host:port");
        let address = address.trim_end_matches('/');
        let mut engine = Connection::open(address, Some(secret.clone()))?;
        engine.set_patience(Duration::from_secs(args.answer_time));
        let version = engine.client_version().unwrap_or_else(|| "does not tell its version".into());
        let waits = self.feed.wait_for_persistence != Persistence::Never;
        let persisted = waits.then(|| {
            let url = args.ws_url.as_ref().context("--wait-for-persistence needs --ws-url")?;
            Persisted::subscribe(url, Some(secret))
        });
        let mut sessions = [Session {
            engine,
            with_witness: args.witness,
            process: None,
            reconnect: Duration::from_secs(args.reconnect),
            persisted: persisted.transpose()?,
            run: Run::of(url, 0, args.witness),
        }];
        heat(&mut sessions, self.feed, &self.ancestry, &mut self.samples, &self.work)?;
        let [session] = sessions;
        let run = session.end();
        report::write_csv(std::slice::from_ref(&run), &self.results)?;
        Ok((run, Ran { name: url.into(), version, arguments: Vec::new() }))
    }

    fn data(&self, entrant: &Entrant) -> PathBuf {
        self.work.join(file_name(&entrant.name))
    }

    /// Resets the client's directory and starts it.
    fn start(&self, entrant: &Entrant) -> anyhow::Result<Session> {
        let (data, target) = (self.data(entrant), &entrant.target);
        let genesis = self.feed.genesis.as_ref().context("--genesis FILE")?;
        fs::remove_dir_all(&data).or_else(sync::absent)?;
        // What is imported is the same whatever is measured on it.
        let mut plain = target.clone();
        plain.arguments.clear();
        let import = |folder: &Path| {
            let mut client = plain.importing().start(folder, genesis)?;
            let (count, payloads) = (count_of(&self.feed.setup)?, payloads_of(&self.feed.setup)?);
            let blocks = sync::feed(&mut client, Ancestry::default(), count, payloads)?;
            Ok((client, blocks))
        };
        match target.reset() {
            Reset::Copy => {
                let prepared = self.prepared(target, genesis)?;
                sync::prepare(&prepared, import)
                    .with_context(|| format!("cannot make {}", prepared.display()))?;
                sync::copy_prepared(&prepared, &data)
                    .with_context(|| format!("cannot copy it to {}", data.display()))?;
            }
            Reset::Delete => import(&data)?.0.process.stop()?,
        }
        let mut client = target.start(&data, genesis)?;
        // One that keeps its newest blocks in memory lacks them after each start.
        let (count, payloads) = (count_of(&self.feed.setup)?, payloads_of(&self.feed.setup)?);
        sync::feed(&mut client, Ancestry::default(), count, payloads)?;
        let waits = self.feed.wait_for_persistence != Persistence::Never;
        let persisted = waits.then(|| Persisted::subscribe(&client.websocket, None)).transpose()?;
        Ok(Session {
            engine: client.engine,
            with_witness: target.with_witness,
            process: Some(client.process),
            reconnect: Duration::ZERO,
            persisted,
            run: Run::default(),
        })
    }

    /// Where the directory of a client lies that has all blocks before the measured ones.
    fn prepared(&self, target: &Target, genesis: &Path) -> anyhow::Result<PathBuf> {
        let files = std::iter::once(genesis).chain(self.feed.setup.iter().map(PathBuf::as_path));
        let files = files.map(|path| {
            let read = || anyhow::Ok((path.canonicalize()?, fs::metadata(path)?));
            let (path, file) = read().with_context(|| format!("no {}", path.display()))?;
            let changed = file.modified()?.duration_since(std::time::UNIX_EPOCH)?.as_nanos();
            Ok((path, file.len(), changed.to_string()))
        });
        let files = short_hash(&files.collect::<anyhow::Result<Vec<_>>>()?);
        let name = target.name.trim_end_matches("+witness");
        let name = format!("{}-{}-{}", file_name(name), target.version()?, target.build()?);
        Ok(self.feed.dir.join("prepared").join(format!("replay-{files}")).join(name))
    }
}

/// A name of a client, as a part of paths.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.=_".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

/// Runs `replay`, and prints its report.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut course = Course::new(&args.feed)?;
    let results = course.results().to_owned();
    if let Some(url) = &args.engine_url {
        let (run, client) = course.endpoint(args, url)?;
        let title = format!("Replay to {url}");
        let mut document = report::document(title, &args.feed, std::slice::from_ref(&run));
        document.clients.push(client);
        return finish(&document, &results, std::slice::from_ref(&run));
    }
    let mut target = Targets::read(args.feed.targets.as_deref())?.target(&args.target)?;
    target.arguments.extend(args.target_args.split_whitespace().map(str::to_owned));
    let (title, entrants) = match &args.sweep {
        Some(sweep) => (sweep.title(&target), sweep.entrants(&target)),
        None => {
            let name = target.name.clone();
            (format!("Replay to {name}"), vec![Entrant { name, target }])
        }
    };
    let usual = if args.sweep.is_some() { 6 } else { 1 };
    let clients = clients(&entrants)?;
    let documented = |runs: &[Run]| {
        let mut document = report::document(title.clone(), &args.feed, runs);
        document.clients.clone_from(&clients);
        if let Some(sweep) = &args.sweep {
            sweep.add(&mut document, runs);
        }
        document
    };
    let runs = course.heats(&entrants, args.rounds.unwrap_or(usual), false, |runs| {
        documented(runs).write(&results)
    })?;
    finish(&documented(&runs), &results, &runs)
}

/// Writes and prints a report; runs that all failed are an error.
pub(crate) fn finish(document: &Document, results: &Path, runs: &[Run]) -> anyhow::Result<()> {
    document.write(results)?;
    println!("{}\n{}", crate::report::console(std::slice::from_ref(document)), results.display());
    let failures = runs.iter().filter_map(|run| Some((run, run.failure.as_ref()?)));
    if let (Some((run, failure)), true) = (failures.clone().next(), failures.count() == runs.len())
    {
        bail!("{}: {}: {}", run.client, failure.fault, failure.said);
    }
    Ok(())
}
