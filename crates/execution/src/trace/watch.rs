//! The events of a transaction while it runs, as geth's tracers are told of them.

use super::instruction::{Instruction, Judgement, name};
use super::precompiled::precompiled_fault;
use super::view::{Sent, View};
use crate::deadline::{Clock, Deadline};
use alloy_primitives::{Address, B256, Bytes, Log, TxKind, U256};
use revm::bytecode::opcode as op;
use revm::context_interface::result::ExecutionResult;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{
    InputsTr as _, Jumps as _, LegacyBytecode as _, LoopControl as _, MemoryTr as _,
    ReturnData as _, RuntimeFlag as _,
};
use revm::interpreter::{
    CallInputs, CallOutcome, CallScheme, CallValue, CreateInputs, CreateOutcome, CreateScheme,
    FrameInput, Gas, InstructionResult, Interpreter, InterpreterAction, InterpreterResult,
};
use revm::primitives::hardfork::SpecId;
use revm::state::EvmState;
use std::fmt;

/// A tracer: it is told of what a transaction does, and writes its answer as JSON.
pub(crate) trait Tracer: fmt::Debug {
    /// An instruction is about to run, or to fail.
    fn instruction(&mut self, _: &Instruction<'_>, _: &Judgement, _: &mut dyn View) {}
    /// It has run, or failed.
    fn instruction_done(&mut self, _: &InstructionEnd<'_>) {}
    /// A frame begins.
    fn enter(&mut self, _: &Entry, _: &mut dyn View) {}
    /// The last open frame ends.
    fn exit(&mut self, _: &Exit<'_>) {}
    /// The last open frame emits a log, the transaction's one at `index` so far.
    fn log(&mut self, _: &Log, _index: usize) {}
    /// About the bytes of the answer so far.
    fn taken(&self) -> usize;
    /// The answer, after the transaction, before its changes are in the state.
    fn finish(self: Box<Self>, end: &TransactionEnd<'_>, view: &mut dyn View) -> String;
}

/// How an instruction ended.
#[derive(Debug)]
pub(crate) struct InstructionEnd<'a> {
    /// Its gas: of a call with what its frame gets, of a creation without.
    pub(crate) cost: u64,
    /// Why it could not begin.
    pub(crate) fault: Option<&'a str>,
    /// The gas to be refunded at the end, as counted so far.
    pub(crate) refund: u64,
}

/// A frame that begins: a call, a creation, or the transfer of a contract that self-destructs.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Frames that are open already.
    pub(crate) depth: usize,
    /// The instruction that makes such a frame.
    pub(crate) op: u8,
    pub(crate) from: Address,
    /// The account that is called, created or paid.
    pub(crate) to: Address,
    pub(crate) input: Bytes,
    pub(crate) gas: u64,
    pub(crate) value: Option<U256>,
}

/// How a frame ended.
#[derive(Debug)]
pub(crate) struct Exit<'a> {
    /// Frames that stay open.
    pub(crate) depth: usize,
    pub(crate) output: &'a Bytes,
    pub(crate) gas_used: u64,
    /// Why it failed, in geth's words.
    pub(crate) fault: Option<&'a str>,
    /// Whether it failed by REVERT.
    pub(crate) is_revert: bool,
}

/// How a transaction ended.
#[derive(Debug)]
pub(crate) struct TransactionEnd<'a> {
    pub(crate) result: &'a ExecutionResult,
    pub(crate) gas_limit: u64,
    /// The accounts that it has loaded, as they are after it.
    pub(crate) state: &'a EvmState,
    /// Where it is; a call is in no block.
    pub(crate) place: Option<Place>,
}

/// Where a transaction is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) block_hash: B256,
    pub(crate) block_number: u64,
    pub(crate) transaction_hash: B256,
    pub(crate) index: usize,
}

/// Why a run was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceStop {
    Time,
    Bytes,
}

/// Follows a transaction for a tracer.
#[derive(Debug)]
pub(crate) struct Watch {
    tracer: Box<dyn Tracer>,
    clock: Clock,
    /// The most bytes of the answer.
    bytes: usize,
    frames: Vec<OpenFrame>,
    /// Whether the first frame has begun.
    has_begun: bool,
    running: Option<RunningInstruction>,
    pub(crate) stopped: Option<TraceStop>,
}

#[derive(Debug)]
struct OpenFrame {
    to: Address,
    input: Bytes,
    is_creation: bool,
    /// Refunds of the frames above, and of its own.
    refunds: [i64; 2],
    /// Why its last instruction failed.
    fault: Option<String>,
}

#[derive(Debug)]
struct RunningInstruction {
    op: u8,
    gas: u64,
    judgement: Judgement,
    /// The frame that a self-destruction makes.
    destruction: Option<Entry>,
}

impl Watch {
    pub(crate) fn new(tracer: Box<dyn Tracer>, deadline: Deadline, bytes: usize) -> Self {
        let (frames, running, stopped) = (Vec::new(), None, None);
        let (clock, has_begun) = (Clock::new(deadline), false);
        Self { tracer, clock, bytes, frames, has_begun, running, stopped }
    }

    /// The tracer's answer, or why the run was stopped.
    pub(crate) fn finish(
        mut self,
        end: &TransactionEnd<'_>,
        view: &mut dyn View,
    ) -> Result<String, TraceStop> {
        if let Some(stop) = self.stopped {
            return Err(stop);
        }
        if !self.has_begun {
            self.tell_of_no_frame(end, view);
        }
        Ok(self.tracer.finish(end, view))
    }

    /// Tells of a transaction whose gas was used up before its first frame (EIP-2780), as of a
    /// frame in which it was.
    fn tell_of_no_frame(&mut self, end: &TransactionEnd<'_>, view: &mut dyn View) {
        let Sent { from, to, nonce, input, value } = view.sent();
        let (op, to) = match to {
            TxKind::Call(to) => (op::CALL, to),
            TxKind::Create => (op::CREATE, from.create(nonce)),
        };
        let (gas, value) = (end.gas_limit, Some(value));
        self.tracer.enter(&Entry { depth: 0, op, from, to, input, gas, value }, view);
        let (output, gas_used) = (&Bytes::new(), end.result.tx_gas_used());
        let fault = failure(InstructionResult::OutOfGas, op);
        let fault = Some(fault.as_str());
        self.tracer.exit(&Exit { depth: 0, output, gas_used, fault, is_revert: false });
    }

    fn look_at_bounds(&mut self) {
        if self.tracer.taken() > self.bytes {
            self.stopped.get_or_insert(TraceStop::Bytes);
        }
        if self.clock.step() {
            self.stopped.get_or_insert(TraceStop::Time);
        }
    }

    pub(crate) fn step(
        &mut self,
        interpreter: &mut Interpreter<EthInterpreter>,
        view: &mut dyn View,
    ) {
        self.look_at_bounds();
        if self.stopped.is_some() {
            return interpreter.halt(InstructionResult::OutOfGas);
        }
        // The init code of a contract may be empty; geth runs no instruction then.
        if interpreter.bytecode.bytecode_len() == 0 {
            return;
        }
        let memory = interpreter.memory.slice(0..interpreter.memory.size());
        let instruction = Instruction {
            op: interpreter.bytecode.opcode(),
            pc: interpreter.bytecode.pc(),
            gas: interpreter.gas.remaining(),
            depth: self.frames.len(),
            address: interpreter.input.target_address(),
            is_static: interpreter.runtime_flag.is_static(),
            stack: interpreter.stack.data(),
            memory: &memory,
            return_data: interpreter.return_data.buffer(),
        };
        let judgement = instruction.judge(view);
        let destruction = (instruction.op == op::SELFDESTRUCT && judgement.fault.is_none())
            .then(|| self.destruction(&instruction, view));
        self.tracer.instruction(&instruction, &judgement, view);
        let Instruction { op, gas, .. } = instruction;
        self.running = Some(RunningInstruction { op, gas, judgement, destruction });
    }

    fn destruction(&self, instruction: &Instruction<'_>, view: &mut dyn View) -> Entry {
        let heir = instruction.stack.last().copied().unwrap_or_default();
        Entry {
            depth: self.frames.len(),
            op: op::SELFDESTRUCT,
            from: instruction.address,
            to: Address::from_word(heir.into()),
            input: Bytes::new(),
            gas: 0,
            value: Some(view.account(instruction.address).balance),
        }
    }

    pub(crate) fn step_end(
        &mut self,
        interpreter: &mut Interpreter<EthInterpreter>,
        view: &mut dyn View,
    ) {
        let Some(running) = self.running.take() else { return };
        let left = interpreter.gas.remaining();
        let (mut given, mut result, mut own) = (0, None, interpreter.gas.refunded());
        match interpreter.bytecode.action() {
            Some(InterpreterAction::NewFrame(FrameInput::Create(inputs))) => {
                given = inputs.gas_limit();
            }
            Some(InterpreterAction::Return(returned)) => result = Some(returned.result),
            _ => {}
        }
        let mut cost = running.gas.saturating_sub(left + given);
        let mut fault = None;
        if let Some(result) = result.filter(|result| !result.is_ok()) {
            let judged = running.judgement;
            own += judged.refund;
            let has_begun = has_begun(result) || !judged.is_defined;
            let words = match judged.is_defined {
                true => failure(result, running.op),
                false => failure(InstructionResult::OpcodeNotFound, running.op),
            };
            if result != InstructionResult::Revert {
                cost = judged.cost;
            }
            fault = judged.fault.or_else(|| (!has_begun).then(|| words.clone()));
            let told = fault.clone().unwrap_or(words);
            if let Some(frame) = self.frames.last_mut() {
                frame.fault = Some(told);
            }
        }
        let above = self.frames.last().map_or(0, |frame| frame.refunds[0]);
        if let Some(frame) = self.frames.last_mut() {
            frame.refunds[1] = own;
        }
        let refund = u64::try_from(above + own).unwrap_or_default();
        self.tracer.instruction_done(&InstructionEnd { cost, fault: fault.as_deref(), refund });
        if let (Some(InstructionResult::SelfDestruct), Some(entry)) = (result, running.destruction)
        {
            self.tracer.enter(&entry, view);
            let (output, depth) = (&Bytes::new(), entry.depth);
            let exit = Exit { depth, output, gas_used: 0, fault: None, is_revert: false };
            self.tracer.exit(&exit);
        }
    }

    pub(crate) fn call(&mut self, inputs: &CallInputs, input: Bytes, view: &mut dyn View) {
        let (op, from, to) = match inputs.scheme {
            CallScheme::Call => (op::CALL, inputs.caller, inputs.target_address),
            CallScheme::CallCode => (op::CALLCODE, inputs.caller, inputs.bytecode_address),
            CallScheme::DelegateCall => {
                (op::DELEGATECALL, inputs.target_address, inputs.bytecode_address)
            }
            CallScheme::StaticCall => (op::STATICCALL, inputs.caller, inputs.target_address),
        };
        let (CallValue::Transfer(value) | CallValue::Apparent(value)) = inputs.value;
        let value = (op != op::STATICCALL).then_some(value);
        let (gas, depth) = (inputs.gas_limit, self.frames.len());
        self.enter(Entry { depth, op, from, to, input, gas, value }, view);
    }

    pub(crate) fn create(&mut self, inputs: &CreateInputs, view: &mut dyn View) {
        let op = match inputs.scheme() {
            CreateScheme::Create2 { .. } => op::CREATE2,
            _ => op::CREATE,
        };
        let from = inputs.caller();
        let to = inputs.created_address(view.account(from).nonce);
        let (input, gas) = (inputs.init_code().clone(), inputs.gas_limit());
        let (depth, value) = (self.frames.len(), Some(inputs.value()));
        self.enter(Entry { depth, op, from, to, input, gas, value }, view);
    }

    fn enter(&mut self, entry: Entry, view: &mut dyn View) {
        let above = match self.frames.last() {
            Some(frame) => frame.refunds.iter().sum(),
            None => view.authorization_refund() as i64,
        };
        self.has_begun = true;
        if self.stopped.is_none() {
            self.tracer.enter(&entry, view);
        }
        self.frames.push(OpenFrame {
            to: entry.to,
            input: entry.input,
            is_creation: matches!(entry.op, op::CREATE | op::CREATE2),
            refunds: [above, 0],
            fault: None,
        });
    }

    pub(crate) fn call_end(&mut self, outcome: &CallOutcome, view: &dyn View) {
        self.exit(&outcome.result, true, view);
    }

    pub(crate) fn create_end(&mut self, outcome: &CreateOutcome, view: &dyn View) {
        self.exit(&outcome.result, outcome.address.is_some(), view);
    }

    fn exit(&mut self, result: &InterpreterResult, has_address: bool, view: &dyn View) {
        let Some(frame) = self.frames.pop() else { return };
        if self.stopped.is_some() {
            return;
        }
        let kind = result.result;
        let is_ok = kind.is_ok() && has_address;
        let fault = (!is_ok).then(|| frame_fault(&frame, result, view.spec()));
        let gas_used = if kind.is_ok_or_revert() { spent(&result.gas) } else { result.gas.limit() };
        let (depth, output) = (self.frames.len(), &result.output);
        let is_revert = kind == InstructionResult::Revert;
        let fault = fault.as_deref();
        self.tracer.exit(&Exit { depth, output, gas_used, fault, is_revert });
    }

    pub(crate) fn log(&mut self, log: &Log, view: &dyn View) {
        if self.stopped.is_none() {
            self.tracer.log(log, view.logs().saturating_sub(1));
        }
    }
}

const fn spent(gas: &Gas) -> u64 {
    gas.limit().saturating_sub(gas.remaining())
}

const STORAGE_OUT_OF_GAS: &str = "contract creation code storage out of gas";

/// Why a frame failed, in geth's words.
fn frame_fault(frame: &OpenFrame, result: &InterpreterResult, spec: SpecId) -> String {
    let size = result.output.len();
    let (limit, amsterdam) = (24_576, spec.is_enabled_in(SpecId::AMSTERDAM));
    match (result.result, &frame.fault) {
        (_, Some(fault)) => fault.clone(),
        // A creation that could not begin: its caller has the last nonce.
        (InstructionResult::Return, _) => "nonce uint64 overflow".into(),
        // geth looks for the gas of the code first, but in Amsterdam.
        (InstructionResult::CreateContractSizeLimit, _)
            if !amsterdam && result.gas.remaining() < 200 * size as u64 =>
        {
            STORAGE_OUT_OF_GAS.into()
        }
        (InstructionResult::CreateContractSizeLimit, _) => {
            let limit = if amsterdam { 65_536 } else { limit };
            format!("max code size exceeded: code size {size} limit {limit}")
        }
        (InstructionResult::PrecompileError, _) => {
            precompiled_fault(frame.to, &frame.input, result.gas.limit()).into()
        }
        // Its init code has run, but not all of its code can be paid for.
        (InstructionResult::OutOfGas, _) if frame.is_creation => STORAGE_OUT_OF_GAS.into(),
        (kind, _) => failure(kind, op::INVALID),
    }
}

/// Whether an instruction that failed so had begun, so that its own entry has no fault.
const fn has_begun(result: InstructionResult) -> bool {
    use InstructionResult::*;
    matches!(
        result,
        Revert
            | InvalidJump
            | OutOfOffset
            | OpcodeNotFound
            | NotActivated
            | InvalidFEOpcode
            | StateChangeDuringStaticCall
    )
}

/// Why an instruction or a frame failed, in geth's words.
fn failure(result: InstructionResult, op: u8) -> String {
    use InstructionResult::*;
    let words = match result {
        Revert => "execution reverted",
        CallTooDeep => "max call depth exceeded",
        OutOfFunds | OverflowPayment => "insufficient balance for transfer",
        InvalidJump => "invalid jump destination",
        OutOfOffset => "return data out of bounds",
        CreateCollision => "contract address collision",
        NonceOverflow => "nonce uint64 overflow",
        CreateContractStartingWithEF => "invalid code: must not begin with 0xef",
        CreateContractSizeLimit => "max code size exceeded",
        CreateInitCodeSizeLimit => "max initcode size exceeded",
        StateChangeDuringStaticCall | CallNotAllowedInsideStatic => "write protection",
        StackUnderflow => "stack underflow",
        StackOverflow => "stack limit reached",
        OpcodeNotFound | NotActivated | InvalidFEOpcode | InvalidImmediateEncoding => {
            return format!("invalid opcode: {}", name(op));
        }
        _ => "out of gas",
    };
    words.into()
}
