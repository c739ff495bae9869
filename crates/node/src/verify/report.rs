//! The report on a block that was verified, as text and as JSON.

use std::time::Duration;

use alloy_primitives::{Address, B256};
use execution::{ChainSpec, SealedBlock, Verified};
use serde_json::json;
use witness::{Items, Witness};

use crate::console::counted;
use crate::foreign_witness::ForeignWitness;

/// The report on a valid block.
pub(super) struct Report {
    number: u64,
    hash: B256,
    chain_id: u64,
    fork: String,
    state_root: B256,
    receipts_root: B256,
    transactions: usize,
    gas_used: u64,
    given: Content,
    canonical: Content,
    normalised: Vec<String>,
    milliseconds: f64,
    absent: Vec<Address>,
}

/// Counts of a witness's items, and their bytes.
struct Content {
    nodes: usize,
    codes: usize,
    headers: usize,
    bytes: usize,
}

impl Report {
    pub(super) fn new(
        chain: &ChainSpec,
        block: &SealedBlock,
        given: &ForeignWitness,
        verified: &Verified,
        time: Duration,
        absent: Vec<Address>,
    ) -> Self {
        Self {
            number: block.header.number,
            hash: block.hash(),
            chain_id: chain.chain_id(),
            fork: chain.fork_of(&block.header).to_string(),
            state_root: verified.state_root,
            receipts_root: verified.receipts_root,
            transactions: block.body.transactions.len(),
            gas_used: verified.gas_used,
            given: Content::of(&given.witness),
            canonical: Content::of(&verified.witness),
            normalised: normalised(given),
            milliseconds: time.as_secs_f64() * 1000.0,
            absent,
        }
    }

    /// A line for each thing, behind its name.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, value: String| {
            out += &format!("{name:<14}{value}\n");
        };
        line("block", format!("{} of chain {}, {}", self.number, self.chain_id, self.fork));
        line("block hash", self.hash.to_string());
        line("state root", self.state_root.to_string());
        line("receipts root", self.receipts_root.to_string());
        line("transactions", self.transactions.to_string());
        line("gas used", self.gas_used.to_string());
        line("witness", self.given.text());
        if !self.normalised.is_empty() {
            line("normalised", self.normalised.join("; "));
        }
        line("read of it", self.canonical.text());
        line("time", format!("{:.3} ms", self.milliseconds));
        for address in &self.absent {
            line("taken absent", format!("account {address}: it is not proven"));
        }
        out
    }

    /// The line of one block among several.
    pub(super) fn line(&self) -> String {
        let Self { number, hash, milliseconds, .. } = self;
        let absent = match self.absent.len() {
            0 => String::new(),
            count => format!(", {} taken absent", counted(count, "account")),
        };
        format!("VALID: block {number} ({hash}), {milliseconds:.3} ms{absent}\n")
    }

    /// The same as JSON, on one line; `name` is what was asked for.
    pub(super) fn json(&self, name: &str) -> String {
        let value = json!({
            "verdict": "VALID",
            "input": name,
            "number": self.number,
            "hash": self.hash,
            "chainId": self.chain_id,
            "fork": self.fork,
            "stateRoot": self.state_root,
            "receiptsRoot": self.receipts_root,
            "transactions": self.transactions,
            "gasUsed": self.gas_used,
            "witness": self.given.json(),
            "canonical": self.canonical.json(),
            "normalised": self.normalised,
            "takenAbsent": self.absent,
            "milliseconds": self.milliseconds,
        });
        format!("{value}\n")
    }
}

/// Any other verdict as JSON, on one line.
pub(super) fn failure(verdict: &str, name: &str, reason: &str) -> String {
    format!("{}\n", json!({"verdict": verdict, "input": name, "reason": reason}))
}

impl Content {
    fn of(witness: &Witness) -> Self {
        let [nodes, codes, headers] = witness.lists().map(Items::len);
        Self { nodes, codes, headers, bytes: witness.content_bytes() }
    }

    fn text(&self) -> String {
        let Self { nodes, codes, headers, bytes } = self;
        let counts = [(nodes, "node"), (codes, "code"), (headers, "header"), (bytes, "byte")];
        counts.map(|(count, noun)| counted(count, noun)).join(", ")
    }

    fn json(&self) -> serde_json::Value {
        let Self { nodes, codes, headers, bytes } = self;
        json!({"nodes": nodes, "codes": codes, "headers": headers, "bytes": bytes})
    }
}

/// How the form of a witness was another one, envelopes of answers included.
fn normalised(given: &ForeignWitness) -> Vec<String> {
    let envelopes = given.envelopes.iter().map(|name| format!("inside {name:?}"));
    envelopes.chain(given.differences.iter().cloned()).collect()
}
