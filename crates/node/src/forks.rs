//! The forks of the rules that share the containers of a fork of the Engine API.

use std::ops::Range;

use alloy_hardforks::EthereumHardfork::{self, Amsterdam, Bogota, Cancun, Frontier};
use alloy_hardforks::EthereumHardfork::{Osaka, Prague, Shanghai};
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
