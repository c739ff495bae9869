use alloy_primitives::U256;

/// The reason why a transaction did not enter the pool, in geth's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There are no bytes.
    #[error("typed transaction too short")]
    Empty,
    /// Its type is that of no transaction.
    #[error("transaction type not supported")]
    UnknownType,
    /// Its bytes are no transaction of its type, for the reason given.
    #[error("rlp: {0}")]
    Rlp(String),
    /// The pool has it.
    #[error("already known")]
    AlreadyKnown,
    /// Its type is not one of the fork's.
    #[error("transaction type not supported: type {kind} rejected, pool not yet in {fork}")]
    TypeTooEarly {
        /// The type (EIP-2718).
        kind: u8,
        /// The fork that brings it.
        fork: &'static str,
    },
    /// It is too long.
    #[error("oversized data: transaction size {size}, limit {limit}")]
    Oversized {
        /// Bytes as it was sent.
        size: usize,
        /// The most bytes.
        limit: usize,
    },
    /// Its init code is too long (EIP-3860, EIP-7954).
    #[error("max initcode size exceeded: code size {size} limit {limit}")]
    InitCode {
        /// Bytes of init code.
        size: usize,
        /// The most bytes.
        limit: usize,
    },
    /// Its gas limit is above that of any transaction (EIP-7825, EIP-8037).
    #[error("transaction gas limit too high (cap: {cap}, tx: {gas})")]
    GasTooHigh {
        /// The most gas.
        cap: u64,
        /// The transaction's gas limit.
        gas: u64,
    },
    /// Its gas limit is above that of the head.
    #[error("exceeds block gas limit")]
    BlockGas,
    /// Its tip is above its fee.
    #[error("max priority fee per gas higher than max fee per gas")]
    TipAboveFee,
    /// Its signature names another chain.
    #[error("invalid sender: invalid chain id for signer: have {got} want {expected}")]
    ChainId {
        /// The chain that it names.
        got: u64,
        /// The chain of this pool.
        expected: u64,
    },
    /// Its signature is wrong.
    #[error("invalid sender: invalid transaction v, r, s values")]
    Signature,
    /// No transaction may have the last nonce (EIP-2681).
    #[error("nonce has max value")]
    NonceMaximum,
    /// It has less gas than it is charged before it runs.
    #[error("intrinsic gas too low: gas {gas}, minimum needed {needed}")]
    IntrinsicGas {
        /// The transaction's gas limit.
        gas: u64,
        /// The least gas.
        needed: u64,
    },
    /// It has less gas than its data costs at least (EIP-7623).
    #[error("insufficient gas for floor data gas cost: gas {gas}, minimum needed {needed}")]
    FloorGas {
        /// The transaction's gas limit.
        gas: u64,
        /// The least gas.
        needed: u64,
    },
    /// Its data costs more than any transaction may use (EIP-8037).
    #[error("insufficient gas for floor data gas cost: intrinsic cost {intrinsic}, floor: {floor}")]
    FloorAboveCap {
        /// Gas that is charged before it runs.
        intrinsic: u64,
        /// Gas that its data costs at least.
        floor: u64,
    },
    /// Its tip is below the pool's least.
    #[error("transaction gas price below minimum: gas tip cap {tip}, minimum needed {needed}")]
    TipTooLow {
        /// The transaction's tip, in wei of gas.
        tip: u128,
        /// The least tip.
        needed: u128,
    },
    /// Its blob fee is below the least.
    #[error("transaction gas price below minimum: blob fee cap {0}, minimum needed 1")]
    BlobFeeTooLow(u128),
    /// Its blobs did not come with it.
    #[error("missing sidecar in blob transaction")]
    MissingSidecar,
    /// Its sidecar is not that of the transaction, for the reason given.
    #[error("{0}")]
    Sidecar(String),
    /// It has more blobs than any transaction may (EIP-7594).
    #[error("transaction blob limit exceeded: blob count {count}, limit {limit}")]
    TooManyBlobs {
        /// Its blobs.
        count: usize,
        /// The most blobs.
        limit: usize,
    },
    /// A proof of its blobs is wrong, or a blob is none.
    #[error("KZG verification error: {0}")]
    Proof(String),
    /// Too many others wait for their cell proofs.
    #[error(
        "too many transactions with blob proofs wait to be converted: send cell proofs (EIP-7594)"
    )]
    Busy,
    /// A transaction of EIP-7702 without authorizations.
    #[error("set code tx must have at least one authorization tuple")]
    NoAuthorization,
    /// Its nonce was used.
    #[error("nonce too low: next nonce {next}, tx nonce {nonce}")]
    NonceTooLow {
        /// The sender's nonce at the head.
        next: u64,
        /// The transaction's.
        nonce: u64,
    },
    /// A transaction with blobs, and there is a gap before its nonce.
    #[error("nonce too high: tx nonce {nonce}, gapped nonce {next}")]
    NonceTooHigh {
        /// The sender's next nonce.
        next: u64,
        /// The transaction's.
        nonce: u64,
    },
    /// The sender has transactions with blobs, and this one has none, or the other way round.
    #[error("address already reserved")]
    AddressReserved,
    /// The sender cannot pay for it alone.
    #[error(
        "insufficient funds for gas * price + value: balance {balance}, tx cost {cost}, \
         overshot {}", cost - balance
    )]
    Funds {
        /// The sender's balance at the head, in wei.
        balance: U256,
        /// The most that the transaction may cost.
        cost: U256,
    },
    /// The sender cannot pay for it beside what is pending.
    #[error(
        "insufficient funds for gas * price + value: balance {balance}, queued cost {spent}, \
         tx cost {cost}, overshot {}", spent.saturating_add(*cost) - balance
    )]
    FundsInAll {
        /// The sender's balance at the head, in wei.
        balance: U256,
        /// The most that its pending transactions may cost.
        spent: U256,
        /// The most that this one may cost.
        cost: U256,
    },
    /// The sender cannot pay for it in place of the one that it replaces.
    #[error(
        "insufficient funds for gas * price + value: balance {balance}, queued cost {spent}, \
         tx bumped {bump}, overshot {}", spent.saturating_add(*bump) - balance
    )]
    FundsForReplacement {
        /// The sender's balance at the head, in wei.
        balance: U256,
        /// The most that its pending transactions may cost.
        spent: U256,
        /// How much more this one may cost than the replaced one.
        bump: U256,
    },
    /// The sender is delegated (EIP-7702), and there is a gap before this nonce.
    #[error("gapped-nonce tx from delegated accounts")]
    DelegatedGap,
    /// The sender is delegated (EIP-7702), and has a pending transaction.
    #[error("in-flight transaction limit reached for delegated accounts")]
    DelegatedLimit,
    /// An account that the transaction delegates has transactions in the pool.
    #[error("authority already reserved")]
    AuthorityReserved,
    /// A transaction with this nonce is there, and this one does not pay enough more.
    #[error("replacement transaction underpriced")]
    ReplacementUnderpriced,
    /// The pool has a transaction with blobs and this nonce, and a fee, which the text names, is
    /// not enough higher.
    #[error("replacement transaction underpriced: {0}")]
    BlobReplacementUnderpriced(String),
    /// The pool is full of transactions that pay more.
    #[error("transaction underpriced")]
    Underpriced,
    /// The pool is full, and the transaction could not run yet.
    #[error("txpool is full")]
    Full,
    /// The sender has as many queued transactions as it may.
    #[error("account limit exceeded: pooled {0} txs")]
    AccountLimit(usize),
    /// It could not be written to the log, for the reason given: it would not outlast the process.
    #[error("cannot write the transaction to the log of the pool: {0}")]
    Unwritable(String),
    /// The sender's account could not be read, for the reason given.
    #[error("cannot read the sender's account: {0}")]
    Unreadable(String),
}

/// Kinds of refusals, by which they are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// It could be in no block of this chain.
    Invalid,
    /// The pool has it.
    Known,
    /// Its gas limit is too low or too high.
    Gas,
    /// It pays too little.
    Underpriced,
    /// Its nonce was used, or there may be no gap before it.
    Nonce,
    /// The sender has too little money.
    Funds,
    /// The pool, or the sender's part of it, is full.
    Full,
    /// A delegated account, or one with blobs, has others.
    Reserved,
    /// A fault of the node.
    Failed,
}

impl RefusalKind {
    pub(crate) const ALL: [(Self, &'static str); 9] = [
        (Self::Invalid, "invalid"),
        (Self::Known, "known"),
        (Self::Gas, "gas"),
        (Self::Underpriced, "underpriced"),
        (Self::Nonce, "nonce"),
        (Self::Funds, "funds"),
        (Self::Full, "full"),
        (Self::Reserved, "reserved"),
        (Self::Failed, "failed"),
    ];
}

impl Refusal {
    pub(crate) const fn kind(&self) -> RefusalKind {
        match self {
            Self::AlreadyKnown => RefusalKind::Known,
            Self::GasTooHigh { .. }
            | Self::BlockGas
            | Self::IntrinsicGas { .. }
            | Self::FloorGas { .. }
            | Self::FloorAboveCap { .. } => RefusalKind::Gas,
            Self::TipTooLow { .. }
            | Self::BlobFeeTooLow(_)
            | Self::ReplacementUnderpriced
            | Self::Underpriced => RefusalKind::Underpriced,
            Self::NonceTooLow { .. } | Self::NonceTooHigh { .. } => RefusalKind::Nonce,
            Self::Funds { .. } | Self::FundsInAll { .. } | Self::FundsForReplacement { .. } => {
                RefusalKind::Funds
            }
            Self::Full | Self::AccountLimit(_) | Self::Busy => RefusalKind::Full,
            Self::AddressReserved
            | Self::DelegatedGap
            | Self::DelegatedLimit
            | Self::AuthorityReserved => RefusalKind::Reserved,
            Self::Unwritable(_) | Self::Unreadable(_) => RefusalKind::Failed,
            _ => RefusalKind::Invalid,
        }
    }
}
