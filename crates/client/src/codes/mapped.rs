//! Codes that are read in the server's own files, which are mapped.

use std::collections::BTreeMap;

use alloy_primitives::Bytes;
use engine_api::headers;
use rpc::Reply;
use rpc::rest::HeaderValue;

use super::partial::{CODES, StatusAnswer, items, malformed, split};
use crate::Error;

/// The header's value that asks for the locations of codes, and says that they came.
pub(super) const MAPPED: HeaderValue = HeaderValue::from_static(headers::MAPPED);

/// The files that were mapped on one connection. The next connection may be to a server with other
/// files.
#[derive(Debug, Default)]
pub(crate) struct MappedFiles {
    /// The files by their segments.
    files: BTreeMap<u64, Bytes>,
    /// The number of the connection, from 1 on.
    connection: u64,
}

/// An answer without the codes that lie in files.
pub(crate) struct PartialAnswer {
    answer: StatusAnswer,
    locations: Vec<CodeLocation>,
}

/// Where a code is.
#[derive(Clone, Copy, Debug)]
struct CodeLocation {
    segment: u64,
    offset: u64,
    length: u32,
}

impl CodeLocation {
    fn read(bytes: [u8; 20]) -> Self {
        let number = |at| u64::from_le_bytes(*bytes[at..].first_chunk().expect("there are 20"));
        let length = u32::from_le_bytes(*bytes.last_chunk().expect("there are 20"));
        Self { segment: number(0), offset: number(8), length }
    }
}

impl PartialAnswer {
    /// Reads an answer, with all of its codes or without some.
    pub(crate) fn read(reply: &Reply) -> Result<Self, Error> {
        let body = reply.body.clone().into();
        if reply.headers.get(CODES) != Some(&MAPPED) {
            // The answer has no witness, or the server has no files.
            return Ok(Self { answer: StatusAnswer::decode(&body)?, locations: Vec::new() });
        }
        let (answer, locations) = split(&body)?;
        Ok(Self {
            answer: StatusAnswer::decode(&answer)?,
            locations: items(&locations, CodeLocation::read)?,
        })
    }

    /// The segments that have codes beyond what was mapped.
    pub(crate) fn segments(&self, mapped: &MappedFiles) -> Vec<u64> {
        let is_missing = |location: &&CodeLocation| mapped.code(location).is_none();
        let mut segments: Vec<_> =
            self.locations.iter().filter(is_missing).map(|location| location.segment).collect();
        segments.sort_unstable();
        segments.dedup();
        segments
    }

    /// The answer with all of its codes.
    pub(crate) fn complete(mut self, mapped: &MappedFiles) -> Result<StatusAnswer, Error> {
        let codes =
            self.locations.iter().map(|location| mapped.code(location)).collect::<Option<Vec<_>>>();
        let mut codes = codes.ok_or_else(|| malformed("a code behind the end of its file"))?;
        if let Some(witness) = &mut self.answer.witness {
            // Both lists are in order. A sort reads the codes, which a client may not need.
            if !witness.codes.is_empty() {
                codes.append(&mut witness.codes);
                codes.sort();
            }
            witness.codes = codes;
        } else if !codes.is_empty() {
            return Err(malformed("there are codes, and there is no witness"));
        }
        Ok(self.answer)
    }
}

impl MappedFiles {
    /// Drops the files that were mapped on another connection.
    pub(crate) fn begin(&mut self, connection: u64) {
        if self.connection != connection {
            *self = Self { connection, ..Self::default() };
        }
    }

    pub(crate) fn insert(&mut self, segment: u64, file: Bytes) {
        self.files.insert(segment, file);
    }

    fn code(&self, location: &CodeLocation) -> Option<Bytes> {
        let file = self.files.get(&location.segment)?;
        let from = usize::try_from(location.offset).ok()?;
        let to = from.checked_add(usize::try_from(location.length).ok()?)?;
        (to <= file.len()).then(|| file.slice(from..to))
    }
}
