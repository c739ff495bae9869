//! Subscriptions over a WebSocket: their beginning, their values, their ends.

use crate::support::{PATIENCE, Server, Ws, call};
use deponent_rpc::{Code, Limits};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

fn news(id: &str, value: Value) -> Value {
    let params = json!({ "subscription": id, "result": value });
    json!({ "jsonrpc": "2.0", "method": "test_subscribeNews", "params": params })
}

async fn unsubscribe(ws: &mut Ws, method: &str, id: &str) -> Value {
    ws.call(method, &format!("[{id:?}]")).await["result"].take()
}

#[tokio::test]
async fn a_subscription_brings_each_value_until_it_is_ended() {
    let server = Server::public();
    let mut ws = server.websocket();
    server.publish(json!("too early"));
    ws.send(call("test_subscribeNews", "[]")).await;
    assert_eq!(ws.next().await, Message::text(r#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#));
    for i in 0..10 {
        server.publish(json!({ "number": i }));
    }
    let first = "{\"jsonrpc\":\"2.0\",\"method\":\"test_subscribeNews\",\
                 \"params\":{\"subscription\":\"0x1\",\"result\":{\"number\":0}}}";
    assert_eq!(ws.next().await, Message::text(first));
    for i in 1..10 {
        assert_eq!(ws.json().await, news("0x1", json!({ "number": i })));
    }
    assert_eq!(unsubscribe(&mut ws, "test_unsubscribeNews", "0x1").await, true);
    server.publish(json!("too late"));
    assert_eq!(ws.call("echo", "[1]").await["result"], json!([1]));
    assert_eq!(unsubscribe(&mut ws, "test_unsubscribeNews", "0x1").await, false);
}

#[tokio::test]
async fn the_names_of_a_kind_are_its_own() {
    let server = Server::public();
    let mut ws = server.websocket();
    let answer = ws.call("test_subscribe", r#"["news"]"#).await;
    assert_eq!(answer["result"], "0x1");
    server.publish(json!(7));
    let value = ws.json().await;
    assert_eq!(value["method"], "test_subscription");
    assert_eq!(value["params"], json!({ "subscription": "0x1", "result": 7 }));
    assert_eq!(unsubscribe(&mut ws, "test_unsubscribeNews", "0x1").await, false);
    assert_eq!(unsubscribe(&mut ws, "test_unsubscribe", "0x1").await, true);
    // A handler may refuse.
    let answer = ws.call("test_subscribe", r#"["weather"]"#).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(ws.call("test_unsubscribe", "[]").await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_subscription_is_of_its_connection_alone() {
    let server = Server::public();
    let (mut first, mut second) = (server.websocket(), server.websocket());
    let id = first.subscribe().await;
    assert_eq!(unsubscribe(&mut second, "test_unsubscribeNews", &id).await, false);
    server.publish(json!(1));
    assert_eq!(first.json().await, news(&id, json!(1)));
    assert_ne!(second.subscribe().await, id);
    drop(second);
    server.publish(json!(2));
    assert_eq!(first.json().await, news(&id, json!(2)));
}

#[tokio::test]
async fn over_http_a_subscription_is_told_what_it_needs() {
    let server = Server::public();
    for method in ["test_subscribe", "test_unsubscribe", "test_subscribeNews"] {
        let reply = server.post(call(method, "[]"));
        reply.check(200, "-32601");
        reply.check(200, "needs a WebSocket connection (ws://)");
    }
}

#[tokio::test]
async fn a_batch_may_subscribe_and_a_notification_may_not() {
    let server = Server::start(None, Limits { subscriptions: 2, ..Limits::public() });
    let mut ws = server.websocket();
    for _ in 0..5 {
        ws.send(r#"{"jsonrpc":"2.0","method":"test_subscribeNews"}"#).await;
    }
    let one = call("test_subscribeNews", "[]");
    ws.send(format!("[{one},{one},{one},{}]", call("echo", "[1]"))).await;
    let answers = ws.json().await;
    let results: Vec<&Value> = (0..4).map(|i| &answers[i]["result"]).collect();
    assert_eq!(results, [&json!("0x1"), &json!("0x2"), &Value::Null, &json!([1])], "{answers}");
    server.publish(json!(7));
    let mut values = [ws.json().await, ws.json().await];
    values.sort_by_key(ToString::to_string);
    assert_eq!(values, [news("0x1", json!(7)), news("0x2", json!(7))]);
}

#[tokio::test]
async fn a_subscription_too_many_is_refused_until_another_ends() {
    let server = Server::start(None, Limits { subscriptions: 2, ..Limits::public() });
    let mut ws = server.websocket();
    let (first, _) = (ws.subscribe().await, ws.subscribe().await);
    let refused = ws.call("test_subscribeNews", "[]").await;
    let error: deponent_rpc::Error =
        serde_json::from_value(refused["error"].clone()).expect("an error");
    assert!(error.is(Code::Server), "{error}");
    assert!(error.to_string().contains("2 are allowed"), "{error}");
    assert_eq!(unsubscribe(&mut ws, "test_unsubscribeNews", &first).await, true);
    ws.subscribe().await;
    server.websocket().subscribe().await;
}

#[tokio::test]
async fn no_value_comes_before_the_id_or_after_the_end() {
    let server = Server::public();
    let mut ws = server.websocket();
    for _ in 0..100 {
        let topic = server.news.clone().expect("there");
        let publisher = std::thread::spawn(move || {
            for _ in 0..500 {
                topic.publish(deponent_rpc::Json::of(&1).expect("JSON"));
                std::thread::yield_now();
            }
        });
        let id = ws.subscribe().await;
        ws.send(call("test_unsubscribeNews", &format!("[{id:?}]"))).await;
        loop {
            let message = ws.json().await;
            if message["result"] == true {
                break;
            }
            assert_eq!(message, news(&id, json!(1)));
        }
        assert_eq!(ws.call("echo", "[1]").await["result"], json!([1]));
        publisher.join().expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_subscribers_get_every_value_in_order() {
    let server = Server::public();
    let mut subscribers = Vec::new();
    for _ in 0..64 {
        let mut ws = server.websocket();
        let ids = [ws.subscribe().await, ws.subscribe().await];
        subscribers.push((ws, ids));
    }
    let readers: Vec<_> = subscribers
        .into_iter()
        .map(|(mut ws, ids)| {
            tokio::spawn(async move {
                let mut next = [0; 2];
                while next != [500; 2] {
                    let value = ws.json().await;
                    let place = ids.iter().position(|id| value["params"]["subscription"] == **id);
                    let place = place.expect("one of both");
                    assert_eq!(value["params"]["result"], next[place]);
                    next[place] += 1;
                }
            })
        })
        .collect();
    for i in 0..500 {
        server.publish(json!(i));
    }
    for reader in readers {
        reader.await.expect("no panic");
    }
}

#[tokio::test]
async fn a_subscriber_that_falls_behind_is_told_so_and_closed() {
    let server = Server::public();
    let mut slow = server.websocket();
    let mut quick = server.websocket();
    let id = slow.subscribe().await;
    quick.subscribe().await;
    // More than sockets and queues take, and the topic keeps 1,024.
    let value = json!("x".repeat(100_000));
    for _ in 0..3000 {
        server.publish(value.clone());
        quick.json().await;
    }
    let (code, reason) = slow.goodbye().await;
    assert_eq!(code, 1008);
    assert!(reason.contains(&format!("subscription {id}: it fell behind")), "{reason}");
    server.publish(json!("on"));
    assert_eq!(quick.json().await["params"]["result"], "on");
}

#[tokio::test]
async fn a_topic_that_is_gone_ends_the_connections_of_its_subscribers() {
    let mut server = Server::public();
    let mut ws = server.websocket();
    let mut other = server.websocket();
    ws.subscribe().await;
    for i in 0..100 {
        server.publish(json!(i));
    }
    server.news.take();
    server.post(call("drop topic", "[]")).check(200, "true");
    // Values that were published before come first.
    for i in 0..100 {
        assert_eq!(ws.json().await["params"]["result"], i);
    }
    ws.check_goodbye(1001, "its source has ended").await;
    assert_eq!(other.call("echo", "[1]").await["result"], json!([1]));
}

#[tokio::test]
async fn a_stop_says_goodbye_to_subscribers() {
    let mut server = Server::public();
    let mut ws = server.websocket();
    ws.subscribe().await;
    server.publish(json!(1));
    assert_eq!(ws.json().await["params"]["result"], 1);
    drop(server.stop.take());
    ws.check_goodbye(1001, "the server is stopping").await;
    server.ended.recv_timeout(PATIENCE).expect("serve returned");
}
