//! A socket that gives up on a peer who does not read, and knows whether it heard from them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::Sleep;

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

impl Listener {
    pub(crate) async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (socket, _) = listener.accept().await?;
                // Without it, an answer's last bytes wait for an acknowledgement.
                if let Err(fault) = socket.set_nodelay(true) {
                    tracing::debug!(%fault, "TCP_NODELAY");
                }
                Ok(Stream::Tcp(socket))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

/// A connection of either kind.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Does the same with either kind of connection.
macro_rules! on_either {
    ($stream:expr, $socket:ident => $does:expr) => {
        match $stream {
            Stream::Tcp($socket) => $does,
            Stream::Unix($socket) => $does,
        }
    };
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Self::Tcp(socket)
    }
}

impl From<UnixStream> for Stream {
    fn from(socket: UnixStream) -> Self {
        Self::Unix(socket)
    }
}

/// A socket whose writes fail when none has made progress for `limit`.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    limit: Duration,
    /// Runs while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    heard: Heard,
    /// Read already, and to be read again.
    peeked: Bytes,
}

/// Whether a socket brought any bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<AtomicBool>);

impl Heard {
    /// Whether bytes came since this was asked last.
    pub(crate) fn anything(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Socket {
    pub(crate) fn new(stream: impl Into<Stream>, limit: Duration) -> Self {
        let (stream, peeked) = (stream.into(), Bytes::new());
        Self { stream, limit, stalled: None, heard: Heard::default(), peeked }
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.clone()
    }

    pub(crate) const fn is_unix(&self) -> bool {
        matches!(self.stream, Stream::Unix(_))
    }

    /// Reads until `is_enough`, without taking what was read away: it is read again. What there
    /// was when the peer ends is less. Nothing may have been peeked before.
    pub(crate) async fn peek(&mut self, is_enough: impl Fn(&[u8]) -> bool) -> io::Result<Bytes> {
        let mut bytes = Vec::new();
        while !is_enough(&bytes) && self.read_buf(&mut bytes).await? > 0 {}
        self.peeked = bytes.into();
        Ok(self.peeked.clone())
    }

    fn watch(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.peeked.is_empty() {
            let count = self.peeked.len().min(buf.remaining());
            buf.put_slice(&self.peeked.split_to(count));
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = on_either!(&mut self.stream, socket => Pin::new(socket).poll_read(cx, buf));
        if buf.filled().len() > before {
            self.heard.0.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = on_either!(&mut self.stream, socket => Pin::new(socket).poll_write(cx, buf));
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written =
            on_either!(&mut self.stream, socket => Pin::new(socket).poll_write_vectored(cx, bufs));
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        on_either!(&self.stream, socket => socket.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(&mut self.stream, socket => Pin::new(socket).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(&mut self.stream, socket => Pin::new(socket).poll_shutdown(cx))
    }
}
