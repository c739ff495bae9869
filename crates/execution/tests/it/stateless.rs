//! Whole inputs, from a block that the world validated to the 43 bytes.

use alloy_primitives::{Address, B256};
use deponent_execution::stateless::input::{NewPayloadRequest, StatelessInput};
use deponent_execution::stateless::{StatelessValidationResult, validate_input};
use deponent_execution::{ChainSpec, recover_signer};
use testing::world::{Signer, StartAccount, World, chain};

const CONTRACT: Address = Address::repeat_byte(0xcc);

/// An Amsterdam block that stores a word in a contract, as a prover gets it.
fn input() -> (ChainSpec, StatelessInput) {
    let signer = Signer::new(1);
    // SSTORE(0, 1)
    let contract = StartAccount::contract([0x60, 1, 0x60, 0, 0x55]).storage([(0, 5)]);
    let accounts = [(signer.address(), StartAccount::rich()), (CONTRACT, contract)];
    let world = World::new(chain("amsterdam"), accounts);
    let block = world.block(vec![signer.call(0, CONTRACT, [])]);
    let validated = world.check(&block).expect("a valid block");
    let access_list = validated.executed.block_access_list.clone().expect("Amsterdam has one");
    let keys = block.body.transactions.iter().enumerate();
    let public_keys =
        keys.map(|(index, tx)| recover_signer(index, tx).expect("signed").public_key).collect();
    let input = StatelessInput {
        new_payload_request: NewPayloadRequest::of_block(&block, &[], access_list).expect("made"),
        witness: validated.witness,
        chain_id: world.chain.chain_id(),
        public_keys,
    };
    (world.chain, input)
}

fn result(chain: &ChainSpec, input: &StatelessInput) -> StatelessValidationResult {
    let encoded = input.encode().expect("within the limits");
    assert_eq!(input.parts().expect("within the limits").concat(), encoded);
    validate_input(chain, &encoded.into())
}

#[test]
fn a_valid_input_gives_its_root_and_a_yes_in_43_bytes() {
    let (chain, input) = input();
    let result = result(&chain, &input);
    let expected = StatelessValidationResult {
        new_payload_request_root: input.new_payload_request.hash_tree_root(),
        successful_validation: true,
        chain_id: chain.chain_id(),
        schema_id: 0x1501,
    };
    assert_eq!(result, expected);
    assert_eq!(result.encode().len(), 43);
}

#[test]
fn what_is_wrong_with_an_input_gives_its_root_and_a_no() {
    type Change = fn(&mut StatelessInput);
    let changes: [(&str, Change); 9] = [
        ("a node is missing", |input| _ = input.witness.state.remove(0)),
        ("a code is missing", |input| _ = input.witness.codes.remove(0)),
        ("there is no parent", |input| input.witness.headers.clear()),
        ("a key is missing", |input| _ = input.public_keys.pop()),
        ("a key too many", |input| input.public_keys.push(input.public_keys[0])),
        ("another's key", |input| input.public_keys[0][64] ^= 1),
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
