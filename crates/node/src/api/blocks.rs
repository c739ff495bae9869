//! Block parameters: numbers, tags and hashes, and the blocks that they name.

use std::fmt;
use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::B256;
use engine::{BlockRecord, PendingBlock, StateAt};
use engine_api::json::{FixedData, Quantity};
use rpc::{Code, Error};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::{Api, refusal};
use crate::receipts::Contents;

/// `BlockNumberOrTag`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberOrTag {
    Number(u64),
    Earliest,
    Finalized,
    Safe,
    Latest,
    Pending,
}

/// A number, a tag, a hash, or an object with one of them (EIP-1898).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlockId {
    Number(NumberOrTag),
    Hash { hash: B256, require_canonical: bool },
}

/// A valid block, or the pending one.
#[derive(Debug, Clone)]
pub(super) enum AnyBlock {
    Valid(Arc<BlockRecord>),
    Pending(Arc<PendingBlock>),
}

impl AnyBlock {
    /// The block, with what its transactions left.
    pub(super) fn contents(&self) -> Contents<'_> {
        match self {
            Self::Valid(record) => (&**record).into(),
            Self::Pending(pending) => (&**pending).into(),
        }
    }

    /// The valid block; `None` for the pending one.
    pub(super) const fn record(&self) -> Option<&Arc<BlockRecord>> {
        match self {
            Self::Valid(record) => Some(record),
            Self::Pending(_) => None,
        }
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(NumberOrTag::Number(number)) => write!(f, "block {number}"),
            Self::Number(tag) => write!(f, "{} block", format!("{tag:?}").to_lowercase()),
            Self::Hash { hash, require_canonical: false } => write!(f, "block {hash}"),
            Self::Hash { hash, require_canonical: true } => write!(f, "canonical block {hash}"),
        }
    }
}

impl Api {
    /// A valid block of any branch.
    pub(super) fn block(&self, hash: B256) -> Result<Option<Arc<BlockRecord>>, Error> {
        self.engine.block(hash).map_err(refusal)
    }

    /// The head of the canonical chain.
    pub(super) fn head(&self) -> Result<Arc<BlockRecord>, Error> {
        Ok(self.block(self.engine.heads().head)?.expect("the head is a valid block"))
    }

    /// The canonical block meant, `None` where there is none: a number above the head, a safe or
    /// finalized block before the consensus layer has named one; a pending one, which is no record.
    pub(super) fn block_by_number(
        &self,
        id: NumberOrTag,
    ) -> Result<Option<Arc<BlockRecord>>, Error> {
        let hash = match id {
            NumberOrTag::Number(number) => self.canonical_hash(number)?,
            NumberOrTag::Earliest => Some(self.engine.heads().genesis),
            NumberOrTag::Finalized => self.engine.finalized().map_err(refusal)?,
            NumberOrTag::Safe => self.engine.heads().safe,
            NumberOrTag::Latest => Some(self.engine.heads().head),
            NumberOrTag::Pending => None,
        };
        hash.map_or(Ok(None), |hash| self.block(hash))
    }

    /// The next block as it would be built now.
    pub(super) fn pending(&self) -> Result<Arc<PendingBlock>, Error> {
        use engine::Error::{Build, InvalidAttributes};
        let pending = self.pending.get(&self.engine, self.dev.as_deref());
        pending.map_err(|error| match error {
            Build(_) | InvalidAttributes(_) => {
                Error::new(Code::Server, format!("pending block is not available: {error}"))
            }
            error => refusal(error),
        })
    }

    /// The block meant, or the pending one; `None` where there is none.
    pub(super) fn any_block(&self, id: &BlockId) -> Result<Option<AnyBlock>, Error> {
        match id {
            BlockId::Number(NumberOrTag::Pending) => Ok(Some(AnyBlock::Pending(self.pending()?))),
            id => Ok(self.block_by_id(id)?.map(AnyBlock::Valid)),
        }
    }

    /// The block meant whose state is read; `None` where there is none.
    pub(super) fn state_at(&self, id: &BlockId) -> Result<Option<StateAt>, Error> {
        match id {
            BlockId::Number(NumberOrTag::Pending) => Ok(Some(StateAt::Pending(self.pending()?))),
            id => Ok(self.block_by_id(id)?.map(|record| record.hash().into())),
        }
    }

    /// The header of a block whose state is read.
    pub(super) fn header_at(&self, at: &StateAt) -> Result<Header, Error> {
        match at {
            StateAt::Pending(pending) => Ok(pending.block.header.clone()),
            StateAt::Block(hash) => {
                let record = self.block(*hash)?;
                let record = record.ok_or_else(|| refusal(engine::Error::UnknownBlock(*hash)))?;
                Ok(record.block.header.clone())
            }
        }
    }

    fn canonical_hash(&self, number: u64) -> Result<Option<B256>, Error> {
        self.engine.canonical_hash(number).map_err(refusal)
    }

    /// The block meant, of whatever branch where it is named by its hash.
    pub(super) fn block_by_id(&self, id: &BlockId) -> Result<Option<Arc<BlockRecord>>, Error> {
        match *id {
            BlockId::Number(id) => self.block_by_number(id),
            BlockId::Hash { hash, require_canonical: false } => self.block(hash),
            BlockId::Hash { hash, require_canonical: true } => {
                let Some(record) = self.block(hash)? else { return Ok(None) };
                let is_canonical = self.canonical_hash(record.number())? == Some(hash);
                Ok(is_canonical.then_some(record))
            }
        }
    }
}

impl<'de> Deserialize<'de> for NumberOrTag {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        engine_api::json::parse_str(json, "a block number or tag", number_or_tag)
    }
}

fn number_or_tag(text: &str) -> Result<NumberOrTag, String> {
    Ok(match text {
        "earliest" => NumberOrTag::Earliest,
        "finalized" => NumberOrTag::Finalized,
        "safe" => NumberOrTag::Safe,
        "latest" => NumberOrTag::Latest,
        "pending" => NumberOrTag::Pending,
        number if number.starts_with("0x") => NumberOrTag::Number(read::<Quantity>(number)?.0),
        _ => {
            return Err("a block is a number as 0x7, or latest, pending, safe, finalized or \
                        earliest"
                .into());
        }
    })
}

/// Reads a text as the type does in JSON.
fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, String> {
    let json = serde::de::value::BorrowedStrDeserializer::<serde::de::value::Error>::new(text);
    T::deserialize(json).map_err(|fault| fault.to_string())
}

impl<'de> Deserialize<'de> for BlockId {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(BlockIdVisitor)
    }
}

struct BlockIdVisitor;

impl<'de> Visitor<'de> for BlockIdVisitor {
    type Value = BlockId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block number, tag or hash, or an object with blockNumber or blockHash")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<BlockId, E> {
        // No number has 64 digits.
        if text.len() == 2 + 2 * B256::len_bytes() {
            let hash: FixedData<32> = read(text).map_err(E::custom)?;
            return Ok(BlockId::Hash { hash: hash.into(), require_canonical: false });
        }
        number_or_tag(text).map(BlockId::Number).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<BlockId, A::Error> {
        let fields = Fields::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        match fields {
            Fields { block_number: Some(number), block_hash: None, require_canonical: None } => {
                Ok(BlockId::Number(number))
            }
            Fields { block_number: None, block_hash: Some(hash), require_canonical } => {
                let require_canonical = require_canonical.unwrap_or(false);
                Ok(BlockId::Hash { hash: hash.into(), require_canonical })
            }
            _ => Err(A::Error::custom(
                "a block is named by blockNumber, or by blockHash and perhaps requireCanonical",
            )),
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fields {
    block_number: Option<NumberOrTag>,
    block_hash: Option<FixedData<32>>,
    require_canonical: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<BlockId>) {
        assert_eq!(serde_json::from_str(json).ok(), expected, "{json}");
    }

    #[test]
    fn a_block_is_named_by_number_tag_or_hash() {
        let hash = |require_canonical| {
            Some(BlockId::Hash { hash: B256::repeat_byte(7), require_canonical })
        };
        let text = format!("\"{}\"", B256::repeat_byte(7));
        let number = |number| Some(BlockId::Number(number));
        check(r#""latest""#, number(NumberOrTag::Latest));
        check(r#""pending""#, number(NumberOrTag::Pending));
        check(r#""0x1f""#, number(NumberOrTag::Number(31)));
        check(r#"{"blockNumber":"safe"}"#, number(NumberOrTag::Safe));
        check(&text, hash(false));
        check(&format!(r#"{{"blockHash":{text}}}"#), hash(false));
        check(&format!(r#"{{"requireCanonical":true,"blockHash":{text}}}"#), hash(true));
    }

    #[test]
    fn a_block_that_is_not_named_clearly_is_refused() {
        let hash = format!(r#""blockHash":"{}""#, B256::ZERO);
        for bad in ["1", "null", "{}", "[]", r#""0x01""#, r#""newest""#, r#""0x""#, r#""LATEST""#] {
            check(bad, None);
        }
        check(&format!(r#"{{{hash},"blockNumber":"0x1"}}"#), None);
        check(&format!(r#"{{{hash},{hash}}}"#), None);
        check(r#"{"blockNumber":"0x1","requireCanonical":true}"#, None);
        check(r#"{"blockNumber":"0x1","other":1}"#, None);
    }
}
