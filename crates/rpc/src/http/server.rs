//! HTTP/1.1 and HTTP/2 without TLS, for the engine port and the public port alike, on TCP and on
//! Unix sockets.
//!
//! `POST /` with a JSON body, `GET /` to go on as a WebSocket (HTTP/1.1 alone), and the handler's
//! resources at their paths. HTTP/2 begins with its preface, without an upgrade. Every refusal of
//! JSON-RPC is a plain-text line that says what to do. Answers go as they are to all who do not ask
//! for zstd: on one host, and on any fast network, compressing takes longer than sending. On a Unix
//! socket JSON-RPC may also come bare: a client that begins with a brace or a bracket is answered
//! likewise.
//!
//! Browsers: the JSON content type makes them ask before they send, so a page from elsewhere gets
//! neither a call through nor an answer to read, nor a WebSocket, unless [`AllowedOrigins`] has it.
//! A page that lets its own name lead here is refused for that name.
//!
//! [`AllowedOrigins`]: crate::AllowedOrigins

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::http::{http1, http2};
use crate::jsonrpc::handler::Handler;
use crate::jsonrpc::session::{self, ENDED_FOR_OTHERS};
use crate::limits::GOODBYE_TIME;
use crate::port::{Port, ServerOptions};
use crate::transport::ipc;
use crate::transport::listener::Listener;
use crate::transport::slot::ConnectionSlot;
use crate::transport::socket::Socket;

/// Serves until `shutdown` is done, then lets running calls finish for
/// [`Limits::shutdown_grace`](crate::Limits::shutdown_grace). WebSockets are told that the server
/// stops.
///
/// It needs a tokio runtime with time and I/O. A call that outlives the grace keeps its thread,
/// and may keep its connection until then.
///
/// # Panics
/// If the limits leave no connection, session, call, message or answer, or no memory for the
/// longest body.
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
        let Some((socket, slot)) = accepted else { continue };
        connections.spawn(converse_until_stop(Arc::clone(&port), socket, slot, stopped.clone()));
    }
    port.stop();
    // Refuse new connections at once, rather than leave them in the queue.
    drop(listener);
    drop(stop);
    let finish = async { while connections.join_next().await.is_some() {} };
    if timeout(grace, finish).await.is_err() {
        tracing::warn!(?grace, left = connections.len(), "connections cut at shutdown");
    }
}

/// Serves one connection until it ends. When `stopped` closes it has a moment to say goodbye, and
/// as long as it needs to answer the calls that are under way.
async fn converse_until_stop(
    port: Arc<Port>,
    socket: Socket,
    slot: Arc<ConnectionSlot>,
    stopped: watch::Receiver<()>,
) {
    let mut stopping = stopped.clone();
    let cut = async {
        stopping.changed().await.unwrap_or_default();
        sleep(GOODBYE_TIME).await;
        let (mut before, mut read_at) = (None, Instant::now());
        loop {
            let progress = slot.unread.progress();
            if slot.has_call() || progress != before {
                (before, read_at) = (progress, Instant::now());
            }
            // An answer is waited for as long as its client reads it.
            if !slot.has_call() && (progress.is_none() || read_at.elapsed() > GOODBYE_TIME) {
                return;
            }
            sleep(GOODBYE_TIME / 10).await;
        }
    };
    tokio::select! {
        () = converse(port, socket, Arc::clone(&slot), stopped) => {}
        () = cut => tracing::debug!("a connection without a call was cut at the stop"),
    }
}

async fn converse(
    port: Arc<Port>,
    mut socket: Socket,
    slot: Arc<ConnectionSlot>,
    mut stopped: watch::Receiver<()>,
) {
    let begun = timeout(port.limits.header_read, socket.peek(is_protocol_clear));
    let begun = tokio::select! {
        begun = begun => begun,
        _ = stopped.changed() => return,
        () = slot.unread.evicted().notified() => return tracing::debug!("{ENDED_FOR_OTHERS}"),
    };
    match begun {
        // A client that says nothing is told nothing.
        Err(_) => {}
        Ok(Err(fault)) => tracing::debug!(%fault, "a connection broke"),
        Ok(Ok(begun)) if begun.is_empty() => {}
        Ok(Ok(begun)) if socket.is_unix() && is_json(&begun) => {
            converse_bare(port, socket, slot, stopped).await;
        }
        Ok(Ok(begun)) => converse_http(port, socket, slot, stopped, &begun).await,
    }
}

/// Serves a connection that speaks HTTP, once there is memory for its buffers and windows.
async fn converse_http(
    port: Arc<Port>,
    socket: Socket,
    slot: Arc<ConnectionSlot>,
    mut stopped: watch::Receiver<()>,
    begun: &[u8],
) {
    let is_http2 = begun.starts_with(PREFACE);
    let bytes = if is_http2 { port.limits.http2_bytes() } else { port.limits.http1_bytes() };
    let room = tokio::select! {
        room = port.speak(&slot, bytes) => room,
        _ = stopped.changed() => return,
        () = slot.unread.evicted().notified() => return tracing::debug!("{ENDED_FOR_OTHERS}"),
    };
    match room {
        Err(unanswered) => tracing::debug!(%unanswered, "a connection has no room"),
        Ok(()) if is_http2 => http2::converse(port, socket, slot, stopped).await,
        Ok(()) => http1::converse(port, socket, slot, stopped).await,
    }
}

/// Serves a connection that speaks JSON-RPC without HTTP around it.
async fn converse_bare(
    port: Arc<Port>,
    socket: Socket,
    slot: Arc<ConnectionSlot>,
    mut stopped: watch::Receiver<()>,
) {
    let (mut reader, mut writer) = ipc::split(socket, port.limits.body_bytes);
    let budget = Arc::clone(&port.budgets.bodies);
    reader.reserve_for_messages(Arc::clone(&slot), budget, port.limits.turn_wait);
    let begun = tokio::select! {
        begun = port.begin_session(&slot) => begun,
        _ = stopped.changed() => return,
    };
    match begun {
        Ok(()) => session::converse(port, reader, writer, slot, stopped).await,
        Err(unanswered) => writer.refuse(&unanswered).await,
    }
}

/// The first bytes of HTTP/2 (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether the first bytes are enough to tell the protocol.
fn is_protocol_clear(begun: &[u8]) -> bool {
    !begun.is_empty() && (begun.len() >= PREFACE.len() || !PREFACE.starts_with(begun))
}

/// Whether the first bytes are JSON-RPC without HTTP around it.
fn is_json(begun: &[u8]) -> bool {
    let first = begun.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_none_or(|byte| matches!(byte, b'{' | b'['))
}
