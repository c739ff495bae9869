//! The benchmark of the state: a chain, a run, its files.

mod report;

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::chain::format::Chain;
use crate::clients::prepare as sync;
use crate::clients::process;
use crate::report::Document;
use crate::run::{self, Measured, Options};

/// Where the results of a run are.
#[derive(Debug)]
pub struct Outcome {
    /// The report.
    pub document: Document,
    /// Where the report and the samples were written.
    pub folder: PathBuf,
    /// Samples taken: blocks times clients.
    pub samples: usize,
}

/// Runs `chain` and writes the report and `samples.jsonl` into `results`. The clients' prepared
/// directories are kept in `folder`; what runs are copies, which are removed.
pub fn state(
    options: &Options,
    chain: &Chain,
    folder: &Path,
    results: &Path,
) -> anyhow::Result<Outcome> {
    let work = sync::working_folder(folder)?;
    let mut measured = Measured::default();
    let outcome = run::run(options, chain, folder, &work, &mut measured);
    let logs = keep_logs(options, &work, results);
    for (contender, program) in &options.contenders {
        program.clean_up(&work.join(contender.to_string()));
    }
    std::fs::remove_dir_all(&work).or_else(sync::absent)?;
    logs?;
    if process::interrupted() {
        measured.remarks.push("The run was interrupted.".into());
    } else if let Err(error) = &outcome {
        measured.remarks.push(format!("The run ended early: {error:#}."));
    }
    let name = chain.state.file_name().unwrap_or_default().to_string_lossy();
    let mut document = Document::new(format!("State benchmark: {name}"));
    let frozen = if options.freeze { "stopped" } else { "idle" };
    let pause = options.pause.as_millis();
    document.text(format!("Pause after each block: {pause} ms; the others were {frozen}."));
    if options.invalid {
        document.text(
            "Each block of the reorgs was followed by one that is invalid, before its fork choice: \
             its time is nowhere, CPU and memory include it.",
        );
    }
    report::fill(&mut document, &measured);
    for (contender, program) in &options.contenders {
        let with_socket = contender.transport().is_some();
        program.enter(&contender.to_string(), with_socket, &mut document)?;
    }
    document.write(results)?;
    measured.write(&results.join("samples.jsonl"))?;
    outcome.with_context(|| format!("what was measured until then is in {}", results.display()))?;
    Ok(Outcome { document, folder: results.into(), samples: measured.samples.len() })
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
