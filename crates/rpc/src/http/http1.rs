//! Connections that speak HTTP/1.1, some of which become WebSockets.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};

use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::http::exchange::HttpConnection;
use crate::jsonrpc::session::{self, ENDED_FOR_OTHERS};
use crate::limits::HEADER_BYTES;
use crate::port::Port;
use crate::transport::slot::ConnectionSlot;
use crate::transport::socket::Socket;
use crate::transport::websocket::WebSocket;

/// Serves one connection until it ends, or until `stopped` closes and its call is answered.
pub(super) async fn converse(
    port: Arc<Port>,
    socket: Socket,
    slot: Arc<ConnectionSlot>,
    mut stopped: watch::Receiver<()>,
) {
    let unread = Arc::clone(&slot.unread);
    let mut http = Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(port.idle_time(&socket))
        .max_header_size(HEADER_BYTES)
        .max_buf_size(port.limits.http1_buffer_bytes);
    let upgrade = Mutex::new(None);
    let connection = HttpConnection::new(&port, &slot, &socket, true);
    let service = service_fn(|request| {
        let answer = Arc::clone(&connection).respond(request, Some(&upgrade), None);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let served = pin!(http.serve_connection(TokioIo::new(socket), service).with_upgrades());
    let served = until_stopped(served, &mut stopped, |served| served.graceful_shutdown());
    let ended = tokio::select! {
        ended = served => ended,
        () = unread.evicted().notified() => return tracing::debug!("{ENDED_FOR_OTHERS}"),
    };
    if let Err(fault) = ended {
        tracing::debug!(%fault, "a connection broke");
        return;
    }
    let upgrade = upgrade.lock().expect("nothing panics while it is locked").take();
    let Some(upgrade) = upgrade else { return };
    match upgrade.await {
        Ok(upgraded) => {
            let message_bytes = port.limits.body_bytes;
            let socket = WebSocket::after(upgraded, Role::Server, message_bytes).await;
            let (mut reader, writer) = socket.split();
            let wait = port.limits.turn_wait;
            reader.reserve_for_messages(Arc::clone(&slot), Arc::clone(&port.budgets.bodies), wait);
            session::converse(port, reader, writer, slot, stopped).await;
        }
        Err(fault) => tracing::debug!(%fault, "a connection broke at the handshake"),
    }
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
