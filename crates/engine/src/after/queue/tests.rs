use super::Queue;
use crate::limits::{SEAL_AFTER_CHOICE, SEAL_AFTER_VERDICT};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[test]
fn a_block_is_sealed_after_the_fork_choice_or_when_none_comes_or_the_next_block_does() {
    let queue = Queue::default();
    let left = |at: Instant| queue.state().time_left(at);
    let before = Instant::now();
    queue.push('a');
    let after = Instant::now();
    assert!(left(before) >= SEAL_AFTER_VERDICT);
    assert_eq!(left(after + SEAL_AFTER_VERDICT), Duration::ZERO);

    queue.push('b');
    assert_eq!(left(after + SEAL_AFTER_VERDICT), Duration::ZERO, "the first block goes on waiting");

    queue.fork_choice_changed();
    assert_eq!(left(Instant::now() + SEAL_AFTER_CHOICE), Duration::ZERO);

    queue.push('c');
    queue.seal_now();
    assert_eq!(left(before), Duration::ZERO);
    assert_eq!((queue.next_block(), queue.next_block()), (Some('a'), Some('b')));
    queue.close();
    assert_eq!((queue.next_block(), queue.next_block()), (Some('c'), None));
}

#[test]
fn a_fork_choice_makes_no_block_wait_longer() {
    let queue = Queue::default();
    queue.push('a');
    queue.seal_now();
    queue.fork_choice_changed();
    assert_eq!(queue.state().time_left(Instant::now()), Duration::ZERO);
}

/// A block wakes the thread that seals, though another waits on the same condition.
#[test]
fn a_block_wakes_the_thread_that_seals_beside_one_that_waits_for_the_end() {
    let queue = Queue::default();
    std::thread::scope(|scope| {
        let (send, sealed) = mpsc::channel();
        scope.spawn(|| queue.wait_open(Duration::MAX));
        scope.spawn(|| {
            std::iter::from_fn(|| queue.next_block()).for_each(|block| send.send(block).unwrap());
            drop(send);
        });
        let sealed: Vec<i32> = (0..20)
            .map_while(|block| {
                queue.push(block);
                sealed.recv_timeout(Duration::from_secs(60)).ok()
            })
            .collect();
        queue.close();
        assert!(sealed.into_iter().eq(0..20), "a block stayed where it was");
    });
}
