//! The parameters of `engine_newPayload` and its relatives: what each version takes, and for
//! which forks.

use std::ops::Range;

use alloy_hardforks::EthereumHardfork;
use alloy_primitives::Bytes;
use engine::Payload;
use engine_api::{EngineMethod, NewPayload};
use execution::ChainSpec;
use rpc::{Code, Error, Params, quote};

use crate::forks::rules_of;

/// Takes the parameters of `version` from a call: their structure is checked, their fork not yet.
///
/// # Errors
/// If they are not what the version takes.
pub(crate) fn read(params: &mut Params<'_>, version: u8) -> Result<NewPayload, Error> {
    let own = params.take(NewPayload::parameters(version).len())?;
    let call =
        NewPayload::read(version, own).map_err(|fault| Error::invalid_params(quote(fault)))?;
    check_requests(call.execution_requests.as_deref().unwrap_or_default())?;
    Ok(call)
}

/// The payload of a call, if its fork is one that the version is for.
///
/// # Errors
/// If it is not.
pub(crate) fn payload(call: NewPayload, version: u8, chain: &ChainSpec) -> Result<Payload, Error> {
    let timestamp = call.payload.timestamp();
    check_fork(chain, timestamp, &rules_of(EngineMethod::NewPayload.forks(version)))?;
    if version == 2 {
        let has_withdrawals = chain.fork_at(timestamp) >= EthereumHardfork::Shanghai;
        call.check_withdrawals(has_withdrawals).map_err(Error::invalid_params)?;
    }
    let sidecar = call.sidecar();
    Ok(Payload { execution: call.payload, sidecar })
}

/// `-38005` unless the fork at `timestamp` is one of `forks`.
pub(crate) fn check_fork(
    chain: &ChainSpec,
    timestamp: u64,
    forks: &Range<EthereumHardfork>,
) -> Result<(), Error> {
    let fork = chain.fork_at(timestamp);
    if forks.contains(&fork) {
        return Ok(());
    }
    let (first, end) = (forks.start.max(EthereumHardfork::Paris), forks.end);
    Err(Error::new(
        Code::UnsupportedFork,
        format_args!(
            "timestamp {timestamp} is in {fork}; this version is for {first} to before {end}"
        ),
    ))
}

/// prague.md, `engine_newPayloadV4`: ascending by type, each type once, none without content.
pub(crate) fn check_requests(requests: &[Bytes]) -> Result<(), Error> {
    let mut last = None;
    for (index, request) in requests.iter().enumerate() {
        let refuse = |reason: &str| {
            Err(Error::invalid_params(format_args!("executionRequests[{index}] {reason}")))
        };
        let [kind, _, ..] = request[..] else {
            return refuse("is not a type and at least one byte");
        };
        match last {
            Some(last) if last == kind => return refuse("has the type of the one before it"),
            Some(last) if last > kind => return refuse("has a lower type than the one before it"),
            _ => last = Some(kind),
        }
    }
    Ok(())
}
