//! One connection: it keeps as many calls on their way as it is told.

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use super::calls::{Calls, Order};
use super::message::{Broken, Messages, Wire, push_frame_head};
use super::tally::{Failure, Tally};
use super::target::{BEFORE_ID, ID_DIGITS, Mix, Target};
use super::{Mode, Plan};
use crate::stream::Stream;

/// Connections that end, one after the other, without an answer; then there is no further one.
const MOST_LOST: u32 = 10;
/// Between two attempts to connect, from the second on.
const RECONNECT_NANOS: u64 = 100_000_000;
/// A token is good for 60 seconds.
const HEAD_NANOS: u64 = 30_000_000_000;

/// A connection, and the calls that it makes. Times are nanoseconds since `start`.
#[derive(Debug)]
pub(super) struct Lane<'a> {
    target: &'a Target,
    mix: &'a Mix,
    plan: &'a Plan,
    start: Instant,
    connection: Option<(Stream, Messages)>,
    /// Where the next one comes from, while another thread opens it: it may take many round trips,
    /// in which calls of other connections are not to wait.
    opening: Option<Receiver<io::Result<(Stream, Messages)>>>,
    /// Connections lost since the last answer, and when there may be another one.
    lost: u32,
    connect_at: u64,
    head: Vec<u8>,
    head_made: u64,
    /// What is to be written, from `written` on.
    out: Vec<u8>,
    written: usize,
    calls: Calls,
    /// Calls that it may still send.
    left: u64,
    /// Its connection was lost too often for another.
    is_given_up: bool,
    /// Its place in the mix.
    turn: usize,
    /// When the next call is due, and the time from one to the next: zero where none is set.
    due: u64,
    interval: u64,
}

impl<'a> Lane<'a> {
    /// The connection of this number; it is open, or will be tried again.
    pub(super) fn new(target: &'a Target, mix: &'a Mix, plan: &'a Plan, number: usize) -> Self {
        let order = match (plan.mode, target.wire) {
            (Mode::Batched, _) => Order::Batch,
            (_, Wire::Http) => Order::Same,
            _ => Order::Any,
        };
        let count = plan.connections as u64;
        let left = plan
            .calls
            .map_or(u64::MAX, |calls| calls / count + u64::from((number as u64) < calls % count));
        let interval = plan.max_rate.map_or(0, |rate| (1e9 * count as f64 / rate) as u64);
        let mut lane = Self {
            target,
            mix,
            plan,
            start: Instant::now(),
            connection: None,
            opening: None,
            lost: 0,
            connect_at: 0,
            head: target.head(),
            head_made: 0,
            out: Vec::new(),
            written: 0,
            calls: Calls::new(order, mix.kinds.len(), nanos(plan.duration)),
            left,
            is_given_up: false,
            // Connections begin at different calls.
            turn: mix.cycle.len() * number / plan.connections,
            due: interval * number as u64 / count,
            interval,
        };
        lane.opened(target.open(), 0);
        lane
    }

    /// The turn begins.
    pub(super) fn begin(&mut self, start: Instant) {
        self.start = start;
    }

    pub(super) fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    /// What is waited for: the socket, and whether there is something to write.
    pub(super) fn socket(&self) -> Option<(&Stream, bool)> {
        let writes = |stream: &Stream| self.written < self.out.len() || stream.wants_write();
        self.connection.as_ref().map(|(stream, _)| (stream, writes(stream)))
    }

    /// Gives up what took too long, sends what is due, and says when to come again at the latest;
    /// nothing where all is done.
    pub(super) fn step<'s>(&mut self, opener: &Opener<'s, 'a>) -> Option<u64> {
        let now = self.now();
        let limit = nanos(self.plan.timeout);
        if !self.calls.expire(now.saturating_sub(limit)) {
            self.disconnect(now);
        }
        let end = nanos(self.plan.duration);
        let is_over = |lane: &Self| now >= end || lane.left == 0 || lane.is_given_up;
        let next = if is_over(self) { u64::MAX } else { self.send(now, opener).min(end) };
        self.flush(now);
        if is_over(self) {
            self.calls.oldest()?;
        }
        let expiry = self.calls.oldest().map_or(u64::MAX, |sent| sent + limit + 1);
        Some(next.min(expiry))
    }

    /// Sends what there is room for and what is due; when there will be more, unless an answer
    /// makes room before.
    fn send<'s>(&mut self, now: u64, opener: &Opener<'s, 'a>) -> u64 {
        let paused = self.target.patience.until().saturating_duration_since(self.start);
        let paused = nanos(paused);
        if now < paused {
            // We chose to wait: calls are due later, not late.
            self.due = self.due.max(paused);
            return paused;
        }
        if self.connection.is_none() && !self.connect(now, opener) {
            // Whoever opens it wakes us.
            return if self.opening.is_some() { u64::MAX } else { self.connect_at };
        }
        if self.target.wire == Wire::Http && now - self.head_made > HEAD_NANOS {
            (self.head, self.head_made) = (self.target.head(), now);
        }
        let (depth, waiting) = (self.plan.depth, self.calls.len());
        let (messages, count) = match self.plan.mode {
            Mode::Sequential => (usize::from(waiting == 0), 1),
            Mode::Pipelined => (depth.saturating_sub(waiting), 1),
            Mode::Batched => (usize::from(waiting == 0), depth),
        };
        for _ in 0..messages {
            let count = self.left.min(count as u64);
            if count == 0 {
                break;
            }
            // A batch goes when the last of its calls is due.
            let due = self.due + self.interval * (count - 1);
            if self.interval > 0 && due > now {
                return due;
            }
            let from = if self.interval > 0 { due } else { now };
            self.push(count as usize, from, now);
            self.due += self.interval * count;
            self.left -= count;
        }
        u64::MAX
    }

    /// Renders a message of `count` calls.
    fn push(&mut self, count: usize, from: u64, now: u64) {
        let cycle = &self.mix.cycle;
        let (turn, is_batch) = (self.turn, self.plan.mode == Mode::Batched);
        let kinds = (0..count).map(|at| cycle[(turn + at) % cycle.len()]);
        let bodies = kinds.clone().map(|kind| self.mix.kinds[usize::from(kind)].len());
        // With the brackets and the commas of a batch.
        let len = bodies.sum::<usize>() + if is_batch { count + 1 } else { 0 };
        let out = &mut self.out;
        match self.target.wire {
            Wire::Http => {
                out.extend_from_slice(&self.head);
                push_digits(out, len as u64);
                out.extend_from_slice(b"\r\n\r\n");
            }
            Wire::WebSocket => push_frame_head(out, false, true, len),
            Wire::Ipc => {}
        }
        for (at, kind) in kinds.enumerate() {
            if is_batch {
                out.push(if at == 0 { b'[' } else { b',' });
            }
            out.extend_from_slice(BEFORE_ID);
            let id = self.calls.push(kind, from, now);
            push_digits(out, id);
            out.extend_from_slice(&self.mix.kinds[usize::from(kind)].rest);
        }
        if is_batch {
            out.push(b']');
        }
        self.turn = (turn + count) % cycle.len();
    }

    fn flush(&mut self, now: u64) {
        let Some((stream, _)) = &mut self.connection else { return };
        while self.written < self.out.len() {
            match stream.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // What the server said before it closed is still to be read.
                    return self.receive_last(now);
                }
            }
        }
        let flushed = stream.flush();
        self.calls.tally.sent_bytes += self.written as u64;
        self.out.clear();
        self.written = 0;
        if flushed.is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
            self.receive_last(now);
        }
    }

    fn receive_last(&mut self, now: u64) {
        self.out.clear();
        self.written = 0;
        while self.connection.is_some() {
            if !self.receive() {
                self.calls.lost(Failure::Closed);
                self.disconnect(now);
            }
        }
    }

    /// Reads what is there; whether something was.
    pub(super) fn receive(&mut self) -> bool {
        let Some((stream, messages)) = &mut self.connection else { return false };
        let read = messages.read(stream);
        let now = nanos(self.start.elapsed());
        let mut ended = match read {
            Ok(0) => Some(Failure::Closed),
            Ok(count) => {
                self.calls.tally.received_bytes += count as u64;
                None
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => Some(Failure::Closed),
        };
        let results = self.calls.tally.in_time;
        while ended.is_none() {
            match messages.next() {
                Ok(None) => break,
                Ok(Some(message)) if message.is_ping => {
                    let payload = messages.bytes(&message.body);
                    push_frame_head(&mut self.out, true, true, payload.len());
                    self.out.extend_from_slice(payload);
                }
                // What begins like a request is no answer.
                Ok(Some(message)) if messages.wire == Wire::Http && message.status == 0 => {
                    ended = Some(Failure::Malformed);
                }
                Ok(Some(message)) => {
                    self.calls.answered(&message, messages.bytes(&message.body), now);
                    self.lost = 0;
                    ended = message.is_last.then_some(Failure::Closed);
                }
                Err(Broken::Closed) => ended = Some(Failure::Closed),
                Err(Broken::Malformed) => ended = Some(Failure::Malformed),
            }
        }
        if self.calls.tally.in_time > results {
            self.target.patience.answered();
        }
        if let Some(refused) = self.calls.refused.take() {
            let longer = self.target.patience.asked(refused.retry_after, Instant::now());
            self.calls.tally.paused += longer;
        }
        if let Some(failure) = ended {
            self.calls.lost(failure);
            self.disconnect(now);
        }
        true
    }

    /// Opens a connection, or goes on with that; whether there is one.
    fn connect<'s>(&mut self, now: u64, opener: &Opener<'s, 'a>) -> bool {
        if let Some(opening) = &self.opening {
            let opened = match opening.try_recv() {
                Ok(opened) => opened,
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => Err(io::Error::other("it was not tried")),
            };
            self.opening = None;
            return self.opened(opened, now);
        }
        if now >= self.connect_at {
            self.opening = Some(opener.open(self.target));
        }
        false
    }

    fn opened(&mut self, opened: io::Result<(Stream, Messages)>, now: u64) -> bool {
        match opened.and_then(|it| it.0.set_nonblocking().map(|()| it)) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                if self.calls.tally.count(Failure::Connect) == 0 {
                    eprintln!("cannot connect to {}: {error}", self.target);
                }
                self.calls.tally.fail(Failure::Connect, 1);
                self.disconnect(now);
            }
        }
        self.connection.is_some()
    }

    /// The connection has ended, and its calls were counted.
    fn disconnect(&mut self, now: u64) {
        self.connection = None;
        self.out.clear();
        self.written = 0;
        self.lost += 1;
        self.connect_at = now + if self.lost > 1 { RECONNECT_NANOS } else { 0 };
        if self.lost == MOST_LOST {
            self.is_given_up = true;
            self.calls.tally.given_up += 1;
        }
    }

    /// What was counted, after the last step.
    pub(super) fn end(mut self) -> Tally {
        let end = nanos(self.plan.duration);
        if self.interval > 0 && self.left > 0 && self.plan.calls.is_none() {
            // They have waited until now at least. Of a batch the last call counts, as when it is
            // sent.
            let count = if self.plan.mode == Mode::Batched { self.plan.depth as u64 } else { 1 };
            let due = |first: u64| first + self.interval * (count - 1);
            while due(self.due) < end {
                for _ in 0..count {
                    let kind = usize::from(self.mix.cycle[self.turn]);
                    self.turn = (self.turn + 1) % self.mix.cycle.len();
                    self.calls.tally.latencies[kind].push(end - due(self.due));
                    self.calls.tally.unsent += 1;
                }
                self.due += self.interval * count;
            }
        }
        let last = self.calls.last_result;
        let elapsed = if self.plan.calls.is_some() { last } else { end };
        self.calls.tally.elapsed = Duration::from_nanos(elapsed);
        self.calls.tally
    }
}

/// Opens connections on threads of their own, and wakes the thread that waits for them.
#[derive(Debug)]
pub(super) struct Opener<'s, 'a> {
    pub(super) scope: &'s Scope<'s, 'a>,
    pub(super) waker: Arc<UnixStream>,
}

impl<'s, 'a> Opener<'s, 'a> {
    fn open(&self, target: &'a Target) -> Receiver<io::Result<(Stream, Messages)>> {
        let (sender, receiver) = sync_channel(1);
        let waker = Arc::clone(&self.waker);
        self.scope.spawn(move || {
            // Nobody takes it when the turn is over; who has a byte to read already is awake.
            sender.send(target.open()).ok();
            (&*waker).write_all(&[0]).ok();
        });
        receiver
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A number of at most [`ID_DIGITS`] digits.
fn push_digits(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [b'0'; ID_DIGITS];
    let mut start = ID_DIGITS;
    while number > 0 || start == ID_DIGITS {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}
