//! The rules of blocks with proof of work, but for the proof itself: that a seal was worth its
//! difficulty (Ethash) is not checked.

use crate::{Block, ChainSpec, InvalidBlock};
use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_evm::block::calc::{base_block_reward, block_reward, ommer_reward};
use alloy_hardforks::{EthereumHardfork, EthereumHardforks};
use alloy_primitives::{Address, U256, uint};

/// The payment for a block, or for an ommer of it, before the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockReward {
    /// The account that is paid.
    pub author: Address,
    /// Whether it is for an ommer of the block.
    pub is_of_ommer: bool,
    /// In wei.
    pub value: u128,
}

/// The payments for a block and its ommers, none after the merge.
pub fn block_rewards(chain: &ChainSpec, block: &Block) -> Vec<BlockReward> {
    let number = block.header.number;
    let Some(base) = base_block_reward(chain, number) else { return Vec::new() };
    let ommers = &block.body.ommers;
    let of_block = BlockReward {
        author: block.header.beneficiary,
        is_of_ommer: false,
        value: block_reward(base, ommers.len()),
    };
    let of_ommers = ommers.iter().map(|ommer| BlockReward {
        author: ommer.beneficiary,
        is_of_ommer: true,
        value: ommer_reward(base, number, ommer.number),
    });
    [of_block].into_iter().chain(of_ommers).collect()
}

const DIFFICULTY_MINIMUM: U256 = uint!(131_072_U256);
const DIFFICULTY_BOUND_DIVISOR: U256 = uint!(2048_U256);
/// Blocks in which the difficulty bomb doubles.
const BOMB_PERIOD: u64 = 100_000;
/// The lowest factor by which a late block makes the next one easier.
const FACTOR_MINIMUM: i64 = -99;

/// Forks that delay the difficulty bomb, latest first, with the delay in blocks:
/// EIP-5133, EIP-4345, EIP-3554, EIP-2384, EIP-1234, EIP-649.
const BOMB_DELAYS: [(EthereumHardfork, u64); 6] = [
    (EthereumHardfork::GrayGlacier, 11_400_000),
    (EthereumHardfork::ArrowGlacier, 10_700_000),
    (EthereumHardfork::London, 9_700_000),
    (EthereumHardfork::MuirGlacier, 9_000_000),
    (EthereumHardfork::Constantinople, 5_000_000),
    (EthereumHardfork::Byzantium, 3_000_000),
];

const DAO_EXTRA_DATA: &[u8] = b"dao-hard-fork";
/// Blocks from the DAO fork on that carry [`DAO_EXTRA_DATA`].
const DAO_EXTRA_DATA_BLOCKS: u64 = 10;

/// The difficulty of the block after `parent` at `timestamp`, which is after the parent's.
pub fn next_difficulty(chain: &ChainSpec, parent: &Header, timestamp: u64) -> U256 {
    let number = parent.number.saturating_add(1);
    let is_active = |fork| chain.is_ethereum_fork_active_at_block(fork, number);
    let late = timestamp.saturating_sub(parent.timestamp);
    let delay = BOMB_DELAYS.into_iter().find(|(fork, _)| is_active(*fork));
    let factor = match delay {
        // EIP-100: blocks with ommers are followed by harder ones.
        Some(_) if parent.ommers_hash != EMPTY_OMMER_ROOT_HASH => 2 - signed(late / 9),
        Some(_) => 1 - signed(late / 9),
        // EIP-2.
        None if is_active(EthereumHardfork::Homestead) => 1 - signed(late / 10),
        None if late < 13 => 1,
        None => -1,
    };
    let step = parent.difficulty / DIFFICULTY_BOUND_DIVISOR;
    let change = step.saturating_mul(U256::from(factor.max(FACTOR_MINIMUM).unsigned_abs()));
    let difficulty = match factor < 0 {
        true => parent.difficulty.saturating_sub(change),
        false => parent.difficulty.saturating_add(change),
    };
    let delayed_number = number.saturating_sub(delay.map_or(0, |(_, blocks)| blocks));
    difficulty.saturating_add(bomb(delayed_number)).max(DIFFICULTY_MINIMUM)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn bomb(number: u64) -> U256 {
    match (number / BOMB_PERIOD).checked_sub(2) {
        None => U256::ZERO,
        Some(doublings) => U256::ONE
            .checked_shl(usize::try_from(doublings).unwrap_or(usize::MAX))
            .unwrap_or(U256::MAX),
    }
}

/// Whether a block after `parent` with this header must have proof of work. If the chain's
/// configuration does not name the first block without, the header decides, and
/// [`validate_ancestry`] checks it.
pub(crate) fn has_proof_of_work(chain: &ChainSpec, header: &Header, parent: &Header) -> bool {
    match chain.is_merged_at(header.number) {
        Some(merged) => !merged,
        None => {
            let parent_is_merged = parent.difficulty.is_zero() && parent.number > 0;
            !header.difficulty.is_zero() && !parent_is_merged
        }
    }
}

/// Checks the fields of a header with proof of work that others do not have.
pub(crate) fn validate_fields(
    chain: &ChainSpec,
    header: &Header,
    parent: &Header,
) -> Result<(), InvalidBlock> {
    let (got, expected) = (header.difficulty, next_difficulty(chain, parent, header.timestamp));
    if got != expected {
        return Err(InvalidBlock::Difficulty { got, expected });
    }
    if chain.is_shanghai_active_at_timestamp(header.timestamp) {
        let timestamp = header.timestamp;
        return Err(InvalidBlock::UnexpectedField { field: "proof of work", timestamp });
    }
    let dao = chain.ethereum_fork_activation(EthereumHardfork::Dao).block_number();
    let since = dao.and_then(|dao| header.number.checked_sub(dao));
    if since.is_some_and(|since| since < DAO_EXTRA_DATA_BLOCKS)
        && header.extra_data[..] != *DAO_EXTRA_DATA
    {
        return Err(InvalidBlock::DaoExtraData(header.number));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_consensus::BlockBody;

    #[test]
    fn rewards_are_those_of_the_yellow_paper() {
        let chain = ChainSpec::from_chain_id(1).expect("mainnet");
        let block = |number, ommers: &[u64]| {
            let header = |number| Header {
                number,
                beneficiary: Address::with_last_byte(number as u8),
                ..Header::default()
            };
            let ommers = ommers.iter().map(|number| header(*number)).collect();
            Block { header: header(number), body: BlockBody { ommers, ..BlockBody::default() } }
        };
        let check = |number, ommers: &[u64], expected: &[u128]| {
            let rewards = block_rewards(&chain, &block(number, ommers));
            let paid: Vec<_> =
                rewards.iter().map(|reward| reward.value / 100_000_000_000_000).collect();
            assert_eq!(paid, expected, "block {number}");
            for (reward, number) in rewards.iter().skip(1).zip(ommers) {
                assert!(reward.is_of_ommer);
                assert_eq!(reward.author, Address::with_last_byte(*number as u8));
            }
        };
        // In ten-thousandths of an ether.
        check(1_000_000, &[], &[50_000]);
        check(1_000_000, &[999_999, 999_994], &[53_125, 43_750, 12_500]);
        check(5_000_000, &[4_999_998], &[30_937, 22_500]);
        check(10_000_000, &[], &[20_000]);
        check(20_000_000, &[], &[]);
    }
}
