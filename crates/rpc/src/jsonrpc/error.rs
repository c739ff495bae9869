//! The errors of JSON-RPC. The wire's codes are defined here and nowhere else.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::quote::{quote, shortened};

/// The errors of JSON-RPC 2.0 and of the Engine API.
///
/// Numbers and words are those of execution-apis `src/engine/common.md` at
/// 3016309345a22d96e3e6357ace9b9b0be38c471a, [`Code::TooDeepReorg`] those of its pull request 786,
/// [`Code::PrunedHistory`] those of EIP-4444 clients, [`Code::Reverted`] those of `eth_call` in
/// all clients, [`Code::ResourceNotFound`] and [`Code::LimitExceeded`] those of EIP-1474,
/// [`Code::ClientLimit`] those of `eth_simulateV1` and of geth, [`Code::NotIncluded`] that of
/// EIP-7966; those of batches are geth's (`rpc/errors.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Invalid JSON was received.
    Parse,
    /// The JSON is not a request.
    InvalidRequest,
    /// The method does not exist or is not offered here.
    MethodNotFound,
    /// The parameters do not fit the method.
    InvalidParams,
    /// A fault of ours.
    Internal,
    /// The request could not be answered.
    Server,
    /// The payload does not exist.
    UnknownPayload,
    /// The fork choice state contradicts itself or the chain.
    InvalidForkchoiceState,
    /// The payload attributes are inconsistent.
    InvalidPayloadAttributes,
    /// More was asked for than one request may.
    TooLargeRequest,
    /// The payload's fork is not the one this method is for.
    UnsupportedFork,
    /// The new head lies further back than we can go.
    TooDeepReorg,
    /// The block's body or receipts are no longer kept.
    PrunedHistory,
    /// The call reverted.
    Reverted,
    /// There is no such thing: a block access list before Amsterdam.
    ResourceNotFound,
    /// More was asked for than one call may, in methods of `eth`.
    ClientLimit,
    /// The answer would be longer than one may be.
    LimitExceeded,
    /// A batch has more requests than one may.
    BatchTooLarge,
    /// The answers to a batch would be longer than they may be.
    ResponseTooLarge,
    /// The calls of a batch took more time than they may.
    TimedOut,
    /// A call's nonce is below the caller's.
    NonceTooLow,
    /// A call's nonce is above the caller's.
    NonceTooHigh,
    /// A call's fee is below the base fee.
    BaseFeeTooLow,
    /// A call has less gas than it needs before it runs.
    IntrinsicGas,
    /// A caller has too little money.
    InsufficientFunds,
    /// A call has more gas than its block has left.
    BlockGasLimit,
    /// The numbers of blocks do not ascend.
    BlockNumbers,
    /// The times of blocks do not ascend.
    BlockTimes,
    /// An init code is too large.
    InitCodeSize,
    /// A transaction is in no block after the time that was waited for it (EIP-7966).
    NotIncluded,
}

impl Code {
    /// The number and the words on the wire.
    const fn wire(self) -> (i64, &'static str) {
        match self {
            Self::Parse => (-32700, "Parse error"),
            Self::InvalidRequest => (-32600, "Invalid Request"),
            Self::MethodNotFound => (-32601, "Method not found"),
            Self::InvalidParams => (-32602, "Invalid params"),
            Self::Internal => (-32603, "Internal error"),
            Self::Server => (-32000, "Server error"),
            Self::UnknownPayload => (-38001, "Unknown payload"),
            Self::InvalidForkchoiceState => (-38002, "Invalid forkchoice state"),
            Self::InvalidPayloadAttributes => (-38003, "Invalid payload attributes"),
            Self::TooLargeRequest => (-38004, "Too large request"),
            Self::UnsupportedFork => (-38005, "Unsupported fork"),
            Self::TooDeepReorg => (-38006, "Too deep reorg"),
            Self::PrunedHistory => (4444, "Pruned history unavailable"),
            Self::Reverted => (3, "execution reverted"),
            Self::ResourceNotFound => (-32001, "Resource not found"),
            Self::ClientLimit => (-38026, "Client limit exceeded"),
            Self::LimitExceeded => (-32005, "Limit exceeded"),
            Self::BatchTooLarge => (-32600, "batch too large"),
            Self::ResponseTooLarge => (-32003, "response too large"),
            Self::TimedOut => (-32002, "request timed out"),
            Self::NonceTooLow => (-38010, "Nonce too low"),
            Self::NonceTooHigh => (-38011, "Nonce too high"),
            Self::BaseFeeTooLow => (-38012, "Base fee too low"),
            Self::IntrinsicGas => (-38013, "Intrinsic gas too low"),
            Self::InsufficientFunds => (-38014, "Insufficient funds"),
            Self::BlockGasLimit => (-38015, "Block gas limit reached"),
            Self::BlockNumbers => (-38020, "Block numbers do not ascend"),
            Self::BlockTimes => (-38021, "Block times do not ascend"),
            Self::InitCodeSize => (-38025, "Max init code size exceeded"),
            Self::NotIncluded => (4, "Transaction not included in time"),
        }
    }
}

/// A JSON-RPC error object, as sent and as received.
///
/// Ours carry `data: {"err": "..."}`, the place the Engine API gives to the explanation, unless it
/// is [the message](Self::in_message), as in geth; those on message calls are as geth has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub struct Error {
    /// The number callers act upon.
    pub code: i64,
    /// The number in words, or what was wrong.
    pub message: Cow<'static, str>,
    /// The details of this error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Error {
    /// An error that says what was wrong this time. A detail of more than 1,000 characters is cut;
    /// those that repeat a foreign text [quote](crate::quote()) no more than its start.
    pub fn new(code: Code, detail: impl fmt::Display) -> Self {
        let (code, words) = code.wire();
        let data = Some(json!({ "err": shortened(detail) }));
        Self { code, message: Cow::Borrowed(words), data }
    }

    /// [`Code::InvalidParams`].
    pub fn invalid_params(detail: impl fmt::Display) -> Self {
        Self::new(Code::InvalidParams, detail)
    }

    /// [`Code::MethodNotFound`], for a handler that does not know `method`.
    pub fn method_not_found(method: &str) -> Self {
        let method = quote(method);
        Self::new(Code::MethodNotFound, format_args!("there is no method \"{method}\" here"))
    }

    /// [`Code::MethodNotFound`], for a subscription asked for where none can be delivered.
    pub(crate) fn needs_websocket(method: &str) -> Self {
        let detail = format_args!(
            "{method} belongs to a subscription: it needs a WebSocket connection (ws://) to this \
             port"
        );
        Self::new(Code::MethodNotFound, detail)
    }

    /// For a call that was not made because its client has hung up.
    pub(crate) fn hung_up() -> Self {
        Self::new(Code::Server, "not called: the client has hung up")
    }

    /// [`Code::Reverted`] with what the call reverted with, in hex, and the reason given in there.
    pub fn reverted(reason: Option<&str>, output: String) -> Self {
        let (code, message) = Code::Reverted.wire();
        let message = match reason {
            Some(reason) => Cow::Owned(format!("{message}: {}", quote(reason))),
            None => Cow::Borrowed(message),
        };
        Self { code, message, data: Some(Value::String(output)) }
    }

    /// [`Code::Server`] for a call that failed, or could not begin: the reason is the message.
    pub fn failed_call(reason: String) -> Self {
        Self::of_call(Code::Server, reason)
    }

    /// An error of calls: the reason is the message.
    pub fn of_call(code: Code, reason: String) -> Self {
        let (code, _) = code.wire();
        Self { code, message: Cow::Owned(shortened(reason)), data: None }
    }

    /// The same error with what was wrong as its message: programs that know no Engine API show
    /// nothing else.
    #[must_use]
    pub fn in_message(self) -> Self {
        let detail = self.data.as_ref().and_then(|data| data.get("err")?.as_str());
        match detail.map(|detail| Cow::Owned(detail.to_owned())) {
            Some(message) => Self { message, data: None, ..self },
            None => self,
        }
    }

    /// Whether this is the error that `code` stands for.
    pub fn is(&self, code: Code) -> bool {
        self.code == code.wire().0
    }
}

/// With the start of a long message, and of long data: they may be foreign.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", quote(&self.message), self.code)?;
        match &self.data {
            None | Some(Value::Null) => Ok(()),
            Some(data) => match data.get("err").and_then(Value::as_str) {
                Some(detail) => write!(f, ": {}", quote(detail)),
                None => write!(f, ": {}", quote(data)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_written_with_its_detail_as_data_err() {
        let error = Error::new(Code::UnsupportedFork, "the block is before Osaka");
        let text = serde_json::to_string(&error).expect("writes");
        let expected = "{\"code\":-38005,\"message\":\"Unsupported fork\",\
                        \"data\":{\"err\":\"the block is before Osaka\"}}";
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Error>(&text).expect("reads"), error);
        assert_eq!(error.to_string(), "Unsupported fork (-38005): the block is before Osaka");
    }

    #[test]
    fn an_error_on_a_call_is_written_as_geth_does() {
        let written = |error: Error| serde_json::to_string(&error).expect("writes");
        assert_eq!(
            written(Error::reverted(Some("no"), "0x01".into())),
            r#"{"code":3,"message":"execution reverted: no","data":"0x01"}"#
        );
        assert_eq!(
            written(Error::reverted(None, "0x".into())),
            r#"{"code":3,"message":"execution reverted","data":"0x"}"#
        );
        assert_eq!(
            written(Error::failed_call("out of gas".into())),
            r#"{"code":-32000,"message":"out of gas"}"#
        );
    }

    #[test]
    fn a_foreign_error_is_read_with_any_code_and_without_data() {
        let error: Error =
            serde_json::from_str(r#"{"code":3,"message":"execution reverted"}"#).expect("reads");
        assert_eq!((error.code, error.data.as_ref()), (3, None));
        assert_eq!(error.to_string(), "execution reverted (3)");
    }
}
