//! `erc7562Tracer`: the tree of calls, with what the rules of account abstraction ask of each
//! (ERC-7562): the slots, opcodes and codes that it uses.

use super::calls::{CallTracer, CallTracerConfig};
use super::instruction::{Instruction, Judgement};
use super::json;
use super::view::View;
use super::watch::{Entry, Exit, Tracer, TransactionEnd};
use alloy_primitives::{Address, B256, Log, U256};
use revm::bytecode::opcode as op;
use std::collections::{BTreeMap, BTreeSet};

/// How the tree is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erc7562TracerConfig {
    /// The opcodes that are not counted; without a set, those that every contract may use.
    pub ignored_opcodes: Option<BTreeSet<u8>>,
    /// Whether logs are there.
    pub with_log: bool,
}

#[derive(Debug)]
pub(crate) struct Erc7562Tracer {
    ignored_opcodes: BTreeSet<u8>,
    tree: CallTracer,
    /// The uses of each frame of the tree.
    used: Vec<Used>,
    /// The last instruction, and the top of its stack.
    last: Option<(u8, Option<U256>)>,
    /// The preimages of hashes, in order.
    preimages: BTreeSet<Vec<u8>>,
    taken: usize,
}

/// The slots, opcodes and codes that a frame uses.
#[derive(Debug, Default)]
struct Used {
    /// Slots that are read before they are written, with their values.
    reads: BTreeMap<U256, U256>,
    writes: BTreeMap<U256, u64>,
    transient_reads: BTreeMap<U256, u64>,
    transient_writes: BTreeMap<U256, u64>,
    /// The accounts whose codes are looked at, but for whether they have one.
    code_accesses: Vec<Address>,
    opcodes: BTreeMap<u8, u64>,
    /// The length of an account's code when it was first used, and the opcode that did.
    code_sizes: BTreeMap<Address, (usize, u8)>,
}

/// About the bytes of a frame in the answer, beyond those of `callTracer`.
const FRAME_BYTES: usize = 250;

/// About the bytes of a slot, an opcode or an account in the answer.
const ENTRY_BYTES: usize = 150;

const fn looks_at_code(op: u8) -> bool {
    matches!(op, op::EXTCODEHASH | op::EXTCODESIZE | op::EXTCODECOPY)
}

const fn calls(op: u8) -> bool {
    matches!(op, op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL)
}

/// The opcodes that every contract may use.
fn harmless_opcodes() -> BTreeSet<u8> {
    let arithmetic = [
        op::POP,
        op::ADD,
        op::SUB,
        op::MUL,
        op::DIV,
        op::EQ,
        op::LT,
        op::GT,
        op::SLT,
        op::SGT,
        op::SHL,
        op::SHR,
        op::AND,
        op::OR,
        op::NOT,
        op::ISZERO,
    ];
    (op::PUSH0..=op::SWAP16).chain(arithmetic).collect()
}

impl Erc7562Tracer {
    pub(crate) fn new(config: &Erc7562TracerConfig, first_log: usize) -> Self {
        let calls = CallTracerConfig { only_top_call: false, with_log: config.with_log };
        Self {
            ignored_opcodes: config.ignored_opcodes.clone().unwrap_or_else(harmless_opcodes),
            tree: CallTracer::new(calls, first_log),
            used: Vec::new(),
            last: None,
            preimages: BTreeSet::new(),
            taken: 0,
        }
    }

    fn note_preimage(&mut self, instruction: &Instruction<'_>) {
        let [.., length, offset] = *instruction.stack else { return };
        if let Some(preimage) = instruction.padded_memory(offset, length) {
            let bytes = 10 + 2 * preimage.len();
            if self.preimages.insert(preimage) {
                self.taken += bytes;
            }
        }
    }
}

impl Used {
    /// Notes a slot that is read or written.
    fn note_slot(&mut self, instruction: &Instruction<'_>, view: &mut dyn View) {
        let Some(&slot) = instruction.stack.last() else { return };
        let counts = match instruction.op {
            op::SLOAD => {
                if !self.reads.contains_key(&slot) && !self.writes.contains_key(&slot) {
                    self.reads.insert(slot, view.slot(instruction.address, slot)[1]);
                }
                return;
            }
            op::SSTORE => &mut self.writes,
            op::TLOAD => &mut self.transient_reads,
            op::TSTORE => &mut self.transient_writes,
            _ => return,
        };
        *counts.entry(slot).or_default() += 1;
    }

    /// Notes the account whose code is used.
    fn note_code(&mut self, instruction: &Instruction<'_>, view: &mut dyn View) {
        let place = usize::from(calls(instruction.op));
        let operand = instruction.stack.len().checked_sub(place + 1);
        let Some(operand) = operand.map(|at| instruction.stack[at]) else { return };
        let address = Address::from_word(operand.into());
        self.code_sizes.entry(address).or_insert_with(|| {
            let account = view.account(address);
            (view.code(&account).len(), instruction.op)
        });
    }

    fn entries(&self) -> usize {
        self.reads.len()
            + self.writes.len()
            + self.transient_reads.len()
            + self.transient_writes.len()
            + self.code_accesses.len()
            + self.opcodes.len()
            + self.code_sizes.len()
    }

    fn write(&self, out: &mut String) {
        json::member(out, "accessedSlots");
        out.push('{');
        json::member(out, "reads");
        write_map(
            out,
            &self.reads,
            |slot| B256::from(*slot).to_string(),
            |out, value| {
                out.push('[');
                json::word(out, B256::from(*value));
                out.push(']');
            },
        );
        for (name, counts) in [
            ("writes", &self.writes),
            ("transientReads", &self.transient_reads),
            ("transientWrites", &self.transient_writes),
        ] {
            json::member(out, name);
            write_map(
                out,
                counts,
                |slot| B256::from(*slot).to_string(),
                |out, count| {
                    json::number(out, *count);
                },
            );
        }
        out.push('}');
        json::member(out, "extCodeAccessInfo");
        json::list(out, &self.code_accesses, |out, address| json::address(out, *address));
        json::member(out, "usedOpcodes");
        write_map(
            out,
            &self.opcodes,
            |op| format!("{op:#x}"),
            |out, count| {
                json::number(out, *count);
            },
        );
        json::member(out, "contractSize");
        write_map(
            out,
            &self.code_sizes,
            |address| format!("{address:#x}"),
            |out, (size, op)| {
                out.push('{');
                json::member(out, "contractSize");
                json::number(out, *size as u64);
                json::member(out, "opcode");
                json::number(out, u64::from(*op));
                out.push('}');
            },
        );
    }
}

fn write_map<K, V>(
    out: &mut String,
    map: &BTreeMap<K, V>,
    name: impl Fn(&K) -> String,
    mut write: impl FnMut(&mut String, &V),
) {
    out.push('{');
    for (key, value) in map {
        json::member(out, &name(key));
        write(out, value);
    }
    out.push('}');
}

/// Whether geth counts this among the faults of too little gas.
fn is_out_of_gas(fault: &str) -> bool {
    fault == "contract creation code storage out of gas"
        || fault == "out of gas"
        || fault.starts_with("out of gas:")
}

impl Tracer for Erc7562Tracer {
    fn instruction(&mut self, instruction: &Instruction<'_>, _: &Judgement, view: &mut dyn View) {
        let op = instruction.op;
        if matches!(op, op::RETURN | op::REVERT) {
            self.last = None;
        }
        let Some(&place) = self.tree.open.last() else { return };
        let used = &mut self.used[place];
        let entries = used.entries();
        if let Some((last, Some(top))) = self.last
            && looks_at_code(last)
            && !(last == op::EXTCODESIZE && op == op::ISZERO)
        {
            used.code_accesses.push(Address::from_word(top.into()));
        }
        if looks_at_code(op) || calls(op) {
            used.note_code(instruction, view);
        }
        if matches!(self.last, Some((op::GAS, _))) && !calls(op) {
            *used.opcodes.entry(op::GAS).or_default() += 1;
        }
        if op != op::GAS && !self.ignored_opcodes.contains(&op) {
            *used.opcodes.entry(op).or_default() += 1;
        }
        used.note_slot(instruction, view);
        self.taken += ENTRY_BYTES * (used.entries() - entries);
        if op == op::KECCAK256 {
            self.note_preimage(instruction);
        }
        self.last = Some((op, instruction.stack.last().copied()));
    }

    fn enter(&mut self, entry: &Entry, view: &mut dyn View) {
        self.tree.enter(entry, view);
        self.used.push(Used::default());
        self.taken += FRAME_BYTES;
    }

    fn exit(&mut self, exit: &Exit<'_>) {
        self.tree.exit(exit);
    }

    fn log(&mut self, log: &Log, index: usize) {
        self.tree.log(log, index);
    }

    fn taken(&self) -> usize {
        self.tree.taken() + self.taken
    }

    fn finish(mut self: Box<Self>, end: &TransactionEnd<'_>, _: &mut dyn View) -> String {
        self.tree.end(end);
        let Self { tree, used, preimages, .. } = *self;
        let mut out = String::new();
        if used.is_empty() {
            return "null".into();
        }
        tree.write(&mut out, 0, false, &mut |out: &mut String, place: usize| {
            used[place].write(out);
            // Of the first frame geth does not say it.
            let fault = tree.frames[place].fault.as_deref().filter(|_| place > 0);
            json::member(out, "outOfGas");
            out.push_str(if fault.is_some_and(is_out_of_gas) { "true" } else { "false" });
            if place == 0 && !preimages.is_empty() {
                json::member(out, "keccak");
                json::list(out, &preimages, |out, preimage| json::bytes(out, preimage));
            }
        });
        out
    }
}
