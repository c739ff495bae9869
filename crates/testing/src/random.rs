use std::hash::{BuildHasher as _, RandomState};

/// How often a test with random input repeats itself: the number in the environment variable
/// `name`; without one `usual`, or `full` where `DEPONENT_FULL` is set, as by
/// `cargo xtask ci --full`.
///
/// # Panics
/// If the variable is not a number.
pub fn rounds(name: &str, usual: u32, full: u32) -> u32 {
    match std::env::var(name) {
        Ok(rounds) => rounds.parse().unwrap_or_else(|_| panic!("{name}={rounds} is no number")),
        Err(_) if std::env::var_os("DEPONENT_FULL").is_some() => full,
        Err(_) => usual,
    }
}

/// The seed of a test's random choices: the number in `DEPONENT_SEED`, else a new one at each call.
/// It is printed as that variable, so that it can be given back.
///
/// # Panics
/// If the variable is not a number.
pub fn seed() -> u64 {
    let seed = match std::env::var("DEPONENT_SEED") {
        Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("DEPONENT_SEED={seed} is no number")),
        // The standard library's only randomness.
        Err(_) => RandomState::new().hash_one(0),
    };
    println!("DEPONENT_SEED={seed}");
    seed
}

/// A generator of pseudo-random numbers (SplitMix64).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator with the [`seed`] of this run.
    pub fn seeded() -> Self {
        Self(seed())
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }

    /// Whether the next number is a multiple of `count`.
    ///
    /// # Panics
    /// If `count` is zero.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of the values.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// A damaged copy of `bytes`: truncated, or with bytes changed, inserted or removed.
    pub fn damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len().max(1)).min(bytes.len());
            let end = (at + self.below(9)).min(bytes.len());
            match self.below(5) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..end)),
                2 => {
                    let inserted = vec![self.number() as u8; self.below(9)];
                    bytes.splice(at..at, inserted).for_each(drop);
                }
                3 => bytes[at..end].fill(self.number() as u8),
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
        bytes
    }
}
