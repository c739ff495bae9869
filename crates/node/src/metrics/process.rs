//! The process, as the system sees it: the metrics that Prometheus' own libraries have, by the same
//! names. They are there on Linux alone.

use std::fs;

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// A metric of the process: its name without `process_`, what it is, whether it only grows, and its
/// value.
pub(super) struct ProcessMetric {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) is_counter: bool,
    pub(super) value: f64,
}

/// Clock ticks of `/proc` in a second: `USER_HZ`, which Linux keeps at 100.
const TICKS: f64 = 100.0;

/// The system's account of the process now; what it does not say is left out.
pub(super) fn process_metrics() -> Vec<ProcessMetric> {
    let metric = |name, help, is_counter, value: Option<f64>| {
        value.map(|value| ProcessMetric { name, help, is_counter, value })
    };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu_seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    let kib = |name| field(&status, name).map(|kib| kib * 1024.0);
    let open_files = fs::read_dir("/proc/self/fd").map(|files| files.count() as f64 - 1.0);
    let most_files = getrlimit(Resource::Nofile).current.map(|most| most as f64);
    let all = [
        metric("cpu_seconds", "Processor time of all threads", true, Some(cpu_seconds)),
        metric("resident_memory_bytes", "Memory that is resident", false, kib("VmRSS:")),
        metric("virtual_memory_bytes", "Addresses in use", false, kib("VmSize:")),
        metric("open_fds", "Open files and sockets", false, open_files.ok()),
        metric("max_fds", "Files and sockets that may be open", false, most_files),
        metric("threads", "Threads", false, field(&status, "Threads:")),
        metric("start_time_seconds", "When it began, since 1970", false, start_time()),
    ];
    all.into_iter().flatten().collect()
}

/// The number behind a name in `/proc/self/status`.
fn field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The start of the process in seconds since 1970: proc(5), `starttime` behind `btime`.
fn start_time() -> Option<f64> {
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = field(&system, "btime ")?;
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may have spaces.
    let (_, fields) = own.rsplit_once(')')?;
    let ticks: f64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    Some(boot + ticks / TICKS)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn the_system_says_all_of_it() {
        let found = process_metrics();
        assert_eq!(found.len(), 7);
        let value = |name| found.iter().find(|metric| metric.name == name).expect("there").value;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
        assert!(value("start_time_seconds") <= now + 1.0);
        assert!(value("start_time_seconds") > now - 86_400.0, "{}", value("start_time_seconds"));
        assert!(value("threads") >= 1.0 && value("open_fds") >= 3.0);
        assert!(value("resident_memory_bytes") < value("virtual_memory_bytes"));
    }
}
