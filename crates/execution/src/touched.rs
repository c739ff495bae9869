//! The accounts and slots that a call touches, as an access list, made as geth makes it
//! (`AccessList` in `internal/ethapi/api.go` of 1.17.8).

use crate::call::{GasCap, Ran, Site};
use crate::deadline::Deadline;
use crate::evm::environment;
use crate::limits::ACCESS_LIST_RUNS;
use crate::unsigned::{UnsignedCall, unsigned};
use crate::{Call, CallError, CallOutcome, ChainSpec, Overrides, StateOverrides};
use alloy_consensus::Header;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::map::AddressSet;
use alloy_primitives::{Address, B256, U256};
use revm::bytecode::opcode;
use revm::context_interface::transaction::AuthorizationTr;
use revm::inspector::Inspector;
use revm::interpreter::Interpreter;
use revm::interpreter::interpreter_types::{InputsTr, Jumps};
use revm::precompile::{PrecompileSpecId, Precompiles};
use std::collections::{BTreeMap, BTreeSet};
use witness::State;

/// The answer to a question for an access list. Error texts follow geth, so that they can be
/// searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreatedAccessList {
    /// The call ran with this list and touched just this list.
    Stable {
        /// The list, in the order of its addresses and slots.
        list: AccessList,
        /// The gas that the call used with it.
        gas_used: u64,
        /// How the call ended.
        outcome: CallOutcome,
    },
    /// There is no such list, for this reason.
    Failed(String),
}

/// Finds the access list (EIP-2930) of a call in the block of `header`, on `state`, the state after
/// that block: the call runs until it touches what is in the list of its last run, and what was in
/// [`Call::access_list`]. The list has neither the accounts that are warm anyway, the caller, what
/// is called or created, authorities, and precompiled contracts, nor their slots unless the call
/// touches these. A call without a gas limit has `gas`, and none has more.
///
/// # Errors
/// [`CallError::OutOfTime`], of all runs together; [`BlockError::State`] when the state cannot
/// answer, and [`BlockError::Internal`].
///
/// [`BlockError::State`]: crate::BlockError::State
/// [`BlockError::Internal`]: crate::BlockError::Internal
pub fn create_access_list<S: State>(
    chain: &ChainSpec,
    header: &Header,
    call: &UnsignedCall,
    gas: u64,
    overrides: StateOverrides,
    deadline: &Deadline,
    mut state: S,
) -> Result<CreatedAccessList, CallError> {
    let amsterdam = chain.is_amsterdam_active_at_timestamp(header.timestamp);
    let gas_cap = if amsterdam { GasCap::OfTransaction } else { GasCap::None };
    let overrides = Overrides { state: overrides, ..Overrides::default() };
    let site = Site::new(chain, header, &overrides, gas_cap).until(deadline);
    let UnsignedCall { call, gas: limit, nonce, has_gas_price } = call;
    let mut call = Call { gas: limit.map_or(gas, |limit| limit.min(gas)), ..call.clone() };
    let nonce = match *nonce {
        Some(nonce) => nonce,
        None => site.state(&mut state).account(call.from)?.map_or(0, |account| account.nonce),
    };
    let warm = warm_anyway(&site, &call, nonce);
    let mut list = Touched::new(&warm, &call.access_list);
    for _ in 0..ACCESS_LIST_RUNS {
        call.access_list = list.list();
        let mut touched = Touched::new(&warm, &call.access_list);
        let (end, gas) = match site.run_under(&call, &mut state, &mut touched)? {
            Ran::Ended { end, gas } => (end, gas),
            Ran::Inapplicable(reason) => return Ok(CreatedAccessList::Failed(reason)),
            Ran::Refused(reason) => {
                let reason = site.refusal(&call, &reason);
                let is_legacy = *has_gas_price || header.base_fee_per_gas.is_none();
                let hash = *unsigned(&call, nonce, chain.chain_id(), is_legacy).hash();
                let reason = format!("failed to apply transaction: {hash} err: {reason}");
                return Ok(CreatedAccessList::Failed(reason));
            }
        };
        if touched.accounts == list.accounts {
            let (list, gas_used, outcome) = (call.access_list, gas.tx_gas_used(), end.outcome());
            return Ok(CreatedAccessList::Stable { list, gas_used, outcome });
        }
        list = touched;
    }
    let reason = format!("the call touches another list in each of {ACCESS_LIST_RUNS} runs");
    Ok(CreatedAccessList::Failed(reason))
}

/// The accounts that are warm in a call without an access list.
fn warm_anyway(site: &Site<'_>, call: &Call, nonce: u64) -> AddressSet {
    let spec = environment(site.chain, &site.header).cfg_env.spec;
    let precompiles = Precompiles::new(PrecompileSpecId::from_spec_id(spec));
    let mut warm: AddressSet = precompiles.addresses().copied().collect();
    warm.insert(call.from);
    warm.insert(call.to.to().copied().unwrap_or_else(|| call.from.create(nonce)));
    let id = U256::from(site.chain.chain_id());
    for authorization in site.transaction(call).authorization_list {
        let chain = authorization.chain_id();
        if (chain.is_zero() || chain == id) && authorization.nonce() != u64::MAX {
            warm.extend(authorization.authority());
        }
    }
    warm
}

/// Notes accounts and slots that ops name, as geth's `AccessListTracer`: those of an op that then
/// fails for lack of gas, too.
#[derive(Debug)]
struct Touched<'a> {
    /// Accounts that are not named.
    warm: &'a AddressSet,
    accounts: BTreeMap<Address, BTreeSet<B256>>,
}

impl<'a> Touched<'a> {
    fn new(warm: &'a AddressSet, list: &AccessList) -> Self {
        let mut accounts = BTreeMap::<_, BTreeSet<_>>::new();
        for AccessListItem { address, storage_keys } in &list.0 {
            if !warm.contains(address) {
                accounts.entry(*address).or_default().extend(storage_keys);
            }
        }
        Self { warm, accounts }
    }

    fn list(&self) -> AccessList {
        let items = self.accounts.iter().map(|(address, slots)| AccessListItem {
            address: *address,
            storage_keys: slots.iter().copied().collect(),
        });
        AccessList(items.collect())
    }

    fn add(&mut self, address: Address) {
        if !self.warm.contains(&address) {
            self.accounts.entry(address).or_default();
        }
    }
}

impl<C> Inspector<C> for Touched<'_> {
    fn step(&mut self, interpreter: &mut Interpreter, _: &mut C) {
        let stack = &interpreter.stack;
        let word = |depth: usize| stack.peek(depth).ok();
        match interpreter.bytecode.opcode() {
            opcode::SLOAD | opcode::SSTORE => {
                if let Some(slot) = word(0) {
                    let address = interpreter.input.target_address();
                    self.accounts.entry(address).or_default().insert(slot.into());
                }
            }
            opcode::EXTCODECOPY
            | opcode::EXTCODEHASH
            | opcode::EXTCODESIZE
            | opcode::BALANCE
            | opcode::SELFDESTRUCT => {
                if let Some(address) = word(0) {
                    self.add(Address::from_word(address.into()));
                }
            }
            opcode::DELEGATECALL | opcode::CALL | opcode::STATICCALL | opcode::CALLCODE => {
                if let (Some(address), true) = (word(1), stack.len() >= 5) {
                    self.add(Address::from_word(address.into()));
                }
            }
            _ => {}
        }
    }
}
