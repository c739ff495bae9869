//! Both clients over each transport: the same calls have the same answers and errors.

use std::ops::Range;
use std::time::Duration;

use crate::support::{PATIENCE, Server, pattern, within};
use bytes::Bytes;
use deponent_rpc::{
    Client, ClientError, Code, JwtSecret, Limits, RawValue, SessionClient, response,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Http,
    /// HTTP on a Unix socket.
    UnixHttp,
    WebSocket,
    /// JSON-RPC alone, on a Unix socket.
    Ipc,
}

use Transport::*;

const ALL: [Transport; 4] = [Http, UnixHttp, WebSocket, Ipc];

impl Transport {
    async fn open(self, server: &Server) -> AnyClient {
        let address = match self {
            Http | WebSocket => server.address.to_string(),
            UnixHttp | Ipc => server.unix_address(),
        };
        self.connect(&address, None).await.expect("connected")
    }

    async fn connect(
        self,
        address: &str,
        secret: Option<JwtSecret>,
    ) -> Result<AnyClient, ClientError> {
        Ok(match self {
            Http | UnixHttp => AnyClient::Single(Client::connect(address, secret).await?.into()),
            WebSocket | Ipc => AnyClient::Session(SessionClient::connect(address, secret).await?),
        })
    }
}

/// Either client.
#[derive(Debug)]
enum AnyClient {
    Single(Box<Client>),
    Session(SessionClient),
}

/// Has either client do the same.
macro_rules! with_either {
    ($client:expr, $either:ident => $does:expr) => {
        match $client {
            AnyClient::Single($either) => $does,
            AnyClient::Session($either) => $does,
        }
    };
}

impl AnyClient {
    async fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, ClientError> {
        with_either!(self, client => within(client.call(method, params)).await)
    }

    async fn call_raw(&mut self, method: &str, params: [u32; 1]) -> Result<Bytes, ClientError> {
        with_either!(self, client => client.call_raw(method, params).await)
    }

    async fn batch_raw(
        &mut self,
        calls: &[(&str, &RawValue)],
    ) -> Result<(Range<u64>, Bytes), ClientError> {
        with_either!(self, client => within(client.batch_raw(calls)).await)
    }

    /// The server's answer to a call with this number is this number.
    async fn check_echo(&mut self, number: u64) {
        assert_eq!(self.call::<[u64; 1]>("echo", [number]).await.expect("a result"), [number]);
    }
}

#[tokio::test]
async fn a_call_gives_its_result_or_a_typed_error() {
    let server = Server::public();
    for transport in ALL {
        let mut client = transport.open(&server).await;
        let given = json!([1, {"a": "é"}]);
        let echoed: Value = client.call("echo", &given).await.expect("a result");
        assert_eq!(echoed, given, "{transport:?}");
        match client.call::<Value>("nothing", ()).await {
            Err(ClientError::Rpc(error)) => {
                assert!(error.is(Code::MethodNotFound), "{transport:?}: {error}");
                assert!(error.to_string().contains("\"nothing\""), "{transport:?}: {error}");
            }
            other => panic!("{transport:?}: {other:?}"),
        }
        match client.call::<u64>("echo", ["text"]).await {
            Err(ClientError::Malformed(reason)) => assert!(reason.contains("invalid type")),
            other => panic!("{transport:?}: {other:?}"),
        }
        client.check_echo(5).await;
    }
}

#[tokio::test]
async fn a_secret_opens_the_engine_port() {
    let secret = JwtSecret::random();
    let server = Server::start(Some(secret.clone()), Limits::engine());
    for (transport, scheme) in [(Http, "http"), (WebSocket, "ws")] {
        let address = format!("{scheme}://{}/", server.address);
        let good = transport.connect(&address, Some(secret.clone())).await;
        let mut good = good.expect("connected");
        for number in 0..3 {
            good.check_echo(number).await;
        }
        for other in [None, Some(JwtSecret::random())] {
            // A session is refused when it is opened.
            let refused = match transport.connect(&address, other).await {
                Ok(mut client) => client.call::<Value>("echo", ()).await.map(drop),
                Err(error) => Err(error),
            };
            match refused {
                Err(ClientError::Http { status: 401, text }) => {
                    assert!(text.contains("token") || text.contains("signature"), "{text}");
                }
                other => panic!("{transport:?}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn fifty_megabytes_come_back_as_they_are() {
    let server = Server::start(None, Limits { body_bytes: 50 << 20, ..Limits::public() });
    for transport in ALL {
        let mut client = transport.open(&server).await;
        for method in ["hex", "digits"] {
            let body = client.call_raw(method, [50_000_000]).await.expect("an answer");
            let result = response::result(&body).expect("a result");
            let bytes = response::bytes(result).expect("hex");
            assert!(bytes == pattern(50_000_000), "{transport:?}");
        }
        // And there: 40 MB in one request.
        let text = "ab".repeat(20 << 20);
        let [echoed]: [String; 1] = client.call("echo", [&text]).await.expect("a result");
        assert!(echoed == text, "{transport:?}");
    }
}

#[tokio::test]
async fn a_call_without_answer_times_out_and_the_next_one_works() {
    for transport in ALL {
        // One at a time, so that a connection that is replaced has to be closed first.
        let server = Server::start(None, Limits { connections: 1, ..Limits::public() });
        let mut client = transport.open(&server).await;
        with_either!(&mut client, client => client.set_timeout(Duration::from_millis(50)));
        match client.call::<bool>("wait", ()).await {
            Err(fault @ ClientError::Timeout { .. }) => {
                assert!(fault.to_string().contains("within 50ms"), "{fault}");
            }
            other => panic!("{transport:?}: {other:?}"),
        }
        with_either!(&mut client, client => client.set_timeout(PATIENCE));
        server.go.send(()).expect("it waits");
        // The late answer belongs to no call.
        for number in 0..10 {
            client.check_echo(number).await;
        }
        if let AnyClient::Single(client) = client {
            assert_eq!(client.connections(), 2, "{transport:?}: its connection went with it");
        }
    }
}

#[tokio::test]
async fn many_calls_of_a_session_run_at_once_and_each_gets_its_own_answer() {
    let server = Server::public();
    for transport in [WebSocket, Ipc] {
        let AnyClient::Session(client) = transport.open(&server).await else { unreachable!() };
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
            assert_eq!(echoed.expect("a result"), [i], "{transport:?}");
        }
        server.go.send(()).expect("it waits");
        assert!(slow.await.expect("no panic").expect("a result"));
    }
}

#[tokio::test]
async fn a_batch_is_one_message_and_has_ids_of_its_own() {
    let server = Server::public();
    let params: &RawValue = serde_json::from_str("[1]").expect("JSON");
    for transport in ALL {
        let mut client = transport.open(&server).await;
        for ids in [1..3, 3..5] {
            let calls = [("echo", params), ("nothing", params)];
            let (found, answer) = client.batch_raw(&calls).await.expect("an answer");
            assert_eq!(found, ids, "{transport:?}");
            let answers: Vec<Value> = serde_json::from_slice(&answer).expect("a list");
            assert_eq!((answers.len(), &answers[0]["result"]), (2, &json!([1])));
            assert_eq!(answers[1]["id"], ids.end - 1);
        }
        client.check_echo(3).await;
    }
}

#[tokio::test]
async fn nobody_there_is_an_error_with_the_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    drop(listener);
    for transport in [Http, WebSocket] {
        let error = transport.connect(&address, None).await.expect_err("nobody listens");
        assert!(matches!(error, ClientError::Connect { .. }), "{error}");
        assert!(error.to_string().contains(&address), "{error}");
    }
    let error = SessionClient::connect("http://127.0.0.1:1", None).await.expect_err("not ws://");
    assert!(error.to_string().contains("only ws://"), "{error}");
}
