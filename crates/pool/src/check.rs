//! The checks of a transaction that need no account.

use std::sync::Arc;

use alloy_consensus::Transaction as _;
use alloy_eips::{Encodable2718 as _, Typed2718 as _};
use alloy_hardforks::EthereumHardfork::{
    Amsterdam, Berlin, Cancun, London, Osaka, Prague, Shanghai,
};
use alloy_primitives::{Address, B256};
use execution::{ChainSpec, InvalidBlock, Transaction, intrinsic_gas, recover_signer_at};

use crate::entry::Pooled;
use crate::error::Refusal;
use crate::head::Head;
use crate::limits;

/// The rules for a transaction at a head.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) chain: &'a ChainSpec,
    pub(crate) head: Arc<Head>,
    pub(crate) minimum_tip: u128,
}

impl Rules<'_> {
    /// Checks a transaction in the order of geth (`ValidateTransaction` of `core/txpool`). Without
    /// a `sender` it is the one that signed.
    pub(crate) fn check(
        &self,
        transaction: Transaction,
        hash: B256,
        sender: Option<Address>,
    ) -> Result<Pooled, Refusal> {
        self.check_form(&transaction)?;
        let sender = match sender {
            Some(sender) => sender,
            None => self.recover(&transaction)?,
        };
        if transaction.nonce() == u64::MAX {
            return Err(Refusal::NonceMaximum);
        }
        self.check_gas(&transaction, sender)?;
        let tip = transaction.max_priority_fee_per_gas();
        let tip = tip.unwrap_or_else(|| transaction.max_fee_per_gas());
        if tip < self.minimum_tip {
            return Err(Refusal::TipTooLow { tip, needed: self.minimum_tip });
        }
        if let Some(fee) = transaction.max_fee_per_blob_gas().filter(|fee| *fee == 0) {
            return Err(Refusal::BlobFeeTooLow(fee));
        }
        if transaction.authorization_list().is_some_and(<[_]>::is_empty) {
            return Err(Refusal::NoAuthorization);
        }
        Ok(Pooled::new(transaction, hash, sender))
    }

    /// The most gas of a transaction, whatever the block's limit is.
    pub(crate) fn gas_cap(head: &Head) -> u64 {
        match head.fork {
            fork if fork >= Amsterdam => limits::TRANSACTION_GAS_AMSTERDAM,
            fork if fork >= Osaka => limits::TRANSACTION_GAS_OSAKA,
            _ => u64::MAX,
        }
    }

    fn check_form(&self, transaction: &Transaction) -> Result<(), Refusal> {
        let size = transaction.encode_2718_len();
        let limit = match transaction.is_eip4844() {
            true => limits::BLOB_TRANSACTION_BYTES,
            false => limits::TRANSACTION_BYTES,
        };
        if size > limit {
            return Err(Refusal::Oversized { size, limit });
        }
        let (kind, fork) = (transaction.ty(), self.head.fork);
        let needed = match kind {
            0 => None,
            _ if fork < Berlin => Some("Berlin"),
            2 if fork < London => Some("London"),
            3 if fork < Cancun => Some("Cancun"),
            4 if fork < Prague => Some("Prague"),
            _ => None,
        };
        if let Some(fork) = needed {
            return Err(Refusal::TypeTooEarly { kind, fork });
        }
        let limit = match fork {
            fork if fork >= Amsterdam => limits::INIT_CODE_BYTES_AMSTERDAM,
            fork if fork >= Shanghai => limits::INIT_CODE_BYTES,
            _ => usize::MAX,
        };
        let size = transaction.input().len();
        if transaction.is_create() && size > limit {
            return Err(Refusal::InitCode { size, limit });
        }
        let (gas, cap) = (transaction.gas_limit(), Self::gas_cap(&self.head));
        if gas > cap {
            return Err(Refusal::GasTooHigh { cap, gas });
        }
        if gas > self.head.header.gas_limit {
            return Err(Refusal::BlockGas);
        }
        let tip = transaction.max_priority_fee_per_gas();
        if tip.is_some_and(|tip| tip > transaction.max_fee_per_gas()) {
            return Err(Refusal::TipAboveFee);
        }
        Ok(())
    }

    fn recover(&self, transaction: &Transaction) -> Result<Address, Refusal> {
        let number = self.head.header.number.saturating_add(1);
        match recover_signer_at(self.chain, number, 0, transaction) {
            Ok(signer) => Ok(signer.address),
            Err(InvalidBlock::TransactionChain { got, expected, .. }) => {
                Err(Refusal::ChainId { got, expected })
            }
            Err(_) => Err(Refusal::Signature),
        }
    }

    fn check_gas(&self, transaction: &Transaction, sender: Address) -> Result<(), Refusal> {
        let needed = intrinsic_gas(self.chain, &self.head.header, transaction, sender);
        let (intrinsic, floor, gas) = (needed.intrinsic, needed.floor, transaction.gas_limit());
        if gas < intrinsic {
            return Err(Refusal::IntrinsicGas { gas, needed: intrinsic });
        }
        if gas < floor {
            return Err(Refusal::FloorGas { gas, needed: floor });
        }
        let cap = limits::TRANSACTION_GAS_OSAKA;
        if self.head.fork >= Amsterdam && intrinsic.max(floor) > cap {
            return Err(Refusal::FloorAboveCap { intrinsic, floor });
        }
        Ok(())
    }
}
