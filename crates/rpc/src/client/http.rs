//! A client: one HTTP/1.1 connection, one call or request at a time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::http::request;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::client::address::Address;
use crate::http::coding::{Decoding, Undecoded, ZSTD};
use crate::http::resource as rest;
use crate::jsonrpc::error::{ClientError, quote};
use crate::jsonrpc::response::{Envelope, malformed};
use crate::jwt::JwtSecret;
use crate::limits::{ANSWER_BYTES, CALL_TIME, READY_TIME, RESERVED_BYTES, SERVER_IDLE};
use crate::spare::Spare;
use crate::transport::descriptor::{Descriptors, Received};
use crate::transport::socket::Socket;

/// A connection to a JSON-RPC server, kept alive between calls and opened again where it ended.
///
/// A call that may have reached the server is never repeated by itself. The memory of the largest
/// answer so far is kept for the next ones.
#[derive(Debug)]
pub struct Client {
    address: Address,
    secret: Option<JwtSecret>,
    call_time: Duration,
    /// What it takes answers in.
    accepted: &'static str,
    next_id: u64,
    /// Away while a call runs, so that an abandoned one takes its connection with it.
    kept: Option<Connection>,
    /// Files of this client's connection that nobody uses any more, and what they are mapped to.
    received: Received,
    spare: Spare,
    connections: u64,
    times: Option<CallTimes>,
}

/// When a request of a [`Client`] was sent, and when its answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimes {
    /// The request was rendered, and began to be sent; a connection that had ended is opened later.
    pub sent: Instant,
    /// The head of the answer was there; `None` if it never came.
    pub first_byte: Option<Instant>,
    /// The whole body was there; `None` if it never was.
    pub last_byte: Option<Instant>,
    /// Bytes of the body, as they were before they were compressed.
    pub body_bytes: usize,
}

/// A connection, and the descriptors that come with it.
#[derive(Debug)]
struct Connection {
    requests: SendRequest<Full<Bytes>>,
    descriptors: Option<Descriptors>,
}

/// What a server answers to a request for a resource.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body. If it came by descriptor, it is memory of the server's, mapped, and given back
    /// once the last slice of it is dropped.
    pub body: Bytes,
}

impl Client {
    /// Connects to `host:port`, `http://host:port/path` or `unix:/path/of/a/socket`; with a secret,
    /// each call has a token.
    ///
    /// A call may take 120 seconds unless [`Client::set_timeout`] says otherwise.
    pub async fn connect(address: &str, secret: Option<JwtSecret>) -> Result<Self, ClientError> {
        let address = Address::parse(address, "http")?;
        let kept = Some(open(&address).await?);
        let (received, spare) = (Received::default(), Spare::default());
        let (call_time, accepted, next_id) = (CALL_TIME, IDENTITY, 1);
        Ok(Self {
            address,
            secret,
            call_time,
            accepted,
            next_id,
            kept,
            received,
            spare,
            connections: 1,
            times: None,
        })
    }

    /// When the last request was sent and its answer came; `None` before the first one. A request
    /// that did not get an answer has its own times, as far as it came.
    pub const fn last_times(&self) -> Option<CallTimes> {
        self.times
    }

    /// Ends the connection and opens another at once, so that the next call need not: one that was
    /// idle for long may be about to be closed by its server.
    ///
    /// # Errors
    /// The server does not take a connection.
    pub async fn reopen(&mut self) -> Result<(), ClientError> {
        self.hang_up();
        self.received.forget();
        self.connections += 1;
        self.kept = Some(open(&self.address).await?);
        Ok(())
    }

    /// Bounds each call from here on, the opening of a connection included.
    pub fn set_timeout(&mut self, call_time: Duration) {
        self.call_time = call_time;
    }

    /// How many connections it has begun to open: it is another one now if there are more.
    pub const fn connections(&self) -> u64 {
        self.connections
    }

    /// Ends the connection; the next call opens another.
    pub fn hang_up(&mut self) {
        self.kept = None;
    }

    /// Asks for answers in zstd from here on, or as they are, which is what a client begins with:
    /// on one host, and on networks above some 2 Gbit/s, compressing takes longer than sending.
    pub const fn set_zstd(&mut self, is_asked_for: bool) {
        self.accepted = if is_asked_for { ZSTD } else { IDENTITY };
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
        let body = call_text(self.next_id, method, params)?;
        self.next_id += 1;
        let limit = self.call_time;
        let answer = timeout(limit, self.exchange(body.into())).await;
        answer.unwrap_or_else(|_| {
            Err(ClientError::Timeout { address: self.address.host.clone(), limit })
        })
    }

    /// Asks for a resource and gives the answer, whatever its status.
    ///
    /// Over a Unix socket a large body comes by descriptor if `headers` ask for it
    /// ([`rest::DESCRIPTOR`](crate::rest::DESCRIPTOR)) and the server can: nothing of it is copied
    /// then. A file of the server's own is mapped if they ask for it
    /// ([`rest::OWN_FILE`](crate::rest::OWN_FILE)), and is trusted to stay as it is.
    pub async fn request(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<Reply, ClientError> {
        let path = path.parse().map_err(|fault| {
            let reason = format!("the path cannot be asked for: {fault}");
            ClientError::Address { address: quote(path).into_owned(), reason }
        })?;
        let mut request = self.begin(method, path);
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        if let Some(unused) = self.received.unused() {
            request = request.header(rest::RELEASE, unused);
        }
        let request = request.body(Full::new(body.into())).expect("all parts were parsed");
        let limit = self.call_time;
        timeout(limit, self.exchange_resource(request)).await.unwrap_or_else(|_| {
            Err(ClientError::Timeout { address: self.address.host.clone(), limit })
        })
    }

    async fn exchange_resource(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Reply, ClientError> {
        let takes_own = request.headers().get(rest::DESCRIPTOR) == Some(&rest::OWN_FILE);
        let (connection, response) = self.send(request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = self.read(response).await?;
        if let Some(named) = headers.get(rest::DESCRIPTOR) {
            let descriptor = connection.descriptors.as_ref().and_then(Descriptors::take);
            let descriptor = descriptor.ok_or_else(|| malformed("no descriptor came with it"))?;
            body = self.received.map(descriptor, named, takes_own)?;
            self.mark_end(body.len());
        }
        self.kept = Some(connection);
        Ok(Reply { status, headers, body })
    }

    async fn exchange(&mut self, body: Bytes) -> Result<Bytes, ClientError> {
        let (connection, response) = self.send(self.call_of(body)).await?;
        let status = response.status();
        let answer = self.read(response).await?;
        self.kept = Some(connection);
        if status != StatusCode::OK {
            return Err(refused(status, &answer));
        }
        Ok(answer)
    }

    async fn read(&mut self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        if let Some(times) = &mut self.times {
            times.first_byte = Some(Instant::now());
        }
        let body = read(&self.address, response, &self.spare).await?;
        self.mark_end(body.len());
        Ok(body)
    }

    /// Notes that the whole body is there.
    fn mark_end(&mut self, body_bytes: usize) {
        if let Some(times) = &mut self.times {
            (times.last_byte, times.body_bytes) = (Some(Instant::now()), body_bytes);
        }
    }

    fn call_of(&self, body: Bytes) -> Request<Full<Bytes>> {
        let request = self.begin(Method::POST, self.address.path.clone());
        let request = request.header(header::CONTENT_TYPE, "application/json");
        request.body(Full::new(body)).expect("the address was parsed, a token is base64url")
    }

    fn begin(&self, method: Method, path: Uri) -> request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.address.authority())
            .header(header::ACCEPT_ENCODING, self.accepted);
        match &self.secret {
            None => request,
            Some(secret) => {
                request.header(header::AUTHORIZATION, format!("Bearer {}", secret.token()))
            }
        }
    }

    /// Sends on the kept connection, or on a fresh one where that was closed before anything of
    /// the request was sent.
    async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Connection, Response<Incoming>), ClientError> {
        let (first_byte, last_byte, body_bytes) = (None, None, 0);
        self.times = Some(CallTimes { sent: Instant::now(), first_byte, last_byte, body_bytes });
        // So that the connection's own task hears of its end before, if it came meanwhile.
        tokio::task::yield_now().await;
        // It is not ready as long as the server has not taken all of the request before: one that
        // was refused it may leave at that.
        if let Some(mut kept) = self.kept.take()
            && let Ok(Ok(())) = timeout(READY_TIME, kept.requests.ready()).await
        {
            match kept.requests.try_send_request(request).await {
                Ok(response) => return Ok((kept, response)),
                Err(mut fault) => match fault.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(self.address.broken(fault.into_error())),
                },
            }
        }
        // What was lent on the connection before went back with it.
        self.received.forget();
        self.connections += 1;
        let mut fresh = open(&self.address).await?;
        let sent = fresh.requests.send_request(request).await;
        sent.map(|response| (fresh, response)).map_err(|fault| self.address.broken(fault))
    }
}

const IDENTITY: &str = "identity";

async fn open(address: &Address) -> Result<Connection, ClientError> {
    let socket = Socket::new(address.dial().await?, SERVER_IDLE);
    let descriptors = socket.descriptors().inspect(Descriptors::want);
    let opened = handshake(TokioIo::new(socket)).await;
    let (requests, driver) = opened.map_err(|fault| address.broken(fault))?;
    // It ends with the connection, whose faults come out of the calls.
    tokio::spawn(async move { driver.await.unwrap_or_default() });
    Ok(Connection { requests, descriptors })
}

/// The text of a call.
pub(crate) fn call_text(
    id: u64,
    method: &str,
    params: impl Serialize,
) -> Result<Vec<u8>, ClientError> {
    #[derive(Serialize)]
    struct Call<'a, P> {
        jsonrpc: &'a str,
        id: u64,
        method: &'a str,
        params: P,
    }
    serde_json::to_vec(&Call { jsonrpc: "2.0", id, method, params })
        .map_err(|source| ClientError::Params { method: method.into(), source })
}

/// The body of an answer, in memory that was used before if there is some: memory that is used for
/// the first time is the dearest part of reading.
pub(crate) async fn read(
    address: &Address,
    response: Response<Incoming>,
    spare: &Spare,
) -> Result<Bytes, ClientError> {
    let mut decoding = match response.headers().get(header::CONTENT_ENCODING) {
        Some(encoding) if encoding == ZSTD => Some(Decoding::new().map_err(malformed)?),
        Some(encoding) if encoding != IDENTITY => {
            return Err(malformed(format_args!(
                "it came as {encoding:?}, which was not asked for"
            )));
        }
        _ => None,
    };
    let mut body = response.into_body();
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    // New memory is not touched before it is needed, so that a wrong length costs nothing.
    let mut answer = spare.take_for(announced.min(RESERVED_BYTES));
    answer.clear();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|fault| address.broken(fault))?;
        let Ok(data) = frame.into_data() else { continue };
        match &mut decoding {
            None if data.len() > ANSWER_BYTES - answer.len() => return Err(TOO_LONG),
            None => answer.extend_from_slice(&data),
            Some(decoding) => {
                let pushed = decoding.push(&data, &mut answer, ANSWER_BYTES);
                pushed.map_err(|fault| match fault {
                    Undecoded::Malformed(fault) => malformed(fault),
                    Undecoded::TooLong => TOO_LONG,
                })?;
            }
        }
    }
    if decoding.is_some_and(|decoding| !decoding.is_whole()) {
        return Err(malformed("its compressed form ends early"));
    }
    Ok(spare.lend(answer))
}

const TOO_LONG: ClientError = ClientError::TooLong { limit_bytes: ANSWER_BYTES };

/// A refusal by a server that speaks HTTP, and its start in its words.
pub(crate) fn refused(status: StatusCode, body: &[u8]) -> ClientError {
    let text = quote(String::from_utf8_lossy(body).trim()).into_owned();
    ClientError::Http { status: status.as_u16(), text }
}
