//! The second judge of canonical content: slow, and sharing nothing with the first but the running
//! of the block; and of what that is told by [`followed`], not even that.
//!
//! State is flat maps by hashed key. The block runs on them with every access noted; the paths are
//! then walked in complete tries, built from all entries at once. A code belongs to the witness
//! when the block cannot run without it: each one that was asked for is taken away in turn. Where
//! that would take too long, it is done for a few, and the rest are those of a run in which every
//! transaction is followed by an inspector. None may be asked for that a transaction before has
//! given to an account: that is seen by what came of the transaction.

use crate::access_lists::{self, AccessKeys};
use crate::followed;
use alloy_consensus::Header;
use alloy_eip7928::AccountChanges;
use alloy_primitives::map::{AddressMap, B256Map, B256Set};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use engine::Genesis;
use execution::{ChainSpec, SealedBlock};
use std::collections::{BTreeMap, BTreeSet};
use testing::oracle::{Entries, expected_revealed};
use trie::{AccountChange, AccountInfo};
use witness::{Account, BlockState, Change, State, StateError, Witness};

/// Codes of a block that are taken away one by one, each at the price of one more run.
const CODES_TAKEN_AWAY: usize = 24;

/// Of more codes, how many are.
const CODES_SAMPLED: usize = 2;

/// The whole state after one block.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlatState {
    accounts: BTreeMap<B256, FlatAccount>,
    codes: B256Map<Bytes>,
    /// Headers by number, genesis first.
    headers: BTreeMap<u64, (B256, Bytes)>,
}

#[derive(Debug, Clone, Default)]
struct FlatAccount {
    nonce: u64,
    balance: U256,
    code_hash: B256,
    storage: BTreeMap<B256, U256>,
}

impl FlatState {
    pub(crate) fn new(genesis: &Genesis) -> Self {
        let mut state = Self::default();
        for (address, account) in &genesis.alloc {
            let code = account.code.clone().unwrap_or_default();
            let code_hash = keccak256(&code);
            state.codes.insert(code_hash, code);
            let slots = account.storage.iter().flatten().filter(|(_, value)| !value.is_zero());
            let slots = slots.map(|(slot, value)| (keccak256(slot), (*value).into()));
            let storage = slots.collect();
            let (nonce, balance) = (account.nonce.unwrap_or(0), account.balance);
            let account = FlatAccount { nonce, balance, code_hash, storage };
            state.accounts.insert(keccak256(address), account);
        }
        state.insert_header(&genesis.header);
        state
    }

    /// Runs `block`, returns the witness that it should have, and becomes the state after it.
    pub(crate) fn advance(
        &mut self,
        chain: &ChainSpec,
        block: &SealedBlock,
        senders: &[Address],
    ) -> Result<Witness, String> {
        let mut log = Log::new(self);
        let executed = execution::execute_exact(chain, block, &senders, &mut log)
            .map_err(|error| format!("the judge cannot run it: {error}"))?;
        let Log { keys, codes: asked, lowest_ancestor, between, .. } = log;
        if let Some(list) = &executed.block_access_list {
            keys.clone().check(&access_lists::decode(list)?, self)?;
        }
        let codes = match asked.len() {
            0..=CODES_TAKEN_AWAY => self.needed(chain, block, senders, &asked),
            count => {
                let some = asked.into_iter().step_by(count / CODES_SAMPLED).collect();
                let needed = self.needed(chain, block, senders, &some);
                let read: BTreeSet<_> = executed.codes_read.keys().copied().collect();
                if !needed.iter().map(keccak256).eq(some.intersection(&read).copied()) {
                    return Err("the judge's codes: read, but not needed, or the reverse".into());
                }
                executed.codes_read.into_values().map(|code| code.bytes).collect()
            }
        };

        if let Some(followed) = followed::codes(chain, block, senders, &executed.receipts, self) {
            let codes: BTreeSet<_> = codes.iter().map(keccak256).collect();
            if let Some(missing) = followed.difference(&codes).next() {
                return Err(format!("code {missing} was read, by the instructions of the block"));
            }
        }
        for (hash, code) in executed.new_codes {
            self.codes.insert(hash, code);
        }
        let before = self.accounts.clone();
        let changes = Change::hashed(&executed.changes).accounts;
        let mut after = After { accounts: before.clone(), wiped: BTreeSet::new() };
        after.apply(&changes);
        let mut state = revealed(&before, &keys.accounts, &keys.slots, &after);
        for after in &between {
            state.extend(revealed(&before, &BTreeSet::new(), &BTreeMap::new(), after));
        }
        self.accounts = after.accounts;
        let parent = block.header.number - 1;
        let first = lowest_ancestor.unwrap_or(parent);
        let headers = (first..=parent).map(|number| self.headers[&number].1.clone());
        let mut witness = Witness { state: state.into(), codes, headers: headers.collect() };
        witness.sort();
        self.insert_header(&block.header);
        Ok(witness)
    }

    fn insert_header(&mut self, header: &Header) {
        let rlp = alloy_rlp::encode(header);
        self.headers.insert(header.number, (keccak256(&rlp), rlp.into()));
    }

    /// `true` if the account with this key has storage.
    pub(crate) fn has_storage(&self, account: &B256) -> bool {
        self.accounts.get(account).is_some_and(|account| !account.storage.is_empty())
    }
}

impl FlatState {
    /// The `state` of the witness that a block with this access list should have, by the list
    /// alone, in order; becomes the state after it.
    pub(crate) fn advance_by(&mut self, list: &[AccountChanges], header: &Header) -> Vec<Bytes> {
        let keys = AccessKeys::of(list);
        let before = self.accounts.clone();
        let mut after = After { accounts: before.clone(), wiped: BTreeSet::new() };
        let changes = list.iter().filter(|account| account.has_changes());
        after.apply(&changes.map(|account| change(&before, account)).collect::<Vec<_>>());
        let mut state = revealed(&before, &keys.accounts, &keys.slots, &after);
        self.accounts = after.accounts;
        for code in list.iter().flat_map(|account| &account.code_changes) {
            self.codes.insert(keccak256(&code.new_code), code.new_code.clone());
        }
        self.insert_header(header);
        state.sort();
        state.dedup();
        state
    }

    /// Those of `asked` without which the block does not run.
    fn needed(
        &self,
        chain: &ChainSpec,
        block: &SealedBlock,
        senders: &[Address],
        asked: &BTreeSet<B256>,
    ) -> Vec<Bytes> {
        let is_needed = |hash: &&B256| {
            let mut log = Log { taken_away: Some(**hash), ..Log::new(self) };
            execution::execute(chain, block, &senders, &mut log).is_err()
        };
        asked.iter().filter(is_needed).map(|hash| self.codes[hash].clone()).collect()
    }
}

/// The account after the block by a list.
fn change(before: &BTreeMap<B256, FlatAccount>, list: &AccountChanges) -> AccountChange {
    let hashed_address = keccak256(list.address);
    let before = before.get(&hashed_address);
    let account = AccountInfo {
        nonce: list.nonce_post_state().or(before.map(|b| b.nonce)).unwrap_or_default(),
        balance: list.balance_post_state().or(before.map(|b| b.balance)).unwrap_or_default(),
        code_hash: list
            .code_hash_post_state()
            .or(before.map(|b| b.code_hash))
            .unwrap_or(KECCAK256_EMPTY),
    };
    let is_empty =
        account.nonce == 0 && account.balance.is_zero() && account.code_hash == KECCAK256_EMPTY;
    let slots = list.storage_post_states();
    AccountChange {
        hashed_address,
        account: (!is_empty).then_some(account),
        storage_wiped: false,
        storage: slots.map(|(slot, v)| (keccak256(slot.to_be_bytes::<32>()), v)).collect(),
    }
}

/// The state after a block, or after some of its transactions.
#[derive(Debug, Clone)]
struct After {
    accounts: BTreeMap<B256, FlatAccount>,
    /// Accounts whose storage began again from empty.
    wiped: BTreeSet<B256>,
}

impl After {
    fn apply(&mut self, changes: &[AccountChange]) {
        for change in changes {
            if change.storage_wiped || change.account.is_none() {
                self.wiped.insert(change.hashed_address);
            }
            let Some(info) = &change.account else {
                self.accounts.remove(&change.hashed_address);
                continue;
            };
            let account = self.accounts.entry(change.hashed_address).or_default();
            (account.nonce, account.balance) = (info.nonce, info.balance);
            account.code_hash = info.code_hash;
            if change.storage_wiped {
                account.storage.clear();
            }
            account.storage.extend(change.storage.iter().copied());
            account.storage.retain(|_, value| !value.is_zero());
        }
    }
}

/// The nodes needed to read these accounts and slots, and to make one state of the other.
fn revealed(
    before: &BTreeMap<B256, FlatAccount>,
    touched: &BTreeSet<B256>,
    slots: &BTreeMap<B256, BTreeSet<B256>>,
    after: &After,
) -> Vec<Bytes> {
    let mut state = expected_revealed(
        &account_entries(before),
        &touched.iter().map(|key| key.to_vec()).collect(),
        &account_entries(&after.accounts),
    );
    for (address, account) in before {
        let empty = BTreeSet::new();
        let slots = slots.get(address).unwrap_or(&empty);
        let after = match after.accounts.get(address) {
            Some(account) if !after.wiped.contains(address) => &account.storage,
            // Nothing of an old storage is needed to forget it.
            _ => &account.storage,
        };
        if account.storage.is_empty() || (slots.is_empty() && *after == account.storage) {
            continue;
        }
        state.extend(expected_revealed(
            &slot_entries(&account.storage),
            &slots.iter().map(|key| key.to_vec()).collect(),
            &slot_entries(after),
        ));
    }
    state
}

fn account_entries(accounts: &BTreeMap<B256, FlatAccount>) -> Entries {
    let value = |account: &FlatAccount| {
        let slots = account.storage.iter().map(|(slot, value)| (*slot, *value));
        let storage_root = storage_root(slots);
        let FlatAccount { nonce, balance, code_hash, .. } = *account;
        alloy_rlp::encode(Account { nonce, balance, storage_root, code_hash })
    };
    accounts.iter().map(|(key, account)| (key.to_vec(), value(account))).collect()
}

fn slot_entries(slots: &BTreeMap<B256, U256>) -> Entries {
    slots.iter().map(|(slot, value)| (slot.to_vec(), alloy_rlp::encode(value))).collect()
}

fn storage_root(slots: impl Iterator<Item = (B256, U256)>) -> B256 {
    let mut builder = alloy_trie::HashBuilder::default();
    for (slot, value) in slots {
        builder.add_leaf(alloy_trie::Nibbles::unpack(slot), &alloy_rlp::encode(value));
    }
    builder.root()
}

/// A flat state that notes what is asked of it.
#[derive(Debug)]
pub(crate) struct Log<'a> {
    state: &'a FlatState,
    pub(crate) keys: AccessKeys,
    codes: BTreeSet<B256>,
    lowest_ancestor: Option<u64>,
    /// The state after each transaction, in a block whose receipts have roots.
    between: Vec<After>,
    /// A code that the state pretends not to have.
    taken_away: Option<B256>,
    /// Codes that transactions have given to accounts, by what came of each, and what those have
    /// now: to be asked for one that is here is a bug.
    written: B256Set,
    code_hashes: AddressMap<B256>,
}

impl<'a> Log<'a> {
    pub(crate) fn new(state: &'a FlatState) -> Self {
        Self {
            state,
            keys: AccessKeys::default(),
            codes: BTreeSet::new(),
            lowest_ancestor: None,
            between: Vec::new(),
            taken_away: None,
            written: B256Set::default(),
            code_hashes: AddressMap::default(),
        }
    }
}

impl BlockState for Log<'_> {
    fn restart(&mut self) -> Result<(), StateError> {
        *self = Self { taken_away: self.taken_away, ..Self::new(self.state) };
        Ok(())
    }

    fn apply(&mut self, _: &[Change]) -> Result<B256, StateError> {
        unreachable!("only `validate` does");
    }

    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        let first = || After { accounts: self.state.accounts.clone(), wiped: BTreeSet::new() };
        let mut after = self.between.last().cloned().unwrap_or_else(first);
        after.apply(&Change::hashed(changes).accounts);
        let mut builder = alloy_trie::HashBuilder::default();
        for (key, value) in account_entries(&after.accounts) {
            builder.add_leaf(alloy_trie::Nibbles::unpack(key), &value);
        }
        self.between.push(after);
        Ok(builder.root())
    }
}

impl State for Log<'_> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        let key = keccak256(address);
        self.keys.accounts.insert(key);
        // Of the storage root, execution looks only at whether it is that of an empty trie.
        let storage_root = |account: &FlatAccount| match account.storage.is_empty() {
            true => trie::EMPTY_ROOT_HASH,
            false => B256::ZERO,
        };
        Ok(self.state.accounts.get(&key).map(|account| Account {
            nonce: account.nonce,
            balance: account.balance,
            storage_root: storage_root(account),
            code_hash: account.code_hash,
        }))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let (key, slot) = (keccak256(address), keccak256(slot.to_be_bytes::<32>()));
        self.keys.accounts.insert(key);
        self.keys.slots.entry(key).or_default().insert(slot);
        let account = self.state.accounts.get(&key);
        Ok(account.and_then(|account| account.storage.get(&slot)).copied().unwrap_or_default())
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        if self.written.contains(&code_hash) {
            return Err(StateError::Storage(format!("the block has written code {code_hash}")));
        }
        let code = self.state.codes.get(&code_hash);
        let code = code.filter(|_| self.taken_away != Some(code_hash));
        let code = code.cloned().ok_or(StateError::MissingCode(code_hash))?;
        self.codes.insert(code_hash);
        Ok(code)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        let lowest = self.lowest_ancestor.unwrap_or(number).min(number);
        self.lowest_ancestor = Some(lowest);
        let header = self.state.headers.get(&number);
        header.map(|(hash, _)| *hash).ok_or(StateError::MissingHeader(number))
    }

    fn ran(&mut self, changes: &mut dyn Iterator<Item = Change>) {
        for Change { address, account, .. } in changes {
            let code_hash = account.map_or(KECCAK256_EMPTY, |account| account.code_hash);
            let before = self.code_hashes.insert(address, code_hash).unwrap_or_else(|| {
                let account = self.state.accounts.get(&keccak256(address));
                account.map_or(KECCAK256_EMPTY, |account| account.code_hash)
            });
            if code_hash != before && code_hash != KECCAK256_EMPTY {
                self.written.insert(code_hash);
            }
        }
    }
}
