//! An instruction that is about to run: its gas and its fault as geth reports them.
//!
//! geth checks the stack, the static gas, the size of memory and the remaining gas in this order
//! (`core/vm/interpreter.go`), before it tells tracers of an instruction. The EVM here checks in
//! another order and says less, so the gas and the fault of an instruction that fails are computed
//! once more. Amsterdam's prices of state (EIP-8037, EIP-8038) are not: there the EVM's figures
//! count.

use super::view::View;
use crate::net_gas;
use alloy_primitives::{Address, U256};
use revm::bytecode::opcode::{self as op, OPCODE_INFO};
use revm::context_interface::cfg::GasParams;
use revm::context_interface::context::SStoreResult;
use revm::interpreter::instructions::gas_table_spec;
use revm::primitives::hardfork::SpecId;
use std::borrow::Cow;

/// An instruction that is about to run.
#[derive(Debug)]
pub(crate) struct Instruction<'a> {
    pub(crate) op: u8,
    pub(crate) pc: usize,
    /// The gas before it.
    pub(crate) gas: u64,
    /// Open frames, from 1 on.
    pub(crate) depth: usize,
    /// The account whose storage the frame uses.
    pub(crate) address: Address,
    pub(crate) is_static: bool,
    /// The stack, its top last.
    pub(crate) stack: &'a [U256],
    pub(crate) memory: &'a [u8],
    /// The output of the last call.
    pub(crate) return_data: &'a [u8],
}

/// The gas of an instruction, and why it cannot begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) cost: u64,
    /// The reason in geth's words.
    pub(crate) fault: Option<String>,
    /// The refund that geth counts although there is too little gas: it does so while it computes
    /// the gas.
    pub(crate) refund: i64,
    /// Whether the fork has such an instruction. One that it does not have fails when it runs.
    pub(crate) is_defined: bool,
}

const OVERFLOW: &str = "gas uint64 overflow";
const OUT_OF_GAS: &str = "out of gas";
const STATIC: &str = "write protection";

/// Words of the stack at most.
const STACK_LIMIT: usize = 1024;

/// Zeros behind the end of memory at most.
const PADDED_BYTES: usize = 1 << 20;

/// The largest memory whose gas geth computes, in bytes.
const MEMORY_LIMIT: u64 = 0x1F_FFFF_FFE0;

/// The name of an instruction, as geth prints it, which has names for the withdrawn object format.
pub(crate) fn name(op: u8) -> Cow<'static, str> {
    if let Some(info) = OPCODE_INFO[usize::from(op)] {
        return info.name().into();
    }
    let name = match op {
        0xd0 => "DATALOAD",
        0xd1 => "DATALOADN",
        0xd2 => "DATASIZE",
        0xd3 => "DATACOPY",
        0xe0 => "RJUMP",
        0xe1 => "RJUMPI",
        0xe2 => "RJUMPV",
        0xe3 => "CALLF",
        0xe4 => "RETF",
        0xe5 => "JUMPF",
        0xec => "EOFCREATE",
        0xee => "RETURNCONTRACT",
        0xf7 => "RETURNDATALOAD",
        0xf8 => "EXTCALL",
        0xf9 => "EXTDELEGATECALL",
        0xfb => "EXTSTATICCALL",
        _ => return format!("opcode {op:#x} not defined").into(),
    };
    name.into()
}

/// The first fork that has the instruction.
const fn introduced(op: u8) -> SpecId {
    match op {
        op::DELEGATECALL => SpecId::HOMESTEAD,
        op::RETURNDATASIZE | op::RETURNDATACOPY | op::STATICCALL | op::REVERT => SpecId::BYZANTIUM,
        op::SHL | op::SHR | op::SAR | op::EXTCODEHASH | op::CREATE2 => SpecId::PETERSBURG,
        op::CHAINID | op::SELFBALANCE => SpecId::ISTANBUL,
        op::BASEFEE => SpecId::LONDON,
        op::PUSH0 => SpecId::SHANGHAI,
        op::TLOAD | op::TSTORE | op::MCOPY | op::BLOBHASH | op::BLOBBASEFEE => SpecId::CANCUN,
        op::CLZ => SpecId::OSAKA,
        op::SLOTNUM | op::DUPN | op::SWAPN | op::EXCHANGE => SpecId::AMSTERDAM,
        _ => SpecId::FRONTIER,
    }
}

/// The part of the gas that does not depend on operands, as geth divides it.
fn static_gas(op: u8, spec: SpecId) -> u64 {
    match op {
        op::EXP | op::SSTORE | op::LOG0..=op::LOG4 | op::RETURN | op::REVERT => 0,
        op::CREATE | op::CREATE2 => 32_000,
        op::SLOAD if spec.is_enabled_in(SpecId::BERLIN) => 0,
        op::SELFDESTRUCT if spec.is_enabled_in(SpecId::BERLIN) => 5_000,
        op::SELFDESTRUCT => 0,
        _ => u64::from(gas_table_spec(spec)[usize::from(op)]),
    }
}

/// Why the gas of an instruction is not to be had.
enum Unpriced {
    /// Found before the gas is computed.
    Plain(String),
    /// Found while it is computed: geth calls all of these "out of gas".
    Computed(String),
}

fn computed(words: &str) -> Unpriced {
    Unpriced::Computed(words.to_owned())
}

impl Instruction<'_> {
    /// The gas, and the fault if there is one before the instruction runs. The gas of a CREATE is
    /// without what its frame gets, the gas of a call is with it.
    pub(crate) fn judge(&self, view: &mut dyn View) -> Judgement {
        let spec = view.spec();
        let info = OPCODE_INFO[usize::from(self.op)];
        let Some(info) =
            info.filter(|_| self.op != op::INVALID && spec.is_enabled_in(introduced(self.op)))
        else {
            return Judgement { cost: 0, fault: None, refund: 0, is_defined: false };
        };
        let cost = static_gas(self.op, spec);
        let judged = |cost, fault| Judgement { cost, fault, refund: 0, is_defined: true };
        let fault = |cost, words: String| judged(cost, Some(words));
        let (length, least) = (self.stack.len(), usize::from(info.inputs()));
        let most = STACK_LIMIT + least - usize::from(info.outputs());
        if length < least {
            return fault(cost, format!("stack underflow ({length} <=> {least})"));
        }
        if length > most {
            return fault(cost, format!("stack limit reached {length} ({most})"));
        }
        let Some(left) = self.gas.checked_sub(cost) else {
            return fault(cost, OUT_OF_GAS.to_owned());
        };
        match self.memory_size().and_then(|size| self.operand_gas(view, spec, left, size)) {
            Ok(more) if more <= left => judged(cost + more, None),
            Ok(more) => Judgement {
                refund: if self.op == op::SSTORE { self.store_refund(view, spec) } else { 0 },
                ..fault(cost.saturating_add(more), OUT_OF_GAS.to_owned())
            },
            Err(Unpriced::Plain(words)) => fault(cost, words),
            Err(Unpriced::Computed(words)) => fault(cost, format!("{OUT_OF_GAS}: {words}")),
        }
    }

    /// So much of memory, with zeros behind its end, as geth's tracers copy it: a megabyte of
    /// zeros at most.
    pub(crate) fn padded_memory(&self, offset: U256, length: U256) -> Option<Vec<u8>> {
        let (offset, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
        let end = offset.checked_add(length)?;
        if end.saturating_sub(self.memory.len()) > PADDED_BYTES {
            return None;
        }
        let found = self.memory.get(offset..end.min(self.memory.len())).unwrap_or_default();
        let mut copied = found.to_vec();
        copied.resize(length, 0);
        Some(copied)
    }

    /// The word so far below the top of the stack.
    fn operand(&self, index: usize) -> U256 {
        self.stack[self.stack.len() - 1 - index]
    }

    fn account_operand(&self, index: usize) -> Address {
        Address::from_word(self.operand(index).into())
    }

    /// The size that memory is to have, in bytes, a multiple of 32.
    fn memory_size(&self) -> Result<u64, Unpriced> {
        let end = |offset: usize, length: U256| -> Option<u64> {
            if length.is_zero() {
                return Some(0);
            }
            let (offset, length) = (u64::try_from(self.operand(offset)), u64::try_from(length));
            offset.ok()?.checked_add(length.ok()?)
        };
        let span = |offset: usize, length: usize| end(offset, self.operand(length));
        let size = match self.op {
            op::KECCAK256 | op::RETURN | op::REVERT | op::LOG0..=op::LOG4 => span(0, 1),
            op::CALLDATACOPY | op::CODECOPY | op::RETURNDATACOPY => span(0, 2),
            op::EXTCODECOPY => span(1, 3),
            op::MCOPY if self.operand(1) > self.operand(0) => span(1, 2),
            op::MCOPY => span(0, 2),
            op::MLOAD | op::MSTORE => end(0, U256::from(32)),
            op::MSTORE8 => end(0, U256::ONE),
            op::CREATE | op::CREATE2 => span(1, 2),
            op::CALL | op::CALLCODE => span(3, 4).and_then(|x| Some(x.max(span(5, 6)?))),
            op::DELEGATECALL | op::STATICCALL => span(2, 3).and_then(|x| Some(x.max(span(4, 5)?))),
            _ => Some(0),
        };
        let words = size.map(|size| size.div_ceil(32)).and_then(|words| words.checked_mul(32));
        words.ok_or_else(|| Unpriced::Plain(OVERFLOW.to_owned()))
    }

    /// The gas for memory to grow to so many bytes.
    fn memory_gas(&self, size: u64) -> Result<u64, Unpriced> {
        if size > MEMORY_LIMIT {
            return Err(computed(OVERFLOW));
        }
        let whole = |bytes: u64| {
            let words = bytes / 32;
            3 * words + words * words / 512
        };
        Ok(whole(size).saturating_sub(whole(self.memory.len() as u64)))
    }

    /// The gas of as many words as an operand has bytes, at a price.
    fn words_gas(&self, operand: usize, price: u64) -> Result<u64, Unpriced> {
        let bytes = u64::try_from(self.operand(operand)).map_err(|_| computed(OVERFLOW))?;
        bytes.div_ceil(32).checked_mul(price).ok_or_else(|| computed(OVERFLOW))
    }

    /// The part of the gas that depends on operands, where `left` is left after the static part.
    fn operand_gas(
        &self,
        view: &mut dyn View,
        spec: SpecId,
        left: u64,
        size: u64,
    ) -> Result<u64, Unpriced> {
        let berlin = spec.is_enabled_in(SpecId::BERLIN);
        let cold = |view: &dyn View, address: Address, cost: u64| {
            if berlin && !view.is_warm(address) { cost } else { 0 }
        };
        Ok(match self.op {
            op::EXP => {
                let bytes = self.operand(1).bit_len().div_ceil(8) as u64;
                10 + bytes * if spec.is_enabled_in(SpecId::SPURIOUS_DRAGON) { 50 } else { 10 }
            }
            op::KECCAK256 => self.memory_gas(size)? + self.words_gas(1, 6)?,
            op::CALLDATACOPY | op::CODECOPY | op::RETURNDATACOPY | op::MCOPY => {
                self.memory_gas(size)? + self.words_gas(2, 3)?
            }
            op::EXTCODECOPY => {
                let copied = self.memory_gas(size)? + self.words_gas(3, 3)?;
                copied + cold(view, self.account_operand(0), 2_500)
            }
            op::BALANCE | op::EXTCODESIZE | op::EXTCODEHASH => {
                cold(view, self.account_operand(0), 2_500)
            }
            op::SLOAD if berlin && view.is_slot_warm(self.address, self.operand(0)) => 100,
            op::SLOAD if berlin => 2_100,
            op::SSTORE => self.store_gas(view, spec, left)?,
            op::LOG0..=op::LOG4 => {
                let bytes = u64::try_from(self.operand(1)).map_err(|_| computed(OVERFLOW))?;
                let topics = 375 * (1 + u64::from(self.op - op::LOG0));
                let data = bytes.checked_mul(8).ok_or_else(|| computed(OVERFLOW))?;
                (self.memory_gas(size)? + topics)
                    .checked_add(data)
                    .ok_or_else(|| computed(OVERFLOW))?
            }
            op::MLOAD | op::MSTORE | op::MSTORE8 | op::RETURN | op::REVERT => {
                self.memory_gas(size)?
            }
            op::CREATE | op::CREATE2 => self.create_gas(spec, size)?,
            op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL => {
                self.call_gas(view, spec, left, size)?
            }
            op::SELFDESTRUCT => self.destruct_gas(view, spec, left)?,
            _ => 0,
        })
    }

    fn create_gas(&self, spec: SpecId, size: u64) -> Result<u64, Unpriced> {
        if self.is_static {
            return Err(computed(STATIC));
        }
        let memory = self.memory_gas(size)?;
        let (shanghai, amsterdam) =
            (spec.is_enabled_in(SpecId::SHANGHAI), spec.is_enabled_in(SpecId::AMSTERDAM));
        if shanghai {
            let limit = if amsterdam { 131_072 } else { 49_152 };
            let bytes = u64::try_from(self.operand(2)).map_err(|_| computed(OVERFLOW))?;
            if bytes > limit {
                return Err(Unpriced::Computed(format!(
                    "max initcode size exceeded: code size {bytes} limit {limit}"
                )));
            }
        }
        let hashed = if self.op == op::CREATE2 { 6 } else { 0 };
        let price = hashed + if shanghai { 2 } else { 0 };
        Ok(memory + if price == 0 { 0 } else { self.words_gas(2, price)? })
    }

    fn destruct_gas(&self, view: &mut dyn View, spec: SpecId, left: u64) -> Result<u64, Unpriced> {
        if self.is_static {
            return Err(computed(STATIC));
        }
        let heir = self.account_operand(0);
        let mut gas = 0;
        if spec.is_enabled_in(SpecId::BERLIN) {
            if !view.is_warm(heir) {
                gas = 2_600;
            }
            if left < gas {
                return Err(computed(OUT_OF_GAS));
            }
        } else if spec.is_enabled_in(SpecId::TANGERINE) {
            gas = 5_000;
        } else {
            return Ok(0);
        }
        let sends = !spec.is_enabled_in(SpecId::SPURIOUS_DRAGON)
            || !view.account(self.address).balance.is_zero();
        Ok(gas + if sends && view.account(heir).is_empty() { 25_000 } else { 0 })
    }

    fn store_gas(&self, view: &mut dyn View, spec: SpecId, left: u64) -> Result<u64, Unpriced> {
        if self.is_static {
            return Err(computed(STATIC));
        }
        let (slot, value) = (self.operand(0), self.operand(1));
        let [original, current] = view.slot(self.address, slot);
        let (istanbul, net) = (spec.is_enabled_in(SpecId::ISTANBUL), view.has_net_gas());
        if !istanbul && !net {
            return Ok(if current.is_zero() && !value.is_zero() { 20_000 } else { 5_000 });
        }
        if istanbul && left <= 2_300 {
            return Err(computed("not enough gas for reentrancy sentry"));
        }
        let berlin = spec.is_enabled_in(SpecId::BERLIN);
        let (warm, reset) = match (net, berlin) {
            (true, _) => (200, 5_000),
            (false, false) => (800, 5_000),
            (false, true) => (100, 2_900),
        };
        let cold = if berlin && !view.is_slot_warm(self.address, slot) { 2_100 } else { 0 };
        Ok(cold
            + match (current == value, original == current, original.is_zero()) {
                (true, ..) | (false, false, _) => warm,
                (false, true, true) => 20_000,
                (false, true, false) => reset,
            })
    }

    fn store_refund(&self, view: &mut dyn View, spec: SpecId) -> i64 {
        let [original_value, present_value] = view.slot(self.address, self.operand(0));
        let new_value = self.operand(1);
        let values = SStoreResult { original_value, present_value, new_value };
        let (mut params, has_net_gas) = (GasParams::new_spec(spec), view.has_net_gas());
        if has_net_gas {
            net_gas::put_in_force(&mut params);
        }
        params.sstore_refund(has_net_gas || spec.is_enabled_in(SpecId::ISTANBUL), &values)
    }

    fn call_gas(
        &self,
        view: &mut dyn View,
        spec: SpecId,
        left: u64,
        size: u64,
    ) -> Result<u64, Unpriced> {
        let prague = spec.is_enabled_in(SpecId::PRAGUE);
        let target = self.account_operand(1);
        let has_value = matches!(self.op, op::CALL | op::CALLCODE) && !self.operand(2).is_zero();
        let out = || computed(OUT_OF_GAS);
        if self.op == op::CALL && has_value && self.is_static && prague {
            return Err(computed(STATIC));
        }
        let berlin = spec.is_enabled_in(SpecId::BERLIN);
        let cold = if berlin && !view.is_warm(target) { 2_500 } else { 0 };
        let left = left.checked_sub(cold).ok_or_else(out)?;
        let transfer = if has_value { 9_000 } else { 0 };
        if self.op == op::CALL && has_value && self.is_static {
            return Err(computed(STATIC));
        }
        let mut own = self.memory_gas(size)? + transfer;
        if self.op == op::CALL {
            if left < own {
                return Err(out());
            }
            let creates = has_value || !spec.is_enabled_in(SpecId::SPURIOUS_DRAGON);
            if creates && view.account(target).is_empty() {
                own += 25_000;
            }
        }
        if prague {
            let rest = left.checked_sub(own).ok_or_else(out)?;
            let delegated = delegation_gas(view, target);
            rest.checked_sub(delegated).ok_or_else(out)?;
            own += delegated;
        }
        let asked = u64::try_from(self.operand(0));
        let given = if spec.is_enabled_in(SpecId::TANGERINE) {
            // geth subtracts without a check here.
            let available = left.wrapping_sub(own);
            let most = available - available / 64;
            asked.map_or(most, |asked| asked.min(most))
        } else {
            asked.map_err(|_| computed(OVERFLOW))?
        };
        (own + cold).checked_add(given).ok_or_else(|| computed(OVERFLOW))
    }
}

/// The gas to resolve a delegation (EIP-7702).
fn delegation_gas(view: &mut dyn View, target: Address) -> u64 {
    let account = view.account(target);
    if account.is_empty_code_hash() {
        return 0;
    }
    let code = view.code(&account);
    match code.strip_prefix(&[0xef, 0x01, 0x00]) {
        Some(delegate) if delegate.len() == 20 => {
            if view.is_warm(Address::from_slice(delegate)) {
                100
            } else {
                2_600
            }
        }
        _ => 0,
    }
}
