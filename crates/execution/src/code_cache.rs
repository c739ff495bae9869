use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, Bytes};
use revm::state::Bytecode;
use std::sync::{Arc, Mutex};
use witness::Code;

/// Codes made ready to run, kept from block to block. Clones share what they keep.
///
/// The EVM library looks for all jump destinations of a code when it reads it, be it only to ask
/// for the size (`docs/reports/code-analysis.md`). One cache may serve all states of one database,
/// since a hash names one code.
#[derive(Debug, Clone)]
pub struct CodeCache(Arc<Mutex<Codes>>);

/// What was used lately is in `young`. When that is half of the budget, it becomes `old`, and what
/// was old and not used since is dropped.
#[derive(Debug)]
struct Codes {
    budget_bytes: usize,
    young: B256Map<Kept>,
    young_bytes: usize,
    old: B256Map<Kept>,
}

#[derive(Debug, Clone)]
struct Kept {
    code: Bytecode,
    /// Its bytes lie in a file: only the table takes memory.
    is_in_place: bool,
}

/// What a code takes besides its bytes and their table of one bit each, in bytes.
const ENTRY_BYTES: usize = 256;

impl CodeCache {
    /// A cache that takes about `budget_bytes` of memory.
    pub fn new(budget_bytes: usize) -> Self {
        let (young, old) = (B256Map::default(), B256Map::default());
        Self(Arc::new(Mutex::new(Codes { budget_bytes, young, young_bytes: 0, old })))
    }

    /// Whether the code with this hash is kept.
    pub fn contains(&self, code_hash: &B256) -> bool {
        let codes = self.0.lock().expect("no thread panics while it holds the lock");
        codes.young.contains_key(code_hash) || codes.old.contains_key(code_hash)
    }

    pub(crate) fn get(&self, code_hash: &B256) -> Option<Bytecode> {
        let mut codes = self.0.lock().expect("no thread panics while it holds the lock");
        if let Some(kept) = codes.young.get(code_hash) {
            return Some(kept.code.clone());
        }
        let kept = codes.old.remove(code_hash)?;
        codes.insert(*code_hash, kept.clone());
        Some(kept.code)
    }

    /// Keeps a code, made ready from what is stored.
    pub(crate) fn insert(&self, code_hash: B256, code: Bytecode, stored: &Code) {
        // What lies in a file takes memory only when it had to be copied.
        let is_in_place = stored.is_mapped && code.bytes_ref().as_ptr() == stored.padded.as_ptr();
        let mut codes = self.0.lock().expect("no thread panics while it holds the lock");
        codes.insert(code_hash, Kept { code, is_in_place });
    }
}

impl Codes {
    fn insert(&mut self, code_hash: B256, kept: Kept) {
        let length = kept.code.len();
        let bytes = if kept.is_in_place { 0 } else { length } + length / 8 + ENTRY_BYTES;
        if self.young.insert(code_hash, kept).is_none() {
            self.young_bytes += bytes;
        }
        if self.young_bytes > self.budget_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}

/// A code made ready to run. One that begins as a delegation and is none is a code as any other:
/// no transaction deploys it (EIP-3541), but a genesis or an override may have it.
pub(crate) fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

/// As [`bytecode`], without copying the code when the zeros behind it suffice to run it.
pub(crate) fn stored_bytecode(code: &Code) -> Bytecode {
    let (bytes, zeros) = code.padded.split_at(code.length);
    if zeros.is_empty() || zeros.iter().any(|byte| *byte != 0) || bytes.starts_with(DELEGATION) {
        return bytecode(code.bytes());
    }
    // The zeros count as instructions here: when nothing was added behind them, running never
    // reads beyond.
    let whole = Bytecode::new_legacy(code.padded.clone());
    let is_same = whole.bytes_ref().as_ptr_range() == code.padded.as_ptr_range();
    match whole.legacy_jump_table() {
        Some(table) if is_same => {
            // Safety: the bytes are those of `whole`, so they end as the library wants it.
            #[allow(unsafe_code, reason = "the library would copy each code")]
            unsafe {
                Bytecode::new_analyzed(code.padded.clone(), code.length, table.clone())
            }
        }
        _ => bytecode(code.bytes()),
    }
}

/// What a delegation begins with (EIP-7702).
const DELEGATION: &[u8] = &[0xef, 0x01];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use revm::bytecode::JumpTable;

    fn code(tag: u8, bytes: usize) -> (Bytecode, Code) {
        let code = Bytes::from(vec![tag; bytes]);
        (Bytecode::new_raw(code.clone()), code.into())
    }

    fn insert(cache: &CodeCache, tag: u8, bytes: usize) {
        let (code, stored) = code(tag, bytes);
        cache.insert(B256::repeat_byte(tag), code, &stored);
    }

    fn padded(code: &[u8], zeros: usize) -> Code {
        let padded = [code, &vec![0; zeros]].concat();
        Code { padded: padded.into(), length: code.len(), is_mapped: true }
    }

    /// The same code, as whoever runs it sees it.
    fn assert_same(found: &Bytecode, expected: &Bytecode) {
        assert_eq!(found.kind(), expected.kind());
        assert_eq!(found.original_bytes(), expected.original_bytes());
        assert_eq!(found.hash_slow(), expected.hash_slow());
        let [found_table, table] = [found, expected].map(Bytecode::legacy_jump_table);
        assert_eq!(found_table.is_some(), table.is_some());
        for at in 0..expected.bytes_ref().len() + 40 {
            let is_valid =
                |table: Option<&JumpTable>| table.is_some_and(|table| table.is_valid(at));
            assert_eq!(is_valid(found_table), is_valid(table), "at {at}");
        }
        let needed = &expected.bytes_slice()[expected.len()..];
        assert!(found.bytes_slice()[found.len()..].starts_with(needed));
    }

    proptest! {
        /// Where it lies, a code is what it would be in a copy.
        #[test]
        fn a_code_with_zeros_behind_it_is_not_copied(
            mut code in prop::collection::vec(
                prop_oneof![any::<u8>(), 0x5b..0x80_u8, 0xe6..0xe9_u8],
                0..100,
            ),
            end in prop_oneof![Just(None), any::<u8>().prop_map(Some)],
            enough in any::<bool>(),
        ) {
            code.extend(end);
            let stored = padded(&code, if enough { 33 } else { 1 });
            let (found, expected) = (stored_bytecode(&stored), bytecode(stored.bytes()));
            assert_same(&found, &expected);
            if enough && !code.starts_with(DELEGATION) {
                prop_assert_eq!(found.bytes_ref().as_ptr(), stored.padded.as_ptr());
            }
        }
    }

    #[test]
    fn what_is_behind_a_code_counts_only_when_it_is_zeros() {
        let longest = [&[0x60][..], &[0x7f]].concat();
        assert_same(&stored_bytecode(&padded(&longest, 33)), &bytecode(longest.clone().into()));
        let other =
            Code { padded: [&longest[..], &[1; 33]].concat().into(), ..padded(&longest, 0) };
        assert_same(&stored_bytecode(&other), &bytecode(longest.into()));
        let delegation = [DELEGATION, &[0; 21]].concat();
        assert!(stored_bytecode(&padded(&delegation, 33)).is_eip7702());
    }

    #[test]
    fn a_code_in_a_file_takes_its_table_alone() {
        let cache = CodeCache::new(20_000);
        for tag in 1..=20 {
            let stored = padded(&[tag; 1000], 33);
            cache.insert(B256::repeat_byte(tag), stored_bytecode(&stored), &stored);
        }
        assert_eq!(kept(&cache, 1..=20).len(), 20);
    }

    fn kept(cache: &CodeCache, tags: impl IntoIterator<Item = u8>) -> Vec<u8> {
        tags.into_iter().filter(|tag| cache.contains(&B256::repeat_byte(*tag))).collect()
    }

    #[test]
    fn codes_used_lately_stay_and_the_budget_holds() {
        let cache = CodeCache::new(20_000);
        for tag in 1..=100 {
            insert(&cache, tag, 1000);
            assert_eq!(cache.get(&B256::repeat_byte(1)), Some(code(1, 1000).0));
            let kept = kept(&cache, 1..=100);
            assert!(kept.len() <= 20_000 / 1381 + 2, "{kept:?}");
            assert!(kept.ends_with(&[tag]));
        }
        assert_eq!(cache.get(&B256::repeat_byte(2)), None);
    }

    #[test]
    fn a_code_over_the_budget_goes_with_the_next() {
        let cache = CodeCache::new(1000);
        for tag in 1..=3 {
            insert(&cache, tag, 10_000);
            assert_eq!(kept(&cache, 1..=3), [tag]);
        }
    }
}
