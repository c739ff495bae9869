//! `engine_getBlobs`: blobs of the pool, and of blocks that are not finalized, by their hashes.

use alloy_hardforks::EthereumHardfork;
use alloy_primitives::{B256, Bytes};
use engine_api::json::FixedData;
use pool::PooledBlob;
use rpc::{Code, Error, Json, Params, Pieces};

use super::Api;
use crate::limits::BLOB_HASHES;

/// `engine_getBlobsV1` to `V3`. The first version, of forks before Osaka, has the proof of the
/// whole blob, the others those of its cells. `V2` is `null` altogether where a blob is missing,
/// the others have a `null` in its place (osaka.md of execution-apis).
pub(super) fn blobs(api: &Api, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let hashes: Vec<FixedData<32>> = params.list("versionedHashes", BLOB_HASHES)?;
    params.end()?;
    let hashes: Vec<_> = hashes.into_iter().map(B256::from).collect();
    let Some(found) = pooled_blobs(api, &hashes, version)? else { return Json::of(&()) };
    Ok(list(&found, |blob, pieces| {
        pieces.push(&b"{\"blob\":\"0x"[..]);
        pieces.push_hex(Bytes::copy_from_slice(blob.blob()));
        if version == 1 {
            pieces.push(format!("\",\"proof\":\"{}\"}}", blob.blob_proof()).into_bytes());
            return;
        }
        pieces.push(&b"\",\"proofs\":"[..]);
        proofs(blob.cell_proofs().iter(), pieces);
    }))
}

/// `engine_getBlobsV4` (amsterdam.md): the cells whose bits are set, and their proofs. Bits are as
/// in SSZ and geth, the first cell in the lowest bit of the first byte.
pub(super) fn cells(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hashes: Vec<FixedData<32>> = params.list("versionedHashes", BLOB_HASHES)?;
    let FixedData(indices): FixedData<16> = params.next("indicesBitarray")?;
    params.end()?;
    let hashes: Vec<_> = hashes.into_iter().map(B256::from).collect();
    let Some(found) = pooled_blobs(api, &hashes, 4)? else { return Json::of(&()) };
    let is_wanted = |index: &usize| is_cell_wanted(&indices, *index);
    Ok(list(&found, |blob, pieces| {
        pieces.push(&b"{\"blob_cells\":["[..]);
        let cells = blob.cells();
        for (place, index) in (0..cells.len()).filter(is_wanted).enumerate() {
            pieces.push(if place == 0 { &b"\"0x"[..] } else { &b",\"0x"[..] });
            pieces.push_hex(Bytes::copy_from_slice(&cells[index]));
            pieces.push(&b"\""[..]);
        }
        pieces.push(&b"],\"proofs\":"[..]);
        let all = blob.cell_proofs();
        proofs((0..all.len()).filter(is_wanted).map(|index| &all[index]), pieces);
    }))
}

/// The blobs with these hashes, as a version of `engine_getBlobs` or of `POST /blobs` has them;
/// `None` where it has no answer at all.
///
/// # Errors
/// [`Code::UnsupportedFork`] for the first version from Osaka on.
pub(crate) fn pooled_blobs(
    api: &Api,
    hashes: &[B256],
    version: u8,
) -> Result<Option<Vec<Option<PooledBlob>>>, Error> {
    let fork = api.engine.chain().fork_at(api.head()?.block.header.timestamp);
    let is_osaka = fork >= EthereumHardfork::Osaka;
    if version == 1 && is_osaka {
        let detail = format!("the head is in {fork}; this version is for forks before Osaka");
        return Err(Error::new(Code::UnsupportedFork, detail));
    }
    let pool = api.pool.as_ref().filter(|_| is_osaka || version == 1);
    let found = pool.map(|(pool, _)| pool.blobs(hashes));
    // The second version has all or nothing.
    Ok(found.filter(|found| version != 2 || found.iter().all(Option::is_some)))
}

/// Whether the bit of a cell is set.
pub(crate) fn is_cell_wanted(indices: &[u8; 16], index: usize) -> bool {
    u128::from_le_bytes(*indices) >> index & 1 == 1
}

/// A list of objects, with `null` for each blob that is missing.
fn list(blobs: &[Option<PooledBlob>], mut shown: impl FnMut(&PooledBlob, &mut Pieces)) -> Json {
    let mut pieces = Pieces::from(vec![b'[']);
    for (index, blob) in blobs.iter().enumerate() {
        if index > 0 {
            pieces.push(&b","[..]);
        }
        match blob {
            Some(blob) => shown(blob, &mut pieces),
            None => pieces.push(&b"null"[..]),
        }
    }
    pieces.push(&b"]"[..]);
    pieces.into()
}

/// The rest of an object, whose last member is a list of proofs.
fn proofs<'a, T: std::fmt::Display + 'a>(list: impl Iterator<Item = &'a T>, pieces: &mut Pieces) {
    let list: Vec<_> = list.map(|proof| format!("\"{proof}\"")).collect();
    pieces.push(format!("[{}]}}", list.join(",")).into_bytes());
}
