//! The line of a slow block: the JSON of execution-specs' execution metrics, which tools read from
//! the logs of all clients.

use std::time::Duration;

use engine::{BlockFigures, ChainEvent, WitnessSize};
use serde_json::json;

use super::Observer;

/// Writes a line of JSON for each block that took a time or longer.
#[derive(Debug)]
pub(crate) struct SlowBlocks {
    pub(crate) from: Duration,
}

impl Observer for SlowBlocks {
    fn event(&mut self, event: &ChainEvent, _: Option<WitnessSize>) {
        if let ChainEvent::Ran(figures) = event
            && figures.total >= self.from
        {
            tracing::warn!("{}", line(figures));
        }
    }
}

/// The line, its members in the specification's order. Those without a figure here are left out:
/// `state_read_ms` (reads are part of execution), the caches of accounts and of slots (which
/// helping threads share), and counts of EIP-7702 delegations.
fn line(figures: &BlockFigures) -> String {
    let BlockFigures { timings, reads, writes, total, .. } = *figures;
    let hits = reads.codes - reads.uncached_codes;
    let mgas = figures.gas_used as f64 / 1e6;
    let block = json!({
        "number": figures.number,
        "hash": figures.hash,
        "gas_used": figures.gas_used,
        "tx_count": figures.transactions,
    });
    let timing = json!({
        "execution_ms": millis(timings.recovery + timings.execution),
        "state_hash_ms": millis(timings.root),
        "commit_ms": millis(timings.journal),
        "disk_wait_ms": millis(timings.disk),
        "witness_ms": millis(timings.witness),
        "waiting_ms": millis(figures.waited + timings.parent),
        "total_ms": millis(total),
    });
    let throughput = json!({"mgas_per_sec": hundredths(mgas / total.as_secs_f64().max(1e-9))});
    let state_reads = json!({
        "accounts": reads.accounts,
        "storage_slots": reads.slots,
        "code": reads.codes,
        "code_bytes": reads.code_bytes,
    });
    let state_writes = json!({
        "accounts": writes.accounts,
        "accounts_deleted": writes.deleted_accounts,
        "storage_slots": writes.slots,
        "storage_slots_deleted": writes.deleted_slots,
        "code": writes.codes,
        "code_bytes": writes.code_bytes,
    });
    let hit_rate = hundredths(100.0 * hits as f64 / reads.codes.max(1) as f64);
    let code = json!({"hits": hits, "misses": reads.uncached_codes, "hit_rate": hit_rate});
    let head = r#""level":"warn","msg":"Slow block""#;
    let middle = format!(r#""block":{block},"timing":{timing},"throughput":{throughput}"#);
    let state = format!(r#""state_reads":{state_reads},"state_writes":{state_writes}"#);
    format!(r#"{{{head},{middle},{state},"cache":{{"code":{code}}}}}"#)
}

/// Milliseconds, to a thousandth.
fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;
    use engine::{StateReads, StateWrites, Timings};

    #[test]
    fn the_line_has_the_members_of_the_specification() {
        let ms = Duration::from_millis;
        let timings = Timings {
            recovery: ms(1),
            parent: ms(2),
            execution: ms(30),
            root: ms(4),
            catching_up: ms(3),
            disk: ms(5),
            journal: Duration::from_micros(1_234),
            witness: ms(6),
        };
        let figures = BlockFigures {
            hash: B256::repeat_byte(0xab),
            number: 7,
            timestamp: 12,
            gas_used: 30_000_000,
            transactions: 180,
            timings,
            total: ms(50),
            waited: ms(1),
            is_listed: false,
            reads: StateReads {
                accounts: 10,
                slots: 20,
                codes: 4,
                code_bytes: 4096,
                uncached_codes: 1,
            },
            writes: StateWrites {
                accounts: 5,
                deleted_accounts: 1,
                slots: 6,
                deleted_slots: 2,
                codes: 1,
                code_bytes: 100,
            },
            unpersisted_bytes: 0,
        };
        let expected = json!({
            "level": "warn", "msg": "Slow block",
            "block": {
                "number": 7, "hash": format!("0x{}", "ab".repeat(32)), "gas_used": 30_000_000,
                "tx_count": 180,
            },
            "timing": {
                "execution_ms": 31.0, "state_hash_ms": 4.0, "commit_ms": 1.234,
                "disk_wait_ms": 5.0, "witness_ms": 6.0, "waiting_ms": 3.0, "total_ms": 50.0,
            },
            "throughput": {"mgas_per_sec": 600.0},
            "state_reads": {"accounts": 10, "storage_slots": 20, "code": 4, "code_bytes": 4096},
            "state_writes": {
                "accounts": 5, "accounts_deleted": 1, "storage_slots": 6,
                "storage_slots_deleted": 2, "code": 1, "code_bytes": 100,
            },
            "cache": {"code": {"hits": 3, "misses": 1, "hit_rate": 75.0}},
        });
        let line = line(&figures);
        assert!(line.starts_with(r#"{"level":"warn","msg":"Slow block","block":{"#), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).expect("JSON"), expected);
    }
}
