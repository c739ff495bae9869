//! The values of flags: how each kind is written, and what is said of a wrong one.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// 127.0.0.1, where ports listen unless told otherwise.
pub(crate) const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An IP address; `localhost` is 127.0.0.1.
pub(crate) fn parse_ip(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(LOCALHOST),
        text => text.parse().map_err(|_| "expected an IP address or localhost".to_owned()),
    }
}

/// The number of a port; 0 takes any free one.
pub(crate) fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "expected a port, from 0 (any free one) to 65535".to_owned())
}

/// A whole number.
pub(crate) fn count<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a whole number, 0 or more".to_owned())
}

/// A whole number from 1 on.
pub(crate) fn positive(text: &str) -> Result<usize, String> {
    let expected = || "expected a whole number, 1 or more".to_owned();
    text.parse().ok().filter(|number| *number > 0).ok_or_else(expected)
}

/// Parses a number of bytes: digits, and optionally one of the suffixes K, M, G and T, which are
/// powers of 1024 and may be followed by `iB`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let short = match text.strip_suffix("iB") {
        Some(short) if !short.ends_with(|last: char| last.is_ascii_digit()) => short,
        _ => text,
    };
    let (digits, shift) = match short.char_indices().last() {
        Some((at, 'K' | 'k')) => (&short[..at], 10),
        Some((at, 'M' | 'm')) => (&short[..at], 20),
        Some((at, 'G' | 'g')) => (&short[..at], 30),
        Some((at, 'T' | 't')) => (&short[..at], 40),
        _ => (short, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a number of bytes, as 512MiB, 1GiB, 4G or 4096".into())
}

/// Bytes as [`parse_bytes`] reads them, in the largest unit without a rest.
pub(crate) fn shown_bytes(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(|| bytes.to_string(), |(shift, name)| format!("{}{name}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_are_shown() {
        for (text, bytes) in [("1GiB", 1 << 30), ("512MiB", 512 << 20), ("3K", 3072), ("7", 7)] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
            assert_eq!(parse_bytes(&shown_bytes(bytes)), Ok(bytes), "{text}");
        }
        assert_eq!(shown_bytes(2304 << 20), "2304MiB");
        for text in ["", "G", "1GB", "1.5G", "-1", "512iB", "99999999T"] {
            let fault = parse_bytes(text).expect_err(text);
            assert!(fault.contains("512MiB"), "{fault}");
        }
    }
}
