//! A server on a free port and a Unix socket, and clients that write what they like.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deponent_rpc::rest::{self, HeaderMap, StatusCode};
use deponent_rpc::{
    AllowedOrigins, Error, Handler, Json, JwtSecret, Later, Limits, Method, Params, Pieces,
    PortMemory, PortUse, RawValue, ServerOptions, Subscription, SubscriptionMethods, Topic,
    bind_unix, serve,
};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// A bound on every wait of a test; none is as long on a healthy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// `echo`, `hex` and `digits` of so many bytes, the second made while they are sent, `panic`, and
/// `wait`, which says that it began and then waits for a word; `turn` notes its number, in order.
/// `later` answers with its parameters, later.
/// `test_subscribe` takes the name of a topic: `news`, and nothing else.
///
/// Resources are below `/things/`: `echo`, `hits` counts on a connection, `bytes` has as many as
/// the query says, `file` is the file that it names, others are not there.
pub(crate) struct Methods {
    began: SyncSender<()>,
    go: Mutex<Receiver<()>>,
    news: Mutex<Option<Topic>>,
    turns: Arc<Mutex<Vec<u64>>>,
    later: Arc<Semaphore>,
    waiting: Arc<()>,
}

const SUBSCRIPTIONS: &[SubscriptionMethods] = &[
    SubscriptionMethods {
        subscribe: "test_subscribe",
        unsubscribe: "test_unsubscribe",
        notification: "test_subscription",
    },
    SubscriptionMethods {
        subscribe: "test_subscribeNews",
        unsubscribe: "test_unsubscribeNews",
        notification: "test_subscribeNews",
    },
];

impl Handler for Methods {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        match method {
            "echo" => Ok(params.map_or("null", RawValue::get).as_bytes().to_vec().into()),
            "hex" => {
                let length: usize = Params::of(params)?.next("length")?;
                let mut text = b"\"0x".to_vec();
                text.extend_from_slice(const_hex::encode(pattern(length)).as_bytes());
                text.push(b'"');
                Ok(text.into())
            }
            "digits" => {
                let mut pieces = Pieces::default();
                pieces.push(&b"\"0x"[..]);
                pieces.push_hex(pattern(Params::of(params)?.next("length")?));
                pieces.push(&b"\""[..]);
                Ok(pieces.into())
            }
            "panic" => panic!("as asked"),
            "wait" | "wait_in_turn" => {
                self.began.send(()).expect("the test listens");
                let go = self.go.lock().expect("no panic in here");
                Json::of(&go.recv_timeout(PATIENCE).is_ok())
            }
            "turn" => {
                self.turns.lock().expect("no panic in here").push(Params::of(params)?.next("n")?);
                Json::of(&true)
            }
            "later" => Err(Error::invalid_params("call it alone")),
            "drop topic" => {
                self.news.lock().expect("no panic in here").take();
                Json::of(&true)
            }
            _ => Err(Error::method_not_found(method)),
        }
    }

    fn call_later(
        &self,
        _: Option<IpAddr>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Later, Error> {
        assert_eq!(method, "later");
        let params = params.ok_or_else(|| Error::invalid_params("none"))?.to_owned();
        let (later, waiting) = (self.later.clone(), self.waiting.clone());
        Ok(Box::pin(async move {
            later.acquire().await.expect("not closed").forget();
            drop(waiting);
            assert_ne!(params.get(), "[\"panic\"]", "as asked");
            Json::of(&params)
        }))
    }

    fn methods(&self) -> &[Method] {
        const METHODS: &[Method] = &[
            Method::new("echo").quick_if(is_quick),
            Method::new("panic").quick_if(is_quick),
            Method::new("wait").quick_if(is_quick),
            Method::new("turn").quick_if(is_quick).in_order(),
            Method::new("wait_in_turn").in_order(),
            Method::new("later").waits(),
        ];
        METHODS
    }

    fn resources(&self) -> Option<&dyn rest::Resources> {
        Some(self)
    }

    fn subscriptions(&self) -> &[SubscriptionMethods] {
        SUBSCRIPTIONS
    }

    fn subscribe(&self, method: &str, params: Option<&RawValue>) -> Result<Subscription, Error> {
        let mut params = Params::of(params)?;
        if method == "test_subscribe" {
            let topic: String = params.next("topic")?;
            if topic != "news" {
                return Err(Error::invalid_params(format_args!("there is no topic {topic}")));
            }
        }
        params.end()?;
        Ok(self.news.lock().expect("no panic in here").as_ref().expect("there").subscribe())
    }
}

impl rest::Resources for Methods {
    fn prefix(&self) -> &str {
        "/things/"
    }

    fn answer(&self, request: rest::Request) -> rest::Response {
        let query = request.query.as_deref().unwrap_or_default();
        let body: Pieces = match &request.path["/things/".len()..] {
            "echo" => {
                let text = format!("{} {} {query} ", request.method, request.path);
                vec![text.into(), request.body].into()
            }
            "hits" => {
                let hits = request.connection.with(|hits: &mut u32| {
                    *hits += 1;
                    *hits
                });
                hits.to_string().into_bytes().into()
            }
            "bytes" => {
                let all = pattern(query.parse().expect("a number"));
                let parts = all.chunks(1000).map(bytes::Bytes::copy_from_slice);
                parts.collect::<Vec<_>>().into()
            }
            "file" => {
                let file = File::open(query).expect("a path");
                return rest::Response { file: Some(Arc::new(file)), ..Default::default() };
            }
            "panic" => panic!("as asked"),
            _ => return self.refuse(StatusCode::NOT_FOUND, "no such thing"),
        };
        rest::Response { status: StatusCode::OK, headers: HeaderMap::new(), body, file: None }
    }

    fn refuse(&self, status: StatusCode, detail: &str) -> rest::Response {
        rest::Response::text(status, format!("refused: {detail}"))
    }
}

/// Whether the one parameter says so.
fn is_quick(params: Option<&RawValue>) -> bool {
    params.is_some_and(|params| params.get() == "[\"quick\"]")
}

/// Bytes that repeat only after 251 kB.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251 + i / 1000) as u8).collect()
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The Unix socket.
    pub(crate) path: PathBuf,
    /// One message for each `wait` that began.
    pub(crate) began: Receiver<()>,
    /// One message lets one `wait` end.
    pub(crate) go: SyncSender<()>,
    pub(crate) stop: Option<watch::Sender<()>>,
    /// Tells that [`serve`] returned for both.
    pub(crate) ended: Receiver<()>,
    /// The numbers that `turn` has noted.
    pub(crate) turns: Arc<Mutex<Vec<u64>>>,
    /// A permit lets one `later` end.
    pub(crate) later: Arc<Semaphore>,
    waiting: Arc<()>,
    /// The topic of the subscriptions.
    pub(crate) news: Option<Topic>,
    /// Of the port, and of the Unix socket.
    memories: [PortMemory; 2],
    runtime: Option<Runtime>,
    _directory: TempDir,
}

impl Server {
    pub(crate) fn start(jwt: Option<JwtSecret>, limits: Limits) -> Self {
        Self::start_on(2, jwt, limits)
    }

    /// On so many threads that read from clients.
    pub(crate) fn start_on(threads: usize, jwt: Option<JwtSecret>, limits: Limits) -> Self {
        // Bound before the runtime runs it: a test that is async itself must not block on another.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("set");
        // As tokio's own listeners, where crowds come.
        rustix::net::listen(&listener, 1024).expect("it listens already");
        let address = listener.local_addr().expect("bound");
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(threads).thread_name(thread_name(address)).enable_all();
        let runtime = runtime.build().expect("a runtime");
        let (began_in, began) = sync_channel(100);
        let (go, go_out) = sync_channel(100);
        let (stop, stopped) = watch::channel(());
        let (ended_in, ended) = sync_channel(1);
        let news = Topic::new();
        let topic = Mutex::new(Some(news.clone()));
        let turns = Arc::<Mutex<Vec<u64>>>::default();
        let go_out = Mutex::new(go_out);
        let (later, waiting) = (Arc::new(Semaphore::new(0)), Arc::default());
        let methods = Methods {
            began: began_in,
            go: go_out,
            news: topic,
            turns: turns.clone(),
            later: Arc::clone(&later),
            waiting: Arc::clone(&waiting),
        };
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let origins = AllowedOrigins {
            hosts: list(&["localhost", "x"]),
            http: list(&["https://app.example"]),
            websocket: list(&["app.example"]),
        };
        let options = ServerOptions { origins, ..ServerOptions::new(jwt, limits) };
        let memories = [(); 2].map(|()| PortMemory::new(&options.limits));
        let [options, of_unix] = memories.clone().map(|memory| {
            let memory = Some(memory);
            ServerOptions { memory, ..options.clone() }
        });
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("test.ipc");
        let context = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        let unix = bind_unix(&path).expect("a socket");
        drop(context);
        runtime.spawn(async move {
            let methods = Arc::new(methods);
            let shutdown = || {
                let mut stopped = stopped.clone();
                async move { while stopped.changed().await.is_ok() {} }
            };
            let tcp = serve(listener, options, methods.clone(), shutdown());
            tokio::join!(tcp, serve(unix, of_unix, methods, shutdown()));
            ended_in.send(()).unwrap_or_default();
        });
        let (stop, news, runtime) = (Some(stop), Some(news), Some(runtime));
        let _directory = directory;
        Self {
            address,
            path,
            began,
            go,
            stop,
            ended,
            turns,
            later,
            waiting,
            news,
            memories,
            runtime,
            _directory,
        }
    }

    pub(crate) fn public() -> Self {
        Self::start(None, Limits::public())
    }

    pub(crate) fn connect(&self) -> Raw {
        let socket = TcpStream::connect(self.address).expect("somebody listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        socket.set_write_timeout(Some(PATIENCE)).expect("set");
        Raw { socket: File::from(OwnedFd::from(socket)), read: Vec::new() }
    }

    /// A connection to the Unix socket.
    pub(crate) fn connect_unix(&self) -> Raw {
        let socket = UnixStream::connect(&self.path).expect("somebody listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        socket.set_write_timeout(Some(PATIENCE)).expect("set");
        Raw { socket: File::from(OwnedFd::from(socket)), read: Vec::new() }
    }

    /// The address of the Unix socket.
    pub(crate) fn unix_address(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// A WebSocket of another make.
    pub(crate) fn websocket(&self) -> Ws {
        Ws::open(self.connect())
    }

    /// Waits until so many `later` wait.
    pub(crate) fn until_waiting(&self, count: usize) {
        let begun = Instant::now();
        while Arc::strong_count(&self.waiting) != count + 2 {
            assert!(begun.elapsed() < PATIENCE, "{}", Arc::strong_count(&self.waiting) - 2);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until no connection and no call holds anything.
    pub(crate) fn until_nothing_is_held(&self) {
        let begun = Instant::now();
        let used = || {
            self.memories.each_ref().map(|memory| PortUse { refused: Vec::new(), ..memory.usage() })
        };
        while used() != [PortUse::default(), PortUse::default()] {
            assert!(begun.elapsed() < PATIENCE, "{:?}", used());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn publish(&self, value: Value) {
        let value = Json::of(&value).expect("JSON");
        self.news.as_ref().expect("not dropped").publish(value);
    }

    /// One call on a connection of its own.
    pub(crate) fn post(&self, body: impl AsRef<[u8]>) -> Reply {
        let mut raw = self.connect();
        raw.post(body);
        raw.reply()
    }

    /// The number of the server's threads, on Linux.
    pub(crate) fn threads(&self) -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux").flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.trim_end() == thread_name(self.address)).count()
    }

    /// Asserts that the server still answers.
    pub(crate) fn check_alive(&self) {
        let reply = self.post(r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":["alive"]}"#);
        assert_eq!(reply.text(), r#"{"jsonrpc":"2.0","id":1,"result":["alive"]}"#);
    }
}

/// The name of a server's threads, which are not those of other tests.
fn thread_name(address: SocketAddr) -> String {
    format!("server {}", address.port())
}

impl Drop for Server {
    fn drop(&mut self) {
        // Without waiting for handlers that a failed test left behind.
        self.runtime.take().expect("dropped once").shutdown_background();
    }
}

/// A connection without manners, of either kind.
pub(crate) struct Raw {
    socket: File,
    read: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    #[track_caller]
    pub(crate) fn check(&self, status: u16, part: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.text().contains(part), "{:?} lacks {part:?}", self.text());
    }
}

impl Raw {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).expect("sent");
    }

    /// As [`Raw::send`], to a server that may have closed.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).unwrap_or_default();
    }

    pub(crate) fn post(&mut self, body: impl AsRef<[u8]>) {
        self.send(post("", body));
    }

    /// Ends our side of the conversation, with a server that may have closed.
    pub(crate) fn finish(&mut self) {
        rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write).unwrap_or_default();
    }

    /// Reads one reply.
    pub(crate) fn reply(&mut self) -> Reply {
        self.try_reply().expect("the connection was closed before a reply")
    }

    /// Reads one reply, or `None` where the connection was closed.
    pub(crate) fn try_reply(&mut self) -> Option<Reply> {
        let end = loop {
            match self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None if self.more() => {}
                None => return None,
            }
        };
        let head: Vec<u8> = self.read.drain(..end).collect();
        let head = String::from_utf8(head).expect("ASCII").to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().expect("a number"));
        while self.read.len() < length {
            if !self.more() {
                return None;
            }
        }
        let body = self.read.drain(..length).collect();
        Some(Reply { status: status.expect("a status line"), head, body })
    }

    /// Reads some bytes; `false` where the connection was closed.
    pub(crate) fn more(&mut self) -> bool {
        let mut buffer = vec![0; 1 << 16];
        match self.socket.read(&mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.read.extend_from_slice(&buffer[..length]);
                true
            }
            Err(fault) if fault.kind() == ErrorKind::ConnectionReset => false,
            Err(fault) => panic!("neither bytes nor end: {fault}"),
        }
    }

    /// Reads so many lines of JSON.
    pub(crate) fn lines(&mut self, count: usize) -> Vec<Value> {
        while self.read.iter().filter(|byte| **byte == b'\n').count() < count {
            assert!(self.more(), "ended after {:?}", String::from_utf8_lossy(&self.read));
        }
        let text = String::from_utf8(std::mem::take(&mut self.read)).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Reads up to where a text has come.
    pub(crate) fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.read).contains(text) {
            assert!(self.more(), "{:?} lacks {text:?}", self.read);
        }
    }

    /// Waits for the server to close, and gives what came before.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        while self.more() {}
        self.read
    }
}

/// The WebSocket library's own client.
pub(crate) struct Ws(WebSocketStream<tokio::net::TcpStream>);

impl Ws {
    /// Shakes hands on a fresh connection.
    fn open(mut raw: Raw) -> Self {
        raw.send(upgrade(""));
        let reply = raw.reply();
        assert_eq!(reply.status, 101, "{reply:?}");
        let Raw { socket, read } = raw;
        let socket = TcpStream::from(OwnedFd::from(socket));
        socket.set_nonblocking(true).expect("set");
        let socket = tokio::net::TcpStream::from_std(socket).expect("a runtime");
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let role = Role::Client;
        let opened = WebSocketStream::from_partially_read(socket, read, role, Some(config));
        // It has nothing to wait for.
        Self(futures_util::FutureExt::now_or_never(opened).expect("no handshake"))
    }

    pub(crate) async fn send(&mut self, message: impl Into<Message>) {
        within(self.0.send(message.into())).await.expect("sent");
    }

    /// The next message, pongs and pings too.
    pub(crate) async fn next(&mut self) -> Message {
        within(self.0.next()).await.expect("no end").expect("no fault")
    }

    /// The next text, as JSON.
    pub(crate) async fn json(&mut self) -> Value {
        loop {
            match self.next().await {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?} instead of a text"),
            }
        }
    }

    /// Calls, and gives the next answer, whatever it answers.
    pub(crate) async fn call(&mut self, method: &str, params: &str) -> Value {
        self.send(call(method, params)).await;
        self.json().await
    }

    /// Subscribes to the news, and gives the id.
    pub(crate) async fn subscribe(&mut self) -> String {
        let answer = self.call("test_subscribeNews", "[]").await;
        answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).into()
    }

    /// Waits for the goodbye and the end of the connection, other messages aside.
    pub(crate) async fn goodbye(&mut self) -> (u16, String) {
        let mut goodbye = None;
        while let Some(message) = within(self.0.next()).await {
            match message {
                Ok(Message::Close(why)) => goodbye = why,
                Ok(_) => {}
                Err(fault) => panic!("{fault} after {goodbye:?}"),
            }
        }
        let goodbye = goodbye.expect("a goodbye with a reason");
        (goodbye.code.into(), goodbye.reason.to_string())
    }

    #[track_caller]
    pub(crate) fn check_goodbye(&mut self, code: u16, part: &str) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let (found, reason) = self.goodbye().await;
            assert!(found == code && reason.contains(part), "{place}: {found}, {reason:?}");
        }
    }
}

/// A bound on what a test waits for.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes no such time")
}

/// The request for a WebSocket, with further headers, each with its line end. The key is the
/// example of RFC 6455.
pub(crate) fn upgrade(headers: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    )
}

/// A frame of a client, masked with zeroes.
pub(crate) fn frame(first: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut frame = vec![first];
    match u16::try_from(payload.len()) {
        Ok(length) if length < 126 => frame.push(0x80 | length as u8),
        Ok(length) => {
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// A whole request, with further headers, each with its line end.
pub(crate) fn post(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{headers}\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The text of a call.
pub(crate) fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}
