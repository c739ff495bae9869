//! An endpoint: where calls go, what lets them in, and how long it wants to be left alone.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rpc::rest::{HeaderMap, HeaderName, HeaderValue, header};
use rpc::{Client, ClientError, ConnectOptions, JwtSecret, SessionClient};

use super::link::Link;
use super::tls::TlsDial;

/// For a server to take a connection, and to become a WebSocket.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The first pause where a server asks for patience and does not say how long; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, whatever the server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What lets calls in, for all commands that call an endpoint.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Access {
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

/// [`Access`] as read: the flags together with the file.
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// Endpoints that the file names.
    pub(super) urls: Vec<String>,
    /// Calls a second.
    pub(super) max_rate: Option<f64>,
    headers: HeaderMap,
    secret: Option<JwtSecret>,
    cacert: Option<PathBuf>,
}

impl Access {
    /// Reads the files, and checks the flags.
    pub(super) fn admission(&self) -> anyhow::Result<Admission> {
        let mut admission = Admission {
            max_rate: self.max_rate,
            secret: self.jwt_secret.as_deref().map(JwtSecret::load).transpose()?,
            cacert: self.cacert.clone(),
            ..Admission::default()
        };
        for text in &self.header {
            let parts = text.split_once(':').and_then(|(name, value)| {
                Some((name.trim().parse().ok()?, HeaderValue::from_str(value.trim()).ok()?))
            });
            let (name, value): (HeaderName, _) =
                parts.with_context(|| format!("{text:?} is no name: value"))?;
            admission.headers.append(name, value);
        }
        if let Some(path) = &self.env {
            let text = std::fs::read_to_string(path);
            admission.read(&text.with_context(|| format!("no {}", path.display()))?)?;
        }
        if let Some(rate) = admission.max_rate {
            ensure!((1e-3..1e9).contains(&rate), "{rate} calls a second: 0.001 to 1,000,000,000");
        }
        Ok(admission)
    }
}

impl Admission {
    /// Reads lines of `NAME=value`, `export` before them or not, quotes around the value or not;
    /// other names, and lines that begin with `#`, are ignored.
    fn read(&mut self, text: &str) -> anyhow::Result<()> {
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = line.strip_prefix("export ").unwrap_or(line);
            let parts = line.split_once('=');
            let (name, value) =
                parts.with_context(|| format!("line {number} of the .env file has no ="))?;
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

/// What carries the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Http,
    WebSocket,
    /// A value of JSON follows the other, as geth frames them over its Unix socket.
    Ipc,
}

impl Wire {
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
    pub(super) wire: Wire,
    /// As the client wants it: without TLS, which is in its options.
    address: String,
    path: String,
    /// Without what may be a key: the path of a URL.
    shown: String,
    options: ConnectOptions,
    pub(super) patience: Patience,
}

impl Endpoint {
    /// Reads `http://host:port/path`, `ws://host:port/path`, the same with https and wss, or the
    /// path of a Unix socket.
    ///
    /// # Errors
    /// `url` is none of these. Over TLS the server is asked for its certificate, which has to be
    /// good.
    pub(super) fn new(url: &str, admission: &Admission) -> anyhow::Result<Self> {
        let (secret, headers) = (admission.secret.clone(), admission.headers.clone());
        let mut options = ConnectOptions { secret, headers, dial: None };
        let patience = Patience::default();
        let (wire, is_secure, rest) = match url.split_once("://") {
            Some(("http", rest)) => (Wire::Http, false, rest),
            Some(("https", rest)) => (Wire::Http, true, rest),
            Some(("ws", rest)) => (Wire::WebSocket, false, rest),
            Some(("wss", rest)) => (Wire::WebSocket, true, rest),
            Some(_) => bail!("{url} is neither http(s):// nor ws(s):// nor the path of a socket"),
            None => {
                ensure!(!url.is_empty(), "an endpoint without a name");
                let path = std::path::absolute(url).with_context(|| url.to_owned())?;
                let (address, path) = (format!("unix:{}", path.display()), String::new());
                let (wire, shown) = (Wire::Ipc, url.to_owned());
                return Ok(Self { wire, address, path, shown, options, patience });
            }
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        ensure!(!host.is_empty(), "{url} names no host");
        let is_clean = !url.contains(|c: char| c.is_ascii_control() || c == ' ');
        ensure!(is_clean, "{url:?} is no address");
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let port = if is_secure { 443 } else { 80 };
        let place = if has_port { host.to_owned() } else { format!("{host}:{port}") };
        if is_secure {
            let dial = TlsDial::new(&place, admission.cacert.as_deref())?;
            options.dial = Some(Arc::new(dial));
        }
        let name = wire.name();
        let (secure, hidden) =
            (if is_secure { "s" } else { "" }, if path.is_empty() { "" } else { "/…" });
        let (shown, path) = (format!("{name}{secure}://{place}{hidden}"), format!("/{path}"));
        let address = format!("{name}://{place}{path}");
        Ok(Self { wire, address, path, shown, options, patience })
    }

    /// Opens a connection, each call on which has `timeout`.
    pub(super) async fn open(&self, timeout: Duration) -> Result<Link, ClientError> {
        let opened = tokio::time::timeout(CONNECT_TIME, self.connect(timeout)).await;
        opened.unwrap_or_else(|_| {
            let address = self.shown.clone();
            Err(ClientError::Timeout { address, limit: CONNECT_TIME })
        })
    }

    async fn connect(&self, timeout: Duration) -> Result<Link, ClientError> {
        let options = self.options.clone();
        Ok(match self.wire {
            Wire::Http => {
                let mut client = Client::connect_with(&self.address, options).await?;
                client.set_timeout(timeout);
                Link::Http { client: Box::new(client), path: self.path.clone(), next_id: 1 }
            }
            Wire::WebSocket | Wire::Ipc => {
                let mut client = SessionClient::connect_with(&self.address, options).await?;
                client.set_timeout(timeout);
                Link::Socket(client)
            }
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
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

    /// Notes that the server asked for patience, for `seconds` or without saying how long; by how
    /// much the pause is longer now. Calls that were sent together are refused together: that is
    /// one time.
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

    /// Notes that a call has succeeded.
    pub(super) fn answered(&self) {
        self.with(|pause| pause.last = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_or_a_path_and_is_shown_without_keys() {
        let none = Admission::default();
        let check = |url: &str, wire, address: &str, shown: &str| {
            let endpoint = Endpoint::new(url, &none).expect(url);
            assert_eq!((endpoint.wire, &*endpoint.address), (wire, address));
            assert_eq!(endpoint.to_string(), shown);
        };
        check("http://a:1", Wire::Http, "http://a:1/", "http://a:1");
        check("http://a/key?x", Wire::Http, "http://a:80/key?x", "http://a:80/…");
        check("ws://[::1]:8546/", Wire::WebSocket, "ws://[::1]:8546/", "ws://[::1]:8546");
        check("ws://[::1]", Wire::WebSocket, "ws://[::1]:80/", "ws://[::1]:80");
        check("/run/geth.ipc", Wire::Ipc, "unix:/run/geth.ipc", "/run/geth.ipc");
        for fault in ["ftp://a", "http://", "https://", "", "http://a/b c", "ws://a\r\n"] {
            Endpoint::new(fault, &none).expect_err(fault);
        }
        let header = vec!["no header".to_owned()];
        Access { header, ..Access::default() }.admission().expect_err("no colon");
    }

    #[test]
    fn an_env_file_may_have_quotes_comments_and_other_names() {
        let text = "# a comment\n\nexport DEPONENT_RPC_URL='http://a/k=1, ws://b'\nOTHER=1\n\
                    DEPONENT_RPC_TOKEN = \"t\"\nDEPONENT_RPC_MAX_RATE=2.5\n";
        let mut admission = Admission::default();
        admission.read(text).expect("lines");
        assert_eq!(admission.urls, ["http://a/k=1", "ws://b"]);
        assert_eq!(admission.headers["authorization"], "Bearer t");
        assert_eq!(admission.max_rate, Some(2.5));
        admission.read("DEPONENT_RPC_MAX_RATE=3").expect("a number");
        assert_eq!(admission.max_rate, Some(2.5), "what was said first wins");
        admission.read("DEPONENT_RPC_MAX_RATE=fast").expect_err("no number");
        admission.read("DEPONENT_RPC_URL").expect_err("no value");
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
