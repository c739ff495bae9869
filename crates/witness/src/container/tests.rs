use super::*;
use alloy_primitives::{B256, hex};

const SMALL: Limits = Limits { items: 3, item_bytes: 4 };

fn check_lists(input: &str, expected: Result<&[&str], SszProblem>) {
    let input = Bytes::from(hex::decode(input).expect("the case is hex"));
    let read = read_byte_lists("list", &input, SMALL);
    let expected = expected.map_err(|problem| problem.at("list")).map(|items| {
        items.iter().map(|item| hex::decode(item).expect("hex").into()).collect::<Vec<Bytes>>()
    });
    assert_eq!(read, expected, "{input}");
    if let Ok(items) = read {
        let mut out = Vec::new();
        write_byte_lists(&items, &mut out);
        assert_eq!(out.len(), byte_lists_bytes(&items));
        assert_eq!(Bytes::from(out), input);
    }
}

#[test]
fn lists_of_byte_lists_read_as_they_are_written() {
    check_lists("", Ok(&[]));
    check_lists("04000000", Ok(&[""]));
    check_lists("04000000 aabb".replace(' ', "").as_str(), Ok(&["aabb"]));
    check_lists("0c0000000d0000000d000000aabbcc", Ok(&["aa", "", "bbcc"]));
}

#[test]
fn lists_with_impossible_offsets_are_refused() {
    use SszProblem::{Extent, Offsets};
    check_lists("aa", Err(Offsets { offsets_bytes: 0, got: 1 }));
    check_lists("00000000", Err(Offsets { offsets_bytes: 0, got: 4 }));
    check_lists("05000000aa", Err(Offsets { offsets_bytes: 5, got: 5 }));
    check_lists("0800000000", Err(Offsets { offsets_bytes: 8, got: 5 }));
    check_lists("ffffffff", Err(Offsets { offsets_bytes: 0xffff_ffff, got: 4 }));
    check_lists("0800000007000000", Err(Extent { start: 8, end: 7, got: 8 }));
    check_lists("0800000009000000", Err(Extent { start: 8, end: 9, got: 8 }));
    check_lists("0c0000000d0000000c000000aa", Err(Extent { start: 13, end: 12, got: 13 }));
}

#[test]
fn lists_over_their_limits_are_refused() {
    let four = "10000000100000001000000010000000";
    check_lists(four, Err(SszProblem::TooManyItems { got: 4, limit: 3 }));
    check_lists("040000000102030405", Err(SszProblem::TooLong { got: 5, limit: 4 }));
}

#[test]
fn lists_of_fixed_size_items_end_with_a_whole_item() {
    let two = [1; 64];
    assert_eq!(read_items::<B256>("list", &two), Ok(vec![B256::repeat_byte(1); 2]));
    let expected = SszProblem::Multiple { got: 63, item_bytes: 32 }.at("list");
    assert_eq!(read_items::<B256>("list", &two[1..]), Err(expected));
}

#[test]
fn containers_have_no_gaps_and_parts_in_order() {
    const PAIR: Layout<2> =
        Layout { name: "pair", fixed_bytes: 9, variable: [("left", 0), ("right", 5)] };
    let check = |input: &str, expected: Result<[&str; 2], SszError>| {
        let input = Bytes::from(hex::decode(input).expect("the case is hex"));
        let parts = PAIR.split(&input).map(|(_, parts)| parts.map(hex::encode));
        assert_eq!(parts, expected.map(|parts| parts.map(String::from)), "{input}");
    };
    check("09000000ff0a000000aabb", Ok(["aa", "bb"]));
    check("09000000ff09000000", Ok(["", ""]));
    let short = SszProblem::Length { got: 8, expected: 9 };
    check("09000000ff090000", Err(short.at("pair")));
    let gap = SszProblem::FirstOffset { got: 10, expected: 9 };
    check("0a000000ff0a00000000", Err(gap.at("pair")));
    let backwards = SszProblem::Extent { start: 9, end: 8, got: 9 };
    check("09000000ff08000000", Err(backwards.at("left")));
    let outside = SszProblem::Extent { start: 9, end: 10, got: 9 };
    check("09000000ff0a000000", Err(outside.at("left")));
}

#[test]
fn optional_values_are_lists_of_at_most_one() {
    assert_eq!(read_optional::<B256>("option", &[]), Ok(None));
    assert_eq!(read_optional("option", &[7; 32]), Ok(Some(B256::repeat_byte(7))));
    let two = SszProblem::TooManyItems { got: 2, limit: 1 }.at("option");
    assert_eq!(read_optional::<B256>("option", &[7; 64]), Err(two));
    let part = SszProblem::Multiple { got: 33, item_bytes: 32 }.at("option");
    assert_eq!(read_optional::<B256>("option", &[7; 33]), Err(part));
}

#[test]
fn lists_with_a_limit_end_there() {
    assert_eq!(read_limited("list", &[7; 64], 2), Ok(vec![B256::repeat_byte(7); 2]));
    let over = SszProblem::TooManyItems { got: 3, limit: 2 }.at("list");
    assert_eq!(read_limited::<B256>("list", &[7; 96], 2), Err(over));
}

#[test]
fn what_a_later_layout_appends_is_empty_in_an_earlier_one() {
    const ONE: Layout<1> = Layout { name: "one", fixed_bytes: 5, variable: [("left", 1)] };
    let input = Bytes::from_static(&[1, 5, 0, 0, 0, 0xaa]);
    let (mut fixed, parts) = ONE.split_to::<3>(&input).expect("one");
    assert_eq!(fixed.boolean("flag"), Ok(true));
    assert_eq!(parts, [Bytes::from_static(&[0xaa]), Bytes::new(), Bytes::new()]);
}
