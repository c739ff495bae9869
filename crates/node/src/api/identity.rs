//! The name and version of this client, and its methods.

use std::collections::BTreeMap;

use alloy_primitives::{Address, keccak256};
use engine_api::EXCHANGE_CAPABILITIES;
use engine_api::json::{Data, Object};
use rpc::{Error, Json, Params, quote};
use serde::{Deserialize, Serialize};

use super::Api;
use crate::limits::CAPABILITIES;

/// Our two letters: free in execution-apis `src/engine/identification.md`.
const CLIENT_CODE: &str = "DP";
const CLIENT_NAME: &str = "Deponent";
const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// The first four bytes of the commit, by `build.rs`: zeroes where the sources are in no
/// repository.
const COMMIT: &str = env!("DEPONENT_COMMIT");

/// `engine_exchangeCapabilities`.
pub(super) fn exchange_capabilities(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let _theirs: Vec<String> = params.list("capabilities", CAPABILITIES)?;
    params.end()?;
    let ours = api.methods().filter(|name| name.starts_with("engine_"));
    Json::of(&ours.filter(|name| *name != EXCHANGE_CAPABILITIES).collect::<Vec<_>>())
}

/// `ClientVersionV1`.
#[derive(Serialize, Deserialize)]
pub(crate) struct ClientVersion {
    code: String,
    name: String,
    version: String,
    commit: String,
}

impl ClientVersion {
    /// Name and version in one text.
    pub(crate) fn name_and_version(&self) -> String {
        format!("{} {}", quote(&self.name), quote(&self.version))
    }
}

/// `engine_getClientVersionV1`.
pub(super) fn engine_client_version(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Object(version): Object<ClientVersion> = params.next("clientVersion")?;
    let ClientVersion { code, name, version, commit } = version;
    params.end()?;
    let [code, name, version, commit] = [code, name, version, commit].map(quote);
    tracing::debug!(code, name, version, commit, "engine_getClientVersion");
    if let Some(condition) = &api.condition {
        condition.told_version(format!("{name} {version}"));
    }
    Json::of(&[our_version()])
}

/// The name and version of this client.
pub(crate) fn our_version() -> ClientVersion {
    ClientVersion {
        code: CLIENT_CODE.into(),
        name: CLIENT_NAME.into(),
        version: VERSION.into(),
        commit: format!("0x{COMMIT}"),
    }
}

/// `net_version`: the chain's identifier in decimal, as everywhere.
pub(super) fn net_version(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&api.engine.chain().chain_id().to_string())
}

/// `web3_clientVersion`; a chain for tests may be given another name.
pub(super) fn client_version(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&name_told(api))
}

/// `web3_sha3`: keccak-256 of DATA.
pub(super) fn sha3(_: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Data(bytes) = params.next("data")?;
    params.end()?;
    Json::of(&keccak256(bytes))
}

/// `eth_accounts`: those of a chain for tests, and behind them those that are impersonated, as
/// ethers expects; else none, since a node holds no keys.
pub(super) fn accounts(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let mut accounts = Vec::new();
    if let Some(dev) = &api.dev {
        accounts.extend(dev.wallet.addresses());
        let others = dev.chain.impersonated();
        accounts.extend(others.into_iter().filter(|address| !dev.wallet.has(address)));
    }
    Json::of(&accounts.iter().map(|address| address.to_checksum(None)).collect::<Vec<_>>())
}

/// `eth_coinbase`: zero, since the consensus client names the recipient of each block's fees; that
/// of a chain for tests.
pub(super) fn coinbase(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&api.dev.as_ref().map_or(Address::ZERO, |dev| dev.chain.coinbase()))
}

/// The name that callers are told: the one that a chain for tests was given, or
/// [`client_name`].
pub(super) fn name_told(api: &Api) -> String {
    let given = api.dev.as_ref().and_then(|dev| dev.client_version.clone());
    given.unwrap_or_else(client_name)
}

/// Name, version, commit and platform in one word.
pub(crate) fn client_name() -> String {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{CLIENT_NAME}/{VERSION}-{COMMIT}/{os}-{arch}")
}

/// `rpc_modules`: what stands before the underscore in a method's name, each with the version that
/// geth gives it; its console asks for that before anything else.
pub(super) fn modules(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let modules = api.methods().filter_map(|name| name.split('_').next());
    Json::of(&modules.map(|module| (module, "1.0")).collect::<BTreeMap<_, _>>())
}
