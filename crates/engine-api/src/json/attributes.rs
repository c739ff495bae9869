//! `ForkchoiceStateV1` and `PayloadAttributesV1` to `V4`.

use alloy_eips::eip4895::Withdrawal;
use alloy_rpc_types_engine::{ForkchoiceState, PayloadAttributes};
use serde::Deserialize;

use super::hex::{FixedData, Quantity};
use super::list::List;
use super::object::Object;
use super::payload::WithdrawalFields;
use crate::Error;
use crate::limits::JSON_WITHDRAWALS;

/// `ForkchoiceStateV1`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkchoiceStateFields {
    head_block_hash: FixedData<32>,
    safe_block_hash: FixedData<32>,
    finalized_block_hash: FixedData<32>,
}

impl From<ForkchoiceStateFields> for ForkchoiceState {
    fn from(fields: ForkchoiceStateFields) -> Self {
        Self {
            head_block_hash: fields.head_block_hash.into(),
            safe_block_hash: fields.safe_block_hash.into(),
            finalized_block_hash: fields.finalized_block_hash.into(),
        }
    }
}

/// The members of payload attributes of any version; which ones a version has is checked by
/// [`check`](Self::check).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttributesFields {
    timestamp: Quantity,
    prev_randao: FixedData<32>,
    suggested_fee_recipient: FixedData<20>,
    withdrawals: Option<List<Object<WithdrawalFields>, JSON_WITHDRAWALS>>,
    parent_beacon_block_root: Option<FixedData<32>>,
    slot_number: Option<Quantity>,
    target_gas_limit: Option<Quantity>,
}

impl AttributesFields {
    /// Seconds since 1970, by which the fork of the payload to build goes.
    pub const fn timestamp(&self) -> u64 {
        self.timestamp.0
    }

    /// Checks that the members are those of `PayloadAttributesV1` to `V4`.
    ///
    /// # Errors
    /// When a member is missing, or is not part of the structure.
    pub fn check(&self, structure: u8) -> Result<(), Error> {
        let optional = [
            ("withdrawals", self.withdrawals.is_some(), 2),
            ("parentBeaconBlockRoot", self.parent_beacon_block_root.is_some(), 3),
            ("slotNumber", self.slot_number.is_some(), 4),
            ("targetGasLimit", self.target_gas_limit.is_some(), 4),
        ];
        for (name, present, since) in optional {
            match (present, structure >= since) {
                (false, true) => return Err(Error::Json(format!("{name} is missing"))),
                (true, false) => {
                    let reason = format!("{name} is not part of PayloadAttributesV{structure}");
                    return Err(Error::Json(reason));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The attributes with the members that there are.
    pub fn into_attributes(self) -> PayloadAttributes {
        PayloadAttributes {
            timestamp: self.timestamp.0,
            prev_randao: self.prev_randao.into(),
            suggested_fee_recipient: self.suggested_fee_recipient.into(),
            withdrawals: self
                .withdrawals
                .map(|list| list.0.into_iter().map(Withdrawal::from).collect()),
            parent_beacon_block_root: self.parent_beacon_block_root.map(Into::into),
            slot_number: self.slot_number.map(|slot| slot.0),
            target_gas_limit: self.target_gas_limit.map(|limit| limit.0),
        }
    }
}
