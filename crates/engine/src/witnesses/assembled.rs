//! Floor 2. A witness that has been put together.

use alloy_primitives::B256;
use std::sync::Arc;
use witness::Witness;

/// A witness, and the hashes of its codes. Clones share both.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// The witness.
    pub witness: Arc<Witness>,
    /// The keccak-256 hashes of its codes, in their order.
    pub code_hashes: Arc<[B256]>,
}
