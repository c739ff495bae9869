use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde::Deserialize as _;

use super::manifest::Cut;
use super::sort::code_hash;
use super::{Account, At, Piece, StateForm};
use crate::error::{Error, Place};
use crate::input::Input;
use crate::json::{Scanner, name};
use crate::limits::{CODE_TEXT_BYTES, GENESIS_HEAD_BYTES, WORD_BYTES};

/// Slots of an account that are handed out at once, when nothing else is said: 32 MiB of them.
const SLOTS_AT_ONCE: usize = 1 << 19;

/// The accounts of a genesis or a state dump, in the file's order and in bounded memory.
///
/// It is an iterator that ends after the first error. An account with very many slots comes in
/// pieces. What a file says of an account's hashes is handed on, and checked by
/// [`super::SortedState`].
#[derive(Debug)]
pub struct AccountReader {
    json: Scanner,
    form: StateForm,
    root: Option<B256>,
    slots_at_once: usize,
    /// Accounts handed out.
    accounts: u64,
    /// No account of the object has been read.
    first: bool,
    /// The account that is being read.
    open: Option<Open>,
    slots: Vec<(B256, U256)>,
    name: Vec<u8>,
    word: Vec<u8>,
    /// Whoever reads the accounts reads on behind them.
    within: bool,
    ended: bool,
}

/// What has been read of an account.
#[derive(Debug)]
struct Open {
    at: At,
    /// No member has been read.
    first: bool,
    /// Inside its storage, and whether no slot has been read.
    storage: Option<bool>,
    address: Option<Address>,
    hashed_address: Option<B256>,
    nonce: u64,
    balance: Option<U256>,
    code: Bytes,
    code_hash: Option<B256>,
    storage_root: Option<B256>,
}

impl Open {
    const fn new(at: At, address: Option<Address>, hashed_address: Option<B256>) -> Self {
        Self {
            at,
            first: true,
            storage: None,
            address,
            hashed_address,
            nonce: 0,
            balance: None,
            code: Bytes::new(),
            code_hash: None,
            storage_root: None,
        }
    }
}

impl AccountReader {
    /// Opens a file, `-` being the standard input, and tells its form.
    ///
    /// # Errors
    /// If it cannot be read, or is no genesis and no state dump.
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
        Ok(Self::new(json, StateForm::Lines, root))
    }

    /// Goes on behind the accounts before `cut`.
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
        // It may have been cut behind all of them.
        reader.ended = reader.json.peek()?.is_none();
        Ok(reader)
    }

    fn new(json: Scanner, form: StateForm, root: Option<B256>) -> Self {
        Self {
            json,
            form,
            root,
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

    /// Hands out at most so many slots at once.
    #[must_use]
    pub fn with_slots_at_once(mut self, slots: usize) -> Self {
        self.slots_at_once = slots.max(1);
        self
    }

    /// The file's form.
    pub const fn form(&self) -> StateForm {
        self.form
    }

    /// The root that the file says the state has; a genesis says none. Where it stands behind the
    /// accounts, it is known when they have been read.
    pub const fn root(&self) -> Option<B256> {
        self.root
    }

    /// Accounts handed out so far.
    pub const fn accounts(&self) -> u64 {
        self.accounts
    }

    /// Bytes of the file that are done with. Of a packed file, those that have been read.
    pub fn done_bytes(&self) -> u64 {
        self.json.input().done_bytes()
    }

    /// The file's length in bytes; `None` for one that has none, as the standard input.
    pub const fn file_bytes(&self) -> Option<u64> {
        self.json.input().file_bytes()
    }

    /// What errors about its accounts are about.
    pub(super) fn source(&self) -> Source {
        let input = self.json.input();
        Source { file: input.file().clone(), packed: input.place(0).packed }
    }

    /// Where the last account ended.
    pub(super) const fn cut(&self) -> Cut {
        let (offset, line) = (self.json.input().offset(), self.json.line());
        Cut { offset, line, accounts: self.accounts }
    }

    fn read(&mut self) -> Result<Option<Piece>, Error> {
        if self.open.is_none() && !self.begin()? {
            return Ok(None);
        }
        loop {
            let open = self.open.as_mut().expect("an account has begun");
            let at = open.at;
            if open.storage.is_some() && !self.read_slots()? {
                return Ok(Some(Piece::Slots(at, std::mem::take(&mut self.slots))));
            }
            if !self.read_member()? {
                return self.end().map(Some);
            }
        }
    }

    /// Goes into the next account; `false` at the end.
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
        let at = At { line: self.json.line(), offset: self.json.input().offset() };
        self.json.expect(b'{')?;
        self.open = Some(Open::new(at, address, hashed_address));
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

    /// Reads a member of the account up to its value's end, of its storage only the beginning;
    /// `false` when the account has ended.
    fn read_member(&mut self) -> Result<bool, Error> {
        let Self { json, name, word, .. } = self;
        let open = self.open.as_mut().expect("an account has begun");
        if !json.member(std::mem::take(&mut open.first), name)? {
            return Ok(false);
        }
        if let Some(known) = known(&ACCOUNT_MEMBERS, name) {
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

    /// Takes the word as the value of the member that was named.
    fn take_word(&mut self) -> Result<(), String> {
        let Self { name, word, .. } = self;
        let open = self.open.as_mut().expect("an account has begun");
        match &name[..] {
            b"balance" => open.balance = Some(number(word)?),
            b"nonce" => {
                let nonce = number(word)?;
                open.nonce = nonce.try_into().map_err(|_| format!("{nonce} is over 64 bits"))?;
            }
            b"root" => open.storage_root = Some(fixed(word)?.into()),
            b"codeHash" => open.code_hash = Some(fixed(word)?.into()),
            b"address" => {
                let address = Address::from(fixed(word)?);
                if let Some(key) = open.address.filter(|key| *key != address) {
                    return Err(format!("{address}, under the key {key}"));
                }
                open.address = Some(address);
            }
            b"key" => {
                let hashed = B256::from(fixed(word)?);
                if let Some(key) = open.hashed_address.filter(|key| *key != hashed) {
                    return Err(format!("{hashed}, under the key {key}"));
                }
                open.hashed_address = Some(hashed);
            }
            _ => {
                let code = hex::decode(&word[..]);
                open.code = code.map_err(|why| format!("hex expected: {why}"))?.into();
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

    /// Reads slots, to the end of the storage; `false` when there are as many as go out at once.
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

    fn end(&mut self) -> Result<Piece, Error> {
        let open = self.open.take().expect("an account has begun");
        let wrong = |problem: &str| self.source().error(open.at, problem);
        if open.address.is_none() && open.hashed_address.is_none() {
            return Err(wrong("an account without \"address\" and without \"key\""));
        }
        let balance = open.balance.ok_or_else(|| wrong("an account without \"balance\""))?;
        self.accounts += 1;
        Ok(Piece::Account(Box::new(Account {
            address: open.address,
            hashed_address: open.hashed_address,
            nonce: open.nonce,
            balance,
            code: open.code,
            code_hash: open.code_hash,
            storage_root: open.storage_root,
            storage: std::mem::take(&mut self.slots),
            at: open.at,
        })))
    }

    fn read_fixed<const BYTES: usize>(
        &self,
        what: &str,
        text: &[u8],
    ) -> Result<[u8; BYTES], Error> {
        fixed(text).map_err(|problem| self.json.error(format!("{what}: {problem}")))
    }
}

impl Iterator for AccountReader {
    type Item = Result<Piece, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// A file that accounts come from.
#[derive(Debug, Clone)]
pub(super) struct Source {
    file: Arc<Path>,
    packed: bool,
}

impl Source {
    /// An error about the account that begins there.
    pub(super) fn error(&self, at: At, problem: impl Into<String>) -> Error {
        let At { line, offset } = at;
        let (line, offset) = (Some(line), Some(offset));
        let place = Place { offset, packed: self.packed, line, block: None };
        Error::content(&self.file, place, problem)
    }
}

/// Everything in a genesis but its accounts, which may be more than fits into memory.
///
/// Names of its members are told whatever the case of their letters, as geth does: many files have
/// `mixhash`.
///
/// # Errors
/// If the file cannot be read, or is no genesis.
pub fn read_genesis_head(path: &Path) -> Result<Genesis, Error> {
    read_members(path, |mut json| {
        json.skip_value()?;
        Ok(json)
    })
}

/// A genesis with its accounts, told as [`AccountReader`] and [`read_genesis_head`] do; `-` is the
/// standard input.
///
/// # Errors
/// If the file cannot be read, is no genesis, or has an account twice.
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
        return Err(Error::content(&path.into(), Place::default(), problem));
    };
    Ok(Genesis { alloc, ..genesis })
}

fn read_accounts(reader: &mut AccountReader) -> Result<BTreeMap<Address, GenesisAccount>, Error> {
    let (mut alloc, mut slots) = (BTreeMap::new(), Vec::new());
    while let Some(piece) = reader.next().transpose()? {
        let account = match piece {
            Piece::Slots(_, more) => {
                slots.extend(more);
                continue;
            }
            Piece::Account(account) => account,
        };
        let wrong = |problem: &str| Err(reader.source().error(account.at, problem));
        let Some(address) = account.address else {
            return wrong("an account without an address: only its hash is known");
        };
        if let Err(problem) = code_hash(&account) {
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

/// What a genesis may have beside its accounts.
const MEMBERS: [&str; 15] = [
    "config",
    "nonce",
    "timestamp",
    "extraData",
    "gasLimit",
    "difficulty",
    "mixHash",
    "coinbase",
    "number",
    "parentHash",
    "baseFeePerGas",
    "blobGasUsed",
    "excessBlobGas",
    "slotNumber",
    "gasUsed",
];

/// What is read of an account.
const ACCOUNT_MEMBERS: [&str; 8] =
    ["balance", "nonce", "code", "storage", "root", "codeHash", "address", "key"];

/// What is read in a genesis's `config`.
const CONFIG_MEMBERS: [&str; 32] = [
    "chainId",
    "homesteadBlock",
    "daoForkBlock",
    "daoForkSupport",
    "eip150Block",
    "eip155Block",
    "eip158Block",
    "byzantiumBlock",
    "constantinopleBlock",
    "petersburgBlock",
    "istanbulBlock",
    "muirGlacierBlock",
    "berlinBlock",
    "londonBlock",
    "arrowGlacierBlock",
    "grayGlacierBlock",
    "mergeNetsplitBlock",
    "terminalTotalDifficulty",
    "terminalTotalDifficultyPassed",
    "shanghaiTime",
    "cancunTime",
    "pragueTime",
    "osakaTime",
    "bpo1Time",
    "bpo2Time",
    "bpo3Time",
    "bpo4Time",
    "bpo5Time",
    "amsterdamTime",
    "bogotaTime",
    "depositContractAddress",
    "blobSchedule",
];

/// The member of this name, whatever the case of its letters.
fn known<'a>(members: &[&'a str], name: &[u8]) -> Option<&'a str> {
    members.iter().find(|member| member.as_bytes().eq_ignore_ascii_case(name)).copied()
}

/// Everything in a genesis but its accounts, whose object is read, or passed over, by `accounts`.
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
        let Some(name) = known(&MEMBERS, &name) else { continue };
        let mut value: serde_json::Value = serde_json::from_slice(&value)
            .map_err(|problem| json.error(format!("\"{name}\": {problem}")))?;
        let gas_used = Option::<U256>::deserialize(&value).ok().flatten().unwrap_or_default();
        if name == "gasUsed" && !gas_used.is_zero() {
            let problem = format!("\"gasUsed\" is {value}, but a first block has used no gas");
            return Err(json.error(problem));
        }
        if let ("config", Some(config)) = (name, value.as_object_mut()) {
            let members = std::mem::take(config).into_iter().map(|(name, value)| {
                let known = known(&CONFIG_MEMBERS, name.as_bytes()).map(str::to_owned);
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
    let genesis = match head.contains_key("config") {
        true => serde_json::from_value(head.into()).map_err(|problem| problem.to_string()),
        false => Err("it has no \"config\"".to_owned()),
    };
    genesis.map_err(|problem| {
        let problem = format!("a genesis expected: {problem}");
        Error::content(json.input().file(), Place::default(), problem)
    })
}

/// The digits of a text in hex, with or without `0x`.
fn digits(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text)
}

/// So many bytes in hex.
fn fixed<const BYTES: usize>(text: &[u8]) -> Result<[u8; BYTES], String> {
    let digits = digits(text);
    if digits.len() != 2 * BYTES {
        let shown = shown(text);
        return Err(format!("{BYTES} bytes in hex expected, {shown} found"));
    }
    let mut bytes = [0; BYTES];
    hex::decode_to_slice(digits, &mut bytes).map_err(|why| format!("{why} in {}", shown(text)))?;
    Ok(bytes)
}

/// A slot or a value of storage: up to 32 bytes in hex, in geth's dumps without the zeroes before.
fn storage_word(text: &[u8]) -> Result<[u8; 32], String> {
    let digits = digits(text);
    if digits.len() == 64 {
        return fixed(digits);
    }
    if digits.len() > 64 {
        return Err(format!("up to 32 bytes in hex expected, {} found", shown(text)));
    }
    let mut padded = [b'0'; 64];
    padded[64 - digits.len()..].copy_from_slice(digits);
    fixed(&padded).map_err(|_| format!("up to 32 bytes in hex expected, {} found", shown(text)))
}

/// A number: decimal, or hex with `0x`.
fn number(text: &[u8]) -> Result<U256, String> {
    let wrong = || format!("a number expected, {} found", shown(text));
    let digits = digits(text);
    let radix = if digits.len() < text.len() { 16 } else { 10 };
    let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
    // `from_str_radix` takes underscores, and nothing for zero.
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    U256::from_str_radix(digits, radix).map_err(|_| wrong())
}

/// What was found, short enough for an error.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("\"{}…\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}
