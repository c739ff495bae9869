use alloy_eips::{eip2935, eip4788};
use alloy_primitives::{Address, U256};
use engine::{Amendment, BlockRecord, Engine, StateNames, WholeAccount};
use execution::{Deadline, PrestateTracerConfig, TraceOptions, Traced, TracerConfig};
use serde_json::Value;

use crate::Error;
use crate::genesis::SYSTEM_CONTRACTS;
use crate::limits::TRACE_BYTES;

/// Blocks whose beacon roots are kept, and as many slots for their times (EIP-4788).
const HISTORY_BUFFER_LENGTH: u64 = 8191;

/// Slots from 0 on in which contracts of requests count and queue (EIP-7002, EIP-7251).
const QUEUE_SLOTS: u64 = 4;

/// Names the accounts and slots that a block changed.
///
/// # Errors
/// [`Error::Engine`].
pub(crate) fn name_changes(
    engine: &Engine,
    record: &BlockRecord,
    names: &mut StateNames,
) -> Result<(), Error> {
    let header = &record.block.header;
    names.entry(header.beneficiary).or_default();
    let (time, parent) = (header.timestamp, header.number.saturating_sub(1));
    let time = time % HISTORY_BUFFER_LENGTH;
    let roots = names.entry(eip4788::BEACON_ROOTS_ADDRESS).or_default();
    roots.extend([time, time + HISTORY_BUFFER_LENGTH].map(U256::from));
    let hashes = names.entry(eip2935::HISTORY_STORAGE_ADDRESS).or_default();
    hashes.insert(U256::from(parent % eip2935::HISTORY_SERVE_WINDOW as u64));
    for contract in SYSTEM_CONTRACTS {
        names.entry(contract).or_default().extend((0..QUEUE_SLOTS).map(U256::from));
    }
    if record.block.body.transactions.is_empty() {
        return Ok(());
    }
    let config = PrestateTracerConfig { diff_mode: true, ..PrestateTracerConfig::default() };
    let tracer = TracerConfig::Prestate(config);
    let options = TraceOptions {
        tracer,
        first_log: 0,
        deadline: Deadline::new(|| false),
        bytes: TRACE_BYTES,
    };
    let traced = engine.trace_block(&record.block, &record.senders, None, &options)?;
    // Without an answer, names are missing, and the state's root tells.
    let Traced::Done(answers) = traced else { return Ok(()) };
    for answer in answers {
        let answer: Value = serde_json::from_str(&answer).expect("the tracer writes JSON");
        for accounts in ["pre", "post"] {
            for (address, account) in answer[accounts].as_object().into_iter().flatten() {
                let slots = names.entry(address.parse().expect("an address")).or_default();
                let found = account["storage"].as_object().into_iter().flatten();
                slots.extend(found.map(|(slot, _)| slot.parse::<U256>().expect("a slot")));
            }
        }
    }
    Ok(())
}

/// The changes that make accounts what they were in a dump. Contracts that the system calls stay as
/// they are, since their slots are of their own chain.
pub(crate) fn amendments(accounts: &[WholeAccount]) -> Vec<(Address, Amendment)> {
    let mut changes = Vec::new();
    for account in accounts {
        let WholeAccount { address, nonce, balance, code, storage } = account;
        if SYSTEM_CONTRACTS.contains(address) {
            continue;
        }
        changes.push((*address, Amendment::Nonce(*nonce)));
        changes.push((*address, Amendment::Balance(*balance)));
        changes.push((*address, Amendment::Code(code.clone())));
        for (slot, value) in storage {
            changes.push((*address, Amendment::Storage { slot: *slot, value: *value }));
        }
    }
    changes
}
