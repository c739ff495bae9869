//! Endpoints of JSON-RPC as people write them, called one call at a time.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rpc::rest::HeaderValue;
use rpc::rest::header::AUTHORIZATION;
use rpc::{
    Client, ClientError, ConnectOptions, JwtSecret, RawValue, SessionClient, response,
    shown_address,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use crate::tls::TlsDial;

/// Where an endpoint of JSON-RPC is, and how it is called.
#[derive(Clone, Debug)]
pub struct EndpointAddress {
    /// As the clients of `rpc` take it.
    address: String,
    is_http: bool,
    options: ConnectOptions,
}

impl EndpointAddress {
    /// Reads `http://HOST:PORT/PATH`, the same with `https`, `ws` or `wss`, `HOST:PORT`, or the
    /// path of a Unix socket, which has a slash or exists. A user and a password before the host
    /// are sent as HTTP has it (RFC 7617).
    ///
    /// Over TLS the server has to prove who it is, to the system's authorities or to those in
    /// `cacert`, a file of certificates in PEM. A secret makes the token of each HTTP request and
    /// WebSocket; it takes the place of a password.
    ///
    /// # Errors
    /// [`ClientError::Address`] if the text is none of these.
    pub fn parse(
        text: &str,
        cacert: Option<&Path>,
        secret: Option<JwtSecret>,
    ) -> Result<Self, ClientError> {
        let fault = |reason: String| ClientError::Address { address: shown_address(text), reason };
        let mut options = ConnectOptions { secret, ..Default::default() };
        let Some((scheme, rest)) = text.split_once("://") else {
            if text.contains('/') || Path::new(text).exists() {
                let path = std::path::absolute(text).map_err(|error| fault(error.to_string()))?;
                let address = format!("unix:{}", path.display());
                return Ok(Self { address, is_http: false, options });
            }
            let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            if port.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
                return Err(fault(
                    "it has no port, as 127.0.0.1:8545 has, and is no socket that exists".into(),
                ));
            }
            let host = text.rsplit('@').next().unwrap_or(text);
            check_host(host).map_err(|reason| fault(reason.into()))?;
            return Ok(Self { address: text.to_owned(), is_http: true, options });
        };
        let (plain, is_tls) = match scheme {
            "http" | "https" => ("http", scheme == "https"),
            "ws" | "wss" => ("ws", scheme == "wss"),
            _ => return Err(fault("it is neither http(s):// nor ws(s)://".into())),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        check_host(host).map_err(|reason| fault(reason.into()))?;
        if let Some(user) = user {
            let basic = format!("Basic {}", STANDARD.encode(percent_decoded(user)));
            let basic = HeaderValue::from_str(&basic).map_err(|error| fault(error.to_string()))?;
            options.headers.insert(AUTHORIZATION, basic);
        }
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let port = if is_tls && !has_port { ":443" } else { "" };
        if is_tls {
            let dial = TlsDial::new(&format!("{host}{port}"), cacert);
            options.dial = Some(Arc::new(dial.map_err(|error| fault(error.to_string()))?));
        }
        let address = format!("{plain}://{host}{port}{path}");
        Ok(Self { address, is_http: plain == "http", options })
    }

    /// Connects. Each call may take `call_time`, and an answer has at most `answer_bytes`.
    ///
    /// # Errors
    /// If no server listens there, or it refuses a WebSocket.
    pub fn connect(
        &self,
        call_time: Duration,
        answer_bytes: usize,
    ) -> Result<Endpoint, ClientError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| ClientError::Connect {
            address: shown_address(&self.address),
            source,
        })?;
        let client = runtime.block_on(self.open(call_time, answer_bytes))?;
        Ok(Endpoint { runtime, client })
    }

    /// The same on the tokio runtime of the caller.
    ///
    /// # Errors
    /// If no server listens there, or it refuses a WebSocket.
    pub async fn open(
        &self,
        call_time: Duration,
        answer_bytes: usize,
    ) -> Result<Connection, ClientError> {
        let address = &*self.address;
        let options = ConnectOptions { answer_bytes: Some(answer_bytes), ..self.options.clone() };
        if self.is_http {
            let mut client = Client::connect_with(address, options).await?;
            client.set_timeout(call_time);
            return Ok(Connection::Http(client.into()));
        }
        let mut client = SessionClient::connect_with(address, options).await?;
        client.set_timeout(call_time);
        Ok(Connection::Session(client))
    }

    /// Whether its connections last, so that subscriptions can be made.
    pub const fn is_session(&self) -> bool {
        !self.is_http
    }
}

/// Checks a host with or without a port.
fn check_host(host: &str) -> Result<(), &'static str> {
    let is_usable = |letter: char| letter.is_ascii_alphanumeric() || "-._~%[]:".contains(letter);
    if host.is_empty() || host.starts_with(':') {
        return Err("it names no host");
    }
    if !host.chars().all(is_usable) {
        return Err("a name of a host has letters, digits, dots and hyphens");
    }
    // Within brackets it is an address of IPv6.
    let after = host.rsplit(']').next().unwrap_or(host);
    match after.split_once(':') {
        Some((_, port)) if port.parse::<u16>().is_err() => Err("its port is no number up to 65535"),
        _ => Ok(()),
    }
}

/// A connection to an endpoint of JSON-RPC, whose calls return when they are answered.
///
/// It must not be used by a task of an async runtime: it has a runtime of its own.
#[derive(Debug)]
pub struct Endpoint {
    runtime: Runtime,
    client: Connection,
}

/// A connection to an endpoint of JSON-RPC, on the caller's runtime.
#[derive(Debug)]
pub enum Connection {
    /// Over HTTP.
    Http(Box<Client>),
    /// Over a WebSocket, or bare JSON-RPC over a Unix socket, as all clients have it.
    Session(SessionClient),
}

impl Connection {
    /// Calls a method and returns the whole answer as it came.
    ///
    /// # Errors
    /// If there is no answer. An answer with an error object is an answer.
    pub async fn call_raw(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> Result<Answer, ClientError> {
        match self {
            Self::Http(client) => client.call_raw(method, params).await,
            Self::Session(client) => client.call_raw(method, params).await,
        }
    }

    /// Makes several calls in one message, each a method with its parameters. Returns their ids, in
    /// the order of the calls, and the whole answer as it came.
    ///
    /// # Errors
    /// If there is no answer. An answer with error objects is an answer.
    ///
    /// # Panics
    /// If there are no calls.
    pub async fn batch_raw(
        &mut self,
        calls: &[(&str, &RawValue)],
    ) -> Result<(Range<u64>, Answer), ClientError> {
        match self {
            Self::Http(client) => client.batch_raw(calls).await,
            Self::Session(client) => client.batch_raw(calls).await,
        }
    }
}

/// The bytes of an answer, in memory that may be the connection's.
type Answer = alloy_primitives::bytes::Bytes;

impl Endpoint {
    /// The result of a call, as JSON text.
    ///
    /// # Errors
    /// [`ClientError::Rpc`] if the endpoint answers with an error; others if there is no answer.
    pub fn call(&mut self, method: &str, params: impl Serialize) -> Result<Bytes, ClientError> {
        let answer = self.runtime.block_on(self.client.call_raw(method, params))?;
        let result = response::result(&answer)?;
        let start = result.as_ptr() as usize - answer.as_ptr() as usize;
        Ok(answer.slice(start..start + result.len()).into())
    }

    /// Subscribes by a method, and hands over each value, or `None` where there was none for
    /// `idle`, until it is told to end, by `false`.
    ///
    /// # Errors
    /// [`ClientError::Rpc`] if the endpoint refuses, as one over HTTP always does; others if the
    /// connection or the subscription ends.
    pub fn follow<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
        idle: Duration,
        mut next: impl FnMut(Option<T>) -> bool,
    ) -> Result<(), ClientError> {
        let Connection::Session(client) = &self.client else {
            return Err(ClientError::Rpc(rpc::Error::method_not_found(method)));
        };
        self.runtime.block_on(async {
            let mut values = client.subscribe(method, params).await?;
            loop {
                let value = match tokio::time::timeout(idle, values.next()).await {
                    Ok(value) => Some(value?),
                    Err(_) => None,
                };
                if !next(value) {
                    return Ok(());
                }
            }
        })
    }

    /// Lets time pass between two calls, in which a WebSocket's pings are answered.
    pub fn pause(&mut self, time: Duration) {
        // The timer is made inside the runtime, whose clock it takes.
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }
}

/// A text with the bytes that `%` and two hex digits stand for.
fn percent_decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(meant) if byte == b'%' => {
                decoded.push(meant);
                rest = &after[2..];
            }
            _ => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_a_host_or_a_path() {
        let check = |text: &str, address: &str, is_http, basic: Option<&str>| {
            let parsed = EndpointAddress::parse(text, None, None).expect(text);
            assert_eq!((&*parsed.address, parsed.is_http), (address, is_http));
            let header = parsed.options.headers.get(AUTHORIZATION);
            let header = header.map(|value| value.to_str().expect("letters"));
            assert_eq!(header, basic, "{text}");
        };
        check("http://node:1/path?a=b", "http://node:1/path?a=b", true, None);
        check("node:1", "node:1", true, None);
        check("[::1]:8545", "[::1]:8545", true, None);
        check("ws://node", "ws://node", false, None);
        check("/run/node.ipc", "unix:/run/node.ipc", false, None);
        // RFC 7617 section 2.
        let basic = Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        check("http://Aladdin:open%20sesame@node:1", "http://node:1", true, basic);
        check("ws://Aladdin:open sesame@node:1/x", "ws://node:1/x", false, basic);
    }

    #[test]
    fn an_unusable_address_is_refused_without_its_password() {
        let check = |text: &str, expected: &str| {
            let error = EndpointAddress::parse(text, None, None).expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains("word"), "{error}");
        };
        check("ftp://user:word@node", "neither http(s):// nor ws(s)://");
        check("http://user:word@", "names no host");
        for text in ["node", "127.0.0.1", "node:", ":1", "node:http", "node:65536"] {
            check(text, "it has no port, as 127.0.0.1:8545 has");
        }
        check("https://user:word@no de", "a name of a host has letters");
        check("http://h h/x", "a name of a host has letters");
        check("http://127.0.0.1:99999/", "no number up to 65535");
        check("ws://node:", "no number up to 65535");
        check("https://a..b", "no name that a certificate can have");
        check("", "it has no port");
        check("h h:1", "a name of a host has letters");
    }
}
