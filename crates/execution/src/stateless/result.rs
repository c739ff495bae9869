//! The public result of a stateless validation: 43 bytes.

use super::merkle::{byte_vector_root, progressive_container_root, u64_root};
use alloy_primitives::B256;
use witness::container::{Fixed, SszError};

/// The public output of a stateless validation: `StatelessValidationResult` of EIP-8025 at EIPs
/// f767a1e8, and `PublicInput` of consensus-specs, a progressive container since October 2026.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatelessValidationResult {
    /// SSZ root of the `NewPayloadRequest`, valid or not.
    pub new_payload_request_root: B256,
    /// Whether the payload is valid.
    pub successful_validation: bool,
    /// The chain id of the input.
    pub chain_id: u64,
    /// The schema of the input, [`schema_id`](super::StatelessInput::schema_id).
    pub schema_id: u16,
}

impl StatelessValidationResult {
    /// Length of the encoding in bytes.
    pub const BYTES: usize = 32 + 1 + 8 + 2;

    /// The result for input that cannot be decoded: all zero, in its encoding too.
    pub const UNDECODABLE: Self = Self {
        new_payload_request_root: B256::ZERO,
        successful_validation: false,
        chain_id: 0,
        schema_id: 0,
    };

    /// The SSZ encoding. Numbers are little-endian, `schema_id` too, which is big-endian only where
    /// it prefixes an input.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..32].copy_from_slice(self.new_payload_request_root.as_slice());
        out[32] = self.successful_validation.into();
        out[33..41].copy_from_slice(&self.chain_id.to_le_bytes());
        out[41..].copy_from_slice(&self.schema_id.to_le_bytes());
        out
    }

    /// The SSZ root, by which consensus clients bind a proof to a payload.
    pub fn hash_tree_root(&self) -> B256 {
        progressive_container_root(&[
            self.new_payload_request_root,
            byte_vector_root(&[self.successful_validation.into()]),
            u64_root(self.chain_id),
            byte_vector_root(&self.schema_id.to_le_bytes()),
        ])
    }

    /// Reads the SSZ encoding.
    ///
    /// # Errors
    /// When `input` is not exactly [`Self::BYTES`] long, or its boolean is neither 0 nor 1.
    pub fn decode(input: &[u8]) -> Result<Self, SszError> {
        let mut fixed = Fixed::exact("stateless_validation_result", input, Self::BYTES)?;
        Ok(Self {
            new_payload_request_root: fixed.bytes(),
            successful_validation: fixed.boolean("successful_validation")?,
            chain_id: fixed.u64(),
            schema_id: u16::from_le_bytes(fixed.bytes()),
        })
    }
}

#[cfg(test)]
mod tests;
