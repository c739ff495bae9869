//! The tables and the remarks of the report of `rpc`.

use super::mix::Mix;
use super::tally::{CallFailure, Tally};
use super::{Mode, Outcome};
use crate::cells;
use crate::measure::{Comparison, Histogram};
use crate::report::{Answer, Axis, Cell, Document, Lines, Table, Unit};

/// A thread of ours that uses more than this share of a processor is busy.
const BUSY: f64 = 0.9;
/// A server that reaches more than this share of what the null server does is hardly measured.
const NEAR_NULL: f64 = 0.8;
/// By more than this share of all results of a call two endpoints may not differ in those that are
/// `null`, nor of all calls in those that failed, to be compared.
const MOST_APART: f64 = 0.01;
/// Points of a distribution that are kept.
const POINTS: usize = 400;

/// Writes the results into a document.
pub(super) fn describe(
    mix: &Mix,
    modes: &[Mode],
    outcomes: &[Outcome],
    has_rate: bool,
    document: &mut Document,
) {
    let compared = compared(outcomes, has_rate, document);
    document.table(speeds(outcomes));
    if outcomes.len() > modes.len() {
        document.method(Comparison::WORDS).method(
            "The work was unequal where one endpoint answers null, or fails, where the other has a \
             result: to calls about a block that it lacks, say, or of a method.",
        );
    }
    document.table(compared).table(work(outcomes)).table(failures(outcomes));
    for remark in outcomes.iter().flat_map(remarks) {
        document.text(remark);
    }
    for mode in modes {
        let title = format!("Latency of {} calls", mode.name());
        let mut lines = Lines::distribution(title, Axis::new("latency", Unit::Us));
        for outcome in outcomes.iter().filter(|outcome| outcome.mode == *mode) {
            let points = outcome.total().latency().distribution();
            let step = points.len().div_ceil(POINTS).max(1);
            let last = points.len().saturating_sub(1);
            let kept = points.iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last);
            lines.series(&outcome.name, kept.map(|(_, (nanos, share))| [nanos / 1e9, *share]));
        }
        document.chart(lines);
    }
    if mix.calls.len() > 1 {
        document.table(methods(mix, outcomes));
    }
    document.table(each_round(outcomes));
}

/// A table with a row, or several, for each endpoint and mode.
fn table<const N: usize>(title: &str, columns: [(&str, Unit); N]) -> Table {
    let first = [("endpoint", Unit::Text), ("mode", Unit::Text)];
    let columns = first.into_iter().chain(columns);
    columns.fold(Table::new(title), |table, (name, unit)| table.column(name, unit))
}

fn row<const N: usize>(table: &mut Table, outcome: &Outcome, cells: [Cell; N]) {
    let first = cells![outcome.name.clone(), outcome.mode.name()];
    table.row(first.into_iter().chain(cells));
}

/// Percentiles, in seconds; NaN where there are too few calls for one.
fn percentiles<const N: usize>(latency: &Histogram, shares: [f64; N]) -> [f64; N] {
    let has = |share: f64| latency.count() as f64 * (1.0 - share) >= 1.0 - 1e-9;
    shares.map(|share| if has(share) { latency.percentile(share) / 1e9 } else { f64::NAN })
}

/// Calls a second and latencies.
fn speeds(outcomes: &[Outcome]) -> Table {
    let latencies = ["mean", "p50", "p90", "p95", "p99", "max"].map(|name| (name, Unit::Us));
    let [mean, p50, p90, p95, p99, max] = latencies;
    let columns = [("calls", Unit::PerSecond), mean, p50, p90, p95, p99, max];
    let mut table = table("Speed and latency", columns);
    for outcome in outcomes {
        let total = outcome.total();
        let latency = total.latency();
        let [p50, p90, p95, p99] = percentiles(&latency, [0.5, 0.9, 0.95, 0.99]);
        let (mean, max) = (latency.mean() / 1e9, latency.max() / 1e9);
        row(&mut table, outcome, cells![total.rate(), mean, p50, p90, p95, p99, max]);
    }
    table
}

/// The time of a round that is compared.
type Time = fn(&Tally) -> f64;

/// Each endpoint against the first one: the rounds are the pairs. Where calls are sent at a given
/// rate, their latency is compared, and not their number.
fn compared(outcomes: &[Outcome], has_rate: bool, document: &mut Document) -> Table {
    let times: &[(&str, Time)] = match has_rate {
        false => &[("time a call", |round| 1.0 / round.rate())],
        true => &[
            ("latency p50", |round| round.latency().percentile(0.5)),
            ("latency p99", |round| round.latency().percentile(0.99)),
        ],
    };
    let table = table("Comparison", [("against", Unit::Text), ("of", Unit::Text)]);
    let mut table = Comparison::columns(table);
    for (at, base) in outcomes.iter().enumerate() {
        let is_of_mode = |outcome: &&Outcome| outcome.mode == base.mode;
        if outcomes[..at].iter().any(|outcome| is_of_mode(&outcome)) {
            continue;
        }
        for (of, time) in times {
            let mut answer = Answer::new(format!("{of}, {}", base.mode.name()), &*base.name);
            for outcome in outcomes[at + 1..].iter().filter(is_of_mode) {
                let rounds = outcome.rounds.iter().zip(&base.rounds);
                let pairs: Vec<_> = rounds.map(|(a, b)| vec![[time(a), time(b)]]).collect();
                let compared = Comparison::new(&pairs, 0.5);
                let mut cells = compared.cells();
                if is_same_work(outcome, base) {
                    answer.side(&*outcome.name, &compared);
                } else {
                    cells = [const { Cell::Missing }; 5];
                    cells[4] = "the work was unequal".into();
                }
                let [ratio, low, high, floor, verdict] = cells;
                let (against, of) = (base.name.clone().into(), (*of).into());
                row(&mut table, outcome, [against, of, ratio, low, high, floor, verdict]);
            }
            // The median is the answer.
            if *of == times[0].0 {
                document.answer(answer);
            }
        }
    }
    table
}

/// Both endpoints answer the same calls with results: one that lacks a block answers `null`, and
/// one that lacks a method an error, sooner than one that has it.
fn is_same_work(a: &Outcome, b: &Outcome) -> bool {
    let shares = |outcome: &Outcome| {
        let total = outcome.total();
        let share = |(part, all): (u64, u64)| part as f64 / all.max(1) as f64;
        let ended = total.failed() + total.results.iter().sum::<u64>();
        let failed = share((total.failed(), ended));
        let nulls = total.nulls.into_iter().zip(total.results).map(share);
        std::iter::once(failed).chain(nulls).collect::<Vec<_>>()
    };
    let are_near = |(a, b): (f64, f64)| (a - b).abs() <= MOST_APART;
    // A server that is gone answers nothing any more.
    let has_gone = |outcome: &Outcome| outcome.total().given_up > 0;
    has_gone(a) == has_gone(b) && shares(a).into_iter().zip(shares(b)).all(are_near)
}

/// Calls and bytes, and the load of our own threads.
fn work(outcomes: &[Outcome]) -> Table {
    let columns = [
        ("calls sent", Unit::Count),
        ("results", Unit::Count),
        ("failed", Unit::Count),
        ("rate limited", Unit::Count),
        ("sent", Unit::Mb),
        ("received", Unit::Mb),
        ("our busiest thread", Unit::Percent),
        ("of the null server's speed", Unit::Percent),
    ];
    let mut table = table("Calls, bytes and the instrument", columns);
    for outcome in outcomes {
        let total = outcome.total();
        let cells = cells![
            total.sent,
            total.latency().count() - total.unsent,
            total.failed(),
            total.count(CallFailure::Limited),
            total.sent_bytes,
            total.received_bytes,
            total.busiest,
            outcome.null_rate.map(|null| total.rate() / null),
        ];
        row(&mut table, outcome, cells);
    }
    table
}

/// The reasons of calls without a result.
fn failures(outcomes: &[Outcome]) -> Table {
    let columns = [("what", Unit::Text), ("times", Unit::Count)];
    let mut table = table("Without a result", columns);
    for outcome in outcomes {
        for (failure, count) in outcome.total().failures {
            row(&mut table, outcome, cells![failure.to_string(), count]);
        }
    }
    table
}

fn methods(mix: &Mix, outcomes: &[Outcome]) -> Table {
    let columns =
        [("call", Unit::Text), ("results", Unit::Count), ("p50", Unit::Us), ("p99", Unit::Us)];
    let mut table = table("Latency by call", columns);
    // Of a batch all calls have the same.
    for outcome in outcomes.iter().filter(|outcome| outcome.mode != Mode::Batched) {
        for (call, latency) in mix.calls.iter().zip(outcome.total().latencies) {
            let [p50, p99] = percentiles(&latency, [0.5, 0.99]);
            row(&mut table, outcome, cells![call.shown(), latency.count(), p50, p99]);
        }
    }
    table
}

fn each_round(outcomes: &[Outcome]) -> Table {
    let columns =
        [("round", Unit::Count), ("calls", Unit::PerSecond), ("p50", Unit::Us), ("p99", Unit::Us)];
    let mut table = table("Each round", columns);
    for outcome in outcomes {
        for (round, tally) in outcome.rounds.iter().enumerate() {
            let [p50, p99] = percentiles(&tally.latency(), [0.5, 0.99]);
            row(&mut table, outcome, cells![round + 1, tally.rate(), p50, p99]);
        }
    }
    table
}

/// The remarks that explain the numbers of an endpoint.
fn remarks(outcome: &Outcome) -> Vec<String> {
    let (total, mut remarks) = (outcome.total(), Vec::new());
    let share = outcome.null_rate.map_or(0.0, |null| total.rate() / null);
    let [busiest, of_null] = [total.busiest, share].map(|share| share * 100.0);
    let (name, mode) = (&outcome.name, outcome.mode.name());
    let mut remark = |text: String| remarks.push(format!("{name}, {mode}: {text}"));
    if total.busiest > BUSY {
        remark(format!(
            "the instrument is the bottleneck: its busiest thread used {busiest:.0} % of a \
             processor. More --threads may help, where there are processors."
        ));
    } else if share > NEAR_NULL {
        remark(format!(
            "this is {of_null:.0} % of what a server that does nothing reaches: much of it is the \
             system's time and the instrument's."
        ));
    }
    if total.count(CallFailure::Limited) > 0 {
        let paused = total.paused.as_secs_f64();
        remark(format!("the server limits its rate. It was left alone for {paused:.1} s in all."));
    }
    if total.unsent > 0 {
        remark(format!(
            "{} calls were due and not sent before the end: the server does not keep up with \
             --max-rate. They are among the latencies with the time that they had waited.",
            total.unsent
        ));
    }
    if total.given_up > 0 {
        remark(format!(
            "{} times a connection was given up: it ended ten times in a row without an answer.",
            total.given_up
        ));
    }
    remarks
}
