//! The flags of `deponent node` in two places: the command line, and a configuration file whose
//! values stand where the flags' defaults do, so that the command line wins.

mod config_file;
mod effective;
pub(crate) mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

pub(crate) use effective::effective;

/// The commands whose flags may stand in a configuration file.
const CONFIGURED: [&str; 3] = ["node", "follow", "config"];

/// Flags that make no sense in a configuration file.
const OUTSIDE: [&str; 4] = ["config", "help", "print-limits", "version"];

/// Reads the command line, and the configuration file that it names.
///
/// # Errors
/// If a flag or a key is unknown, or a value is wrong; if the file cannot be read.
pub(crate) fn read(command: Command, given: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let command = with_values_of_switches(command);
    let given = &with_negative_values(given);
    let matches = command.clone().try_get_matches_from(given).map_err(without_secrets)?;
    let file = matches.subcommand().filter(|(name, _)| CONFIGURED.contains(name));
    let file = file.and_then(|(name, matches)| Some((name, matches.get_one::<PathBuf>("config")?)));
    let Some((name, file)) = file else { return Ok(matches) };
    let in_file = |fault: String| {
        let text = format!("--config {}: {fault}\n", file.display());
        clap::Error::raw(ErrorKind::ValueValidation, text)
    };
    let flags = flags_of(&command, name);
    let settings = config_file::read(file, &flags).map_err(in_file)?;
    let configured = settings.into_iter().fold(command, |command, (flag, values)| {
        let is_global = command.get_arguments().any(|arg| arg.get_id() == flag.get_id());
        let set =
            |command: Command| command.mut_arg(flag.get_id(), |arg| arg.default_values(values));
        if is_global { set(command) } else { command.mut_subcommand(name, set) }
    });
    // Without the file there was no fault.
    let matches = configured.try_get_matches_from(given).map_err(without_secrets);
    matches.map_err(|fault| in_file(fault.to_string().trim_start_matches("error: ").to_owned()))
}

/// The error about a value, which repeats no more of a URL than messages may show.
fn without_secrets(mut fault: clap::Error) -> clap::Error {
    let Some(ContextValue::String(value)) = fault.get(ContextKind::InvalidValue) else {
        return fault;
    };
    let shown = rpc::shown_address(value);
    // A slash at the end is no secret, and may be what is wrong.
    if value.contains("://") && value.trim_end_matches('/') != shown {
        fault.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    fault
}

/// The flags of the command that the command line gives.
pub(crate) fn given(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let Some((name, matches)) = matches.subcommand() else { return Vec::new() };
    let flags = flags_of(command, name).into_iter().filter(|flag| {
        let id = flag.get_id().as_str();
        matches.value_source(id) == Some(ValueSource::CommandLine)
    });
    flags.filter_map(|flag| flag.get_long().map(str::to_owned)).collect()
}

/// All flags of a command that may stand in a configuration file.
pub(crate) fn flags_of(command: &Command, name: &str) -> Vec<Arg> {
    let mut command = with_values_of_switches(command.clone());
    command.build();
    let found = command.find_subcommand(name).expect("it is a command of ours");
    let is_inside = |arg: &&Arg| arg.get_long().is_some_and(|long| !OUTSIDE.contains(&long));
    found.get_arguments().filter(is_inside).cloned().collect()
}

/// Joins a flag and a negative number behind it, as in `--memory=-1`: otherwise the number is taken
/// for a flag, and the error does not say what is allowed. The arguments of `bench` are another
/// program's.
pub(crate) fn with_negative_values(given: &[OsString]) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut is_ours = true;
    for argument in given {
        let bytes = argument.as_encoded_bytes();
        is_ours &= !matches!(bytes, b"--" | b"bench");
        let is_negative = matches!(bytes, [b'-', b'0'..=b'9' | b'.', ..]);
        let is_flag = |before: &OsString| {
            let before = before.as_encoded_bytes();
            before.starts_with(b"--") && !before.contains(&b'=')
        };
        match joined.last_mut() {
            Some(flag) if is_ours && is_negative && is_flag(flag) => {
                flag.push("=");
                flag.push(argument);
            }
            _ => joined.push(argument.clone()),
        }
    }
    joined
}

/// Lets switches have a value, as in `--testing=false`: so the command line can undo one that the
/// configuration file sets, and scripts that write `--nodiscover=true` work.
fn with_values_of_switches(command: Command) -> Command {
    let valued = |arg: Arg| match arg.get_action() {
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .value_name("BOOL")
            .value_parser(ValueParser::bool())
            .default_value("false")
            .default_missing_value("true")
            .hide_default_value(true)
            .hide_possible_values(true),
        _ => arg,
    };
    CONFIGURED.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |command| command.mut_args(valued))
    })
}
