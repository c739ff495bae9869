//! Struct logs: an entry for each instruction, written while it runs.

use super::instruction::{Instruction, Judgement, name};
use super::json;
use super::view::View;
use super::watch::{Exit, InstructionEnd, Tracer, TransactionEnd};
use alloy_primitives::{Address, B256, Bytes, U256};
use revm::bytecode::opcode as op;
use std::collections::{BTreeMap, HashMap};

/// How struct logs are to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StructLogConfig {
    /// Whether memory is there.
    pub enable_memory: bool,
    /// Whether the stack is left out.
    pub disable_stack: bool,
    /// Whether the storage is left out.
    pub disable_storage: bool,
    /// Whether the output of the last call is there.
    pub enable_return_data: bool,
    /// The bytes of entries after which no more are recorded; zero is all.
    pub limit: usize,
}

#[derive(Debug)]
pub(crate) struct StructLogger {
    config: StructLogConfig,
    /// The answer up to the last entry.
    answer: String,
    /// The bytes of entries, without commas.
    recorded: usize,
    /// The running instruction's entry up to its gas cost, and from the stack on.
    parts: Option<[String; 2]>,
    depth: usize,
    storage: HashMap<Address, BTreeMap<U256, U256>>,
    output: Bytes,
    fault: Option<bool>,
}

impl StructLogger {
    pub(crate) fn new(config: StructLogConfig) -> Self {
        Self {
            config,
            answer: "{\"structLogs\":[".into(),
            recorded: 0,
            parts: None,
            depth: 0,
            storage: HashMap::new(),
            output: Bytes::new(),
            fault: None,
        }
    }

    const fn is_full(&self) -> bool {
        self.config.limit != 0 && self.recorded > self.config.limit
    }

    /// Notes a slot that is read or written; all that the contract used is in the entry.
    fn note_slot(&mut self, out: &mut String, instruction: &Instruction<'_>, view: &mut dyn View) {
        let [.., value, slot] = *instruction.stack else {
            if let ([slot], op::SLOAD) = (instruction.stack, instruction.op) {
                let [_, value] = view.slot(instruction.address, *slot);
                self.write_storage(out, instruction.address, *slot, value);
            }
            return;
        };
        let value = match instruction.op {
            op::SLOAD => view.slot(instruction.address, slot)[1],
            _ => value,
        };
        self.write_storage(out, instruction.address, slot, value);
    }

    fn write_storage(&mut self, out: &mut String, address: Address, slot: U256, value: U256) {
        let slots = self.storage.entry(address).or_default();
        slots.insert(slot, value);
        json::member(out, "storage");
        out.push('{');
        for (slot, value) in slots {
            json::member(out, &B256::from(*slot).to_string());
            json::word(out, B256::from(*value));
        }
        out.push('}');
    }

    fn write_operands(&mut self, instruction: &Instruction<'_>, view: &mut dyn View) -> String {
        let mut out = String::new();
        if !self.config.disable_stack {
            json::member(&mut out, "stack");
            json::list(&mut out, instruction.stack, json::quantity);
        }
        if self.config.enable_return_data && !instruction.return_data.is_empty() {
            json::member(&mut out, "returnData");
            json::bytes(&mut out, instruction.return_data);
        }
        if self.config.enable_memory && !instruction.memory.is_empty() {
            json::member(&mut out, "memory");
            json::list(&mut out, instruction.memory.chunks(32), json::bytes);
        }
        if !self.config.disable_storage && matches!(instruction.op, op::SLOAD | op::SSTORE) {
            self.note_slot(&mut out, instruction, view);
        }
        out
    }
}

impl Tracer for StructLogger {
    fn instruction(&mut self, instruction: &Instruction<'_>, _: &Judgement, view: &mut dyn View) {
        if self.is_full() {
            return;
        }
        let mut head = String::from("{");
        json::member(&mut head, "pc");
        json::number(&mut head, instruction.pc as u64);
        json::member(&mut head, "op");
        json::text(&mut head, &name(instruction.op));
        json::member(&mut head, "gas");
        json::number(&mut head, instruction.gas);
        self.depth = instruction.depth;
        let operands = self.write_operands(instruction, view);
        self.parts = Some([head, operands]);
    }

    fn instruction_done(&mut self, end: &InstructionEnd<'_>) {
        let Some([head, operands]) = self.parts.take() else { return };
        if self.recorded > 0 {
            self.answer.push(',');
        }
        let (start, out) = (self.answer.len(), &mut self.answer);
        out.push_str(&head);
        json::member(out, "gasCost");
        json::number(out, end.cost);
        json::member(out, "depth");
        json::number(out, self.depth as u64);
        if let Some(fault) = end.fault {
            json::member(out, "error");
            json::text(out, fault);
        }
        out.push_str(&operands);
        if end.refund != 0 {
            json::member(out, "refund");
            json::number(out, end.refund);
        }
        out.push('}');
        self.recorded += out.len() - start;
    }

    fn exit(&mut self, exit: &Exit<'_>) {
        if exit.depth == 0 {
            self.output = exit.output.clone();
            self.fault = exit.fault.map(|_| exit.is_revert);
        }
    }

    fn taken(&self) -> usize {
        self.answer.len()
    }

    fn finish(mut self: Box<Self>, end: &TransactionEnd<'_>, _: &mut dyn View) -> String {
        let output: &[u8] = if self.fault == Some(false) { &[] } else { &self.output };
        let out = &mut self.answer;
        out.push(']');
        json::member(out, "gas");
        json::number(out, end.result.tx_gas_used());
        json::member(out, "failed");
        out.push_str(if self.fault.is_some() { "true" } else { "false" });
        json::member(out, "returnValue");
        json::bytes(out, output);
        out.push('}');
        self.answer
    }
}
