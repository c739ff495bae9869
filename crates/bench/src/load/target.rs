//! Where calls go, and what they are.

use std::fmt;
use std::io::{self, Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rpc::{JwtSecret, RawValue};

use super::message::{Messages, Wire, push_frame_head};
use crate::stream::Stream;
use crate::tls::Trust;

/// For a server to take a connection, and to become a WebSocket.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The first pause where a server asks for patience and does not say how long; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, whoever asks.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Most calls before those of all weights come again.
const CYCLE_LEN: u64 = 10_000;
/// Characters of params that are shown.
const SHOWN_PARAMS: usize = 30;
/// Digits of every id, so that no request's length depends on it.
pub(super) const ID_DIGITS: usize = 10;
/// The first id of a connection.
pub(super) const FIRST_ID: u64 = 1_000_000_000;

/// An endpoint.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) wire: Wire,
    /// Where TLS is under it.
    trust: Option<Trust>,
    /// `host:port`, or the path of a Unix socket.
    place: String,
    path: String,
    headers: Vec<String>,
    secret: Option<JwtSecret>,
    pub(super) patience: Patience,
}

impl Target {
    /// Reads `http://host:port/path`, `ws://host:port/path`, the same with https and wss, or the
    /// path of a Unix socket. Each of `headers` is `name: value`; a secret makes the token of an
    /// engine port; `cacert` has the certificates that are trusted in the system's stead.
    pub(super) fn parse(
        url: &str,
        headers: &[String],
        secret: Option<&JwtSecret>,
        cacert: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let (wire, is_secure, rest) = match url.split_once("://") {
            Some(("http", rest)) => (Wire::Http, false, rest),
            Some(("https", rest)) => (Wire::Http, true, rest),
            Some(("ws", rest)) => (Wire::WebSocket, false, rest),
            Some(("wss", rest)) => (Wire::WebSocket, true, rest),
            Some(_) => bail!("{url} is neither http(s):// nor ws(s):// nor the path of a socket"),
            None => (Wire::Ipc, false, url),
        };
        let (host, path) = match rest.split_once('/') {
            _ if wire == Wire::Ipc => (rest, ""),
            Some((host, path)) => (host, path),
            None => (rest, ""),
        };
        ensure!(!host.is_empty(), "{url} names no host");
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let port = match is_secure {
            _ if wire == Wire::Ipc || has_port => "",
            true => ":443",
            false => ":80",
        };
        let place = format!("{host}{port}");
        let is_clean = |text: &str| !text.contains(|letter: char| letter.is_ascii_control());
        for header in headers {
            ensure!(header.contains(':') && is_clean(header), "{header:?} is no name: value");
        }
        ensure!(is_clean(url) && !path.contains(' '), "{url:?} is no address");
        let trust = is_secure.then(|| Trust::new(cacert)).transpose()?;
        let (path, headers, secret) = (format!("/{path}"), headers.to_vec(), secret.cloned());
        Ok(Self { wire, trust, place, path, headers, secret, patience: Patience::default() })
    }

    /// The head of a request up to the value of its content-length, or of the opening handshake.
    pub(super) fn head(&self) -> Vec<u8> {
        let Self { place, path, .. } = self;
        let (method, body) = match self.wire {
            Wire::Http => (
                "POST",
                "Content-Type: application/json\r\nAccept-Encoding: identity\r\nContent-Length: ",
            ),
            // The nonce of RFC 6455's example.
            _ => (
                "GET",
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            ),
        };
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {place}\r\n");
        if let Some(secret) = &self.secret {
            head.push_str(&format!("Authorization: Bearer {}\r\n", secret.token()));
        }
        self.headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
        head.push_str(body);
        head.into_bytes()
    }

    /// Opens a connection. It waits for that, and whoever reads from it for more, with a limit.
    pub(super) fn open(&self) -> io::Result<(Stream, Messages)> {
        let mut messages = Messages::new(self.wire);
        let mut stream = match (self.wire, &self.trust) {
            (Wire::Ipc, _) => Stream::unix(&PathBuf::from(&self.place))?,
            (_, None) => Stream::tcp(&self.place, CONNECT_TIME)?,
            (_, Some(trust)) => Stream::tls(&self.place, CONNECT_TIME, trust)?,
        };
        stream.set_read_timeout(CONNECT_TIME)?;
        if self.wire == Wire::WebSocket {
            stream.write_all(&self.head())?;
            messages.wire = Wire::Http;
            let answer = loop {
                if messages.read(&mut stream)? == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                if let Some(answer) = messages.next().map_err(|_| ErrorKind::InvalidData)? {
                    break answer;
                }
            };
            if answer.status != 101 {
                let status = answer.status;
                return Err(Error::other(format!("no WebSocket: {}", refused(status))));
            }
            messages.wire = Wire::WebSocket;
        }
        Ok((stream, messages))
    }

    /// What the server says that it is. One that cannot be reached, or wants a token, is an error.
    pub(super) fn version(&self) -> anyhow::Result<String> {
        let said = self.said_version().with_context(|| format!("no answer from {self}"))?;
        Ok(said.unwrap_or_else(|| "does not say its version".into()))
    }

    fn said_version(&self) -> anyhow::Result<Option<String>> {
        #[derive(serde::Deserialize)]
        struct Answer {
            result: String,
        }
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"web3_clientVersion","params":[]}"#;
        let (mut stream, mut messages) = self.open()?;
        let mut request = Vec::new();
        match self.wire {
            Wire::Http => {
                request.extend(self.head());
                request.extend(format!("{}\r\n\r\n", body.len()).bytes());
            }
            Wire::WebSocket => push_frame_head(&mut request, false, true, body.len()),
            Wire::Ipc => {}
        }
        request.extend(body.bytes());
        stream.write_all(&request)?;
        loop {
            ensure!(messages.read(&mut stream)? > 0, "no answer");
            let broken = |_| std::io::Error::from(ErrorKind::InvalidData);
            while let Some(message) = messages.next().map_err(broken)? {
                ensure!(![401, 403].contains(&message.status), refused(message.status));
                if !message.is_ping {
                    let answer = serde_json::from_slice(messages.bytes(&message.body));
                    return Ok(answer.ok().map(|Answer { result }| result));
                }
            }
        }
    }
}

/// What an HTTP status without a result means.
fn refused(status: u16) -> String {
    let advice = if [401, 403].contains(&status) { ": --jwt-secret or --header?" } else { "" };
    format!("HTTP status {status}{advice}")
}

/// Without what may be a key: the path of a URL.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = if self.path.len() > 1 { "/…" } else { "" };
        match self.wire {
            Wire::Ipc => f.write_str(&self.place),
            wire => {
                let secure = if self.trust.is_some() { "s" } else { "" };
                write!(f, "{}{secure}://{}{hidden}", wire.name(), self.place)
            }
        }
    }
}

/// How long a server wants to be left alone: all connections to it wait together.
#[derive(Debug)]
pub(super) struct Patience(Mutex<Pause>);

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Instant,
    /// How long the last one was, if nothing was answered since.
    last: Option<Duration>,
}

impl Default for Patience {
    fn default() -> Self {
        Self(Mutex::new(Pause { until: Instant::now(), last: None }))
    }
}

impl Patience {
    fn with<T>(&self, act: impl FnOnce(&mut Pause) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// When calls may be sent again.
    pub(super) fn until(&self) -> Instant {
        self.with(|pause| pause.until)
    }

    /// The server has asked for it, for `seconds` or without saying how long; by how much the pause
    /// is longer now. Calls that were sent together are refused together: that is one time.
    pub(super) fn asked(&self, seconds: Option<u64>, now: Instant) -> Duration {
        self.with(|pause| {
            if pause.until > now && seconds.is_none() {
                return Duration::ZERO;
            }
            let doubled = pause.last.map_or(FIRST_PAUSE, |last| last * 2);
            let wanted = seconds.map_or(doubled, Duration::from_secs).min(LONGEST_PAUSE);
            let until = pause.until.max(now + wanted);
            let longer = until - pause.until.max(now);
            *pause = Pause { until, last: Some(wanted.max(FIRST_PAUSE)) };
            longer
        })
    }

    /// A call has succeeded.
    pub(super) fn answered(&self) {
        self.with(|pause| pause.last = None);
    }
}

/// The calls that are made, over and over, in the same order.
#[derive(Debug)]
pub(super) struct Mix {
    pub(super) kinds: Vec<Kind>,
    /// Which kind comes when.
    pub(super) cycle: Vec<u16>,
}

/// A call but for its id.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: String,
    /// What stands after the id.
    pub(super) rest: Vec<u8>,
}

/// What stands before the id.
pub(super) const BEFORE_ID: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

impl Kind {
    /// Its method and its params, the middle of long ones left out.
    pub(super) fn shown(&self) -> String {
        let rest = String::from_utf8_lossy(&self.rest);
        let params = rest.split_once(",\"params\":").map_or("", |(_, params)| params);
        let params: Vec<char> = params.strip_suffix('}').unwrap_or(params).chars().collect();
        let params: String = match params.len() {
            0..=SHOWN_PARAMS => params.iter().collect(),
            len => {
                let [start, end] = [&params[..SHOWN_PARAMS - 15], &params[len - 12..]];
                start.iter().chain(&['…']).chain(end).collect()
            }
        };
        match params.as_str() {
            "[]" => self.name.clone(),
            params => format!("{} {params}", self.name),
        }
    }

    pub(super) const fn len(&self) -> usize {
        BEFORE_ID.len() + ID_DIGITS + self.rest.len()
    }
}

impl Mix {
    /// Reads calls: `NAME`, `NAME PARAMS`, and before that `WEIGHT*`; none: a usual mix.
    pub(super) fn parse(calls: &[String]) -> anyhow::Result<Self> {
        let usual = [
            "2*eth_blockNumber",
            "eth_chainId",
            r#"eth_getBalance ["0x0000000000000000000000000000000000000000","latest"]"#,
            // The deposit contract of the main network, and the withdrawal requests' one.
            r#"eth_getBalance ["0x00000000219ab540356cbb839cbe05303d7705fa","latest"]"#,
            r#"eth_getBalance ["0x00000961ef480eb55e80d19ad83579a64c007002","latest"]"#,
        ]
        .map(str::to_owned);
        let (mut kinds, mut weights) = (Vec::new(), Vec::new());
        for call in if calls.is_empty() { &usual } else { calls } {
            let (weight, call) = match call.split_once('*') {
                Some((weight, rest)) if weight.bytes().all(|digit| digit.is_ascii_digit()) => {
                    (weight.parse().with_context(|| format!("no weight: {weight}"))?, rest)
                }
                _ => (1, call.as_str()),
            };
            let (name, params) = call.trim().split_once(' ').unwrap_or((call.trim(), "[]"));
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            ensure!(!name.is_empty() && name.chars().all(is_name), "{name:?} is no method");
            let read: &RawValue = serde_json::from_str(params)
                .with_context(|| format!("the params of {name} are no JSON: {params}"))?;
            ensure!(read.get().starts_with(['[', '{']), "the params of {name} are no list");
            let rest = format!(r#","method":"{name}","params":{}}}"#, read.get()).into_bytes();
            kinds.push(Kind { name: name.into(), rest });
            weights.push(weight);
        }
        let total: u64 = weights.iter().sum();
        ensure!((1..=CYCLE_LEN).contains(&total), "the weights are {total} together");
        // Each time who is furthest behind its share: equal calls are spread as evenly as can be.
        let mut behind = vec![0; weights.len()];
        let cycle = (0..total).map(|_| {
            behind.iter_mut().zip(&weights).for_each(|(behind, weight)| *behind += *weight as i64);
            let (next, _) =
                (0..).zip(&behind).max_by_key(|(_, behind)| **behind).unwrap_or((0, &0));
            behind[usize::from(next)] -= total as i64;
            next
        });
        let cycle = cycle.collect();
        Ok(Self { kinds, cycle })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_by_their_weights_spread_evenly() {
        let calls = ["2*a", "b [1]", "c", "4*d {}"];
        let mix = Mix::parse(&calls.map(str::to_owned)).expect("calls");
        let names: String = mix.cycle.iter().map(|k| &*mix.kinds[usize::from(*k)].name).collect();
        assert_eq!(names.len(), 8);
        for (name, count) in [('a', 2), ('b', 1), ('c', 1), ('d', 4)] {
            assert_eq!(names.matches(name).count(), count, "{names}");
        }
        assert!(!names.contains("ddd") && !names.contains("aa"), "{names}");
        assert_eq!(mix.kinds[1].rest, br#","method":"b","params":[1]}"#);
        for kind in &Mix::parse(&[]).expect("the usual ones").kinds {
            let text = [BEFORE_ID, b"1000000000", &kind.rest].concat();
            serde_json::from_slice::<serde_json::Value>(&text).expect("JSON");
            assert_eq!(text.len(), kind.len());
        }
        for fault in ["", "a [", "a 1", "0*a", "a\"b", "99999*a", "x*a"] {
            Mix::parse(&[fault.into()]).expect_err(fault);
        }
    }

    #[test]
    fn an_address_is_a_url_or_a_path_and_is_shown_without_keys() {
        let check = |url: &str, wire, place: &str, path: &str, shown: &str| {
            let cacert = Some(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tls/other.pem")));
            let target = Target::parse(url, &[], None, cacert).expect(url);
            let parts = (target.wire, &*target.place, &*target.path);
            assert_eq!(parts, (wire, place, path));
            assert_eq!(target.to_string(), shown);
        };
        check("http://a:1", Wire::Http, "a:1", "/", "http://a:1");
        check("http://a/key?x", Wire::Http, "a:80", "/key?x", "http://a:80/…");
        check("https://a/key", Wire::Http, "a:443", "/key", "https://a:443/…");
        check("wss://a:1/", Wire::WebSocket, "a:1", "/", "wss://a:1");
        check("ws://[::1]:8546/", Wire::WebSocket, "[::1]:8546", "/", "ws://[::1]:8546");
        check("ws://[::1]", Wire::WebSocket, "[::1]:80", "/", "ws://[::1]:80");
        check("/run/geth.ipc", Wire::Ipc, "/run/geth.ipc", "/", "/run/geth.ipc");
        for fault in ["ftp://a", "http://", "https://", "", "http://a/b c", "ws://a\r\n"] {
            Target::parse(fault, &[], None, None).expect_err(fault);
        }
        Target::parse("http://a", &["no header".into()], None, None).expect_err("no colon");
    }

    #[test]
    fn patience_doubles_until_a_call_succeeds() {
        let (patience, start) = (Patience::default(), Instant::now());
        let secs = Duration::from_secs;
        assert_eq!(patience.asked(None, start), secs(1));
        assert_eq!(patience.asked(None, start), Duration::ZERO);
        assert_eq!(patience.asked(None, start + secs(2)), secs(2));
        assert_eq!(patience.asked(None, start + secs(5)), secs(4));
        patience.answered();
        assert_eq!(patience.asked(None, start + secs(10)), secs(1));
        assert_eq!(patience.asked(Some(30), start + secs(10)), secs(29));
        assert_eq!(patience.until(), start + secs(40));
        assert_eq!(patience.asked(Some(3_600), start + secs(50)), secs(60));
    }
}
