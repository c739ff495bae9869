//! A client over one WebSocket: any number of calls at a time, and subscriptions.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1::handshake;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::client::address::Address;
use crate::client::http::{call_text, read, refused};
use crate::jsonrpc::error::{ClientError, quote};
use crate::jsonrpc::response::{Envelope, Kind, malformed};
use crate::jsonrpc::session::Reader as _;
use crate::jwt::JwtSecret;
use crate::limits::{ANSWER_BYTES, CALL_TIME, NOTIFICATIONS_LEN, OUTGOING_LEN, SERVER_IDLE};
use crate::spare::Spare;
use crate::transport::socket::Socket;
use crate::transport::websocket::{Ending, Outgoing, Reader, WebSocket, close};

/// A WebSocket to a JSON-RPC server.
///
/// Clones use the same connection, which is closed when all of them and all of their
/// [`Notifications`] are gone. It is not opened again by itself: its subscriptions would be lost
/// without a word.
#[derive(Clone, Debug)]
pub struct WsClient {
    routes: Arc<Routes>,
    outgoing: mpsc::Sender<Outgoing>,
    call_time: Duration,
}

impl WsClient {
    /// Connects to `host:port` or `ws://host:port/path`; a secret makes the token that a server
    /// wants to see at the beginning.
    ///
    /// A call may take 120 seconds unless [`WsClient::set_timeout`] says otherwise. It needs a
    /// tokio runtime with time and I/O.
    pub async fn connect(address: &str, secret: Option<JwtSecret>) -> Result<Self, ClientError> {
        let address = Address::parse(address, "ws")?;
        let opened = timeout(CALL_TIME, open(&address, secret.as_ref())).await;
        let socket = opened.unwrap_or_else(|_| {
            Err(ClientError::Timeout { address: address.host.clone(), limit: CALL_TIME })
        })?;
        let (outgoing, queue) = mpsc::channel(OUTGOING_LEN);
        let routes = Arc::new(Routes { address: address.host, table: Mutex::default() });
        tokio::spawn(Arc::clone(&routes).converse(socket, queue));
        Ok(Self { routes, outgoing, call_time: CALL_TIME })
    }

    /// Bounds each call of this clone from here on.
    pub fn set_timeout(&mut self, call_time: Duration) {
        self.call_time = call_time;
    }

    /// Calls a method and reads its result.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, ClientError> {
        let answer = self.call_raw(method, params).await?;
        serde_json::from_str(Envelope::read(&answer)?.result()?.get()).map_err(malformed)
    }

    /// Calls a method and gives the whole answer as it came, for callers who scan large results
    /// themselves: see [`response`](crate::response).
    pub async fn call_raw(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<Bytes, ClientError> {
        self.exchange(method, params, None).await
    }

    /// Subscribes, by a method whose result is the subscription's id.
    pub async fn subscribe<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<Notifications<T>, ClientError> {
        let (sender, values) = mpsc::channel(NOTIFICATIONS_LEN);
        let answer = self.exchange(method, params, Some(sender)).await?;
        let id = Envelope::read(&answer)?.result()?.to_owned();
        Ok(Notifications { client: self.clone(), id, values, kind: PhantomData })
    }

    async fn exchange(
        &self,
        method: &str,
        params: impl Serialize,
        notifications: Option<mpsc::Sender<Bytes>>,
    ) -> Result<Bytes, ClientError> {
        let (answer, answered) = oneshot::channel();
        let call = self.routes.enter(Waiting { answer, notifications })?;
        let text = call_text(call.id, method, params)?.into();
        let limit = self.call_time;
        let exchange = async {
            let sent = self.outgoing.send(Outgoing::Text(text, None)).await;
            sent.map_err(|_| self.routes.closed())?;
            answered.await.map_err(|_| self.routes.closed())
        };
        timeout(limit, exchange).await.unwrap_or_else(|_| {
            Err(ClientError::Timeout { address: self.routes.address.clone(), limit })
        })
    }
}

/// The values of a subscription.
///
/// They wait to be read, up to 1,024; a subscription that falls further behind is lost. Dropped,
/// further values are ignored: [`Notifications::unsubscribe`] tells the server too.
pub struct Notifications<T> {
    client: WsClient,
    /// As the server wrote it.
    id: Box<RawValue>,
    values: mpsc::Receiver<Bytes>,
    kind: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Notifications<T> {
    /// Waits for the next value; nothing is lost where the wait is given up.
    ///
    /// After [`ClientError::Malformed`] it may be asked for the next one; after any other error,
    /// there is none.
    pub async fn next(&mut self) -> Result<T, ClientError> {
        match self.values.recv().await {
            Some(value) => serde_json::from_slice(&value).map_err(malformed),
            None => Err(self.client.routes.subscription_ended()),
        }
    }

    /// Ends the subscription by a method of the server; `false` where it knows of none.
    pub async fn unsubscribe(self, method: &str) -> Result<bool, ClientError> {
        self.client.call(method, [&self.id]).await
    }
}

impl<T> fmt::Debug for Notifications<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifications").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<T> Drop for Notifications<T> {
    fn drop(&mut self) {
        self.client.routes.table().subscriptions.remove(self.id.get());
    }
}

/// Where the messages of a connection go.
#[derive(Debug)]
struct Routes {
    /// `host:port`, for errors.
    address: String,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    last_id: u64,
    calls: HashMap<u64, Waiting>,
    /// By the id, as the server writes it.
    subscriptions: HashMap<String, mpsc::Sender<Bytes>>,
    /// Why the connection has ended.
    ended: Option<String>,
}

/// What waits for an answer.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Bytes>,
    /// Where it is a subscription's id.
    notifications: Option<mpsc::Sender<Bytes>>,
}

/// A call's entry in the table, gone when nobody waits any more.
struct Call<'r> {
    routes: &'r Routes,
    id: u64,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.routes.table().calls.remove(&self.id);
    }
}

impl Routes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nothing panics while it is held")
    }

    fn enter(&self, waiting: Waiting) -> Result<Call<'_>, ClientError> {
        let mut table = self.table();
        if table.ended.is_some() {
            drop(table);
            return Err(self.closed());
        }
        table.last_id += 1;
        let id = table.last_id;
        table.calls.insert(id, waiting);
        Ok(Call { routes: self, id })
    }

    fn closed(&self) -> ClientError {
        let reason = self.table().ended.clone();
        let reason = reason.unwrap_or_else(|| "it is being closed".into());
        ClientError::Closed { address: self.address.clone(), reason }
    }

    fn subscription_ended(&self) -> ClientError {
        if self.table().ended.is_some() {
            return self.closed();
        }
        ClientError::FellBehind { limit: NOTIFICATIONS_LEN }
    }

    /// Drives the connection until either side ends it.
    async fn converse(self: Arc<Self>, socket: WebSocket, mut queue: mpsc::Receiver<Outgoing>) {
        let (mut reader, mut writer) = socket.split();
        let ending = tokio::select! {
            ending = self.read(&mut reader) => ending,
            ending = writer.send_all(&mut queue) => ending,
        };
        {
            let mut table = self.table();
            table.ended = Some(ending.to_string());
            table.calls.clear();
            table.subscriptions.clear();
        }
        drop(queue);
        close(reader, writer, &ending).await;
    }

    async fn read(&self, reader: &mut Reader) -> Ending {
        let waited_for = || !self.table().calls.is_empty();
        loop {
            let message = match reader.next(SERVER_IDLE, waited_for).await {
                Ok(message) => message,
                Err(ending) => return ending,
            };
            if let Err(fault) = self.route(message) {
                let reason = format!("cannot use a message of the server: {fault}");
                return Ending::Fault { code: CloseCode::Protocol, reason };
            }
        }
    }

    fn route(&self, message: Utf8Bytes) -> Result<(), ClientError> {
        match Kind::of(message.as_str())? {
            Kind::Answer { id } => match id.get().parse() {
                Ok(id) => self.route_answer(id, message.into()),
                // It is not known which call this answers.
                Err(_) => Err(malformed(format_args!("its id is {}", quote(id.get())))),
            },
            Kind::Notification { subscription, result } => {
                let mut table = self.table();
                let Some(values) = table.subscriptions.get(subscription.get()) else {
                    // It was dropped here.
                    return Ok(());
                };
                let value = Bytes::copy_from_slice(result.get().as_bytes());
                if values.try_send(value).is_err() {
                    table.subscriptions.remove(subscription.get());
                }
                Ok(())
            }
        }
    }

    fn route_answer(&self, id: u64, answer: Bytes) -> Result<(), ClientError> {
        let mut table = self.table();
        // A call may have been given up.
        let Some(Waiting { answer: waits, notifications }) = table.calls.remove(&id) else {
            return Ok(());
        };
        if let Some(notifications) = notifications
            && let Ok(subscription) = Envelope::read(&answer)?.result()
        {
            // Now, as its first value may be the very next message.
            table.subscriptions.insert(subscription.get().into(), notifications);
        }
        waits.send(answer).unwrap_or_default();
        Ok(())
    }
}

/// Connects, and has HTTP make way for a WebSocket.
async fn open(address: &Address, secret: Option<&JwtSecret>) -> Result<WebSocket, ClientError> {
    let socket = TokioIo::new(Socket::new(address.dial().await?, SERVER_IDLE));
    let broken = |fault| address.broken(fault);
    let (mut connection, driver) = handshake(socket).await.map_err(broken)?;
    // It ends when the connection is taken over, or with the connection.
    tokio::spawn(async move { driver.with_upgrades().await.unwrap_or_default() });
    let key = generate_key();
    let mut request = Request::get(address.path.clone())
        .header(header::HOST, &address.host)
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key);
    if let Some(secret) = secret {
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", secret.token()));
    }
    let request = request.body(Empty::<Bytes>::new());
    let request = request.expect("the address was parsed, a token and a key are base64");
    let response = connection.send_request(request).await.map_err(broken)?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refused(status, &read(address, response, &Spare::default()).await?));
    }
    let accepted = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
    if accepted.is_none_or(|accepted| *accepted != derive_accept_key(key.as_bytes())) {
        return Err(malformed("it agrees to a WebSocket, but not to the one asked for"));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
    Ok(WebSocket::after(upgraded, Role::Client, ANSWER_BYTES).await)
}
