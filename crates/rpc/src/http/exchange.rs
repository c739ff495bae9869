//! One request over HTTP and its response: a message of JSON-RPC, a resource, or the handshake of a
//! WebSocket.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};

use crate::http::body::{self, RequestBody};
use crate::http::check::{check, is_probe, wants_page};
use crate::http::coding::encode::EncodedBody;
use crate::http::coding::negotiate::{AcceptedCodings, is_coded};
use crate::http::handshake;
use crate::http::lending::{LendingConnection, ONLY_BY_DESCRIPTOR};
use crate::http::origin::share;
use crate::http::refusal::Refusal;
use crate::http::resource as rest;
use crate::http::response_body::{Content, ResponseBody};
use crate::jsonrpc::error::Error;
use crate::jsonrpc::message::{self, panic_text};
use crate::jsonrpc::schedule::Pace;
use crate::port::{Port, ReservedAnswer, Unanswered};
use crate::quote::{quote, shortened};
use crate::transport::budget::Reservation;
use crate::transport::slot::ConnectionSlot;
use crate::transport::socket::Socket;
use crate::transport::turns::{Turn, TurnQueue};

/// The shared state of the requests of one connection that speaks HTTP.
pub(super) struct HttpConnection {
    port: Arc<Port>,
    slot: Arc<ConnectionSlot>,
    /// For requests that come side by side.
    pub(super) turns: Arc<TurnQueue>,
    /// The values that the handler remembers of the connection.
    remembered: rest::Connection,
    lending: LendingConnection,
}

/// A connection that is about to become a WebSocket, and has its place among the sessions.
pub(super) type Upgrade = OnUpgrade;

/// A response, or the refusal of its request.
type Answer = Result<Response<ResponseBody>, Refusal>;

impl HttpConnection {
    /// A connection over which files are passed by descriptor where `takes_files`, which HTTP/1.1
    /// alone can, and the socket's kind allows it.
    pub(super) fn new(
        port: &Arc<Port>,
        slot: &Arc<ConnectionSlot>,
        socket: &Socket,
        takes_files: bool,
    ) -> Arc<Self> {
        let descriptors = if takes_files { socket.descriptors() } else { None };
        Arc::new(Self {
            port: Arc::clone(port),
            slot: Arc::clone(slot),
            turns: Arc::default(),
            remembered: rest::Connection::default(),
            lending: LendingConnection::new(descriptors),
        })
    }

    /// Answers one request. `upgrade` is where a WebSocket's handshake puts the connection, if it
    /// can become one. `turn` is the request's turn among those of the connection, if they come
    /// side by side.
    pub(super) async fn respond(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        upgrade: Option<&Mutex<Option<Upgrade>>>,
        turn: Option<Turn>,
    ) -> Response<ResponseBody> {
        self.slot.note_progress();
        let upgraded = hyper::upgrade::on(&mut request);
        let (head, body) = request.into_parts();
        let origin = self.port.origins.allowed(&head.headers);
        let is_preflight = self.port.origins.is_preflight(&head);
        let mut response = match is_preflight {
            true => no_content(),
            false => self.respond_to(head, body, upgraded, upgrade, turn).await,
        };
        if let Some(origin) = origin {
            share(response.headers_mut(), origin, is_preflight);
        }
        response
    }

    async fn respond_to(
        self: Arc<Self>,
        head: Parts,
        body: Incoming,
        upgraded: OnUpgrade,
        upgrade: Option<&Mutex<Option<Upgrade>>>,
        turn: Option<Turn>,
    ) -> Response<ResponseBody> {
        let is_resource = self.port.is_resource(head.uri.path());
        let refuse = |refusal| self.refuse(is_resource, refusal);
        if is_resource {
            // Also where the request is refused: the client says it only once.
            self.lending.take_back(&head.headers);
        }
        if let Err(refusal) = check(&self.port, &head, &body, is_resource) {
            // A client that waits for 100-continue does not send its body.
            if !head.headers.contains_key(header::EXPECT) {
                tokio::spawn(body::discard(body));
            }
            return refuse(refusal);
        }
        if self.port.jwt.is_some() {
            self.slot.trust();
        }
        if !is_resource
            && is_probe(&head, &body)
            && wants_page(&head)
            && let Some(page) = self.port.handler.page()
        {
            return self.answer_page(page).await.unwrap_or_else(refuse);
        }
        if !is_resource && is_probe(&head, &body) {
            return match self.port.handler.probe(head.uri.path()) {
                Some(Err(body)) => probed(StatusCode::SERVICE_UNAVAILABLE, body),
                Some(Ok(body)) => probed(StatusCode::OK, body),
                None => probed(StatusCode::OK, String::new()),
            };
        }
        if let (false, Some(upgrade)) = (is_resource, upgrade)
            && handshake::is_asked(&head)
        {
            return self.switch(&head, upgraded, upgrade).await.unwrap_or_else(refuse);
        }
        self.answer(head, body, is_resource, turn).await.unwrap_or_else(refuse)
    }

    async fn answer_page(&self, page: rest::Response) -> Answer {
        let memory = self.port.answer_memory(&self.slot, page.body.held_bytes()).await;
        let memory = memory.map_err(Refusal::unanswered)?;
        Ok(resource_response(page, Some(self.slot.unread.add(memory))))
    }

    /// Agrees to a WebSocket, once there is a permit for one more session.
    async fn switch(
        &self,
        head: &Parts,
        upgraded: OnUpgrade,
        upgrade: &Mutex<Option<Upgrade>>,
    ) -> Answer {
        if !self.port.origins.may_open_websocket(&head.headers) {
            let text = "WebSockets of this web page are not served: its origin is not allowed \
                        (--ws.origins)";
            return Err(Refusal::new(StatusCode::FORBIDDEN, text));
        }
        let headers = handshake::accept(head);
        let headers = headers.map_err(|(status, text)| Refusal::new(status, text))?;
        self.port.begin_session(&self.slot).await.map_err(Refusal::unanswered)?;
        *upgrade.lock().expect("nothing panics while it is locked") = Some(upgraded);
        Ok(switching(headers))
    }

    async fn answer(
        self: &Arc<Self>,
        head: Parts,
        body: Incoming,
        is_resource: bool,
        turn: Option<Turn>,
    ) -> Answer {
        let body = body::read(&self.port, &self.slot, body).await?;
        let _call = self.slot.call();
        let turn = turn.filter(|_| match is_resource {
            true => self.port.is_resource_in_order(head.uri.path()),
            false => self.port.methods.may_be_in_order(&body.bytes),
        });
        if let Some(turn) = &turn {
            self.port.in_time(turn.wait()).await.map_err(Refusal::unanswered)?;
        }
        let (accepted, method) = (AcceptedCodings::read(&head.headers), head.method.clone());
        let response = match is_resource {
            true => self.answer_resource(head, body, turn).await?,
            false => {
                let agent = head.headers.get(header::USER_AGENT).cloned();
                self.answer_message(body, turn, agent).await?
            }
        };
        encode(&self.port, accepted, &method, response)
    }

    /// Refuses a request in the form that its kind of client expects.
    fn refuse(&self, is_resource: bool, refusal: Refusal) -> Response<ResponseBody> {
        let Refusal { status, text } = &refusal;
        match self.port.resources() {
            Some(resources) if is_resource && *status != StatusCode::UNAUTHORIZED => {
                tracing::debug!(%status, text, "refused a request");
                resource_response(resources.refuse(*status, text), None)
            }
            _ => refusal.into(),
        }
    }

    /// Calls the handler's methods. The turn ends with the calls, whether or not the client hangs
    /// up before.
    async fn answer_message(
        &self,
        body: RequestBody,
        turn: Option<Turn>,
        agent: Option<HeaderValue>,
    ) -> Answer {
        // Only a token tells who has called.
        let agent = agent.filter(|_| self.port.jwt.is_some());
        let (port, host) = (Arc::clone(&self.port), self.slot.peer.host);
        // Dropped when the client hangs up, and with it the future of this function.
        let waits = Arc::new(());
        let is_wanted = Arc::downgrade(&waits);
        let called = self.port.answer_message(&self.slot, body, move |request| {
            let _turn = &turn;
            match is_wanted.strong_count() > 0 {
                true => {
                    if let Some(Ok(agent)) = agent.as_ref().map(HeaderValue::to_str) {
                        port.handler.user_agent(&request.method, agent);
                    }
                    message::call_handler(&*port.handler, host, request)
                }
                false => Err(Error::hung_up()),
            }
        });
        let called = called.await;
        let Some(ReservedAnswer { answer, memory }) = called.map_err(Refusal::unanswered)? else {
            let mut response = Response::new(ResponseBody::default());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Ok(response);
        };
        let mut response = Response::new(ResponseBody::new(answer.pieces, Some(memory)));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    }

    /// Asks the handler for a resource. The turn ends when it has answered.
    async fn answer_resource(
        self: &Arc<Self>,
        head: Parts,
        body: RequestBody,
        turn: Option<Turn>,
    ) -> Answer {
        let Parts { method, uri, headers, .. } = head;
        let by_descriptor = headers.contains_key(rest::DESCRIPTOR) && method != Method::HEAD;
        let RequestBody { bytes, memory } = body;
        let request = rest::Request {
            method,
            path: uri.path().to_owned(),
            query: uri.query().map(str::to_owned),
            headers,
            body: bytes.into(),
            takes_files: self.lending.takes_files(),
            connection: self.remembered.clone(),
        };
        let is_quick = self.port.resources().is_some_and(|all| all.is_quick(&request));
        let pace = if is_quick { Pace::Quick } else { Pace::Slow };
        let connection = Arc::clone(self);
        let called = self.port.run(pace, &self.slot, move || {
            let resources = connection.port.resources()?;
            let mut response = ask(resources, request);
            drop((memory, turn));
            let passed = match response.file.take() {
                Some(file) if by_descriptor => connection.lending.pass(file, &mut response),
                Some(_) => Err((StatusCode::BAD_REQUEST, ONLY_BY_DESCRIPTOR)),
                None => Ok(()),
            };
            match passed {
                Ok(()) if by_descriptor => {
                    connection.lending.lend(&connection.port.budgets.files, &mut response);
                }
                Ok(()) => {}
                Err((status, text)) => response = resources.refuse(status, text),
            }
            Some(response)
        });
        let answered = called.await.map_err(|unanswered| {
            // The handler may have noted as sent what is not sent.
            self.remembered.forget();
            Refusal::unanswered(unanswered)
        })?;
        let ReservedAnswer { answer, memory } = answered.expect("there are resources");
        Ok(resource_response(answer, Some(memory)))
    }
}

/// Has a response encoded while it is sent, where the client asks for that and it is worth it.
#[cfg_attr(not(feature = "zstd"), allow(unreachable_code))]
fn encode(
    port: &Port,
    accepted: AcceptedCodings,
    method: &Method,
    mut response: Response<ResponseBody>,
) -> Answer {
    let from_bytes = port.limits.zstd_bytes;
    let Content::AsIs(pieces) = &mut response.body_mut().content else { return Ok(response) };
    let pieces = std::mem::take(pieces);
    let body_bytes = pieces.len_bytes();
    let encoder = Arc::clone(&port.budgets.encoders).try_acquire_owned().ok();
    // Without a free encoder, a client that takes the bytes as they are gets them so.
    let zstd = accepted.zstd && (encoder.is_some() || !accepted.identity);
    let accepted = AcceptedCodings { zstd, ..accepted };
    let is_coded = is_coded(accepted, from_bytes, method, body_bytes, &mut response);
    response.body_mut().content = match (is_coded, encoder) {
        (true, Some(permit)) => Content::Encoded(Box::new(EncodedBody::new(pieces, permit))),
        (true, None) => return Err(Refusal::unanswered(Unanswered::Full)),
        (false, _) => Content::AsIs(pieces),
    };
    Ok(response)
}

/// Asks for a resource; a panic is answered with status 500.
fn ask(resources: &dyn rest::Resources, request: rest::Request) -> rest::Response {
    let path = request.path.clone();
    catch_unwind(AssertUnwindSafe(|| resources.answer(request))).unwrap_or_else(|panic| {
        let reason = panic_text(&*panic);
        tracing::error!(path = quote(path), reason = shortened(reason), "a resource panicked");
        let text = "the request failed; the server's log says why";
        resources.refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
    })
}

fn resource_response(
    response: rest::Response,
    memory: Option<Arc<Reservation>>,
) -> Response<ResponseBody> {
    let rest::Response { status, headers, body, file: _ } = response;
    let mut response = Response::new(ResponseBody::new(body, memory));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The answer to a monitor.
fn probed(status: StatusCode, body: String) -> Response<ResponseBody> {
    let is_json = !body.is_empty();
    let mut response = Response::new(ResponseBody::from(body));
    *response.status_mut() = status;
    if is_json {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        let no_store = HeaderValue::from_static("no-store");
        response.headers_mut().insert(header::CACHE_CONTROL, no_store);
    }
    response
}

/// The answer to a browser that asks whether it may call.
fn no_content() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The response after which both sides speak WebSocket.
fn switching(headers: [(HeaderName, HeaderValue); 3]) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().extend(headers);
    response
}
