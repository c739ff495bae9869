//! The scenarios. Each leaves a network in which all pairs have one head and finality advances.

use std::pin::Pin;
use std::time::Instant;

use anyhow::ensure;
use rustix::process::Signal;
use serde_json::json;

use super::Net;
use super::chain::{FULU_EPOCH, SLOTS};
use super::deposit;
use super::pair::Pair;

/// Slots in which a program is away.
const AWAY: u64 = 40;

type Act = for<'net> fn(&'net mut Net) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'net>>;

/// Name, description and course of each.
pub(crate) const SCENARIOS: [(&str, &str, Act); 11] = [
    ("plain", "through the fork from Electra to Fulu, until blocks of Fulu are final", |net| {
        Box::pin(plain(net))
    }),
    ("second-pair", "a third pair, c, begins at the genesis", |net| Box::pin(second_pair(net))),
    ("stateless", "a fourth pair, d, whose node has no state (node --stateless)", |net| {
        Box::pin(stateless(net))
    }),
    ("node-frozen", "the node of b is stopped (SIGSTOP) for 40 slots", |net| {
        Box::pin(away(net, Away::NodeFrozen))
    }),
    ("node-stopped", "the node of b is ended (SIGTERM) for 40 slots", |net| {
        Box::pin(away(net, Away::NodeStopped))
    }),
    ("beacon-frozen", "as that, the beacon node of b; its validators are ended meanwhile", |net| {
        Box::pin(away(net, Away::BeaconFrozen))
    }),
    ("beacon-stopped", "the beacon node of b is ended (SIGTERM) for 40 slots", |net| {
        Box::pin(away(net, Away::BeaconStopped))
    }),
    (
        "kills",
        "nodes and beacon nodes of both pairs are killed (SIGKILL); b for 40 slots at the end",
        |net| Box::pin(kills(net)),
    ),
    ("moved-back", "the heads of both nodes are moved back by hand", |net| {
        Box::pin(moved_back(net))
    }),
    ("node-lost", "the node of c loses its chain, and has --follow to the other nodes", |net| {
        Box::pin(node_lost(net))
    }),
    ("absence", "no validator is there for longer than an epoch", |net| Box::pin(absence(net))),
];

async fn plain(net: &mut Net) -> anyhow::Result<()> {
    let goal = FULU_EPOCH + 1;
    net.until("blocks of Fulu are final", async |net| {
        for pair in &net.pairs {
            if pair.finalized().await? < goal {
                return Ok(false);
            }
        }
        Ok(true)
    })
    .await?;
    net.say(format!("epoch {goal} is finalized: {}", net.state().await));
    let osaka = net.chain.time_of(FULU_EPOCH);
    for index in 0..net.pairs.len() {
        let pair = &net.pairs[index];
        let fork = pair.beacon_get("/eth/v1/beacon/states/head/fork").await?;
        ensure!(fork["data"]["current_version"] == "0x16000042", "not Fulu: {fork}");
        let config = pair.call("eth_config", json!([])).await?;
        let since = config["current"]["activationTime"].as_u64().unwrap_or_default();
        ensure!(since >= osaka, "not Osaka: {config}");
        let block = pair.call("eth_getBlockByNumber", json!(["finalized", false])).await?;
        ensure!(block["timestamp"].is_string(), "no finalized block: {block}");
    }
    let validator = net.pairs[0].beacon_get("/eth/v1/beacon/states/head/validators/0").await?;
    let balance = validator["data"]["balance"].as_str().and_then(|gwei| gwei.parse().ok());
    let has_deposit = balance.is_some_and(|gwei: u64| gwei > 32_000_000_000 + deposit::AMOUNT / 2);
    ensure!(has_deposit, "the deposit did not reach the validator: {validator}");
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Away {
    NodeFrozen,
    NodeStopped,
    BeaconFrozen,
    BeaconStopped,
}

/// A program of the second pair is away for 40 slots; the first pair finalizes meanwhile.
async fn away(net: &mut Net, of: Away) -> anyhow::Result<()> {
    if matches!(of, Away::BeaconFrozen | Away::BeaconStopped) {
        // Else the other beacon node would be alone.
        net.join("c").await?;
    }
    net.settle().await?;
    let before = net.pairs[0].finalized().await?;
    net.send_blobs(false);
    let pair = &mut net.pairs[1];
    pair.begin_absence();
    if of == Away::BeaconFrozen {
        // They would propose on the head of before as soon as it goes on. With a head so young, it
        // would not see that it is behind, and stay on its own branch.
        pair.validator.stop().await?;
    }
    match of {
        Away::NodeFrozen => pair.node.signal(Signal::STOP)?,
        Away::BeaconFrozen => pair.beacon.signal(Signal::STOP)?,
        Away::NodeStopped => drop(pair.node.stop().await?),
        Away::BeaconStopped => drop(pair.beacon.stop().await?),
    }
    stay_away(net, before).await?;
    let back = Instant::now();
    match of {
        Away::NodeFrozen => net.pairs[1].node.signal(Signal::CONT)?,
        Away::BeaconFrozen => net.pairs[1].beacon.signal(Signal::CONT)?,
        Away::NodeStopped => net.start_node(1).await?,
        Away::BeaconStopped => {
            // A beacon node that has ended and its node find each other at once.
            net.pairs[1].end_absence();
            net.start_beacon(1).await?;
        }
    }
    net.settle().await?;
    net.say(format!("in step again after {} s", back.elapsed().as_secs()));
    if of == Away::BeaconFrozen {
        net.pairs[1].start_validator()?;
    }
    net.send_blobs(true);
    net.finalize(1).await
}

/// Lets 40 slots go by, in which the first pair finalizes more than the epoch of before.
async fn stay_away(net: &mut Net, before: u64) -> anyhow::Result<()> {
    wait_slots(net, AWAY).await?;
    let after = net.pairs[0].finalized().await?;
    let epoch = net.pairs[0].beacon_head().await?.0 / SLOTS;
    net.say(format!(
        "{AWAY} slots later, in epoch {epoch}: from epoch {before} to {after} finalized meanwhile"
    ));
    ensure!(after > before, "finality has not advanced");
    Ok(())
}

/// Waits until the first pair has seen so many slots go by.
async fn wait_slots(net: &mut Net, slots: u64) -> anyhow::Result<()> {
    let (slot, _) = net.pairs[0].beacon_head().await?;
    net.until("slots go by", async |net| Ok(net.pairs[0].beacon_head().await?.0 >= slot + slots))
        .await
}

/// Kills each node, then each beacon node, then a whole pair, which stays away.
async fn kills(net: &mut Net) -> anyhow::Result<()> {
    // A beacon node that syncs takes part in no gossip, so the other would be alone.
    net.join("c").await?;
    for (index, node, beacon) in
        [(1, true, false), (0, true, false), (1, false, true), (0, false, true), (1, true, true)]
    {
        if node && beacon {
            // Without the beacon node of a nothing was justified, and two epochs have to be again.
            net.finalize(1).await?;
        }
        net.settle().await?;
        let name = net.pairs[index].name;
        let which = if node && beacon {
            "both"
        } else if node {
            "node"
        } else {
            "beacon node"
        };
        net.send_blobs(!beacon);
        let pair = &mut net.pairs[index];
        pair.begin_absence();
        let (head, _) = pair.block("latest").await?;
        if beacon {
            pair.beacon.kill()?;
        }
        if node {
            pair.node.kill()?;
        }
        if node && beacon {
            let before = net.pairs[0].finalized().await?;
            stay_away(net, before).await?;
        }
        let back = Instant::now();
        if node {
            net.start_node(index).await?;
            let (again, _) = net.pairs[index].block("latest").await?;
            ensure!(again >= head, "block {head} was the head, and is lost: {again}");
        } else {
            net.pairs[index].end_absence();
        }
        if beacon {
            net.start_beacon(index).await?;
        }
        net.settle().await?;
        let seconds = back.elapsed().as_secs();
        net.say(format!("{name}: {which} killed at block {head}, in step again after {seconds} s"));
        wait_slots(net, 2).await?;
    }
    net.send_blobs(true);
    net.finalize(1).await
}

/// Moves each node's head back, which its beacon node knows nothing of.
async fn moved_back(net: &mut Net) -> anyhow::Result<()> {
    for index in [1, 0] {
        for blocks in [1, 6] {
            net.settle().await?;
            let pair = &net.pairs[index];
            let (name, (head, _)) = (pair.name, pair.block("latest").await?);
            let to = format!("{:#x}", head - blocks);
            pair.call("debug_setHead", json!([to])).await?;
            let back = Instant::now();
            net.until("the head is ahead again", async |net| {
                Ok(net.pairs[index].block("latest").await?.0 > head)
            })
            .await?;
            net.settle().await?;
            let seconds = back.elapsed().as_secs();
            net.say(format!(
                "{name}: the head moved from {head} to {}, in step again after {seconds} s",
                head - blocks
            ));
        }
    }
    net.finalize(1).await
}

/// A node begins again at the genesis, below a beacon node that goes on at its head.
async fn node_lost(net: &mut Net) -> anyhow::Result<()> {
    let index = net.join("c").await?;
    net.settle().await?;
    let upstreams: Vec<_> = net.pairs.iter().take(2).map(Pair::http).collect();
    let pair = &mut net.pairs[index];
    pair.begin_absence();
    let (head, _) = pair.block("latest").await?;
    pair.node.stop().await?;
    pair.lose_chain()?;
    pair.more[0] = vec![format!("--follow={}", upstreams.join(","))];
    let back = Instant::now();
    net.start_node(index).await?;
    net.settle().await?;
    let seconds = back.elapsed().as_secs();
    net.say(format!("the node of c has block {head} and those after it again after {seconds} s"));
    net.finalize(1).await
}

/// All validators are away for longer than an epoch: no slot has a block.
async fn absence(net: &mut Net) -> anyhow::Result<()> {
    net.settle().await?;
    for pair in &mut net.pairs {
        if pair.validator.runs() {
            pair.validator.stop().await?;
        }
    }
    let (slot, _) = net.pairs[0].beacon_head().await?;
    tokio::time::sleep(net.chain.slots(SLOTS + 2)).await;
    for pair in net.pairs.iter_mut().take(2) {
        pair.start_validator()?;
    }
    net.until("a block comes", async |net| Ok(net.pairs[0].beacon_head().await?.0 > slot + SLOTS))
        .await?;
    let (now, _) = net.pairs[0].beacon_head().await?;
    net.say(format!("no block from slot {slot} on; the next one is in slot {now} or before"));
    net.finalize(1).await
}

/// The node of *d* is started again with these sources of witnesses, or for the first time.
async fn take_witnesses(net: &mut Net, index: usize, from: Vec<String>) -> anyhow::Result<()> {
    let pair = &mut net.pairs[index];
    pair.begin_absence();
    pair.node.stop().await?;
    pair.witnesses = from;
    let back = Instant::now();
    net.start_node(index).await?;
    net.settle().await?;
    let (pair, seconds) = (&net.pairs[index], back.elapsed().as_secs());
    net.say(format!(
        "{} is started again, with witnesses from {}: in step after {seconds} s, from block {} on",
        pair.name,
        pair.witnesses.join(" and "),
        pair.oldest().await?
    ));
    Ok(())
}

/// A pair whose node has no state begins at a finalized state, loses its only source of witnesses
/// for a while, and has two from then on.
async fn stateless(net: &mut Net) -> anyhow::Result<()> {
    let sources = [format!("http://{}", net.pairs[0].http()), net.pairs[1].socket()?];
    let checkpoint = format!("http://{}", net.pairs[0].rest());
    if let Some(pair) = net.waiting.iter_mut().find(|pair| pair.name == "d") {
        pair.witnesses = sources.to_vec();
        pair.begin_at_checkpoint(checkpoint)?;
    }
    let begun = Instant::now();
    net.send_blobs(false);
    let index = net.join("d").await?;
    net.settle().await?;
    net.send_blobs(true);
    let (seconds, oldest) = (begun.elapsed().as_secs(), net.pairs[index].oldest().await?);
    net.say(format!("d is in step after {seconds} s, from block {oldest} on"));
    wait_slots(net, SLOTS / 2).await?;
    let [both, one] = [sources.to_vec(), sources[1..].to_vec()];
    take_witnesses(net, index, one).await?;
    for at in [1, index] {
        net.pairs[at].begin_absence();
    }
    net.send_blobs(false);
    net.pairs[1].node.signal(Signal::STOP)?;
    wait_slots(net, AWAY / 2).await?;
    let (ahead, _) = net.pairs[0].block("latest").await?;
    let (number, _) = net.pairs[index].block("latest").await?;
    net.say(format!("the source was away for {} slots: block {number} of {ahead}", AWAY / 2));
    ensure!(number < ahead, "d has blocks without witnesses");
    let back = Instant::now();
    net.pairs[1].node.signal(Signal::CONT)?;
    net.settle().await?;
    net.say(format!("in step again after {} s", back.elapsed().as_secs()));
    net.send_blobs(true);
    take_witnesses(net, index, both).await?;
    net.finalize(1).await
}

/// A pair without validators begins at the genesis, and gets all blocks from the others.
async fn second_pair(net: &mut Net) -> anyhow::Result<()> {
    let (head, _) = net.pairs[0].block("latest").await?;
    let begun = Instant::now();
    net.send_blobs(false);
    net.join("c").await?;
    net.settle().await?;
    net.send_blobs(true);
    net.say(format!("c has block {head} and those after it in {} s", begun.elapsed().as_secs()));
    wait_slots(net, SLOTS).await?;
    net.settle().await
}
