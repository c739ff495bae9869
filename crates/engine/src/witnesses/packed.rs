//! Floor 2. The form of a witness's copy on disk.

use crate::error::Error;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::Decodable;
use trie::NodeList;
use witness::Witness;

/// The part of a witness that a copy has: codes and headers stay in the database anyway.
///
/// It is kept as the RLP of a witness whose codes are hashes and whose one header is a list of one
/// number, that of the first ancestor, compressed by LZ4.
pub(crate) struct WitnessCopy {
    pub(crate) state: NodeList,
    pub(crate) code_hashes: Vec<B256>,
    pub(crate) first_ancestor: u64,
}

impl WitnessCopy {
    /// The bytes on disk, and the list of nodes, whose room the caller may use again.
    pub(crate) fn pack(self) -> (Bytes, NodeList) {
        let codes = self.code_hashes.iter().map(|hash| hash.0.into()).collect();
        let headers = vec![alloy_rlp::encode(vec![self.first_ancestor]).into()];
        let witness = Witness { state: self.state, codes, headers };
        let mut rlp = Vec::with_capacity(witness::rlp::encoded_len(&witness));
        witness::rlp::write(&witness, &mut |part| rlp.extend_from_slice(part));
        let mut packed = lz4_flex::compress_prepend_size(&rlp);
        packed.shrink_to_fit();
        (packed.into(), witness.state)
    }

    /// Reads a copy back.
    pub(crate) fn unpack(packed: &[u8]) -> Result<Self, Error> {
        let damaged = |error: &dyn std::fmt::Display| {
            Error::Storage(format!("the copy of a witness cannot be read back: {error}"))
        };
        let rlp = lz4_flex::decompress_size_prepended(packed).map_err(|error| damaged(&error))?;
        let Witness { state, codes, headers } =
            witness::rlp::decode_own(&rlp.into()).map_err(|error| damaged(&error))?;
        let hash = |code: &Bytes| B256::try_from(&code[..]).map_err(|error| damaged(&error));
        let code_hashes = codes.iter().map(hash).collect::<Result<_, _>>()?;
        let header = headers.first().ok_or_else(|| damaged(&"it names no ancestor"))?;
        let numbers = Vec::<u64>::decode(&mut &header[..]).map_err(|error| damaged(&error))?;
        let first_ancestor = *numbers.first().ok_or_else(|| damaged(&"it names no ancestor"))?;
        Ok(Self { state, code_hashes, first_ancestor })
    }
}
