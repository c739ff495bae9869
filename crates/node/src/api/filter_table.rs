//! The filters of a port. A filter is its criteria and a cursor: how far its owner was told.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use alloy_primitives::{B256, U128};

use super::logs::LogRequest;
use crate::limits::{FILTER_TIME, FILTERS, FILTERS_BYTES, FILTERS_SHARE};

/// A filter, and how far its owner was told.
#[derive(Debug, Clone)]
pub(super) enum Filter {
    /// The logs of blocks.
    Logs { request: Arc<LogRequest>, head: B256 },
    /// The hashes of blocks that became canonical since `head` was the head.
    Blocks { head: B256 },
    /// Transactions that became pending, from the `next`-th on, whole or as hashes.
    Transactions { full: bool, next: u64 },
}

impl Filter {
    fn bytes(&self) -> usize {
        match self {
            Self::Logs { request, .. } => request.filter.bytes(),
            Self::Blocks { .. } | Self::Transactions { .. } => 0,
        }
    }
}

/// The filters of the ports that share them, each found by 128 random bits, which its owner alone
/// knows. They are bounded in all, and by address.
#[derive(Debug, Default)]
pub(crate) struct Filters(Mutex<HashMap<U128, FilterEntry>>);

#[derive(Debug)]
struct FilterEntry {
    filter: Filter,
    /// How often its owner was told of something.
    told: u64,
    /// The address that made it; `None` for programs of this host.
    host: Option<IpAddr>,
    asked: Instant,
}

impl FilterEntry {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.asked) > FILTER_TIME
    }
}

/// The room that some filters take.
#[derive(Debug, Default, Clone, Copy)]
struct FilterRoom {
    count: usize,
    bytes: usize,
}

impl FilterRoom {
    /// Whether it is more than such a part of what a port has.
    const fn exceeds(&self, share: usize) -> bool {
        self.count > FILTERS / share || self.bytes > FILTERS_BYTES / share
    }
}

impl Filters {
    /// Adds a filter of an address. Where there is no room, those end that were asked for the
    /// longest time ago: of that address where it has its share, else of any.
    pub(super) fn add(&self, filter: Filter, host: Option<IpAddr>, now: Instant) -> U128 {
        let id = U128::from(rand::random::<u128>());
        let mut entries = self.entries();
        entries.retain(|_, entry| !entry.is_over(now));
        entries.insert(id, FilterEntry { filter, told: 0, host, asked: now });
        if host.is_some() {
            make_room(&mut entries, FILTERS_SHARE, id, |entry| entry.host == host);
        }
        make_room(&mut entries, 1, id, |_| true);
        id
    }

    /// A filter that is asked now, and how often its owner was told; `None` if there is none.
    pub(super) fn ask(&self, id: U128, now: Instant) -> Option<(Filter, u64)> {
        let mut entries = self.entries();
        let entry = entries.get_mut(&id).filter(|entry| !entry.is_over(now))?;
        entry.asked = now;
        Some((entry.filter.clone(), entry.told))
    }

    /// Moves a filter on, unless it moved or ended since it was asked; whether it did.
    pub(super) fn tell(&self, id: U128, told: u64, filter: Filter) -> bool {
        match self.entries().get_mut(&id).filter(|entry| entry.told == told) {
            Some(entry) => {
                (entry.filter, entry.told) = (filter, told + 1);
                true
            }
            None => false,
        }
    }

    /// Ends a filter; whether there was one.
    pub(super) fn remove(&self, id: U128, now: Instant) -> bool {
        self.entries().remove(&id).is_some_and(|entry| !entry.is_over(now))
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<U128, FilterEntry>> {
        self.0.lock().expect("nothing panics while it is held")
    }
}

/// Ends filters of a kind, but not the newest, until they take no more than their share.
fn make_room(
    entries: &mut HashMap<U128, FilterEntry>,
    share: usize,
    newest: U128,
    is_of_kind: impl Fn(&FilterEntry) -> bool,
) {
    loop {
        let mut room = FilterRoom::default();
        let mut oldest: Option<(Instant, U128)> = None;
        for (id, entry) in entries.iter().filter(|(_, entry)| is_of_kind(entry)) {
            room.count += 1;
            room.bytes += entry.filter.bytes();
            let this = (entry.asked, *id);
            if *id != newest && oldest.is_none_or(|oldest| this < oldest) {
                oldest = Some(this);
            }
        }
        match oldest.filter(|_| room.exceeds(share)) {
            Some((_, id)) => _ = entries.remove(&id),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const BLOCKS: Filter = Filter::Blocks { head: B256::ZERO };

    fn host(byte: u8) -> Option<IpAddr> {
        Some(Ipv4Addr::new(192, 0, 2, byte).into())
    }

    fn second(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// A log filter of so many topics.
    fn logs(topics: usize) -> Filter {
        let topics: Vec<_> =
            (0..topics).map(|n| B256::from(alloy_primitives::U256::from(n))).collect();
        let filter = serde_json::json!([{"topics": [topics]}]).to_string();
        let raw: Box<rpc::RawValue> = serde_json::from_str(&filter).expect("JSON");
        let mut params = rpc::Params::of(Some(&raw)).expect("a list");
        let request = Arc::new(LogRequest::next(&mut params).expect("a filter"));
        Filter::Logs { request, head: B256::ZERO }
    }

    #[test]
    fn of_ten_thousand_filters_those_stay_that_were_asked_last() {
        let (filters, start) = (Filters::default(), Instant::now());
        let first = filters.add(BLOCKS, None, start);
        let mut ids = Vec::new();
        for number in 0..10_000 {
            let now = start + Duration::from_millis(number);
            ids.push(filters.add(BLOCKS, None, now));
            assert!(filters.ask(first, now).is_some(), "it is asked all the time");
        }
        let now = start + second(10);
        let alive = ids.iter().filter(|id| filters.ask(**id, now).is_some()).count();
        assert_eq!(alive, FILTERS - 1);
        let newest = &ids[ids.len() - alive..];
        assert!(newest.iter().all(|id| filters.ask(*id, now).is_some()));
    }

    #[test]
    fn an_address_has_a_quarter_and_takes_nothing_from_others() {
        let (filters, now) = (Filters::default(), Instant::now());
        let others: Vec<_> = (0..100).map(|_| filters.add(BLOCKS, host(1), now)).collect();
        let later = now + second(1);
        let many: Vec<_> = (0..10_000).map(|_| filters.add(BLOCKS, host(2), later)).collect();
        assert!(others.iter().all(|id| filters.ask(*id, later).is_some()));
        let alive = many.iter().filter(|id| filters.ask(**id, later).is_some()).count();
        assert_eq!(alive, FILTERS / FILTERS_SHARE);
    }

    #[test]
    fn the_bytes_of_filters_are_bounded_too() {
        let (filters, now) = (Filters::default(), Instant::now());
        let one = logs(1000);
        let bytes = one.bytes();
        assert_eq!(bytes, 32_000);
        for number in 0..2_000 {
            filters.add(one.clone(), None, now + Duration::from_millis(number));
        }
        let count = filters.entries().len();
        assert_eq!(count, FILTERS_BYTES / bytes);
        filters.add(one, host(1), now + second(2));
        assert_eq!(filters.entries().len(), count, "one has made room");
    }

    #[test]
    fn a_filter_ends_five_minutes_after_it_was_last_asked() {
        let (filters, start) = (Filters::default(), Instant::now());
        let id = filters.add(BLOCKS, None, start);
        assert!(filters.ask(id, start + second(299)).is_some());
        assert!(filters.ask(id, start + second(599)).is_some());
        assert!(filters.ask(id, start + second(900)).is_none());
        assert!(!filters.remove(id, start + second(900)));
        let (id, other) = (filters.add(BLOCKS, None, start), filters.add(BLOCKS, None, start));
        assert!(filters.remove(id, start) && !filters.remove(id, start));
        filters.add(BLOCKS, None, start + second(301));
        assert_eq!(filters.entries().len(), 1, "{other} is over");
    }

    #[test]
    fn two_who_ask_at_once_are_not_told_the_same() {
        let (filters, now) = (Filters::default(), Instant::now());
        let id = filters.add(BLOCKS, None, now);
        let (_, told) = filters.ask(id, now).expect("there");
        let next = Filter::Blocks { head: B256::repeat_byte(1) };
        assert!(filters.tell(id, told, next.clone()));
        assert!(!filters.tell(id, told, next.clone()));
        let (found, again) = filters.ask(id, now).expect("there");
        assert!(matches!(found, Filter::Blocks { head } if head == B256::repeat_byte(1)));
        assert!(filters.tell(id, again, next));
    }
}
