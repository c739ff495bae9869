use super::*;
use alloy_rpc_types_engine::PayloadStatusEnum;
use proptest::prelude::*;

fn items(most: usize) -> impl Strategy<Value = Vec<Bytes>> {
    let item = prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    prop::collection::vec(item, 0..most)
}

proptest! {
    #[test]
    fn a_witness_reads_as_its_slow_twin_reads_it(
        (state, codes, headers) in (items(9), items(4), items(3)),
    ) {
        let witness = Witness { state: state.into(), codes, headers };
        let mut text = Vec::new();
        witness::json::write(&witness, &mut text);
        let text = String::from_utf8(text).expect("ASCII");
        prop_assert_eq!(witness::json::decode(text.as_bytes()), Ok(witness.clone()));
        prop_assert_eq!(super::witness(&text, &Spare::default()).ok(), Some(witness.clone()));

        // In RLP, headers are lists.
        let headers = vec![Bytes::from_static(&[0xc0]); witness.headers.len()];
        let witness = Witness { headers, ..witness };
        let rlp = hex::encode(witness::rlp::encode(&witness));
        let answer = format!(r#"{{"witness":"0x{rlp}","status":"VALID"}}"#);
        let (_, read) = status(&answer, &Spare::default()).expect("a status");
        prop_assert_eq!(read.map(|read| read.witness), Some(witness));
    }
}

#[test]
fn a_witness_that_its_slow_twin_refuses_is_refused() {
    let list = |item: &str| format!(r#"{{"state":[{item}],"codes":[],"headers":[]}}"#);
    let long = format!("\"0x{}\"", "00".repeat(limits::ITEM_BYTES + 1));
    let headers = vec!["\"0x\""; limits::HEADERS + 1].join(",");
    let too_many = format!(r#"{{"state":[],"codes":[],"headers":[{headers}]}}"#);
    let bad = ["\"\"", "\"00\"", "\"0x0\"", "\"0xzz\"", "\"0x0x00\"", "1", "null", &long];
    let mut texts: Vec<String> = bad.iter().map(|item| list(item)).collect();
    texts.extend(["[]", "null", r#"{"state":[],"codes":[]}"#].map(str::to_owned));
    texts.push(too_many);
    for text in texts {
        let shown: String = text.chars().take(80).collect();
        assert!(witness::json::decode(text.as_bytes()).is_err(), "{shown}");
        let error = witness(&text, &Spare::default()).expect_err(&shown);
        assert!(matches!(error, Error::Decode(_)), "{shown}: {error}");
    }
}

/// As geth 1.17 writes them, the newest first.
#[test]
fn headers_may_be_objects_and_are_sorted() {
    let header = |number| Header { number, base_fee_per_gas: Some(9), ..Header::default() };
    let rlp = |number| Bytes::from(alloy_rlp::encode(header(number)));
    let mut object = serde_json::to_value(header(8)).expect("JSON");
    object["hash"] = serde_json::json!(header(8).hash_slow());
    let json = serde_json::json!({"state": [], "codes": ["0x60"], "headers": [object, rlp(7)]});
    let json = json.to_string();
    let read = witness(&json, &Spare::default()).expect("a witness");
    assert_eq!(read.headers, [rlp(7), rlp(8)]);
    assert_eq!(read.codes, [Bytes::from_static(&[0x60])]);
    let bad = r#"{"state": [], "codes": [], "headers": [{"number": 7}]}"#;
    witness(bad, &Spare::default()).expect_err("half a header");
}

#[test]
fn the_memory_of_a_witness_is_used_again_when_nobody_holds_a_slice() {
    let text = r#"{"state":["0x0102","0x03"],"codes":["0x0405"],"headers":[]}"#;
    let spare = Spare::default();
    let first = witness(text, &spare).expect("a witness");
    let (at, kept) = (first.state[0].as_ptr(), first.codes[0].clone());
    assert_eq!(first.codes[0].as_ptr(), at.wrapping_add(3), "one buffer");
    drop(first);
    let second = witness(text, &spare).expect("a witness");
    assert_ne!(second.state[0].as_ptr(), at, "one slice is held");
    assert_eq!(kept[..], [4, 5]);
    drop((second, kept));
    let third = witness(text, &spare).expect("a witness");
    let fourth = witness(text, &spare).expect("a witness");
    assert_ne!(third.state[0].as_ptr(), fourth.state[0].as_ptr());
    let known = third.state[0].as_ptr();
    drop(third);
    assert_eq!(witness(text, &spare).expect("a witness").state[0].as_ptr(), known);
}

#[test]
fn a_status_is_read_with_what_it_has() {
    let check = |text: &str, expected: Option<PayloadStatusEnum>| {
        let read = status(text, &Spare::default());
        assert_eq!(read.ok().map(|(status, _)| status.status), expected, "{text}");
    };
    let invalid =
        |reason: &str| Some(PayloadStatusEnum::Invalid { validation_error: reason.to_owned() });
    check(r#"{"status":"VALID","witness":null}"#, Some(PayloadStatusEnum::Valid));
    check(r#"{"status":"SYNCING","validationError":null}"#, Some(PayloadStatusEnum::Syncing));
    check(r#"{"status":"ACCEPTED"}"#, Some(PayloadStatusEnum::Accepted));
    check(r#"{"status":"INVALID","validationError":"no"}"#, invalid("no"));
    check(r#"{"status":"INVALID_BLOCK_HASH","validationError":null}"#, invalid(""));
    for bad in ["null", "{}", r#"{"status":"FINE"}"#, r#"{"status":1}"#] {
        check(bad, None);
    }
    check(r#"{"status":"VALID","witness":"0xc"}"#, None);
    check(r#"{"status":"VALID","witness":"0xc0"}"#, None);
    check(r#"{"status":"VALID","latestValidHash":"0x12"}"#, None);
}
