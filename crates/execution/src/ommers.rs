//! The rules of blocks with proof of work that concern ancestors beyond the parent: the total
//! difficulty and the ommers.

use crate::{ChainSpec, InvalidBlock, SealedBlock, validate_header};
use alloy_consensus::Header;
use alloy_primitives::{B256, U256};

/// The number of ancestors of a block among which its ommers' parents are.
pub const OMMER_GENERATIONS: usize = 7;

/// Ommers that a block may have.
const OMMERS: usize = 2;

/// Checks the rules of a block that concern ancestors beyond its parent: the total difficulty,
/// which decides on the merge, and the ommers. Call it before [`validate`](crate::validate) for
/// every block whose difficulty or whose parent's is not zero. A witness lacks these ancestors, so
/// [`verify`](crate::verify) leaves these rules out.
///
/// `total_difficulty` is the sum of all difficulties up to the parent, genesis included.
/// `ancestors` are the last [`OMMER_GENERATIONS`] blocks, the parent first, fewer where the chain
/// is shorter; a block without ommers needs none of them.
///
/// # Errors
/// [`InvalidBlock::Merge`], [`InvalidBlock::OmmerCount`] and [`InvalidBlock::Ommer`].
pub fn validate_ancestry(
    chain: &ChainSpec,
    block: &SealedBlock,
    total_difficulty: U256,
    ancestors: &[&SealedBlock],
) -> Result<(), InvalidBlock> {
    let has_proof_of_work = !block.header.difficulty.is_zero();
    if let Some(terminal) = chain.terminal_total_difficulty(has_proof_of_work)
        && has_proof_of_work == (total_difficulty >= terminal)
    {
        let difficulty = block.header.difficulty;
        return Err(InvalidBlock::Merge { difficulty, total_difficulty, terminal });
    }
    validate_ommers(chain, block, ancestors)
}

/// The rules of a block's ommers that need no ancestors.
pub(crate) fn validate_ommers_alone(block: &SealedBlock) -> Result<(), InvalidBlock> {
    let ommers = &block.body.ommers;
    if ommers.len() > OMMERS {
        return Err(InvalidBlock::OmmerCount(ommers.len()));
    }
    for (index, ommer) in ommers.iter().enumerate() {
        let wrong = |reason: &str| InvalidBlock::Ommer { index, reason: reason.to_owned() };
        if ommers[..index].contains(ommer) {
            return Err(wrong("has been one before"));
        }
        let behind = block.header.number.checked_sub(ommer.number);
        if !behind.is_some_and(|behind| (1..OMMER_GENERATIONS as u64).contains(&behind)) {
            return Err(wrong("is no child of one of the six blocks before the parent"));
        }
        if ommer.difficulty.is_zero() {
            return Err(wrong("has no proof of work"));
        }
    }
    Ok(())
}

fn validate_ommers(
    chain: &ChainSpec,
    block: &SealedBlock,
    ancestors: &[&SealedBlock],
) -> Result<(), InvalidBlock> {
    validate_ommers_alone(block)?;
    let ommers = &block.body.ommers;
    if ommers.is_empty() {
        return Ok(());
    }
    let ancestors = &ancestors[..ancestors.len().min(OMMER_GENERATIONS)];
    let known = ancestors.iter().flat_map(|ancestor| &ancestor.body.ommers);
    let mut known: Vec<B256> = known.map(Header::hash_slow).collect();
    for (index, ommer) in ommers.iter().enumerate() {
        let wrong = |reason: &str| InvalidBlock::Ommer { index, reason: reason.to_owned() };
        let hash = ommer.hash_slow();
        if known.contains(&hash) {
            return Err(wrong("has been one before"));
        }
        known.push(hash);
        if ancestors.iter().any(|ancestor| ancestor.hash() == hash) {
            return Err(wrong("is an ancestor"));
        }
        // The parent's other children are of the block's own generation.
        let mut parents = ancestors.iter().skip(1);
        let Some(parent) = parents.find(|ancestor| ancestor.hash() == ommer.parent_hash) else {
            return Err(wrong("is no child of one of the six blocks before the parent"));
        };
        validate_header(chain, ommer, &parent.header, parent.hash())
            .map_err(|error| wrong(&error.to_string()))?;
    }
    Ok(())
}
