//! Answers with blobs of the pool (refactor-ssz.md, `POST /blobs/v1` to `v4`). They are written
//! alone: a client of ours asks for none.

use alloy_primitives::{Bytes, FixedBytes};
use witness::container::{Offsets, write_byte_lists};

use crate::limits::BLOB_BYTES;

/// A KZG proof.
pub type KzgProof = FixedBytes<48>;

/// Bytes of a cell, `BYTES_PER_CELL`.
const CELL_BYTES: usize = 2048;

/// The contents of `BlobV2Entry`: a blob and the proofs of its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobWithCellProofs<'a> {
    /// The blob, 131,072 bytes.
    pub blob: &'a [u8],
    /// The proofs of its cells.
    pub proofs: &'a [KzgProof],
}

/// The contents of `BlobV4Entry`: cells by their index, those that are wanted and there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobCells {
    /// The cells.
    pub cells: Vec<Option<[u8; CELL_BYTES]>>,
    /// Their proofs.
    pub proofs: Vec<Option<KzgProof>>,
}

/// Writes `BlobsV1Response`: each blob with its proof, or `None` for one that is not there.
///
/// # Panics
/// If a blob has not 131,072 bytes.
pub fn write_blobs_v1(entries: &[Option<(&[u8], KzgProof)>]) -> Vec<u8> {
    let zero = vec![0; BLOB_BYTES];
    let mut out = response(entries.len() * (1 + BLOB_BYTES + KzgProof::len_bytes()));
    for entry in entries {
        let (blob, proof) = entry.unwrap_or((&zero, KzgProof::ZERO));
        out.push(u8::from(entry.is_some()));
        write_blob(blob, &mut out);
        out.extend_from_slice(proof.as_slice());
    }
    out
}

/// Writes `BlobsV2Response` or `BlobsV3Response`, which are alike.
///
/// # Panics
/// If a blob has not 131,072 bytes.
pub fn write_blobs_v2(entries: &[Option<BlobWithCellProofs<'_>>]) -> Vec<u8> {
    let zero = vec![0; BLOB_BYTES];
    let nothing = BlobWithCellProofs { blob: &zero, proofs: &[] };
    let entries = entries.iter().map(|entry| {
        let BlobWithCellProofs { blob, proofs } = entry.as_ref().unwrap_or(&nothing);
        let mut out = begun(entry.is_some());
        write_blob(blob, &mut out);
        Offsets::behind(BLOB_BYTES + 4).write(0, &mut out);
        proofs.iter().for_each(|proof| out.extend_from_slice(proof.as_slice()));
        Bytes::from(out)
    });
    response_of(&entries.collect::<Vec<_>>())
}

/// Writes `BlobsV4Response`.
pub fn write_blobs_v4(entries: &[Option<BlobCells>]) -> Vec<u8> {
    let nothing = BlobCells::default();
    let entries = entries.iter().map(|entry| {
        let BlobCells { cells, proofs } = entry.as_ref().unwrap_or(&nothing);
        // A value that may be absent is a list of at most one.
        let cells = cells.iter().map(|cell| cell.as_ref().map_or(&[][..], |cell| &cell[..]));
        let proofs = proofs.iter().map(|it| it.as_ref().map_or(&[][..], KzgProof::as_slice));
        let [cells, proofs] = [cells.collect::<Vec<_>>(), proofs.collect()];
        let mut lists = [Vec::new(), Vec::new()];
        for (list, items) in lists.iter_mut().zip([cells, proofs]) {
            let items: Vec<_> = items.into_iter().map(Bytes::copy_from_slice).collect();
            write_byte_lists(&items, list);
        }
        let mut out = begun(entry.is_some());
        let mut offsets = Offsets::behind(8);
        lists.iter().for_each(|list| offsets.write(list.len(), &mut out));
        lists.iter().for_each(|list| out.extend_from_slice(list));
        Bytes::from(out)
    });
    response_of(&entries.collect::<Vec<_>>())
}

/// The head of an entry whose contents follow: whether it is available, and where they are.
fn begun(is_available: bool) -> Vec<u8> {
    let mut out = vec![u8::from(is_available)];
    Offsets::behind(5).write(0, &mut out);
    out
}

fn write_blob(blob: &[u8], out: &mut Vec<u8>) {
    assert_eq!(blob.len(), BLOB_BYTES, "bytes of a blob");
    out.extend_from_slice(blob);
}

/// A container whose one member is the list of these entries.
fn response_of(entries: &[Bytes]) -> Vec<u8> {
    let mut out = response(entries.iter().map(|entry| 4 + entry.len()).sum());
    write_byte_lists(entries, &mut out);
    out
}

/// A container whose one member, of so many bytes, follows.
fn response(bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + bytes);
    Offsets::behind(4).write(bytes, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number at a place, and what follows the place that it names, as a reader of the
    /// specification would find it.
    fn offset(bytes: &[u8], at: usize) -> usize {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
    }

    /// The parts of a list of items that vary in length.
    fn parts(list: &[u8]) -> Vec<&[u8]> {
        let Some(first) = list.get(..4).map(|_| offset(list, 0)) else { return Vec::new() };
        let starts: Vec<_> = (0..first / 4).map(|item| offset(list, 4 * item)).collect();
        let ends = starts.iter().skip(1).copied().chain([list.len()]);
        starts.iter().zip(ends).map(|(start, end)| &list[*start..end]).collect()
    }

    #[test]
    fn an_answer_of_the_first_version_has_entries_of_one_length() {
        let (blob, proof) = (vec![7; BLOB_BYTES], KzgProof::repeat_byte(9));
        let written = write_blobs_v1(&[Some((&blob, proof)), None]);
        assert_eq!(offset(&written, 0), 4);
        let entries: Vec<_> = written[4..].chunks(1 + BLOB_BYTES + 48).collect();
        assert_eq!(entries[0], [&[1][..], &blob, proof.as_slice()].concat());
        assert_eq!(entries[1], vec![0; 1 + BLOB_BYTES + 48]);
        assert_eq!(write_blobs_v1(&[]), [4, 0, 0, 0]);
    }

    #[test]
    fn an_answer_with_cell_proofs_says_which_blobs_are_there() {
        let (blob, proofs) = (vec![7; BLOB_BYTES], [1, 2, 3].map(KzgProof::repeat_byte));
        let found = BlobWithCellProofs { blob: &blob, proofs: &proofs };
        let written = write_blobs_v2(&[None, Some(found)]);
        let entries = parts(&written[offset(&written, 0)..]);
        for (entry, (is_there, blob, proofs)) in
            entries.iter().zip([(0, vec![0; BLOB_BYTES], &[][..]), (1, blob.clone(), &proofs)])
        {
            let contents = &entry[offset(entry, 1)..];
            assert_eq!(entry[0], is_there);
            assert_eq!(contents[..BLOB_BYTES], blob);
            let given: Vec<_> = contents[offset(contents, BLOB_BYTES)..].chunks(48).collect();
            assert_eq!(given, proofs.iter().map(KzgProof::as_slice).collect::<Vec<_>>());
        }
        assert_eq!(entries.len(), 2);
    }

    #[test]
    fn an_answer_with_cells_has_none_where_none_is_wanted() {
        let (cell, proof) = ([5; CELL_BYTES], KzgProof::repeat_byte(6));
        let found = BlobCells {
            cells: vec![None, Some(cell), None],
            proofs: vec![None, Some(proof), None],
        };
        let written = write_blobs_v4(&[Some(found), None]);
        let entries = parts(&written[offset(&written, 0)..]);
        let lists = |entry: &[u8]| {
            let contents = entry[offset(entry, 1)..].to_vec();
            let (cells, proofs) = (offset(&contents, 0), offset(&contents, 4));
            [contents[cells..proofs].to_vec(), contents[proofs..].to_vec()]
        };
        let [cells, proofs] = lists(entries[0]);
        let none: &[u8] = &[];
        assert_eq!(entries[0][0], 1);
        assert_eq!(parts(&cells), [none, &cell, none]);
        assert_eq!(parts(&proofs), [none, proof.as_slice(), none]);
        assert_eq!(entries[1][0], 0);
        assert_eq!(lists(entries[1]), [vec![], vec![]] as [Vec<u8>; 2]);
    }
}
