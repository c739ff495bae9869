//! Every rule that a block is held to, on states and on witnesses.

use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_consensus::{Header, proofs};
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::{eip7002, eip7251};
use alloy_primitives::{Address, B256, Bloom, Bytes, U256, keccak256};
use deponent_execution::*;
use testing::asm::*;
use testing::world::{self, BUILDER_CONTRACTS, Signer, StartAccount, World, marker};
use witness::{DecodeError, StateError, Witness};

/// Bytes of a block's RLP from Osaka on (EIP-7934).
const MAX_RLP_BLOCK_SIZE: usize = 8 << 20;

const WRONG: B256 = B256::repeat_byte(0xee);
const STORE: Address = Address::repeat_byte(0xa1);
const LOG: Address = Address::repeat_byte(0xa2);

/// A world in which one block can do a bit of everything.
fn world(fork: &str) -> World {
    let sender = Signer::new(1);
    // Clears slots 1 to 3, sets slot 9, reads two ancestors.
    let script = [set(1, 0), set(2, 0), set(3, 0), set(9, 9), block_hash(1), block_hash(2)];
    let log = vec![PUSH0, PUSH0, 0xa0];
    let slots = (1..12).map(|slot| (slot, slot));
    let accounts = [
        (sender.address(), StartAccount::rich()),
        (Signer::new(2).address(), StartAccount { code: marker(LOG), ..StartAccount::rich() }),
        (STORE, StartAccount::contract(script.concat()).storage(slots)),
        (LOG, StartAccount::contract(log)),
    ];
    let others = (0..40).map(|byte| (Address::repeat_byte(byte), StartAccount::rich()));
    World::new(world::chain(fork), others.chain(accounts)).with_ancestors(5)
}

fn transactions() -> Vec<Transaction> {
    let sender = Signer::new(1);
    vec![
        sender.call(0, STORE, []),
        sender.call(1, Signer::new(2).address(), []),
        sender.call(2, Address::repeat_byte(0x55), []),
    ]
}

fn withdrawals() -> Vec<Withdrawal> {
    let address = Address::repeat_byte(0x66);
    vec![Withdrawal { index: 1, validator_index: 2, address, amount: 3 }]
}

fn block(world: &World) -> SealedBlock {
    world.seal(world.draft(transactions(), withdrawals())).unwrap()
}

/// The valid block of `fork` with a change that makes it invalid.
fn refused(fork: &str, change: impl Fn(&mut Block), expected: impl Fn(&Header) -> InvalidBlock) {
    let world = world(fork);
    let right = block(&world);
    let witness = world.check(&right).unwrap().witness;
    let expected = expected(&right.header);
    let mut wrong = right.into_block();
    change(&mut wrong);
    let wrong = SealedBlock::new(wrong);
    for answer in [
        world.validate(&wrong).map(drop),
        verify(&world.chain, &wrong, None, &witness).map(drop).map_err(|error| match error {
            VerifyError::Block(error) => error,
            VerifyError::Read { error, .. } => BlockError::State(error),
            VerifyError::Witness(error) => panic!("{error}"),
        }),
    ] {
        match answer {
            Err(BlockError::Invalid(got)) => assert_eq!(got, expected),
            other => panic!("{other:?}, expected {expected}"),
        }
    }
}

#[test]
fn the_same_block_is_valid_under_every_fork() {
    for fork in ["shanghai", "cancun", "prague", "osaka", "amsterdam"] {
        let world = world(fork);
        let validated = world.check(&block(&world)).unwrap();
        assert_eq!(validated.witness.headers.len(), 2, "{fork}");
    }
    let world = world("paris");
    let paris = world.block(transactions());
    world.check(&paris).unwrap();
}

#[test]
fn a_header_that_differs_from_execution_is_refused() {
    let got = WRONG;
    refused(
        "osaka",
        |block| block.header.state_root = got,
        |right| InvalidBlock::StateRoot { got, expected: right.state_root },
    );
    refused(
        "osaka",
        |block| block.header.receipts_root = got,
        |right| InvalidBlock::ReceiptsRoot { got, expected: right.receipts_root },
    );
    refused(
        "osaka",
        |block| block.header.gas_used += 1,
        |right| InvalidBlock::GasUsed { got: right.gas_used + 1, expected: right.gas_used },
    );
    let bloom = Bloom::repeat_byte(1);
    refused(
        "osaka",
        |block| block.header.logs_bloom = bloom,
        |right| InvalidBlock::LogsBloom {
            got: Box::new(bloom),
            expected: Box::new(right.logs_bloom),
        },
    );
    refused(
        "osaka",
        |block| block.header.requests_hash = Some(got),
        |right| InvalidBlock::RequestsHash {
            got: Some(got),
            expected: right.requests_hash.unwrap(),
        },
    );
    refused(
        "amsterdam",
        |block| block.header.block_access_list_hash = Some(got),
        |right| InvalidBlock::AccessListHash {
            got: Some(got),
            expected: right.block_access_list_hash.unwrap(),
        },
    );
}

#[test]
fn a_header_that_differs_from_its_body_is_refused() {
    let got = WRONG;
    refused(
        "osaka",
        |block| block.header.transactions_root = got,
        |right| InvalidBlock::TransactionsRoot { got, expected: right.transactions_root },
    );
    refused(
        "osaka",
        |block| block.body.transactions.clear(),
        |right| InvalidBlock::TransactionsRoot {
            got: right.transactions_root,
            expected: EMPTY_ROOT_HASH,
        },
    );
    refused(
        "osaka",
        |block| block.header.withdrawals_root = Some(got),
        |right| InvalidBlock::WithdrawalsRoot {
            got: Some(got),
            expected: right.withdrawals_root.unwrap(),
        },
    );
    refused(
        "osaka",
        |block| block.body.withdrawals = None,
        |right| InvalidBlock::MissingField {
            field: "list of withdrawals",
            timestamp: right.timestamp,
        },
    );
    refused(
        "osaka",
        |block| block.header.blob_gas_used = Some(1 << 17),
        |_| InvalidBlock::BlobGasUsed { got: 1 << 17, expected: 0 },
    );
    refused(
        "osaka",
        |block| block.body.ommers.push(Header::default()),
        |right| InvalidBlock::OmmersHash {
            got: right.ommers_hash,
            expected: proofs::calculate_ommers_root(&[Header::default()]),
        },
    );
}

#[test]
fn withdrawals_are_refused_before_shanghai() {
    let world = world("paris");
    let mut block = world.block(Vec::new()).into_block();
    block.body.withdrawals = Some(withdrawals().into());
    let expected = proofs::calculate_withdrawals_root(&withdrawals());
    let expected = InvalidBlock::WithdrawalsRoot { got: None, expected };
    match world.validate(&SealedBlock::new(block)) {
        Err(BlockError::Invalid(got)) => assert_eq!(got, expected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_gas_limit_of_a_transaction_has_32_bits_from_amsterdam_on() {
    const MOST: u64 = (1 << 32) - 1;
    let refusal = |fork: &str, gas_limit: u64| {
        let world = world(fork);
        let signer = Signer::new(1);
        let transaction = signer.delegate_with_gas(gas_limit, 0, Address::ZERO, [], Vec::new());
        let mut block = world.block(Vec::new()).into_block();
        block.body.transactions.push(transaction);
        let transactions = &block.body.transactions;
        block.header.transactions_root = proofs::calculate_transaction_root(transactions);
        match world.validate(&SealedBlock::new(block)) {
            Err(BlockError::Invalid(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    let expected = InvalidBlock::TransactionGas { index: 0, got: MOST + 1, limit: MOST };
    assert_eq!(refusal("amsterdam", MOST + 1), expected);
    // There are other reasons: the block has less gas, and the transaction is empty.
    for (fork, gas_limit) in [("amsterdam", MOST), ("osaka", MOST + 1)] {
        let reason = refusal(fork, gas_limit);
        assert!(!matches!(reason, InvalidBlock::TransactionGas { .. }), "{reason}");
    }
}

#[test]
fn a_header_out_of_order_is_refused() {
    refused(
        "osaka",
        |block| block.header.number += 1,
        |right| InvalidBlock::Number { got: right.number + 1, parent: right.number - 1 },
    );
}

#[test]
fn a_block_over_eight_mebibytes_is_refused_from_osaka_on() {
    for (fork, too_large) in [("osaka", true), ("prague", false)] {
        let world = world(fork);
        let input = vec![0; MAX_RLP_BLOCK_SIZE];
        let transaction = Signer::new(1).call(0, STORE, input);
        let block = SealedBlock::new(world.draft(vec![transaction], Vec::new()));
        let error = world.validate(&block).unwrap_err();
        let expected = InvalidBlock::BlockSize { got: block.rlp_bytes(), limit: 8 << 20 };
        assert_eq!(error.to_string() == expected.to_string(), too_large, "{error}");
    }
}

#[test]
fn a_transaction_that_cannot_run_is_refused() {
    let world = world("osaka");
    let (sender, poor) = (Signer::new(1), Signer::new(9));
    for (index, transactions, expected) in [
        (0, vec![sender.call(1, STORE, [])], "nonce"),
        (1, vec![sender.call(0, STORE, []), sender.call(0, STORE, [])], "nonce"),
        (0, vec![poor.call(0, STORE, [])], "lack of funds"),
    ] {
        let block = SealedBlock::new(world.draft(transactions, Vec::new()));
        match world.validate(&block) {
            Err(BlockError::Invalid(InvalidBlock::Transaction { index: got, reason })) => {
                assert_eq!(got, index);
                assert!(reason.contains(expected), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_system_contract_without_code_makes_every_block_invalid() {
    for (fork, address) in [
        ("prague", eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS),
        ("osaka", eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS),
        ("amsterdam", BUILDER_CONTRACTS[0]),
        ("amsterdam", BUILDER_CONTRACTS[1]),
    ] {
        for account in [StartAccount::rich(), StartAccount::default().storage([(1, 1)])] {
            let world = World::new(world::chain(fork), [(address, account)]);
            let block = SealedBlock::new(world.draft(Vec::new(), Vec::new()));
            match world.validate(&block) {
                Err(BlockError::Invalid(got)) => {
                    assert_eq!(got, InvalidBlock::SystemContractEmpty(address));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn blobs_count_as_blob_gas() {
    let world = world("osaka");
    let blobs = vec![Signer::new(1).blob(0, STORE), Signer::new(1).blob(1, STORE)];
    let block = world.block(blobs);
    assert_eq!(block.header.blob_gas_used, Some(2 << 17));
    world.check(&block).unwrap();
    let mut wrong = block.into_block();
    wrong.header.blob_gas_used = Some(1 << 17);
    match world.validate(&SealedBlock::new(wrong)) {
        Err(BlockError::Invalid(got)) => {
            assert_eq!(got, InvalidBlock::BlobGasUsed { got: 1 << 17, expected: 2 << 17 });
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_altered_node_or_code_is_refused_as_missing() {
    let world = world("osaka");
    let block = block(&world);
    let right = world.check(&block).unwrap().witness;
    let flipped = |item: &[u8], at: usize| {
        let mut item = item.to_vec();
        item[at] ^= 0x01;
        Bytes::from(item)
    };
    for at in 0..right.state.len() {
        let node = &right.state[at];
        for byte in [0, 3, node.len() / 2, node.len() - 1] {
            let mut witness = right.clone();
            witness.state.replace(at, flipped(node, byte));
            let error = verify(&world.chain, &block, None, &witness).unwrap_err();
            let hash = keccak256(node);
            let expected = StateError::Trie(trie::Error::MissingNode { hash });
            assert_eq!(error.missing(), Some(&expected), "{error}");
        }
    }
    for at in 0..right.codes.len() {
        let mut witness = right.clone();
        witness.codes[at] = flipped(&right.codes[at], 0);
        let error = verify(&world.chain, &block, None, &witness).unwrap_err();
        let expected = StateError::MissingCode(keccak256(&right.codes[at]));
        assert_eq!(error.missing(), Some(&expected), "{error}");
    }
}

#[test]
fn a_missing_or_altered_header_is_refused() {
    let world = world("osaka");
    let block = block(&world);
    let right = world.check(&block).unwrap().witness;
    assert_eq!(right.headers.len(), 2);
    let witness_error = |headers: Vec<Bytes>| {
        let witness = Witness { headers, ..right.clone() };
        let error = verify(&world.chain, &block, None, &witness).unwrap_err();
        assert!(matches!(error, VerifyError::Witness(DecodeError::Headers(_))), "{error}");
    };
    witness_error(Vec::new());
    witness_error(vec![right.headers[0].clone()]);
    witness_error(vec![right.headers[1].clone(), right.headers[0].clone()]);
    for header in 0..2 {
        for at in 0..right.headers[header].len() {
            let mut headers = right.headers.clone();
            let mut rlp = headers[header].to_vec();
            rlp[at] ^= 1;
            headers[header] = rlp.into();
            witness_error(headers);
        }
    }
    let grandparent_missing = Witness { headers: vec![right.headers[1].clone()], ..right.clone() };
    let error = verify(&world.chain, &block, None, &grandparent_missing).unwrap_err();
    assert_eq!(error.missing(), Some(&StateError::MissingHeader(block.header.number - 2)));
}

#[test]
fn what_the_block_does_not_read_is_tolerated_and_not_recorded() {
    let world = world("osaka");
    let block = block(&world);
    let right = world.check(&block).unwrap().witness;
    let mut witness = right.clone();
    witness.state.extend(world.nodes.values().cloned());
    witness.state.push(Bytes::from_static(b"no node"));
    witness.codes.extend(world.codes.values().cloned());
    witness.codes.push(Bytes::from_static(b"no code"));
    let more = world.headers[..world.headers.len() - 2].iter();
    let more: Vec<_> = more.map(|header| alloy_rlp::encode(header).into()).collect();
    witness.headers.splice(0..0, more);
    let verified = verify(&world.chain, &block, None, &witness).unwrap();
    assert_eq!(verified.witness, right);
    assert_eq!(verified.state_root, block.header.state_root);
    assert_eq!(verified.receipts_root, block.header.receipts_root);
    assert_eq!(verified.gas_used, block.header.gas_used);
}

/// The uncompressed public keys of the transactions' signers.
fn public_keys(block: &SealedBlock) -> Vec<Bytes> {
    let key = |transaction: &Transaction| {
        let hash = transaction.signature_hash();
        let key = transaction.signature().recover_from_prehash(&hash).expect("signed");
        Bytes::copy_from_slice(key.to_encoded_point(false).as_bytes())
    };
    block.body.transactions.iter().map(key).collect()
}

#[test]
fn public_keys_are_those_of_the_signers() {
    let world = world("osaka");
    let block = block(&world);
    let witness = world.check(&block).unwrap().witness;
    let right = public_keys(&block);
    let check = |keys: &[Bytes]| match verify(&world.chain, &block, Some(keys), &witness) {
        Ok(_) => Ok(()),
        Err(VerifyError::Block(BlockError::Invalid(reason))) => Err(reason),
        Err(error) => panic!("{error}"),
    };
    assert_eq!(check(&right), Ok(()));
    for keys in [&right[..0], &right[..2], &[&right[..], &right[..1]].concat()] {
        let (given, transactions) = (keys.len(), 3);
        assert_eq!(check(keys), Err(InvalidBlock::PublicKeyCount { given, transactions }));
    }
    let other = B256::repeat_byte(1);
    let other = Signer::new(5).sign(other).recover_from_prehash(&other).unwrap();
    let compressed = other.to_encoded_point(true);
    let mut other_prefix = right[1].to_vec();
    other_prefix[0] = 6;
    for wrong in [
        other.to_encoded_point(false).as_bytes(),
        compressed.as_bytes(),
        &right[1][1..],
        &right[1][..64],
        &[&right[1][..], &[0]].concat(),
        &other_prefix,
        &[],
    ] {
        let mut keys = right.clone();
        keys[1] = Bytes::copy_from_slice(wrong);
        assert_eq!(check(&keys), Err(InvalidBlock::PublicKey { index: 1 }));
    }
}

#[test]
fn roots_are_answered_whatever_the_header_says_of_them() {
    let world = world("osaka");
    let right = block(&world);
    let witness = world.check(&right).unwrap().witness;
    let Header { state_root, receipts_root, .. } = right.header;
    let expected = Roots { state_root, receipts_root };
    let mut block = right.into_block();
    (block.header.state_root, block.header.receipts_root) = (WRONG, WRONG);
    let roots = execute_statelessly(&world.chain, &SealedBlock::new(block.clone()), &witness);
    assert_eq!(roots.unwrap(), expected);
    block.header.gas_used += 1;
    let error = execute_statelessly(&world.chain, &SealedBlock::new(block), &witness);
    assert!(matches!(
        error,
        Err(VerifyError::Block(BlockError::Invalid(InvalidBlock::GasUsed { .. })))
    ));
}

#[test]
fn a_deletion_needs_the_sibling_that_remains() {
    // Among these are tries where one slot remains of two under a branch.
    for slots in 2..12u64 {
        let code = set(1, 0);
        let storage = (1..=slots).map(|slot| (slot, slot + 7));
        let accounts = [
            (Signer::new(1).address(), StartAccount::rich()),
            (STORE, StartAccount::contract(code).storage(storage)),
        ];
        let world = World::new(world::chain("osaka"), accounts);
        let block = world.block(vec![Signer::new(1).call(0, STORE, [])]);
        world.check(&block).unwrap();
        let after = world.validate(&block).unwrap().executed;
        let change = after.changes.iter().find(|change| change.address == STORE);
        assert_eq!(change.unwrap().slots, [(U256::ONE, U256::ZERO)]);
    }
}

/// A call to an account that is absent, whose path ends at the leaf of another one that the block
/// does not touch otherwise: without that leaf nothing is known of it.
#[test]
fn a_missing_node_is_an_absence_for_those_alone_who_ask_for_that() {
    let fillers = (1..40).map(|tag| (Address::repeat_byte(tag), StartAccount::rich()));
    let sender = Signer::new(1);
    let accounts = [(sender.address(), StartAccount::rich())].into_iter().chain(fillers);
    let world = World::new(world::chain("osaka"), accounts);
    let mut found = 0;
    for tag in 100..=200 {
        let absent = Address::repeat_byte(tag);
        let block = world.block(vec![sender.call(0, absent, [])]);
        let whole = world.check(&block).unwrap().witness;
        for index in 0..whole.state.len() {
            let mut less = whole.clone();
            less.state.remove(index);
            let error = verify(&world.chain, &block, None, &less).expect_err("it lacks a node");
            let VerifyError::Read { read, .. } = error else { panic!("{error}") };
            if *read != FailedRead::Account(absent) {
                continue;
            }
            // The leaf may be a system contract's, which is not absent.
            let lenient = verify_taking_missing_for_absent(&world.chain, &block, &less);
            let Ok((verified, taken)) = lenient else { continue };
            assert_eq!((verified.state_root, taken), (block.header.state_root, vec![absent]));
            found += 1;
        }
    }
    assert!(found > 0, "no path ended at another leaf");
}
