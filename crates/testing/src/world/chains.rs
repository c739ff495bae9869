use alloy_genesis::ChainConfig;
use alloy_primitives::{Address, U256, address};
use execution::ChainSpec;

/// The chain ID of all chains here.
pub const CHAIN_ID: u64 = 1;
/// The beneficiary of all blocks here.
pub const COINBASE: Address = address!("0x00000000000000000000000000000000c01ba5e0");
/// The maximum fee of all transactions here, in wei per gas; base fees stay below.
pub const GAS_PRICE: u128 = 1_000_000_000;

/// The rules with all forks up to `fork`, from "paris" on, active from the first block on.
///
/// # Panics
/// If there is no such fork.
pub fn chain(fork: &str) -> ChainSpec {
    ChainSpec::from_config(&config(fork)).expect("a configuration in order")
}

/// The configuration of [`chain`].
///
/// # Panics
/// If there is no such fork.
pub fn config(fork: &str) -> ChainConfig {
    let forks = ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"];
    let last = forks.iter().position(|name| *name == fork).expect("a fork's name");
    let time = |name: &str| {
        let at = forks.iter().position(|fork| *fork == name).expect("a fork's name");
        (at <= last).then_some(0)
    };
    ChainConfig {
        chain_id: CHAIN_ID,
        homestead_block: Some(0),
        eip150_block: Some(0),
        eip155_block: Some(0),
        eip158_block: Some(0),
        byzantium_block: Some(0),
        constantinople_block: Some(0),
        petersburg_block: Some(0),
        istanbul_block: Some(0),
        berlin_block: Some(0),
        london_block: Some(0),
        terminal_total_difficulty: Some(U256::ZERO),
        terminal_total_difficulty_passed: true,
        shanghai_time: time("shanghai"),
        cancun_time: time("cancun"),
        prague_time: time("prague"),
        osaka_time: time("osaka"),
        amsterdam_time: time("amsterdam"),
        ..ChainConfig::default()
    }
}

/// The rules of a chain with proof of work, with all forks up to `fork` active from the first block
/// on. In Constantinople, Petersburg is too far to come.
///
/// # Panics
/// If there is no such fork.
pub fn old_chain(fork: &str) -> ChainSpec {
    let forks =
        ["frontier", "homestead", "eip158", "byzantium", "constantinople", "istanbul", "london"];
    let last = forks.iter().position(|name| *name == fork).expect("a fork's name");
    let number = |at: usize| (at <= last).then_some(0);
    let config = ChainConfig {
        chain_id: CHAIN_ID,
        homestead_block: number(1),
        eip150_block: number(2),
        eip155_block: number(2),
        eip158_block: number(2),
        byzantium_block: number(3),
        constantinople_block: number(4),
        petersburg_block: number(5).or((fork == "constantinople").then_some(u64::MAX)),
        istanbul_block: number(5),
        berlin_block: number(6),
        london_block: number(6),
        ..ChainConfig::default()
    };
    ChainSpec::from_config(&config).expect("a configuration in order")
}
