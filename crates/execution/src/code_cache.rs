use alloy_primitives::B256;
use alloy_primitives::map::B256Map;
use revm::state::Bytecode;
use std::sync::{Arc, Mutex};

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
    young: B256Map<Bytecode>,
    young_bytes: usize,
    old: B256Map<Bytecode>,
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
        if let Some(code) = codes.young.get(code_hash) {
            return Some(code.clone());
        }
        let code = codes.old.remove(code_hash)?;
        codes.insert(*code_hash, code.clone());
        Some(code)
    }

    pub(crate) fn insert(&self, code_hash: B256, code: Bytecode) {
        let mut codes = self.0.lock().expect("no thread panics while it holds the lock");
        codes.insert(code_hash, code);
    }
}

impl Codes {
    fn insert(&mut self, code_hash: B256, code: Bytecode) {
        let bytes = code.len() + code.len() / 8 + ENTRY_BYTES;
        if self.young.insert(code_hash, code).is_none() {
            self.young_bytes += bytes;
        }
        if self.young_bytes > self.budget_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::Bytes;

    fn code(tag: u8, bytes: usize) -> Bytecode {
        Bytecode::new_raw(Bytes::from(vec![tag; bytes]))
    }

    fn kept(cache: &CodeCache, tags: impl IntoIterator<Item = u8>) -> Vec<u8> {
        tags.into_iter().filter(|tag| cache.contains(&B256::repeat_byte(*tag))).collect()
    }

    #[test]
    fn codes_used_lately_stay_and_the_budget_holds() {
        let cache = CodeCache::new(20_000);
        for tag in 1..=100 {
            cache.insert(B256::repeat_byte(tag), code(tag, 1000));
            assert_eq!(cache.get(&B256::repeat_byte(1)), Some(code(1, 1000)));
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
            cache.insert(B256::repeat_byte(tag), code(tag, 10_000));
            assert_eq!(kept(&cache, 1..=3), [tag]);
        }
    }
}
