//! Lines that contracts print by `console.log`, the library of hardhat and of Foundry.

use std::collections::HashMap;
use std::sync::LazyLock;

use alloy_dyn_abi::{DynSolType, DynSolValue};
use alloy_primitives::{Address, address, hex, keccak256};

use crate::table::printable;

/// The account that is called for it, where there is no contract.
pub const CONSOLE: Address = address!("0x000000000000000000636F6e736F6c652e6c6f67");

/// Types of arguments, of which any four may stand in a call.
const TYPES: [DynSolType; 4] =
    [DynSolType::String, DynSolType::Uint(256), DynSolType::Bool, DynSolType::Address];

/// The types of the arguments by the selector of a function of the library.
static FUNCTIONS: LazyLock<HashMap<[u8; 4], Vec<DynSolType>>> = LazyLock::new(|| {
    let mut lists: Vec<Vec<DynSolType>> = vec![Vec::new()];
    let mut known = HashMap::new();
    let mut add = |name: &str, types: &[DynSolType]| {
        let names: Vec<_> = types.iter().map(DynSolType::to_string).collect();
        let names = names.join(",");
        // Old versions of the library say uint where they mean uint256, and int.
        for names in [names.clone(), names.replace("int256", "int")] {
            let hash = keccak256(format!("{name}({names})"));
            known.insert([hash[0], hash[1], hash[2], hash[3]], types.to_vec());
        }
    };
    for _ in 0..=TYPES.len() {
        lists.iter().for_each(|list| add("log", list));
        let longer = |list: &Vec<_>| TYPES.map(|last| [list.clone(), vec![last]].concat());
        lists = lists.iter().flat_map(longer).collect();
    }
    let (int, bytes) = (DynSolType::Int(256), DynSolType::Bytes);
    let single = [
        ("logInt", int.clone()),
        ("logUint", DynSolType::Uint(256)),
        ("logString", DynSolType::String),
        ("logBool", DynSolType::Bool),
        ("logAddress", DynSolType::Address),
        ("logBytes", bytes.clone()),
        ("log", int.clone()),
        ("log", bytes),
    ];
    single.iter().for_each(|(name, ty)| add(name, std::slice::from_ref(ty)));
    add("log", &[DynSolType::String, int]);
    for size in 1..=32 {
        let ty = [DynSolType::FixedBytes(size)];
        add(&format!("logBytes{size}"), &ty);
        add("log", &ty);
    }
    known
});

/// The line that a call of [`CONSOLE`] with these data is to print; `None` where it is none of the
/// library's.
pub fn console_line(data: &[u8]) -> Option<String> {
    let (selector, arguments) = data.split_first_chunk::<4>()?;
    let types = FUNCTIONS.get(selector)?;
    let arguments = DynSolType::Tuple(types.clone()).abi_decode_params(arguments).ok()?;
    let DynSolValue::Tuple(values) = arguments else { return None };
    Some(printable(&formatted(&values)))
}

/// The values with spaces between them; those that the first one, a text, has places for, in there.
fn formatted(values: &[DynSolValue]) -> String {
    let mut rest = values.iter();
    let mut line = String::new();
    if let Some(DynSolValue::String(text)) = values.first() {
        rest.next();
        let mut parts = text.split('%');
        line += parts.next().unwrap_or_default();
        while let Some(part) = parts.next() {
            let mut letters = part.chars();
            match letters.next() {
                // Two of them are one.
                None => {
                    line.push('%');
                    line += parts.next().unwrap_or_default();
                }
                Some(letter @ ('s' | 'd' | 'i' | 'x' | 'o')) => match rest.next() {
                    Some(value) => line += &(in_place(letter, value) + letters.as_str()),
                    None => line += &format!("%{part}"),
                },
                Some(_) => line += &format!("%{part}"),
            }
        }
    }
    for value in rest {
        if !line.is_empty() {
            line.push(' ');
        }
        line += &text(value);
    }
    line
}

fn in_place(letter: char, value: &DynSolValue) -> String {
    match (letter, value) {
        ('x', DynSolValue::Uint(number, _)) => format!("{number:#x}"),
        _ => text(value),
    }
}

fn text(value: &DynSolValue) -> String {
    match value {
        DynSolValue::String(text) => text.clone(),
        DynSolValue::Uint(number, _) => number.to_string(),
        DynSolValue::Int(number, _) => number.to_string(),
        DynSolValue::Bool(is) => is.to_string(),
        DynSolValue::Address(address) => address.to_string(),
        DynSolValue::Bytes(bytes) => hex::encode_prefixed(bytes),
        DynSolValue::FixedBytes(word, size) => hex::encode_prefixed(&word[..*size]),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{calldata, function};

    #[track_caller]
    fn check(signature: &str, arguments: &[&str], line: &str) {
        let arguments: Vec<_> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let data = calldata(&function(signature).expect("a signature"), &arguments);
        assert_eq!(console_line(&data.expect("they fit")).as_deref(), Some(line));
    }

    #[test]
    fn a_call_of_the_console_is_a_line() {
        check("log()", &[], "");
        check("log(string)", &["a b"], "a b");
        check("log(string,uint256)", &["setting", "7"], "setting 7");
        check("log(string,uint)", &["setting", "7"], "setting 7");
        check("log(int256)", &["-7"], "-7");
        check("logBytes4(bytes4)", &["0x01020304"], "0x01020304");
        let who = "0x1111111111111111111111111111111111111111";
        check("log(bool,address)", &["true", who], &format!("true {who}"));
    }

    #[test]
    fn a_text_has_places_for_what_follows() {
        check("log(string,uint256,uint256)", &["a %d, %x!", "10", "255"], "a 10, 0xff!");
        check("log(string,uint256)", &["100%% of %s", "5"], "100% of 5");
        check("log(string,bool)", &["no place", "true"], "no place true");
        check("log(string)", &["%s %z"], "%s %z");
    }

    #[test]
    fn what_is_none_of_the_librarys_is_no_line() {
        for data in [&[][..], &[1, 2], &[1, 2, 3, 4], &[0x41, 0x30, 0x4f, 0xac]] {
            assert_eq!(console_line(data), None, "{data:?}");
        }
    }
}
