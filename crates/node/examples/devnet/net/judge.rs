//! The verdict on what the programs have said, and on the blocks.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::Net;
use super::chain::FOLLOW_DISTANCE;
use super::pair::Pair;

/// Parts of warnings and errors of a beacon node that are not about its execution client, or are
/// as they should be, each with the reason.
const BEACON_WORDS: [(&str, &str); 17] = [
    (r#""prefix":"p2p""#, "a network of few peers, some of which are away"),
    ("Running on custom Ethereum network", "the configuration is a file"),
    ("Disabled feature flag", "QUIC is off"),
    ("No bootstrap addresses supplied", "peers are given one by one"),
    ("insecure gRPC server", "validators are on this machine"),
    ("Subscribing to all attestation subnets", "a network of few peers"),
    ("could not check if block arrived early", "it starts before the genesis"),
    ("Voting period before genesis", "votes on deposits begin after the follow distance"),
    ("Failed to fetch data column sidecars", "peers have not had them yet; it asks again"),
    ("Data columns still missing at slot end", "the block came late, and its columns after it"),
    ("committee cache size", "it was behind, and has caught up"),
    ("Fail to build block: node is syncing", "it was behind, and is asked for blocks meanwhile"),
    (
        "not descendant of finalized checkpoint",
        "it begins at its justified checkpoint again, and its own fork choice lacks ancestors of a \
         block; it asks for them again",
    ),
    ("context canceled", OVER),
    ("context deadline exceeded", OVER),
    (
        "payload does not exist or is not available",
        "a scenario has killed its node between a build and the request for it",
    ),
    (
        "could not process execution data: invalid payload timestamp",
        "it notes a payload for the slot after the one in which the answer came, and not for the \
         one that it had asked for",
    ),
];

/// A beacon node ends what it has begun, its own requests too, when the block has come another way
/// or the slot is over. A call that its execution client does not answer in time is `timeout from
/// http.Client`, and a fault. One that ends with the slot is so too, and [`is_late`] tells them
/// apart.
const OVER: &str = "it ended its own work: the block was there, or the slot was over";

/// An error of a beacon node while the chain has fewer blocks than the follow distance: no deposit
/// can be old enough yet.
const YOUNG: &str = "Beacon node is not respecting the follow distance";

/// As [`BEACON_WORDS`], of a beacon node whose node has no state.
const STATELESS_BEACON_WORDS: [(&str, &str); 1] = [(
    "does not support some requested engine methods",
    "its node has no state, and no payloads, bodies and blobs",
)];

/// As [`BEACON_WORDS`], of the node.
const NODE_WORDS: [(&str, &str); 3] = [
    ("a source of witnesses fails", "a scenario has taken it away"),
    ("the head was set by hand", "a scenario moves the head back"),
    ("no build has the id", "a scenario has killed it between a build and the request for it"),
];

/// Parts of refusals of transactions that are as they should be: since the account's nonce was
/// asked for, a node that has just started has read its pool from the disk, or has got the block
/// with the transaction; or the last one of an account with a delegation waits for its block, and
/// one is all that such an account may have in the pool.
const REFUSALS: [&str; 3] = ["already known", "nonce too low", "in-flight transaction limit"];
/// Of so many transactions of a node one may be refused so.
const REFUSED: u64 = 200;

/// Transactions that the nodes refused, and should not have.
pub(super) fn of_traffic(net: &Net) -> Vec<String> {
    let mut faults = Vec::new();
    for (traffic, pair) in net.traffic.iter().zip(&net.pairs) {
        let tally = traffic.tally();
        net.say(format!("{} transactions were sent to node {}", tally.sent, pair.name));
        for (words, count) in &tally.refused {
            let is_known = REFUSALS.iter().any(|known| words.contains(known));
            if !is_known || *count > 1 + tally.sent / REFUSED {
                faults.push(format!("node {} refused {count} times: {words}", pair.name));
            }
        }
    }
    faults
}

/// Lines for the transcript about the logs of a pair, and the faults in them.
pub(super) fn of_logs(pair: &Pair) -> (Vec<String>, Vec<String>) {
    let mut faults = Vec::new();
    let mut excused = BTreeMap::<&str, usize>::new();
    let (beacon, node) = (pair.lines(0), pair.lines(1));
    let of_beacon = beacon.iter().filter(|line| is_bad_of_beacon(line));
    let of_node = node.iter().filter(|line| is_bad_of_node(line));
    let bad = of_beacon
        .map(|line| ("beacon", line, reason_of_beacon(line, pair)))
        .chain(of_node.map(|line| ("node", line, reason(line, &NODE_WORDS))));
    for (program, line, reason) in bad {
        match reason {
            Some(reason) => *excused.entry(reason).or_default() += 1,
            None => faults.push(format!("{program}-{}: {line}", pair.name)),
        }
    }
    let mut words = vec![format!(
        "pair {}: {} lines of the beacon node and {} of the node were judged",
        pair.name,
        beacon.len(),
        node.len()
    )];
    words.extend(excused.iter().map(|(reason, count)| format!("  {count} excused: {reason}")));
    (words, faults)
}

fn reason(line: &str, known: &[(&str, &'static str)]) -> Option<&'static str> {
    known.iter().find(|(part, _)| line.contains(part)).map(|(_, reason)| *reason)
}

/// Whether a line is about a block whose slot was over before it was built.
fn is_late(fields: &Value, slot_seconds: u64) -> bool {
    let nanoseconds = fields["sinceSlotStartTime"].as_u64();
    nanoseconds.is_some_and(|since| since >= slot_seconds * 1_000_000_000)
}

fn reason_of_beacon(line: &str, pair: &Pair) -> Option<&'static str> {
    let fields: Value = serde_json::from_str(line).unwrap_or_default();
    let is_young = |number: u64| line.contains(YOUNG) && number <= FOLLOW_DISTANCE;
    if fields["lastBlockNumber"].as_u64().is_some_and(is_young) {
        return Some("the chain has fewer blocks than the follow distance");
    }
    if is_late(&fields, pair.slot_seconds()) {
        return Some(OVER);
    }
    let more = pair.is_stateless().then(|| reason(line, &STATELESS_BEACON_WORDS)).flatten();
    more.or_else(|| reason(line, &BEACON_WORDS))
}

/// Whether a line, an object of JSON, is a warning or an error, or is no line of the log at all.
fn is_bad_of_beacon(line: &str) -> bool {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return !line.is_empty() };
    !matches!(line["level"].as_str(), Some("info" | "debug" | "trace"))
}

fn is_bad_of_node(line: &str) -> bool {
    let is_level = |word: &str| ["WARN", "ERROR"].contains(&word);
    line.split_whitespace().take(3).any(is_level) || line.contains("panicked at")
}

/// Counts of some blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: u64,
    /// Transactions of each type.
    types: BTreeMap<String, u64>,
    withdrawals: u64,
    /// Numbers of those without a transaction.
    pub(super) empty: Vec<u64>,
}

impl Blocks {
    /// Adds a block with its transactions.
    pub(super) fn add(&mut self, number: u64, block: &Value) {
        let list = |name: &str| block[name].as_array().map_or(&[][..], Vec::as_slice);
        self.blocks += 1;
        self.withdrawals += list("withdrawals").len() as u64;
        if list("transactions").is_empty() {
            self.empty.push(number);
        }
        for transaction in list("transactions") {
            let kind = transaction["type"].as_str().unwrap_or("none").to_owned();
            *self.types.entry(kind).or_default() += 1;
        }
    }

    /// Whether nearly all have transactions. A beacon node that asks for a payload and for its
    /// contents at once, as in the first slot and where the block before came late, gets the empty
    /// one where none is built within a quarter of a second.
    pub(super) const fn is_full(&self) -> bool {
        self.empty.len() as u64 <= 1 + self.blocks / 20
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<_> =
            self.types.iter().map(|(kind, count)| format!("{count} of {kind}")).collect();
        let types = types.join(", ");
        let Self { blocks, withdrawals, .. } = self;
        write!(f, "{blocks}, the same everywhere; by type {types}; {withdrawals} withdrawals")?;
        write!(f, "; without a transaction: {:?}", self.empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_an_answer_is_excused_where_its_slot_was_over() {
        let words = "Could not get local payload: timeout from http.Client";
        let since = |nanoseconds: u64| {
            let line = serde_json::json!({"error": words, "sinceSlotStartTime": nanoseconds});
            is_late(&line, 2)
        };
        assert!(since(2_059_098_688));
        assert!(!since(1_900_000_000));
        assert!(!is_late(&serde_json::json!({"error": words}), 2));
        assert!(reason(words, &BEACON_WORDS).is_none());
    }
}
