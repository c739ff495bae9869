//! Blocks, transactions, receipts, accounts, and what an endpoint says of its chain.

use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, U64, U256};
use anyhow::{Context, bail};
use clap::Args;
use rpc::{ClientError, quote, read_json};
use serde_json::{Map, Value, json};

use crate::endpoint::{EndpointArgs, Node};
use crate::error::{Misuse, Output};
use crate::input::{self, BlockChoice};
use crate::limits::RECEIPT_PAUSE;
use crate::table::{self, Form, Row};

/// The members of a block, in cast's order and with its names.
const BLOCK: [Row; 26] = [
    ("baseFeePerGas", "baseFeePerGas", Form::Number),
    ("difficulty", "difficulty", Form::Number),
    ("extraData", "extraData", Form::Text),
    ("gasLimit", "gasLimit", Form::Number),
    ("gasUsed", "gasUsed", Form::Number),
    ("hash", "hash", Form::Text),
    ("logsBloom", "logsBloom", Form::Text),
    ("miner", "miner", Form::Account),
    ("mixHash", "mixHash", Form::Text),
    ("nonce", "nonce", Form::Text),
    ("number", "number", Form::Number),
    ("parentHash", "parentHash", Form::Text),
    ("parentBeaconRoot", "parentBeaconBlockRoot", Form::Text),
    ("transactionsRoot", "transactionsRoot", Form::Text),
    ("receiptsRoot", "receiptsRoot", Form::Text),
    ("sha3Uncles", "sha3Uncles", Form::Text),
    ("size", "size", Form::Number),
    ("stateRoot", "stateRoot", Form::Text),
    ("timestamp", "timestamp", Form::Time),
    ("withdrawalsRoot", "withdrawalsRoot", Form::Text),
    ("totalDifficulty", "totalDifficulty", Form::Number),
    ("blobGasUsed", "blobGasUsed", Form::Number),
    ("excessBlobGas", "excessBlobGas", Form::Number),
    ("requestsHash", "requestsHash", Form::Text),
    ("blockAccessListHash", "blockAccessListHash", Form::Text),
    ("slotNumber", "slotNumber", Form::Number),
];

/// The price that the sender of an older type of transaction offers; of the others, the member of
/// that name is the effective price.
const PRICE: Row = ("gasPrice", "gasPrice", Form::Number);

/// The members of a transaction.
const TRANSACTION: [Row; 23] = [
    ("blockHash", "blockHash", Form::Text),
    ("blockNumber", "blockNumber", Form::Number),
    ("from", "from", Form::Account),
    ("transactionIndex", "transactionIndex", Form::Number),
    ("effectiveGasPrice", "gasPrice", Form::Number),
    ("hash", "hash", Form::Text),
    ("type", "type", Form::Number),
    ("chainId", "chainId", Form::Number),
    ("nonce", "nonce", Form::Number),
    PRICE,
    ("gasLimit", "gas", Form::Number),
    ("maxFeePerGas", "maxFeePerGas", Form::Number),
    ("maxPriorityFeePerGas", "maxPriorityFeePerGas", Form::Number),
    ("to", "to", Form::Account),
    ("value", "value", Form::Number),
    ("accessList", "accessList", Form::List),
    ("blobVersionedHashes", "blobVersionedHashes", Form::List),
    ("maxFeePerBlobGas", "maxFeePerBlobGas", Form::Number),
    ("authorizationList", "authorizationList", Form::List),
    ("input", "input", Form::Text),
    ("r", "r", Form::Word),
    ("s", "s", Form::Word),
    ("yParity", "yParity", Form::Number),
];

/// The members of a receipt.
const RECEIPT: [Row; 17] = [
    ("blockHash", "blockHash", Form::Text),
    ("blockNumber", "blockNumber", Form::Number),
    ("contractAddress", "contractAddress", Form::Account),
    ("cumulativeGasUsed", "cumulativeGasUsed", Form::Number),
    ("effectiveGasPrice", "effectiveGasPrice", Form::Number),
    ("from", "from", Form::Account),
    ("gasUsed", "gasUsed", Form::Number),
    ("logs", "logs", Form::Text),
    ("logsBloom", "logsBloom", Form::Text),
    ("root", "root", Form::Text),
    ("status", "status", Form::Status),
    ("transactionHash", "transactionHash", Form::Text),
    ("transactionIndex", "transactionIndex", Form::Number),
    ("type", "type", Form::Number),
    ("blobGasPrice", "blobGasPrice", Form::Number),
    ("blobGasUsed", "blobGasUsed", Form::Number),
    ("to", "to", Form::Account),
];

/// The arguments of `block`.
#[derive(Debug, Args)]
pub struct BlockArgs {
    /// The block: a number, a hash, latest, earliest, pending, safe or finalized.
    #[arg(value_name = "BLOCK", default_value = "latest", value_parser = BlockChoice::parse)]
    block: BlockChoice,
    /// Print the whole transactions, and not their hashes alone.
    #[arg(long)]
    full: bool,
    /// Print this member alone, as number or stateRoot.
    #[arg(short, long, value_name = "NAME")]
    field: Option<String>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The arguments of `tx`.
#[derive(Debug, Args)]
pub struct TxArgs {
    /// The hash of the transaction.
    #[arg(value_parser = input::hash)]
    hash: B256,
    /// Print this member alone, as nonce or from.
    #[arg(value_name = "FIELD")]
    field: Option<String>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The arguments of `receipt`.
#[derive(Debug, Args)]
pub struct ReceiptArgs {
    /// The hash of the transaction.
    #[arg(value_parser = input::hash)]
    hash: B256,
    /// Print this member alone, as status or gasUsed.
    #[arg(value_name = "FIELD")]
    field: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
    /// Wait until a block has the transaction.
    #[arg(long = "wait")]
    is_waiting: bool,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// How long a receipt is waited for.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The longest wait for a receipt, in seconds [default: until it is there].
    #[arg(long, value_name = "SECONDS", value_parser = input::seconds)]
    timeout: Option<Duration>,
}

/// The arguments of `balance`, `nonce` and `code`.
#[derive(Debug, Args)]
pub struct AccountArgs {
    /// The account's address.
    #[arg(value_name = "ADDRESS", value_parser = input::address)]
    who: Address,
    #[command(flatten)]
    at: AtArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The arguments of `balance`.
#[derive(Debug, Args)]
pub struct BalanceArgs {
    /// Print ether, with 18 digits after the point, and not wei.
    #[arg(short, long)]
    ether: bool,
    #[command(flatten)]
    account: AccountArgs,
}

/// The block whose state is read.
#[derive(Debug, Args)]
pub(crate) struct AtArgs {
    /// The block after which the state is read: a number, a hash, latest, earliest, pending, safe
    /// or finalized.
    #[arg(short, long, default_value = "latest", value_parser = BlockChoice::parse)]
    pub(crate) block: BlockChoice,
}

/// The arguments of `chain`.
#[derive(Debug, Args)]
pub struct ChainArgs {
    /// Print this member alone, as chainId or client.
    #[arg(value_name = "FIELD")]
    field: Option<String>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The arguments of `gas-price`.
#[derive(Debug, Args)]
pub struct GasPriceArgs {
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The arguments of `rpc`.
#[derive(Debug, Args)]
pub struct RpcArgs {
    /// The method, as eth_blockNumber.
    method: String,
    /// The parameters, each as JSON, or else a text: deponent rpc eth_getBalance 0x12.. latest
    #[arg(value_name = "PARAM", allow_negative_numbers = true)]
    params: Vec<String>,
    /// Take the one parameter for the whole list of parameters, in JSON.
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn block(args: &BlockArgs) -> anyhow::Result<Output> {
    let (method, choice) = args.block.lookup();
    let mut node = args.endpoint.connect()?;
    let text = node.text(method, &json!([choice, args.full]))?;
    if text == "null" {
        let shown = choice.as_str().unwrap_or_default();
        let shown = if shown.starts_with("0x") && shown.len() < 20 {
            u64::from_str_radix(&shown[2..], 16).unwrap_or_default().to_string()
        } else {
            shown.to_owned()
        };
        bail!("the endpoint has no block {shown}");
    }
    if let Some(name) = &args.field {
        return one_field(&read_object(&text)?, &BLOCK, name, args.endpoint.json);
    }
    if args.endpoint.json {
        return Ok(Output::of(text));
    }
    let block = read_object(&text)?;
    let mut lines = table::lines(&block, &BLOCK, &["transactions"]);
    let transactions = block.get("transactions").and_then(Value::as_array);
    let transactions = transactions.map_or(&[][..], Vec::as_slice);
    if transactions.is_empty() {
        lines += &table::line("transactions:", "[]");
        return Ok(Output::of(lines));
    }
    lines += &table::line("transactions:", "[");
    for transaction in transactions {
        let text = match transaction.as_object() {
            Some(transaction) => transaction_lines(transaction),
            None => table::written(transaction, Form::Text) + "\n",
        };
        if args.full {
            lines += "\t\n";
        }
        lines.extend(text.lines().map(|line| format!("\t{line}\n")));
    }
    Ok(Output::of(lines + "]"))
}

fn transaction_lines(transaction: &Map<String, Value>) -> String {
    let mut transaction = transaction.clone();
    if !transaction.contains_key("yParity")
        && let Some(parity) = parity(&transaction)
    {
        transaction.insert("yParity".into(), input::quantity(parity));
    }
    let is_offered = !transaction.contains_key("maxFeePerGas");
    let rows: Vec<Row> =
        TRANSACTION.into_iter().filter(|row| is_offered || row.0 != PRICE.0).collect();
    // Anvil answers whole sidecars.
    table::lines(&transaction, &rows, &["v", "blobs", "commitments", "cellProofs"])
}

/// The parity of a signature out of its older form (EIP-155).
fn parity(transaction: &Map<String, Value>) -> Option<u64> {
    let v: U256 = serde_json::from_value(transaction.get("v")?.clone()).ok()?;
    match u64::try_from(v).ok()? {
        v @ 27..=28 => Some(v - 27),
        v @ 35.. => Some((v - 35) % 2),
        _ => None,
    }
}

pub(crate) fn tx(args: &TxArgs) -> anyhow::Result<Output> {
    let mut node = args.endpoint.connect()?;
    let text = node.text("eth_getTransactionByHash", &json!([args.hash]))?;
    if text == "null" {
        bail!("the endpoint knows no transaction {}", args.hash);
    }
    let transaction = read_object(&text)?;
    match &args.field {
        Some(name) => one_field(&transaction, &TRANSACTION, name, args.endpoint.json),
        None if args.endpoint.json => Ok(Output::of(text)),
        None => Ok(Output::of(transaction_lines(&transaction))),
    }
}

pub(crate) fn receipt(args: &ReceiptArgs) -> anyhow::Result<Output> {
    let mut node = args.endpoint.connect()?;
    let is_waiting = args.is_waiting || args.wait.timeout.is_some();
    let text = match is_waiting {
        true => wait_for_receipt(&mut node, args.hash, &args.wait)?,
        false => node.text("eth_getTransactionReceipt", &json!([args.hash]))?,
    };
    if text == "null" {
        bail!(
            "the endpoint has no receipt of {}: no block has it (--wait waits for one)",
            args.hash
        );
    }
    match &args.field {
        Some(name) => one_field(&read_object(&text)?, &RECEIPT, name, args.endpoint.json),
        None => receipt_output(&text, args.endpoint.json),
    }
}

/// A receipt as it is printed.
pub(crate) fn receipt_output(text: &str, is_json: bool) -> anyhow::Result<Output> {
    match is_json {
        true => Ok(Output::of(text)),
        false => Ok(Output::of(table::lines(&read_object(text)?, &RECEIPT, &[]))),
    }
}

/// Asks for a receipt until there is one.
pub(crate) fn wait_for_receipt(
    node: &mut Node,
    hash: B256,
    wait: &WaitArgs,
) -> anyhow::Result<String> {
    let begun = Instant::now();
    loop {
        let text = node.text("eth_getTransactionReceipt", &json!([hash]))?;
        if text != "null" {
            return Ok(text);
        }
        if let Some(limit) = wait.timeout
            && begun.elapsed() >= limit
        {
            bail!("no block has {hash} after {} seconds (--timeout)", limit.as_secs());
        }
        node.pause(RECEIPT_PAUSE);
    }
}

pub(crate) fn balance(args: &BalanceArgs) -> anyhow::Result<Output> {
    let BalanceArgs { ether, account } = args;
    let answer = of_account(account, "eth_getBalance")?;
    if account.endpoint.json {
        return Ok(Output::of(answer));
    }
    let wei: U256 = read_json(&answer).context("eth_getBalance")?;
    match ether {
        true => Ok(Output::of(in_ether(wei))),
        false => Ok(Output::of(wei)),
    }
}

/// Wei as ether, with all digits.
fn in_ether(wei: U256) -> String {
    let one = U256::from(10).pow(U256::from(18));
    format!("{}.{:0>18}", wei / one, (wei % one).to_string())
}

pub(crate) fn nonce(args: &AccountArgs) -> anyhow::Result<Output> {
    let answer = of_account(args, "eth_getTransactionCount")?;
    if args.endpoint.json {
        return Ok(Output::of(answer));
    }
    let nonce: U64 = read_json(&answer).context("eth_getTransactionCount")?;
    Ok(Output::of(nonce))
}

pub(crate) fn code(args: &AccountArgs) -> anyhow::Result<Output> {
    let answer = of_account(args, "eth_getCode")?;
    match args.endpoint.json {
        true => Ok(Output::of(answer)),
        false => Ok(Output::of(read_json::<String>(&answer).context("eth_getCode")?)),
    }
}

fn of_account(args: &AccountArgs, method: &str) -> anyhow::Result<String> {
    let mut node = args.endpoint.connect()?;
    node.text(method, &json!([args.who, args.at.block.of_state()]))
}

pub(crate) fn chain(args: &ChainArgs) -> anyhow::Result<Output> {
    let mut node = args.endpoint.connect()?;
    let id = node.quantity("eth_chainId", &json!([]))?;
    // The rest is a courtesy: an endpoint need not have it.
    let mut told = |method: &str| node.call::<Value>(method, &json!([])).unwrap_or_default();
    let (client, head) = (told("web3_clientVersion"), told("eth_blockNumber"));
    let (syncing, price) = (told("eth_syncing"), told("eth_gasPrice"));
    let name = NETWORKS.iter().find(|(_, known)| U256::from(*known) == id);
    let rows: [Row; 6] = [
        ("chainId", "chainId", Form::Number),
        ("name", "name", Form::Text),
        ("client", "client", Form::Text),
        ("blockNumber", "blockNumber", Form::Number),
        ("gasPrice", "gasPrice", Form::Number),
        ("syncing", "syncing", Form::Text),
    ];
    let answer = json!({
        "chainId": input::quantity(id),
        "name": name.map_or("unknown", |(name, _)| name),
        "client": client,
        "blockNumber": head,
        "gasPrice": price,
        "syncing": syncing,
    });
    let members = answer.as_object().context("an object")?;
    match &args.field {
        Some(name) => one_field(members, &rows, name, args.endpoint.json),
        None if args.endpoint.json => Ok(Output::of(&answer)),
        None => Ok(Output::of(table::lines(members, &rows, &[]))),
    }
}

/// Names of public networks, and of the chains of development nodes.
const NETWORKS: [(&str, u64); 10] = [
    ("mainnet", 1),
    ("optimism", 10),
    ("gnosis", 100),
    ("polygon", 137),
    ("base", 8_453),
    ("holesky", 17_000),
    ("dev", 31_337),
    ("arbitrum", 42_161),
    ("hoodi", 560_048),
    ("sepolia", 11_155_111),
];

pub(crate) fn gas_price(args: &GasPriceArgs) -> anyhow::Result<Output> {
    let mut node = args.endpoint.connect()?;
    let text = node.text("eth_gasPrice", &json!([]))?;
    if args.endpoint.json {
        return Ok(Output::of(text));
    }
    Ok(Output::of(read_json::<U256>(&text).context("eth_gasPrice")?))
}

pub(crate) fn rpc(args: &RpcArgs) -> anyhow::Result<Output> {
    let params = match (args.raw, &args.params[..]) {
        (true, [text]) => serde_json::from_str(text)
            .map_err(|error| Misuse::error(format_args!("\"{}\": {error}", quote(text))))?,
        (true, _) => {
            return Err(Misuse::error("--raw takes one parameter, the whole list: '[\"0x12\"]'"));
        }
        (false, texts) => texts
            .iter()
            .map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)))
            .collect(),
    };
    let mut node = args.endpoint.connect()?;
    let answer = node.try_text(&args.method, &params);
    if args.endpoint.json
        && let Err(ClientError::Rpc(error)) = &answer
    {
        let failure = Some(format!("{}: {error}", args.method));
        let text = format!("{}\n", json!({ "error": error }));
        return Ok(Output { text, failure, note: None });
    }
    let answer = answer.with_context(|| args.method.clone())?;
    Ok(Output::of(std::str::from_utf8(&answer)?))
}

/// One member, as text or as JSON.
fn one_field(
    answer: &Map<String, Value>,
    rows: &[Row],
    name: &str,
    is_json: bool,
) -> anyhow::Result<Output> {
    let (text, value) = table::field(answer, rows, name).map_err(Misuse::error)?;
    match is_json {
        true => Ok(Output::of(value)),
        false => Ok(Output::of(text)),
    }
}

fn read_object(text: &str) -> anyhow::Result<Map<String, Value>> {
    read_json(text).context("the answer is no object")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ether_has_all_its_digits() {
        let check = |wei: u128, text| assert_eq!(in_ether(U256::from(wei)), text);
        check(0, "0.000000000000000000");
        check(1, "0.000000000000000001");
        check(10_000_500_000_000_000_000_000, "10000.500000000000000000");
    }
}
