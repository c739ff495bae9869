//! Filters, whose owners ask for what is new. Nothing is collected for them: an answer is found by
//! a walk from the filter's cursor to the head.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::{B256, U128};
use engine::ChainSince;
use rpc::{Code, Error, Json, Params, Pieces};

use super::blocks::NumberOrTag;
use super::filter_table::Filter;
use super::logs::{self, LogAnswer, LogBlocks, LogRequest};
use super::{Api, refusal};
use crate::limits::{FILTER_BYTES, FILTER_TRANSACTIONS, LOG_ANSWER_BYTES, LOG_BLOCKS};
use crate::unmined::Unmined;

/// `eth_newFilter`: of the logs of blocks that join and leave the chain from now on.
pub(super) fn new_logs(
    api: &Api,
    mut params: Params<'_>,
    host: Option<IpAddr>,
) -> Result<Json, Error> {
    let request = LogRequest::next(&mut params)?;
    params.end()?;
    check_blocks(&request.blocks)?;
    let bytes = request.filter.bytes();
    if bytes > FILTER_BYTES {
        return Err(Error::invalid_params(format!(
            "the filter has {bytes} bytes of addresses and topics, at most {FILTER_BYTES} are \
             allowed: make several filters"
        )));
    }
    let head = api.engine.heads().head;
    made(api, Filter::Logs { request: Arc::new(request), head }, host)
}

/// Checks the range of a filter, as geth does: it is open, or ends with a number.
fn check_blocks(blocks: &LogBlocks) -> Result<(), Error> {
    use NumberOrTag::{Earliest, Latest, Number, Pending};
    let LogBlocks::Range { from, to } = *blocks else { return Ok(()) };
    match (from.unwrap_or(Latest), to.unwrap_or(Latest)) {
        (Pending, _) | (_, Pending) => Err(logs::no_pending_logs()),
        (Latest | Earliest | Number(_), Latest) | (Earliest, Earliest | Number(_)) => Ok(()),
        (Number(from), Number(to)) if from <= to => Ok(()),
        _ => Err(Error::invalid_params("invalid block range params")),
    }
}

/// `eth_newBlockFilter`: of the hashes of blocks that become canonical from now on.
pub(super) fn new_blocks(
    api: &Api,
    params: Params<'_>,
    host: Option<IpAddr>,
) -> Result<Json, Error> {
    params.end()?;
    made(api, Filter::Blocks { head: api.engine.heads().head }, host)
}

/// `eth_newPendingTransactionFilter`: of transactions that become pending from now on, as hashes,
/// or whole where the parameter is true.
pub(super) fn new_transactions(
    api: &Api,
    mut params: Params<'_>,
    host: Option<IpAddr>,
) -> Result<Json, Error> {
    let full: Option<bool> = params.optional("whole transactions")?;
    params.end()?;
    let (pool, _) = api.pool()?;
    let (full, next) = (full.unwrap_or(false), pool.pending_count());
    made(api, Filter::Transactions { full, next }, host)
}

fn made(api: &Api, filter: Filter, host: Option<IpAddr>) -> Result<Json, Error> {
    Json::of(&api.filters.add(filter, host, Instant::now()))
}

/// `eth_uninstallFilter`: whether there was one.
pub(super) fn uninstall(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id = id(&mut params)?;
    params.end()?;
    Json::of(&id.is_some_and(|id| api.filters.remove(id, Instant::now())))
}

/// The number in an identifier, which some libraries write with leading zeros; `None` of a text
/// that is none.
fn id(params: &mut Params<'_>) -> Result<Option<U128>, Error> {
    let id: String = params.next("filter")?;
    let digits = id.strip_prefix("0x").unwrap_or_default();
    Ok(u128::from_str_radix(digits, 16).ok().map(U128::from))
}

fn not_found() -> Error {
    Error::failed_call("filter not found".into())
}

/// `eth_getFilterLogs`: all logs that the filter wants, as `eth_getLogs` finds them.
pub(super) fn all_logs(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id = id(&mut params)?;
    params.end()?;
    match id.and_then(|id| api.filters.ask(id, Instant::now())) {
        Some((Filter::Logs { request, .. }, _)) => logs::found(api, &request),
        _ => Err(not_found()),
    }
}

/// `eth_getFilterChanges`: what is new since the last call.
pub(super) fn changes(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id = id(&mut params)?.ok_or_else(not_found)?;
    params.end()?;
    loop {
        let now = Instant::now();
        let (filter, told) = api.filters.ask(id, now).ok_or_else(not_found)?;
        let found = match filter {
            Filter::Logs { request, head } => changed_logs(api, request, head)?,
            Filter::Blocks { head } => changed_blocks(api, head)?,
            Filter::Transactions { full, next } => new_pending(api, full, next)?,
        };
        let Some((answer, filter)) = found else {
            // Some of what its owner is to be told is not kept any more.
            api.filters.remove(id, now);
            return Err(not_found());
        };
        // Another call may have told it meanwhile.
        if api.filters.tell(id, told, filter) {
            return Ok(answer);
        }
    }
}

/// An answer, and the filter after it; `None` where something is not kept any more.
type Changes = Result<Option<(Json, Filter)>, Error>;

/// The logs of blocks that left the chain, the newest first, then those of blocks that joined it,
/// as many as one answer may have.
fn changed_logs(api: &Api, request: Arc<LogRequest>, head: B256) -> Changes {
    let Some(since) = since(api, head)? else { return Ok(None) };
    let mut answer = LogAnswer::of_changes();
    let mut head = head;
    for Step { hash, number, is_removed, after } in steps(&since) {
        if answer.is_full() {
            break;
        }
        head = after;
        if !wants_block(&request.blocks, number, hash) {
            continue;
        }
        let is_there = match is_removed {
            true => answer.add_removed(api, hash, &request.filter)?,
            false => answer.add(api, hash, &request.filter)?,
        };
        if !is_there {
            return Ok(None);
        }
        if answer.is_too_large() {
            return Err(logs::too_large_block());
        }
    }
    Ok(Some((answer.finish(), Filter::Logs { request, head })))
}

/// A block that left the chain or joined it, and the head after that.
struct Step {
    hash: B256,
    number: u64,
    is_removed: bool,
    after: B256,
}

fn steps(since: &ChainSince) -> impl Iterator<Item = Step> {
    let ChainSince { left, fork, fork_number, joined } = since;
    let parents = left.iter().skip(1).chain([fork]);
    let numbers = (1..=left.len() as u64).rev().map(move |above| fork_number + above);
    let left = left.iter().zip(parents).zip(numbers).map(|((&hash, &after), number)| Step {
        hash,
        number,
        is_removed: true,
        after,
    });
    let joined = joined.iter().zip(fork_number + 1..);
    let joined =
        joined.map(|(&hash, number)| Step { hash, number, is_removed: false, after: hash });
    left.chain(joined)
}

fn wants_block(blocks: &LogBlocks, number: u64, hash: B256) -> bool {
    match blocks {
        LogBlocks::One(wanted) => *wanted == hash,
        LogBlocks::Range { from, to } => {
            let from = match from {
                Some(NumberOrTag::Number(from)) => *from,
                _ => 0,
            };
            let to = match to {
                Some(NumberOrTag::Number(to)) => *to,
                Some(NumberOrTag::Earliest) => 0,
                _ => u64::MAX,
            };
            (from..=to).contains(&number)
        }
    }
}

/// The hashes of blocks that became canonical; where the head moved back, that of the head.
fn changed_blocks(api: &Api, head: B256) -> Changes {
    let Some(since) = since(api, head)? else { return Ok(None) };
    let ChainSince { left, fork, joined, .. } = since;
    let head = joined.last().copied().unwrap_or(fork);
    let is_back = !left.is_empty() && joined.is_empty() && left.len() < LOG_BLOCKS as usize;
    let hashes = if is_back { vec![fork] } else { joined };
    Ok(Some((Json::of(&hashes)?, Filter::Blocks { head })))
}

/// The transactions that became pending. Whole ones are of the pool, or of a block by now; the
/// others have gone.
fn new_pending(api: &Api, full: bool, next: u64) -> Changes {
    let most = if full { FILTER_TRANSACTIONS } else { usize::MAX };
    let (pool, _) = api.pool()?;
    let Some(hashes) = pool.became_pending(next, most) else { return Ok(None) };
    let after = |told: usize| Filter::Transactions { full, next: next + told as u64 };
    if !full {
        return Ok(Some((Json::of(&hashes)?, after(hashes.len()))));
    }
    let (mut shown, mut told) = (Pieces::default(), 0);
    for hash in hashes {
        told += 1;
        let Some(transaction) = Unmined::find(&api.engine, pool, hash) else { continue };
        let mut text = vec![if shown.is_empty() { b'[' } else { b',' }];
        serde_json::to_writer(&mut text, &transaction)
            .map_err(|fault| Error::new(Code::Internal, fault))?;
        shown.push(text);
        if shown.len_bytes() >= LOG_ANSWER_BYTES {
            break;
        }
    }
    let end: &[u8] = if shown.is_empty() { b"[]" } else { b"]" };
    shown.push(end.to_vec());
    Ok(Some((shown.into(), after(told))))
}

fn since(api: &Api, head: B256) -> Result<Option<ChainSince>, Error> {
    api.engine.changes_since(head, LOG_BLOCKS as usize).map_err(refusal)
}

#[cfg(test)]
mod tests;
