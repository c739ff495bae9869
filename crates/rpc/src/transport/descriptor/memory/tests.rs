//! Files that are lent, given back, and lent again.

use super::*;
use crate::transport::budget::Shares;
use bytes::Bytes;
use std::time::Duration;

fn files(most_bytes: usize) -> Arc<MemoryFiles> {
    let answers = Budget::new("answers", Shares::whole(most_bytes, 0), Duration::ZERO);
    Arc::new(MemoryFiles::new((16, most_bytes), answers))
}

fn content(lent: &LentFile, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut read = 0;
    while read < len {
        let count = rustix::io::pread(lent.readable(), &mut bytes[read..], read as u64);
        read += count.expect("it can be read");
    }
    bytes
}

fn inode(lent: &LentFile) -> u64 {
    rustix::fs::fstat(lent.readable()).expect("a file").st_ino
}

#[test]
fn a_file_holds_the_answer_and_clients_cannot_change_it() {
    let slices: Vec<Bytes> =
        (0..5000_u32).map(|at| vec![at as u8; 1 + at as usize % 700].into()).collect();
    let pieces = Pieces::from(slices);
    let lent = files(1 << 30).fill(&pieces).expect("written").expect("there is room");
    assert_eq!(content(&lent, pieces.len_bytes()), pieces.to_vec());
    assert!(rustix::io::pwrite(lent.readable(), b"x", 0).is_err());
    let writable = &lent.file.as_ref().expect("there").writable;
    assert!(rustix::fs::ftruncate(writable, 1).is_err(), "it cannot shrink");
}

#[test]
fn a_large_answer_is_copied_by_two_threads() {
    let shared = SHARED_COPY_BYTES;
    for len in [shared - 1, shared, 2 * FIRST_COPY_BYTES, 3 * FIRST_COPY_BYTES + 5] {
        let bytes: Vec<u8> = (0..len).map(|at| (at / 7 + at / 4096) as u8).collect();
        let slices: Vec<_> = bytes.chunks(611).map(Bytes::copy_from_slice).collect();
        let lent = files(1 << 30).fill(&slices.into()).expect("written").expect("there is room");
        assert!(content(&lent, len) == bytes, "{len} bytes");
    }
}

#[test]
fn a_thread_that_leaves_a_processor_may_come_back() {
    let all = sched_getaffinity(None).expect("known");
    let left = (0..10).any(|_| {
        let here = sched_getcpu();
        leave_processor();
        assert_eq!(sched_getaffinity(None).expect("known"), all);
        sched_getcpu() != here
    });
    assert_eq!(left, all.count() > 1);
}

#[test]
fn files_are_used_again_and_the_best_one_first() {
    let files = files(1 << 20);
    let lend =
        |len: usize| files.fill(&vec![1; len].into()).expect("written").expect("there is room");
    let (small, large) = (lend(1000), lend(9000));
    let (small_inode, large_inode) = (inode(&small), inode(&large));
    assert_ne!(small_inode, large_inode);
    small.give_back();
    large.give_back();
    let lend_again = |len| {
        let lent = lend(len);
        let inode = inode(&lent);
        lent.give_back();
        inode
    };
    assert_eq!(lend_again(900), small_inode);
    assert_eq!(lend_again(1126), large_inode);
    // The largest grows.
    assert_eq!(lend_again(20_000), large_inode);
    assert_eq!(files.state().bytes, 1_062 + 21_250);
}

#[test]
fn a_file_that_is_not_given_back_is_not_used_again() {
    let files = files(1 << 20);
    let lent = files.fill(&vec![1; 1000].into()).expect("written").expect("there is room");
    let kept = rustix::io::dup(lent.readable()).expect("a descriptor");
    drop(lent);
    assert!(files.state().idle.is_empty());
    assert_eq!(files.state().bytes, 0);
    let other = files.fill(&vec![2; 1000].into()).expect("written").expect("there is room");
    let mut first = [0];
    rustix::io::pread(&kept, &mut first, 0).expect("it is still there");
    assert_eq!(first, [1]);
    drop(other);
}

#[test]
fn the_bound_holds() {
    let files = files(10_000);
    let lend = |len: usize| files.fill(&vec![1; len].into()).expect("written");
    let first = lend(6000).expect("there is room");
    assert!(lend(6000).is_none());
    let second = lend(3000).expect("there is room");
    first.give_back();
    second.give_back();
    let all = lend(10_000).expect("idle files make room");
    assert!(lend(1).is_none());
    all.give_back();
    assert!(lend(10_001).is_none());
    assert!(lend(1).is_some());
    assert!(files.state().bytes <= 10_000);
}

/// Each takes two descriptors.
#[test]
fn so_many_files_are_lent_at_a_time() {
    let files = files(1 << 20);
    let lend = || files.fill(&vec![1; 10].into()).expect("written");
    let mut lent: Vec<_> = std::iter::from_fn(lend).take(100).collect();
    assert_eq!(lent.len(), 16);
    lent.pop().expect("there are some").give_back();
    lent.pop();
    let again = [lend().expect("it is idle"), lend().expect("there is room")];
    assert!(lend().is_none());
    again.into_iter().next().expect("two").give_back();
    drop(lent);
    assert_eq!(files.state().count, 1, "the idle one is there");
    files.free_idle();
    let state = files.state();
    assert_eq!((state.count, state.bytes), (0, 0));
}

#[test]
fn digits_are_not_passed_in_a_file() {
    let mut pieces = Pieces::default();
    pieces.push_hex(vec![1]);
    assert!(files(100).fill(&pieces).expect("no fault").is_none());
}
