//! Withdrawals and requests as values of fixed size.

use super::{Fixed, Item};
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip6110::DepositRequest;
use alloy_eips::eip7002::WithdrawalRequest;
use alloy_eips::eip7251::ConsolidationRequest;
use alloy_eips::eip8282::{BuilderDepositRequest, BuilderExitRequest};
use alloy_primitives::{Address, B256, FixedBytes};

impl Item for u64 {
    const FIELDS_BYTES: &'static [usize] = &[8];

    fn read(fixed: &mut Fixed<'_>) -> Self {
        fixed.u64()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
}

impl<const N: usize> Item for FixedBytes<N> {
    const FIELDS_BYTES: &'static [usize] = &[N];

    fn read(fixed: &mut Fixed<'_>) -> Self {
        fixed.bytes()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_slice());
    }
}

impl Item for Address {
    const FIELDS_BYTES: &'static [usize] = &[20];

    fn read(fixed: &mut Fixed<'_>) -> Self {
        fixed.bytes()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_slice());
    }
}

/// Containers, by their fields in order.
macro_rules! items {
    ($($item:ty { $($field:ident: $type:ty),* })*) => {$(
        impl Item for $item {
            const FIELDS_BYTES: &'static [usize] = &[$(<$type as Item>::BYTES),*];

            fn read(fixed: &mut Fixed<'_>) -> Self {
                Self { $($field: Item::read(fixed)),* }
            }

            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)*
            }
        }
    )*};
}

type BlsKey = FixedBytes<48>;
type BlsSignature = FixedBytes<96>;

items! {
    Withdrawal { index: u64, validator_index: u64, address: Address, amount: u64 }
    DepositRequest {
        pubkey: BlsKey, withdrawal_credentials: B256, amount: u64, signature: BlsSignature,
        index: u64
    }
    WithdrawalRequest { source_address: Address, validator_pubkey: BlsKey, amount: u64 }
    ConsolidationRequest {
        source_address: Address, source_pubkey: BlsKey, target_pubkey: BlsKey
    }
    BuilderDepositRequest {
        pubkey: BlsKey, withdrawal_credentials: B256, amount: u64, signature: BlsSignature
    }
    BuilderExitRequest { source_address: Address, pubkey: BlsKey }
}
