//! `deponent demo`: a node builds and validates a chain through its own Engine API, and the time
//! to get a witness is measured as a client sees it.

mod world;

pub use world::{CODE_BYTES, World};

use std::time::{Duration, Instant};

use alloy_primitives::B256;
use anyhow::{Context, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use rpc::{Client, RawValue, response};
use serde_json::{Value, json};
use witness::Witness;

use crate::{Node, NodeOptions};

/// Contracts read by the blocks of each row: none, about 17 MB, about 100 MB.
const ROWS: [(&str, usize); 3] = [("empty", 0), ("17 MB", 691), ("100 MB", 4_069)];

const SECONDS_A_SLOT: u64 = 12;
const CALL_TIME: Duration = Duration::from_secs(120);

/// What `deponent demo` takes.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Blocks measured in each flow, of each size; the table shows medians.
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(demo(args.rounds))
}

async fn demo(rounds: u32) -> anyhow::Result<()> {
    let bar = progress_bar(u64::from(rounds) * 2 * ROWS.len() as u64);
    bar.set_message("genesis with 100 MB of contracts");
    let world = World::new(ROWS[ROWS.len() - 1].1)?;
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let data_dir = directory.path().to_path_buf();
    let options =
        NodeOptions { testing: true, ..NodeOptions::new(world.genesis.clone(), data_dir) };
    let node = Node::start(options).await?;
    let mut driver = Driver::new(&node, world).await?;
    let mut rows = Vec::new();
    for (name, contracts) in ROWS {
        let mut row = Row::new(name);
        for _ in 0..rounds {
            bar.set_message(format!("{name}: two calls"));
            driver.decoupled(contracts, &mut row).await?;
            bar.inc(1);
            bar.set_message(format!("{name}: one call"));
            driver.coupled(contracts, &mut row).await?;
            bar.inc(1);
        }
        rows.push(row);
    }
    bar.finish_and_clear();
    let head = node.engine().heads().head;
    let number = node.engine().block(head)?.map_or(0, |record| record.number());
    print(number, &rows, rounds);
    node.stop().await;
    Ok(())
}

fn progress_bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}")
        .expect("the template is right");
    let bar = ProgressBar::new(steps).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The measurements of one size.
struct Row {
    name: &'static str,
    content_bytes: usize,
    items: usize,
    verdict: Vec<Duration>,
    witness: Vec<Duration>,
    decoupled: Vec<Duration>,
    coupled: Vec<Duration>,
}

impl Row {
    fn new(name: &'static str) -> Self {
        let [verdict, witness, decoupled, coupled] = [const { Vec::new() }; 4];
        Self { name, content_bytes: 0, items: 0, verdict, witness, decoupled, coupled }
    }
}

/// A consensus client that makes its own transactions.
struct Driver<'a> {
    node: &'a Node,
    world: World,
    engine: Client,
    public: Client,
    head: B256,
    timestamp: u64,
    nonce: u64,
}

impl<'a> Driver<'a> {
    async fn new(node: &'a Node, world: World) -> anyhow::Result<Self> {
        let mut engine =
            Client::connect(&node.engine_addr.to_string(), Some(node.jwt.clone())).await?;
        let mut public = Client::connect(&node.http_addr.to_string(), None).await?;
        engine.set_timeout(CALL_TIME);
        public.set_timeout(CALL_TIME);
        let head = node.engine().heads().head;
        let timestamp = world.genesis.timestamp;
        Ok(Self { node, world, engine, public, head, timestamp, nonce: 0 })
    }

    /// Builds a block on the head that reads `contracts` codes: the parameters of
    /// `engine_newPayloadV4`.
    async fn build(&mut self, contracts: usize) -> anyhow::Result<Value> {
        self.timestamp += SECONDS_A_SLOT;
        let mut transactions = Vec::new();
        if contracts > 0 {
            transactions.push(self.world.read_codes(self.nonce, contracts)?);
            self.nonce += 1;
        }
        let beacon_root = B256::repeat_byte(0xbe);
        let attributes = json!({
            "timestamp": format!("{:#x}", self.timestamp),
            "prevRandao": B256::with_last_byte(1),
            "suggestedFeeRecipient": format!("0x{}", "fe".repeat(20)),
            "withdrawals": [],
            "parentBeaconBlockRoot": beacon_root,
        });
        let params = json!([self.head, attributes, transactions]);
        let mut built: Value = self.engine.call("testing_buildBlockV1", params).await?;
        let (payload, requests) =
            (built["executionPayload"].take(), built["executionRequests"].take());
        Ok(json!([payload, [], beacon_root, requests]))
    }

    async fn set_head(&mut self, hash: B256) -> anyhow::Result<()> {
        let params = json!([
            {"headBlockHash": hash, "safeBlockHash": hash, "finalizedBlockHash": B256::ZERO},
            null
        ]);
        let updated: Value = self.engine.call("engine_forkchoiceUpdatedV3", params).await?;
        let status = &updated["payloadStatus"]["status"];
        ensure!(status == "VALID", "engine_forkchoiceUpdatedV3 answers {updated}");
        self.head = hash;
        Ok(())
    }

    /// `engine_newPayload`, then `debug_executionWitness`.
    async fn decoupled(&mut self, contracts: usize, row: &mut Row) -> anyhow::Result<()> {
        let params = self.build(contracts).await?;
        let started = Instant::now();
        let status: Value = self.engine.call("engine_newPayloadV4", params).await?;
        let verdict = started.elapsed();
        ensure!(status["status"] == "VALID", "engine_newPayloadV4 answers {status}");
        let hash: B256 = serde_json::from_value(status["latestValidHash"].clone())?;
        self.set_head(hash).await?;

        let started = Instant::now();
        let body = self.public.call_raw("debug_executionWitness", json!([hash])).await?;
        let witness = witness::json::decode(response::result(&body)?.get().as_bytes())?;
        let taken = started.elapsed();
        row.verdict.push(verdict);
        row.witness.push(taken);
        row.decoupled.push(verdict + taken);
        self.check(hash, &witness, row)
    }

    /// `engine_newPayloadWithWitness`: verdict and witness in one answer.
    async fn coupled(&mut self, contracts: usize, row: &mut Row) -> anyhow::Result<()> {
        let params = self.build(contracts).await?;
        let started = Instant::now();
        let body = self.engine.call_raw("engine_newPayloadWithWitnessV4", params).await?;
        let [status, hash, blob] =
            response::fields(response::result(&body)?, ["status", "latestValidHash", "witness"])?;
        let blob = blob.context("the answer has no witness")?;
        let witness = witness::rlp::decode(&response::bytes(blob)?.into())?;
        row.coupled.push(started.elapsed());
        let status = status.map(RawValue::get);
        ensure!(status == Some("\"VALID\""), "the payload is {status:?}");
        let hash: B256 = serde_json::from_str(hash.context("no hash")?.get())?;
        self.set_head(hash).await?;
        self.check(hash, &witness, row)
    }

    /// The witness that arrived is enough to verify its block by itself.
    fn check(&self, hash: B256, witness: &Witness, row: &mut Row) -> anyhow::Result<()> {
        row.content_bytes = witness.content_bytes();
        row.items = witness.state.len() + witness.codes.len() + witness.headers.len();
        let engine = self.node.engine();
        let record = engine.block(hash)?.context("a valid block is unknown")?;
        execution::verify(engine.chain(), &record.block, None, witness)?;
        Ok(())
    }
}

fn print(number: u64, rows: &[Row], rounds: u32) {
    println!(
        "{number} blocks built and validated over HTTP; every witness verified statelessly.\n"
    );
    println!(
        "{:<8} {:>11} {:>7} {:>12} {:>12} {:>14} {:>12}",
        "block", "witness MB", "items", "verdict ms", "witness ms", "decoupled ms", "coupled ms"
    );
    for row in rows {
        println!(
            "{:<8} {:>11.2} {:>7} {:>12.1} {:>12.1} {:>14.1} {:>12.1}",
            row.name,
            row.content_bytes as f64 / 1e6,
            row.items,
            median_ms(&row.verdict),
            median_ms(&row.witness),
            median_ms(&row.decoupled),
            median_ms(&row.coupled),
        );
    }
    println!(
        "\nMedians of {rounds} blocks a cell; round trips end when the client has decoded.\n\
         verdict: engine_newPayloadV4; witness: debug_executionWitness; decoupled: both;\n\
         coupled: engine_newPayloadWithWitnessV4, one call for both."
    );
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
