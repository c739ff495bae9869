//! Attacks a node over loopback and measures what it reaches: memory beside its printed bound, the
//! latency of a bystander's small calls, and the time of valid payloads beside that in peace.
//!
//! `cargo xtask attack [NAME..]` builds the program `deponent` and runs this beside it. Each attack
//! is described in docs/design/limits.md. It listens nowhere, connects to 127.0.0.1 alone, and ends
//! in some minutes.

mod attacks;
mod bystander;
mod http2;
mod spam;
mod victim;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar};
use anyhow::Context;
use attacks::{ATTACKS, Attack, Crowd};
use bystander::Bystander;
use deponent_node::demo::World;
use deponent_node::{Node, NodeMemory, NodeOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use victim::{Memory, Victim};

/// Blocks sent before an attack, and during it.
const BLOCKS: usize = 60;
/// Contracts whose code size a block asks for: some milliseconds of work.
const CONTRACTS: usize = 1_000;
/// Pause before each block.
const PAUSE: Duration = Duration::from_millis(200);
/// The time in which a node has given back what an attack took.
const RECOVERY: Duration = Duration::from_secs(10);
/// Bytes that a node may keep of it. Caches that blocks fill are among them: without an attack the
/// blocks of a run took 38 MiB.
const KEPT_BYTES: u64 = 128 << 20;

/// A payload and what is sent beside it.
type Payload = (ExecutionPayload, ExecutionPayloadSidecar);

fn main() -> anyhow::Result<ExitCode> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let unknown = names.iter().find(|name| ATTACKS.iter().all(|attack| attack.name != **name));
    if let Some(name) = unknown {
        let known: Vec<_> = ATTACKS.iter().map(|attack| attack.name).collect();
        anyhow::bail!("no attack {name}: {}", known.join(", "));
    }
    // Some attacks hold thousands of connections.
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (genesis, payloads) = chain().await?;
        println!("{}", Outcome::HEAD);
        let mut failed = false;
        for attack in ATTACKS {
            if names.is_empty() || names.iter().any(|name| name == attack.name) {
                let outcome = run(attack, &genesis, &payloads)
                    .await
                    .with_context(|| format!("attack {}", attack.name))?;
                failed |= !outcome.faults().is_empty();
                println!("{outcome}");
            }
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    })
}

/// A genesis, and the payloads of a chain on it, made by a node of this process.
async fn chain() -> anyhow::Result<(String, Vec<Payload>)> {
    let files = tempfile::tempdir()?;
    let mut world = World::new(CONTRACTS)?;
    spam::fund(&mut world.genesis)?;
    let genesis = serde_json::to_string(&world.genesis)?;
    // Signed before the clock runs.
    spam::transfers(world.genesis.config.chain_id);
    let options = NodeOptions::new(world.genesis.clone(), files.path().join("data"));
    let node = Node::start(options).await?;
    let address = node.engine_addr.to_string();
    let mut client = client::EngineClient::connect(&address, Some(node.jwt.clone())).await?;
    let mut payloads = Vec::new();
    for _ in 0..2 * BLOCKS {
        let payload = world.build(node.engine(), CONTRACTS)?;
        let status = client.new_payload(&payload.0, &payload.1).await?;
        anyhow::ensure!(status.is_valid(), "a payload of ours is {status:?}");
        client.forkchoice_updated(bystander::heads(&payload), None).await?;
        payloads.push(payload);
    }
    node.stop().await;
    Ok((genesis, payloads))
}

/// The figures of an attack.
#[derive(Debug)]
struct Outcome {
    name: &'static str,
    memory: Memory,
    bound: u64,
    quick_p99: Duration,
    turn_p99: Duration,
    unanswered: usize,
    /// Of payloads, the median and the 99th percentile.
    peace: [Duration; 2],
    war: [Duration; 2],
    stopped: Duration,
}

async fn run(attack: &Attack, genesis: &str, payloads: &[Payload]) -> anyhow::Result<Outcome> {
    let victim = Victim::start(genesis, attack.open_files).await?;
    let memory = NodeMemory::default();
    let limits = if attack.on_engine { memory.engine_limits() } else { memory.public_limits() };
    let (before, during) = payloads.split_at(BLOCKS);
    let peace = victim.send(before, PAUSE / 4).await?;
    let watch = victim.watch_memory();
    // As `deponent node --print-limits` says, beside what the node had before.
    let bounds = limits.bounds().iter().map(rpc::Bound::bytes).sum::<usize>();
    let bound = watch.before + bounds as u64;
    let bystander = Bystander::start(victim.http);
    let mut crowd = Some(Crowd::start(attack, &victim).await?);
    let war = victim.send(during, PAUSE).await?;
    let (quick_p99, turn_p99, unanswered) = bystander.end().await;
    let mut memory = watch.end();
    if !attack.until_the_end {
        crowd = None;
        let begun = Instant::now();
        while victim.memory()? > memory.before + KEPT_BYTES && begun.elapsed() < RECOVERY {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        memory.after = victim.memory()?;
    }
    let stopped = victim.stop().await?;
    drop(crowd);
    let name = attack.name;
    Ok(Outcome { name, memory, bound, quick_p99, turn_p99, unanswered, peace, war, stopped })
}

impl Outcome {
    const HEAD: &'static str = "\
| attack | memory before, at most, 10 s after, MiB | bound MiB | small calls p99 ms | \
with a turn | unanswered | newPayload p50 before, during, ms | p99 | stops in s | |
|---|--:|--:|--:|--:|--:|--:|--:|--:|---|";

    /// The bounds that do not hold.
    fn faults(&self) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let mut check = |holds: bool, fault| {
            if !holds {
                faults.push(fault);
            }
        };
        check(self.memory.peak <= self.bound + self.bound / 10, "memory");
        check(self.memory.after <= self.memory.before + KEPT_BYTES, "kept memory");
        check(self.quick_p99.max(self.turn_p99) <= Duration::from_millis(200), "small calls");
        check(self.unanswered == 0, "unanswered calls");
        let [peace, war] = [self.peace, self.war].map(|[median, _]| median.as_secs_f64());
        check(war <= peace * 1.5, "payloads");
        check(self.stopped <= Duration::from_secs(2), "stop");
        faults
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let Memory { before, peak, after, .. } = self.memory;
        let faults = self.faults();
        let verdict = if faults.is_empty() { "holds".into() } else { faults.join(", ") };
        write!(
            f,
            "| {} | {}, {}, {} | {} | {:.1} | {:.1} | {} | {:.2}, {:.2} | {:.2}, {:.2} | {:.1} \
             | {verdict} |",
            self.name,
            mib(before),
            mib(peak),
            mib(after),
            mib(self.bound),
            ms(self.quick_p99),
            ms(self.turn_p99),
            self.unanswered,
            ms(self.peace[0]),
            ms(self.war[0]),
            ms(self.peace[1]),
            ms(self.war[1]),
            self.stopped.as_secs_f64(),
        )
    }
}
