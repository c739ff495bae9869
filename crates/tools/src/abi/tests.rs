use super::*;

fn encoded(signature: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let arguments: Vec<_> = arguments.iter().map(|text| (*text).to_owned()).collect();
    Ok(hex::encode_prefixed(calldata(&function(signature)?, &arguments)?))
}

/// The example of the ABI's specification, "Use of Dynamic Types".
#[test]
fn a_call_is_encoded_as_the_specification_has_it() {
    let arguments =
        ["0x123", "[0x456,0x789]", "0x31323334353637383930", "0x48656c6c6f2c20776f726c6421"];
    let expected = "0x8be652460000000000000000000000000000000000000000000000000000000000000123\
        0000000000000000000000000000000000000000000000000000000000000080\
        3132333435363738393000000000000000000000000000000000000000000000\
        00000000000000000000000000000000000000000000000000000000000000e0\
        0000000000000000000000000000000000000000000000000000000000000002\
        0000000000000000000000000000000000000000000000000000000000000456\
        0000000000000000000000000000000000000000000000000000000000000789\
        000000000000000000000000000000000000000000000000000000000000000d\
        48656c6c6f2c20776f726c642100000000000000000000000000000000000000";
    let signature = "f(uint256,uint32[],bytes10,bytes)";
    assert_eq!(encoded(signature, &arguments).expect("it fits"), expected);
    let data = hex::decode(expected).expect("hex");
    let values = decode(&function(signature).expect("a signature"), &data).expect("it fits");
    let printed = "291\n[1110, 1929]\n0x31323334353637383930\n0x48656c6c6f2c20776f726c6421\n";
    assert_eq!(text_of(&values), printed);
}

#[test]
fn values_are_printed_as_they_are_read() {
    let check = |ty: &str, text: &str, printed: &str, json: Value| {
        let ty = DynSolType::parse(ty).expect(ty);
        let value = value::read(&ty, text).expect(text);
        assert_eq!((value::text(&value).as_str(), to_json(&value)), (printed, json));
    };
    check("uint256", "9999", "9999", json!("9999"));
    check("uint256", "10000", "10000 [1e4]", json!("10000"));
    check("uint256", "1ether", "1000000000000000000 [1e18]", json!("1000000000000000000"));
    check("int256", "-123456", "-123456 [-1.234e5]", json!("-123456"));
    check("uint48", "281474976710655", "281474976710655 [2.814e14]", json!(281474976710655u64));
    check("int8", "-128", "-128", json!(-128));
    check("string", "a \"b\"\nc", r#""a \"b\"\nc""#, json!("a \"b\"\nc"));
    check("bytes3", "0x010203", "0x010203", json!("0x010203"));
    check("(bool,int8[2])", "(true,[1,-2])", "(true, [1, -2])", json!([true, [1, -2]]));
    check("bytes[]", "[]", "[]", json!([]));
}

#[test]
fn a_fault_says_which_argument_and_why() {
    let check = |signature, arguments: &[&str], expected: &str| {
        let error = encoded(signature, arguments).expect_err(signature);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(crate::exit_status(&error), 2);
    };
    check("f(uint256", &[], "no signature of a function");
    check("f(uint7)", &["1"], "uint7");
    check("f(uint8)", &[], "the signature has 1 argument, and 0 are given");
    check("f(bool,uint8)", &["true", "256"], "argument 2: \"256\" is no uint8");
    check(
        "f(uint8)",
        &["x"],
        "argument 1: \"x\" is no uint8: expected a whole number from 0 to 2^8-1",
    );
    check("f(address)", &["0xF39fd6e51aad88F6F4ce6aB8827279cffFb92266"], "its checksum");
}

#[test]
fn data_that_do_not_fit_are_refused() {
    let of = |signature, data: &str| {
        decode(&function(signature).expect("a signature"), &hex::decode(data).expect("hex"))
    };
    let error = of("f(uint256)(bool)", "0x01").expect_err("too short");
    assert!(error.to_string().contains("do not fit f(uint256)(bool)"), "{error}");
    let error = of("f()", "0x12345678").expect_err("another selector").to_string();
    assert!(error.contains("0x12345678") && error.contains("0x26121ff0"), "{error}");
}

#[test]
fn a_revert_has_a_reason() {
    let check = |signature: &str, arguments: &[&str], known: &[&str], expected: Option<&str>| {
        let data = hex::decode(encoded(signature, arguments).expect("fits")).expect("hex");
        let known: Vec<_> = known.iter().map(|text| (*text).to_owned()).collect();
        let known = KnownErrors::parse(&known).expect("errors");
        assert_eq!(revert_reason(&data, &known).as_deref(), expected);
    };
    check("Error(string)", &["no money"], &[], Some("no money"));
    check("Panic(uint256)", &["17"], &[], Some("panic: arithmetic underflow or overflow (0x11)"));
    check("Panic(uint256)", &["1"], &[], Some("panic: assertion failed (0x01)"));
    check("Panic(uint256)", &["3"], &[], Some("panic: unknown code (0x03)"));
    let errors = ["Other()", "Low(uint256,bool)"];
    check("Low(uint256,bool)", &["7", "true"], &errors, Some("Low(7, true)"));
    check("Low(uint256,bool)", &["7", "true"], &[], None);
    assert_eq!(revert_reason(&[], &KnownErrors::default()), None);
    KnownErrors::parse(&["Low".into()]).expect_err("no signature");
}

#[test]
fn an_event_has_topics_and_its_log_arguments() {
    let event = event("Sent(address indexed to,uint256 value,string indexed)").expect("an event");
    let arguments = ["-".to_owned(), "a".to_owned()];
    let topics = topics(&event, &arguments).expect("topics");
    assert_eq!(topics[1], Value::Null);
    // keccak-256 of "a".
    let hash = "0x3ac225168df54212a25c1c01fd35bebfea408fdac2e31ddd6f80a4bbf9a5f1cb";
    assert_eq!(topics[2], json!(hash));
    super::topics(&event, &["a".into(), "b".into(), "c".into()]).expect_err("two are indexed");

    let log_topics = [event.selector(), B256::with_last_byte(5), hash.parse().expect("a hash")];
    let found = decode_log(&event, &log_topics, B256::with_last_byte(9).as_slice()).expect("fits");
    let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &*value.0)).collect();
    let to = "0x0000000000000000000000000000000000000005";
    assert_eq!(found, [("to", to), ("value", "9"), ("arg2", hash)]);
    decode_log(&event, &log_topics[..2], &[]).expect_err("a topic is missing");
}
