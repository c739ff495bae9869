//! Connections that speak HTTP/2, without TLS and without an upgrade.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use hyper::body::Body;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode, header};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::watch;

use crate::http::exchange::HttpConnection;
use crate::http::response_body::{Content, ResponseBody};
use crate::http::streams::{CloseReason, StreamWatch};
use crate::jsonrpc::session::ENDED_FOR_OTHERS;
use crate::limits::{CHUNK_BYTES, HTTP2_FRAME_BYTES, HTTP2_HEADER_BYTES, HTTP2_WINDOW_PARTS};
use crate::port::Port;
use crate::transport::slot::ConnectionSlot;
use crate::transport::socket::Socket;

/// Serves one connection until it ends, or until `stopped` closes and its calls are answered.
pub(super) async fn converse(
    port: Arc<Port>,
    socket: Socket,
    slot: Arc<ConnectionSlot>,
    mut stopped: watch::Receiver<()>,
) {
    let unread = Arc::clone(&slot.unread);
    let http = builder(&port);
    let (idle, stalled) = (port.idle_time(&socket), port.limits.write_idle);
    let connection = HttpConnection::new(&port, &slot, &socket, false);
    let streams = StreamWatch::new();
    let service = service_fn(|request| {
        let connection = Arc::clone(&connection);
        let (streams, stream) = (Arc::clone(&streams), streams.open());
        // This closure is called in the order in which the requests come.
        let turn = connection.turns.enter();
        let is_head = request.method() == Method::HEAD;
        async move {
            let mut response = connection.respond(request, None, Some(turn)).await;
            if is_head {
                leave_out_body(&mut response);
            }
            if response.status() == StatusCode::UNAUTHORIZED {
                streams.refuse();
            }
            Ok::<_, Infallible>(response.map(|body| body.sent_by(stream)))
        }
    });
    let mut served = pin!(http.serve_connection(TokioIo::new(socket), service));
    let mut is_ending = false;
    let ended = loop {
        // Received bytes are read before stalls are looked for: the process may have been stopped
        // for long.
        tokio::select! {
            biased;
            ended = &mut served => break ended,
            _ = stopped.changed(), if !is_ending => {}
            () = unread.evicted().notified() => return tracing::debug!("{ENDED_FOR_OTHERS}"),
            reason = streams.closed(idle, stalled) => if reason == CloseReason::Stalled {
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

fn builder(port: &Port) -> Builder<TokioExecutor> {
    let window = u32::try_from(port.limits.http2_window_bytes).unwrap_or(u32::MAX >> 1);
    let mut http = Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_header_list_size(HTTP2_HEADER_BYTES as u32)
        .initial_stream_window_size(window / HTTP2_WINDOW_PARTS)
        .initial_connection_window_size(window)
        .max_frame_size(HTTP2_FRAME_BYTES)
        .max_send_buf_size(CHUNK_BYTES)
        .max_concurrent_streams(u32::try_from(port.limits.messages).unwrap_or(u32::MAX))
        .keep_alive_interval(port.limits.silence)
        .keep_alive_timeout(port.limits.silence);
    http
}

/// Drops the body, which hyper would send in answer to HEAD over HTTP/2, and keeps its length
/// (RFC 9110 section 9.3.2).
fn leave_out_body(response: &mut Response<ResponseBody>) {
    if let Some(bytes) = response.body().size_hint().exact() {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(bytes.into());
    }
    response.body_mut().content = Content::default();
}
