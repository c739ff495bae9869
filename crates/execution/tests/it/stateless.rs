//! Whole inputs, from a block that the world validated to the 43 bytes.

use std::collections::BTreeMap;

use alloy_eips::eip7840::BlobParams;
use alloy_genesis::ChainConfig;
use alloy_primitives::{Address, B256};
use deponent_execution::stateless::{
    NewPayloadRequest, ProtocolFork, StatelessInput, StatelessValidationResult, validate_input,
};
use deponent_execution::{ChainSpec, PublicKey, recover_signer};
use testing::plain_ssz;
use testing::world::{Signer, StartAccount, World, chain, config};

const CONTRACT: Address = Address::repeat_byte(0xcc);

/// The rules of a chain that is at `fork` from its first block on.
fn rules(fork: ProtocolFork) -> ChainSpec {
    let name = match fork {
        ProtocolFork::Bpo1 | ProtocolFork::Bpo2 => "osaka".to_owned(),
        fork => format!("{fork:?}").to_lowercase(),
    };
    let from_the_first = |first| (fork >= first && fork < ProtocolFork::Amsterdam).then_some(0);
    let config = ChainConfig {
        bpo1_time: from_the_first(ProtocolFork::Bpo1),
        bpo2_time: from_the_first(ProtocolFork::Bpo2),
        blob_schedule: BTreeMap::from([
            ("bpo1".into(), BlobParams::bpo1()),
            ("bpo2".into(), BlobParams::bpo2()),
        ]),
        ..config(&name)
    };
    ChainSpec::from_config(&config).expect("a configuration in order")
}

/// A block that stores a word in a contract, as a prover gets it, with public keys.
fn input_of(fork: ProtocolFork) -> (ChainSpec, StatelessInput) {
    let signer = Signer::new(1);
    // SSTORE(0, 1)
    let contract = StartAccount::contract([0x60, 1, 0x60, 0, 0x55]).storage([(0, 5)]);
    let accounts = [(signer.address(), StartAccount::rich()), (CONTRACT, contract)];
    let world = World::new(rules(fork), accounts);
    let block = world.block(vec![signer.call(0, CONTRACT, [])]);
    let validated = world.check(&block).expect("a valid block");
    let access_list = validated.executed.block_access_list.clone().unwrap_or_default();
    let requests: Vec<_> = validated.executed.requests.iter().cloned().collect();
    let request = NewPayloadRequest::of_block(fork, &block, &requests, access_list);
    let keys = block.body.transactions.iter().enumerate();
    let keys = keys.map(|(index, tx)| recover_signer(index, tx).expect("signed").public_key);
    let input = StatelessInput {
        new_payload_request: request.expect("made"),
        witness: validated.witness,
        chain_id: world.chain.chain_id(),
        public_keys: Some(keys.collect()),
    };
    (world.chain, input)
}

fn input() -> (ChainSpec, StatelessInput) {
    input_of(ProtocolFork::Amsterdam)
}

fn result(chain: &ChainSpec, input: &StatelessInput) -> StatelessValidationResult {
    let encoded = input.encode().expect("within the limits");
    assert_eq!(input.parts().expect("within the limits").concat(), encoded);
    validate_input(chain, &encoded.into())
}

#[test]
fn a_valid_input_of_any_fork_and_form_gives_its_root_and_a_yes_in_43_bytes() {
    for fork in ProtocolFork::ALL {
        let (chain, mut input) = input_of(fork);
        for _ in 0..2 {
            let result = result(&chain, &input);
            let expected = StatelessValidationResult {
                new_payload_request_root: input.new_payload_request.hash_tree_root(),
                successful_validation: true,
                chain_id: chain.chain_id(),
                schema_id: u16::from_be_bytes([fork as u8, 1]),
            };
            assert_eq!(result, expected, "{fork:?}");
            assert_eq!(result.encode().len(), 43);
            let encoded = input.encode().expect("within the limits");
            assert_eq!(encoded, plain_ssz::encoding(&input), "{fork:?}");
            assert_eq!(
                expected.new_payload_request_root,
                plain_ssz::root(&input.new_payload_request)
            );
            input.public_keys = None;
        }
    }
}

#[test]
fn an_input_of_a_fork_that_the_chain_is_not_at_gives_a_no() {
    for fork in [ProtocolFork::Osaka, ProtocolFork::Bpo1, ProtocolFork::Bpo2] {
        let (_, input) = input_of(fork);
        for other in ProtocolFork::ALL {
            let result = result(&rules(other), &input);
            assert_eq!(result.successful_validation, other == fork, "{fork:?} at {other:?}");
        }
    }
}

fn keys(input: &mut StatelessInput) -> &mut Vec<PublicKey> {
    input.public_keys.as_mut().expect("this form has keys")
}

#[test]
fn what_is_wrong_with_an_input_gives_its_root_and_a_no() {
    type Change = fn(&mut StatelessInput);
    let changes: [(&str, Change); 9] = [
        ("a node is missing", |input| _ = input.witness.state.remove(0)),
        ("a code is missing", |input| _ = input.witness.codes.remove(0)),
        ("there is no parent", |input| input.witness.headers.clear()),
        ("a key is missing", |input| _ = keys(input).pop()),
        ("a key too many", |input| {
            let key = keys(input)[0];
            keys(input).push(key)
        }),
        ("another's key", |input| keys(input)[0][64] ^= 1),
        ("another chain", |input| input.chain_id += 1),
        ("a wrong state root", |input| {
            input.new_payload_request.execution_payload.state_root = B256::ZERO;
        }),
        ("a versioned hash without a blob", |input| {
            input.new_payload_request.versioned_hashes.push(B256::ZERO);
        }),
    ];
    for (name, change) in changes {
        let (chain, mut input) = input();
        change(&mut input);
        let result = result(&chain, &input);
        let root = input.new_payload_request.hash_tree_root();
        assert!(!result.successful_validation, "{name}");
        assert_eq!(result.new_payload_request_root, root, "{name}");
        assert_eq!((result.chain_id, result.schema_id), (input.chain_id, 0x1501), "{name}");
    }
}

#[test]
fn a_chain_that_is_not_at_amsterdam_yet_gives_a_no() {
    let (_, input) = input();
    assert!(!result(&chain("osaka"), &input).successful_validation);
}

#[test]
fn bytes_that_are_no_input_give_all_zero() {
    let (chain, input) = input();
    let encoded = input.encode().expect("within the limits");
    for bytes in [vec![], vec![0x15, 0x01], encoded[1..].to_vec(), encoded[..100].to_vec()] {
        assert_eq!(validate_input(&chain, &bytes.into()).encode(), [0; 43]);
    }
}
