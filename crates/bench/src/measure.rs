//! Percentiles of samples, and comparisons of two sides that were measured next to each other.

mod stats;

pub(crate) use self::stats::{Comparison, LEAST_PAIRS, Sorted};
