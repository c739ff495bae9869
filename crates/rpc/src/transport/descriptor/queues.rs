//! Descriptors that go with the bytes of a Unix socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use tokio::io::{Interest, ReadBuf};
use tokio::net::UnixStream;

use super::PassedFile;

/// Descriptors on their way over a Unix socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Descriptors(Arc<Mutex<DescriptorQueues>>);

#[derive(Debug, Default)]
struct DescriptorQueues {
    /// Sent with the next bytes that are written, one with each write.
    outgoing: VecDeque<PassedFile>,
    /// Whether they are received; before that, the operating system closes them.
    is_receiving: bool,
    /// The one that came first since it was wanted.
    incoming: Option<OwnedFd>,
}

impl PassedFile {
    fn readable(&self) -> BorrowedFd<'_> {
        match self {
            Self::Memory(lent) => lent.readable(),
            Self::Other(file) => file.as_fd(),
        }
    }
}

impl Descriptors {
    /// Sends the descriptor of a file with the bytes that follow.
    pub(crate) fn send(&self, file: PassedFile) {
        self.queues().outgoing.push_back(file);
    }

    /// How many are to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.queues().outgoing.len()
    }

    /// Receives one descriptor from now on. All others are closed as they come: the other side
    /// could fill the table of this process with them.
    pub(crate) fn want_one(&self) {
        let mut queues = self.queues();
        (queues.is_receiving, queues.incoming) = (true, None);
    }

    /// The descriptor that has come since one was wanted.
    pub(crate) fn take(&self) -> Option<OwnedFd> {
        self.queues().incoming.take()
    }

    fn queues(&self) -> MutexGuard<'_, DescriptorQueues> {
        self.0.lock().expect("nothing panics while it is locked")
    }

    /// Writes to a Unix socket together with a descriptor, if one is to be sent.
    pub(crate) fn write(
        &self,
        socket: &UnixStream,
        slices: &[IoSlice<'_>],
    ) -> Option<io::Result<usize>> {
        let mut queues = self.queues();
        let first = queues.outgoing.front()?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let readable = [first.readable()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&readable)), "there is room for one");
        let sent = socket.try_io(Interest::WRITABLE, || {
            Ok(rustix::net::sendmsg(socket, slices, &mut control, SendFlags::NOSIGNAL)?)
        });
        if sent.is_ok() {
            queues.outgoing.pop_front();
        }
        Some(sent)
    }

    /// Reads from a Unix socket, and takes the first descriptor that comes with the bytes.
    pub(crate) fn read(
        &self,
        socket: &UnixStream,
        buf: &mut ReadBuf<'_>,
    ) -> Option<io::Result<()>> {
        let mut queues = self.queues();
        if !queues.is_receiving {
            return None;
        }
        // The system closes those for which there is no room here.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let bytes = buf.initialize_unfilled();
        let received = socket.try_io(Interest::READABLE, || {
            let slices = &mut [IoSliceMut::new(bytes)];
            Ok(rustix::net::recvmsg(socket, slices, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes)
        });
        Some(received.map(|count| {
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    for descriptor in descriptors {
                        queues.incoming.get_or_insert(descriptor);
                    }
                }
            }
            buf.advance(count);
        }))
    }
}
