//! A network of one machine: beacon nodes of Prysm, each with a node of ours, on 127.0.0.1.
//!
//! `integrations/consensus/README.md` describes it. The example `devnet` runs all scenarios, the
//! test `it devnet::` the shortest.

mod chain;
mod deposit;
mod judge;
mod pair;
mod process;
mod scenarios;
mod traffic;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use chain::{Chain, SLOTS, VALIDATORS};
use pair::Pair;
pub(crate) use pair::missing_programs;
pub(crate) use scenarios::SCENARIOS;
use serde_json::{Value, json};
use traffic::Traffic;

/// The time in which a beacon node has a name.
const START: Duration = Duration::from_secs(120);
/// Between two looks at the network.
const PAUSE: Duration = Duration::from_millis(500);
/// Validators of the first pair: more than two thirds, so that it finalizes alone.
const MAJORITY: u64 = 48;
/// Epochs in which what is waited for has to happen. A busy machine misses slots.
const PATIENCE_EPOCHS: u64 = 15;

/// The programs of a network, and where its files are.
#[derive(Debug)]
pub(crate) struct Options {
    /// `deponent`.
    pub(crate) program: PathBuf,
    /// The folder with `beacon-chain`, `validator` and `prysmctl`.
    pub(crate) prysm: PathBuf,
    /// A folder for all files, logs among them.
    pub(crate) files: PathBuf,
    pub(crate) slot_seconds: u64,
}

/// The folder of Prysm's programs that the environment names.
pub(crate) fn prysm_folder() -> Option<PathBuf> {
    let named = std::env::var_os("DEPONENT_PRYSM").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("DEPONENT_TOOLS")?).join("prysm")))
}

/// Starts a network, runs these scenarios on it one after another, stops it, and judges its logs
/// and its chain.
///
/// # Errors
/// The first thing that is not as it should be. The files are left as they are.
pub(crate) async fn run(options: Options, names: &[&str]) -> anyhow::Result<()> {
    let mut net = Net::start(options).await?;
    if names != ["plain"] && !names.contains(&"second-pair") {
        // From the start: later they would wait for minutes until it has all blocks.
        net.join("c").await?;
    }
    for name in names {
        let scenario = SCENARIOS.iter().find(|(known, ..)| known == name);
        let (_, words, act) = scenario.with_context(|| format!("no scenario {name}"))?;
        net.say(format!("== {name}: {words}"));
        if *name != SCENARIOS[0].0 {
            // Before that, a beacon node that comes back begins at the genesis, and forks off.
            net.until("an epoch is final", async |net| Ok(net.pairs[0].finalized().await? > 0))
                .await?;
        }
        let outcome = act(&mut net).await;
        outcome.with_context(|| format!("scenario {name}, files in {}", net.folder()))?;
        net.check_chain().await.with_context(|| format!("the chain after {name}"))?;
    }
    net.stop().await
}

/// A network that runs. All its programs are killed when it is dropped.
pub(crate) struct Net {
    options: Options,
    chain: Chain,
    /// Those that run.
    pairs: Vec<Pair>,
    /// Those without validators, before they are asked for. The others know them from the start.
    waiting: Vec<Pair>,
    traffic: Vec<Traffic>,
    /// Number of the newest block that was checked.
    checked: u64,
    /// Number and hash of the block that was final then.
    kept: Option<(u64, Value)>,
    begun: Instant,
}

impl Net {
    /// Makes the files and starts two pairs, before the genesis.
    async fn start(options: Options) -> anyhow::Result<Self> {
        let prysmctl = options.prysm.join("prysmctl");
        let chain = Chain::make(&options.files, &prysmctl, options.slot_seconds)?;
        let mut net = Self {
            chain: chain.clone(),
            pairs: Vec::new(),
            waiting: Vec::new(),
            traffic: Vec::new(),
            checked: 0,
            kept: None,
            begun: Instant::now(),
            options,
        };
        let keys = [0..MAJORITY, MAJORITY..VALIDATORS, 0..0, 0..0];
        for (name, keys) in ["a", "b", "c", "d"].into_iter().zip(keys) {
            net.pairs.push(Pair::new(&net.options, &chain, name, keys)?);
            net.identify(net.pairs.len() - 1).await?;
        }
        net.waiting = net.pairs.split_off(2);
        for index in 0..net.pairs.len() {
            net.start_node(index).await?;
            net.start_beacon(index).await?;
            net.pairs[index].start_validator()?;
        }
        for pair in &net.pairs {
            let number = net.traffic.len() as u64;
            let osaka = chain.time_of(chain::FULU_EPOCH);
            net.traffic.push(Traffic::start(number, pair.http(), osaka)?);
        }
        net.say(format!(
            "two pairs; {MAJORITY} validators of {VALIDATORS} on the first; \
             slots of {} s, {SLOTS} to an epoch",
            chain.slot_seconds
        ));
        Ok(net)
    }

    /// Starts a pair without validators, if it is not there; its index. Whichever pair loses a
    /// program, two beacon nodes have each other then; one that is alone publishes nothing.
    async fn join(&mut self, name: &str) -> anyhow::Result<usize> {
        if let Some(at) = self.waiting.iter().position(|pair| pair.name == name) {
            let mut pair = self.waiting.remove(at);
            // It is behind, and its beacon node says so.
            pair.begin_absence();
            self.pairs.push(pair);
            let index = self.pairs.len() - 1;
            self.start_node(index).await?;
            self.start_beacon(index).await?;
        }
        let found = self.pairs.iter().position(|pair| pair.name == name);
        found.with_context(|| format!("no pair {name}"))
    }

    /// Whether blobs are sent from now on. They are not while a beacon node catches up: when it has
    /// synced, it is some slots behind and does not get the columns of these from its peers; its
    /// validators propose on a branch of their own meanwhile.
    fn send_blobs(&self, are_sent: bool) {
        self.traffic.iter().for_each(|traffic| traffic.send_blobs(are_sent));
    }

    /// Runs the beacon node of a pair until it says where others find it. Those that know each
    /// other from the start trust each other; else one is banned whose node is away for long.
    async fn identify(&mut self, index: usize) -> anyhow::Result<()> {
        let pair = &mut self.pairs[index];
        pair.begin_absence();
        pair.start_beacon(&[])?;
        let begun = Instant::now();
        while !self.pairs[index].learn_address() {
            self.pairs[index].check()?;
            ensure!(begun.elapsed() < START, "beacon-{} has no name", self.pairs[index].name);
            tokio::time::sleep(PAUSE).await;
        }
        let pair = &mut self.pairs[index];
        pair.beacon.stop().await?;
        pair.end_absence();
        Ok(())
    }

    /// Starts the node of a pair and waits until it answers.
    async fn start_node(&mut self, index: usize) -> anyhow::Result<()> {
        self.pairs[index].start_node()?;
        self.until("the node answers", async |net| {
            net.pairs[index].call("eth_chainId", json!([])).await?;
            Ok(true)
        })
        .await
    }

    /// Starts the beacon node of a pair, with the addresses of the others, and waits until it
    /// answers.
    async fn start_beacon(&mut self, index: usize) -> anyhow::Result<()> {
        let others = self.pairs.iter().enumerate().filter(|(other, _)| *other != index);
        let others = others.map(|(_, pair)| pair).chain(&self.waiting);
        let peers: Vec<_> = others.filter_map(|pair| pair.address.clone()).collect();
        self.pairs[index].start_beacon(&peers)?;
        self.until("the beacon node answers", async |net| {
            net.pairs[index].health().await?;
            Ok(true)
        })
        .await
    }

    fn folder(&self) -> String {
        self.options.files.display().to_string()
    }

    /// Adds a line to the transcript.
    #[expect(clippy::print_stdout, reason = "the transcript is the output")]
    fn say(&self, words: impl AsRef<str>) {
        println!("{:>5} s  {}", self.begun.elapsed().as_secs(), words.as_ref());
    }

    /// Waits until a condition holds. An error of it counts as a condition that does not hold yet.
    async fn until(
        &mut self,
        what: &str,
        condition: impl AsyncFn(&Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        let bound = self.chain.slots(PATIENCE_EPOCHS * SLOTS);
        loop {
            self.pairs.iter_mut().try_for_each(Pair::check)?;
            let found = condition(self).await;
            if matches!(found, Ok(true)) {
                return Ok(());
            }
            if begun.elapsed() > bound {
                let state = self.state().await;
                match found {
                    Err(error) => return Err(error.context(format!("not: {what}; {state}"))),
                    Ok(_) => bail!("not within {bound:?}: {what}; {state}"),
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Where each pair is, in words.
    async fn state(&self) -> String {
        let mut words = Vec::new();
        for pair in &self.pairs {
            let slot = shown(pair.beacon_head().await.map(|(slot, _)| slot));
            let number = shown(pair.block("latest").await.map(|(number, _)| number));
            let finalized = shown(pair.finalized().await);
            let health = pair.health().await.map_or_else(|_| "silent".into(), |it| it.to_string());
            words.push(format!(
                "{}: slot {slot}, block {number}, epoch {finalized} final, {health}",
                pair.name
            ));
        }
        words.join("; ")
    }

    /// Waits until the pairs have one head, and each beacon node one that its node has run.
    /// Absences end with it.
    async fn settle(&mut self) -> anyhow::Result<()> {
        let is_settled = async |net: &Self| {
            let (slot, head) = net.pairs[0].beacon_head().await?;
            for pair in &net.pairs {
                let (_, number_head) = pair.block("latest").await?;
                let is_here = pair.beacon_head().await? == (slot, head) && number_head == head;
                if !is_here || !pair.health().await?.is_good() {
                    return Ok(false);
                }
            }
            Ok(slot > 0)
        };
        self.until("all pairs have one head", is_settled).await?;
        self.pairs.iter_mut().for_each(Pair::end_absence);
        Ok(())
    }

    /// Waits until `epochs` more are finalized, as the first pair sees it.
    async fn finalize(&mut self, epochs: u64) -> anyhow::Result<()> {
        let goal = self.pairs[0].finalized().await? + epochs;
        self.until("finality advances", async |net| Ok(net.pairs[0].finalized().await? >= goal))
            .await?;
        self.say(format!("epoch {goal} is finalized"));
        Ok(())
    }

    /// Stops all programs, validators first, and judges what they have said.
    async fn stop(mut self) -> anyhow::Result<()> {
        self.settle().await?;
        self.say(format!("all pairs have one head: {}", self.state().await));
        for pair in &self.pairs {
            let [now, most] = pair.node.memory()?.map(|bytes| bytes / 1_000_000);
            self.say(format!("memory of node {}: {now} MB, at most {most} MB", pair.name));
        }
        let mut faults = judge::of_traffic(&self);
        self.traffic.clear();
        // Those first that have something from others.
        for index in (0..self.pairs.len()).rev() {
            let pair = &mut self.pairs[index];
            if pair.validator.runs() {
                pair.validator.stop().await?;
            }
            pair.beacon.stop().await?;
            let took = pair.node.stop().await?;
            let name = pair.name;
            self.say(format!("node {name} has stopped in {} ms", took.as_millis()));
        }
        for pair in &self.pairs {
            let (words, found) = judge::of_logs(pair);
            words.iter().for_each(|words| self.say(words));
            faults.extend(found);
        }
        ensure!(
            faults.is_empty(),
            "{} faults, files in {}:\n{}",
            faults.len(),
            self.folder(),
            faults.join("\n")
        );
        self.say("no word against the execution client");
        Ok(())
    }

    /// Checks each block since the last call: it has transactions, and all pairs have it. The
    /// block that was final then is so still.
    async fn check_chain(&mut self) -> anyhow::Result<()> {
        self.settle().await?;
        let (head, _) = self.pairs[0].block("latest").await?;
        let mut found = judge::Blocks::default();
        let mut pairs = Vec::new();
        for pair in &self.pairs {
            pairs.push((pair, pair.oldest().await?));
        }
        for number in self.checked + 1..=head {
            let params = json!([format!("{number:#x}"), true]);
            let block = self.pairs[0].call("eth_getBlockByNumber", params).await?;
            found.add(number, &block);
            let mut hashes = vec![block["hash"].clone()];
            for (pair, _) in pairs.iter().filter(|(_, oldest)| number >= *oldest) {
                hashes.push(pair.hash(number).await?);
            }
            let is_one = hashes.iter().all(|hash| *hash == hashes[0] && *hash != Value::Null);
            ensure!(is_one, "block {number} is not the same everywhere: {hashes:?}");
        }
        self.say(format!("blocks {} to {head}: {found}", self.checked + 1));
        ensure!(found.is_full(), "too many blocks without a transaction: {:?}", found.empty);
        if let Some((number, hash)) = &self.kept {
            for (pair, _) in pairs.iter().filter(|(_, oldest)| number >= oldest) {
                let now = pair.hash(*number).await?;
                ensure!(now == *hash, "block {number} of {} was final: {hash}, {now}", pair.name);
            }
        }
        let (number, hash) = self.pairs[0].block("finalized").await?;
        let before = self.kept.as_ref().map_or(0, |(number, _)| *number);
        ensure!(number >= before, "block {before} was final, and {number} is now");
        self.kept = Some((number, json!(hash)));
        self.checked = head;
        Ok(())
    }
}

fn shown(number: anyhow::Result<u64>) -> String {
    number.map_or_else(|_| "unknown".into(), |number| number.to_string())
}
