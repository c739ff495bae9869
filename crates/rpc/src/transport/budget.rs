//! Budgets that all connections of a port share: memory, turns of calls, slots of connections.
//!
//! All of them have the same rules. A connection and an address have a share. Who waits is served
//! in a fair order, and a bounded number waits. Where others wait, a holder that makes no progress
//! is evicted: a thousand clients that send or read a byte now and then keep no other client out.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limits::{BUDGET_UNIT_BYTES, EVICTION_PAUSE, ROOM_BYTES_PER_SECOND};
use crate::log_throttle::LogThrottle;
use crate::pieces::Kept;
use crate::transport::peer::Peer;

/// The permits that so many bytes need of a [`semaphore`] for `most_bytes`: what is longer needs
/// all of them.
pub(crate) fn units(bytes: usize, most_bytes: usize) -> u32 {
    let units = bytes.min(most_bytes).div_ceil(BUDGET_UNIT_BYTES);
    u32::try_from(units).expect("bounds in bytes are below 4 TiB")
}

/// A semaphore for so many bytes.
pub(crate) fn semaphore(most_bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(units(most_bytes, most_bytes) as usize))
}

/// Waits for so many permits.
pub(crate) async fn permits(semaphore: &Arc<Semaphore>, count: u32) -> OwnedSemaphorePermit {
    let permits = Arc::clone(semaphore).acquire_many_owned(count).await;
    permits.expect("these semaphores are never closed")
}

/// A wait for a turn or for memory that took too long, in words for the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy(pub(crate) Duration);

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "busy: this request had no turn for {:?}, try again later", self.0)
    }
}

/// Too many wait for a budget already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

/// How much there is of a budget, and who may have how much. Amounts are bytes, or a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// All there is.
    pub(crate) most: usize,
    /// The most that one connection has, a single reservation aside.
    pub(crate) connection: usize,
    /// The same for one address.
    pub(crate) host: usize,
    /// The most reservations that wait.
    pub(crate) waiting: usize,
    pub(crate) order: Order,
}

/// The order in which those that wait are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The one that waits longest.
    Arrival,
    /// The one that holds least. No holder is evicted: each gives back soon, without being asked.
    LeastFirst,
}

impl Shares {
    /// A quarter for a connection, three quarters for an address.
    pub(crate) const fn quarters(most: usize, waiting: usize) -> Self {
        let (connection, host) = (most.div_ceil(4), most.div_ceil(4) * 3);
        Self { most, connection, host, waiting, order: Order::Arrival }
    }

    /// Everything for each: the clients can be trusted.
    pub(crate) const fn whole(most: usize, waiting: usize) -> Self {
        Self { most, connection: most, host: most, waiting, order: Order::Arrival }
    }

    /// The same, where who holds least is served first.
    pub(crate) const fn least_first(self) -> Self {
        Self { order: Order::LeastFirst, ..self }
    }
}

/// Something that all connections of a port share.
#[derive(Debug)]
pub(crate) struct Budget {
    /// For the log and the table of bounds.
    pub(crate) name: &'static str,
    pub(crate) shares: Shares,
    /// See [`Limits::room_time`](crate::Limits::room_time).
    stall_time: Duration,
    begun: Instant,
    state: Mutex<BudgetState>,
    evictions: LogThrottle,
}

#[derive(Debug, Default)]
struct BudgetState {
    held: usize,
    /// The most that was ever held.
    peak: usize,
    connections: HashMap<u64, Holding>,
    hosts: HashMap<IpAddr, usize>,
    last_id: u64,
    /// In the order of arrival.
    waiting: Vec<Waiter>,
    last_eviction: Option<Instant>,
    /// The holders that have to make progress, by when they had to when this was noted; they may
    /// have made progress since.
    holders: BTreeMap<(u64, u64), Holder>,
}

/// The amount that a connection holds, and how many of its reservations wait.
#[derive(Debug, Default)]
struct Holding {
    amount: usize,
    waiting: usize,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    peer: Peer,
    amount: usize,
    /// The amount of the reservation that is to grow.
    has: usize,
    standing: Standing,
    changed: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Waits,
    Granted,
    Refused,
}

/// Whose share is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    ByConnection,
    ByHost,
    No,
}

#[derive(Debug)]
struct Holder {
    peer: Peer,
    due: Arc<DueTime>,
    evicted: Arc<Notify>,
}

/// When a holder has to have made progress, in nanoseconds since the budget began. Progress is
/// noted without the budget's lock.
#[derive(Debug)]
struct DueTime {
    at: AtomicU64,
    /// The time under which it is among the holders, which is no later; [`NEVER`] where it is not.
    /// It changes under the budget's lock.
    listed_at: AtomicU64,
}

/// The holder need not make progress.
const NEVER: u64 = u64::MAX;
/// It was evicted.
const EVICTED: u64 = u64::MAX - 1;
/// Added to the time of holders that are evicted only when there is no other.
const LATER: u64 = 1 << 62;

/// A part of a budget, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    peer: Peer,
    amount: usize,
    evicted: Arc<Notify>,
    begun: Instant,
    id: u64,
    due: Arc<DueTime>,
    kept: Vec<Kept>,
}

impl Budget {
    /// Where others wait, a holder is evicted that makes no progress for `stall_time`.
    pub(crate) fn new(name: &'static str, shares: Shares, stall_time: Duration) -> Arc<Self> {
        Arc::new(Self {
            name,
            shares,
            stall_time,
            begun: Instant::now(),
            state: Mutex::default(),
            evictions: LogThrottle::minutely(),
        })
    }

    /// The most that was ever held.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    pub(crate) fn peak(&self) -> usize {
        self.state().peak
    }

    /// How much is held.
    pub(crate) fn held(&self) -> usize {
        self.state().held
    }

    /// Reserves so much, if it is free and no one waits who comes first. `evicted` is notified when
    /// it is to be given back, which is not before [`Reservation::note_progress`] was called.
    pub(crate) fn try_reserve(
        self: &Arc<Self>,
        peer: Peer,
        amount: usize,
        evicted: &Arc<Notify>,
    ) -> Option<Reservation> {
        let amount = amount.min(self.shares.most);
        let is_taken = self.state().try_take(&self.shares, peer, amount, 0);
        is_taken.then(|| self.reservation(peer, amount, evicted))
    }

    /// As [`try_reserve`](Self::try_reserve), once it is free.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        peer: Peer,
        amount: usize,
        evicted: &Arc<Notify>,
    ) -> Result<Reservation, QueueFull> {
        let amount = amount.min(self.shares.most);
        self.take(peer, amount, 0, None).await?;
        Ok(self.reservation(peer, amount, evicted))
    }

    fn reservation(
        self: &Arc<Self>,
        peer: Peer,
        amount: usize,
        evicted: &Arc<Notify>,
    ) -> Reservation {
        let id = self.state().next_id();
        Reservation {
            budget: Arc::clone(self),
            peer,
            amount,
            evicted: Arc::clone(evicted),
            begun: Instant::now(),
            id,
            due: Arc::new(DueTime { at: NEVER.into(), listed_at: NEVER.into() }),
            kept: Vec::new(),
        }
    }

    /// Waits for so much, and evicts holders meanwhile. `own` is the notification of a holder that
    /// has something already.
    async fn take(
        &self,
        peer: Peer,
        amount: usize,
        has: usize,
        own: Option<&Arc<Notify>>,
    ) -> Result<(), QueueFull> {
        let entered = self.state().enter(&self.shares, peer, amount, has)?;
        let Some((id, changed)) = entered else { return Ok(()) };
        // Leaves the queue also when this future is dropped.
        let mut place = QueuePlace { budget: self, id, is_kept: false };
        loop {
            let mut notified = pin!(changed.notified());
            notified.as_mut().enable();
            let standing = self.state().standing(id);
            match standing {
                Standing::Granted => {
                    place.is_kept = true;
                    return Ok(());
                }
                Standing::Refused => return Err(QueueFull),
                Standing::Waits => {}
            }
            match self.shares.order {
                Order::LeastFirst => notified.await,
                Order::Arrival => {
                    self.evict_first(peer, amount, has, own);
                    timeout(EVICTION_PAUSE, notified).await.unwrap_or_default();
                }
            }
        }
    }

    /// Evicts the holder whose time was over first. Each waiter without a reservation evicts one
    /// after the other, since many waiters may need as many reservations. Waiters that hold
    /// something evict one at a time between all of them: each may need what the others hold, and
    /// one eviction may be enough for all. For want of its own share a waiter evicts none but those
    /// who have it, and one at a time too: an address with too many clients changes them seldom. A
    /// waiter does not evict itself, as it is kept from making progress.
    fn evict_first(&self, peer: Peer, amount: usize, has: usize, own: Option<&Arc<Notify>>) {
        let now = self.nanoseconds(Instant::now());
        let mut state = self.state();
        let is_soon = state.last_eviction.is_some_and(|last| last.elapsed() < EVICTION_PAUSE / 2);
        if state.holders.is_empty() {
            return;
        }
        let blocked = state.blocked(&self.shares, peer, amount, has);
        if is_soon && (own.is_some() || blocked != Blocked::No) {
            return;
        }
        let is_candidate = |holder: &Holder| {
            let is_own = own.is_some_and(|own| Arc::ptr_eq(own, &holder.evicted));
            !is_own
                && match blocked {
                    Blocked::ByConnection => holder.peer.connection == peer.connection,
                    Blocked::ByHost => holder.peer.host == peer.host,
                    Blocked::No => true,
                }
        };
        let first = state.take_due(0..=now, &is_candidate);
        let Some(holder) = first.or_else(|| state.take_due(LATER..=LATER + now, &is_candidate))
        else {
            return;
        };
        state.last_eviction = Some(Instant::now());
        drop(state);
        holder.evicted.notify_one();
        if let Some(count) = self.evictions.count() {
            let what = self.name;
            tracing::warn!(count, what, "ended those without progress, since others wait");
        }
    }

    fn nanoseconds(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.begun).as_nanos() as u64
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().expect("nothing panics while it is locked")
    }
}

/// A place in the queue, which is left when it is dropped.
struct QueuePlace<'b> {
    budget: &'b Budget,
    id: u64,
    is_kept: bool,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        if let Some(waiter) = state.leave(self.id)
            && !self.is_kept
        {
            if waiter.standing == Standing::Granted {
                state.give_back(waiter.peer, waiter.amount);
            }
            // Others may have waited behind it.
            state.grant(&self.budget.shares);
        }
    }
}

impl BudgetState {
    const fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn held_by(&self, peer: Peer) -> (usize, usize) {
        let connection = self.connections.get(&peer.connection).map_or(0, |held| held.amount);
        let host = peer.host.and_then(|host| self.hosts.get(&host)).copied().unwrap_or(0);
        (host, connection)
    }

    /// A single reservation may exceed a share, as long as it is the only one.
    fn blocked(&self, shares: &Shares, peer: Peer, amount: usize, has: usize) -> Blocked {
        if peer == Peer::PORT {
            return Blocked::No;
        }
        let (host, connection) = self.held_by(peer);
        if connection > has && connection + amount > shares.connection {
            Blocked::ByConnection
        } else if peer.host.is_some() && host > has && host + amount > shares.host {
            Blocked::ByHost
        } else {
            Blocked::No
        }
    }

    fn try_take(&mut self, shares: &Shares, peer: Peer, amount: usize, has: usize) -> bool {
        let is_free = self.held + amount <= shares.most
            && self.blocked(shares, peer, amount, has) == Blocked::No
            && self.first(shares).is_none();
        if is_free {
            self.add(peer, amount);
        }
        is_free
    }

    fn add(&mut self, peer: Peer, amount: usize) {
        self.held += amount;
        self.peak = self.peak.max(self.held);
        self.connections.entry(peer.connection).or_default().amount += amount;
        if let Some(host) = peer.host {
            *self.hosts.entry(host).or_default() += amount;
        }
    }

    fn give_back(&mut self, peer: Peer, amount: usize) {
        self.held -= amount;
        self.change(peer, |holding| holding.amount -= amount);
        if let Some(host) = peer.host
            && let Some(held) = self.hosts.get_mut(&host)
        {
            *held -= amount;
            if *held == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// Changes what is noted of a connection, and forgets one that has nothing and wants nothing.
    fn change(&mut self, peer: Peer, change: impl FnOnce(&mut Holding)) {
        let holding = self.connections.entry(peer.connection).or_default();
        change(holding);
        if (holding.amount, holding.waiting) == (0, 0) {
            self.connections.remove(&peer.connection);
        }
    }

    /// Takes so much at once, or a place in the queue.
    fn enter(
        &mut self,
        shares: &Shares,
        peer: Peer,
        amount: usize,
        has: usize,
    ) -> Result<Option<(u64, Arc<Notify>)>, QueueFull> {
        if self.try_take(shares, peer, amount, has) {
            return Ok(None);
        }
        if self.waiting.len() >= shares.waiting && !self.displace(peer) {
            return Err(QueueFull);
        }
        let (id, changed) = (self.next_id(), Arc::<Notify>::default());
        let standing = Standing::Waits;
        let waiter = Waiter { id, peer, amount, has, standing, changed: Arc::clone(&changed) };
        self.waiting.push(waiter);
        self.change(peer, |holding| holding.waiting += 1);
        self.grant(shares);
        Ok(Some((id, changed)))
    }

    /// Refuses the last waiter of the connection with the most of them, if it has more than the
    /// newcomer's would have.
    fn displace(&mut self, newcomer: Peer) -> bool {
        let count = |peer: Peer| {
            self.connections.get(&peer.connection).map_or(0, |holding| holding.waiting)
        };
        // Done for each request of a flood: it looks at all connections, but at few waiters.
        let most = self.connections.values().map(|holding| holding.waiting).max().unwrap_or(0);
        if most <= count(newcomer) + 1 {
            return false;
        }
        let is_last =
            |waiter: &&Waiter| waiter.standing == Standing::Waits && count(waiter.peer) == most;
        let Some(id) = self.waiting.iter().rev().find(is_last).map(|waiter| waiter.id) else {
            return false;
        };
        let at = self.place(id).expect("found above");
        self.waiting[at].standing = Standing::Refused;
        self.waiting[at].changed.notify_one();
        true
    }

    /// Gives what is free to those who wait.
    fn grant(&mut self, shares: &Shares) {
        while self.held < shares.most {
            let Some(at) = self.first(shares) else { return };
            let Waiter { peer, amount, .. } = self.waiting[at];
            if self.held + amount > shares.most {
                return;
            }
            self.add(peer, amount);
            self.waiting[at].standing = Standing::Granted;
            self.waiting[at].changed.notify_one();
        }
    }

    /// The waiter who is served first.
    fn first(&self, shares: &Shares) -> Option<usize> {
        let mut first = None;
        // Of an address whose share is used up there may be thousands in a row.
        let mut used_up = None;
        for (at, waiter) in self.waiting.iter().enumerate() {
            let Waiter { peer, amount, has, standing, .. } = *waiter;
            let is_same = used_up == Some((peer.host, amount)) && has == 0;
            if standing != Standing::Waits || is_same {
                continue;
            }
            let blocked = self.blocked(shares, peer, amount, has);
            if blocked == Blocked::ByHost && has == 0 {
                used_up = Some((peer.host, amount));
            }
            if blocked != Blocked::No {
                continue;
            }
            let held = self.held_by(peer);
            if shares.order == Order::Arrival || held == (0, 0) {
                return Some(at);
            }
            if first.is_none_or(|(least, _)| held < least) {
                first = Some((held, at));
            }
        }
        first.map(|(_, at)| at)
    }

    fn standing(&self, id: u64) -> Standing {
        let at = self.place(id).expect("it leaves later");
        self.waiting[at].standing
    }

    fn place(&self, id: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&id, |waiter| waiter.id).ok()
    }

    fn leave(&mut self, id: u64) -> Option<Waiter> {
        let at = self.place(id)?;
        let waiter = self.waiting.remove(at);
        self.change(waiter.peer, |holding| holding.waiting -= 1);
        Some(waiter)
    }

    /// Takes the first holder whose time is in the range. Those who have made progress since they
    /// were listed are listed anew on the way.
    fn take_due(
        &mut self,
        times: std::ops::RangeInclusive<u64>,
        is_candidate: &dyn Fn(&Holder) -> bool,
    ) -> Option<Holder> {
        let mut from = (*times.start(), 0);
        loop {
            let (&key, holder) = self.holders.range(from..=(*times.end(), u64::MAX)).next()?;
            from = (key.0, key.1 + 1);
            let due = holder.due.at.load(Ordering::SeqCst);
            if due != key.0 {
                let holder = self.holders.remove(&key).expect("found above");
                self.list(key.1, holder);
                continue;
            }
            let claim = || {
                let order = Ordering::SeqCst;
                holder.due.at.compare_exchange(due, EVICTED, order, order).is_ok()
            };
            if is_candidate(holder) && claim() {
                return self.holders.remove(&key);
            }
        }
    }

    /// Lists a holder by the time when it is due, if it is.
    fn list(&mut self, id: u64, holder: Holder) {
        holder.due.listed_at.store(NEVER, Ordering::SeqCst);
        // One that is exempt lists itself when it is due again, unless that is seen here.
        let due = holder.due.at.load(Ordering::SeqCst);
        if due < EVICTED {
            holder.due.listed_at.store(due, Ordering::SeqCst);
            self.holders.insert((due, id), holder);
        }
    }
}

impl Reservation {
    /// Reserves so much more, once it is free.
    pub(crate) async fn grow(&mut self, amount: usize) -> Result<(), QueueFull> {
        let budget = Arc::clone(&self.budget);
        let amount = amount.min(budget.shares.most - self.amount);
        budget.take(self.peer, amount, self.amount, Some(&self.evicted)).await?;
        self.amount += amount;
        Ok(())
    }

    /// Reserves so much more, if it is free.
    pub(crate) fn try_grow(&mut self, amount: usize) -> bool {
        let shares = self.budget.shares;
        let has = self.amount;
        let is_free = amount == 0 || self.budget.state().try_take(&shares, self.peer, amount, has);
        self.amount += if is_free { amount } else { 0 };
        is_free
    }

    pub(crate) const fn amount(&self) -> usize {
        self.amount
    }

    /// Keeps values until this is dropped.
    pub(crate) fn keep(&mut self, values: &[Kept]) {
        self.kept.extend_from_slice(values);
    }

    /// Notes that the holder made progress. It has to make progress again within the budget's stall
    /// time, or is evicted when others wait; and so it is when it takes too long on the whole.
    pub(crate) fn note_progress(&self) {
        let stall_time = self.budget.stall_time;
        let whole = Duration::from_secs_f64(self.amount as f64 / ROOM_BYTES_PER_SECOND);
        let next = Instant::now() + stall_time;
        self.set_due(next.min(self.begun + 8 * stall_time + whole), false);
    }

    /// As [`note_progress`](Self::note_progress), with the time. Who `waits_longer` is evicted only
    /// when there is no other.
    pub(crate) fn set_due(&self, at: Instant, waits_longer: bool) {
        let due = self.budget.nanoseconds(at) + if waits_longer { LATER } else { 0 };
        if !self.change_due(due) || self.due.listed_at.load(Ordering::SeqCst) <= due {
            return;
        }
        let mut state = self.budget.state();
        let listed_at = self.due.listed_at.load(Ordering::SeqCst);
        state.holders.remove(&(listed_at, self.id));
        let (due, evicted) = (Arc::clone(&self.due), Arc::clone(&self.evicted));
        state.list(self.id, Holder { peer: self.peer, due, evicted });
    }

    /// Exempts the holder from eviction, until it notes progress again. False where it was evicted
    /// already.
    pub(crate) fn exempt(&self) -> bool {
        self.change_due(NEVER)
    }

    /// False where the holder was evicted, which stays so.
    fn change_due(&self, due: u64) -> bool {
        let set = |old| (old != EVICTED).then_some(due);
        self.due.at.fetch_update(Ordering::SeqCst, Ordering::SeqCst, set).is_ok()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.holders.remove(&(self.due.listed_at.load(Ordering::SeqCst), self.id));
        state.give_back(self.peer, self.amount);
        state.grant(&self.budget.shares);
    }
}

#[cfg(test)]
mod tests;
