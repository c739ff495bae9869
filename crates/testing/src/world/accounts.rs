use std::collections::BTreeMap;

use alloy_eips::{eip2935, eip4788, eip7002, eip7251};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, U256, address};

/// The contracts that EIP-8282 calls at the end of a block.
pub const BUILDER_CONTRACTS: [Address; 2] = [
    address!("0x0000BFF46984E3725691FA540A8C7589300D8282"),
    address!("0x000064D678505AD48F8CCB093BC65613800E8282"),
];

/// An account before the first block.
#[derive(Debug, Clone, Default)]
pub struct StartAccount {
    /// The nonce.
    pub nonce: u64,
    /// The balance, in wei.
    pub balance: U256,
    /// The code, empty for none.
    pub code: Bytes,
    /// The storage; zero is no slot.
    pub storage: BTreeMap<U256, U256>,
}

impl StartAccount {
    /// A contract with this code.
    pub fn contract(code: impl Into<Bytes>) -> Self {
        Self { nonce: 1, code: code.into(), ..Self::default() }
    }

    /// An account without code and with a million ether.
    pub fn rich() -> Self {
        Self { balance: U256::from(10u128.pow(24)), ..Self::default() }
    }

    /// The account with these slots added.
    #[must_use]
    pub fn storage(mut self, slots: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let words = |(slot, value)| (U256::from(slot), U256::from(value));
        self.storage.extend(slots.into_iter().map(words));
        self
    }
}

/// The system contracts of all forks, with their published codes; those of EIP-8282 only stop.
pub fn system_contracts() -> Vec<(Address, StartAccount)> {
    let codes = [
        (eip4788::BEACON_ROOTS_ADDRESS, eip4788::BEACON_ROOTS_CODE.clone()),
        (eip2935::HISTORY_STORAGE_ADDRESS, eip2935::HISTORY_STORAGE_CODE.clone()),
        (
            eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS,
            eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_CODE.clone(),
        ),
        (
            eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
            eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_CODE.clone(),
        ),
        (BUILDER_CONTRACTS[0], Bytes::from_static(&[0])),
        (BUILDER_CONTRACTS[1], Bytes::from_static(&[0])),
    ];
    codes.map(|(address, code)| (address, StartAccount::contract(code))).into()
}

/// These accounts and the system contracts, as a genesis file has them.
pub fn genesis_alloc(
    accounts: impl IntoIterator<Item = (Address, StartAccount)>,
) -> BTreeMap<Address, GenesisAccount> {
    let word = |(slot, value): (U256, U256)| (B256::from(slot), B256::from(value));
    let entry = |account: StartAccount| GenesisAccount {
        nonce: Some(account.nonce),
        balance: account.balance,
        code: Some(account.code).filter(|code| !code.is_empty()),
        storage: Some(account.storage.into_iter().map(word).collect()),
        ..GenesisAccount::default()
    };
    let accounts = system_contracts().into_iter().chain(accounts);
    accounts.map(|(address, account)| (address, entry(account))).collect()
}

/// The code of an account that delegates to `target` (EIP-7702).
pub fn marker(target: Address) -> Bytes {
    [&[0xef, 0x01, 0x00], target.as_slice()].concat().into()
}
