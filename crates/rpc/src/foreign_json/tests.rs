use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;
use crate::limits::QUOTE_CHARS;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    number: Option<u64>,
    #[serde(default)]
    list: Vec<Record>,
    #[serde(default)]
    map: BTreeMap<String, Kind>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    Plain,
    Wrapped(bool),
    Named { flag: bool },
}

#[track_caller]
fn refused<T: for<'a> Deserialize<'a>>(text: &str) -> String {
    let fault = read_json::<T>(text).err().expect("not a T").to_string();
    assert_eq!(read_json_bytes::<T>(text.as_bytes()).err().expect("not a T").to_string(), fault);
    fault
}

/// A megabyte of what is longest when it is escaped, at every door.
#[test]
fn an_error_repeats_the_start_of_a_text_alone() {
    let long = "\u{7f}".repeat(1 << 20);
    let shown = r"\u{7f}".repeat(QUOTE_CHARS);
    let check = |fault: String| {
        assert!(fault.contains(&format!("\"{shown}...\"")), "{}", quote(&fault));
        assert_eq!(fault.matches("7f").count(), QUOTE_CHARS, "{}", quote(&fault));
        assert!(fault.len() < shown.len() + 200, "{} bytes", fault.len());
    };
    check(refused::<u64>(&format!("\"{long}\"")));
    check(refused::<Option<bool>>(&format!("\"{long}\"")));
    check(refused::<Vec<u8>>(&format!("\"{long}\"")));
    check(refused::<BTreeMap<String, u8>>(&format!("\"{long}\"")));
    check(refused::<Record>(&format!("\"{long}\"")));
    check(refused::<Record>(&format!("{{\"{long}\": 1}}")));
    check(refused::<Record>(&format!("{{\"number\": \"{long}\"}}")));
    check(refused::<Record>(&format!("{{\"list\": [{{\"number\": \"{long}\"}}]}}")));
    check(refused::<Record>(&format!("{{\"list\": [\"{long}\"]}}")));
    check(refused::<Record>(&format!("{{\"map\": {{\"a\": \"{long}\"}}}}")));
    check(refused::<Record>(&format!("{{\"map\": {{\"a\": {{\"wrapped\": \"{long}\"}}}}}}")));
    check(refused::<Record>(&format!("{{\"map\": {{\"a\": {{\"named\": \"{long}\"}}}}}}")));
}

#[test]
fn a_struct_is_read_from_an_object_alone() {
    assert!(serde_json::from_str::<Record>("[1, [], {}]").is_ok(), "so does serde_json");
    for text in ["[1, [], {}]", "{\"list\": [[1, [], {}]]}", "[]", "1", "null", "\"a\""] {
        assert!(refused::<Record>(text).contains("expected an object"), "{text}");
    }
}

#[test]
fn what_it_reads_is_borrowed_as_it_stands() {
    let raw: &RawValue = read_json(" {\"a\" : 1.50} ").expect("JSON");
    assert_eq!(raw.get(), "{\"a\" : 1.50}");
    assert_eq!(read_json::<&str>("\"abc\"").expect("a string"), "abc");
    let list: Vec<&RawValue> = read_json("[1, \"\\n\", [2]]").expect("a list");
    assert_eq!(list.iter().map(|raw| raw.get()).collect::<Vec<_>>(), ["1", "\"\\n\"", "[2]"]);
    assert!(read_json::<u8>("1 2").is_err(), "something follows");
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| Value::from(number).to_string()),
        "[a-c\\\\\"\\n\u{7f}]{0,4}".prop_map(|text| Value::from(text).to_string()),
        Just("\"plain\"".to_owned()),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let name = prop_oneof![
            Just("number"),
            Just("list"),
            Just("map"),
            Just("wrapped"),
            Just("named"),
            Just("flag"),
            Just("other")
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::vec((name, inner), 0..4).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    /// serde_json is the slow twin: the same values, and the same refusals but for arrays that
    /// stand for objects.
    #[test]
    fn it_reads_what_serde_json_reads(text in json(), cut in any::<prop::sample::Index>()) {
        for text in [&text[..], &text[..text.floor_char_boundary(cut.index(text.len() + 1))]] {
            let ours = read_json::<Value>(text).ok();
            prop_assert_eq!(&ours, &serde_json::from_str::<Value>(text).ok());
            let theirs = serde_json::from_str::<Record>(text).ok();
            match read_json::<Record>(text) {
                Ok(record) => prop_assert_eq!(Some(record), theirs),
                Err(_) => prop_assert!(theirs.is_none() || text.contains('['), "{}", text),
            }
        }
    }
}
