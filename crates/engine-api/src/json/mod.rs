//! JSON, as strict as the specification: for servers, and for those who read payloads from files.
//!
//! A member that no version has is refused, and `null` counts as absent (execution-apis
//! `src/engine/cancun.md`, `engine_newPayloadV3`, point 1). Answers are read leniently: what they
//! have more is ignored.

mod answers;
mod attributes;
mod hex;
mod list;
mod object;
mod payload;

pub use attributes::{AttributesFields, ForkchoiceStateFields};
pub use hex::{Data, FixedData, Quantity, Quantity256, parse_str};
pub use list::{Entries, List};
pub use object::Object;
pub use payload::{PayloadFields, WithdrawalFields};
pub(crate) use payload::{missing, unknown};
