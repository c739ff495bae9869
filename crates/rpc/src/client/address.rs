//! The addresses of servers.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use hyper::{HeaderMap, Uri};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::client::error::ClientError;
use crate::jwt::JwtSecret;
use crate::limits::CONNECT_TIME;
use crate::quote::shown_address;
use crate::transport::socket::Stream;

/// The options of a client's connections.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// Makes the token of each request over HTTP, or of the handshake of a WebSocket.
    pub secret: Option<JwtSecret>,
    /// Further headers of these requests.
    pub headers: HeaderMap,
    /// Opens the connections, instead of plain ones to the address's host and port.
    pub dial: Option<Arc<dyn Dial>>,
    /// Longest answer, in bytes; `None` is 4 GiB. Over HTTP a longer one fails its call, over a
    /// connection that lasts it ends the connection.
    pub answer_bytes: Option<usize>,
}

/// Opens connections for a client that has something below it which this crate does not know: TLS,
/// or a proxy.
pub trait Dial: fmt::Debug + Send + Sync {
    /// Opens a connection. What the client writes into it goes to the server, and what it reads
    /// comes from there.
    ///
    /// # Errors
    /// Why there is no connection; it becomes [`ClientError::Connect`].
    fn dial(&self) -> Dialing<'_>;
}

/// A connection that is being opened.
pub type Dialing<'a> = Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send + 'a>>;

/// The address of a server.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// `host:port`, or `unix:` and the path of a Unix socket.
    pub(crate) host: String,
    pub(crate) path: Uri,
    pub(crate) dial: Option<Arc<dyn Dial>>,
}

/// The prefix of a Unix socket.
const UNIX: &str = "unix:";

impl Address {
    /// Reads `host:port`, `unix:/path/of/a/socket`, or a URL of the one scheme that is spoken.
    pub(crate) fn parse(text: &str, scheme: &str) -> Result<Self, ClientError> {
        let fault = |reason: String| ClientError::Address { address: shown_address(text), reason };
        if let Some(path) = text.strip_prefix(UNIX) {
            if !path.starts_with('/') {
                return Err(fault("the path of the socket is to be absolute".into()));
            }
            return Ok(Self { host: text.into(), path: Uri::from_static("/"), dial: None });
        }
        let url = if text.contains("://") { text.into() } else { format!("{scheme}://{text}") };
        let url: Uri = url.parse().map_err(|reason| fault(format!("{reason}")))?;
        if url.scheme_str() != Some(scheme) {
            return Err(fault(format!("only {scheme}:// is spoken here; TLS needs a proxy")));
        }
        let host = url.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| fault("it names no host".into()))?;
        let authority = url.authority().map_or("", |authority| authority.as_str());
        // `Uri` takes any digits for a port, and then has none.
        let port = match url.port_u16() {
            None if authority.ends_with(host) => 80,
            None => return Err(fault("its port is no number up to 65535".into())),
            Some(port) => port,
        };
        let host = format!("{host}:{port}");
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let path = path.parse().map_err(|reason| fault(format!("{reason}")))?;
        Ok(Self { host, path, dial: None })
    }

    /// Opens a connection.
    pub(crate) async fn dial(&self) -> Result<Stream, ClientError> {
        let fault = |source| ClientError::Connect { address: self.host.clone(), source };
        let dial = async {
            if let Some(dial) = &self.dial {
                return dial.dial().await.map(Stream::from);
            }
            let Some(path) = self.host.strip_prefix(UNIX) else {
                let socket = TcpStream::connect(&self.host).await?;
                socket.set_nodelay(true)?;
                return Ok(Stream::from(socket));
            };
            Ok(Stream::from(UnixStream::connect(path).await?))
        };
        timeout(CONNECT_TIME, dial).await.unwrap_or_else(|late| Err(late.into())).map_err(fault)
    }

    /// Whether it is that of a Unix socket.
    pub(crate) fn is_unix(&self) -> bool {
        self.host.starts_with(UNIX)
    }

    /// The value of the header `host`: empty for a Unix socket (RFC 9112 section 3.2).
    pub(crate) fn authority(&self) -> &str {
        if self.is_unix() { "" } else { &self.host }
    }

    pub(crate) fn broken(&self, source: hyper::Error) -> ClientError {
        ClientError::Broken { address: self.host.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_a_port_or_an_http_url() {
        let check = |text: &str, host: &str, path: &str| {
            let address = Address::parse(text, "http").expect(text);
            assert_eq!((address.host.as_str(), address.path.to_string().as_str()), (host, path));
        };
        check("127.0.0.1:8551", "127.0.0.1:8551", "/");
        check("localhost", "localhost:80", "/");
        check("http://node:8545", "node:8545", "/");
        check("http://node:8545/v1/key?x=1", "node:8545", "/v1/key?x=1");
        check("http://user:word@node:1", "node:1", "/");
        check("[::1]:8551", "[::1]:8551", "/");
        check("unix:/run/deponent.ipc", "unix:/run/deponent.ipc", "/");
    }

    #[test]
    fn an_unusable_address_is_refused_with_the_reason() {
        let check = |text: &str, expected: &str| {
            let error = Address::parse(text, "http").expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains("secret"), "{error}");
        };
        check("https://node:8551", "only http://");
        check("ws://node:8551", "only http://");
        check("ws://user:secret@node:8551", "only http://");
        check("", "cannot use \"\"");
        check("http://", "cannot use");
        check("node:99999", "no number up to 65535");
        check("node:", "no number up to 65535");
        check("no de:1", "cannot use");
        check("unix:deponent.ipc", "absolute");
    }

    #[test]
    fn a_url_is_of_the_scheme_that_is_spoken() {
        let address = Address::parse("ws://node:8546", "ws").expect("an address");
        assert_eq!(address.host, "node:8546");
        let error = Address::parse("wss://node:8546", "ws").expect_err("TLS").to_string();
        assert!(error.contains("only ws://"), "{error}");
    }
}
