use alloy_primitives::B256;
use serde_json::{Value, json};

use super::*;

fn header(number: u64) -> Header {
    Header { number, parent_hash: B256::repeat_byte(number as u8), ..Header::default() }
}

fn rlp(number: u64) -> Bytes {
    alloy_rlp::encode(header(number)).into()
}

fn expected() -> Witness {
    Witness {
        state: NodeList::from(vec![Bytes::from_static(&[0xaa, 0xbb]), Bytes::from_static(&[1])]),
        codes: vec![Bytes::from_static(&[0xfe])],
        headers: vec![rlp(7), rlp(8), rlp(9)],
    }
}

fn document() -> Value {
    json!({"state": ["0xaabb", "0x01"], "codes": ["0xfe"], "headers": [rlp(7), rlp(8), rlp(9)]})
}

#[track_caller]
fn check(json: &Value, differences: &[&str]) {
    let read = ForeignWitness::read(&json.to_string()).expect("a witness");
    assert_eq!(read.witness, expected(), "{json}");
    assert_eq!(read.differences, differences, "{json}");
}

#[test]
fn the_canonical_form_has_no_differences() {
    check(&document(), &[]);
    let mut empty = document();
    empty["keys"] = json!([]);
    check(&empty, &[]);
}

#[test]
fn the_forms_of_other_tools_say_the_same() {
    let with = |member: &str, value: Value| {
        let mut json = document();
        json[member] = value;
        json
    };
    check(&with("keys", Value::Null), &["keys given"]);
    check(&with("keys", json!(["0x01"])), &["keys given"]);
    check(&with("keys", json!([7])), &["keys given"]);
    let keyed = with("keys", json!(["0x0102", "03"])).to_string();
    let keys = ForeignWitness::read(&keyed).expect("a witness").keys;
    assert_eq!(keys, [&[1, 2][..], &[3]].map(Bytes::copy_from_slice));
    let [first, second, third] = [7, 8, 9].map(rlp);
    check(&with("headers", json!([third, second, first])), &["headers reversed"]);
    let mixed = "headers out of order, or some twice";
    check(&with("headers", json!([second, third, first, second])), &[mixed]);
    let objects: Vec<_> = [9, 8, 7].map(header).into();
    let both = ["headers as JSON objects", "headers reversed"];
    check(&with("headers", serde_json::to_value(objects).expect("JSON")), &both);
    let keyed = json!({"0x11": "0xaabb", "0x22": "0x01"});
    check(&with("state", keyed), &["state as an object"]);
    check(&with("codes", json!(["fe"])), &["hex without 0x"]);
    check(&with("codes", json!(["0xFE"])), &["hex in upper case"]);
    check(&with("codes", json!(["0XFE"])), &["hex in upper case"]);
    let envelope = json!({"jsonrpc": "2.0", "id": 1, "result": document()});
    check(&envelope, &[]);
    let envelopes = |json: &Value| ForeignWitness::read(&json.to_string()).expect("one").envelopes;
    assert_eq!(envelopes(&envelope), ["result"]);
    let blob = Bytes::from(witness::rlp::encode(&expected()));
    check(&json!(blob), &["RLP instead of JSON"]);
    let status = json!({"result": {"status": "VALID", "witness": blob}});
    check(&status, &["RLP instead of JSON"]);
    assert_eq!(envelopes(&status), ["result", "witness"]);
    let mut null = document();
    null["codes"] = Value::Null;
    let read = ForeignWitness::read(&null.to_string()).expect("a witness without codes");
    assert_eq!(
        (read.witness.codes.len(), &read.differences[..]),
        (0, &["codes is null".into()][..])
    );
}

#[test]
fn what_is_no_witness_is_refused_with_the_reason() {
    let refuse = |json: &Value, words: &str| {
        let reason = ForeignWitness::read(&json.to_string()).expect_err("no witness");
        assert!(reason.contains(words), "{json}: {reason}");
    };
    let with = |member: &str, value: Value| {
        let mut json = document();
        json[member] = value;
        json
    };
    refuse(&json!([]), "not an object");
    refuse(&json!({}), "state is missing");
    refuse(&json!({"state": [], "headers": []}), "codes is missing");
    refuse(&with("state", json!(1)), "state: invalid type");
    refuse(&with("state", json!([1])), "expected hex digits");
    refuse(&with("state", json!(["0x0"])), "odd");
    refuse(&with("state", json!(["0x0x01"])), "hex digits");
    refuse(&with("headers", json!([{"number": "0x1"}])), "missing field");
    refuse(&with("headers", json!(vec!["0xc0"; 257])), "more than 256 items");
    let mut deep = document();
    for _ in 0..9 {
        deep = json!({ "result": deep });
    }
    refuse(&deep, "too many envelopes");
}
