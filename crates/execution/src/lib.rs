//! Executes and validates Ethereum blocks: on any [`State`](witness::State), or on a witness alone.
//!
//! - [`verify`] validates a block on its witness; [`execute_statelessly`] returns the two roots
//!   instead of comparing them.
//! - [`validate`] does the same on any state, and reveals the nodes of the canonical witness.
//! - [`execute`] runs system calls, transactions and withdrawals, without comparing results.
//! - [`AheadExecutor`] runs transactions ahead of their turn, on the caller's threads.
//! - [`call()`] makes a message call that becomes part of no block.
//! - [`estimate()`] finds the gas limit that such a call needs.
//! - [`intrinsic_gas`] is what a transaction must bring along, whatever it runs.
//! - [`select()`] chooses the transactions of a block under construction.
//! - [`create_access_list`] finds the access list of such a call.
//! - [`simulate()`] runs calls in blocks that become part of no chain.
//! - [`trace_call`], [`trace_calls`] and [`trace_block`] run under a tracer, which tells what
//!   happened.
//! - [`step_through`] runs a block again and looks at it between its transactions.
//! - [`stateless`] is the input and the result of EIP-8025.
//!
//! The crate has no features, and is pure: no I/O, clock, threads or randomness. Gas is in units of
//! gas, values and fees are in wei, times in seconds since the epoch.
//!
//! ```
//! # extern crate trie as deponent_trie;
//! # extern crate witness as deponent_witness;
//! use alloy_consensus::{BlockBody, Header, proofs::calculate_withdrawals_root};
//! use alloy_eips::eip4895::Withdrawal;
//! use alloy_primitives::{Address, B256};
//! use deponent_execution::{Block, ChainSpec, SealedBlock};
//! use deponent_execution::{execute_statelessly, next_base_fee, verify};
//! use deponent_trie::EMPTY_ROOT_HASH;
//! use deponent_witness::Witness;
//!
//! // The parent, with an empty state, and the witness of its child: the parent's header.
//! let chain = ChainSpec::from_chain_id(560_048)?;
//! let parent = Header {
//!     state_root: EMPTY_ROOT_HASH,
//!     gas_limit: 36_000_000,
//!     base_fee_per_gas: Some(1_000_000_000),
//!     withdrawals_root: Some(EMPTY_ROOT_HASH),
//!     blob_gas_used: Some(0),
//!     excess_blob_gas: Some(0),
//!     parent_beacon_block_root: Some(B256::ZERO),
//!     ..Header::default()
//! };
//! let headers = vec![alloy_rlp::encode(&parent).into()];
//! let witness = Witness { headers, ..Witness::default() };
//!
//! // A block that pays one gwei to a new account.
//! let (address, amount) = (Address::repeat_byte(1), 1);
//! let withdrawals = vec![Withdrawal { index: 0, validator_index: 0, address, amount }];
//! let header = Header {
//!     parent_hash: parent.hash_slow(),
//!     number: 1,
//!     timestamp: 12,
//!     base_fee_per_gas: Some(next_base_fee(&parent)),
//!     withdrawals_root: Some(calculate_withdrawals_root(&withdrawals)),
//!     ..parent
//! };
//! let body = BlockBody { withdrawals: Some(withdrawals.into()), ..BlockBody::default() };
//! let mut block = Block { header, body };
//! let roots = execute_statelessly(&chain, &SealedBlock::new(block.clone()), &witness)?;
//!
//! // With the state root of its changes the block is valid, with another it is not.
//! assert!(verify(&chain, &SealedBlock::new(block.clone()), None, &witness).is_err());
//! block.header.state_root = roots.state_root;
//! let verified = verify(&chain, &SealedBlock::new(block), None, &witness)?;
//! assert_eq!((verified.gas_used, verified.witness), (0, witness));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access_list;
mod ahead;
mod block;
mod cache;
mod call;
mod chain;
mod code_cache;
mod codes;
mod committed;
mod deadline;
mod error;
mod estimate;
mod evm;
mod execute;
mod genesis;
mod header;
mod intrinsic;
mod jumps;
mod limits;
mod named;
mod net_gas;
mod ommers;
mod overrides;
mod payload;
mod proof_of_work;
mod recorder;
mod revert;
mod rules;
mod select;
mod simulate;
pub mod stateless;
mod steps;
mod touched;
mod trace;
mod traced;
mod unsigned;
mod validate;

pub use access_list::{AccessList, ListedAccount};
pub use ahead::{
    AheadExecutor, AheadOutcome, AheadOutcomes, PriorChanges, RunOptions, prefetch_reads,
};
pub use block::{
    Block, Receipt, SealedBlock, Senders, Signer, Transaction, decode_block, public_key,
    recover_senders, recover_senders_at, recover_signer, recover_signer_at,
};
pub use call::{Call, CallOutcome, call};
pub use chain::{ChainSpec, ChainSpecError};
pub use code_cache::{CodeCache, CodeCacheStats};
pub use committed::CommittedChanges;
pub use deadline::Deadline;
pub use error::{BlockError, CallError, InvalidBlock};
pub use estimate::{Estimate, estimate};
pub use execute::{Executed, execute, execute_exact, run};
pub use genesis::{first_header, validate_first_header};
pub use header::{
    GAS_LIMIT_MINIMUM, next_base_fee, next_excess_blob_gas, validate_header, validate_parent,
};
pub use intrinsic::{IntrinsicGas, intrinsic_gas};
pub use jumps::jump_table;
pub use named::FailedRead;
pub use ommers::{OMMER_GENERATIONS, validate_ancestry};
pub use overrides::{AccountOverride, BlockOverrides, Overrides, StateOverrides, StorageOverride};
pub use payload::{decode_payload, validate_versioned_hashes};
pub use proof_of_work::{BlockReward, block_rewards, next_difficulty};
pub use revert::revert_reason;
pub use select::{Candidates, Selection, TransactionSource, select};
pub use simulate::{
    BlockCalls, Refusal, RefusalKind, RootedState, SimulatedBlock, SimulatedCall, SimulatedLog,
    Simulation, SimulationOptions, simulate,
};
pub use steps::{SoFar, Stepped, step_through};
pub use touched::{CreatedAccessList, create_access_list};
pub use trace::{
    CallTracerConfig, Erc7562TracerConfig, FlatCallTracerConfig, ParityTypes, PrestateTracerConfig,
    StructLogConfig, TraceFilter, TraceOptions, TracerConfig,
};
pub use traced::{Traced, TracedCall, trace_block, trace_call, trace_calls};
pub use unsigned::{UnsignedCall, UnsignedTransaction, encode_unsigned, unsigned_transaction};
pub use validate::{
    Roots, Verified, VerifyError, execute_statelessly, validate, validate_access_list,
    validate_body, validate_body_roots, verify, verify_taking_missing_for_absent,
};
pub use witness::PublicKey;
