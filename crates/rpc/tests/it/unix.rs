//! Unix sockets: JSON-RPC with and without HTTP, resources, answers by descriptor.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::support::{PATIENCE, Server, call, pattern, post};
use deponent_rpc::rest::{self, HeaderMap, HeaderValue, Method, StatusCode};
use deponent_rpc::{Client, Limits, Reply, bind_unix};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use serde_json::{Value, json};

async fn unix_client(server: &Server) -> Client {
    Client::connect(&server.unix_address(), None).await.expect("connected")
}

async fn tcp_client(server: &Server) -> Client {
    Client::connect(&server.address.to_string(), None).await.expect("connected")
}

async fn get(client: &mut Client, path: &str, headers: HeaderMap) -> Reply {
    client.request(Method::GET, path, headers, Vec::new()).await.expect("an answer")
}

fn by_descriptor() -> HeaderMap {
    HeaderMap::from_iter([(rest::DESCRIPTOR, HeaderValue::from_static("1"))])
}

#[test]
fn only_the_owner_may_connect() {
    let server = Server::public();
    let mode = std::fs::metadata(&server.path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced_and_one_in_use_is_not() {
    let server = Server::public();
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
    let server = Server::public();
    let mut socket = server.connect_unix();
    // As geth's clients send them: nothing in between, cut anywhere.
    let text = br#"{"jsonrpc":"2.0","id":1,"method":"echo","params":["}"]}[{"jsonrpc":"2.0","id":2,
        "method":"echo"},{"jsonrpc":"2.0","id":3,"method":"none"}]"#;
    for part in text.chunks(7) {
        socket.send(part);
    }
    let mut answers = socket.lines(2);
    answers.sort_by_key(|answer| answer.is_array());
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": 1, "result": ["}"]}));
    assert_eq!(answers[1][0], json!({"jsonrpc": "2.0", "id": 2, "result": null}));
    assert_eq!(answers[1][1]["error"]["code"], -32601);
}

#[test]
fn what_came_whole_is_answered_before_what_is_wrong_behind_it() {
    let server = Server::public();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[7]}"#;
    for wrong in [" xyz", r#"{"jsonrpc":"2.0","id":2,"#] {
        let mut socket = server.connect_unix();
        socket.send(format!("{call}{wrong}").as_bytes());
        socket.finish();
        let answers = socket.lines(2);
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
    let server = Server::start(None, Limits { sessions: 1, turn_wait, ..Limits::public() });
    let mut first = server.connect_unix();
    first.send(call("wait", "[]"));
    server.began.recv_timeout(PATIENCE).expect("it runs");
    let mut second = server.connect_unix();
    second.send(call("echo", "[]"));
    let refused = &second.lines(1)[0];
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32000)));
    assert!(second.rest().is_empty());
    server.go.send(()).expect("it waits");
    assert_eq!(first.lines(1)[0]["id"], 1);
}

/// As `echo ... | socat - UNIX-CONNECT:...` does.
#[test]
fn who_has_asked_everything_gets_all_answers() {
    let server = Server::public();
    let mut socket = server.connect_unix();
    for id in 0..10 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "echo", "params": [id]});
        socket.send(call.to_string().as_bytes());
    }
    socket.finish();
    let mut answers = socket.lines(10);
    answers.sort_by_key(|answer| answer["id"].as_u64());
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(answer["result"], json!([id]));
    }
    assert!(socket.rest().is_empty());
}

#[test]
fn a_large_bare_answer_comes_whole() {
    let server = Server::public();
    let mut socket = server.connect_unix();
    let call = br#" {"jsonrpc":"2.0","id":1,"method":"digits","params":[3000001]}"#;
    socket.send(call);
    let answer = &socket.lines(1)[0]["result"];
    let digits: String = pattern(3_000_001).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(answer.as_str() == Some(&format!("0x{digits}")));
}

#[test]
fn what_is_no_json_gets_an_error_and_the_end() {
    let server = Server::public();
    let mut socket = server.connect_unix();
    socket.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}");
    assert_eq!(socket.lines(1)[0]["id"], 1);
    socket.send(b" x");
    assert_eq!(socket.lines(1)[0]["error"]["code"], -32700);
    socket.rest();
    // On TCP bare JSON is no HTTP.
    let mut tcp = server.connect();
    tcp.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\r\n\r\n");
    let rest = tcp.rest();
    assert!(String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 400"), "{rest:?}");
}

#[tokio::test]
async fn http_is_spoken_on_the_same_socket() {
    let server = Server::public();
    let mut client = unix_client(&server).await;
    for number in 0..3 {
        let called = client.call::<Vec<u32>>("echo", [number]);
        assert_eq!(called.await.expect("a result"), [number]);
    }
    let reply = get(&mut client, "/things/echo?a=1", HeaderMap::new()).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.body, "GET /things/echo a=1 ");
    let posted = client.request(Method::POST, "/things/echo", HeaderMap::new(), "body");
    let reply = posted.await.expect("an answer");
    assert_eq!(reply.body, "POST /things/echo  body");
}

#[tokio::test]
async fn refusals_of_resources_are_the_handlers() {
    let server = Server::public();
    let mut client = unix_client(&server).await;
    let reply = get(&mut client, "/things/none", HeaderMap::new()).await;
    assert_eq!(
        (reply.status, &reply.body[..]),
        (StatusCode::NOT_FOUND, &b"refused: no such thing\n"[..])
    );
    let reply = get(&mut client, "/things/panic", HeaderMap::new()).await;
    assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(reply.body.starts_with(b"refused: "));
    let long = vec![0; Limits::public().body_bytes + 1];
    let posted = client.request(Method::POST, "/things/echo", HeaderMap::new(), long);
    let reply = posted.await.expect("an answer");
    assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(reply.body.starts_with(b"refused: the body is too long"));
    let reply = get(&mut client, "/elsewhere", HeaderMap::new()).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    assert!(reply.body.starts_with(b"JSON-RPC is served at the path"));
}

#[tokio::test]
async fn a_connection_is_remembered_as_long_as_it_lasts() {
    let server = Server::public();
    let (mut one, mut other) = (unix_client(&server).await, unix_client(&server).await);
    for hits in ["1", "2"] {
        assert_eq!(get(&mut one, "/things/hits", HeaderMap::new()).await.body, hits);
    }
    assert_eq!(get(&mut other, "/things/hits", HeaderMap::new()).await.body, "1");
}

/// The state of a client goes with its connection, so that has a bound of its own.
#[tokio::test]
async fn an_idle_connection_lasts_longer_than_on_tcp_and_not_for_ever() {
    let brief = Duration::from_millis(200);
    let limits =
        |unix_header_read| Limits { header_read: brief, unix_header_read, ..Limits::public() };
    let server = Server::start(None, limits(PATIENCE));
    let mut client = unix_client(&server).await;
    assert_eq!(get(&mut client, "/things/hits", HeaderMap::new()).await.body, "1");
    // Those who say nothing, and those on TCP, are let go soon.
    assert!(server.connect_unix().rest().is_empty());
    assert!(server.connect().rest().is_empty());
    assert_eq!(get(&mut client, "/things/hits", HeaderMap::new()).await.body, "2");
    let server = Server::start(None, limits(brief));
    let mut once = server.connect_unix();
    once.send("GET /things/hits HTTP/1.1\r\nhost: x\r\n\r\n");
    let answer = once.rest();
    assert!(answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(b"1"), "{answer:?}");
}

#[tokio::test]
async fn a_large_body_comes_by_descriptor_to_who_asks_for_it() {
    let server = Server::public();
    let mut client = unix_client(&server).await;
    for length in [3_000_000, 1_000_000, 5_000_000, 4_999_999] {
        let path = format!("/things/bytes?{length}");
        let mapped = get(&mut client, &path, by_descriptor()).await;
        assert_eq!(mapped.headers[rest::header::CONTENT_LENGTH], "0");
        assert!(mapped.body == pattern(length));
        let sent = get(&mut client, &path, HeaderMap::new()).await;
        assert!(!sent.headers.contains_key(rest::DESCRIPTOR));
        assert!(sent.body == pattern(length));
    }
    let small = get(&mut client, "/things/bytes?1000", by_descriptor()).await;
    assert!(!small.headers.contains_key(rest::DESCRIPTOR));
    assert!(small.body == pattern(1000));
}

#[tokio::test]
async fn a_file_is_used_again_only_when_it_was_given_back() {
    let server = Server::public();
    let mut client = unix_client(&server).await;
    let get = async |client: &mut Client, length: usize| {
        get(client, &format!("/things/bytes?{length}"), by_descriptor()).await.body
    };
    let first = get(&mut client, 500_000).await;
    let second = get(&mut client, 400_000).await;
    let (first_at, part) = (first.as_ptr(), second.slice(1000..2000));
    drop((first, second));
    // The first file went back; a slice of the second one is in use.
    let third = get(&mut client, 500_000).await;
    assert_eq!(third.as_ptr(), first_at);
    assert!(part == pattern(400_000)[1000..2000]);
    // Also when the client is gone.
    drop(client);
    let mut other = unix_client(&server).await;
    let fourth = get(&mut other, 450_000).await;
    assert!(third == pattern(500_000) && fourth == pattern(450_000));
    assert!(part == pattern(400_000)[1000..2000]);
}

#[tokio::test]
async fn a_file_is_passed_as_it_is() {
    let server = Server::public();
    let path = server.path.with_file_name("file");
    std::fs::write(&path, pattern(10_000)).expect("written");
    let asked = format!("/things/file?{}", path.display());
    let mut client = unix_client(&server).await;
    let own_file = || HeaderMap::from_iter([(rest::DESCRIPTOR, rest::OWN_FILE)]);
    let first = get(&mut client, &asked, own_file()).await;
    assert_eq!(first.headers[rest::DESCRIPTOR], "file;length=10000");
    assert!(first.body == pattern(10_000));
    // It grows, and loses its name, and a client that asked for it goes without a word.
    let mut file = std::fs::File::options().append(true).open(&path).expect("there");
    file.write_all(&[7; 90_000]).expect("written");
    let mut gone = server.connect_unix();
    let request = format!("GET {asked} HTTP/1.1\r\nHost: here\r\nDeponent-Descriptor: 1\r\n\r\n");
    gone.send(request.as_bytes());
    drop(gone);
    // One that takes memory files alone does not map it.
    let mut strict = unix_client(&server).await;
    let asked_for = strict.request(Method::GET, &asked, by_descriptor(), Vec::new());
    let refused = asked_for.await.expect_err("it could shrink");
    assert!(refused.to_string().contains("nobody asked for"), "{refused}");
    let second = get(&mut client, &asked, own_file()).await.body;
    std::fs::remove_file(&path).expect("there");
    drop(client);
    assert!(first.body == pattern(10_000) && second[..10_000] == first.body);
    assert!(second.len() == 100_000 && second[10_000..].iter().all(|byte| *byte == 7));
}

#[tokio::test]
async fn a_file_is_refused_where_it_cannot_be_passed() {
    let server = Server::public();
    let path = server.path.with_file_name("file");
    std::fs::write(&path, "content").expect("written");
    let asked = format!("/things/file?{}", path.display());
    let mut unix = unix_client(&server).await;
    let mut tcp = tcp_client(&server).await;
    for (client, headers) in [(&mut unix, HeaderMap::new()), (&mut tcp, by_descriptor())] {
        let reply = get(client, &asked, headers).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST);
        assert!(reply.body.starts_with(b"refused: this is a file"), "{:?}", reply.body);
    }
}

#[tokio::test]
async fn over_tcp_nobody_gets_a_descriptor() {
    let server = Server::public();
    let mut client = tcp_client(&server).await;
    let reply = get(&mut client, "/things/bytes?1000000", by_descriptor()).await;
    assert!(!reply.headers.contains_key(rest::DESCRIPTOR));
    assert!(reply.body == pattern(1_000_000));
}

#[tokio::test]
async fn answers_come_in_zstd_to_who_asks_for_it() {
    let server = Server::public();
    let over_tcp = tcp_client(&server).await;
    for mut client in [over_tcp, unix_client(&server).await] {
        client.set_zstd(true);
        for length in [3_000_000, 4096] {
            let path = format!("/things/bytes?{length}");
            let reply = get(&mut client, &path, HeaderMap::new()).await;
            assert!(reply.body == pattern(length));
            assert_eq!(reply.headers[rest::header::CONTENT_ENCODING], "zstd");
            assert!(!reply.headers.contains_key(rest::header::CONTENT_LENGTH));
            assert_eq!(reply.headers[rest::header::VARY], "accept-encoding");
        }
        // A short one is not worth it; its length is known.
        let reply = get(&mut client, "/things/bytes?4095", HeaderMap::new()).await;
        assert!(reply.body == pattern(4095));
        assert!(!reply.headers.contains_key(rest::header::CONTENT_ENCODING));
        assert_eq!(reply.headers[rest::header::CONTENT_LENGTH], "4095");
        assert_eq!(reply.headers[rest::header::VARY], "accept-encoding");
        // How long a body is as it is.
        let head =
            client.request(Method::HEAD, "/things/bytes?3000000", HeaderMap::new(), Vec::new());
        let head = head.await.expect("an answer");
        assert_eq!(head.headers[rest::header::CONTENT_LENGTH], "3000000");
        let called = client.call::<String>("digits", [500_000]).await;
        assert_eq!(called.expect("an answer").len(), 1_000_002);
        client.set_zstd(false);
        let reply = get(&mut client, "/things/bytes?3000000", HeaderMap::new()).await;
        assert!(reply.body == pattern(3_000_000));
        assert!(!reply.headers.contains_key(rest::header::CONTENT_ENCODING));
    }
}

#[tokio::test]
async fn what_comes_by_descriptor_is_not_compressed() {
    let server = Server::public();
    let mut client = unix_client(&server).await;
    client.set_zstd(true);
    let mapped = get(&mut client, "/things/bytes?300000", by_descriptor()).await;
    assert!(mapped.headers.contains_key(rest::DESCRIPTOR));
    assert!(!mapped.headers.contains_key(rest::header::CONTENT_ENCODING));
    assert!(mapped.body == pattern(300_000));
}

#[test]
fn a_port_may_speak_no_zstd() {
    let limits = Limits { zstd_bytes: usize::MAX, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut raw = server.connect_unix();
    let call = call("hex", "[100000]");
    raw.send(post("accept-encoding: zstd\r\n", &call));
    let reply = raw.reply();
    assert_eq!(reply.body.len(), 200_000 + r#"{"jsonrpc":"2.0","id":1,"result":"0x"}"#.len());
    assert!(!reply.head.contains("content-encoding"), "{}", reply.head);
    raw.send(post("accept-encoding: zstd, identity;q=0\r\n", &call));
    raw.reply().check(406, "identity");
}

/// A server that sends descriptors with each byte of an answer fills no table of its client.
#[tokio::test]
async fn one_descriptor_is_received_for_an_answer() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
    let file = tempfile::NamedTempFile::new_in(dir.path()).expect("a file");
    let name = file.path().to_owned();
    let (sent, all_sent) = std::sync::mpsc::channel();
    let (looked, wait_looked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        for _ in 0..2 {
            assert!(socket.read(&mut [0; 4096]).expect("a request") > 0);
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n{}", "x".repeat(40));
            let (last, most) = answer.as_bytes().split_last().expect("bytes");
            for byte in most {
                let descriptors = [std::os::fd::AsFd::as_fd(&file); 4];
                let mut space =
                    [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
                let bytes = [std::io::IoSlice::new(std::slice::from_ref(byte))];
                sendmsg(&socket, &bytes, &mut control, SendFlags::empty()).expect("sent");
            }
            // They have come, and the answer is not complete.
            sent.send(()).expect("looked for");
            wait_looked.recv().expect("looked");
            socket.write_all(&[*last]).expect("written");
        }
    });
    let held = move || {
        let all = std::fs::read_dir("/proc/self/fd").expect("Linux");
        let names = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        names.filter(|found| *found == name).count()
    };
    let address = format!("unix:{}", path.display());
    let mut client = Client::connect(&address, None).await.expect("connected");
    for _ in 0..2 {
        let looking = async {
            while all_sent.try_recv().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // One is the server's own. All bytes may not be read yet; what is read is bounded.
            for _ in 0..50 {
                assert!(held() <= 2, "{} are held", held());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            looked.send(()).expect("waited for");
        };
        let (reply, ()) = tokio::join!(get(&mut client, "/x", HeaderMap::new()), looking);
        assert_eq!(reply.body.len(), 40);
        assert!(held() <= 2, "{} are held", held());
    }
}
