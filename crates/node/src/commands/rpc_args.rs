//! The flags of what ports offer, and of the bounds of calls and batches.

use std::time::Duration;

use clap::Args;

use crate::CallBounds;
use crate::api::{MethodPattern, method_names};
use crate::flags::values::{Threshold, count, parse_bytes, parse_duration, positive};
use crate::limits::CALL_GAS;
use crate::ports_options::BatchBounds;

/// Bounds of calls and of batches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Bounds of calls")]
pub(super) struct RpcArgs {
    /// The most gas of a call that becomes part of no block, of an estimate, and of a simulation;
    /// 0 is no bound. Those with more gas take more memory than ports count for them.
    #[arg(long = "rpc.gascap", value_name = "GAS", value_parser = count::<u64>,
          default_value_t = CALL_GAS)]
    gas_cap: u64,
    /// How long one answer may run calls: eth_call, all runs of an estimate, a simulation, a trace
    /// that names no time; 0 is no bound.
    #[arg(long = "rpc.evmtimeout", value_name = "DURATION", value_parser = parse_time,
          default_value = "5s")]
    time: Bound,
    /// The most requests in one batch on the public port.
    #[arg(long = "rpc.batch-request-limit", value_name = "COUNT", value_parser = positive,
          default_value_t = BatchBounds::default().requests)]
    batch_requests: usize,
    /// The most bytes of answers to one batch on the public port, after which the rest of its
    /// requests are refused.
    #[arg(long = "rpc.batch-response-max-size", value_name = "BYTES", value_parser = parse_bytes,
          default_value = "32MiB")]
    batch_bytes: u64,
}

/// A time that something may take; none is no bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound(pub(super) Option<Duration>);

pub(super) fn parse_time(text: &str) -> Result<Bound, String> {
    let expected = || "expected a duration, as 500ms, 5s or 1m; 0 is no bound".to_owned();
    let Threshold(time) = parse_duration(text).map_err(|_| expected())?;
    let time = time.ok_or_else(expected)?;
    Ok(Bound((!time.is_zero()).then_some(time)))
}

impl RpcArgs {
    pub(super) fn calls(&self) -> CallBounds {
        // geth has half of what 64 bits hold, so that sums do not overflow.
        let gas = if self.gas_cap == 0 { u64::MAX / 2 } else { self.gas_cap };
        CallBounds { gas, time: self.time.0 }
    }

    pub(super) fn batches(&self) -> BatchBounds {
        let answer_bytes = usize::try_from(self.batch_bytes).unwrap_or(usize::MAX);
        BatchBounds { requests: self.batch_requests, answer_bytes }
    }
}

/// A method or a beginning of methods of ours, offered or taken away.
pub(super) fn parse_method(text: &str) -> Result<MethodPattern, String> {
    let pattern: MethodPattern = text.parse()?;
    let names = method_names();
    if names.iter().any(|name| pattern.has(name)) {
        return Ok(pattern);
    }
    let likeness = |name: &&&str| strsim::jaro_winkler(text, name);
    let nearest = names.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let nearest = nearest.filter(|name| likeness(name) > 0.9);
    let near = nearest.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(format!("expected a method that there is, or the beginning of some as eth_*{near}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_that_is_misspelt_is_refused_with_the_nearest_one() {
        for text in ["eth_call", "eth_*", "!engine_newPayloadV4", "evm_mine", "eth_subscribe"] {
            parse_method(text).expect(text);
        }
        let said = parse_method("eth_getBalanec").expect_err("there is none");
        assert!(said.contains("did you mean eth_getBalance?"), "{said}");
        let said = parse_method("etc_*").expect_err("there is none");
        assert!(said.contains("expected a method that there is"), "{said}");
        parse_method("eth-call").expect_err("no name");
    }

    #[test]
    fn no_time_is_no_bound_and_less_is_none() {
        assert_eq!(parse_time("0").expect("a time").0, None);
        assert_eq!(parse_time("250ms").expect("a time").0, Some(Duration::from_millis(250)));
        for text in ["5", "-1s", "soon", ""] {
            assert!(parse_time(text).expect_err(text).contains("0 is no bound"));
        }
    }
}
