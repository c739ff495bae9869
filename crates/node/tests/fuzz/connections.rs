//! Connections on which any bytes come: to a port of a node, and to a client of ours.

use std::cell::Cell;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::panic::{set_hook, take_hook};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::thread::{current, scope};
use std::time::Duration;

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadSidecar, ForkchoiceState, PayloadId,
};
use client::{CodeCache, ConnectOptions, EngineClient, Wire};
use deponent_node::Api;
use engine::Engine;
use rpc::{ClientError, Limits, ServerOptions, SessionClient, serve};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde_json::Value;
use tokio::runtime::Builder;

use super::{IS_PATIENT, chain, genesis, pieces};

/// A bound on every wait; none is as long on a healthy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait for more, where most inputs are not answered at all.
fn short_wait(usual: Duration) -> Option<Duration> {
    let is_patient = IS_PATIENT.load(Ordering::Relaxed);
    Some(if is_patient { Duration::from_millis(200) } else { usual })
}

/// A client's bytes on a node's Unix socket. The first one says how the others are sent: as they
/// are, as frames of a WebSocket, or as frames of HTTP/2.
pub fn server_connection(data: &[u8]) -> bool {
    static SERVER: OnceLock<SocketAddr> = OnceLock::new();
    let Some((kind, data)) = data.split_first() else { return false };
    let sent = match kind % 3 {
        0 => data.to_vec(),
        1 => websocket(data),
        _ => http2(data),
    };
    let before = panics();
    let mut socket = UnixStream::connect_addr(SERVER.get_or_init(server)).expect("it listens");
    socket.set_write_timeout(Some(Duration::from_secs(1))).expect("set");
    // It may have hung up.
    let _ = socket.write_all(&sent);
    let mut answer = Vec::new();
    // Calls under way end with the connection: most are answered by then.
    socket.set_read_timeout(short_wait(Duration::from_millis(2))).expect("set");
    let _ = socket.read_to_end(&mut answer);
    let _ = socket.shutdown(Shutdown::Write);
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    match socket.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("the server neither answers nor hangs up: {error}")
        }
        _ => {}
    }
    assert_eq!(panics(), before, "the server panicked");
    let has = |text: &[u8]| answer.windows(text.len()).any(|part| part == text);
    assert!(!has(b"\"code\":-32603"), "{}", String::from_utf8_lossy(&answer));
    has(b"\"result\":") || answer.starts_with(b"HTTP/1.1 200")
}

/// Each piece is a frame: its first byte, and its content. Frames of clients are masked.
fn websocket(data: &[u8]) -> Vec<u8> {
    let mut sent = b"GET / HTTP/1.1\r\nHost: \r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        .to_vec();
    for frame in pieces(data) {
        let Some((first, content)) = frame.split_first() else { continue };
        sent.push(*first);
        match u8::try_from(content.len()) {
            Ok(length @ 0..126) => sent.push(0x80 | length),
            _ => {
                sent.push(0x80 | 126);
                sent.extend_from_slice(&(content.len() as u16).to_be_bytes());
            }
        }
        // With a mask of zeros the content is as it is.
        sent.extend_from_slice(&[0; 4]);
        sent.extend_from_slice(content);
    }
    sent
}

/// Each piece is a frame: its type, its flags, its stream, and its content.
fn http2(data: &[u8]) -> Vec<u8> {
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for frame in pieces(data) {
        let Some(([kind, flags, stream], content)) = frame.split_first_chunk() else { continue };
        sent.extend_from_slice(&(content.len() as u32).to_be_bytes()[1..]);
        sent.extend_from_slice(&[*kind, *flags, 0, 0, 0, *stream]);
        sent.extend_from_slice(content);
    }
    sent
}

/// The name of the server's threads.
const SERVER_THREAD: &str = "fuzzed-server";

/// Starts a node's port on a socket that is no file, for as long as the process lasts.
fn server() -> SocketAddr {
    let name = format!("deponent-fuzz-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).expect("short");
    let listener = UnixListener::bind_addr(&address).expect("a name of this process alone");
    listener.set_nonblocking(true).expect("set");
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(SERVER_THREAD)
        .enable_all()
        .build()
        .expect("a runtime");
    let genesis = engine::Genesis::new(&genesis(), chain()).expect("a genesis");
    let engine = Engine::new(chain().clone(), genesis).expect("it starts");
    let api = Arc::new(Api::local(Arc::new(engine), false));
    let options = ServerOptions::new(None, Limits::engine());
    runtime.spawn(async move {
        let listener = tokio::net::UnixListener::from_std(listener).expect("in a runtime");
        serve(listener, options, api, std::future::pending()).await;
    });
    // A runtime that is dropped ends.
    std::mem::forget(runtime);
    address
}

thread_local! {
    /// Whether panics on this thread count that a task of the runtime has caught.
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// How many threads of the server have panicked so far, and watched ones.
fn panics() -> usize {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if current().name() == Some(SERVER_THREAD) || IS_WATCHED.get() {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            others(panic);
        }));
    });
    PANICS.load(Ordering::Relaxed)
}

/// A server's answers to a client. The first byte names the call and its form; each piece is the
/// answer to a request: a byte that says whether a memory file comes with it, whose content is the
/// next piece, and the bytes.
pub fn client_connection(data: &[u8]) -> bool {
    thread_local! {
        static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a directory");
    }
    let Some((call, data)) = data.split_first() else { return false };
    let mut answers = pieces(data);
    // Each may take as long as an answer that is not complete.
    answers.truncate(4);
    let path = FOLDER.with(|folder| folder.path().join("server.ipc"));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket");
    let is_over = AtomicBool::new(false);
    let before = panics();
    IS_WATCHED.set(true);
    let is_answered = scope(|scope| {
        scope.spawn(|| answer_all(&listener, &answers, &is_over));
        // Also where the client panics.
        let _end = ServerEnd { is_over: &is_over, path: &path };
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(called(*call, &path))
    });
    IS_WATCHED.set(false);
    assert_eq!(panics(), before, "the client panicked");
    is_answered
}

/// Ends the thread of a server when it is dropped.
struct ServerEnd<'a> {
    is_over: &'a AtomicBool,
    path: &'a Path,
}

impl Drop for ServerEnd<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(UnixStream::connect(self.path));
    }
}

/// Answers each request with the next of the answers, until there are no more.
fn answer_all(listener: &UnixListener, answers: &[Bytes], is_over: &AtomicBool) {
    let mut answers = answers.iter();
    while let Ok((mut socket, _)) = listener.accept()
        && !is_over.load(Ordering::Relaxed)
    {
        // No answer comes before its request, however busy the machine is.
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        socket.set_write_timeout(Some(PATIENCE)).expect("set");
        while !matches!(socket.read(&mut [0; 1 << 16]), Ok(0)) {
            // A client that waits for more of an answer has the next one.
            socket.set_read_timeout(short_wait(Duration::from_millis(20))).expect("set");
            let Some(answer) = answers.next() else { break };
            let Some((flags, bytes)) = answer.split_first() else { break };
            let file = match flags & 1 {
                0 => None,
                _ => Some(memory_file(*flags, answers.next().map_or(&[], |next| &next[..]))),
            };
            if send(&mut socket, bytes, file).is_err() || answers.len() == 0 {
                break;
            }
        }
    }
}

fn send(socket: &mut UnixStream, bytes: &[u8], file: Option<OwnedFd>) -> std::io::Result<()> {
    let Some(file) = file else { return socket.write_all(bytes) };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&files)), "there is room for one");
    let bytes = [IoSlice::new(bytes)];
    rustix::net::sendmsg(socket, &bytes, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// A file as servers pass them, or one that is not sealed.
fn memory_file(flags: u8, content: &[u8]) -> OwnedFd {
    let flags_of_file = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("fuzz", flags_of_file).expect("a memory file");
    let mut file = std::fs::File::from(file);
    file.write_all(content).expect("memory");
    if flags & 2 == 0 {
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).expect("sealed");
    }
    file.into()
}

/// Makes a call to the server; whether its answer could be read.
async fn called(call: u8, path: &Path) -> bool {
    let address = format!("unix:{}", path.display());
    if call % 8 == 7 {
        let outcome = tokio::time::timeout(PATIENCE, subscribed(&address)).await;
        return matches!(outcome, Ok(Ok(_)));
    }
    let wire = [Wire::Json, Wire::Ssz, Wire::Descriptor][usize::from(call / 8 % 3)];
    let codes = match call / 32 % 3 {
        0 => CodeCache::Off,
        1 => CodeCache::Held { most_bytes: 1 << 20 },
        _ => CodeCache::Mapped,
    };
    let options = ConnectOptions { wire: Some(wire), codes, ..ConnectOptions::default() };
    let Ok(mut client) = EngineClient::connect_with(&address, options).await else { return false };
    // The server hangs up after its last answer, so that no call waits for as long.
    client.set_timeout(PATIENCE);
    let hash = B256::repeat_byte(7);
    match call % 8 {
        0 => client.capabilities().await.is_ok(),
        1 => client.identity().await.is_ok(),
        2 => {
            let payload = ExecutionPayload::from_block_unchecked(hash, &empty_block()).0;
            let sidecar = ExecutionPayloadSidecar::none();
            client.new_payload_with_witness(&payload, &sidecar).await.is_ok()
        }
        3 => client.forkchoice_updated(ForkchoiceState::same_hash(hash), None).await.is_ok(),
        4 => client.get_payload(PayloadId::new([7; 8])).await.is_ok(),
        5 => client.witness(hash).await.is_ok(),
        _ => client.call("eth_chainId", &[(); 0]).await.is_ok(),
    }
}

/// A block of Paris.
fn empty_block() -> alloy_consensus::Block<execution::Transaction> {
    alloy_consensus::Block::default()
}

/// Subscribes over bare JSON-RPC, and waits for a value.
async fn subscribed(address: &str) -> Result<Value, ClientError> {
    let client = SessionClient::connect(address, None).await?;
    client.subscribe::<Value>("deponent_subscribePersisted", ()).await?.next().await
}
