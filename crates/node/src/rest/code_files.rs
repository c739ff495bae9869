//! Codes that a client reads where they lie: in the node's own files, which it maps once.
//!
//! A client on the same host that asks for a witness with the header `Deponent-Codes: mapped` is
//! told where codes lie instead of being sent them: `{ answer: PayloadStatusWithWitness,
//! mapped_codes: List[{ segment: uint64, offset: uint64, length: uint32 }] }`. The answer has the
//! codes that are in no file yet. Files are had by `GET /code-files/{segment}`. They are only
//! appended to, so nothing has to be remembered of a client, and nothing given back. A client
//! forgets what it mapped with the connection: the next one may be to a node with other files.

use std::sync::Arc;

use alloy_primitives::Bytes;
use engine::Assembled;
use rpc::Pieces;
use rpc::rest::{HeaderValue, Request, Response};
use state::CodeLocation;
use witness::Witness;

use super::body::WitnessBody;
use super::held::CODES;
use super::problem::{Problem, ProblemKind};
use super::ssz;
use crate::api::{Api, refusal};

/// The header's value.
pub(super) const MAPPED: HeaderValue = HeaderValue::from_static(engine_api::headers::MAPPED);

/// The codes of a witness: those that are sent, and the locations of the others.
#[derive(Debug)]
pub(super) struct LocatedCodes {
    /// Those that it is sent.
    codes: Vec<Bytes>,
    /// The locations of the others, in their order, and their lengths.
    places: Vec<(CodeLocation, u32)>,
}

/// Whether the client maps codes, which not every connection allows.
pub(super) fn are_mapped(request: &Request) -> Result<bool, Problem> {
    let are_mapped = request.headers.get(CODES) == Some(&MAPPED);
    if are_mapped && !request.takes_files {
        let detail = "codes can be mapped over the Unix socket alone, in HTTP/1.1";
        return Err(Problem::new(ProblemKind::InvalidRequest, detail));
    }
    Ok(are_mapped)
}

/// Leaves out what lies in files.
pub(super) fn located(api: &Api, assembled: &Assembled) -> Result<LocatedCodes, Problem> {
    let Assembled { witness, code_hashes } = assembled;
    let (mut codes, mut places) = (Vec::new(), Vec::new());
    for (code, hash) in witness.codes.iter().zip(code_hashes.iter()) {
        let stored = api.engine.database().stored_code(hash).map_err(|e| refusal(e.into()))?;
        match stored.and_then(|stored| stored.location) {
            Some(place) => places.push((place, code.len() as u32)),
            None => codes.push(code.clone()),
        }
    }
    Ok(LocatedCodes { codes, places })
}

impl LocatedCodes {
    /// The witness with the codes that are sent, and where the others lie behind it.
    pub(super) fn witness_body(self, witness: Arc<Witness>) -> WitnessBody {
        let places = self.places.iter().flat_map(|(place, length)| {
            let [segment, offset] = [place.segment, place.offset].map(u64::to_le_bytes);
            [&segment[..], &offset[..], &length.to_le_bytes()[..]].concat()
        });
        WitnessBody::in_part(witness, self.codes, places.collect())
    }
}

/// `GET /code-files/{segment}`: the file, by descriptor.
pub(super) fn code_file(api: &Api, name: &str) -> Result<Response, Problem> {
    let malformed = |_| Problem::new(ProblemKind::InvalidRequest, "a segment is named by a number");
    let segment = name.parse().map_err(malformed)?;
    let file = api.engine.database().code_file(segment).map_err(|e| refusal(e.into()))?;
    let unknown =
        || Problem::new(ProblemKind::UnknownPath, format!("there is no segment {segment}"));
    let file = Some(Arc::new(file.ok_or_else(unknown)?));
    Ok(Response { file, ..ssz(Pieces::default()) })
}
