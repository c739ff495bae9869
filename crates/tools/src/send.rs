//! `send`: transactions of all types, signed here or by the endpoint.

use std::path::PathBuf;

use alloy_consensus::SignableTransaction as _;
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, TxKind, U64, U256, hex};
use alloy_rpc_types_eth::{TransactionInput, TransactionRequest};
use anyhow::{Context, anyhow};
use clap::Args;
use rpc::{ClientError, quote, read_json, read_json_bytes};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::blobs;
use crate::endpoint::{EndpointArgs, Node};
use crate::error::{Misuse, Output};
use crate::input;
use crate::keys::{KeyArgs, PrivateKey, Sender};
use crate::reads::{WaitArgs, receipt_output, wait_for_receipt};
use crate::request::{Target, TargetArgs, usage};

/// The arguments of `send`.
#[derive(Debug, Args)]
#[command(override_usage = usage!("send"))]
pub struct SendArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    form: FormArgs,
    /// Print the hash as soon as the endpoint has the transaction, and do not wait for its block.
    #[arg(long = "async")]
    is_async: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The type of a transaction, and its fees.
#[derive(Debug, Args)]
struct FormArgs {
    /// The nonce [default: that after the account's pending transactions].
    #[arg(long, value_parser = input::number, help_heading = "Transaction")]
    nonce: Option<u64>,
    /// The most that is paid for a gas, or with --legacy the price [default: twice the base fee
    /// and the priority fee; with --legacy the endpoint's price].
    #[arg(long, value_name = "WEI", value_parser = input::wei, help_heading = "Transaction")]
    gas_price: Option<U256>,
    /// The part of that which the block's builder gets [default: the endpoint's proposal].
    #[arg(long, value_name = "WEI", value_parser = input::wei, help_heading = "Transaction")]
    #[arg(conflicts_with = "legacy", visible_alias = "priority-gas-price")]
    priority_fee: Option<U256>,
    /// Send an old transaction with one price: of type 0, or with --access-list of type 1.
    #[arg(long, help_heading = "Transaction")]
    legacy: bool,
    /// The accounts and slots that it declares: a file of JSON, JSON itself, or auto, which asks
    /// the endpoint (eth_createAccessList).
    #[arg(long, value_name = "FILE|auto", help_heading = "Transaction")]
    access_list: Option<String>,
    /// A file whose content is sent in blobs, with cell proofs; of several, each with --blob.
    #[arg(long, value_name = "FILE", help_heading = "Transaction")]
    #[arg(conflicts_with_all = ["legacy", "unlocked", "create"])]
    blob: Vec<PathBuf>,
    /// The most that is paid for a gas of blobs [default: twice the price now].
    #[arg(long, value_name = "WEI", value_parser = input::wei, help_heading = "Transaction")]
    #[arg(visible_alias = "blob-gas-price", requires = "blob")]
    blob_fee: Option<U256>,
    /// An account whose code the sender's is to be from now on (EIP-7702), signed with the
    /// sender's key; or a signed authorization of another account, its RLP in hex.
    #[arg(long, value_name = "ADDRESS|RLP", help_heading = "Transaction")]
    #[arg(conflicts_with_all = ["legacy", "blob", "create"])]
    auth: Vec<String>,
}

pub(crate) fn send(args: &SendArgs) -> anyhow::Result<Output> {
    let target = args.target.target()?;
    let sender = args.keys.sender()?;
    let mut node = args.endpoint.connect()?;
    let mut request = TransactionRequest {
        from: Some(sender.address()),
        to: Some(target.to.map_or(TxKind::Create, TxKind::Call)),
        value: Some(target.value),
        input: TransactionInput::maybe_both(Some(target.data.clone())),
        gas: args.target.gas,
        chain_id: Some(node.quantity("eth_chainId", &json!([]))?.saturating_to()),
        ..TransactionRequest::default()
    };
    request.nonce = Some(match args.form.nonce {
        Some(nonce) => nonce,
        None => next_nonce(&mut node, sender.address())?,
    });
    fill_lists(&mut node, &mut request, &args.form, &sender)?;
    fill_fees(&mut node, &mut request, &args.form)?;
    if request.gas.is_none() {
        let answer = node.try_text("eth_estimateGas", &json!([estimated(&request)]));
        let answer = target.answered("eth_estimateGas", answer, args.endpoint.json)?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(failed) => return Ok(failed),
        };
        let gas: U64 = read_json_bytes(&answer).context("eth_estimateGas")?;
        request.gas = Some(gas.to());
    }
    let hash = match &sender {
        Sender::Unlocked(_) => node.call("eth_sendTransaction", &json!([request]))?,
        Sender::Key(key) => send_signed(&mut node, &request, key)?,
    };
    if args.is_async {
        return Ok(match args.endpoint.json {
            true => Output::of(json!(hash)),
            false => Output::of(hash),
        });
    }
    let text = wait_for_receipt(&mut node, hash, &args.wait)?;
    let mut output = receipt_output(&text, args.endpoint.json)?;
    output.failure = failure(&mut node, &text, &estimated(&request), &target)?;
    Ok(output)
}

/// The nonce after the account's pending transactions; at an endpoint without a pool after those
/// in blocks.
fn next_nonce(node: &mut Node, from: Address) -> anyhow::Result<u64> {
    const METHOD: &str = "eth_getTransactionCount";
    let answer = match node.try_text(METHOD, &json!([from, "pending"])) {
        Err(ClientError::Rpc(_)) => node.try_text(METHOD, &json!([from, "latest"])),
        answer => answer,
    };
    let nonce: U64 = read_json_bytes(&answer.context(METHOD)?).context(METHOD)?;
    Ok(nonce.to())
}

/// The request as a call: without the blobs, which an endpoint does not need for an estimate.
fn estimated(request: &TransactionRequest) -> TransactionRequest {
    TransactionRequest { sidecar: None, ..request.clone() }
}

/// Adds what of a transaction is a list: authorizations, blobs, declared slots.
fn fill_lists(
    node: &mut Node,
    request: &mut TransactionRequest,
    form: &FormArgs,
    sender: &Sender,
) -> anyhow::Result<()> {
    if !form.auth.is_empty() {
        let list = form.auth.iter().zip(1..);
        let list = list.map(|(text, place)| authorization(text, place, request, sender));
        request.authorization_list = Some(list.collect::<anyhow::Result<_>>()?);
    }
    if !form.blob.is_empty() {
        request.sidecar = Some(blobs::sidecar(&form.blob)?);
        request.populate_blob_hashes();
    }
    request.access_list = match form.access_list.as_deref() {
        None => None,
        Some("auto") => {
            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct MadeList {
                access_list: AccessList,
            }
            let made: MadeList = node.call("eth_createAccessList", &json!([estimated(request)]))?;
            Some(made.access_list)
        }
        Some(text) => {
            let list = input::json_or_file("--access-list", text)?;
            let list = serde_json::from_value(list);
            Some(list.map_err(|error| {
                Misuse::error(format_args!(
                    "--access-list: {error}: it is as [{{\"address\": \"0x12..\", \
                     \"storageKeys\": [\"0x00..\"]}}]"
                ))
            })?)
        }
    };
    Ok(())
}

/// An authorization of the sender, or one that is signed already. The sender's nonce counts the
/// transaction itself, and the authorizations before this one.
fn authorization(
    text: &str,
    place: u64,
    request: &TransactionRequest,
    sender: &Sender,
) -> anyhow::Result<SignedAuthorization> {
    if let Ok(address) = input::address(text) {
        let Sender::Key(key) = sender else {
            return Err(Misuse::error(
                "--auth ADDRESS is signed here: it needs the key of the sender, and not --unlocked",
            ));
        };
        let chain_id = U256::from(request.chain_id.unwrap_or_default());
        let nonce = request.nonce.unwrap_or_default() + place;
        let authorization = Authorization { chain_id, address, nonce };
        let signature = key.sign(authorization.signature_hash())?;
        return Ok(authorization.into_signed(signature));
    }
    let decoded = hex::decode(text).ok();
    decoded.and_then(|rlp| alloy_rlp::decode_exact(rlp).ok()).ok_or_else(|| {
        let text = quote(text);
        Misuse::error(format_args!("--auth {text} is no address and no RLP of an authorization"))
    })
}

/// Adds the fees that the command line does not give.
fn fill_fees(
    node: &mut Node,
    request: &mut TransactionRequest,
    form: &FormArgs,
) -> anyhow::Result<()> {
    let given = |fee: Option<U256>| fee.map(|fee| fee.saturating_to::<u128>());
    let base_fee = match form.legacy {
        true => None,
        false => base_fee(node)?,
    };
    let Some(base_fee) = base_fee else {
        let price = match given(form.gas_price) {
            Some(price) => price,
            None => node.quantity("eth_gasPrice", &json!([]))?.saturating_to(),
        };
        request.gas_price = Some(price);
        return Ok(());
    };
    let tip = match given(form.priority_fee) {
        Some(tip) => tip,
        None => {
            let proposed = node.quantity("eth_maxPriorityFeePerGas", &json!([]));
            let proposed = proposed.map_or(DEFAULT_TIP, |tip| tip.saturating_to());
            // A fee that is given bounds it.
            given(form.gas_price).map_or(proposed, |most| most.min(proposed))
        }
    };
    let most = given(form.gas_price).unwrap_or(base_fee.saturating_mul(2).saturating_add(tip));
    if tip > most {
        return Err(Misuse::error(format_args!(
            "the priority fee {tip} is more than the whole price {most}: raise --gas-price"
        )));
    }
    request.max_priority_fee_per_gas = Some(tip);
    request.max_fee_per_gas = Some(most);
    if request.sidecar.is_some() {
        request.max_fee_per_blob_gas = Some(match given(form.blob_fee) {
            Some(fee) => fee,
            None => {
                let now: u128 = node.quantity("eth_blobBaseFee", &json!([]))?.saturating_to();
                now.saturating_mul(2).max(1)
            }
        });
    }
    Ok(())
}

/// The tip where the endpoint proposes none, in wei: enough to be taken on public networks.
const DEFAULT_TIP: u128 = 1_000_000_000;

/// The base fee of the newest block; `None` before London.
fn base_fee(node: &mut Node) -> anyhow::Result<Option<u128>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Fees {
        base_fee_per_gas: Option<U256>,
    }
    let block: Option<Fees> = node.call("eth_getBlockByNumber", &json!(["latest", false]))?;
    let block = block.context("eth_getBlockByNumber: the endpoint has no block")?;
    Ok(block.base_fee_per_gas.map(|fee| fee.saturating_to()))
}

/// Signs the transaction and sends it.
fn send_signed(
    node: &mut Node,
    request: &TransactionRequest,
    key: &PrivateKey,
) -> anyhow::Result<B256> {
    let unsigned = request.clone().build_consensus_tx();
    let unsigned =
        unsigned.map_err(|error| anyhow!("the transaction lacks a field: {}", error.error))?;
    let signature = key.sign(unsigned.signature_hash())?;
    let raw: Bytes = unsigned.into_envelope(signature).encoded_2718().into();
    node.call("eth_sendRawTransaction", &json!([raw]))
}

/// Why the transaction of a receipt failed, if it did: the reason is that of the same call on the
/// state after its block, where that reverts, too.
fn failure(
    node: &mut Node,
    receipt: &str,
    request: &TransactionRequest,
    target: &Target,
) -> anyhow::Result<Option<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Outcome {
        status: Option<U64>,
        block_number: Option<Value>,
    }
    let Outcome { status, block_number } = read_json(receipt)?;
    if status != Some(U64::ZERO) {
        return Ok(None);
    }
    let call = TransactionRequest { nonce: None, ..request.clone() };
    let repeated = node.try_text("eth_call", &json!([call, block_number]));
    let reason = repeated.err().and_then(|error| target.failure(&error));
    let reason = reason.as_deref().and_then(|words| words.strip_prefix("the call reverted"));
    Ok(Some(format!("the transaction failed{}", reason.unwrap_or_default())))
}
