//! The least gas limit with which a call succeeds, found as geth finds it
//! (`eth/gasestimator/gasestimator.go` of 1.17.8).

use crate::call::{End, GasCap, INSUFFICIENT_FUNDS, Ran, Site};
use crate::deadline::Deadline;
use crate::limits::{ESTIMATE_ERROR, TRANSACTION_REGULAR_GAS};
use crate::{Call, CallError, CallOutcome, ChainSpec, Overrides};
use alloy_consensus::Header;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Bytes, KECCAK256_EMPTY, U256};
use revm::context_interface::result::{HaltReason, InvalidTransaction, ResultGas};
use witness::State;

/// The gas of a plain transfer before Amsterdam.
const TRANSFER_GAS: u64 = 21_000;

/// The gas that a call with value gives to what it calls (the yellow paper's `G_callstipend`).
const CALL_STIPEND: u64 = 2_300;

/// The answer to an estimate. Error texts follow geth, so that they can be searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Estimate {
    /// With this gas limit the call succeeds. It is at most 1.5 % above the least one.
    Gas(u64),
    /// The call reverts with this data, whatever its gas limit.
    Reverted(Bytes),
    /// There is no such limit, for this reason.
    Failed(String),
}

/// Finds a gas limit with which a call in the block of `header` succeeds, on `state`, the state
/// after that block. The search ends at [`Call::gas`] or, where that is below 21,000, at the
/// block's gas limit; at the most gas of a transaction in Osaka (EIP-7825); at what the caller's
/// balance pays for; and at `gas_cap`.
///
/// Accounts and slots are read anew in each run: a search makes some 20 at most.
///
/// # Errors
/// [`CallError::OutOfTime`], of all runs together; [`BlockError::State`] when the state cannot
/// answer, and [`BlockError::Internal`].
///
/// [`BlockError::State`]: crate::BlockError::State
/// [`BlockError::Internal`]: crate::BlockError::Internal
pub fn estimate<S: State>(
    chain: &ChainSpec,
    header: &Header,
    call: &Call,
    overrides: &Overrides,
    gas_cap: u64,
    deadline: &Deadline,
    state: S,
) -> Result<Estimate, CallError> {
    let site = Site::new(chain, header, overrides, GasCap::OfTransaction).until(deadline);
    let mut search = Search { site, call: call.clone(), state };
    let highest = match search.allowance()? {
        Ok(allowance) => allowance.min(gas_cap),
        Err(reason) => return Ok(Estimate::Failed(reason.into())),
    };
    if search.is_transfer()?
        && let Try::Done(gas) = search.attempt(TRANSFER_GAS)?
    {
        return Ok(Estimate::Gas(gas.tx_gas_used()));
    }
    let gas = match search.attempt(highest)? {
        Try::Done(gas) => gas,
        Try::Failed(End::Halted(HaltReason::OutOfGas(_))) | Try::TooLittle => {
            let reason = format!("gas required exceeds allowance ({highest})");
            return Ok(Estimate::Failed(reason));
        }
        Try::Failed(end) => return Ok(failed(end)),
        Try::Refused(reason) => return Ok(Estimate::Failed(reason)),
    };
    search.bisect(gas, highest)
}

fn failed(end: End) -> Estimate {
    match end.outcome() {
        CallOutcome::Reverted(output) => Estimate::Reverted(output),
        CallOutcome::Halted(reason) | CallOutcome::Refused(reason) => Estimate::Failed(reason),
        CallOutcome::Returned(_) => unreachable!("a call that returned has not failed"),
    }
}

/// A call that is run with several gas limits.
#[derive(Debug)]
struct Search<'a, S> {
    site: Site<'a>,
    call: Call,
    state: S,
}

/// A run with one gas limit.
#[derive(Debug)]
enum Try {
    Done(ResultGas),
    Failed(End),
    /// It could not begin with so little gas.
    TooLittle,
    /// It could not begin, for another reason.
    Refused(String),
}

impl<S: State> Search<'_, S> {
    /// The most gas that the call may have, or why it cannot pay for any.
    fn allowance(&mut self) -> Result<Result<u64, &'static str>, CallError> {
        let (call, header) = (&self.call, &self.site.header);
        let mut gas = if call.gas >= TRANSFER_GAS { call.gas } else { header.gas_limit };
        let chain = self.site.chain;
        if chain.is_osaka_active_at_timestamp(header.timestamp)
            && !chain.is_amsterdam_active_at_timestamp(header.timestamp)
        {
            gas = gas.min(TRANSACTION_REGULAR_GAS);
        }
        if call.max_fee_per_gas == 0 {
            return Ok(Ok(gas));
        }
        let account = self.site.state(&mut self.state).account(call.from);
        let balance = account?.map_or(U256::ZERO, |account| account.balance);
        let Some(available) = balance.checked_sub(call.value).filter(|left| !left.is_zero()) else {
            return Ok(Err("insufficient funds for transfer"));
        };
        let has_blobs = chain.is_cancun_active_at_timestamp(header.timestamp);
        let blob_fee = if has_blobs { call.blob_fee() } else { U256::ZERO };
        let Some(available) = available.checked_sub(blob_fee).filter(|left| !left.is_zero()) else {
            return Ok(Err(INSUFFICIENT_FUNDS));
        };
        let paid = available / U256::from(call.max_fee_per_gas);
        Ok(Ok(paid.try_into().map_or(gas, |paid: u64| gas.min(paid))))
    }

    /// Whether the call only moves value: it has no input, and calls no code.
    fn is_transfer(&mut self) -> Result<bool, CallError> {
        let Some(to) = self.call.to.to().filter(|_| self.call.input.is_empty()) else {
            return Ok(false);
        };
        let called = self.site.state(&mut self.state).account(*to)?;
        Ok(called.is_none_or(|account| account.code_hash == KECCAK256_EMPTY))
    }

    fn attempt(&mut self, gas: u64) -> Result<Try, CallError> {
        self.call.gas = gas;
        Ok(match self.site.run(&self.call, &mut self.state)? {
            Ran::Ended { end: End::Returned(_), gas } => Try::Done(gas),
            Ran::Ended { end, .. } => Try::Failed(end),
            Ran::Refused(InvalidTransaction::CallGasCostMoreThanGasLimit { .. }) => Try::TooLittle,
            Ran::Inapplicable(reason) => Try::Refused(reason),
            Ran::Refused(reason) => {
                let reason = self.site.refusal(&self.call, &reason);
                Try::Refused(format!("failed with {gas} gas: {reason}"))
            }
        })
    }

    /// Searches below `highest`, with which the call succeeds and uses `gas`.
    fn bisect(&mut self, gas: ResultGas, highest: u64) -> Result<Estimate, CallError> {
        let (mut fails, mut succeeds) = (gas.tx_gas_used().saturating_sub(1), highest);
        // Most of what a call needs beyond what it uses is kept back at its calls (EIP-150), or was
        // refunded.
        let most = gas.total_gas_spent().max(gas.floor_gas());
        let mut next = Some(most.saturating_add(CALL_STIPEND).saturating_mul(64) / 63);
        while fails.saturating_add(1) < succeeds {
            let middle = match next.take() {
                Some(optimistic) if optimistic < succeeds => optimistic,
                Some(_) => continue,
                None if is_close(fails, succeeds) => break,
                // Most calls need little more than they use.
                None => (fails + (succeeds - fails) / 2).min(fails.saturating_mul(2)),
            };
            match self.attempt(middle)? {
                Try::Done(_) => succeeds = middle,
                Try::Failed(_) | Try::TooLittle => fails = middle,
                Try::Refused(reason) => return Ok(Estimate::Failed(reason)),
            }
        }
        Ok(Estimate::Gas(succeeds))
    }
}

/// Whether an estimate is near enough to the least limit.
fn is_close(fails: u64, succeeds: u64) -> bool {
    let (numerator, denominator) = ESTIMATE_ERROR;
    u128::from(succeeds - fails) * denominator < u128::from(succeeds) * numerator
}
