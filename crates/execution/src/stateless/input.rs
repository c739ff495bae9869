//! The private input of a stateless validation: a payload and its witness.
//!
//! `StatelessInput` of EIP-8025 (EIPs f767a1e8), as SSZ behind the two bytes of its schema id. Two
//! forms are read: that of tests-zkevm v21.0.1 and later, and the one before, of v0.8, with the
//! signers' public keys behind it (execution-specs `forks/amsterdam/stateless.py` at c1200883). The
//! first offset tells them apart.
//!
//! Progressive lists and containers serialise like plain ones and have no capacity; they differ in
//! the root. `StatelessInput` itself is a plain container, and has no root here.

use super::fork::{ProtocolFork, REVISION, REVISION_WITH_KEYS};
use super::request::NewPayloadRequest;
use crate::PublicKey;
use alloy_primitives::Bytes;
use witness::Witness;
use witness::container::{
    self, Item, Layout, Limits, Offsets, SszError, SszProblem, read_items, read_witness,
};

/// Bytes of one trie node, `MAX_BYTES_PER_WITNESS_NODE` of EIP-8025: a full branch has 532.
pub const NODE_BYTES: usize = 1 << 10;

/// Bytes of one contract code, `MAX_BYTES_PER_CODE` of EIP-8025: the limit of EIP-7954.
pub const CODE_BYTES: usize = 1 << 16;

/// Bytes of one header, `MAX_BYTES_PER_HEADER` of EIP-8025.
pub const HEADER_BYTES: usize = 1 << 10;

/// Headers in a witness, `MAX_WITNESS_HEADERS` of EIP-8025: the reach of `BLOCKHASH`.
pub const HEADERS: usize = 256;

/// Bytes of SSZ in an input: its offsets are 32 bits wide.
pub const INPUT_BYTES: usize = container::MAX_BYTES;

const STATE_LIMITS: Limits = Limits { items: usize::MAX, item_bytes: NODE_BYTES };
const CODES_LIMITS: Limits = Limits { items: usize::MAX, item_bytes: CODE_BYTES };
const HEADERS_LIMITS: Limits = Limits { items: HEADERS, item_bytes: HEADER_BYTES };
const WITNESS_LIMITS: [Limits; 3] = [STATE_LIMITS, CODES_LIMITS, HEADERS_LIMITS];

const INPUT: Layout<2> = Layout {
    name: "stateless_input",
    fixed_bytes: 16,
    variable: [("new_payload_request", 0), ("witness", 4)],
};

const INPUT_WITH_KEYS: Layout<3> = Layout {
    name: "stateless_input",
    fixed_bytes: 20,
    variable: [("new_payload_request", 0), ("witness", 4), ("public_keys", 16)],
};

/// The input of a stateless validation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatelessInput {
    /// The payload to validate and what the consensus layer says of it.
    pub new_payload_request: NewPayloadRequest,
    /// The part of the state that the payload's execution needs.
    pub witness: Witness,
    /// The chain that the payload is for.
    pub chain_id: u64,
    /// The signers' public keys, one per transaction in payload order; `None` is today's form,
    /// which has none. Decoding checks neither their count nor their content: a user of a key must
    /// verify it against the signature and its recovery id.
    pub public_keys: Option<Vec<PublicKey>>,
}

impl StatelessInput {
    /// The id of its schema, which stands before its encoding, big-endian.
    pub const fn schema_id(&self) -> u16 {
        self.new_payload_request.fork.schema_id(match self.public_keys {
            None => REVISION,
            Some(_) => REVISION_WITH_KEYS,
        })
    }

    /// Reads an input of either form; its byte strings are slices of `input`.
    ///
    /// Memory is bounded by the length of `input`: at most eight times as much beside it.
    ///
    /// # Errors
    /// When `input` is not what [`Self::encode`] makes of any value.
    pub fn decode(input: &Bytes) -> Result<Self, SszError> {
        let Some(schema) = input.first_chunk() else {
            return Err(SszProblem::Length { got: input.len(), expected: 2 }.at("schema_id"));
        };
        let schema = u16::from_be_bytes(*schema);
        let fork = ProtocolFork::of_schema(schema).map_err(|fault| fault.at("schema_id"))?;
        let body = input.slice(size_of::<u16>()..);
        let has_keys = body.first() == Some(&(INPUT_WITH_KEYS.fixed_bytes as u8));
        let (mut fixed, [request, witness, public_keys]) = match has_keys {
            true => INPUT_WITH_KEYS.split(&body)?,
            false => INPUT.split_to(&body)?,
        };
        let read = Self {
            new_payload_request: fixed.behind_offset(NewPayloadRequest::read(fork.0, &request)?),
            // These limits are not those of the witness endpoint.
            witness: fixed.behind_offset(read_witness(&witness, WITNESS_LIMITS)?),
            chain_id: fixed.u64(),
            public_keys: match has_keys {
                true => Some(read_items("public_keys", &public_keys)?),
                false => None,
            },
        };
        match read.schema_id() == schema {
            true => Ok(read),
            false => Err(SszProblem::Schema(schema).at("schema_id")),
        }
    }

    /// The encoding in one buffer.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn encode(&self) -> Result<Vec<u8>, SszError> {
        self.check()?;
        let mut out = Vec::with_capacity(size_of::<u16>() + self.ssz_bytes());
        self.write(&mut |part| out.extend_from_slice(part))?;
        Ok(out)
    }

    /// Hands the encoding to `sink` slice by slice, in order; the witness's items are passed as
    /// they are, uncopied.
    ///
    /// # Errors
    /// When the input breaks a limit of the schema; nothing has been written then.
    #[expect(clippy::missing_panics_doc, reason = "the whole length was checked")]
    pub fn write(&self, sink: &mut impl FnMut(&[u8])) -> Result<(), SszError> {
        self.check()?;
        sink(&self.before_witness());
        witness::ssz::write(&self.witness, sink).expect("the whole length was checked");
        self.public_keys.iter().flatten().for_each(|key| sink(key.as_slice()));
        Ok(())
    }

    /// The encoding as byte strings that follow each other, to be sent without being joined: the
    /// witness's large items are among them as they are, uncopied.
    ///
    /// # Errors
    /// As for [`Self::write`].
    #[expect(clippy::missing_panics_doc, reason = "the whole length was checked")]
    pub fn parts(&self) -> Result<Vec<Bytes>, SszError> {
        self.check()?;
        let mut parts = vec![self.before_witness().into()];
        let witness = witness::ssz::parts(&self.witness);
        parts.extend(witness.expect("the whole length was checked"));
        parts.extend(self.public_keys.as_ref().map(|keys| keys.concat().into()));
        Ok(parts)
    }

    /// The schema id, the fixed-size part and the request.
    fn before_witness(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.schema_id().to_be_bytes());
        let mut offsets = Offsets::behind(self.fixed_bytes());
        offsets.write(self.new_payload_request.ssz_bytes(), &mut out);
        offsets.write(witness::ssz::encoded_len(&self.witness), &mut out);
        out.extend_from_slice(&self.chain_id.to_le_bytes());
        if self.public_keys.is_some() {
            offsets.write(0, &mut out);
        }
        self.new_payload_request.write(&mut out);
        out
    }

    const fn fixed_bytes(&self) -> usize {
        match self.public_keys {
            None => INPUT.fixed_bytes,
            Some(_) => INPUT_WITH_KEYS.fixed_bytes,
        }
    }

    /// Bytes of the encoding behind the schema id.
    fn ssz_bytes(&self) -> usize {
        self.fixed_bytes()
            + self.new_payload_request.ssz_bytes()
            + witness::ssz::encoded_len(&self.witness)
            + PublicKey::BYTES * self.public_keys.as_ref().map_or(0, Vec::len)
    }

    fn check(&self) -> Result<(), SszError> {
        self.new_payload_request.check()?;
        let lists = self.witness.lists().into_iter().zip(WITNESS_LIMITS);
        for ((items, limits), field) in lists.zip(["state", "codes", "headers"]) {
            limits.check(field, items)?;
        }
        container::check_length(INPUT.name, self.ssz_bytes(), INPUT_BYTES)
    }
}

#[cfg(test)]
mod tests;
