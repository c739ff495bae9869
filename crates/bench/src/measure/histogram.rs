//! How often each latency came, in memory that does not grow with the calls.

/// Parts that each doubling is split into: a value is known to 1/256 of itself.
const PARTS_BITS: u32 = 8;
const PARTS: usize = 1 << PARTS_BITS;

/// Latencies in nanoseconds, each known to 0.4 %.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        let parts = (64 - PARTS_BITS as usize + 1) * PARTS;
        Self { counts: vec![0; parts], count: 0, sum: 0, max: 0 }
    }

    pub(crate) fn push(&mut self, nanos: u64) {
        self.counts[Self::place(nanos)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.max = self.max.max(nanos);
    }

    /// Small values have a place each; others one by their highest bits.
    const fn place(nanos: u64) -> usize {
        let bits = 64 - nanos.leading_zeros();
        let Some(shift) = bits.checked_sub(PARTS_BITS + 1) else { return nanos as usize };
        shift as usize * PARTS + (nanos >> shift) as usize
    }

    /// The middle of the values at a place.
    const fn middle(place: usize) -> f64 {
        if place < 2 * PARTS {
            return place as f64;
        }
        let shift = place / PARTS - 1;
        let low = (place % PARTS + PARTS) as f64;
        (low + 0.5) * (1u64 << shift) as f64
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// In nanoseconds; NaN of none.
    pub(crate) fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// In nanoseconds, and exact; NaN of none.
    pub(crate) fn max(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.max as f64 }
    }

    /// In nanoseconds, the least value that this share of all does not exceed (nearest rank); NaN
    /// of none.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let mut before = 0;
        for (place, count) in self.counts.iter().enumerate() {
            before += count;
            if before >= rank && self.count > 0 {
                return Self::middle(place).min(self.max as f64);
            }
        }
        f64::NAN
    }

    /// Values and the share of all that is not above each, for a plot.
    pub(crate) fn distribution(&self) -> Vec<(f64, f64)> {
        let mut before = 0;
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled
            .map(|(place, count)| {
                before += count;
                (Self::middle(place), before as f64 / self.count as f64)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_histogram_agrees_with_the_sorted_values() {
        let seed = 11;
        let mut random = Random::new(seed);
        for round in 0..200 {
            let count = 1 + random.below(2_000);
            let mut values: Vec<u64> =
                (0..count).map(|_| random.word() >> random.between(20, 63)).collect();
            let mut parts = [Histogram::new(), Histogram::new()];
            for value in &values {
                parts[random.below(2) as usize].push(*value);
            }
            let [mut all, other] = parts;
            all.add(&other);
            values.sort_unstable();
            let sum: u64 = values.iter().sum();
            assert_eq!(all.count(), count);
            assert_eq!(all.max(), values[values.len() - 1] as f64);
            assert_eq!(all.mean(), sum as f64 / count as f64);
            for share in [0.0, 0.1, 0.5, 0.9, 0.95, 0.99, 1.0] {
                let rank = ((share * count as f64).ceil() as usize).max(1);
                let (exact, got) = (values[rank - 1] as f64, all.percentile(share));
                let off = (got - exact).abs();
                assert!(off <= exact / 256.0, "seed {seed}, round {round}: {got}, not {exact}");
            }
        }
    }

    #[test]
    fn a_histogram_of_few_values_is_exact() {
        let mut histogram = Histogram::new();
        assert!(histogram.percentile(0.5).is_nan() && histogram.mean().is_nan());
        (1..=10).for_each(|value| histogram.push(value));
        let shares = [0.5, 0.9, 0.91, 0.95, 1.0].map(|share| histogram.percentile(share));
        assert_eq!(shares, [5.0, 9.0, 10.0, 10.0, 10.0]);
        assert_eq!((histogram.mean(), histogram.max()), (5.5, 10.0));
        assert_eq!(histogram.distribution()[1], (2.0, 0.2));
        histogram.push(u64::MAX);
        assert_eq!(histogram.max(), u64::MAX as f64);
    }
}
