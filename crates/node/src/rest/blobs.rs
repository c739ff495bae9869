//! `POST /blobs/v1` to `v4`: what `engine_getBlobsV1` to `V4` answer, in SSZ.

use engine_api::ssz::{
    BlobCells, BlobWithCellProofs, read_blobs_request, write_blobs_v1, write_blobs_v2,
    write_blobs_v4,
};
use pool::PooledBlob;
use rpc::Pieces;
use rpc::rest::{HeaderMap, Request, Response, StatusCode};

use super::problem::Problem;
use super::{ssz, ssz_body};
use crate::api::{self, Api};

/// `POST /blobs/v1` to `v4`. Where JSON-RPC answers `null`, there is no content.
pub(super) fn blobs(api: &Api, request: &Request, version: u8) -> Result<Response, Problem> {
    let body = ssz_body(request)?;
    let (hashes, indices) = read_blobs_request(version, &body).map_err(Problem::of_hashes)?;
    let Some(found) = api::pooled_blobs(api, &hashes, version)? else {
        let (status, headers) = (StatusCode::NO_CONTENT, HeaderMap::new());
        return Ok(Response { status, headers, body: Pieces::default(), file: None });
    };
    let found = found.iter().map(Option::as_ref);
    Ok(ssz(match (version, indices) {
        (1, _) => {
            let whole = found.map(|blob| blob.map(|blob| (blob.blob(), blob.blob_proof())));
            write_blobs_v1(&whole.collect::<Vec<_>>())
        }
        (_, Some(indices)) => {
            let cells = found.map(|blob| blob.map(|blob| wanted(blob, &indices.0)));
            write_blobs_v4(&cells.collect::<Vec<_>>())
        }
        (_, None) => {
            let blobs = found.map(|blob| {
                let (blob, proofs) = blob.map(|blob| (blob.blob(), blob.cell_proofs()))?;
                Some(BlobWithCellProofs { blob, proofs })
            });
            write_blobs_v2(&blobs.collect::<Vec<_>>())
        }
    }))
}

/// The cells of a blob whose bits are set, each at its index.
fn wanted(blob: &PooledBlob, indices: &[u8; 16]) -> BlobCells {
    let is_wanted = |index: usize| api::is_cell_wanted(indices, index);
    let all = (blob.cells(), blob.cell_proofs());
    let cells = all.0.into_iter().enumerate();
    let proofs = all.1.iter().enumerate();
    BlobCells {
        cells: cells.map(|(index, cell)| is_wanted(index).then_some(cell)).collect(),
        proofs: proofs.map(|(index, proof)| is_wanted(index).then_some(*proof)).collect(),
    }
}
