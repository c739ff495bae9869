//! Bounds of the commands, each with its unit and its reason.

use std::time::Duration;

/// Longest wait for an answer, unless `--rpc-timeout` says otherwise: a trace of a call may take
/// long, and an endpoint that is silent for longer is not there.
pub(crate) const CALL_TIME: Duration = Duration::from_secs(45);

/// Longest answer of an endpoint over HTTP, in bytes: logs and traces that a person would still
/// read with other programs.
pub(crate) const ANSWER_BYTES: usize = 1 << 30;

/// Longest file of JSON that an option names, in bytes: overrides of thousands of accounts.
pub(crate) const JSON_FILE_BYTES: u64 = 64 << 20;

/// Largest power of ten behind a number, as in `1e18`: 2^256 has 78 digits.
pub(crate) const POWER_OF_TEN: usize = 77;

/// Time between two questions for a receipt: a small part of a slot, and few calls of a public
/// endpoint's allowance.
pub(crate) const RECEIPT_PAUSE: Duration = Duration::from_millis(250);

/// Most rounds of PBKDF2 in a keystore: forty times those that wallets write, some ten seconds.
pub(crate) const KEYSTORE_ROUNDS: u32 = 10_000_000;

/// Most memory of scrypt for a keystore, in bytes, and most of its rounds, n times r times p: four
/// times the memory that geth's keystores need.
pub(crate) const SCRYPT_BYTES: u128 = 1 << 30;

/// Most blobs of a transaction (EIP-7594).
pub(crate) const BLOBS: usize = 6;
