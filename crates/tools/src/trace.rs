//! The calls of a call as a tree, in the form of Foundry's traces.

use std::fmt::Write as _;

use alloy_dyn_abi::JsonAbiExt;
use alloy_json_abi::Function;
use alloy_primitives::{Address, B256, Bytes, U64, U256, hex};
use anyhow::Context;
use rpc::{quote, read_json};
use serde::Deserialize;

use crate::abi::{KnownErrors, revert_reason, text_of};
use crate::console_log::{CONSOLE, console_line};
use crate::error::Output;
use crate::table::printable;

/// A call of `callTracer`, with its logs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame {
    #[serde(rename = "type")]
    kind: String,
    to: Option<Address>,
    #[serde(default)]
    value: Option<U256>,
    gas_used: U64,
    #[serde(default)]
    input: Bytes,
    #[serde(default)]
    output: Bytes,
    error: Option<String>,
    #[serde(default)]
    calls: Vec<CallFrame>,
    #[serde(default)]
    logs: Vec<FrameLog>,
}

#[derive(Deserialize)]
struct FrameLog {
    #[serde(default)]
    topics: Vec<B256>,
    #[serde(default)]
    data: Bytes,
    /// How many calls came before it.
    #[serde(default)]
    position: U64,
}

/// Names that the command line gives.
struct KnownNames<'a> {
    function: Option<&'a Function>,
    errors: &'a KnownErrors,
}

/// The tree, and the failure of its root.
pub(crate) fn tree(
    text: &str,
    function: Option<&Function>,
    errors: &KnownErrors,
) -> anyhow::Result<Output> {
    let root: CallFrame = read_json(text).context(
        "debug_traceCall: the answer is no tree that can be printed (--json prints it as it came)",
    )?;
    let names = KnownNames { function, errors };
    let mut tree = String::from("Traces:\n");
    names.write(&root, "  ", "    ", &mut tree);
    let _ = writeln!(tree, "\nGas used: {}", root.gas_used);
    let failure = root.error.as_ref().map(|error| {
        let reason = revert_reason(&root.output, errors).unwrap_or_else(|| quote(error));
        format!("the call failed: {reason}")
    });
    Ok(Output { text: tree, failure, note: None })
}

impl KnownNames<'_> {
    /// Writes a call behind `first`, and what it does behind `rest`.
    fn write(&self, frame: &CallFrame, first: &str, rest: &str, out: &mut String) {
        let _ = writeln!(out, "{first}[{}] {}", frame.gas_used, self.head(frame));
        let mut logs = frame.logs.iter().peekable();
        for (index, call) in frame.calls.iter().enumerate() {
            while let Some(log) = logs.next_if(|log| log.position.to::<usize>() <= index) {
                write_log(log, rest, out);
            }
            self.write(call, &format!("{rest}├─ "), &format!("{rest}│   "), out);
        }
        logs.for_each(|log| write_log(log, rest, out));
        let _ = writeln!(out, "{rest}└─ ← {}", self.end(frame));
    }

    /// The callee, the function or its selector, and how it is called.
    fn head(&self, frame: &CallFrame) -> String {
        if let Some(line) = console_line(&frame.input).filter(|_| frame.to == Some(CONSOLE)) {
            return format!("console.log: {line}");
        }
        let to = frame.to.map_or_else(|| "no address".into(), |to| to.to_checksum(None));
        let value = frame.value.filter(|value| !value.is_zero());
        let value = value.map(|value| format!("{{value: {value}}}")).unwrap_or_default();
        if frame.kind.starts_with("CREATE") {
            let length = frame.input.len();
            return format!("→ new contract{value} at {to}, {length} bytes of code and arguments");
        }
        let kind = match frame.kind.as_str() {
            "CALL" => String::new(),
            other => format!(" [{}]", quote(other).to_lowercase()),
        };
        let called = match frame.input.split_first_chunk::<4>() {
            _ if frame.input.is_empty() => "fallback".into(),
            Some((selector, arguments)) => self.called(selector, arguments).unwrap_or_else(|| {
                format!("{}({})", hex::encode(selector), hex::encode(arguments))
            }),
            None => format!("fallback({})", hex::encode(&frame.input)),
        };
        format!("{to}::{called}{value}{kind}")
    }

    fn called(&self, selector: &[u8; 4], arguments: &[u8]) -> Option<String> {
        let function = self.function.filter(|function| function.selector() == *selector)?;
        let values = function.abi_decode_input(arguments).ok()?;
        let values = text_of(&values);
        let values: Vec<_> = values.lines().collect();
        Some(format!("{}({})", function.name, values.join(", ")))
    }

    fn end(&self, frame: &CallFrame) -> String {
        let Some(error) = &frame.error else {
            return match frame.kind.starts_with("CREATE") {
                true => format!("[Return] {} bytes of code", frame.output.len()),
                false => format!("[Return] {}", hex::encode_prefixed(&frame.output)),
            };
        };
        match revert_reason(&frame.output, self.errors) {
            Some(reason) => format!("[Revert] {}", printable(&reason)),
            None if frame.output.is_empty() => format!("[Revert] {}", quote(error)),
            None => format!("[Revert] {}", hex::encode_prefixed(&frame.output)),
        }
    }
}

fn write_log(log: &FrameLog, rest: &str, out: &mut String) {
    let mut mark = "├─ ";
    for (index, topic) in log.topics.iter().enumerate() {
        let name = if index == 0 { " emit topic 0" } else { "      topic 0" };
        let name = name.trim_end_matches('0');
        let _ = writeln!(out, "{rest}{mark}{name}{index}: {topic}");
        mark = "│  ";
    }
    let name = if log.topics.is_empty() { " emit data" } else { "         data" };
    let _ = writeln!(out, "{rest}{mark}{name}: {}", hex::encode_prefixed(&log.data));
}
