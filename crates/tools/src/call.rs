//! `call` and `estimate`: message calls that become part of no block.

use alloy_primitives::{Address, Bytes, U64, hex};
use anyhow::{Context, bail};
use clap::Args;
use rpc::{read_json, read_json_bytes};
use serde_json::{Value, json};

use crate::abi;
use crate::endpoint::EndpointArgs;
use crate::error::Output;
use crate::input;
use crate::reads::AtArgs;
use crate::request::{Target, TargetArgs, usage};
use crate::trace;

/// The arguments of `call`.
#[derive(Debug, Args)]
#[command(override_usage = usage!("call"))]
pub struct CallArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    state: StateArgs,
    /// Print the calls that it makes as a tree, with their gas and results. The endpoint needs
    /// debug_traceCall with the tracer callTracer.
    #[arg(long)]
    trace: bool,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The arguments of `estimate`.
#[derive(Debug, Args)]
#[command(override_usage = usage!("estimate"))]
pub struct EstimateArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The state that a call sees, and its caller.
#[derive(Debug, Args)]
struct StateArgs {
    /// The account that calls [default: the endpoint's, usually address zero].
    #[arg(short, long, value_name = "ADDRESS", value_parser = input::address)]
    from: Option<Address>,
    #[command(flatten)]
    at: AtArgs,
    /// Accounts that the call is to see otherwise than they are: a file of JSON, or JSON itself,
    /// as '{"0x12..": {"balance": "0x1", "code": "0x..", "stateDiff": {"0x00..": "0x00.."}}}'.
    #[arg(long = "override", value_name = "FILE")]
    overrides: Option<String>,
    /// A block that the call is to see otherwise than it is, as '{"time": "0x7"}'.
    #[arg(long, value_name = "FILE")]
    block_override: Option<String>,
}

/// A call as the endpoint is asked for it.
struct CallRequest {
    target: Target,
    request: Value,
    block: Value,
    overrides: Option<Value>,
    block_overrides: Option<Value>,
}

impl CallRequest {
    fn new(target: &TargetArgs, state: &StateArgs) -> anyhow::Result<Self> {
        let gas = target.gas;
        let target = target.target()?;
        let read = |option: &str, text: &Option<String>| {
            text.as_deref().map(|text| input::json_or_file(option, text)).transpose()
        };
        Ok(Self {
            request: target.request(state.from, gas),
            target,
            block: state.at.block.of_state(),
            overrides: read("--override", &state.overrides)?,
            block_overrides: read("--block-override", &state.block_override)?,
        })
    }

    /// The parameters of `eth_call` and `eth_estimateGas`: an endpoint may know no third one.
    fn params(&self) -> Value {
        let mut params = vec![self.request.clone(), self.block.clone()];
        if self.overrides.is_some() || self.block_overrides.is_some() {
            params.push(self.overrides.clone().unwrap_or_else(|| json!({})));
        }
        params.extend(self.block_overrides.clone());
        json!(params)
    }

    fn trace_params(&self) -> Value {
        let mut options = json!({"tracer": "callTracer", "tracerConfig": {"withLog": true}});
        if let Some(overrides) = &self.overrides {
            options["stateOverrides"] = overrides.clone();
        }
        if let Some(overrides) = &self.block_overrides {
            options["blockOverrides"] = overrides.clone();
        }
        json!([self.request, self.block, options])
    }
}

pub(crate) fn call(args: &CallArgs) -> anyhow::Result<Output> {
    let request = CallRequest::new(&args.target, &args.state)?;
    let mut node = args.endpoint.connect()?;
    if args.trace {
        let text = node.text("debug_traceCall", &request.trace_params())?;
        return match args.endpoint.json {
            true => Ok(Output::of(text)),
            false => trace::tree(&text, request.target.function.as_ref(), &request.target.errors),
        };
    }
    let answer = node.try_text("eth_call", &request.params());
    let answer = match request.target.answered("eth_call", answer, args.endpoint.json)? {
        Ok(answer) => answer,
        Err(failed) => return Ok(failed),
    };
    let data: Bytes = read_json_bytes(&answer).context("eth_call")?;
    printed_results(&request.target, &data, args.endpoint.json)
}

/// The results of a call: decoded where their types are known.
fn printed_results(target: &Target, data: &Bytes, is_json: bool) -> anyhow::Result<Output> {
    let function = target.function.as_ref().filter(|function| !function.outputs.is_empty());
    let Some(function) = function else {
        return Ok(match is_json {
            true => Output::of(json!(data)),
            false => Output::of(hex::encode_prefixed(data)),
        });
    };
    if data.is_empty() {
        bail!("the call returned nothing: there may be no contract at this address");
    }
    let values = abi::decode_results(function, data)
        .context("the call returned something else than the signature says")?;
    Ok(match is_json {
        true => Output::of(values.iter().map(abi::to_json).collect::<Value>()),
        false => Output::of(abi::text_of(&values)),
    })
}

pub(crate) fn estimate(args: &EstimateArgs) -> anyhow::Result<Output> {
    let request = CallRequest::new(&args.target, &args.state)?;
    let mut node = args.endpoint.connect()?;
    let answer = node.try_text("eth_estimateGas", &request.params());
    let answer = match request.target.answered("eth_estimateGas", answer, args.endpoint.json)? {
        Ok(answer) => answer,
        Err(failed) => return Ok(failed),
    };
    let text = std::str::from_utf8(&answer)?;
    match args.endpoint.json {
        true => Ok(Output::of(text)),
        false => Ok(Output::of(read_json::<U64>(text).context("eth_estimateGas")?)),
    }
}
