//! Charts: curves and stacked bars, as what they show.

use serde::{Deserialize, Serialize};

use super::Unit;

/// The shares at which a distribution is kept, between its smallest value and its largest.
pub(super) const DISTRIBUTION_STEPS: usize = 400;

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its title, without the unit.
    pub name: String,
    /// The unit of its numbers.
    pub unit: Unit,
    /// Equal distances are equal ratios.
    pub logarithmic: bool,
}

/// Curves: of a quantity along another, or of the share of values up to each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The subject of the chart.
    pub title: String,
    /// The quantity to the right.
    pub x: Axis,
    /// The quantity upwards.
    pub y: Axis,
    pub(super) series: Vec<Series>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<[f64; 2]>,
}

/// Bars that are made up of parts: what a call is spent on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// The subject of the chart.
    pub title: String,
    /// The quantity along the bars.
    pub axis: Axis,
    pub(super) bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<BarPart>,
}

/// A part of a bar. Parts of one name have one colour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct BarPart {
    pub(super) name: String,
    pub(super) value: f64,
}

impl Bar {
    pub(super) fn total(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }
}

impl Axis {
    /// An axis whose distances are differences.
    pub fn new(name: impl Into<String>, unit: Unit) -> Self {
        Self { name: name.into(), unit, logarithmic: false }
    }

    /// The axis with distances that are ratios: what is not above zero is left out.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self { logarithmic: true, ..self }
    }
}

impl Lines {
    /// A chart without curves.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, series: Vec::new() }
    }

    /// A chart of how values are distributed, for [`Self::values`]: the share of them up to each.
    pub fn distribution(title: impl Into<String>, x: Axis) -> Self {
        Self::new(title, x.logarithmic(), Axis::new("share of all", Unit::Percent))
    }

    /// Adds a curve through points, from left to right; what is not finite is left out.
    pub fn series(
        &mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = [f64; 2]>,
    ) -> &mut Self {
        let points = points.into_iter().map(|[x, y]| [self.x.unit.of(x), self.y.unit.of(y)]);
        let mut points: Vec<_> =
            points.filter(|point| point.iter().all(|value| value.is_finite())).collect();
        points.sort_by(|a, b| a[0].total_cmp(&b[0]));
        self.series.push(Series { name: name.into(), points });
        self
    }

    /// Adds the curve of a distribution; of many values so many are kept that none is missed.
    pub fn values(
        &mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
    ) -> &mut Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let steps = values.len().min(DISTRIBUTION_STEPS);
        let points = (1..=steps).map(|step| {
            let count = values.len() * step / steps;
            [values[count - 1], count as f64 / values.len() as f64]
        });
        let smallest = values.first().map(|value| [*value, 0.0]);
        self.series(name, smallest.into_iter().chain(points))
    }
}

impl Bars {
    /// A chart without bars.
    pub fn new(title: impl Into<String>, axis: Axis) -> Self {
        Self { title: title.into(), axis, bars: Vec::new() }
    }

    /// Adds a bar of named parts; what is not finite is left out.
    pub fn bar<'a>(
        &mut self,
        name: impl Into<String>,
        parts: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> &mut Self {
        let parts = parts.into_iter().filter(|(_, value)| value.is_finite());
        let parts = parts.map(|(name, value)| {
            let (name, value) = (name.into(), self.axis.unit.of(value));
            BarPart { name, value }
        });
        self.bars.push(Bar { name: name.into(), parts: parts.collect() });
        self
    }
}
