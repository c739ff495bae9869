use super::*;
use crate::stateless::SszProblem;
use alloy_primitives::hex;

fn sample() -> StatelessValidationResult {
    let mut root = B256::ZERO;
    root.iter_mut().enumerate().for_each(|(index, byte)| *byte = index as u8);
    StatelessValidationResult {
        new_payload_request_root: root,
        successful_validation: true,
        chain_id: 560_048,
        schema_id: 0x1501,
    }
}

#[test]
fn a_result_has_the_bytes_of_an_outside_encoder() {
    // eth-remerkleable 0.1.31: Container of Bytes32, boolean, uint64, uint16.
    let expected = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
                    01b08b0800000000000115";
    assert_eq!(hex::encode(sample().encode()), expected);
    assert_eq!(StatelessValidationResult::decode(&sample().encode()), Ok(sample()));
}

#[test]
fn a_result_has_the_root_of_an_outside_merkleizer() {
    // eth-remerkleable 0.1.31: ProgressiveContainer(active_fields=[1] * 4) of the same fields.
    let expected = "5cd448e854dd2b82865d5672912a0a0ae3cfcbf1016df20dad78e28f3a15bde6";
    assert_eq!(hex::encode(sample().hash_tree_root()), expected);
}

#[test]
fn the_result_of_undecodable_input_is_all_zero() {
    assert_eq!(StatelessValidationResult::UNDECODABLE.encode(), [0; 43]);
    let decoded = StatelessValidationResult::decode(&[0; 43]);
    assert_eq!(decoded, Ok(StatelessValidationResult::UNDECODABLE));
}

#[test]
fn a_result_of_another_length_is_refused() {
    for got in (0..43).chain(44..50) {
        let expected = SszProblem::Length { got, expected: 43 }.at("stateless_validation_result");
        assert_eq!(StatelessValidationResult::decode(&vec![0; got]), Err(expected));
    }
}

#[test]
fn a_boolean_is_0_or_1() {
    let mut bytes = sample().encode();
    for value in 2..=u8::MAX {
        bytes[32] = value;
        let expected = SszProblem::Boolean(value).at("successful_validation");
        assert_eq!(StatelessValidationResult::decode(&bytes), Err(expected));
    }
}
