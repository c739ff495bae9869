//! Why a call reverted, out of the data that it returned.

use alloy_dyn_abi::{DynSolError, DynSolValue, ErrorExt, Specifier};
use alloy_json_abi::Error;
use alloy_primitives::U256;
use rpc::{quote, shortened};

use super::{last_line, value};
use crate::error::Misuse;

/// The codes of Solidity's `Panic(uint256)`, and what they mean ("Panic via assert and Error via
/// require" of Solidity's documentation).
const PANICS: [(u64, &str); 10] = [
    (0x00, "generic panic"),
    (0x01, "assertion failed"),
    (0x11, "arithmetic underflow or overflow"),
    (0x12, "division or modulo by zero"),
    (0x21, "no such member of an enum"),
    (0x22, "storage byte array with a wrong encoding"),
    (0x31, "pop of an empty array"),
    (0x32, "array index out of bounds"),
    (0x41, "too much memory allocated"),
    (0x51, "call of an uninitialised internal function"),
];

/// Errors of contracts, by their signatures.
#[derive(Debug, Default)]
pub(crate) struct KnownErrors(Vec<(Error, DynSolError)>);

impl KnownErrors {
    /// Reads signatures as `TooLow(uint256,address)`.
    pub(crate) fn parse(signatures: &[String]) -> anyhow::Result<Self> {
        let of_one = |signature: &String| {
            let fault = |why: String| {
                Misuse::error(format_args!(
                    "\"{}\" is no signature of an error, as 'TooLow(uint256,address)': {why}",
                    quote(signature)
                ))
            };
            let error = Error::parse(signature.trim()).map_err(|error| fault(last_line(&error)))?;
            let types = error.resolve().map_err(|error| fault(last_line(&error)))?;
            Ok((error, types))
        };
        signatures.iter().map(of_one).collect::<anyhow::Result<_>>().map(Self)
    }
}

/// The reason of a revert: the text of `require`, the meaning of a panic, or a known error with its
/// arguments. `None` for other data.
pub(crate) fn revert_reason(data: &[u8], known: &KnownErrors) -> Option<String> {
    if let Ok(decoded) = DynSolError::revert().decode_error(data) {
        let text = decoded.body.first().and_then(DynSolValue::as_str)?;
        return Some(shortened(text));
    }
    if let Ok(decoded) = DynSolError::panic().decode_error(data) {
        let (code, _) = decoded.body.first()?.as_uint()?;
        let meant = PANICS.iter().find(|(known, _)| U256::from(*known) == code);
        let meant = meant.map_or("unknown code", |(_, words)| words);
        return Some(format!("panic: {meant} ({code:#04x})"));
    }
    known.0.iter().find_map(|(error, _)| {
        let decoded = error.decode_error(data).ok()?;
        let arguments: Vec<_> = decoded.body.iter().map(value::text).collect();
        Some(format!("{}({})", error.name, arguments.join(", ")))
    })
}
