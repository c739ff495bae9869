//! The log: its level, its form, and the files that it goes to.

mod file;
mod stderr;

use std::env::{VarError, var};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::flags::values::{count, parse_bytes};
use file::RotatedFile;
use stderr::Stderr;

/// The level, the form and the files of the log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogArgs {
    /// The level of the log: off, error, warn, info, debug or trace; CRATE=LEVEL for one crate or
    /// module; or several of them with commas between, as info,deponent_engine=debug [default: the
    /// variable RUST_LOG, else info] (of demo and dev: warn).
    #[arg(long = "log.level", value_name = "LEVEL", global = true, value_parser = checked_level)]
    log_level: Option<String>,
    /// The form of the log: lines to read, or a JSON object a line.
    #[arg(long = "log.format", value_name = "FORMAT", global = true, default_value = "text")]
    log_format: LogFormat,
    /// Log to this file too, beside the standard error; to deponent.log in it, if it is a directory
    /// [default: none].
    #[arg(long = "log.file", value_name = "DIR|FILE", global = true)]
    log_file: Option<PathBuf>,
    /// The size beyond which the file is renamed to FILE.1, and a new one begun.
    #[arg(long = "log.file.max-size", value_name = "BYTES", global = true,
          value_parser = parse_bytes, default_value = "128MiB")]
    log_max_size: u64,
    /// How many renamed files are kept.
    #[arg(long = "log.file.max-files", value_name = "FILES", global = true,
          value_parser = count::<u32>, default_value = "5")]
    log_max_files: u32,
}

/// The filter of the log once it has begun, to be replaced while the program runs.
static FILTER: OnceLock<Handle<Targets, Registry>> = OnceLock::new();

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl LogArgs {
    /// Begins to log, at the level `default` unless a flag or `RUST_LOG` says otherwise.
    ///
    /// # Errors
    /// If `RUST_LOG` is no filter, or the file cannot be written; in words for the user.
    pub(crate) fn begin(&self, default: LevelFilter) -> Result<(), String> {
        let (filter, handle) = reload::Layer::new(self.filter(default)?);
        let file = self.log_file.as_ref().map(|path| {
            let path = if path.is_dir() { path.join("deponent.log") } else { path.clone() };
            let opened = RotatedFile::open(path.clone(), self.log_max_size, self.log_max_files);
            opened.map_err(|fault| format!("--log.file {}: {fault}", path.display()))
        });
        let file = file.transpose()?.map(|file| lines(file, false, self.log_format));
        let is_terminal = std::io::stderr().is_terminal();
        let errors = lines(Stderr::default(), is_terminal, self.log_format);
        tracing_subscriber::registry().with(filter).with(errors).with(file).init();
        FILTER.set(handle).expect("a program begins to log once");
        Ok(())
    }

    /// Logs at the level of these flags from now on; the form and the files stay. Returns the
    /// filter.
    ///
    /// # Errors
    /// If `RUST_LOG` is no filter, or the log has not begun.
    pub(crate) fn change_level(&self, default: LevelFilter) -> Result<String, String> {
        let filter = self.filter(default)?;
        let shown = filter.to_string();
        let handle = FILTER.get().ok_or("the log has not begun")?;
        handle.reload(filter).map_err(|fault| fault.to_string())?;
        Ok(shown)
    }

    fn filter(&self, default: LevelFilter) -> Result<Targets, String> {
        match &self.log_level {
            Some(level) => parse_log_filter(level),
            None => log_filter(default).map_err(|problem| {
                format!(
                    "RUST_LOG {problem}. It takes a level (off, error, warn, info, debug or \
                     trace), CRATE=LEVEL, or several of them with commas between, as in \
                     info,deponent_engine=debug. Correct it or unset it"
                )
            }),
        }
    }
}

fn lines<S, W>(writer: W, is_coloured: bool, format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    match format {
        LogFormat::Text => layer.with_ansi(is_coloured).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    }
}

/// A filter of the log, unchanged.
fn checked_level(text: &str) -> Result<String, String> {
    let levels = "a level is off, error, warn, info, debug or trace";
    let checked = parse_log_filter(text);
    checked.map(|_| text.to_owned()).map_err(|problem| format!("it {problem}: {levels}"))
}

/// The filter of the log: that of `RUST_LOG`, else `default` for all. The error says what is wrong
/// with the variable.
fn log_filter(default: LevelFilter) -> Result<Targets, String> {
    match var("RUST_LOG") {
        Err(VarError::NotPresent) => Ok(Targets::new().with_default(default)),
        Ok(text) if text.trim().is_empty() => Ok(Targets::new().with_default(default)),
        Ok(text) => parse_log_filter(&text),
        Err(VarError::NotUnicode(_)) => Err("is not text in UTF-8".into()),
    }
}

/// Reads levels and `TARGET=LEVEL` with commas between. `Targets` itself reads any other word as a
/// target, so that a misspelt level would switch the log off.
fn parse_log_filter(text: &str) -> Result<Targets, String> {
    let is_of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"_:-".contains(&byte);
    let mut targets = Targets::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (target, level) = match item.split_once('=') {
            Some((target, level)) => (Some(target), level),
            None => (None, item),
        };
        let parsed = level.parse::<LevelFilter>().ok().filter(|_| !level.is_empty());
        let level = parsed.ok_or_else(|| format!("has {item:?}, and {level:?} is no level"))?;
        targets = match target {
            None => targets.with_default(level),
            Some(target) if !target.is_empty() && target.bytes().all(is_of_path) => {
                targets.with_target(target, level)
            }
            Some(target) => {
                return Err(format!("has {item:?}, and {target:?} is no crate or module"));
            }
        };
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn levels_are_set_for_all_and_for_single_crates() {
        let filter = parse_log_filter(" warn, deponent_engine::after=trace ,hyper=OFF,").unwrap();
        let logs = |target, level| filter.would_enable(target, &level);
        assert!(logs("deponent_node", Level::WARN) && !logs("deponent_node", Level::INFO));
        assert!(logs("deponent_engine::after::seal", Level::TRACE) && !logs("hyper", Level::ERROR));
    }

    #[test]
    fn what_is_no_level_is_named() {
        for (text, problem) in [
            ("debgu", r#"has "debgu", and "debgu" is no level"#),
            ("info,engine=loud", r#"has "engine=loud", and "loud" is no level"#),
            ("engine=", r#"and "" is no level"#),
            ("=info", r#"and "" is no crate or module"#),
            ("engine[block]=info", r#"and "engine[block]" is no crate or module"#),
        ] {
            let found = parse_log_filter(text).expect_err(text);
            assert!(found.contains(problem), "{found}");
        }
    }
}
