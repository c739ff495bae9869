//! Runs a block: against any [`witness::State`], or statelessly against a witness.
//!
//! [`execute`] runs the transactions and system calls of one block through alloy-evm's block
//! executor and says what was read and what changed. [`validate`] adds everything that makes a
//! block valid or invalid, the post-state root among it, and returns the block's canonical
//! witness; [`verify`] does the same with a witness as the only source of state. [`call()`] makes a
//! message call that becomes part of no block. The crate is pure: no I/O, clock, threads or
//! randomness. It alone knows the EVM.

#[cfg(test)]
extern crate self as execution;

mod access_list;
mod ahead;
#[cfg(test)]
mod asm;
mod block;
mod cache;
mod call;
mod chain;
mod code_cache;
mod codes;
mod committed;
mod error;
mod evm;
mod execute;
mod header;
mod jumps;
mod proof_of_work;
mod recorder;
mod rules;
pub mod stateless;
mod validate;
#[cfg(test)]
mod world;

pub use access_list::{AccessList, ListedAccount};
pub use ahead::{
    AheadExecutor, AheadOutcome, AheadOutcomes, PriorChanges, RunOptions, prefetch_reads,
};
pub use block::{
    Block, Receipt, SealedBlock, Senders, Signer, Transaction, decode_block, recover_senders,
    recover_senders_at, recover_signer, recover_signer_at,
};
pub use call::{AccountOverride, Call, CallOutcome, StateOverrides, StorageOverride, call};
pub use chain::{ChainSpec, ChainSpecError};
pub use code_cache::CodeCache;
pub use committed::CommittedChanges;
pub use error::{BlockError, InvalidBlock};
pub use execute::{Executed, execute, execute_exact, run};
pub use header::{
    GAS_LIMIT_MINIMUM, next_base_fee, next_excess_blob_gas, validate_header, validate_parent,
};
pub use jumps::jump_table;
pub use proof_of_work::{OMMER_GENERATIONS, next_difficulty, validate_ancestry};
pub use validate::{
    Roots, Verified, VerifyError, execute_statelessly, validate, validate_access_list,
    validate_body, validate_body_roots, verify,
};
pub use witness::PublicKey;
