//! The WebSocket client against our own server, and against servers without manners.

use std::time::Duration;

use crate::support::{PATIENCE, Server, pattern, within};
use std::path::PathBuf;
use std::sync::Arc;

use deponent_rpc::rest::{HeaderMap, HeaderValue, header};
use deponent_rpc::{
    Client, ClientError, Code, ConnectOptions, Dial, Dialing, Error, Handler, Json, JwtSecret,
    Limits, Notifications, RawValue, ServerOptions, SessionClient, bind_unix, response, serve,
};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

async fn client(server: &Server) -> SessionClient {
    SessionClient::connect(&server.address.to_string(), None).await.expect("connected")
}

async fn subscribe(client: &SessionClient) -> Notifications<u64> {
    client.subscribe("test_subscribeNews", ()).await.expect("subscribed")
}

#[track_caller]
fn check_closed<T: std::fmt::Debug>(outcome: Result<T, ClientError>, part: &str) {
    match outcome {
        Err(ClientError::Closed { reason, .. }) => assert!(reason.contains(part), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_gives_its_result_or_a_typed_error() {
    let server = Server::public();
    let client = client(&server).await;
    let echoed: Value = client.call("echo", json!([1, {"a": "é"}])).await.expect("a result");
    assert_eq!(echoed, json!([1, {"a": "é"}]));
    match client.call::<Value>("nothing", ()).await {
        Err(ClientError::Rpc(error)) => assert!(error.is(Code::MethodNotFound), "{error}"),
        other => panic!("{other:?}"),
    }
    match client.call::<u64>("echo", ["text"]).await {
        Err(ClientError::Malformed(reason)) => assert!(reason.contains("invalid type")),
        other => panic!("{other:?}"),
    }
    match client.subscribe::<u64>("test_subscribe", ["weather"]).await {
        Err(ClientError::Rpc(error)) => assert!(error.is(Code::InvalidParams), "{error}"),
        other => panic!("{other:?}"),
    }
    let echoed: [u64; 1] = client.call("echo", [5]).await.expect("the client goes on");
    assert_eq!(echoed, [5]);
}

#[tokio::test]
async fn many_calls_run_at_once_and_each_gets_its_own_answer() {
    let server = Server::public();
    let client = client(&server).await;
    let slow = tokio::spawn({
        let client = client.clone();
        async move { client.call::<bool>("wait", ()).await }
    });
    let calls: Vec<_> = (0..500u64)
        .map(|i| {
            let client = client.clone();
            tokio::spawn(async move { (i, client.call::<[u64; 1]>("echo", [i]).await) })
        })
        .collect();
    for call in calls {
        let (i, echoed) = call.await.expect("no panic");
        assert_eq!(echoed.expect("a result"), [i]);
    }
    server.go.send(()).expect("it waits");
    assert!(slow.await.expect("no panic").expect("a result"));
}

#[tokio::test]
async fn a_secret_opens_the_engine_port() {
    let secret = JwtSecret::random();
    let server = Server::start(Some(secret.clone()), Limits::engine());
    let address = format!("ws://{}/", server.address);
    let good = SessionClient::connect(&address, Some(secret)).await.expect("connected");
    assert_eq!(good.call::<[u64; 1]>("echo", [1]).await.expect("a result"), [1]);
    for other in [None, Some(JwtSecret::random())] {
        match SessionClient::connect(&address, other).await {
            Err(ClientError::Http { status: 401, text }) => {
                assert!(text.contains("token") || text.contains("signature"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn fifty_megabytes_come_back_as_they_are() {
    let server = Server::start(None, Limits { body_bytes: 50 << 20, ..Limits::public() });
    let client = client(&server).await;
    let body = client.call_raw("hex", [50_000_000]).await.expect("an answer");
    let result = response::result(&body).expect("a result");
    assert!(response::bytes(result).expect("hex") == pattern(50_000_000));
    let text = "ab".repeat(20 << 20);
    let [echoed]: [String; 1] = client.call("echo", [&text]).await.expect("a result");
    assert!(echoed == text);
}

#[tokio::test]
async fn a_subscription_gives_value_after_value() {
    let server = Server::public();
    let client = client(&server).await;
    let (mut first, mut second) = (subscribe(&client).await, subscribe(&client).await);
    for i in 0..100 {
        server.publish(json!(i));
        let values = within(async { (first.next().await, second.next().await) }).await;
        assert_eq!((values.0.expect("a value"), values.1.expect("a value")), (i, i));
        assert_eq!(client.call::<[u64; 1]>("echo", [i]).await.expect("a result"), [i]);
    }
    assert!(second.unsubscribe("test_unsubscribeNews").await.expect("a result"));
    server.publish(json!("no number"));
    match within(first.next()).await {
        Err(ClientError::Malformed(reason)) => assert!(reason.contains("invalid type")),
        other => panic!("{other:?}"),
    }
    server.publish(json!(7));
    assert_eq!(within(first.next()).await.expect("a value"), 7);
}

#[tokio::test]
async fn a_subscription_that_nobody_reads_is_given_up_alone() {
    let server = Server::public();
    let client = client(&server).await;
    let (mut slow, mut quick) = (subscribe(&client).await, subscribe(&client).await);
    // Well more than wait for a reader.
    for i in 0..1500 {
        server.publish(json!(i));
        assert_eq!(within(quick.next()).await.expect("a value"), i);
    }
    let mut count = 0;
    let end = loop {
        match within(slow.next()).await {
            Ok(value) => assert_eq!(value, count),
            Err(end) => break end,
        }
        count += 1;
    };
    assert!(matches!(end, ClientError::FellBehind { limit } if limit as u64 == count), "{end}");
}

#[tokio::test]
async fn a_call_without_answer_times_out_and_the_connection_goes_on() {
    let server = Server::public();
    let client = client(&server).await;
    let mut brief = client.clone();
    brief.set_timeout(Duration::from_millis(50));
    match brief.call::<bool>("wait", ()).await {
        Err(fault @ ClientError::Timeout { .. }) => {
            assert!(fault.to_string().contains("within 50ms"), "{fault}");
        }
        other => panic!("{other:?}"),
    }
    server.go.send(()).expect("it waits");
    // The late answer belongs to no call.
    for i in 0..10 {
        assert_eq!(client.call::<[u64; 1]>("echo", [i]).await.expect("a result"), [i]);
    }
}

#[tokio::test]
async fn the_end_of_a_server_is_told_to_all_who_wait() {
    let mut server = Server::public();
    let client = client(&server).await;
    let mut news = subscribe(&client).await;
    drop(server.stop.take());
    check_closed(within(news.next()).await, "1001): the server is stopping");
    check_closed(client.call::<Value>("echo", ()).await, "the server is stopping");
    check_closed(client.subscribe::<u64>("test_subscribeNews", ()).await, "stopping");
    server.ended.recv_timeout(PATIENCE).expect("serve returned");
}

#[tokio::test]
async fn the_connection_ends_with_the_last_who_uses_it() {
    let server = Server::start(None, Limits { connections: 1, ..Limits::public() });
    let client = client(&server).await;
    let mut news = subscribe(&client).await;
    drop(client);
    server.publish(json!(1));
    assert_eq!(within(news.next()).await.expect("a value"), 1);
    drop(news);
    // There was but one place.
    let address = server.address.to_string();
    let next = within(SessionClient::connect(&address, None)).await.expect("connected");
    assert_eq!(next.call::<[u64; 1]>("echo", [1]).await.expect("a result"), [1]);
}

/// A server that reads a call on its only connection, and sends these messages.
async fn scripted(messages: Vec<Message>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.expect("a connection");
        let mut ws = tokio_tungstenite::accept_async(socket).await.expect("a handshake");
        ws.next().await.expect("a call").expect("no fault");
        for message in messages {
            ws.send(message).await.expect("sent");
        }
        // Until the client has enough.
        while ws.next().await.is_some_and(|message| message.is_ok()) {}
    });
    address
}

#[tokio::test]
async fn a_server_of_other_habits_is_understood() {
    let answer = r#"{"result": 7, "extra": [{"id": 2}], "id": 1, "jsonrpc":"2.0"}"#;
    let value = |id: &str, value: u64| {
        let params = format!(r#"{{"result":{value},"more":1,"subscription":{id}}}"#);
        Message::text(format!(r#"{{"params":{params},"method":"any","jsonrpc":"2.0"}}"#))
    };
    let messages = vec![
        Message::Ping(Vec::new().into()),
        value("7", 1),
        Message::text(r#"{"jsonrpc":"2.0","id":99,"result":"of no call"}"#),
        Message::text(answer),
        value("8", 2),
        value("7", 3),
        value("\"7\"", 4),
        value("7", 5),
    ];
    let client = SessionClient::connect(&scripted(messages).await, None).await.expect("connected");
    let mut values = client.subscribe::<u64>("any", ()).await.expect("a number as id");
    assert_eq!(within(values.next()).await.expect("a value"), 3);
    assert_eq!(within(values.next()).await.expect("a value"), 5);
}

#[tokio::test]
async fn a_server_that_makes_no_sense_is_left() {
    let bye = CloseFrame { code: CloseCode::Again, reason: "full".into() };
    let cases = [
        (Message::text("<html>"), "expected value"),
        (Message::text("[]"), "an object"),
        (Message::text(r#"{"id":null,"error":{"code":1,"message":"?"}}"#), "its id is null"),
        (Message::text(r#"{"method":"x"}"#), "neither id nor params"),
        (Message::binary("<html>"), "expected value"),
        (Message::binary(&b"\xff"[..]), "UTF-8"),
        (Message::Close(Some(bye)), "left (1013): full"),
    ];
    for (message, expected) in cases {
        let address = scripted(vec![message]).await;
        let client = SessionClient::connect(&address, None).await.expect("connected");
        check_closed(client.call::<Value>("x", ()).await, expected);
    }
    let answers = scripted(vec![Message::text(r#"{"jsonrpc":"2.0","id":1}"#)]).await;
    let client = SessionClient::connect(&answers, None).await.expect("connected");
    match client.call::<Value>("x", ()).await {
        Err(ClientError::Malformed(reason)) => assert!(reason.contains("neither result nor")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_does_not_shake_hands_is_no_websocket() {
    let check = async |reply: &'static str, expected: &str| {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let (mut socket, _) = listener.accept().await.expect("a connection");
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                socket.read_buf(&mut request).await.expect("a request");
            }
            socket.write_all(reply.as_bytes()).await.expect("written");
        });
        let error =
            SessionClient::connect(&address, None).await.expect_err("no WebSocket").to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("HTTP/1.1 405 No\r\ncontent-length: 9\r\n\r\nPOST only", "405: POST only").await;
    check("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "HTTP status 200").await;
    let other = "HTTP/1.1 101 Yes\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                 sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    check(other, "not to the one asked for").await;
    check("", "broke").await;
}

#[tokio::test]
async fn nobody_there_is_an_error_with_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let error = SessionClient::connect(&address, None).await.expect_err("nobody listens");
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
    let error = SessionClient::connect("http://127.0.0.1:1", None).await.expect_err("not ws://");
    assert!(error.to_string().contains("only ws://"), "{error}");
}

#[tokio::test]
async fn a_batch_gets_its_answer_in_any_order_or_one_error() {
    let server = Server::public();
    let (client, wait) = (client(&server).await, json!([1]).to_string());
    let params: &RawValue = serde_json::from_str(&wait).expect("JSON");
    let calls = [("echo", params), ("nothing", params)];
    let (ids, answer) = within(client.batch_raw(&calls)).await.expect("an answer");
    let answers: Vec<Value> = serde_json::from_slice(&answer).expect("a list");
    assert_eq!((ids, &answers[0]["result"], answers.len()), (1..3, &json!([1]), 2));
    let (ids, _) = within(client.batch_raw(&calls)).await.expect("an answer");
    assert_eq!(ids, 3..5);

    let answers = r#"[{"id":2,"result":2},{"result":1,"id":1}]"#;
    let refusal = r#"{"id":null,"error":{"code":1,"message":"?"}}"#;
    for text in [answers, refusal] {
        let address = scripted(vec![Message::text(text)]).await;
        let client = SessionClient::connect(&address, None).await.expect("connected");
        let (_, answer) = within(client.batch_raw(&calls)).await.expect("an answer");
        assert_eq!(answer, text);
    }
}

struct Echo;

impl Handler for Echo {
    fn call(&self, _: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        Ok(params.map_or("null", RawValue::get).as_bytes().to_vec().into())
    }
}

/// Connects to another address than the one that is given.
#[derive(Debug)]
struct Detour(PathBuf);

impl Dial for Detour {
    fn dial(&self) -> Dialing<'_> {
        Box::pin(UnixStream::connect(&self.0))
    }
}

#[tokio::test]
async fn a_unix_socket_has_bare_json_and_a_connection_may_be_the_callers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("server.ipc");
    let listener = bind_unix(&path).expect("bound");
    let options = ServerOptions { jwt: None, limits: Limits::public() };
    tokio::spawn(serve(listener, options, Arc::new(Echo), std::future::pending()));
    let client = SessionClient::connect(&format!("unix:{}", path.display()), None).await;
    let client = client.expect("connected");
    let echoed: [u64; 1] = within(client.call("echo", [5])).await.expect("a result");
    assert_eq!(echoed, [5]);

    let headers = HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static("a"))]);
    let dial: Option<Arc<dyn Dial>> = Some(Arc::new(Detour(path)));
    let options = |headers| ConnectOptions { headers, dial: dial.clone(), ..Default::default() };
    let client = SessionClient::connect_with("ws://nowhere:1", options(HeaderMap::new())).await;
    let echoed: [u64; 1] = client.expect("connected").call("echo", [6]).await.expect("a result");
    assert_eq!(echoed, [6]);
    let refused = SessionClient::connect_with("ws://nowhere:1", options(headers)).await;
    let refused = refused.expect_err("a page's origin").to_string();
    assert!(refused.contains("403"), "{refused}");
    let mut client = Client::connect_with("http://nowhere:1", options(HeaderMap::new()))
        .await
        .expect("connected");
    assert_eq!(client.call::<[u64; 1]>("echo", [7]).await.expect("a result"), [7]);
}
