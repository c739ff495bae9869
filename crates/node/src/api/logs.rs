//! `eth_getLogs`.

use std::ops::ControlFlow;

use alloy_primitives::B256;
use engine::FoundLog;
use engine_api::json::FixedData;
use rpc::{Code, Error, Json, Params, Pieces};
use serde::Deserialize;
use serde_json::Value;

use super::blocks::NumberOrTag;
use super::log_filter::LogFilter;
use super::{Api, refusal};
use crate::limits::{
    BLOCK_LOGS_BYTES, LOG_ANSWER_BYTES, LOG_BLOCK_BYTES, LOG_BLOCKS, LOG_BYTES, LOG_PIECE_BYTES,
    LOG_READ_BYTES, LOGS,
};

/// `eth_getLogs`, with the words of geth's errors.
pub(super) fn logs(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let request = LogRequest::next(&mut params)?;
    params.end()?;
    found(api, &request)
}

/// The logs that are asked for.
pub(super) fn found(api: &Api, request: &LogRequest) -> Result<Json, Error> {
    let LogRequest { blocks, filter } = request;
    match *blocks {
        LogBlocks::One(hash) => {
            let mut answer = LogAnswer::of_block();
            if !answer.add(api, hash, filter)? {
                return Err(Error::new(Code::Server, "unknown block"));
            }
            if answer.is_too_large() {
                return Err(too_large_block());
            }
            Ok(answer.finish())
        }
        LogBlocks::Range { from, to } => in_range(api, from, to, filter),
    }
}

/// The blocks and the filter of `eth_getLogs`.
#[derive(Debug)]
pub(super) struct LogRequest {
    pub(super) blocks: LogBlocks,
    pub(super) filter: LogFilter,
}

/// The blocks whose logs are asked for.
#[derive(Debug)]
pub(super) enum LogBlocks {
    One(B256),
    /// The head where an end is left out.
    Range {
        from: Option<NumberOrTag>,
        to: Option<NumberOrTag>,
    },
}

impl LogRequest {
    /// Reads the next parameter.
    pub(super) fn next(params: &mut Params<'_>) -> Result<Self, Error> {
        let LogQuery { block_hash, from_block, to_block, address, topics } =
            params.next("filter")?;
        let filter = LogFilter::new(&address, &topics).map_err(Error::invalid_params)?;
        let blocks = match block_hash {
            Some(_) if from_block.is_some() || to_block.is_some() => {
                return Err(Error::invalid_params(
                    "invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, \
                     choose one or the other",
                ));
            }
            Some(hash) => LogBlocks::One(hash.into()),
            None => LogBlocks::Range { from: from_block, to: to_block },
        };
        Ok(Self { blocks, filter })
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
    let mut answer = if from == to { LogAnswer::of_block() } else { LogAnswer::of_range() };
    for (number, hash) in blocks.map_err(refusal)? {
        if !answer.add(api, hash, filter)? {
            return Err(refusal(engine::Error::UnknownBlock(hash)));
        }
        if !answer.is_too_large() {
            continue;
        }
        if from == to {
            return Err(too_large_block());
        }
        let (from, to) =
            (format!("{from:#x}"), format!("{:#x}", from.max(number.saturating_sub(1))));
        return Err(Error::invalid_params(format!(
            "the filter matches too much, of at most {LOGS} logs: retry with the range {from} \
             to {to}, or with more addresses and topics"
        )));
    }
    Ok(answer.finish())
}

/// The logs of one block alone are too much.
pub(super) fn too_large_block() -> Error {
    Error::invalid_params(format!(
        "the filter matches too much of one block, of at most {BLOCK_LOGS_BYTES} bytes of logs: \
         retry with more addresses and topics"
    ))
}

pub(super) fn no_pending_logs() -> Error {
    Error::invalid_params("pending logs are not supported")
}

/// The number that an end of the range means.
fn bound(api: &Api, id: NumberOrTag, head: u64) -> Result<u64, Error> {
    match id {
        NumberOrTag::Number(number) => Ok(number),
        NumberOrTag::Latest => Ok(head),
        NumberOrTag::Pending => Err(no_pending_logs()),
        tag => {
            let name = format!("{tag:?}").to_lowercase();
            let missing = || Error::new(Code::Server, format!("{name} header not found"));
            Ok(api.block_by_number(tag)?.ok_or_else(missing)?.number())
        }
    }
}

/// The logs found so far, as JSON: their values would take several times the memory.
pub(super) struct LogAnswer {
    bounds: LogBounds,
    /// All that was written but for the last piece.
    shown: Pieces,
    /// The last piece, of about [`LOG_PIECE_BYTES`].
    piece: Vec<u8>,
    count: usize,
    read_bytes: usize,
}

/// The most of an answer.
struct LogBounds {
    logs: usize,
    /// Of JSON.
    bytes: usize,
    /// Of blocks that are read.
    read_bytes: usize,
}

impl LogAnswer {
    /// With the logs of one block, however many they are.
    fn of_block() -> Self {
        let most = usize::MAX;
        Self::within(LogBounds { logs: most, bytes: BLOCK_LOGS_BYTES, read_bytes: most })
    }

    /// With logs of several blocks.
    fn of_range() -> Self {
        let bytes = LOG_ANSWER_BYTES;
        Self::within(LogBounds { logs: LOGS, bytes, read_bytes: LOG_READ_BYTES })
    }

    /// With the logs of blocks one after the other, until it [is full](Self::is_full).
    pub(super) fn of_changes() -> Self {
        let (most, bytes) = (usize::MAX, LOG_ANSWER_BYTES + BLOCK_LOGS_BYTES);
        Self::within(LogBounds { logs: most, bytes, read_bytes: most })
    }

    /// Whether it has as much as an answer with the logs of a range may have.
    pub(super) fn is_full(&self) -> bool {
        self.count >= LOGS
            || self.written_bytes() >= LOG_ANSWER_BYTES
            || self.read_bytes >= LOG_READ_BYTES
    }

    fn within(bounds: LogBounds) -> Self {
        let (shown, piece) = Default::default();
        Self { bounds, shown, piece, count: 0, read_bytes: 0 }
    }

    /// Adds the logs of a block, until the answer is too large; false where there is no such block.
    pub(super) fn add(&mut self, api: &Api, hash: B256, filter: &LogFilter) -> Result<bool, Error> {
        let mut fault = None;
        let mut take = |found: FoundLog<'_>| match self.write(found) {
            Ok(()) if !self.is_too_large() => ControlFlow::Continue(()),
            Ok(()) => ControlFlow::Break(()),
            Err(error) => {
                fault = Some(Error::new(Code::Internal, error));
                ControlFlow::Break(())
            }
        };
        let found = api.engine.search_logs(&hash, &|log| filter.matches(log), &mut take);
        if let Some(fault) = fault {
            return Err(fault);
        }
        let Some(read_bytes) = found.map_err(refusal)? else { return Ok(false) };
        self.read_bytes += read_bytes.max(LOG_BLOCK_BYTES);
        Ok(true)
    }

    /// The same of a block that has left the canonical chain: the last log comes first.
    pub(super) fn add_removed(
        &mut self,
        api: &Api,
        hash: B256,
        filter: &LogFilter,
    ) -> Result<bool, Error> {
        let most_bytes = self.bounds.bytes.saturating_sub(self.written_bytes());
        let (mut logs, mut bytes, mut fault) = (Vec::new(), 0, None);
        let mut take = |found: FoundLog<'_>| {
            let mut log = shown(found);
            log.removed = true;
            match serde_json::to_vec(&log) {
                Ok(text) => {
                    bytes += text.len() + 1;
                    logs.push(text);
                }
                Err(error) => fault = Some(Error::new(Code::Internal, error)),
            }
            match fault.is_none() && bytes <= most_bytes {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let found = api.engine.search_logs(&hash, &|log| filter.matches(log), &mut take);
        if let Some(fault) = fault {
            return Err(fault);
        }
        let Some(read_bytes) = found.map_err(refusal)? else { return Ok(false) };
        self.read_bytes += read_bytes.max(LOG_BLOCK_BYTES);
        for log in logs.into_iter().rev() {
            self.begin_log().extend_from_slice(&log);
            self.count += 1;
        }
        Ok(true)
    }

    fn write(&mut self, found: FoundLog<'_>) -> serde_json::Result<()> {
        serde_json::to_writer(self.begin_log(), &shown(found))?;
        self.count += 1;
        Ok(())
    }

    /// The piece to which the next log is to be written.
    fn begin_log(&mut self) -> &mut Vec<u8> {
        if self.piece.capacity() - self.piece.len() < LOG_BYTES {
            self.end_piece();
            self.piece = Vec::with_capacity(LOG_PIECE_BYTES);
        }
        self.piece.push(if self.count == 0 { b'[' } else { b',' });
        &mut self.piece
    }

    fn end_piece(&mut self) {
        let mut piece = std::mem::take(&mut self.piece);
        piece.shrink_to_fit();
        self.shown.push(piece);
    }

    pub(super) fn is_too_large(&self) -> bool {
        let LogBounds { logs, bytes, read_bytes } = self.bounds;
        self.count > logs || self.written_bytes() > bytes || self.read_bytes > read_bytes
    }

    fn written_bytes(&self) -> usize {
        self.shown.len_bytes() + self.piece.len()
    }

    pub(super) fn finish(mut self) -> Json {
        self.piece.extend_from_slice(if self.count == 0 { b"[]" } else { b"]" });
        self.end_piece();
        self.shown.into()
    }
}

fn shown(found: FoundLog<'_>) -> alloy_rpc_types_eth::Log {
    alloy_rpc_types_eth::Log {
        inner: found.log.clone(),
        block_hash: Some(found.block_hash),
        block_number: Some(found.block_number),
        block_timestamp: Some(found.timestamp),
        transaction_hash: Some(found.transaction_hash),
        transaction_index: Some(found.transaction_index),
        log_index: Some(found.index),
        removed: false,
    }
}

#[cfg(test)]
pub(super) mod tests;
