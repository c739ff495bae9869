//! Units, and how numbers of them are shown.

use serde::{Deserialize, Serialize};

/// The unit of the numbers of a column or along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Names: no numbers.
    Text,
    /// Numbers of things.
    Count,
    /// Multiples of another quantity.
    Ratio,
    /// Hundredths, of a share.
    #[serde(rename = "%")]
    Percent,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds, of seconds.
    Ms,
    /// Microseconds, of seconds.
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
    /// Numbers of things a second.
    #[serde(rename = "1/s")]
    PerSecond,
}

impl Unit {
    /// The symbol, and by what a quantity is multiplied and divided to be in this unit.
    const fn symbol_and_factors(self) -> (&'static str, f64, f64) {
        match self {
            Self::Text | Self::Count | Self::Ratio => ("", 1.0, 1.0),
            Self::Percent => ("%", 100.0, 1.0),
            Self::Seconds => ("s", 1.0, 1.0),
            Self::Ms => ("ms", 1e3, 1.0),
            Self::Us => ("µs", 1e6, 1.0),
            Self::Kb => ("kB", 1.0, 1e3),
            Self::Mb => ("MB", 1.0, 1e6),
            Self::Mib => ("MiB", 1.0, 1_048_576.0),
            Self::Mgas => ("Mgas", 1.0, 1e6),
            Self::MgasPerSecond => ("Mgas/s", 1.0, 1e6),
            Self::MbPerSecond => ("MB/s", 1.0, 1e6),
            Self::PerSecond => ("/s", 1.0, 1.0),
        }
    }

    /// A quantity in this unit, given in seconds, bytes, gas or pieces.
    pub fn of(self, quantity: f64) -> f64 {
        let (_, times, over) = self.symbol_and_factors();
        quantity * times / over
    }

    /// The symbol behind a number; nothing for names, counts and ratios.
    pub const fn symbol(self) -> &'static str {
        self.symbol_and_factors().0
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
        for (unit, quantity, expected) in [
            (Unit::Ms, 0.0125, 12.5),
            (Unit::Us, 0.0125, 12_500.0),
            (Unit::Seconds, 0.0125, 0.0125),
            (Unit::Kb, 162.0, 0.162),
            (Unit::Mb, 17_000_000.0, 17.0),
            (Unit::Mib, 17.0 * 1_048_576.0, 17.0),
            (Unit::Mb, 1_048_576.0, 1.048_576),
            (Unit::Mgas, 30e6, 30.0),
            // 30 million gas in 60 ms.
            (Unit::MgasPerSecond, 30e6 / 0.060, 500.0),
            // 500 MB in a quarter of a second.
            (Unit::MbPerSecond, 500e6 / 0.25, 2000.0),
            (Unit::PerSecond, 200_000.0, 200_000.0),
            (Unit::Percent, 0.05, 5.0),
            (Unit::Ratio, 1.5, 1.5),
        ] {
            let got = unit.of(quantity);
            assert!((got - expected).abs() < 1e-9, "{quantity} is {got} {}", unit.symbol());
        }
    }

    #[test]
    fn numbers_have_three_digits() {
        for (unit, value, expected) in [
            (Unit::Ms, 0.0, "0"),
            (Unit::Ms, 10_062.4, "10062"),
            (Unit::Ms, 226.13, "226"),
            (Unit::Ms, 58.92, "58.9"),
            (Unit::Ms, 2.994, "2.99"),
            (Unit::Ms, 0.242, "0.242"),
            (Unit::Ms, 0.000_042, "0.0000420"),
            (Unit::Ratio, -0.067, "-0.0670"),
            (Unit::Count, 1_234_567.0, "1234567"),
            (Unit::Count, 2.5, "2.50"),
        ] {
            assert_eq!(unit.show(value), expected, "{value}");
        }
    }

    #[test]
    fn a_name_has_its_unit_once() {
        assert_eq!(Unit::Ms.after("p50"), "p50 ms");
        assert_eq!(Unit::MgasPerSecond.after("Mgas/s"), "Mgas/s");
        assert_eq!(Unit::Count.after("blocks"), "blocks");
    }
}
