//! The first words of a report: the faster side, the ratio, and its confidence.

use serde::{Deserialize, Serialize};

use crate::measure::{Comparison, Verdict};

/// Sides that were measured next to each other, beside one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The time that was measured: "newPayload, p50".
    pub of: String,
    /// The side that the others are compared with.
    pub base: String,
    /// The others.
    pub sides: Vec<Side>,
}

/// A side of an [`Answer`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// Its time over that of the other.
    pub ratio: f64,
    /// The ends of the ratio's interval, with a confidence of 95 %.
    pub interval: [f64; 2],
    /// The verdict on that difference.
    pub verdict: Verdict,
}

impl Answer {
    /// An answer without sides.
    pub fn new(of: impl Into<String>, base: impl Into<String>) -> Self {
        Self { of: of.into(), base: base.into(), sides: Vec::new() }
    }

    /// Adds a side that was compared with the base; one without a ratio is left out.
    pub(crate) fn side(&mut self, name: impl Into<String>, compared: &Comparison) -> &mut Self {
        let Comparison { ratio, interval, verdict, .. } = *compared;
        if ratio.is_finite() {
            self.sides.push(Side { name: name.into(), ratio, interval, verdict });
        }
        self
    }

    /// One sentence; without a verdict where the machine was busy.
    pub(super) fn sentence(&self, is_busy: bool) -> String {
        let sides = self.sides.iter().map(|side| side.words(&self.base, is_busy));
        format!("{}: {}.", self.of, sides.collect::<Vec<_>>().join("; "))
    }
}

impl Side {
    /// The ratio and its interval.
    pub(super) fn numbers(&self) -> String {
        let [low, high] = self.interval;
        format!("{:.2} ({low:.2} to {high:.2})", self.ratio)
    }

    fn words(&self, base: &str, is_busy: bool) -> String {
        let Self { name, ratio, interval: [low, high], verdict } = self;
        match verdict {
            _ if is_busy => format!("{name} took {} of {base}'s time", self.numbers()),
            Verdict::Faster => format!(
                "{name} was {:.2} times as fast as {base} (95 % interval {:.2} to {:.2})",
                1.0 / ratio,
                1.0 / high,
                1.0 / low
            ),
            Verdict::Slower => format!(
                "{name} took {ratio:.2} times as long as {base} (95 % interval {low:.2} to \
                 {high:.2})"
            ),
            Verdict::NoDifference => format!(
                "no difference between {name} and {base} (ratio {ratio:.2}, 95 % interval \
                 {low:.2} to {high:.2})"
            ),
            Verdict::TooFewPairs => {
                format!("{name} took {ratio:.2} of {base}'s time, on too few pairs for a verdict")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_who_was_faster_and_by_how_much() {
        let check = |ratio: f64, verdict, is_busy, expected: &str| {
            let interval = [ratio * 0.8, ratio * 1.25];
            let name = "deponent".to_owned();
            let mut answer = Answer::new("newPayload", "geth");
            answer.sides.push(Side { name, ratio, interval, verdict });
            assert_eq!(answer.sentence(is_busy), expected);
        };
        let faster = "newPayload: deponent was 2.00 times as fast as geth (95 % interval 1.60 to \
                      2.50).";
        check(0.5, Verdict::Faster, false, faster);
        let slower = "newPayload: deponent took 2.00 times as long as geth (95 % interval 1.60 to \
                      2.50).";
        check(2.0, Verdict::Slower, false, slower);
        let same = "newPayload: no difference between deponent and geth (ratio 1.00, 95 % interval \
                    0.80 to 1.25).";
        check(1.0, Verdict::NoDifference, false, same);
        let few = "newPayload: deponent took 0.50 of geth's time, on too few pairs for a verdict.";
        check(0.5, Verdict::TooFewPairs, false, few);
        let busy = "newPayload: deponent took 0.50 (0.40 to 0.62) of geth's time.";
        check(0.5, Verdict::Faster, true, busy);
    }
}
