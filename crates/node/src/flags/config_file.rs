//! The configuration file: TOML whose keys are the names of flags.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use clap::Arg;
use toml::{Table, Value};

use crate::limits::CONFIG_BYTES;

/// Reads the values of a configuration file, each with its flag.
///
/// # Errors
/// If the file cannot be read, is not TOML, or has a key that is no flag or a value that no flag
/// has.
pub(super) fn read(file: &Path, flags: &[Arg]) -> Result<Vec<(Arg, Vec<String>)>, String> {
    let mut text = String::new();
    let opened = File::open(file).map_err(|fault| fault.to_string())?;
    opened.take(CONFIG_BYTES + 1).read_to_string(&mut text).map_err(|fault| fault.to_string())?;
    if text.len() as u64 > CONFIG_BYTES {
        return Err(format!("it is longer than {CONFIG_BYTES} bytes"));
    }
    settings(&text, flags)
}

fn settings(text: &str, flags: &[Arg]) -> Result<Vec<(Arg, Vec<String>)>, String> {
    let table: Table = text.parse().map_err(|fault: toml::de::Error| fault.to_string())?;
    let mut keys = Vec::new();
    flatten(String::new(), table, &mut keys);
    let one = |(key, value): (String, Value)| {
        let flag = flags.iter().find(|flag| flag.get_long() == Some(&key));
        let flag = flag.ok_or_else(|| unknown(&key, flags))?;
        Ok((flag.clone(), written(flag, value).map_err(|fault| format!("{key:?} {fault}"))?))
    };
    keys.into_iter().map(one).collect()
}

/// Names the keys by their whole paths: `[http]` with `port` is `http.port`, as `"http.port"` is.
fn flatten(path: String, table: Table, keys: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let key = if path.is_empty() { key } else { format!("{path}.{key}") };
        match value {
            Value::Table(table) => flatten(key, table, keys),
            value => keys.push((key, value)),
        }
    }
}

/// The values as the command line has them.
fn written(flag: &Arg, value: Value) -> Result<Vec<String>, String> {
    let one = |value| match value {
        Value::String(text) => Ok(text),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(is_set) => Ok(is_set.to_string()),
        other => Err(format!("is a {}: expected text, a number or a switch", other.type_str())),
    };
    match value {
        Value::Array(values) if flag.get_value_delimiter().is_some() => {
            values.into_iter().map(one).collect()
        }
        Value::Array(_) => Err("is a list: this flag takes one value".into()),
        value => Ok(vec![one(value)?]),
    }
}

fn unknown(key: &str, flags: &[Arg]) -> String {
    let names = flags.iter().filter_map(Arg::get_long);
    let likeness = |name: &&str| strsim::jaro_winkler(key, name);
    let nearest = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or_default();
    format!(
        "the key {key:?} is not known. The nearest one is {nearest:?}; `deponent config` lists all"
    )
}
