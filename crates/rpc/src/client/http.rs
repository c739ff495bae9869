//! A client over HTTP: one connection; one call, batch or request at a time.

use std::ops::Range;
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
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::client::address::{Address, ConnectOptions};
use crate::client::call::{batch_text, call_text};
use crate::client::error::{ClientError, malformed};
use crate::foreign_json::read_json;
use crate::http::coding::IDENTITY;
#[cfg(feature = "zstd")]
use crate::http::coding::ZSTD;
use crate::http::coding::decode::{BodyDecoder, DecodeError};
use crate::http::resource as rest;
use crate::jsonrpc::response::AnswerEnvelope;
use crate::jwt::JwtSecret;
use crate::limits::{ANSWER_BYTES, CALL_TIME, READY_TIME, RESERVED_BYTES, SERVER_IDLE};
use crate::quote::quote;
use crate::spare::Spare;
use crate::transport::descriptor::{Descriptors, ReceivedFiles};
use crate::transport::socket::Socket;

/// A connection to a server over HTTP, kept alive between calls and opened again where it ended.
///
/// A call that may have reached the server is never repeated by itself. The memory of the largest
/// answer so far is kept for the next ones. A call whose future is dropped takes the connection
/// with it; the next call opens another.
#[derive(Debug)]
pub struct Client {
    address: Address,
    secret: Option<JwtSecret>,
    /// Further headers of each request.
    headers: HeaderMap,
    call_time: Duration,
    /// The value of `Accept-Encoding`.
    accepted: &'static str,
    /// Longest answer, in bytes.
    answer_bytes: usize,
    next_id: u64,
    /// Absent while a call runs, so that an abandoned one takes its connection with it.
    kept: Option<OpenConnection>,
    /// The files that came by descriptor, and their mappings.
    received: ReceivedFiles,
    spare: Spare,
    connections: u64,
    times: Option<CallTimes>,
}

/// When the last request of a [`Client`] was sent, and when its answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimes {
    /// When the rendered request began to be sent. A connection that had ended is opened after
    /// that.
    pub sent: Instant,
    /// When the head of the answer had come; `None` if it never came.
    pub first_byte: Option<Instant>,
    /// When the whole body had come; `None` if it never came.
    pub last_byte: Option<Instant>,
    /// Bytes of the body, decompressed.
    pub body_bytes: usize,
}

/// An open connection, and the descriptors that come with it.
#[derive(Debug)]
struct OpenConnection {
    requests: SendRequest<Full<Bytes>>,
    descriptors: Option<Descriptors>,
}

/// The answer to a request for a resource.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body. One that came by descriptor is mapped memory of the server's, which is given back
    /// when the last slice of it is dropped.
    pub body: Bytes,
}

impl Client {
    /// Connects over HTTP/1.1 to `host:port`, `http://host:port/path` or `unix:/path/of/a/socket`.
    /// With a secret, each request has a fresh token.
    ///
    /// A call may take 120 seconds unless [`Client::set_timeout`] says otherwise. It needs a tokio
    /// runtime with time and I/O.
    ///
    /// # Errors
    /// If the address cannot be used, or no server listens there.
    pub async fn connect(address: &str, secret: Option<JwtSecret>) -> Result<Self, ClientError> {
        Self::connect_with(address, ConnectOptions { secret, ..Default::default() }).await
    }

    /// As [`connect`](Self::connect), with headers of the caller's, or over connections that the
    /// caller opens.
    ///
    /// # Errors
    /// If the address cannot be used, or there is no connection.
    pub async fn connect_with(address: &str, options: ConnectOptions) -> Result<Self, ClientError> {
        let ConnectOptions { secret, headers, dial, answer_bytes } = options;
        let address = Address { dial, ..Address::parse(address, "http")? };
        let kept = Some(open(&address).await?);
        Ok(Self {
            address,
            secret,
            headers,
            call_time: CALL_TIME,
            accepted: IDENTITY,
            answer_bytes: answer_bytes.unwrap_or(ANSWER_BYTES),
            next_id: 1,
            kept,
            received: ReceivedFiles::default(),
            spare: Spare::default(),
            connections: 1,
            times: None,
        })
    }

    /// Bounds each call from now on, including the time to open a connection.
    pub fn set_timeout(&mut self, call_time: Duration) {
        self.call_time = call_time;
    }

    /// Bounds the bytes of each answer from now on, after decompression; at first by 4 GiB. Of a
    /// longer one no more is read, and its connection is given up.
    pub const fn set_answer_bytes(&mut self, most_bytes: usize) {
        self.answer_bytes = most_bytes;
    }

    /// The number of connections opened so far: it grows when the client opens another one.
    pub const fn connections(&self) -> u64 {
        self.connections
    }

    /// When the last request was sent and its answer came; `None` before the first one. For a
    /// request without an answer they say how far it came.
    pub const fn last_times(&self) -> Option<CallTimes> {
        self.times
    }

    /// Ends the connection and opens another at once, so that the next call does not wait for one:
    /// a server may be about to close a connection that was idle for long.
    ///
    /// # Errors
    /// If the server does not take a connection.
    pub async fn reopen(&mut self) -> Result<(), ClientError> {
        self.hang_up();
        self.received.forget();
        self.connections += 1;
        self.kept = Some(open(&self.address).await?);
        Ok(())
    }

    /// Ends the connection; the next call opens another.
    pub fn hang_up(&mut self) {
        self.kept = None;
    }

    /// Asks for answers in zstd from now on, or as they are, which is the default: on one host, and
    /// on networks above some 2 Gbit/s, compressing takes longer than sending.
    #[cfg(feature = "zstd")]
    pub const fn set_zstd(&mut self, is_asked_for: bool) {
        self.accepted = if is_asked_for { ZSTD } else { IDENTITY };
    }

    /// Calls a method and parses its result.
    ///
    /// # Errors
    /// [`ClientError::Rpc`] if the server answers with an error; others if there is no answer, or
    /// the result is not a `T`.
    pub async fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, ClientError> {
        let id = self.next_id.to_string();
        let body = self.call_raw(method, params).await?;
        let answer = AnswerEnvelope::read(&body)?;
        // An error comes first: it has no id where the server could not read ours.
        let result = answer.result()?;
        let answered = answer.id.unwrap_or("none");
        if answered != id {
            let answered = quote(answered);
            return Err(malformed(format_args!("its id is {answered}, the call's is {id}")));
        }
        read_json(result).map_err(malformed)
    }

    /// Calls a method and returns the whole answer as it came, for callers that scan large results
    /// themselves: see [`response`](crate::response).
    ///
    /// # Errors
    /// If there is no answer. An answer with an error object is an answer.
    pub async fn call_raw(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> Result<Bytes, ClientError> {
        let message = call_text(self.next_id, method, params)?;
        self.next_id += 1;
        self.send(message).await
    }

    /// Makes several calls in one message, each a method with its parameters. Returns their ids, in
    /// the order of the calls, and the whole answer as it came: a list, in any order, or one error
    /// if the server refused the message.
    ///
    /// # Errors
    /// If there is no answer. An answer with error objects is an answer.
    ///
    /// # Panics
    /// If there are no calls.
    pub async fn batch_raw(
        &mut self,
        calls: &[(&str, &RawValue)],
    ) -> Result<(Range<u64>, Bytes), ClientError> {
        let ids = self.next_id..self.next_id + calls.len() as u64;
        let message = batch_text(ids.start, calls)?;
        self.next_id = ids.end;
        Ok((ids, self.send(message).await?))
    }

    /// Sends a rendered message, a call or a batch, and returns the answer as it came.
    ///
    /// # Errors
    /// If there is no answer, or its HTTP status is not 200. An answer with an error object is an
    /// answer.
    pub async fn send(&mut self, message: impl Into<Bytes>) -> Result<Bytes, ClientError> {
        let limit = self.call_time;
        let answer = timeout(limit, self.exchange(message.into())).await;
        answer.unwrap_or_else(|_| {
            Err(ClientError::Timeout { address: self.address.host.clone(), limit })
        })
    }

    /// Requests a resource and returns the answer, whatever its status.
    ///
    /// Over a Unix socket a large body comes by descriptor if `headers` ask for it
    /// ([`rest::DESCRIPTOR`](crate::rest::DESCRIPTOR)) and the server can: nothing of it is copied
    /// then. A file of the server's own is mapped if they ask for it
    /// ([`rest::OWN_FILE`](crate::rest::OWN_FILE)), and is trusted to stay as it is.
    ///
    /// # Errors
    /// If there is no answer, or a file that comes by descriptor cannot be mapped.
    #[expect(clippy::missing_panics_doc, reason = "all parts of the request were parsed")]
    pub async fn request(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<Reply, ClientError> {
        let path = path.parse().map_err(|fault| {
            let reason = format!("the path cannot be asked for: {fault}");
            ClientError::Address { address: quote(path), reason }
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
        let (connection, response) = self.transmit(request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = self.read(response).await?;
        if let Some(named) = headers.get(rest::DESCRIPTOR) {
            let descriptor = connection.descriptors.as_ref().and_then(Descriptors::take);
            let descriptor = descriptor.ok_or_else(|| malformed("no descriptor came with it"))?;
            body = self.received.map(descriptor, named, takes_own)?;
            self.note_end(body.len());
        }
        self.kept = Some(connection);
        Ok(Reply { status, headers, body })
    }

    async fn exchange(&mut self, message: Bytes) -> Result<Bytes, ClientError> {
        let request = self.begin(Method::POST, self.address.path.clone());
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(message));
        let request = request.expect("the address was parsed, a token is base64url");
        let (connection, response) = self.transmit(request).await?;
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
        let wanted = WantedBody { coding: self.accepted, most_bytes: self.answer_bytes };
        let body = read(&self.address, response, wanted, &self.spare).await?;
        self.note_end(body.len());
        Ok(body)
    }

    /// Notes that the whole body has come.
    fn note_end(&mut self, body_bytes: usize) {
        if let Some(times) = &mut self.times {
            (times.last_byte, times.body_bytes) = (Some(Instant::now()), body_bytes);
        }
    }

    fn begin(&self, method: Method, path: Uri) -> request::Builder {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header::HOST, self.address.authority());
        let mut request = request.header(header::ACCEPT_ENCODING, self.accepted);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match &self.secret {
            None => request,
            Some(secret) => {
                request.header(header::AUTHORIZATION, format!("Bearer {}", secret.token()))
            }
        }
    }

    /// Sends on the kept connection, or on a fresh one where the kept one was closed before
    /// anything of the request was sent.
    async fn transmit(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(OpenConnection, Response<Incoming>), ClientError> {
        let (first_byte, last_byte, body_bytes) = (None, None, 0);
        self.times = Some(CallTimes { sent: Instant::now(), first_byte, last_byte, body_bytes });
        // Lets the connection's own task notice its end, if that came meanwhile.
        tokio::task::yield_now().await;
        // It is not ready while the server has not read all of the last request, which a server
        // that refused that may never do.
        if let Some(mut kept) = self.kept.take()
            && let Ok(Ok(())) = timeout(READY_TIME, kept.requests.ready()).await
        {
            kept.descriptors.iter().for_each(Descriptors::want_one);
            match kept.requests.try_send_request(request).await {
                Ok(response) => return Ok((kept, response)),
                Err(mut fault) => match fault.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(self.address.broken(fault.into_error())),
                },
            }
        }
        // The files lent on the last connection went back with it.
        self.received.forget();
        self.connections += 1;
        let mut fresh = open(&self.address).await?;
        let sent = fresh.requests.send_request(request).await;
        sent.map(|response| (fresh, response)).map_err(|fault| self.address.broken(fault))
    }
}

async fn open(address: &Address) -> Result<OpenConnection, ClientError> {
    let socket = Socket::new(address.dial().await?, SERVER_IDLE);
    let descriptors = socket.descriptors().inspect(Descriptors::want_one);
    let opened = handshake(TokioIo::new(socket)).await;
    let (requests, driver) = opened.map_err(|fault| address.broken(fault))?;
    // The task ends with the connection, whose faults are those of the calls.
    tokio::spawn(async move { driver.await.unwrap_or_default() });
    Ok(OpenConnection { requests, descriptors })
}

/// The body of an answer that a client takes.
pub(crate) struct WantedBody {
    /// The only coding, but for none.
    pub(crate) coding: &'static str,
    pub(crate) most_bytes: usize,
}

/// The body of an answer, in memory that was used before if there is some: the first use of memory
/// is the most expensive part of reading.
pub(crate) async fn read(
    address: &Address,
    response: Response<Incoming>,
    wanted: WantedBody,
    spare: &Spare,
) -> Result<Bytes, ClientError> {
    let WantedBody { coding, most_bytes } = wanted;
    let too_long = ClientError::TooLong { limit_bytes: most_bytes };
    let mut decoder = BodyDecoder::new(response.headers().get(header::CONTENT_ENCODING), coding)?;
    let mut body = response.into_body();
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > most_bytes {
        return Err(too_long);
    }
    // Reserved memory is not used before it is needed, so a wrong length costs nothing.
    let mut answer = spare.take_for(announced.min(RESERVED_BYTES));
    answer.clear();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|fault| address.broken(fault))?;
        let Ok(data) = frame.into_data() else { continue };
        match decoder.push(&data, &mut answer, most_bytes) {
            Ok(()) => {}
            #[cfg(feature = "zstd")]
            Err(DecodeError::Malformed(fault)) => return Err(malformed(fault)),
            Err(DecodeError::TooLong) => return Err(too_long),
        }
    }
    if !decoder.is_whole() {
        return Err(malformed("its compressed form ends early"));
    }
    Ok(spare.lend(answer))
}

/// A refusal by a server that speaks HTTP, with the start of its text.
pub(crate) fn refused(status: StatusCode, body: &[u8]) -> ClientError {
    let text = quote(String::from_utf8_lossy(body).trim());
    ClientError::Http { status: status.as_u16(), text }
}
