//! `deponent demo`: a temporary node builds and validates a chain, and a client measures how long
//! verdict and witness take over each transport.

mod world;

pub use world::World;

use std::time::{Duration, Instant};

use alloy_primitives::B256;
use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar, ForkchoiceState};
use anyhow::{Context, ensure};
use clap::Args;
use client::{CodeCache, ConnectOptions, EngineClient, Wire};
use indicatif::{ProgressBar, ProgressStyle};
use rpc::JwtSecret;
use witness::Witness;

use crate::console::{counted, print_line, say};
use crate::{Node, NodeOptions};

/// The columns of the table: a name, and how many contracts a block reads.
const SIZES: [(&str, usize); 3] = [("empty", 0), ("17 MB", 691), ("100 MB", 4_069)];

/// The rows of the table that end with a witness: a short name, and what is done.
const FLOWS: [(&str, &str); 6] = [
    ("two calls", "newPayload, then debug_executionWitness, JSON"),
    ("one call", "newPayloadWithWitness, JSON"),
    ("SSZ, TCP", "POST payloads/witness, SSZ"),
    ("SSZ, Unix", "the same on a Unix socket"),
    ("descriptor", "the same, the answer as a memory file"),
    ("codes held", "the same, without codes that the client has"),
];

/// Seconds that the demo takes on two cores: for the genesis, and for each round.
const SETUP_SECONDS: u32 = 5;
const ROUND_SECONDS: u32 = 3;

/// Bytes of codes that the last flow's client keeps: more than all contracts have.
const HELD_BYTES: usize = 256 << 20;

/// The arguments of `deponent demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Blocks measured for each cell of the table, which shows medians.
    #[arg(long, value_name = "BLOCKS", default_value_t = 5)]
    #[arg(value_parser = parse_rounds)]
    rounds: u32,
}

fn parse_rounds(text: &str) -> Result<u32, String> {
    let rounds = text.parse().ok().filter(|rounds| (1..=1000).contains(rounds));
    rounds.ok_or_else(|| "expected a number of blocks, from 1 to 1000".into())
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            outcome = demo(args.rounds) => outcome,
            // The temporary directory is removed on the way out.
            _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
        }
    })
}

async fn demo(rounds: u32) -> anyhow::Result<()> {
    let blocks = rounds as usize * SIZES.len() * FLOWS.len();
    say!(
        "Building and validating {blocks} blocks on a temporary node: about {} seconds.\n",
        SETUP_SECONDS + ROUND_SECONDS * rounds
    );
    let bar = progress_bar(blocks as u64);
    bar.set_message("making the genesis");
    let mut world = World::new(SIZES[SIZES.len() - 1].1)?;
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let data_dir = directory.path().to_path_buf();
    let ipc = data_dir.join("deponent.ipc");
    let mut options = NodeOptions::new(world.genesis.clone(), data_dir);
    options.ports.ipc = Some(ipc);
    let node = Node::start(options).await?;
    let mut flows = connect(&node).await?;
    let mut columns = Vec::new();
    for (name, contracts) in SIZES {
        let mut column = Column { name, ..Column::default() };
        for _ in 0..rounds {
            for (index, flow) in flows.iter_mut().enumerate() {
                bar.set_message(format!("{name} block, {}", FLOWS[index].0));
                let (payload, sidecar) = world.build(node.engine(), contracts)?;
                let answer = flow.measure(&payload, &sidecar).await?;
                check(&node, &payload, &answer.witness)?;
                column.add(index, &answer);
                bar.inc(1);
            }
        }
        columns.push(column);
    }
    bar.finish_and_clear();
    print(&columns, rounds)?;
    node.stop().await;
    Ok(())
}

/// A bar on the standard error, where that is a terminal.
fn progress_bar(blocks: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} blocks  {elapsed}  {msg}");
    let bar = ProgressBar::new(blocks).with_style(style.expect("the template is right"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The clients of [`FLOWS`].
async fn connect(node: &Node) -> anyhow::Result<[Flow; 6]> {
    let socket = node.ipc_path.as_ref().context("the node has no Unix socket")?;
    let (tcp, unix) = (node.engine_addr.to_string(), format!("unix:{}", socket.display()));
    let client = async |wire, address: &str, secret: Option<&JwtSecret>| {
        EngineClient::connect_over(wire, address, secret.cloned()).await
    };
    let flow = |client| Flow { client, public: None };
    let jwt = Some(&node.jwt);
    let public = client(Wire::Json, &node.http_addr.to_string(), None).await?;
    let two_calls = Flow { public: Some(public), ..flow(client(Wire::Json, &tcp, jwt).await?) };
    let options = ConnectOptions {
        wire: Some(Wire::Descriptor),
        codes: CodeCache::Held { most_bytes: HELD_BYTES },
        ..ConnectOptions::default()
    };
    let held = EngineClient::connect_with(&unix, options).await?;
    Ok([
        two_calls,
        flow(client(Wire::Json, &tcp, jwt).await?),
        flow(client(Wire::Ssz, &tcp, jwt).await?),
        flow(client(Wire::Ssz, &unix, None).await?),
        flow(client(Wire::Descriptor, &unix, None).await?),
        flow(held),
    ])
}

/// A way to get verdict and witness.
struct Flow {
    client: EngineClient,
    /// The client that asks for the witness by a second call.
    public: Option<EngineClient>,
}

/// A verdict and a witness, and how long they took.
struct Answer {
    /// The verdict alone, where it comes before the witness.
    verdict: Option<Duration>,
    total: Duration,
    witness: Witness,
}

impl Flow {
    /// Has a payload validated, makes its block the head, and returns its witness.
    async fn measure(
        &mut self,
        payload: &ExecutionPayload,
        sidecar: &ExecutionPayloadSidecar,
    ) -> anyhow::Result<Answer> {
        let (client, hash) = (&mut self.client, payload.block_hash());
        let start = Instant::now();
        let (status, answer, mut total) = match &self.public {
            Some(_) => (client.new_payload(payload, sidecar).await?, None, start.elapsed()),
            None => {
                let (status, answer) = client.new_payload_with_witness(payload, sidecar).await?;
                (status, answer, start.elapsed())
            }
        };
        ensure!(status.is_valid(), "block {hash}: {status:?}");
        let heads = ForkchoiceState {
            head_block_hash: hash,
            safe_block_hash: hash,
            finalized_block_hash: B256::ZERO,
        };
        let updated = client.forkchoice_updated(heads, None).await?;
        ensure!(updated.is_valid(), "block {hash} as the head: {updated:?}");
        let Some(public) = &mut self.public else {
            let witness = answer.context("the answer has no witness")?.witness;
            return Ok(Answer { verdict: None, total, witness });
        };
        let (verdict, start) = (Some(total), Instant::now());
        let witness = public.witness(hash).await?;
        total += start.elapsed();
        Ok(Answer { verdict, total, witness })
    }
}

/// Verifies the block on the witness that arrived, and on nothing else.
fn check(node: &Node, payload: &ExecutionPayload, witness: &Witness) -> anyhow::Result<()> {
    let engine = node.engine();
    let record = engine.block(payload.block_hash())?.context("a valid block is unknown")?;
    execution::verify(engine.chain(), &record.block, None, witness)?;
    Ok(())
}

/// The measurements of one size.
#[derive(Default)]
struct Column {
    name: &'static str,
    content_bytes: usize,
    items: usize,
    verdicts: Vec<Duration>,
    /// Verdict and witness, for each of [`FLOWS`].
    totals: [Vec<Duration>; FLOWS.len()],
}

impl Column {
    fn add(&mut self, flow: usize, Answer { verdict, total, witness }: &Answer) {
        let Witness { state, codes, headers } = witness;
        self.content_bytes = witness.content_bytes();
        self.items = state.len() + codes.len() + headers.len();
        self.verdicts.extend(verdict);
        self.totals[flow].push(*total);
    }
}

/// The table fits a terminal of 80 columns.
fn print(columns: &[Column], rounds: u32) -> anyhow::Result<()> {
    let line = |name: &str, cell: &dyn Fn(&Column) -> String| {
        let cells: Vec<_> = columns.iter().map(|column| format!("{:>9}", cell(column))).collect();
        print_line(format_args!("{name:<46}{}", cells.concat()))
    };
    line("block", &|column| column.name.into())?;
    line("size of its witness, MB", &|column| format!("{:.2}", column.content_bytes as f64 / 1e6))?;
    line("nodes, codes and headers in it", &|column| column.items.to_string())?;
    say!(
        "\nmilliseconds until the client has decoded the answer, medians of {}",
        counted(rounds, "block")
    );
    line("newPayload, without the witness", &|column| milliseconds(&column.verdicts))?;
    for (flow, (_, name)) in FLOWS.iter().enumerate() {
        line(name, &|column| milliseconds(&column.totals[flow]))?;
    }
    say!("\nEvery witness verified its block statelessly.");
    Ok(())
}

/// The median.
fn milliseconds(times: &[Duration]) -> String {
    format!("{:.1}", median_ms(times))
}

fn median_ms(times: &[Duration]) -> f64 {
    let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    times.sort_by(f64::total_cmp);
    match times.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => times[odd / 2],
        even => (times[even / 2 - 1] + times[even / 2]) / 2.0,
    }
}
