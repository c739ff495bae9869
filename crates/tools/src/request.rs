//! A call or a transaction as the command line gives it.

use alloy_json_abi::Function;
use alloy_primitives::{Address, Bytes, U256, hex};
use anyhow::Context;
use clap::Args;
use rpc::{ClientError, quote};
use serde_json::{Value, json};

use crate::abi::{self, KnownErrors};
use crate::error::{Misuse, Output};
use crate::input;

/// The forms of a command that has [`TargetArgs`].
macro_rules! usage {
    ($name:literal) => {
        concat!(
            "deponent ",
            $name,
            " [OPTIONS] <TO> [SIGNATURE|DATA [ARG]..]\n       ",
            "deponent ",
            $name,
            " [OPTIONS] --create <CODE> [SIGNATURE [ARG]..]"
        )
    };
}
pub(crate) use usage;

/// The account that is called, and with what.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// The address that is called, and the function with its arguments, as 0x12.. 'f(uint256)' 7;
    /// results are decoded where the signature has their types: 'f(uint256)(bool)'. In place of a
    /// function, data in hex; without either, nothing is sent but the value. With --create there
    /// is no address, and a signature is that of the constructor.
    #[arg(value_name = "TO, SIGNATURE, ARG", allow_negative_numbers = true)]
    what: Vec<String>,
    /// Create a contract with this code in hex.
    #[arg(long, value_name = "CODE", value_parser = input::data)]
    create: Option<Bytes>,
    /// The amount that is sent, as 7, 1gwei or 0.5ether [default: 0].
    #[arg(long, value_name = "WEI", value_parser = input::wei)]
    pub(crate) value: Option<U256>,
    /// The gas limit.
    #[arg(long, visible_alias = "gas-limit", value_name = "GAS", value_parser = input::number)]
    pub(crate) gas: Option<u64>,
    /// An error that the contract may revert with, as 'TooLow(uint256,address)', so that its
    /// arguments are printed; of several, each with --error.
    #[arg(long = "error", value_name = "SIGNATURE")]
    errors: Vec<String>,
}

/// The target that [`TargetArgs`] give.
#[derive(Debug)]
pub(crate) struct Target {
    /// `None` for a creation.
    pub(crate) to: Option<Address>,
    pub(crate) function: Option<Function>,
    pub(crate) data: Bytes,
    pub(crate) value: U256,
    pub(crate) errors: KnownErrors,
}

impl TargetArgs {
    /// Encodes the data.
    pub(crate) fn target(&self) -> anyhow::Result<Target> {
        let (to, rest) = match (&self.create, &self.what[..]) {
            (Some(_), rest) => (None, rest),
            (None, [to, rest @ ..]) => {
                let address = input::address(to).map_err(|why| {
                    Misuse::error(format_args!("\"{}\" is no address to call: {why}", quote(to)))
                })?;
                (Some(address), rest)
            }
            (None, []) => {
                return Err(Misuse::error("give the address that is called, or --create CODE"));
            }
        };
        let mut data = self.create.clone().unwrap_or_default().to_vec();
        let mut function = None;
        if let Some((text, arguments)) = rest.split_first() {
            if text.starts_with("0x") {
                if !arguments.is_empty() {
                    return Err(Misuse::error("data in hex have no arguments behind them"));
                }
                data.extend(input::data(text).map_err(Misuse::error)?);
            } else {
                let parsed = abi::function(text)?;
                let encoded = abi::calldata(&parsed, arguments)?;
                // A constructor has no selector.
                data.extend(if to.is_some() { &encoded[..] } else { &encoded[4..] });
                function = Some(parsed).filter(|_| to.is_some());
            }
        }
        let errors = KnownErrors::parse(&self.errors)?;
        let value = self.value.unwrap_or_default();
        Ok(Target { to, function, data: data.into(), value, errors })
    }
}

impl Target {
    /// The request of `eth_call` and its like.
    pub(crate) fn request(&self, from: Option<Address>, gas: Option<u64>) -> Value {
        let mut request = json!({ "data": self.data });
        if let Some(to) = self.to {
            request["to"] = json!(to);
        }
        if let Some(from) = from {
            request["from"] = json!(from);
        }
        if !self.value.is_zero() {
            request["value"] = input::quantity(self.value);
        }
        if let Some(gas) = gas {
            request["gas"] = input::quantity(gas);
        }
        request
    }

    /// Why a call failed, with the reason in the data that it reverted with.
    pub(crate) fn failure(&self, error: &ClientError) -> Option<String> {
        let ClientError::Rpc(error) = error else { return None };
        let data = error.data.as_ref().and_then(Value::as_str);
        let data = data.and_then(|text| hex::decode(text).ok());
        let is_revert = error.code == 3 || error.message.contains("revert");
        let data = match data {
            Some(data) if is_revert || !data.is_empty() => data,
            _ if is_revert => Vec::new(),
            _ => return None,
        };
        if let Some(reason) = abi::revert_reason(&data, &self.errors) {
            return Some(format!("the call reverted: {reason}"));
        }
        if data.is_empty() {
            let detail = error.message.trim_start_matches("execution reverted");
            let detail = quote(detail.trim_start_matches(": "));
            let separator = if detail.is_empty() { "" } else { ": " };
            return Some(format!("the call reverted without a reason{separator}{detail}"));
        }
        Some(format!(
            "the call reverted with {} (--error 'TooLow(uint256,address)' decodes it, with the \
             signature of the error)",
            quote(hex::encode_prefixed(&data))
        ))
    }

    /// The result of a call that may fail: a failed one as JSON where it is asked for.
    pub(crate) fn answered(
        &self,
        method: &str,
        answer: Result<Bytes, ClientError>,
        is_json: bool,
    ) -> anyhow::Result<Result<Bytes, Output>> {
        let error = match answer {
            Ok(answer) => return Ok(Ok(answer)),
            Err(error) => error,
        };
        let failure = self.failure(&error);
        match (&error, failure) {
            (ClientError::Rpc(told), failure) if is_json => {
                let words = failure.unwrap_or_else(|| format!("{method}: {error}"));
                let text = format!("{}\n", json!({ "error": told, "reason": words }));
                Ok(Err(Output { text, failure: Some(words), note: None }))
            }
            (_, Some(failure)) => Err(anyhow::anyhow!(failure)),
            (_, None) => Err(error).context(method.to_owned()),
        }
    }
}
