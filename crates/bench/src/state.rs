//! The benchmark of the state: a chain, a run, its files.

use std::path::{Path, PathBuf};

use crate::chain::Chain;
use crate::report;
use crate::run::{self, Options};
use crate::sync;

/// Where the results of a run are.
#[derive(Debug)]
pub struct Outcome {
    /// The report, in Markdown.
    pub report: String,
    /// Where the report and the samples were written.
    pub folder: PathBuf,
    /// Samples taken: blocks times clients.
    pub samples: usize,
}

/// Runs `chain` and writes `report.md` and `samples.jsonl` into `results`. The clients' prepared
/// directories are kept in `folder`; what runs are copies, which are removed.
pub fn state(
    options: &Options,
    chain: &Chain,
    folder: &Path,
    results: &Path,
) -> anyhow::Result<Outcome> {
    let work = sync::working_folder(folder)?;
    let outcome = run::run(options, chain, folder, &work);
    let logs = keep_logs(options, &work, results);
    for (contender, program) in &options.contenders {
        program.clean_up(&work.join(contender.to_string()));
    }
    std::fs::remove_dir_all(&work).or_else(sync::absent)?;
    let measured = outcome?;
    logs?;
    let mut title = String::from("State benchmark");
    if let Some(name) = chain.state.file_name() {
        title = format!("{title}: {}", name.to_string_lossy());
    }
    let mut report = report::markdown(&title, &measured);
    report.push_str("\n## Clients\n\n");
    for (contender, program) in &options.contenders {
        report.push_str(&format!("- {contender}: {}", program.version()?));
        if !program.arguments.is_empty() {
            report.push_str(&format!(", `{}`", program.arguments.join(" ")));
        }
        if let Some(bytes) = program.memory_bytes {
            report.push_str(&format!(", at most {} MiB", bytes >> 20));
        }
        if let Some(bytes) = program.disk_bytes {
            report.push_str(&format!(", the disk at {bytes} bytes a second"));
        }
        report.push('\n');
    }
    report.push_str(&machine());
    let frozen = if options.freeze { "stopped" } else { "idle" };
    let pause = options.pause.as_millis();
    report.push_str(&format!("\nPause after each block: {pause} ms; the others were {frozen}.\n"));
    std::fs::write(results.join("report.md"), &report)?;
    measured.write(&results.join("samples.jsonl"))?;
    Ok(Outcome { report, folder: results.into(), samples: measured.samples.len() })
}

/// What a reader wants to know of the machine, as far as the system says it.
pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let line = |text: String, name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
        found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "\n{processors} processors ({}), memory {}, load in the end {}\n",
        line(read("/proc/cpuinfo"), "model name"),
        line(read("/proc/meminfo"), "MemTotal"),
        read("/proc/loadavg").trim(),
    )
}

/// Keeps the clients' logs beside the results.
fn keep_logs(options: &Options, work: &Path, results: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(results)?;
    for (contender, _) in &options.contenders {
        let log = work.join(contender.to_string()).join("bench.log");
        if log.exists() {
            std::fs::copy(log, results.join(format!("{contender}.log")))?;
        }
    }
    Ok(())
}
