//! The logs of a simulated call, and its transfers of ether as logs.

use super::SimulatedLog;
use crate::codes::Context;
use alloy_primitives::{Address, Log, LogData, U256, address, b256};
use revm::bytecode::opcode;
use revm::context_interface::JournalTr;
use revm::inspector::Inspector;
use revm::interpreter::interpreter_types::{InputsTr, Jumps};
use revm::interpreter::{
    CallInputs, CallOutcome, CallScheme, CreateInputs, CreateOutcome, InstructionResult,
    Interpreter,
};
use witness::State;

/// The address of logs of transfers (ERC-7528), and keccak-256 of
/// `Transfer(address,address,uint256)`.
const ETHER: Address = address!("0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
const TRANSFER: alloy_primitives::B256 =
    b256!("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

/// Keeps the logs of open frames, as the tracer of geth's simulation (`internal/ethapi/
/// logtracer.go`): those of a frame that fails are dropped, and count among the block's all the
/// same.
#[derive(Debug, Default)]
pub(super) struct CallLogs {
    traces_transfers: bool,
    frames: Vec<Vec<SimulatedLog>>,
    /// The index of the block's next log.
    next: u64,
    /// The transfer of the frame's SELFDESTRUCT moves, if it comes to that.
    ending: Option<Transfer>,
}

#[derive(Debug, Clone, Copy)]
struct Transfer {
    from: Address,
    to: Address,
    value: U256,
}

impl CallLogs {
    pub(super) fn new(traces_transfers: bool) -> Self {
        Self { traces_transfers, ..Self::default() }
    }

    /// Begins a call.
    pub(super) fn begin(&mut self) {
        self.frames.clear();
        self.ending = None;
    }

    /// The logs of the call that has ended.
    pub(super) fn take(&mut self) -> Vec<SimulatedLog> {
        std::mem::take(&mut self.frames).into_iter().next().unwrap_or_default()
    }

    fn add(&mut self, log: Log) {
        if let Some(frame) = self.frames.last_mut() {
            frame.push(SimulatedLog { index: self.next, log });
            self.next += 1;
        }
    }

    fn transfer(&mut self, Transfer { from, to, value }: Transfer) {
        if self.traces_transfers && !value.is_zero() {
            let topics = vec![TRANSFER, from.into_word(), to.into_word()];
            let data = LogData::new_unchecked(topics, value.to_be_bytes_vec().into());
            self.add(Log { address: ETHER, data });
        }
    }

    fn enter(&mut self, transfer: Option<Transfer>) {
        self.frames.push(Vec::new());
        self.ending = None;
        if let Some(transfer) = transfer {
            self.transfer(transfer);
        }
    }

    fn exit(&mut self, result: InstructionResult, success: bool) {
        if let (Some(transfer), InstructionResult::SelfDestruct) = (self.ending.take(), result) {
            self.transfer(transfer);
        }
        if self.frames.len() < 2 {
            if !success {
                self.frames.clear();
            }
            return;
        }
        let ended = self.frames.pop().unwrap_or_default();
        if let (true, Some(caller)) = (success, self.frames.last_mut()) {
            caller.extend(ended);
        }
    }
}

impl<'a, S: State> Inspector<Context<'a, S>> for CallLogs {
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut Context<'a, S>) {
        if !self.traces_transfers || interpreter.bytecode.opcode() != opcode::SELFDESTRUCT {
            return;
        }
        let from = interpreter.input.target_address();
        let account = context.journaled_state.inner.state.get(&from);
        self.ending = match (interpreter.stack.peek(0), account) {
            (Ok(to), Some(account)) => {
                let (to, value) = (Address::from_word(to.into()), account.info.balance);
                Some(Transfer { from, to, value })
            }
            _ => None,
        };
    }

    fn log(&mut self, _: &mut Context<'a, S>, log: Log) {
        self.add(log);
    }

    fn call(&mut self, _: &mut Context<'a, S>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        let value = inputs.transfer_value().filter(|_| inputs.scheme == CallScheme::Call);
        let (from, to) = (inputs.caller, inputs.target_address);
        self.enter(value.map(|value| Transfer { from, to, value }));
        None
    }

    fn call_end(&mut self, _: &mut Context<'a, S>, _: &CallInputs, outcome: &mut CallOutcome) {
        self.exit(outcome.result.result, outcome.result.is_ok());
    }

    fn create(
        &mut self,
        context: &mut Context<'a, S>,
        inputs: &mut CreateInputs,
    ) -> Option<CreateOutcome> {
        let (from, value) = (inputs.caller(), inputs.value());
        let caller = context.journaled_state.load_account(from);
        let to = caller.ok().map(|caller| inputs.created_address(caller.data.info.nonce));
        self.enter(to.map(|to| Transfer { from, to, value }));
        None
    }

    fn create_end(
        &mut self,
        _: &mut Context<'a, S>,
        _: &CreateInputs,
        outcome: &mut CreateOutcome,
    ) {
        let success = outcome.result.is_ok() && outcome.address.is_some();
        self.exit(outcome.result.result, success);
    }
}
