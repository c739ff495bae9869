use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, Bytes};
use revm::bytecode::JumpTable;
use revm::state::Bytecode;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard};
use witness::{Code, ReadCode};

/// A cache of analyzed codes, shared by all blocks. Clones share their entries.
///
/// The EVM library searches a code for all jump destinations whenever it loads it, even for
/// `EXTCODESIZE`, unless a table of them is stored with the code (`docs/reports/code-analysis.md`).
/// One cache may serve all states of one database, since a hash names one code.
///
/// A code that lies in a mapped file takes none of the budget. The owner of the file is notified of
/// each such code that is handed out, since the pages that are read count as memory of the process.
#[derive(Debug, Clone)]
pub struct CodeCache {
    codes: Arc<Mutex<CodeGenerations>>,
    look_at: fn(&[u8]),
}

/// Two generations of entries. Used entries are in `young`. When `young` takes half of the budget,
/// it becomes `old`, and the entries of `old` that were not used since are evicted.
#[derive(Debug)]
struct CodeGenerations {
    budget_bytes: usize,
    young: B256Map<CachedCode>,
    young_bytes: usize,
    old: B256Map<CachedCode>,
    /// Bytes of `old` when it was `young`: entries that were used since count twice.
    old_bytes: usize,
    hits: u64,
    misses: u64,
}

/// The use of a [`CodeCache`] since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodeCacheStats {
    /// Look-ups of codes that were in the cache.
    pub hits: u64,
    /// Look-ups of codes that were not.
    pub misses: u64,
    /// About the bytes of memory that it has.
    pub bytes: usize,
    /// Bytes that it may have.
    pub most_bytes: usize,
}

#[derive(Debug, Clone)]
struct CachedCode {
    code: Bytecode,
    first: [u8; ReadCode::FIRST_BYTES],
    /// The memory that it takes, in bytes; mapped bytes do not count.
    bytes: usize,
    is_in_place: bool,
}

/// The memory of an entry besides the code and its jump table, in bytes.
const ENTRY_BYTES: usize = 288;

impl CodeCache {
    /// A cache with a memory budget of about `budget_bytes`. `look_at` is called with each code
    /// that lies in a mapped file before the code is handed out.
    pub fn new(budget_bytes: usize, look_at: fn(&[u8])) -> Self {
        let (young, old) = (B256Map::default(), B256Map::default());
        let (young_bytes, old_bytes, hits, misses) = (0, 0, 0, 0);
        let codes =
            CodeGenerations { budget_bytes, young, young_bytes, old, old_bytes, hits, misses };
        Self { codes: Arc::new(Mutex::new(codes)), look_at }
    }

    /// Whether the code with this hash is in the cache.
    pub fn contains(&self, code_hash: &B256) -> bool {
        let codes = self.codes();
        codes.young.contains_key(code_hash) || codes.old.contains_key(code_hash)
    }

    /// How the cache is used.
    pub fn stats(&self) -> CodeCacheStats {
        let codes = self.codes();
        let CodeGenerations { budget_bytes, young_bytes, old_bytes, hits, misses, .. } = *codes;
        let bytes = young_bytes + old_bytes;
        CodeCacheStats { hits, misses, bytes, most_bytes: budget_bytes }
    }

    /// A code, and its first bytes.
    pub(crate) fn get(&self, code_hash: &B256) -> Option<(Bytecode, [u8; ReadCode::FIRST_BYTES])> {
        let CachedCode { code, first, is_in_place, .. } = self.codes().get(code_hash)?;
        if is_in_place {
            (self.look_at)(code.bytes_slice());
        }
        Some((code, first))
    }

    /// Adds a code that was analyzed from `stored` and is about to be handed out.
    pub(crate) fn insert(&self, code_hash: B256, code: Bytecode, stored: &Code) {
        // A mapped code takes memory only if it had to be copied.
        let is_in_place = stored.is_mapped && code.bytes_ref().as_ptr() == stored.padded.as_ptr();
        let copied_bytes = if is_in_place { 0 } else { code.len() };
        let has_table_in_place =
            stored.jumps.as_ref().is_some_and(|jumps| matches!(jumps.table(), Cow::Borrowed(_)));
        let table_bytes = if has_table_in_place { 0 } else { code.len() / 8 };
        let bytes = copied_bytes + table_bytes + ENTRY_BYTES;
        if is_in_place {
            (self.look_at)(code.bytes_slice());
        }
        self.codes()
            .insert(code_hash, CachedCode { code, first: stored.first, bytes, is_in_place });
    }

    fn codes(&self) -> MutexGuard<'_, CodeGenerations> {
        self.codes.lock().expect("no thread panics while it holds the lock")
    }
}

impl CodeGenerations {
    fn get(&mut self, code_hash: &B256) -> Option<CachedCode> {
        if let Some(kept) = self.young.get(code_hash) {
            self.hits += 1;
            return Some(kept.clone());
        }
        let Some(kept) = self.old.remove(code_hash) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        self.insert(*code_hash, kept.clone());
        Some(kept)
    }

    fn insert(&mut self, code_hash: B256, kept: CachedCode) {
        let bytes = kept.bytes;
        if self.young.insert(code_hash, kept).is_none() {
            self.young_bytes += bytes;
        }
        if self.young_bytes > self.budget_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
    }
}

/// An analyzed code. A code that begins like a delegation marker but is none is an ordinary code:
/// no transaction can deploy it (EIP-3541), but a genesis or an override may have it.
pub(crate) fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

/// As [`bytecode`], without a copy if the code is padded with enough zeros to run in place, and
/// without analysis if it has a jump table.
pub(crate) fn stored_bytecode(code: &Code) -> Bytecode {
    if code.first.starts_with(DELEGATION) {
        return bytecode(code.bytes());
    }
    let zeros = &code.padded[code.length..];
    if let Some(jumps) = code.jumps.as_ref().filter(|_| zeros.len() >= MIN_ZEROS) {
        let table = match jumps.table() {
            Cow::Borrowed(table) => JumpTable::from_static_slice(table, code.length),
            Cow::Owned(table) => JumpTable::from_slice(table, code.length),
        };
        return analyzed(code, table);
    }
    if zeros.is_empty() || zeros.iter().any(|byte| *byte != 0) {
        return bytecode(code.bytes());
    }
    // The zeros are analyzed as instructions here. If the library adds no padding of its own, a run
    // never reads beyond them.
    let whole = Bytecode::new_legacy(code.padded.clone());
    let is_same = whole.bytes_ref().as_ptr_range() == code.padded.as_ptr_range();
    match whole.legacy_jump_table() {
        Some(table) if is_same => analyzed(code, table.clone()),
        _ => bytecode(code.bytes()),
    }
}

/// A code that is padded with enough zeros to run in place, with its jump table.
fn analyzed(code: &Code, table: JumpTable) -> Bytecode {
    // Safety: a run never reads beyond the zeros that follow the code, of which there is at least
    // one: either the constructor of `Jumps` has vouched for them, or the library has found them
    // enough.
    #[allow(unsafe_code, reason = "the library would copy each code")]
    unsafe {
        Bytecode::new_analyzed(code.padded.clone(), code.length, table)
    }
}

/// The zeros that a code needs behind it to run in place: the longest operand, and a `STOP`.
const MIN_ZEROS: usize = 33;

/// The first bytes of a delegation marker (EIP-7702).
const DELEGATION: &[u8] = &[0xef, 0x01];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jump_table;
    use proptest::prelude::*;
    use state::{Database, DirectoryDisk, NewCode, Options, StoredCode};
    use witness::Jumps;

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
        let bare = Code::from(Bytes::copy_from_slice(code));
        Code { padded: padded.into(), is_mapped: true, ..bare }
    }

    /// Checks that two codes are the same to the interpreter.
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

    /// A store's table of where a code may jump to is the library's.
    #[test]
    #[allow(unsafe_code, reason = "the store keeps what it promises, as is seen here")]
    fn a_stored_code_runs_without_being_looked_at() {
        let folder = tempfile::tempdir().expect("a directory");
        let disk = DirectoryDisk::open(folder.path()).expect("free");
        let store = Database::open(disk, &Options::default()).expect("opens");
        let bytes = prop_oneof![any::<u8>(), 0x5b..0x80_u8, 0xe6..0xe9_u8];
        let mut runner = proptest::test_runner::TestRunner::default();
        let strategy = prop::collection::vec(bytes, 1..200);
        let run = runner.run(&strategy, |code: Vec<u8>| {
            let code = Bytes::from(code);
            let hash = alloy_primitives::keccak256(&code);
            let table = jump_table(&code);
            store.add_codes(vec![NewCode::new(hash, code.clone(), table)]).expect("a working disk");
            store.persist().expect("a working disk");
            let stored = store.stored_code(&hash).expect("readable").expect("there");
            let StoredCode { padded, padding, first, location, table } = stored;
            prop_assert!(matches!(table, Some(Cow::Borrowed(_))) && location.is_some());
            // Safety: what is asserted of the bytes below.
            let jumps = table.map(|table| unsafe { Jumps::new(table) });
            let length = padded.len() - padding;
            let stored = Code { padded: padded.clone(), length, first, is_mapped: true, jumps };
            let (found, expected) = (stored_bytecode(&stored), bytecode(code));
            assert_same(&found, &expected);
            if found.is_legacy() {
                prop_assert_eq!(found.bytes_ref().as_ptr(), padded.as_ptr());
                prop_assert_eq!(&found.bytes_slice()[length..], &[0; 33][..]);
            }
            Ok(())
        });
        if let Err(error) = run {
            panic!("{error}");
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
    #[allow(unsafe_code, reason = "a code with zeros behind it")]
    fn what_lies_in_a_file_takes_no_memory() {
        let with_table = CodeCache::new(32_500, |_| ());
        let without = CodeCache::new(32_500, |_| ());
        for tag in 1..=100 {
            let mut stored = padded(&[tag; 1000], 33);
            without.insert(B256::repeat_byte(tag), stored_bytecode(&stored), &stored);
            // Safety: there are zeros enough, and bits.
            stored.jumps = Some(unsafe { Jumps::new(Cow::Borrowed(&[0; 125][..])) });
            with_table.insert(B256::repeat_byte(tag), stored_bytecode(&stored), &stored);
        }
        // 288 bytes of each, and 125 of its table.
        assert_eq!(kept(&with_table, 1..=100).len(), 100);
        assert!(kept(&without, 1..=100).into_iter().eq(41..=100));
    }

    #[test]
    fn who_has_the_file_is_told_of_each_code_handed_out() {
        static TOLD: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
        let cache = CodeCache::new(1 << 20, |code| {
            TOLD.lock().unwrap().push((code.as_ptr().addr(), code.len()));
        });
        let (in_file, hash) = (padded(&[1; 1000], 33), B256::repeat_byte(1));
        cache.insert(hash, stored_bytecode(&in_file), &in_file);
        let told = (in_file.padded.as_ptr().addr(), in_file.padded.len());
        assert_eq!(TOLD.lock().unwrap()[..], [told]);
        cache.get(&hash).unwrap();
        assert_eq!(TOLD.lock().unwrap()[..], [told, told]);
        // Of one in memory there is nothing to tell.
        let in_memory = Code { is_mapped: false, ..padded(&[2; 1000], 33) };
        cache.insert(B256::repeat_byte(2), stored_bytecode(&in_memory), &in_memory);
        cache.get(&B256::repeat_byte(2)).unwrap();
        assert_eq!(TOLD.lock().unwrap().len(), 2);
    }

    fn kept(cache: &CodeCache, tags: impl IntoIterator<Item = u8>) -> Vec<u8> {
        tags.into_iter().filter(|tag| cache.contains(&B256::repeat_byte(*tag))).collect()
    }

    #[test]
    fn codes_used_lately_stay_and_the_budget_holds() {
        let cache = CodeCache::new(20_000, |_| ());
        for tag in 1..=100 {
            insert(&cache, tag, 1000);
            let first = cache.get(&B256::repeat_byte(1));
            assert_eq!(first, Some((code(1, 1000).0, [1; ReadCode::FIRST_BYTES])));
            let kept = kept(&cache, 1..=100);
            assert!(kept.len() <= 20_000 / 1413 + 2, "{kept:?}");
            assert!(kept.ends_with(&[tag]));
        }
        assert_eq!(cache.get(&B256::repeat_byte(2)), None);
    }

    #[test]
    fn a_code_over_the_budget_goes_with_the_next() {
        let cache = CodeCache::new(1000, |_| ());
        for tag in 1..=3 {
            insert(&cache, tag, 10_000);
            assert_eq!(kept(&cache, 1..=3), [tag]);
        }
    }
}
