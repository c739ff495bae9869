//! The page cache: a set-associative cache with CLOCK eviction.
//!
//! A look-up misses the processor's caches once before it has the page: a set is two neighbouring
//! cache lines with a lock, page numbers and pointers. A page may be in either of two sets, so that
//! sets fill evenly. For eviction a hand goes round over all sets: a look-up increments the count
//! of its page, up to [`MOST_COUNTED`], the hand decrements each count that it passes, and evicts
//! pages whose count is zero.
//!
//! A look-up never waits for a lock. If another thread changes a set, the pages of that set count
//! as missing and none is added: the file has them all, and the lock's holder may run at idle
//! priority.

use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Pages of a set: as many as fit into two cache lines of 64 bytes.
const WAYS: usize = 7;

/// The highest count of a page: so often the hand passes before it evicts the page.
const MOST_COUNTED: u8 = 3;

/// The page number of an empty way.
const NONE: u64 = u64::MAX;

/// The use of a cache since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Look-ups of what was in the cache.
    pub hits: u64,
    /// Look-ups of what was not, and was read from a file.
    pub misses: u64,
    /// Bytes of memory that the cache has.
    pub bytes: u64,
    /// Bytes that it may have.
    pub most_bytes: u64,
}

/// At most `capacity` pages by number, for any number of threads.
#[derive(Debug)]
pub(crate) struct Cache<P> {
    sets: Box<[AlignedSet<P>]>,
    capacity: usize,
    len: AtomicUsize,
    /// The number of sets that the hand has passed.
    hand: AtomicUsize,
}

/// A set, aligned to two cache lines that the processor fetches together.
#[derive(Debug)]
#[repr(align(128))]
struct AlignedSet<P>(RwLock<CacheSet<P>>);

#[derive(Debug)]
struct CacheSet<P> {
    counts: [AtomicU8; WAYS],
    numbers: [u64; WAYS],
    pages: [Option<Arc<P>>; WAYS],
}

impl<P> CacheSet<P> {
    fn empty() -> Self {
        let counts = [const { AtomicU8::new(0) }; WAYS];
        Self { counts, numbers: [NONE; WAYS], pages: [const { None }; WAYS] }
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.numbers.iter().position(|&found| found == number)
    }

    fn count(&self, way: usize) -> u8 {
        self.counts[way].load(Ordering::Relaxed)
    }

    /// Counts a look-up. One of two concurrent ones may be lost.
    fn looked_up(&self, way: usize) {
        let count = self.count(way);
        if count < MOST_COUNTED {
            self.counts[way].store(count + 1, Ordering::Relaxed);
        }
    }

    fn replace(&mut self, way: usize, number: u64, page: Option<Arc<P>>) -> Option<Arc<P>> {
        self.numbers[way] = number;
        *self.counts[way].get_mut() = 0;
        std::mem::replace(&mut self.pages[way], page)
    }
}

impl<P> Cache<P> {
    /// An empty cache, with a table for one and a half times as many pages.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        let sets_count = (capacity + capacity / 2).div_ceil(WAYS);
        let set = |_| AlignedSet(RwLock::new(CacheSet::empty()));
        let sets = (0..sets_count).map(set).collect();
        Self { sets, capacity, len: 0.into(), hand: 0.into() }
    }

    /// The number of pages.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// The most pages.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Calls `see` with a page, if it is in the cache.
    #[inline]
    pub(crate) fn get<T>(&self, number: u64, see: impl FnOnce(&Arc<P>) -> T) -> Option<T> {
        let [first, second] = self.places(number);
        let mut set = self.sets[first].0.try_read()?;
        let way = match set.find(number) {
            Some(way) => way,
            None => {
                drop(set);
                set = self.sets[second].0.try_read()?;
                set.find(number)?
            }
        };
        set.looked_up(way);
        set.pages[way].as_ref().map(see)
    }

    /// Whether a page is in the cache, without counting a look-up.
    pub(crate) fn contains(&self, number: u64) -> bool {
        let is_in = |place: usize| self.sets[place].0.try_read()?.find(number);
        self.places(number).into_iter().any(|place| is_in(place).is_some())
    }

    /// Adds a page, unless it is in the cache: a number always stands for the same content. If two
    /// threads add a page at once, both may succeed, or neither.
    pub(crate) fn insert(&self, number: u64, page: Arc<P>) {
        if self.contains(number) {
            return;
        }
        let places = self.places(number);
        for place in places {
            let Some(mut set) = self.sets[place].0.try_write() else { return };
            if let Some(way) = set.find(NONE) {
                set.replace(way, number, Some(page));
                drop(set);
                self.len.fetch_add(1, Ordering::Relaxed);
                while self.len() > self.capacity {
                    self.make_room();
                }
                return;
            }
        }
        // Both sets are full, which is rare.
        let Some(mut set) = self.sets[places[0]].0.try_write() else { return };
        let way = (0..WAYS).min_by_key(|way| set.count(*way)).expect("a set has ways");
        let replaced = set.replace(way, number, Some(page));
        drop(set);
        // Another thread may have evicted a page meanwhile.
        self.len.fetch_add(usize::from(replaced.is_none()), Ordering::Relaxed);
    }

    /// Evicts the pages whose numbers `is_kept` says no to. This waits for locks.
    pub(crate) fn retain(&self, is_kept: impl Fn(u64) -> bool) {
        for set in &self.sets {
            let mut set = set.0.write();
            for way in 0..WAYS {
                if set.numbers[way] != NONE && !is_kept(set.numbers[way]) {
                    self.remove(&mut set, way);
                }
            }
        }
    }

    /// Moves the hand on by a set and evicts all its pages with count zero. If it evicted one
    /// alone, the counts of the others would drop too soon.
    fn make_room(&self) {
        let place = self.hand.fetch_add(1, Ordering::Relaxed) % self.sets.len();
        let Some(mut set) = self.sets[place].0.try_write() else { return };
        for way in 0..WAYS {
            if set.numbers[way] == NONE {
                continue;
            }
            match set.counts[way].get_mut() {
                0 => self.remove(&mut set, way),
                count => *count -= 1,
            }
        }
    }

    fn remove(&self, set: &mut CacheSet<P>, way: usize) {
        set.replace(way, NONE, None);
        self.len.fetch_sub(1, Ordering::Relaxed);
    }

    /// The indices of the two sets that a page may be in, which may be the same.
    fn places(&self, number: u64) -> [usize; 2] {
        // Random odd multipliers; the high bits of a product depend on all bits of the number.
        let first = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let second = (number ^ (first >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let place = |hash: u64| ((u128::from(hash) * self.sets.len() as u128) >> 64) as usize;
        [place(first), place(second)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn rng() -> StdRng {
        StdRng::seed_from_u64(testing::seed())
    }

    fn page(number: u64) -> Arc<u64> {
        Arc::new(number * 3)
    }

    #[test]
    fn a_set_is_two_lines() {
        assert_eq!(size_of::<AlignedSet<u64>>(), 128);
    }

    #[test]
    fn what_is_found_is_what_was_put_there() {
        let rng = &mut rng();
        for capacity in [0, 1, 2, 7, 30, 1_000] {
            let cache = Cache::new(capacity);
            let range = 3 * capacity as u64 + 3;
            for _ in 0..20_000 {
                let number = rng.random_range(0..range);
                match rng.random_range(0..100) {
                    0 => {
                        let (from, modulus) = (rng.random_range(0..range), rng.random_range(2..9));
                        let is_kept =
                            |number: u64| number < from || !number.is_multiple_of(modulus);
                        cache.retain(is_kept);
                        let is_left = |number: &u64| cache.contains(*number);
                        assert!((0..range).filter(is_left).all(is_kept));
                    }
                    1..50 => {
                        cache.insert(number, page(number));
                        // It may be the one that makes room.
                        let found = cache.get(number, |page| **page);
                        assert!(found.is_none_or(|page| page == 3 * number));
                    }
                    _ => {
                        let found = cache.get(number, |page| **page);
                        assert_eq!(found.is_some(), cache.contains(number));
                        assert!(found.is_none_or(|page| page == 3 * number));
                    }
                }
                let there = (0..range).filter(|number| cache.contains(*number)).count();
                assert_eq!(there, cache.len());
                assert!(there <= capacity.max(1));
                if there > 300 {
                    break;
                }
            }
        }
    }

    #[test]
    fn pages_that_fit_stay() {
        let rng = &mut rng();
        for (count, most_lost) in [(12_000, 24), (20_000, 400)] {
            let cache = Cache::new(20_000);
            // As a log has them: runs of neighbours.
            let starts: Vec<_> =
                (0..count / 100).map(|at: u64| at << 20 | u64::from(rng.random::<u16>())).collect();
            let numbers = || starts.iter().flat_map(|start| *start..start + 100);
            numbers().for_each(|number| cache.insert(number, page(number)));
            let lost = numbers().filter(|number| !cache.contains(*number)).count();
            assert!(lost <= most_lost, "{lost} of {count}");
        }
    }

    #[test]
    fn pages_in_use_outlive_a_scan() {
        let (rng, capacity) = (&mut rng(), 10_000);
        let cache = Cache::new(capacity);
        let used: Vec<u64> = (0..capacity / 2).map(|_| rng.random_range(0..1 << 40)).collect();
        for _ in 0..3 {
            for &number in &used {
                if cache.get(number, |_| ()).is_none() {
                    cache.insert(number, page(number));
                }
            }
        }
        for _ in 0..capacity {
            let number = rng.random_range(0..1 << 40);
            cache.insert(number, page(0));
            // Only look-ups keep a page there.
            (0..3).for_each(|_| _ = cache.contains(number));
        }
        let there = used.iter().filter(|number| cache.contains(**number)).count();
        assert!(there > used.len() - used.len() / 50, "{there} of {}", used.len());
        // Pages that are not looked up any more are evicted in the end.
        for _ in 0..10 * capacity {
            cache.insert(rng.random_range(0..1 << 40), page(0));
        }
        let there = used.iter().filter(|number| cache.contains(**number)).count();
        assert!(there < used.len() / 50, "{there} of {}", used.len());
        for _ in 0..100 {
            cache.insert(rng.random_range(0..1 << 40), page(0));
            // A full cache may have a set's pages less, since the hand evicts a set at a time.
            assert!(cache.len() + WAYS > capacity, "{} of {capacity}", cache.len());
        }
    }

    #[test]
    fn threads_do_not_take_pages_from_each_other() {
        let (cache, capacity) = (&Cache::new(500), 500);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                scope.spawn(move || {
                    let rng = &mut StdRng::seed_from_u64(seed);
                    for _ in 0..50_000 {
                        let number = rng.random_range(0..1_000);
                        match rng.random_range(0..1_000) {
                            0 => cache.retain(|number| number.is_multiple_of(2)),
                            1..500 => cache.insert(number, page(number)),
                            _ => {
                                let found = cache.get(number, |page| **page);
                                assert!(found.is_none_or(|page| page == 3 * number));
                            }
                        }
                    }
                });
            }
        });
        cache.insert(1 << 40, page(1));
        assert!(cache.len() <= capacity);
        cache.retain(|_| false);
        assert_eq!(cache.len(), 0);
    }
}
