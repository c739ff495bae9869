//! `ExecutionPayloadV1` to `V4`.

use alloy_eips::eip4895::Withdrawal;
use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadV1};
use serde::Deserialize;

use super::hex::{Data, FixedData, Quantity, Quantity256};
use super::list::List;
use super::object::Object;
use crate::Error;
use crate::limits::{JSON_WITHDRAWALS, TRANSACTIONS};
use crate::ssz::payload_of_fields;

/// The members of a payload of any version; which ones a version has is checked by
/// [`check`](Self::check).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PayloadFields {
    parent_hash: FixedData<32>,
    fee_recipient: FixedData<20>,
    state_root: FixedData<32>,
    receipts_root: FixedData<32>,
    logs_bloom: FixedData<256>,
    prev_randao: FixedData<32>,
    block_number: Quantity,
    gas_limit: Quantity,
    gas_used: Quantity,
    timestamp: Quantity,
    extra_data: Data,
    base_fee_per_gas: Quantity256,
    block_hash: FixedData<32>,
    transactions: List<Data, { TRANSACTIONS.items }>,
    withdrawals: Option<List<Object<WithdrawalFields>, JSON_WITHDRAWALS>>,
    blob_gas_used: Option<Quantity>,
    excess_blob_gas: Option<Quantity>,
    block_access_list: Option<Data>,
    slot_number: Option<Quantity>,
}

/// `WithdrawalV1`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WithdrawalFields {
    index: Quantity,
    validator_index: Quantity,
    address: FixedData<20>,
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

impl PayloadFields {
    /// Checks that the members are those of the structure that `version` of `engine_newPayload`
    /// takes. Whether the second version needs withdrawals is the fork's to say:
    /// [`NewPayload::check_withdrawals`](crate::NewPayload::check_withdrawals).
    ///
    /// # Errors
    /// When a member is missing, or is not part of the structure.
    pub fn check(&self, version: u8) -> Result<(), Error> {
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

    /// The payload of the structure whose members there are.
    pub fn into_payload(self) -> ExecutionPayload {
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
            transactions: self.transactions.0.into_iter().map(|data| data.0).collect(),
        };
        let withdrawals =
            self.withdrawals.map(|list| list.0.into_iter().map(Withdrawal::from).collect());
        let blob_gas = self.blob_gas_used.zip(self.excess_blob_gas);
        let blob_gas = blob_gas.map(|(used, excess)| [used.0, excess.0]);
        let amsterdam = self.block_access_list.zip(self.slot_number);
        let amsterdam = amsterdam.map(|(list, slot)| (list.0, slot.0));
        payload_of_fields(first, withdrawals, blob_gas, amsterdam)
    }
}

pub(crate) fn missing(name: &str) -> Error {
    Error::Json(format!("executionPayload.{name} is missing"))
}

pub(crate) fn unknown(name: &str, structure: u8) -> Error {
    Error::Json(format!("executionPayload.{name} is not part of ExecutionPayloadV{structure}"))
}
