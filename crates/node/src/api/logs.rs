//! `eth_getLogs`.

use alloy_primitives::{B256, Log};
use engine::{BlockLog, BlockLogs};
use engine_api::json::FixedData;
use rpc::{Code, Error, Json, Params, Pieces};
use serde::Deserialize;
use serde_json::Value;

use super::blocks::NumberOrTag;
use super::log_filter::LogFilter;
use super::{Api, refusal};
use crate::limits::{LOG_ANSWER_BYTES, LOG_BLOCK_BYTES, LOG_BLOCKS, LOG_READ_BYTES, LOGS};

/// `eth_getLogs`, with the words of geth's errors.
pub(super) fn logs(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let LogQuery { block_hash, from_block, to_block, address, topics } = params.next("filter")?;
    params.end()?;
    let filter = LogFilter::new(&address, &topics).map_err(Error::invalid_params)?;
    match block_hash {
        Some(_) if from_block.is_some() || to_block.is_some() => Err(Error::invalid_params(
            "invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one \
             or the other",
        )),
        Some(hash) => {
            let mut answer = LogAnswer::default();
            match block_logs(api, hash.into(), &filter)? {
                Some(logs) => answer.add(logs)?,
                None => return Err(Error::new(Code::Server, "unknown block")),
            }
            Ok(answer.finish())
        }
        None => in_range(api, from_block, to_block, &filter),
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct LogQuery {
    block_hash: Option<FixedData<32>>,
    from_block: Option<NumberOrTag>,
    to_block: Option<NumberOrTag>,
    address: Value,
    topics: Value,
}

fn in_range(
    api: &Api,
    from: Option<NumberOrTag>,
    to: Option<NumberOrTag>,
    filter: &LogFilter,
) -> Result<Json, Error> {
    let head = api.head()?.number();
    let from = bound(api, from.unwrap_or(NumberOrTag::Latest), head)?;
    let to = bound(api, to.unwrap_or(NumberOrTag::Latest), head)?;
    if from > to {
        return Err(Error::invalid_params("invalid block range params"));
    }
    if to > head {
        return Err(Error::invalid_params("block range extends beyond current head block"));
    }
    let first = api.engine.number(&api.engine.heads().genesis).map_err(refusal)?;
    if first.is_some_and(|first| from < first) {
        let detail = format!("the chain begins with block {}", first.unwrap_or_default());
        return Err(Error::new(Code::PrunedHistory, detail));
    }
    if to - from >= LOG_BLOCKS {
        let detail = format!("the range has {} blocks, at most {LOG_BLOCKS}", to - from + 1);
        return Err(Error::invalid_params(format!("{detail} are allowed")));
    }
    let blooms = filter.blooms();
    let blocks = api.engine.blocks_by_bloom(from..=to, &|bloom| blooms.may_match(bloom));
    let mut answer = LogAnswer::default();
    for (number, hash) in blocks.map_err(refusal)? {
        let logs = block_logs(api, hash, filter)?;
        answer.add(logs.ok_or_else(|| refusal(engine::Error::UnknownBlock(hash)))?)?;
        // One block alone is answered, however many logs it has.
        if from < to && answer.is_too_large() {
            let (from, to) =
                (format!("{from:#x}"), format!("{:#x}", from.max(number.saturating_sub(1))));
            return Err(Error::invalid_params(format!(
                "the filter matches too much, of at most {LOGS} logs: retry with the range {from} \
                 to {to}, or with more addresses and topics"
            )));
        }
    }
    Ok(answer.finish())
}

/// The number that an end of the range means.
fn bound(api: &Api, id: NumberOrTag, head: u64) -> Result<u64, Error> {
    match id {
        NumberOrTag::Number(number) => Ok(number),
        NumberOrTag::Latest => Ok(head),
        NumberOrTag::Pending => Err(Error::invalid_params("pending logs are not supported")),
        tag => {
            let name = format!("{tag:?}").to_lowercase();
            let missing = || Error::new(Code::Server, format!("{name} header not found"));
            Ok(api.block_by_number(tag)?.ok_or_else(missing)?.number())
        }
    }
}

fn block_logs(api: &Api, hash: B256, filter: &LogFilter) -> Result<Option<BlockLogs>, Error> {
    api.engine.block_logs(&hash, &|log: &Log| filter.matches(log)).map_err(refusal)
}

/// The logs found so far, as JSON: their values would take several times the memory.
#[derive(Default)]
struct LogAnswer {
    shown: Pieces,
    count: usize,
    bytes: usize,
    read_bytes: usize,
}

impl LogAnswer {
    fn add(&mut self, found: BlockLogs) -> Result<(), Error> {
        let BlockLogs { hash, number, timestamp, logs, read_bytes } = found;
        self.read_bytes += read_bytes.max(LOG_BLOCK_BYTES);
        let mut text = Vec::new();
        for BlockLog { log, index, transaction_index, transaction_hash } in logs {
            text.push(if self.count == 0 { b'[' } else { b',' });
            let shown = alloy_rpc_types_eth::Log {
                inner: log,
                block_hash: Some(hash),
                block_number: Some(number),
                block_timestamp: Some(timestamp),
                transaction_hash: Some(transaction_hash),
                transaction_index: Some(transaction_index),
                log_index: Some(index),
                removed: false,
            };
            serde_json::to_writer(&mut text, &shown)
                .map_err(|fault| Error::new(Code::Internal, fault))?;
            self.count += 1;
        }
        self.bytes += text.len();
        if !text.is_empty() {
            self.shown.push(text);
        }
        Ok(())
    }

    fn is_too_large(&self) -> bool {
        self.count > LOGS || self.bytes > LOG_ANSWER_BYTES || self.read_bytes > LOG_READ_BYTES
    }

    fn finish(mut self) -> Json {
        self.shown.push(if self.count == 0 { &b"[]"[..] } else { &b"]"[..] });
        self.shown.into()
    }
}

#[cfg(test)]
mod tests;
