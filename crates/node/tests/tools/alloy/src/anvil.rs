//! alloy's own methods of anvil, and those of tracing and of the pool.

use alloy::network::TransactionBuilder as _;
use alloy::primitives::{Address, B256, U256, address, bytes};
use alloy::providers::ext::TxPoolApi as _;
use alloy::providers::ext::{AnvilApi, DebugApi as _, ImpersonateConfig, TraceApi as _};
use alloy::providers::{DynProvider, Provider as _};
use alloy::rpc::types::anvil::MineOptions;
use alloy::rpc::types::simulate::{SimBlock, SimulatePayload};
use alloy::rpc::types::state::AccountOverride;
use alloy::rpc::types::trace::geth::{CallConfig, GethDebugTracingOptions};
use alloy::rpc::types::{BlockNumberOrTag, TransactionRequest};
use eyre::{Result, ensure, eyre};

use crate::{OTHER, connected};

const RICH: Address = address!("0x000000000000000000000000000000000000b0b0");
/// Its code returns 42.
const CODED: Address = address!("0x000000000000000000000000000000000000c0de");

pub(crate) async fn all(url: &str) -> Result<()> {
    let node = connected(url, None).await?;
    accounts(&node).await?;
    mining(&node).await?;
    time(&node).await?;
    pool(&node).await?;
    state(&node).await?;
    looks(&node).await
}

async fn accounts(node: &DynProvider) -> Result<()> {
    let ether = U256::from(10).pow(U256::from(18));
    node.anvil_set_balance(RICH, ether).await?;
    node.anvil_set_nonce(RICH, 7).await?;
    node.anvil_set_code(CODED, bytes!("602a5f5260205ff3")).await?;
    ensure!(node.anvil_set_storage_at(CODED, U256::from(5), B256::with_last_byte(9)).await?);
    ensure!(node.get_balance(RICH).await? == ether);
    ensure!(node.get_transaction_count(RICH).await? == 7);
    ensure!(node.get_storage_at(CODED, U256::from(5)).await? == U256::from(9));
    let call = TransactionRequest::default().with_to(CODED);
    ensure!(U256::from_be_slice(&node.call(call).await?) == U256::from(42));

    let transfer = || TransactionRequest::default().with_from(RICH).with_to(OTHER);
    let one = || transfer().with_value(U256::ONE);
    ensure!(node.send_transaction(one()).await.is_err(), "nobody signs for it");
    node.anvil_impersonate_account(RICH).await?;
    let receipt = node.send_transaction(one()).await?.get_receipt().await?;
    ensure!(receipt.status() && receipt.from == RICH);
    node.anvil_stop_impersonating_account(RICH).await?;
    ensure!(node.send_transaction(one()).await.is_err(), "nobody signs for it any more");
    let config = ImpersonateConfig::default().fund(ether);
    let sent = node.anvil_send_impersonated_transaction_with_config(one(), config).await?;
    ensure!(sent.get_receipt().await?.status());
    node.anvil_auto_impersonate_account(true).await?;
    let hash = node.anvil_send_impersonated_transaction(one()).await?;
    ensure!(node.get_transaction_receipt(hash).await?.is_some());
    let receipt = node.eth_send_transaction_sync(one()).await?;
    ensure!(receipt.status());
    node.anvil_auto_impersonate_account(false).await?;
    let hash = node.eth_send_unsigned_transaction(one()).await?;
    ensure!(node.get_transaction_receipt(hash).await?.is_some());
    Ok(())
}

async fn mining(node: &DynProvider) -> Result<()> {
    ensure!(node.anvil_get_auto_mine().await?);
    node.anvil_set_auto_mine(false).await?;
    let before = node.get_block_number().await?;
    node.anvil_mine(Some(2), Some(10)).await?;
    node.evm_mine(None).await?;
    node.evm_mine(Some(MineOptions::Options { timestamp: None, blocks: Some(2) })).await?;
    let blocks = node.anvil_mine_detailed(None).await?;
    ensure!(blocks.len() == 1 && blocks[0].header.number == before + 6);
    node.anvil_set_interval_mining(3600).await?;
    ensure!(!node.anvil_get_auto_mine().await?);
    node.anvil_set_interval_mining(0).await?;
    node.anvil_set_auto_mine(true).await?;

    node.anvil_set_coinbase(RICH).await?;
    node.anvil_set_next_block_base_fee_per_gas(7).await?;
    ensure!(node.anvil_set_block_gas_limit(20_000_000).await?);
    node.anvil_set_logging(true).await?;
    node.evm_mine(None).await?;
    let head = node.get_block_by_number(BlockNumberOrTag::Latest).await?;
    let head = head.ok_or_else(|| eyre!("no head"))?.header;
    ensure!(head.beneficiary == RICH && head.gas_limit == 20_000_000);
    ensure!(head.base_fee_per_gas == Some(7));
    Ok(())
}

async fn time(node: &DynProvider) -> Result<()> {
    let head = async || -> Result<u64> {
        let head = node.get_block_by_number(BlockNumberOrTag::Latest).await?;
        Ok(head.ok_or_else(|| eyre!("no head"))?.header.timestamp)
    };
    let before = head().await?;
    ensure!(node.anvil_increase_time(86_400).await? >= 86_400);
    node.evm_mine(None).await?;
    // With more than a block a second, the head is ahead of the clock.
    ensure!(head().await? >= before + 80_000);
    let next = head().await? + 100;
    node.anvil_set_next_block_timestamp(next).await?;
    node.evm_mine(None).await?;
    ensure!(head().await? == next);
    node.anvil_set_block_timestamp_interval(5).await?;
    node.evm_mine(None).await?;
    ensure!(head().await? == next + 5);
    ensure!(node.anvil_remove_block_timestamp_interval().await?);
    node.anvil_set_time(next + 1000).await?;
    node.evm_mine(Some(MineOptions::Timestamp(Some(next + 2000)))).await?;
    ensure!(head().await? == next + 2000);
    Ok(())
}

async fn pool(node: &DynProvider) -> Result<()> {
    node.anvil_set_auto_mine(false).await?;
    let who = node.get_accounts().await?[5];
    let send = async |nonce: u64| {
        let request = TransactionRequest::default().with_from(who).with_to(OTHER);
        let request = request.with_nonce(nonce).with_gas_limit(21_000);
        Ok::<_, eyre::Report>(*node.send_transaction(request).await?.tx_hash())
    };
    let first = send(0).await?;
    send(1).await?;
    send(5).await?;
    let status = node.txpool_status().await?;
    ensure!((status.pending, status.queued) == (2, 1));
    let content = node.txpool_content_from(who).await?;
    ensure!(content.pending.len() == 2 && content.queued.contains_key("5"));
    ensure!(node.txpool_content().await?.pending[&who].len() == 2);
    ensure!(node.txpool_inspect().await?.pending[&who].len() == 2);
    ensure!(node.anvil_drop_transaction(first).await? == Some(first));
    ensure!(node.get_transaction_by_hash(first).await?.is_none());
    node.anvil_remove_pool_transactions(who).await?;
    send(0).await?;
    node.anvil_drop_all_transactions().await?;
    let status = node.txpool_status().await?;
    ensure!((status.pending, status.queued) == (0, 0));
    node.anvil_set_auto_mine(true).await?;
    Ok(())
}

async fn state(node: &DynProvider) -> Result<()> {
    let state = node.anvil_dump_state().await?;
    ensure!(node.anvil_load_state(state).await?);
    ensure!(node.get_balance(RICH).await? > U256::ZERO);
    let info = node.anvil_node_info().await?;
    ensure!(info.current_block_number == node.get_block_number().await?);
    ensure!(info.environment.chain_id == 31337);
    let id = node.anvil_snapshot().await?;
    let metadata = node.anvil_metadata().await?;
    ensure!(metadata.chain_id == 31337 && metadata.snapshots.contains_key(&id));
    Ok(())
}

/// Traces, calls, simulations, proofs, receipts.
async fn looks(node: &DynProvider) -> Result<()> {
    let who = node.get_accounts().await?[4];
    let call = || TransactionRequest::default().with_from(who).with_to(CODED);
    let receipt = node.send_transaction(call()).await?.get_receipt().await?;
    let hash = receipt.transaction_hash;
    let options = GethDebugTracingOptions::call_tracer(CallConfig::default());
    let trace = node.debug_trace_transaction(hash, options).await?.try_into_call_frame()?;
    ensure!(trace.to == Some(CODED) && trace.output.is_some_and(|output| output.len() == 32));
    let plain = node.debug_trace_transaction(hash, GethDebugTracingOptions::default()).await?;
    ensure!(!plain.try_into_default_frame()?.struct_logs.is_empty());
    ensure!(node.trace_transaction(hash).await?.len() == 1);
    let replayed = node.trace_replay_transaction(hash).state_diff().vm_trace().await?;
    ensure!(replayed.state_diff.is_some() && replayed.vm_trace.is_some());

    ensure!(node.estimate_gas(call()).await? > 21_000);
    ensure!(node.create_access_list(&call()).await?.error.is_none());
    let coded = AccountOverride { code: Some(bytes!("60075f5260205ff3")), ..Default::default() };
    let seven = node.call(call()).account_override(CODED, coded).await?;
    ensure!(U256::from_be_slice(&seven) == U256::from(7));
    let block = SimBlock { calls: vec![call(), call()], ..SimBlock::default() };
    let simulated = node.simulate(&SimulatePayload::default().extend(block)).await?;
    ensure!(simulated[0].calls.iter().all(|call| call.status && call.return_data.len() == 32));
    let proof = node.get_proof(CODED, vec![B256::with_last_byte(5)]).await?;
    ensure!(proof.storage_proof[0].value == U256::from(9));
    let receipts = node.get_block_receipts(BlockNumberOrTag::Latest.into()).await?;
    ensure!(receipts.is_some_and(|receipts| receipts.len() == 1));
    let history = node.get_fee_history(4, BlockNumberOrTag::Latest, &[50.0]).await?;
    ensure!(history.base_fee_per_gas.len() == 5);
    let filled = node.fill_transaction(call()).await?;
    ensure!(!filled.raw.is_empty());
    ensure!(node.get_client_version().await?.starts_with("Deponent/"));
    Ok(())
}
