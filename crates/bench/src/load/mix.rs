//! The calls that are made, over and over, in the same order.

use anyhow::{Context, ensure};
use rpc::RawValue;

/// Most calls before those of all weights come again.
const CYCLE_LEN: u64 = 10_000;
/// Characters of params that are shown.
const SHOWN_PARAMS: usize = 30;

/// Calls, and which comes when.
#[derive(Debug)]
pub(super) struct Mix {
    pub(super) calls: Vec<Call>,
    /// Indices of `calls`.
    pub(super) cycle: Vec<u16>,
}

/// A method with its params.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) params: Box<RawValue>,
    /// Of the call as a message, but for the digits of its id.
    pub(super) bytes: usize,
}

impl Call {
    /// Its method and its params, the middle of long ones left out.
    pub(super) fn shown(&self) -> String {
        let params: Vec<char> = self.params.get().chars().collect();
        let params: String = match params.len() {
            0..=SHOWN_PARAMS => params.iter().collect(),
            len => {
                let [start, end] = [&params[..SHOWN_PARAMS - 15], &params[len - 12..]];
                start.iter().chain(&['…']).chain(end).collect()
            }
        };
        match params.as_str() {
            "[]" => self.method.clone(),
            params => format!("{} {params}", self.method),
        }
    }

    pub(super) fn new(method: &str, params: Box<RawValue>) -> Self {
        let mut call = Self { method: method.into(), params, bytes: 0 };
        call.bytes = call.message("").len();
        call
    }

    /// The call as a message.
    pub(super) fn message(&self, id: impl std::fmt::Display) -> String {
        let (method, params) = (&self.method, self.params.get());
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    }
}

impl Mix {
    /// Reads calls: `NAME`, `NAME PARAMS`, and before that `WEIGHT*`; none: a usual mix.
    pub(super) fn parse(calls: &[String]) -> anyhow::Result<Self> {
        let usual = [
            "2*eth_blockNumber",
            "eth_chainId",
            r#"eth_getBalance ["0x0000000000000000000000000000000000000000","latest"]"#,
            // The deposit contract of the main network, and the withdrawal requests' one.
            r#"eth_getBalance ["0x00000000219ab540356cbb839cbe05303d7705fa","latest"]"#,
            r#"eth_getBalance ["0x00000961ef480eb55e80d19ad83579a64c007002","latest"]"#,
        ]
        .map(str::to_owned);
        let (mut read, mut weights) = (Vec::new(), Vec::new());
        for call in if calls.is_empty() { &usual[..] } else { calls } {
            let (weight, call) = match call.split_once('*') {
                Some((weight, rest)) if weight.bytes().all(|digit| digit.is_ascii_digit()) => {
                    (weight.parse().with_context(|| format!("no weight: {weight}"))?, rest)
                }
                _ => (1, call.as_str()),
            };
            let (name, params) = call.trim().split_once(' ').unwrap_or((call.trim(), "[]"));
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            ensure!(!name.is_empty() && name.chars().all(is_name), "{name:?} is no method");
            let params: Box<RawValue> = serde_json::from_str(params)
                .with_context(|| format!("the params of {name} are no JSON: {params}"))?;
            let is_list = params.get().starts_with(['[', '{']);
            ensure!(is_list, "the params of {name} are no list");
            read.push(Call::new(name, params));
            weights.push(weight);
        }
        let total: u64 = weights.iter().sum();
        ensure!((1..=CYCLE_LEN).contains(&total), "the weights are {total} together");
        // Each time the call that is furthest behind its share: equal calls are spread evenly.
        let mut behind = vec![0; weights.len()];
        let cycle = (0..total).map(|_| {
            behind.iter_mut().zip(&weights).for_each(|(behind, weight)| *behind += *weight as i64);
            let (next, _) =
                (0..).zip(&behind).max_by_key(|(_, behind)| **behind).unwrap_or((0, &0));
            behind[usize::from(next)] -= total as i64;
            next
        });
        let cycle = cycle.collect();
        Ok(Self { calls: read, cycle })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_by_their_weights_spread_evenly() {
        let calls = ["2*a", "b [1]", "c", "4*d {}"];
        let mix = Mix::parse(&calls.map(str::to_owned)).expect("calls");
        let names: String =
            mix.cycle.iter().map(|call| &*mix.calls[usize::from(*call)].method).collect();
        assert_eq!(names.len(), 8);
        for (name, count) in [('a', 2), ('b', 1), ('c', 1), ('d', 4)] {
            assert_eq!(names.matches(name).count(), count, "{names}");
        }
        assert!(!names.contains("ddd") && !names.contains("aa"), "{names}");
        let message = r#"{"jsonrpc":"2.0","id":7,"method":"b","params":[1]}"#;
        assert_eq!((mix.calls[1].message(7), mix.calls[1].bytes), (message.into(), 49));
        assert_eq!(Mix::parse(&[]).expect("the usual ones").cycle.len(), 6);
        for fault in ["", "a [", "a 1", "0*a", "a\"b", "99999*a", "x*a"] {
            Mix::parse(&[fault.into()]).expect_err(fault);
        }
    }
}
