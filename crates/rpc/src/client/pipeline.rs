//! Raw messages on one connection, several on their way at a time.

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::client::address::{Address, IPC, scheme};
use crate::client::error::ClientError;
use crate::client::handshake::upgrade;
use crate::client::http_pipeline;
use crate::jwt::JwtSecret;
use crate::limits::{ANSWER_BYTES, CALL_TIME, SERVER_IDLE};
use crate::pieces::Pieces;
use crate::transport::ipc;
use crate::transport::messages::{Ending, MessageReader, OutgoingMessage};
use crate::transport::socket::{Socket, Stream};

/// A connection on which up to a given number of messages are on their way: rendered calls or
/// batches go out, and answers come back as they are.
///
/// Over HTTP/1.1, with pipelining, answers come in the order of the messages. Over WebSockets and
/// bare Unix sockets they come in any order, and the caller tells them apart by their ids. A
/// message that has no answer, such as a notification, must not be sent.
///
/// ```
/// # use std::sync::Arc;
/// # use deponent_rpc::{Error, Handler, Json, Limits, Pipeline, RawValue, ServerOptions, serve};
/// # struct Echo;
/// # impl Handler for Echo {
/// #     fn call(&self, _: &str, params: Option<&RawValue>) -> Result<Json, Error> {
/// #         Ok(params.map_or("null", RawValue::get).as_bytes().to_vec().into())
/// #     }
/// # }
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let address = listener.local_addr()?.to_string();
/// # let options = ServerOptions { jwt: None, limits: Limits::public() };
/// # tokio::spawn(serve(listener, options, Arc::new(Echo), std::future::pending()));
/// let mut pipeline = Pipeline::connect(&format!("ws://{address}"), None, 8).await?;
/// for id in 0..100 {
///     if pipeline.is_full() {
///         pipeline.receive().await?;
///     }
///     pipeline.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo"}}"#)).await?;
/// }
/// while pipeline.in_flight() > 0 {
///     let answer = pipeline.receive().await?;
///     assert!(answer.starts_with(br#"{"jsonrpc":"2.0","id":"#));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pipeline {
    address: String,
    outgoing: mpsc::Sender<OutgoingMessage>,
    incoming: mpsc::Receiver<Result<Bytes, String>>,
    most_in_flight: usize,
    in_flight: usize,
    /// Why the connection has ended.
    ended: Option<String>,
}

impl Pipeline {
    /// Connects to `http://host:port/path` (or `host:port`) or `unix:/path/of/a/socket` over HTTP,
    /// to `ws://host:port/path` over a WebSocket, or to `ipc:/path/of/a/socket` over bare JSON-RPC.
    /// With a secret, requests over HTTP and the handshake of a WebSocket have tokens.
    ///
    /// It needs a tokio runtime with time and I/O.
    ///
    /// # Errors
    /// If the address cannot be used, no server listens there, or it refuses a WebSocket.
    ///
    /// # Panics
    /// If no message may be in flight.
    pub async fn connect(
        address: &str,
        secret: Option<JwtSecret>,
        most_in_flight: usize,
    ) -> Result<Self, ClientError> {
        let spoken =
            if scheme(address) == Some("ws") || address.starts_with(IPC) { "ws" } else { "http" };
        let address = Address::parse(address, spoken)?;
        let stream = address.dial().await?;
        Self::begin(stream, spoken, address, secret, most_in_flight).await
    }

    /// As [`connect`](Self::connect), over a stream that is connected already, such as one with TLS
    /// of the caller's. The scheme of the address may be `https` or `wss`, too.
    ///
    /// # Errors
    /// If the address cannot be used, or the server refuses a WebSocket.
    ///
    /// # Panics
    /// If no message may be in flight.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        address: &str,
        secret: Option<JwtSecret>,
        most_in_flight: usize,
    ) -> Result<Self, ClientError> {
        let spoken = match scheme(address) {
            Some(scheme @ ("https" | "ws" | "wss")) => scheme,
            _ if address.starts_with(IPC) => "ws",
            _ => "http",
        };
        let address = Address::parse(address, spoken)?;
        let stream = Stream::Other(Box::new(stream));
        Self::begin(stream, spoken, address, secret, most_in_flight).await
    }

    async fn begin(
        stream: Stream,
        scheme: &str,
        address: Address,
        secret: Option<JwtSecret>,
        most_in_flight: usize,
    ) -> Result<Self, ClientError> {
        assert!(most_in_flight > 0, "some message may be in flight");
        let (outgoing, queue) = mpsc::channel(most_in_flight);
        // One more than there are answers, for the end of the connection.
        let (answers, incoming) = mpsc::channel(most_in_flight + 1);
        let host = address.host.clone();
        if host.starts_with(IPC) {
            let (reader, writer) = ipc::split(Socket::new(stream, SERVER_IDLE), ANSWER_BYTES);
            tokio::spawn(converse(reader, writer, queue, answers));
        } else if scheme.starts_with("ws") {
            let opened = timeout(CALL_TIME, upgrade(stream, &address, secret.as_ref())).await;
            let socket = opened.unwrap_or_else(|_| {
                Err(ClientError::Timeout { address: host.clone(), limit: CALL_TIME })
            })?;
            let (reader, writer) = socket.split();
            tokio::spawn(converse(reader, writer, queue, answers));
        } else {
            let socket = Socket::new(stream, SERVER_IDLE);
            let (reader, writer) = http_pipeline::split(socket, &address, secret);
            tokio::spawn(converse(reader, writer, queue, answers));
        }
        Ok(Self { address: host, outgoing, incoming, most_in_flight, in_flight: 0, ended: None })
    }

    /// The messages on their way: sent, and not answered.
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether as many messages are on their way as may be: receive an answer before the next one.
    pub const fn is_full(&self) -> bool {
        self.in_flight == self.most_in_flight
    }

    /// Sends a rendered call or batch.
    ///
    /// # Errors
    /// [`ClientError::Closed`] if the connection has ended.
    ///
    /// # Panics
    /// If the pipeline [is full](Self::is_full), or the message is empty.
    pub async fn send(&mut self, message: impl Into<Bytes>) -> Result<(), ClientError> {
        assert!(!self.is_full(), "an answer is received before the next message is sent");
        let message: Bytes = message.into();
        assert!(!message.is_empty(), "a message has a call");
        let message = OutgoingMessage::Text(Pieces::from(vec![message]), None);
        if self.outgoing.send(message).await.is_err() {
            return Err(self.end().await);
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Waits for the next answer.
    ///
    /// # Errors
    /// [`ClientError::Closed`] if the connection ends, which also happens where a server refuses a
    /// request over HTTP.
    ///
    /// # Panics
    /// If no message is in flight.
    pub async fn receive(&mut self) -> Result<Bytes, ClientError> {
        assert!(self.in_flight > 0, "a message was sent");
        match self.incoming.recv().await {
            Some(Ok(answer)) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                Ok(answer)
            }
            Some(Err(reason)) => {
                self.ended = Some(reason);
                Err(self.closed())
            }
            None => Err(self.closed()),
        }
    }

    /// Waits for the reason of the connection's end.
    async fn end(&mut self) -> ClientError {
        while let Some(answer) = self.incoming.recv().await {
            if let Err(reason) = answer {
                self.ended = Some(reason);
            }
        }
        self.closed()
    }

    fn closed(&self) -> ClientError {
        let reason = self.ended.clone().unwrap_or_else(|| "it has ended".into());
        ClientError::Closed { address: self.address.clone(), reason }
    }
}

/// Drives a connection until either side ends it.
async fn converse<R: MessageReader>(
    mut reader: R,
    mut writer: R::Writer,
    mut queue: mpsc::Receiver<OutgoingMessage>,
    answers: mpsc::Sender<Result<Bytes, String>>,
) {
    let read = async {
        loop {
            // A server that is silent while it works is not given up: callers have their own limits.
            match reader.next(SERVER_IDLE, || true).await {
                Ok(answer) => {
                    if answers.send(Ok(answer.into())).await.is_err() {
                        return Ending::Left(None);
                    }
                }
                Err(ending) => return ending,
            }
        }
    };
    let ending = tokio::select! {
        ending = read => ending,
        ending = R::send_all(&mut writer, &mut queue) => ending,
    };
    drop(queue);
    answers.send(Err(ending.to_string())).await.unwrap_or_default();
    drop(answers);
    reader.close(writer, &ending).await;
}
