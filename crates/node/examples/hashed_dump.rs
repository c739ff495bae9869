//! Writes a synthetic state in the form of `geth snapshot dump` to the standard output, of any size
//! in a few MB of memory:
//!
//! ```sh
//! cargo run --release --example hashed_dump -- ACCOUNTS SLOTS [SEED] | deponent init --state - ..
//! ```
//!
//! Every sixteenth account is a contract, with one of a thousand codes. A tenth of the slots is in
//! one of them, the others have the rest in equal parts. Keys are spread over their space, each at
//! random in its part.

use std::io::{self, BufWriter, Write};

use alloy_primitives::{B256, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};
use trie::AccountInfo;
use trie::bulk::StateBuilder;
use trie::versioned::{NodeAddress, RecordSink};

/// Records that are not kept.
struct NoRecords;

impl RecordSink for NoRecords {
    fn append(&mut self, _: &[u8]) -> NodeAddress {
        NodeAddress::new(1)
    }
}

/// A state of this many accounts and slots.
struct Synthetic {
    accounts: u64,
    slots: u64,
    seed: u64,
    codes: Vec<(B256, Bytes)>,
}

impl Synthetic {
    fn new(accounts: u64, slots: u64, seed: u64) -> Self {
        let code = |number: u64| {
            let bytes = 100 + mixed(number) % 600;
            let code: Vec<u8> =
                (0..bytes).map(|at| mixed(number ^ at << 20).to_le_bytes()[0]).collect();
            (keccak256(&code), code.into())
        };
        Self { accounts, slots, seed, codes: (0..1000).map(code).collect() }
    }

    const fn contracts(&self) -> u64 {
        self.accounts.div_ceil(16)
    }

    const fn is_contract(number: u64) -> bool {
        number.is_multiple_of(16)
    }

    const fn slots_of(&self, number: u64) -> u64 {
        let large = self.slots / 10;
        let contract = number / 16;
        match (Self::is_contract(number), contract == self.contracts() / 2) {
            (false, _) => 0,
            (true, true) => large,
            // The first ones have what is left over.
            (true, false) => {
                let (rest, others) = (self.slots - large, self.contracts() - 1);
                rest / others + (contract < rest % others) as u64
            }
        }
    }

    /// The key of a number in the order of keys, and a word of its own.
    fn key(&self, of: u64, number: u64, count: u64) -> (B256, u64) {
        let width = u64::MAX / count;
        let mut word = mixed(self.seed ^ mixed(of) ^ number);
        let mut key = B256::ZERO;
        key[..8].copy_from_slice(&(number * width + word % width).to_be_bytes());
        for part in key[8..].chunks_mut(8) {
            word = mixed(word);
            part.copy_from_slice(&word.to_be_bytes());
        }
        (key, word)
    }

    fn slot(&self, account: u64, number: u64, count: u64) -> (B256, U256) {
        let (key, word) = self.key(account + 1, number, count);
        let (a, b) = (mixed(word), mixed(word ^ 1));
        let value = U256::from_limbs([a | 1, b, a ^ b, b]) >> (word % 8 * 31);
        (key, value.max(U256::ONE))
    }

    /// An account, and the root of its storage.
    fn account(&self, number: u64) -> (B256, AccountInfo, Option<&Bytes>) {
        let (key, word) = self.key(0, number, self.accounts);
        let code = Self::is_contract(number).then(|| &self.codes[(word % 1000) as usize]);
        let code_hash = code.map_or(KECCAK256_EMPTY, |(hash, _)| *hash);
        let balance = U256::from(mixed(word)) << (word % 30);
        (key, AccountInfo { nonce: word >> 50, balance, code_hash }, code.map(|(_, code)| code))
    }

    /// Ends the storage of an account in a builder.
    fn storage(
        &self,
        number: u64,
        builder: &mut StateBuilder<NoRecords>,
    ) -> trie::versioned::Version {
        let count = self.slots_of(number);
        for slot in 0..count {
            let (key, value) = self.slot(number, slot, count);
            builder.next_slot(key, value).expect("in order");
        }
        builder.end_storage()
    }

    fn root(&self) -> B256 {
        let mut builder = StateBuilder::new(NoRecords);
        for number in 0..self.accounts {
            let storage = self.storage(number, &mut builder);
            let (key, info, _) = self.account(number);
            builder.whole_account(key, info, storage).expect("in order");
        }
        builder.finish().root
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut builder = StateBuilder::new(NoRecords);
        for number in 0..self.accounts {
            let (key, info, code) = self.account(number);
            let AccountInfo { nonce, balance, code_hash } = info;
            let root = self.storage(number, &mut builder).root;
            write!(out, "{{\"balance\":\"{balance}\",\"nonce\":{nonce},\"root\":\"{root}\",")?;
            write!(out, "\"codeHash\":\"{code_hash}\",")?;
            if let Some(code) = code {
                write!(out, "\"code\":\"{code}\",")?;
            }
            let count = self.slots_of(number);
            for slot in 0..count {
                let (key, value) = self.slot(number, slot, count);
                let before = if slot == 0 { "\"storage\":{" } else { "," };
                let value = hex::encode(alloy_rlp::encode(value));
                write!(out, "{before}\"{key}\":\"{value}\"")?;
            }
            out.write_all(if count == 0 { b"" } else { b"}," })?;
            writeln!(out, "\"key\":\"{key}\"}}")?;
        }
        out.flush()
    }
}

/// A word out of another one (SplitMix64).
const fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

fn main() {
    let numbers: Option<Vec<u64>> =
        std::env::args().skip(1).map(|number| number.parse().ok()).collect();
    let (accounts, slots, seed) = match numbers.as_deref() {
        Some(&[accounts, slots]) if accounts > 32 => (accounts, slots, 1),
        Some(&[accounts, slots, seed]) if accounts > 32 => (accounts, slots, seed),
        _ => {
            eprintln!("expected: ACCOUNTS (33 at least) SLOTS [SEED]");
            std::process::exit(2);
        }
    };
    let state = Synthetic::new(accounts, slots, seed);
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let written = writeln!(out, "{{\"root\":\"{}\"}}", state.root());
    // A reader that is not there any more has said why.
    written.and_then(|()| state.write(&mut out)).ok();
}
