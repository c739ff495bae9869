//! The session client against our own server, and against servers without manners.

use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{PATIENCE, Server, within};
use deponent_rpc::rest::{HeaderMap, HeaderValue, header};
use deponent_rpc::{
    Client, ClientError, Code, ConnectOptions, Dial, Dialing, Limits, Notifications, RawValue,
    SessionClient,
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
    match client.subscribe::<u64>("test_subscribe", ["weather"]).await {
        Err(ClientError::Rpc(error)) => assert!(error.is(Code::InvalidParams), "{error}"),
        other => panic!("{other:?}"),
    }
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
        (Message::text("<html>"), "not an object: <html>"),
        (Message::text("[]"), "an object"),
        (Message::text(r#"{"id":null,"error":{"code":1,"message":"?"}}"#), "its id is null"),
        (Message::text(r#"{"method":"x"}"#), "neither id nor params"),
        (Message::binary("<html>"), "not an object: <html>"),
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
async fn a_batch_gets_its_answer_in_any_order_or_one_error() {
    let params: &RawValue = serde_json::from_str("[1]").expect("JSON");
    let calls = [("echo", params), ("nothing", params)];
    let answers = r#"[{"id":2,"result":2},{"result":1,"id":1}]"#;
    let refusal = r#"{"id":null,"error":{"code":1,"message":"?"}}"#;
    for text in [answers, refusal] {
        let address = scripted(vec![Message::text(text)]).await;
        let client = SessionClient::connect(&address, None).await.expect("connected");
        let (_, answer) = within(client.batch_raw(&calls)).await.expect("an answer");
        assert_eq!(answer, text);
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
async fn a_connection_may_be_the_callers() {
    let server = Server::public();
    let headers = HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static("a"))]);
    let dial: Option<Arc<dyn Dial>> = Some(Arc::new(Detour(server.path.clone())));
    let options = |headers| ConnectOptions { headers, dial: dial.clone(), ..Default::default() };
    let client = SessionClient::connect_with("ws://x:1", options(HeaderMap::new())).await;
    let echoed: [u64; 1] = client.expect("connected").call("echo", [6]).await.expect("a result");
    assert_eq!(echoed, [6]);
    let refused = SessionClient::connect_with("ws://x:1", options(headers)).await;
    let refused = refused.expect_err("a page's origin").to_string();
    assert!(refused.contains("403"), "{refused}");
    let mut client =
        Client::connect_with("http://x:1", options(HeaderMap::new())).await.expect("connected");
    assert_eq!(client.call::<[u64; 1]>("echo", [7]).await.expect("a result"), [7]);
}
