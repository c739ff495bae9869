//! The benchmark of the transports: what a payload's verdict and witness take over each of them,
//! from the request until the items of the witness lie as slices in the caller's memory.
//!
//! A turn is one call on a fresh connection, opened before the clock starts, of one client while
//! the others are stopped. Who comes first changes from round to round, and every call of a client
//! has a block that it has not seen: siblings that differ in their random value. The caller is this
//! process, on one thread; what it decodes to was touched before.

mod connection;
mod crowd;
mod decode;
mod encode;
mod http2;
mod overhead;
mod payloads;
mod report;
mod ssz;
mod wires;
mod witness_flow;

use std::hash::{DefaultHasher, Hasher};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::Value;

pub use self::crowd::{CrowdOptions, crowd};
use self::decode::{Lists, Memory};
pub(crate) use self::overhead::receive_witnesses;
use self::payloads::Published;
pub use self::wires::transport_names;
pub(crate) use self::wires::transport_names_of;
use self::wires::{Named, Transport, named};
pub(crate) use self::witness_flow::{WitnessArgs, run as run_witness};
pub use self::witness_flow::{WitnessOptions, witness};
use crate::chain::format::{Chain, Part, Payload};
use crate::clients::client::{Client, Kind, Program};
use crate::clients::prepare as sync;
use crate::clients::process::{self, Usage};
use crate::clients::wire;
use crate::progress;
use crate::report::Document;
use crate::run::{micros, server_timings};
use crate::state::Outcome;
use crate::turns::whose;

/// Sizes from here on, in megabytes, have [`TransportOptions::rounds`]' second number.
const LARGE_MB: u64 = 200;

/// What a run of the transports does.
#[derive(Clone, Debug)]
pub struct TransportOptions {
    /// The clients that run; ours also builds the blocks that are not published.
    pub programs: Vec<Program>,
    /// Our transports; empty: all.
    pub transports: Vec<String>,
    /// The transports of the others, as far as they have them.
    pub peer_transports: Vec<String>,
    /// Witness sizes in megabytes, for which there are blocks labelled `w17`, `w100`..
    pub sizes: Vec<u64>,
    /// Measured rounds of small sizes and of large ones, after one that warms up.
    pub rounds: [usize; 2],
    /// How long each client is left alone after a call.
    pub pause: Duration,
}

/// One call.
#[derive(Clone, Debug, Serialize)]
struct Sample {
    size: u64,
    client: String,
    transport: String,
    round: usize,
    warm_up: bool,
    number: u64,
    hash: alloy_primitives::B256,
    /// Until the items were there.
    whole_us: f64,
    first_byte_us: f64,
    last_byte_us: f64,
    /// In the caller's decoder, at whatever time.
    decoding_us: f64,
    answer_bytes: usize,
    witness_bytes: usize,
    items: usize,
    /// Of the items, to tell whether two witnesses are equal.
    digest: u64,
    /// Of codes and nodes in any order.
    content: u64,
    /// Memory of the server when it had started, before the call, and at most during the call.
    server_idle_kib: u64,
    server_before_kib: u64,
    server_peak_kib: u64,
    /// Of what it had before the call, pages of mapped files on disk beyond the idle process.
    server_mapped_kib: u64,
    /// Of memory files that it has not mapped, after the call.
    server_files_kib: u64,
    server_cpu_ms: u64,
    /// Memory of the caller during the call, beyond what it had before.
    client_peak_kib: u64,
    client_cpu_ms: u64,
    /// What the server itself says that it took, in microseconds.
    server_us: std::collections::BTreeMap<String, f64>,
}

/// A client, and a transport to it.
struct Lane {
    /// The place of its server.
    server: usize,
    named: &'static Named,
    transport: Box<dyn Transport>,
    /// Its place among the lanes of its server.
    place: usize,
    /// What its last answer took of the caller's memory.
    room: usize,
}

/// Payloads sent over a transport, for a verdict with the witness.
pub(crate) struct WitnessLane {
    transport: Box<dyn Transport>,
    /// Kept, for who has to touch it first has nothing else left in the processor's caches.
    memory: Memory,
}

impl WitnessLane {
    /// To a running client of `chain`.
    pub(crate) fn open(name: &str, client: &Client, chain: &Chain) -> anyhow::Result<Self> {
        let transport = named(name)?.open(client, osaka_time(chain)?, true)?;
        Ok(Self { transport, memory: Memory::touched(0) })
    }

    /// Sends a payload. With the witness the time is over when its items are slices of our memory;
    /// without, `None` says that this lane has no connection for it.
    pub(crate) fn new_payload(
        &mut self,
        payload: &Payload,
        with_witness: bool,
    ) -> anyhow::Result<Option<wire::Timing>> {
        let Self { transport, memory } = self;
        if !with_witness {
            return transport.verdict(payload).transpose();
        }
        let timing = transport.call(payload, memory)?;
        let count: usize = transport.items(memory).iter().map(Vec::len).sum();
        ensure!(count > 0, "block {}: an empty witness", payload.number);
        let decode::Timing { whole, first_byte, answer_bytes, .. } = timing;
        Ok(Some(wire::Timing { whole, first_byte, answer_bytes }))
    }
}

/// When Osaka begins, which tells forks apart.
fn osaka_time(chain: &Chain) -> anyhow::Result<u64> {
    let genesis: Value = serde_json::from_slice(&std::fs::read(chain.genesis())?)?;
    Ok(genesis["config"]["osakaTime"].as_u64().unwrap_or(u64::MAX))
}

struct Server {
    name: &'static str,
    client: Client,
    idle: Usage,
    timings: bool,
}

/// Sends the blocks of a published chain in `published` over all transports, and writes
/// the report and `samples.jsonl` into `results`. Prepared directories are kept in `folder`.
pub fn transports(
    options: &TransportOptions,
    published: &Path,
    folder: &Path,
    results: &Path,
) -> anyhow::Result<Outcome> {
    let labels: Vec<String> = options.sizes.iter().map(|size| format!("w{size}")).collect();
    let read = Published::read(published)?;
    let chain = read.chain(&labels, folder)?;
    let builder = options.programs.iter().find(|program| program.kind == Kind::Deponent);
    let builder = builder.context("our own node has to run: it builds blocks")?;
    let lanes = options.programs.iter().map(|program| options.lanes(program.kind));
    let most = lanes.collect::<anyhow::Result<Vec<_>>>()?.iter().map(Vec::len).max();
    let most = most.unwrap_or_default();
    let mut sizes = Vec::new();
    for (size, label) in options.sizes.iter().zip(&labels) {
        let count = (options.rounds(*size) + 1) * most;
        sizes.push((*size, read.enough(label, count, &chain, folder, builder)?));
    }
    let mut samples = Vec::new();
    for (size, payloads) in &sizes {
        // Fresh processes, or memory would be what blocks of another size left there.
        let work = sync::working_folder(folder)?;
        let outcome = run(options, &chain, *size, payloads, folder, &work);
        clean_up(&options.programs, &work, &results.join(format!("w{size}")))?;
        let file = results.join("samples.jsonl");
        samples.extend(outcome.with_context(|| match samples.is_empty() {
            true => format!("{size} MB"),
            false => format!("{size} MB; samples of the sizes before are in {}", file.display()),
        })?);
        // What comes next may fail.
        write(&samples, &file)?;
    }
    let mut document = Document::new("Transports");
    report::fill(&mut document, &samples);
    for program in &options.programs {
        program.enter(program.kind.name(), true, &mut document)?;
    }
    document.write(results)?;
    Ok(Outcome { document, folder: results.into(), samples: samples.len() })
}

impl TransportOptions {
    fn rounds(&self, size: u64) -> usize {
        self.rounds[usize::from(size >= LARGE_MB)]
    }

    /// The transports of a client.
    fn lanes(&self, kind: Kind) -> anyhow::Result<Vec<&'static Named>> {
        let names = if kind == Kind::Deponent { &self.transports } else { &self.peer_transports };
        let mut lanes = names.iter().map(|name| named(name)).collect::<anyhow::Result<Vec<_>>>()?;
        if kind == Kind::Deponent && lanes.is_empty() {
            lanes.extend(wires::TRANSPORTS);
        }
        lanes.retain(|named| named.clients.contains(&kind));
        Ok(lanes)
    }
}

fn run(
    options: &TransportOptions,
    chain: &Chain,
    size: u64,
    payloads: &[Payload],
    folder: &Path,
    work: &Path,
) -> anyhow::Result<Vec<Sample>> {
    let (mut servers, mut lanes) = (Vec::new(), Vec::new());
    for program in &options.programs {
        let named = options.lanes(program.kind)?;
        let (server, own) = start(program, named, servers.len(), chain, folder, work)?;
        std::thread::sleep(options.pause);
        servers.push(server.idle()?);
        lanes.extend(own);
    }
    let mut samples: Vec<Sample> = Vec::new();
    let rounds = options.rounds(size) + 1;
    let bar = progress::bar(format!("{size} MB"), rounds * lanes.len());
    // The same block goes to the first lane of each client, another to the second..
    let lanes_most = payloads.len() / rounds;
    for round in 0..rounds {
        for turn in 0..lanes.len() {
            let index = whose(round, turn, lanes.len());
            let lane = &mut lanes[index];
            let server = &mut servers[lane.server];
            let payload = &payloads[round * lanes_most + lane.place];
            let memory = Memory::touched(lane.room);
            let sample = turn_of(lane, server, payload, options.pause, memory)
                .with_context(|| format!("{} over {}", server.name, lane.named.name))?;
            samples.push(Sample { size, round, warm_up: round == 0, ..sample });
            bar.inc(1);
        }
    }
    drop(lanes);
    for server in servers {
        server.client.process.stop()?;
    }
    Ok(samples)
}

/// Starts a client, as the `place`-th, on a copy that has the blocks of the chain.
fn start(
    program: &Program,
    lanes: Vec<&'static Named>,
    place: usize,
    chain: &Chain,
    folder: &Path,
    work: &Path,
) -> anyhow::Result<(Server, Vec<Lane>)> {
    let osaka_time = osaka_time(chain)?;
    let data = work.join(program.kind.name());
    sync::copy_prepared(&sync::prepared(program, chain, folder)?, &data)?;
    let mut client = program.start_with_socket(&data, &chain.genesis())?;
    sync::catch_up(&mut client, chain, Part::Empty)?;
    let lanes = lanes.into_iter().enumerate().map(|(index, named)| {
        let transport = named.open(&client, osaka_time, false)?;
        Ok(Lane { server: place, named, transport, place: index, room: 0 })
    });
    let lanes = lanes.collect::<anyhow::Result<_>>()?;
    let name = program.kind.name();
    Ok((Server { name, client, idle: Usage::default(), timings: true }, lanes))
}

impl Server {
    /// Looks at what it has when nobody asks, and stops it until its turn.
    fn idle(self) -> anyhow::Result<Self> {
        let idle = self.client.process.settled();
        self.client.process.freeze()?;
        Ok(Self { idle, ..self })
    }
}

/// Keeps the logs of clients that ran in `work`, and removes everything else there.
fn clean_up(programs: &[Program], work: &Path, results: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(results)?;
    for program in programs {
        let name = program.kind.name();
        std::fs::copy(work.join(name).join("bench.log"), results.join(format!("{name}.log"))).ok();
        program.clean_up(&work.join(name));
    }
    Ok(std::fs::remove_dir_all(work).or_else(sync::absent)?)
}

fn turn_of(
    lane: &mut Lane,
    server: &mut Server,
    payload: &Payload,
    pause: Duration,
    mut memory: Memory,
) -> anyhow::Result<Sample> {
    let (us, them) = (std::process::id(), server.client.process.id());
    server.client.process.thaw()?;
    let [our_base, before] = [us, them].map(Usage::of);
    for process in [us, them] {
        process::reset_peak(process);
    }
    let our_before = Usage::of(us);
    let timing = lane.transport.call(payload, &mut memory)?;
    let our_after = Usage::of(us);
    lane.room = memory.filled;
    let server_us = server_timings(&mut server.client, &mut server.timings);
    std::thread::sleep(pause);
    let after = Usage::of(them);
    server.client.process.freeze()?;
    let items = lane.transport.items(&memory);
    let Digest { digest, content, count, bytes } = Digest::of(&items);
    ensure!(count > 0, "block {}: an empty witness", payload.number);
    Ok(Sample {
        size: 0,
        client: server.name.into(),
        transport: lane.named.name.into(),
        round: 0,
        warm_up: false,
        number: payload.number,
        hash: payload.hash,
        whole_us: micros(timing.whole),
        first_byte_us: micros(timing.first_byte),
        last_byte_us: micros(timing.last_byte),
        decoding_us: micros(timing.decoding),
        answer_bytes: timing.answer_bytes,
        witness_bytes: bytes,
        items: count,
        digest,
        content,
        server_idle_kib: server.idle.resident_kib,
        server_before_kib: before.resident_kib,
        server_peak_kib: after.peak_kib,
        server_mapped_kib: before.file_kib.saturating_sub(server.idle.file_kib),
        server_files_kib: process::unmapped_files_kib(them),
        server_cpu_ms: after.cpu_ms - before.cpu_ms,
        client_peak_kib: our_after.peak_kib.saturating_sub(our_base.resident_kib),
        client_cpu_ms: our_after.cpu_ms - our_before.cpu_ms,
        server_us,
    })
}

/// What tells witnesses apart.
struct Digest {
    digest: u64,
    /// Of codes and nodes in any order.
    content: u64,
    count: usize,
    bytes: usize,
}

impl Digest {
    /// Of headers, codes and nodes.
    fn of(items: &[Vec<&[u8]>; 3]) -> Self {
        let mut hasher = DefaultHasher::new();
        let (mut content, mut count, mut bytes) = (0u64, 0, 0);
        for (place, list) in items.iter().enumerate() {
            hasher.write_usize(list.len());
            for item in list {
                let mut of_item = DefaultHasher::new();
                of_item.write_usize(place);
                of_item.write(item);
                let of_item = of_item.finish();
                hasher.write_u64(of_item);
                if place > 0 {
                    content = content.wrapping_add(of_item);
                }
                bytes += item.len();
            }
            count += list.len();
        }
        Self { digest: hasher.finish(), content, count, bytes }
    }
}

/// The items of the lists, as slices of `bytes`.
fn slices<'a>(lists: &Lists, bytes: &'a [u8]) -> [Vec<&'a [u8]>; 3] {
    [&lists.headers, &lists.codes, &lists.state]
        .map(|list| list.iter().map(|item| &bytes[item.clone()]).collect())
}

fn write(samples: &[impl Serialize], path: &Path) -> anyhow::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for sample in samples {
        serde_json::to_writer(&mut file, sample)?;
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}
