//! Witnesses put together from what a block read.

use crate::Error;
use crate::block::live::{Tries, drop_in_parts};
use crate::chain::record::BlockRecord;
use crate::limits;
use crate::read::ancestors::Ancestors;
use crate::shared::Core;
use crate::threads::helpers::Pool;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::Decodable;
use state::Retained;
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use trie::NodeList;
use trie::versioned::Lister;
use witness::{ReadCode, StateError, Witness};

/// A witness, and what its codes are known by. Clones share both.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// The witness.
    pub witness: Arc<Witness>,
    /// The keccak-256 hashes of its codes, in their order.
    pub code_hashes: Arc<[B256]>,
}

/// The last witness that was put together, and what it takes to put together others.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    pub(crate) last: Option<Last>,
    pub(crate) lister: Lister,
}

/// The witness of a block.
#[derive(Debug)]
pub(crate) struct Last {
    pub(crate) block_hash: B256,
    pub(crate) assembled: Assembled,
    /// What its nodes are slices of, if they are: who drops both can free it in parts.
    pub(crate) tries: Option<Arc<Tries>>,
}

impl Assembler {
    /// The last witness, if it is this block's.
    pub(crate) fn last_of(&self, block_hash: &B256) -> Option<Assembled> {
        let last = self.last.as_ref().filter(|last| last.block_hash == *block_hash);
        last.map(|last| last.assembled.clone())
    }

    /// Drops a witness that is asked for no more, unless somebody else has it, and keeps its room
    /// if nobody puts one together just now: who does may wait for a seal, and whoever seals comes
    /// here. It does so in parts, with a `pause` in between.
    pub(crate) fn recycle(assembler: &Mutex<Self>, last: Last, pause: impl Fn()) {
        let Last { assembled, tries, .. } = last;
        if let Some(Witness { mut state, codes, headers }) = Arc::into_inner(assembled.witness) {
            // What its nodes are slices of is freed before others are made to wait.
            state.clear();
            drop((codes, headers));
            pause();
            if let Ok(mut assembler) = assembler.try_lock() {
                assembler.lister.recycle(state);
            }
        }
        if let Some(tries) = tries {
            drop_in_parts(tries, pause);
        }
    }
}

/// The witness of a block; `None` when it is the first of its chain. `tries`
/// have the nodes that it read, to be listed on the threads of a pool, and `codes` are those that
/// it read, as they were listed then, when they are at hand.
pub(crate) fn assemble(
    core: &Core,
    lister: &mut Lister,
    record: &BlockRecord,
    tries: Option<(&Arc<Tries>, &Pool)>,
    codes: Option<Vec<ReadCode>>,
) -> Result<Option<Assembled>, Error> {
    let parent = core.block(&record.block.header.parent_hash)?;
    let (touched, parent) = match (&record.touched, parent) {
        (Some(touched), Some(parent)) => (touched, parent),
        (Some(_), None) => return Err(Error::UnknownBlock(record.block.header.parent_hash)),
        (None, Some(parent)) => return Ok(Some(assemble_copy(core, record, parent)?)),
        (None, None) => return Ok(None),
    };
    let codes = match codes {
        Some(codes) => codes,
        None => touched.codes.iter().map(|hash| code(core, hash)).collect::<Result<_, _>>()?,
    };
    assert_eq!(codes.len(), touched.codes.len(), "each code has its hash");
    let mut codes: Vec<_> = codes.into_iter().zip(touched.codes.iter().copied()).collect();
    // No two codes are the same, since their hashes are not.
    let unsorted = Cell::new(Some(&mut codes));
    let sort = || unsorted.take().into_iter().for_each(|codes| codes.sort_unstable());
    // Nodes are listed in order.
    let state = match tries {
        Some((tries, pool)) => tries.witness(lister, pool.threads_count(), &|units| match units {
            // Another thread would have to wake.
            [unit] => unit.run(),
            units => pool.run_behind(sort, units),
        }),
        None => match core.ring.get(&record.hash()) {
            Some(nodes) => nodes.list(lister.room()),
            None => match core.database.witness(&record.hash())? {
                Retained::Present(copy) => decode_copy(&copy)?.state,
                Retained::Never | Retained::Deleted => state_nodes(core, lister, record, &parent)?,
            },
        },
    };
    sort();
    Ok(Some(whole(core, parent, state, codes, touched.first_ancestor)?))
}

/// The same of a block of which nothing is kept but the [`copy`].
fn assemble_copy(
    core: &Core,
    record: &BlockRecord,
    parent: Arc<BlockRecord>,
) -> Result<Assembled, Error> {
    let pruned = || Error::PrunedWitness(record.hash());
    let Retained::Present(copy) = core.database.witness(&record.hash())? else {
        return Err(pruned());
    };
    let Copy { state, code_hashes, first_ancestor } = decode_copy(&copy)?;
    let first_ancestor = first_ancestor.ok_or_else(pruned)?;
    let with_code = |hash: B256| Ok((code(core, &hash)?, hash));
    let mut codes: Vec<_> = code_hashes.into_iter().map(with_code).collect::<Result<_, Error>>()?;
    codes.sort_unstable();
    whole(core, parent, state, codes, first_ancestor)
}

fn whole(
    core: &Core,
    parent: Arc<BlockRecord>,
    state: NodeList,
    codes: Vec<(ReadCode, B256)>,
    first_ancestor: u64,
) -> Result<Assembled, Error> {
    let (codes, code_hashes): (_, Vec<_>) =
        codes.into_iter().map(|(code, hash)| (code.bytes, hash)).unzip();
    let headers = Ancestors::new(core, parent).headers(first_ancestor)?;
    let witness = Arc::new(Witness { state, codes, headers });
    Ok(Assembled { witness, code_hashes: code_hashes.into() })
}

fn code(core: &Core, hash: &B256) -> Result<ReadCode, Error> {
    let code = core.database.stored_code(hash)?.ok_or(StateError::MissingCode(*hash))?;
    Ok(ReadCode { first: code.first, bytes: code.code() })
}

/// The nodes that a block read, from the version that it read them from.
fn state_nodes(
    core: &Core,
    lister: &mut Lister,
    record: &BlockRecord,
    parent: &Arc<BlockRecord>,
) -> Result<NodeList, Error> {
    core.sealed(parent)?;
    let touched = record.touched.as_ref().expect("the first block has no parent");
    let waiting = touched.listed().is_none().then(|| core.rest.wait_for_work());
    let addresses = touched.addresses();
    drop(waiting);
    Ok(lister.list(core.database.nodes(), addresses)?)
}

/// The nodes of a block's witness, compressed: a copy that outlives the version. The codes and
/// headers stay in the database anyway; which they are is in the copy, as a witness whose codes are
/// hashes and whose one header is a list of one number, that of the first.
pub(crate) fn copy(
    core: &Core,
    copier: &mut Copier,
    record: &BlockRecord,
) -> Result<Option<Bytes>, Error> {
    let Some(touched) = &record.touched else { return Ok(None) };
    let Some(parent) = core.block(&record.block.header.parent_hash)? else { return Ok(None) };
    let Copier { lister, rlp, packed } = copier;
    let state = match core.ring.get(&record.hash()) {
        Some(nodes) => nodes.list(lister.room()),
        None => state_nodes(core, lister, record, &parent)?,
    };
    let codes = touched.codes.iter().map(|hash| hash.0.into()).collect();
    let headers = vec![alloy_rlp::encode(vec![touched.first_ancestor]).into()];
    let witness = Witness { state, codes, headers };
    rlp.clear();
    rlp.reserve(witness::rlp::encoded_len(&witness));
    witness::rlp::write(&witness, &mut |part| rlp.extend_from_slice(part));
    lister.recycle(witness.state);
    packed.clear();
    packed.extend_from_slice(&(rlp.len() as u32).to_le_bytes());
    packed.resize(packed.len() + lz4_flex::block::get_maximum_output_size(rlp.len()), 0);
    let packed_len = lz4_flex::block::compress_into(rlp, &mut packed[4..]).expect("it has room");
    packed.truncate(4 + packed_len);
    rlp.shrink_to(limits::COPIER_BYTES);
    // A large one is not copied once more.
    Ok(Some(match packed.len() {
        ..=limits::COPIER_BYTES => Bytes::copy_from_slice(packed),
        _ => std::mem::take(packed).into(),
    }))
}

/// Room in which one [`copy`] after the other is made.
#[derive(Debug, Default)]
pub(crate) struct Copier {
    lister: Lister,
    rlp: Vec<u8>,
    packed: Vec<u8>,
}

/// What a [`copy`] holds.
struct Copy {
    state: NodeList,
    code_hashes: Vec<B256>,
    /// Early copies were without it, and without the hashes.
    first_ancestor: Option<u64>,
}

fn decode_copy(copy: &[u8]) -> Result<Copy, Error> {
    let damaged = |error: &dyn std::fmt::Display| {
        Error::Storage(format!("the copy of a witness cannot be read back: {error}"))
    };
    let rlp = lz4_flex::decompress_size_prepended(copy).map_err(|error| damaged(&error))?;
    let Witness { state, codes, headers } =
        witness::rlp::decode_own(&rlp.into()).map_err(|error| damaged(&error))?;
    let hash = |code: &Bytes| B256::try_from(&code[..]).map_err(|error| damaged(&error));
    let numbers = |header: &Bytes| Vec::<u64>::decode(&mut &header[..]).map_err(|e| damaged(&e));
    let numbers = headers.first().map(numbers).transpose()?.unwrap_or_default();
    let first_ancestor = numbers.first().copied();
    let code_hashes = codes.iter().map(hash).collect::<Result<_, _>>()?;
    Ok(Copy { state, code_hashes, first_ancestor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_drops_a_witness_never_waits() {
        let witness =
            Witness { state: vec![Bytes::new()].into(), codes: Vec::new(), headers: Vec::new() };
        let assembled = Assembled { witness: Arc::new(witness), code_hashes: Arc::default() };
        let assembler = Mutex::new(Assembler::default());
        let held = assembler.lock().unwrap();
        let last = || {
            let assembled = assembled.clone();
            Last { block_hash: B256::ZERO, assembled, tries: None }
        };
        let (shared, own) = (last(), last());
        drop(assembled);
        Assembler::recycle(&assembler, shared, || ());
        Assembler::recycle(&assembler, own, || ());
        drop(held);
    }
}
