//! A client: one HTTP/1.1 connection, one call at a time.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error::{ClientError, quote};
use crate::jwt::JwtSecret;
use crate::limits::{ANSWER_BYTES, BODY_START_BYTES, CALL_TIME, CONNECT_TIME};
use crate::response::{Envelope, malformed};

/// A connection to a JSON-RPC server, kept alive between calls and opened again where it ended.
///
/// A call that may have reached the server is never repeated by itself.
#[derive(Debug)]
pub struct Client {
    address: Address,
    secret: Option<JwtSecret>,
    call_time: Duration,
    next_id: u64,
    /// Away while a call runs, so that an abandoned one takes its connection with it.
    kept: Option<Connection>,
}

type Connection = SendRequest<Full<Bytes>>;

impl Client {
    /// Connects to `host:port` or `http://host:port/path`; with a secret, each call has a token.
    ///
    /// A call may take 120 seconds unless [`Client::set_timeout`] says otherwise.
    pub async fn connect(address: &str, secret: Option<JwtSecret>) -> Result<Self, ClientError> {
        let address = Address::parse(address)?;
        let kept = Some(address.open().await?);
        Ok(Self { address, secret, call_time: CALL_TIME, next_id: 1, kept })
    }

    /// Bounds each call from here on, the opening of a connection included.
    pub fn set_timeout(&mut self, call_time: Duration) {
        self.call_time = call_time;
    }

    /// Calls a method and reads its result.
    pub async fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, ClientError> {
        let id = self.next_id.to_string();
        let body = self.call_raw(method, params).await?;
        let answer = Envelope::read(&body)?;
        // An error comes first: it has no id where the server could not read ours.
        let result = answer.result()?;
        let answered = answer.id.map_or("none", |id| id.get());
        if answered != id {
            let answered = quote(answered);
            return Err(malformed(format_args!("its id is {answered}, the call's is {id}")));
        }
        serde_json::from_str(result.get()).map_err(malformed)
    }

    /// Calls a method and gives the whole answer as it came, for callers who scan large results
    /// themselves: see [`response`](crate::response).
    pub async fn call_raw(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> Result<Bytes, ClientError> {
        #[derive(Serialize)]
        struct Call<'a, P> {
            jsonrpc: &'a str,
            id: u64,
            method: &'a str,
            params: P,
        }
        let call = Call { jsonrpc: "2.0", id: self.next_id, method, params };
        let body = serde_json::to_vec(&call)
            .map_err(|source| ClientError::Params { method: method.into(), source })?;
        self.next_id += 1;
        let limit = self.call_time;
        let answer = timeout(limit, self.exchange(body.into())).await;
        answer.unwrap_or_else(|_| {
            Err(ClientError::Timeout { address: self.address.host.clone(), limit })
        })
    }

    async fn exchange(&mut self, body: Bytes) -> Result<Bytes, ClientError> {
        let (connection, response) = self.send(self.request(body)).await?;
        let status = response.status();
        let answer = self.read(response).await?;
        self.kept = Some(connection);
        if status != StatusCode::OK {
            let text = quote(String::from_utf8_lossy(&answer).trim()).into_owned();
            return Err(ClientError::Http { status: status.as_u16(), text });
        }
        Ok(answer)
    }

    fn request(&self, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.address.path.clone())
            .header(header::HOST, &self.address.host)
            .header(header::CONTENT_TYPE, "application/json")
            // Compressing a witness takes longer than sending it.
            .header(header::ACCEPT_ENCODING, "identity");
        if let Some(secret) = &self.secret {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", secret.token()));
        }
        request.body(Full::new(body)).expect("the address was parsed, a token is base64url")
    }

    /// Sends on the kept connection, or on a fresh one where that was closed before anything of
    /// the request was sent.
    async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Connection, Response<Incoming>), ClientError> {
        if let Some(mut kept) = self.kept.take()
            && kept.ready().await.is_ok()
        {
            match kept.try_send_request(request).await {
                Ok(response) => return Ok((kept, response)),
                Err(mut fault) => match fault.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(self.address.broken(fault.into_error())),
                },
            }
        }
        let mut fresh = self.address.open().await?;
        let sent = fresh.send_request(request).await;
        sent.map(|response| (fresh, response)).map_err(|fault| self.address.broken(fault))
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        if let Some(encoding) = response.headers().get(header::CONTENT_ENCODING)
            && encoding != "identity"
        {
            return Err(malformed(format_args!("it came as {encoding:?}, identity was asked for")));
        }
        let mut body = response.into_body();
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut answer = Vec::with_capacity(announced.min(BODY_START_BYTES));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|fault| self.address.broken(fault))?;
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > ANSWER_BYTES - answer.len() {
                return Err(ClientError::TooLong { limit_bytes: ANSWER_BYTES });
            }
            answer.extend_from_slice(&data);
        }
        Ok(answer.into())
    }
}

/// Where calls go.
#[derive(Debug)]
struct Address {
    /// `host:port`.
    host: String,
    path: Uri,
}

impl Address {
    fn parse(text: &str) -> Result<Self, ClientError> {
        let fault =
            |reason: String| ClientError::Address { address: quote(text).into_owned(), reason };
        let url = if text.contains("://") { text.into() } else { format!("http://{text}") };
        let url: Uri = url.parse().map_err(|reason| fault(format!("{reason}")))?;
        if url.scheme_str() != Some("http") {
            return Err(fault("only http:// is spoken here; TLS needs a proxy".into()));
        }
        let host = url.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| fault("it names no host".into()))?;
        let authority = url.authority().map_or("", |authority| authority.as_str());
        // `Uri` lets any digits pass for a port, and then knows none.
        let port = match url.port_u16() {
            None if authority.ends_with(host) => 80,
            None => return Err(fault("its port is no number up to 65535".into())),
            Some(port) => port,
        };
        let host = format!("{host}:{port}");
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let path = path.parse().map_err(|reason| fault(format!("{reason}")))?;
        Ok(Self { host, path })
    }

    async fn open(&self) -> Result<Connection, ClientError> {
        let fault = |source| ClientError::Connect { address: self.host.clone(), source };
        let socket = timeout(CONNECT_TIME, TcpStream::connect(&self.host)).await;
        let socket = socket.unwrap_or_else(|late| Err(late.into())).map_err(fault)?;
        socket.set_nodelay(true).map_err(fault)?;
        let (connection, driver) =
            handshake(TokioIo::new(socket)).await.map_err(|fault| self.broken(fault))?;
        // It ends with the connection, whose faults come out of the calls.
        tokio::spawn(async move { driver.await.unwrap_or_default() });
        Ok(connection)
    }

    fn broken(&self, source: hyper::Error) -> ClientError {
        ClientError::Broken { address: self.host.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_a_port_or_an_http_url() {
        let check = |text: &str, host: &str, path: &str| {
            let address = Address::parse(text).expect(text);
            assert_eq!((address.host.as_str(), address.path.to_string().as_str()), (host, path));
        };
        check("127.0.0.1:8551", "127.0.0.1:8551", "/");
        check("localhost", "localhost:80", "/");
        check("http://node:8545", "node:8545", "/");
        check("http://node:8545/v1/key?x=1", "node:8545", "/v1/key?x=1");
        check("http://user:word@node:1", "node:1", "/");
        check("[::1]:8551", "[::1]:8551", "/");
    }

    #[test]
    fn an_unusable_address_is_refused_with_the_reason() {
        let check = |text: &str, expected: &str| {
            let error = Address::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("https://node:8551", "only http://");
        check("ws://node:8551", "only http://");
        check("", "cannot use \"\"");
        check("http://", "cannot use");
        check("node:99999", "no number up to 65535");
        check("node:", "no number up to 65535");
        check("no de:1", "cannot use");
    }
}
