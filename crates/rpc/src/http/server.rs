//! HTTP/1.1 and HTTP/2 without TLS, for the engine port and the public port alike, on TCP and on
//! Unix sockets.
//!
//! `POST /` with a JSON body, `GET /` to go on as a WebSocket (HTTP/1.1 alone), and the handler's
//! resources at their paths. HTTP/2 begins with its preface, without an upgrade. Every refusal of
//! JSON-RPC is a plain-text line that says what to do. Answers go as they are to all who do not ask
//! for zstd: on one host, and on any fast network, compressing takes longer than sending. On a Unix
//! socket JSON-RPC may also come bare: whoever begins with a brace or a bracket is answered
//! likewise.
//!
//! Browsers: no CORS header is ever sent, and the JSON content type makes browsers ask before
//! they send, so a page from elsewhere gets neither a call through nor an answer to read; nor does
//! it get a WebSocket. What the `Host` header says is not looked at: put a proxy before a public
//! port whose name others control.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::http::coding::{Accepted, Coded, is_coded};
use crate::http::handshake;
use crate::http::resource as rest;
use crate::http::streams::{Open, Over, Sending, Streams};
use crate::jsonrpc::message::{self, Handler, panic_text};
use crate::jsonrpc::session::{self, READ_TOO_SLOWLY};
use crate::jwt::JwtSecret;
use crate::limits::{
    BODY_START_BYTES, BODY_STEP_BYTES, CHUNK_BYTES, CONNECTION_WINDOW_BYTES, DESCRIPTOR_BYTES,
    DISCARD_BYTES, DISCARD_TIME, HEADER_BYTES, HTTP2_FRAME_BYTES, LENT_FILES, STREAM_WINDOW_BYTES,
};
use crate::pieces::Pieces;
use crate::port::{Answered, Pace, Port, ServerOptions, Unanswered};
use crate::transport::descriptor::{Descriptors, Files, Lent, Outgoing};
use crate::transport::ipc;
use crate::transport::room::{Place, Untaken};
use crate::transport::socket::{Listener, Socket, Stream};
use crate::transport::turns::{Order, Turn};
use crate::transport::websocket::WebSocket;

/// Serves until `shutdown` is done, then lets running calls finish for
/// [`Limits::shutdown_grace`](crate::Limits::shutdown_grace); a WebSocket is told that it ends.
///
/// It needs a tokio runtime with time and I/O. A call that outlives the grace keeps its thread,
/// and may keep its connection until then.
pub async fn serve(
    listener: impl Into<Listener>,
    options: ServerOptions,
    handler: Arc<dyn Handler>,
    shutdown: impl Future<Output = ()>,
) {
    let (port, listener) = (Arc::new(Port::new(options, handler)), listener.into());
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

/// A connection that is about to become a WebSocket, and the place that it takes.
type Upgrade = (OnUpgrade, OwnedSemaphorePermit);

/// A request that is not answered by JSON-RPC.
struct Refusal {
    status: StatusCode,
    text: String,
}

impl Refusal {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// Of a call that was not answered.
    fn unanswered(unanswered: Unanswered) -> Self {
        let status = match unanswered {
            Unanswered::Busy(_) | Unanswered::Full => StatusCode::SERVICE_UNAVAILABLE,
            Unanswered::Lost => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, unanswered.to_string())
    }
}

impl Port {
    /// Serves one connection until it ends, or until `stopped` closes and its call is answered.
    async fn converse(self: Arc<Self>, stream: Stream, mut stopped: watch::Receiver<()>) {
        let mut socket = Socket::new(stream, self.limits.write_idle);
        let begun = timeout(self.limits.header_read, socket.peek(is_protocol_clear));
        let begun = tokio::select! {
            begun = begun => begun,
            _ = stopped.changed() => return,
        };
        match begun {
            // Who says nothing is told nothing.
            Err(_) => {}
            Ok(Err(fault)) => tracing::debug!(%fault, "a connection broke"),
            Ok(Ok(begun)) if begun.is_empty() => {}
            Ok(Ok(begun)) if begun.starts_with(PREFACE) => {
                self.converse_in_http2(socket, stopped).await
            }
            Ok(Ok(begun)) if socket.is_unix() && is_json(&begun) => {
                let untaken = socket.untaken();
                let (reader, mut writer) = ipc::split(socket, self.limits.body_bytes);
                let place = tokio::select! {
                    place = self.turn(&self.sessions, 1) => place,
                    _ = stopped.changed() => return,
                };
                match place {
                    Ok(_place) => {
                        session::converse(self, reader, writer, untaken, stopped).await;
                    }
                    Err(unanswered) => writer.refuse(unanswered).await,
                }
            }
            Ok(Ok(_)) => self.converse_in_http1(socket, stopped).await,
        }
    }

    /// How long a client of HTTP may ask for nothing.
    fn idle(&self, socket: &Socket) -> Duration {
        if socket.is_unix() { self.limits.unix_header_read } else { self.limits.header_read }
    }

    async fn converse_in_http2(self: Arc<Self>, socket: Socket, mut stopped: watch::Receiver<()>) {
        let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .max_header_list_size(HEADER_BYTES as u32)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(HTTP2_FRAME_BYTES)
            .max_send_buf_size(CHUNK_BYTES)
            .max_concurrent_streams(u32::try_from(self.limits.messages).unwrap_or(u32::MAX))
            .keep_alive_interval(self.limits.silence)
            .keep_alive_timeout(self.limits.silence);
        let idle = self.idle(&socket);
        let stalled = self.limits.write_idle;
        let untaken = socket.untaken();
        let connection = Connection { untaken: Arc::clone(&untaken), ..Connection::default() };
        let (connection, streams) = (Arc::new(connection), Streams::new());
        let service = service_fn(|request| {
            let (port, connection) = (Arc::clone(&self), Arc::clone(&connection));
            let (streams, stream) = (Arc::clone(&streams), streams.open());
            // This is called in the order in which the requests come.
            let turn = connection.order.line_up();
            let is_head = request.method() == Method::HEAD;
            async move {
                let mut response = port.respond(request, connection, None, Some(turn)).await;
                if is_head {
                    leave_out_body(&mut response);
                }
                if response.status() == StatusCode::UNAUTHORIZED {
                    streams.refuse();
                }
                Ok::<_, Infallible>(response.map(|answer| answer.sent_by(stream)))
            }
        });
        let mut served = pin!(http.serve_connection(TokioIo::new(socket), service));
        let mut is_ending = false;
        let ended = loop {
            // What has come is seen before it is asked who takes nothing: the process may have been
            // stopped for long.
            tokio::select! {
                biased;
                ended = &mut served => break ended,
                _ = stopped.changed(), if !is_ending => {}
                () = untaken.over().notified() => return tracing::debug!("{READ_TOO_SLOWLY}"),
                over = streams.over(idle, stalled) => if over == Over::Stalled {
                    tracing::debug!("a connection was cut: the other side did not read");
                    return;
                },
            }
            is_ending = true;
            streams.end();
            served.as_mut().graceful_shutdown();
        };
        if let Err(fault) = ended {
            tracing::debug!(%fault, "a connection broke");
        }
    }

    async fn converse_in_http1(self: Arc<Self>, socket: Socket, mut stopped: watch::Receiver<()>) {
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.idle(&socket))
            .max_header_size(HEADER_BYTES);
        let upgrade = Mutex::new(None);
        let (descriptors, untaken) = (socket.descriptors(), socket.untaken());
        let connection = Arc::new(Connection {
            descriptors,
            untaken: Arc::clone(&untaken),
            ..Connection::default()
        });
        let service = service_fn(|request| {
            let (port, connection) = (Arc::clone(&self), Arc::clone(&connection));
            let upgrade = Some(&upgrade);
            let answer = port.respond(request, connection, upgrade, None);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let served = pin!(http.serve_connection(TokioIo::new(socket), service).with_upgrades());
        let served = until_stopped(served, &mut stopped, |served| served.graceful_shutdown());
        let ended = tokio::select! {
            ended = served => ended,
            () = untaken.over().notified() => return tracing::debug!("{READ_TOO_SLOWLY}"),
        };
        if let Err(fault) = ended {
            tracing::debug!(%fault, "a connection broke");
            return;
        }
        let upgrade = upgrade.lock().expect("nothing panics while it is held").take();
        let Some((upgrade, _place)) = upgrade else { return };
        match upgrade.await {
            Ok(upgraded) => {
                let message_bytes = self.limits.body_bytes;
                let socket = WebSocket::after(upgraded, Role::Server, message_bytes).await;
                let (mut reader, writer) = socket.split();
                reader.take_room_for_messages(&self);
                session::converse(self, reader, writer, untaken, stopped).await;
            }
            Err(fault) => tracing::debug!(%fault, "a connection broke at the handshake"),
        }
    }

    async fn respond(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        connection: Arc<Connection>,
        upgrade: Option<&Mutex<Option<Upgrade>>>,
        turn: Option<Turn>,
    ) -> Response<Answer> {
        let asked = hyper::upgrade::on(&mut request);
        let (head, body) = request.into_parts();
        let is_resource = self.is_resource(&head);
        let refuse = |refusal| self.refuse(is_resource, refusal);
        if is_resource {
            // Also when no more comes of the request: it is said once.
            connection.take_back(&head.headers);
        }
        if let Err(refusal) = self.check(&head, &body, is_resource) {
            // A client that asked before sending its body will not send it.
            if !head.headers.contains_key(header::EXPECT) {
                tokio::spawn(discard(body));
            }
            return refuse(refusal);
        }
        if !is_resource && is_probe(&head, &body) {
            return Response::new(Answer::from(String::new()));
        }
        if let (false, Some(upgrade)) = (is_resource, upgrade)
            && handshake::is_asked(&head)
        {
            let headers = match handshake::accept(&head) {
                Ok(headers) => headers,
                Err((status, text)) => return refuse(Refusal::new(status, text)),
            };
            let place = match self.turn(&self.sessions, 1).await {
                Ok(place) => place,
                Err(unanswered) => return refuse(Refusal::unanswered(unanswered)),
            };
            *upgrade.lock().expect("nothing panics while it is held") = Some((asked, place));
            return switching(headers);
        }
        let message = match self.read(body).await {
            Ok(message) => message,
            Err(refusal) => return refuse(refusal),
        };
        let turn = turn.filter(|_| match is_resource {
            true => self.handler.is_resource_in_order(head.uri.path()),
            false => message::is_in_order(&message.bytes, &*self.handler),
        });
        if let Some(turn) = &turn
            && let Err(unanswered) = self.in_time(turn.come()).await
        {
            return refuse(Refusal::unanswered(unanswered));
        }
        let (accepted, method) = (Accepted::read(&head.headers), head.method.clone());
        let answer = match is_resource {
            true => Arc::clone(&self).answer_resource(head, message, turn, connection).await,
            false => Arc::clone(&self).answer(message, turn, &connection.untaken).await,
        };
        answer.and_then(|answer| self.code(accepted, &method, answer)).unwrap_or_else(refuse)
    }

    fn is_resource(&self, head: &Parts) -> bool {
        self.handler.resources().is_some_and(|prefix| head.uri.path().starts_with(prefix))
    }

    /// Says no to a request, as those who ask for resources, or those who call methods, expect it.
    fn refuse(&self, is_resource: bool, refusal: Refusal) -> Response<Answer> {
        let Refusal { status, text } = &refusal;
        if !is_resource || *status == StatusCode::UNAUTHORIZED {
            return refusal.into();
        }
        tracing::debug!(%status, text, "refused a request");
        resource(self.handler.refuse_resource(*status, text), None)
    }

    /// All that can be said against a request before its body is read.
    fn check(&self, head: &Parts, body: &Incoming, is_resource: bool) -> Result<(), Refusal> {
        // RFC 9112 section 3.2.
        let hosts = head.headers.get_all(header::HOST).iter().count();
        if head.version == Version::HTTP_11 && hosts != 1 {
            let text = format!("HTTP/1.1 needs one Host header, and this request has {hosts}");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
        }
        if let Some(secret) = &self.jwt {
            authorize(secret, &head.headers).map_err(|reason| {
                if self.unauthorized.is_due() {
                    tracing::warn!(reason, "a request without a valid token");
                }
                Refusal::new(StatusCode::UNAUTHORIZED, reason)
            })?;
        }
        if !is_resource {
            if head.uri.path() != "/" {
                let text = "JSON-RPC is served at the path / alone";
                return Err(Refusal::new(StatusCode::NOT_FOUND, text));
            }
            if handshake::is_asked(head) && head.version != Version::HTTP_2 {
                return Ok(());
            }
            if is_probe(head, body) {
                return Ok(());
            }
            if head.method != Method::POST {
                let text =
                    "JSON-RPC needs POST, with a JSON body and content-type application/json";
                return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text));
            }
            check_content(&head.headers)?;
        }
        let Accepted { zstd, identity } = Accepted::read(&head.headers);
        if !identity && (!zstd || self.limits.zstd_bytes == usize::MAX) {
            let text = "no coding that accept-encoding takes is spoken here: let identity be one";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, text));
        }
        if body.size_hint().lower() > self.limits.body_bytes as u64 {
            return Err(self.too_long());
        }
        Ok(())
    }

    fn too_long(&self) -> Refusal {
        let text =
            format!("the body is too long: at most {} bytes are taken", self.limits.body_bytes);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
    }

    async fn read(&self, mut body: Incoming) -> Result<Message, Refusal> {
        if body.is_end_stream() {
            return Ok(Message::default());
        }
        let over = Arc::default();
        let begun = self.small_bodies.take(BODY_STEP_BYTES, &over);
        let begun = match self.in_time(begun).await {
            Ok(begun) => begun,
            Err(unanswered) => {
                tokio::spawn(discard(body));
                return Err(Refusal::unanswered(unanswered));
            }
        };
        begun.goes_on();
        let mut places = Places { begun, more: None };
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(announced.min(BODY_START_BYTES));
        let begun = Instant::now();
        let read = tokio::select! {
            biased;
            read = self.read_all(&mut body, &mut bytes, &mut places, &over) => read,
            () = over.notified() => Err(too_slow(bytes.len(), begun)),
        };
        match read {
            Ok(()) if !places.keep() => Err(too_slow(bytes.len(), begun)),
            Ok(()) => Ok(Message { bytes, _places: Some(places) }),
            Err(refusal) => {
                // Else whoever is still writing finds a connection that was reset.
                tokio::spawn(discard(body));
                Err(refusal)
            }
        }
    }

    async fn read_all(
        &self,
        body: &mut Incoming,
        bytes: &mut Vec<u8>,
        places: &mut Places,
        over: &Arc<Notify>,
    ) -> Result<(), Refusal> {
        let mut room_bytes = BODY_STEP_BYTES;
        loop {
            let frame = match timeout(self.limits.body_idle, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => return Ok(()),
                Ok(Some(Err(fault))) => {
                    let text = format!("the body is broken: {fault}");
                    return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
                }
                Err(_) => {
                    let text = format!(
                        "the body stopped: no byte for {:?}, {} bytes so far",
                        self.limits.body_idle,
                        bytes.len()
                    );
                    return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, text));
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > self.limits.body_bytes - bytes.len() {
                return Err(self.too_long());
            }
            bytes.extend_from_slice(&data);
            if bytes.len() > room_bytes {
                let more = (bytes.len() - room_bytes).next_multiple_of(BODY_STEP_BYTES);
                room_bytes += more;
                let grown = async {
                    match &mut places.more {
                        Some(place) => place.grow(more).await,
                        None => places.more = Some(self.bodies.take(more, over).await),
                    }
                };
                self.in_time(grown).await.map_err(Refusal::unanswered)?;
                places.goes_on();
            }
        }
    }

    /// Has an answer coded while it is sent, where that is wanted and worth it.
    fn code(
        &self,
        accepted: Accepted,
        method: &Method,
        mut response: Response<Answer>,
    ) -> Result<Response<Answer>, Refusal> {
        let from_bytes = self.limits.zstd_bytes;
        let Content::AsIs(pieces) = &mut response.body_mut().content else { return Ok(response) };
        let pieces = std::mem::take(pieces);
        let body_bytes = pieces.len_bytes();
        let coder = Arc::clone(&self.coders).try_acquire_owned().ok();
        // Where there is no room for another, who takes the bytes as they are gets them so.
        let zstd = accepted.zstd && (coder.is_some() || !accepted.identity);
        let accepted = Accepted { zstd, ..accepted };
        let is_coded = is_coded(accepted, from_bytes, method, body_bytes, &mut response);
        response.body_mut().content = match (is_coded, coder) {
            (true, Some(coder)) => Content::Coded(Box::new(Coded::new(pieces, coder))),
            (true, None) => return Err(Refusal::unanswered(Unanswered::Full)),
            (false, _) => Content::AsIs(pieces),
        };
        Ok(response)
    }

    /// Calls the handler's methods. The turn ends with the calls: a client that hangs up does not
    /// end them.
    async fn answer(
        self: Arc<Self>,
        message: Message,
        turn: Option<Turn>,
        untaken: &Untaken,
    ) -> Result<Response<Answer>, Refusal> {
        let port = Arc::clone(&self);
        let pace = message::pace(&message.bytes, &*port.handler);
        // What waits for it is dropped when the client hangs up.
        let waits = Arc::new(());
        let is_wanted = Arc::downgrade(&waits);
        let called = self.run(pace, untaken, move || {
            let _turn = turn;
            let is_wanted = || is_wanted.strong_count() > 0;
            message::answer_while(&message.bytes, &*port.handler, &port.limits, &is_wanted)
        });
        let called = called.await;
        let Some(Answered { answer, room }) = called.map_err(Refusal::unanswered)? else {
            let mut response = Response::new(Answer::default());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Ok(response);
        };
        let mut response = Response::new(Answer::new(answer.pieces, Some(room)));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    }

    /// Asks the handler for a resource. The turn ends when it has answered.
    async fn answer_resource(
        self: Arc<Self>,
        head: Parts,
        message: Message,
        turn: Option<Turn>,
        connection: Arc<Connection>,
    ) -> Result<Response<Answer>, Refusal> {
        let Parts { method, uri, headers, .. } = head;
        let by_descriptor = headers.contains_key(rest::DESCRIPTOR) && method != Method::HEAD;
        let (path, query) = (uri.path().to_owned(), uri.query().map(str::to_owned));
        let takes_files = connection.descriptors.is_some();
        let Message { bytes, _places: places } = message;
        let (body, remembered) = (bytes.into(), connection.remembered.clone());
        let request = rest::Request {
            method,
            path,
            query,
            headers,
            body,
            takes_files,
            connection: remembered,
        };
        let pace = match self.handler.is_quick_resource(&request) {
            true => Pace::Quick,
            false => Pace::Long,
        };
        let (port, untaken) = (Arc::clone(&self), Arc::clone(&connection.untaken));
        let remembered = connection.remembered.clone();
        let answer = move || {
            let mut response = resource_of(&*port.handler, request);
            drop((places, turn));
            let passed = match response.file.take() {
                Some(file) if by_descriptor => connection.pass(file, &mut response),
                Some(_) => Err((StatusCode::BAD_REQUEST, ONLY_BY_DESCRIPTOR)),
                None => Ok(()),
            };
            match passed {
                Ok(()) if by_descriptor => connection.lend(&port.files, &mut response),
                Ok(()) => {}
                Err((status, text)) => response = port.handler.refuse_resource(status, text),
            }
            Some(response)
        };
        let called = self.run(pace, &untaken, answer).await;
        let answered = called.map_err(|unanswered| {
            // It may have noted that it sent what is not sent.
            remembered.forget();
            Refusal::unanswered(unanswered)
        })?;
        let Answered { answer, room } = answered.expect("every request is answered");
        Ok(resource(answer, Some(room)))
    }
}

/// Why a file is not passed.
const ONLY_BY_DESCRIPTOR: &str = "this is a file, which is passed by descriptor alone: over the \
     Unix socket, in HTTP/1.1, with the header Deponent-Descriptor";

/// So is this.
const TOO_MANY_FILES: &str = "too many files wait to be passed on this connection";

/// A refusal: the status, and why.
type Refused = (StatusCode, &'static str);

/// A request's body.
#[derive(Debug, Default)]
struct Message {
    bytes: Vec<u8>,
    _places: Option<Places>,
}

/// The room that it takes: that of its beginning, and that of more.
#[derive(Debug)]
struct Places {
    begun: Place,
    more: Option<Place>,
}

impl Places {
    fn goes_on(&self) {
        self.begun.goes_on();
        self.more.iter().for_each(Place::goes_on);
    }

    /// As [`Place::keep`].
    fn keep(&self) -> bool {
        let is_kept = self.begun.keep();
        self.more.as_ref().is_none_or(Place::keep) && is_kept
    }
}

/// Why a body is not read to its end.
fn too_slow(bytes: usize, begun: Instant) -> Refusal {
    let text = format!(
        "the body came too slowly while others had no room: {bytes} bytes in {:.1?}, try again",
        begun.elapsed()
    );
    Refusal::new(StatusCode::REQUEST_TIMEOUT, text)
}

/// What belongs to one connection that speaks HTTP.
#[derive(Debug, Default)]
struct Connection {
    untaken: Arc<Untaken>,
    /// Of the requests that come side by side.
    order: Arc<Order>,
    /// What the handler remembers of it.
    remembered: rest::Connection,
    /// How files get to the client, where they can.
    descriptors: Option<Descriptors>,
    lent: Mutex<LentFiles>,
}

#[derive(Debug, Default)]
struct LentFiles {
    /// By their ids.
    files: BTreeMap<u64, Arc<Lent>>,
    last_id: u64,
}

impl Connection {
    /// Passes a large body in a file, if the client can get one.
    fn lend(&self, files: &Arc<Files>, response: &mut rest::Response) {
        let Some(descriptors) = &self.descriptors else { return };
        let length = response.body.len_bytes();
        let is_worth_it = response.status == StatusCode::OK && length >= DESCRIPTOR_BYTES;
        if !is_worth_it || self.lent().files.len() >= LENT_FILES {
            return;
        }
        match files.fill(&response.body) {
            Ok(Some(file)) => {
                let file = Arc::new(file);
                let mut lent = self.lent();
                lent.last_id += 1;
                let id = lent.last_id;
                lent.files.insert(id, Arc::clone(&file));
                drop(lent);
                descriptors.send(Outgoing::Lent(file));
                let named = format!("{id};length={length}");
                let named = HeaderValue::try_from(named).expect("numbers may be a header");
                response.headers.insert(rest::DESCRIPTOR, named);
                response.body = Pieces::default();
            }
            Ok(None) => {}
            Err(fault) => tracing::warn!(%fault, "an answer was not passed by descriptor"),
        }
    }

    /// Passes a file as it is.
    fn pass(&self, file: Arc<fs::File>, response: &mut rest::Response) -> Result<(), Refused> {
        let only = (StatusCode::BAD_REQUEST, ONLY_BY_DESCRIPTOR);
        let descriptors = self.descriptors.as_ref().ok_or(only)?;
        if descriptors.waiting() >= LENT_FILES {
            return Err((StatusCode::SERVICE_UNAVAILABLE, TOO_MANY_FILES));
        }
        let length = file.metadata().map_err(|fault| {
            tracing::warn!(%fault, "a file was not passed");
            (StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be read")
        })?;
        let named = HeaderValue::try_from(format!("file;length={}", length.len()));
        response.headers.insert(rest::DESCRIPTOR, named.expect("a word and a number"));
        descriptors.send(Outgoing::File(file));
        Ok(())
    }

    /// Takes back what the client does not need any more.
    fn take_back(&self, headers: &HeaderMap) {
        let lists = headers.get_all(rest::RELEASE).iter();
        let ids = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
        for id in ids.filter_map(|id| id.trim().parse().ok()) {
            // One that is not lent was taken back before; one that is not sent yet stays.
            let file = self.lent().files.remove::<u64>(&id).and_then(Arc::into_inner);
            if let Some(file) = file {
                file.give_back();
            }
        }
    }

    fn lent(&self) -> MutexGuard<'_, LentFiles> {
        self.lent.lock().expect("nothing panics while it is held")
    }
}

/// Asks for a resource; a panic is a fault of ours.
fn resource_of(handler: &dyn Handler, request: rest::Request) -> rest::Response {
    let path = request.path.clone();
    catch_unwind(AssertUnwindSafe(|| handler.resource(request))).unwrap_or_else(|panic| {
        let reason = panic_text(&*panic);
        tracing::error!(path, reason, "a resource panicked");
        let text = "the request failed; the server's log says why";
        handler.refuse_resource(StatusCode::INTERNAL_SERVER_ERROR, text)
    })
}

fn resource(response: rest::Response, room: Option<Arc<Place>>) -> Response<Answer> {
    let rest::Response { status, headers, body, file: _ } = response;
    let mut response = Response::new(Answer::new(body, room));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Serves a connection until it ends; once `stopped` closes, `end` has it end soon.
async fn until_stopped<C: Future>(
    mut connection: Pin<&mut C>,
    stopped: &mut watch::Receiver<()>,
    end: impl FnOnce(Pin<&mut C>),
) -> C::Output {
    tokio::select! {
        ended = &mut connection => return ended,
        _ = stopped.changed() => end(connection.as_mut()),
    }
    connection.await
}

/// How HTTP/2 begins (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether so many bytes are enough to know what is spoken.
fn is_protocol_clear(begun: &[u8]) -> bool {
    !begun.is_empty() && (begun.len() >= PREFACE.len() || !PREFACE.starts_with(begun))
}

/// Whether a connection that begins so speaks JSON-RPC without HTTP around it.
fn is_json(begun: &[u8]) -> bool {
    let first = begun.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_none_or(|byte| matches!(byte, b'{' | b'['))
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

/// Whether somebody asks no more than whether there is a server, as load balancers do: geth answers
/// that too.
fn is_probe(head: &Parts, body: &Incoming) -> bool {
    let has_no_query = head.uri.query().is_none();
    let wants_no_other = !head.headers.contains_key(header::UPGRADE);
    let asks = matches!(head.method, Method::GET | Method::HEAD);
    asks && has_no_query && wants_no_other && body.is_end_stream()
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
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    match of(header::CONTENT_ENCODING) {
        None => Ok(()),
        Some(encoding) if encoding.eq_ignore_ascii_case("identity") => Ok(()),
        Some(encoding) => {
            let text = format!("the content-encoding is {encoding}: send the body as it is");
            Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
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
            // RFC 9110 section 7.8.
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        }
        response
    }
}

/// Leaves what HTTP/2 would send in answer to HEAD: of the body its length (RFC 9110, 9.3.2).
fn leave_out_body(response: &mut Response<Answer>) {
    if let Some(bytes) = response.body().size_hint().exact() {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(bytes.into());
    }
    response.body_mut().content = Content::default();
}

/// A response body: pieces that go to the socket one after the other.
#[derive(Debug, Default)]
struct Answer {
    content: Content,
    /// Given back when the last piece was written, or the connection ended.
    room: Option<Arc<Place>>,
    /// Over HTTP/2, where an answer that waits does not keep others from being written: it has the
    /// room.
    sending: Option<Arc<Sending>>,
}

#[derive(Debug)]
enum Content {
    AsIs(Pieces),
    Coded(Box<Coded>),
}

impl Default for Content {
    fn default() -> Self {
        Self::AsIs(Pieces::default())
    }
}

impl Answer {
    const fn new(pieces: Pieces, room: Option<Arc<Place>>) -> Self {
        Self { content: Content::AsIs(pieces), room, sending: None }
    }

    /// The same, which goes on a stream of HTTP/2.
    fn sent_by(mut self, stream: Open) -> Self {
        self.sending = Some(stream.sends(self.room.take()));
        self
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::new(text.into_bytes().into(), None)
    }
}

/// Dropped when it is written, or when nobody wants it any more.
struct Chunk {
    bytes: Bytes,
    _room: Arc<Place>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let chunk = match &mut self.content {
            Content::AsIs(pieces) => Ok(pieces.take(CHUNK_BYTES)),
            Content::Coded(coded) => coded.take(),
        };
        let is_end = chunk.as_ref().is_ok_and(Bytes::is_empty);
        // Chunks that were handed over may wait for long.
        let watched = |bytes| match (&self.sending, &self.room) {
            (Some(sending), _) => sending.chunk(bytes),
            (None, Some(room)) => Bytes::from_owner(Chunk { bytes, _room: Arc::clone(room) }),
            (None, None) => bytes,
        };
        Poll::Ready((!is_end).then(|| chunk.map(watched).map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::AsIs(pieces) => pieces.is_empty(),
            Content::Coded(coded) => coded.is_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::AsIs(pieces) => SizeHint::with_exact(pieces.len_bytes() as u64),
            Content::Coded(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::room::Room;
    use std::task::Waker;

    /// The library that sends them has up to half a megabyte of them in its queue.
    #[test]
    fn an_answer_has_its_room_until_its_last_chunk_is_written() {
        let (bytes, over) = (3 * CHUNK_BYTES, Arc::default());
        let room = Room::new(bytes, Duration::ZERO);
        let place = room.try_take(bytes, &over).expect("it is empty");
        let mut answer = Answer::new(vec![7; bytes].into(), Some(Arc::new(place)));
        let mut chunks = Vec::new();
        let cx = &mut Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(frame)) = Pin::new(&mut answer).poll_frame(cx) {
            let chunk = frame.expect("memory").into_data().expect("no trailers");
            assert!(chunk.iter().all(|byte| *byte == 7));
            chunks.push(chunk);
        }
        drop(answer);
        assert_eq!(chunks.iter().map(Bytes::len).sum::<usize>(), bytes);
        while chunks.pop().is_some() {
            assert_eq!(room.try_take(1, &over).is_some(), chunks.is_empty());
        }
    }
}
