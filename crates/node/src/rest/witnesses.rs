//! `/witnesses` and `/stateless-inputs`: what never changes of a valid block, in ranges.

use std::sync::Arc;

use alloy_hardforks::EthereumHardfork;
use alloy_primitives::B256;
use engine::BlockRecord;
use execution::stateless::input::{NewPayloadRequest, StatelessInput};
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

/// `GET /stateless-inputs/{blockHash}`: what a prover of an Amsterdam block is given.
pub(super) fn stateless_input(
    api: &Api,
    request: &Request,
    hash: &str,
) -> Result<Response, Problem> {
    let record = block(api, hash)?;
    let fork = api.engine.chain().fork_at(record.block.header.timestamp);
    if fork != EthereumHardfork::Amsterdam {
        let detail = format!("the block is in {fork}, and only Amsterdam has a stateless input");
        return Err(Problem::new(ProblemKind::UnsupportedFork, detail));
    }
    let tag = ETag::new(record.hash(), "input");
    if tag.is_known(request) {
        return Ok(tag.not_modified());
    }
    let witness = assemble(api, record.hash())?;
    let list = record.block_access_list.clone().unwrap_or_default();
    let requests: Vec<_> = record.requests.iter().cloned().collect();
    let request_of_block = NewPayloadRequest::of_block(&record.block, &requests, list);
    let input = StatelessInput {
        new_payload_request: request_of_block.map_err(Problem::of_answer)?,
        witness: Witness::clone(&witness),
        chain_id: api.engine.chain().chain_id(),
        public_keys: api.engine.public_keys(&record.block).map_err(refusal)?,
    };
    let mut content = pieces(input.parts().map_err(Problem::of_answer)?);
    content.read_from(&Stored);
    resource::respond(request, &tag, content)
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
