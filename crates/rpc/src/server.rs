//! JSON-RPC over HTTP/1.1, for the engine port and the public port alike.
//!
//! `POST /` with a JSON body, `GET /` to go on as a WebSocket, and nothing else. Every refusal is a
//! plain-text line that says what to do. Answers are never compressed: on one host, and on any fast
//! network, that takes longer than sending them.
//!
//! Browsers: no CORS header is ever sent, and the JSON content type makes browsers ask before
//! they send, so a page from elsewhere gets neither a call through nor an answer to read; nor does
//! it get a WebSocket. The `Host` header is not looked at: put a proxy before a public port whose
//! name others control.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::jwt::JwtSecret;
use crate::limits::{BODY_START_BYTES, DISCARD_BYTES, DISCARD_TIME, HEADER_BYTES};
use crate::message::{Handler, answer};
use crate::port::{Answered, Port, ServerOptions, Unanswered};
use crate::socket::Socket;
use crate::websocket::WebSocket;
use crate::{handshake, session};

/// Serves until `shutdown` is done, then lets running calls finish for
/// [`Limits::shutdown_grace`](crate::Limits::shutdown_grace); a WebSocket is told that it ends.
///
/// It needs a tokio runtime with time and I/O. A call that outlives the grace keeps its thread.
pub async fn serve(
    listener: TcpListener,
    options: ServerOptions,
    handler: Arc<dyn Handler>,
    shutdown: impl Future<Output = ()>,
) {
    let port = Arc::new(Port::new(options, handler));
    let grace = port.limits.shutdown_grace;
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = port.accept(&listener) => accepted,
        };
        let Some((socket, permit)) = accepted else { continue };
        let (port, stopped) = (Arc::clone(&port), stopped.clone());
        connections.spawn(async move {
            port.converse(socket, stopped).await;
            drop(permit);
        });
    }
    // Refuse new connections at once, rather than leave them in the queue.
    drop(listener);
    drop(stop);
    let finish = async { while connections.join_next().await.is_some() {} };
    if timeout(grace, finish).await.is_err() {
        tracing::warn!(?grace, left = connections.len(), "connections cut at shutdown");
    }
}

/// A request that is not answered by JSON-RPC.
struct Refusal {
    status: StatusCode,
    text: String,
}

fn refuse(status: StatusCode, text: impl Into<String>) -> Refusal {
    Refusal { status, text: text.into() }
}

impl Port {
    /// Serves one connection until it ends, or until `stopped` closes and its call is answered.
    async fn converse(self: Arc<Self>, socket: TcpStream, mut stopped: watch::Receiver<()>) {
        let io = TokioIo::new(Socket::new(socket, self.limits.write_idle));
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_read)
            .max_header_size(HEADER_BYTES);
        let upgrade = Mutex::new(None);
        let service = service_fn(|request| {
            let (port, upgrade) = (Arc::clone(&self), &upgrade);
            async move { Ok::<_, Infallible>(port.respond(request, upgrade).await) }
        });
        let mut connection = pin!(http.serve_connection(io, service).with_upgrades());
        let ended = tokio::select! {
            ended = &mut connection => ended,
            _ = stopped.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        };
        if let Err(fault) = ended {
            tracing::debug!(%fault, "a connection broke");
            return;
        }
        let upgrade = upgrade.lock().expect("nothing panics while it is held").take();
        let Some(upgrade) = upgrade else { return };
        match upgrade.await {
            Ok(upgraded) => {
                let message_bytes = self.limits.body_bytes;
                let socket = WebSocket::after(upgraded, Role::Server, message_bytes).await;
                session::converse(self, socket, stopped).await;
            }
            Err(fault) => tracing::debug!(%fault, "a connection broke at the handshake"),
        }
    }

    async fn respond(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        upgrade: &Mutex<Option<OnUpgrade>>,
    ) -> Response<Answer> {
        let asked = hyper::upgrade::on(&mut request);
        let (head, body) = request.into_parts();
        if let Err(refusal) = self.check(&head, &body) {
            // A client that asked before sending its body will not send it.
            if !head.headers.contains_key(header::EXPECT) {
                tokio::spawn(discard(body));
            }
            return refusal.into();
        }
        if handshake::is_asked(&head) {
            return match handshake::accept(&head) {
                Ok(headers) => {
                    *upgrade.lock().expect("nothing panics while it is held") = Some(asked);
                    switching(headers)
                }
                Err((status, text)) => refuse(status, text).into(),
            };
        }
        match self.read(body).await {
            Ok(message) => self.answer(message).await.unwrap_or_else(Response::from),
            Err(refusal) => refusal.into(),
        }
    }

    /// All that can be said against a request before its body is read.
    fn check(&self, head: &Parts, body: &Incoming) -> Result<(), Refusal> {
        if let Some(secret) = &self.jwt {
            authorize(secret, &head.headers)
                .map_err(|reason| refuse(StatusCode::UNAUTHORIZED, reason))?;
        }
        if head.uri.path() != "/" {
            return Err(refuse(StatusCode::NOT_FOUND, "JSON-RPC is served at the path / alone"));
        }
        if handshake::is_asked(head) {
            return Ok(());
        }
        if head.method != Method::POST {
            let text = "JSON-RPC needs POST, with a JSON body and content-type application/json";
            return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        check_content(&head.headers)?;
        if body.size_hint().lower() > self.limits.body_bytes as u64 {
            return Err(self.too_long());
        }
        Ok(())
    }

    fn too_long(&self) -> Refusal {
        let text =
            format!("the body is too long: at most {} bytes are taken", self.limits.body_bytes);
        refuse(StatusCode::PAYLOAD_TOO_LARGE, text)
    }

    async fn read(&self, mut body: Incoming) -> Result<Vec<u8>, Refusal> {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut message = Vec::with_capacity(announced.min(BODY_START_BYTES));
        loop {
            let frame = match timeout(self.limits.body_idle, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => return Ok(message),
                Ok(Some(Err(fault))) => {
                    let text = format!("the body is broken: {fault}");
                    return Err(refuse(StatusCode::BAD_REQUEST, text));
                }
                Err(_) => {
                    let text = format!(
                        "the body stopped: no byte for {:?}, {} bytes so far",
                        self.limits.body_idle,
                        message.len()
                    );
                    return Err(refuse(StatusCode::REQUEST_TIMEOUT, text));
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > self.limits.body_bytes - message.len() {
                tokio::spawn(discard(body));
                return Err(self.too_long());
            }
            message.extend_from_slice(&data);
        }
    }

    /// Calls the handler.
    async fn answer(self: Arc<Self>, message: Vec<u8>) -> Result<Response<Answer>, Refusal> {
        let port = Arc::clone(&self);
        let called = self.run(move || answer(&message, &*port.handler, &port.limits)).await;
        let called = called.map_err(|unanswered| {
            let status = match unanswered {
                Unanswered::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
                Unanswered::Lost => StatusCode::INTERNAL_SERVER_ERROR,
            };
            refuse(status, unanswered.to_string())
        })?;
        let Some(Answered { json, room }) = called else {
            let mut response = Response::new(Answer::default());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Ok(response);
        };
        let left_bytes = json.len_bytes();
        let answer = Answer { parts: json.parts.into(), left_bytes, _room: Some(room) };
        let mut response = Response::new(answer);
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    }
}

/// Reads the rest of a refused body, within bounds, to let its sender come to the answer.
async fn discard(mut body: Incoming) {
    let read = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DISCARD_BYTES {
                break;
            }
        }
    };
    // Past the time, the connection is closed on the sender: it was told.
    timeout(DISCARD_TIME, read).await.unwrap_or_default();
}

/// The answer after which both sides speak WebSocket.
fn switching(headers: [(HeaderName, HeaderValue); 3]) -> Response<Answer> {
    let mut response = Response::new(Answer::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().extend(headers);
    response
}

fn authorize(secret: &JwtSecret, headers: &HeaderMap) -> Result<(), String> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Err("missing token: send the header authorization: Bearer <JWT>".into());
    };
    if values.next().is_some() {
        return Err("more than one authorization header".into());
    }
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    secret.verify(token.ok_or("malformed token: the authorization header is not Bearer <JWT>")?)
}

/// The content types that geth takes too.
const JSON_TYPES: [&str; 3] =
    ["application/json", "application/json-rpc", "application/jsonrequest"];

fn check_content(headers: &HeaderMap) -> Result<(), Refusal> {
    let of = |name| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let kind = of(header::CONTENT_TYPE).unwrap_or("none");
    let media = kind.split(';').next().unwrap_or_default().trim();
    if !JSON_TYPES.iter().any(|json| media.eq_ignore_ascii_case(json)) {
        let text = format!("the content-type is {kind}: only application/json is taken");
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    match of(header::CONTENT_ENCODING) {
        None => Ok(()),
        Some(encoding) if encoding.eq_ignore_ascii_case("identity") => Ok(()),
        Some(encoding) => {
            let text = format!("the content-encoding is {encoding}: send the body as it is");
            Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
        }
    }
}

impl From<Refusal> for Response<Answer> {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, text } = refusal;
        tracing::debug!(%status, text, "refused a request");
        let mut response = Response::new(Answer::from(text + "\n"));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, plain);
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            // Who has no token does not keep a place that one who has may need.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}

/// A response body: pieces that go to the socket one after the other, uncopied.
#[derive(Default)]
struct Answer {
    parts: VecDeque<Bytes>,
    left_bytes: usize,
    /// Given back when the last piece was handed over, or the connection ended.
    _room: Option<OwnedSemaphorePermit>,
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        let text = Bytes::from(text);
        Self { left_bytes: text.len(), parts: [text].into(), _room: None }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({} bytes left)", self.left_bytes)
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.pop_front();
        self.left_bytes -= part.as_ref().map_or(0, Bytes::len);
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes as u64)
    }
}
