//! The client's part of a WebSocket handshake (RFC 6455 section 4.1).

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1::handshake;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::client::address::{Address, ConnectOptions};
use crate::client::error::{ClientError, malformed};
use crate::client::http::{WantedBody, read, refused};
use crate::http::coding::IDENTITY;
use crate::limits::{ANSWER_BYTES, REFUSAL_BYTES, SERVER_IDLE};
use crate::spare::Spare;
use crate::transport::socket::Socket;
use crate::transport::websocket::WebSocket;

/// Connects, and has HTTP make way for a WebSocket.
pub(super) async fn open_websocket(
    address: &Address,
    options: &ConnectOptions,
) -> Result<WebSocket, ClientError> {
    let socket = TokioIo::new(Socket::new(address.dial().await?, SERVER_IDLE));
    let broken = |fault| address.broken(fault);
    let (mut connection, driver) = handshake(socket).await.map_err(broken)?;
    // The task ends when the connection is taken over, or with the connection.
    tokio::spawn(async move { driver.with_upgrades().await.unwrap_or_default() });
    let key = generate_key();
    let mut request = Request::get(address.path.clone())
        .header(header::HOST, &address.host)
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key);
    for (name, value) in &options.headers {
        request = request.header(name, value);
    }
    if let Some(secret) = &options.secret {
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", secret.token()));
    }
    let request = request.body(Empty::<Bytes>::new());
    let request = request.expect("the address was parsed, a token and a key are base64");
    let response = connection.send_request(request).await.map_err(broken)?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let wanted = WantedBody { coding: IDENTITY, most_bytes: REFUSAL_BYTES };
        let text = read(address, response, wanted, &Spare::default()).await?;
        return Err(refused(status, &text));
    }
    let accepted = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
    if accepted.is_none_or(|accepted| *accepted != derive_accept_key(key.as_bytes())) {
        return Err(malformed("it agrees to a WebSocket, but not to the one asked for"));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
    let answer_bytes = options.answer_bytes.unwrap_or(ANSWER_BYTES);
    Ok(WebSocket::after(upgraded, Role::Client, answer_bytes).await)
}
