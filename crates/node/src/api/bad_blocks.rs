//! `debug_getBadBlocks`: the newest blocks that were found to be invalid, as geth shows them.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use execution::{SealedBlock, recover_signer};
use rpc::{Code, Error, Json, Params, Pieces};
use serde::Serialize;

use super::Api;
use super::eth::{RpcBlock, shown_block};

/// An entry of the answer.
#[derive(Serialize)]
struct BadBlock {
    hash: B256,
    block: RpcBlock,
    rlp: Bytes,
}

/// `debug_getBadBlocks`. The blocks are rendered one by one: as values they take more memory.
pub(super) fn bad_blocks(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let mut answer = Pieces::from(vec![b'[']);
    for (index, block) in api.engine.bad_blocks().into_iter().enumerate() {
        let mut text = if index == 0 { Vec::new() } else { vec![b','] };
        serde_json::to_writer(&mut text, &shown(&block))
            .map_err(|fault| Error::new(Code::Internal, fault))?;
        answer.push(text);
    }
    answer.push(vec![b']']);
    Ok(answer.into())
}

fn shown(block: &Arc<SealedBlock>) -> BadBlock {
    let rlp = alloy_rlp::encode(&***block).into();
    BadBlock { hash: block.hash(), block: shown_block(block, &senders(block), true), rlp }
}

/// The senders; zero where a signature is wrong.
fn senders(block: &SealedBlock) -> Vec<Address> {
    let transactions = block.body.transactions.iter().enumerate();
    let signers = transactions.map(|(index, transaction)| recover_signer(index, transaction));
    signers.map(|signer| signer.map_or(Address::ZERO, |signer| signer.address)).collect()
}
