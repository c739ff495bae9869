//! Evictions of holders that make no progress.

use super::*;

/// Soon over, but not when a test goes on at once.
const TIME: Duration = EVICTION_PAUSE;

async fn is_evicted(holder: &Notify) -> bool {
    timeout(Duration::ZERO, holder.notified()).await.is_ok()
}

#[tokio::test]
async fn a_stalled_holder_is_evicted_and_only_when_others_wait() {
    let budget = MemoryBudget::new(4 * BUDGET_UNIT_BYTES, TIME);
    let holders: [Arc<Notify>; 4] = Default::default();
    let take = |at: usize| budget.try_reserve(BUDGET_UNIT_BYTES, &holders[at]);
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
    let mut taken = pin!(budget.reserve(BUDGET_UNIT_BYTES, &other));
    assert!(timeout(EVICTION_PAUSE * 3 / 2, &mut taken).await.is_err());
    assert!(is_evicted(&holders[2]).await, "its time was over first");
    assert!(!is_evicted(&holders[1]).await);
    reservations[2] = None;
    drop(taken.await);
    assert!(take(0).is_some());
    assert!(!is_evicted(&holders[1]).await);
    // All are needed: those that have not begun keep their reservations.
    let mut taken = pin!(budget.reserve(4 * BUDGET_UNIT_BYTES, &other));
    assert!(timeout(4 * EVICTION_PAUSE, &mut taken).await.is_err());
    assert!(is_evicted(&holders[1]).await);
    for at in [0, 3] {
        assert!(!is_evicted(&holders[at]).await);
    }
}

#[tokio::test]
async fn as_many_are_evicted_as_wait() {
    let budget = MemoryBudget::new(64 * BUDGET_UNIT_BYTES, Duration::ZERO);
    let holders: Vec<_> = (0..64).map(|_| Arc::default()).collect();
    let reservations: Vec<_> =
        holders.iter().map(|holder| budget.try_reserve(BUDGET_UNIT_BYTES, holder)).collect();
    reservations.iter().flatten().for_each(Reservation::note_progress);
    let other = Arc::default();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let (budget, other) = (Arc::clone(&budget), Arc::clone(&other));
        waiting.spawn(async move { budget.reserve(1, &other).await });
    }
    assert!(timeout(EVICTION_PAUSE * 3 / 2, waiting.join_next()).await.is_err());
    // One a pause would be one or two.
    for holder in &holders[..32] {
        assert!(is_evicted(holder).await);
    }
}

#[tokio::test]
async fn bytes_read_of_one_answer_are_progress_of_all_of_its_connection() {
    let budget = MemoryBudget::new(2 * BUDGET_UNIT_BYTES, 8 * TIME);
    let unread = UnreadAnswers::default();
    let take =
        || unread.add(budget.try_reserve(BUDGET_UNIT_BYTES, unread.evicted()).expect("free"));
    let _reservations = [take(), take()];
    let other = Arc::default();
    let mut taken = pin!(budget.reserve(1, &other));
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
    let budget = MemoryBudget::new(3 * BUDGET_UNIT_BYTES, 8 * TIME);
    let holders: [Arc<Notify>; 2] = Default::default();
    let reservations = holders
        .each_ref()
        .map(|holder| budget.try_reserve(BUDGET_UNIT_BYTES, holder).expect("free"));
    let [mut grown, kept] = reservations;
    kept.note_progress();
    assert!(kept.exempt());
    grown.grow(BUDGET_UNIT_BYTES).await;
    let other = Arc::default();
    let mut taken = pin!(budget.reserve(1, &other));
    for _ in 0..4 {
        grown.note_progress();
        assert!(timeout(4 * TIME, &mut taken).await.is_err());
    }
    for holder in &holders {
        assert!(!is_evicted(holder).await);
    }
    drop((grown, kept));
    drop(taken.await);
    assert!(budget.try_reserve(3 * BUDGET_UNIT_BYTES, &other).is_some());
}

#[tokio::test]
async fn a_holder_that_needs_more_evicts_others_and_not_itself() {
    let budget = MemoryBudget::new(2 * BUDGET_UNIT_BYTES, Duration::ZERO);
    let holders: [Arc<Notify>; 2] = Default::default();
    let reservations = holders
        .each_ref()
        .map(|holder| budget.try_reserve(BUDGET_UNIT_BYTES, holder).expect("free"));
    let [mut first, second] = reservations;
    first.note_progress();
    // Its call runs, so its time is not bounded.
    assert!(second.exempt());
    {
        let mut grown = pin!(first.grow(BUDGET_UNIT_BYTES));
        assert!(timeout(4 * EVICTION_PAUSE, &mut grown).await.is_err());
        assert!(!is_evicted(&holders[0]).await);
        second.note_progress();
        assert!(timeout(4 * EVICTION_PAUSE, &mut grown).await.is_err());
        assert!(is_evicted(&holders[1]).await);
        drop(second);
        grown.await;
    }
    assert!(!is_evicted(&holders[0]).await);
}

#[tokio::test]
async fn an_evicted_holder_cannot_be_exempt() {
    let budget = MemoryBudget::new(BUDGET_UNIT_BYTES, Duration::ZERO);
    let evicted = Arc::default();
    let reservation = budget.reserve(1, &evicted).await;
    reservation.note_progress();
    assert!(timeout(4 * EVICTION_PAUSE, budget.reserve(1, &evicted)).await.is_err());
    reservation.note_progress();
    assert!(!reservation.exempt());
}
