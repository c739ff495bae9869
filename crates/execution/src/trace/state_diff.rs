//! `stateDiff`: the accounts that a transaction changes, with all that differs before and after it.

use super::json;
use super::view::View;
use super::watch::TransactionEnd;
use alloy_primitives::{B256, Bytes, U256};
use revm::primitives::hardfork::SpecId;
use revm::state::{Account, AccountInfo};
use std::collections::BTreeMap;

/// Writes the accounts that differ, by address.
pub(super) fn write(out: &mut String, end: &TransactionEnd<'_>, view: &mut dyn View) {
    let accounts: BTreeMap<_, _> = end.state.iter().collect();
    out.push('{');
    for (address, account) in accounts {
        let before = view.account_before(*address);
        let after = exists(account, before.is_some(), view.spec()).then_some(&account.info);
        if !is_changed(account, before.as_ref(), after) {
            continue;
        }
        // Without the checksum's capitals.
        json::member(out, &format!("{address:#x}"));
        write_account(out, account, [before.as_ref(), after], view);
    }
    out.push('}');
}

/// Whether an account that was loaded is there after the transaction (EIP-161).
fn exists(account: &Account, was_there: bool, spec: SpecId) -> bool {
    if account.is_selfdestructed() {
        return false;
    }
    if !account.info.is_empty() {
        return true;
    }
    match spec.is_enabled_in(SpecId::SPURIOUS_DRAGON) {
        true => was_there && !account.is_touched(),
        false => was_there || account.is_touched(),
    }
}

fn is_changed(
    account: &Account,
    before: Option<&AccountInfo>,
    after: Option<&AccountInfo>,
) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => {
            let is_same = before.balance == after.balance
                && before.nonce == after.nonce
                && before.code_hash == after.code_hash;
            !is_same || account.storage.values().any(|slot| slot.is_changed())
        }
        (before, after) => before.is_some() || after.is_some(),
    }
}

/// Writes the members of an account that differs. One that begins has all of them, one that ends
/// too, but no slots.
fn write_account(
    out: &mut String,
    account: &Account,
    sides: [Option<&AccountInfo>; 2],
    view: &mut dyn View,
) {
    let codes = match sides {
        [Some(before), Some(after)] if before.code_hash == after.code_hash => [None, None],
        sides => sides.map(|side| side.map(|info| view.code(info))),
    };
    out.push('{');
    json::member(out, "balance");
    write_delta(out, sides.map(|side| side.map(|info| info.balance)), |out, value| {
        json::quantity(out, value);
    });
    json::member(out, "code");
    write_delta(out, codes, |out, code: Bytes| json::bytes(out, &code));
    json::member(out, "nonce");
    write_delta(out, sides.map(|side| side.map(|info| info.nonce)), json::quantity);
    json::member(out, "storage");
    write_storage(out, account, sides);
    out.push('}');
}

fn write_storage(out: &mut String, account: &Account, sides: [Option<&AccountInfo>; 2]) {
    let changed = account.storage.iter().filter(|(_, slot)| slot.is_changed());
    let slots: BTreeMap<_, _> = changed.filter(|_| sides[1].is_some()).collect();
    out.push('{');
    for (slot, value) in slots {
        json::member(out, &B256::from(*slot).to_string());
        let before = sides[0].map(|_| value.original_value());
        let word = |out: &mut String, value: U256| json::word(out, B256::from(value));
        write_delta(out, [before, Some(value.present_value())], word);
    }
    out.push('}');
}

/// Writes how a value differs: `"="`, or an object with `*`, `+` or `-`.
fn write_delta<T: PartialEq>(
    out: &mut String,
    sides: [Option<T>; 2],
    mut write: impl FnMut(&mut String, T),
) {
    match sides {
        [Some(before), Some(after)] if before != after => {
            out.push_str("{\"*\":{\"from\":");
            write(out, before);
            out.push_str(",\"to\":");
            write(out, after);
            out.push_str("}}");
        }
        [None, Some(value)] => {
            out.push_str("{\"+\":");
            write(out, value);
            out.push('}');
        }
        [Some(value), None] => {
            out.push_str("{\"-\":");
            write(out, value);
            out.push('}');
        }
        _ => out.push_str("\"=\""),
    }
}
