//! The fees of a transaction that names some of them or none, as geth fills them in
//! (`setFeeDefaults` in `internal/ethapi/transaction_args.go` of 1.17.8).

use alloy_consensus::Header;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::U256;
use engine_api::json::Quantity256;
use rpc::Error;

use super::Api;
use super::call::{Request, unfit};
use super::fees::suggested_tip;

impl Request {
    /// Whether it names a fee.
    pub(super) const fn names_fees(&self) -> bool {
        self.gas_price.is_some()
            || self.max_fee_per_gas.is_some()
            || self.max_priority_fee_per_gas.is_some()
            || self.max_fee_per_blob_gas.is_some()
    }

    /// Fills in the fees that it does not name, for a block with this header or the next one.
    pub(super) fn fill_fees(&mut self, api: &Api, header: &Header) -> Result<(), Error> {
        let is_zero = |fee: &Option<Quantity256>| fee.as_ref().is_some_and(|fee| fee.0.is_zero());
        if is_zero(&self.max_fee_per_blob_gas) {
            return Err(unfit("maxFeePerBlobGas, if specified, must be non-zero"));
        }
        let blobs = api.engine.chain().blob_params(header.timestamp);
        if let (Some(blobs), None, true) =
            (blobs, &self.max_fee_per_blob_gas, self.blob_versioned_hashes.is_some())
        {
            let fee = header.blob_fee(blobs).unwrap_or_default();
            self.max_fee_per_blob_gas = Some(Quantity256(U256::from(fee) * U256::from(2)));
        }
        let (max, tip) = (&self.max_fee_per_gas, &self.max_priority_fee_per_gas);
        if self.gas_price.is_some() && (max.is_some() || tip.is_some()) {
            return Err(unfit(
                "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
            ));
        }
        if self.gas_price.is_some() && self.authorization_list.is_some() {
            return Err(unfit("both gasPrice and authorizationList specified"));
        }
        if tip.is_some() && is_zero(max) {
            return Err(unfit("maxFeePerGas must be non-zero"));
        }
        let london = api.engine.chain().is_london_active_at_block(header.number);
        if self.gas_price.is_some() {
            return match london && is_zero(&self.gas_price) {
                true => Err(unfit("gasPrice must be non-zero after london fork")),
                false => Ok(()),
            };
        }
        if !london && max.is_none() && tip.is_none() {
            self.gas_price = Some(Quantity256(U256::from(suggested_tip(api)?)));
            return Ok(());
        }
        if !london && (max.is_none() || tip.is_none()) {
            return Err(unfit(
                "maxFeePerGas and maxPriorityFeePerGas are not valid before London is active",
            ));
        }
        self.fill_london_fees(api, header)
    }

    fn fill_london_fees(&mut self, api: &Api, header: &Header) -> Result<(), Error> {
        let tip = match &self.max_priority_fee_per_gas {
            Some(tip) => tip.0,
            None => U256::from(suggested_tip(api)?),
        };
        let base_fee = U256::from(header.base_fee_per_gas.unwrap_or_default());
        let max = match &self.max_fee_per_gas {
            Some(max) => max.0,
            None => tip.saturating_add(base_fee * U256::from(2)),
        };
        if max < tip {
            let problem = format!("maxFeePerGas ({max:#x}) < maxPriorityFeePerGas ({tip:#x})");
            return Err(unfit(problem));
        }
        self.max_fee_per_gas = Some(Quantity256(max));
        self.max_priority_fee_per_gas = Some(Quantity256(tip));
        Ok(())
    }
}
