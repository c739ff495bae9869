//! Progress bars, and what a command prints.

use std::fmt::Display;
use std::io::Write as _;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// A bar for `steps` steps, with the time that is left. It is drawn where the standard error is a
/// terminal, and removed in the end.
pub(crate) fn bar(what: impl Into<String>, steps: usize) -> ProgressBar {
    let template = "{prefix} {percent:>3}% {bar:30} {human_pos}/{human_len}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is right");
    let bar = ProgressBar::new(steps as u64).with_style(style).with_prefix(what.into());
    bar.with_finish(ProgressFinish::AndClear)
}

/// Prints a text and the end of its line, at once: `println!` panics where this is an error.
///
/// # Errors
/// When the standard output is closed or full.
pub(crate) fn say(text: impl Display) -> anyhow::Result<()> {
    let line = format!("{text}\n");
    std::io::stdout().write_all(line.as_bytes()).context("cannot write to the standard output")
}
