//! `callTracer`: the tree of calls.

use super::json;
use super::view::View;
use super::watch::{Entry, Exit, Tracer, TransactionEnd};
use crate::revert::revert_reason;
use alloy_primitives::{Address, Bytes, Log, U256};
use revm::bytecode::opcode::{self as op, OpCode};

/// How the tree of calls is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTracerConfig {
    /// Whether the calls below the first are left out.
    pub only_top_call: bool,
    /// Whether logs are there.
    pub with_log: bool,
}

#[derive(Debug)]
pub(crate) struct CallTracer {
    config: CallTracerConfig,
    /// The number of the transaction's first log in its block.
    first_log: usize,
    pub(super) frames: Vec<CallFrame>,
    /// The places of those that have not ended.
    pub(super) open: Vec<usize>,
    depth: usize,
    taken: usize,
}

/// A call, of which its result is known when it has ended.
#[derive(Debug)]
pub(super) struct CallFrame {
    pub(super) op: u8,
    pub(super) from: Address,
    /// The account that is called, created or paid.
    pub(super) account: Address,
    /// The same, but for a creation that failed.
    pub(super) to: Option<Address>,
    pub(super) input: Bytes,
    pub(super) gas: u64,
    pub(super) gas_used: u64,
    pub(super) value: Option<U256>,
    pub(super) output: Option<Bytes>,
    pub(super) fault: Option<String>,
    pub(super) is_revert: bool,
    /// Places of the calls that it made.
    pub(super) calls: Vec<usize>,
    logs: Vec<CallLog>,
}

#[derive(Debug)]
struct CallLog {
    log: Log,
    index: usize,
    /// The calls that were made before it.
    position: usize,
}

/// About the bytes of a frame in the answer, without its data.
const FRAME_BYTES: usize = 400;

/// About the bytes of a log in the answer, without topics and data.
const LOG_BYTES: usize = 200;

impl CallTracer {
    pub(crate) fn new(config: CallTracerConfig, first_log: usize) -> Self {
        let (frames, open) = (Vec::new(), Vec::new());
        Self { config, first_log, frames, open, depth: 0, taken: 0 }
    }

    /// Gives the first frame the gas of the transaction.
    pub(super) fn end(&mut self, end: &TransactionEnd<'_>) {
        if let Some(first) = self.frames.first_mut() {
            first.gas = end.gas_limit;
            first.gas_used = end.result.tx_gas_used();
        }
    }

    /// Writes a frame and those below it; `is_undone` if a frame above it has failed. `more` writes
    /// further members of the frame at a place.
    pub(super) fn write(
        &self,
        out: &mut String,
        place: usize,
        is_undone: bool,
        more: &mut dyn FnMut(&mut String, usize),
    ) {
        let frame = &self.frames[place];
        let is_undone = is_undone || frame.fault.is_some();
        out.push('{');
        json::member(out, "from");
        json::address(out, frame.from);
        json::member(out, "gas");
        json::quantity(out, frame.gas);
        json::member(out, "gasUsed");
        json::quantity(out, frame.gas_used);
        if let Some(to) = frame.to {
            json::member(out, "to");
            json::address(out, to);
        }
        json::member(out, "input");
        json::bytes(out, &frame.input);
        frame.write_result(out);
        if !frame.calls.is_empty() {
            json::member(out, "calls");
            json::list(out, &frame.calls, |out, call| {
                self.write(out, *call, is_undone, more);
            });
        }
        if !frame.logs.is_empty() && !is_undone {
            json::member(out, "logs");
            json::list(out, &frame.logs, |out, log| log.write(out, self.first_log));
        }
        if let Some(value) = frame.value {
            json::member(out, "value");
            json::quantity(out, value);
        }
        json::member(out, "type");
        json::text(out, OpCode::name_by_op(frame.op));
        more(out, place);
        out.push('}');
    }
}

impl CallFrame {
    fn write_result(&self, out: &mut String) {
        let output = self.output.as_ref().filter(|output| !output.is_empty());
        if let Some(output) = output {
            json::member(out, "output");
            json::bytes(out, output);
        }
        let Some(fault) = &self.fault else { return };
        json::member(out, "error");
        json::text(out, fault);
        if let Some(reason) = output.filter(|_| self.is_revert).and_then(|out| revert_reason(out)) {
            json::member(out, "revertReason");
            json::text(out, &reason);
        }
    }

    fn end(&mut self, exit: &Exit<'_>) {
        self.is_revert = exit.is_revert;
        self.fault = exit.fault.map(str::to_owned);
        if exit.fault.is_none() || exit.is_revert {
            self.output = Some(exit.output.clone());
        }
        if exit.fault.is_some() && matches!(self.op, op::CREATE | op::CREATE2) {
            self.to = None;
        }
    }
}

impl CallLog {
    fn write(&self, out: &mut String, first: usize) {
        out.push('{');
        json::member(out, "address");
        json::address(out, self.log.address);
        json::member(out, "topics");
        json::list(out, self.log.topics(), |out, topic| json::word(out, *topic));
        json::member(out, "data");
        json::bytes(out, &self.log.data.data);
        json::member(out, "index");
        json::quantity(out, first + self.index);
        json::member(out, "position");
        json::quantity(out, self.position);
        out.push('}');
    }
}

impl Tracer for CallTracer {
    fn enter(&mut self, entry: &Entry, _: &mut dyn View) {
        self.depth = entry.depth;
        if self.config.only_top_call && entry.depth > 0 {
            return;
        }
        let place = self.frames.len();
        if let Some(&above) = self.open.last() {
            self.frames[above].calls.push(place);
        }
        self.open.push(place);
        self.taken += FRAME_BYTES + 2 * entry.input.len();
        self.frames.push(CallFrame {
            op: entry.op,
            from: entry.from,
            account: entry.to,
            to: Some(entry.to),
            input: entry.input.clone(),
            gas: entry.gas,
            gas_used: 0,
            value: entry.value,
            output: None,
            fault: None,
            is_revert: false,
            calls: Vec::new(),
            logs: Vec::new(),
        });
    }

    fn exit(&mut self, exit: &Exit<'_>) {
        self.depth = exit.depth.saturating_sub(1);
        if self.config.only_top_call && exit.depth > 0 {
            return;
        }
        let Some(place) = self.open.pop() else { return };
        let frame = &mut self.frames[place];
        frame.end(exit);
        frame.gas_used = exit.gas_used;
        self.taken += frame.output.as_ref().map_or(0, |output| 2 * output.len());
    }

    fn log(&mut self, log: &Log, index: usize) {
        if !self.config.with_log || (self.config.only_top_call && self.depth > 0) {
            return;
        }
        let Some(&place) = self.open.last() else { return };
        let frame = &mut self.frames[place];
        self.taken += LOG_BYTES + 70 * log.topics().len() + 2 * log.data.data.len();
        let position = frame.calls.len();
        frame.logs.push(CallLog { log: log.clone(), index, position });
    }

    fn taken(&self) -> usize {
        self.taken
    }

    fn finish(mut self: Box<Self>, end: &TransactionEnd<'_>, _: &mut dyn View) -> String {
        self.end(end);
        let mut out = String::with_capacity(self.taken);
        match self.frames.is_empty() {
            true => out.push_str("null"),
            false => self.write(&mut out, 0, false, &mut |_, _| {}),
        }
        out
    }
}
