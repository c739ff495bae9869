//! zkboost: from 0.10 on a proxy between the consensus client and the node, before that a poller
//! of witnesses.

use super::{AMSTERDAM, Recorded, Target, genesis_of_amsterdam, post};
use crate::support::*;
use alloy_primitives::Bytes;
use serde_json::{Value, json};

/// The proxy: it sends on what comes, with the header that came.
struct Proxy {
    target: Target,
    /// The method in the place of `engine_newPayloadV5`.
    with_witness: &'static str,
    /// The witnesses that it has taken out of answers.
    witnesses: Vec<Bytes>,
    /// Payloads that were sent again without a witness.
    fallbacks: usize,
}

impl Proxy {
    fn new(target: Target, with_witness: &'static str) -> Self {
        Self { target, with_witness, witnesses: Vec::new(), fallbacks: 0 }
    }

    async fn forward(&mut self, token: Option<&str>, body: &str) -> (u16, Value) {
        let headers: Vec<_> = token.map(|token| ("authorization", token)).into_iter().collect();
        post(&mut self.target.engine, &headers, body).await
    }

    async fn take(&mut self, token: Option<&str>, body: &str) -> (u16, Value) {
        let request: Value = serde_json::from_str(body).expect("JSON");
        if request["method"] != "engine_newPayloadV5" {
            return self.forward(token, body).await;
        }
        let mut asked = request.clone();
        asked["method"] = json!(self.with_witness);
        let (status, mut answer) = self.forward(token, &asked.to_string()).await;
        if answer["error"]["code"] == -32601 {
            self.fallbacks += 1;
            return self.forward(token, body).await;
        }
        let status_object = answer["result"].as_object_mut();
        if let Some(witness) = status_object.and_then(|status| status.remove("witness")) {
            self.witnesses.push(serde_json::from_value(witness).expect("hex"));
        }
        (status, answer)
    }

    fn token(&self) -> String {
        format!("Bearer {}", self.target.secret.token())
    }

    /// The consensus client imports the chain through the proxy.
    async fn import(&mut self, recorded: &Recorded) {
        for (index, params) in recorded.payloads.iter().enumerate() {
            let token = self.token();
            let method = "engine_newPayloadV5";
            let call = json!({"id": index, "jsonrpc": "2.0", "method": method, "params": params});
            let (status, answer) = self.take(Some(&token), &call.to_string()).await;
            assert_eq!((status, &answer["id"]), (200, &json!(index)), "{answer}");
            assert_eq!(answer["result"]["status"], "VALID", "{answer}");
            assert_eq!(answer["result"]["latestValidHash"], *recorded.hash(index));
            let choice = json!([state(recorded.hash(index)), null]);
            let call = json!({
                "id": "a text", "jsonrpc": "2.0", "method": "engine_forkchoiceUpdatedV4",
                "params": choice,
            });
            let (_, answer) = self.take(Some(&token), &call.to_string()).await;
            assert_eq!(answer["id"], "a text");
            assert_eq!(answer["result"]["payloadStatus"]["status"], "VALID", "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_gets_a_witness_with_each_valid_payload() {
    let recorded = Recorded::new(genesis_of_amsterdam(), AMSTERDAM).await;
    let target = Target::ours(&recorded.genesis).await;
    let mut proxy = Proxy::new(target, "engine_newPayloadWithWitnessV5");
    proxy.import(&recorded).await;
    assert_eq!(proxy.fallbacks, 0);
    assert_eq!(proxy.witnesses.len(), recorded.payloads.len());
    for witness in &proxy.witnesses {
        let witness = witness::rlp::decode(witness).expect("[headers, codes, state(, keys)]");
        assert!(!witness.state.is_empty() && !witness.headers.is_empty());
    }
    // After a reorganisation a payload comes again, and its witness with it.
    let token = proxy.token();
    let params = &recorded.payloads[1];
    let call =
        json!({"id": 9, "jsonrpc": "2.0", "method": "engine_newPayloadV5", "params": params});
    proxy.take(Some(&token), &call.to_string()).await;
    assert_eq!(proxy.witnesses[3], proxy.witnesses[1]);
    // Other methods pass, and so does the judgement of a token.
    let asked = json!([["engine_newPayloadV5", "engine_forkchoiceUpdatedV4"]]);
    let call = json!({
        "id": 1, "jsonrpc": "2.0", "method": "engine_exchangeCapabilities", "params": asked,
    });
    let (_, answer) = proxy.take(Some(&token), &call.to_string()).await;
    let names = answer["result"].as_array().expect("names");
    assert!(names.contains(&json!("engine_newPayloadWithWitnessV5")), "{answer}");
    for token in [None, Some("Bearer wrong")] {
        assert_eq!(proxy.take(token, &call.to_string()).await.0, 401);
    }
}

/// A payload that is not valid has no witness, and the answer is that of `engine_newPayloadV5`.
#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_hands_on_what_is_not_valid() {
    let recorded = Recorded::new(genesis_of_amsterdam(), AMSTERDAM).await;
    let target = Target::ours(&recorded.genesis).await;
    let mut proxy = Proxy::new(target, "engine_newPayloadWithWitnessV5");
    let token = proxy.token();
    let mut wrong = recorded.payloads[0].clone();
    wrong[0]["gasUsed"] = json!("0x1");
    for (params, status) in [(&recorded.payloads[2], "SYNCING"), (&wrong, "INVALID")] {
        let call =
            json!({"id": 1, "jsonrpc": "2.0", "method": "engine_newPayloadV5", "params": params});
        let (_, answer) = proxy.take(Some(&token), &call.to_string()).await;
        assert_eq!(answer["result"]["status"], status, "{answer}");
        let (_, plain) = proxy.forward(Some(&token), &call.to_string()).await;
        assert_eq!(answer, plain);
    }
    assert!(proxy.witnesses.is_empty());
}

/// A method that a node does not have is `-32601`, and the payload comes again as it was.
#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_falls_back_where_there_is_no_such_method() {
    let recorded = Recorded::new(genesis_of_amsterdam(), AMSTERDAM).await;
    for target in recorded.targets().await {
        let mut proxy = Proxy::new(target, "engine_newPayloadWithWitnessV99");
        proxy.import(&recorded).await;
        assert_eq!(proxy.fallbacks, recorded.payloads.len());
    }
}

/// Until 0.9: a poll by hash every 200 ms until the block is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_poller_gets_a_witness_as_soon_as_there_is_one() {
    let recorded = Recorded::new(genesis_of_osaka(), OSAKA).await;
    let mut target = Target::ours(&recorded.genesis).await;
    let call = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}).to_string()
    };
    let config = target.web(&call("debug_chainConfig", json!([]))).await;
    assert_eq!(config["result"]["chainId"], 1337, "{config}");
    let hash = recorded.hash(0);
    let poll = call("debug_executionWitnessByBlockHash", json!([hash]));
    // Its error is one of JSON-RPC: HTTP's would end the poll.
    let (status, early) = post(&mut target.public, &[], &poll).await;
    assert_eq!(status, 200);
    assert!(early["error"]["code"].is_i64() && early["error"]["message"].is_string(), "{early}");
    let answer = target.engine(&call("engine_newPayloadV4", recorded.payloads[0].clone())).await;
    assert_eq!(answer["result"]["status"], "VALID", "{answer}");
    let witness = target.web(&poll).await;
    assert!(witness["result"]["state"][0].is_string(), "{witness}");
    let block = target.web(&call("eth_getBlockByHash", json!([hash, true]))).await;
    assert_eq!(block["result"]["hash"], *hash);
    assert!(block["result"]["transactions"][0]["input"].is_string());
}
