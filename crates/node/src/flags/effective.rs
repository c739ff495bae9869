//! The configuration in effect, in the form of a configuration file.

use std::collections::HashMap;

use clap::{Arg, ArgMatches, Command};

use super::flags_of;

/// The flags of `deponent node` with the values that they have, in TOML that `--config` reads.
/// `computed` has those that depend on others, by name, and `variables` those whose place a
/// variable of the environment takes: flag, variable and value. A flag without a value is a
/// comment.
pub(crate) fn effective(
    command: &Command,
    matches: &ArgMatches,
    computed: &HashMap<&str, String>,
    variables: &[(&str, &str, String)],
) -> String {
    let mut out = String::new();
    let mut heading = None;
    for flag in flags_of(command, "node") {
        if heading.as_deref() != flag.get_help_heading() {
            heading = flag.get_help_heading().map(str::to_owned);
            out += &format!("\n# {}\n", heading.as_deref().unwrap_or_default());
        }
        let name = flag.get_long().expect("flags have names");
        out += &match value(&flag, matches, computed.get(name)) {
            Some(value) => format!("{} = {value}\n", quoted(name)),
            None => match variables.iter().find(|(flag, ..)| *flag == name) {
                Some((_, variable, value)) => format!(
                    "# {} is not set, and {variable} in the environment is {}\n",
                    quoted(name),
                    quoted(value)
                ),
                None => format!("# {} is not set\n", quoted(name)),
            },
        };
    }
    out.trim_start().to_owned()
}

fn value(flag: &Arg, matches: &ArgMatches, computed: Option<&String>) -> Option<String> {
    let raw = matches.get_raw(flag.get_id().as_str()).into_iter().flatten();
    let raw: Vec<_> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
    if flag.get_value_delimiter().is_some() && !raw.is_empty() {
        let values: Vec<_> = raw.iter().map(|value| quoted(value)).collect();
        return Some(format!("[{}]", values.join(", ")));
    }
    let text = raw.into_iter().next().or_else(|| computed.cloned())?;
    let is_switch = ["true", "false"].contains(&&*text);
    let is_number = text.parse::<u32>().is_ok_and(|number| number.to_string() == text);
    Some(if is_switch || is_number { text } else { quoted(&text) })
}

/// A basic string of TOML, which a string of JSON is, but for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
