//! Dumps by hashed keys, as `geth snapshot dump` writes them: in the order of the trie.

use std::path::Path;

use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::{B256, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};

use super::merge::on_line;
use super::words::{AccountSource, digits, fixed, number, shown};
use super::{AccountPosition, FORMS};
use crate::error::Error;
use crate::input::Input;
use crate::json::{Scanner, name};
use crate::limits::{
    CODE_TEXT_BYTES, FIRST_ACCOUNT_BYTES, INPUT_BUFFER_BYTES, SLOTS_AT_ONCE, WORD_BYTES,
};

/// An account by the hash of its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashedAccount {
    /// Keccak-256 of the address. It is above that of the account before it.
    pub hashed_address: B256,
    /// The nonce.
    pub nonce: u64,
    /// The balance, in wei.
    pub balance: U256,
    /// Keccak-256 of the code.
    pub code_hash: B256,
    /// The code, if it has one. It has that hash.
    pub code: Option<Bytes>,
    /// The root of the storage, if the file has it. It is not checked.
    pub storage_root: Option<B256>,
    /// Slots by their hashes, which ascend, with their values, of which none is zero: those that
    /// did not come in [`HashedPiece::Slots`] before.
    pub storage: Vec<(B256, U256)>,
    /// The line, from 1.
    pub line: u64,
}

/// An item of [`HashedReader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HashedPiece {
    /// Slots of the account to come, which has too many for one item.
    Slots(Vec<(B256, U256)>),
    /// An account.
    Account(Box<HashedAccount>),
}

/// Reads a dump by hashed keys, in bounded memory.
///
/// Each account's key is above the one before it, and so are its slots; a code has its hash. The
/// iterator ends after the first error.
#[derive(Debug)]
pub struct HashedReader {
    json: Scanner,
    root: B256,
    slots_at_once: usize,
    accounts: u64,
    /// The key of the last account.
    last: Option<B256>,
    open: Option<OpenAccount>,
    slots: Vec<(B256, U256)>,
    name: Vec<u8>,
    word: Vec<u8>,
    ended: bool,
}

/// An account of which a part has been read.
#[derive(Debug, Default)]
struct OpenAccount {
    at: AccountPosition,
    key: Option<B256>,
    nonce: u64,
    balance: Option<U256>,
    code: Bytes,
    code_hash: Option<B256>,
    storage_root: Option<B256>,
    /// The last slot.
    slot: Option<B256>,
    /// Whether no member has been read.
    first: bool,
    /// `Some` inside its storage: whether no slot has been read.
    storage: Option<bool>,
}

impl HashedReader {
    /// Reads the accounts after the line with the root.
    pub(super) fn new(json: Scanner, root: B256) -> Self {
        Self {
            json,
            root,
            slots_at_once: SLOTS_AT_ONCE,
            accounts: 0,
            last: None,
            open: None,
            slots: Vec::new(),
            name: Vec::new(),
            word: Vec::new(),
            ended: false,
        }
    }

    /// Sets the most slots in one item.
    #[must_use]
    pub fn with_slots_at_once(mut self, slots: usize) -> Self {
        self.slots_at_once = slots.max(1);
        self
    }

    /// The state root by the first line.
    pub const fn root(&self) -> B256 {
        self.root
    }

    /// The number of accounts returned so far.
    pub const fn accounts(&self) -> u64 {
        self.accounts
    }

    /// The file.
    pub fn file(&self) -> &Path {
        self.json.input().file()
    }

    /// An error about the account on this line.
    pub fn error(&self, line: u64, problem: impl Into<String>) -> Error {
        Error::content(self.json.input().file(), on_line(line), problem)
    }

    fn read(&mut self) -> Result<Option<HashedPiece>, Error> {
        if self.open.is_none() && !self.begin()? {
            return Ok(None);
        }
        loop {
            let open = self.open.as_mut().expect("an account has begun");
            if open.storage.is_some() && !self.read_slots()? {
                return Ok(Some(HashedPiece::Slots(std::mem::take(&mut self.slots))));
            }
            if !self.read_member()? {
                return self.end().map(|account| Some(HashedPiece::Account(Box::new(account))));
            }
        }
    }

    /// Enters the next account; `false` at the end.
    fn begin(&mut self) -> Result<bool, Error> {
        match self.json.peek()? {
            None => return Ok(false),
            Some(b'{') => {}
            found => {
                let found = name(found);
                return Err(self.json.error(format!("an account expected, {found} found")));
            }
        }
        let at = AccountPosition { line: self.json.line(), offset: self.json.input().offset() };
        self.json.expect(b'{')?;
        self.open = Some(OpenAccount { at, first: true, ..OpenAccount::default() });
        Ok(true)
    }

    /// Reads the next member of the account, of its storage only the beginning; `false` at the end
    /// of the account.
    fn read_member(&mut self) -> Result<bool, Error> {
        let Self { json, name, word, .. } = self;
        let open = self.open.as_mut().expect("an account has begun");
        if !json.member(std::mem::take(&mut open.first), name)? {
            return Ok(false);
        }
        match &name[..] {
            b"storage" if json.peek()? == Some(b'{') => {
                if open.slot.is_some() {
                    return Err(json.error("storage for a second time in one account"));
                }
                json.expect(b'{')?;
                open.storage = Some(true);
                return Ok(true);
            }
            b"balance" | b"nonce" | b"root" | b"codeHash" | b"address" | b"key" | b"storage" => {
                json.word(word, WORD_BYTES)?;
            }
            b"code" => _ = json.word(word, CODE_TEXT_BYTES)?,
            _ => {
                json.skip_value()?;
                return Ok(true);
            }
        }
        if word != b"null" {
            open.take(name, word).map_err(|problem| {
                let name = String::from_utf8_lossy(name);
                json.error(format!("\"{name}\": {problem}"))
            })?;
        }
        Ok(true)
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
            let slot = fixed(name).map_err(|why| json.error(format!("a slot: {why}")))?;
            let slot = B256::new(slot);
            if let Some(last) = open.slot.replace(slot).filter(|last| slot <= *last) {
                let problem = format!("slot {slot} does not come after {last}, the one before it");
                return Err(json.error(problem));
            }
            let value = rlp_value(word).map_err(|why| json.error(format!("a value: {why}")))?;
            slots.push((slot, value));
        }
        open.storage = Some(first);
        Ok(false)
    }

    fn end(&mut self) -> Result<HashedAccount, Error> {
        let open = self.open.take().expect("an account has begun");
        let (at, last) = (open.at, self.last);
        let wrong = |problem: String| {
            let input = self.json.input();
            AccountSource::of(input).error(at, problem)
        };
        let account = open.end().map_err(wrong)?;
        let key = account.hashed_address;
        if let Some(last) = last.filter(|last| key <= *last) {
            return Err(wrong(format!("key {key} does not come after {last}, the one before it")));
        }
        self.last = Some(key);
        self.accounts += 1;
        Ok(HashedAccount { storage: std::mem::take(&mut self.slots), ..account })
    }
}

impl OpenAccount {
    /// Takes the value of a member.
    fn take(&mut self, name: &[u8], word: &[u8]) -> Result<(), String> {
        match name {
            b"balance" => self.balance = Some(number(word)?),
            b"nonce" => {
                let nonce = number(word)?;
                self.nonce = nonce.try_into().map_err(|_| format!("{nonce} is over 64 bits"))?;
            }
            b"root" => self.storage_root = Some(fixed(word)?.into()),
            b"codeHash" => self.code_hash = Some(fixed(word)?.into()),
            b"key" => self.key = Some(fixed(word)?.into()),
            b"address" => return Err(format!("in a dump by hashed keys. {FORMS}")),
            b"storage" => return Err("an object expected".into()),
            _ => {
                let code = hex::decode(word);
                self.code = code.map_err(|why| format!("hex expected: {why}"))?.into();
            }
        }
        Ok(())
    }

    /// The account, without its storage.
    fn end(self) -> Result<HashedAccount, String> {
        let hashed_address = self.key.ok_or("an account without \"key\"")?;
        let balance = self.balance.ok_or("an account without \"balance\"")?;
        let has_code = !self.code.is_empty();
        let hash = if has_code { keccak256(&self.code) } else { KECCAK256_EMPTY };
        let code_hash = self.code_hash.unwrap_or(hash);
        if code_hash != hash {
            return Err(match has_code {
                true => format!("\"codeHash\" {code_hash}, but the code hashes to {hash}"),
                false => format!(
                    "\"codeHash\" {code_hash}, but no code: `geth snapshot dump` leaves codes out \
                     with --nocode, so dump without that"
                ),
            });
        }
        match (self.storage_root.map(|root| root == EMPTY_ROOT_HASH), self.slot) {
            (Some(false), None) => Err(format!(
                "storage root {}, but no storage: `geth dump` leaves it out where it has no \
                 preimages, `geth snapshot dump` with --nostorage, so dump without that",
                self.storage_root.unwrap_or_default()
            )),
            (Some(true), Some(_)) => Err("storage, but the storage root is the empty one".into()),
            _ => Ok(HashedAccount {
                hashed_address,
                nonce: self.nonce,
                balance,
                code_hash,
                code: has_code.then_some(self.code),
                storage_root: self.storage_root,
                storage: Vec::new(),
                line: self.at.line,
            }),
        }
    }
}

impl Iterator for HashedReader {
    type Item = Result<HashedPiece, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// A value in the RLP of the trie, as hex: 1 to 32 bytes without leading zeros.
fn rlp_value(text: &[u8]) -> Result<U256, String> {
    let wrong = || format!("{} is not the RLP of a value other than zero. {FORMS}", shown(text));
    let digits = digits(text);
    let mut bytes = [0; 33];
    let bytes = bytes.get_mut(..digits.len() / 2).ok_or_else(wrong)?;
    hex::decode_to_slice(digits, bytes).map_err(|_| wrong())?;
    match *bytes {
        [value @ 1..0x80] => Ok(U256::from(value)),
        [0x81, value @ 0x80..=0xff] => Ok(U256::from(value)),
        [length @ 0x82..=0xa0, ref value @ ..]
            if value.len() == usize::from(length - 0x80) && value[0] != 0 =>
        {
            Ok(U256::from_be_slice(value))
        }
        _ => Err(wrong()),
    }
}

/// Whether the accounts that come are by hashed keys: the first has a `key`, and no `address`.
pub(super) fn is_hashed(json: &mut Scanner) -> Result<bool, Error> {
    let mut bytes = INPUT_BUFFER_BYTES;
    loop {
        let shown = json.preview(bytes)?;
        let is_all = shown.len() < bytes || bytes >= FIRST_ACCOUNT_BYTES;
        let shown = shown[..shown.len().min(FIRST_ACCOUNT_BYTES)].to_vec();
        let mut first = Scanner::new(Input::of_bytes(Path::new("-"), shown)?, 1);
        match first_account(&mut first) {
            Ok(is_hashed) => return Ok(is_hashed),
            Err(Undecided::Values(all_rlp)) if is_all => return Ok(all_rlp),
            // Its fault will be found when it is read.
            Err(_) if is_all => return Ok(false),
            Err(_) => bytes *= 4,
        }
    }
}

/// Why the form is not known yet.
enum Undecided {
    Cut,
    /// The account is cut in its storage: whether all values so far are RLP.
    Values(bool),
}

impl From<Error> for Undecided {
    fn from(_: Error) -> Self {
        Self::Cut
    }
}

fn first_account(json: &mut Scanner) -> Result<bool, Undecided> {
    let (mut name, mut word) = (Vec::new(), Vec::new());
    json.expect(b'{')?;
    let (mut first, mut has_key) = (true, false);
    while json.member(first, &mut name)? {
        first = false;
        if name == b"storage" && json.peek()? == Some(b'{') {
            json.expect(b'{')?;
            let (mut first, mut all_rlp) = (true, true);
            let mut slot = || -> Result<bool, Error> {
                if !json.member(std::mem::take(&mut first), &mut name)? {
                    return Ok(false);
                }
                json.word(&mut word, WORD_BYTES)?;
                all_rlp &= rlp_value(&word).is_ok();
                Ok(true)
            };
            let ended = loop {
                match slot() {
                    Ok(true) => {}
                    Ok(false) => break true,
                    Err(_) => break false,
                }
            };
            if !ended {
                return Err(Undecided::Values(all_rlp));
            }
            continue;
        }
        if name != b"address" && name != b"key" {
            json.skip_value()?;
            continue;
        }
        json.word(&mut word, WORD_BYTES)?;
        match &name[..] {
            _ if word == b"null" => {}
            b"address" => return Ok(false),
            _ => has_key = true,
        }
    }
    Ok(has_key)
}
