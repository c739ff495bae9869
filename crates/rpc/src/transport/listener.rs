//! Listening sockets, and the streams that they accept.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::{Errno, FdFlags};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use tokio::net::{TcpListener, UnixListener};

use crate::limits::{BACKLOG, SEND_BUFFER_BYTES};
use crate::transport::socket::Stream;

/// Where a port listens.
#[derive(Debug)]
pub enum Listener {
    /// On a TCP port.
    Tcp(TcpListener),
    /// On a Unix socket, where JSON-RPC may also come bare, without HTTP around it.
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

/// Listens on a Unix socket at `path`, to which only the owner of the process may connect (mode
/// 0600). A socket that an earlier process left behind there is replaced.
///
/// It needs a tokio runtime with I/O.
///
/// # Errors
/// The operating system's: the path is too long (107 bytes at most on Linux), it is not a socket,
/// or another process listens on it.
pub fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    if let Ok(there) = std::fs::symlink_metadata(path)
        && there.file_type().is_socket()
    {
        match connect_at_once(path) {
            // No process listens.
            Err(Errno::CONNREFUSED) => std::fs::remove_file(path)?,
            // `AGAIN`: the listener's queue is full.
            Ok(()) | Err(Errno::AGAIN) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(Errno::NOENT) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    // Nothing can connect before it listens.
    rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
    rustix::net::listen(&socket, BACKLOG)?;
    let listener = std::os::unix::net::UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

fn connect_at_once(path: &Path) -> Result<(), Errno> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)
}

impl Listener {
    /// The next connection, and the address that it comes from, if it has one.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (socket, address) = listener.accept().await?;
                // Without it, an answer's last bytes wait for an acknowledgement.
                if let Err(fault) = socket.set_nodelay(true) {
                    tracing::debug!(%fault, "TCP_NODELAY");
                }
                Ok((Stream::Tcp(socket), Some(address.ip())))
            }
            Self::Unix(listener) => {
                let (socket, _) = listener.accept().await?;
                // The system takes as much of it as its own bound, `net.core.wmem_max`, allows.
                if let Err(fault) = set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES) {
                    tracing::debug!(%fault, "SO_SNDBUF");
                }
                Ok((Stream::Unix(socket), None))
            }
        }
    }
}
