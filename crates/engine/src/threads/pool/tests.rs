use super::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

fn pool(count: usize) -> ThreadPool {
    ThreadPool::start(count, "test", || ())
}

#[test]
fn as_many_threads_help_as_were_asked() {
    let pool = pool(4);
    for count in 0..=4 {
        // All are at it at once, this thread with them.
        let meet = Barrier::new(count + 1);
        let helped = AtomicUsize::new(0);
        let work = || {
            meet.wait();
            helped.fetch_add(1, Ordering::Relaxed);
        };
        let here = scope(|scope| {
            scope.ask(&pool, count, &work);
            meet.wait();
            7
        });
        assert_eq!((here, helped.into_inner()), (7, count));
    }
}

#[test]
fn who_has_begun_is_waited_for_and_who_has_not_is_not() {
    let pool = pool(1);
    let (begun, end) = (Barrier::new(2), Barrier::new(2));
    let work = || {
        begun.wait();
        end.wait();
    };
    scope(|outer| {
        outer.ask(&pool, 1, &work);
        begun.wait();
        // The only thread is taken.
        let helped = AtomicUsize::new(0);
        let other = || {
            helped.fetch_add(1, Ordering::Relaxed);
        };
        scope(|inner| inner.ask(&pool, 3, &other));
        assert_eq!(helped.into_inner(), 0);
        assert_eq!(pool.queue.state().asked.len(), 0);
        end.wait();
    });
    let left = AtomicUsize::new(100);
    let take = |left: usize| left.checked_sub(1);
    let work = || while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {};
    scope(|scope| {
        scope.ask(&pool, 1, &work);
        work();
    });
    assert_eq!(left.into_inner(), 0);
}

#[test]
fn a_panic_reaches_who_asked_and_the_threads_stay() {
    let pool = pool(2);
    for index in 0..3 {
        let meet = Barrier::new(2);
        let work = || {
            meet.wait();
            panic!("helper {index}");
        };
        let run = AssertUnwindSafe(|| {
            scope(|scope| {
                scope.ask(&pool, 1, &work);
                meet.wait();
            });
        });
        let said = catch_unwind(run).unwrap_err();
        assert_eq!(said.downcast_ref::<String>(), Some(&format!("helper {index}")));
    }
    let run = || scope(|_| panic!("here"));
    let said = catch_unwind(run).unwrap_err();
    assert_eq!(said.downcast_ref::<&str>(), Some(&"here"));
}

#[test]
fn one_scope_has_help_of_several_kinds_from_several_pools() {
    let pools = [pool(2), pool(1)];
    let meet = Barrier::new(4);
    let [one, other] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let count = |counter: &AtomicUsize| {
        meet.wait();
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let (first, second) = (|| count(&one), || count(&other));
    scope(|scope| {
        scope.ask(&pools[0], 2, &first);
        scope.ask(&pools[1], 1, &second);
        meet.wait();
    });
    assert_eq!((one.into_inner(), other.into_inner()), (2, 1));
}
