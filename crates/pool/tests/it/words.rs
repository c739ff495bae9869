use std::collections::HashMap;

use alloy_consensus::{SignableTransaction as _, TxEip1559, TxEip7702, TxLegacy};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use deponent_pool::{Options, Pool, Refusal, SenderState};
use execution::Transaction;
use testing::world::{CHAIN_ID, Signer, chain};

use crate::header;

const BALANCE: u64 = 100_000_000_000;

/// A pool of a chain at `fork`, in which the first signer has [`BALANCE`] and nonce 4.
fn pool(fork: &str) -> Pool {
    let balance = U256::from(BALANCE);
    let state = SenderState { nonce: 4, balance, code_hash: B256::ZERO };
    let senders = Box::new(HashMap::from([(Signer::new(1).address(), state)]));
    let minimum_tip = 2;
    let options = Options { minimum_tip, ..Options::default() };
    Pool::new(chain(fork), options, senders, header(7))
}

/// A transfer for which all is well, changed.
fn transfer(change: impl FnOnce(&mut TxEip1559)) -> Transaction {
    let mut transaction = TxEip1559 {
        chain_id: CHAIN_ID,
        nonce: 4,
        gas_limit: 100_000,
        max_fee_per_gas: 100,
        max_priority_fee_per_gas: 2,
        to: TxKind::Call(Address::repeat_byte(7)),
        ..TxEip1559::default()
    };
    change(&mut transaction);
    let signature = Signer::new(1).sign(transaction.signature_hash());
    transaction.into_signed(signature).into()
}

#[track_caller]
fn check(fork: &str, transaction: Transaction, expected: &str) {
    assert_eq!(pool(fork).add(transaction).unwrap_err().to_string(), expected);
}

#[test]
fn what_is_wrong_with_a_transaction_alone_is_said_in_geths_words() {
    assert!(pool("osaka").add(transfer(|_| ())).expect("it is right").is_pending);
    let zeros = |length| Bytes::from(vec![0; length]);
    check(
        "osaka",
        transfer(|it| it.input = zeros(131_072)),
        "oversized data: transaction size 131179, limit 131072",
    );
    let delegation = || Signer::new(1).delegate(4, Address::ZERO, Bytes::new(), Vec::new());
    check(
        "cancun",
        delegation(),
        "transaction type not supported: type 4 rejected, pool not yet in Prague",
    );
    let creation = |length| transfer(|it| (it.to, it.input) = (TxKind::Create, zeros(length)));
    check("osaka", creation(49_153), "max initcode size exceeded: code size 49153 limit 49152");
    check(
        "amsterdam",
        creation(49_153),
        "intrinsic gas too low: gas 100000, minimum needed 223686",
    );
    let gas = |gas| transfer(|it| it.gas_limit = gas);
    let words = "transaction gas limit too high (cap: 16777216, tx: 16777217)";
    check("osaka", gas(16_777_217), words);
    check("prague", gas(36_000_001), "exceeds block gas limit");
    let words = "transaction gas limit too high (cap: 4294967295, tx: 4294967296)";
    check("amsterdam", gas(1 << 32), words);
    check(
        "osaka",
        transfer(|it| it.max_priority_fee_per_gas = 101),
        "max priority fee per gas higher than max fee per gas",
    );
    check("osaka", transfer(|it| it.nonce = u64::MAX), "nonce has max value");
    check("osaka", gas(20_999), "intrinsic gas too low: gas 20999, minimum needed 21000");
    check(
        "osaka",
        transfer(|it| (it.gas_limit, it.input) = (21_016, vec![1].into())),
        "insufficient gas for floor data gas cost: gas 21016, minimum needed 21040",
    );
    check(
        "osaka",
        transfer(|it| it.max_priority_fee_per_gas = 1),
        "transaction gas price below minimum: gas tip cap 1, minimum needed 2",
    );
    let tip = TxEip7702 { chain_id: 1, nonce: 4, gas_limit: 100_000, ..TxEip7702::default() };
    let none = TxEip7702 { max_fee_per_gas: 9, max_priority_fee_per_gas: 2, ..tip };
    let signature = Signer::new(1).sign(none.signature_hash());
    check(
        "osaka",
        none.into_signed(signature).into(),
        "set code tx must have at least one authorization tuple",
    );
}

#[test]
fn signatures_are_those_of_the_chain_and_have_one_form() {
    check(
        "osaka",
        transfer(|it| it.chain_id = 5),
        "invalid sender: invalid chain id for signer: have 5 want 1",
    );
    let to = TxKind::Call(Address::ZERO);
    let legacy = TxLegacy { to, gas_price: 9, gas_limit: 21_000, nonce: 4, ..TxLegacy::default() };
    let signature = Signer::new(1).sign(legacy.signature_hash());
    let order = alloy_consensus::crypto::SECP256K1N_HALF * U256::from(2) + U256::ONE;
    let high = Signature::new(signature.r(), order - signature.s(), !signature.v());
    let words = "invalid sender: invalid transaction v, r, s values";
    check("osaka", legacy.clone().into_signed(high).into(), words);
    let none = Signature::new(U256::ZERO, U256::ZERO, false);
    check("osaka", legacy.clone().into_signed(none).into(), words);
    // One from before EIP-155 names no chain.
    let unprotected = Transaction::Legacy(legacy.into_signed(signature));
    assert!(pool("osaka").add(unprotected).is_ok());
}

#[test]
fn what_the_senders_account_forbids_is_said_in_geths_words() {
    let words = "nonce too low: next nonce 4, tx nonce 3";
    check("osaka", transfer(|it| it.nonce = 3), words);
    check(
        "osaka",
        transfer(|it| it.value = U256::from(BALANCE)),
        "insufficient funds for gas * price + value: balance 100000000000, tx cost 100010000000, \
         overshot 10000000",
    );
    let pool = pool("osaka");
    let known = transfer(|it| it.value = U256::from(BALANCE / 2));
    pool.add(known.clone()).expect("the first");
    let refused = |transaction| pool.add(transaction).unwrap_err().to_string();
    assert_eq!(refused(known), "already known");
    assert_eq!(
        refused(transfer(|it| (it.nonce, it.value) = (5, U256::from(BALANCE / 2)))),
        "insufficient funds for gas * price + value: balance 100000000000, queued cost \
         50010000000, tx cost 50010000000, overshot 20000000"
    );
    assert_eq!(
        refused(transfer(|it| it.value = U256::from(BALANCE - 9_000_000))),
        "insufficient funds for gas * price + value: balance 100000000000, tx cost 100001000000, \
         overshot 1000000"
    );
    assert_eq!(
        refused(transfer(|it| it.max_fee_per_gas = 109)),
        "replacement transaction underpriced"
    );
    let better = transfer(|it| (it.max_fee_per_gas, it.max_priority_fee_per_gas) = (110, 3));
    let replaced = pool.add(better).expect("it pays a tenth more").replaced;
    assert_eq!(replaced.map(|hash| pool.transaction(hash)), Some(None));
}

#[test]
fn an_account_that_cannot_be_read_is_no_verdict_on_the_transaction() {
    #[derive(Debug)]
    struct Broken;
    impl deponent_pool::Senders for Broken {
        fn sender(&self, _: B256, _: Address) -> Result<SenderState, String> {
            Err("the disk is gone".into())
        }
    }
    let pool = Pool::new(chain("osaka"), Options::default(), Box::new(Broken), header(7));
    let refused = pool.add(transfer(|_| ())).unwrap_err();
    assert_eq!(refused, Refusal::Unreadable("the disk is gone".into()));
    assert_eq!(refused.to_string(), "cannot read the sender's account: the disk is gone");
}
