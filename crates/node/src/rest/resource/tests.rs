use super::*;

#[test]
fn a_single_range_is_a_part() {
    let check = |value, expected| assert_eq!(range(value, 10), expected, "{value}");
    check("bytes=0-0", RequestedRange::Part(0..1));
    check("bytes=2-5", RequestedRange::Part(2..6));
    check("bytes=2-", RequestedRange::Part(2..10));
    check("bytes=2-99", RequestedRange::Part(2..10));
    check("bytes=-3", RequestedRange::Part(7..10));
    check("bytes=-99", RequestedRange::Part(0..10));
    check("BYTES = 9-9", RequestedRange::Part(9..10));
    check("bytes=0-99999999999999999999999", RequestedRange::Part(0..10));
}

#[test]
fn a_range_behind_the_end_is_nothing() {
    for value in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999999-"] {
        assert_eq!(range(value, 10), RequestedRange::Nothing, "{value}");
    }
    assert_eq!(range("bytes=-5", 0), RequestedRange::Nothing);
}

#[test]
fn what_is_no_single_range_is_ignored() {
    let malformed = ["", "bytes", "bytes=", "bytes=-", "bytes=5-2", "bytes=a-b", "bytes=1--2"];
    let others = ["bytes=1-2,4-5", "lines=1-2", "bytes=+1-2", "bytes=--1"];
    for value in malformed.into_iter().chain(others) {
        assert_eq!(range(value, 10), RequestedRange::All, "{value}");
    }
}
