//! A filter tells what a walk over the whole chain before and after tells, however the head moved.

use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::{B256, Bytes};
use engine::BlockRecord;
use rand::Rng;
use rand::seq::IndexedRandom;
use rpc::{Handler, RawValue};
use serde_json::{Value, json};
use testing::world::Signer;

use super::super::Api;
use super::super::log_filter::LogFilter;
use super::super::logs::tests::{Chain, MANY, random};
use super::Filter;
use crate::logs::block_logs;

/// A chain, and one port of it.
struct Port {
    chain: Chain,
    api: Api,
}

impl Port {
    fn new(seed: u64) -> Self {
        let chain = Chain::new(seed);
        let api = Api::public_port(chain.engine().clone());
        Self { chain, api }
    }

    fn answer(&self, method: &str, params: &Value) -> Result<Value, rpc::Error> {
        let params: Box<RawValue> = serde_json::value::to_raw_value(params).expect("JSON");
        let answer = self.api.call(method, Some(&params))?;
        Ok(serde_json::from_slice(&answer.to_vec()).expect("JSON"))
    }

    fn ok(&self, method: &str, params: Value) -> Value {
        self.answer(method, &params).unwrap_or_else(|error| panic!("{method}{params}: {error}"))
    }

    fn changes(&self, id: &Value) -> Value {
        self.ok("eth_getFilterChanges", json!([id]))
    }

    fn not_found(&self, method: &str, id: &Value) {
        let error = self.answer(method, &json!([id])).expect_err("no filter");
        assert_eq!((error.code, &*error.message), (-32000, "filter not found"), "{method} {id}");
    }
}

/// The slow twin of a filter: the whole chain as its owner knows it.
struct Twin {
    id: Value,
    query: Value,
    known: Vec<Arc<BlockRecord>>,
}

impl Twin {
    fn new(port: &mut Port) -> Self {
        let head = port.chain.canonical().len() as u64 - 1;
        let mut query = port.chain.query(head + 20);
        if port.chain.random.random_bool(0.7) {
            let members = query.as_object_mut().expect("an object");
            members.remove("fromBlock");
            members.remove("toBlock");
        }
        let id = port.ok("eth_newFilter", json!([query]));
        Self { id, query, known: port.chain.canonical() }
    }

    /// The logs of the blocks that left, the last one first, and of those that came.
    fn changes(&mut self, port: &Port) -> Value {
        let now = port.chain.canonical();
        let before = std::mem::replace(&mut self.known, now.clone());
        let same = before.iter().zip(&now).take_while(|(a, b)| a.hash() == b.hash()).count();
        let mut left: Vec<_> = before[same..].iter().flat_map(|it| block_logs(it)).collect();
        left.reverse();
        left.iter_mut().for_each(|log| log.removed = true);
        left.extend(now[same..].iter().flat_map(|it| block_logs(it)));
        let filter = LogFilter::new(&self.query["address"], &self.query["topics"]);
        let filter = filter.expect("a filter");
        let end = |name: &str, none| match self.query[name].as_str() {
            Some(text) => u64::from_str_radix(&text[2..], 16).expect("hex"),
            None => none,
        };
        let range = end("fromBlock", 0)..=end("toBlock", u64::MAX);
        left.retain(|log| filter.matches(&log.inner));
        left.retain(|log| range.contains(&log.block_number.expect("in a block")));
        json!(left)
    }
}

#[test]
fn a_filter_of_logs_tells_what_a_comparison_of_whole_chains_tells() {
    let mut port = Port::new(testing::seed());
    let mut known = vec![port.chain.engine().heads().genesis];
    let mut twins: Vec<Twin> = (0..8).map(|_| Twin::new(&mut port)).collect();
    let (mut told, mut removed) = (0, 0);
    for step in 0..60 {
        let parent = *known.choose(&mut port.chain.random).expect("some");
        let length = port.chain.random.random_range(1..5);
        known.push(port.chain.branch(parent, length, random));
        let head = *known.choose(&mut port.chain.random).expect("some");
        port.chain.choose(head);
        for (index, twin) in twins.iter_mut().enumerate() {
            // The first ones are asked always, the others now and then.
            if index > 1 && port.chain.random.random_bool(0.8) {
                continue;
            }
            let (expected, found) = (twin.changes(&port), port.changes(&twin.id));
            assert_eq!(found, expected, "{step}, {}", twin.query);
            told += found.as_array().expect("a list").len();
            let all = found.as_array().into_iter().flatten();
            removed += all.filter(|log| log["removed"] == true).count();
            assert_eq!(port.changes(&twin.id), json!([]), "it is told once");
        }
        if step % 10 == 0 {
            twins.push(Twin::new(&mut port));
        }
    }
    assert!(told > 100 && removed > 30, "{told} logs, {removed} of them removed");
}

#[test]
fn a_filter_of_blocks_tells_of_those_that_became_canonical() {
    let mut port = Port::new(testing::seed());
    let genesis = port.chain.engine().heads().genesis;
    let id = port.ok("eth_newBlockFilter", json!([]));
    assert_eq!(port.changes(&id), json!([]));
    let hashes = |port: &Port, from: usize| -> Value {
        port.chain.canonical()[from..].iter().map(|record| json!(record.hash())).collect()
    };
    let trunk = port.chain.branch(genesis, 3, random);
    port.chain.choose(trunk);
    assert_eq!(port.changes(&id), hashes(&port, 1));
    let one = port.chain.branch(trunk, 2, random);
    port.chain.choose(one);
    assert_eq!(port.changes(&id), hashes(&port, 4));
    let other = port.chain.branch(trunk, 3, random);
    port.chain.choose(other);
    assert_eq!(port.changes(&id), hashes(&port, 4));
    // Back to an ancestor, which is the new head.
    port.chain.choose(trunk);
    assert_eq!(port.changes(&id), json!([trunk]));
    assert_eq!(port.changes(&id), json!([]));
}

#[test]
fn what_is_too_much_for_one_answer_comes_in_several() {
    let mut port = Port::new(7);
    let genesis = port.chain.engine().heads().genesis;
    let full = |_: &mut Chain, nonce| vec![Signer::new(1).call(nonce, MANY, Bytes::new())];
    let id = port.ok("eth_newFilter", json!([{"address": MANY}]));
    let head = port.chain.branch(genesis, 42, full);
    port.chain.choose(head);
    let count = |answer: Value| answer.as_array().expect("a list").len();
    assert_eq!([(); 3].map(|()| count(port.changes(&id))), [20_000, 1_000, 0]);
    // All of them leave, the newest first.
    port.chain.choose(genesis);
    let first = port.changes(&id);
    let log = |answer: &Value, at: usize| {
        (answer[at]["blockNumber"].clone(), answer[at]["logIndex"].clone())
    };
    assert_eq!(log(&first, 0), (json!("0x2a"), json!("0x1f3")));
    assert_eq!(count(first), 20_000);
    let second = port.changes(&id);
    assert_eq!(log(&second, 999), (json!("0x1"), json!("0x0")));
    assert_eq!(count(second), 1_000);
    assert_eq!(port.changes(&id), json!([]));
}

#[test]
fn all_logs_of_a_filter_are_those_of_its_query() {
    let mut port = Port::new(testing::seed());
    let genesis = port.chain.engine().heads().genesis;
    let head = port.chain.branch(genesis, 10, random);
    port.chain.choose(head);
    let mut queries: Vec<_> = (0..20).map(|_| port.chain.query(10)).collect();
    queries.extend([json!({}), json!({"fromBlock": "earliest"}), json!({"blockHash": head})]);
    for query in queries {
        let id = port.ok("eth_newFilter", json!([query]));
        let expected = port.ok("eth_getLogs", json!([query]));
        assert_eq!(port.ok("eth_getFilterLogs", json!([id])), expected, "{query}");
        assert_eq!(port.changes(&id), json!([]), "{query}");
    }
}

#[test]
fn a_filter_that_is_not_there_is_said_so() {
    let port = Port::new(1);
    let id = port.ok("eth_newFilter", json!([{}]));
    // Some libraries read the identifier as a number, and write it with other digits.
    let padded = json!(format!("0x000{}", &id.as_str().expect("text")[2..]));
    assert_eq!(port.changes(&padded), json!([]));
    assert_eq!(port.ok("eth_uninstallFilter", json!([id])), json!(true));
    assert_eq!(port.ok("eth_uninstallFilter", json!([id])), json!(false));
    for id in [id, json!("0x1"), json!("0x"), json!("none"), json!("")] {
        port.not_found("eth_getFilterChanges", &id);
        port.not_found("eth_getFilterLogs", &id);
        assert_eq!(port.ok("eth_uninstallFilter", json!([id])), json!(false));
    }
    let blocks = port.ok("eth_newBlockFilter", json!([]));
    port.not_found("eth_getFilterLogs", &blocks);
    assert_eq!(port.changes(&blocks), json!([]));
    // A cursor at a block that is not kept any more.
    let head = B256::repeat_byte(1);
    let lost = json!(port.api.filters.add(Filter::Blocks { head }, None, Instant::now()));
    port.not_found("eth_getFilterChanges", &lost);
    assert_eq!(port.ok("eth_uninstallFilter", json!([lost])), json!(false), "it has ended");
}

#[test]
fn what_is_wrong_with_a_filter_is_said() {
    let port = Port::new(1);
    let refused = |params: Value, words: &str| {
        let error = port.answer("eth_newFilter", &params).expect_err(words);
        assert_eq!(error.code, -32602, "{params}");
        assert!(error.message.contains(words), "{params}: {error} instead of {words}");
    };
    let range = |from: &str, to: &str| json!([{"fromBlock": from, "toBlock": to}]);
    for (from, to) in [("0x2", "0x1"), ("latest", "0x1"), ("safe", "latest"), ("0x1", "finalized")]
    {
        refused(range(from, to), "invalid block range params");
    }
    refused(range("pending", "latest"), "pending logs are not supported");
    refused(range("0x1", "pending"), "pending logs are not supported");
    refused(json!([{"blockHash": B256::ZERO, "toBlock": "0x2"}]), "cannot specify both");
    refused(json!([{"adress": null}]), "adress");
    refused(json!([]), "missing");
    let topics: Vec<_> =
        (0..1000).map(|number| B256::from(alloy_primitives::U256::from(number))).collect();
    refused(json!([{"topics": [topics, topics, topics]}]), "96000 bytes of addresses and topics");
    port.ok("eth_newFilter", json!([{"topics": [topics, topics]}]));
    for range in [range("0x5", "0x9"), range("earliest", "0x9"), range("0x5", "latest")] {
        port.ok("eth_newFilter", range);
    }
    let error = port.answer("eth_newPendingTransactionFilter", &json!([])).expect_err("no pool");
    assert!(error.message.contains("there is no transaction pool"), "{error}");
}
