//! A client with one of its flags at several values: `--sweep key=15,30,60`.

use std::str::FromStr;

use crate::cells;
use crate::measure::{Comparison, Sorted};
use crate::report::{Axis, Cell, Document, Lines, Table, Unit};
use crate::run::plan::Contender;
use crate::run::sample::{Run, blocks};
use crate::run::tables::{Pairing, pairs};

/// A flag and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sweep {
    key: String,
    values: Vec<String>,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || format!("{text}: a flag without its hyphens, =, and values between commas");
        let (key, values) = text.split_once('=').ok_or_else(usage)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        let is_twice = |(at, value): (usize, &String)| values[..at].contains(value);
        if key.is_empty() || values.iter().any(String::is_empty) {
            return Err(usage());
        }
        if values.iter().enumerate().any(is_twice) {
            return Err(format!("{text}: a value is there twice"));
        }
        Ok(Self { key: key.trim_start_matches('-').into(), values })
    }
}

impl Sweep {
    fn name(&self, value: &str) -> String {
        format!("{}={value}", self.key)
    }

    pub(crate) fn title(&self, client: &Contender) -> String {
        format!("{} with {} of {}", client.name, self.key, self.values.join(", "))
    }

    /// The client with each of the values.
    pub(crate) fn contenders(&self, client: &Contender) -> Vec<Contender> {
        let with = |value: &String| {
            let mut contender = Contender { name: self.name(value), ..client.clone() };
            contender.target.arguments.extend([format!("--{}", self.key), value.clone()]);
            contender
        };
        self.values.iter().map(with).collect()
    }

    /// Adds the table and the curves of a sweep.
    pub(crate) fn add(&self, document: &mut Document, runs: &[Run]) {
        let table = Table::new(format!("sweep of {}", self.key))
            .column(&*self.key, Unit::Text)
            .columns(Unit::Ms, ["p50", "p95", "p99"])
            .column("gas", Unit::MgasPerSecond);
        let mut table = Comparison::columns(table);
        let mut curves: [Vec<[f64; 2]>; 3] = Default::default();
        for (index, value) in self.values.iter().enumerate() {
            let name = self.name(value);
            let blocks = blocks(runs, &name);
            let times = Sorted::new(blocks.iter().map(|block| block.new_payload));
            if times.len() == 0 {
                continue;
            }
            let percentiles = [0.5, 0.95, 0.99].map(|share| times.percentile(share));
            let gas: f64 = blocks.iter().map(|block| block.gas_used as f64).sum();
            let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| times.tail(share));
            let mut row: Vec<Cell> = cells![&**value, p50, p95, p99, gas / times.sum()].into();
            let first = self.name(&self.values[0]);
            row.extend(match index {
                0 => cells![1.0, None::<f64>, None::<f64>, None::<f64>, None::<f64>],
                _ => {
                    let pairs = pairs(runs, Pairing::Rounds, [&name, &first]);
                    Comparison::new(&pairs, 0.5).cells()
                }
            });
            table.row(row);
            let place = value.parse().unwrap_or(index as f64);
            for (curve, time) in curves.iter_mut().zip(percentiles) {
                curve.push([place, time]);
            }
        }
        let mut chart = Lines::new(
            format!("sweep of {}", self.key),
            Axis::new(&*self.key, Unit::Count),
            Axis::new("newPayload", Unit::Ms),
        );
        for (name, curve) in ["p50", "p95", "p99"].into_iter().zip(curves) {
            chart.series(name, curve);
        }
        let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
        document.section("Sweep").text(format!(
            "The client was restarted on a fresh copy of its directory for each value, {rounds} \
             times in turns. Ratios are of the p50 of newPayload and forkchoiceUpdated \
             together, to the first value. {}",
            Comparison::WORDS
        ));
        document.table(table).chart(chart);
    }
}
