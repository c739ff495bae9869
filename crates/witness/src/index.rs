use crate::{Ancestor, DecodeError, Items, Source, Witness};
use alloy_primitives::{B256, Bytes, U64, keccak256, map::B256Map};
use alloy_rlp::{Decodable, Header};
use trie::NodeSource;

/// A witness as a [`Source`]: nodes and codes by their hash, headers by number.
///
/// An item that the witness lacks is `None` here and an error in the reader, never "absent". Items
/// that are not read do no harm.
#[derive(Debug)]
pub struct WitnessIndex {
    nodes: B256Map<Bytes>,
    codes: B256Map<Bytes>,
    /// Ascending, contiguous, the last is the parent.
    headers: Vec<Ancestor>,
    first_number: u64,
    state_root: B256,
}

impl WitnessIndex {
    /// Indexes `witness` for the block whose parent is `parent_hash`. The headers must ascend, each
    /// the parent of the next, to the block's parent.
    ///
    /// # Errors
    /// [`DecodeError::Headers`] when they do not.
    pub fn new(witness: &Witness, parent_hash: B256) -> Result<Self, DecodeError> {
        let mut headers = Vec::with_capacity(witness.headers.len());
        for rlp in &witness.headers {
            let links = Links::decode(rlp)
                .map_err(|error| DecodeError::Headers(format!("not a header: {error}")))?;
            headers.push((links, Ancestor { hash: keccak256(rlp), rlp: rlp.clone() }));
        }
        for pair in headers.windows(2) {
            let [(before, parent), (links, _)] = pair else { unreachable!("windows of two") };
            let follows = before.number.checked_add(1) == Some(links.number);
            if links.parent_hash != parent.hash || !follows {
                let number = links.number;
                let reason = format!("{number} does not follow the one before it");
                return Err(DecodeError::Headers(reason));
            }
        }
        let last = headers.last().filter(|(_, last)| last.hash == parent_hash);
        let Some((parent, _)) = last else {
            return Err(DecodeError::Headers(format!("the parent {parent_hash} is not the last")));
        };
        let index = |items: Items<'_>| items.iter_shared().map(|b| (keccak256(&b), b)).collect();
        Ok(Self {
            nodes: index(Items::from(&witness.state)),
            codes: index(Items::from(&witness.codes)),
            state_root: parent.state_root,
            first_number: headers[0].0.number,
            headers: headers.into_iter().map(|(_, ancestor)| ancestor).collect(),
        })
    }

    /// The parent's state root: the root of the state that the witness holds.
    pub const fn state_root(&self) -> B256 {
        self.state_root
    }

    /// RLP of the parent's header.
    #[expect(clippy::missing_panics_doc, reason = "an index has a parent")]
    pub fn parent_rlp(&self) -> &Bytes {
        &self.headers.last().expect("there is a parent").rlp
    }
}

impl NodeSource for WitnessIndex {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.nodes.get(hash).cloned()
    }
}

impl Source for WitnessIndex {
    fn code(&self, code_hash: &B256) -> Option<Bytes> {
        self.codes.get(code_hash).cloned()
    }

    fn ancestor(&self, number: u64) -> Option<Ancestor> {
        let index = usize::try_from(number.checked_sub(self.first_number)?).ok()?;
        self.headers.get(index).cloned()
    }
}

/// The fields of a header that chain it to its parent and to its state.
pub(crate) struct Links {
    pub(crate) parent_hash: B256,
    pub(crate) state_root: B256,
    pub(crate) number: u64,
}

impl Links {
    /// Reads fields 0, 3 and 8 of the header's list; the others may be anything.
    pub(crate) fn decode(mut rlp: &[u8]) -> Result<Self, alloy_rlp::Error> {
        let mut fields = Header::decode_bytes(&mut rlp, true)?;
        if !rlp.is_empty() {
            return Err(alloy_rlp::Error::UnexpectedLength);
        }
        let parent_hash = B256::decode(&mut fields)?;
        Header::decode_bytes(&mut fields, false)?; // ommers_hash
        Header::decode_bytes(&mut fields, false)?; // beneficiary
        let state_root = B256::decode(&mut fields)?;
        for _ in 4..8 {
            Header::decode_bytes(&mut fields, false)?; // roots, bloom, difficulty
        }
        let number = U64::decode(&mut fields)?.to();
        Ok(Self { parent_hash, state_root, number })
    }
}

#[cfg(test)]
mod tests;
