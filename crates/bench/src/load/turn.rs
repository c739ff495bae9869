//! A turn of one endpoint: all its connections at once, on a few threads.
//!
//! A [`Lane`] is a connection with a schedule. Its workers take the next message from the schedule,
//! wait until that is due, send it and wait for the answer. There is one worker a lane, but for
//! calls that are pipelined over a socket: there, as many as calls may be on their way.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use super::endpoint::{Endpoint, Wire};
use super::link::{Answered, Link, failure};
use super::mix::Mix;
use super::tally::{Failure, Tally};
use super::{Mode, Plan};
use crate::clients::process;

/// Connections that end, one after the other, without an answer; then there is no further one.
const MOST_LOST: u32 = 10;
/// Between two attempts to connect, from the second on.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Between two looks whether the program was interrupted.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Makes the calls of one turn. The connections are opened before the clock starts.
pub(super) fn run(endpoint: &Arc<Endpoint>, mix: &Arc<Mix>, plan: &Plan) -> anyhow::Result<Tally> {
    let lanes = plan.lanes(endpoint.wire);
    let turn = Arc::new(Turn {
        endpoint: Arc::clone(endpoint),
        mix: Arc::clone(mix),
        plan: plan.clone(),
        lanes,
        opened: Barrier::new(lanes),
        start: OnceLock::new(),
    });
    let threads = plan.threads.min(lanes);
    let runtime = |_| Builder::new_current_thread().enable_all().build();
    let runtimes = (0..threads).map(runtime).collect::<io::Result<Vec<_>>>()?;
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let drive = |(thread, runtime)| {
            let turn = &turn;
            scope.spawn(move || drive(turn, runtime, (thread..lanes).step_by(threads)))
        };
        let running: Vec<_> = (0..).zip(runtimes).map(drive).collect();
        running.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let mut all = Tally::new(mix.calls.len());
    for tally in tallies {
        all.elapsed = all.elapsed.max(tally.elapsed);
        all.add(&tally);
    }
    if plan.calls.is_none() {
        all.elapsed = plan.duration;
    }
    Ok(all)
}

/// Drives the lanes of these numbers until all calls are done.
fn drive(turn: &Arc<Turn>, runtime: Runtime, numbers: impl Iterator<Item = usize>) -> Tally {
    let thread = Arc::new(Thread {
        begun: OnceLock::new(),
        tally: Mutex::new(Tally::new(turn.mix.calls.len())),
    });
    runtime.block_on(async {
        let mut lanes = JoinSet::new();
        for number in numbers {
            lanes.spawn(Arc::new(Lane::new(turn, &thread, number)).run());
        }
        let interrupted = async {
            while !process::interrupted() {
                sleep(LOOK_PAUSE).await;
            }
        };
        tokio::select! {
            () = async { while lanes.join_next().await.is_some() {} } => {}
            () = interrupted => {}
        }
    });
    let mut tally = lock(&thread.tally).clone();
    if let Some((begun, cpu)) = thread.begun.get() {
        tally.busiest = (thread_cpu() - *cpu).as_secs_f64() / begun.elapsed().as_secs_f64();
    }
    tally
}

/// What all lanes share.
#[derive(Debug)]
struct Turn {
    endpoint: Arc<Endpoint>,
    mix: Arc<Mix>,
    plan: Plan,
    lanes: usize,
    /// All lanes have opened their connection, or have tried to.
    opened: Barrier,
    start: OnceLock<Instant>,
}

/// What the lanes of a thread share.
#[derive(Debug)]
struct Thread {
    /// When its calls began, and the processor time that it had used by then.
    begun: OnceLock<(Instant, Duration)>,
    tally: Mutex<Tally>,
}

/// A connection with a schedule. Times are nanoseconds from the start of the turn.
#[derive(Debug)]
struct Lane {
    turn: Arc<Turn>,
    thread: Arc<Thread>,
    schedule: Mutex<Schedule>,
    connection: tokio::sync::Mutex<Connection>,
    /// From one call to the next: zero where no rate is set.
    interval: u64,
}

#[derive(Debug)]
struct Schedule {
    /// The place in the mix.
    place: usize,
    /// When the next call is due.
    due: u64,
    /// Calls that may still be sent.
    left: u64,
    is_given_up: bool,
}

/// A connection, or when there may be another one.
#[derive(Debug)]
struct Connection {
    link: Option<Link>,
    /// How many were lost before.
    number: u64,
    /// How many were lost since the last answer.
    lost: u32,
    connect_at: Instant,
}

/// The calls of one message.
#[derive(Debug)]
struct Ticket {
    place: usize,
    count: usize,
    due: u64,
}

impl Lane {
    fn new(turn: &Arc<Turn>, thread: &Arc<Thread>, number: usize) -> Self {
        let (plan, lanes) = (&turn.plan, turn.lanes as u64);
        let interval = plan.max_rate.map_or(0, |rate| (1e9 * lanes as f64 / rate) as u64);
        let left = plan
            .calls
            .map_or(u64::MAX, |calls| calls / lanes + u64::from((number as u64) < calls % lanes));
        let schedule = Schedule {
            // Connections begin at different calls.
            place: turn.mix.cycle.len() * number / turn.lanes,
            due: interval * number as u64 / lanes,
            left,
            is_given_up: false,
        };
        let connection = Connection { link: None, number: 0, lost: 0, connect_at: Instant::now() };
        Self {
            turn: Arc::clone(turn),
            thread: Arc::clone(thread),
            schedule: Mutex::new(schedule),
            connection: tokio::sync::Mutex::new(connection),
            interval,
        }
    }

    async fn run(self: Arc<Self>) {
        self.open(&mut *self.connection.lock().await).await;
        self.turn.opened.wait().await;
        self.turn.start.get_or_init(Instant::now);
        self.thread.begun.get_or_init(|| (Instant::now(), thread_cpu()));
        let mut workers = JoinSet::new();
        for _ in 0..self.turn.plan.workers(self.turn.endpoint.wire) {
            workers.spawn(Arc::clone(&self).work());
        }
        while workers.join_next().await.is_some() {}
        self.end();
    }

    fn now(&self) -> u64 {
        self.turn.start.get().map_or(0, |start| nanos(start.elapsed()))
    }

    fn at(&self, time: u64) -> Instant {
        *self.turn.start.get().unwrap_or(&Instant::now()) + Duration::from_nanos(time)
    }

    fn is_over(&self) -> bool {
        self.now() >= nanos(self.turn.plan.duration) || lock(&self.schedule).is_given_up
    }

    fn batch_len(&self) -> u64 {
        if self.turn.plan.mode == Mode::Batched { self.turn.plan.depth as u64 } else { 1 }
    }

    /// Sends what is due, one message after the other, until the turn is over.
    async fn work(self: Arc<Self>) {
        let alarm = if self.interval > 0 { Alarm::new().ok() } else { None };
        while let Some(mut ticket) = self.take() {
            if !self.wait(&mut ticket, alarm.as_ref()).await {
                return;
            }
            let Some((number, mut link)) = self.connect().await else {
                return self.leave_unsent(&ticket);
            };
            let sent = self.now();
            let from = if self.interval > 0 { ticket.due } else { sent };
            let kinds = || self.kinds(ticket.place, ticket.count);
            let calls: Vec<_> = kinds().map(|kind| &self.turn.mix.calls[kind]).collect();
            {
                let mut tally = lock(&self.thread.tally);
                tally.sent += ticket.count as u64;
                tally.sent_bytes += calls.iter().map(|call| call.bytes as u64).sum::<u64>();
            }
            let is_batch = self.turn.plan.mode == Mode::Batched;
            match link.exchange(&calls, is_batch).await {
                Ok(answered) => {
                    self.count(answered, kinds(), from);
                    let mut connection = self.connection.lock().await;
                    connection.lost = 0;
                    if link.share().is_none() {
                        connection.link = Some(link);
                    }
                }
                Err(error) => {
                    let failure = match failure(&error) {
                        Failure::Connect => Failure::Closed,
                        failure => failure,
                    };
                    lock(&self.thread.tally).fail(failure, ticket.count as u64);
                    // Over a socket, the answers to other calls may still come.
                    if failure != Failure::Timeout || link.share().is_none() {
                        self.lose(&mut *self.connection.lock().await, number);
                    }
                }
            }
        }
    }

    /// The calls of the next message; none where there are no more.
    fn take(&self) -> Option<Ticket> {
        if self.is_over() {
            return None;
        }
        let mut schedule = lock(&self.schedule);
        let count = schedule.left.min(self.batch_len());
        // A batch goes when the last of its calls is due.
        let due = schedule.due + self.interval * count.checked_sub(1)?;
        let ticket = Ticket { place: schedule.place, count: count as usize, due };
        schedule.place = (schedule.place + ticket.count) % self.turn.mix.cycle.len();
        schedule.due += self.interval * count;
        schedule.left -= count;
        Some(ticket)
    }

    fn kinds(&self, place: usize, count: usize) -> impl Iterator<Item = usize> + '_ {
        let cycle = &self.turn.mix.cycle;
        (place..place + count).map(|place| usize::from(cycle[place % cycle.len()]))
    }

    /// Waits until a message is due and the server is not to be left alone; `false` where the turn
    /// is over before.
    async fn wait(&self, ticket: &mut Ticket, alarm: Option<&Alarm>) -> bool {
        let end = nanos(self.turn.plan.duration);
        loop {
            let paused = self.turn.endpoint.patience.until();
            let paused = nanos(paused.saturating_duration_since(self.at(0)));
            let now = self.now();
            if now < paused {
                // We chose to wait: calls are due later, not late.
                ticket.due = ticket.due.max(paused);
                let mut schedule = lock(&self.schedule);
                schedule.due = schedule.due.max(paused);
            }
            let until = if self.interval > 0 { ticket.due.max(paused) } else { paused };
            if until <= now {
                return true;
            }
            if until >= end {
                return false;
            }
            match alarm {
                Some(alarm) if alarm.wait(self.at(until)).await.is_ok() => {}
                _ => sleep_until(self.at(until).into()).await,
            }
        }
    }

    /// The connection and its number; another one where the last was lost, and none where the turn
    /// is over before there is one.
    async fn connect(&self) -> Option<(u64, Link)> {
        let mut connection = self.connection.lock().await;
        while connection.link.is_none() {
            let end = self.at(nanos(self.turn.plan.duration).min(u64::MAX / 2));
            sleep_until(connection.connect_at.min(end).into()).await;
            if self.is_over() {
                return None;
            }
            self.open(&mut connection).await;
        }
        let shared = connection.link.as_ref().and_then(Link::share);
        Some((connection.number, shared.or_else(|| connection.link.take())?))
    }

    async fn open(&self, connection: &mut Connection) {
        match self.turn.endpoint.open(self.turn.plan.timeout).await {
            Ok(link) => connection.link = Some(link),
            Err(error) => {
                let mut tally = lock(&self.thread.tally);
                if tally.count(Failure::Connect) == 0 {
                    eprintln!("{error}");
                }
                tally.fail(Failure::Connect, 1);
                drop(tally);
                self.lose(connection, connection.number);
            }
        }
    }

    /// The connection of this number has ended, and its calls were counted.
    fn lose(&self, connection: &mut Connection, number: u64) {
        if connection.number != number {
            return;
        }
        connection.link = None;
        connection.number += 1;
        connection.lost += 1;
        let pause = if connection.lost > 1 { RECONNECT_PAUSE } else { Duration::ZERO };
        connection.connect_at = Instant::now() + pause;
        if connection.lost == MOST_LOST {
            lock(&self.schedule).is_given_up = true;
            lock(&self.thread.tally).given_up += 1;
        }
    }

    /// Counts what became of the calls of a message, whose latency counts from `from`.
    fn count(&self, answered: Answered, kinds: impl Iterator<Item = usize>, from: u64) {
        let (now, end) = (self.now(), nanos(self.turn.plan.duration));
        let patience = &self.turn.endpoint.patience;
        let mut tally = lock(&self.thread.tally);
        tally.received_bytes += answered.received_bytes as u64;
        for (outcome, kind) in answered.outcomes.into_iter().zip(kinds) {
            match outcome {
                Ok(result) => {
                    tally.latencies[kind].push(now.saturating_sub(from));
                    tally.results[kind] += 1;
                    tally.nulls[kind] += u64::from(result.get() == "null");
                    tally.in_time += u64::from(now <= end);
                    tally.elapsed = tally.elapsed.max(Duration::from_nanos(now));
                    patience.answered();
                }
                Err(failure) => tally.fail(failure, 1),
            }
        }
        if let Some(seconds) = answered.limited {
            tally.paused += patience.asked(seconds, Instant::now());
        }
    }

    /// Counts calls that were due and were not sent: they have waited until the end at least.
    fn leave_unsent(&self, ticket: &Ticket) {
        let end = nanos(self.turn.plan.duration);
        if self.interval == 0 || self.turn.plan.calls.is_some() || ticket.due >= end {
            return;
        }
        let mut tally = lock(&self.thread.tally);
        for kind in self.kinds(ticket.place, ticket.count) {
            tally.latencies[kind].push(end - ticket.due);
            tally.unsent += 1;
        }
    }

    /// The turn is over: what was due meanwhile is left.
    fn end(&self) {
        if self.interval == 0 || self.turn.plan.calls.is_some() {
            return;
        }
        let (end, count) = (nanos(self.turn.plan.duration), self.batch_len());
        let mut schedule = lock(&self.schedule);
        loop {
            let due = schedule.due + self.interval * (count - 1);
            if due >= end {
                return;
            }
            self.leave_unsent(&Ticket { place: schedule.place, count: count as usize, due });
            schedule.place += count as usize;
            schedule.due += self.interval * count;
        }
    }
}

/// A timer of the system, which is right to microseconds: tokio's are to a millisecond.
struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(deprecated, reason = "what it warns of is types that change their descriptor")]
        let registered = AsyncFd::new(timer)?;
        Ok(Self(registered))
    }

    async fn wait(&self, until: Instant) -> io::Result<()> {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value = Timespec::try_from(left).map_err(io::Error::other)?;
        let time = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &time)?;
        loop {
            let mut ready = self.0.readable().await?;
            let read = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut [0; 8])?));
            if let Ok(read) = read {
                return read.map(drop);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The processor time of this thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Plan {
    /// Lanes to an endpoint: HTTP/1.1 has a connection for each call that is on its way.
    pub(super) const fn lanes(&self, wire: Wire) -> usize {
        match (self.mode, wire) {
            (Mode::Pipelined, Wire::Http) => self.connections * self.depth,
            _ => self.connections,
        }
    }

    /// Workers of a lane.
    const fn workers(&self, wire: Wire) -> usize {
        match (self.mode, wire) {
            (Mode::Pipelined, Wire::WebSocket | Wire::Ipc) => self.depth,
            _ => 1,
        }
    }
}
