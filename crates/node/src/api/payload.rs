//! The parameters of `engine_newPayload` and its relatives: what each version takes, and for
//! which forks.

use std::ops::Range;

use alloy_eips::eip7685::Requests;
use alloy_hardforks::EthereumHardfork;
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{CancunPayloadFields, ExecutionPayloadSidecar, PraguePayloadFields};
use engine::Payload;
use engine_api::EngineMethod;
use engine_api::json::{Data, FixedData, Object, PayloadFields};
use execution::ChainSpec;
use rpc::{Code, Error, Params};

use crate::forks::rules_of;

/// The parameters of `engine_newPayload`, their structure checked, their fork not yet.
pub(crate) struct NewPayload {
    version: u8,
    fields: PayloadFields,
    sidecar: ExecutionPayloadSidecar,
}

impl NewPayload {
    /// Takes the parameters of `version` from a call.
    pub(crate) fn read(params: &mut Params<'_>, version: u8) -> Result<Self, Error> {
        let Object(fields): Object<PayloadFields> = params.next("executionPayload")?;
        fields.check(version).map_err(Error::invalid_params)?;
        let sidecar = if version >= 3 {
            let hashes: Vec<FixedData<32>> = params.next("expectedBlobVersionedHashes")?;
            let root: FixedData<32> = params.next("parentBeaconBlockRoot")?;
            let hashes = hashes.into_iter().map(B256::from).collect();
            let cancun = CancunPayloadFields::new(root.into(), hashes);
            if version >= 4 {
                let requests: Vec<Data> = params.next("executionRequests")?;
                let requests = requests.into_iter().map(|request| request.0).collect();
                let prague = PraguePayloadFields::new(check_requests(requests)?);
                ExecutionPayloadSidecar::v4(cancun, prague)
            } else {
                ExecutionPayloadSidecar::v3(cancun)
            }
        } else {
            ExecutionPayloadSidecar::none()
        };
        Ok(Self { version, fields, sidecar })
    }

    /// The payload, if its fork is one that the version is for.
    pub(crate) fn payload(self, chain: &ChainSpec) -> Result<Payload, Error> {
        let Self { version, fields, sidecar } = self;
        let timestamp = fields.timestamp();
        check_fork(chain, timestamp, &rules_of(EngineMethod::NewPayload.forks(version)))?;
        if version == 2 {
            let has_withdrawals = chain.fork_at(timestamp) >= EthereumHardfork::Shanghai;
            fields.check_withdrawals(has_withdrawals).map_err(Error::invalid_params)?;
        }
        Ok(Payload { execution: fields.into_payload(), sidecar })
    }
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
pub(crate) fn check_requests(requests: Vec<Bytes>) -> Result<Requests, Error> {
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
    Ok(Requests::from_requests(requests))
}
