use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

const LONG: u64 = limits::LONG_GAS;

#[test]
fn long_transactions_come_first_and_the_others_soon_before_their_turn() {
    let schedule = Schedule::new(&[1, LONG, LONG - 1, LONG + 1, 1, LONG], Order::Next(2), u64::MAX);
    let next = [(); 4].map(|()| schedule.next().unwrap());
    assert_eq!(next, [3, 1, 5, 0]);
    // One that others run ahead is waited for.
    schedule.put(0, None);
    schedule.put(1, None);
    assert!(schedule.take(0).is_none() && schedule.take(1).is_none());
    assert_eq!(schedule.next(), Some(2));
    let too_soon = std::thread::scope(|scope| {
        let next = scope.spawn(|| schedule.next());
        std::thread::sleep(Duration::from_millis(20));
        let too_soon = next.is_finished();
        schedule.put(2, None);
        assert!(schedule.take(2).is_none());
        schedule.put(3, None);
        assert!(schedule.take(3).is_none());
        assert_eq!(next.join().unwrap(), Some(4));
        too_soon
    });
    assert!(!too_soon);
    assert_eq!(schedule.next(), None);
}

#[test]
fn of_a_listed_block_so_many_long_transactions_come_before_the_last_ones() {
    let gas = [1, LONG, LONG + 1, LONG + 2, 1];
    let begun = |most| {
        let schedule = Schedule::new(&gas, Order::Last(most), u64::MAX);
        std::iter::from_fn(|| schedule.next()).collect::<Vec<_>>()
    };
    assert_eq!(begun(0), [4, 3, 2, 1, 0]);
    assert_eq!(begun(2), [3, 2, 4, 1, 0]);
}

#[test]
fn no_more_begins_once_it_has_stopped() {
    for order in [Order::Last(0), Order::Last(9), Order::Next(9)] {
        let schedule = Schedule::new(&[LONG; 4], order, u64::MAX);
        assert_eq!(schedule.next(), Some(if let Order::Last(0) = order { 3 } else { 0 }));
        drop(schedule.stopping());
        assert_eq!(schedule.next(), None);
    }
}

#[test]
fn no_more_begins_once_enough_gas_is_burned() {
    let schedule = Schedule::new(&[LONG; 4], Order::Last(0), LONG + 1);
    assert_eq!(schedule.next(), Some(3));
    schedule.burned(LONG);
    assert_eq!(schedule.next(), Some(2));
    schedule.burned(LONG);
    assert_eq!(schedule.next(), None);
    // Those that no thread has begun run in their turn.
    assert!(schedule.take(0).is_none() && schedule.take(1).is_none());
}

#[test]
fn who_is_too_far_ahead_ends_when_the_blocks_thread_panics() {
    let schedule = Schedule::new(&[1; 4], Order::Next(2), u64::MAX);
    let panicked = std::thread::scope(|scope| {
        let ahead = scope.spawn(|| std::iter::from_fn(|| schedule.next()).count());
        let block = scope.spawn(|| {
            let _stopping = schedule.stopping();
            while !schedule.left().has_begun[1] {
                std::thread::yield_now();
            }
            panic!("a bug");
        });
        assert_eq!(ahead.join().unwrap(), 2);
        block.join().is_err()
    });
    assert!(panicked);
}

#[test]
fn each_transaction_is_begun_by_one_thread() {
    let rng = &mut StdRng::seed_from_u64(testing::seed());
    for _ in 0..100 {
        let most = rng.random_range(0..9);
        let order = if rng.random() { Order::Last(most) } else { Order::Next(most + 1) };
        let gas: Vec<_> =
            (0..rng.random_range(0..60)).map(|_| LONG / 2 + rng.random_range(0..LONG)).collect();
        let schedule = &Schedule::new(&gas, order, u64::MAX);
        let help = || {
            let begun = std::iter::from_fn(|| schedule.next());
            begun.inspect(|index| schedule.put(*index, None)).collect::<Vec<_>>()
        };
        let mut begun = std::thread::scope(|scope| {
            let helpers = [(); 3].map(|()| scope.spawn(help));
            let mut begun = Vec::new();
            for index in 0..gas.len() {
                assert!(schedule.take(index).is_none());
                // There is no result: no other thread has begun it.
                begun.extend(schedule.ran[index].get().is_none().then_some(index));
            }
            let helped = helpers.map(|helper| helper.join().unwrap());
            begun.extend(helped.concat());
            begun
        });
        begun.sort_unstable();
        assert_eq!(begun, (0..gas.len()).collect::<Vec<_>>());
    }
}
