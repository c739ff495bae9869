//! Floor 3. The reader of a version: accounts, slots and codes.

use crate::chain::slots::{CachedSlot, SlotCache};
use crate::chain::stored::new_codes;
use crate::error::storage_error;
use crate::limits;
use crate::remote::Remote;
use crate::shared::Chain;
use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use execution::AccessList;
use state::{Database, NodeReader, StoredCode};
use std::time::Duration;
use trie::versioned::{self, NodeAddress, Shortcuts, Version};
use trie::{Account, EMPTY_ROOT_HASH, hashed_slot};
use witness::{Code, Jumps, StateError};

/// An account as a version has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownAccount {
    pub(crate) hashed_address: B256,
    /// `None` when there is none.
    pub(crate) account: Option<Account>,
    /// Where the storage's root stands.
    storage: NodeAddress,
}

impl KnownAccount {
    /// An account whose storage is read by other means.
    pub(crate) fn without_storage(hashed_address: B256, account: Option<Account>) -> Self {
        Self { hashed_address, account, storage: NodeAddress::NONE }
    }

    /// The account's storage, `None` if that is empty.
    pub(crate) fn storage(&self) -> Option<Version> {
        let root = self.account?.storage_root;
        (root != EMPTY_ROOT_HASH).then_some(Version { root, address: self.storage })
    }
}

/// Reads one version, for one thread: the more it reads of a trie, the faster.
#[derive(Debug)]
pub(crate) struct VersionReader<'a> {
    database: &'a Database,
    nodes: NodeReader,
    accounts: TrieReader,
    storages: AddressMap<TrieReader>,
    /// Slots that were read in any version.
    slots: Option<&'a SlotCache>,
    /// The state after the first block, where that is elsewhere.
    remote: Option<&'a Remote>,
}

/// Reads one trie of a version.
#[derive(Debug)]
struct TrieReader {
    root: Version,
    reads_count: usize,
    /// The way past its upper nodes, once it is read often.
    shortcuts: Option<Shortcuts>,
}

impl TrieReader {
    fn new(root: Version) -> Self {
        Self { root, reads_count: 0, shortcuts: None }
    }

    /// The shortcuts to read by, if they are worth their room by now.
    fn shortcuts(&mut self) -> Option<&mut Shortcuts> {
        self.reads_count += 1;
        if self.reads_count < limits::SHORTCUT_READS {
            return None;
        }
        Some(self.shortcuts.get_or_insert_with(|| Shortcuts::new(self.root)))
    }
}

impl<'a> VersionReader<'a> {
    pub(crate) fn new(
        database: &'a Database,
        version: Version,
        remote: Option<&'a Remote>,
    ) -> Self {
        let nodes = NodeReader::new(database.nodes().clone());
        let accounts = TrieReader::new(version);
        Self { database, nodes, accounts, storages: AddressMap::default(), slots: None, remote }
    }

    /// As [`new`](Self::new), with the slots that others have read.
    pub(crate) fn of(chain: &'a Chain, version: Version) -> Self {
        let remote = chain.remote.as_deref();
        Self { slots: Some(&chain.slots), ..Self::new(&chain.database, version, remote) }
    }

    pub(crate) fn version(&self) -> Version {
        self.accounts.root
    }

    pub(crate) fn account(&mut self, address: Address) -> Result<KnownAccount, StateError> {
        let (hashed_address, version) = (keccak256(address), self.version());
        self.ask(hashed_address, address);
        let found = match self.accounts.shortcuts() {
            Some(shortcuts) => shortcuts.account(&mut self.nodes, &hashed_address)?,
            None => versioned::account(&mut self.nodes, &version, &hashed_address)?,
        };
        let (account, storage) = found.unzip();
        if let Some(account) = account {
            self.has_code(address, account.code_hash);
        }
        let storage = storage.map_or(NodeAddress::NONE, |storage| storage.address);
        Ok(KnownAccount { hashed_address, account, storage })
    }

    /// Takes notice of an account that is about to be read by other means.
    pub(crate) fn ask(&self, hashed_address: B256, address: Address) {
        if let Some(remote) = self.remote {
            remote.ask(hashed_address, address);
        }
    }

    /// Takes notice of a slot that is about to be read by other means.
    pub(crate) fn ask_slot(&self, hashed_address: B256, hashed_slot: B256, slot: U256) {
        if let Some(remote) = self.remote {
            remote.ask_slot(hashed_address, hashed_slot, slot);
        }
    }

    /// Takes notice of all that an access list names.
    pub(crate) fn ask_listed(&self, list: &AccessList) {
        let Some(remote) = self.remote else { return };
        for account in list.accounts() {
            let hashed_address = keccak256(account.address());
            remote.ask(hashed_address, account.address());
            for slot in account.slots() {
                remote.ask_slot(hashed_address, hashed_slot(slot), slot);
            }
        }
    }

    /// Takes notice of the code of an account that was read by other means.
    pub(crate) fn has_code(&self, address: Address, code_hash: B256) {
        if let Some(remote) = self.remote {
            remote.has_code(address, code_hash);
        }
    }

    /// The value of a slot of an account that was read in the same version.
    pub(crate) fn slot(
        &mut self,
        address: Address,
        known: &KnownAccount,
        slot: U256,
    ) -> Result<U256, StateError> {
        Ok(self.hashed_slot(address, known, slot)?.map_or(U256::ZERO, |(_, value)| value))
    }

    /// As [`slot`](Self::slot), with the slot's hash; `None` where the account has no storage.
    pub(crate) fn hashed_slot(
        &mut self,
        address: Address,
        known: &KnownAccount,
        slot: U256,
    ) -> Result<Option<(B256, U256)>, StateError> {
        let Some(storage) = known.storage() else { return Ok(None) };
        if let Some(remote) = self.remote {
            remote.ask_slot(known.hashed_address, hashed_slot(slot), slot);
        }
        let trie = self.storages.entry(address).or_insert_with(|| TrieReader::new(storage));
        let Some(shortcuts) = trie.shortcuts() else {
            let hash = hashed_slot(slot);
            return Ok(Some((hash, versioned::slot(&mut self.nodes, &storage, &hash)?)));
        };
        let cached = self.slots.and_then(|slots| slots.get(address, slot));
        let hash = cached.map_or_else(|| hashed_slot(slot), |cached| cached.hash);
        let before = cached.map(|cached| cached.read);
        let read = shortcuts.slot(&mut self.nodes, &hash, before)?;
        if let Some(slots) = self.slots
            && before != Some(read)
        {
            slots.insert(address, slot, CachedSlot { hash, read });
        }
        let value = read.value;
        Ok(Some((hash, value)))
    }

    /// The code with this hash, which an account of some state has.
    pub(crate) fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        Ok(self.code_to_run(code_hash)?.bytes())
    }

    /// As [`code`](Self::code), with what is stored with it.
    pub(crate) fn code_to_run(&self, code_hash: B256) -> Result<Code, StateError> {
        let mut code = self.database.stored_code(&code_hash).map_err(storage_error)?;
        if let (None, Some(remote)) = (&code, self.remote) {
            let fetched = new_codes(vec![(code_hash, remote.code(code_hash)?)]);
            self.database.add_codes(fetched).map_err(storage_error)?;
            code = self.database.stored_code(&code_hash).map_err(storage_error)?;
        }
        let StoredCode { padded, padding, first, location, table } =
            code.ok_or(StateError::MissingCode(code_hash))?;
        let (length, is_mapped) = (padded.len() - padding, location.is_some());
        #[allow(unsafe_code, reason = "what the store has checked is not looked at again")]
        // SAFETY: where it has a table, the store has read `CODE_PADDING_BYTES` zeros behind the
        // code, and nothing changes what it has written.
        let jumps = table.map(|table| unsafe { Jumps::new(table) });
        Ok(Code { padded, length, first, is_mapped, jumps })
    }

    /// How long it has waited for the disk.
    pub(crate) fn waited(&self) -> Duration {
        self.nodes.waited()
    }
}
