//! The parameters of `engine_newPayload` and its relatives: what each version takes, and for
//! which forks.

use std::ops::Range;

use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7685::Requests;
use alloy_hardforks::EthereumHardfork::{self, Amsterdam, Bogota, Cancun, Frontier, Prague};
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    CancunPayloadFields, ExecutionPayload, ExecutionPayloadSidecar, ExecutionPayloadV1,
    PraguePayloadFields,
};
use client::ssz::assemble;
use engine::Payload;
use execution::ChainSpec;
use rpc::{Code, Error, Params};
use serde::Deserialize;

use super::hex::{Data, Fixed, Quantity, Quantity256};
use super::object::Object;

/// The parameters of `engine_newPayload`, their structure checked, their fork not yet.
pub(crate) struct NewPayload {
    version: u8,
    fields: Fields,
    sidecar: ExecutionPayloadSidecar,
}

/// `ExecutionPayloadV1` to `V4`: what only some versions have is optional. A member that no version
/// has is refused, and `null` counts as absent (cancun.md, `engine_newPayloadV3`, point 1).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fields {
    parent_hash: Fixed<32>,
    fee_recipient: Fixed<20>,
    state_root: Fixed<32>,
    receipts_root: Fixed<32>,
    logs_bloom: Fixed<256>,
    prev_randao: Fixed<32>,
    block_number: Quantity,
    gas_limit: Quantity,
    gas_used: Quantity,
    timestamp: Quantity,
    extra_data: Data,
    base_fee_per_gas: Quantity256,
    block_hash: Fixed<32>,
    transactions: Vec<Data>,
    withdrawals: Option<Vec<Object<WithdrawalFields>>>,
    blob_gas_used: Option<Quantity>,
    excess_blob_gas: Option<Quantity>,
    block_access_list: Option<Data>,
    slot_number: Option<Quantity>,
}

/// `WithdrawalV1`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WithdrawalFields {
    index: Quantity,
    validator_index: Quantity,
    address: Fixed<20>,
    amount: Quantity,
}

impl From<Object<WithdrawalFields>> for Withdrawal {
    fn from(Object(fields): Object<WithdrawalFields>) -> Self {
        Self {
            index: fields.index.0,
            validator_index: fields.validator_index.0,
            address: fields.address.into(),
            amount: fields.amount.0,
        }
    }
}

impl NewPayload {
    /// Takes the parameters of `version` from a call.
    pub(crate) fn read(params: &mut Params<'_>, version: u8) -> Result<Self, Error> {
        let Object(fields): Object<Fields> = params.next("executionPayload")?;
        fields.check(version)?;
        let sidecar = if version >= 3 {
            let hashes: Vec<Fixed<32>> = params.next("expectedBlobVersionedHashes")?;
            let root: Fixed<32> = params.next("parentBeaconBlockRoot")?;
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
        let timestamp = fields.timestamp.0;
        check_fork(chain, timestamp, &forks(version))?;
        if version == 2 {
            // shanghai.md, `engine_newPayloadV2`: the structure goes by the fork.
            let shanghai = chain.fork_at(timestamp) >= EthereumHardfork::Shanghai;
            match (shanghai, fields.withdrawals.is_some()) {
                (true, false) => return Err(missing("withdrawals")),
                (false, true) => return Err(unknown("withdrawals", 1)),
                _ => {}
            }
        }
        Ok(Payload { execution: fields.into_payload(), sidecar })
    }
}

/// The forks that a version of `engine_newPayload` is for, the end excluded. The first version has
/// no gate: a later payload lacks fields there, so it is invalid.
const fn forks(version: u8) -> Range<EthereumHardfork> {
    match version {
        1 => Frontier..Bogota,
        2 => Frontier..Cancun,
        3 => Cancun..Prague,
        4 => Prague..Amsterdam,
        _ => Amsterdam..Bogota,
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

impl Fields {
    /// Whether the fields are those of the structure that `version` of the method takes. (Whether
    /// the second version needs withdrawals depends on the fork.)
    fn check(&self, version: u8) -> Result<(), Error> {
        let structure = match version {
            5.. => 4,
            4 => 3,
            version => version,
        };
        let optional = [
            ("withdrawals", self.withdrawals.is_some(), 2),
            ("blobGasUsed", self.blob_gas_used.is_some(), 3),
            ("excessBlobGas", self.excess_blob_gas.is_some(), 3),
            ("blockAccessList", self.block_access_list.is_some(), 4),
            ("slotNumber", self.slot_number.is_some(), 4),
        ];
        for (name, present, since) in optional {
            if present && structure < since {
                return Err(unknown(name, structure));
            }
            if !present && structure >= since && structure > 2 {
                return Err(missing(name));
            }
        }
        Ok(())
    }

    fn into_payload(self) -> ExecutionPayload {
        let first = ExecutionPayloadV1 {
            parent_hash: self.parent_hash.into(),
            fee_recipient: self.fee_recipient.into(),
            state_root: self.state_root.into(),
            receipts_root: self.receipts_root.into(),
            logs_bloom: self.logs_bloom.0.into(),
            prev_randao: self.prev_randao.into(),
            block_number: self.block_number.0,
            gas_limit: self.gas_limit.0,
            gas_used: self.gas_used.0,
            timestamp: self.timestamp.0,
            extra_data: self.extra_data.0,
            base_fee_per_gas: self.base_fee_per_gas.0,
            block_hash: self.block_hash.into(),
            transactions: self.transactions.into_iter().map(|data| data.0).collect(),
        };
        let withdrawals =
            self.withdrawals.map(|list| list.into_iter().map(Withdrawal::from).collect());
        let blob_gas = self.blob_gas_used.zip(self.excess_blob_gas);
        let blob_gas = blob_gas.map(|(used, excess)| [used.0, excess.0]);
        let amsterdam = self.block_access_list.zip(self.slot_number);
        let amsterdam = amsterdam.map(|(list, slot)| (list.0, slot.0));
        assemble(first, withdrawals, blob_gas, amsterdam)
    }
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

fn missing(name: &str) -> Error {
    Error::invalid_params(format_args!("executionPayload.{name} is missing"))
}

fn unknown(name: &str, structure: u8) -> Error {
    let detail = format!("executionPayload.{name} is not part of ExecutionPayloadV{structure}");
    Error::invalid_params(detail)
}
