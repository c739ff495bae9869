use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, U256, hex};
use serde::Deserialize as _;

use super::hashed::{HashedReader, is_hashed};
use super::manifest::Cut;
use super::words::{AccountSource, fixed, number, storage_word};
use super::{AccountPiece, AccountPosition, FORMS, FileAccount, StateForm};
use crate::error::{Error, Location, quote};
use crate::input::Input;
use crate::json::{Scanner, name};
use crate::limits::{CODE_TEXT_BYTES, GENESIS_HEAD_BYTES, SLOTS_AT_ONCE, WORD_BYTES};

/// Reads the accounts of a genesis or a state dump, in the file's order and in bounded memory.
///
/// The iterator ends after the first error. An account with very many slots comes in several items.
/// Hashes in the file are not checked here, but by [`super::SortedState`].
#[derive(Debug)]
pub struct AccountReader {
    json: Scanner,
    form: StateForm,
    root: Option<B256>,
    /// Whether the accounts are by hashed keys, so that [`HashedReader`] reads them.
    hashed: bool,
    slots_at_once: usize,
    /// The number of accounts returned.
    accounts: u64,
    /// Whether no account of the object has been read.
    first: bool,
    /// The account being read.
    open: Option<PartialAccount>,
    slots: Vec<(B256, U256)>,
    name: Vec<u8>,
    word: Vec<u8>,
    /// Whether the caller reads the rest of the object itself.
    within: bool,
    ended: bool,
}

/// An account of which a part has been read.
#[derive(Debug)]
struct PartialAccount {
    account: FileAccount,
    /// Whether its balance has been read.
    has_balance: bool,
    /// Whether no member has been read.
    first: bool,
    /// `Some` inside its storage: whether no slot has been read.
    storage: Option<bool>,
}

impl AccountReader {
    /// Opens a file, or the standard input if `path` is `-`, and determines its form.
    ///
    /// # Errors
    /// If it cannot be read, or is neither a genesis nor a state dump.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut json = Scanner::new(Input::open(path)?, 1);
        if json.peek()? != Some(b'{') {
            let found = name(json.peek()?);
            return Err(json.error(format!("a state in JSON expected, {found} found")));
        }
        json.expect(b'{')?;
        let (mut root, mut first) = (None, true);
        let (mut name, mut word) = (Vec::new(), Vec::new());
        while json.member(first, &mut name)? {
            first = false;
            match &name[..] {
                b"root" => {
                    json.word(&mut word, WORD_BYTES)?;
                    let read = fixed(&word).map_err(|why| json.error(format!("root: {why}")))?;
                    root = Some(B256::new(read));
                }
                name if name.eq_ignore_ascii_case(b"alloc") || name == b"accounts" => {
                    json.expect(b'{')?;
                    return Ok(Self::new(json, StateForm::Object, root));
                }
                b"balance" | b"address" => {
                    let problem = "an account, but the first line of a state dump must be \
                                   {\"root\": \"0x…\"}, the root of the state";
                    return Err(json.error(problem));
                }
                _ => json.skip_value()?,
            }
        }
        if root.is_none() {
            let problem = "a state expected: a genesis has \"alloc\", a dump begins with \"root\"";
            return Err(json.error(problem));
        }
        let hashed = is_hashed(&mut json)?;
        Ok(Self { hashed, ..Self::new(json, StateForm::Lines, root) })
    }

    /// The reader of a dump by hashed keys, where it is one; else this one again.
    ///
    /// # Errors
    /// If it is none.
    pub fn into_hashed(self) -> Result<HashedReader, Box<Self>> {
        match self.root {
            Some(root) if self.hashed => Ok(HashedReader::new(self.json, root)),
            _ => Err(Box::new(self)),
        }
    }

    /// Continues after the accounts before `cut`.
    pub(super) fn resume(
        path: &Path,
        form: StateForm,
        root: Option<B256>,
        cut: &Cut,
    ) -> Result<Self, Error> {
        let mut input = Input::open(path)?;
        input.skip(cut.offset)?;
        let mut reader = Self::new(Scanner::new(input, cut.line), form, root);
        (reader.first, reader.accounts) = (cut.accounts == 0, cut.accounts);
        // The cut may be after the last account.
        reader.ended = reader.json.peek()?.is_none();
        Ok(reader)
    }

    fn new(json: Scanner, form: StateForm, root: Option<B256>) -> Self {
        Self {
            json,
            form,
            root,
            hashed: false,
            slots_at_once: SLOTS_AT_ONCE,
            accounts: 0,
            first: true,
            open: None,
            slots: Vec::new(),
            name: Vec::new(),
            word: Vec::new(),
            within: false,
            ended: false,
        }
    }

    /// Sets the most slots in one item.
    #[must_use]
    pub fn with_slots_at_once(mut self, slots: usize) -> Self {
        self.slots_at_once = slots.max(1);
        self
    }

    /// The file.
    pub(super) fn file(&self) -> Arc<Path> {
        self.json.input().file().clone()
    }

    /// The form of the file.
    pub const fn form(&self) -> StateForm {
        self.form
    }

    /// The state root in the file; a genesis has none. If it follows the accounts, it is known once
    /// they have been read.
    pub const fn root(&self) -> Option<B256> {
        self.root
    }

    /// The number of accounts returned so far.
    pub const fn accounts(&self) -> u64 {
        self.accounts
    }

    /// The number of bytes consumed; of a compressed file, those read so far.
    pub fn done_bytes(&self) -> u64 {
        self.json.input().done_bytes()
    }

    /// The length of the file in bytes; `None` if it has none, like the standard input.
    pub const fn file_bytes(&self) -> Option<u64> {
        self.json.input().file_bytes()
    }

    /// The source, for errors about its accounts.
    pub(super) fn source(&self) -> AccountSource {
        AccountSource::of(self.json.input())
    }

    /// The position after the last account.
    pub(super) const fn cut(&self) -> Cut {
        let (offset, line) = (self.json.input().offset(), self.json.line());
        Cut { offset, line, accounts: self.accounts }
    }

    fn read(&mut self) -> Result<Option<AccountPiece>, Error> {
        if self.open.is_none() && !self.begin()? {
            return Ok(None);
        }
        loop {
            let open = self.open.as_mut().expect("an account has begun");
            let at = open.account.at;
            if open.storage.is_some() && !self.read_slots()? {
                return Ok(Some(AccountPiece::Slots(at, std::mem::take(&mut self.slots))));
            }
            if !self.read_member()? {
                return self.end().map(Some);
            }
        }
    }

    /// Enters the next account; `false` at the end.
    fn begin(&mut self) -> Result<bool, Error> {
        let (mut address, mut hashed_address) = (None, None);
        match self.form {
            StateForm::Lines => match self.json.peek()? {
                None => return Ok(false),
                Some(b'{') => {}
                found => {
                    let found = name(found);
                    return Err(self.json.error(format!("an account expected, {found} found")));
                }
            },
            StateForm::Object => {
                const KEY: &str = "the key of an account";
                if !self.json.member(self.first, &mut self.name)? {
                    let end = if self.within { Ok(()) } else { self.end_object() };
                    return end.map(|()| false);
                }
                self.first = false;
                let key = self.name.strip_prefix(b"pre(").and_then(|key| key.strip_suffix(b")"));
                match key {
                    Some(hash) => hashed_address = Some(self.read_fixed(KEY, hash)?.into()),
                    None => address = Some(self.read_fixed(KEY, &self.name)?.into()),
                }
            }
        }
        self.json.peek()?;
        let at = AccountPosition { line: self.json.line(), offset: self.json.input().offset() };
        self.json.expect(b'{')?;
        let account = FileAccount { address, hashed_address, at, ..FileAccount::default() };
        let (has_balance, storage) = (false, None);
        self.open = Some(PartialAccount { account, has_balance, first: true, storage });
        Ok(true)
    }

    /// Reads to the end of the object whose accounts have ended.
    fn end_object(&mut self) -> Result<(), Error> {
        while self.json.member(false, &mut self.name)? {
            match &self.name[..] {
                b"next" => {
                    let problem = "the dump is a part of the state: \"next\" says where it goes on";
                    return Err(self.json.error(problem));
                }
                name if name.eq_ignore_ascii_case(b"alloc") || name == b"accounts" => {
                    return Err(self.json.error("accounts for a second time"));
                }
                b"root" => {
                    self.json.word(&mut self.word, WORD_BYTES)?;
                    self.root = Some(self.read_fixed("root", &self.word)?.into());
                }
                _ => self.json.skip_value()?,
            }
        }
        match self.json.peek()? {
            None => Ok(()),
            found => {
                let problem = format!("the end of the file expected, {} found", name(found));
                Err(self.json.error(problem))
            }
        }
    }

    /// Reads the next member of the account, of its storage only the beginning; `false` at the end
    /// of the account.
    fn read_member(&mut self) -> Result<bool, Error> {
        let Self { json, name, word, .. } = self;
        let open = self.open.as_mut().expect("an account has begun");
        if !json.member(std::mem::take(&mut open.first), name)? {
            return Ok(false);
        }
        if let Some(known) = known(ACCOUNT_MEMBERS, name) {
            known.as_bytes().clone_into(name);
        }
        match &name[..] {
            b"storage" => {
                if json.peek()? == Some(b'{') {
                    json.expect(b'{')?;
                    open.storage = Some(true);
                } else {
                    json.word(word, WORD_BYTES)?;
                    self.check_null("storage")?;
                }
                return Ok(true);
            }
            b"balance" | b"nonce" | b"root" | b"codeHash" | b"address" | b"key" => {
                json.word(word, WORD_BYTES)?;
            }
            b"code" => _ = json.word(word, CODE_TEXT_BYTES)?,
            _ => {
                json.skip_value()?;
                return Ok(true);
            }
        }
        if word == b"null" {
            return Ok(true);
        }
        self.take_word().map_err(|problem| {
            let name = String::from_utf8_lossy(&self.name);
            self.json.error(format!("\"{name}\": {problem}"))
        })?;
        Ok(true)
    }

    /// Takes the word as the value of the current member.
    fn take_word(&mut self) -> Result<(), String> {
        let Self { name, word, .. } = self;
        let open = self.open.as_mut().expect("an account has begun");
        let account = &mut open.account;
        match &name[..] {
            b"balance" => (account.balance, open.has_balance) = (number(word)?, true),
            b"nonce" => {
                let nonce = number(word)?;
                account.nonce = nonce.try_into().map_err(|_| format!("{nonce} is over 64 bits"))?;
            }
            b"root" => account.storage_root = Some(fixed(word)?.into()),
            b"codeHash" => account.code_hash = Some(fixed(word)?.into()),
            b"address" => take_key(&mut account.address, fixed(word)?.into())?,
            b"key" => take_key(&mut account.hashed_address, fixed(word)?.into())?,
            _ => {
                let code = hex::decode(&word[..]);
                account.code = code.map_err(|why| format!("hex expected: {why}"))?.into();
            }
        }
        Ok(())
    }

    fn check_null(&self, member: &str) -> Result<(), Error> {
        if self.word == b"null" {
            return Ok(());
        }
        Err(self.json.error(format!("\"{member}\": an object expected")))
    }

    /// Reads slots to the end of the storage; `false` if the item is full before.
    fn read_slots(&mut self) -> Result<bool, Error> {
        let Self { json, name, word, slots, slots_at_once, .. } = self;
        let open = self.open.as_mut().expect("an account has begun");
        let mut first = open.storage.take().expect("its storage has begun");
        while slots.len() < *slots_at_once {
            if !json.member(first, name)? {
                return Ok(true);
            }
            first = false;
            json.word(word, WORD_BYTES)?;
            let slot = storage_word(name).map_err(|why| json.error(format!("a slot: {why}")))?;
            let value = storage_word(word).map_err(|why| json.error(format!("a value: {why}")))?;
            slots.push((B256::from(slot), U256::from_be_bytes(value)));
        }
        open.storage = Some(first);
        Ok(false)
    }

    fn end(&mut self) -> Result<AccountPiece, Error> {
        let PartialAccount { mut account, has_balance, .. } =
            self.open.take().expect("an account has begun");
        let wrong = |problem: &str| Err(self.source().error(account.at, problem));
        if account.address.is_none() && account.hashed_address.is_none() {
            return wrong("an account without \"address\" and without \"key\"");
        }
        if account.address.is_none() && self.form == StateForm::Lines {
            return wrong(&format!(
                "an account without \"address\", which geth knows by its hash where it has not \
                 run with --cache.preimages. {FORMS}"
            ));
        }
        if !has_balance {
            return wrong("an account without \"balance\"");
        }
        self.accounts += 1;
        account.storage = std::mem::take(&mut self.slots);
        Ok(AccountPiece::Account(Box::new(account)))
    }

    fn read_fixed<const BYTES: usize>(
        &self,
        what: &str,
        text: &[u8],
    ) -> Result<[u8; BYTES], Error> {
        fixed(text).map_err(|problem| self.json.error(format!("{what}: {problem}")))
    }
}

/// Notes what an account says of itself, which must be what it is filed under.
fn take_key<T: Copy + PartialEq + Display>(key: &mut Option<T>, found: T) -> Result<(), String> {
    match key.replace(found) {
        Some(key) if key != found => Err(format!("{found}, under the key {key}")),
        _ => Ok(()),
    }
}

impl Iterator for AccountReader {
    type Item = Result<AccountPiece, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Reads a genesis without its accounts, which may exceed the memory.
///
/// The names of members are matched in any case, as by geth: many files have `mixhash`.
///
/// # Errors
/// If the file cannot be read, or is not a genesis.
pub fn read_genesis_head(path: &Path) -> Result<Genesis, Error> {
    read_members(path, |mut json| {
        json.skip_value()?;
        Ok(json)
    })
}

/// Reads a genesis with its accounts, by the rules of [`AccountReader`] and [`read_genesis_head`];
/// `-` is the standard input.
///
/// # Errors
/// If the file cannot be read, is not a genesis, or has an account twice.
pub fn read_genesis(path: &Path) -> Result<Genesis, Error> {
    let mut alloc = None;
    let genesis = read_members(path, |mut json| {
        let problem = "accounts for a second time";
        if alloc.is_some() {
            return Err(json.error(problem));
        }
        json.expect(b'{')?;
        let mut reader = AccountReader::new(json, StateForm::Object, None);
        reader.within = true;
        alloc = Some(read_accounts(&mut reader)?);
        Ok(reader.json)
    })?;
    let Some(alloc) = alloc else {
        let problem = "a genesis expected: it has no \"alloc\", which may be {}";
        return Err(Error::content(&path.into(), Location::default(), problem));
    };
    Ok(Genesis { alloc, ..genesis })
}

fn read_accounts(reader: &mut AccountReader) -> Result<BTreeMap<Address, GenesisAccount>, Error> {
    let (mut alloc, mut slots) = (BTreeMap::new(), Vec::new());
    while let Some(piece) = reader.next().transpose()? {
        let account = match piece {
            AccountPiece::Slots(_, more) => {
                slots.extend(more);
                continue;
            }
            AccountPiece::Account(account) => account,
        };
        let wrong = |problem: &str| Err(reader.source().error(account.at, problem));
        let Some(address) = account.address else {
            return wrong("an account without an address: only its hash is known");
        };
        if let Err(problem) = account.hash_of_code() {
            return wrong(&problem);
        }
        slots.extend(account.storage);
        let storage = slots.drain(..).map(|(slot, value)| (slot, value.into())).collect();
        let entry = GenesisAccount {
            nonce: Some(account.nonce),
            balance: account.balance,
            code: Some(account.code),
            storage: Some(storage),
            private_key: None,
        };
        if alloc.insert(address, entry).is_some() {
            return wrong("an account for a second time");
        }
    }
    Ok(alloc)
}

/// The members of a genesis other than its accounts.
const MEMBERS: &str = "\
    config nonce timestamp extraData gasLimit difficulty mixHash coinbase number parentHash
    baseFeePerGas blobGasUsed excessBlobGas slotNumber gasUsed";

/// The members of an account that are read.
const ACCOUNT_MEMBERS: [&str; 8] =
    ["balance", "nonce", "code", "storage", "root", "codeHash", "address", "key"];

/// The members of a genesis's `config` that are read.
const CONFIG_MEMBERS: &str = "\
    chainId homesteadBlock daoForkBlock daoForkSupport eip150Block eip155Block eip158Block
    byzantiumBlock constantinopleBlock petersburgBlock istanbulBlock muirGlacierBlock
    berlinBlock londonBlock arrowGlacierBlock grayGlacierBlock mergeNetsplitBlock
    terminalTotalDifficulty terminalTotalDifficultyPassed shanghaiTime cancunTime pragueTime
    osakaTime bpo1Time bpo2Time bpo3Time bpo4Time bpo5Time amsterdamTime bogotaTime
    depositContractAddress blobSchedule";

/// A member of a configuration that schedules a fork by its name, `...Time` or `...Block`, but none
/// that is read. geth ignores it, and follows another chain than its author meant.
fn unknown_fork(config: &serde_json::Map<String, serde_json::Value>) -> Option<&str> {
    let is_fork = |name: &str, value: &serde_json::Value| {
        let name = name.to_ascii_lowercase();
        (name.ends_with("time") || name.ends_with("block")) && !value.is_null()
    };
    let is_known =
        |name: &str| known(CONFIG_MEMBERS.split_ascii_whitespace(), name.as_bytes()).is_some();
    let found = config.iter().find(|(name, value)| is_fork(name, value) && !is_known(name));
    found.map(|(name, _)| name.as_str())
}

/// The member of this name in any case.
fn known<'a>(members: impl IntoIterator<Item = &'a str>, name: &[u8]) -> Option<&'a str> {
    members.into_iter().find(|member| member.as_bytes().eq_ignore_ascii_case(name))
}

/// Reads a genesis without its accounts, whose object `accounts` reads or skips.
fn read_members(
    path: &Path,
    mut accounts: impl FnMut(Scanner) -> Result<Scanner, Error>,
) -> Result<Genesis, Error> {
    let mut json = Scanner::new(Input::open(path)?, 1);
    json.expect(b'{')?;
    let (mut name, mut value) = (Vec::new(), Vec::new());
    let (mut head, mut first) = (serde_json::Map::new(), true);
    let mut bytes = 0;
    while json.member(first, &mut name)? {
        first = false;
        if name.eq_ignore_ascii_case(b"alloc") {
            json = accounts(json)?;
            continue;
        }
        json.value(&mut value, GENESIS_HEAD_BYTES)?;
        bytes += value.len();
        if bytes > GENESIS_HEAD_BYTES {
            let problem = format!("over {GENESIS_HEAD_BYTES} bytes beside the accounts");
            return Err(json.error(problem));
        }
        let Some(name) = known(MEMBERS.split_ascii_whitespace(), &name) else { continue };
        let mut value: serde_json::Value = serde_json::from_slice(&value)
            .map_err(|problem| json.error(format!("\"{name}\": {}", quote(problem))))?;
        let gas_used = Option::<U256>::deserialize(&value).ok().flatten().unwrap_or_default();
        if name == "gasUsed" && !gas_used.is_zero() {
            let problem = format!("\"gasUsed\" is {value}, but a first block has used no gas");
            return Err(json.error(problem));
        }
        if name == "config" && !value.is_object() {
            return Err(json.error("\"config\" is an object"));
        }
        if let ("config", Some(config)) = (name, value.as_object_mut()) {
            if let Some(unknown) = unknown_fork(config) {
                let problem = format!(
                    "\"config\" schedules \"{}\", which is no fork that this program knows: \
                     correct or remove it",
                    quote(unknown)
                );
                return Err(json.error(problem));
            }
            let members = std::mem::take(config).into_iter().map(|(name, value)| {
                let known = known(CONFIG_MEMBERS.split_ascii_whitespace(), name.as_bytes())
                    .map(str::to_owned);
                (known.unwrap_or(name), value)
            });
            *config = members.collect();
        }
        head.insert(name.into(), value);
    }
    if let Some(found) = json.peek()? {
        let found = self::name(Some(found));
        return Err(json.error(format!("the end of the file expected, {found} found")));
    }
    // geth demands the same.
    let missing =
        ["config", "difficulty", "gasLimit"].iter().find(|name| !head.contains_key(**name));
    let genesis = match missing {
        None => serde_json::from_value(head.into()).map_err(quote),
        Some(name) => Err(format!("it has no \"{name}\"")),
    };
    genesis.map_err(|problem| {
        let problem = format!("a genesis expected: {problem}");
        Error::content(json.input().file(), Location::default(), problem)
    })
}
