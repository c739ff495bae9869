//! Lists with a bound.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A list of at most `MOST` items. Of a longer one no more is read than that: an item of two
/// characters can take ten times as much memory.
#[derive(Debug)]
pub struct List<T, const MOST: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for List<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Items<T, const MOST: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Items<T, MOST> {
            type Value = List<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T, MOST>, A::Error> {
                let mut items = Vec::new();
                while items.len() < MOST {
                    match list.next_element()? {
                        Some(item) => items.push(item),
                        None => return Ok(List(items)),
                    }
                }
                match list.next_element::<IgnoredAny>()? {
                    None => Ok(List(items)),
                    Some(_) => Err(A::Error::custom(format_args!("more than {MOST} items"))),
                }
            }
        }
        json.deserialize_seq(Items(PhantomData))
    }
}

/// The members of an object, at most `MOST`, in their order. Of more no more are read than that.
#[derive(Debug)]
pub struct Entries<K, V, const MOST: usize>(pub Vec<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>, const MOST: usize> Deserialize<'de>
    for Entries<K, V, MOST>
{
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Members<K, V, const MOST: usize>(PhantomData<(K, V)>);
        impl<'de, K: Deserialize<'de>, V: Deserialize<'de>, const MOST: usize> Visitor<'de>
            for Members<K, V, MOST>
        {
            type Value = Entries<K, V, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if entries.len() == MOST {
                        return Err(M::Error::custom(format_args!("more than {MOST} members")));
                    }
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        json.deserialize_map(Members(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_up_to_its_bound() {
        let read = |text: &str| serde_json::from_str::<List<u8, 3>>(text);
        assert!(read("[]").expect("a list").0.is_empty());
        assert_eq!(read("[1,2,3]").expect("a list").0, [1, 2, 3]);
        // The rest, behind the fourth, is not looked at.
        let fault = read("[1,2,3,4,\"no number\"").expect_err("too long").to_string();
        assert!(fault.starts_with("more than 3 items"), "{fault}");
        assert!(read("{}").is_err() && read("[1,2,\"a\"]").is_err());
    }

    #[test]
    fn an_object_is_read_up_to_its_bound() {
        let read = |text: &str| serde_json::from_str::<Entries<String, u8, 2>>(text);
        let entries = read(r#"{"b":1,"a":2}"#).expect("an object").0;
        assert_eq!(entries, [("b".into(), 1), ("a".into(), 2)]);
        let fault = read(r#"{"b":1,"a":2,"c":3,"d"#).expect_err("too long").to_string();
        assert!(fault.starts_with("more than 2 members"), "{fault}");
        assert!(read("[]").is_err());
    }
}
