//! Unix sockets: JSON-RPC with and without HTTP, resources, answers by descriptor; and HTTP/2.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{PATIENCE, pattern};
use deponent_rpc::rest::{self, HeaderMap, HeaderValue, Method, StatusCode};
use deponent_rpc::{
    Client, ClientError, Error, Handler, Json, Limits, Params, Pieces, RawValue, ServerOptions,
    SessionClient, bind_unix, response, serve,
};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How often `slow` was called.
static SLOW_CALLS: AtomicUsize = AtomicUsize::new(0);

/// `echo`, and resources below `/things/`: `echo`, `hits` counts on a connection, `bytes` has as
/// many as the query says, `file` is the file that it names, others are not there.
struct Things;

impl Handler for Things {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        match method {
            "echo" => Ok(params.map_or("null", RawValue::get).as_bytes().to_vec().into()),
            "hex" => {
                let mut pieces = Pieces::default();
                pieces.push(&b"\"0x"[..]);
                pieces.push_hex(pattern(Params::of(params)?.next("length")?));
                pieces.push(&b"\""[..]);
                Ok(pieces.into())
            }
            "slow" => {
                SLOW_CALLS.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(300));
                Json::of(&true)
            }
            _ => Err(Error::method_not_found(method)),
        }
    }

    fn resources(&self) -> Option<&dyn rest::Resources> {
        Some(self)
    }
}

impl rest::Resources for Things {
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
                let file = std::fs::File::open(query).expect("a path");
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

struct Server {
    runtime: Runtime,
    _directory: TempDir,
    path: PathBuf,
    tcp: String,
}

impl Server {
    fn start() -> Self {
        Self::with(Limits::public())
    }

    fn with(limits: Limits) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("test.ipc");
        let options = ServerOptions { jwt: None, limits };
        let tcp = runtime.block_on(async {
            let unix = bind_unix(&path).expect("a socket");
            tokio::spawn(serve(unix, options.clone(), Arc::new(Things), std::future::pending()));
            let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = tcp.local_addr().expect("bound").to_string();
            tokio::spawn(serve(tcp, options, Arc::new(Things), std::future::pending()));
            address
        });
        Self { runtime, _directory: directory, path, tcp }
    }

    fn connect(&self) -> UnixStream {
        let socket = UnixStream::connect(&self.path).expect("somebody listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        socket
    }

    fn client(&self) -> Client {
        let address = format!("unix:{}", self.path.display());
        self.runtime.block_on(Client::connect(&address, None)).expect("connected")
    }

    fn get(&self, client: &mut Client, path: &str, headers: HeaderMap) -> deponent_rpc::Reply {
        let asked = client.request(Method::GET, path, headers, Vec::new());
        self.runtime.block_on(asked).expect("an answer")
    }
}

fn lines(socket: &mut UnixStream, count: usize) -> Vec<Value> {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    while text.iter().filter(|byte| **byte == b'\n').count() < count {
        let read = socket.read(&mut buffer).expect("read");
        assert_ne!(read, 0, "ended after {:?}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&buffer[..read]);
    }
    let text = String::from_utf8(text).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn by_descriptor() -> HeaderMap {
    HeaderMap::from_iter([(rest::DESCRIPTOR, HeaderValue::from_static("1"))])
}

#[test]
fn a_session_without_http_has_many_calls_at_a_time() {
    let server = Server::start();
    let address = format!("unix:{}", server.path.display());
    let calls = async {
        let client = SessionClient::connect(&address, None).await.expect("connected");
        let slow = client.call::<bool>("slow", ());
        let quick = async {
            for n in 0..50 {
                let answer = client.call::<[u32; 1]>("echo", [n]).await.expect("a result");
                assert_eq!(answer, [n]);
            }
            let error = client.call::<Value>("nothing", ()).await.expect_err("no method");
            assert!(matches!(error, ClientError::Rpc(_)), "{error}");
            std::time::Instant::now()
        };
        let slow = async { (slow.await.expect("a result"), std::time::Instant::now()) };
        let ((is_done, slow), quick) = tokio::join!(slow, quick);
        assert!(is_done && quick < slow, "they overtake it");
        let large = client.call_raw("hex", [1_000_000]).await.expect("an answer");
        let hex = response::result(&large).expect("a result");
        assert!(response::bytes(hex).expect("hex") == pattern(1_000_000));
    };
    server.runtime.block_on(calls);
}

#[test]
fn only_the_owner_may_connect() {
    let server = Server::start();
    let mode = std::fs::metadata(&server.path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_socket_left_behind_is_replaced_and_one_in_use_is_not() {
    let server = Server::start();
    let _context = server.runtime.enter();
    let used = bind_unix(&server.path).expect_err("somebody listens");
    assert_eq!(used.kind(), std::io::ErrorKind::AddrInUse);
    let left = server.path.with_file_name("left");
    drop(std::os::unix::net::UnixListener::bind(&left).expect("bound"));
    bind_unix(&left).expect("nobody listens");
    // The listener accepts no connection: connecting would take for ever.
    let full = server.path.with_file_name("full");
    let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
    let listener = listener.expect("a socket");
    rustix::net::bind(&listener, &SocketAddrUnix::new(&full).expect("short")).expect("free");
    rustix::net::listen(&listener, 0).expect("it listens");
    let _waiting = std::os::unix::net::UnixStream::connect(&full).expect("it waits");
    let used = bind_unix(&full).expect_err("somebody listens");
    assert_eq!(used.kind(), std::io::ErrorKind::AddrInUse);
    let file = server.path.with_file_name("file");
    std::fs::write(&file, "kept").expect("written");
    bind_unix(&file).expect_err("no socket");
    assert_eq!(std::fs::read(&file).expect("there"), b"kept");
}

#[test]
fn bare_requests_are_answered_line_by_line() {
    let server = Server::start();
    let mut socket = server.connect();
    // As geth's clients send them: nothing in between, cut anywhere.
    let text = br#"{"jsonrpc":"2.0","id":1,"method":"echo","params":["}"]}[{"jsonrpc":"2.0","id":2,
        "method":"echo"},{"jsonrpc":"2.0","id":3,"method":"none"}]"#;
    for part in text.chunks(7) {
        socket.write_all(part).expect("sent");
    }
    let mut answers = lines(&mut socket, 2);
    answers.sort_by_key(|answer| answer.is_array());
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": 1, "result": ["}"]}));
    assert_eq!(answers[1][0], json!({"jsonrpc": "2.0", "id": 2, "result": null}));
    assert_eq!(answers[1][1]["error"]["code"], -32601);
}

#[test]
fn what_came_whole_is_answered_before_what_is_wrong_behind_it() {
    let server = Server::start();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[7]}"#;
    for wrong in [" xyz", r#"{"jsonrpc":"2.0","id":2,"#] {
        let mut socket = server.connect();
        socket.write_all(format!("{call}{wrong}").as_bytes()).expect("sent");
        socket.shutdown(std::net::Shutdown::Write).expect("open");
        let answers = lines(&mut socket, 2);
        assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": 1, "result": [7]}), "{wrong}");
        assert_eq!(
            (&answers[1]["id"], &answers[1]["error"]["code"]),
            (&Value::Null, &json!(-32700))
        );
    }
}

#[test]
fn one_too_many_is_told() {
    let turn_wait = Duration::from_millis(50);
    let server = Server::with(Limits { sessions: 1, turn_wait, ..Limits::public() });
    let call = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}";
    let mut first = server.connect();
    first.write_all(call).expect("sent");
    assert_eq!(lines(&mut first, 1)[0]["id"], 1);
    let mut second = server.connect();
    second.write_all(call).expect("sent");
    let refused = &lines(&mut second, 1)[0];
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32000)));
    assert_eq!(second.read(&mut [0]).expect("the end"), 0);
}

/// As `echo ... | socat - UNIX-CONNECT:...` does.
#[test]
fn who_has_asked_everything_gets_all_answers() {
    let server = Server::start();
    let mut socket = server.connect();
    for id in 0..10 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "echo", "params": [id]});
        socket.write_all(call.to_string().as_bytes()).expect("sent");
    }
    socket.shutdown(std::net::Shutdown::Write).expect("a connection");
    let mut answers = lines(&mut socket, 10);
    answers.sort_by_key(|answer| answer["id"].as_u64());
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(answer["result"], json!([id]));
    }
    assert_eq!(socket.read(&mut [0]).expect("an end"), 0);
}

#[test]
fn who_has_asked_everything_and_is_gone_is_not_answered() {
    let server = Server::start();
    let mut socket = server.connect();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "slow"});
    socket.write_all(json!([call, call, call, call, call]).to_string().as_bytes()).expect("sent");
    socket.shutdown(std::net::Shutdown::Write).expect("a connection");
    std::thread::sleep(Duration::from_millis(50));
    drop(socket);
    std::thread::sleep(Duration::from_millis(1600));
    let called = SLOW_CALLS.load(Ordering::Relaxed);
    assert!((1..=2).contains(&called), "{called} were called");
}

#[test]
fn a_large_bare_answer_comes_whole() {
    let server = Server::start();
    let mut socket = server.connect();
    let call = br#" {"jsonrpc":"2.0","id":1,"method":"hex","params":[3000001]}"#;
    socket.write_all(call).expect("sent");
    let answer = &lines(&mut socket, 1)[0]["result"];
    let digits: String = pattern(3_000_001).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(answer.as_str() == Some(&format!("0x{digits}")));
}

#[test]
fn what_is_no_json_gets_an_error_and_the_end() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}").expect("sent");
    assert_eq!(lines(&mut socket, 1)[0]["id"], 1);
    socket.write_all(b" x").expect("sent");
    assert_eq!(lines(&mut socket, 1)[0]["error"]["code"], -32700);
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).expect("the end");
    // On TCP bare JSON is no HTTP.
    let mut tcp = std::net::TcpStream::connect(&server.tcp).expect("somebody listens");
    tcp.set_read_timeout(Some(PATIENCE)).expect("set");
    tcp.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\r\n\r\n").expect("sent");
    tcp.read_to_end(&mut rest).expect("the end");
    assert!(String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 400"), "{rest:?}");
}

#[test]
fn http_is_spoken_on_the_same_socket() {
    let server = Server::start();
    let mut client = server.client();
    for number in 0..3 {
        let called = client.call::<Vec<u32>>("echo", [number]);
        assert_eq!(server.runtime.block_on(called).expect("a result"), [number]);
    }
    let reply = server.get(&mut client, "/things/echo?a=1", HeaderMap::new());
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.body, "GET /things/echo a=1 ");
    let posted = client.request(Method::POST, "/things/echo", HeaderMap::new(), "body");
    let reply = server.runtime.block_on(posted).expect("an answer");
    assert_eq!(reply.body, "POST /things/echo  body");
}

#[test]
fn refusals_of_resources_are_the_handlers() {
    let server = Server::start();
    let mut client = server.client();
    let reply = server.get(&mut client, "/things/none", HeaderMap::new());
    assert_eq!(
        (reply.status, &reply.body[..]),
        (StatusCode::NOT_FOUND, &b"refused: no such thing\n"[..])
    );
    let reply = server.get(&mut client, "/things/panic", HeaderMap::new());
    assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(reply.body.starts_with(b"refused: "));
    let long = vec![0; Limits::public().body_bytes + 1];
    let posted = client.request(Method::POST, "/things/echo", HeaderMap::new(), long);
    let reply = server.runtime.block_on(posted).expect("an answer");
    assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(reply.body.starts_with(b"refused: the body is too long"));
    let reply = server.get(&mut client, "/elsewhere", HeaderMap::new());
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    assert!(reply.body.starts_with(b"JSON-RPC is served at the path"));
}

#[test]
fn a_connection_is_remembered_as_long_as_it_lasts() {
    let server = Server::start();
    let (mut one, mut other) = (server.client(), server.client());
    let hits = |client: &mut Client| server.get(client, "/things/hits", HeaderMap::new()).body;
    assert_eq!(hits(&mut one), "1");
    assert_eq!(hits(&mut one), "2");
    assert_eq!(hits(&mut other), "1");
}

/// The state of a client goes with its connection, so that has a bound of its own.
#[test]
fn an_idle_connection_lasts_longer_than_on_tcp_and_not_for_ever() {
    let brief = Duration::from_millis(200);
    let limits =
        |unix_header_read| Limits { header_read: brief, unix_header_read, ..Limits::public() };
    let server = Server::with(limits(PATIENCE));
    let mut client = server.client();
    let hits = |server: &Server, client: &mut Client| {
        server.get(client, "/things/hits", HeaderMap::new()).body
    };
    assert_eq!(hits(&server, &mut client), "1");
    // Those who say nothing, and those on TCP, are let go soon.
    assert_eq!(server.connect().read(&mut [0]).expect("the end"), 0);
    let mut tcp = std::net::TcpStream::connect(&server.tcp).expect("somebody listens");
    tcp.set_read_timeout(Some(PATIENCE)).expect("set");
    assert_eq!(tcp.read(&mut [0]).expect("the end"), 0);
    assert_eq!(hits(&server, &mut client), "2");
    let server = Server::with(limits(brief));
    let mut once = server.connect();
    once.write_all(b"GET /things/hits HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    once.read_to_end(&mut answer).expect("the end");
    assert!(answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(b"1"), "{answer:?}");
}

#[test]
fn a_large_body_comes_by_descriptor_to_who_asks_for_it() {
    let server = Server::start();
    let mut client = server.client();
    for length in [3_000_000, 1_000_000, 5_000_000, 4_999_999] {
        let path = format!("/things/bytes?{length}");
        let mapped = server.get(&mut client, &path, by_descriptor());
        assert_eq!(mapped.headers[rest::header::CONTENT_LENGTH], "0");
        assert!(mapped.body == pattern(length));
        let sent = server.get(&mut client, &path, HeaderMap::new());
        assert!(!sent.headers.contains_key(rest::DESCRIPTOR));
        assert!(sent.body == pattern(length));
    }
    let small = server.get(&mut client, "/things/bytes?1000", by_descriptor());
    assert!(!small.headers.contains_key(rest::DESCRIPTOR));
    assert!(small.body == pattern(1000));
}

#[test]
fn a_file_is_used_again_only_when_it_was_given_back() {
    let server = Server::start();
    let mut client = server.client();
    let get = |client: &mut Client, length: usize| {
        server.get(client, &format!("/things/bytes?{length}"), by_descriptor()).body
    };
    let first = get(&mut client, 500_000);
    let second = get(&mut client, 400_000);
    let (first_at, part) = (first.as_ptr(), second.slice(1000..2000));
    drop((first, second));
    // The first file went back; a slice of the second one is in use.
    let third = get(&mut client, 500_000);
    assert_eq!(third.as_ptr(), first_at);
    assert!(part == pattern(400_000)[1000..2000]);
    // Also when the client is gone.
    drop(client);
    let mut other = server.client();
    let fourth = get(&mut other, 450_000);
    assert!(third == pattern(500_000) && fourth == pattern(450_000));
    assert!(part == pattern(400_000)[1000..2000]);
}

#[test]
fn a_file_is_passed_as_it_is() {
    let server = Server::start();
    let path = server.path.with_file_name("file");
    std::fs::write(&path, pattern(10_000)).expect("written");
    let asked = format!("/things/file?{}", path.display());
    let mut client = server.client();
    let own_file = || HeaderMap::from_iter([(rest::DESCRIPTOR, rest::OWN_FILE)]);
    let first = server.get(&mut client, &asked, own_file());
    assert_eq!(first.headers[rest::DESCRIPTOR], "file;length=10000");
    assert!(first.body == pattern(10_000));
    // It grows, and loses its name, and a client that asked for it goes without a word.
    let mut file = std::fs::File::options().append(true).open(&path).expect("there");
    file.write_all(&[7; 90_000]).expect("written");
    let mut gone = server.connect();
    let request = format!("GET {asked} HTTP/1.1\r\nHost: here\r\nDeponent-Descriptor: 1\r\n\r\n");
    gone.write_all(request.as_bytes()).expect("sent");
    drop(gone);
    // One that takes memory files alone does not map it.
    let mut strict = server.client();
    let asked_for = strict.request(Method::GET, &asked, by_descriptor(), Vec::new());
    let refused = server.runtime.block_on(asked_for).expect_err("it could shrink");
    assert!(refused.to_string().contains("nobody asked for"), "{refused}");
    let second = server.get(&mut client, &asked, own_file()).body;
    std::fs::remove_file(&path).expect("there");
    drop(client);
    assert!(first.body == pattern(10_000) && second[..10_000] == first.body);
    assert!(second.len() == 100_000 && second[10_000..].iter().all(|byte| *byte == 7));
}

#[test]
fn a_file_is_refused_where_it_cannot_be_passed() {
    let server = Server::start();
    let path = server.path.with_file_name("file");
    std::fs::write(&path, "content").expect("written");
    let asked = format!("/things/file?{}", path.display());
    let mut unix = server.client();
    let mut tcp = server.runtime.block_on(Client::connect(&server.tcp, None)).expect("connected");
    for (client, headers) in [(&mut unix, HeaderMap::new()), (&mut tcp, by_descriptor())] {
        let reply = server.get(client, &asked, headers);
        assert_eq!(reply.status, StatusCode::BAD_REQUEST);
        assert!(reply.body.starts_with(b"refused: this is a file"), "{:?}", reply.body);
    }
}

#[test]
fn over_tcp_nobody_gets_a_descriptor() {
    let server = Server::start();
    let connected = server.runtime.block_on(Client::connect(&server.tcp, None));
    let mut client = connected.expect("connected");
    let reply = server.get(&mut client, "/things/bytes?1000000", by_descriptor());
    assert!(!reply.headers.contains_key(rest::DESCRIPTOR));
    assert!(reply.body == pattern(1_000_000));
}

#[test]
fn http_2_carries_calls_and_resources_side_by_side() {
    let server = Server::start();
    server.runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(&server.tcp).await.expect("connected");
        let shake =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket));
        let (mut requests, driver) = shake.await.expect("HTTP/2");
        tokio::spawn(driver);
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "hex", "params": [200_000]});
        let post = hyper::Request::post("http://localhost/")
            .header("content-type", "application/json")
            .body(Full::new(bytes::Bytes::from(call.to_string())))
            .expect("a request");
        let get = hyper::Request::get("http://localhost/things/bytes?1000000")
            .body(Full::default())
            .expect("a request");
        let (called, got) = (requests.send_request(post), requests.send_request(get));
        let (called, got) = tokio::join!(called, got);
        let called = called.expect("an answer").into_body().collect().await.expect("a body");
        let answer: Value = serde_json::from_slice(&called.to_bytes()).expect("JSON");
        assert_eq!(answer["result"].as_str().map(str::len), Some(400_002));
        let got = got.expect("an answer").into_body().collect().await.expect("a body");
        assert!(got.to_bytes() == pattern(1_000_000));
        let head = hyper::Request::head("http://localhost/things/bytes?1000000")
            .body(Full::default())
            .expect("a request");
        let head = requests.send_request(head).await.expect("an answer");
        assert_eq!(head.headers()["content-length"], "1000000");
        let nothing = head.into_body().collect().await.expect("an end");
        assert!(nothing.to_bytes().is_empty());
        let probe =
            hyper::Request::get("http://localhost/").body(Full::default()).expect("a request");
        let answer = requests.send_request(probe).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
    });
}

#[test]
fn answers_come_in_zstd_to_who_asks_for_it() {
    let server = Server::start();
    let over_tcp = server.runtime.block_on(Client::connect(&server.tcp, None)).expect("connected");
    for mut client in [over_tcp, server.client()] {
        client.set_zstd(true);
        for length in [3_000_000, 4096] {
            let path = format!("/things/bytes?{length}");
            let reply = server.get(&mut client, &path, HeaderMap::new());
            assert!(reply.body == pattern(length));
            assert_eq!(reply.headers[rest::header::CONTENT_ENCODING], "zstd");
            assert!(!reply.headers.contains_key(rest::header::CONTENT_LENGTH));
            assert_eq!(reply.headers[rest::header::VARY], "accept-encoding");
        }
        // A short one is not worth it; its length is known.
        let reply = server.get(&mut client, "/things/bytes?4095", HeaderMap::new());
        assert!(reply.body == pattern(4095));
        assert!(!reply.headers.contains_key(rest::header::CONTENT_ENCODING));
        assert_eq!(reply.headers[rest::header::CONTENT_LENGTH], "4095");
        assert_eq!(reply.headers[rest::header::VARY], "accept-encoding");
        // How long a body is as it is.
        let head =
            client.request(Method::HEAD, "/things/bytes?3000000", HeaderMap::new(), Vec::new());
        let head = server.runtime.block_on(head).expect("an answer");
        assert_eq!(head.headers[rest::header::CONTENT_LENGTH], "3000000");
        let called = server.runtime.block_on(client.call::<String>("hex", [500_000]));
        assert_eq!(called.expect("an answer").len(), 1_000_002);
        client.set_zstd(false);
        let reply = server.get(&mut client, "/things/bytes?3000000", HeaderMap::new());
        assert!(reply.body == pattern(3_000_000));
        assert!(!reply.headers.contains_key(rest::header::CONTENT_ENCODING));
    }
}

#[test]
fn what_comes_by_descriptor_is_not_compressed() {
    let server = Server::start();
    let mut client = server.client();
    client.set_zstd(true);
    let mapped = server.get(&mut client, "/things/bytes?300000", by_descriptor());
    assert!(mapped.headers.contains_key(rest::DESCRIPTOR));
    assert!(!mapped.headers.contains_key(rest::header::CONTENT_ENCODING));
    assert!(mapped.body == pattern(300_000));
}

#[test]
fn http_2_carries_zstd() {
    let server = Server::start();
    server.runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(&server.tcp).await.expect("connected");
        let shake =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket));
        let (mut requests, driver) = shake.await.expect("HTTP/2");
        tokio::spawn(driver);
        let mut get = async |accepted: &str| {
            let get = hyper::Request::get("http://localhost/things/bytes?1000000")
                .header("accept-encoding", accepted)
                .body(Full::<bytes::Bytes>::default())
                .expect("a request");
            let got = requests.send_request(get).await.expect("an answer");
            let (head, body) = got.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            (head.status, head.headers.get("content-encoding").cloned(), body)
        };
        let (_, encoding, body) = get("gzip, zstd;q=0.8").await;
        assert_eq!(encoding.expect("coded"), "zstd");
        assert!(zstd::stream::decode_all(&body[..]).expect("zstd") == pattern(1_000_000));
        let (_, encoding, body) = get("*, zstd;q=0").await;
        assert!(encoding.is_none() && body == pattern(1_000_000));
        let (status, ..) = get("gzip, identity;q=0").await;
        assert_eq!(status, StatusCode::NOT_ACCEPTABLE);
    });
}

#[test]
fn a_port_may_speak_no_zstd() {
    let limits = Limits { zstd_bytes: usize::MAX, ..Limits::public() };
    let server = crate::support::Server::start(None, limits);
    let mut raw = server.connect();
    let call = crate::support::call("hex", "[100000]");
    raw.send(crate::support::post("accept-encoding: zstd\r\n", &call));
    let reply = raw.reply();
    assert_eq!(reply.body.len(), 200_000 + r#"{"jsonrpc":"2.0","id":1,"result":"0x"}"#.len());
    assert!(!reply.head.contains("content-encoding"), "{}", reply.head);
    raw.send(crate::support::post("accept-encoding: zstd, identity;q=0\r\n", &call));
    raw.reply().check(406, "identity");
}
