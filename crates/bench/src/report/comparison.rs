//! Comparisons and percentiles, as tables show them.

use super::document::VERDICT;
use super::{Cell, Table, Unit};
use crate::measure::{Comparison, Sorted};

impl Comparison {
    /// The meaning of these columns, for readers of the table.
    pub(crate) const WORDS: &str = "A ratio is the client's time over the other's: below 1 it is \
        faster. It lies between both ends of the 95% interval, a bootstrap's over the pairs. There \
        is a verdict when the interval leaves out 1 and the ratio is beyond the noise of two equal \
        runs; the floor is the smallest difference for which that is so here. Fewer than six \
        pairs, or a percentile beyond which there is no block (of p99 with fewer than 100), get \
        none.";

    /// The columns of a table that [`Self::cells`] fills.
    pub(crate) fn columns(table: Table) -> Table {
        table
            .column("ratio", Unit::Ratio)
            .column("95% from", Unit::Ratio)
            .column("95% to", Unit::Ratio)
            .column("floor", Unit::Percent)
            .column(VERDICT, Unit::Text)
    }

    pub(crate) fn cells(&self) -> [Cell; 5] {
        let [low, high] = self.interval;
        crate::cells![self.ratio, low, high, self.floor, self.verdict.to_string()]
    }
}

impl Sorted {
    /// A percentile, or that there are too few values for it: beyond the 99th of fewer than 100
    /// there is not one.
    pub(crate) fn tail(&self, share: f64) -> Cell {
        let least = (1.0 / (1.0 - share)).round() as usize;
        match self.len() {
            0 => Cell::Missing,
            len if len < least && share < 1.0 => format!("n < {least}").into(),
            _ => self.percentile(share).into(),
        }
    }
}
