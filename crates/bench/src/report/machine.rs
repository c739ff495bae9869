//! The machine, the time and the command line of a run.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// The machine of a run, as far as the system describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The name of the processor.
    pub processor: String,
    /// The cores that may be used.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The kernel and its release.
    pub kernel: String,
    /// The load averages when the report was made, as the system has them.
    pub load: String,
    /// The other load on it, in a sentence: then there are no verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<String>,
}

impl Machine {
    /// This one.
    pub fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
            found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let memory = value(&read("/proc/meminfo"), "MemTotal");
        let memory_kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
        Self {
            processor: value(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: memory_kib << 10,
            load: read("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" "),
            busy: None,
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        }
    }

    /// The other one has the same hardware and kernel.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let unloaded = |it: &Self| Self { load: String::new(), busy: None, ..it.clone() };
        unloaded(self) == unloaded(other)
    }

    /// On one line.
    pub(crate) fn words(&self) -> String {
        let Self { processor, cores, memory_bytes, kernel, load, .. } = self;
        let memory_gib = *memory_bytes as f64 / f64::from(1 << 30);
        format!("{cores} cores ({processor}), {memory_gib:.1} GiB of memory, {kernel}, load {load}")
    }
}

/// A time in UTC, to the second.
pub(super) fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Days from 1 March of the year 0, so that a leap day is the last one of its year.
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 153 days in every five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = 400 * era + year_of_era + u64::from(month < 3);
    let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A command line that a shell takes apart into these words again.
pub(super) fn command_line(program: &str, arguments: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    let quote = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    std::iter::once(program.to_owned())
        .chain(arguments.iter().map(quote))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_767_747_671, "2026-01-07T01:01:11Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_shell_gives_the_words_back() {
        let words = ["bench", "--geth-args", "--cache 512 'x'", "$HOME", "", "a\nb", "*", "a=b,c"];
        let words = words.map(str::to_owned);
        let line = command_line("printf", &[&[r"%s\0".to_owned()], &words[..]].concat());
        let output = Command::new("sh").args(["-c", &line]).output().expect("a shell");
        let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        assert_eq!(command_line("deponent", &words[..1]), "deponent bench");
    }

    #[test]
    fn this_machine_says_what_it_is() {
        let machine = Machine::this();
        assert!(machine.cores > 0 && machine.memory_bytes > 1 << 20, "{machine:?}");
        assert!(machine.kernel.len() > "Linux ".len(), "{machine:?}");
    }
}
