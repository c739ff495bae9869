//! Answers as lines of name and value, in the order and the form of Foundry's cast.

use alloy_primitives::{Address, U256};
use serde_json::{Map, Value};

/// How a member of an answer is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// As it came.
    Text,
    /// A quantity, in decimal.
    Number,
    /// A quantity, in hex with all its 64 digits.
    Word,
    /// A quantity of seconds, and when that is.
    Time,
    /// An address, with its checksum.
    Account,
    /// 1 for success.
    Status,
    /// A list, each item on a line of its own.
    List,
}

/// A member: its name in the output and in the answer, and its form.
pub(crate) type Row = (&'static str, &'static str, Form);

/// One line.
pub(crate) fn line(name: &str, value: &str) -> String {
    format!("{name:<20} {value}").trim_end().to_owned() + "\n"
}

/// The members that `rows` name, in that order, and then all others but those in `left_out`.
pub(crate) fn lines(answer: &Map<String, Value>, rows: &[Row], left_out: &[&str]) -> String {
    let mut text = String::new();
    for (shown, name, form) in rows {
        if let Some(value) = answer.get(*name) {
            text += &line(shown, &written(value, *form));
        }
    }
    let is_other =
        |name: &str| rows.iter().all(|(_, known, _)| *known != name) && !left_out.contains(&name);
    for (name, value) in answer.iter().filter(|(name, _)| is_other(name)) {
        text += &line(name, &written(value, guessed(name)));
    }
    text
}

/// The member that a name means, written as in [`lines`]; else the names that there are.
pub(crate) fn field(
    answer: &Map<String, Value>,
    rows: &[Row],
    wanted: &str,
) -> Result<(String, Value), String> {
    let is_it = |name: &str| name.eq_ignore_ascii_case(wanted);
    let known = rows
        .iter()
        .find(|(shown, name, _)| (is_it(shown) || is_it(name)) && answer.contains_key(*name));
    if let Some((_, name, form)) = known {
        let value = &answer[*name];
        return Ok((written(value, *form), value.clone()));
    }
    if let Some((name, value)) = answer.iter().find(|(name, _)| is_it(name)) {
        return Ok((written(value, guessed(name)), value.clone()));
    }
    let names: Vec<_> = answer.keys().map(String::as_str).collect();
    Err(format!("there is no {} here, but {}", rpc::quote(wanted), names.join(", ")))
}

/// The form of a member that no table knows: newer forks add numbers.
fn guessed(name: &str) -> Form {
    match name {
        "slotNumber" | "blockTimestamp" | "l1Fee" | "l1GasUsed" | "l1GasPrice" => Form::Number,
        _ => Form::Text,
    }
}

/// A value in its form; one that does not have it, as it came. `null` is empty.
pub(crate) fn written(value: &Value, form: Form) -> String {
    let text = match value {
        Value::Array(items) if matches!(form, Form::List) => return list(items),
        Value::Null => return String::new(),
        Value::String(text) => text,
        other => return other.to_string(),
    };
    let number = || {
        let digits = text.strip_prefix("0x")?;
        U256::from_str_radix(digits, 16).ok().filter(|_| !digits.is_empty())
    };
    let formed = match form {
        Form::Text | Form::List => None,
        Form::Number => number().map(|number| number.to_string()),
        Form::Word => number().map(|number| format!("{number:#066x}")),
        Form::Time => number().map(|number| match u64::try_from(number) {
            Ok(seconds) => format!("{seconds} ({})", date(seconds)),
            Err(_) => number.to_string(),
        }),
        Form::Account => text.parse().ok().map(|address: Address| address.to_checksum(None)),
        Form::Status => number().map(|status| match status.is_zero() {
            true => "0 (failed)".to_owned(),
            false => format!("{status} (success)"),
        }),
    };
    // A text of the endpoint's must not write into the terminal.
    formed.unwrap_or_else(|| printable(text))
}

/// A list over several lines; of an access list with the slots of an account below it.
fn list(items: &[Value]) -> String {
    if items.is_empty() {
        return "[]".to_owned();
    }
    let item = |item: &Value| {
        let keys = item.get("storageKeys").and_then(Value::as_array);
        let Some((keys, address)) = keys.zip(item.get("address")) else {
            return format!("\t{}\n", written(item, Form::Text));
        };
        let keys = keys.iter().map(|key| format!("\t\t{}\n", written(key, Form::Text)));
        format!("\t{} => [\n{}\t]\n", written(address, Form::Account), keys.collect::<String>())
    };
    format!("[\n{}]", items.iter().map(item).collect::<String>())
}

/// A text without control characters.
pub(crate) fn printable(text: &str) -> String {
    match text.chars().any(char::is_control) {
        true => text.chars().flat_map(char::escape_default).collect(),
        false => text.to_owned(),
    }
}

/// Seconds since 1970 as RFC 2822 writes them, in UTC: `Mon, 30 Nov 2026 03:13:58 +0000`.
pub fn date(seconds: u64) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Days since the first of March of the year 0, in eras of 400 years, so that the day that a
    // leap year adds is the last one of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    let index = |number: u64| usize::try_from(number).unwrap_or(0);
    let (weekday, month) = (WEEKDAYS[index(days % 7)], MONTHS[index(month)]);
    let (hours, minutes, seconds) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{weekday}, {day} {month} {year} {hours:02}:{minutes:02}:{seconds:02} +0000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_time_is_written_as_a_date() {
        let check = |seconds, expected| assert_eq!(date(seconds), expected);
        check(0, "Thu, 1 Jan 1970 00:00:00 +0000");
        check(951_782_399, "Mon, 28 Feb 2000 23:59:59 +0000");
        check(951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000");
        check(1_796_008_438, "Mon, 30 Nov 2026 03:13:58 +0000");
        check(4_107_542_400, "Mon, 1 Mar 2100 00:00:00 +0000");
        check(4_107_542_399, "Sun, 28 Feb 2100 23:59:59 +0000");
        date(u64::MAX);
    }

    #[test]
    fn a_value_that_does_not_have_its_form_is_written_as_it_came() {
        let check = |value: Value, form, expected| assert_eq!(written(&value, form), expected);
        check(json!("0x10"), Form::Number, "16");
        check(json!("0x"), Form::Number, "0x");
        check(json!("ten"), Form::Number, "ten");
        check(json!(7), Form::Number, "7");
        check(json!(null), Form::Account, "");
        check(json!("0x0"), Form::Status, "0 (failed)");
        check(json!("0x1"), Form::Status, "1 (success)");
        check(json!("\u{1b}[31m"), Form::Text, r"\u{1b}[31m");
        check(json!(["0x1"]), Form::Text, r#"["0x1"]"#);
        check(json!([]), Form::List, "[]");
        check(json!(["0x1", {"a": 1}]), Form::List, "[\n\t0x1\n\t{\"a\":1}\n]");
        let slots = json!([{"address": "0x12", "storageKeys": ["0x1"]}]);
        check(slots, Form::List, "[\n\t0x12 => [\n\t\t0x1\n\t]\n]");
    }

    #[test]
    fn a_field_is_found_by_either_name() {
        let answer = json!({"gas": "0x5208", "other": true});
        let answer = answer.as_object().expect("an object");
        let rows: [Row; 1] = [("gasLimit", "gas", Form::Number)];
        for name in ["gas", "gasLimit", "gaslimit"] {
            assert_eq!(field(answer, &rows, name), Ok(("21000".into(), json!("0x5208"))));
        }
        assert_eq!(field(answer, &rows, "other").expect("there").0, "true");
        let fault = field(answer, &rows, "to").expect_err("none");
        assert_eq!(fault, "there is no to here, but gas, other");
        assert_eq!(
            lines(answer, &rows, &[]),
            "gasLimit             21000\nother                true\n"
        );
    }
}
