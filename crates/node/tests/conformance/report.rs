//! The results of the tests, by network.

use crate::access_lists::Counts;
use crate::followed;
use crate::wires;
use std::collections::BTreeMap;
use std::process::ExitCode;

const FAILURES_SHOWN: usize = 40;

pub(crate) enum Outcome {
    Passed,
    Failed(String),
}

/// Counts of what was judged beside the verdicts.
#[derive(Default)]
pub(crate) struct Witnesses {
    /// Witnesses verified statelessly and equal to the second judge's.
    pub(crate) verified: usize,
    /// Published witnesses equal to ours, byte for byte and in order.
    pub(crate) published_equal: usize,
    /// Published altered witnesses that may be accepted, and are.
    pub(crate) altered_tolerated: usize,
    /// Published altered witnesses that must be refused, and are.
    pub(crate) altered_refused: usize,
    /// Published blocks that today's rules refuse, by the rule.
    pub(crate) moved: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Tests {
    passed: usize,
    failed: usize,
}

#[derive(Default)]
pub(crate) struct Report {
    counts: BTreeMap<String, Tests>,
    failures: Vec<(String, String, String)>,
    pub(crate) witnesses: Witnesses,
    pub(crate) access_lists: Counts,
    pub(crate) wires: wires::Counts,
}

impl Report {
    pub(crate) fn add(&mut self, network: &str, name: &str, outcome: Outcome) {
        let counts = self.counts.entry(network.into()).or_default();
        match outcome {
            Outcome::Passed => counts.passed += 1,
            Outcome::Failed(reason) => {
                counts.failed += 1;
                self.failures.push((network.into(), name.into(), reason));
            }
        }
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        for (network, counts) in other.counts {
            let sum = self.counts.entry(network).or_default();
            sum.passed += counts.passed;
            sum.failed += counts.failed;
        }
        self.failures.extend(other.failures);
        self.witnesses.verified += other.witnesses.verified;
        self.witnesses.published_equal += other.witnesses.published_equal;
        self.witnesses.altered_tolerated += other.witnesses.altered_tolerated;
        self.witnesses.altered_refused += other.witnesses.altered_refused;
        let (a, b) = (&mut self.access_lists, other.access_lists);
        a.states_equal += b.states_equal;
        a.states_altered += b.states_altered;
        a.keys_equal += b.keys_equal;
        a.published_keys += b.published_keys;
        a.moved += b.moved;
        self.wires.merge(other.wires);
        for (rule, count) in other.witnesses.moved {
            *self.witnesses.moved.entry(rule).or_default() += count;
        }
        self
    }

    pub(crate) fn print(self) -> ExitCode {
        let gated = |network: &str| !network.contains("Amsterdam");
        let shown = self.failures.iter().filter(|(network, ..)| gated(network));
        for (network, name, reason) in shown.take(FAILURES_SHOWN) {
            println!("FAILED {network} {name}\n       {reason}");
        }
        println!("{:<28} {:>8} {:>8}", "network", "passed", "failed");
        for (network, counts) in &self.counts {
            let Tests { passed, failed } = counts;
            let note = if gated(network) { "" } else { "  draft of April 2026, not gated" };
            println!("{network:<28} {passed:>8} {failed:>8}{note}");
        }
        let witnesses = &self.witnesses;
        self.access_lists.print();
        self.wires.print();
        println!(
            "witnesses verified statelessly, equal to the second judge's: {}",
            witnesses.verified
        );
        println!("of these, followed instruction by instruction: {}", followed::blocks());
        println!("published witnesses equal to ours, byte for byte: {}", witnesses.published_equal);
        println!(
            "published altered witnesses tolerated, as their files say: {}",
            witnesses.altered_tolerated
        );
        println!(
            "published altered witnesses refused, as their files say: {}",
            witnesses.altered_refused
        );
        for (rule, count) in &witnesses.moved {
            println!("blocks with published witnesses whose verdict has moved: {count}: {rule}");
        }
        let sum = |count: fn(&Tests) -> usize| -> usize {
            self.counts.iter().filter(|(network, _)| gated(network)).map(|(_, c)| count(c)).sum()
        };
        let (passed, failed) = (sum(|counts| counts.passed), sum(|counts| counts.failed));
        println!("{passed} passed, {failed} failed");
        if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The run was for tests of another name.
pub(crate) fn nothing_asked(name: &str) -> ExitCode {
    println!("{name} is no folder of published tests: none of them were run");
    ExitCode::SUCCESS
}

/// Without fixtures the published tests cannot run: an error in CI, a hint elsewhere.
pub(crate) fn no_fixtures() -> ExitCode {
    eprintln!(
        "DEPONENT_FIXTURES is not set: the published consensus tests were not run.\n\
         docs/conformance.md says where they come from and how to lay them out."
    );
    ExitCode::FAILURE
}
