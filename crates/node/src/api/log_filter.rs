//! A filter of logs by address and by topics.

use std::collections::HashSet;

use alloy_primitives::{Address, B256, Bloom, BloomInput, Log};
use engine_api::json::FixedData;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;

use crate::limits::{FILTER_ENTRIES, FILTER_TOPICS};

/// Addresses and topics, as in the filters of `eth_getLogs` and `eth_subscribe`. The default wants
/// every log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LogFilter {
    /// The addresses that are wanted; `None` is any.
    address: Option<HashSet<Address>>,
    /// By position, the topics that are wanted; `None` is any. A log has at least as many.
    topics: Vec<Option<HashSet<B256>>>,
}

impl LogFilter {
    /// The filter of the members `address` and `topics` of an object, `null` where absent.
    ///
    /// # Errors
    /// The member that is wrong, and why.
    pub(super) fn new(address: &Value, topics: &Value) -> Result<Self, String> {
        let address = entries::<20>(address, "address")?
            .map(|entries| entries.into_iter().map(Address::from).collect());
        let positions = match topics {
            Value::Null => &[],
            Value::Array(positions) => &positions[..],
            _ => return Err("topics is a list".into()),
        };
        if positions.len() > FILTER_TOPICS {
            return Err(format!("topics has {} entries, at most 4 are allowed", positions.len()));
        }
        let topics = positions.iter().enumerate().map(|(index, position)| {
            // As geth has it, none among alternatives is any.
            if position.as_array().is_some_and(|entries| entries.contains(&Value::Null)) {
                return Ok(None);
            }
            let entries = entries::<32>(position, &format!("topics[{index}]"))?;
            Ok(entries.map(|entries| entries.into_iter().map(B256::from).collect()))
        });
        Ok(Self { address, topics: topics.collect::<Result<_, String>>()? })
    }

    /// Bytes of its addresses and topics.
    pub(super) fn bytes(&self) -> usize {
        let topics: usize = self.topics.iter().flatten().map(HashSet::len).sum();
        let addresses = self.address.as_ref().map_or(0, HashSet::len);
        addresses * size_of::<Address>() + topics * size_of::<B256>()
    }

    /// Whether it wants a log.
    pub(super) fn matches(&self, log: &Log) -> bool {
        let has = self.topics.iter().zip(log.topics());
        self.address.as_ref().is_none_or(|wanted| wanted.contains(&log.address))
            && self.topics.len() <= log.topics().len()
            && has
                .into_iter()
                .all(|(wanted, topic)| wanted.as_ref().is_none_or(|wanted| wanted.contains(topic)))
    }

    /// The bits in the log bloom of a block that may have a log that is wanted.
    pub(super) fn blooms(&self) -> LogBlooms {
        let address = self.address.iter().map(|wanted| wanted.iter().map(bits).collect());
        let topics = self.topics.iter().flatten().map(|wanted| wanted.iter().map(bits).collect());
        LogBlooms(address.chain(topics).collect())
    }
}

/// The bits of blooms of which at least one alternative of each item is there.
#[derive(Debug)]
pub(super) struct LogBlooms(Vec<Vec<BloomBits>>);

/// At most three bits of a bloom, each with its byte.
type BloomBits = Vec<(usize, u8)>;

fn bits(entry: impl AsRef<[u8]>) -> BloomBits {
    let bloom = Bloom::from(BloomInput::Raw(entry.as_ref()));
    bloom.0.into_iter().enumerate().filter(|(_, byte)| *byte != 0).collect()
}

impl LogBlooms {
    /// Whether a block with this log bloom may have a log that is wanted.
    pub(super) fn may_match(&self, bloom: &Bloom) -> bool {
        let has = |bits: &BloomBits| bits.iter().all(|(at, bits)| bloom.0[*at] & bits == *bits);
        // Each log sets bits.
        *bloom != Bloom::ZERO && self.0.iter().all(|wanted| wanted.iter().any(has))
    }
}

/// One DATA or a list of them; `None` for `null` and for an empty list, which want anything.
fn entries<const N: usize>(json: &Value, name: &str) -> Result<Option<Vec<[u8; N]>>, String> {
    let read = |json: &Value| {
        let data = FixedData::<N>::deserialize(json);
        data.map(|data| data.0).map_err(|fault| format!("{name}: {fault}"))
    };
    match json {
        Value::Null => Ok(None),
        Value::Array(list) if list.len() > FILTER_ENTRIES => {
            let count = list.len();
            Err(format!("{name} has {count} entries, at most {FILTER_ENTRIES} are allowed"))
        }
        Value::Array(list) if list.is_empty() => Ok(None),
        Value::Array(list) => list.iter().map(read).collect::<Result<_, _>>().map(Some),
        one => Ok(Some(vec![read(one)?])),
    }
}

/// The filter of a subscription, which is of new blocks: a range of blocks is not read.
impl<'de> Deserialize<'de> for LogFilter {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let members = Members::deserialize(json)?;
        Self::new(&members.address, &members.topics).map_err(D::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct Members {
    address: Value,
    topics: Value,
    #[serde(rename = "fromBlock")]
    _from_block: serde::de::IgnoredAny,
    #[serde(rename = "toBlock")]
    _to_block: serde::de::IgnoredAny,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{LogData, bytes};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use serde_json::json;

    fn log(address: u8, topics: &[u8]) -> Log {
        let topics = topics.iter().map(|byte| B256::repeat_byte(*byte)).collect();
        let data = LogData::new_unchecked(topics, bytes!("01"));
        Log { address: Address::repeat_byte(address), data }
    }

    #[track_caller]
    fn check(filter: Value, log: &Log, expected: bool) {
        let filter: LogFilter = serde_json::from_value(filter).expect("a filter");
        assert_eq!(filter.matches(log), expected, "{filter:?}");
    }

    #[test]
    fn a_log_is_wanted_by_its_address_and_its_topics_by_position() {
        let (a, b) = (Address::repeat_byte(1), Address::repeat_byte(2));
        let topic = B256::repeat_byte;
        let two = log(1, &[7, 8]);
        check(json!({}), &two, true);
        check(json!({"address": null, "topics": []}), &two, true);
        check(json!({"address": []}), &two, true);
        check(json!({"address": a}), &two, true);
        check(json!({"address": [b, a]}), &two, true);
        check(json!({"address": b}), &two, false);
        check(json!({"topics": [topic(7)]}), &two, true);
        check(json!({"topics": [topic(8)]}), &two, false);
        check(json!({"topics": [null, [topic(9), topic(8)]]}), &two, true);
        check(json!({"topics": [[], topic(8)]}), &two, true);
        check(json!({"topics": [[null, topic(9)], topic(8)]}), &two, true);
        // Any third topic, but there is none.
        check(json!({"topics": [null, null, null]}), &two, false);
        check(json!({"address": b, "topics": [topic(7)], "fromBlock": "latest"}), &two, false);
    }

    #[test]
    fn a_filter_that_is_none_is_refused_with_the_reason() {
        let topics = vec![Value::Null; 5];
        let many = vec![Address::ZERO; FILTER_ENTRIES + 1];
        let most = json!({"address": many[1..], "topics": topics[1..]});
        serde_json::from_value::<LogFilter>(most).expect("as many as are allowed");
        let cases = [
            (json!({"address": "0x12"}), "address"),
            (json!({"address": 7}), "address"),
            (json!({"address": many}), "at most 1000"),
            (json!({"topics": "0x"}), "topics is a list"),
            (json!({"topics": topics}), "at most 4"),
            (json!({"topics": [["0x"]]}), "topics[0]"),
            (json!({"adress": null}), "adress"),
        ];
        for (filter, reason) in cases {
            let error = serde_json::from_value::<LogFilter>(filter).expect_err("refused");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    /// The bloom never hides a log that the filter wants.
    #[test]
    fn a_bloom_has_every_log_that_is_wanted() {
        let mut random = StdRng::seed_from_u64(testing::seed());
        let mut matched = 0;
        for _ in 0..2_000 {
            let topics: Vec<u8> =
                (0..random.random_range(0..5)).map(|_| random.random_range(0..3)).collect();
            let log = log(random.random_range(0..3), &topics);
            let bloom: Bloom = std::iter::once(&log).collect();
            let wanted = |random: &mut StdRng| match random.random_range(0..3) {
                0 => Value::Null,
                count => (0..count)
                    .map(|_| json!(B256::repeat_byte(random.random_range(0..3))))
                    .collect(),
            };
            let topics: Value =
                (0..random.random_range(0..3)).map(|_| wanted(&mut random)).collect();
            let address = match random.random_range(0..2) {
                0 => Value::Null,
                _ => json!(Address::repeat_byte(random.random_range(0..3))),
            };
            let filter = LogFilter::new(&address, &topics).expect("a filter");
            if filter.matches(&log) {
                matched += 1;
                assert!(filter.blooms().may_match(&bloom), "{filter:?}");
            }
        }
        assert!(matched > 100, "{matched}");
    }
}
