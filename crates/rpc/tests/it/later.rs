//! Calls whose answers come later.

use deponent_rpc::Limits;

use crate::support::{Raw, Server, call, frame, post, upgrade};

/// A call by `later` over HTTP, over a WebSocket, and on the Unix socket.
fn begin(server: &Server, params: &str) -> [Raw; 3] {
    let text = call("later", params);
    let mut http = server.connect();
    http.send(post("", &text));
    let mut websocket = server.connect();
    websocket.send(upgrade(""));
    assert_eq!(websocket.reply().status, 101);
    websocket.send(frame(0x81, &text));
    let mut bare = server.connect_unix();
    bare.send(text.as_bytes());
    [http, websocket, bare]
}

#[test]
fn calls_that_wait_hold_no_turn_and_are_answered_when_it_is_time() {
    // All other calls need the only turn.
    let server = Server::start(None, Limits { running_calls: 1, ..Limits::public() });
    let mut waiting: Vec<_> = (0..4).flat_map(|_| begin(&server, "[7]")).collect();
    server.until_waiting(12);
    let reply = server.post(call("hex", "[1]"));
    assert!(reply.text().contains("0x00"), "{}", reply.text());
    server.later.add_permits(12);
    for raw in &mut waiting {
        raw.until("\"result\":[7]");
    }
    server.until_waiting(0);
}

#[test]
fn a_client_that_hangs_up_ends_its_waiting() {
    let server = Server::public();
    let mut http = server.connect();
    http.send(post("", call("later", "[7]")));
    server.until_waiting(1);
    drop(http);
    server.until_waiting(0);
    server.check_alive();
}

#[test]
fn a_call_that_waits_is_refused_in_a_batch_and_its_errors_are_answered() {
    let server = Server::public();
    let reply = server.post(format!("[{}]", call("later", "[7]")));
    assert!(reply.text().contains("call it alone"), "{}", reply.text());
    let reply = server.post(r#"{"jsonrpc":"2.0","id":1,"method":"later"}"#);
    assert!(reply.text().contains("-32602"), "{}", reply.text());
    // A panic of the answer ends no connection.
    server.later.add_permits(3);
    let [_, mut websocket, _] = begin(&server, "[\"panic\"]");
    websocket.until("the call was lost");
    server.later.add_permits(1);
    websocket.send(frame(0x81, call("later", "[8]")));
    websocket.until("\"result\":[8]");
    server.check_alive();
}
