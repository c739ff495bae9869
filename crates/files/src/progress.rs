use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};

use crate::limits::{PROGRESS_LOG_SECONDS, TICK, TICKS};

/// Reports the progress of some work: as a bar if the standard error is a terminal, else as a line
/// in the log every ten seconds.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    unit: Unit,
    total: Option<u64>,
    /// The part that was done before.
    begun_at: u64,
    begun: Instant,
    told: Instant,
    now: Counts,
    /// The name of [`Counts::items`].
    items: &'static str,
    /// Earlier counts, one a tick, the oldest first.
    past: VecDeque<(Instant, Counts)>,
    silent: bool,
}

/// The unit of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    /// Items of this name.
    Things(&'static str),
    /// Parts of the whole, which has [`WHOLE`].
    Parts,
}

/// The number of parts of a whole of unknown size.
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
    /// Begins to report `what`, such as "importing", on a file of `total_bytes`, if that is known,
    /// of which `done_bytes` are done already.
    pub fn new(what: &'static str, total_bytes: Option<u64>, done_bytes: u64) -> Self {
        Self::begin(what, Unit::Bytes, total_bytes, done_bytes)
    }

    /// As [`Self::new`], on `total` items of this name.
    pub fn counting(what: &'static str, name: &'static str, total: u64, done: u64) -> Self {
        Self::begin(what, Unit::Things(name), Some(total), done)
    }

    /// As [`Self::new`], on work of unknown size, by the fraction done ([`Self::part`]).
    pub fn of_the_whole(what: &'static str) -> Self {
        Self::begin(what, Unit::Parts, Some(WHOLE), 0)
    }

    /// As [`Self::of_the_whole`], of which the fraction `done` was done before.
    pub fn of_the_whole_from(what: &'static str, done: f64) -> Self {
        Self::begin(what, Unit::Parts, Some(WHOLE), (done * WHOLE as f64) as u64)
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

    /// Sets the file: `total_bytes`, if known, of which `done_bytes` are done already.
    #[expect(clippy::missing_panics_doc, reason = "the templates are constant")]
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

    /// Reports nothing.
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

    /// Sets the number of bytes done.
    pub fn bytes(&mut self, done: u64) {
        self.now.done = done;
        self.tick();
    }

    /// Sets the number of items done.
    pub fn count(&mut self, done: u64) {
        self.bytes(done);
    }

    /// Sets the fraction done, from 0 to 1.
    pub fn part(&mut self, done: f64) {
        self.bytes((done * WHOLE as f64) as u64);
    }

    /// Counts a block.
    pub fn block(&mut self, number: u64, gas_used: u64) {
        self.now.blocks += 1;
        self.now.gas += gas_used;
        self.now.number = number;
        self.tick();
    }

    /// Sets the number of accounts done.
    pub fn accounts(&mut self, done: u64) {
        self.items("accounts", done);
    }

    /// Sets the number of further items done, of this name.
    pub fn items(&mut self, name: &'static str, done: u64) {
        (self.items, self.now.items) = (name, done);
        self.tick();
    }

    /// Ends the report without a line in the log.
    pub fn clear(mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Ends the report with a line in the log.
    pub fn finish(mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if !self.silent {
            // The average speeds of all the work.
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

    /// The time left, at the average speed.
    fn time_left(&self) -> String {
        let done = self.now.done.saturating_sub(self.begun_at);
        match self.total {
            Some(total) if done > 0 => {
                let left = total.saturating_sub(self.now.done);
                let seconds = self.begun.elapsed().as_secs_f64() * left as f64 / done as f64;
                // At the very beginning the estimate may exceed the range of durations.
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
