//! The log of a running node, as an operator reads it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::persistence::{Process, directory};
use serde_json::{Value, json};

/// The file of a node's log.
struct Log {
    path: PathBuf,
    /// Lines that were looked at.
    seen: usize,
}

impl Log {
    fn of(dir: &Path) -> Self {
        Self { path: dir.join("node.log"), seen: 0 }
    }

    /// Waits for a line with all these words, and gives it and the lines before it that were not
    /// looked at yet.
    async fn until(&mut self, words: &[&str]) -> (Vec<String>, String) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let text = std::fs::read_to_string(&self.path).expect("the log");
            let lines: Vec<_> = text.lines().skip(self.seen).map(str::to_owned).collect();
            let has_all = |line: &String| words.iter().all(|words| line.contains(words));
            if let Some(at) = lines.iter().position(has_all) {
                self.seen += at + 1;
                return (lines[..at].to_vec(), lines[at].clone());
            }
            assert!(Instant::now() < end, "{words:?} is not in {text}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The value of a field in a line.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let words = line.split_whitespace().filter_map(|word| word.split_once('='));
    let value = words.filter(|(found, _)| *found == name).map(|(_, value)| value).next();
    value.unwrap_or_else(|| panic!("{name} is not in {line}"))
}

/// A withdrawal, which makes a block another one than its twins.
fn withdrawal(amount: u64) -> Value {
    let address = format!("0x{}", "aa".repeat(20));
    json!([{
        "index": "0x0", "validatorIndex": "0x1", "address": address,
        "amount": format!("{amount:#x}"),
    }])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_blocks_reorgs_fork_choices_and_failed_builds() {
    let dir = directory();
    let mut log = Log::of(dir.path());
    let file = log.path.display().to_string();
    let mut node = Process::start_with(dir.path(), &["--log.file", &file]).await;
    let genesis = node.head().await;
    // A block has its line, with all that an operator wants to know of it.
    let first = node.add(&genesis, json!([]), json!([])).await;
    let (_, line) = log.until(&["INFO", "block VALID", " number=1 "]).await;
    let hash = first.as_str().expect("a hash");
    assert_eq!(field(&line, "hash"), format!("{}..{}", &hash[..10], &hash[62..]));
    assert_eq!((field(&line, "txs"), field(&line, "gas_used")), ("0", "0"));
    for name in ["ms", "mgas_per_s"] {
        assert!(field(&line, name).parse::<f64>().is_ok(), "{line}");
    }
    assert!(line.contains("witness_mb") && line.contains("unpersisted=1"), "{line}");
    assert!(field(&line, "age").contains('d'), "the chain began in 1970: {line}");
    node.choose(&first, false).await;
    // Many at once are summed, and none is left out.
    let mut head = node.block(&first).await;
    for _ in 0..20 {
        let hash = node.add(&head, json!([]), json!([])).await;
        head = node.block(&hash).await;
    }
    let mut blocks = 0;
    while blocks < 20 {
        let (_, line) = log.until(&["INFO", " VALID "]).await;
        let count = if line.contains("blocks VALID") { field(&line, "blocks") } else { "1" };
        blocks += count.parse::<u64>().expect("a number");
    }
    assert_eq!(blocks, 20);
    // A head that jumps says so. The next block as head, and the same again, say nothing.
    node.choose(&head["hash"], false).await;
    log.until(&["INFO", " head number=21 ", "blocks=20"]).await;
    let next = node.add(&head, json!([]), json!([])).await;
    node.choose(&next, false).await;
    node.choose(&next, false).await;
    let (_, _) = log.until(&["block VALID", "number=22 "]).await;
    // A reorganisation.
    let parent = node.block(&first).await;
    let other = node.add(&parent, withdrawal(1), json!([])).await;
    node.choose(&other, false).await;
    let (before, line) = log.until(&["INFO", "reorg"]).await;
    assert!(before.iter().all(|line| line.contains("block VALID")), "{before:?}");
    let fields = ["number", "depth", "blocks", "old"].map(|name| field(&line, name));
    assert_eq!(fields, ["2", "21", "1", "22"]);
    node.choose(&first, false).await;
    let (_, line) = log.until(&["INFO", "head moved back"]).await;
    assert_eq!(["number", "depth", "old"].map(|name| field(&line, name)), ["1", "1", "2"]);
    node.choose(&first, true).await;
    log.until(&["INFO", "fork choice finalized=1", "head=1"]).await;
    // A build that cannot be, by its attributes and by its identifier.
    let state = json!({
        "headBlockHash": first, "safeBlockHash": format!("0x{}", "00".repeat(32)),
        "finalizedBlockHash": format!("0x{}", "00".repeat(32)),
    });
    let attributes = json!({
        "timestamp": "0x1", "prevRandao": first, "withdrawals": [],
        "suggestedFeeRecipient": format!("0x{}", "fe".repeat(20)), "parentBeaconBlockRoot": first,
    });
    let params = json!([state, attributes]);
    let refused = node.engine.call::<Value>("engine_forkchoiceUpdatedV3", params).await;
    refused.expect_err("its timestamp is not after the head's");
    log.until(&["WARN", "no payload could be built", "timestamp 1 is not after"]).await;
    let refused = node.engine.call::<Value>("engine_getPayloadV5", json!(["0x0000000000000001"]));
    refused.await.expect_err("no such build");
    log.until(&["WARN", "no payload could be built", "no build has the id"]).await;
}
