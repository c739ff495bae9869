//! Logs, with the arguments of their event by name.

use std::fmt::Write as _;

use alloy_json_abi::Event;
use alloy_primitives::{Address, B256, Bytes};
use anyhow::Context;
use clap::Args;
use rpc::read_json;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::abi;
use crate::endpoint::EndpointArgs;
use crate::error::{Misuse, Output};
use crate::input::{self, BlockChoice};
use crate::table::{self, Form, Row};

/// The arguments of `logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// An event, as 'Transfer(address indexed from,address indexed to,uint256 value)', or a first
    /// topic.
    #[arg(value_name = "EVENT|TOPIC")]
    event: Option<String>,
    /// Values of its indexed arguments, in their order, or further topics; - stands for any.
    #[arg(value_name = "ARG|TOPIC", allow_negative_numbers = true)]
    arguments: Vec<String>,
    /// The first block.
    #[arg(long, visible_alias = "from-block", value_name = "BLOCK", default_value = "latest")]
    #[arg(value_parser = BlockChoice::parse)]
    from: BlockChoice,
    /// The last block.
    #[arg(long, visible_alias = "to-block", value_name = "BLOCK", default_value = "latest")]
    #[arg(value_parser = BlockChoice::parse)]
    to: BlockChoice,
    /// A contract whose logs are wanted; of several, each with --address.
    #[arg(long, value_parser = input::address)]
    address: Vec<Address>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The members of a log, in cast's order.
const LOG: [Row; 9] = [
    ("address", "address", Form::Account),
    ("blockHash", "blockHash", Form::Text),
    ("blockNumber", "blockNumber", Form::Number),
    ("data", "data", Form::Text),
    ("logIndex", "logIndex", Form::Number),
    ("removed", "removed", Form::Text),
    ("topics", "topics", Form::Text),
    ("transactionHash", "transactionHash", Form::Text),
    ("transactionIndex", "transactionIndex", Form::Number),
];

pub(crate) fn logs(args: &LogsArgs) -> anyhow::Result<Output> {
    let wanted = args.event.as_deref().map(|text| Wanted::parse(text, &args.arguments));
    let wanted = wanted.transpose()?;
    let mut filter = match (args.from, args.to) {
        (BlockChoice::Hash(from), to) if to == BlockChoice::LATEST || to == args.from => {
            json!({ "blockHash": from })
        }
        (BlockChoice::Hash(_), _) | (_, BlockChoice::Hash(_)) => {
            return Err(Misuse::error("a hash as --from names the one block, without --to"));
        }
        (from, to) => json!({ "fromBlock": from.of_state(), "toBlock": to.of_state() }),
    };
    match &args.address[..] {
        [] => {}
        [one] => filter["address"] = json!(one),
        several => filter["address"] = json!(several),
    }
    if let Some(wanted) = &wanted {
        filter["topics"] = json!(wanted.topics);
    }
    let mut node = args.endpoint.connect()?;
    let text = node.text("eth_getLogs", &json!([filter]))?;
    let event = wanted.as_ref().and_then(|wanted| wanted.event.as_ref());
    if args.endpoint.json && event.is_none() {
        return Ok(Output::of(text));
    }
    let mut found: Vec<Map<String, Value>> = read_json(&text).context("eth_getLogs")?;
    if !args.endpoint.json {
        let is_newest = args.from == BlockChoice::LATEST && args.to == BlockChoice::LATEST;
        let note = (found.is_empty() && is_newest)
            .then(|| "the newest block has no such log: --from 0 looks at all blocks".to_owned());
        let text = found.iter().map(|log| written(log, event)).collect::<String>();
        return Ok(Output { note, ..Output::of(text) });
    }
    for log in &mut found {
        let decoded = event.map(|event| arguments(log, event)).transpose().unwrap_or_default();
        let decoded = decoded.map(|list| {
            list.into_iter().map(|(name, value)| (name, value.1)).collect::<Map<_, _>>()
        });
        log.insert("arguments".into(), json!(decoded));
    }
    Ok(Output::of(json!(found)))
}

/// The topics that are asked for, and the event that they are of.
struct Wanted {
    event: Option<Event>,
    topics: Vec<Value>,
}

impl Wanted {
    fn parse(text: &str, arguments: &[String]) -> anyhow::Result<Self> {
        if !text.starts_with("0x") {
            let event = abi::event(text)?;
            let topics = abi::topics(&event, arguments)?;
            return Ok(Self { event: Some(event), topics });
        }
        let topic = |text: &str| match text {
            "" | "-" => Ok(Value::Null),
            text => input::hash(text).map(|topic| json!(topic)).map_err(|_| {
                Misuse::error(format_args!("\"{}\" is no topic of 32 bytes", rpc::quote(text)))
            }),
        };
        let texts = std::iter::once(text).chain(arguments.iter().map(String::as_str));
        Ok(Self { event: None, topics: texts.map(topic).collect::<anyhow::Result<_>>()? })
    }
}

/// A log's arguments by name.
fn arguments(
    log: &Map<String, Value>,
    event: &Event,
) -> anyhow::Result<Vec<(String, (String, Value))>> {
    #[derive(Deserialize)]
    struct LogParts {
        topics: Vec<B256>,
        data: Bytes,
    }
    let LogParts { topics, data } = serde_json::from_value(log.clone().into())?;
    abi::decode_log(event, &topics, &data)
}

/// A log as an item of a list, as cast has it.
fn written(log: &Map<String, Value>, event: Option<&Event>) -> String {
    let mut text = String::new();
    for (index, (name, _, form)) in LOG.iter().enumerate() {
        let Some(value) = log.get(*name) else { continue };
        let mark = if index == 0 { "- " } else { "  " };
        let value = match value.as_array().filter(|topics| !topics.is_empty()) {
            Some(topics) => {
                let topics = topics.iter().map(|topic| table::written(topic, Form::Text));
                format!(
                    "[\n{}  ]",
                    topics.map(|topic| format!("  \t{topic}\n")).collect::<String>()
                )
            }
            None => table::written(value, *form),
        };
        let _ = writeln!(text, "{mark}{name}: {value}");
    }
    match event.map(|event| arguments(log, event)) {
        None => {}
        Some(Err(error)) => {
            let _ = writeln!(text, "  arguments: {error}");
        }
        Some(Ok(arguments)) => {
            text += "  arguments:\n";
            for (name, (value, _)) in arguments {
                let _ = writeln!(text, "    {name}: {value}");
            }
        }
    }
    text
}
