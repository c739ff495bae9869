//! The smaller methods, asked of both nodes over IPC: geth and we answer alike.

use crate::support::with_floats;
use rpc::{ClientError, SessionClient};
use serde_json::{Value, json};

/// Calls that both are to answer with the same result, on a chain of at least eight blocks whose
/// blocks have these hashes, from the first on.
fn calls(hashes: &[Value]) -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("eth_gasPrice", json!([])),
        ("eth_maxPriorityFeePerGas", json!([])),
        ("eth_blobBaseFee", json!([])),
        ("eth_config", json!([])),
        ("eth_syncing", json!([])),
        ("net_peerCount", json!([])),
        ("net_version", json!([])),
        ("admin_peers", json!([])),
        ("txpool_status", json!([])),
        ("eth_feeHistory", json!(["0x0", "latest", []])),
        ("eth_feeHistory", json!(["0x1", "latest", []])),
        ("eth_feeHistory", json!(["0x400", "latest", [0, 25, 50.5, 100]])),
        ("eth_feeHistory", json!([3, "0x4", [50]])),
        ("eth_feeHistory", json!(["0x2", "earliest", [1]])),
    ];
    for (number, hash) in hashes.iter().enumerate() {
        for id in [json!(format!("{number:#x}")), hash.clone()] {
            calls.push(("debug_getRawHeader", json!([id])));
            calls.push(("debug_getRawReceipts", json!([id])));
            calls.push(("debug_getRawBlock", json!([id])));
        }
    }
    calls
}

async fn answer(client: &SessionClient, method: &str, params: &Value) -> Result<Value, String> {
    match client.call(method, params).await {
        Ok(answer) => Ok(with_floats(answer)),
        Err(ClientError::Rpc(error)) => Err(error.message.into()),
        Err(error) => panic!("{method}{params}: {error}"),
    }
}

/// The calls that are answered in two ways.
pub(crate) async fn differences(ours: &SessionClient, geth: &SessionClient) -> Vec<String> {
    let mut hashes = Vec::new();
    let head: String = ours.call("eth_blockNumber", [(); 0]).await.expect("a number");
    let head = u64::from_str_radix(&head[2..], 16).expect("hex");
    for number in 0..=head {
        let params = json!([format!("{number:#x}"), false]);
        let block: Value = ours.call("eth_getBlockByNumber", params).await.expect("a block");
        hashes.push(block["hash"].clone());
    }
    let mut differ = Vec::new();
    for (method, params) in calls(&hashes) {
        let [one, other] = [ours, geth].map(|client| answer(client, method, &params));
        let (one, other) = (one.await, other.await);
        if one != other || one.is_err() {
            differ.push(format!("{method}{params}: ours {one:?}, geth's {other:?}"));
        }
    }
    // Both refuse.
    for (method, params) in [
        ("eth_feeHistory", json!(["0x1", "0xffff", []])),
        ("eth_feeHistory", json!(["0x1", "latest", [101]])),
        ("eth_feeHistory", json!(["0x1", "latest", [50, 20]])),
    ] {
        let (one, other) = (answer(ours, method, &params), answer(geth, method, &params));
        let (one, other) = (one.await, other.await);
        if one.is_ok() || other.is_ok() {
            differ.push(format!("{method}{params}: ours {one:?}, geth's {other:?}"));
        }
    }
    differ.extend(shapes_differ(ours, geth).await);
    differ
}

/// Of answers that cannot be the same all members of geth's are ours too, with values of the same
/// kind; the chain's configuration is the same.
async fn shapes_differ(ours: &SessionClient, geth: &SessionClient) -> Vec<String> {
    let mut differ = Vec::new();
    let ask = async |client, method| answer(client, method, &json!([])).await.expect("an answer");
    let theirs = ask(geth, "admin_nodeInfo").await;
    let config = &theirs["protocols"]["eth"]["config"];
    let own_config = ask(ours, "debug_chainConfig").await;
    for (name, value) in config.as_object().expect("an object") {
        let own = &own_config[name];
        // geth leaves out entries of forks that it has the parameters of.
        let is_part = name == "blobSchedule"
            && value.as_object().expect("an object").iter().all(|(fork, it)| own[fork] == *it);
        if own != value && !is_part {
            differ.push(format!("config.{name}: ours {}, geth's {value}", own_config[name]));
        }
    }
    for method in ["admin_nodeInfo", "eth_capabilities"] {
        let (one, other) = (ask(ours, method).await, ask(geth, method).await);
        for (name, value) in other.as_object().expect("an object") {
            if std::mem::discriminant(&one[name]) != std::mem::discriminant(value) {
                differ.push(format!("{method}.{name}: ours {}, geth's {value}", one[name]));
            }
        }
    }
    differ
}
