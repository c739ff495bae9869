//! The configuration of what a node listens on.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use rpc::{AllowedOrigins, JwtSecret, Limits, PortMemory, ServerOptions};
use tokio::runtime::Handle;

use crate::api::Offered;
use crate::memory::NodeMemory;

/// The ports of a node, with a state or without, and its Unix socket.
#[derive(Debug, Clone)]
pub struct PortsOptions {
    /// The public port, if there is to be one.
    pub http: Option<PublicPort>,
    /// A public port of its own for WebSockets.
    pub websocket: Option<PublicPort>,
    /// The address of the Engine API's port. Port 0 takes any free one.
    pub engine: SocketAddr,
    /// The path of the Unix socket, if there is to be one: it offers all methods and resources of
    /// both ports, without tokens, to the owner of the process alone.
    pub ipc: Option<PathBuf>,
    /// The methods that it offers.
    pub ipc_offered: Offered,
    /// The names and the web pages that the public port serves.
    pub http_origins: AllowedOrigins,
    /// The same for the Engine API's port, where each request has a token.
    pub engine_origins: AllowedOrigins,
    /// Whether answers are compressed for clients that ask for zstd.
    pub zstd: bool,
    /// The bounds of batches on the public port.
    pub batches: BatchBounds,
    /// Memory of the ports; that of the caches is not looked at.
    pub memory: NodeMemory,
    /// The address of the port of metrics, if there is to be one. Port 0 takes any free one.
    pub metrics: Option<SocketAddr>,
    /// The names under which the port of metrics may be called.
    pub metrics_origins: AllowedOrigins,
}

/// Free ports of 127.0.0.1.
impl Default for PortsOptions {
    fn default() -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            http: Some(PublicPort { address: free, offered: Offered::default() }),
            websocket: None,
            engine: free,
            ipc: None,
            ipc_offered: Offered::default(),
            http_origins: AllowedOrigins::default(),
            engine_origins: any_name(),
            zstd: true,
            batches: BatchBounds::default(),
            memory: NodeMemory::default(),
            metrics: None,
            metrics_origins: AllowedOrigins::default(),
        }
    }
}

/// A public port. All of them have the same origins and share their memory.
#[derive(Debug, Clone)]
pub struct PublicPort {
    /// Where it listens. Port 0 takes any free one.
    pub address: SocketAddr,
    /// The methods that it offers.
    pub offered: Offered,
}

/// The bounds of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchBounds {
    /// The most requests of one.
    pub requests: usize,
    /// The bytes of its answers after which the rest is refused.
    pub answer_bytes: usize,
}

impl Default for BatchBounds {
    fn default() -> Self {
        let Limits { batch_len, batch_answer_bytes, .. } = Limits::public();
        Self { requests: batch_len, answer_bytes: batch_answer_bytes }
    }
}

impl BatchBounds {
    /// The limits with these bounds.
    fn of(self, limits: Limits) -> Limits {
        Limits { batch_len: self.requests, batch_answer_bytes: self.answer_bytes, ..limits }
    }
}

/// Any name and no web page, for ports that web pages cannot use.
fn any_name() -> AllowedOrigins {
    AllowedOrigins { hosts: vec!["*".into()], ..AllowedOrigins::default() }
}

impl PortsOptions {
    /// Those of the public port, the Engine API's port and the Unix socket. `calls` runs the calls
    /// of the public port.
    pub(crate) fn servers(&self, jwt: JwtSecret, calls: Handle) -> [ServerOptions; 3] {
        let zstd = |limits: Limits| match self.zstd {
            true => limits,
            false => Limits { zstd_bytes: usize::MAX, ..limits },
        };
        let limits = self.batches.of(zstd(self.memory.public_limits()));
        let origins = self.http_origins.clone();
        let public = ServerOptions { origins, ..ServerOptions::new(None, limits) };
        let limits = zstd(self.memory.engine_limits());
        // The users of the Unix socket may use the other port too.
        let memory = Some(PortMemory::new(&limits));
        let trusted =
            ServerOptions { memory, origins: any_name(), ..ServerOptions::new(None, limits) };
        let origins = self.engine_origins.clone();
        let authenticated = ServerOptions { jwt: Some(jwt), origins, ..trusted.clone() };
        [ServerOptions { calls: Some(calls), ..public }, authenticated, trusted]
    }
}
