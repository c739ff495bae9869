use crate::Error;
use crate::block::live::storage_error;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use state::{Database, StoredCode};
use std::sync::Arc;
use trie::versioned::{self, Version};
use trie::{Account, AccountProof};
use witness::{Code, Jumps, StateError};

/// The state after one block, to read from. It has no way to write.
#[derive(Debug, Clone)]
pub struct StateView {
    database: Arc<Database>,
    version: Version,
}

impl StateView {
    pub(crate) const fn new(database: Arc<Database>, version: Version) -> Self {
        Self { database, version }
    }

    /// The state root.
    pub const fn root(&self) -> B256 {
        self.version.root
    }

    /// The account at `address`, `None` when there is none.
    pub fn account(&self, address: Address) -> Result<Option<Account>, Error> {
        let account =
            versioned::account(self.database.nodes(), &self.version, &keccak256(address))?;
        Ok(account.map(|(account, _)| account))
    }

    /// The value in `slot` of the account at `address`, zero when never written.
    pub fn storage(&self, address: Address, slot: U256) -> Result<U256, Error> {
        let account =
            versioned::account(self.database.nodes(), &self.version, &keccak256(address))?;
        let Some((_, storage)) = account else { return Ok(U256::ZERO) };
        let slot = keccak256(slot.to_be_bytes::<32>());
        Ok(versioned::slot(self.database.nodes(), &storage, &slot)?)
    }

    /// The code of the account at `address`, empty when it has none.
    pub fn code(&self, address: Address) -> Result<Bytes, Error> {
        match self.account(address)? {
            Some(account) if account.code_hash != KECCAK256_EMPTY => {
                Ok(code(&self.database, account.code_hash)?)
            }
            _ => Ok(Bytes::new()),
        }
    }

    /// The account with the proofs of it and of these slots.
    pub fn proof(&self, address: Address, slots: &[U256]) -> Result<AccountProof, Error> {
        let slots: Vec<_> = slots.iter().map(|slot| keccak256(slot.to_be_bytes::<32>())).collect();
        let (nodes, hashed_address) = (self.database.nodes(), keccak256(address));
        Ok(versioned::account_proof(nodes, &self.version, &hashed_address, &slots)?)
    }
}

/// The code with this hash, which an account of some state has.
pub(crate) fn code(database: &Database, code_hash: B256) -> Result<Bytes, StateError> {
    Ok(code_to_run(database, code_hash)?.bytes())
}

/// As [`code`], with its padding and its table of jump destinations.
pub(crate) fn code_to_run(database: &Database, code_hash: B256) -> Result<Code, StateError> {
    let code = database.stored_code(&code_hash).map_err(storage_error)?;
    let StoredCode { padded, padding, first, location, table } =
        code.ok_or(StateError::MissingCode(code_hash))?;
    let (length, is_mapped) = (padded.len() - padding, location.is_some());
    // Safety: where it has a table, the store has read `CODE_PADDING_BYTES` zeros behind the code,
    // and nobody changes what it has written.
    #[allow(unsafe_code, reason = "what the store has checked is not looked at again")]
    let jumps = table.map(|table| unsafe { Jumps::new(table) });
    Ok(Code { padded, length, first, is_mapped, jumps })
}
