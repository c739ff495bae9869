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
use crate::jsonrpc::session::{self, READ_TOO_SLOWLY};
use crate::limits::HEADER_BYTES;
use crate::port::Port;
use crate::transport::socket::Socket;
use crate::transport::websocket::WebSocket;

/// Serves one connection until it ends, or until `stopped` closes and its call is answered.
pub(super) async fn converse(port: Arc<Port>, socket: Socket, mut stopped: watch::Receiver<()>) {
    let mut http = Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(port.idle_time(&socket))
        .max_header_size(HEADER_BYTES);
    let upgrade = Mutex::new(None);
    let connection = HttpConnection::new(&port, &socket, true);
    let unread = Arc::clone(&connection.unread);
    let service = service_fn(|request| {
        let answer = Arc::clone(&connection).respond(request, Some(&upgrade), None);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let served = pin!(http.serve_connection(TokioIo::new(socket), service).with_upgrades());
    let served = until_stopped(served, &mut stopped, |served| served.graceful_shutdown());
    let ended = tokio::select! {
        ended = served => ended,
        () = unread.evicted().notified() => return tracing::debug!("{READ_TOO_SLOWLY}"),
    };
    if let Err(fault) = ended {
        tracing::debug!(%fault, "a connection broke");
        return;
    }
    let upgrade = upgrade.lock().expect("nothing panics while it is locked").take();
    let Some((upgrade, _permit)) = upgrade else { return };
    match upgrade.await {
        Ok(upgraded) => {
            let message_bytes = port.limits.body_bytes;
            let socket = WebSocket::after(upgraded, Role::Server, message_bytes).await;
            let (mut reader, writer) = socket.split();
            reader.reserve_for_messages(Arc::clone(&port.bodies), port.limits.turn_wait);
            session::converse(port, reader, writer, unread, stopped).await;
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
