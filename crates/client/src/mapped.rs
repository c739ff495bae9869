//! Codes that are read where they lie: in the server's own files, mapped.

use std::collections::BTreeMap;

use alloy_primitives::Bytes;
use engine_api::headers;
use rpc::Reply;
use rpc::rest::HeaderValue;

use crate::Error;
use crate::held::{CODES, Read, items, malformed, split};

/// Asks for the places of codes, and says that they came.
pub(crate) const MAPPED: HeaderValue = HeaderValue::from_static(headers::MAPPED);

/// The files that were mapped on one connection: another may be to a server with other files.
#[derive(Debug, Default)]
pub(crate) struct Mapped {
    /// By their segments.
    files: BTreeMap<u64, Bytes>,
    /// Which connection, by how many there were.
    connection: u64,
}

/// An answer without the codes that lie in files.
pub(crate) struct Lacking {
    read: Read,
    places: Vec<Place>,
}

/// Where a code lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    segment: u64,
    offset: u64,
    length: u32,
}

impl Place {
    fn read(bytes: [u8; 20]) -> Self {
        let number = |at| u64::from_le_bytes(*bytes[at..].first_chunk().expect("there are 20"));
        let length = u32::from_le_bytes(*bytes.last_chunk().expect("there are 20"));
        Self { segment: number(0), offset: number(8), length }
    }
}

impl Lacking {
    /// Reads an answer; one that is whole lacks nothing.
    pub(crate) fn read(reply: &Reply) -> Result<Self, Error> {
        let body = reply.body.clone().into();
        if reply.headers.get(CODES) != Some(&MAPPED) {
            // Of an answer without a witness, or a server that has no files.
            return Ok(Self { read: Read::decode(&body)?, places: Vec::new() });
        }
        let (answer, places) = split(&body)?;
        Ok(Self { read: Read::decode(&answer)?, places: items(&places, Place::read)? })
    }

    /// The segments of which something lies beyond what was mapped.
    pub(crate) fn segments(&self, mapped: &Mapped) -> Vec<u64> {
        let lacks = |place: &&Place| mapped.code(place).is_none();
        let mut segments: Vec<_> =
            self.places.iter().filter(lacks).map(|place| place.segment).collect();
        segments.sort_unstable();
        segments.dedup();
        segments
    }

    /// The answer with all of its codes.
    pub(crate) fn complete(mut self, mapped: &Mapped) -> Result<Read, Error> {
        let codes = self.places.iter().map(|place| mapped.code(place)).collect::<Option<Vec<_>>>();
        let mut codes = codes.ok_or_else(|| malformed("a code behind the end of its file"))?;
        if let Some(witness) = &mut self.read.witness {
            // Both are in order. Comparing has codes touched, so it is left out where it can be.
            if !witness.codes.is_empty() {
                codes.append(&mut witness.codes);
                codes.sort();
            }
            witness.codes = codes;
        } else if !codes.is_empty() {
            return Err(malformed("there are codes, and there is no witness"));
        }
        Ok(self.read)
    }
}

impl Mapped {
    /// Forgets what was mapped on another connection.
    pub(crate) fn begin(&mut self, connection: u64) {
        if self.connection != connection {
            *self = Self { connection, ..Self::default() };
        }
    }

    pub(crate) fn insert(&mut self, segment: u64, file: Bytes) {
        self.files.insert(segment, file);
    }

    fn code(&self, place: &Place) -> Option<Bytes> {
        let file = self.files.get(&place.segment)?;
        let from = usize::try_from(place.offset).ok()?;
        let to = from.checked_add(usize::try_from(place.length).ok()?)?;
        (to <= file.len()).then(|| file.slice(from..to))
    }
}
