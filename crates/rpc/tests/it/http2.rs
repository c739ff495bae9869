//! HTTP/2: calls and resources side by side; connections that give nothing, take nothing or may
//! nothing, which end.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::time::Duration;

use crate::support::{PATIENCE, Server, call, pattern, within};
use bytes::Bytes;
use deponent_rpc::{JwtSecret, Limits};
use futures_util::stream;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{Builder, Connection, SendRequest};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

type Driver = Connection<TokioIo<TcpStream>, Full<Bytes>, TokioExecutor>;

/// Soon, but long after anything that a test waits for is done.
const SOON: Duration = Duration::from_secs(2);

/// A client, and what tells that its connection is over.
struct Client {
    requests: SendRequest<Full<Bytes>>,
    ended: JoinHandle<hyper::Result<()>>,
}

impl Client {
    async fn connect(server: &Server) -> Self {
        // So that little of an answer comes before it is read.
        Self::connect_with_window(server, 16 << 10).await
    }

    async fn connect_with_window(server: &Server, window_bytes: u32) -> Self {
        let socket = TcpStream::connect(server.address).await.expect("somebody listens");
        let mut http = Builder::new(TokioExecutor::new());
        http.initial_stream_window_size(window_bytes);
        let shake = http.handshake(TokioIo::new(socket));
        let (requests, driver): (_, Driver) = shake.await.expect("HTTP/2");
        Self { requests, ended: tokio::spawn(driver) }
    }

    /// The answer, whose body is not read yet.
    async fn call(&mut self, method: &str, params: &str) -> Response<Incoming> {
        within(self.begin(method, params)).await.expect("an answer")
    }

    /// As [`call`](Self::call), for a client that takes these codings.
    async fn call_for(&mut self, codings: &str, method: &str, params: &str) -> Response<Incoming> {
        let answer = self.send(codings, Method::POST, "/", call(method, params));
        within(answer).await.expect("an answer")
    }

    /// As [`call`](Self::call), with others on the way.
    fn begin(&mut self, method: &str, params: &str) -> PendingResponse {
        self.send("identity", Method::POST, "/", call(method, params))
    }

    fn send(
        &mut self,
        codings: &str,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> PendingResponse {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"))
            .header("content-type", "application/json")
            .header("accept-encoding", codings)
            .body(Full::from(body.into()))
            .expect("a request");
        Box::pin(self.requests.send_request(request))
    }

    /// Waits for the server to end the connection.
    async fn end(self) {
        let _fault = within(self.ended).await.expect("no panic");
    }
}

type PendingResponse = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

async fn body(answer: Response<Incoming>) -> Bytes {
    within(answer.into_body().collect()).await.expect("a body").to_bytes()
}

async fn length(answer: Response<Incoming>) -> usize {
    body(answer).await.len()
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_an_answer_is_cut_off() {
    let limits = Limits { write_idle: SOON, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut client = Client::connect(&server).await;
    let stalled = client.call("hex", "[10000000]").await;
    assert_eq!(stalled.status(), StatusCode::OK);
    // Others of the same connection are answered until then.
    assert_eq!(length(client.call("hex", "[100000]").await).await, 200_038);
    client.end().await;
    let cut = within(stalled.into_body().collect()).await;
    cut.expect_err("it was cut");
}

#[tokio::test]
async fn an_answer_that_is_not_taken_keeps_its_room() {
    let limits = Limits {
        answers_bytes: 1 << 20,
        turn_wait: SOON,
        room_time: PATIENCE,
        write_idle: PATIENCE,
        ..Limits::public()
    };
    let server = Server::start(None, limits);
    let mut client = Client::connect(&server).await;
    // All of it is handed to the library that sends it, which waits for its window.
    let stalled = client.call("hex", "[100000]").await;
    let refused = client.call("hex", "[500000]").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(refused);
    assert_eq!(length(stalled).await, 200_038);
    assert_eq!(length(client.call("hex", "[500000]").await).await, 1_000_038);
}

#[tokio::test]
async fn so_many_answers_are_coded_at_a_time_and_others_are_as_they_are() {
    let server = Server::start(None, Limits { encoders: 128, ..Limits::public() });
    // More than is coded before anything of it is sent.
    let mut random = 1_u32;
    let digits = std::iter::repeat_with(|| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_digit(random >> 28, 16).expect("four bits")
    });
    let params = format!("[\"{}\"]", digits.take(200_000).collect::<String>());
    let is_coded = |answer: &Response<Incoming>| answer.headers().contains_key("content-encoding");
    let (mut clients, mut coded) = (Vec::new(), Vec::new());
    for _ in 0..16 {
        // Nothing can be sent to it.
        let mut client = Client::connect_with_window(&server, 0).await;
        for _ in 0..8 {
            coded.push(client.call_for("zstd", "echo", &params).await);
        }
        clients.push(client);
    }
    assert!(coded.iter().all(is_coded));
    let mut client = Client::connect(&server).await;
    let plain = client.call_for("zstd", "echo", &params).await;
    assert!(!is_coded(&plain));
    assert_eq!(length(plain).await, 200_038);
    let refused = client.call_for("zstd, identity;q=0", "echo", &params).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop((clients, coded));
    within(async {
        while !is_coded(&client.call_for("zstd", "echo", &params).await) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn who_reads_slowly_is_cut_off_when_others_have_no_room() {
    let limits = Limits { answers_bytes: 1 << 20, room_time: Duration::ZERO, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut client = Client::connect(&server).await;
    let stalled = client.call("hex", "[5000000]").await;
    let mut other = Client::connect(&server).await;
    assert_eq!(length(other.call("hex", "[500000]").await).await, 1_000_038);
    within(stalled.into_body().collect()).await.expect_err("it was cut");
}

#[tokio::test]
async fn calls_that_are_made_in_order_are_made_in_the_order_in_which_they_come() {
    let server = Server::public();
    let mut client = Client::connect(&server).await;
    for round in 0..20 {
        let mut answers = Vec::new();
        for n in 0..10 {
            // The longer ones come whole behind those that were begun after them.
            let padding = " ".repeat((10 - n) % 4 * 10_000);
            let turn = format!("[{padding}{}]", 10 * round + n);
            answers.push(client.begin("turn", &turn));
            answers.push(client.begin("echo", "[\"quick\"]"));
        }
        for answer in answers {
            let answer = within(answer).await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::OK);
        }
    }
    assert_eq!(*server.turns.lock().expect("no panic"), (0..200).collect::<Vec<u64>>());
}

#[tokio::test]
async fn calls_in_order_do_not_wait_for_ever_for_a_body_that_does_not_come() {
    let server = Server::start(None, Limits { turn_wait: SOON, ..Limits::public() });
    let socket = TcpStream::connect(server.address).await.expect("somebody listens");
    let shake = Builder::new(TokioExecutor::new()).handshake(TokioIo::new(socket));
    let (mut requests, driver) = shake.await.expect("HTTP/2");
    tokio::spawn(driver);
    let never = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let post = |body| {
        let request = Request::post("http://localhost/").header("content-type", "application/json");
        request.body(body).expect("a request")
    };
    let _stuck = tokio::spawn(requests.send_request(post(Either::Right(never))));
    let turn = |n: u8| Either::Left(Full::from(call("turn", &format!("[{n}]"))));
    let refused = within(requests.send_request(post(turn(1)))).await.expect("an answer");
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    // Others do not wait.
    let other = Either::Left(Full::from(call("echo", "[2]")));
    let answer = within(requests.send_request(post(other))).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_order_keeps_its_turn_when_its_client_does_not_wait() {
    let server = Server::public();
    let mut client = Client::connect(&server).await;
    let first = client.begin("wait_in_turn", "[]");
    let first = tokio::spawn(first);
    server.began.recv_timeout(PATIENCE).expect("it runs");
    first.abort();
    let mut second = pin!(client.begin("turn", "[2]"));
    assert!(timeout(SOON / 4, &mut second).await.is_err(), "the first has not ended");
    server.go.send(()).expect("it waits");
    assert_eq!(within(second).await.expect("an answer").status(), StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_asks_for_nothing_is_told_to_go_away() {
    let limits = Limits { header_read: SOON, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut client = Client::connect(&server).await;
    // A call that takes longer than that is not cut.
    let call = client.call("wait", "[]");
    let go = async {
        tokio::time::sleep(2 * SOON).await;
        server.go.send(()).expect("it waits");
    };
    let (answer, ()) = tokio::join!(call, go);
    assert_eq!(answer.status(), StatusCode::OK);
    drop(answer);
    client.end().await;
    // Nor is one who has never asked kept.
    Client::connect(&server).await.end().await;
    server.check_alive();
}

#[tokio::test]
async fn who_has_no_token_does_not_keep_the_connection() {
    let server = Server::start(Some(JwtSecret::random()), Limits::engine());
    let mut client = Client::connect(&server).await;
    let refused = client.call("echo", "[]").await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let text = body(refused).await;
    assert!(text.starts_with(b"missing token"), "{text:?}");
    client.end().await;
}

#[tokio::test]
async fn calls_and_resources_go_side_by_side() {
    let server = Server::public();
    let mut client = Client::connect(&server).await;
    let path = "/things/bytes?1000000";
    let called = client.begin("digits", "[200000]");
    let got = client.send("identity", Method::GET, path, "");
    let (called, got) = tokio::join!(called, got);
    let called = body(called.expect("an answer")).await;
    let answer: serde_json::Value = serde_json::from_slice(&called).expect("JSON");
    assert_eq!(answer["result"].as_str().map(str::len), Some(400_002));
    assert!(body(got.expect("an answer")).await == pattern(1_000_000));
    let head = client.send("identity", Method::HEAD, path, "").await.expect("an answer");
    assert_eq!(head.headers()["content-length"], "1000000");
    assert!(body(head).await.is_empty());
    let probe = client.send("identity", Method::GET, "/", "").await.expect("an answer");
    assert_eq!(probe.status(), StatusCode::OK);
}

#[tokio::test]
async fn resources_come_in_zstd_to_who_asks_for_it() {
    let server = Server::public();
    let mut client = Client::connect(&server).await;
    let mut get = async |accepted: &str| {
        let got = client.send(accepted, Method::GET, "/things/bytes?1000000", "").await;
        let got = got.expect("an answer");
        (got.status(), got.headers().get("content-encoding").cloned(), body(got).await)
    };
    let (_, encoding, coded) = get("gzip, zstd;q=0.8").await;
    assert_eq!(encoding.expect("coded"), "zstd");
    assert!(zstd::stream::decode_all(&coded[..]).expect("zstd") == pattern(1_000_000));
    let (_, encoding, plain) = get("*, zstd;q=0").await;
    assert!(encoding.is_none() && plain == pattern(1_000_000));
    let (status, ..) = get("gzip, identity;q=0").await;
    assert_eq!(status, StatusCode::NOT_ACCEPTABLE);
}
