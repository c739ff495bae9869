//! A turn of one target: all connections at once, on a few threads.

use std::io::Read;
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use super::Plan;
use super::lane::{Lane, Opener};
use super::tally::Tally;
use super::target::{Mix, Target};
use crate::clients::process;

/// Makes the calls of one turn. The connections are opened before the clock starts.
pub(super) fn run(target: &Target, mix: &Mix, plan: &Plan) -> anyhow::Result<Tally> {
    let open = |number| Lane::new(target, mix, plan, number);
    let mut lanes: Vec<_> = (0..plan.connections).map(open).collect();
    let share = plan.connections.div_ceil(plan.threads);
    let start = Instant::now();
    lanes.iter_mut().for_each(|lane| lane.begin(start));
    let shares: anyhow::Result<Vec<f64>> = std::thread::scope(|scope| {
        let parts: Vec<_> = lanes.chunks_mut(share).collect();
        let threads: Vec<_> = parts.into_iter().map(|lanes| scope.spawn(|| drive(lanes))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let mut tally = Tally::new(mix.kinds.len());
    for lane in lanes {
        let one = lane.end();
        tally.elapsed = tally.elapsed.max(one.elapsed);
        tally.add(&one);
    }
    tally.busiest = shares?.into_iter().fold(0.0, f64::max);
    Ok(tally)
}

/// Drives connections until all calls are done; the share of a processor that it took.
fn drive(lanes: &mut [Lane<'_>]) -> anyhow::Result<f64> {
    let (waker, mut woken) = UnixStream::pair()?;
    waker.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    let waker = Arc::new(waker);
    std::thread::scope(|scope| drive_with(lanes, &Opener { scope, waker }, &mut woken))
}

fn drive_with<'s, 'a>(
    lanes: &mut [Lane<'a>],
    opener: &Opener<'s, 'a>,
    woken: &mut UnixStream,
) -> anyhow::Result<f64> {
    let (start, cpu) = (Instant::now(), thread_cpu());
    // Calls are sent when they are due, not 50 microseconds later.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let mut ready = Vec::new();
    loop {
        let mut wake: Option<u64> = None;
        for lane in &mut *lanes {
            let next = lane.step(opener);
            wake = wake.into_iter().chain(next).min();
        }
        let Some(wake) = wake.filter(|_| !process::interrupted()) else { break };
        let wait = wake.saturating_sub(lanes.first().map_or(0, Lane::now));
        // Whoever has no end has something to wait for: an answer, and it is not late yet.
        let wait = Timespec::try_from(Duration::from_nanos(wait)).ok();
        let mut sockets = Vec::with_capacity(lanes.len() + 1);
        ready.clear();
        for (at, lane) in lanes.iter().enumerate() {
            if let Some((stream, writes)) = lane.socket() {
                let flags = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                sockets.push(PollFd::new(stream, flags));
                ready.push(at);
            }
        }
        sockets.push(PollFd::new(&*woken, PollFlags::IN));
        match poll(&mut sockets, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let was_woken = sockets.pop().is_some_and(|socket| !socket.revents().is_empty());
        let mut sockets = sockets.iter().map(|socket| socket.revents() - PollFlags::OUT);
        ready.retain(|_| sockets.next().is_some_and(|flags| !flags.is_empty()));
        for at in &ready {
            lanes[*at].receive();
        }
        if was_woken {
            // Only that there was something matters.
            while woken.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        }
    }
    Ok((thread_cpu() - cpu).as_secs_f64() / start.elapsed().as_secs_f64())
}

/// The processor time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
