//! Evictions of holders that make no progress.

use super::*;
use crate::limits::CHUNK_BYTES;
use crate::transport::slot::UnreadAnswers;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Soon over, but not when a test goes on at once.
const TIME: Duration = EVICTION_PAUSE;

/// A budget of which everyone may have all.
fn budget(most: usize, stall_time: Duration) -> Arc<Budget> {
    Budget::new("memory", Shares::whole(most, 64), stall_time)
}

fn peer() -> Peer {
    Peer::new(None)
}

/// The amount that each holds.
const UNIT: usize = 1;

async fn is_evicted(holder: &Notify) -> bool {
    timeout(Duration::ZERO, holder.notified()).await.is_ok()
}

#[tokio::test]
async fn a_stalled_holder_is_evicted_and_only_when_others_wait() {
    let budget = budget(4 * UNIT, TIME);
    let holders: [Arc<Notify>; 4] = Default::default();
    let take = |at: usize| budget.try_reserve(peer(), UNIT, &holders[at]);
    let mut reservations: Vec<_> = (0..4).map(&take).collect();
    assert!(reservations.iter().all(Option::is_some));
    assert!(take(0).is_none());
    for at in [2, 1] {
        reservations[at].iter().for_each(Reservation::note_progress);
    }
    tokio::time::sleep(2 * TIME).await;
    for holder in &holders {
        assert!(!is_evicted(holder).await, "nobody waits");
    }
    let other = Arc::default();
    let mut taken = pin!(budget.reserve(peer(), UNIT, &other));
    assert!(timeout(EVICTION_PAUSE / 2, &mut taken).await.is_err());
    assert!(is_evicted(&holders[2]).await, "its time was over first");
    assert!(!is_evicted(&holders[1]).await);
    reservations[2] = None;
    drop(taken.await);
    assert!(take(0).is_some());
    assert!(!is_evicted(&holders[1]).await);
    // All are needed: those that have not begun keep their reservations.
    let mut taken = pin!(budget.reserve(peer(), 4 * UNIT, &other));
    assert!(timeout(4 * EVICTION_PAUSE, &mut taken).await.is_err());
    assert!(is_evicted(&holders[1]).await);
    for at in [0, 3] {
        assert!(!is_evicted(&holders[at]).await);
    }
}

#[tokio::test]
async fn as_many_are_evicted_as_wait() {
    let budget = budget(64 * UNIT, Duration::ZERO);
    let holders: Vec<_> = (0..64).map(|_| Arc::default()).collect();
    let reservations: Vec<_> =
        holders.iter().map(|holder| budget.try_reserve(peer(), UNIT, holder)).collect();
    reservations.iter().flatten().for_each(Reservation::note_progress);
    let other = Arc::default();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let (budget, other) = (Arc::clone(&budget), Arc::clone(&other));
        waiting.spawn(async move { budget.reserve(peer(), 1, &other).await.expect("it may wait") });
    }
    assert!(timeout(EVICTION_PAUSE / 2, waiting.join_next()).await.is_err());
    // One a pause would be one or two.
    for holder in &holders[..32] {
        assert!(is_evicted(holder).await);
    }
}

#[tokio::test]
async fn bytes_read_of_one_answer_are_progress_of_all_of_its_connection() {
    let budget = budget(2 * UNIT, 8 * TIME);
    let unread = UnreadAnswers::default();
    let take = || unread.add(budget.try_reserve(peer(), UNIT, unread.evicted()).expect("free"));
    let _reservations = [take(), take()];
    let other = Arc::default();
    let mut taken = pin!(budget.reserve(peer(), 1, &other));
    for _ in 0..4 {
        for _ in 0..2 {
            unread.note_read(CHUNK_BYTES / 2);
        }
        assert!(timeout(4 * TIME, &mut taken).await.is_err());
        assert!(!is_evicted(unread.evicted()).await);
    }
    // A little less is too little.
    unread.note_read(CHUNK_BYTES - 1);
    assert!(timeout(6 * TIME, &mut taken).await.is_err());
    assert!(is_evicted(unread.evicted()).await);
}

#[tokio::test]
async fn an_exempt_holder_and_one_that_makes_progress_stay() {
    let budget = budget(3 * UNIT, 8 * TIME);
    let holders: [Arc<Notify>; 2] = Default::default();
    let reservations =
        holders.each_ref().map(|holder| budget.try_reserve(peer(), UNIT, holder).expect("free"));
    let [mut grown, kept] = reservations;
    kept.note_progress();
    assert!(kept.exempt());
    grown.grow(UNIT).await.expect("it may wait");
    let other = Arc::default();
    let mut taken = pin!(budget.reserve(peer(), 1, &other));
    for _ in 0..4 {
        grown.note_progress();
        assert!(timeout(4 * TIME, &mut taken).await.is_err());
    }
    for holder in &holders {
        assert!(!is_evicted(holder).await);
    }
    drop((grown, kept));
    drop(taken.await);
    assert!(budget.try_reserve(peer(), 3 * UNIT, &other).is_some());
}

#[tokio::test]
async fn a_holder_that_needs_more_evicts_others_and_not_itself() {
    let budget = budget(2 * UNIT, Duration::ZERO);
    let holders: [Arc<Notify>; 2] = Default::default();
    let reservations =
        holders.each_ref().map(|holder| budget.try_reserve(peer(), UNIT, holder).expect("free"));
    let [mut first, second] = reservations;
    first.note_progress();
    // Its call runs, so its time is not bounded.
    assert!(second.exempt());
    {
        let mut grown = pin!(first.grow(UNIT));
        assert!(timeout(4 * EVICTION_PAUSE, &mut grown).await.is_err());
        assert!(!is_evicted(&holders[0]).await);
        second.note_progress();
        assert!(timeout(4 * EVICTION_PAUSE, &mut grown).await.is_err());
        assert!(is_evicted(&holders[1]).await);
        drop(second);
        grown.await.expect("it may wait");
    }
    assert!(!is_evicted(&holders[0]).await);
}

#[tokio::test]
async fn an_evicted_holder_cannot_be_exempt() {
    let budget = budget(UNIT, Duration::ZERO);
    let evicted = Arc::default();
    let reservation = budget.reserve(peer(), 1, &evicted).await.expect("it is empty");
    reservation.note_progress();
    assert!(timeout(4 * EVICTION_PAUSE, budget.reserve(peer(), 1, &evicted)).await.is_err());
    reservation.note_progress();
    assert!(!reservation.exempt());
}

fn shares(most: usize, connection: usize, host: usize, waiting: usize) -> Shares {
    Shares { most, connection, host, waiting, order: Order::Arrival }
}

fn from_host(last: u8) -> Peer {
    Peer::new(Some([192, 0, 2, last].into()))
}

#[tokio::test]
async fn a_connection_and_an_address_have_their_shares_and_one_reservation_may_have_more() {
    let budget = Budget::new("memory", shares(16, 4, 8, 64), TIME);
    let take = |peer, amount| budget.try_reserve(peer, amount, &Arc::default());
    let first = from_host(1);
    let held = take(first, 3).expect("it is empty");
    assert!(take(first, 2).is_none(), "more than its share");
    let one_more = take(first, 1).expect("the rest of its share");
    let neighbour = take(from_host(1), 4).expect("it has a share of its own");
    assert!(take(from_host(1), 1).is_none(), "the address has its share");
    let other = take(from_host(2), 8).expect("a single one may have more");
    drop((held, one_more, neighbour, other));
    let mut large = take(first, 12).expect("a single one may have more");
    assert!(large.try_grow(4), "it grows");
    assert!(!large.try_grow(1), "there is no more");
    drop(large);
    assert_eq!((budget.held(), budget.peak()), (0, 16));
}

/// A share that is used up keeps no others from being served.
#[tokio::test]
async fn who_waits_for_its_own_share_is_passed() {
    let budget = Budget::new("turns", shares(4, 1, 3, 64), TIME);
    let (greedy, evicted) = (peer(), Arc::default());
    let turn = budget.reserve(greedy, 1, &evicted).await.expect("free");
    let mut second = pin!(budget.reserve(greedy, 1, &evicted));
    assert!(timeout(Duration::ZERO, &mut second).await.is_err());
    let others: Vec<_> = (0..3)
        .map(|_| budget.try_reserve(peer(), 1, &evicted).expect("three turns are free"))
        .collect();
    // The fourth waits behind the greedy one, and is served before it.
    let mut fourth = pin!(budget.reserve(peer(), 1, &evicted));
    assert!(timeout(Duration::ZERO, &mut fourth).await.is_err());
    drop(others);
    let fourth = fourth.await.expect("it is served");
    assert!(timeout(Duration::ZERO, &mut second).await.is_err());
    drop(turn);
    drop((second.await.expect("it is served"), fourth));
    assert_eq!(budget.held(), 0);
}

#[tokio::test]
async fn who_holds_least_is_served_first() {
    let budget = Budget::new("turns", shares(3, 3, 3, 64).least_first(), TIME);
    let evicted = Arc::default();
    let (busy, idle) = (peer(), peer());
    let take = |peer| budget.reserve(peer, 1, &evicted);
    let [first, _second] = [take(busy).await, take(busy).await];
    let _other = take(peer()).await;
    let mut greedy = pin!(take(busy));
    assert!(timeout(Duration::ZERO, &mut greedy).await.is_err());
    let mut modest = pin!(take(idle));
    assert!(timeout(Duration::ZERO, &mut modest).await.is_err());
    drop(first);
    modest.await.expect("it came last, and holds nothing");
    // Its turn is over at once.
    greedy.await.expect("it is served too");
}

/// The one with the most is refused for a newcomer; a newcomer with as many is refused itself.
#[tokio::test]
async fn a_full_queue_has_a_place_for_who_has_none() {
    let budget = Budget::new("turns", shares(1, 1, 1, 3), TIME);
    let (greedy, evicted) = (peer(), Arc::<Notify>::default());
    let turn = budget.reserve(peer(), 1, &evicted).await.expect("free");
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut waits = Box::pin(budget.reserve(greedy, 1, &evicted));
        assert!(timeout(Duration::ZERO, &mut waits).await.is_err());
        waiting.push(waits);
    }
    assert_eq!(budget.reserve(greedy, 1, &evicted).await.map(drop), Err(QueueFull));
    let mut newcomer = pin!(budget.reserve(peer(), 1, &evicted));
    assert!(timeout(Duration::ZERO, &mut newcomer).await.is_err());
    let last = waiting.pop().expect("there are three");
    assert_eq!(last.await.map(drop), Err(QueueFull), "its place was taken");
    drop(waiting);
    drop(turn);
    newcomer.await.expect("it is served");
}

/// Those who wait for their own share evict no others.
#[tokio::test]
async fn a_share_that_is_used_up_is_no_reason_to_evict_others() {
    let budget = Budget::new("memory", shares(8, 2, 6, 64), Duration::ZERO);
    let (mine, others): (Arc<Notify>, Arc<Notify>) = Default::default();
    let me = peer();
    let holder = budget.try_reserve(peer(), 2, &others).expect("free");
    holder.note_progress();
    let own = budget.try_reserve(me, 2, &mine).expect("free");
    own.note_progress();
    let other = Arc::default();
    let waits = budget.reserve(me, 1, &other);
    assert!(timeout(EVICTION_PAUSE / 2, waits).await.is_err());
    assert!(is_evicted(&mine).await && !is_evicted(&others).await);
}

#[tokio::test]
async fn who_is_to_be_evicted_later_stays_while_there_is_another() {
    let budget = budget(2, Duration::ZERO);
    let (trusted, other): (Arc<Notify>, Arc<Notify>) = Default::default();
    let first = budget.try_reserve(peer(), 1, &trusted).expect("free");
    first.set_due(Instant::now(), true);
    let second = budget.try_reserve(peer(), 1, &other).expect("free");
    second.set_due(Instant::now(), false);
    for (evicted, by) in [(&other, 1), (&trusted, 2)] {
        let other = Arc::default();
        let waits = budget.reserve(peer(), by, &other);
        assert!(timeout(EVICTION_PAUSE / 2, waits).await.is_err());
        assert!(is_evicted(evicted).await);
    }
}

/// Progress of the least possible amount is not enough for ever.
#[tokio::test]
async fn an_answer_has_to_be_read_in_a_time_that_depends_on_its_size() {
    let budget = budget(1, TIME);
    let evicted = Arc::default();
    let reservation = budget.try_reserve(peer(), 1, &evicted).expect("free");
    let mut waits = pin!(async { budget.reserve(peer(), 1, &Arc::default()).await.map(drop) });
    let begun = Instant::now();
    while !is_evicted(&evicted).await {
        reservation.note_progress();
        assert!(timeout(TIME / 4, &mut waits).await.is_err());
        assert!(begun.elapsed() < 200 * TIME, "it is never evicted");
    }
    assert!(begun.elapsed() >= 8 * TIME, "it was evicted too early");
}

/// Holdings of all are as a slow twin counts them, whatever comes and goes.
#[tokio::test]
async fn nothing_is_lost_whatever_comes_and_goes() {
    let mut random = StdRng::seed_from_u64(testing::seed());
    let budget = Budget::new("memory", shares(100, 30, 60, 8), Duration::ZERO);
    let peers: Vec<_> = (0..12).map(|at| from_host(at % 4)).collect();
    let mut held: Vec<Reservation> = Vec::new();
    for _ in 0..3000 {
        let peer = peers[random.random_range(0..peers.len())];
        let amount = random.random_range(1..40);
        match random.random_range(0..6) {
            0 => held.extend(budget.try_reserve(peer, amount, &Arc::default())),
            1 => {
                // Some wait for a moment and go away.
                let other = Arc::default();
                let waits = budget.reserve(peer, amount, &other);
                held.extend(timeout(Duration::ZERO, waits).await.ok().and_then(Result::ok));
            }
            2 if !held.is_empty() => {
                let at = random.random_range(0..held.len());
                held[at].try_grow(amount);
            }
            _ if !held.is_empty() => drop(held.swap_remove(random.random_range(0..held.len()))),
            _ => {}
        }
        let sum: usize = held.iter().map(Reservation::amount).sum();
        assert_eq!(budget.held(), sum);
        assert!(sum <= 100);
        let state = budget.state();
        assert!(state.waiting.is_empty());
        for (host, amount) in &state.hosts {
            let theirs = held.iter().filter(|it| it.peer.host == Some(*host));
            assert_eq!(*amount, theirs.map(Reservation::amount).sum::<usize>());
        }
    }
    drop(held);
    let state = budget.state();
    assert!(state.connections.is_empty() && state.hosts.is_empty() && state.holders.is_empty());
}

#[tokio::test]
async fn a_queue_that_one_host_fills_keeps_no_other_out() {
    let budget = Budget::new("memory", Shares::quarters(4, 2), Duration::from_secs(60));
    let evicted = Arc::<Notify>::default();
    let take = |_| budget.try_reserve(from_host(1), UNIT, &evicted).expect("its share");
    let _held: Vec<_> = (0..3).map(take).collect();
    for _ in 0..2 {
        let (budget, evicted) = (Arc::clone(&budget), Arc::clone(&evicted));
        tokio::spawn(async move { budget.reserve(from_host(1), UNIT, &evicted).await.map(drop) });
    }
    while budget.state().waiting.len() < 2 {
        tokio::task::yield_now().await;
    }
    budget.reserve(from_host(2), UNIT, &evicted).await.expect("its share is free");
}
