//! `/witnesses` and `/stateless-inputs`: what never changes of a valid block, in ranges.

use std::sync::Arc;

use alloy_primitives::B256;
use engine::BlockRecord;
use execution::stateless::{NewPayloadRequest, ProtocolFork, StatelessInput};
use rpc::rest::{Request, Response};
use witness::{DecodeError, Witness};

use super::body::WitnessBody;
use super::problem::{Problem, ProblemKind};
use super::resource::{self, ETag};
use super::{pieces, segment};
use crate::api::{Api, Stored, refusal};

/// `GET /witnesses/{blockHash}`: SSZ, and with `.rlp` behind the hash RLP.
pub(super) fn witness(api: &Api, request: &Request, name: &str) -> Result<Response, Problem> {
    let (hash, form) = match name.strip_suffix(".rlp") {
        Some(hash) => (hash, "rlp"),
        None => (name, "ssz"),
    };
    let record = block(api, hash)?;
    let tag = ETag::new(record.hash(), form);
    if tag.is_known(request) {
        return Ok(tag.not_modified());
    }
    let witness = assemble(api, record.hash())?;
    let content = match form {
        "rlp" => {
            let mut content = pieces(witness::rlp::parts(&witness));
            content.read_from(&Stored);
            content
        }
        _ => WitnessBody::whole(witness).body().map_err(|error| match error {
            DecodeError::TooLarge { got, .. } => Problem::too_large(got),
            error => Problem::new(ProblemKind::Internal, error),
        })?,
    };
    resource::respond(request, &tag, content)
}

/// `GET /stateless-inputs/{blockHash}`: what a prover is given; with `?public_keys=true` in the
/// older form, with the signers' public keys.
pub(super) fn stateless_input(
    api: &Api,
    request: &Request,
    hash: &str,
) -> Result<Response, Problem> {
    let has_keys = has_public_keys(request.query.as_deref().unwrap_or_default())?;
    let record = block(api, hash)?;
    let rules = api.engine.chain().fork_of(&record.block.header);
    let fork = ProtocolFork::of(rules).ok_or_else(|| {
        let detail = format!(
            "the block is in {rules}, and stateless inputs are defined for {:?} to {:?}, without \
             BPO3 to BPO5",
            ProtocolFork::Paris,
            ProtocolFork::Amsterdam,
        );
        Problem::new(ProblemKind::UnsupportedFork, detail)
    })?;
    let tag = ETag::new(record.hash(), if has_keys { "input-keys" } else { "input" });
    if tag.is_known(request) {
        return Ok(tag.not_modified());
    }
    let witness = assemble(api, record.hash())?;
    let list = record.block_access_list.clone().unwrap_or_default();
    let requests: Vec<_> = record.requests.iter().cloned().collect();
    let request_of_block = NewPayloadRequest::of_block(fork, &record.block, &requests, list);
    let public_keys = match has_keys {
        true => Some(api.engine.public_keys(&record.block).map_err(refusal)?),
        false => None,
    };
    let input = StatelessInput {
        new_payload_request: request_of_block.map_err(Problem::of_answer)?,
        witness: Witness::clone(&witness),
        chain_id: api.engine.chain().chain_id(),
        public_keys,
    };
    let mut content = pieces(input.parts().map_err(Problem::of_answer)?);
    content.read_from(&Stored);
    resource::respond(request, &tag, content)
}

/// Whether the query asks for public keys.
fn has_public_keys(query: &str) -> Result<bool, Problem> {
    match query {
        "" | "public_keys=false" => Ok(false),
        "public_keys=true" => Ok(true),
        other => {
            let other = rpc::quote(other);
            let detail = format!("the query is {other}; it may be public_keys=true or =false");
            Err(Problem::new(ProblemKind::InvalidRequest, detail))
        }
    }
}

/// A valid block that was executed.
fn block(api: &Api, hash: &str) -> Result<Arc<BlockRecord>, Problem> {
    let hash = B256::new(segment("the block's hash", hash)?);
    let unknown =
        || Problem::new(ProblemKind::UnknownBlock, format!("there is no valid block {hash}"));
    if hash == api.engine.heads().genesis {
        let detail = "genesis was not executed on a parent, so it has no witness";
        return Err(Problem::new(ProblemKind::UnknownBlock, detail));
    }
    api.engine.block(hash).map_err(refusal)?.ok_or_else(unknown)
}

fn assemble(api: &Api, hash: B256) -> Result<Arc<Witness>, Problem> {
    let witness = api.engine.witness(hash).map_err(refusal)?;
    witness.ok_or_else(|| Problem::new(ProblemKind::UnknownBlock, format!("{hash} has no witness")))
}
