use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};

use crate::limits::PROGRESS_LOG_SECONDS;

/// How often a bar is drawn, and the speeds measured.
const TICK: Duration = Duration::from_millis(500);

/// Ticks over which speeds are averaged: what came longer ago says little about now.
const TICKS: usize = 20;

/// Tells how far some work is: a bar where the standard error is a terminal, and a line in the log
/// every ten seconds where it is not.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    unit: Unit,
    total: Option<u64>,
    /// What was done before.
    begun_at: u64,
    begun: Instant,
    told: Instant,
    now: Counts,
    /// What [`Counts::items`] are.
    items: &'static str,
    /// Earlier counts, a tick apart, the oldest first.
    past: VecDeque<(Instant, Counts)>,
    silent: bool,
}

/// What the work is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    /// Things of this name.
    Things(&'static str),
    /// Parts of the whole, [`WHOLE`] of them.
    Parts,
}

/// The parts of a whole whose size is not known.
const WHOLE: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    done: u64,
    blocks: u64,
    gas: u64,
    number: u64,
    items: u64,
}

impl Progress {
    /// Begins to tell about `what`, as "importing": about a file of `total_bytes`, if that is
    /// known, of which `done_bytes` are done already.
    pub fn new(what: &'static str, total_bytes: Option<u64>, done_bytes: u64) -> Self {
        Self::begin(what, Unit::Bytes, total_bytes, done_bytes)
    }

    /// As [`Self::new`], about `total` things of this name.
    pub fn counting(what: &'static str, name: &'static str, total: u64, done: u64) -> Self {
        Self::begin(what, Unit::Things(name), Some(total), done)
    }

    /// As [`Self::new`], about work of which only the part is known that is done.
    pub fn of_the_whole(what: &'static str) -> Self {
        Self::begin(what, Unit::Parts, Some(WHOLE), 0)
    }

    fn begin(what: &'static str, unit: Unit, total: Option<u64>, done: u64) -> Self {
        let mut progress = Self { what, unit, silent: false, ..Self::silent() };
        if std::io::stderr().is_terminal() {
            let bar = ProgressBar::no_length();
            bar.set_prefix(what);
            progress.bar = Some(bar);
        }
        progress.file(total, done);
        progress
    }

    /// It is about a file of `total_bytes`, if that is known, of which `done_bytes` are done
    /// already.
    pub fn file(&mut self, total_bytes: Option<u64>, done_bytes: u64) {
        (self.total, self.begun_at, self.begun) = (total_bytes, done_bytes, Instant::now());
        self.now.done = done_bytes;
        self.past = VecDeque::from([(self.begun, self.now)]);
        let Some(bar) = &self.bar else { return };
        let (done, of) = match self.unit {
            Unit::Bytes => ("{bytes}", "/{total_bytes}"),
            Unit::Things(_) => ("{human_pos}", "/{human_len}"),
            Unit::Parts => ("", ""),
        };
        let template = match total_bytes {
            Some(_) => format!("{{prefix}} {{percent:>3}}% {{bar:30}} {done}{of} {{msg}}"),
            None => format!("{{prefix}} {done} {{msg}}"),
        };
        bar.set_style(ProgressStyle::with_template(&template).expect("the template is right"));
        bar.set_length(total_bytes.unwrap_or(0));
        bar.set_position(done_bytes);
    }

    /// Tells nothing.
    pub fn silent() -> Self {
        let now = Instant::now();
        Self {
            what: "",
            bar: None,
            unit: Unit::Bytes,
            total: None,
            begun_at: 0,
            begun: now,
            told: now,
            now: Counts::default(),
            items: "",
            past: VecDeque::from([(now, Counts::default())]),
            silent: true,
        }
    }

    /// So many bytes of the file are done.
    pub fn bytes(&mut self, done: u64) {
        self.now.done = done;
        self.tick();
    }

    /// So many of the things that are counted are done.
    pub fn count(&mut self, done: u64) {
        self.bytes(done);
    }

    /// This part of the whole is done, from 0 to 1.
    pub fn part(&mut self, done: f64) {
        self.bytes((done * WHOLE as f64) as u64);
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
        self.items("accounts", done);
    }

    /// So many things of this name are done, all in all.
    pub fn items(&mut self, name: &'static str, done: u64) {
        (self.items, self.now.items) = (name, done);
        self.tick();
    }

    /// Ends the telling, with a line in the log.
    pub fn finish(mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if !self.silent {
            // The speeds of the whole.
            let mut counts = Counts { done: self.begun_at, ..Counts::default() };
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
            bar.set_position(self.now.done);
            bar.set_message(format!("{}{}", self.time_left(), self.speeds()));
        } else if now.duration_since(self.told) >= Duration::from_secs(PROGRESS_LOG_SECONDS) {
            self.told = now;
            let (done, left) = (self.done_of_total(), self.time_left());
            tracing::info!("{}: {done}, {left}{}", self.what, self.speeds());
        }
    }

    fn done_of_total(&self) -> String {
        let (done, total) = (self.now.done, self.total);
        match self.unit {
            Unit::Bytes => {
                let of = total.map(|total| format!(" of {}", HumanBytes(total)));
                format!("{}{}", HumanBytes(done), of.unwrap_or_default())
            }
            Unit::Things(name) => {
                let of = total.map(|total| format!(" of {total}"));
                format!("{done}{} {name}", of.unwrap_or_default())
            }
            Unit::Parts => format!("{:.1}%", 100.0 * done as f64 / WHOLE as f64),
        }
    }

    /// How long the rest takes, at the speed since the beginning.
    fn time_left(&self) -> String {
        let done = self.now.done.saturating_sub(self.begun_at);
        match self.total {
            Some(total) if done > 0 => {
                let left = total.saturating_sub(self.now.done);
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
        if self.now.items > 0 {
            let items = a_second(self.now.items, before.items);
            text += &format!(", {} {}, {items:.0}/s", self.now.items, self.items);
        }
        text
    }
}
