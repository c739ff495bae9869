//! `flatCallTracer`: the calls as a list, in the form of OpenEthereum's `trace_*` methods.

use super::calls::{CallFrame, CallTracer, CallTracerConfig};
use super::json;
use super::view::View;
use super::watch::{Entry, Exit, Place, Tracer, TransactionEnd};
use alloy_primitives::U256;
use alloy_primitives::map::AddressSet;
use revm::bytecode::opcode::{self as op, OpCode};

/// How the list of calls is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlatCallTracerConfig {
    /// Whether errors have OpenEthereum's words.
    pub convert_parity_errors: bool,
    /// Whether calls of precompiled contracts are there.
    pub include_precompiles: bool,
}

#[derive(Debug)]
pub(crate) struct FlatCallTracer {
    config: FlatCallTracerConfig,
    precompiled: AddressSet,
    tree: CallTracer,
    /// The numbers in all paths.
    path_items: usize,
}

impl FlatCallTracer {
    pub(crate) fn new(config: FlatCallTracerConfig, precompiled: AddressSet) -> Self {
        let tree = CallTracer::new(CallTracerConfig::default(), 0);
        Self { config, precompiled, tree, path_items: 0 }
    }

    /// Writes a frame and those below it.
    fn write(&self, out: &mut String, place: usize, path: &mut Vec<usize>, at: Option<&Place>) {
        let frame = &self.tree.frames[place];
        if !out.ends_with('[') {
            out.push(',');
        }
        out.push('{');
        write_action(out, frame);
        write_block(out, at);
        if let Some(fault) = &frame.fault {
            json::member(out, "error");
            let words = if self.config.convert_parity_errors { parity(fault) } else { fault };
            json::text(out, words);
        }
        if frame.op != op::SELFDESTRUCT && (frame.fault.is_none() || frame.is_revert) {
            write_result(out, frame);
        }
        json::member(out, "subtraces");
        json::number(out, frame.calls.len() as u64);
        json::member(out, "traceAddress");
        json::list(out, path.iter(), |out, place| json::number(out, *place as u64));
        write_transaction(out, at);
        json::member(out, "type");
        json::text(out, kind(frame.op));
        out.push('}');
        for (index, call) in frame.calls.iter().enumerate() {
            path.push(index);
            self.write(out, *call, path, at);
            path.pop();
        }
    }
}

pub(super) const fn kind(op: u8) -> &'static str {
    match op {
        op::CREATE | op::CREATE2 => "create",
        op::SELFDESTRUCT => "suicide",
        _ => "call",
    }
}

pub(super) fn write_action(out: &mut String, frame: &CallFrame) {
    let name = OpCode::name_by_op(frame.op).to_lowercase();
    let value = frame.value.unwrap_or_default();
    json::member(out, "action");
    out.push('{');
    if frame.op == op::SELFDESTRUCT {
        json::member(out, "address");
        json::address(out, frame.from);
        json::member(out, "balance");
        json::quantity(out, value);
        json::member(out, "refundAddress");
        json::address(out, frame.to.unwrap_or_default());
        out.push('}');
        return;
    }
    json::member(out, "from");
    json::address(out, frame.from);
    json::member(out, "gas");
    json::quantity(out, frame.gas);
    json::member(out, "value");
    json::quantity(out, value);
    let is_creation = kind(frame.op) == "create";
    json::member(out, if is_creation { "creationMethod" } else { "callType" });
    json::text(out, &name);
    json::member(out, if is_creation { "init" } else { "input" });
    json::bytes(out, &frame.input);
    if let Some(to) = frame.to.filter(|_| !is_creation) {
        json::member(out, "to");
        json::address(out, to);
    }
    out.push('}');
}

fn write_result(out: &mut String, frame: &CallFrame) {
    let is_creation = kind(frame.op) == "create";
    json::member(out, "result");
    out.push('{');
    if let Some(address) = frame.to.filter(|_| is_creation) {
        json::member(out, "address");
        json::address(out, address);
    }
    json::member(out, if is_creation { "code" } else { "output" });
    json::bytes(out, frame.output.as_ref().map_or(&[][..], |output| output));
    json::member(out, "gasUsed");
    json::quantity(out, frame.gas_used);
    out.push('}');
}

fn write_block(out: &mut String, at: Option<&Place>) {
    json::member(out, "blockHash");
    match at {
        Some(place) => json::word(out, place.block_hash),
        None => out.push_str("null"),
    }
    json::member(out, "blockNumber");
    json::number(out, at.map_or(0, |place| place.block_number));
}

fn write_transaction(out: &mut String, at: Option<&Place>) {
    json::member(out, "transactionHash");
    match at {
        Some(place) => json::word(out, place.transaction_hash),
        None => out.push_str("null"),
    }
    json::member(out, "transactionPosition");
    json::number(out, at.map_or(0, |place| place.index as u64));
}

/// OpenEthereum's words for geth's.
pub(super) fn parity(fault: &str) -> &str {
    match fault {
        "contract creation code storage out of gas"
        | "out of gas"
        | "gas uint64 overflow"
        | "max code size exceeded" => "Out of gas",
        "invalid jump destination" => "Bad jump destination",
        "execution reverted" => "Reverted",
        "return data out of bounds" => "Out of bounds",
        "stack limit reached 1024 (1023)" => "Out of stack",
        "precompiled failed" | "invalid input length" => "Built-in failed",
        fault if fault.starts_with("out of gas:") => "Out of gas",
        fault if fault.starts_with("invalid opcode:") => "Bad instruction",
        fault if fault.starts_with("stack underflow") => "Stack underflow",
        fault => fault,
    }
}

impl Tracer for FlatCallTracer {
    fn enter(&mut self, entry: &Entry, view: &mut dyn View) {
        self.tree.enter(entry, view);
        self.path_items += entry.depth;
        if let Some(frame) = self.tree.frames.last_mut().filter(|_| entry.depth > 0) {
            frame.value.get_or_insert(U256::ZERO);
        }
    }

    fn exit(&mut self, exit: &Exit<'_>) {
        let ended = self.tree.open.last().copied();
        self.tree.exit(exit);
        if self.config.include_precompiles {
            return;
        }
        let (Some(ended), Some(&above)) = (ended, self.tree.open.last()) else { return };
        let frame = &self.tree.frames[ended];
        let is_precompiled = frame.to.is_some_and(|to| self.precompiled.contains(&to));
        if matches!(frame.op, op::CALL | op::STATICCALL) && is_precompiled {
            self.tree.frames[above].calls.pop();
        }
    }

    fn taken(&self) -> usize {
        self.tree.taken() + 100 * self.tree.frames.len() + 4 * self.path_items
    }

    fn finish(mut self: Box<Self>, end: &TransactionEnd<'_>, _: &mut dyn View) -> String {
        self.tree.end(end);
        let mut out = String::from("[");
        if !self.tree.frames.is_empty() {
            self.write(&mut out, 0, &mut Vec::new(), end.place.as_ref());
        }
        out.push(']');
        out
    }
}
