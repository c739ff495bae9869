//! `deponent demo`: a node builds and validates a chain through its own Engine API, and the time
//! to get a witness is measured as a client sees it.

mod world;

pub use world::{CODE_BYTES, World};

use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::ExecutionPayload;
use anyhow::{Context, ensure};
use clap::Args;
use engine_api::{ExecutionPayloadEnvelope, PayloadStatus, Status, WithWitness};
use indicatif::{ProgressBar, ProgressStyle};
use rpc::rest::{self, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rpc::{Client, RawValue, Spare, response};
use serde_json::{Value, json};
use witness::Witness;

use crate::{Node, NodeOptions};

/// Contracts read by the blocks of each row: none, about 17 MB, about 100 MB.
const ROWS: [(&str, usize); 3] = [("empty", 0), ("17 MB", 691), ("100 MB", 4_069)];

const SECONDS_A_SLOT: u64 = 12;
/// Asks for the codes that did not come before (docs/transports.md).
const CODES: HeaderName = HeaderName::from_static("deponent-codes");

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
    runtime.block_on(async {
        tokio::select! {
            outcome = demo(args.rounds) => outcome,
            // Its files are removed.
            _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
        }
    })
}

async fn demo(rounds: u32) -> anyhow::Result<()> {
    let bar = progress_bar(u64::from(rounds) * (2 + WIRES.len() as u64) * ROWS.len() as u64);
    bar.set_message("genesis with 100 MB of contracts");
    let world = World::new(ROWS[ROWS.len() - 1].1)?;
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let data_dir = directory.path().to_path_buf();
    let options = NodeOptions {
        testing: true,
        ipc: Some(data_dir.join("deponent.ipc")),
        ..NodeOptions::new(world.genesis.clone(), data_dir)
    };
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
            for (wire, times) in WIRES.into_iter().zip(0..) {
                bar.set_message(format!("{name}: {}", wire.name()));
                driver.over_ssz(contracts, wire, times, &mut row).await?;
                bar.inc(1);
            }
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
    /// One for each of [`WIRES`].
    ssz: [Vec<Duration>; WIRES.len()],
}

impl Row {
    fn new(name: &'static str) -> Self {
        let [verdict, witness, decoupled, coupled] = [const { Vec::new() }; 4];
        let ssz = [const { Vec::new() }; WIRES.len()];
        Self { name, content_bytes: 0, items: 0, verdict, witness, decoupled, coupled, ssz }
    }
}

/// How verdict and witness come as SSZ, in one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Tcp,
    Unix,
    /// On the Unix socket, in a memory file.
    Descriptor,
    /// The same, with the codes left out that came before.
    Held,
}

const WIRES: [Wire; 4] = [Wire::Tcp, Wire::Unix, Wire::Descriptor, Wire::Held];

impl Wire {
    const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "SSZ, TCP",
            Self::Unix => "SSZ, Unix",
            Self::Descriptor => "descriptor",
            Self::Held => "codes held",
        }
    }
}

/// A consensus client that makes its own transactions.
struct Driver<'a> {
    node: &'a Node,
    world: World,
    engine: Client,
    public: Client,
    /// On the Unix socket, one for each of [`WIRES`].
    local: [Client; WIRES.len()],
    /// The codes that came on the last of them, in order.
    held: Vec<Bytes>,
    /// Where hex is decoded.
    spare: Spare,
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
        let path = node.ipc_path.as_ref().context("the node has no Unix socket")?;
        let address = format!("unix:{}", path.display());
        let connect = || Client::connect(&address, None);
        let local = [connect().await?, connect().await?, connect().await?, connect().await?];
        let head = node.engine().heads().head;
        let timestamp = world.genesis.timestamp;
        let (held, spare) = (Vec::new(), Spare::default());
        Ok(Self { node, world, engine, public, local, held, spare, head, timestamp, nonce: 0 })
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
        let mut rlp = self.spare.take_for(blob.get().len() / 2);
        response::bytes_into(blob, &mut rlp)?;
        let witness = witness::rlp::decode(&self.spare.lend(rlp).into())?;
        row.coupled.push(started.elapsed());
        let status = status.map(RawValue::get);
        ensure!(status == Some("\"VALID\""), "the payload is {status:?}");
        let hash: B256 = serde_json::from_str(hash.context("no hash")?.get())?;
        self.set_head(hash).await?;
        self.check(hash, &witness, row)
    }

    /// `POST /engine/v1/payloads/witness`: verdict and witness in one answer, as SSZ.
    async fn over_ssz(
        &mut self,
        contracts: usize,
        wire: Wire,
        index: usize,
        row: &mut Row,
    ) -> anyhow::Result<()> {
        let params = self.build(contracts).await?;
        let mut headers = HeaderMap::new();
        let octets = HeaderValue::from_static("application/octet-stream");
        headers.insert(rest::header::CONTENT_TYPE, octets);
        headers.insert("eth-execution-version", HeaderValue::from_static("osaka"));
        if matches!(wire, Wire::Descriptor | Wire::Held) {
            headers.insert(rest::DESCRIPTOR, HeaderValue::from_static("1"));
        }
        if wire == Wire::Held {
            headers.insert(CODES, HeaderValue::from_static("held"));
        }
        let client = match wire {
            Wire::Tcp => &mut self.engine,
            Wire::Unix | Wire::Descriptor | Wire::Held => &mut self.local[index],
        };
        let started = Instant::now();
        let envelope = ExecutionPayloadEnvelope {
            payload: ExecutionPayload::V3(serde_json::from_value(params[0].clone())?),
            parent_beacon_block_root: Some(serde_json::from_value(params[2].clone())?),
            execution_requests: Some(serde_json::from_value(params[3].clone())?),
        };
        let path = "/engine/v1/payloads/witness";
        let reply = client.request(Method::POST, path, headers, envelope.encode()?).await?;
        ensure!(reply.status == StatusCode::OK, "{path} answers {}", reply.status);
        let mut body = Bytes::from(reply.body);
        let first = reply
            .headers
            .get(CODES)
            .map(|first| -> anyhow::Result<usize> { Ok(first.to_str()?.parse()?) });
        let first = first.transpose().context("the number of the first code")?;
        let mut numbers = Bytes::new();
        if first.is_some() {
            (body, numbers) = split_held(&body)?;
        }
        let answer = WithWitness::<PayloadStatus>::decode(&body)?;
        let mut witness = answer.witness.context("the answer has no witness")?;
        if let Some(first) = first {
            // What is held is memory of its own: the answer's goes back to the node.
            self.held.truncate(first);
            let copy = |code: &Bytes| Bytes::copy_from_slice(code);
            self.held.extend(witness.codes.iter().map(copy));
            let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes);
            for number in numbers.chunks(4).map(number) {
                let code = self.held.get(number? as usize).context("a code that never came")?;
                witness.codes.push(code.clone());
            }
            witness.codes.sort_unstable();
        }
        row.ssz[index].push(started.elapsed());
        let hash = answer.content.latest_valid_hash.context("no hash")?;
        ensure!(answer.content.status == Status::Valid, "the payload is {:?}", answer.content);
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

/// The answer and the numbers of the codes that are held: `{ answer, held_codes }`.
fn split_held(body: &Bytes) -> anyhow::Result<(Bytes, Bytes)> {
    let offset = |at: usize| -> Option<usize> {
        Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?) as usize)
    };
    let bounds = offset(0).zip(offset(4)).filter(|(start, end)| start <= end && *end <= body.len());
    let (start, end) = bounds.context("the answer is cut short")?;
    Ok((body.slice(start..end), body.slice(end..)))
}

fn print(number: u64, rows: &[Row], rounds: u32) {
    println!("{number} blocks built and validated; every witness verified statelessly.\n");
    print!("{:<6} {:>10} {:>7} {:>10}", "block", "witness MB", "items", "verdict ms");
    for name in ["two calls", "one call"].into_iter().chain(WIRES.map(Wire::name)) {
        print!(" {name:>11}");
    }
    println!();
    for row in rows {
        let megabytes = row.content_bytes as f64 / 1e6;
        let verdict = median_ms(&row.verdict);
        print!("{:<6} {megabytes:>10.2} {:>7} {verdict:>10.1}", row.name, row.items);
        for times in [&row.decoupled, &row.coupled].into_iter().chain(&row.ssz) {
            print!(" {:>11.1}", median_ms(times));
        }
        println!();
    }
    println!(
        "\nMedians of {rounds} blocks a cell; round trips end when the client has decoded.\n\
         verdict: engine_newPayloadV4. With the witness, ms: two calls: the same, then\n\
         debug_executionWitness; one call: engine_newPayloadWithWitnessV4, both JSON over HTTP;\n\
         SSZ: POST /engine/v1/payloads/witness; descriptor: the same in a memory file;\n\
         codes held: and without the codes that came before on the connection."
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
