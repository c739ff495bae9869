use alloy_primitives::{Address, B256, Bloom, U256};
use std::fmt::Display;
use witness::StateError;

/// Why a block was not validated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BlockError {
    /// The block breaks a rule: an answer.
    #[error(transparent)]
    Invalid(#[from] InvalidBlock),
    /// The state could not answer a read, so nothing is known about the block: an error.
    #[error(transparent)]
    State(#[from] StateError),
    /// The EVM failed for a reason of its own: an error.
    #[error("the EVM failed: {0}")]
    Internal(String),
}

/// Why a call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// Its time was over before it ended.
    #[error("the time of the call is over")]
    OutOfTime,
    /// The state could not answer a read, or the EVM failed.
    #[error(transparent)]
    Block(#[from] BlockError),
}

impl From<StateError> for CallError {
    fn from(error: StateError) -> Self {
        Self::Block(error.into())
    }
}

/// The rule that a block breaks, with the value that it has and the right one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the fields are what the messages say they are
pub enum InvalidBlock {
    #[error("block RLP: {0}")]
    Rlp(String),
    #[error("{0}")]
    Genesis(String),
    #[error("chain id {got}, the chain's is {expected}")]
    ChainId { got: u64, expected: u64 },
    #[error("{fork} is the fork at {timestamp}, and the stateless input has schema {schema:#06x}")]
    StatelessFork { fork: String, timestamp: u64, schema: u16 },
    #[error("payload: {0}")]
    Payload(String),
    #[error("block hash mismatch: payload says {got}, its fields hash to {expected}")]
    BlockHash { got: B256, expected: B256 },
    #[error("{field} {got} of the parent is out of range")]
    ParentField { field: &'static str, got: u64 },
    #[error("block number {got}, parent's is {parent}")]
    Number { got: u64, parent: u64 },
    #[error("parent hash {got}, parent is {expected}")]
    ParentHash { got: B256, expected: B256 },
    #[error("timestamp {got} is not after the parent's {parent}")]
    Timestamp { got: u64, parent: u64 },
    #[error("difficulty {got}, must be {expected}")]
    Difficulty { got: U256, expected: U256 },
    #[error(
        "difficulty {difficulty} after a total of {total_difficulty}: \
         proof of work ends at {terminal}, and not before"
    )]
    Merge { difficulty: U256, total_difficulty: U256, terminal: U256 },
    #[error("{0} ommers, at most 2 allowed")]
    OmmerCount(usize),
    #[error("ommer {index} {reason}")]
    Ommer { index: usize, reason: String },
    #[error("ommers hash {got}, body gives {expected}")]
    OmmersHash { got: B256, expected: B256 },
    #[error("extra data of block {0}, which is one of the first after the DAO fork")]
    DaoExtraData(u64),
    #[error("extra data of {0} bytes, at most 32 allowed")]
    ExtraData(usize),
    #[error("{field} must be {expected} after the merge")]
    ProofOfWorkField { field: &'static str, expected: &'static str },
    #[error("gas limit {got}, parent's is {parent}: 5000 to 2^63-1, within 1/1024 of it")]
    GasLimit { got: u64, parent: u64 },
    #[error("gas used {gas_used} over the gas limit {gas_limit}")]
    GasUsedOverLimit { gas_used: u64, gas_limit: u64 },
    #[error("base fee per gas {}, must be {expected}", shown(got))]
    BaseFee { got: Option<u64>, expected: u64 },
    #[error("{field} is missing in a block at {timestamp}")]
    MissingField { field: &'static str, timestamp: u64 },
    #[error("{field} is not part of a block at {timestamp} yet")]
    UnexpectedField { field: &'static str, timestamp: u64 },
    #[error("excess blob gas {got}, must be {expected}")]
    ExcessBlobGas { got: u64, expected: u64 },
    #[error("blob gas used {got} over the limit {limit} or not a whole number of blobs")]
    BlobGasLimit { got: u64, limit: u64 },
    #[error("transaction {index} has a gas limit of {got}, at most {limit} allowed")]
    TransactionGas { index: usize, got: u64, limit: u64 },
    #[error("block of {got} bytes in RLP, at most {limit} allowed")]
    BlockSize { got: usize, limit: usize },
    #[error("transactions root {got}, body gives {expected}")]
    TransactionsRoot { got: B256, expected: B256 },
    #[error("withdrawals root {}, body gives {expected}", shown(got))]
    WithdrawalsRoot { got: Option<B256>, expected: B256 },
    #[error("block access list: {0}")]
    AccessListRlp(String),
    #[error("transaction {index} is for chain {got}, not for chain {expected}")]
    TransactionChain { index: usize, got: u64, expected: u64 },
    #[error("transaction {index}: the sender's signature is invalid: {reason}")]
    Signature { index: usize, reason: String },
    #[error("transaction {index}: the public key given is not the signer's")]
    PublicKey { index: usize },
    #[error("{given} public keys for {transactions} transactions")]
    PublicKeyCount { given: usize, transactions: usize },
    #[error("versioned hashes differ from those of the transactions")]
    VersionedHashes,
    #[error("blob gas used {got}, transactions use {expected}")]
    BlobGasUsed { got: u64, expected: u64 },
    #[error("transaction {index}: {reason}")]
    Transaction { index: usize, reason: String },
    #[error("system contract {0} has no code")]
    SystemContractEmpty(Address),
    #[error("block execution: {0}")]
    Execution(String),
    #[error("gas used {got}, execution used {expected}")]
    GasUsed { got: u64, expected: u64 },
    #[error("receipts root {got}, execution gives {expected}")]
    ReceiptsRoot { got: B256, expected: B256 },
    #[error("logs bloom differs from the one execution gives")]
    LogsBloom { got: Box<Bloom>, expected: Box<Bloom> },
    #[error("requests hash {}, execution gives {expected}", shown(got))]
    RequestsHash { got: Option<B256>, expected: B256 },
    #[error("block access list hash {}, execution gives {expected}", shown(got))]
    AccessListHash { got: Option<B256>, expected: B256 },
    #[error("block access list of {got} items, the gas limit allows {limit}")]
    AccessListSize { got: u64, limit: u64 },
    #[error("state root {got}, execution gives {expected}")]
    StateRoot { got: B256, expected: B256 },
}

fn shown(value: &Option<impl Display>) -> String {
    value.as_ref().map_or_else(|| "is missing".to_owned(), ToString::to_string)
}
