use crate::access_list::ACCESS_LIST_ITEM_GAS;
use crate::block::check_public_keys;
use crate::limits::TRANSACTION_GAS;
use crate::named::{FailedRead, NamedReads};
use crate::ommers::validate_ommers_alone;
use crate::{
    BlockError, ChainSpec, Executed, InvalidBlock, RunOptions, SealedBlock, Senders,
    recover_senders_at, run, validate_header,
};
use alloy_consensus::{Header, Transaction as _, TxReceipt, proofs};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip7685::Requests;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bloom, Bytes, keccak256};
use alloy_rlp::{BufMut, Decodable};
use witness::{BlockState, DecodeError, Source, StateError, TrieState, Witness, WitnessIndex};

/// Bytes of a block's RLP from Osaka on (EIP-7934): 10 MiB less 2 MiB for the consensus layer.
pub(crate) const MAX_RLP_BLOCK_SIZE: usize = 8 * 1024 * 1024;

/// Validates `block` on `parent` by every rule except two, which the caller checks: that the body
/// is the one that the header names ([`validate_body_roots`]), and, with proof of work, the rules
/// about further ancestors ([`validate_ancestry`](crate::validate_ancestry)).
///
/// `state` is the state after `parent`. If the block is valid, all its changes are applied to
/// `state`, and the nodes that `state` has revealed are the block's witness. `senders` are those of
/// [`recover_senders_at`], or are recovered by the same rules on demand. The result agrees with the
/// header.
///
/// # Errors
/// [`BlockError::Invalid`] with the rule that the block breaks, [`BlockError::State`] if the state
/// cannot answer a read, and [`BlockError::Internal`].
pub fn validate(
    chain: &ChainSpec,
    parent: &Header,
    parent_hash: B256,
    block: &SealedBlock,
    senders: &dyn Senders,
    options: RunOptions<'_>,
    state: &mut impl BlockState,
) -> Result<Executed, BlockError> {
    debug_assert!(validate_body_roots(block).is_ok(), "the body is another block's");
    validate_header(chain, &block.header, parent, parent_hash)?;
    validate_body(chain, block)?;
    let executed = run(chain, block, senders, options, state)?;
    validate_results(&block.header, &executed)?;
    let (got, expected) = (block.header.receipts_root, executed.receipts_root());
    if got != expected {
        return Err(InvalidBlock::ReceiptsRoot { got, expected }.into());
    }
    let (got, expected) = (block.header.state_root, state.apply(&executed.changes)?);
    if got != expected {
        return Err(InvalidBlock::StateRoot { got, expected }.into());
    }
    Ok(executed)
}

/// The result of validating a block on a witness alone.
#[derive(Debug)]
pub struct Verified {
    /// The post-state root, equal to the header's.
    pub state_root: B256,
    /// The receipts root, equal to the header's.
    pub receipts_root: B256,
    /// Gas used, equal to the header's.
    pub gas_used: u64,
    /// The canonical witness, recorded while verifying: a subset of the one given.
    pub witness: Witness,
    /// The requests that the block made (EIP-7685), as its header commits to them; none before
    /// Prague.
    pub requests: Requests,
    /// RLP of the block access list (EIP-7928), as the header commits to it; from Amsterdam on.
    pub block_access_list: Option<Bytes>,
}

/// Validates `block` statelessly, with `witness` as the only state. A node or code that the witness
/// lacks is an error, never an absent account, slot or code.
///
/// For a block with proof of work the rules about ancestors beyond its parent are not checked
/// ([`validate_ancestry`](crate::validate_ancestry)), since a witness has no such ancestors.
///
/// `public_keys`, if given, must be those of the transactions' signers (EIP-8025), one a
/// transaction: 65 bytes, `0x04 || X || Y`.
///
/// # Errors
/// [`VerifyError::Witness`] if the witness is not one of this block, [`VerifyError::Block`]
/// with [`BlockError::Invalid`] if the block breaks a rule, and [`VerifyError::Read`] if the
/// witness lacks something.
pub fn verify(
    chain: &ChainSpec,
    block: &SealedBlock,
    public_keys: Option<&[Bytes]>,
    witness: &Witness,
) -> Result<Verified, VerifyError> {
    verify_with(chain, block, public_keys, witness, false).map(|(verified, _)| verified)
}

/// As [`verify`], but an account of which the witness lacks a node is taken for absent, as geth's
/// stateless run does. That proves less: also returns these accounts. A block that is only valid if
/// they are absent verifies, whether they are or not.
///
/// # Errors
/// As [`verify`]; a change of such an account still needs its nodes.
pub fn verify_taking_missing_for_absent(
    chain: &ChainSpec,
    block: &SealedBlock,
    witness: &Witness,
) -> Result<(Verified, Vec<Address>), VerifyError> {
    verify_with(chain, block, None, witness, true)
}

fn verify_with(
    chain: &ChainSpec,
    block: &SealedBlock,
    public_keys: Option<&[Bytes]>,
    witness: &Witness,
    takes_for_absent: bool,
) -> Result<(Verified, Vec<Address>), VerifyError> {
    let OpenedWitness { senders, index, parent } = open(chain, block, witness)?;
    if let Some(public_keys) = public_keys {
        check_public_keys(public_keys, &senders).map_err(BlockError::from)?;
    }
    validate_body_roots(block).map_err(BlockError::from)?;
    validate_ommers_alone(block).map_err(BlockError::from)?;
    let parent_hash = block.header.parent_hash;
    let mut state = NamedReads::new(TrieState::new(parent.state_root, &index));
    state.taken_for_absent = takes_for_absent.then(Vec::new);
    let options = RunOptions::default();
    let executed = validate(chain, &parent, parent_hash, block, &senders, options, &mut state);
    let executed = executed.map_err(|error| VerifyError::of(error, state.failed))?;
    let witness = executed.witness(&mut state.state, &block.header).map_err(BlockError::from)?;
    let verified = Verified {
        state_root: block.header.state_root,
        receipts_root: block.header.receipts_root,
        gas_used: block.header.gas_used,
        witness,
        requests: executed.requests,
        block_access_list: executed.block_access_list,
    };
    Ok((verified, state.taken_for_absent.unwrap_or_default()))
}

/// The two roots that the execution of a block gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roots {
    /// Root of the state after the block.
    pub state_root: B256,
    /// Root of the trie of receipts.
    pub receipts_root: B256,
}

/// Runs `block` statelessly and returns the two roots without comparing them with the header; all
/// else is checked as in [`verify`]. This is the answer of `engine_executeStatelessPayload`.
///
/// # Errors
/// See [`verify`].
pub fn execute_statelessly(
    chain: &ChainSpec,
    block: &SealedBlock,
    witness: &Witness,
) -> Result<Roots, VerifyError> {
    let OpenedWitness { senders, index, parent } = open(chain, block, witness)?;
    let mut state = NamedReads::new(TrieState::new(parent.state_root, &index));
    let mut answer = || -> Result<Roots, BlockError> {
        validate_header(chain, &block.header, &parent, block.header.parent_hash)?;
        validate_body_roots(block)?;
        validate_ommers_alone(block)?;
        validate_body(chain, block)?;
        let executed = run(chain, block, &senders, RunOptions::default(), &mut state)?;
        validate_results(&block.header, &executed)?;
        let receipts_root = executed.receipts_root();
        Ok(Roots { state_root: state.apply(&executed.changes)?, receipts_root })
    };
    let roots = answer();
    roots.map_err(|error| VerifyError::of(error, state.failed))
}

/// An indexed witness with the senders and the parent of its block.
struct OpenedWitness {
    senders: Vec<Address>,
    index: WitnessIndex,
    parent: Header,
}

fn open(
    chain: &ChainSpec,
    block: &SealedBlock,
    witness: &Witness,
) -> Result<OpenedWitness, VerifyError> {
    let senders = recover_senders_at(chain, block.header.number, &block.body.transactions)
        .map_err(BlockError::from)?;
    let index = WitnessIndex::new(witness, block.header.parent_hash)?;
    let parent = Header::decode(&mut &index.parent_rlp()[..])
        .map_err(|error| DecodeError::Headers(format!("parent: {error}")))?;
    Ok(OpenedWitness { senders, index, parent })
}

/// Why a block was not verified.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VerifyError {
    /// The witness is not one of this block.
    #[error("witness: {0}")]
    Witness(#[from] DecodeError),
    /// The block is invalid.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The witness lacks something, or it is malformed.
    #[error("{error}: {read}")]
    Read {
        /// The item.
        error: StateError,
        /// The read of the block that needs it.
        read: Box<FailedRead>,
    },
}

impl VerifyError {
    fn of(error: BlockError, failed: Option<FailedRead>) -> Self {
        match (error, failed) {
            (BlockError::State(error), Some(read)) => Self::Read { error, read: read.into() },
            (error, _) => Self::Block(error),
        }
    }

    /// The read that the witness could not answer, if that is the reason.
    pub const fn missing(&self) -> Option<&StateError> {
        match self {
            Self::Block(BlockError::State(error)) | Self::Read { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Checks that the body is the one that the header names, by its roots. A wrong body says nothing
/// about the block with that hash.
///
/// # Errors
/// [`InvalidBlock`] with the first root that differs.
pub fn validate_body_roots(block: &SealedBlock) -> Result<(), InvalidBlock> {
    let (header, body) = (&block.header, &block.body);
    let (got, expected) = (header.ommers_hash, proofs::calculate_ommers_root(&body.ommers));
    if got != expected {
        return Err(InvalidBlock::OmmersHash { got, expected });
    }
    let expected = root_of_list(&body.transactions, Encodable2718::encode_2718);
    let got = header.transactions_root;
    if got != expected {
        return Err(InvalidBlock::TransactionsRoot { got, expected });
    }
    let expected = body.withdrawals.as_ref().map(|w| proofs::calculate_withdrawals_root(w));
    match (header.withdrawals_root, expected) {
        (got, Some(expected)) if got != Some(expected) => {
            Err(InvalidBlock::WithdrawalsRoot { got, expected })
        }
        (Some(_), None) => {
            let (field, timestamp) = ("list of withdrawals", header.timestamp);
            Err(InvalidBlock::MissingField { field, timestamp })
        }
        _ => Ok(()),
    }
}

/// The root of the trie of these items, each encoded by `encode`.
pub(crate) fn root_of_list<T>(items: &[T], encode: impl Fn(&T, &mut dyn BufMut)) -> B256 {
    let (mut encoded, mut ends) = (Vec::new(), vec![0]);
    for item in items {
        encode(item, &mut encoded);
        ends.push(encoded.len());
    }
    let slices = ends.windows(2).map(|ends| &encoded[ends[0]..ends[1]]);
    trie::ordered_root(&slices.collect::<Vec<_>>())
}

/// Checks the rules between header and body besides the [roots](validate_body_roots): the size of
/// the block, its blob gas, and from Amsterdam on the gas limit of each transaction.
///
/// # Errors
/// [`InvalidBlock::BlockSize`], [`InvalidBlock::TransactionGas`] and
/// [`InvalidBlock::BlobGasUsed`].
pub fn validate_body(chain: &ChainSpec, block: &SealedBlock) -> Result<(), InvalidBlock> {
    if chain.is_osaka_active_at_timestamp(block.header.timestamp) {
        let (got, limit) = (block.rlp_bytes(), MAX_RLP_BLOCK_SIZE);
        if got > limit {
            return Err(InvalidBlock::BlockSize { got, limit });
        }
    }
    if chain.is_amsterdam_active_at_timestamp(block.header.timestamp) {
        let limits = block.body.transactions.iter().map(|transaction| transaction.gas_limit());
        if let Some((index, got)) = limits.enumerate().find(|(_, got)| *got > TRANSACTION_GAS) {
            return Err(InvalidBlock::TransactionGas { index, got, limit: TRANSACTION_GAS });
        }
    }
    let blobs = block.body.transactions.iter().map(|tx| tx.blob_gas_used().unwrap_or(0));
    let (got, expected) = (block.header.blob_gas_used.unwrap_or(0), blobs.sum());
    if got != expected {
        return Err(InvalidBlock::BlobGasUsed { got, expected });
    }
    Ok(())
}

/// Compares the results of execution with the header, the two roots aside.
fn validate_results(header: &Header, executed: &Executed) -> Result<(), InvalidBlock> {
    let (got, expected) = (header.gas_used, executed.gas_used);
    if got != expected {
        return Err(InvalidBlock::GasUsed { got, expected });
    }
    let (got, expected) = (header.blob_gas_used.unwrap_or(0), executed.blob_gas_used);
    if got != expected {
        return Err(InvalidBlock::BlobGasUsed { got, expected });
    }
    let expected = executed.logs_bloom();
    if header.logs_bloom != expected {
        let (got, expected) = (Box::new(header.logs_bloom), Box::new(expected));
        return Err(InvalidBlock::LogsBloom { got, expected });
    }
    if let Some(got) = header.requests_hash {
        let expected = executed.requests.requests_hash();
        if got != expected {
            return Err(InvalidBlock::RequestsHash { got: Some(got), expected });
        }
    }
    validate_access_list(header, executed)
}

/// Checks the block access list that execution gave, from Amsterdam on (EIP-7928).
///
/// # Errors
/// [`InvalidBlock::AccessListHash`] and [`InvalidBlock::AccessListSize`].
pub fn validate_access_list(header: &Header, executed: &Executed) -> Result<(), InvalidBlock> {
    let Some(list) = &executed.block_access_list else { return Ok(()) };
    let (got, expected) = (header.block_access_list_hash, keccak256(list));
    if got != Some(expected) {
        return Err(InvalidBlock::AccessListHash { got, expected });
    }
    let (got, limit) = (executed.block_access_list_items, header.gas_limit / ACCESS_LIST_ITEM_GAS);
    if got > limit {
        return Err(InvalidBlock::AccessListSize { got, limit });
    }
    Ok(())
}

impl Executed {
    /// The canonical witness of the block with this header, from the state on which it ran and to
    /// which its changes were applied.
    ///
    /// # Errors
    /// [`StateError::MissingHeader`] if the state's source lacks an ancestor.
    pub fn witness(
        &self,
        state: &mut TrieState<impl Source>,
        header: &Header,
    ) -> Result<Witness, StateError> {
        let codes = self.codes_read.values().map(|code| code.bytes.clone()).collect();
        state.witness(codes, self.first_ancestor, header.number.saturating_sub(1))
    }

    /// Root of the trie of receipts.
    pub fn receipts_root(&self) -> B256 {
        root_of_list(&self.receipts, Encodable2718::encode_2718)
    }

    /// All receipts' blooms in one.
    pub fn logs_bloom(&self) -> Bloom {
        self.receipts.iter().fold(Bloom::ZERO, |bloom, receipt| bloom | receipt.bloom())
    }
}
