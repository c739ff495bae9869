//! Orders and averages.

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

    /// The value below which `share` of them lie, between neighbours by proportion; NaN of none.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(Sorted::new([]).median().is_nan());
    }
}
