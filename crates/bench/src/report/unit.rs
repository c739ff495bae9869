//! Units: what a number is shown in, and how.

use serde::{Deserialize, Serialize};

/// What the numbers of a column or along an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Names: no numbers.
    #[serde(rename = "text")]
    Text,
    /// How many.
    #[serde(rename = "count")]
    Count,
    /// How many times another.
    #[serde(rename = "ratio")]
    Ratio,
    /// Hundredths, of a share.
    #[serde(rename = "%")]
    Percent,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds, of seconds.
    #[serde(rename = "ms")]
    Ms,
    /// Microseconds, of seconds.
    #[serde(rename = "us")]
    Us,
    /// Kilobytes: 1000 bytes.
    #[serde(rename = "kB")]
    Kb,
    /// Megabytes: 10^6 bytes.
    #[serde(rename = "MB")]
    Mb,
    /// Mebibytes: 2^20 bytes.
    #[serde(rename = "MiB")]
    Mib,
    /// Millions of gas.
    #[serde(rename = "Mgas")]
    Mgas,
    /// Millions of gas a second, of gas a second.
    #[serde(rename = "Mgas/s")]
    MgasPerSecond,
    /// Megabytes a second, of bytes a second.
    #[serde(rename = "MB/s")]
    MbPerSecond,
    /// How many a second.
    #[serde(rename = "1/s")]
    PerSecond,
}

impl Unit {
    /// How many of this unit a quantity is, which is in seconds, bytes, gas or pieces.
    pub fn of(self, quantity: f64) -> f64 {
        match self {
            Self::Text | Self::Count | Self::Ratio | Self::Seconds | Self::PerSecond => quantity,
            Self::Percent => quantity * 100.0,
            Self::Ms => quantity * 1e3,
            Self::Us => quantity * 1e6,
            Self::Kb => quantity / 1e3,
            Self::Mb | Self::Mgas | Self::MgasPerSecond | Self::MbPerSecond => quantity / 1e6,
            Self::Mib => quantity / f64::from(1 << 20),
        }
    }

    /// What stands behind a number; nothing for names, counts and ratios.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Text | Self::Count | Self::Ratio => "",
            Self::Percent => "%",
            Self::Seconds => "s",
            Self::Ms => "ms",
            Self::Us => "µs",
            Self::Kb => "kB",
            Self::Mb => "MB",
            Self::Mib => "MiB",
            Self::Mgas => "Mgas",
            Self::MgasPerSecond => "Mgas/s",
            Self::MbPerSecond => "MB/s",
            Self::PerSecond => "/s",
        }
    }

    /// A name with the unit behind it, where there is one and the name is not the unit itself.
    pub(super) fn after(self, name: &str) -> String {
        match self.symbol() {
            symbol if symbol.is_empty() || name.ends_with(symbol) => name.into(),
            symbol => format!("{name} {symbol}"),
        }
    }

    /// A number as [`show`](Self::show) has it, with the symbol behind it.
    pub(super) fn with_symbol(self, value: f64) -> String {
        format!("{} {}", self.show(value), self.symbol()).trim_end().to_owned()
    }

    /// A number of this unit, to three digits; whole ones are not rounded.
    pub(super) fn show(self, value: f64) -> String {
        if value == 0.0 || self == Self::Count && value.fract() == 0.0 {
            return format!("{value:.0}");
        }
        let before_point = value.abs().log10().floor();
        let digits = (2.0 - before_point).clamp(0.0, 9.0) as usize;
        format!("{value:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_given_in_units() {
        let check = |unit: Unit, quantity: f64, expected: f64| {
            let got = unit.of(quantity);
            assert!((got - expected).abs() < 1e-9, "{quantity} is {got} {}", unit.symbol());
        };
        check(Unit::Ms, 0.0125, 12.5);
        check(Unit::Us, 0.0125, 12_500.0);
        check(Unit::Seconds, 0.0125, 0.0125);
        check(Unit::Kb, 162.0, 0.162);
        check(Unit::Mb, 17_000_000.0, 17.0);
        check(Unit::Mib, 17.0 * 1_048_576.0, 17.0);
        check(Unit::Mb, 1_048_576.0, 1.048_576);
        check(Unit::Mgas, 30e6, 30.0);
        // 30 million gas in 60 ms.
        check(Unit::MgasPerSecond, 30e6 / 0.060, 500.0);
        // 500 MB in a quarter of a second.
        check(Unit::MbPerSecond, 500e6 / 0.25, 2000.0);
        check(Unit::PerSecond, 200_000.0, 200_000.0);
        check(Unit::Percent, 0.05, 5.0);
        check(Unit::Ratio, 1.5, 1.5);
    }

    #[test]
    fn numbers_have_three_digits() {
        let check = |unit: Unit, value: f64, expected: &str| {
            assert_eq!(unit.show(value), expected, "{value}");
        };
        check(Unit::Ms, 0.0, "0");
        check(Unit::Ms, 10_062.4, "10062");
        check(Unit::Ms, 226.13, "226");
        check(Unit::Ms, 58.92, "58.9");
        check(Unit::Ms, 2.994, "2.99");
        check(Unit::Ms, 0.242, "0.242");
        check(Unit::Ms, 0.000_042, "0.0000420");
        check(Unit::Ratio, -0.067, "-0.0670");
        check(Unit::Count, 1_234_567.0, "1234567");
        check(Unit::Count, 2.5, "2.50");
    }

    #[test]
    fn a_name_has_its_unit_once() {
        assert_eq!(Unit::Ms.after("p50"), "p50 ms");
        assert_eq!(Unit::MgasPerSecond.after("Mgas/s"), "Mgas/s");
        assert_eq!(Unit::Count.after("blocks"), "blocks");
    }
}
