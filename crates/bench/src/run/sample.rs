//! Measured blocks, in the runs of clients.

use std::collections::BTreeMap;
use std::path::Path;

use alloy_primitives::B256;
use serde::{Deserialize, Serialize};

use crate::clients::process;
use crate::fault::Fault;

/// One block of one client. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) number: u64,
    pub(crate) hash: B256,
    pub(crate) state_root: B256,
    pub(crate) gas_limit: u64,
    pub(crate) gas_used: u64,
    pub(crate) transactions: usize,
    /// The stage of the run that it belongs to: a part of a chain, a size; empty if there is one.
    #[serde(default)]
    pub(crate) stage: String,
    /// Sent before the measurement began.
    pub(crate) warm_up: bool,
    /// Its place in the order of clients for this block, from 0.
    #[serde(default)]
    pub(crate) place: usize,
    /// Blocks of the branch that is left for it; 0 if its parent was the head.
    #[serde(default)]
    pub(crate) left: u64,
    /// Whether the answer was to have the witness.
    #[serde(default)]
    pub(crate) with_witness: bool,
    /// From the request until the caller has the answer, decoded if its wire is one that decodes.
    pub(crate) new_payload: f64,
    pub(crate) first_byte: f64,
    #[serde(default)]
    pub(crate) last_byte: f64,
    pub(crate) answer_bytes: usize,
    pub(crate) forkchoice: f64,
    /// Between the beginning of its slot and when it could be sent.
    pub(crate) queue_wait: f64,
    /// Until it was persisted, after the fork choice, if that was waited for.
    pub(crate) persistence_wait: Option<f64>,
    /// Of the fork choices back and forth.
    pub(crate) reorg: Option<[f64; 2]>,
    /// When all of that was done, since the first slot began; the turns of others left out.
    pub(crate) ended: f64,
    /// The client went away and came back during this block, which does not count.
    pub(crate) interrupted: bool,
    /// Of a witness that came with the verdict and was decoded.
    #[serde(default)]
    pub(crate) witness: Option<Items>,
    /// Calls for witnesses after the block.
    #[serde(default)]
    pub(crate) asked: Vec<WitnessCall>,
    /// Of a client that this program started.
    #[serde(default)]
    pub(crate) resources: Option<Resources>,
    /// The times of its stages as the client itself says, in microseconds.
    #[serde(default)]
    pub(crate) server_us: BTreeMap<String, f64>,
}

impl Block {
    /// Whether statistics are about it.
    pub(crate) const fn counts(&self) -> bool {
        !self.warm_up && !self.interrupted
    }

    /// The call for its witness, where that does not come with the verdict.
    pub(crate) fn later_call(&self) -> Option<&WitnessCall> {
        self.asked.iter().find(|call| call.depth.is_none() && !call.repeated)
    }

    /// Until the caller has the verdict and the witness that was asked for first, in one call or in
    /// two; `None` if the second one failed.
    pub(crate) fn with_later(&self) -> Option<f64> {
        match self.later_call() {
            None => Some(self.new_payload),
            Some(call) => Some(self.new_payload + call.seconds?),
        }
    }
}

/// A call for a block's witness.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WitnessCall {
    pub(crate) hash: B256,
    /// Blocks between the block and the head; `None` if it is the block that was sent just now.
    pub(crate) depth: Option<usize>,
    /// Whether the witness had been asked for in the same way just before.
    pub(crate) repeated: bool,
    /// Until the items were there; `None` if it was refused.
    pub(crate) seconds: Option<f64>,
    pub(crate) first_byte: f64,
    pub(crate) last_byte: f64,
    pub(crate) answer_bytes: usize,
    pub(crate) witness: Option<Items>,
    /// The answer instead.
    pub(crate) refusal: Option<String>,
}

/// Counts of the items of a witness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Items {
    pub(crate) bytes: usize,
    pub(crate) count: usize,
    /// Of codes and nodes in any order: equal for equal witnesses. Headers are left out, which some
    /// clients give as objects.
    pub(crate) content: u64,
}

/// The memory and processor time of a client, as the system counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resources {
    /// Resident memory when it had started, before the block, and after it.
    pub(crate) idle_kib: u64,
    pub(crate) before_kib: u64,
    pub(crate) resident_kib: u64,
    /// The most that ever was resident; since the beginning of the block where that can be reset.
    pub(crate) peak_kib: u64,
    /// Of memory files that it has not mapped, after the block.
    pub(crate) files_kib: u64,
    /// Processor time of the turn, the pause included, in the kernel's steps of 10 ms.
    pub(crate) cpu_ms: u64,
}

/// A failure of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// The block that was being sent.
    pub(crate) block: Option<u64>,
    pub(crate) said: String,
}

/// One client's part in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) client: String,
    /// Counted from 0.
    pub(crate) round: usize,
    pub(crate) blocks: Vec<Block>,
    pub(crate) failure: Option<Failure>,
    /// Further remarks, in sentences.
    pub(crate) remarks: Vec<String>,
}

impl Run {
    pub(crate) fn of(client: &str, round: usize) -> Self {
        Self { client: client.into(), round, ..Self::default() }
    }

    pub(crate) fn counted(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.counts())
    }

    /// Notes the first thing that went wrong; `usual` is what it is unless the error says.
    pub(crate) fn fail(&mut self, usual: Fault, block: Option<u64>, error: &anyhow::Error) {
        let interrupted = Fault::Interrupted.error("blocks are missing".into());
        let error = if process::interrupted() { &interrupted } else { error };
        let fault = Fault::of(error).unwrap_or(usual);
        let said = rpc::on_one_line(error.as_ref());
        let said = said.strip_prefix(&format!("{fault}: ")).unwrap_or(&said).to_owned();
        eprintln!("{}, round {}: {fault}: {said}", self.client, self.round + 1);
        self.failure.get_or_insert(Failure { fault, block, said });
    }

    /// Names the log where it is kept.
    pub(crate) fn name_log(&mut self, log: &Path, kept: &Path) {
        let [log, kept] = [log, kept].map(|path| path.display().to_string());
        let said = self.failure.as_mut().map(|failure| &mut failure.said);
        said.into_iter().chain(&mut self.remarks).for_each(|it| *it = it.replace(&log, &kept));
    }
}

/// All runs of a command.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) runs: Vec<Run>,
    /// Deviations from the plan, in sentences.
    pub(crate) remarks: Vec<String>,
    /// The reason for withheld verdicts, if the machine was busy with something else.
    pub(crate) busy: Option<String>,
}

/// The names of the clients, in the order of their first runs.
pub(crate) fn names(runs: &[Run]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.client.as_str()) {
            names.push(&run.client);
        }
    }
    names
}

/// The stages of counted blocks, in their order.
pub(crate) fn stages(runs: &[Run]) -> Vec<&str> {
    let mut stages: Vec<&str> = Vec::new();
    for block in runs.iter().flat_map(Run::counted) {
        if !stages.contains(&&*block.stage) {
            stages.push(&block.stage);
        }
    }
    stages
}

/// The counted blocks of a client's runs.
pub(crate) fn blocks<'a>(runs: &'a [Run], client: &str) -> Vec<&'a Block> {
    runs.iter().filter(|run| run.client == client).flat_map(Run::counted).collect()
}

/// The names of the clients, each with its counted blocks.
pub(crate) fn by_client(runs: &[Run]) -> impl Iterator<Item = (&str, Vec<&Block>)> {
    names(runs).into_iter().map(move |client| (client, blocks(runs, client)))
}

/// The reason for which runs cannot be compared: other blocks, or a client that did something else
/// with them.
pub(crate) fn unequal_work(runs: &[Run]) -> Option<String> {
    for run in runs {
        if let Some(failure) = run.failure.as_ref().filter(|it| it.fault.is_unequal_work()) {
            let (client, round) = (&run.client, run.round + 1);
            return Some(format!("{client}, round {round}: {}: {}", failure.fault, failure.said));
        }
    }
    let mut complete = runs.iter().filter(|run| run.failure.is_none());
    let first = complete.next()?;
    for run in complete {
        let of = |run: &Run| format!("{}, round {}", run.client, run.round + 1);
        let (a, b) = (of(first), of(run));
        if first.blocks.len() != run.blocks.len() {
            let (many, few) = (first.blocks.len(), run.blocks.len());
            return Some(format!("{a} ran {many} blocks, {b} {few}: give both the same files"));
        }
        for (x, y) in first.blocks.iter().zip(&run.blocks) {
            if (x.hash, x.state_root, x.gas_used) != (y.hash, y.state_root, y.gas_used) {
                return Some(format!(
                    "{a} ran block {} ({}, state {}) where {b} ran block {} ({}, state {}): give \
                     both the same files",
                    x.number, x.hash, x.state_root, y.number, y.hash, y.state_root
                ));
            }
        }
    }
    None
}
