//! `prestateTracer`: the accounts and slots that a transaction uses, before it and, where that is
//! asked for, after it.

use super::instruction::{Instruction, Judgement};
use super::json;
use super::view::View;
use super::watch::{Entry, Tracer, TransactionEnd};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use revm::bytecode::opcode as op;
use revm::primitives::hardfork::SpecId;
use revm::state::AccountInfo;
use std::collections::{BTreeMap, BTreeSet};

/// How the state before a transaction is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrestateTracerConfig {
    /// Whether only what changes is there, before and after.
    pub diff_mode: bool,
    /// Whether codes are left out.
    pub disable_code: bool,
    /// Whether slots are left out.
    pub disable_storage: bool,
    /// Whether accounts that do not exist are there. Not in `diff_mode`.
    pub include_empty: bool,
}

#[derive(Debug)]
pub(crate) struct PrestateTracer {
    config: PrestateTracerConfig,
    accounts: BTreeMap<Address, UsedAccount>,
    /// Accounts at which a contract is created.
    created: BTreeSet<Address>,
    /// Accounts that are deleted.
    deleted: BTreeSet<Address>,
    taken: usize,
}

/// An account, as far as it is shown. A member that is `None` is left out.
#[derive(Debug, Default)]
struct UsedAccount {
    balance: Option<U256>,
    code: Option<Bytes>,
    code_hash: Option<B256>,
    nonce: u64,
    storage: BTreeMap<U256, U256>,
    is_empty: bool,
    /// Whether it is as it was, so that it is left out.
    is_unchanged: bool,
}

impl UsedAccount {
    fn write(&self, out: &mut String) {
        out.push('{');
        if let Some(balance) = self.balance {
            json::member(out, "balance");
            json::quantity(out, balance);
        }
        if let Some(code) = &self.code {
            json::member(out, "code");
            json::bytes(out, code);
        }
        if let Some(hash) = self.code_hash {
            json::member(out, "codeHash");
            json::word(out, hash);
        }
        if self.nonce != 0 {
            json::member(out, "nonce");
            json::number(out, self.nonce);
        }
        if !self.storage.is_empty() {
            json::member(out, "storage");
            out.push('{');
            for (slot, value) in &self.storage {
                json::member(out, &B256::from(*slot).to_string());
                json::word(out, B256::from(*value));
            }
            out.push('}');
        }
        out.push('}');
    }
}

fn write_accounts<'a>(
    out: &mut String,
    accounts: impl Iterator<Item = (&'a Address, &'a UsedAccount)>,
) {
    out.push('{');
    for (address, account) in accounts {
        // Without the checksum's capitals.
        json::member(out, &format!("{address:#x}"));
        account.write(out);
    }
    out.push('}');
}

/// About the bytes of an account in the answer, without its code and slots.
const ACCOUNT_BYTES: usize = 300;

/// About the bytes of a slot in the answer.
const SLOT_BYTES: usize = 140;

impl PrestateTracer {
    pub(crate) fn new(config: PrestateTracerConfig) -> Self {
        Self {
            config,
            accounts: BTreeMap::new(),
            created: BTreeSet::new(),
            deleted: BTreeSet::new(),
            taken: 0,
        }
    }

    fn note(&mut self, address: Address, view: &mut dyn View) {
        if !self.accounts.contains_key(&address) {
            let info = view.account(address);
            self.put(address, info, view);
        }
    }

    /// Notes an account as it was before the transaction began.
    fn note_before(&mut self, address: Address, view: &mut dyn View) {
        if !self.accounts.contains_key(&address) {
            let info = view.account_before(address).unwrap_or_default();
            self.put(address, info, view);
        }
    }

    fn put(&mut self, address: Address, info: AccountInfo, view: &mut dyn View) {
        let has_code = !info.code_hash.is_zero() && info.code_hash != KECCAK256_EMPTY;
        let keeps_code = has_code && !self.config.disable_code;
        let code = keeps_code.then(|| view.code(&info));
        self.taken += ACCOUNT_BYTES + code.as_ref().map_or(0, |code| 2 * code.len());
        let account = UsedAccount {
            balance: Some(info.balance),
            code,
            code_hash: has_code.then_some(info.code_hash),
            nonce: info.nonce,
            storage: BTreeMap::new(),
            is_empty: info.nonce == 0 && !has_code && info.balance.is_zero(),
            is_unchanged: false,
        };
        self.accounts.insert(address, account);
    }

    fn note_slot(&mut self, address: Address, slot: U256, view: &mut dyn View) {
        self.note(address, view);
        let Some(account) = self.accounts.get_mut(&address) else { return };
        if !self.config.disable_storage && !account.storage.contains_key(&slot) {
            account.storage.insert(slot, view.slot(address, slot)[1]);
            self.taken += SLOT_BYTES;
        }
    }

    fn note_delegate(&mut self, info: &AccountInfo, view: &mut dyn View) {
        if view.spec().is_enabled_in(SpecId::PRAGUE)
            && !info.is_empty_code_hash()
            && let Some(delegate) = delegate(&view.code(info))
        {
            self.note(delegate, view);
        }
    }

    /// Leaves of the accounts what changes, and returns what it becomes.
    fn keep_changes(
        &mut self,
        end: &TransactionEnd<'_>,
        view: &mut dyn View,
    ) -> BTreeMap<Address, UsedAccount> {
        let mut after = BTreeMap::new();
        for (address, account) in &mut self.accounts {
            if self.deleted.contains(address) {
                continue;
            }
            let loaded = end.state.get(address);
            let info = match loaded {
                Some(loaded) => loaded.info.clone(),
                None => view.account_before(*address).unwrap_or_default(),
            };
            let mut changed = UsedAccount::default();
            let mut is_changed = false;
            if account.balance != Some(info.balance) {
                is_changed = true;
                changed.balance = Some(info.balance);
            }
            if account.nonce != info.nonce {
                is_changed = true;
                changed.nonce = info.nonce;
            }
            // geth gives no hash to an account that does not exist, not even that of emptiness. An
            // empty one that is touched does not exist any more (EIP-161).
            let is_removed = view.spec().is_enabled_in(SpecId::SPURIOUS_DRAGON)
                && loaded.is_some_and(|loaded| loaded.is_touched());
            let exists = !info.is_empty() || !is_removed && view.account_before(*address).is_some();
            let hash = if exists { info.code_hash } else { B256::ZERO };
            if account.code_hash.unwrap_or(KECCAK256_EMPTY) != hash {
                is_changed = true;
                changed.code_hash = Some(hash);
                if !self.config.disable_code && account.code_hash != Some(hash) {
                    let code = view.code(&info);
                    let before = account.code.clone().unwrap_or_default();
                    changed.code = (code != before).then_some(code);
                }
            }
            account.storage.retain(|slot, value| {
                let found = loaded.and_then(|loaded| loaded.storage.get(slot));
                let now = found
                    .map_or_else(|| view.slot(*address, *slot)[1], |found| found.present_value);
                if *value == now {
                    return false;
                }
                is_changed = true;
                if !now.is_zero() {
                    changed.storage.insert(*slot, now);
                }
                !value.is_zero()
            });
            if is_changed {
                after.insert(*address, changed);
            } else {
                account.is_unchanged = true;
            }
        }
        self.accounts.retain(|_, account| !account.is_unchanged);
        after
    }
}

/// The account to which a code delegates (EIP-7702).
fn delegate(code: &[u8]) -> Option<Address> {
    let address = code.strip_prefix(&[0xef, 0x01, 0x00])?;
    Address::try_from(address).ok()
}

impl Tracer for PrestateTracer {
    fn instruction(
        &mut self,
        instruction: &Instruction<'_>,
        judgement: &Judgement,
        view: &mut dyn View,
    ) {
        if judgement.fault.is_some() {
            return;
        }
        let (op, stack) = (instruction.op, instruction.stack);
        let operand = |index: usize| stack.len().checked_sub(index + 1).map(|place| stack[place]);
        let account = |index: usize| operand(index).map(|word| Address::from_word(word.into()));
        let own = instruction.address;
        match (op, account(0), account(1)) {
            (op::SLOAD | op::SSTORE, Some(_), _) => {
                self.note_slot(own, operand(0).unwrap_or_default(), view);
            }
            (op::EXTCODECOPY | op::EXTCODEHASH | op::EXTCODESIZE | op::BALANCE, Some(other), _) => {
                self.note(other, view);
            }
            (op::SELFDESTRUCT, Some(heir), _) => {
                self.note(heir, view);
                let always = !view.spec().is_enabled_in(SpecId::CANCUN);
                if always || self.created.contains(&own) {
                    self.deleted.insert(own);
                }
            }
            (op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL, _, Some(to)) => {
                self.note(to, view);
                let info = view.account(to);
                self.note_delegate(&info, view);
            }
            (op::CREATE, ..) => {
                let created = own.create(view.account(own).nonce);
                self.note(created, view);
                self.created.insert(created);
            }
            (op::CREATE2, ..) => {
                let word = |index| operand(index).unwrap_or_default();
                let (offset, length, salt) = (word(1), word(2), word(3));
                let Some(init) = instruction.padded_memory(offset, length) else { return };
                let created = own.create2(B256::from(salt), keccak256(init));
                self.note(created, view);
                self.created.insert(created);
            }
            _ => {}
        }
    }

    fn enter(&mut self, entry: &Entry, view: &mut dyn View) {
        if entry.depth > 0 {
            return;
        }
        if matches!(entry.op, op::CREATE) {
            self.created.insert(entry.to);
        } else {
            let info = view.account_before(entry.to).unwrap_or_default();
            if view.spec().is_enabled_in(SpecId::PRAGUE)
                && !info.is_empty_code_hash()
                && let Some(delegate) = delegate(&view.code(&info))
            {
                self.note_before(delegate, view);
            }
        }
        self.note_before(entry.from, view);
        self.note_before(entry.to, view);
        self.note_before(view.beneficiary(), view);
        for authority in view.authorities() {
            self.note_before(authority, view);
        }
    }

    fn taken(&self) -> usize {
        self.taken
    }

    fn finish(mut self: Box<Self>, end: &TransactionEnd<'_>, view: &mut dyn View) -> String {
        let after = self.config.diff_mode.then(|| self.keep_changes(end, view));
        let shows_empty = self.config.include_empty;
        let before = self.accounts.iter().filter(|(_, account)| shows_empty || !account.is_empty);
        let mut out = String::with_capacity(self.taken);
        let Some(after) = after else {
            write_accounts(&mut out, before);
            return out;
        };
        out.push('{');
        json::member(&mut out, "post");
        write_accounts(&mut out, after.iter());
        json::member(&mut out, "pre");
        write_accounts(&mut out, before);
        out.push('}');
        out
    }
}
