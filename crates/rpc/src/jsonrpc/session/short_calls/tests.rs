use super::*;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::limits::Limits;

/// Shares of two turns for each connection, and room for four calls that wait.
fn budgets() -> Arc<PortBudgets> {
    let limits = Limits { running_calls: 8, waiting_calls: 4, ..Limits::public() };
    Arc::new(PortBudgets::new(&limits))
}

fn call(since: Instant) -> ShortCall {
    let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("free");
    ShortCall { since, message: "{}".into(), permit }
}

#[test]
fn a_session_with_its_share_alone_is_never_refused() {
    let budgets = budgets();
    let [full, other] = [(); 2].map(|()| ShortCalls::new(Arc::clone(&budgets)));
    let waits = || budgets.short_calls.load(Ordering::Relaxed);
    let now = Instant::now();
    assert!(full.push(call(now)).expect("room"), "a runner is to begin");
    for _ in 1..6 {
        assert!(!full.push(call(now)).expect("room"));
    }
    assert_eq!(waits(), 4);
    full.push(call(now)).expect_err("two may run, and four wait");
    assert!(other.push(call(now)).expect("room"));
    assert!(!other.push(call(now)).expect("room"));
    other.push(call(now)).expect_err("two of it wait already");
    // One that runs is still one of them.
    full.next().expect("six wait");
    full.push(call(now)).expect_err("five wait, one runs");
    full.end_call();
    full.push(call(now)).expect("five wait");
    full.clear();
    other.clear();
    assert_eq!(waits(), 0);
}

#[test]
fn a_runner_begins_for_the_first_call_and_for_one_that_waits_long() {
    let calls = ShortCalls::new(budgets());
    let now = Instant::now();
    let long_ago = now.checked_sub(Duration::from_secs(1)).expect("the clock began before");
    assert!(calls.push(call(long_ago)).expect("room"));
    assert!(calls.next().is_some() && calls.next().is_none());
    assert!(!calls.wants_another(), "none waits");
    calls.push(call(long_ago)).expect("room");
    assert!(calls.wants_another(), "it has waited for a second");
    assert!(!calls.wants_another(), "two turns are its share");
    assert!(!calls.end_runner(), "one waits");
    assert!(calls.next().is_some());
    assert!(calls.end_runner() && calls.end_runner());
    assert!(calls.push(call(now)).expect("room"), "there is no runner left");
}

#[test]
fn behind_a_call_in_place_another_runner_begins() {
    let calls = ShortCalls::new(budgets());
    let now = Instant::now();
    assert!(calls.push(call(now)).expect("room"));
    assert!(!calls.push(call(now)).expect("room"));
    assert!(calls.next_in_place().is_none(), "two wait");
    assert!(calls.next().is_some());
    calls.end_call();
    assert!(calls.next_in_place().is_some());
    assert!(calls.push(call(now)).expect("room"), "the runner is busy");
    assert!(!calls.push(call(now)).expect("room"), "the second one is not");
    calls.end_in_place();
    assert!(calls.next_in_place().is_none(), "there are two runners");
    calls.clear();
    assert!(calls.end_runner() && calls.end_runner());
}

#[test]
fn who_waits_for_longest_gives_up_first() {
    let calls = ShortCalls::new(budgets());
    let now = Instant::now();
    let early = now.checked_sub(Duration::from_secs(1)).expect("the clock began before");
    for since in [early, early, now] {
        calls.push(call(since)).expect("room");
    }
    assert_eq!(calls.give_up(Unanswered::Full).len(), 2);
    assert_eq!(calls.give_up(Unanswered::Full).len(), 1);
    assert_eq!(calls.give_up(Unanswered::Full).len(), 0);
    for since in [early, now] {
        calls.push(call(since)).expect("room");
    }
    assert_eq!(calls.give_up(Unanswered::Stopping).len(), 2);
}
