//! ethereum-metrics-exporter: all that it polls of an execution client, in the forms of the three
//! libraries that it uses.

use super::{Recorded, Target, same};
use crate::support::*;
use serde_json::{Value, json};

/// Its own client, go-ethereum's `ethclient`, and `ethrpc`.
const POLLED: [&str; 13] = [
    r#"{"id":0,"jsonrpc":"2.0","method":"admin_nodeInfo","params":[]}"#,
    r#"{"id":0,"jsonrpc":"2.0","method":"admin_peers","params":[]}"#,
    r#"{"id":0,"jsonrpc":"2.0","method":"net_peerCount","params":[]}"#,
    r#"{"id":0,"jsonrpc":"2.0","method":"txpool_status","params":[]}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"eth_getBlockByNumber","params":["0x1",true]}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"eth_gasPrice"}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"net_version"}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"eth_chainId"}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"eth_syncing"}"#,
    r#"{"id":1,"jsonrpc":"2.0","method":"eth_getBlockByNumber","params":["0x3",false]}"#,
    r#"{"id":1,"jsonrpc":"2.0","method":"net_peerCount","params":null}"#,
    r#"{"id":1,"jsonrpc":"2.0","method":"web3_clientVersion","params":null}"#,
];

#[tokio::test(flavor = "multi_thread")]
async fn all_that_the_exporter_polls_is_answered() {
    let recorded = Recorded::new(genesis_of_osaka(), OSAKA).await;
    let mut answers = Vec::new();
    for mut target in recorded.targets().await {
        fill(&mut target, &recorded).await;
        let mut polled = Vec::new();
        for call in POLLED {
            let answer = target.web(call).await;
            assert_eq!(answer.get("error"), None, "{call}: {answer}");
            let result = &answer["result"];
            // These say who answers.
            if call.contains("admin_nodeInfo") {
                check_node_info(result);
            } else if call.contains("web3_clientVersion") {
                assert!(result.as_str().is_some_and(|name| name.contains('/')), "{answer}");
            } else {
                polled.push((call.into(), answer));
            }
        }
        answers.push(polled);
    }
    same(&answers);
}

/// The members that it reads have the types that it reads.
fn check_node_info(info: &Value) {
    for name in ["discovery", "listener"] {
        assert!(info["ports"][name].is_u64(), "{info}");
    }
    for name in ["enode", "id", "ip", "listenAddr", "name"] {
        assert!(info[name].is_string(), "{name}: {info}");
    }
}

async fn fill(target: &mut Target, recorded: &Recorded) {
    for (index, params) in recorded.payloads.iter().enumerate() {
        let choice = json!([state(recorded.hash(index)), null]);
        for (method, params) in
            [("engine_newPayloadV4", params), ("engine_forkchoiceUpdatedV3", &choice)]
        {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let answer = target.engine(&call.to_string()).await;
            assert!(answer.to_string().contains(r#""VALID""#), "{answer}");
        }
    }
}
