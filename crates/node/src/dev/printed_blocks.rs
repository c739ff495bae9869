//! The blocks of a chain for tests as they are mined, on the standard output: their transactions,
//! and what contracts say by console.log, as anvil prints them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{TrySendError, sync_channel};
use std::time::Instant;

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, Bytes};
use engine::{BlockRecord, ChainEvent, Engine};
use execution::{CallTracerConfig, Deadline, TraceOptions, Traced, TracerConfig};
use rpc::shortened;
use serde::Deserialize;

use crate::console::print_line;
use crate::limits::{PRINTED_TRACE_BYTES, PRINTED_TRACE_TIME, UNPRINTED_BLOCKS};

/// Prints the blocks that join the chain from now on, until the engine is gone. Mining never waits
/// for it: where the standard output is read more slowly, blocks are left out, and are counted.
pub(crate) fn print_blocks(engine: &Arc<Engine>) {
    let (sender, blocks) = sync_channel(UNPRINTED_BLOCKS);
    let left_out = Arc::<AtomicU64>::default();
    let counted = left_out.clone();
    engine.on_event(move |event| {
        let ChainEvent::Chosen(change) = event else { return };
        for hash in &change.joined {
            if let Err(TrySendError::Full(_)) = sender.try_send(*hash) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let weak = Arc::downgrade(engine);
    let print = move || {
        for hash in &blocks {
            let Some(engine) = weak.upgrade() else { return };
            let missed = left_out.swap(0, Ordering::Relaxed);
            // A reader that has gone does not end the chain.
            if missed > 0 {
                let _ = print_line(format_args!("\n    {missed} blocks are not printed\n"));
            }
            if let Some(text) = block_text(&engine, hash) {
                let _ = print_line(format_args!("{text}"));
            }
        }
    };
    let thread = std::thread::Builder::new().name("print".into()).spawn(print);
    thread.expect("the system starts a thread");
}

/// A call of `callTracer`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    to: Option<Address>,
    #[serde(default)]
    input: Bytes,
    #[serde(default)]
    output: Bytes,
    error: Option<String>,
    revert_reason: Option<String>,
    #[serde(default)]
    calls: Vec<Self>,
}

impl Frame {
    /// Adds the lines that the call and those inside it say.
    fn say(&self, out: &mut String) {
        if self.to == Some(tools::CONSOLE)
            && let Some(line) = tools::console_line(&self.input)
        {
            let _ = writeln!(out, "{}", shortened(line));
        }
        self.calls.iter().for_each(|call| call.say(out));
    }

    /// Why it failed, if it did.
    fn failure(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        Some(match &self.revert_reason {
            Some(reason) => format!("reverted with: {}", shortened(reason)),
            None if self.output.is_empty() => error.clone(),
            None => format!("reverted with: {}", shortened(&self.output)),
        })
    }
}

fn block_text(engine: &Engine, hash: B256) -> Option<String> {
    let record = engine.block(hash).ok()??;
    let calls = calls(engine, &record);
    let mut text = String::new();
    let mut gas_before = 0;
    for (index, transaction) in record.block.body.transactions.iter().enumerate() {
        let (call, receipt) = (calls.get(index), record.receipts.get(index)?);
        if let Some(call) = call {
            call.say(&mut text);
        }
        let sender = record.senders[index];
        let _ = writeln!(text, "\n    Transaction: {}", transaction.tx_hash());
        if transaction.is_create() {
            let contract = sender.create(transaction.nonce());
            let _ = writeln!(text, "    Contract created: {contract}");
        }
        let gas = receipt.cumulative_gas_used() - gas_before;
        gas_before = receipt.cumulative_gas_used();
        let _ = writeln!(text, "    Gas used: {gas}");
        if !receipt.status() {
            let reason = call.and_then(Frame::failure).unwrap_or_else(|| "failed".into());
            let _ = writeln!(text, "    Error: {reason}");
        }
    }
    let header = &record.block.header;
    let time = tools::date(header.timestamp);
    let _ = write!(text, "\n    Block Number: {}\n    Block Hash: {hash}\n", header.number);
    let _ = writeln!(text, "    Block Time: {time}");
    Some(text)
}

/// The calls of a block's transactions, which run again for them; none where no transaction has
/// code to run, or where that takes too long.
fn calls(engine: &Engine, record: &BlockRecord) -> Vec<Frame> {
    let transactions = &record.block.body.transactions;
    // A transfer to an account without code costs so much.
    if record.block.header.gas_used == 21_000 * transactions.len() as u64 {
        return Vec::new();
    }
    let end = Instant::now() + PRINTED_TRACE_TIME;
    let options = TraceOptions {
        first_log: 0,
        tracer: TracerConfig::Calls(CallTracerConfig::default()),
        deadline: Deadline::new(move || Instant::now() > end),
        bytes: PRINTED_TRACE_BYTES,
    };
    let traced = engine.trace_block(&record.block, &record.senders, None, &options);
    let Ok(Traced::Done(answers)) = traced else { return Vec::new() };
    let read = answers.iter().map(|answer| serde_json::from_str(answer).ok());
    read.collect::<Option<Vec<_>>>().unwrap_or_default()
}
