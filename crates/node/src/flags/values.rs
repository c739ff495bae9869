//! The values of flags: how each kind is written, and what is said of a wrong one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

use alloy_primitives::{Bytes, hex};

use crate::limits::{EXTRA_DATA_BYTES, THREADS};

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

/// A number of threads.
pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    let expected = || format!("expected a number of threads, from 0 to {THREADS}");
    text.parse().ok().filter(|number| *number <= THREADS).ok_or_else(expected)
}

/// A name under which a port may be called, or `*`.
pub(crate) fn parse_host(text: &str) -> Result<String, String> {
    let name = text.trim();
    let is_one = name == "*" || is_host(name) || name.parse::<IpAddr>().is_ok();
    let expected = "expected a host name without a port, as node.example, or * for any";
    is_one.then(|| name.to_owned()).ok_or_else(|| expected.into())
}

/// A web page: an origin, a name with its port, a name, or `*`.
pub(crate) fn parse_page(text: &str) -> Result<String, String> {
    let page = text.trim();
    let expected = "expected a web page as https://app.example, a name with its port, a name, or * \
                    for any; for none leave the flag out";
    (page == "*" || is_page(page)).then(|| page.to_owned()).ok_or_else(|| expected.into())
}

fn is_page(page: &str) -> bool {
    let (scheme, authority) = page.split_once("://").unwrap_or(("http", page));
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    is_scheme
        && port.is_none_or(|port| port.parse::<u16>().is_ok())
        && address.map_or(is_host(host), |address| address.parse::<Ipv6Addr>().is_ok())
}

fn is_host(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !name.is_empty() && name.bytes().all(is_allowed)
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

/// The extra data of a block: text, or bytes in hex.
pub(crate) fn parse_extra_data(text: &str) -> Result<Bytes, String> {
    let expected = "expected text, or bytes in hex as 0x64657631, of 32 bytes at most";
    let bytes: Option<Bytes> = match text.strip_prefix("0x") {
        Some(hex) => hex::decode(hex).ok().map(Into::into),
        None => Some(text.to_owned().into_bytes().into()),
    };
    bytes.filter(|bytes| bytes.len() <= EXTRA_DATA_BYTES).ok_or_else(|| expected.into())
}

/// Bytes as [`parse_bytes`] reads them, in the largest unit without a rest.
pub(crate) fn shown_bytes(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(|| bytes.to_string(), |(shift, name)| format!("{}{name}", bytes >> shift))
}

/// A duration from which something holds, if ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Threshold(pub(crate) Option<Duration>);

/// A duration as Go writes it, with one unit; one below zero is none.
pub(crate) fn parse_duration(text: &str) -> Result<Threshold, String> {
    let expected = || "expected a duration, as 500ms, 2s or 1m; 0 or a negative one".to_owned();
    let (is_negative, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (true, magnitude),
        None => (false, text),
    };
    let end = magnitude.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = magnitude.split_at(end.unwrap_or(magnitude.len()));
    let number: f64 = number.parse().map_err(|_| expected())?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "" if number == 0.0 => 1.0,
        _ => return Err(expected()),
    };
    let duration = Duration::try_from_secs_f64(number * seconds).map_err(|_| expected())?;
    Ok(Threshold((!is_negative).then_some(duration)))
}

/// A duration as Go writes it, and as [`parse_duration`] reads those with one unit.
pub(crate) fn shown_duration(time: Duration) -> String {
    let small = [("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)];
    if time < Duration::from_secs(1) {
        let unit = small.iter().find(|(_, seconds)| time.as_secs_f64() >= *seconds);
        return unit.map_or_else(
            || "0s".into(),
            |(unit, seconds)| {
                format!("{}{unit}", (time.as_secs_f64() / seconds * 1e6).round() / 1e6)
            },
        );
    }
    let (minutes, seconds) = (time.as_secs() / 60, time.as_secs() % 60);
    let fraction = f64::from(time.subsec_micros()) / 1e6;
    let seconds = format!("{}s", seconds as f64 + fraction);
    match (minutes / 60, minutes % 60) {
        (0, 0) => seconds,
        (0, minutes) => format!("{minutes}m{seconds}"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
    }
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

    #[test]
    fn extra_data_is_text_or_hex_of_32_bytes() {
        let read = |text: &str| parse_extra_data(text).map(|bytes| bytes.to_vec());
        assert_eq!(read("me & you"), Ok(b"me & you".to_vec()));
        assert_eq!(read("0x00ff"), Ok(vec![0, 0xff]));
        assert_eq!(read(""), Ok(Vec::new()));
        assert_eq!(read(&"x".repeat(32)), Ok(vec![b'x'; 32]));
        for text in ["0x0", "0xzz", &"x".repeat(33), &format!("0x{}", "00".repeat(33))] {
            assert!(read(text).unwrap_err().contains("32 bytes"), "{text}");
        }
    }

    #[test]
    fn durations_are_shown_as_go_shows_them() {
        let shown = |nanos| shown_duration(Duration::from_nanos(nanos));
        let given = [0, 7, 1_500, 250_000_000, 5_000_000_000, 1_500_000_000, 90_000_000_000];
        assert_eq!(given.map(shown), ["0s", "7ns", "1.5µs", "250ms", "5s", "1.5s", "1m30s"]);
        assert_eq!(shown_duration(Duration::from_secs(7_200)), "2h0m0s");
    }

    #[test]
    fn durations_are_those_of_go() {
        let millis = |text| parse_duration(text).expect(text).0.map(|time| time.as_millis());
        let read = ["0", "0s", "250ms", "1.5s", "2m", "-1s", "-1ns"].map(millis);
        let expected = [Some(0), Some(0), Some(250), Some(1500), Some(120_000), None, None];
        assert_eq!(read, expected);
        for text in ["", "2", "s", "1x", "1s2", "--1s", "1e400s"] {
            parse_duration(text).expect_err(text);
        }
    }
}
