use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};

use super::limits::PROGRESS_LOG_SECONDS;

/// How often a bar is drawn, and the speeds measured.
const TICK: Duration = Duration::from_millis(500);

/// Ticks over which speeds are averaged: what came longer ago says little about now.
const TICKS: usize = 20;

/// Tells how far work on a file is: a bar where the standard error is a terminal, and a line in
/// the log every ten seconds where it is not.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    total_bytes: Option<u64>,
    /// Bytes of the file that were done before.
    begun_at: u64,
    begun: Instant,
    told: Instant,
    now: Counts,
    /// Earlier counts, a tick apart, the oldest first.
    past: VecDeque<(Instant, Counts)>,
    silent: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    bytes: u64,
    blocks: u64,
    gas: u64,
    number: u64,
    accounts: u64,
}

impl Progress {
    /// Begins to tell about `what`, as "importing": about a file of `total_bytes`, if that is
    /// known, of which `done_bytes` are done already.
    pub fn new(what: &'static str, total_bytes: Option<u64>, done_bytes: u64) -> Self {
        let mut progress = Self { what, silent: false, ..Self::silent() };
        if std::io::stderr().is_terminal() {
            let bar = ProgressBar::no_length();
            bar.set_prefix(what);
            progress.bar = Some(bar);
        }
        progress.file(total_bytes, done_bytes);
        progress
    }

    /// It is about a file of `total_bytes`, if that is known, of which `done_bytes` are done
    /// already.
    pub fn file(&mut self, total_bytes: Option<u64>, done_bytes: u64) {
        (self.total_bytes, self.begun_at, self.begun) = (total_bytes, done_bytes, Instant::now());
        self.now.bytes = done_bytes;
        self.past = VecDeque::from([(self.begun, self.now)]);
        let Some(bar) = &self.bar else { return };
        let template = match total_bytes {
            Some(_) => "{prefix} {percent:>3}% {bar:30} {bytes}/{total_bytes} {msg}",
            None => "{prefix} {bytes} {msg}",
        };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is right"));
        bar.set_length(total_bytes.unwrap_or(0));
        bar.set_position(done_bytes);
    }

    /// Tells nothing.
    pub fn silent() -> Self {
        let now = Instant::now();
        Self {
            what: "",
            bar: None,
            total_bytes: None,
            begun_at: 0,
            begun: now,
            told: now,
            now: Counts::default(),
            past: VecDeque::from([(now, Counts::default())]),
            silent: true,
        }
    }

    /// So many bytes of the file are done.
    pub fn bytes(&mut self, done: u64) {
        self.now.bytes = done;
        self.tick();
    }

    /// A block is done.
    pub fn block(&mut self, number: u64, gas_used: u64) {
        self.now.blocks += 1;
        self.now.gas += gas_used;
        self.now.number = number;
        self.tick();
    }

    /// So many accounts are done, all in all.
    pub fn accounts(&mut self, done: u64) {
        self.now.accounts = done;
        self.tick();
    }

    /// Ends the telling, with a line in the log.
    pub fn finish(mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if !self.silent {
            // The speeds of the whole.
            let mut counts = Counts { bytes: self.begun_at, ..Counts::default() };
            counts.number = self.now.number;
            self.past = VecDeque::from([(self.begun, counts)]);
            let (speeds, took) = (self.speeds(), HumanDuration(self.begun.elapsed()));
            tracing::info!("{}: done in {took}{speeds}", self.what);
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        let last = self.past.back().map_or(self.begun, |(time, _)| *time);
        if self.silent || now.duration_since(last) < TICK {
            return;
        }
        self.past.push_back((now, self.now));
        if self.past.len() > TICKS {
            self.past.pop_front();
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.now.bytes);
            bar.set_message(format!("{}{}", self.time_left(), self.speeds()));
        } else if now.duration_since(self.told) >= Duration::from_secs(PROGRESS_LOG_SECONDS) {
            self.told = now;
            let done = HumanBytes(self.now.bytes);
            let of = self.total_bytes.map(|total| format!(" of {}", HumanBytes(total)));
            let (of, left) = (of.unwrap_or_default(), self.time_left());
            tracing::info!("{}: {done}{of}, {left}{}", self.what, self.speeds());
        }
    }

    /// How long the rest takes, at the speed since the beginning.
    fn time_left(&self) -> String {
        let done = self.now.bytes.saturating_sub(self.begun_at);
        match self.total_bytes {
            Some(total) if done > 0 => {
                let left = total.saturating_sub(self.now.bytes);
                let seconds = self.begun.elapsed().as_secs_f64() * left as f64 / done as f64;
                // Of a file whose work has hardly begun, the guess may be beyond all time.
                let seconds = seconds.min(1e9);
                format!("{} left", HumanDuration(Duration::from_secs_f64(seconds)))
            }
            _ => String::from("no end known"),
        }
    }

    fn speeds(&self) -> String {
        let Some((since, before)) = self.past.front() else { return String::new() };
        let seconds = since.elapsed().as_secs_f64().max(1e-3);
        let a_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let mut text = String::new();
        if self.now.blocks > 0 {
            let blocks = a_second(self.now.blocks, before.blocks);
            let gas = a_second(self.now.gas, before.gas) / 1e6;
            text += &format!(", block {}, {blocks:.0} blocks/s", self.now.number);
            text += &format!(", {gas:.0} Mgas/s");
        }
        if self.now.accounts > 0 {
            let accounts = a_second(self.now.accounts, before.accounts);
            text += &format!(", {} accounts, {accounts:.0}/s", self.now.accounts);
        }
        text
    }
}
