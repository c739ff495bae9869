//! A look at what else the machine does: times on a busy machine are not those of the clients.
//!
//! The rule: it is busy if other processes than this one and the clients use more than a tenth of
//! all processor time, in a second before the run or over the run.

use std::fs;
use std::time::Duration;

/// A part of all processor time that others may use.
const OTHERS: f64 = 0.1;
/// The time for which others are looked at before the run.
const LOOK: Duration = Duration::from_secs(1);
/// Over a shorter run nothing can be said: counts are in steps of 10 ms.
const LEAST_TICKS: u64 = 100;

/// Processor time until now, in the kernel's ticks.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// Used by any process of the machine.
    busy: u64,
    all: u64,
    /// Used by this process and by those that it started and that have ended.
    own: u64,
}

impl Ticks {
    fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::read(&read("/proc/stat"), &read("/proc/self/stat"))
    }

    fn read(machine: &str, own: &str) -> Self {
        let first = machine.lines().next().unwrap_or_default();
        let fields: Vec<u64> =
            first.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
        let all = fields.iter().take(8).sum();
        let idle: u64 = fields.iter().skip(3).take(2).sum();
        // Behind the name in parentheses: utime, stime, and those of children that were waited for.
        let fields = own.rsplit(')').next().unwrap_or_default().split_whitespace();
        let own = fields.skip(11).take(4).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Self { busy: all - idle, all, own }
    }

    /// The part of all processor time since `earlier` that others used.
    fn others_since(&self, earlier: &Self) -> Option<f64> {
        let all = self.all.saturating_sub(earlier.all);
        let own = self.own.saturating_sub(earlier.own);
        let others = self.busy.saturating_sub(earlier.busy).saturating_sub(own);
        (all >= LEAST_TICKS).then(|| others as f64 / all as f64)
    }
}

/// A look at the machine over a run.
#[derive(Debug)]
pub(crate) struct Watch {
    before: Option<f64>,
    began: Ticks,
}

impl Watch {
    /// Looks at what others use now, before anything is started.
    pub(crate) fn begin() -> Self {
        let first = Ticks::now();
        std::thread::sleep(LOOK);
        let began = Ticks::now();
        Self { before: began.others_since(&first), began }
    }

    /// Says in a sentence if the machine is busy before the run.
    pub(crate) fn busy_before(&self) -> Option<String> {
        words(self.before?, "before the run")
    }

    /// Says in a sentence if it was busy during the run; all clients have to have ended.
    pub(crate) fn busy(&self) -> Option<String> {
        words(Ticks::now().others_since(&self.began)?, "during the run")
    }
}

fn words(share: f64, when: &str) -> Option<String> {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    (share > OTHERS).then(|| {
        format!(
            "other processes used {:.0} % of its processors {when} (load average {load}): times \
             are too long, and there are no verdicts.",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_left_without_us_and_our_children() {
        let ticks = |user: u64, idle: u64, own: u64| {
            let machine = format!("cpu  {user} 0 100 {idle} 50 0 0 0 7 0\ncpu0 1 2 3\n");
            let own = format!("1 (a) b) S 1 1 1 0 -1 0 0 0 0 0 {own} 0 5 0 20 0 1\n");
            Ticks::read(&machine, &own)
        };
        let earlier = ticks(1_000, 5_000, 10);
        let share = |user, idle, own| ticks(user, idle, own).others_since(&earlier);
        // 300 of 1,000 ticks were busy, of which 250 were ours.
        assert_eq!(share(1_300, 5_700, 260), Some(0.05));
        assert_eq!(share(1_300, 5_700, 60), Some(0.25));
        assert_eq!(share(1_010, 5_010, 10), None, "too short");
        assert!(words(0.05, "now").is_none());
        assert!(words(0.25, "now").expect("busy").contains("25 %"));
    }
}
