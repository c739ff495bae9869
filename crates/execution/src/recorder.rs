use crate::code_cache::{bytecode, stored_bytecode};
use crate::{ChainSpec, CodeCache};
use alloy_consensus::Header;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::map::{AddressSet, B256Map};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use revm::context::{DBErrorMarker, TxEnv};
use revm::context_interface::transaction::AuthorizationTr;
use revm::database_interface::Database;
use revm::state::{AccountInfo, Bytecode};
use witness::{Account, ReadCode, State, StateError};

/// The pre-state as the EVM's database. It records the parts of the canonical witness that are no
/// trie nodes: the codes read from the pre-state, and the reach of `BLOCKHASH`.
///
/// Accounts and slots need no record here: reading them reveals their trie nodes.
#[derive(Debug)]
pub(crate) struct Recorder<S> {
    pub(crate) state: S,
    cache: Option<CodeCache>,
    /// The first read that the state could not answer. alloy-evm turns some database errors into
    /// verdicts on the block; this tells them apart.
    pub(crate) error: Option<StateError>,
    /// Codes read from the pre-state, the canonical set.
    pub(crate) codes: B256Map<ReadCode>,
    /// The lowest ancestor that `BLOCKHASH` asked for.
    pub(crate) lowest_ancestor: Option<u64>,
    /// Accounts with storage, but neither code nor nonce: creating a contract there is a collision
    /// (EIP-7610), which the EVM cannot see from what it reads.
    storage_only: AddressSet,
    /// A creation met such an account.
    pub(crate) collided: bool,
    /// Codes that this block's finished transactions wrote: reading them is no pre-state read.
    written: B256Map<Bytes>,
    /// Whether every transaction is followed exactly, not only those that need it.
    pub(crate) always_exact: bool,
    /// Whether a code may delegate to an account (EIP-7702): from Prague on.
    may_delegate: bool,
    /// The running transaction's use of codes.
    pub(crate) transaction: TransactionCodes,
}

/// The running transaction's use of codes.
#[derive(Debug, Default)]
pub(crate) struct TransactionCodes {
    /// Codes first read from the pre-state by this transaction.
    pub(crate) fetched: Vec<B256>,
    /// A contract may have been created before now.
    pub(crate) create_seen: bool,
    /// Only a run under the inspector tells what happened: a code was asked for after a contract
    /// may have been created, and may be one that the transaction itself wrote; or a contract may
    /// have been created where there is storage.
    pub(crate) ambiguous: bool,
    /// EIP-7702 delegation markers that the transaction may write.
    pub(crate) markers: B256Map<Bytes>,
    /// Codes written so far by frames that have not reverted, in order; kept on an exact run.
    pub(crate) exact: Option<Vec<(B256, Bytes)>>,
    /// Length of `exact` at the start of each open frame.
    pub(crate) frames: Vec<usize>,
}

impl TransactionCodes {
    /// The state before `transaction` runs.
    pub(crate) fn of(transaction: &TxEnv) -> Self {
        let markers = transaction.authorization_list.iter().map(|a| delegation_marker(a.address()));
        Self { markers: markers.collect(), ..Self::default() }
    }
}

impl<S> Recorder<S> {
    pub(crate) fn new(
        chain: &ChainSpec,
        header: &Header,
        state: S,
        cache: Option<CodeCache>,
        always_exact: bool,
    ) -> Self {
        Self {
            may_delegate: chain.is_prague_active_at_timestamp(header.timestamp),
            state,
            cache,
            error: None,
            codes: B256Map::default(),
            lowest_ancestor: None,
            storage_only: AddressSet::default(),
            collided: false,
            written: B256Map::default(),
            always_exact,
            transaction: TransactionCodes::default(),
        }
    }

    /// Begins a block of which this is the header.
    pub(crate) fn begin_block(&mut self, chain: &ChainSpec, header: &Header) {
        self.may_delegate = chain.is_prague_active_at_timestamp(header.timestamp);
    }

    /// Forgets all reads: the next transaction is independent of them.
    pub(crate) fn restart(&mut self) {
        (self.error, self.lowest_ancestor) = (None, None);
        self.codes.clear();
        self.storage_only.clear();
    }

    pub(crate) fn note_written(&mut self, code_hash: B256, code: Bytes) {
        self.written.insert(code_hash, code);
    }

    /// Notes that the running transaction creates a contract, or is about to.
    pub(crate) fn note_creation(&mut self) {
        self.transaction.create_seen = true;
        self.transaction.ambiguous |= !self.storage_only.is_empty();
    }

    /// Notes that a transaction has deleted an account, with its storage.
    pub(crate) fn note_deleted(&mut self, address: &Address) {
        self.storage_only.remove(address);
    }

    /// Whether `address` has storage, but neither code nor nonce.
    pub(crate) fn has_storage_only(&self, address: &Address) -> bool {
        self.storage_only.contains(address)
    }

    pub(crate) fn enter_frame(&mut self) {
        if let Some(exact) = &self.transaction.exact {
            self.transaction.frames.push(exact.len());
        }
    }

    /// Ends a frame. Its writes stay if it succeeded; `created` is the code of the contract that it
    /// deployed. Returns the codes that are no longer written by any frame.
    #[must_use]
    pub(crate) fn exit_frame(&mut self, success: bool, created: Option<&Bytes>) -> Vec<B256> {
        let TransactionCodes { exact: Some(exact), frames, .. } = &mut self.transaction else {
            return Vec::new();
        };
        let start = frames.pop().unwrap_or(0);
        if success {
            let code = created.filter(|code| !code.is_empty());
            exact.extend(code.map(|code| (keccak256(code), code.clone())));
            return Vec::new();
        }
        let mut undone: Vec<_> = exact.drain(start..).map(|(hash, _)| hash).collect();
        undone.retain(|hash| {
            !self.written.contains_key(hash) && exact.iter().all(|(written, _)| written != hash)
        });
        undone
    }
}

impl<S: State> Recorder<S> {
    /// Makes sure that the state itself has the code.
    pub(crate) fn confirm_code(&mut self, code_hash: B256) -> Result<(), ReadError> {
        self.read(|state| state.code(code_hash)).map(|_| ())
    }

    pub(crate) fn read<T>(
        &mut self,
        read: impl FnOnce(&mut S) -> Result<T, StateError>,
    ) -> Result<T, ReadError> {
        read(&mut self.state).map_err(|error| {
            self.error.get_or_insert_with(|| error.clone());
            ReadError(error)
        })
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytecode, ReadError> {
        if let Some(code) = self.written.get(&code_hash) {
            return Ok(bytecode(code.clone()));
        }
        let transaction = &mut self.transaction;
        transaction.ambiguous |= transaction.create_seen;
        let exact = transaction.exact.iter().flatten();
        if let Some((_, code)) = exact.rev().find(|(hash, _)| *hash == code_hash) {
            return Ok(bytecode(code.clone()));
        }
        let marker = transaction.markers.get(&code_hash).cloned();
        let (code, read) = match (self.state_code(code_hash), marker) {
            (Ok((code, first)), _) => {
                let bytes = code.original_bytes();
                (code, ReadCode { first, bytes })
            }
            // Which read of a marker is a pre-state read is settled after the transaction.
            (Err(_), Some(marker)) => (bytecode(marker.clone()), marker.into()),
            (Err(error), None) => return self.read(|_| Err(error)),
        };
        // The cache asks again for a code that it has forgotten.
        if self.codes.insert(code_hash, read).is_none() {
            self.transaction.fetched.push(code_hash);
        }
        Ok(code)
    }

    /// A code of the state's, and its first bytes.
    fn state_code(
        &mut self,
        code_hash: B256,
    ) -> Result<(Bytecode, [u8; ReadCode::FIRST_BYTES]), StateError> {
        let Some(cache) = &self.cache else {
            let stored = self.state.code_to_run(code_hash)?;
            return Ok((stored_bytecode(&stored), stored.first));
        };
        if let Some(code) = cache.get(&code_hash) {
            return Ok(code);
        }
        let stored = self.state.code_to_run(code_hash)?;
        let code = stored_bytecode(&stored);
        cache.insert(code_hash, code.clone(), &stored);
        Ok((code, stored.first))
    }
}

impl<S: State> Database for Recorder<S> {
    type Error = ReadError;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, ReadError> {
        let account = self.read(|state| state.account(address))?;
        if account.is_some_and(|account| has_storage_only(&account)) {
            self.storage_only.insert(address);
            self.transaction.ambiguous |= self.transaction.create_seen;
        }
        Ok(account.map(|account| AccountInfo {
            balance: account.balance,
            nonce: account.nonce,
            code_hash: account.code_hash,
            code: None,
            ..AccountInfo::default()
        }))
    }

    fn code_by_hash(&mut self, code_hash: B256) -> Result<Bytecode, ReadError> {
        if code_hash == KECCAK256_EMPTY {
            return Ok(Bytecode::default());
        }
        let code = self.code(code_hash)?;
        // The cache has codes of all forks.
        let is_delegation = code.is_eip7702() && !self.may_delegate;
        Ok(if is_delegation { Bytecode::new_legacy(code.original_bytes()) } else { code })
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, ReadError> {
        self.read(|state| state.storage(address, slot))
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, ReadError> {
        let lowest = self.lowest_ancestor.unwrap_or(number).min(number);
        self.lowest_ancestor = Some(lowest);
        self.read(|state| state.block_hash(number))
    }
}

/// The marker that delegates to `address` (EIP-7702), and its hash.
pub(crate) fn delegation_marker(address: Address) -> (B256, Bytes) {
    let code = Bytes::from([&DELEGATION_MARKER[..], address.as_slice()].concat());
    (keccak256(&code), code)
}

/// The first bytes of a delegation marker. The address of the delegate follows them.
const DELEGATION_MARKER: [u8; 3] = [0xef, 0x01, 0x00];

fn has_storage_only(account: &Account) -> bool {
    account.nonce == 0
        && account.code_hash == KECCAK256_EMPTY
        && account.storage_root != trie::EMPTY_ROOT_HASH
}

/// An account's fields as the trie stores them, from those that the EVM holds.
pub(crate) fn account_info(info: &AccountInfo) -> trie::AccountInfo {
    let AccountInfo { nonce, balance, code_hash, .. } = *info;
    trie::AccountInfo { nonce, balance, code_hash }
}

/// A failed read on its way through the EVM.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct ReadError(StateError);

impl DBErrorMarker for ReadError {}
