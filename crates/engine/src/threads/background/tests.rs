use super::*;
#[cfg(target_os = "linux")]
use std::time::Duration;

#[test]
#[cfg(target_os = "linux")]
fn a_background_thread_has_the_lowest_priority_and_short_turns() {
    let nice = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
    let before = nice();
    let yielding = std::thread::spawn(move || {
        lower_priority();
        (nice(), turn())
    });
    let (lowered, turn) = yielding.join().unwrap();
    assert_eq!((lowered, nice()), (limits::BACKGROUND_NICE, before));
    // Systems that do not know the length of a turn say 0.
    assert!([Duration::ZERO, limits::BACKGROUND_TURN].contains(&turn), "{turn:?}");
}

/// How long the calling thread's turn is, if the system knows.
#[cfg(target_os = "linux")]
fn turn() -> Duration {
    let (mut bytes, length) = ([0u8; 48], 48);
    #[allow(unsafe_code, reason = "the system writes a structure of so many bytes")]
    // SAFETY: the bytes outlive the call, and it is told how many they are.
    let outcome =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, bytes.as_mut_ptr(), length, 0) };
    assert_eq!(outcome, 0);
    Duration::from_nanos(u64::from_ne_bytes(bytes[24..32].try_into().unwrap()))
}

#[test]
fn background_work_gives_way_to_a_block_and_to_threads_that_wait() {
    let background = Background::default();
    assert!(!background.gives_way());
    let block = background.block_runs();
    assert!(background.gives_way() && !background.is_wanted());
    drop(block);
    let [one, other] = [background.want(), background.want()];
    drop(one);
    assert!(background.gives_way() && background.is_wanted());
    drop(other);
    assert!(!background.gives_way());
}
