//! The rules behind the header `Eth-Execution-Version`.

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
