//! The parameters of one call, taken by position.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::foreign_json::{Foreign, read_json};
use crate::jsonrpc::error::{Code, Error};
use crate::limits::PARAMS_COUNT;

/// The parameters of one call, read from first to last.
///
/// ```
/// use serde_json::value::RawValue;
///
/// let raw: &RawValue = serde_json::from_str(r#"["0x1f", true]"#)?;
/// let mut params = deponent_rpc::Params::of(Some(raw))?;
/// let number: &str = params.next("block")?;
/// let full: Option<bool> = params.optional("full transactions")?;
/// params.end()?;
/// assert_eq!((number, full), ("0x1f", Some(true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Params<'a> {
    list: Vec<&'a RawValue>,
    taken: usize,
    /// Parameters that are an object instead.
    object: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// Splits a call's parameters. Absent ones are an empty list, and so is `{}`.
    ///
    /// # Errors
    /// [`Code::InvalidParams`](crate::Code::InvalidParams) for more parameters than any method
    /// takes.
    pub fn of(params: Option<&'a RawValue>) -> Result<Self, Error> {
        let list = match params {
            None => Vec::new(),
            Some(raw) if raw.get().starts_with('{') => {
                let is_empty = raw.get()[1..].trim_start() == "}";
                let object = (!is_empty).then_some(raw);
                return Ok(Self { list: Vec::new(), taken: 0, object });
            }
            Some(raw) => {
                let elements = elements(raw.get(), PARAMS_COUNT)
                    .map_err(|fault| Error::invalid_params(format_args!("params: {fault}")))?;
                if elements.count > PARAMS_COUNT {
                    return Err(Error::invalid_params(format_args!(
                        "{} params, no method takes more than {PARAMS_COUNT}",
                        elements.count
                    )));
                }
                elements.list
            }
        };
        Ok(Self { list, taken: 0, object: None })
    }

    /// The parameters by their names, of a method that takes them so, too; `None` where they are a
    /// list.
    ///
    /// # Errors
    /// [`Code::InvalidParams`](crate::Code::InvalidParams) if they are not a `T`.
    pub fn named<T: Deserialize<'a>>(&mut self) -> Result<Option<T>, Error> {
        let Some(object) = self.object.take() else { return Ok(None) };
        let named = read_json(object.get());
        named.map(Some).map_err(|fault| {
            let fault = without_place(&fault);
            Error::invalid_params(format_args!("params: {fault}"))
        })
    }

    /// Refuses parameters that are an object.
    fn by_position(&self) -> Result<(), Error> {
        let detail = "params are an object: give them as an array, by position";
        self.object.map_or(Ok(()), |_| Err(Error::invalid_params(detail)))
    }

    /// The next parameter; `name` is for the error.
    ///
    /// # Errors
    /// [`Code::InvalidParams`](crate::Code::InvalidParams) if it is missing, or not a `T`.
    pub fn next<T: Deserialize<'a>>(&mut self, name: &str) -> Result<T, Error> {
        self.by_position()?;
        let position = self.taken;
        let raw = self.list.get(position).ok_or_else(|| {
            Error::invalid_params(format_args!("params[{position}] ({name}) is missing"))
        })?;
        self.taken += 1;
        read_json(raw.get()).map_err(|fault| {
            let fault = without_place(&fault);
            Error::invalid_params(format_args!("params[{position}] ({name}): {fault}"))
        })
    }

    /// The next parameter, or `None` where it is absent or `null`.
    ///
    /// # Errors
    /// [`Code::InvalidParams`](crate::Code::InvalidParams) if it is not a `T`.
    pub fn optional<T: Deserialize<'a>>(&mut self, name: &str) -> Result<Option<T>, Error> {
        if self.taken == self.list.len() && self.object.is_none() {
            return Ok(None);
        }
        self.next(name)
    }

    /// The next parameter, a list of at most `most` items. A longer one is counted, and no more of
    /// it is held.
    ///
    /// # Errors
    /// [`Code::TooLargeRequest`] if it has more items, and
    /// [`Code::InvalidParams`](crate::Code::InvalidParams) if it is no list of `T`s.
    pub fn list<T: Deserialize<'a>>(&mut self, name: &str, most: usize) -> Result<Vec<T>, Error> {
        let position = self.taken;
        let list: &RawValue = self.next(name)?;
        let invalid = |fault: serde_json::Error| {
            let fault = without_place(&fault);
            Error::invalid_params(format_args!("params[{position}] ({name}): {fault}"))
        };
        let Elements { list, count } = elements(list.get(), most).map_err(invalid)?;
        if count > most {
            let detail = format_args!(
                "params[{position}] ({name}): {count} are asked for, at most {most} are allowed"
            );
            return Err(Error::new(Code::TooLargeRequest, detail));
        }
        list.into_iter().map(|item| read_json(item.get()).map_err(invalid)).collect()
    }

    /// The next parameters, at most so many, as they stand there.
    ///
    /// # Errors
    /// [`Code::InvalidParams`](crate::Code::InvalidParams) if the parameters are an object.
    pub fn take(&mut self, most: usize) -> Result<&[&'a RawValue], Error> {
        self.by_position()?;
        let taken = self.taken;
        self.taken = self.list.len().min(taken + most);
        Ok(&self.list[taken..self.taken])
    }

    /// Checks that no parameter is left: one that is ignored is a mistake of the caller.
    ///
    /// # Errors
    /// [`Code::InvalidParams`](crate::Code::InvalidParams) if there are more parameters.
    pub fn end(self) -> Result<(), Error> {
        self.by_position()?;
        match self.list.len() - self.taken {
            0 => Ok(()),
            extra => Err(Error::invalid_params(format_args!(
                "{} params, this method takes {}",
                self.taken + extra,
                self.taken
            ))),
        }
    }
}

/// The words of a fault without its line and column, which count from the parameter's start, and
/// which no caller sees.
fn without_place(fault: &serde_json::Error) -> String {
    let words = fault.to_string();
    let place = format!(" at line {} column {}", fault.line(), fault.column());
    words.strip_suffix(&place).map_or_else(|| words.clone(), ToOwned::to_owned)
}

/// The first elements of a JSON array, and how many it has.
pub(crate) struct Elements<'a> {
    pub(crate) list: Vec<&'a RawValue>,
    pub(crate) count: usize,
}

/// Splits a JSON array without holding more than `most` of its elements.
pub(crate) fn elements(text: &str, most: usize) -> Result<Elements<'_>, serde_json::Error> {
    struct Split {
        most: usize,
    }
    impl<'de> Visitor<'de> for Split {
        type Value = Elements<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut list = Vec::new();
            while list.len() < self.most {
                match seq.next_element()? {
                    Some(element) => list.push(element),
                    None => return Ok(Elements { count: list.len(), list }),
                }
            }
            let mut count = list.len();
            while seq.next_element::<IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(Elements { list, count })
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let elements = Foreign(&mut deserializer).deserialize_seq(Split { most })?;
    deserializer.end()?;
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Option<&RawValue> {
        Some(serde_json::from_str(text).expect("JSON"))
    }

    /// Reads a string and perhaps a number.
    fn check(params: Option<&RawValue>, expected: Result<(&str, Option<u64>), &str>) {
        let read = || {
            let mut params = Params::of(params)?;
            let read = (params.next("name")?, params.optional("count")?);
            params.end()?;
            Ok::<_, Error>(read)
        };
        match (read(), expected) {
            (Ok(read), Ok(expected)) => assert_eq!(read, expected),
            (Err(error), Err(expected)) => {
                assert!(error.is(Code::InvalidParams), "{error}");
                assert!(error.to_string().contains(expected), "{error}");
            }
            (read, expected) => panic!("{read:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn params_are_taken_by_position() {
        check(raw(r#"["a", 2]"#), Ok(("a", Some(2))));
        check(raw(r#" [ "a" , null ] "#), Ok(("a", None)));
        check(raw(r#"["a"]"#), Ok(("a", None)));
        check(raw("[]"), Err("params[0] (name) is missing"));
        check(None, Err("params[0] (name) is missing"));
        check(raw(r#"["a", "b"]"#), Err("params[1] (count): invalid type"));
        check(raw(r#"["a", 2, 3]"#), Err("3 params, this method takes 2"));
        check(raw(r#"{"name": "a"}"#), Err("params are an object"));
        check(raw(&format!("[{}0]", "0,".repeat(PARAMS_COUNT))), Err("17 params"));
    }

    #[test]
    fn the_place_in_a_parameter_is_not_said() {
        let mut params = Params::of(raw("[{\"a\": [1]}]")).expect("one parameter");
        let error = params.next::<u64>("count").expect_err("no number");
        assert!(error.to_string().ends_with("params[0] (count): invalid type: map, expected u64"));
    }

    #[test]
    fn params_are_taken_by_name_where_a_method_has_names() {
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Named<'a> {
            name: &'a str,
            count: Option<u64>,
        }
        let read = |text| {
            let mut params = Params::of(raw(text))?;
            let named: Option<Named<'_>> = params.named()?;
            Ok::<_, Error>(named.map(|named| params.end().map(|()| named)))
        };
        let named = read(r#"{"count": 2, "name": "a"}"#).expect("params").expect("an object");
        assert_eq!(named.expect("nothing is left"), Named { name: "a", count: Some(2) });
        for list in ["[]", "[1]", "{}"] {
            assert!(read(list).expect("params").is_none(), "{list}");
        }
        for (text, words) in [
            (r#"{"count": 2}"#, "params: missing field"),
            (r#"{"name": "a", "size": 2}"#, "params: unknown field"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.is(Code::InvalidParams) && error.to_string().contains(words), "{error}");
        }
    }

    /// Whichever way a method takes them.
    #[test]
    fn an_object_is_no_list() {
        let params = || Params::of(raw(r#"{"name": "a"}"#)).expect("an object");
        let found = [
            params().next::<&str>("name").map(|_| ()),
            params().optional::<&str>("name").map(|_| ()),
            params().list::<u8>("name", 3).map(|_| ()),
            params().end(),
        ];
        for error in found.map(|found| found.expect_err("no list")) {
            assert!(error.to_string().contains("give them as an array"), "{error}");
        }
    }

    #[test]
    fn a_list_has_a_bound() {
        let read = |text| Params::of(raw(text)).expect("params").list::<u8>("numbers", 3);
        assert_eq!(read("[[1,2,3]]").expect("a list"), [1, 2, 3]);
        let error = read("[[1,2,3,4,\"a\"]]").expect_err("too many");
        assert!(error.is(Code::TooLargeRequest), "{error}");
        assert!(error.to_string().contains("5 are asked for, at most 3"), "{error}");
        for text in ["[[1,\"a\"]]", "[\"aaa\"]", "[{}]", "[]"] {
            assert!(read(text).expect_err(text).is(Code::InvalidParams), "{text}");
        }
    }

    #[test]
    fn a_method_without_params_may_get_an_empty_object() {
        for params in [None, raw("[]"), raw("{ }")] {
            Params::of(params).and_then(Params::end).expect("no params");
        }
        let error = Params::of(raw("[1]")).and_then(Params::end).expect_err("one too many");
        assert!(error.is(Code::InvalidParams), "{error}");
    }

    #[test]
    fn a_deeply_nested_parameter_is_an_error_and_no_overflow() {
        let text = format!("[{}{}]", "[".repeat(1 << 20), "]".repeat(1 << 20));
        let mut params = Params::of(raw(&text)).expect("one parameter");
        let error = params.next::<serde_json::Value>("value").expect_err("too deep");
        assert!(error.to_string().contains("recursion limit"), "{error}");
    }

    #[test]
    fn the_count_goes_on_after_the_last_element_kept() {
        let split = elements("[1,[2,2],{\"a\":3},4]", 2).expect("an array");
        assert_eq!((split.list.len(), split.count), (2, 4));
        assert!(elements("[1,2,3", 2).is_err());
        assert!(elements("[1,2] 3", 2).is_err());
        assert!(elements("{}", 2).is_err());
    }
}
