//! Systems without sealed memory files: nothing is lent, and nothing is taken.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::HeaderValue;
use tokio::io::ReadBuf;
use tokio::net::UnixStream;

use super::PassedFile;
use crate::client::error::{ClientError, malformed};
use crate::pieces::Pieces;
use crate::transport::budget::Budget;

/// No memory files.
#[derive(Debug)]
pub(crate) struct MemoryFiles;

impl MemoryFiles {
    pub(crate) fn new(_: (usize, usize), _: Arc<Budget>) -> Self {
        Self
    }

    #[allow(clippy::unused_self, reason = "it has the face of the one that can")]
    pub(crate) const fn lent_count(&self) -> usize {
        0
    }

    #[allow(clippy::unused_self, reason = "it has the face of the one that can")]
    pub(crate) const fn free_idle(&self) {}

    #[allow(clippy::unused_self, reason = "it has the face of the one that can")]
    pub(crate) const fn fill(self: &Arc<Self>, _: &Pieces) -> io::Result<Option<LentFile>> {
        Ok(None)
    }
}

/// A file that is never lent.
#[derive(Debug)]
pub(crate) struct LentFile(Infallible);

impl LentFile {
    pub(crate) const fn give_back(self) {
        match self.0 {}
    }
}

/// No descriptors come or go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Descriptors;

impl Descriptors {
    pub(crate) fn send(&self, file: PassedFile) {
        match file {
            PassedFile::Memory(lent) => match lent.0 {},
            PassedFile::Other(file) => drop(file),
        }
    }

    pub(crate) const fn waiting(&self) -> usize {
        0
    }

    pub(crate) const fn want_one(&self) {}

    pub(crate) const fn take(&self) -> Option<OwnedFd> {
        None
    }

    pub(crate) const fn write(
        &self,
        _: &UnixStream,
        _: &[IoSlice<'_>],
    ) -> Option<io::Result<usize>> {
        None
    }

    pub(crate) const fn read(&self, _: &UnixStream, _: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        None
    }
}

/// Nothing is mapped.
#[derive(Debug, Default)]
pub(crate) struct ReceivedFiles;

impl ReceivedFiles {
    pub(crate) fn map(
        &mut self,
        _: OwnedFd,
        _: &HeaderValue,
        _: bool,
    ) -> Result<Bytes, ClientError> {
        Err(malformed("it came by descriptor, which is not offered here"))
    }

    pub(crate) const fn unused(&self) -> Option<HeaderValue> {
        None
    }

    pub(crate) const fn forget(&mut self) {}
}
