//! The resources of the nodes over the time of a long run.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

use crate::measure::Sorted;

/// The resources of a node at a moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reading {
    pub(crate) node: usize,
    /// Since the run began.
    pub(crate) seconds: f64,
    pub(crate) slot: u64,
    /// Since its process was started, and how many were before.
    pub(crate) age_seconds: f64,
    pub(crate) starts: u64,
    pub(crate) resident_kib: u64,
    pub(crate) descriptors: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) files: u64,
}

/// The bytes on the disk below a folder, and the number of files.
pub(crate) fn disk_of(folder: &Path) -> (u64, u64) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // A file may be removed meanwhile.
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => disk_of(&entry.path()),
        Ok(about) => (about.blocks() * 512, 1),
        Err(_) => (0, 0),
    };
    entries.map(of).fold((0, 0), |sum, (bytes, files)| (sum.0 + bytes, sum.1 + files))
}

/// A straight line through points, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// By how much it rises from the first point to the last.
    pub(crate) rise: f64,
    /// The rise of one unit of x.
    pub(crate) slope: f64,
    /// The share of the points' variance that it explains.
    pub(crate) explained: f64,
    pub(crate) median: f64,
}

/// Fewer points say nothing.
const LEAST_POINTS: usize = 8;
/// A rise of less than this share of the median is none, nor one that explains less than this
/// share of the variance.
const RISE: f64 = 0.05;
const EXPLAINED: f64 = 0.5;

impl Trend {
    /// The line through points, from left to right.
    pub(crate) fn of(points: &[[f64; 2]]) -> Option<Self> {
        if points.len() < LEAST_POINTS {
            return None;
        }
        let count = points.len() as f64;
        let mean = |axis: usize| points.iter().map(|point| point[axis]).sum::<f64>() / count;
        let [x, y] = [mean(0), mean(1)];
        let sum = |a: usize, b: usize| {
            let product = |point: &[f64; 2]| (point[a] - [x, y][a]) * (point[b] - [x, y][b]);
            points.iter().map(product).sum::<f64>()
        };
        let (xx, xy, yy) = (sum(0, 0), sum(0, 1), sum(1, 1));
        if xx == 0.0 {
            return None;
        }
        let slope = xy / xx;
        let explained = if yy == 0.0 { 0.0 } else { xy * xy / (xx * yy) };
        let median = Sorted::new(points.iter().map(|point| point[1])).median();
        let rise = slope * (points[points.len() - 1][0] - points[0][0]);
        Some(Self { rise, slope, explained, median })
    }

    /// Whether the points rise.
    pub(crate) fn is_growth(&self) -> bool {
        self.rise > RISE * self.median && self.explained > EXPLAINED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_growth_and_a_level_or_a_saw_is_not() {
        let points = |of: &dyn Fn(f64) -> f64| {
            let points: Vec<[f64; 2]> = (0..100).map(f64::from).map(|x| [x, of(x)]).collect();
            Trend::of(&points).expect("enough")
        };
        let line = points(&|x| 100.0 + x);
        assert!(line.is_growth() && (line.slope - 1.0).abs() < 1e-9, "{line:?}");
        assert!((line.rise - 99.0).abs() < 1e-9 && (line.explained - 1.0).abs() < 1e-9);
        assert!(!points(&|_| 100.0).is_growth());
        assert!(!points(&|x| 100.0 + 10.0 * (x % 7.0)).is_growth());
        assert!(!points(&|x| 1000.0 + 0.1 * x).is_growth());
        assert_eq!(Trend::of(&[[1.0, 1.0]; 3]), None);
        assert_eq!(Trend::of(&[[1.0, 1.0]; 30]), None);
    }
}
