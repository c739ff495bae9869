//! `/bodies`.

use std::sync::Arc;

use alloy_eips::Encodable2718;
use engine::BlockRecord;
use engine_api::Fork;
use engine_api::limits::BODIES;
use engine_api::ssz::{BodiesResponse, ExecutionPayloadBody, read_bodies_request};
use rpc::rest::{Request, Response};

use super::problem::{Problem, ProblemKind};
use super::{fork, rules, ssz, ssz_body};
use crate::api::{self, Api};

/// `POST /bodies/hash`.
pub(super) fn by_hash(api: &Api, request: &Request) -> Result<Response, Problem> {
    let fork = fork(request)?;
    let hashes = read_bodies_request(&ssz_body(request)?).map_err(Problem::of_hashes)?;
    let is_wanted = |record: &_| is_of(api, fork, record);
    respond(fork, &api::blocks_by_hash(api, &hashes, BODIES as u64, is_wanted)?)
}

/// `GET /bodies`: of the canonical chain, up to its head.
pub(super) fn by_range(api: &Api, request: &Request) -> Result<Response, Problem> {
    let fork = fork(request)?;
    let query = request.query.as_deref().unwrap_or_default();
    let (from, count) = (number(query, "from")?, number(query, "count")?);
    let is_wanted = |record: &_| is_of(api, fork, record);
    respond(fork, &api::blocks_by_range(api, from, count, BODIES as u64, is_wanted)?)
}

/// The one value of `name`, a decimal number.
fn number(query: &str, name: &str) -> Result<u64, Problem> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
    let value = match (values.next(), values.next()) {
        (Some(value), None) if value.bytes().all(|digit| digit.is_ascii_digit()) => value,
        _ => "",
    };
    value.parse().map_err(|_| {
        let detail = format!("the query must have {name} once, a decimal number of 64 bits");
        Problem::new(ProblemKind::InvalidRequest, detail)
    })
}

fn respond(fork: Fork, blocks: &[Option<Arc<BlockRecord>>]) -> Result<Response, Problem> {
    let entries = blocks.iter().map(|record| record.as_ref().map(|record| body(record)));
    let answer = BodiesResponse { entries: entries.collect() }.encode(fork);
    Ok(ssz(answer.map_err(Problem::of_answer)?))
}

/// Whether a block is of the time of `fork`, which begins after the last one that was mined.
fn is_of(api: &Api, fork: Fork, record: &BlockRecord) -> bool {
    let header = &record.block.header;
    let of_fork = rules(fork).contains(&api.engine.chain().fork_at(header.timestamp));
    of_fork && header.difficulty.is_zero()
}

fn body(record: &BlockRecord) -> ExecutionPayloadBody {
    let body = &record.block.body;
    ExecutionPayloadBody {
        transactions: body.transactions.iter().map(|tx| tx.encoded_2718().into()).collect(),
        withdrawals: body.withdrawals.as_ref().map_or_else(Vec::new, |list| list.to_vec()),
        block_access_list: record.block_access_list.clone().unwrap_or_default(),
    }
}
