//! Percentiles, and what can be said of two sides that were measured next to each other.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// Times that a comparison is made again on pairs drawn from those that were measured.
const RESAMPLES: usize = 10_000;
/// The share of resamples that an interval holds.
const CONFIDENCE: f64 = 0.95;
/// Fewer pairs say nothing about what another run would find: of five of two equal sides, all fall
/// on the same side of 1 in one comparison of 16, of six in one of 32.
pub(crate) const LEAST_PAIRS: usize = 6;

/// The difference between two runs of one program though nothing changed, as reth's benchmarks
/// found it: of medians, of percentiles up to the 90th, and of those beyond.
const NOISE: [(f64, f64); 3] = [(0.5, 0.012), (0.9, 0.0135), (1.0, 0.05)];

/// Values in rising order.
#[derive(Clone, Debug)]
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    pub(crate) fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// All of them.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> {
        self.0.iter().copied()
    }

    /// The value at `share` of the way from the first to the last, between neighbours by
    /// proportion: of n values in order the one at (n - 1) · share, counted from 0. NaN of none.
    /// It is what spreadsheets, NumPy and R say unless told otherwise.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else { return f64::NAN };
        let place = share * last as f64;
        let (low, part) = (place as usize, place.fract());
        let high = self.0[(low + 1).min(last)];
        self.0[low] + (high - self.0[low]) * part
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(0.5)
    }

    pub(crate) fn max(&self) -> f64 {
        self.percentile(1.0)
    }

    pub(crate) fn sum(&self) -> f64 {
        self.0.iter().sum()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.sum() / self.0.len() as f64
    }
}

/// How a side compares to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// The side's percentile over that of the other.
    pub(crate) ratio: f64,
    /// Between what it lies, with a confidence of 95 %.
    pub(crate) interval: [f64; 2],
    /// The smallest difference that these pairs could show, as a share.
    pub(crate) floor: f64,
    pub(crate) verdict: Verdict,
}

/// The result of a comparison of times, for the side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It takes less time, by more than the floor.
    Faster,
    /// It takes more time, by more than the floor.
    Slower,
    /// None that is above the floor.
    NoDifference,
    /// Nothing can be said.
    TooFewPairs,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference",
            Self::TooFewPairs => "too few pairs",
        })
    }
}

impl Comparison {
    /// Compares percentiles of times over pairs, which are what was measured next to each other:
    /// a block on both sides, or a run of the same blocks on both. A pair holds the times of its
    /// blocks, the side's before the other's.
    ///
    /// The interval is a bootstrap's: pairs are drawn from the pairs, and from each of them as many
    /// blocks as it has, and between two shares of the ratios that this gives lies the interval.
    /// The draws follow from a fixed seed. The side is faster or slower when the interval leaves
    /// out 1 and the ratio is farther from 1 than [`NOISE`]; the floor is how far from 1, on its
    /// side of it, a ratio with such an interval has to be for that. Nothing is said of fewer than
    /// [`LEAST_PAIRS`], nor of a percentile beyond which there is not one block.
    pub(crate) fn new(pairs: &[Vec<[f64; 2]>], share: f64) -> Self {
        let ratio = ratio(pairs.iter().flatten(), share);
        let ratios = Sorted::new(resampled(pairs, share, RESAMPLES));
        let interval = [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0];
        let interval @ [low, high] = interval.map(|share| ratios.percentile(share));
        let noise =
            NOISE.iter().find(|(up_to, _)| share <= *up_to).map_or(0.0, |(_, noise)| *noise);
        let floor = match ratio {
            ratio if ratio < 1.0 => 1.0 - (ratio / high).min(1.0 / (1.0 + noise)),
            ratio => (ratio / low).max(1.0 + noise) - 1.0,
        };
        let blocks: usize = pairs.iter().map(Vec::len).sum();
        let has_tail = blocks as f64 * (1.0 - share) >= 1.0 - f64::EPSILON * blocks as f64;
        let verdict = match ratio {
            _ if pairs.len() < LEAST_PAIRS || !has_tail || ratio.is_nan() => Verdict::TooFewPairs,
            ratio if high < 1.0 && ratio * (1.0 + noise) < 1.0 => Verdict::Faster,
            ratio if low > 1.0 && ratio > 1.0 + noise => Verdict::Slower,
            _ => Verdict::NoDifference,
        };
        Self { ratio, interval, floor, verdict }
    }
}

/// The ratio of both sides' percentiles; NaN of no times.
fn ratio<'a>(times: impl Iterator<Item = &'a [f64; 2]>, share: f64) -> f64 {
    let (mut side, mut other): (Vec<f64>, Vec<f64>) = times.map(|[a, b]| (*a, *b)).unzip();
    quick_percentile(&mut side, share) / quick_percentile(&mut other, share)
}

/// [`Sorted::percentile`], without putting all in order.
fn quick_percentile(values: &mut [f64], share: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (_, low, above) = values.select_nth_unstable_by(place as usize, f64::total_cmp);
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(*low);
    *low + (high - *low) * place.fract()
}

/// The ratios of `count` draws of pairs and of blocks in them.
fn resampled(pairs: &[Vec<[f64; 2]>], share: f64, count: usize) -> Vec<f64> {
    let mut random = Random::new(0);
    let mut times = Vec::new();
    let resample = |_| {
        times.clear();
        for _ in pairs {
            let pair = &pairs[random.below(pairs.len() as u64) as usize];
            times.extend(pair.iter().map(|_| pair[random.below(pair.len() as u64) as usize]));
        }
        ratio(times.iter(), share)
    };
    (0..count).map(resample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each block a pair.
    fn blocks(times: &[[f64; 2]]) -> Vec<Vec<[f64; 2]>> {
        times.iter().map(|times| vec![*times]).collect()
    }

    fn seed() -> u64 {
        let seed = Random::new(u64::from(std::process::id())).word();
        println!("seed {seed}");
        seed
    }

    #[test]
    fn percentiles_lie_between_neighbours() {
        let check = |values: &[f64], share, expected: f64| {
            let got = Sorted::new(values.iter().copied()).percentile(share);
            assert!((got - expected).abs() < 1e-9, "{values:?} {share}: {got}");
        };
        check(&[3.0, 1.0, 2.0], 0.5, 2.0);
        check(&[1.0, 2.0], 0.5, 1.5);
        check(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.99, 4.96);
        check(&[7.0], 0.99, 7.0);
        // Place 9 · 0.9 = 8.1 of 15, 20, 35, 40, 50, 55, 60, 70, 80, 100.
        let ten = [40.0, 15.0, 100.0, 20.0, 35.0, 50.0, 80.0, 55.0, 60.0, 70.0];
        check(&ten, 0.9, 82.0);
        check(&ten, 0.95, 91.0);
        check(&ten, 0.99, 98.2);
        check(&ten, 0.5, 52.5);
        check(&ten, 0.0, 15.0);
        check(&ten, 1.0, 100.0);
        assert_eq!(Sorted::new(ten).mean(), 52.5);
        assert!(Sorted::new([]).median().is_nan());
    }

    #[test]
    fn percentiles_are_those_of_counting() {
        let mut random = Random::new(seed());
        for _ in 0..500 {
            let len = random.between(1, 40);
            // Equal values too.
            let values: Vec<f64> = (0..len).map(|_| random.below(30) as f64).collect();
            let share = random.unit();
            // The value at a place: as many as that are below it or come before it.
            let at = |place: usize| {
                let is_there = |value: &&f64| {
                    let below = values.iter().filter(|other| other < value).count();
                    let up_to = values.iter().filter(|other| other <= value).count();
                    (below..up_to).contains(&place)
                };
                *values.iter().find(is_there).expect("every place is taken")
            };
            let place = (len - 1) as f64 * share;
            let (low, high) = (at(place.floor() as usize), at(place.ceil() as usize));
            let expected = low * (1.0 - place.fract()) + high * place.fract();
            let sorted = Sorted::new(values.iter().copied()).percentile(share);
            let quick = quick_percentile(&mut values.clone(), share);
            for got in [sorted, quick] {
                assert!((got - expected).abs() < 1e-9, "{values:?} {share}: {got}, {expected}");
            }
        }
    }

    #[test]
    fn ratios_are_of_percentiles_and_not_of_blocks() {
        // Medians 2 and 4, though no block has that ratio.
        let pairs = blocks(&[[1.0, 4.0], [2.0, 10.0], [9.0, 3.0]]);
        assert_eq!(ratio(pairs.iter().flatten(), 0.5), 0.5);
        assert!(ratio([].iter(), 0.5).is_nan());
    }

    #[test]
    fn resamples_are_as_frequent_as_counted_by_hand() {
        // Of three draws from 2, 1 and 4 against 1, the median is 1 when two or three are: 7 of 27.
        let pairs = blocks(&[[2.0, 1.0], [1.0, 1.0], [4.0, 1.0]]);
        let ratios = resampled(&pairs, 0.5, RESAMPLES);
        for (value, share) in [(1.0, 7.0 / 27.0), (2.0, 13.0 / 27.0), (4.0, 7.0 / 27.0)] {
            let found = ratios.iter().filter(|ratio| **ratio == value).count() as f64;
            assert!((found / RESAMPLES as f64 - share).abs() < 0.02, "{value}: {found}");
        }
        let compared = Comparison::new(&pairs, 0.5);
        assert_eq!((compared.ratio, compared.interval), (2.0, [1.0, 4.0]));
        assert_eq!((compared.floor, compared.verdict), (1.0, Verdict::TooFewPairs));
    }

    #[test]
    fn resamples_are_those_of_the_obvious_way() {
        let seed = seed();
        let mut random = Random::new(seed);
        let lens: Vec<u64> = (0..7).map(|_| random.between(1, 9)).collect();
        let mut block = || [random.unit(), random.unit() + 0.1];
        let pairs: Vec<Vec<[f64; 2]>> =
            lens.iter().map(|len| (0..*len).map(|_| block()).collect()).collect();
        let mut draws = Random::new(0);
        for (index, ratio) in resampled(&pairs, 0.9, 200).into_iter().enumerate() {
            let (mut side, mut other) = (Vec::new(), Vec::new());
            for _ in 0..pairs.len() {
                let pair = &pairs[draws.below(pairs.len() as u64) as usize];
                for _ in 0..pair.len() {
                    let [a, b] = pair[draws.below(pair.len() as u64) as usize];
                    side.push(a);
                    other.push(b);
                }
            }
            let expected = Sorted::new(side).percentile(0.9) / Sorted::new(other).percentile(0.9);
            assert!((ratio - expected).abs() < 1e-9, "resample {index}: {ratio}, {expected}");
        }
    }

    #[test]
    fn verdicts_need_an_interval_without_1_and_more_than_noise() {
        let check = |times: &[[f64; 2]], verdict, floor: f64| {
            let compared = Comparison::new(&blocks(times), 0.5);
            assert_eq!(compared.verdict, verdict, "{compared:?}");
            assert!((compared.floor - floor).abs() < 1e-9, "{compared:?}");
        };
        let faster = 1.0 - 1.0 / 1.012;
        check(&[[1.0, 2.0]; 6], Verdict::Faster, faster);
        check(&[[2.0, 1.0]; 6], Verdict::Slower, 0.012);
        check(&[[1.0, 1.0]; 6], Verdict::NoDifference, 0.012);
        check(&[[1.01, 1.0]; 6], Verdict::NoDifference, 0.012);
        check(&[[1.0, 1.01]; 6], Verdict::NoDifference, faster);
        check(&[[1.02, 1.0]; 6], Verdict::Slower, 0.012);
        check(&[[1.0, 1.02]; 6], Verdict::Faster, faster);
        check(&[[1.0, 2.0]; 5], Verdict::TooFewPairs, faster);
        let none = Comparison::new(&[], 0.5);
        assert_eq!(none.verdict, Verdict::TooFewPairs);
        // A tenth faster in the median, and anything between twice as fast and half as fast.
        let scattered = [[[1.0, 2.0], [0.9, 1.0], [2.0, 1.0]]; 2].concat();
        assert_eq!(Comparison::new(&blocks(&scattered), 0.5).verdict, Verdict::NoDifference);
        // Nothing is known of the slowest of a hundred when there are fewer.
        let verdict = |count| Comparison::new(&blocks(&vec![[1.0, 2.0]; count]), 0.99).verdict;
        assert_eq!((verdict(99), verdict(100)), (Verdict::TooFewPairs, Verdict::Faster));
        let tail = Comparison::new(&blocks(&[[1.0, 1.04]; 100]), 0.99);
        assert_eq!(tail.verdict, Verdict::NoDifference);
    }

    /// A verdict is beyond the floor, and what is beyond it has one.
    #[test]
    fn a_floor_is_that_of_the_verdict() {
        let mut random = Random::new(seed());
        let mut verdicts = [0; 2];
        for _ in 0..300 {
            let factor = 0.8 + 0.4 * random.unit();
            let mut noisy = || 1.0 + 0.2 * random.unit();
            let pairs: Vec<_> = (0..8).map(|_| [factor * noisy(), noisy()]).collect();
            let Comparison { ratio, floor, verdict, .. } = Comparison::new(&blocks(&pairs), 0.5);
            let is_there = verdict != Verdict::NoDifference;
            assert_eq!((ratio - 1.0).abs() > floor, is_there, "{ratio} {floor} {verdict}");
            verdicts[usize::from(is_there)] += 1;
        }
        assert!(verdicts.iter().all(|count| *count > 10), "{verdicts:?}");
    }

    /// Of 200 comparisons of `pairs`, in how many the interval holds `truth`, and in how many it
    /// leaves out 1.
    fn covered(truth: f64, mut pairs: impl FnMut() -> Vec<Vec<[f64; 2]>>) -> [u32; 2] {
        let (mut holding, mut separating) = (0, 0);
        for _ in 0..200 {
            let ratios = Sorted::new(resampled(&pairs(), 0.5, 400));
            let [low, high] = [0.025, 0.975].map(|share| ratios.percentile(share));
            holding += u32::from((low..=high).contains(&truth));
            separating += u32::from(!(low..=high).contains(&1.0));
        }
        [holding, separating]
    }

    #[test]
    fn intervals_hold_what_is_true() {
        // Of two equal sides, whose rounds differ by more than the blocks of a round.
        let mut random = Random::new(11);
        let [_, separating] = covered(1.0, || {
            let round = |_| {
                let sides = [(); 2].map(|()| 1.0 + 0.1 * random.unit());
                (0..20).map(|_| sides.map(|side| side * (1.0 + 0.02 * random.unit()))).collect()
            };
            (0..LEAST_PAIRS).map(round).collect()
        });
        assert!(separating <= 24, "{separating} of 200");
        // Blocks of very different work, a side that takes 0.9 of the other's time, noise of 10 %.
        let mut random = Random::new(7);
        let [holding, separating] = covered(0.9, || {
            let block = |_| {
                let work = 1.0 + random.unit();
                vec![[0.9, 1.0].map(|factor| factor * work * (0.95 + 0.1 * random.unit()))]
            };
            (0..60).map(block).collect()
        });
        assert!((180..=200).contains(&holding), "{holding} of 200");
        assert!(separating > 150, "{separating} of 200");
    }
}
