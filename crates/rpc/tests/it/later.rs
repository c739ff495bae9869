//! Calls whose answers come later.

use deponent_rpc::Limits;

use crate::support::{Raw, Server, call, frame, post, upgrade};

/// A call by `later` over HTTP, over a WebSocket, and on the Unix socket.
fn begin(server: &Server, params: &str) -> [Raw; 3] {
    let text = call("later", params);
    let mut http = server.connect();
    http.send(post("", &text));
    [http, websocket(server, &text), bare(server, &text)]
}

fn websocket(server: &Server, text: &str) -> Raw {
    let mut websocket = server.connect();
    websocket.send(upgrade(""));
    assert_eq!(websocket.reply().status, 101);
    websocket.send(frame(0x81, text));
    websocket
}

fn bare(server: &Server, text: &str) -> Raw {
    let mut bare = server.connect_unix();
    bare.send(text);
    bare
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

/// Over each wire, on connections that end in each way.
#[test]
fn a_client_that_hangs_up_ends_its_waiting() {
    let server = Server::public();
    let waiting: Vec<_> = (0..4).flat_map(|_| begin(&server, "[7]")).collect();
    server.until_waiting(12);
    drop(waiting);
    server.until_waiting(0);
    // A WebSocket that says goodbye, while the client keeps the connection.
    let mut websocket = websocket(&server, &call("later", "[7]"));
    server.until_waiting(1);
    websocket.send(frame(0x88, [0x03, 0xe8]));
    while websocket.more() {}
    server.until_waiting(0);
    server.check_alive();
    drop(websocket);
    server.until_nothing_is_held();
}

/// A half of a connection on the Unix socket that is closed is no end: the client has asked all.
#[test]
fn who_has_asked_all_still_waits() {
    let server = Server::public();
    let mut bare = bare(&server, &call("later", "[7]"));
    bare.finish();
    server.until_waiting(1);
    server.later.add_permits(1);
    bare.until("\"result\":[7]");
    server.until_waiting(0);
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
