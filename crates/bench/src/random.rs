//! Numbers that look random and follow from a seed alone, on every machine.

/// A generator: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// From 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 to below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        assert_ne!(end, 0, "nothing to draw from");
        ((u128::from(self.word()) * u128::from(end)) >> 64) as u64
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// `true` in this share of draws.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.word().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}

/// Ranks of which the k-th is drawn in proportion to `1 / k^exponent`.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    /// The share of all ranks up to each.
    cumulative: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(ranks: usize, exponent: f64) -> Self {
        let weights = (1..=ranks).map(|rank| (rank as f64).powf(-exponent));
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|share| *share /= sum);
        Self { cumulative }
    }

    /// A rank, counted from 0.
    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        let share = random.unit();
        self.cumulative.partition_point(|end| *end <= share).min(self.cumulative.len() - 1)
    }

    /// `total` split among the ranks, at least 1 each; the first takes what rounding leaves.
    pub(crate) fn split(&self, total: u64) -> Vec<u64> {
        let mut before = 0.0;
        let mut parts: Vec<u64> = self
            .cumulative
            .iter()
            .map(|end| {
                let share = end - before;
                before = *end;
                ((share * total as f64) as u64).max(1)
            })
            .collect();
        let rest = total.saturating_sub(parts.iter().sum());
        parts[0] += rest;
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_drawn_in_proportion() {
        let (zipf, mut random) = (Zipf::new(100, 1.0), Random::new(7));
        let mut counts = [0u32; 100];
        (0..100_000).for_each(|_| counts[zipf.draw(&mut random)] += 1);
        let ratio = f64::from(counts[0]) / f64::from(counts[9]);
        assert!((8.0..12.5).contains(&ratio), "{ratio}");
        assert!(counts.iter().all(|count| *count > 0));
    }

    #[test]
    fn a_split_has_the_whole() {
        assert_eq!(Zipf::new(1000, 1.0).split(2_000_000).iter().sum::<u64>(), 2_000_000);
        assert_eq!(Zipf::new(3, 1.0).split(1), [1, 1, 1]);
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut random = Random::new(1);
        let draws: Vec<u64> = (0..1000).map(|_| random.between(3, 5)).collect();
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&3), Some(&5)));
        assert_eq!(random.bytes(13).len(), 13);
    }
}
