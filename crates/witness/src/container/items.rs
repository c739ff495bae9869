//! Withdrawals and requests as values of fixed size.

use super::{Fixed, Item};
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip6110::DepositRequest;
use alloy_eips::eip7002::WithdrawalRequest;
use alloy_eips::eip7251::ConsolidationRequest;
use alloy_eips::eip8282::{BuilderDepositRequest, BuilderExitRequest};

impl Item for Withdrawal {
    const FIELDS_BYTES: &'static [usize] = &[8, 8, 20, 8];

    fn read(fixed: &mut Fixed<'_>) -> Self {
        Self {
            index: fixed.u64(),
            validator_index: fixed.u64(),
            address: fixed.bytes(),
            amount: fixed.u64(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.index.to_le_bytes());
        out.extend_from_slice(&self.validator_index.to_le_bytes());
        out.extend_from_slice(self.address.as_slice());
        out.extend_from_slice(&self.amount.to_le_bytes());
    }
}

impl Item for DepositRequest {
    const FIELDS_BYTES: &'static [usize] = &[48, 32, 8, 96, 8];

    fn read(fixed: &mut Fixed<'_>) -> Self {
        Self {
            pubkey: fixed.bytes(),
            withdrawal_credentials: fixed.bytes(),
            amount: fixed.u64(),
            signature: fixed.bytes(),
            index: fixed.u64(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.pubkey.as_slice());
        out.extend_from_slice(self.withdrawal_credentials.as_slice());
        out.extend_from_slice(&self.amount.to_le_bytes());
        out.extend_from_slice(self.signature.as_slice());
        out.extend_from_slice(&self.index.to_le_bytes());
    }
}

impl Item for WithdrawalRequest {
    const FIELDS_BYTES: &'static [usize] = &[20, 48, 8];

    fn read(fixed: &mut Fixed<'_>) -> Self {
        Self { source_address: fixed.bytes(), validator_pubkey: fixed.bytes(), amount: fixed.u64() }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.source_address.as_slice());
        out.extend_from_slice(self.validator_pubkey.as_slice());
        out.extend_from_slice(&self.amount.to_le_bytes());
    }
}

impl Item for ConsolidationRequest {
    const FIELDS_BYTES: &'static [usize] = &[20, 48, 48];

    fn read(fixed: &mut Fixed<'_>) -> Self {
        Self {
            source_address: fixed.bytes(),
            source_pubkey: fixed.bytes(),
            target_pubkey: fixed.bytes(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.source_address.as_slice());
        out.extend_from_slice(self.source_pubkey.as_slice());
        out.extend_from_slice(self.target_pubkey.as_slice());
    }
}

impl Item for BuilderDepositRequest {
    const FIELDS_BYTES: &'static [usize] = &[48, 32, 8, 96];

    fn read(fixed: &mut Fixed<'_>) -> Self {
        Self {
            pubkey: fixed.bytes(),
            withdrawal_credentials: fixed.bytes(),
            amount: fixed.u64(),
            signature: fixed.bytes(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.pubkey.as_slice());
        out.extend_from_slice(self.withdrawal_credentials.as_slice());
        out.extend_from_slice(&self.amount.to_le_bytes());
        out.extend_from_slice(self.signature.as_slice());
    }
}

impl Item for BuilderExitRequest {
    const FIELDS_BYTES: &'static [usize] = &[20, 48];

    fn read(fixed: &mut Fixed<'_>) -> Self {
        Self { source_address: fixed.bytes(), pubkey: fixed.bytes() }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.source_address.as_slice());
        out.extend_from_slice(self.pubkey.as_slice());
    }
}
