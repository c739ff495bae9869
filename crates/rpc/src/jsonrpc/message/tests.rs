//! The answers to good and bad messages.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

/// `echo` gives its params back, `big` a kilobyte, `panic` panics.
struct Echo;

impl Handler for Echo {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        match method {
            "echo" => Ok(params.map_or("null", RawValue::get).as_bytes().to_vec().into()),
            "big" => Json::of(&"x".repeat(1 << 10)),
            "panic" => panic!("as asked"),
            _ => Err(Error::method_not_found(method)),
        }
    }
}

fn limits() -> Limits {
    Limits { batch_len: 3, batch_answer_bytes: 1 << 10, ..Limits::public() }
}

fn answered(message: impl AsRef<[u8]>) -> Option<Value> {
    let answer = answer(message.as_ref(), &Echo, &limits())?;
    Some(serde_json::from_slice(&answer.to_vec()).expect("an answer is JSON"))
}

/// Checks id, code and part of the detail of an error answer.
#[track_caller]
fn check_error(message: impl AsRef<[u8]>, id: Value, code: i64, detail: &str) {
    let answer = answered(message).expect("an answer");
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{answer}");
    let text = answer["error"]["data"]["err"].as_str().expect("a detail");
    assert!(text.contains(detail), "{text:?} lacks {detail:?}");
}

#[track_caller]
fn check(message: &str, expected: Value) {
    assert_eq!(answered(message), Some(expected));
}

#[test]
fn a_request_is_answered_with_its_id_letter_by_letter() {
    for id in [
        "1",
        "-7",
        "1.50",
        "1e3",
        "null",
        r#""a""#,
        r#""\u0041\n""#,
        r#""""#,
        "12345678901234567890",
    ] {
        let message =
            format!(r#" {{"jsonrpc" : "2.0", "id" : {id} , "method":"echo","params":[1, "é"]}} "#);
        let answer = answer(message.as_bytes(), &Echo, &limits()).expect("an answer").to_vec();
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":[1, "é"]}}"#);
        assert_eq!(String::from_utf8(answer).expect("text"), expected);
    }
}

#[test]
fn params_may_be_absent_null_an_array_or_an_object() {
    let with = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo"{params}}}"#);
    let answer = |result: Value| json!({"jsonrpc":"2.0","id":1,"result":result});
    check(&with(""), answer(json!(null)));
    check(&with(r#","params":null"#), answer(json!(null)));
    check(&with(r#","params":[]"#), answer(json!([])));
    check(&with(r#","params":{"a":1}"#), answer(json!({"a":1})));
    check_error(with(r#","params":"a""#), json!(1), -32602, "not an array");
    check_error(with(r#","params":7"#), json!(1), -32602, "not an array");
}

#[test]
fn an_escaped_or_reordered_request_is_the_same_request() {
    let message = r#"{"params":[2],"other":{"x":[]},"method":"\u0065cho","id":9,"jsonrpc":"2.0"}"#;
    check(message, json!({"jsonrpc":"2.0","id":9,"result":[2]}));
}

#[test]
fn a_notification_is_called_and_not_answered() {
    for method in ["echo", "unknown", "panic"] {
        assert_eq!(answered(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)), None);
        assert_eq!(answered(format!(r#"[{{"jsonrpc":"2.0","method":"{method}"}}]"#)), None);
    }
}

#[test]
fn what_is_not_json_is_a_parse_error() {
    let cases: [&[u8]; 12] = [
        b"",
        b"  \n",
        b"{",
        b"[",
        b"[1,",
        b"nul",
        b"{\"jsonrpc\"}",
        b"{} {}",
        b"[] []",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1,]}",
    ];
    for message in cases {
        check_error(message, json!(null), -32700, "");
    }
    check_error("", json!(null), -32700, "the message is empty");
}

#[test]
fn what_is_json_but_no_request_is_an_invalid_request() {
    let with = |fields: &str| format!(r#"{{"id":4,{fields}}}"#);
    check_error("1", json!(null), -32600, "a request is an object");
    check_error("\"a\"", json!(null), -32600, "a request is an object");
    check_error("{}", json!(null), -32600, "jsonrpc is missing");
    check_error(with(r#""method":"echo""#), json!(4), -32600, "jsonrpc is missing");
    check_error(with(r#""jsonrpc":"1.0","method":"echo""#), json!(4), -32600, "got \"1.0\"");
    check_error(with(r#""jsonrpc":"2.0""#), json!(4), -32600, "method is missing");
    check_error(with(r#""jsonrpc":"2.0","result":1"#), json!(4), -32600, "method is missing");
    check_error(with(r#""jsonrpc":"2.0","method":1"#), json!(4), -32600, "method is not a string");
    check_error(with(r#""id":5"#), json!(null), -32600, "duplicate field");
    let long = with(&format!(r#""jsonrpc":"2.0","method":"{}""#, "m".repeat(ID_BYTES)));
    check_error(long, json!(4), -32600, "method is too long");
}

#[test]
fn an_id_is_a_short_string_a_number_or_null() {
    let with = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo"}}"#);
    for id in ["true", "[1]", r#"{"a":1}"#, &format!("\"{}\"", "i".repeat(ID_BYTES))] {
        check_error(with(id), json!(null), -32600, "an id is");
    }
}

#[test]
fn an_unknown_method_is_named_in_the_error() {
    let with = |method: &str| format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}"}}"#);
    check_error(with("eth_nothing"), json!("x"), -32601, "\"eth_nothing\"");
    check_error(with(&"m".repeat(500)), json!("x"), -32601, "mmm...");
}

#[test]
fn a_panic_is_an_internal_error_and_the_rest_of_the_batch_is_answered() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"panic"},
                    {"jsonrpc":"2.0","id":2,"method":"echo","params":[3]}]"#;
    let answer = answered(batch).expect("an answer");
    assert_eq!(answer[0]["error"]["code"], -32603);
    assert_eq!(answer[1]["result"], json!([3]));
}

#[test]
fn a_batch_is_answered_in_order_without_its_notifications() {
    let batch = r#"[{"jsonrpc":"2.0","id":"b","method":"echo","params":[1]},
                    {"jsonrpc":"2.0","method":"echo"}, [2]]"#;
    let answer = answered(batch).expect("an answer");
    assert_eq!(answer.as_array().map(Vec::len), Some(2), "{answer}");
    assert_eq!(answer[0], json!({"jsonrpc":"2.0","id":"b","result":[1]}));
    assert_eq!((&answer[1]["id"], &answer[1]["error"]["code"]), (&json!(null), &json!(-32600)));
}

#[test]
fn an_empty_or_overlong_batch_is_one_invalid_request() {
    check_error("[]", json!(null), -32600, "the batch is empty");
    let echo = |id| json!({"jsonrpc":"2.0","id":id,"method":"echo"});
    let batches = [(json!([1, 2, 3, 4]), json!(null)), (json!([1, echo(7), 3, 4]), json!(7))];
    for (batch, id) in batches {
        let answer = answered(batch.to_string()).expect("an answer");
        let error = &answer[0]["error"];
        assert_eq!((&answer[0]["id"], answer.as_array().map(Vec::len)), (&id, Some(1)), "{answer}");
        assert_eq!(error["code"], -32600, "{answer}");
        assert_eq!(error["message"], "batch too large", "{answer}");
        assert_eq!(error["data"]["err"], "a batch of 4 requests, at most 3 are allowed");
    }
    check_error("[1,2,3,4,]", json!(null), -32700, "");
}

#[test]
fn a_batch_ends_when_its_time_is_over() {
    let echo = r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[]}"#;
    let batch = format!("[{echo},{echo},1]");
    let limits = Limits { batch_time: Duration::ZERO, ..limits() };
    let answer = answer(batch.as_bytes(), &Echo, &limits).expect("an answer");
    let answer: Value = serde_json::from_slice(&answer.to_vec()).expect("JSON");
    assert_eq!(answer[0]["result"], json!([]));
    assert_eq!(answer[1]["error"]["code"], -32002);
    assert_eq!(answer[1]["error"]["message"], "request timed out");
    let why = answer[1]["error"]["data"]["err"].to_string();
    assert!(why.contains("not called: the calls before it in this batch took more"), "{why}");
    assert_eq!(answer[2]["error"]["code"], -32600);
}

#[test]
fn a_batch_ends_where_its_answers_grow_too_long() {
    let batch: Vec<_> = (0..3).map(|id| json!({"jsonrpc":"2.0","id":id,"method":"big"})).collect();
    let answer = answered(json!(batch).to_string()).expect("an answer");
    assert!(answer[0]["result"].is_string());
    for place in [1, 2] {
        assert_eq!(answer[place]["error"]["code"], -32003, "{answer}");
        assert_eq!(answer[place]["error"]["message"], "response too large", "{answer}");
        assert_eq!(answer[place]["id"], place);
    }
}

#[test]
fn twenty_megabytes_of_nesting_are_refused_in_one_pass() {
    // Another look at it for each level would take days.
    let depth = 20 << 20;
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    check_error(&open, json!(null), -32700, "EOF");
    check_error("{\"a\":".repeat(depth / 5), json!(null), -32700, "EOF");
    let answer = answered(open.clone() + &close).expect("an answer");
    assert_eq!(answer[0]["error"]["code"], -32600);
    for field in ["id", "method", "jsonrpc"] {
        let answer = answered(format!(r#"{{"{field}":{open}{close}}}"#)).expect("an answer");
        assert_eq!(answer["error"]["code"], -32600);
    }
}

/// Text that is nearly a message.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"jsonrpc\"",
        "\"2.0\"",
        "\"id\"",
        "1",
        "null",
        "\"method\"",
        "\"echo\"",
        "\"params\"",
        "\"panic\"",
        " ",
        "\\",
        "\"",
        "-",
        "\u{e9}",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..40)
        .prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn any_bytes_give_an_error_or_nothing(
        message in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), nearly()],
    ) {
        let Some(answer) = answered(&message) else { return Ok(()) };
        let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
        for answer in answers {
            prop_assert_eq!(&answer["jsonrpc"], "2.0");
            prop_assert!(answer.get("id").is_some());
            prop_assert!(answer.get("result").is_some() != answer["error"]["code"].is_i64());
        }
    }

    #[test]
    fn a_message_with_one_byte_changed_never_panics(
        place in 0..60usize,
        byte in any::<u8>(),
    ) {
        let batch = br#"[{"jsonrpc":"2.0","id":"a","method":"echo","params":[1]}, 2]"#;
        let mut message = batch.to_vec();
        message[place] = byte;
        answered(message);
    }
}
