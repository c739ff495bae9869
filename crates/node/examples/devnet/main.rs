//! Runs beacon nodes of Prysm with nodes of ours on one machine, and asserts that they get along.
//!
//! `cargo xtask devnet [SCENARIO..]` builds the program `deponent` and runs this beside it;
//! integrations/consensus/README.md says more. It listens on 127.0.0.1 alone.

mod net;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use net::{Options, SCENARIOS};
use tokio::signal::unix::{SignalKind, signal};

const HELP: &str = "\
devnet [--prysm DIR] [--files DIR] [--slot SECONDS] [SCENARIO..]

  --prysm DIR      the folder with beacon-chain, validator and prysmctl
                   [default: DEPONENT_PRYSM, else DEPONENT_TOOLS/prysm]
  --files DIR      an empty folder for all files, which are kept [default: a temporary one]
  --slot SECONDS   the length of a slot [default: 2]

Without a SCENARIO all run, one after another, on one network:
";

fn main() -> anyhow::Result<()> {
    let mut names = Vec::new();
    let (mut prysm, mut files, mut slot_seconds) = (net::prysm_folder(), None, 2);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} has no value"));
        match argument.as_str() {
            "--prysm" => prysm = Some(PathBuf::from(value()?)),
            "--files" => files = Some(PathBuf::from(value()?)),
            "--slot" => slot_seconds = value()?.parse().context("--slot: expected seconds")?,
            "--help" | "-h" => {
                help();
                return Ok(());
            }
            _ => names.push(argument),
        }
    }
    for name in &names {
        let is_known = SCENARIOS.iter().any(|(known, ..)| known == name);
        ensure!(is_known, "no scenario {name}: --help lists them");
    }
    let prysm = prysm.context("no --prysm, DEPONENT_PRYSM or DEPONENT_TOOLS")?;
    let missing = net::missing_programs(&prysm);
    ensure!(
        missing.is_empty(),
        "{} lacks {}: integrations/consensus/README.md says how to build them",
        prysm.display(),
        missing.join(", ")
    );
    let temporary = tempfile::tempdir()?;
    let files = files.unwrap_or_else(|| temporary.path().into());
    std::fs::create_dir_all(&files)?;
    let names: Vec<_> = match names.as_slice() {
        [] => SCENARIOS.iter().map(|(name, ..)| *name).collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    let options = Options { program: program()?, prysm, files, slot_seconds };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime
        .block_on(async {
            let mut told = signal(SignalKind::terminate())?;
            tokio::select! {
                outcome = net::run(options, &names) => outcome,
                // The programs are killed on the way out.
                _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
                _ = told.recv() => anyhow::bail!("told to end"),
            }
        })
        // A failure leaves the temporary files too.
        .inspect_err(|_| drop(temporary.keep()))
}

#[expect(clippy::print_stdout, reason = "it was asked for")]
fn help() {
    print!("{HELP}");
    for (name, words, _) in SCENARIOS {
        println!("  {name:<16} {words}");
    }
}

/// `deponent`, beside the folder of this example.
fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).context("no folder above")?;
    let program = folder.join("deponent");
    ensure!(program.is_file(), "no {}: cargo xtask devnet builds it", program.display());
    Ok(program)
}
