//! The forks of the rules: those that share the containers of a fork of the Engine API, and the
//! contracts of each.

use std::ops::Range;

use alloy_hardforks::EthereumHardfork::{self, Amsterdam, Bogota, Cancun, Frontier};
use alloy_hardforks::EthereumHardfork::{Osaka, Prague, Shanghai};
use alloy_primitives::{Address, address};
use engine_api::Fork;

/// The forks of the rules whose payloads have the containers of `fork`, the end excluded.
pub const fn rules(fork: Fork) -> Range<EthereumHardfork> {
    match fork {
        Fork::Paris => Frontier..Shanghai,
        Fork::Shanghai => Shanghai..Cancun,
        Fork::Cancun => Cancun..Prague,
        Fork::Prague => Prague..Osaka,
        Fork::Osaka => Osaka..Amsterdam,
        Fork::Amsterdam => Amsterdam..Bogota,
    }
}

/// The forks of the rules that `forks`, which are in order and without gaps, have together; the end
/// is excluded.
pub(crate) const fn rules_of(forks: &[Fork]) -> Range<EthereumHardfork> {
    rules(forks[0]).start..rules(forks[forks.len() - 1]).end
}

/// The contracts that the node itself runs, each with the name in its EIP.
pub(crate) fn precompiles(fork: EthereumHardfork) -> Vec<(&'static str, Address)> {
    const PARIS: [&str; 9] = [
        "ECREC",
        "SHA256",
        "RIPEMD160",
        "ID",
        "MODEXP",
        "BN254_ADD",
        "BN254_MUL",
        "BN254_PAIRING",
        "BLAKE2F",
    ];
    const PRAGUE: [&str; 7] = [
        "BLS12_G1ADD",
        "BLS12_G1MSM",
        "BLS12_G2ADD",
        "BLS12_G2MSM",
        "BLS12_PAIRING_CHECK",
        "BLS12_MAP_FP_TO_G1",
        "BLS12_MAP_FP2_TO_G2",
    ];
    let mut names = PARIS.to_vec();
    if fork >= EthereumHardfork::Cancun {
        names.push("KZG_POINT_EVALUATION");
    }
    if fork >= EthereumHardfork::Prague {
        names.extend(PRAGUE);
    }
    let mut all: Vec<_> =
        (1..).zip(names).map(|(byte, name)| (name, Address::with_last_byte(byte))).collect();
    if fork >= EthereumHardfork::Osaka {
        all.push(("P256VERIFY", address!("0x0000000000000000000000000000000000000100")));
    }
    all
}

/// The contracts that blocks call by themselves, each with the name in its EIP.
pub(crate) fn system_contracts(
    fork: EthereumHardfork,
    deposits: Address,
) -> Vec<(&'static str, Address)> {
    use alloy_eips::{eip2935, eip4788, eip7002, eip7251, eip8282};
    let mut all = Vec::new();
    if fork >= EthereumHardfork::Cancun {
        all.push(("BEACON_ROOTS_ADDRESS", eip4788::BEACON_ROOTS_ADDRESS));
    }
    if fork >= EthereumHardfork::Prague {
        let consolidations = eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS;
        let withdrawals = eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS;
        all.extend([
            ("CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS", consolidations),
            ("DEPOSIT_CONTRACT_ADDRESS", deposits),
            ("HISTORY_STORAGE_ADDRESS", eip2935::HISTORY_STORAGE_ADDRESS),
            ("WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS", withdrawals),
        ]);
    }
    if fork >= EthereumHardfork::Amsterdam {
        all.extend([
            ("BUILDER_DEPOSIT_CONTRACT_ADDRESS", eip8282::BUILDER_DEPOSIT_CONTRACT_ADDRESS),
            ("BUILDER_EXIT_CONTRACT_ADDRESS", eip8282::BUILDER_EXIT_CONTRACT_ADDRESS),
        ]);
    }
    all
}
