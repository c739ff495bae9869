//! `vmTrace`: the instructions of a transaction, those of a call below the one that makes it.

use super::instruction::{Instruction, name};
use super::json;
use super::view::View;
use super::watch::{Entry, Exit, InstructionEnd};
use alloy_primitives::map::AddressSet;
use alloy_primitives::{Address, Bytes, U256};
use revm::bytecode::opcode::{self as op, OPCODE_INFO};

#[derive(Debug)]
pub(super) struct VmTracer {
    /// The precompiled contracts, which have no instructions.
    precompiled: AddressSet,
    /// The beginning of an object, with `vmTrace` as its last member.
    out: String,
    frames: Vec<VmFrame>,
}

/// A frame that has not ended.
#[derive(Debug)]
struct VmFrame {
    /// Whether it has instructions.
    is_shown: bool,
    /// The last instruction, of which it is not known yet what it has left behind.
    last: Option<RunInstruction>,
}

#[derive(Debug)]
struct RunInstruction {
    op: u8,
    gas: u64,
    cost: u64,
    has_failed: bool,
    /// Whether a frame was written below it.
    has_sub: bool,
    /// The bytes of memory that it writes.
    memory: Option<[U256; 2]>,
    /// The slot that it writes, and the value.
    store: Option<[U256; 2]>,
}

impl RunInstruction {
    /// Writes the rest of an instruction, after which the gas, the stack and the memory are these.
    fn write(&self, out: &mut String, gas: u64, stack: &[U256], memory: &[u8]) {
        if !self.has_sub {
            out.push_str(",\"sub\":null");
        }
        json::member(out, "ex");
        if self.has_failed {
            out.push_str("null}");
            return;
        }
        out.push('{');
        json::member(out, "mem");
        match self.written(memory) {
            Some((offset, bytes)) => {
                out.push('{');
                json::member(out, "data");
                json::bytes(out, bytes);
                json::member(out, "off");
                json::number(out, offset as u64);
                out.push('}');
            }
            None => out.push_str("null"),
        }
        json::member(out, "push");
        let pushed = OPCODE_INFO[usize::from(self.op)].map_or(0, |info| info.outputs());
        let kept = stack.len().saturating_sub(usize::from(pushed));
        json::list(out, &stack[kept..], json::quantity);
        json::member(out, "store");
        match self.store {
            Some([slot, value]) => {
                out.push('{');
                json::member(out, "key");
                json::quantity(out, slot);
                json::member(out, "val");
                json::quantity(out, value);
                out.push('}');
            }
            None => out.push_str("null"),
        }
        json::member(out, "used");
        json::number(out, gas);
        out.push_str("}}");
    }

    /// The bytes that it has written to memory, and their offset.
    fn written<'a>(&self, memory: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let [offset, length] = self.memory?.map(|word| usize::try_from(word).ok());
        let (offset, length) = (offset?, length?);
        let bytes = memory.get(offset..offset.checked_add(length)?)?;
        (!bytes.is_empty()).then_some((offset, bytes))
    }
}

/// The bytes of memory that an instruction writes, or makes memory grow to: offset and length.
fn memory_written(op: u8, stack: &[U256]) -> Option<[U256; 2]> {
    let operand = |index: usize| stack.len().checked_sub(index + 1).map(|place| stack[place]);
    let span = |offset: usize, length: usize| Some([operand(offset)?, operand(length)?]);
    match op {
        op::MLOAD | op::MSTORE => Some([operand(0)?, U256::from(32)]),
        op::MSTORE8 => Some([operand(0)?, U256::ONE]),
        op::CALLDATACOPY | op::CODECOPY | op::RETURNDATACOPY | op::MCOPY => span(0, 2),
        op::EXTCODECOPY => span(1, 3),
        op::CALL | op::CALLCODE => span(5, 6),
        op::DELEGATECALL | op::STATICCALL => span(4, 5),
        _ => None,
    }
}

/// The code that a frame runs, at the end of a delegation (EIP-7702) the delegate's.
fn code_of(entry: &Entry, view: &mut dyn View) -> Bytes {
    if matches!(entry.op, op::CREATE | op::CREATE2) {
        return entry.input.clone();
    }
    let account = view.account(entry.to);
    let code = view.code(&account);
    match code.strip_prefix(&[0xef, 0x01, 0x00]).and_then(|it| Address::try_from(it).ok()) {
        Some(delegate) => {
            let account = view.account(delegate);
            view.code(&account)
        }
        None => code,
    }
}

impl VmTracer {
    pub(super) fn new(precompiled: AddressSet) -> Self {
        Self { precompiled, out: "{\"vmTrace\":".into(), frames: Vec::new() }
    }

    /// Completes the last instruction of the running frame.
    fn complete(&mut self, gas: Option<u64>, stack: &[U256], memory: &[u8]) {
        let Some(last) = self.frames.last_mut().and_then(|frame| frame.last.take()) else { return };
        let left = gas.unwrap_or_else(|| last.gas.saturating_sub(last.cost));
        last.write(&mut self.out, left, stack, memory);
    }

    pub(super) fn instruction(&mut self, instruction: &Instruction<'_>) {
        self.complete(Some(instruction.gas), instruction.stack, instruction.memory);
        let Instruction { op, gas, stack, .. } = *instruction;
        let out = &mut self.out;
        if !out.ends_with('[') {
            out.push(',');
        }
        out.push('{');
        json::member(out, "op");
        json::text(out, &name(op));
        json::member(out, "pc");
        json::number(out, instruction.pc as u64);
        let store = match *stack {
            [.., value, slot] if op == op::SSTORE => Some([slot, value]),
            _ => None,
        };
        let memory = memory_written(op, stack);
        let (cost, has_failed, has_sub) = (0, false, false);
        if let Some(frame) = self.frames.last_mut() {
            let last = RunInstruction { op, gas, cost, has_failed, has_sub, memory, store };
            frame.last = Some(last);
        }
    }

    pub(super) fn instruction_done(&mut self, end: &InstructionEnd<'_>) {
        let last = self.frames.last_mut().and_then(|frame| frame.last.as_mut());
        let Some(last) = last else { return };
        last.cost = end.cost;
        last.has_failed = end.fault.is_some();
        json::member(&mut self.out, "cost");
        json::number(&mut self.out, end.cost);
    }

    pub(super) fn enter(&mut self, entry: &Entry, view: &mut dyn View) {
        let is_shown = entry.op != op::SELFDESTRUCT
            && (entry.depth == 0 || !self.precompiled.contains(&entry.to));
        if is_shown {
            let caller = self.frames.last_mut().and_then(|frame| frame.last.as_mut());
            if let Some(caller) = caller {
                caller.has_sub = true;
                json::member(&mut self.out, "sub");
            }
            self.out.push('{');
            json::member(&mut self.out, "code");
            json::bytes(&mut self.out, &code_of(entry, view));
            json::member(&mut self.out, "ops");
            self.out.push('[');
        }
        self.frames.push(VmFrame { is_shown, last: None });
    }

    pub(super) fn exit(&mut self, exit: &Exit<'_>) {
        let last = self.frames.last_mut().and_then(|frame| frame.last.as_mut());
        if let Some(last) = last {
            let ends = matches!(last.op, op::STOP | op::RETURN | op::REVERT | op::SELFDESTRUCT);
            last.has_failed |= exit.fault.is_some() && !ends;
        }
        self.complete(None, &[], &[]);
        if self.frames.pop().is_some_and(|frame| frame.is_shown) {
            self.out.push_str("]}");
        }
    }

    /// The bytes so far.
    pub(super) const fn taken(&self) -> usize {
        self.out.len()
    }

    /// The beginning of an object, with `vmTrace` as its member.
    pub(super) fn finish(mut self) -> String {
        if self.out.ends_with(':') {
            self.out.push_str("null");
        }
        self.out
    }
}
