use super::*;
use crate::samples::{Format, any_mutation, any_witness, small, vectors};
use proptest::prelude::*;

const FORMAT: Format = Format { encode, decode: |input| decode(input) };

fn encode(witness: &Witness) -> Vec<u8> {
    let mut out = Vec::new();
    write(witness, &mut out);
    out
}

/// The error must say this among other things.
fn refused(input: &str, expected: &str) {
    let error = decode(input.as_bytes()).expect_err("refused").to_string();
    assert!(error.contains(expected), "{input}: {error}");
}

#[test]
fn vectors_of_another_encoder_agree_both_ways() {
    for vector in vectors() {
        assert_eq!(String::from_utf8(encode(&vector.witness())).unwrap(), vector.json);
        assert_eq!(decode(vector.json.as_bytes()), Ok(vector.witness()));
    }
}

#[test]
fn writing_appends() {
    let mut out = b"{\"result\":".to_vec();
    write(&Witness::default(), &mut out);
    assert_eq!(out, b"{\"result\":{\"state\":[],\"codes\":[],\"headers\":[]}");
}

#[test]
fn the_length_is_known_before_it_is_written() {
    for vector in vectors() {
        assert_eq!(encoded_len(&vector.witness()), vector.json.len());
    }
    assert_eq!(encoded_len(&Witness::default()), EMPTY.len());
}

#[test]
fn every_member_is_needed_once() {
    refused(r#"{}"#, "missing field `state`");
    refused(r#"{"state":[],"headers":[]}"#, "missing field `codes`");
    refused(r#"{"state":[],"codes":[]}"#, "missing field `headers`");
    refused(r#"{"state":[],"codes":[],"headers":[],"state":[]}"#, "duplicate field `state`");
}

#[test]
fn other_members_are_passed_over() {
    let empty = Ok(Witness::default());
    for more in [r#""keys":null"#, r#""keys":["0x01"]"#, r#""": {"a":[1,2.5e300,"\u00e9"]}"#] {
        let input = format!(r#"{{"state":[],{more},"codes":[],"headers":[]}}"#);
        assert_eq!(decode(input.as_bytes()), empty, "{input}");
    }
}

#[test]
fn other_types_are_refused() {
    for input in ["null", "1", "\"0x\"", "[]", "true", "[[],[],[]]"] {
        refused(input, "witness: invalid");
    }
    for list in ["null", "{}", "\"0x\"", "1"] {
        let input = format!(r#"{{"state":[],"codes":{list},"headers":[]}}"#);
        refused(&input, "expected a sequence");
    }
    for item in ["null", "1", "[1,2]", "{}", "true", "[]"] {
        let input = format!(r#"{{"state":[{item}],"codes":[],"headers":[]}}"#);
        refused(&input, "expected hex digits after 0x");
    }
    let header = r#"{"state":[],"codes":[],"headers":[{"number":"0x1"}]}"#;
    refused(header, "invalid type: map, expected hex digits after 0x");
}

#[test]
fn items_are_whole_bytes_in_hex_after_0x() {
    for item in ["", "00", "0x0", "0x012", "0xgg", "0X00", "0x0x00", " 0x00", "0x00 ", "0x\\u0000"]
    {
        let input = format!(r#"{{"state":[],"codes":["{item}"],"headers":[]}}"#);
        refused(&input, "expected hex digits after 0x");
    }
    let input = br#"{"state":["0x"],"codes":["0xaB","\u0030x00"],"headers":[]}"#;
    let decoded = decode(input).unwrap();
    assert_eq!(decoded.state, vec![Bytes::new()]);
    assert_eq!(decoded.codes, [Bytes::from_static(&[0xab]), Bytes::from_static(&[0])]);
}

#[test]
fn anything_after_the_object_is_refused() {
    refused(r#"{"state":[],"codes":[],"headers":[]} x"#, "trailing characters");
    refused(r#"{"state":[],"codes":[],"headers":[]}{}"#, "trailing characters");
    assert!(decode(b" {\"state\":[],\"codes\":[],\"headers\":[]}\n").is_ok());
}

#[test]
fn lists_and_items_over_their_limits_are_refused() {
    let document = |state: &str, headers: &str| {
        format!(r#"{{"state":[{state}],"codes":[],"headers":[{headers}]}}"#)
    };
    let many = |count| vec!["\"0x\""; count].join(",");
    assert!(decode(document("", &many(256)).as_bytes()).is_ok());
    refused(&document("", &many(257)), "headers: 257 is over the limit of 256");
    let over = "state: 1048577 is over the limit of 1048576";
    let error = decode(document(&many(limits::ITEMS + 1), "").as_bytes());
    assert_eq!(error.expect_err("refused").to_string(), over);
    // Those beyond are counted and no more.
    let error = decode(document("", &format!("{},1,{{}}", many(256))).as_bytes());
    assert_eq!(error.expect_err("refused").to_string(), "headers: 258 is over the limit of 256");
    let item = format!("\"0x{}\"", "00".repeat(limits::ITEM_BYTES + 1));
    let error = decode(document(&item, "").as_bytes());
    assert_eq!(error.expect_err("refused").to_string(), over);
}

#[test]
fn deep_nesting_is_refused() {
    let deep = "[".repeat(10 << 20);
    assert!(decode(deep.as_bytes()).is_err());
    let deep = format!(r#"{{"state":[],"codes":[],"headers":[],"x":{deep}"#);
    assert!(decode(deep.as_bytes()).is_err());
}

#[test]
fn every_truncation_is_refused() {
    FORMAT.check_truncations(&small());
}

#[test]
fn a_witness_inside_another_document_is_read_alike() {
    let text = format!("[{}]", String::from_utf8(encode(&small())).unwrap());
    assert_eq!(serde_json::from_str::<Vec<Witness>>(&text).unwrap(), [small()]);
    let over =
        format!(r#"[{{"state":[],"codes":[],"headers":[{}]}}]"#, vec!["\"0x\""; 257].join(","));
    let error = serde_json::from_str::<Vec<Witness>>(&over).expect_err("over the limit");
    assert!(error.to_string().contains("headers: 257 is over the limit of 256"), "{error}");
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(witness in any_witness()) {
        FORMAT.check_round_trip(&witness);
    }

    #[test]
    fn random_mutations_get_an_answer(witness in any_witness(), mutation in any_mutation()) {
        FORMAT.check_mutation(&witness, &mutation);
    }

    #[test]
    fn random_text_gets_an_answer(text in r#"[\[\]{}",:0-9a-fx\\ -]{0,60}"#) {
        FORMAT.check_noise(text.into_bytes());
    }
}
