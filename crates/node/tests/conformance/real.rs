//! Real blocks of public networks, with witnesses that other tools made.

use crate::inputs;
use alloy_primitives::Bytes;
use execution::{ChainSpec, decode_block, verify};
use serde::Deserialize;
use std::collections::HashSet;
use witness::Witness;

/// When mainnet came to BPO2, 7 January 2026.
const BPO2_OF_MAINNET: u64 = 1_767_747_671;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RealBlock {
    pub(crate) name: String,
    chain_id: u64,
    block: Bytes,
    witness: Witness,
}

/// The block verifies, whatever the order of the headers, and so does its stateless input; the
/// witness recorded meanwhile is a part of the one given, and enough by itself. Without any one of
/// its codes, its first header, or any one of some of its nodes, the verifier says what it misses.
pub(crate) fn run(real: &RealBlock) -> Result<(), String> {
    let mut given = real.witness.clone();
    given.sort_headers();
    let chain = ChainSpec::from_chain_id(real.chain_id).map_err(|error| error.to_string())?;
    let block = decode_block(&real.block).map_err(|error| error.to_string())?;
    let verified =
        verify(&chain, &block, None, &given).map_err(|error| format!("given witness: {error}"))?;
    if verified.state_root != block.header.state_root {
        return Err("another state root".into());
    }
    let schema = inputs::check(&chain, &block, &verified)?;
    let is_bpo2 = real.chain_id == 1 && block.header.timestamp >= BPO2_OF_MAINNET;
    if is_bpo2 && schema != Some(0x1401) {
        return Err(format!("the input of a block in BPO2 has schema {schema:#06x?}"));
    }
    let recorded = verified.witness;
    let lists = recorded.lists().into_iter().zip(given.lists());
    for (field, (recorded, given)) in ["state", "codes", "headers"].into_iter().zip(lists) {
        let given: HashSet<_> = given.iter().collect();
        if let Some(item) = recorded.iter_shared().find(|item| !given.contains(&item[..])) {
            return Err(format!("{field}: {item} was recorded, but not given"));
        }
    }
    let again = verify(&chain, &block, None, &recorded)
        .map_err(|error| format!("recorded witness: {error}"))?;
    if again.witness != recorded {
        return Err("verifying the recorded witness records another one".into());
    }
    check_nothing_can_be_left_out(&chain, &block, &recorded)
}

fn check_nothing_can_be_left_out(
    chain: &ChainSpec,
    block: &execution::SealedBlock,
    recorded: &Witness,
) -> Result<(), String> {
    for index in 0..recorded.codes.len() {
        let mut less = recorded.clone();
        less.codes.remove(index);
        if !misses(chain, block, &less) {
            return Err(format!("does not miss code {index} of the witness"));
        }
    }
    if recorded.headers.len() > 1 {
        let mut less = recorded.clone();
        less.headers.remove(0);
        if !misses(chain, block, &less) {
            return Err("does not miss the first header of the witness".into());
        }
    }
    // Nodes are many: one in thirty keeps the run short.
    for index in (0..recorded.state.len()).step_by(recorded.state.len() / 30 + 1) {
        let mut less = recorded.clone();
        less.state.remove(index);
        if !misses(chain, block, &less) {
            return Err(format!("does not miss node {index} of the witness"));
        }
    }
    Ok(())
}

fn misses(chain: &ChainSpec, block: &execution::SealedBlock, witness: &Witness) -> bool {
    verify(chain, block, None, witness).is_err_and(|error| error.missing().is_some())
}
