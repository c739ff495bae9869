//! The counts of a long run, and what is wrong with them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;

use crate::chain::format::Payload;
use crate::clients::target::Target;
use crate::soak::gap::Filled;
use crate::soak::node::Found;
use crate::soak::remains::{Kept, files_of, is_expected, warnings_of};
use crate::soak::trouble::Trouble;
use crate::soak::watch::Reading;

/// Reasons of refused transactions that are told apart.
const REASONS: usize = 20;
/// The part of a reason that is kept.
const REASON_CHARS: usize = 60;

/// The counts of a run, and its lists of readings and troubles, which are files too.
pub(crate) struct Record {
    pub(crate) seed: u64,
    pub(crate) target: Target,
    pub(crate) slots: u64,
    pub(crate) late_slots: u64,
    pub(crate) slot_seconds: Vec<f64>,
    pub(crate) blocks: u64,
    pub(crate) gas: u64,
    pub(crate) transactions: u64,
    /// Transactions handed to pools, and refused by them, by reason.
    pub(crate) sent: u64,
    pub(crate) refusals: BTreeMap<String, u64>,
    pub(crate) troubles: BTreeMap<Trouble, u64>,
    pub(crate) start_seconds: Vec<f64>,
    /// Blocks of each gap that was filled, and those that each branch's end took off a chain.
    pub(crate) gaps: Vec<f64>,
    pub(crate) reorgs: Vec<f64>,
    /// Gaps that nodes filled by themselves, and the seconds of each SYNCING until then.
    pub(crate) filled: Vec<Filled>,
    pub(crate) syncing_seconds: Vec<f64>,
    pub(crate) found: Found,
    /// Comparisons of heads and proofs.
    pub(crate) compared: u64,
    pub(crate) readings: Vec<Reading>,
    /// By node: the files that are left, and the lines of the log above INFO.
    pub(crate) files: BTreeMap<String, BTreeMap<String, Kept>>,
    pub(crate) warnings: BTreeMap<String, (u64, bool)>,
    /// The reason why the run ended early.
    pub(crate) fault: Option<String>,
    events: File,
    samples: File,
}

impl Record {
    pub(crate) fn new(seed: u64, folder: &Path, target: Target) -> anyhow::Result<Self> {
        let file = |name: &str| {
            let path = folder.join(name);
            File::create(&path).with_context(|| format!("cannot make {}", path.display()))
        };
        Ok(Self {
            seed,
            target,
            slots: 0,
            late_slots: 0,
            slot_seconds: Vec::new(),
            blocks: 0,
            gas: 0,
            transactions: 0,
            sent: 0,
            refusals: BTreeMap::new(),
            troubles: BTreeMap::new(),
            start_seconds: Vec::new(),
            gaps: Vec::new(),
            reorgs: Vec::new(),
            filled: Vec::new(),
            syncing_seconds: Vec::new(),
            found: Found::default(),
            compared: 0,
            readings: Vec::new(),
            files: BTreeMap::new(),
            warnings: BTreeMap::new(),
            fault: None,
            events: file("troubles.jsonl")?,
            samples: file("samples.jsonl")?,
        })
    }

    pub(crate) fn built(&mut self, payload: &Payload) {
        self.blocks += 1;
        self.gas += payload.gas_used;
        self.transactions += payload.transactions as u64;
    }

    pub(crate) fn refused(&mut self, reason: &str) {
        let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
        let reason: String = reason.chars().take(REASON_CHARS).map(digits).collect();
        let is_new = !self.refusals.contains_key(&reason) && self.refusals.len() >= REASONS;
        let reason = if is_new { "others".into() } else { reason };
        *self.refusals.entry(reason).or_default() += 1;
    }

    pub(crate) fn found(&mut self, found: Found) {
        self.found.blocks += found.blocks;
        self.found.witnesses += found.witnesses;
    }

    pub(crate) fn trouble(
        &mut self,
        slot: u64,
        trouble: Trouble,
        node: &str,
        until: u64,
    ) -> anyhow::Result<()> {
        *self.troubles.entry(trouble).or_default() += 1;
        let event = json!({
            "slot": slot, "trouble": trouble.name(), "node": node, "until": until,
        });
        write_line(&mut self.events, &event)
    }

    pub(crate) fn read(&mut self, reading: Reading) -> anyhow::Result<()> {
        write_line(&mut self.samples, &reading)?;
        self.readings.push(reading);
        Ok(())
    }

    /// Looks at what a node has left that has stopped.
    pub(crate) fn left(&mut self, name: &str, folder: &Path) -> anyhow::Result<()> {
        self.files.insert(name.into(), files_of(folder)?);
        let log = std::fs::read(folder.join("bench.log"))?;
        for (text, (count, is_designed)) in warnings_of(&String::from_utf8_lossy(&log)) {
            self.warnings.entry(text).or_insert((0, is_designed)).0 += count;
        }
        Ok(())
    }

    /// The faults of a run in which no block was lost.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let files = self.files.iter().flat_map(|(node, files)| {
            let unexpected = files.keys().filter(|name| !is_expected(name));
            unexpected.map(move |name| format!("{node} left {name}"))
        });
        let lines = self.warnings.iter().filter(|(_, (_, is_designed))| !is_designed);
        let lines = lines.map(|(text, (count, _))| format!("{count} times in the log: {text}"));
        files.chain(lines).collect()
    }
}

fn write_line(file: &mut File, line: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(file.write_all(&text)?)
}
