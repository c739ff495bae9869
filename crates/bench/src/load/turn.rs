//! A turn of one endpoint: all its connections at once, on a few threads.
//!
//! All workers take messages from one [`Schedule`], wait until theirs is due, send it and wait for
//! the answer. A connection over HTTP has one worker, which keeps it from call to call; a session
//! that is pipelined has as many workers as calls may be under way.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use super::connection::{CallReply, Connection, failure};
use super::endpoint::{Endpoint, Transport};
use super::mix::Mix;
use super::tally::{CallFailure, Tally};
use super::{Mode, TurnPlan};
use crate::clients::process;

/// Connections that end, one after the other, without an answer; then there is no further one.
const MOST_LOST: u32 = 10;
/// Between two attempts to connect, from the second on.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Between two looks whether the program was interrupted.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Makes the calls of one turn. The connections are opened before the clock starts.
pub(super) fn run(
    endpoint: &Arc<Endpoint>,
    mix: &Arc<Mix>,
    plan: &TurnPlan,
) -> anyhow::Result<Tally> {
    let connections = plan.connections_over(endpoint.transport);
    let threads = plan.threads.min(connections);
    let left = plan.calls.unwrap_or(u64::MAX);
    let turn = Arc::new(TurnState {
        endpoint: Arc::clone(endpoint),
        mix: Arc::clone(mix),
        plan: plan.clone(),
        // Rounded up: it is a rate at most.
        interval: plan.max_rate.map(|rate| Duration::from_nanos((1e9 / rate).ceil() as u64)),
        opened: Barrier::new(threads),
        start: OnceLock::new(),
        schedule: Mutex::new(Schedule { place: 0, due: Duration::ZERO, left }),
    });
    let runtime = |_| Builder::new_current_thread().enable_all().build();
    let runtimes = (0..threads).map(runtime).collect::<io::Result<Vec<_>>>()?;
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let drive = |(thread, runtime)| {
            let (turn, own) = (&turn, (thread..connections).step_by(threads).count());
            scope.spawn(move || drive(turn, &runtime, own))
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
        turn.count_unsent(&mut all);
    }
    Ok(all)
}

/// Drives so many connections on this thread until all calls are done.
fn drive(turn: &Arc<TurnState>, runtime: &Runtime, connections: usize) -> Tally {
    let tally = Arc::new(Mutex::new(Tally::new(turn.mix.calls.len())));
    let new = |_| Arc::new(Channel::new(turn, &tally));
    let channels: Vec<Arc<Channel>> = (0..connections).map(new).collect();
    runtime.block_on(all(channels.iter().map(|channel| Arc::clone(channel).open_first())));
    turn.opened.wait();
    let (begun, used) = (Instant::now(), thread_cpu());
    turn.start.get_or_init(|| begun);
    let workers = turn.plan.workers_over(turn.endpoint.transport);
    let workers = channels.iter().flat_map(|channel| std::iter::repeat_n(channel, workers));
    runtime.block_on(all(workers.map(|channel| Arc::clone(channel).work())));
    let mut tally = lock(&tally).clone();
    tally.busiest = (thread_cpu() - used).as_secs_f64() / begun.elapsed().as_secs_f64();
    tally
}

/// Runs tasks until all have ended, or the program is interrupted.
async fn all(tasks: impl Iterator<Item = impl Future<Output = ()> + Send + 'static>) {
    let mut running: JoinSet<()> = tasks.collect();
    let interrupted = async {
        while !process::interrupted() {
            sleep(LOOK_PAUSE).await;
        }
    };
    tokio::select! {
        () = async { while running.join_next().await.is_some() {} } => {}
        () = interrupted => {}
    }
}

/// The calls of a turn, for all connections. Times are counted from its start.
#[derive(Debug)]
struct TurnState {
    endpoint: Arc<Endpoint>,
    mix: Arc<Mix>,
    plan: TurnPlan,
    /// From one call to the next, where a rate is set.
    interval: Option<Duration>,
    /// All threads have opened their connections, or have tried to.
    opened: Barrier,
    start: OnceLock<Instant>,
    schedule: Mutex<Schedule>,
}

/// The next call.
#[derive(Debug)]
struct Schedule {
    /// Its place in the mix.
    place: usize,
    due: Duration,
    /// Calls that may still be sent.
    left: u64,
}

/// The calls of one message.
#[derive(Debug)]
struct Message {
    place: usize,
    count: usize,
    due: Duration,
}

impl TurnState {
    fn now(&self) -> Duration {
        self.start.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    fn at(&self, time: Duration) -> Instant {
        *self.start.get().unwrap_or(&Instant::now()) + time
    }

    fn is_over(&self) -> bool {
        self.now() >= self.plan.duration
    }

    /// The kinds of the calls of a message.
    fn kinds(&self, message: &Message) -> impl Iterator<Item = usize> + '_ {
        let cycle = &self.mix.cycle;
        let places = message.place..message.place + message.count;
        places.map(|place| usize::from(cycle[place % cycle.len()]))
    }

    /// The calls of the next message; none where there are no more.
    fn take(&self) -> Option<Message> {
        let most = if self.plan.mode == Mode::Batched { self.plan.depth as u64 } else { 1 };
        let interval = self.interval.unwrap_or_default();
        let mut schedule = lock(&self.schedule);
        let count = schedule.left.min(most) as u32;
        // A batch goes when the last of its calls is due.
        let due = schedule.due + interval * count.checked_sub(1)?;
        let message = Message { place: schedule.place, count: count as usize, due };
        schedule.place = (schedule.place + message.count) % self.mix.cycle.len();
        schedule.due += interval * count;
        schedule.left -= u64::from(count);
        Some(message)
    }

    /// Waits until a message is due and the server may be called; `false` where the turn is over
    /// before.
    async fn wait(&self, message: &mut Message, alarm: Option<&Alarm>) -> bool {
        loop {
            let start = self.at(Duration::ZERO);
            let paused = self.endpoint.backoff.until().saturating_duration_since(start);
            let now = self.now();
            if now < paused {
                // We chose to wait: calls are due later, not late.
                message.due = message.due.max(paused);
                let mut schedule = lock(&self.schedule);
                schedule.due = schedule.due.max(paused);
            }
            let until = self.interval.map_or(paused, |_| message.due.max(paused));
            if until <= now {
                return true;
            }
            if until >= self.plan.duration {
                return false;
            }
            match alarm {
                Some(alarm) if alarm.wait(self.at(until)).await.is_ok() => {}
                _ => sleep_until(self.at(until).into()).await,
            }
        }
    }

    /// Counts the calls of a message that was due and not sent: they have waited until the end at
    /// least. `false` where it was not due.
    fn leave_unsent(&self, message: &Message, tally: &mut Tally) -> bool {
        let Some(waited) = self.plan.duration.checked_sub(message.due) else { return false };
        if self.interval.is_none() || self.plan.calls.is_some() || waited.is_zero() {
            return false;
        }
        for kind in self.kinds(message) {
            tally.latencies[kind].push(nanos(waited));
            tally.unsent += 1;
        }
        true
    }

    /// The turn is over: counts all that was due meanwhile and that no worker took.
    fn count_unsent(&self, tally: &mut Tally) {
        while self.take().is_some_and(|message| self.leave_unsent(&message, tally)) {}
    }
}

/// A connection and its state, for its workers.
#[derive(Debug)]
struct Channel {
    turn: Arc<TurnState>,
    /// The counts of the thread.
    tally: Arc<Mutex<Tally>>,
    state: tokio::sync::Mutex<ChannelState>,
}

#[derive(Debug)]
struct ChannelState {
    /// Absent while a worker of HTTP calls over it, and where it was lost.
    connection: Option<Connection>,
    /// Connections that were lost before.
    number: u64,
    /// Connections that were lost since the last answer.
    lost: u32,
    connect_at: Instant,
}

impl Channel {
    fn new(turn: &Arc<TurnState>, tally: &Arc<Mutex<Tally>>) -> Self {
        let state =
            ChannelState { connection: None, number: 0, lost: 0, connect_at: Instant::now() };
        let (turn, tally) = (Arc::clone(turn), Arc::clone(tally));
        Self { turn, tally, state: tokio::sync::Mutex::new(state) }
    }

    async fn open_first(self: Arc<Self>) {
        self.open(&mut *self.state.lock().await).await;
    }

    /// Sends messages, one after the other, until the turn is over.
    async fn work(self: Arc<Self>) {
        let turn = &self.turn;
        let alarm = turn.interval.and_then(|_| Alarm::new().ok());
        while !turn.is_over()
            && let Some(mut message) = turn.take()
        {
            if !turn.wait(&mut message, alarm.as_ref()).await {
                return;
            }
            let Some((number, mut connection)) = self.connect().await else {
                turn.leave_unsent(&message, &mut lock(&self.tally));
                return;
            };
            let from = turn.interval.map_or_else(|| turn.now(), |_| message.due);
            let calls: Vec<_> = turn.kinds(&message).map(|kind| &turn.mix.calls[kind]).collect();
            {
                let mut tally = lock(&self.tally);
                tally.sent += message.count as u64;
                tally.sent_bytes += calls.iter().map(|call| call.bytes as u64).sum::<u64>();
            }
            match connection.exchange(&calls, turn.plan.mode == Mode::Batched).await {
                Ok(reply) => {
                    self.count(reply, &message, from);
                    let mut state = self.state.lock().await;
                    state.lost = 0;
                    if !connection.is_session() {
                        state.connection = Some(connection);
                    }
                }
                Err(error) => {
                    let failure = failure(&error);
                    lock(&self.tally).fail(failure, message.count as u64);
                    // Over a session, the answers to other calls may still come.
                    if failure != CallFailure::Timeout || !connection.is_session() {
                        self.lose(&mut *self.state.lock().await, number);
                    }
                }
            }
        }
    }

    /// The connection and its number; another one where the last was lost, and none where the turn
    /// is over before there is one, or the connection was given up.
    async fn connect(&self) -> Option<(u64, Connection)> {
        let mut state = self.state.lock().await;
        while state.connection.is_none() {
            let end = self.turn.at(self.turn.plan.duration);
            sleep_until(state.connect_at.min(end).into()).await;
            if self.turn.is_over() || state.lost >= MOST_LOST {
                return None;
            }
            self.open(&mut state).await;
        }
        let connection = match &state.connection {
            Some(Connection::Session(client)) => Connection::Session(client.clone()),
            _ => state.connection.take()?,
        };
        Some((state.number, connection))
    }

    async fn open(&self, state: &mut ChannelState) {
        match self.turn.endpoint.open(self.turn.plan.timeout).await {
            Ok(connection) => state.connection = Some(connection),
            Err(error) => {
                let mut tally = lock(&self.tally);
                if tally.count(CallFailure::Connect) == 0 {
                    eprintln!("{error}");
                }
                tally.fail(CallFailure::Connect, 1);
                drop(tally);
                self.lose(state, state.number);
            }
        }
    }

    /// The connection of this number has ended, and its calls were counted.
    fn lose(&self, state: &mut ChannelState, number: u64) {
        if state.number != number {
            return;
        }
        state.connection = None;
        state.number += 1;
        state.lost += 1;
        let pause = if state.lost > 1 { RECONNECT_PAUSE } else { Duration::ZERO };
        state.connect_at = Instant::now() + pause;
        if state.lost == MOST_LOST {
            lock(&self.tally).given_up += 1;
        }
    }

    /// Counts the results and failures of a message, whose latency counts from `from`.
    fn count(&self, reply: CallReply, message: &Message, from: Duration) {
        let (now, backoff) = (self.turn.now(), &self.turn.endpoint.backoff);
        let mut tally = lock(&self.tally);
        tally.received_bytes += reply.received_bytes as u64;
        let mut is_limited = false;
        for (result, kind) in reply.results.into_iter().zip(self.turn.kinds(message)) {
            match result {
                Ok(result) => {
                    tally.latencies[kind].push(nanos(now.saturating_sub(from)));
                    tally.results[kind] += 1;
                    tally.nulls[kind] += u64::from(result.get() == "null");
                    tally.in_time += u64::from(now <= self.turn.plan.duration);
                    tally.elapsed = tally.elapsed.max(now);
                    backoff.succeeded();
                }
                Err(failure) => {
                    is_limited |= failure == CallFailure::Limited;
                    tally.fail(failure, 1);
                }
            }
        }
        if is_limited {
            tally.paused += backoff.extend(reply.retry_after, Instant::now());
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

impl TurnPlan {
    /// HTTP/1.1 has a connection for each call that is under way, and keeps it for the next one.
    pub(super) const fn connections_over(&self, transport: Transport) -> usize {
        match (self.mode, transport) {
            (Mode::Pipelined, Transport::Http) => self.connections * self.depth,
            _ => self.connections,
        }
    }

    /// Workers of a connection.
    const fn workers_over(&self, transport: Transport) -> usize {
        match (self.mode, transport) {
            (Mode::Pipelined, Transport::WebSocket | Transport::Ipc) => self.depth,
            _ => 1,
        }
    }
}
