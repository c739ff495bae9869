//! The methods of a node that mines its own chain: those of anvil and hardhat on which tests rely,
//! with the shapes of their answers as anvil gives them.

use std::time::Duration;

use alloy_consensus::TxEip2930;
use alloy_primitives::{Address, B256, U64, U256};
use dev::{Error as DevError, impersonated};
use engine::Amendment;
use engine_api::json::{Data, FixedData, Object};
use execution::{Call, Transaction, UnsignedCall, UnsignedTransaction, unsigned_transaction};
use rpc::{Code, Error, Json, Later, Params};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value, json};

use super::call::Request;
use super::inclusion::wait_for;
use super::{Api, Entry, eth, fees, fill, identity, later, method, ordered, refusal};
use crate::dev::DevNode;

/// The methods, with their other names.
pub(super) const DEV: &[Entry] = &[
    method("eth_requestAccounts", identity::accounts),
    ordered("eth_sendTransaction", send),
    later("eth_sendTransactionSync", send_and_wait),
    ordered("eth_sendUnsignedTransaction", send_unsigned),
    ordered("evm_mine", mine_one),
    ordered("evm_mine_detailed", mine_detailed),
    ordered("anvil_mine_detailed", mine_detailed),
    ordered("anvil_mine", mine),
    ordered("hardhat_mine", mine),
    ordered("evm_setAutomine", set_automine),
    ordered("anvil_setAutomine", set_automine),
    method("anvil_getAutomine", automine),
    method("hardhat_getAutomine", automine),
    ordered("evm_setIntervalMining", set_interval),
    ordered("anvil_setIntervalMining", set_interval),
    method("anvil_getIntervalMining", interval),
    ordered("evm_increaseTime", increase_time),
    ordered("anvil_increaseTime", increase_time),
    ordered("evm_setNextBlockTimestamp", set_next_time),
    ordered("anvil_setNextBlockTimestamp", set_next_time),
    ordered("evm_setTime", set_time),
    ordered("anvil_setTime", set_time),
    ordered("anvil_setBlockTimestampInterval", set_time_between),
    ordered("anvil_removeBlockTimestampInterval", remove_time_between),
    ordered("evm_snapshot", snapshot),
    ordered("anvil_snapshot", snapshot),
    ordered("evm_revert", revert),
    ordered("anvil_revert", revert),
    ordered("anvil_setBalance", set_balance),
    ordered("hardhat_setBalance", set_balance),
    ordered("tenderly_setBalance", set_balance),
    ordered("anvil_addBalance", add_balance),
    ordered("tenderly_addBalance", add_balance),
    ordered("anvil_setCode", set_code),
    ordered("hardhat_setCode", set_code),
    ordered("anvil_setNonce", set_nonce),
    ordered("hardhat_setNonce", set_nonce),
    ordered("evm_setAccountNonce", set_nonce),
    ordered("anvil_setStorageAt", set_storage),
    ordered("hardhat_setStorageAt", set_storage),
    ordered("anvil_setCoinbase", set_coinbase),
    ordered("hardhat_setCoinbase", set_coinbase),
    ordered("anvil_setNextBlockBaseFeePerGas", set_base_fee),
    ordered("hardhat_setNextBlockBaseFeePerGas", set_base_fee),
    ordered("hardhat_setPrevRandao", set_prev_randao),
    ordered("anvil_setNextBlockPrevRandao", set_prev_randao),
    ordered("evm_setBlockGasLimit", set_gas_limit),
    ordered("anvil_setBlockGasLimit", set_gas_limit),
    ordered("anvil_impersonateAccount", impersonate),
    ordered("hardhat_impersonateAccount", impersonate),
    ordered("anvil_stopImpersonatingAccount", stop_impersonating),
    ordered("hardhat_stopImpersonatingAccount", stop_impersonating),
    ordered("anvil_autoImpersonateAccount", impersonate_all),
    ordered("hardhat_autoImpersonateAccount", impersonate_all),
    ordered("anvil_dropTransaction", drop_transaction),
    ordered("hardhat_dropTransaction", hardhat_drop_transaction),
    ordered("anvil_dropAllTransactions", drop_all),
    ordered("hardhat_dropAllTransactions", drop_all),
    ordered("anvil_removePoolTransactions", drop_of),
    ordered("anvil_rollback", roll_back),
    ordered("anvil_reorg", reorganise),
    ordered("anvil_reset", reset),
    ordered("hardhat_reset", reset),
    method("anvil_nodeInfo", node_info),
    method("anvil_metadata", metadata),
    method("hardhat_metadata", metadata),
    method("anvil_setLoggingEnabled", set_logging),
    method("hardhat_setLoggingEnabled", set_logging),
];

impl Api {
    pub(super) fn dev(&self) -> Result<&DevNode, Error> {
        let missing = || Error::new(Code::Server, "this chain is not one for tests");
        self.dev.as_deref().ok_or_else(missing)
    }
}

/// A number as tests write it: JSON's, in hex, or decimal as text.
pub(super) struct Loose(pub(super) U256);

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let number = match Value::deserialize(json)? {
            Value::Number(number) => number.to_string().parse().ok(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        number.map(Self).ok_or_else(|| {
            D::Error::custom("expected a whole number from 0 on, as 7, \"7\" or \"0x7\"")
        })
    }
}

impl Loose {
    pub(super) fn small(self, name: &str) -> Result<u64, Error> {
        let most = || Error::invalid_params(format!("{name}: {} is over 64 bits", self.0));
        self.0.try_into().map_err(|_| most())
    }
}

/// The error of something that the chain did not do.
pub(super) fn failed(error: DevError) -> Error {
    match error {
        DevError::Refused(refusal) => Error::new(Code::Server, refusal).in_message(),
        DevError::Unnamed | DevError::Fee { .. } => Error::new(Code::Server, error).in_message(),
        DevError::Engine(error) => refusal(error),
        DevError::Time { .. }
        | DevError::TooManyBlocks { .. }
        | DevError::TooDeep { .. }
        | DevError::BeyondDepth { .. }
        | DevError::GasLimit { .. } => Error::invalid_params(error),
        error => Error::new(Code::Internal, error),
    }
}

fn none() -> Result<Json, Error> {
    Json::of(&Value::Null)
}

fn number(mut params: Params<'_>, name: &str) -> Result<u64, Error> {
    let Loose(number) = params.next(name)?;
    params.end()?;
    Loose(number).small(name)
}

pub(super) fn address(params: &mut Params<'_>) -> Result<Address, Error> {
    Ok(params.next::<FixedData<20>>("address")?.into())
}

/// `eth_sendTransaction`: signed by an account of the node, the first one where none is named, or
/// unsigned by one that is impersonated.
fn send(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Object(request): Object<Request> = params.next("transaction")?;
    params.end()?;
    let signed = signed(api, request)?;
    Json::of(&api.dev()?.chain.send(signed).map_err(failed)?)
}

/// `eth_sendTransactionSync`: as `eth_sendTransaction`, with the receipt, once a block has it.
fn send_and_wait(api: &Api, mut params: Params<'_>) -> Result<Later, Error> {
    let Object(request): Object<Request> = params.next("transaction")?;
    let most = params.optional("milliseconds")?;
    params.end()?;
    let signed = signed(api, request)?;
    let hash = *signed.tx_hash();
    wait_for(api, hash, most, || api.dev()?.chain.send(signed).map_err(failed).map(|_| ()))
}

/// The transaction of a request, by an account of the node or an impersonated one.
fn signed(api: &Api, mut request: Request) -> Result<Transaction, Error> {
    let dev = api.dev()?;
    let sender = request.sender_or(dev.wallet.addresses().next());
    let is_known = |sender: &Address| dev.wallet.has(sender) || dev.chain.impersonates(sender);
    // Before the gas is estimated, which fails for other reasons where there is no such account.
    sender.filter(is_known).ok_or_else(no_signer)?;
    let (sender, transaction) = filled(api, request)?;
    if dev.chain.impersonates(&sender) {
        return Ok(impersonated(transaction, sender));
    }
    dev.wallet.sign_transaction(&sender, transaction).ok_or_else(no_signer)
}

/// The error of an account that is not the node's.
pub(super) fn no_signer() -> Error {
    Error::invalid_params(
        "No Signer available: eth_accounts has the accounts that the node signs for, and \
         anvil_impersonateAccount adds others",
    )
}

/// `eth_sendUnsignedTransaction`: from any account.
fn send_unsigned(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Object(request): Object<Request> = params.next("transaction")?;
    params.end()?;
    let dev = api.dev()?;
    let (sender, transaction) = filled(api, request)?;
    Json::of(&dev.chain.send(impersonated(transaction, sender)).map_err(failed)?)
}

/// The transaction of a request, with the nonce, the gas and the fees that it leaves open.
pub(super) fn filled(api: &Api, request: Request) -> Result<(Address, UnsignedTransaction), Error> {
    let base_fee = api.dev()?.chain.next_base_fee().map_err(failed)?;
    filled_for(api, request, base_fee)
}

/// The same for a block with this base fee.
fn filled_for(
    api: &Api,
    request: Request,
    base_fee: u64,
) -> Result<(Address, UnsignedTransaction), Error> {
    let chain_id = api.engine.chain().chain_id();
    let names_price = request.gas_price.is_some() || request.max_fee_per_gas.is_some();
    let names_tip = request.max_priority_fee_per_gas.is_some();
    let names_list = request.names_access_list();
    let UnsignedCall { mut call, gas, nonce, has_gas_price } = request.call(chain_id)?;
    if call.blob_hashes.is_some() {
        let words = "a transaction with blobs is sent signed, by eth_sendRawTransaction";
        return Err(Error::invalid_params(words));
    }
    let head = api.head()?;
    let nonce = nonce.map_or_else(|| fill::next_nonce(api, call.from, &head), Ok)?;
    let gas = match gas {
        Some(gas) => gas,
        None => {
            let free = Call { max_fee_per_gas: 0, max_priority_fee_per_gas: 0, ..call.clone() };
            fill::estimated(api, &free, &head)?
        }
    };
    if !names_price {
        if !names_tip {
            call.max_priority_fee_per_gas = fees::suggested_tip(api)?;
        }
        let twice = 2 * u128::from(base_fee);
        call.max_fee_per_gas = twice.saturating_add(call.max_priority_fee_per_gas);
    }
    Ok((call.from, typed(&Call { gas, ..call }, nonce, chain_id, has_gas_price, names_list)))
}

/// The call as a transaction. One with a gas price has an access list (EIP-2930) where that is
/// named, and else the first type, with the chain.
fn typed(
    call: &Call,
    nonce: u64,
    chain_id: u64,
    has_gas_price: bool,
    names_list: bool,
) -> UnsignedTransaction {
    let has_gas_price = has_gas_price && call.authorization_list.is_none();
    if has_gas_price && names_list {
        let Call { gas: gas_limit, max_fee_per_gas: gas_price, to, value, .. } = *call;
        let (access_list, input) = (call.access_list.clone(), call.input.clone());
        return TxEip2930 { chain_id, nonce, gas_price, gas_limit, to, value, access_list, input }
            .into();
    }
    let mut transaction = unsigned_transaction(call, nonce, chain_id, has_gas_price);
    if let UnsignedTransaction::Legacy(legacy) = &mut transaction {
        legacy.chain_id = Some(chain_id);
    }
    transaction
}

/// The parameter of `evm_mine`.
#[derive(Deserialize)]
#[serde(untagged)]
enum MineOptions {
    Options { timestamp: Option<Loose>, blocks: Option<Loose> },
    Time(Loose),
}

/// `evm_mine`: one block, or as many as are said, from a time on.
fn mine_one(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    mined(api, params)?;
    Json::of(&"0x0")
}

/// `evm_mine_detailed`: the blocks, with their transactions.
fn mine_detailed(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let blocks = mined(api, params)?.into_iter().map(|hash| eth::full_block(api, hash));
    Json::of(&blocks.collect::<Result<Vec<_>, _>>()?)
}

fn mined(api: &Api, mut params: Params<'_>) -> Result<Vec<B256>, Error> {
    let options: Option<MineOptions> = params.optional("options")?;
    params.end()?;
    let (time, blocks) = match options {
        None => (None, None),
        Some(MineOptions::Time(time)) => (Some(time), None),
        Some(MineOptions::Options { timestamp, blocks }) => (timestamp, blocks),
    };
    let chain = &api.dev()?.chain;
    let blocks = blocks.map_or(Ok(1), |blocks| blocks.small("blocks"))?;
    let mut mined = Vec::new();
    if let Some(time) = time.filter(|_| blocks > 0) {
        mined.push(chain.mine_at(time.small("timestamp")?).map_err(failed)?);
    }
    let rest = blocks - mined.len() as u64;
    mined.extend(chain.mine(rest, None).map_err(failed)?);
    Ok(mined)
}

/// `anvil_mine`: so many blocks, so many seconds apart.
fn mine(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let blocks: Option<Loose> = params.optional("blocks")?;
    let seconds: Option<Loose> = params.optional("interval")?;
    params.end()?;
    let blocks = blocks.map_or(Ok(1), |blocks| blocks.small("blocks"))?;
    let seconds = seconds.map(|seconds| seconds.small("interval")).transpose()?;
    api.dev()?.chain.mine(blocks, seconds).map_err(failed)?;
    none()
}

fn set_automine(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let is_automatic = params.next("enabled")?;
    params.end()?;
    api.dev()?.chain.set_automatic(is_automatic);
    none()
}

fn automine(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&api.dev()?.chain.is_automatic())
}

/// `evm_setIntervalMining`: seconds, or 0 for none. It ends a block for each transaction, as in
/// anvil.
fn set_interval(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let seconds = number(params, "seconds")?;
    let chain = &api.dev()?.chain;
    if seconds > 0 {
        chain.set_automatic(false);
    }
    chain.set_interval(Some(Duration::from_secs(seconds)));
    none()
}

fn interval(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&api.dev()?.chain.interval().map(|interval| interval.as_secs()))
}

fn increase_time(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let seconds = number(params, "seconds")?;
    Json::of(&api.dev()?.chain.increase_time(seconds))
}

fn set_next_time(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let time = number(params, "timestamp")?;
    api.dev()?.chain.set_next_time(time).map_err(failed)?;
    none()
}

/// `evm_setTime`: in seconds, or in milliseconds where the number is too large for these, as in
/// anvil.
fn set_time(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    /// The year 5138, which no test is in.
    const LAST_SECOND: u64 = 100_000_000_000;
    let time = number(params, "timestamp")?;
    let seconds = if time > LAST_SECOND { time / 1000 } else { time };
    Json::of(&api.dev()?.chain.set_time(seconds).unsigned_abs())
}

fn set_time_between(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let seconds = number(params, "seconds")?;
    api.dev()?.chain.set_time_between(Some(seconds));
    none()
}

fn remove_time_between(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&api.dev()?.chain.set_time_between(None).is_some())
}

fn snapshot(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&U64::from(api.dev()?.chain.snapshot().map_err(failed)?))
}

fn revert(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let id = number(params, "snapshot")?;
    Json::of(&api.dev()?.chain.revert(id).map_err(failed)?)
}

fn amend(api: &Api, address: Address, amendment: Amendment) -> Result<(), Error> {
    api.dev()?.chain.amend(&[(address, amendment)]).map_err(failed)
}

fn set_balance(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let (address, Loose(balance)) = (address(&mut params)?, params.next("balance")?);
    params.end()?;
    amend(api, address, Amendment::Balance(balance))?;
    none()
}

fn add_balance(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let (address, Loose(amount)) = (address(&mut params)?, params.next("amount")?);
    params.end()?;
    api.dev()?.chain.add_balance(address, amount).map_err(failed)?;
    none()
}

fn set_code(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let (address, Data(code)) = (address(&mut params)?, params.next("code")?);
    params.end()?;
    amend(api, address, Amendment::Code(code))?;
    none()
}

fn set_nonce(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    let nonce = number(params, "nonce")?;
    amend(api, address, Amendment::Nonce(nonce))?;
    none()
}

/// `anvil_setStorageAt`: the value in 32 bytes.
fn set_storage(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let (address, Loose(slot)) = (address(&mut params)?, params.next("slot")?);
    let value: FixedData<32> = params.next("value")?;
    params.end()?;
    let value = U256::from_be_bytes(value.0);
    amend(api, address, Amendment::Storage { slot, value })?;
    Json::of(&true)
}

fn set_coinbase(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    params.end()?;
    api.dev()?.chain.set_coinbase(address);
    none()
}

fn set_base_fee(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let base_fee = number(params, "baseFeePerGas")?;
    api.dev()?.chain.set_next_base_fee(base_fee);
    none()
}

fn set_prev_randao(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let prev_randao: FixedData<32> = params.next("prevRandao")?;
    params.end()?;
    api.dev()?.chain.set_prev_randao(prev_randao.into());
    Json::of(&true)
}

fn set_gas_limit(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let gas_limit = number(params, "gasLimit")?;
    api.dev()?.chain.set_gas_limit(gas_limit).map_err(failed)?;
    Json::of(&true)
}

fn impersonate(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    params.end()?;
    api.dev()?.chain.impersonate(address);
    none()
}

fn stop_impersonating(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    params.end()?;
    api.dev()?.chain.stop_impersonating(&address);
    none()
}

fn impersonate_all(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let all = params.next("enabled")?;
    params.end()?;
    api.dev()?.chain.impersonate_all(all);
    none()
}

fn drop_transaction(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("hash")?;
    params.end()?;
    Json::of(&api.dev()?.chain.drop_transaction(hash.into()))
}

/// `hardhat_dropTransaction`: whether one waited, as hardhat says it.
fn hardhat_drop_transaction(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("hash")?;
    params.end()?;
    Json::of(&api.dev()?.chain.drop_transaction(hash.into()).is_some())
}

fn drop_all(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    api.dev()?.chain.drop_transactions(None);
    none()
}

fn drop_of(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    params.end()?;
    api.dev()?.chain.drop_transactions(Some(address));
    none()
}

fn roll_back(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let depth: Option<Loose> = params.optional("depth")?;
    params.end()?;
    let depth = depth.map_or(Ok(1), |depth| depth.small("depth"))?;
    api.dev()?.chain.roll_back(depth).map_err(failed)?;
    none()
}

/// A transaction of `anvil_reorg`: its bytes, or a request, and the index of its block.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reorganised {
    Raw(Data),
    Request(Box<Request>),
}

/// Why `anvil_reorg` failed.
enum ReorgError {
    Chain(Box<DevError>),
    Request(Box<Error>),
}

impl From<DevError> for ReorgError {
    fn from(error: DevError) -> Self {
        Self::Chain(error.into())
    }
}

/// The parameters of `anvil_reorg` by their names, as alloy sends them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reorganisation {
    depth: Loose,
    tx_block_pairs: Option<Vec<(Reorganised, u64)>>,
}

/// `anvil_reorg`: its parameters one by one, or as an object. Requests are filled in on the block
/// before their own.
fn reorganise(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let reorganisation = match params.named()? {
        Some(named) => named,
        None => Reorganisation {
            depth: params.next("depth")?,
            tx_block_pairs: params.optional("transactions")?,
        },
    };
    params.end()?;
    let Reorganisation { depth, tx_block_pairs: pairs } = reorganisation;
    let dev = api.dev()?;
    let signed = |transaction| match transaction {
        Reorganised::Raw(Data(bytes)) => match ::pool::decode(&bytes) {
            Ok(sent) => Ok(sent.transaction),
            Err(refusal) => Err(DevError::Refused(refusal).into()),
        },
        Reorganised::Request(request) => {
            let filled = api.head().and_then(|head| {
                let base_fee = execution::next_base_fee(&head.block.header);
                filled_for(api, *request, base_fee)
            });
            let (sender, transaction) =
                filled.map_err(|error| ReorgError::Request(error.into()))?;
            let signed = dev.wallet.sign_transaction(&sender, transaction.clone());
            Ok(signed.unwrap_or_else(|| impersonated(transaction, sender)))
        }
    };
    let pairs = pairs.unwrap_or_default();
    match dev.chain.reorganise(depth.small("depth")?, pairs, signed) {
        Ok(_) => none(),
        Err(ReorgError::Chain(error)) => Err(failed(*error)),
        Err(ReorgError::Request(error)) => Err(*error),
    }
}

/// `anvil_reset`: to the first block.
fn reset(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let options: Option<ResetOptions> = params.optional("options")?;
    params.end()?;
    let dev = api.dev()?;
    let forking = options.and_then(|options| options.forking).unwrap_or_default();
    let (url, number) = (forking.json_rpc_url, forking.block_number);
    let number = number.map(|number| number.small("blockNumber")).transpose()?;
    let is_named = url.is_some() || number.is_some();
    let is_same = dev.fork().is_some_and(|fork| {
        url.as_ref().is_none_or(|url| url == fork.endpoint.url())
            && number == Some(fork.header.number)
    });
    if is_named && !is_same {
        let begun = dev.fork_again(url.as_deref(), number);
        begun.map_err(|error| Error::invalid_params(rpc::on_one_line(error.as_ref())))?;
        return none();
    }
    dev.chain.reset().map_err(failed)?;
    none()
}

/// The parameter of `anvil_reset`.
#[derive(Deserialize)]
struct ResetOptions {
    forking: Option<Forking>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Forking {
    json_rpc_url: Option<String>,
    block_number: Option<Loose>,
}

fn node_info(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let dev = api.dev()?;
    let head = api.head()?;
    let (header, chain) = (&head.block.header, api.engine.chain());
    let fork = dev.fork();
    let fork = fork.as_ref().map(|fork| (fork.endpoint.to_string(), fork.header.number));
    let (fork_url, fork_number) = fork.unzip();
    Json::of(&json!({
        "currentBlockNumber": U64::from(header.number),
        "currentBlockTimestamp": header.timestamp,
        "currentBlockHash": head.hash(),
        "hardFork": chain.fork_of(header).to_string(),
        "transactionOrder": "fees",
        "environment": {
            "baseFee": U256::from(header.base_fee_per_gas.unwrap_or(0)),
            "chainId": chain.chain_id(),
            "gasLimit": header.gas_limit,
            "gasPrice": U256::from(fees::suggested_tip(api)?),
        },
        "forkConfig": {
            "forkUrl": fork_url,
            "forkBlockNumber": fork_number,
            "forkRetryBackoff": null,
        },
        "automine": dev.chain.is_automatic(),
    }))
}

fn metadata(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let head = api.head()?;
    let forked = api.dev()?.fork().map(|fork| {
        json!({
            "chainId": fork.chain_id,
            "forkBlockNumber": fork.header.number,
            "forkBlockHash": fork.header.hash_slow(),
        })
    });
    let snapshots = api.dev()?.chain.snapshots().into_iter();
    let snapshots: Map<_, _> =
        snapshots.map(|(id, number, hash)| (format!("0x{id:x}"), json!([number, hash]))).collect();
    Json::of(&json!({
        "clientVersion": identity::name_told(api),
        "chainId": api.engine.chain().chain_id(),
        "instanceId": api.engine.heads().genesis,
        "latestBlockNumber": head.number(),
        "latestBlockHash": head.hash(),
        "forkedNetwork": forked,
        "snapshots": snapshots,
    }))
}

/// The log of a node is as its flags say.
fn set_logging(_: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let _: bool = params.next("enabled")?;
    params.end()?;
    none()
}
