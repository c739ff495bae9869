//! The configuration of a trace, as geth takes it.

use std::collections::BTreeMap;
use std::time::Duration;

use engine_api::json::{List, Object, Quantity};
use execution::{
    CallTracerConfig, Erc7562TracerConfig, FlatCallTracerConfig, Overrides, PrestateTracerConfig,
    StructLogConfig, TracerConfig,
};
use rpc::{Error, quote};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use super::call::{Overridden, OverriddenBlock, overridden};
use crate::limits::LONGEST_EVM_TRACE_TIME;

/// The names of the tracers there are.
const TRACERS: &[&str] = &[
    "4byteTracer",
    "callTracer",
    "erc7562Tracer",
    "flatCallTracer",
    "keccak256PreimageTracer",
    "muxTracer",
    "noopTracer",
    "prestateTracer",
];

/// The configuration, of which all members may be left out.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TraceConfig<'a> {
    /// Without one, struct logs are made, for which the next members are.
    tracer: Option<String>,
    enable_memory: Option<bool>,
    disable_stack: Option<bool>,
    disable_storage: Option<bool>,
    enable_return_data: Option<bool>,
    limit: Option<u64>,
    #[serde(borrow)]
    tracer_config: Option<&'a RawValue>,
    timeout: Option<String>,
    state_overrides: Option<Overridden>,
    block_overrides: Option<Object<OverriddenBlock>>,
    tx_index: Option<Quantity>,
    /// How many blocks geth was once to run again for a missing state.
    #[serde(rename = "reexec")]
    _reexec: Option<IgnoredAny>,
    /// Printed what geth traced.
    #[serde(rename = "debug")]
    _debug: Option<IgnoredAny>,
}

/// The configuration of `callTracer`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CallTracerFields {
    only_top_call: Option<bool>,
    with_log: Option<bool>,
}

/// The configuration of `erc7562Tracer`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Erc7562TracerFields {
    ignored_opcodes: Option<List<Quantity, 256>>,
    with_log: Option<bool>,
    /// How much of the stack geth keeps for itself.
    #[serde(rename = "stackTopItemsSize")]
    _stack_top_items_size: Option<u64>,
}

impl Erc7562TracerFields {
    fn config(self) -> Result<TracerConfig, Error> {
        let opcode = |Quantity(op): Quantity| {
            u8::try_from(op).map_err(|_| {
                Error::invalid_params(format!("ignoredOpcodes: {op:#x} is no opcode of one byte"))
            })
        };
        let ignored = self.ignored_opcodes.map(|List(ops)| ops.into_iter().map(opcode).collect());
        Ok(TracerConfig::Erc7562(Erc7562TracerConfig {
            ignored_opcodes: ignored.transpose()?,
            with_log: self.with_log.unwrap_or_default(),
        }))
    }
}

/// The configuration of `flatCallTracer`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FlatCallTracerFields {
    convert_parity_errors: Option<bool>,
    include_precompiles: Option<bool>,
}

/// The configuration of `prestateTracer`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PrestateTracerFields {
    diff_mode: Option<bool>,
    disable_code: Option<bool>,
    disable_storage: Option<bool>,
    include_empty: Option<bool>,
}

impl PrestateTracerFields {
    fn config(&self) -> Result<TracerConfig, Error> {
        let config = PrestateTracerConfig {
            diff_mode: self.diff_mode.unwrap_or_default(),
            disable_code: self.disable_code.unwrap_or_default(),
            disable_storage: self.disable_storage.unwrap_or_default(),
            include_empty: self.include_empty.unwrap_or_default(),
        };
        match config.diff_mode && config.include_empty {
            true => Err(Error::failed_call("cannot use diffMode with includeEmpty".into())),
            false => Ok(TracerConfig::Prestate(config)),
        }
    }
}

impl TraceConfig<'_> {
    /// The tracer.
    pub(super) fn tracer(&self) -> Result<TracerConfig, Error> {
        match self.tracer.as_deref() {
            Some("muxTracer") => mux(self.tracer_config),
            Some(name) => named(name, self.tracer_config),
            None => Ok(TracerConfig::StructLogs(StructLogConfig {
                enable_memory: self.enable_memory.unwrap_or_default(),
                disable_stack: self.disable_stack.unwrap_or_default(),
                disable_storage: self.disable_storage.unwrap_or_default(),
                enable_return_data: self.enable_return_data.unwrap_or_default(),
                limit: usize::try_from(self.limit.unwrap_or_default()).unwrap_or(usize::MAX),
            })),
        }
    }

    /// The time that it may take, if it says so.
    pub(super) fn time(&self) -> Result<Option<Duration>, Error> {
        let Some(text) = &self.timeout else { return Ok(None) };
        let time = duration(text).ok_or_else(|| {
            Error::invalid_params(format!(
                "timeout: \"{}\" is no time, such as \"10s\", \"1m30s\" or \"500ms\"",
                quote(text)
            ))
        })?;
        Ok(Some(time.min(LONGEST_EVM_TRACE_TIME)))
    }

    /// The values that a call sees in place of those of the state and the block.
    pub(super) fn overrides(&mut self) -> Result<Overrides, Error> {
        overridden(self.state_overrides.take(), self.block_overrides.take())
    }

    /// The transaction of the block before which a call is traced; without it that is after the
    /// block.
    pub(super) fn index(&self) -> Option<u64> {
        self.tx_index.map(|Quantity(index)| index)
    }

    /// Overrides are for calls.
    pub(super) fn refuse_overrides(&self) -> Result<(), Error> {
        let given = [
            ("stateOverrides", self.state_overrides.is_some()),
            ("blockOverrides", self.block_overrides.is_some()),
            ("txIndex", self.tx_index.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => {
                let problem = format!("{name} is for debug_traceCall; leave it out");
                Err(Error::invalid_params(problem))
            }
            None => Ok(()),
        }
    }
}

/// Several tracers, by their names. None of them is again several.
fn mux(config: Option<&RawValue>) -> Result<TracerConfig, Error> {
    let Some(config) = config else { return Ok(TracerConfig::Mux(Vec::new())) };
    let tracers: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(config.get())
        .map_err(|fault| Error::invalid_params(format!("tracerConfig: {fault}")))?;
    let tracers = tracers.unwrap_or_default().into_iter().map(|(name, config)| {
        let tracer = named(&name, Some(config))?;
        Ok((name, tracer))
    });
    Ok(TracerConfig::Mux(tracers.collect::<Result<_, Error>>()?))
}

/// The tracer of this name.
fn named(name: &str, config: Option<&RawValue>) -> Result<TracerConfig, Error> {
    Ok(match name {
        "callTracer" => {
            let CallTracerFields { only_top_call, with_log } = fields(config)?;
            TracerConfig::Calls(CallTracerConfig {
                only_top_call: only_top_call.unwrap_or_default(),
                with_log: with_log.unwrap_or_default(),
            })
        }
        "erc7562Tracer" => fields::<Erc7562TracerFields>(config)?.config()?,
        "flatCallTracer" => {
            let fields: FlatCallTracerFields = fields(config)?;
            TracerConfig::FlatCalls(FlatCallTracerConfig {
                convert_parity_errors: fields.convert_parity_errors.unwrap_or_default(),
                include_precompiles: fields.include_precompiles.unwrap_or_default(),
            })
        }
        "prestateTracer" => fields::<PrestateTracerFields>(config)?.config()?,
        "keccak256PreimageTracer" => TracerConfig::Preimages,
        "4byteTracer" => TracerConfig::Selectors,
        "noopTracer" => TracerConfig::Noop,
        other => {
            let (name, tracers) = (quote(other), TRACERS.join(", "));
            let problem = format!(
                "there is no tracer \"{name}\", and none in JavaScript; there are {tracers}, and \
                 without a name struct logs"
            );
            return Err(Error::invalid_params(problem));
        }
    })
}

/// The members of a tracer's configuration.
fn fields<T: DeserializeOwned + Default>(config: Option<&RawValue>) -> Result<T, Error> {
    let Some(config) = config else { return Ok(T::default()) };
    let fields: Option<Object<T>> = serde_json::from_str(config.get())
        .map_err(|fault| Error::invalid_params(format!("tracerConfig: {fault}")))?;
    Ok(fields.map_or_else(T::default, |Object(fields)| fields))
}

/// A time as Go writes it: numbers, each with a unit.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        rest = after;
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_writes_them() {
        for (text, milliseconds) in
            [("5s", 5_000), ("1m30s", 90_000), ("1.5s", 1_500), ("250ms", 250), ("2h", 7_200_000)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "5", "s", "5 s", "-5s", "5x", "1.2.3s", "5s1"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(duration(&format!("{}h", "9".repeat(30))), Some(Duration::MAX));
    }
}
