//! ethereum-package: its launcher waits for the node's enode.

use super::{Target, post};
use crate::support::*;

/// `plan.wait` posts it until an enode comes.
const NODE_INFO: &str = r#"{"method":"admin_nodeInfo","params":[],"id":1,"jsonrpc":"2.0"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_launcher_is_told_an_enode_and_an_enr() {
    let genesis = genesis_of_osaka();
    let targets = [Some(Target::ours(&genesis).await), Target::geth(&genesis).await];
    for mut target in targets.into_iter().flatten() {
        // It posts to the empty path.
        let (status, answer) = post(&mut target.public, &[], NODE_INFO).await;
        assert_eq!(status, 200);
        let text = |name: &str| answer["result"][name].as_str().expect("a text").to_owned();
        let enode = text("enode");
        let key = enode.strip_prefix("enode://").and_then(|rest| rest.split('@').next());
        assert_eq!(key.expect("an enode").len(), 128, "{enode}");
        assert!(!enode.split('?').next().expect("a part").is_empty());
        assert!(text("enr").starts_with("enr:"), "{answer}");
    }
}
