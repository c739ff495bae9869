use super::*;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::sync::Arc;
use std::sync::mpsc::channel;

#[test]
fn helping_threads_are_kept_off_where_processors_are_few() {
    let before = sched_getaffinity(None).unwrap();
    let affinity = Arc::<Affinity>::default();
    let (ask, asked) = channel::<()>();
    let (answer, answered) = channel();
    let thread = std::thread::spawn({
        let affinity = affinity.clone();
        move || {
            affinity.join();
            answer.send(gettid()).unwrap();
            asked.recv().unwrap_err();
        }
    });
    let other = Some(answered.recv().unwrap());
    assert_eq!(sched_getaffinity(other).unwrap(), before);
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    // It stays here while it is looked.
    sched_setaffinity(None, &here).unwrap();
    affinity.keep_off();
    let mut others = before;
    others.unset(sched_getcpu());
    let is_few = (1..crate::limits::FEW_PROCESSORS as u32).contains(&others.count());
    let expected = if is_few { others } else { before };
    assert_eq!(sched_getaffinity(other).unwrap(), expected);
    sched_setaffinity(None, &before).unwrap();
    drop(ask);
    thread.join().unwrap();
}
