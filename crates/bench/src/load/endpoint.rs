//! An endpoint: its address, its credentials, and the pause that it asks for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use client::TlsDial;
use rpc::rest::{HeaderMap, HeaderName, HeaderValue, header};
use rpc::{Client, ClientError, ConnectOptions, JwtSecret, SessionClient};

use super::connection::Connection;

/// For a server to take a connection, and to become a WebSocket.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The first pause where a server limits the rate and does not say for how long; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, whatever the server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Credentials and limits, for all commands that call an endpoint.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct AccessArgs {
    /// Calls a second to each endpoint, at most.
    #[arg(long, value_name = "N")]
    pub(super) max_rate: Option<f64>,
    /// A further header of HTTP and of the opening of a WebSocket: "name: value".
    #[arg(long, value_name = "HEADER")]
    pub(super) header: Vec<String>,
    /// The file with the secret of an engine port.
    #[arg(long, value_name = "FILE")]
    pub(super) jwt_secret: Option<PathBuf>,
    /// A file of NAME=value lines: DEPONENT_RPC_URL, DEPONENT_RPC_TOKEN, DEPONENT_RPC_MAX_RATE. It
    /// is for keys: what flags say is printed in the report. Flags win.
    #[arg(long, value_name = "FILE")]
    pub(super) env: Option<PathBuf>,
    /// Certificates in PEM of those who may sign a server's, instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub(super) cacert: Option<PathBuf>,
}

/// [`AccessArgs`] as read: the flags together with the file.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// Endpoints that the file names.
    pub(super) urls: Vec<String>,
    /// Calls a second.
    pub(super) max_rate: Option<f64>,
    headers: HeaderMap,
    secret: Option<JwtSecret>,
    cacert: Option<PathBuf>,
}

impl AccessArgs {
    /// Reads the files, and checks the flags.
    pub(super) fn read(&self) -> anyhow::Result<Access> {
        let mut access = Access {
            max_rate: self.max_rate,
            secret: self.jwt_secret.as_deref().map(JwtSecret::load).transpose()?,
            cacert: self.cacert.clone(),
            ..Access::default()
        };
        for text in &self.header {
            let parts = text.split_once(':').and_then(|(name, value)| {
                Some((name.trim().parse().ok()?, HeaderValue::from_str(value.trim()).ok()?))
            });
            let (name, value): (HeaderName, _) =
                parts.with_context(|| format!("{text:?} is no name: value"))?;
            access.headers.append(name, value);
        }
        if let Some(path) = &self.env {
            let text = std::fs::read_to_string(path);
            access.add(&text.with_context(|| format!("no {}", path.display()))?)?;
        }
        if let Some(rate) = access.max_rate {
            ensure!((1e-3..1e9).contains(&rate), "{rate} calls a second: 0.001 to 1,000,000,000");
        }
        Ok(access)
    }
}

impl Access {
    /// Reads lines of `NAME=value`, `export` before them or not, quotes around the value or not;
    /// other names, and lines that begin with `#`, are ignored.
    fn add(&mut self, text: &str) -> anyhow::Result<()> {
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (name, value) = line
                .split_once('=')
                .with_context(|| format!("line {number} of the .env file has no ="))?;
            let value = value.trim();
            let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
            let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
            match name.trim() {
                "DEPONENT_RPC_URL" => {
                    self.urls.extend(value.split(',').map(|url| url.trim().to_owned()));
                }
                "DEPONENT_RPC_TOKEN" => {
                    let token = HeaderValue::from_str(&format!("Bearer {value}"));
                    let token = token.ok().context("DEPONENT_RPC_TOKEN is no token")?;
                    self.headers.append(header::AUTHORIZATION, token);
                }
                "DEPONENT_RPC_MAX_RATE" => {
                    let rate = value.parse().ok().context("DEPONENT_RPC_MAX_RATE is no number")?;
                    self.max_rate.get_or_insert(rate);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The protocol that carries the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Http,
    WebSocket,
    /// A value of JSON follows the other, as geth frames them over its Unix socket.
    Ipc,
}

impl Transport {
    pub(super) const ALL: [Self; 3] = [Self::Http, Self::WebSocket, Self::Ipc];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::WebSocket => "ws",
            Self::Ipc => "ipc",
        }
    }
}

/// An endpoint.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) transport: Transport,
    /// As the client wants it: without TLS, which is in its options.
    address: String,
    path: String,
    /// The address as reports show it: the path of a URL may be a key.
    pub(super) shown: String,
    options: ConnectOptions,
    pub(super) backoff: Backoff,
}

impl Endpoint {
    /// Reads `http://host:port/path`, `ws://host:port/path`, the same with https and wss, or the
    /// path of a Unix socket.
    ///
    /// # Errors
    /// `url` is none of these. Over TLS the server is asked for its certificate, which has to be
    /// good.
    pub(super) fn new(url: &str, access: &Access) -> anyhow::Result<Self> {
        let (secret, headers) = (access.secret.clone(), access.headers.clone());
        let mut options = ConnectOptions { secret, headers, ..Default::default() };
        let backoff = Backoff::default();
        let Some((scheme, rest)) = url.split_once("://") else {
            ensure!(!url.is_empty(), "an endpoint without a name");
            let path = std::path::absolute(url).with_context(|| url.to_owned())?;
            let (address, path) = (format!("unix:{}", path.display()), String::new());
            let (transport, shown) = (Transport::Ipc, url.to_owned());
            return Ok(Self { transport, address, path, shown, options, backoff });
        };
        let (transport, usual_port) = match scheme {
            "http" => (Transport::Http, 80),
            "https" => (Transport::Http, 443),
            "ws" => (Transport::WebSocket, 80),
            "wss" => (Transport::WebSocket, 443),
            _ => bail!(
                "{} is neither http(s):// nor ws(s):// nor the path of a socket",
                rpc::shown_address(url)
            ),
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        ensure!(!host.is_empty(), "{} names no host", rpc::shown_address(url));
        let is_clean = !url.contains(|c: char| c.is_ascii_control() || c == ' ');
        ensure!(is_clean, "\"{}\" is no address", rpc::shown_address(url));
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let host = if has_port { host.to_owned() } else { format!("{host}:{usual_port}") };
        if scheme.ends_with('s') && scheme != "ws" {
            options.dial = Some(Arc::new(TlsDial::new(&host, access.cacert.as_deref())?));
        }
        let hidden = if path.is_empty() { "" } else { "/…" };
        let shown = rpc::shown_address(&format!("{scheme}://{host}{hidden}"));
        let path = format!("/{path}");
        let address = format!("{}://{host}{path}", transport.name());
        Ok(Self { transport, address, path, shown, options, backoff })
    }

    /// Opens a connection, each call on which has `timeout`.
    pub(super) async fn open(&self, timeout: Duration) -> Result<Connection, ClientError> {
        let opened = tokio::time::timeout(CONNECT_TIME, self.connect(timeout)).await;
        opened.unwrap_or_else(|_| {
            let address = self.shown.clone();
            Err(ClientError::Timeout { address, limit: CONNECT_TIME })
        })
    }

    async fn connect(&self, timeout: Duration) -> Result<Connection, ClientError> {
        let options = self.options.clone();
        if self.transport == Transport::Http {
            let mut client = Box::new(Client::connect_with(&self.address, options).await?);
            client.set_timeout(timeout);
            return Ok(Connection::Http { client, path: self.path.clone(), next_id: 1 });
        }
        let mut client = SessionClient::connect_with(&self.address, options).await?;
        client.set_timeout(timeout);
        Ok(Connection::Session(client))
    }
}

/// The pause of all connections to an endpoint that limits the rate of calls.
#[derive(Debug)]
pub(super) struct Backoff(Mutex<Pause>);

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Instant,
    /// The length of the last one, if no call succeeded since.
    last: Option<Duration>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self(Mutex::new(Pause { until: Instant::now(), last: None }))
    }
}

impl Backoff {
    fn pause(&self) -> MutexGuard<'_, Pause> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When calls may be sent again.
    pub(super) fn until(&self) -> Instant {
        self.pause().until
    }

    /// Notes that the server refused a call, for `seconds` or without saying how long; by how much
    /// the pause is longer now. Calls that were sent together are refused together: that is one
    /// time.
    pub(super) fn extend(&self, seconds: Option<u64>, now: Instant) -> Duration {
        let mut pause = self.pause();
        if pause.until > now && seconds.is_none() {
            return Duration::ZERO;
        }
        let doubled = pause.last.map_or(FIRST_PAUSE, |last| last * 2);
        let wanted = seconds.map_or(doubled, Duration::from_secs).min(LONGEST_PAUSE);
        let until = pause.until.max(now + wanted);
        let longer = until - pause.until.max(now);
        *pause = Pause { until, last: Some(wanted.max(FIRST_PAUSE)) };
        longer
    }

    /// Notes that a call has succeeded.
    pub(super) fn succeeded(&self) {
        self.pause().last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_or_a_path_and_is_shown_without_keys() {
        let none = Access::default();
        for (url, transport, address, shown) in [
            ("http://a:1", Transport::Http, "http://a:1/", "http://a:1"),
            ("http://a/key?x", Transport::Http, "http://a:80/key?x", "http://a:80"),
            ("ws://[::1]:8546/", Transport::WebSocket, "ws://[::1]:8546/", "ws://[::1]:8546"),
            ("ws://[::1]", Transport::WebSocket, "ws://[::1]:80/", "ws://[::1]:80"),
            ("/run/geth.ipc", Transport::Ipc, "unix:/run/geth.ipc", "/run/geth.ipc"),
        ] {
            let endpoint = Endpoint::new(url, &none).expect(url);
            assert_eq!((endpoint.transport, &*endpoint.address), (transport, address));
            assert_eq!(endpoint.shown, shown);
        }
        for fault in ["ftp://a", "http://", "https://", "", "http://a/b c", "ws://a\r\n"] {
            Endpoint::new(fault, &none).expect_err(fault);
        }
        let header = vec!["no header".to_owned()];
        AccessArgs { header, ..AccessArgs::default() }.read().expect_err("no colon");
    }

    #[test]
    fn an_env_file_may_have_quotes_comments_and_other_names() {
        let text = "# a comment\n\nexport DEPONENT_RPC_URL='http://a/k=1, ws://b'\nOTHER=1\n\
                    DEPONENT_RPC_TOKEN = \"t\"\nDEPONENT_RPC_MAX_RATE=2.5\n";
        let mut access = Access::default();
        access.add(text).expect("lines");
        assert_eq!(access.urls, ["http://a/k=1", "ws://b"]);
        assert_eq!(access.headers["authorization"], "Bearer t");
        assert_eq!(access.max_rate, Some(2.5));
        access.add("DEPONENT_RPC_MAX_RATE=3").expect("a number");
        assert_eq!(access.max_rate, Some(2.5), "what was said first wins");
        access.add("DEPONENT_RPC_MAX_RATE=fast").expect_err("no number");
        access.add("DEPONENT_RPC_URL").expect_err("no value");
    }

    #[test]
    fn a_pause_doubles_until_a_call_succeeds() {
        let (backoff, start) = (Backoff::default(), Instant::now());
        let secs = Duration::from_secs;
        for (seconds, at, expected) in [(None, 0, 1), (None, 0, 0), (None, 2, 2), (None, 5, 4)] {
            assert_eq!(backoff.extend(seconds, start + secs(at)), secs(expected));
        }
        backoff.succeeded();
        assert_eq!(backoff.extend(None, start + secs(10)), secs(1));
        assert_eq!(backoff.extend(Some(30), start + secs(10)), secs(29));
        assert_eq!(backoff.until(), start + secs(40));
        assert_eq!(backoff.extend(Some(3_600), start + secs(50)), secs(60));
    }
}
