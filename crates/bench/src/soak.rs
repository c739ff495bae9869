//! `soak`: nodes of ours for hours, as a consensus client has them, with troubles at random. No
//! block may be lost, and nothing may grow or be left over.

mod blocks;
mod drops;
mod gap;
mod node;
mod port;
mod remains;
mod report;
mod tally;
mod traffic;
mod trouble;
mod watch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, B256, keccak256};
use alloy_rpc_types_engine::PayloadAttributes;
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::args::Programs;
use crate::chain::format::{Payload, write_genesis};
use crate::chain::world::{self, World};
use crate::clients::process::{DYING_TRIES, STOP_PAUSE, interrupted, sleep_until};
use crate::clients::target::Target;
use crate::fault::Fault;
use crate::number::count;
use crate::progress::say;
use crate::random::Random;
use crate::report::results_folder;
use crate::run::plan::duration;
use crate::soak::blocks::BlockStore;
use crate::soak::node::{Condition, Node, Said};
use crate::soak::port::HeldPort;
use crate::soak::tally::Record;
use crate::soak::traffic::{CONTRACTS, SENDERS, Traffic};
use crate::soak::trouble::{Split, Trouble};
use crate::soak::watch::{Reading, disk_of};

fn slot_time(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    match time >= LEAST_SLOT {
        true => Ok(time),
        false => Err(format!("expected a time of {LEAST_SLOT:?} at least")),
    }
}

/// Memory of a node, so small that it is full after minutes: later growth is a leak.
const MEMORY: [&str; 8] = [
    "--cache.bytes",
    "32MiB",
    "--cache.code-bytes",
    "16MiB",
    "--cache.witness-bytes",
    "32MiB",
    "--engine.unpersisted-bytes",
    "64MiB",
];
/// The shortest slot: a run of none would not end.
const LEAST_SLOT: Duration = Duration::from_millis(1);
/// Validators that are paid in each block.
const WITHDRAWALS: u64 = 4;
/// The share of payloads that are sent with the request for a witness, and of gaps of which the
/// newest block is sent first, as a consensus client does that was away itself.
const WITH_WITNESS: f64 = 0.25;
const NEWEST_FIRST: f64 = 0.5;
/// The share of transactions that come over the public port.
const PUBLIC: f64 = 0.1;
/// The accounts that blocks of the chain and of a branch pay: pools with the same
/// transactions would build the same block.
const RECIPIENT: Address = Address::with_last_byte(0xfe);
const APART_RECIPIENT: Address = Address::with_last_byte(0xfd);
/// A pool is given this part of a slot to fill a block, a quarter of a second at most.
const BUILD_PART: u32 = 8;
const BUILD_TIME: Duration = Duration::from_millis(250);
/// Between two reports while it runs.
const REPORT_PAUSE: Duration = Duration::from_secs(300);

#[derive(Debug, clap::Args)]
pub(crate) struct SoakArgs {
    #[command(flatten)]
    programs: Programs,
    /// The time that it runs: 30m, 12h.
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "1h")]
    time: Duration,
    /// The time of a slot, each of which has a block: 400ms, 2s.
    #[arg(long, value_name = "TIME", value_parser = slot_time, default_value = "2s")]
    slot: Duration,
    /// Nodes of ours. The first one is never ended, so that its memory is seen over all the time.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u64).range(2..=16))]
    nodes: u64,
    /// Transactions that are sent in a slot.
    #[arg(long, value_name = "N", default_value_t = 20)]
    transactions: usize,
    /// Slots between two troubles, on average; 0: none.
    #[arg(long, value_name = "N", default_value_t = 12)]
    every: u64,
    /// The troubles: a process is told to end, is killed, is stopped for a while; a node is told
    /// nothing, is given none of the blocks that it missed, or is on a branch of its own; a client
    /// hangs up; a block is invalid.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    #[arg(default_value = "end,kill,freeze,absence,gap,split,drops,invalid")]
    troubles: Vec<Trouble>,
    /// The longest that a node is away, in slots.
    #[arg(long, value_name = "N", default_value_t = 40)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=200))]
    longest: u64,
    /// The longest that a node may take to fill a gap by itself, from the first block that it is
    /// given. On a busy machine public ports, whose threads have a low priority, answer late.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    fill_within: Duration,
    /// Blocks behind the head whose state and whose witness a node keeps.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = count::<u64>)]
    retain_blocks: u64,
    /// Blocks behind the head whose witness outlives the state.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = count::<u64>)]
    retain_witnesses: u64,
    /// Slots between two readings of memory, disk and descriptors.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = count::<u64>)]
    read_every: u64,
    /// The seed of all random choices; a new one otherwise.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Where the report and the nodes' directories go; otherwise a new folder below the directory.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// A run.
struct Soak<'a> {
    args: &'a SoakArgs,
    folder: PathBuf,
    random: Random,
    nodes: Vec<Node>,
    _ports: Vec<HeldPort>,
    store: BlockStore,
    traffic: Traffic,
    split: Option<Split>,
    tally: Record,
    began: Instant,
    /// The time of the first block, in seconds, and of a slot.
    genesis_time: u64,
    slot_seconds: u64,
    slot: u64,
}

/// Runs the nodes, and writes the report.
///
/// # Errors
/// A node lost a block, gave a wrong answer or none, or something grew or was left over.
pub(crate) fn run(args: &SoakArgs) -> anyhow::Result<()> {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    say(format_args!("seed {seed}"))?;
    let folder = results_folder(args.results.as_ref(), &args.programs.dir)?;
    let mut soak = Soak::begin(args, folder, seed)?;
    let outcome = soak.run();
    let outcome = match outcome {
        // The nodes were killed.
        Err(_) if interrupted() => Ok(()),
        Ok(()) if !interrupted() => soak.end(),
        outcome => outcome,
    };
    let outcome = outcome.map_err(|error| soak.blame(error));
    soak.tally.fault = outcome.as_ref().err().map(|error| rpc::on_one_line(error.as_ref()));
    soak.write()?;
    say(format_args!("{}", crate::report::console(&[soak.document()?])))?;
    say(format_args!("{}", soak.folder.display()))?;
    outcome?;
    let mut complaints = soak.tally.complaints();
    complaints.extend(soak.growth());
    ensure!(complaints.is_empty(), "{}", complaints.join("; "));
    for node in &soak.nodes {
        std::fs::remove_dir_all(node.folder.join("chain")).ok();
        std::fs::remove_dir_all(node.folder.join("pool")).ok();
    }
    Ok(())
}

impl<'a> Soak<'a> {
    fn begin(args: &'a SoakArgs, folder: PathBuf, seed: u64) -> anyhow::Result<Self> {
        let mut target = args.programs.needed("deponent")?;
        let kept = [args.retain_blocks, args.retain_witnesses].map(|blocks| blocks.to_string());
        let [states, witnesses] = &kept;
        let flags = ["--history.retain-blocks", states, "--witness.retain-blocks", witnesses];
        let given = std::mem::take(&mut target.arguments);
        target.arguments.extend(MEMORY.iter().chain(&flags).map(|flag| (*flag).to_owned()));
        target.arguments.extend(given);
        let genesis_time = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let genesis = folder.join("genesis.json");
        write_genesis(&genesis, &genesis_at(genesis_time)?)?;
        let ports = (0..args.nodes).map(|_| HeldPort::new()).collect::<anyhow::Result<Vec<_>>>()?;
        let kept = args.retain_witnesses.max(args.retain_blocks);
        let mut nodes = Vec::new();
        for (index, target) in following_each_other(&target, &ports).into_iter().enumerate() {
            let mut node = Node::new(format!("node-{index}"), target, &folder, &genesis, kept);
            node.start()?;
            nodes.push(node);
        }
        let (_, first) = nodes[0].client()?.engine.head()?;
        let mut random = Random::new(seed);
        let traffic = Traffic::new(random.word());
        Ok(Self {
            args,
            tally: Record::new(seed, &folder, target)?,
            folder,
            random,
            nodes,
            _ports: ports,
            store: BlockStore::new(first),
            traffic,
            split: None,
            began: Instant::now(),
            genesis_time,
            slot_seconds: args.slot.as_secs().max(1),
            slot: 0,
        })
    }

    /// All slots.
    fn run(&mut self) -> anyhow::Result<()> {
        let slots = (self.args.time.as_secs_f64() / self.args.slot.as_secs_f64()).ceil() as u64;
        let mut next = Instant::now();
        let mut reported = Instant::now();
        for slot in 1..=slots {
            self.slot = slot;
            let began = Instant::now();
            self.one_slot().with_context(|| format!("slot {slot}"))?;
            self.tally.slots += 1;
            self.tally.slot_seconds.push(began.elapsed().as_secs_f64());
            if slot % self.args.read_every == 0 {
                self.read()?;
            }
            if reported.elapsed() >= REPORT_PAUSE {
                self.write()?;
                reported = Instant::now();
            }
            next += self.args.slot;
            let now = Instant::now();
            if now > next {
                // A slot that is late moves all later ones: no two blocks come at once.
                self.tally.late_slots += 1;
                next = now;
            }
            sleep_until(next);
            if interrupted() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// `error`, or that a node has ended by itself, for which it may be.
    fn blame(&mut self, error: anyhow::Error) -> anyhow::Error {
        if Fault::of(&error) == Some(Fault::Died) {
            return error;
        }
        // A connection ends before the process does.
        for _ in 0..DYING_TRIES {
            if let Some(words) = self.nodes.iter_mut().find_map(Node::ended_by_itself) {
                return error.context(words);
            }
            std::thread::sleep(STOP_PAUSE);
        }
        error
    }

    fn check_running(&mut self) -> anyhow::Result<()> {
        let ended = self.nodes.iter_mut().find_map(Node::ended_by_itself);
        ended.map_or(Ok(()), |words| Err(Fault::Died.error(words)))
    }

    fn one_slot(&mut self) -> anyhow::Result<()> {
        self.check_running()?;
        self.recover()?;
        self.begin_trouble()?;
        self.propose()?;
        self.propose_apart()?;
        self.send_transactions()?;
        self.compare()?;
        self.bury()
    }

    /// A block on the head, by one of the nodes that are up, for all of them.
    fn propose(&mut self) -> anyhow::Result<()> {
        let head = self.store.head();
        let mut able: Vec<usize> =
            (0..self.nodes.len()).filter(|index| self.nodes[*index].follows()).collect();
        while !able.is_empty() {
            let which = self.random.below(able.len() as u64) as usize;
            let proposer = able.swap_remove(which);
            if let Some(payload) = self.build(proposer, head, RECIPIENT)? {
                let hash = payload.hash;
                self.add(payload)?;
                self.store.choose(hash)?;
                for index in 0..self.nodes.len() {
                    if self.nodes[index].follows() {
                        self.bring(index, hash)?;
                    } else if self.nodes[index].fills() {
                        self.tell(index)?;
                    }
                }
                return Ok(());
            }
        }
        bail!("no node can propose a block")
    }

    /// The node on a branch of its own has the next block there.
    fn propose_apart(&mut self) -> anyhow::Result<()> {
        let Some(Split { side, head, .. }) = self.split else { return Ok(()) };
        let payload =
            self.build(side, head, APART_RECIPIENT)?.context("a node on a branch is not ended")?;
        let hash = payload.hash;
        ensure!(hash != self.store.head(), "the branch has the chain's block, {hash}");
        self.add(payload)?;
        self.bring(side, hash)?;
        self.split.as_mut().expect("it goes on").head = hash;
        Ok(())
    }

    fn add(&mut self, payload: Payload) -> anyhow::Result<()> {
        self.traffic.included(&payload)?;
        self.tally.built(&payload);
        self.store.add(payload);
        Ok(())
    }

    /// A block of the node's pool on `head`, which it is brought to before.
    fn build(
        &mut self,
        index: usize,
        head: B256,
        recipient: Address,
    ) -> anyhow::Result<Option<Payload>> {
        if !self.nodes[index].is_at(head) {
            self.bring(index, head)?;
        }
        let node = &mut self.nodes[index];
        if !node.is_at(head) {
            return Ok(None);
        }
        let number = self.slot;
        let withdrawal = |at: u64| Withdrawal {
            index: number * WITHDRAWALS + at,
            validator_index: at,
            address: world::account(number * 7 + at),
            amount: number + at,
        };
        let attributes = PayloadAttributes {
            timestamp: self.genesis_time + self.slot * self.slot_seconds,
            prev_randao: keccak256(self.slot.to_be_bytes()),
            suggested_fee_recipient: recipient,
            withdrawals: Some((0..WITHDRAWALS).map(withdrawal).collect()),
            parent_beacon_block_root: Some(keccak256(number.to_le_bytes())),
            ..PayloadAttributes::default()
        };
        let time = (self.args.slot / BUILD_PART).min(BUILD_TIME);
        let built = node.build(self.store.heads(head), &attributes, time)?;
        let payload = built.map(|call| Payload::sending(&call)).transpose()?;
        if let Some(payload) = &payload {
            ensure!(payload.parent == head, "{} built on {}", node.name, payload.parent);
        }
        Ok(payload)
    }

    /// Gives a node all blocks up to `head` that it lacks, and the fork choice.
    fn bring(&mut self, index: usize, head: B256) -> anyhow::Result<()> {
        let node = &mut self.nodes[index];
        let heads = self.store.heads(head);
        let path = self.store.path(head, |number, hash| node.has(number, hash))?;
        let gap = path.len() as u64;
        if let (true, Some(newest)) = (gap > 1, path.last())
            && self.random.chance(NEWEST_FIRST)
        {
            // It lacks the parent, and is told the head all the same.
            match node.tell(newest, heads)? {
                Said::Syncing => {}
                Said::Nothing => return Ok(()),
                // It was faster than this program.
                Said::Valid => self.tally.found(node.look_for_gap(&path)?),
            }
        }
        for payload in path {
            let with_witness = self.random.chance(WITH_WITNESS);
            match node.new_payload(payload, with_witness)? {
                Said::Valid => {}
                Said::Nothing => return Ok(()),
                Said::Syncing => bail!(
                    "{} answers SYNCING to block {}, {}, whose parent it called VALID",
                    node.name,
                    payload.number,
                    payload.hash
                ),
            }
        }
        let said = node.choose(heads)?;
        ensure!(said != Said::Syncing, "{} answers SYNCING to a valid head, {head}", node.name);
        if said == Said::Valid && gap > 1 {
            self.tally.gaps.push(gap as f64);
        }
        Ok(())
    }

    /// New transactions for all nodes that run, as a network brings them.
    fn send_transactions(&mut self) -> anyhow::Result<()> {
        let transactions = self.traffic.slot(self.slot, self.args.transactions, &self.store);
        for node in &mut self.nodes {
            for raw in &transactions {
                if !node.follows() && !matches!(node.condition, Condition::Apart) {
                    break;
                }
                let is_public = self.random.chance(PUBLIC);
                match node.send(raw, is_public)? {
                    Ok(()) => self.tally.sent += 1,
                    Err(reason) => self.tally.refused(&reason),
                }
            }
        }
        Ok(())
    }

    /// All nodes that are up have one head, and one state.
    fn compare(&mut self) -> anyhow::Result<()> {
        let expected = (self.store.height(), self.store.head());
        let contract = world::contract(self.random.below(CONTRACTS as u64) as usize);
        let account = Address::from_private_key(&world::sender(self.slot as usize % SENDERS));
        let mut first: Option<(String, [Value; 2])> = None;
        for node in self.nodes.iter_mut().filter(|node| node.is_up()) {
            let client = node.client()?;
            let (head, public) = (client.engine.head()?, client.public.head()?);
            ensure!(
                head == expected && public == expected,
                "{} has the heads {head:?} and {public:?}, not {expected:?}",
                node.name
            );
            let slots = json!([B256::ZERO, keccak256([[0u8; 32], [0u8; 32]].concat())]);
            let proofs = [
                client.public.read("eth_getProof", (contract, slots, "latest"))?,
                client.public.read("eth_getProof", (account, json!([]), "latest"))?,
            ];
            match &first {
                None => first = Some((node.name.clone(), proofs)),
                Some((name, known)) => {
                    ensure!(*known == proofs, "{} and {name} have different states", node.name);
                }
            }
            self.tally.compared += 1;
        }
        Ok(())
    }

    /// Waits for the processes that were to end in this slot.
    fn bury(&mut self) -> anyhow::Result<()> {
        for node in &mut self.nodes {
            if matches!(node.condition, Condition::Doomed(_)) {
                node.bury()?;
            }
        }
        Ok(())
    }

    /// A reading of each node that runs.
    fn read(&mut self) -> anyhow::Result<()> {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let (disk_bytes, files) = disk_of(&node.folder);
            let (age_seconds, starts) = (node.started.elapsed().as_secs_f64(), node.starts);
            let Some(process) = node.running().and_then(|client| client.process.as_ref()) else {
                continue;
            };
            let reading = Reading {
                node: index,
                seconds: self.began.elapsed().as_secs_f64(),
                slot: self.slot,
                age_seconds,
                starts,
                resident_kib: process.usage().resident_kib,
                descriptors: process.descriptors(),
                disk_bytes,
                files,
            };
            self.tally.read(reading)?;
        }
        Ok(())
    }

    /// After the last slot: all come back and catch up, all blocks are looked for, all end, and
    /// nothing is left over.
    fn end(&mut self) -> anyhow::Result<()> {
        self.split = None;
        let head = self.store.head();
        for index in 0..self.nodes.len() {
            self.come_back(index)?;
        }
        for index in 0..self.nodes.len() {
            self.await_filled(index)?;
            self.bring(index, head)?;
        }
        self.compare()?;
        for node in &mut self.nodes {
            let found = node.look(&self.store, &mut self.random, true)?;
            self.tally.found(found);
        }
        for node in &mut self.nodes {
            node.stop()?;
        }
        let program = self.args.programs.needed("deponent")?.binary().context("it ran")?;
        for node in &self.nodes {
            verify(&program, node)?;
            self.tally.left(&node.name, &node.folder)?;
        }
        Ok(())
    }
}

/// A node at each of these ports, which may ask all others for blocks.
fn following_each_other(target: &Target, ports: &[HeldPort]) -> Vec<Target> {
    let addresses: Vec<SocketAddr> = ports.iter().map(HeldPort::address).collect();
    let at = |own: &SocketAddr| {
        let others = addresses.iter().filter(|address| *address != own);
        let others: Vec<String> = others.map(ToString::to_string).collect();
        let mut target = target.clone();
        target.set_argument("--http.port", own.port().to_string());
        target.set_argument("--follow", others.join(","));
        target
    };
    addresses.iter().map(at).collect()
}

/// Has the program check everything in the directory of a node that has stopped.
fn verify(program: &Path, node: &Node) -> anyhow::Result<()> {
    let mut command = std::process::Command::new(program);
    let output = command.args(["db", "verify", "--datadir"]).arg(&node.folder).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: db verify: {said}", node.name);
    Ok(())
}

/// The first block at a time: accounts and contracts of a small world, Osaka from the beginning.
fn genesis_at(time: u64) -> anyhow::Result<Value> {
    let mini = World::preset("mini").context("a preset")?;
    let world = World { contracts: CONTRACTS, senders: SENDERS, ..mini };
    let mut genesis = world.genesis(0);
    genesis["timestamp"] = json!(format!("{time:#x}"));
    genesis["config"]["osakaTime"] = json!(0);
    Ok(genesis)
}

/// A seed out of the time and the process.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Random::new(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32).word()
}
