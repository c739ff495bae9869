//! Runs a block: against any [`witness::State`], or statelessly against a witness.
//!
//! [`execute`] runs the transactions and system calls of one block through alloy-evm's block
//! executor and says what was read and what changed. [`validate`] adds everything that makes a
//! block valid or invalid, the post-state root among it, and returns the block's canonical
//! witness; [`verify`] does the same with a witness as the only source of state. The crate is
//! pure: no I/O, clock, threads or randomness. It alone knows the EVM.

#[cfg(test)]
extern crate self as execution;

#[cfg(test)]
mod asm;
mod block;
mod chain;
mod codes;
mod error;
mod execute;
mod header;
mod recorder;
pub mod stateless;
mod validate;
#[cfg(test)]
mod world;

pub use block::{Block, SealedBlock, Transaction, decode_block, recover_sender, recover_senders};
pub use chain::{ChainSpec, ChainSpecError};
pub use error::{BlockError, InvalidBlock};
pub use execute::{Executed, Receipt, execute, execute_exact};
pub use header::{
    GAS_LIMIT_MINIMUM, next_base_fee, next_excess_blob_gas, validate_header, validate_parent,
};
pub use validate::{
    Roots, Validated, Verified, VerifyError, execute_statelessly, run, validate,
    validate_access_list, validate_body, validate_body_roots, verify,
};
