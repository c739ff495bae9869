//! The contract ABI: signatures, values as text, encoding and decoding.

mod revert;
mod value;

use alloy_dyn_abi::{DynSolEvent, DynSolType, DynSolValue, FunctionExt, JsonAbiExt, Specifier};
use alloy_json_abi::{Event, Function, Param};
use alloy_primitives::{B256, Bytes, Selector, hex};
use clap::{Args, Subcommand};
use rpc::quote;
use serde_json::{Map, Value, json};

use crate::error::{Misuse, Output};
use crate::input;

pub(crate) use revert::{KnownErrors, revert_reason};
pub(crate) use value::{text_of, to_json};

/// Encode and decode by the contract ABI; no endpoint is asked.
#[derive(Debug, Args)]
pub struct AbiArgs {
    #[command(subcommand)]
    command: AbiCommand,
    /// Print JSON, for programs. Integers of more than 48 bits are strings.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum AbiCommand {
    /// Encode arguments without a selector: deponent abi encode 'f(uint256,string)' 7 seven
    Encode(EncodeArgs),
    /// Encode a call, with its selector: deponent abi calldata 'f(uint256)' 7
    Calldata(EncodeArgs),
    /// Decode results by the types behind the arguments, as 'f(uint256)(bool)'; without those,
    /// arguments, with their selector or not.
    Decode {
        /// The function; its name does not matter.
        #[arg(value_name = "SIGNATURE")]
        signature: String,
        /// The data in hex.
        #[arg(value_parser = input::data)]
        data: Bytes,
    },
    /// The selector of a function or an error: deponent abi selector 'f(uint256)'
    Selector {
        /// The function.
        #[arg(value_name = "SIGNATURE")]
        signature: String,
    },
    /// The first topic of an event: deponent abi event 'Transfer(address indexed,address
    /// indexed,uint256)'; with the data and the topics of a log, its arguments.
    Event {
        /// The event.
        #[arg(value_name = "SIGNATURE")]
        signature: String,
        /// The data of a log, in hex.
        #[arg(long, value_parser = input::data)]
        data: Option<Bytes>,
        /// A topic of the log, as often as it has some.
        #[arg(long = "topic", value_parser = input::hash)]
        topics: Vec<B256>,
    },
    /// The reason of a revert, out of its data: deponent abi error 0x08c379a0..
    Error {
        /// The data in hex.
        #[arg(value_parser = input::data)]
        data: Bytes,
        /// Errors that it may be, as 'TooLow(uint256,address)'.
        #[arg(value_name = "SIGNATURE")]
        signatures: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct EncodeArgs {
    /// The function.
    #[arg(value_name = "SIGNATURE")]
    signature: String,
    /// Its arguments: lists are as [1,2], tuples as (1,abc).
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    arguments: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &AbiArgs) -> anyhow::Result<Output> {
    let printed = |value: Value, text: String| match args.json {
        true => Output::of(value),
        false => Output::of(text),
    };
    let hex = |bytes: &[u8]| {
        let text = hex::encode_prefixed(bytes);
        printed(json!(text), text.clone())
    };
    match &args.command {
        AbiCommand::Encode(EncodeArgs { signature, arguments }) => {
            let function = function(signature)?;
            let values = values(&function.inputs, arguments)?;
            Ok(hex(&function.abi_encode_input_raw(&values)?))
        }
        AbiCommand::Calldata(EncodeArgs { signature, arguments }) => {
            Ok(hex(&calldata(&function(signature)?, arguments)?))
        }
        AbiCommand::Decode { signature, data } => {
            let values = decode(&function(signature)?, data)?;
            Ok(printed(values.iter().map(to_json).collect(), text_of(&values)))
        }
        AbiCommand::Selector { signature } => Ok(hex(&function(signature)?.selector()[..])),
        AbiCommand::Event { signature, data, topics } => {
            let event = event(signature)?;
            if data.is_none() && topics.is_empty() {
                return Ok(hex(&event.selector()[..]));
            }
            let arguments = decode_log(&event, topics, data.as_ref().map_or(&[][..], |data| data))?;
            let text: String =
                arguments.iter().map(|(name, value)| format!("{name}: {}\n", value.0)).collect();
            let json: Map<_, _> =
                arguments.into_iter().map(|(name, value)| (name, value.1)).collect();
            Ok(printed(json.into(), text))
        }
        AbiCommand::Error { data, signatures } => {
            let known = KnownErrors::parse(signatures)?;
            let reason = revert_reason(data, &known).ok_or_else(|| {
                let selector = hex::encode_prefixed(data.get(..4).unwrap_or(data));
                Misuse::error(format_args!(
                    "no known error has the selector {selector}: give its signature, as \
                     'TooLow(uint256,address)'"
                ))
            })?;
            Ok(printed(json!(reason), reason.clone()))
        }
    }
}

/// Reads a function's signature, as `f(uint256)(bool)`; the name may be missing.
pub(crate) fn function(signature: &str) -> anyhow::Result<Function> {
    let text = signature.trim();
    let named = if text.starts_with('(') { format!("f{text}") } else { text.to_owned() };
    let function = Function::parse(&named).map_err(|error| {
        let reason = match input::wei(text) {
            Ok(_) => "an amount is given with --value".into(),
            Err(_) => last_line(&error),
        };
        Misuse::error(format_args!(
            "\"{}\" is no signature of a function, as 'f(uint256,string)(bool)': {reason}",
            quote(signature),
        ))
    })?;
    types(&function.inputs)?;
    types(&function.outputs)?;
    Ok(function)
}

/// Reads an event's signature, as `Transfer(address indexed from,address indexed to,uint256)`.
pub(crate) fn event(signature: &str) -> anyhow::Result<Event> {
    let event = Event::parse(signature.trim()).map_err(|error| {
        Misuse::error(format_args!(
            "\"{}\" is no signature of an event, as 'Transfer(address indexed,uint256)': {}",
            quote(signature),
            last_line(&error)
        ))
    })?;
    resolved(&event)?;
    Ok(event)
}

fn resolved(event: &Event) -> anyhow::Result<DynSolEvent> {
    let resolved: Result<DynSolEvent, _> = event.resolve();
    resolved.map_err(|error| Misuse::error(last_line(&error)))
}

/// The types of parameters, or which of them is none.
fn types(params: &[Param]) -> anyhow::Result<Vec<DynSolType>> {
    let of_one = |param: &Param| {
        param.resolve().map_err(|error| {
            let ty = quote(&param.ty);
            Misuse::error(format_args!("\"{ty}\" is no type of the ABI: {}", last_line(&error)))
        })
    };
    params.iter().map(of_one).collect()
}

/// Reads arguments by the types of the parameters.
pub(crate) fn values(params: &[Param], texts: &[String]) -> anyhow::Result<Vec<DynSolValue>> {
    let types = types(params)?;
    if types.len() != texts.len() {
        let (expected, given) = (types.len(), texts.len());
        let arguments = if expected == 1 { "argument" } else { "arguments" };
        return Err(Misuse::error(format_args!(
            "the signature has {expected} {arguments}, and {given} are given"
        )));
    }
    let of_one = |(index, (ty, text)): (usize, (&DynSolType, &String))| {
        value::read(ty, text).map_err(|why| {
            let (number, text) = (index + 1, quote(text));
            Misuse::error(format_args!("argument {number}: \"{text}\" is no {ty}: {why}"))
        })
    };
    types.iter().zip(texts).enumerate().map(of_one).collect()
}

/// The data of a call.
pub(crate) fn calldata(function: &Function, arguments: &[String]) -> anyhow::Result<Vec<u8>> {
    let values = values(&function.inputs, arguments)?;
    Ok(function.abi_encode_input(&values)?)
}

/// The values in the results of a function; of one without results, those in its arguments.
fn decode(function: &Function, data: &[u8]) -> anyhow::Result<Vec<DynSolValue>> {
    if !function.outputs.is_empty() {
        return decode_results(function, data);
    }
    let body = match data.split_first_chunk::<4>() {
        Some((selector, body)) if data.len() % 32 == 4 => {
            let (given, expected) = (Selector::from(selector), function.selector());
            if given != expected {
                return Err(Misuse::error(format_args!(
                    "the data are of a function with the selector {given}, and {} has {expected}",
                    function.signature()
                )));
            }
            body
        }
        _ => data,
    };
    let decoded = function.abi_decode_input(body);
    decoded.map_err(|error| unfit(&function.signature(), &error))
}

/// The values in the results of a function.
pub(crate) fn decode_results(function: &Function, data: &[u8]) -> anyhow::Result<Vec<DynSolValue>> {
    let decoded = function.abi_decode_output(data);
    decoded.map_err(|error| unfit(&function.signature_with_outputs(), &error))
}

fn unfit(signature: &str, error: &alloy_dyn_abi::Error) -> anyhow::Error {
    anyhow::anyhow!("the data do not fit {signature}: {}", last_line(error))
}

/// The arguments of a log by name, in their order, as text and as JSON. One without a name has its
/// place for it, as `arg0`. Of an indexed argument without a fixed size the log has the hash.
pub(crate) fn decode_log(
    event: &Event,
    topics: &[B256],
    data: &[u8],
) -> anyhow::Result<Vec<(String, (String, Value))>> {
    let decoded = resolved(event)?.decode_log_parts(topics.iter().copied(), data);
    let decoded = decoded.map_err(|error| {
        anyhow::anyhow!("the log is not of {}: {}", event.signature(), last_line(&error))
    })?;
    let (mut indexed, mut body) = (decoded.indexed.iter(), decoded.body.iter());
    let mut arguments = Vec::new();
    for (place, input) in event.inputs.iter().enumerate() {
        let value = if input.indexed { indexed.next() } else { body.next() };
        let value =
            value.map_or_else(Default::default, |value| (value::text(value), to_json(value)));
        let name = if input.name.is_empty() { format!("arg{place}") } else { input.name.clone() };
        arguments.push((name, value));
    }
    Ok(arguments)
}

/// The topics that logs of an event have whose first indexed arguments are these; an empty text or
/// `-` stands for any.
pub(crate) fn topics(event: &Event, arguments: &[String]) -> anyhow::Result<Vec<Value>> {
    let indexed: Vec<_> = event.inputs.iter().filter(|input| input.indexed).collect();
    if arguments.len() > indexed.len() {
        return Err(Misuse::error(format_args!(
            "{} arguments are given, and {} has {} that are indexed: mark them, as in \
             'Transfer(address indexed,address indexed,uint256)'",
            arguments.len(),
            event.full_signature(),
            indexed.len()
        )));
    }
    let mut topics = match event.anonymous {
        true => Vec::new(),
        false => vec![json!(event.selector())],
    };
    for (input, text) in indexed.into_iter().zip(arguments) {
        if matches!(text.as_str(), "" | "-") {
            topics.push(Value::Null);
            continue;
        }
        let ty = input.resolve().map_err(|error| Misuse::error(last_line(&error)))?;
        let value = value::read(&ty, text)
            .map_err(|why| Misuse::error(format_args!("\"{}\" is no {ty}: {why}", quote(text))))?;
        topics.push(json!(value.encode_topic()));
    }
    Ok(topics)
}

/// The end of an error of the ABI's parser, which draws the place over several lines first.
pub(crate) fn last_line(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let mut lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    match lines.next() {
        // It marks the place in the line before, which the caller has quoted.
        Some("^") => "it cannot begin so".into(),
        last => last.unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests;
