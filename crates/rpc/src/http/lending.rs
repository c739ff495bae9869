//! Answers that are passed by descriptor over a Unix socket, and the files lent to one connection.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard};

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};

use crate::http::resource as rest;
use crate::limits::{DESCRIPTOR_BYTES, LENT_FILES};
use crate::pieces::Pieces;
use crate::transport::descriptor::{Descriptors, LentFile, MemoryFiles, PassedFile};

/// The refusal of a file to a client that did not ask for a descriptor, or cannot take one.
pub(super) const ONLY_BY_DESCRIPTOR: &str = "this is a file, which is passed by descriptor alone: \
     over the Unix socket, in HTTP/1.1, with the header Deponent-Descriptor";

const TOO_MANY_FILES: &str = "too many files wait to be passed on this connection";

/// The status of a refusal, and its reason.
type Refused = (StatusCode, &'static str);

/// The files that go to one client by descriptor.
#[derive(Debug)]
pub(super) struct LendingConnection {
    /// How they get there: only over HTTP/1.1 on a Unix socket.
    descriptors: Option<Descriptors>,
    lent: Mutex<LentFiles>,
}

/// The memory files that the client has not given back.
#[derive(Debug, Default)]
struct LentFiles {
    /// By id.
    files: BTreeMap<u64, Arc<LentFile>>,
    last_id: u64,
}

impl LendingConnection {
    pub(super) fn new(descriptors: Option<Descriptors>) -> Self {
        Self { descriptors, lent: Mutex::default() }
    }

    pub(super) const fn takes_files(&self) -> bool {
        self.descriptors.is_some()
    }

    /// Passes a large body in a memory file, if the client can get one.
    pub(super) fn lend(&self, files: &Arc<MemoryFiles>, response: &mut rest::Response) {
        let Some(descriptors) = &self.descriptors else { return };
        let length = response.body.len_bytes();
        let is_worth_it = response.status == StatusCode::OK && length >= DESCRIPTOR_BYTES;
        if !is_worth_it || self.lent().files.len() >= LENT_FILES {
            return;
        }
        match files.fill(&response.body) {
            Ok(Some(file)) => {
                let file = Arc::new(file);
                let mut lent = self.lent();
                lent.last_id += 1;
                let id = lent.last_id;
                lent.files.insert(id, Arc::clone(&file));
                drop(lent);
                descriptors.send(PassedFile::Memory(file));
                let named = format!("{id};length={length}");
                let named = HeaderValue::try_from(named).expect("numbers may be a header");
                response.headers.insert(rest::DESCRIPTOR, named);
                response.body = Pieces::default();
            }
            Ok(None) => {}
            Err(fault) => tracing::warn!(%fault, "an answer was not passed by descriptor"),
        }
    }

    /// Passes a file of the server's own.
    pub(super) fn pass(
        &self,
        file: Arc<fs::File>,
        response: &mut rest::Response,
    ) -> Result<(), Refused> {
        let only = (StatusCode::BAD_REQUEST, ONLY_BY_DESCRIPTOR);
        let descriptors = self.descriptors.as_ref().ok_or(only)?;
        if descriptors.waiting() >= LENT_FILES {
            return Err((StatusCode::SERVICE_UNAVAILABLE, TOO_MANY_FILES));
        }
        let length = file.metadata().map_err(|fault| {
            tracing::warn!(%fault, "a file was not passed");
            (StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be read")
        })?;
        let named = HeaderValue::try_from(format!("file;length={}", length.len()));
        response.headers.insert(rest::DESCRIPTOR, named.expect("a word and a number"));
        descriptors.send(PassedFile::Other(file));
        Ok(())
    }

    /// Takes back the files that a request's headers release.
    pub(super) fn take_back(&self, headers: &HeaderMap) {
        let lists = headers.get_all(rest::RELEASE).iter();
        let ids = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
        for id in ids.filter_map(|id| id.trim().parse().ok()) {
            // An id that is not lent was taken back before; a file that is not sent yet stays.
            let file = self.lent().files.remove::<u64>(&id).and_then(Arc::into_inner);
            if let Some(file) = file {
                file.give_back();
            }
        }
    }

    fn lent(&self) -> MutexGuard<'_, LentFiles> {
        self.lent.lock().expect("nothing panics while it is locked")
    }
}
