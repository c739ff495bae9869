//! A client over one connection that lasts, a WebSocket or a Unix socket: any number of calls at a
//! time, and subscriptions.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::client::address::{Address, ConnectOptions};
use crate::client::call::{batch_text, call_text};
use crate::client::error::{ClientError, malformed};
use crate::client::handshake::open_websocket;
use crate::foreign_json::{read_json, read_json_bytes};
use crate::jsonrpc::response::{AnswerEnvelope, MessageKind, field};
use crate::jwt::JwtSecret;
use crate::limits::{ANSWER_BYTES, CALL_TIME, NOTIFICATIONS_LEN, OUTGOING_LEN, SERVER_IDLE};
use crate::quote::quote;
use crate::transport::ipc;
use crate::transport::messages::{Ending, MessageReader, OutgoingMessage};
use crate::transport::socket::Socket;

/// A connection that lasts to a JSON-RPC server: a WebSocket, or bare JSON-RPC on a Unix socket
/// (IPC).
///
/// Clones use the same connection, on which their calls overtake each other. It is closed when all
/// of them and all of their [`Notifications`] are gone. It is not opened again by itself: its
/// subscriptions would be lost without notice.
#[doc(alias = "WebSocket")]
#[doc(alias = "IPC")]
#[derive(Clone, Debug)]
pub struct SessionClient {
    routes: Arc<Routes>,
    outgoing: mpsc::Sender<OutgoingMessage>,
    call_time: Duration,
}

impl SessionClient {
    /// Connects a WebSocket to `host:port` or `ws://host:port/path`, or to the Unix socket
    /// `unix:/path/of/a/socket`, without HTTP. A secret makes the token that a server wants to see
    /// when a WebSocket is opened.
    ///
    /// A call may take 120 seconds unless [`SessionClient::set_timeout`] says otherwise. It needs a
    /// tokio runtime with time and I/O.
    ///
    /// # Errors
    /// If the address cannot be used, no server listens there, or it refuses a WebSocket.
    pub async fn connect(address: &str, secret: Option<JwtSecret>) -> Result<Self, ClientError> {
        Self::connect_with(address, ConnectOptions { secret, ..Default::default() }).await
    }

    /// As [`connect`](Self::connect), with headers of the caller's, or over a connection that the
    /// caller opens.
    ///
    /// # Errors
    /// If the address cannot be used, there is no connection, or the server refuses a WebSocket.
    pub async fn connect_with(
        address: &str,
        mut options: ConnectOptions,
    ) -> Result<Self, ClientError> {
        let dial = options.dial.take();
        let answer_bytes = options.answer_bytes.unwrap_or(ANSWER_BYTES);
        let address = Address { dial, ..Address::parse(address, "ws")? };
        let (outgoing, queue) = mpsc::channel(OUTGOING_LEN);
        let routes = Arc::new(Routes { address: address.host.clone(), table: Mutex::default() });
        let driver = Arc::clone(&routes);
        if address.is_unix() {
            let socket = Socket::new(address.dial().await?, SERVER_IDLE);
            let (reader, writer) = ipc::split(socket, answer_bytes);
            tokio::spawn(driver.converse(reader, writer, queue));
        } else {
            let opened = timeout(CALL_TIME, open_websocket(&address, &options)).await;
            let socket = opened.unwrap_or_else(|_| {
                Err(ClientError::Timeout { address: address.host.clone(), limit: CALL_TIME })
            })?;
            let (reader, writer) = socket.split();
            tokio::spawn(driver.converse(reader, writer, queue));
        }
        Ok(Self { routes, outgoing, call_time: CALL_TIME })
    }

    /// Bounds each call of this clone from now on.
    pub fn set_timeout(&mut self, call_time: Duration) {
        self.call_time = call_time;
    }

    /// Calls a method and parses its result.
    ///
    /// # Errors
    /// [`ClientError::Rpc`] if the server answers with an error; others if there is no answer, or
    /// the result is not a `T`.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, ClientError> {
        let answer = self.call_raw(method, params).await?;
        read_json(AnswerEnvelope::read(&answer)?.result()?).map_err(malformed)
    }

    /// Calls a method and returns the whole answer as it came, for callers that scan large results
    /// themselves: see [`response`](crate::response).
    ///
    /// # Errors
    /// If there is no answer. An answer with an error object is an answer.
    pub async fn call_raw(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<Bytes, ClientError> {
        let (_, answer) = self.exchange(None, None, |id| call_text(id, method, params)).await?;
        Ok(answer)
    }

    /// Subscribes, by a method whose result is the subscription's id.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn subscribe<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<Notifications<T>, ClientError> {
        let (sender, values) = mpsc::channel(NOTIFICATIONS_LEN);
        let text = |id| call_text(id, method, params);
        let (_, answer) = self.exchange(None, Some(sender), text).await?;
        let id = AnswerEnvelope::read(&answer)?.result()?.to_owned();
        let id = RawValue::from_string(id).map_err(malformed)?;
        Ok(Notifications { client: self.clone(), id, values, kind: PhantomData })
    }

    /// Makes several calls in one message, each a method with its parameters. Returns their ids, in
    /// the order of the calls, and the whole answer as it came: a list, in any order, or one error
    /// if the server refused the message.
    ///
    /// # Errors
    /// If there is no answer. An answer with error objects is an answer.
    ///
    /// # Panics
    /// If there are no calls.
    pub async fn batch_raw(
        &self,
        calls: &[(&str, &RawValue)],
    ) -> Result<(Range<u64>, Bytes), ClientError> {
        let count = calls.len() as u64;
        let text = |first_id| batch_text(first_id, calls);
        let (first_id, answer) = self.exchange(Some(count), None, text).await?;
        Ok((first_id..first_id + count, answer))
    }

    /// Sends one call, or a batch of `count`, whose text follows from the first id, and waits for
    /// the answer.
    async fn exchange(
        &self,
        count: Option<u64>,
        notifications: Option<mpsc::Sender<Bytes>>,
        text: impl FnOnce(u64) -> Result<Vec<u8>, ClientError>,
    ) -> Result<(u64, Bytes), ClientError> {
        let (answer, answered) = oneshot::channel();
        let (is_batch, count) = (count.is_some(), count.unwrap_or(1));
        let waiting = WaitingCall { count, is_batch, answer, notifications };
        let call = self.routes.enter(waiting)?;
        let text = text(call.id)?.into();
        let limit = self.call_time;
        let exchange = async {
            let sent = self.outgoing.send(OutgoingMessage::Text(text, None)).await;
            sent.map_err(|_| self.routes.closed())?;
            Ok((call.id, answered.await.map_err(|_| self.routes.closed())?))
        };
        timeout(limit, exchange).await.unwrap_or_else(|_| {
            Err(ClientError::Timeout { address: self.routes.address.clone(), limit })
        })
    }
}

/// The values of a subscription.
///
/// Up to 1,024 values wait to be read; a subscription that falls further behind is lost. When it is
/// dropped, further values are ignored; [`Notifications::unsubscribe`] tells the server, too.
pub struct Notifications<T> {
    client: SessionClient,
    /// As the server wrote it.
    id: Box<RawValue>,
    values: mpsc::Receiver<Bytes>,
    kind: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Notifications<T> {
    /// Waits for the next value. No value is lost where the future is dropped.
    ///
    /// # Errors
    /// After [`ClientError::Malformed`] the next value may be asked for; after any other error
    /// there is none.
    pub async fn next(&mut self) -> Result<T, ClientError> {
        match self.values.recv().await {
            Some(value) => read_json_bytes(&value).map_err(malformed),
            None => Err(self.client.routes.subscription_ended()),
        }
    }

    /// Ends the subscription by a method of the server; `false` if the server does not know it.
    ///
    /// # Errors
    /// As [`SessionClient::call`].
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

/// The receivers of the messages of a connection.
#[derive(Debug)]
struct Routes {
    /// `host:port`, for errors.
    address: String,
    table: Mutex<RouteTable>,
}

#[derive(Debug, Default)]
struct RouteTable {
    last_id: u64,
    /// By the id of the first call of the message.
    calls: BTreeMap<u64, WaitingCall>,
    /// By the id, as the server writes it.
    subscriptions: HashMap<String, mpsc::Sender<Bytes>>,
    /// Why the connection has ended.
    ended: Option<String>,
}

/// A call or a batch that waits for its answer.
#[derive(Debug)]
struct WaitingCall {
    /// The number of calls.
    count: u64,
    is_batch: bool,
    answer: oneshot::Sender<Bytes>,
    /// For a call whose result is the id of a subscription.
    notifications: Option<mpsc::Sender<Bytes>>,
}

/// The entry of a call in the table, removed when its future is dropped.
struct CallEntry<'r> {
    routes: &'r Routes,
    id: u64,
}

impl Drop for CallEntry<'_> {
    fn drop(&mut self) {
        self.routes.table().calls.remove(&self.id);
    }
}

impl Routes {
    fn table(&self) -> MutexGuard<'_, RouteTable> {
        self.table.lock().expect("nothing panics while it is locked")
    }

    fn enter(&self, waiting: WaitingCall) -> Result<CallEntry<'_>, ClientError> {
        let mut table = self.table();
        if table.ended.is_some() {
            drop(table);
            return Err(self.closed());
        }
        let id = table.last_id + 1;
        table.last_id += waiting.count;
        table.calls.insert(id, waiting);
        Ok(CallEntry { routes: self, id })
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
    async fn converse<R: MessageReader>(
        self: Arc<Self>,
        mut reader: R,
        mut writer: R::Writer,
        mut queue: mpsc::Receiver<OutgoingMessage>,
    ) {
        let ending = tokio::select! {
            ending = self.read(&mut reader) => ending,
            ending = R::send_all(&mut writer, &mut queue) => ending,
        };
        {
            let mut table = self.table();
            table.ended = Some(ending.to_string());
            table.calls.clear();
            table.subscriptions.clear();
        }
        drop(queue);
        reader.close(writer, &ending).await;
    }

    async fn read(&self, reader: &mut impl MessageReader) -> Ending {
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
        let is_list = message.as_str().trim_start().starts_with('[');
        if is_list && self.table().calls.values().any(|waiting| waiting.is_batch) {
            let answers: Vec<&RawValue> = read_json(message.as_str()).map_err(malformed)?;
            let mut ids = answers.iter().filter_map(|answer| field(answer.get(), "id").ok());
            let id = ids.find_map(|id| id.parse().ok());
            return self.route_answer(id, message.into());
        }
        match MessageKind::of(message.as_str())? {
            MessageKind::Answer { id } => {
                // A server that cannot read a batch does not know an id.
                let number = id.parse().ok();
                self.route_answer(number, message.clone().into()).map_err(|_| {
                    // It is not known which call this answers.
                    malformed(format_args!("its id is {}", quote(id)))
                })
            }
            MessageKind::Notification { subscription, result } => {
                let mut table = self.table();
                let Some(values) = table.subscriptions.get(subscription) else {
                    // Its `Notifications` were dropped.
                    return Ok(());
                };
                let value = Bytes::copy_from_slice(result.as_bytes());
                if values.try_send(value).is_err() {
                    table.subscriptions.remove(subscription);
                }
                Ok(())
            }
        }
    }

    /// Gives an answer to its call or batch; one without an id to the only batch that waits.
    fn route_answer(&self, id: Option<u64>, answer: Bytes) -> Result<(), ClientError> {
        let mut table = self.table();
        let first_id = match id {
            Some(id) => {
                let last = table.calls.range(..=id).next_back();
                last.filter(|(first, waiting)| id - **first < waiting.count)
                    .map(|(first, _)| *first)
            }
            None => {
                let only = table.calls.first_key_value().filter(|_| table.calls.len() == 1);
                let batch = only.filter(|(_, waiting)| waiting.is_batch);
                let (first, _) = batch.ok_or_else(|| malformed("it has no id"))?;
                Some(*first)
            }
        };
        // The call may have been given up.
        let waiting = first_id.and_then(|id| table.calls.remove(&id));
        let Some(WaitingCall { answer: waits, notifications, .. }) = waiting else {
            return Ok(());
        };
        if let Some(notifications) = notifications
            && let Ok(subscription) = AnswerEnvelope::read(&answer)?.result()
        {
            // Done here, as the first value may be the very next message.
            table.subscriptions.insert(subscription.into(), notifications);
        }
        waits.send(answer).unwrap_or_default();
        Ok(())
    }
}
