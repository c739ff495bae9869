//! The prices of storage in Constantinople (EIP-1283) and in the forks around it: geth and we trace
//! the same calls alike.

use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, U256, hex};
use serde_json::{Value, json};
use testing::{Random, rounds};

use crate::geth::{Nodes, world};
use crate::geth_traces::{answer, difference};

const CALLER: Address = Address::repeat_byte(0xdd);
/// Contracts with 0, 1, 2 and 0 in their first slots, whose codes are overridden.
const CONTRACTS: [Address; 2] = [Address::repeat_byte(0xaa), Address::repeat_byte(0xbb)];

/// Writes, and calls of contracts that write.
fn ops(random: &mut Random) -> String {
    let (slot, value) = (random.below(4), random.below(3));
    let address = hex::encode(random.pick(&CONTRACTS));
    // No gas leaves the stipend to a call with value.
    let gas = random.pick(&["0000", "00c8", "1388", "ffff"]);
    let call = |op: &str, value: &str| format!("6000600060006000{value}73{address}61{gas}{op}50");
    match random.below(10) {
        0 => call("f1", "6000"),
        1 => call("f1", "6001"),
        2 => call("f2", "6001"),
        3 => call("f4", ""),
        4 => call("fa", ""),
        5 => format!("60{slot:02x}5450"),
        _ => format!("60{value:02x}60{slot:02x}55"),
    }
}

fn code(random: &mut Random) -> String {
    let ops: String = (0..1 + random.below(8)).map(|_| ops(random)).collect();
    let end = random.pick(&["00", "00", "00", "60006000fd", "fe", "33ff"]);
    format!("0x{ops}{end}")
}

fn request(random: &mut Random) -> Value {
    let mut overrides = json!({});
    for contract in CONTRACTS {
        overrides[contract.to_string()] = json!({"code": code(random), "balance": "0x64"});
    }
    let gas = random.pick(&["0x7530", "0xc350", "0x186a0", "0xf4240"]);
    let call = json!({"from": CALLER, "to": CONTRACTS[0], "gas": gas});
    json!([call, "latest", {"stateOverrides": overrides}])
}

/// A trace without the refunds of steps that then run out of gas, which geth counts in that step
/// alone.
fn without_lost_refunds(mut trace: Value) -> Value {
    for step in trace["structLogs"].as_array_mut().into_iter().flatten() {
        if step["gas"].as_u64() < step["gasCost"].as_u64() {
            step.as_object_mut().expect("an object").remove("refund");
        }
    }
    trace
}

/// Compares random calls on a first block at which the forks up to this one are active.
async fn compare(fork: &str, random: &mut Random) {
    let mut world = world(0);
    let genesis = &mut world.genesis;
    let (config, later) = (&mut genesis.config, Some(1_000));
    let from = |is_active| if is_active { Some(0) } else { later };
    config.constantinople_block = from(fork != "byzantium");
    config.petersburg_block = from(["petersburg", "istanbul"].contains(&fork));
    config.istanbul_block = from(fork == "istanbul");
    for block in [
        &mut config.muir_glacier_block,
        &mut config.berlin_block,
        &mut config.london_block,
        &mut config.arrow_glacier_block,
        &mut config.gray_glacier_block,
        &mut config.merge_netsplit_block,
    ] {
        *block = later;
    }
    for time in [
        &mut config.shanghai_time,
        &mut config.cancun_time,
        &mut config.prague_time,
        &mut config.osaka_time,
    ] {
        *time = Some(u64::MAX >> 1);
    }
    config.terminal_total_difficulty = Some(U256::from(1_u64 << 40));
    config.terminal_total_difficulty_passed = false;
    (genesis.difficulty, genesis.base_fee_per_gas) = (U256::from(131_072), None);
    for contract in CONTRACTS {
        let slots = [1, 2].map(|slot| (B256::with_last_byte(slot), B256::with_last_byte(slot)));
        let storage = Some(slots.into_iter().collect());
        let account = GenesisAccount { nonce: Some(1), storage, ..GenesisAccount::default() };
        genesis.alloc.insert(contract, account);
    }
    let Some(nodes) = Nodes::start(world).await else { return };
    let sessions = nodes.sessions().await;
    let mut refunds = 0;
    for _ in 0..rounds("DEPONENT_CALLS", 300, 2_000) {
        let params = request(random);
        let [ours, geth] = sessions.each_ref().map(|it| answer(it, "debug_traceCall", &params));
        let (ours, geth) = (without_lost_refunds(ours.await), without_lost_refunds(geth.await));
        assert!(ours["gas"].is_u64(), "{fork} {params}: {ours}");
        assert_eq!(difference("", &ours, &geth), None, "{fork} {params}");
        refunds += usize::from(ours.to_string().contains("\"refund\""));
    }
    assert!(refunds > 20, "{fork}: only {refunds} calls had a refund");
    nodes.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_costs_what_it_costs_at_geth() {
    let mut random = Random::seeded();
    for fork in ["byzantium", "constantinople", "petersburg", "istanbul"] {
        compare(fork, &mut random).await;
    }
}
