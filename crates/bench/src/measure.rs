//! Percentiles of samples, and comparisons of two sides that were measured next to each other.

mod histogram;
mod stats;

pub(crate) use self::histogram::Histogram;
pub use self::stats::Verdict;
pub(crate) use self::stats::{Comparison, LEAST_PAIRS, Sorted};
