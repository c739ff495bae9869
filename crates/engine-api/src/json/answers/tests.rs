use super::*;
use crate::ForkchoiceUpdateResponse;
use witness::Witness;

#[test]
fn a_status_is_read_with_and_without_its_witness() {
    let witness = Witness {
        state: vec![Bytes::from_static(&[0xc0])].into(),
        codes: vec![Bytes::from_static(&[0x5b])],
        headers: vec![Bytes::from_static(&[0xc0])],
    };
    let rlp = hex::encode_prefixed(witness::rlp::encode(&witness));
    let hash = B256::repeat_byte(1);
    let json = format!(
        r#"{{"status":"VALID","witness":"{rlp}","latestValidHash":"{hash}",
            "validationError":null}}"#
    );
    let read = WithWitness::from_json(&json).unwrap();
    assert_eq!(read.witness, Some(witness));
    assert_eq!((read.content.status, read.content.latest_valid_hash), (Status::Valid, Some(hash)));

    let json = r#"{"status":"INVALID","validationError":"why","new":1,"witness":null}"#;
    let read = WithWitness::from_json(json).unwrap();
    assert_eq!((read.content.status, read.witness), (Status::Invalid, None));
    assert_eq!(read.content.validation_error.as_deref(), Some("why"));
}

#[test]
fn what_is_no_answer_is_refused() {
    for json in [
        "[]",
        "{}",
        r#"{"status":"FINE"}"#,
        r#"{"status":"VALID","witness":"c0"}"#,
        r#"{"status":"VALID","witness":"0x0xc0"}"#,
        r#"{"status":"VALID","witness":"0xc"}"#,
        r#"{"status":"VALID","witness":"0xc0"}"#,
        r#"{"status":"VALID","witness":1}"#,
    ] {
        WithWitness::from_json(json).expect_err(json);
    }
}

#[test]
fn a_fork_choice_is_answered_in_the_specifications_names() {
    let json = concat!(
        r#"{"payloadStatus":{"status":"INVALID_BLOCK_HASH","latestValidHash":null,"#,
        r#""validationError":"why"},"payloadId":"0x0102030405060708"}"#,
    );
    let read: ForkchoiceUpdateResponse = serde_json::from_str(json).unwrap();
    assert_eq!(read.payload_status.status, Status::InvalidBlockHash);
    assert_eq!(serde_json::to_string(&read).unwrap(), json);
}
