//! Traces as OpenEthereum's module `trace` answers them: the calls of a transaction as a list, its
//! changes of the state, and its instructions.

use super::calls::{CallFrame, CallTracer, CallTracerConfig};
use super::flat_calls::{kind, parity, write_action};
use super::instruction::{Instruction, Judgement};
use super::view::View;
use super::vm_trace::VmTracer;
use super::watch::{Entry, Exit, InstructionEnd, Place, Tracer, TransactionEnd};
use super::{json, state_diff};
use alloy_primitives::Address;
use alloy_primitives::map::AddressSet;
use revm::bytecode::opcode as op;

/// The parts of an answer of `trace_replayTransaction`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ParityTypes {
    /// `trace`: the calls.
    pub trace: bool,
    /// `stateDiff`: the changes of the state.
    pub state_diff: bool,
    /// `vmTrace`: the instructions.
    pub vm_trace: bool,
}

/// The traces that `trace_filter` is to answer. The default lets all through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFilter {
    /// The accounts that call, create or destroy themselves; if there is none, any.
    pub from: AddressSet,
    /// The accounts that are called, created or paid; if there is none, any.
    pub to: AddressSet,
    /// Whether one of the two is enough.
    pub is_union: bool,
}

impl TraceFilter {
    /// Whether a trace from an account to another passes; `to` is none where nothing was created.
    pub fn passes(&self, from: Option<Address>, to: Option<Address>) -> bool {
        let has = |set: &AddressSet, found: Option<Address>| {
            set.is_empty() || found.is_some_and(|found| set.contains(&found))
        };
        let (is_from, is_to) = (has(&self.from, from), has(&self.to, to));
        match self.is_union && !self.from.is_empty() && !self.to.is_empty() {
            true => is_from || is_to,
            false => is_from && is_to,
        }
    }
}

/// The calls, without those of precompiled contracts that move no money.
#[derive(Debug)]
struct Traces {
    precompiled: AddressSet,
    tree: CallTracer,
    /// The numbers in all paths.
    path_items: usize,
}

impl Traces {
    fn new(precompiled: AddressSet) -> Self {
        let tree = CallTracer::new(CallTracerConfig::default(), 0);
        Self { precompiled, tree, path_items: 0 }
    }

    fn enter(&mut self, entry: &Entry, view: &mut dyn View) {
        self.tree.enter(entry, view);
        self.path_items += entry.depth;
    }

    fn exit(&mut self, exit: &Exit<'_>) {
        let ended = self.tree.open.last().copied();
        self.tree.exit(exit);
        let (Some(ended), Some(&above)) = (ended, self.tree.open.last()) else { return };
        let frame = &self.tree.frames[ended];
        if self.is_precompiled(frame) && frame.value.unwrap_or_default().is_zero() {
            self.tree.frames[above].calls.pop();
        }
    }

    fn is_precompiled(&self, frame: &CallFrame) -> bool {
        kind(frame.op) == "call" && self.precompiled.contains(&frame.account)
    }

    fn taken(&self) -> usize {
        self.tree.taken() + 100 * self.tree.frames.len() + 4 * self.path_items
    }

    /// Calls `visit` with each frame and its path, a call before those that it makes.
    fn walk(&self, mut visit: impl FnMut(&CallFrame, &[usize])) {
        // A frame, and how many of its calls were visited.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut path: Vec<usize> = Vec::new();
        if let Some(first) = self.tree.frames.first() {
            visit(first, &path);
            open.push((0, 0));
        }
        while let Some((place, visited)) = open.last_mut() {
            let Some(&call) = self.tree.frames[*place].calls.get(*visited) else {
                open.pop();
                path.pop();
                continue;
            };
            path.push(*visited);
            *visited += 1;
            visit(&self.tree.frames[call], &path);
            open.push((call, 0));
        }
    }

    /// Writes a frame; with its place if it is a trace of `trace_transaction`.
    fn write(&self, out: &mut String, frame: &CallFrame, path: &[usize], at: Option<&Place>) {
        out.push('{');
        write_action(out, frame);
        if let Some(place) = at {
            json::member(out, "blockHash");
            json::word(out, place.block_hash);
            json::member(out, "blockNumber");
            json::number(out, place.block_number);
        }
        if let Some(fault) = &frame.fault {
            json::member(out, "error");
            json::text(out, words(fault, self.is_precompiled(frame)));
        }
        json::member(out, "result");
        let has_result = frame.fault.is_none() || frame.is_revert;
        match has_result && frame.op != op::SELFDESTRUCT {
            true => write_result(out, frame),
            false => out.push_str("null"),
        }
        json::member(out, "subtraces");
        json::number(out, frame.calls.len() as u64);
        json::member(out, "traceAddress");
        json::list(out, path, |out, place| json::number(out, *place as u64));
        if let Some(place) = at {
            json::member(out, "transactionHash");
            json::word(out, place.transaction_hash);
            json::member(out, "transactionPosition");
            json::number(out, place.index as u64);
        }
        json::member(out, "type");
        json::text(out, kind(frame.op));
        out.push('}');
    }
}

fn write_result(out: &mut String, frame: &CallFrame) {
    let is_creation = kind(frame.op) == "create";
    out.push('{');
    if is_creation {
        json::member(out, "address");
        json::address(out, frame.account);
    }
    json::member(out, if is_creation { "code" } else { "output" });
    json::bytes(out, frame.output.as_ref().map_or(&[][..], |output| output));
    json::member(out, "gasUsed");
    json::quantity(out, frame.gas_used);
    out.push('}');
}

/// OpenEthereum's words for geth's, where it has some.
fn words(fault: &str, is_precompiled: bool) -> &str {
    match fault {
        "out of gas: write protection" | "write protection" => "Mutable Call In Static Context",
        "insufficient balance for transfer" => "Insufficient balance for transfer",
        fault if fault.starts_with("max code size exceeded") => "Out of gas",
        fault if fault.starts_with("stack limit reached") => "Out of stack",
        fault if fault.starts_with("invalid code:") => "Invalid code",
        fault => match parity(fault) {
            found if found == fault && is_precompiled => "Built-in failed",
            found => found,
        },
    }
}

/// `trace_transaction`: a line for each trace that the filter lets through.
#[derive(Debug)]
pub(crate) struct TraceLister {
    filter: TraceFilter,
    traces: Traces,
}

impl TraceLister {
    pub(crate) fn new(filter: TraceFilter, precompiled: AddressSet) -> Self {
        Self { filter, traces: Traces::new(precompiled) }
    }
}

impl Tracer for TraceLister {
    fn enter(&mut self, entry: &Entry, view: &mut dyn View) {
        self.traces.enter(entry, view);
    }

    fn exit(&mut self, exit: &Exit<'_>) {
        self.traces.exit(exit);
    }

    fn taken(&self) -> usize {
        self.traces.taken()
    }

    fn finish(self: Box<Self>, end: &TransactionEnd<'_>, _: &mut dyn View) -> String {
        let mut out = String::new();
        self.traces.walk(|frame, path| {
            let is_created = frame.fault.is_none() || frame.is_revert;
            let to = (kind(frame.op) != "create" || is_created).then_some(frame.account);
            if !self.filter.passes(Some(frame.from), to) {
                return;
            }
            if !out.is_empty() {
                out.push('\n');
            }
            self.traces.write(&mut out, frame, path, end.place.as_ref());
        });
        out
    }
}

/// `trace_replayTransaction`.
#[derive(Debug)]
pub(crate) struct ParityTracer {
    traces: Option<Traces>,
    instructions: Option<VmTracer>,
    has_state_diff: bool,
}

impl ParityTracer {
    pub(crate) fn new(types: ParityTypes, precompiled: AddressSet) -> Self {
        let instructions = types.vm_trace.then(|| VmTracer::new(precompiled.clone()));
        let traces = types.trace.then(|| Traces::new(precompiled));
        Self { traces, instructions, has_state_diff: types.state_diff }
    }
}

impl Tracer for ParityTracer {
    fn instruction(&mut self, instruction: &Instruction<'_>, _: &Judgement, _: &mut dyn View) {
        if let Some(tracer) = &mut self.instructions {
            tracer.instruction(instruction);
        }
    }

    fn instruction_done(&mut self, end: &InstructionEnd<'_>) {
        if let Some(tracer) = &mut self.instructions {
            tracer.instruction_done(end);
        }
    }

    fn enter(&mut self, entry: &Entry, view: &mut dyn View) {
        if let Some(traces) = &mut self.traces {
            traces.enter(entry, view);
        }
        if let Some(tracer) = &mut self.instructions {
            tracer.enter(entry, view);
        }
    }

    fn exit(&mut self, exit: &Exit<'_>) {
        if let Some(traces) = &mut self.traces {
            traces.exit(exit);
        }
        if let Some(tracer) = &mut self.instructions {
            tracer.exit(exit);
        }
    }

    fn taken(&self) -> usize {
        let traces = self.traces.as_ref().map_or(0, Traces::taken);
        traces + self.instructions.as_ref().map_or(0, VmTracer::taken)
    }

    fn finish(self: Box<Self>, end: &TransactionEnd<'_>, view: &mut dyn View) -> String {
        let mut out = match self.instructions {
            Some(tracer) => tracer.finish(),
            None => "{\"vmTrace\":null".into(),
        };
        json::member(&mut out, "output");
        json::bytes(&mut out, end.result.output().map_or(&[][..], |output| output));
        json::member(&mut out, "stateDiff");
        match self.has_state_diff {
            true => state_diff::write(&mut out, end, view),
            false => out.push_str("null"),
        }
        json::member(&mut out, "trace");
        out.push('[');
        if let Some(traces) = &self.traces {
            traces.walk(|frame, path| {
                if !out.ends_with('[') {
                    out.push(',');
                }
                traces.write(&mut out, frame, path, None);
            });
        }
        out.push_str("]}");
        out
    }
}
