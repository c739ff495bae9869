//! A socket that gives up on a peer that does not read, and knows whether it heard from it.

use std::future::Future;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::Sleep;

use crate::limits::{BODY_STEP_BYTES, CHUNK_BYTES, LOOK_PAUSE, TURN_BYTES};
use crate::transport::descriptor::Descriptors;
use crate::transport::slot::UnreadAnswers;

/// Applies the same code to either kind of connection.
macro_rules! on_either {
    ($stream:expr, $socket:ident => $does:expr) => {
        match $stream {
            Stream::Tcp($socket) => $does,
            Stream::Unix($socket) => $does,
        }
    };
}

/// A connection of either kind.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
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

/// A socket whose writes fail when the peer has not read [`CHUNK_BYTES`], or all there was, for
/// `limit`.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    limit: Duration,
    /// Present while the peer reads little.
    stalled: Option<WriteStall>,
    /// Bytes written since other connections of the thread had their turn.
    in_turn_bytes: usize,
    activity: SocketActivity,
    /// Learns of the bytes that the peer reads; of the last `told_bytes` it did so before they were
    /// written.
    unread: Arc<UnreadAnswers>,
    told_bytes: usize,
    /// Whether the next read yields first, to the task that waits for [`SocketActivity::more`].
    is_to_rest: bool,
    /// Bytes that were peeked, and are to be read again.
    peeked: Bytes,
    descriptors: Descriptors,
}

#[derive(Debug)]
struct WriteStall {
    until: Instant,
    /// When to look again how much the peer has read.
    look: Pin<Box<Sleep>>,
    /// Bytes written since the stall began.
    written_bytes: usize,
    /// Bytes that the operating system held then, which the peer had not read.
    held_bytes: usize,
    /// Bytes that the peer has read since, at the last look.
    taken_bytes: usize,
}

/// The bytes that a socket received, and whether its peer is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct SocketActivity(Arc<ActivityState>);

#[derive(Debug, Default)]
struct ActivityState {
    anything: AtomicBool,
    is_gone: AtomicBool,
    is_counted: AtomicBool,
    counted: AtomicUsize,
    /// Notified whenever [`BODY_STEP_BYTES`] more were counted.
    more: Notify,
}

impl SocketActivity {
    /// Whether bytes came since this was asked last.
    pub(crate) fn anything(&self) -> bool {
        self.0.anything.swap(false, Ordering::Relaxed)
    }

    /// Whether the peer, which sends nothing more, reads nothing either. TCP does not tell.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.is_gone.load(Ordering::Relaxed)
    }

    /// Counts the received bytes from now on.
    pub(crate) fn count(&self) {
        self.0.is_counted.store(true, Ordering::Relaxed);
    }

    /// The bytes counted since [`forget`](Self::forget).
    pub(crate) fn counted(&self) -> usize {
        self.0.counted.load(Ordering::Relaxed)
    }

    pub(crate) fn forget(&self) {
        self.0.counted.store(0, Ordering::Relaxed);
    }

    /// Forgets so many of them.
    pub(crate) fn uncount(&self, bytes: usize) {
        self.0.counted.store(self.counted().saturating_sub(bytes), Ordering::Relaxed);
    }

    /// Waits until there are [`BODY_STEP_BYTES`] more.
    pub(crate) async fn more(&self) {
        self.0.more.notified().await;
    }

    /// Notes that so many bytes came. True when the task that waits for [`more`](Self::more) has to
    /// know.
    fn note(&self, bytes: usize) -> bool {
        self.0.anything.store(true, Ordering::Relaxed);
        if !self.0.is_counted.load(Ordering::Relaxed) {
            return false;
        }
        let before = self.0.counted.fetch_add(bytes, Ordering::Relaxed);
        let is_step = before / BODY_STEP_BYTES != (before + bytes) / BODY_STEP_BYTES;
        if is_step {
            self.0.more.notify_one();
        }
        is_step
    }
}

impl Socket {
    pub(crate) fn new(stream: impl Into<Stream>, limit: Duration) -> Self {
        let (stream, peeked, descriptors) = (stream.into(), Bytes::new(), Descriptors::default());
        Self {
            stream,
            limit,
            stalled: None,
            in_turn_bytes: 0,
            activity: SocketActivity::default(),
            unread: Arc::default(),
            told_bytes: 0,
            is_to_rest: false,
            peeked,
            descriptors,
        }
    }

    /// The descriptors that come and go, where it is a Unix socket of Linux.
    pub(crate) fn descriptors(&self) -> Option<Descriptors> {
        (self.is_unix() && cfg!(target_os = "linux")).then(|| self.descriptors.clone())
    }

    pub(crate) fn activity(&self) -> SocketActivity {
        self.activity.clone()
    }

    /// The answers that the peer has yet to read.
    pub(crate) fn unread_answers(&self) -> Arc<UnreadAnswers> {
        Arc::clone(&self.unread)
    }

    pub(crate) const fn is_unix(&self) -> bool {
        matches!(self.stream, Stream::Unix(_))
    }

    /// Reads until `is_enough` or the peer ends, and leaves the bytes to be read again. Nothing may
    /// have been peeked before.
    pub(crate) async fn peek(&mut self, is_enough: impl Fn(&[u8]) -> bool) -> io::Result<Bytes> {
        let mut bytes = Vec::new();
        while !is_enough(&bytes) && self.read_buf(&mut bytes).await? > 0 {}
        self.peeked = bytes.into();
        Ok(self.peeked.clone())
    }

    /// Yields to other connections of the thread, if this one has written much in its turn.
    fn take_turns(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.in_turn_bytes < TURN_BYTES {
            return Poll::Ready(());
        }
        self.in_turn_bytes = 0;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn watch(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            let bytes = written.as_ref().map_or(0, |bytes| *bytes);
            self.in_turn_bytes += bytes;
            let is_told = bytes.min(self.told_bytes);
            self.told_bytes -= is_told;
            self.unread.note_read(bytes - is_told);
            if let Some(stalled) = &mut self.stalled {
                stalled.written_bytes += bytes;
                if stalled.written_bytes >= CHUNK_BYTES {
                    self.stalled = None;
                }
            }
            return Poll::Ready(written);
        }
        self.in_turn_bytes = 0;
        loop {
            let (limit, pause) = (self.limit, self.limit.min(LOOK_PAUSE));
            let held_bytes = || on_either!(&self.stream, socket => unsent_bytes(socket));
            let stalled = self.stalled.get_or_insert_with(|| WriteStall {
                until: Instant::now() + limit,
                look: Box::pin(tokio::time::sleep(pause)),
                written_bytes: 0,
                held_bytes: held_bytes(),
                taken_bytes: 0,
            });
            ready!(stalled.look.as_mut().poll(cx));
            // The system reports late that there is space again: of a buffer of 1 MiB, when most of
            // it was read.
            let taken = (stalled.held_bytes + stalled.written_bytes).saturating_sub(held_bytes());
            let more = taken.saturating_sub(stalled.taken_bytes);
            stalled.taken_bytes += more;
            // For a Unix socket the system reports more than the bytes.
            self.told_bytes = (self.told_bytes + more).min(CHUNK_BYTES);
            self.unread.note_read(more);
            if taken >= CHUNK_BYTES {
                self.stalled = None;
            } else if Instant::now() >= stalled.until {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            } else {
                stalled.look.as_mut().reset(tokio::time::Instant::now() + pause);
            }
        }
    }
}

/// Whether both directions of a connection have ended.
fn is_hung_up(socket: impl AsFd) -> bool {
    let mut polled = [PollFd::new(&socket, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().contains(PollFlags::HUP)
}

/// Bytes that the system holds and the peer has not read, as far as the system tells.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn unsent_bytes(socket: impl AsFd) -> usize {
    use rustix::ioctl::{Getter, ioctl};
    /// For both kinds of sockets, into an `int` (tcp(7), unix(7)). Other architectures may have
    /// another number.
    const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;
    #[allow(unsafe_code, reason = "rustix has no safe function for this request")]
    // SAFETY: `SIOCOUTQ` writes one `int`, which is what the getter has space for, and changes
    // nothing else.
    let bytes = unsafe { ioctl(socket, Getter::<SIOCOUTQ, std::ffi::c_int>::new()) };
    bytes.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn unsent_bytes(_: impl AsFd) -> usize {
    0
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
        if std::mem::take(&mut self.is_to_rest) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let Self { stream, descriptors, .. } = &mut *self;
        let read = match stream {
            Stream::Tcp(socket) => Pin::new(socket).poll_read(cx, buf),
            Stream::Unix(socket) => loop {
                ready!(socket.poll_read_ready(cx))?;
                match descriptors.read(socket, buf) {
                    None => break Pin::new(socket).poll_read(cx, buf),
                    Some(Err(fault)) if fault.kind() == io::ErrorKind::WouldBlock => {}
                    Some(read) => break Poll::Ready(read),
                }
            },
        };
        let bytes = buf.filled().len() - before;
        if bytes > 0 {
            self.is_to_rest = self.activity.note(bytes);
        } else if read.is_ready() && buf.remaining() > 0 {
            let is_gone = on_either!(&self.stream, socket => is_hung_up(socket));
            self.activity.0.is_gone.store(is_gone, Ordering::Relaxed);
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
        ready!(self.take_turns(cx));
        let written = on_either!(&mut self.stream, socket => Pin::new(socket).poll_write(cx, buf));
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.take_turns(cx));
        let Self { stream, descriptors, .. } = &mut *self;
        let written = match stream {
            Stream::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Stream::Unix(socket) => loop {
                match socket.poll_write_ready(cx) {
                    Poll::Pending => break Poll::Pending,
                    Poll::Ready(Err(fault)) => break Poll::Ready(Err(fault)),
                    Poll::Ready(Ok(())) => {}
                }
                match descriptors.write(socket, bufs) {
                    None => break Pin::new(socket).poll_write_vectored(cx, bufs),
                    Some(Err(fault)) if fault.kind() == io::ErrorKind::WouldBlock => {}
                    Some(written) => break Poll::Ready(written),
                }
            },
        };
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        on_either!(&self.stream, socket => socket.is_write_vectored())
    }

    /// The caller has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stalled = None;
        on_either!(&mut self.stream, socket => Pin::new(socket).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(&mut self.stream, socket => Pin::new(socket).poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests;
