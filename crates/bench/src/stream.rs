//! A byte stream over TCP, TLS on it, or a Unix socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::tls::{TlsStream, Trust};

/// An open connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to `host:port`; each address of the host has `limit`.
    pub(crate) fn tcp(host: &str, limit: Duration) -> io::Result<Self> {
        connect(host, limit).map(Self::Tcp)
    }

    /// The same, and then each step until both ends agree on TLS has `limit`.
    pub(crate) fn tls(host: &str, limit: Duration, trust: &Trust) -> io::Result<Self> {
        let tcp = connect(host, limit)?;
        tcp.set_read_timeout(Some(limit))?;
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        Ok(Self::Tls(Box::new(trust.connect(name, tcp)?)))
    }

    pub(crate) fn unix(path: &Path) -> io::Result<Self> {
        UnixStream::connect(path).map(Self::Unix)
    }

    /// The longest wait for more to read.
    pub(crate) fn set_read_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Self::Tls(stream) => stream.tcp.set_read_timeout(Some(limit)),
            Self::Unix(stream) => stream.set_read_timeout(Some(limit)),
        }
    }

    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Tls(stream) => stream.tcp.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    /// Whether it took something that is still to be sent, with a flush.
    pub(crate) fn wants_write(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.wants_write())
    }
}

/// Whether a connection is open, and has nothing to be read.
pub(crate) fn is_idle(socket: impl AsFd) -> bool {
    let peeked = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    peeked.is_err_and(|error| error == Errno::WOULDBLOCK)
}

/// Connects to `host:port`; each address of the host has `limit`.
fn connect(host: &str, limit: Duration) -> io::Result<TcpStream> {
    let mut outcome = Err(ErrorKind::AddrNotAvailable.into());
    for address in host.to_socket_addrs()? {
        outcome = TcpStream::connect_timeout(&address, limit);
        if outcome.is_ok() {
            break;
        }
    }
    let stream = outcome?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.tcp.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(stream) => stream.flush(),
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
        }
    }
}
