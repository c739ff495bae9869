//! A socket that gives up on a peer who does not read, and knows whether it heard from them.

use std::future::Future;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::{Errno, FdFlags};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::time::Sleep;

use crate::limits::{BODY_STEP_BYTES, CHUNK_BYTES, LOOK_PAUSE, SEND_BUFFER_BYTES, TURN_BYTES};
use crate::transport::descriptor::Descriptors;
use crate::transport::room::Untaken;

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

/// Listens on a Unix socket at `path`, which nobody but the owner of the process may connect to
/// (mode 0600). A socket that a process has left behind there is replaced.
///
/// It needs a tokio runtime with I/O.
///
/// # Errors
/// The system's: when the path is too long (107 bytes at most on Linux), when something else than a
/// socket is there, or when somebody listens on it.
pub fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    if let Ok(there) = std::fs::symlink_metadata(path)
        && there.file_type().is_socket()
    {
        match connect_at_once(path) {
            // Nobody listens.
            Err(Errno::CONNREFUSED) => std::fs::remove_file(path)?,
            // Or so many wait to be accepted that one more would have to wait.
            Ok(()) | Err(Errno::AGAIN) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(Errno::NOENT) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    // Before it listens nobody can connect.
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

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

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
            Self::Unix(listener) => {
                let (socket, _) = listener.accept().await?;
                // The system takes as much of it as its own bound, `net.core.wmem_max`, allows.
                if let Err(fault) = set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES) {
                    tracing::debug!(%fault, "SO_SNDBUF");
                }
                Ok(Stream::Unix(socket))
            }
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

/// A socket whose writes fail when the peer has not taken [`CHUNK_BYTES`], or all there was, for
/// `limit`.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    limit: Duration,
    /// Runs while the peer takes little.
    stalled: Option<Stalled>,
    /// Bytes written since others had their turn.
    in_turn_bytes: usize,
    heard: Heard,
    /// Told of what the peer takes: of so many bytes before they were written.
    untaken: Arc<Untaken>,
    told_bytes: usize,
    /// Whether nothing is read before whoever waits for [`Heard::more`] had a turn.
    is_to_rest: bool,
    /// Read already, and to be read again.
    peeked: Bytes,
    descriptors: Descriptors,
}

#[derive(Debug)]
struct Stalled {
    until: Instant,
    /// When it is looked how much the peer has taken.
    look: Pin<Box<Sleep>>,
    /// What was written since it began.
    written_bytes: usize,
    /// What the system held then, which the peer had not taken yet.
    held_bytes: usize,
    /// What it has taken since, as it was last seen.
    taken_bytes: usize,
}

/// What a socket brought, and whether its peer is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<HeardState>);

#[derive(Debug, Default)]
struct HeardState {
    anything: AtomicBool,
    is_gone: AtomicBool,
    is_counted: AtomicBool,
    counted: AtomicUsize,
    /// Notified whenever [`BODY_STEP_BYTES`] more were counted.
    more: Notify,
}

impl Heard {
    /// Whether bytes came since this was asked last.
    pub(crate) fn anything(&self) -> bool {
        self.0.anything.swap(false, Ordering::Relaxed)
    }

    /// Whether the peer, who sends nothing more, reads nothing either: over TCP nobody can tell.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.is_gone.load(Ordering::Relaxed)
    }

    /// Counts the bytes from now on.
    pub(crate) fn count(&self) {
        self.0.is_counted.store(true, Ordering::Relaxed);
    }

    /// How many there were since they were forgotten last.
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

    /// Notes that so many bytes came. True when more were counted than whoever waits for that knows
    /// of.
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
            heard: Heard::default(),
            untaken: Arc::default(),
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

    pub(crate) fn heard(&self) -> Heard {
        self.heard.clone()
    }

    /// The answers on their way to the peer.
    pub(crate) fn untaken(&self) -> Arc<Untaken> {
        Arc::clone(&self.untaken)
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

    /// Lets other connections of the thread go first, if this one has written much in its turn.
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
            self.untaken.took(bytes - is_told);
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
            let stalled = self.stalled.get_or_insert_with(|| Stalled {
                until: Instant::now() + limit,
                look: Box::pin(tokio::time::sleep(pause)),
                written_bytes: 0,
                held_bytes: held_bytes(),
                taken_bytes: 0,
            });
            ready!(stalled.look.as_mut().poll(cx));
            // The system says late that there is room again: of a buffer of 1 MiB, when most of it
            // was taken.
            let taken = (stalled.held_bytes + stalled.written_bytes).saturating_sub(held_bytes());
            let more = taken.saturating_sub(stalled.taken_bytes);
            stalled.taken_bytes += more;
            // Over a Unix socket what the system says is more than the bytes.
            self.told_bytes = (self.told_bytes + more).min(CHUNK_BYTES);
            self.untaken.took(more);
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

/// What the system holds that the peer has not taken: as far as it tells.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn unsent_bytes(socket: impl AsFd) -> usize {
    use rustix::ioctl::{Getter, ioctl};
    /// Of both kinds of sockets, into an `int` (tcp(7), unix(7)). Some other architectures have
    /// another number.
    const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;
    #[allow(unsafe_code, reason = "the system's, and rustix has no name for it")]
    // SAFETY: it writes one `int`, and changes nothing.
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
            self.is_to_rest = self.heard.note(bytes);
        } else if read.is_ready() && buf.remaining() > 0 {
            let is_gone = on_either!(&self.stream, socket => is_hung_up(socket));
            self.heard.0.is_gone.store(is_gone, Ordering::Relaxed);
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

    /// There is nothing left to be written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stalled = None;
        on_either!(&mut self.stream, socket => Pin::new(socket).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(&mut self.stream, socket => Pin::new(socket).poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME_BYTES;
    use std::future::poll_fn;
    use std::io::IoSlice;
    use tokio::io::AsyncWriteExt;

    /// So large, the system says soon that there is room.
    const SMALL_BUFFER: usize = 16 << 10;

    /// Writes until the peer is given up, who takes so many bytes every 10 ms.
    async fn write_to_a_slow_peer(
        buffer: usize,
        taken: usize,
        flushes: bool,
        most: Duration,
    ) -> io::Result<()> {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        set_socket_send_buffer_size(&ours, buffer).expect("set");
        let mut socket = Socket::new(ours, Duration::from_secs(2));
        let mut read = vec![0; taken];
        let reads = async {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                theirs.try_read(&mut read).unwrap_or_default();
            }
        };
        let writes = async {
            loop {
                socket.write_all(&[7; 16 << 10]).await?;
                if flushes {
                    socket.flush().await?;
                }
            }
        };
        tokio::select! {
            () = reads => unreachable!("it goes on"),
            fault = writes => fault,
            () = tokio::time::sleep(most) => Ok(()),
        }
    }

    #[tokio::test]
    async fn who_takes_little_is_given_up() {
        let patience = Duration::from_secs(60);
        let long = Duration::from_secs(3);
        let (slow, complete, fast, late) = tokio::join!(
            write_to_a_slow_peer(SMALL_BUFFER, 512, false, patience),
            // All that there was is taken each time.
            write_to_a_slow_peer(SMALL_BUFFER, 4 << 10, true, long),
            write_to_a_slow_peer(SMALL_BUFFER, 256 << 10, false, long),
            // The system says for longer than the limit that there is no room.
            write_to_a_slow_peer(SEND_BUFFER_BYTES, 5 << 10, false, 2 * long),
        );
        assert_eq!(slow.expect_err("too slow").kind(), io::ErrorKind::TimedOut);
        complete.expect("all was taken");
        fast.expect("fast enough");
        late.expect("fast enough, if one looks");
    }

    /// Although the peer takes all at once.
    #[tokio::test]
    async fn who_writes_much_leaves_others_their_turn() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        ours.writable().await.expect("open");
        let mut socket = Socket::new(ours, Duration::from_secs(60));
        let (chunk, mut read) = (vec![7; 16 << 10], vec![0; FRAME_BYTES]);
        for turn in 0..5 {
            let (mut written, mut has_ended) = (0, false);
            let write = poll_fn(|cx| {
                if has_ended {
                    return Poll::Ready(());
                }
                loop {
                    let socket = Pin::new(&mut socket);
                    let now = match turn % 2 {
                        0 => socket.poll_write(cx, &chunk),
                        _ => socket.poll_write_vectored(cx, &[IoSlice::new(&chunk)]),
                    };
                    let Poll::Ready(now) = now else { break };
                    written += now.expect("the peer reads");
                    rustix::io::read(&theirs, &mut read).expect("it is there");
                }
                has_ended = true;
                Poll::Pending
            });
            tokio::time::timeout(Duration::from_secs(60), write).await.expect("its turn comes");
            assert_eq!(written, TURN_BYTES, "turn {turn}");
        }
    }
}
