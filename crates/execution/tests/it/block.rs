//! Blocks from their RLP, and who signed their transactions.

use alloy_consensus::transaction::SignerRecoverable;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, Bytes, Signature, U256};
use deponent_execution::*;
use proptest::prelude::*;
use testing::world::{self, Signer, StartAccount, World};

fn world() -> World {
    World::new(world::chain("osaka"), [(Signer::new(1).address(), StartAccount::rich())])
}

/// A block with one transaction of every type and a withdrawal.
fn block() -> SealedBlock {
    let (world, sender, to) = (world(), Signer::new(1), Address::repeat_byte(0x77));
    let transactions = vec![
        sender.legacy(0, to.into(), [1, 2, 3]),
        sender.call(1, to, []),
        sender.blob(2, to),
        sender.delegate(3, to, [], vec![Signer::new(2).authorize(0, to)]),
    ];
    let withdrawal = Withdrawal { index: 1, validator_index: 2, address: to, amount: 3 };
    world.seal(world.draft(transactions, vec![withdrawal])).unwrap()
}

fn encoded() -> Vec<u8> {
    alloy_rlp::encode(block().into_block())
}

#[test]
fn a_block_is_read_as_it_was_written() {
    let rlp = encoded();
    let decoded = decode_block(&rlp).unwrap();
    assert_eq!(decoded, block());
    assert_eq!(decoded.rlp_bytes(), rlp.len());
    let senders = recover_senders(&decoded.body.transactions);
    assert_eq!(senders, Ok(vec![Signer::new(1).address(); 4]));
}

#[test]
fn the_public_keys_are_the_senders() {
    let transactions = &block().body.transactions;
    let keys = transactions.iter().enumerate().map(|(index, tx)| recover_signer(index, tx));
    let keys: Vec<Bytes> =
        keys.map(|key| Bytes::copy_from_slice(key.unwrap().public_key.as_slice())).collect();
    let (world, block) = (world(), block());
    let witness = world.validate(&block).unwrap().witness;
    let verify = |keys: &[Bytes]| verify(&world.chain, &block, Some(keys), &witness);
    verify(&keys).unwrap();
    verify(&keys[1..]).unwrap_err();
}

#[test]
fn trailing_bytes_are_refused() {
    for trailing in [&[0][..], &[0xc0], &[0x80; 9]] {
        let error = decode_block(&[&encoded(), trailing].concat()).unwrap_err();
        let expected = format!("{} bytes after the end", trailing.len());
        assert_eq!(error, InvalidBlock::Rlp(expected));
    }
}

#[test]
fn a_transaction_that_reaches_past_its_string_is_refused() {
    let rlp = encoded();
    // 0x02 and a list of 103 bytes, in a string of 106.
    let at = rlp.windows(4).position(|bytes| bytes == [0xb8, 0x6a, 0x02, 0xf8]).unwrap();
    for length in [0x38, 0x69, 0x6b] {
        let mut rlp = rlp.clone();
        rlp[at + 1] = length;
        let error = decode_block(&rlp).expect_err("not canonical");
        assert!(matches!(error, InvalidBlock::Rlp(_)), "{error}");
    }
}

#[test]
fn every_truncation_is_refused() {
    let rlp = encoded();
    for end in 0..rlp.len() {
        let error = decode_block(&rlp[..end]).expect_err("truncated");
        assert!(matches!(error, InvalidBlock::Rlp(_)), "{end}: {error}");
    }
}

#[test]
fn a_signature_that_no_key_made_is_refused() {
    let order = U256::from_str_radix(
        "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
        16,
    )
    .unwrap();
    let Transaction::Eip1559(signed) = Signer::new(1).call(0, Address::ZERO, []) else {
        panic!("a transaction with a dynamic fee")
    };
    let (transaction, good, _) = signed.into_parts();
    let recover = |signature| {
        let transaction = alloy_consensus::Signed::new_unhashed(transaction.clone(), signature);
        recover_senders(&[transaction.into()])
    };
    assert_eq!(recover(good), Ok(vec![Signer::new(1).address()]));
    // The mirror image of a signature is one too, but EIP-2 refuses it.
    let mirrored = Signature::new(good.r(), order - good.s(), !good.v());
    let zero = Signature::new(U256::ZERO, good.s(), good.v());
    let over = Signature::new(order, good.s(), good.v());
    // As alloy has it, which gives no keys.
    let slow = |signature| {
        let transaction = alloy_consensus::Signed::new_unhashed(transaction.clone(), signature);
        Transaction::from(transaction).recover_signer_unchecked().ok()
    };
    // Before Homestead any `s` is right.
    let frontier = world::old_chain("frontier");
    let fast = |signature| {
        let transaction = alloy_consensus::Signed::new_unhashed(transaction.clone(), signature);
        let signer = recover_signer_at(&frontier, 1, 0, &transaction.into());
        signer.ok().map(|signer| signer.address)
    };
    let one = U256::from(1);
    let numbers = [U256::ZERO, one, good.r(), good.s(), order - one, order, U256::MAX];
    let mut recovered = 0;
    for (r, s) in numbers.iter().flat_map(|r| numbers.iter().map(move |s| (*r, *s))) {
        for signature in [Signature::new(r, s, false), Signature::new(r, s, true)] {
            assert_eq!(fast(signature), slow(signature), "{signature:?}");
            recovered += usize::from(fast(signature).is_some());
        }
    }
    assert!(recovered > 8, "some of them are signatures");
    for signature in [mirrored, zero, over] {
        let error = recover(signature).unwrap_err();
        assert!(matches!(error, InvalidBlock::Signature { index: 0, .. }), "{error}");
    }
}

proptest! {
    #[test]
    fn random_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        drop(decode_block(&bytes));
    }

    #[test]
    fn random_mutations_get_an_answer(
        changes in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4),
    ) {
        let mut rlp = encoded();
        for (at, value) in changes {
            let at = at.index(rlp.len());
            rlp[at] = value;
        }
        if let Ok(block) = decode_block(&rlp) {
            drop(recover_senders(&block.body.transactions));
            prop_assert!(alloy_rlp::encode(block.into_block()) == rlp, "read in a second form");
        }
    }
}
