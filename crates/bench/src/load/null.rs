//! A server that does nothing: what the instrument can do at most is measured against it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rpc::{
    Error, Handler, Json, Limits, Listener, Method, RawValue, ServerOptions, bind_unix, serve,
};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::endpoint::Transport;

/// A server on a free port of 127.0.0.1, or on a Unix socket, that answers `"0x1"` to every call.
/// It ends when it is dropped.
#[derive(Debug)]
pub(super) struct NullServer {
    /// As the command line has it.
    pub(super) url: String,
    socket: Option<PathBuf>,
    _running: oneshot::Sender<()>,
}

struct Null;

impl Handler for Null {
    fn call(&self, _: &str, _: Option<&RawValue>) -> Result<Json, Error> {
        Ok(br#""0x1""#.to_vec().into())
    }

    fn methods(&self) -> &[Method] {
        // Those of the usual mix: waking a thread for each would take longer than the answer.
        const METHODS: [Method; 3] = [
            Method::new("eth_blockNumber").quick(),
            Method::new("eth_chainId").quick(),
            Method::new("eth_getBalance").quick(),
        ];
        &METHODS
    }
}

impl NullServer {
    pub(super) fn start(transport: Transport) -> std::io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (listener, url, socket) = runtime.block_on(async {
            if transport == Transport::Ipc {
                let number = NUMBER.fetch_add(1, Ordering::SeqCst);
                let name = format!("deponent-null-{}-{number}.ipc", std::process::id());
                let path = std::env::temp_dir().join(name);
                let listener = Listener::from(bind_unix(&path)?);
                return Ok((listener, path.display().to_string(), Some(path)));
            }
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let url = format!("{}://{}", transport.name(), listener.local_addr()?);
            std::io::Result::Ok((Listener::from(listener), url, None))
        })?;
        let limits = Limits {
            batch_len: 100_000,
            connections: 20_000,
            sessions: 20_000,
            messages: 100_000,
            ..Limits::engine().with_memory(64 << 30)
        };
        let (running, ended) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let options = ServerOptions::new(None, limits);
            let ended = async { drop(ended.await) };
            runtime.block_on(serve(listener, options, Arc::new(Null), ended));
        });
        Ok(Self { url, socket, _running: running })
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        if let Some(path) = &self.socket {
            std::fs::remove_file(path).ok();
        }
    }
}
