//! One deposit, after which the deposit contract is asked for nothing any more (EIP-6110), as on
//! mainnet.

use alloy_primitives::{Bytes, U256, hex};
use sha2::{Digest as _, Sha256};

/// Adds to the balance of the first validator: the one whose key for tests has the index 0.
const PUBLIC_KEY: [u8; 48] = hex!(
    "a99a76ed7796f7be22d5b7e85deeb7c5677e88e511e0b337618f8c4eb61349b4"
    "bf2d153f649f7b53359fe8b94a38e44c"
);
/// 1 ether, in gwei.
pub(crate) const AMOUNT: u64 = 1_000_000_000;
/// Nothing is withdrawn, and no signature is needed where the validator is known.
const CREDENTIALS: [u8; 32] = [0; 32];
const SIGNATURE: [u8; 96] = [0; 96];
/// `deposit(bytes,bytes,bytes,bytes32)`.
const SELECTOR: [u8; 4] = hex!("22895118");

/// The ether that the call sends, in wei.
pub(crate) fn value() -> U256 {
    U256::from(AMOUNT) * U256::from(1_000_000_000)
}

/// The call of the deposit contract.
pub(crate) fn call() -> Bytes {
    let mut call = SELECTOR.to_vec();
    let parts = [&PUBLIC_KEY[..], &CREDENTIALS, &SIGNATURE];
    let mut at = 4 * 32;
    for part in parts {
        call.extend(word(at));
        at += 32 + part.len().next_multiple_of(32);
    }
    call.extend(root());
    for part in parts {
        call.extend(word(part.len()));
        call.extend(part);
        call.resize(call.len() + part.len().next_multiple_of(32) - part.len(), 0);
    }
    call.into()
}

fn word(number: usize) -> [u8; 32] {
    U256::from(number).to_be_bytes()
}

/// The hash tree root of the deposit, which the contract compares with the rest.
fn root() -> [u8; 32] {
    let key = hash(&[&PUBLIC_KEY, &[0; 16]]);
    let (first, rest) = SIGNATURE.split_at(64);
    let signature = hash(&[&hash(&[first]), &hash(&[rest, &[0; 32]])]);
    let amount = hash(&[&AMOUNT.to_le_bytes(), &[0; 24], &signature]);
    hash(&[&hash(&[&key, &CREDENTIALS]), &amount])
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    parts.iter().fold(Sha256::new(), |sum, part| sum.chain_update(part)).finalize().into()
}
