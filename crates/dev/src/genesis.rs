use alloy_eips::{eip2935, eip4788, eip7002, eip7251};
use alloy_genesis::{ChainConfig, GenesisAccount};
use alloy_hardforks::EthereumHardfork;
use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256, address, bytes};
use engine::{Amendment, Engine};
use execution::ChainSpec;
use std::collections::BTreeMap;

use crate::Error;
use crate::limits::{BASE_FEE, CHAIN_ID, GAS_LIMIT};

/// The first block of a chain for tests.
#[derive(Debug, Clone)]
pub struct DevGenesis {
    /// The chain's identifier.
    pub chain_id: u64,
    /// The latest fork of the first block, from [`EthereumHardfork::Paris`] on.
    pub fork: EthereumHardfork,
    /// Later forks, with their times.
    pub later: Vec<(EthereumHardfork, u64)>,
    /// The gas limit.
    pub gas_limit: u64,
    /// The base fee, in wei.
    pub base_fee: u64,
    /// The time.
    pub timestamp: u64,
    /// The accounts, beside the contracts that the forks need.
    pub accounts: BTreeMap<Address, GenesisAccount>,
}

/// The rules and the first block of a chain.
#[derive(Debug)]
pub struct Genesis {
    /// The rules.
    pub chain: ChainSpec,
    /// The first block.
    pub first: engine::Genesis,
    /// Both, in the form of geth's file.
    pub file: alloy_genesis::Genesis,
}

impl Default for DevGenesis {
    /// At Osaka, without accounts.
    fn default() -> Self {
        Self {
            chain_id: CHAIN_ID,
            fork: EthereumHardfork::Osaka,
            later: Vec::new(),
            gas_limit: GAS_LIMIT,
            base_fee: BASE_FEE,
            timestamp: 0,
            accounts: BTreeMap::new(),
        }
    }
}

/// Contracts that each block calls (EIP-4788, EIP-2935, EIP-7002, EIP-7251, EIP-8282).
pub(crate) const SYSTEM_CONTRACTS: [Address; 6] = [
    eip4788::BEACON_ROOTS_ADDRESS,
    eip2935::HISTORY_STORAGE_ADDRESS,
    eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS,
    eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
    BUILDER_CONTRACTS[0],
    BUILDER_CONTRACTS[1],
];

/// The contracts of EIP-8282.
const BUILDER_CONTRACTS: [Address; 2] = [
    address!("0x0000bff46984e3725691fa540a8c7589300d8282"),
    address!("0x000064d678505ad48f8ccb093bc65613800e8282"),
];

/// The contracts that the forks and common tools expect, by address.
pub(crate) fn contracts() -> [(Address, Bytes); 7] {
    [
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
        // EIP-8282, of Amsterdam. They only stop: there are no builders, so no requests.
        (BUILDER_CONTRACTS[0], bytes!("0x00")),
        (BUILDER_CONTRACTS[1], bytes!("0x00")),
        // The deployer of CREATE2 that anvil and forge expect.
        (
            address!("0x4e59b44847b379578588920ca78fbf26c0b4956c"),
            bytes!(
                "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0"
                "3601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
            ),
        ),
    ]
}

/// The changes that add the contracts without which no block can be mined at the head, or later:
/// chains that other programs made for tests lack them.
///
/// # Errors
/// When the state at the head cannot be read.
pub fn missing_contracts(engine: &Engine) -> Result<Vec<(Address, Amendment)>, engine::Error> {
    let last = engine.chain().fork_at(u64::MAX);
    let state = engine.state(engine.heads().head)?;
    let mut missing = Vec::new();
    for (address, code) in contracts() {
        let since = match address {
            eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS
            | eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS => EthereumHardfork::Prague,
            _ if BUILDER_CONTRACTS.contains(&address) => EthereumHardfork::Amsterdam,
            _ => continue,
        };
        if last < since {
            continue;
        }
        let account = state.account(address)?;
        if account.is_none_or(|account| account.code_hash == KECCAK256_EMPTY) {
            missing.extend([Amendment::Nonce(1), Amendment::Code(code)].map(|it| (address, it)));
        }
    }
    Ok(missing)
}

impl DevGenesis {
    /// With one more account, and its balance in wei.
    #[must_use]
    pub fn rich(mut self, address: Address, balance: U256) -> Self {
        let account = GenesisAccount { balance, ..GenesisAccount::default() };
        self.accounts.insert(address, account);
        self
    }

    /// The rules and the first block.
    ///
    /// # Errors
    /// [`Error::Genesis`] when the forks are not in order, or not implemented.
    pub fn build(self) -> Result<Genesis, Error> {
        let wrong = |fault: &dyn std::fmt::Display| Error::Genesis(fault.to_string());
        let mut alloc: BTreeMap<_, _> = contracts()
            .into_iter()
            .map(|(address, code)| {
                let (nonce, code) = (Some(1), Some(code));
                (address, GenesisAccount { nonce, code, ..GenesisAccount::default() })
            })
            .collect();
        alloc.extend(self.accounts.clone());
        let file = alloy_genesis::Genesis {
            config: self.config()?,
            timestamp: self.timestamp,
            gas_limit: self.gas_limit,
            base_fee_per_gas: Some(self.base_fee.into()),
            alloc,
            ..alloy_genesis::Genesis::default()
        };
        let chain = ChainSpec::from_config(&file.config).map_err(|fault| wrong(&fault))?;
        let first = engine::Genesis::new(&file, &chain).map_err(|fault| wrong(&fault))?;
        Ok(Genesis { chain, first, file })
    }

    /// The rules, in the form of geth's file.
    ///
    /// # Errors
    /// [`Error::Genesis`] when the first fork is before the merge.
    pub fn config(&self) -> Result<ChainConfig, Error> {
        use EthereumHardfork::{Amsterdam, Cancun, Osaka, Paris, Prague, Shanghai};
        let mut config = ChainConfig {
            chain_id: self.chain_id,
            homestead_block: Some(0),
            eip150_block: Some(0),
            eip155_block: Some(0),
            eip158_block: Some(0),
            byzantium_block: Some(0),
            constantinople_block: Some(0),
            petersburg_block: Some(0),
            istanbul_block: Some(0),
            muir_glacier_block: Some(0),
            berlin_block: Some(0),
            london_block: Some(0),
            arrow_glacier_block: Some(0),
            gray_glacier_block: Some(0),
            terminal_total_difficulty: Some(U256::ZERO),
            terminal_total_difficulty_passed: true,
            merge_netsplit_block: Some(0),
            ..ChainConfig::default()
        };
        config.extra_fields.insert("deponentDev".into(), true.into());
        if self.fork < Paris {
            let words = format!("{} is before the merge; begin with paris or later", self.fork);
            return Err(Error::Genesis(words));
        }
        let times = [
            (Shanghai, &mut config.shanghai_time),
            (Cancun, &mut config.cancun_time),
            (Prague, &mut config.prague_time),
            (Osaka, &mut config.osaka_time),
            (Amsterdam, &mut config.amsterdam_time),
        ];
        for (fork, time) in times {
            let later = self.later.iter().find(|(later, _)| *later == fork);
            *time = if fork <= self.fork { Some(0) } else { later.map(|(_, time)| *time) };
        }
        Ok(config)
    }
}
