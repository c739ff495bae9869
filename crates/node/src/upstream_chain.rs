//! The rules and the first state of an upstream's chain, for a node that is given nothing else.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use alloy_consensus::{EMPTY_ROOT_HASH, Header};
use alloy_genesis::{ChainConfig, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U64, U256, keccak256};
use anyhow::{Context as _, anyhow, bail, ensure};
use client::{Endpoint, EndpointAddress};
use engine::{StateEntry, initialise};
use execution::ChainSpec;
use rpc::{ClientError, Code, read_json, shown_address};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use state::{Database, DirectoryDisk, Options as DatabaseOptions};
use trie::AccountInfo;

use crate::console::printed;
use crate::data_directory::{CONFIG, begin_from_state};
use crate::dev::rules_told;
use crate::limits::{
    FIRST_STATE_ACCOUNTS, FIRST_STATE_PAGE, FIRST_STATE_SLOTS, FORK_ANSWER_BYTES, FORK_CALL_TIME,
    UPSTREAM_PAUSE, UPSTREAM_TRIES,
};
use crate::verify::NETWORKS;

/// How a chain begins where its upstream cannot tell.
const ADVICE: &str = "begin the chain with its genesis file, by --chain FILE, or with a state \
                      dump, by `deponent init`, and go on with the same --datadir";

/// A chain as its upstream tells it, from its first block on.
pub(crate) struct UpstreamChain {
    config: ChainConfig,
    header: Header,
    /// By the hashes of their addresses.
    accounts: BTreeMap<B256, FirstAccount>,
    codes: BTreeMap<B256, Bytes>,
}

struct FirstAccount {
    info: AccountInfo,
    /// As the upstream says, if it does.
    storage_root: Option<B256>,
    /// By the hashes of their keys.
    slots: BTreeMap<B256, U256>,
}

/// A page of `debug_accountRange`. Accounts whose addresses are not known are named by their hash.
#[derive(Deserialize)]
struct AccountPage {
    accounts: BTreeMap<String, PageAccount>,
    next: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageAccount {
    balance: U256,
    nonce: u64,
    root: B256,
    code_hash: B256,
    #[serde(default)]
    code: Bytes,
    #[serde(default)]
    storage: BTreeMap<B256, String>,
    key: Option<B256>,
}

/// A page of `debug_storageRangeAt`, by hashed keys.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlotPage {
    storage: Option<BTreeMap<B256, PageSlot>>,
    next_key: Option<B256>,
}

#[derive(Deserialize)]
struct PageSlot {
    value: B256,
}

/// The first state: accounts and codes by their hashes.
#[derive(Default)]
struct FirstState {
    accounts: BTreeMap<B256, FirstAccount>,
    codes: BTreeMap<B256, Bytes>,
}

/// Before the hash of block 0, in geth's database: the key of the accounts of the genesis file.
const GETH_GENESIS: &[u8] = b"ethereum-genesis-";

impl UpstreamChain {
    /// Asks the first of these endpoints that can tell.
    ///
    /// # Errors
    /// If none answers for a while, or none can tell how its chain begins; what to do is said.
    pub(crate) fn ask(urls: &[String]) -> anyhow::Result<Self> {
        let mut unanswered = None;
        for tried in 0..UPSTREAM_TRIES {
            let mut unfit = None;
            for url in urls {
                match AskedUpstream::connect(url) {
                    Ok(mut asked) => match asked.chain() {
                        Ok(chain) => return Ok(chain),
                        Err(error) if is_unanswered(&error) => {
                            unanswered = Some(error.context(shown_address(url)));
                        }
                        Err(error) => {
                            unfit.get_or_insert(error.context(shown_address(url)));
                        }
                    },
                    Err(error) => unanswered = Some(error),
                }
            }
            if let Some(error) = unfit {
                return Err(error);
            }
            if let Some(error) = unanswered.as_ref().filter(|_| tried == 0) {
                tracing::warn!(reason = printed(error), "no upstream answers yet");
            }
            thread::park_timeout(UPSTREAM_PAUSE);
        }
        Err(unanswered.unwrap_or_else(|| anyhow!("no upstream is named")))
    }

    /// Begins the chain in a data directory that has none.
    ///
    /// # Errors
    /// If the state is not that of the first block's header, or cannot be written.
    pub(crate) fn begin(self, data_dir: &Path, options: &DatabaseOptions) -> anyhow::Result<()> {
        let directory = data_dir.join("chain");
        let Self { config, header, accounts, codes } = self;
        let (count, hash) = (accounts.len(), header.hash_slow());
        let chain = ChainSpec::from_config(&config)
            .context("--rpc: the chain configuration of the upstream")?;
        let database =
            Database::open(DirectoryDisk::open(&directory).context("--datadir")?, options)?;
        database.set_meta(CONFIG, serde_json::to_vec(&config)?.into())?;
        begin_from_state(&database, true)?;
        let entries = accounts.into_iter().flat_map(|(hashed_address, account)| {
            let FirstAccount { info, storage_root, slots } = account;
            let account = StateEntry::Account { hashed_address, info, storage_root };
            let slots = slots.into_iter();
            let slots = slots.map(|(hashed_slot, value)| StateEntry::Slot { hashed_slot, value });
            std::iter::once(account).chain(slots).map(Ok)
        });
        let begun = initialise::<engine::Error>(
            &chain,
            &database,
            entries,
            codes.into_iter().map(Ok),
            |_| Ok(header),
        );
        if let Err(error) = begun {
            drop(database);
            // It has no chain yet, so nobody misses it.
            std::fs::remove_dir_all(&directory).unwrap_or_default();
            bail!(
                "--rpc: the state that the upstream gives is not that of block 0: {error}; {ADVICE}"
            );
        }
        tracing::info!(chain_id = config.chain_id, %hash, accounts = count, "the chain begins");
        Ok(())
    }
}

/// An endpoint that is asked for its chain.
struct AskedUpstream {
    endpoint: Endpoint,
    chain_id: u64,
    /// The number of slots that it has given.
    slots: usize,
}

impl AskedUpstream {
    fn connect(url: &str) -> anyhow::Result<Self> {
        let shown = || shown_address(url);
        let address = EndpointAddress::parse(url, None, None)?;
        let endpoint = address.connect(FORK_CALL_TIME, FORK_ANSWER_BYTES).with_context(shown)?;
        let mut asked = Self { endpoint, chain_id: 0, slots: 0 };
        let chain_id: U64 = asked.call("eth_chainId", json!([])).with_context(shown)?;
        asked.chain_id = chain_id.to();
        Ok(asked)
    }

    fn call<T: DeserializeOwned>(&mut self, method: &str, params: Value) -> Result<T, ClientError> {
        let answer = self.endpoint.call(method, params)?;
        let text = std::str::from_utf8(&answer).map_err(|fault| fault.to_string());
        let read = text.and_then(|text| read_json(text).map_err(|fault| fault.to_string()));
        read.map_err(|fault| ClientError::Malformed(format!("{method}: {fault}")))
    }

    fn chain(&mut self) -> anyhow::Result<UpstreamChain> {
        let id = self.chain_id;
        if let Some((name, _)) = NETWORKS.iter().find(|(_, known)| *known == id) {
            bail!(
                "chain {id} is {name}, whose state no JSON-RPC gives: begin it with a dump, as \
                 `geth snapshot dump | deponent init --state - --header HEADER --chain FILE \
                 --datadir DIR`, and go on with `deponent follow --datadir DIR`"
            );
        }
        let number = "eth_getBlockByNumber";
        let header: Option<alloy_rpc_types_eth::Header> =
            self.call(number, json!(["0x0", false]))?;
        let header = header.with_context(|| format!("it has no block 0; {ADVICE}"))?.inner;
        let config = self.config(&header)?;
        let FirstState { accounts, codes } = match self.geth_genesis(&header)? {
            Some(alloc) => FirstState::of_genesis(alloc)?,
            None => self.state(&header)?,
        };
        Ok(UpstreamChain { config, header, accounts, codes })
    }

    /// The chain's rules: as its node has them, or by `eth_config` (EIP-7910) where they were the
    /// same from the first block on and nothing else is scheduled.
    fn config(&mut self, header: &Header) -> anyhow::Result<ChainConfig> {
        match self.call::<ChainConfig>("debug_chainConfig", json!([])) {
            Ok(config) => return Ok(config),
            Err(ClientError::Rpc(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let told: Value = self.call("eth_config", json!([])).map_err(|error| match error {
            ClientError::Rpc(error) => {
                anyhow!("it has neither debug_chainConfig nor eth_config ({error}); {ADVICE}")
            }
            error => error.into(),
        })?;
        rules_told(self.chain_id, &told, header).with_context(|| ADVICE.to_owned())
    }

    /// The accounts of the genesis file, which geth keeps as it was given them, whatever else it
    /// has deleted; `None` where the upstream is another client, or does not say.
    fn geth_genesis(
        &mut self,
        header: &Header,
    ) -> anyhow::Result<Option<BTreeMap<Address, GenesisAccount>>> {
        let key = Bytes::from([GETH_GENESIS, header.hash_slow().as_slice()].concat());
        match self.call::<Bytes>("debug_dbGet", json!([key])) {
            Ok(json) => Ok(serde_json::from_slice(&json).ok()),
            Err(ClientError::Rpc(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The slots of an account of block 0. A Deponent names both by their hashes.
    fn slots(&mut self, header: &Header, account: B256) -> anyhow::Result<BTreeMap<B256, U256>> {
        let (block, mut slots) = (header.hash_slow(), BTreeMap::new());
        let mut start = Some(B256::ZERO);
        while let Some(first) = start {
            let params = json!([block, 0, account, first, FIRST_STATE_PAGE]);
            let page: SlotPage = match self.call("debug_storageRangeAt", params) {
                Err(ClientError::Rpc(answered)) => bail!(
                    "the account that hashes to {account} has storage, which it does not give \
                     ({answered}); {ADVICE}"
                ),
                page => page?,
            };
            let came = page.storage.unwrap_or_default();
            self.slots += came.len();
            ensure!(
                self.slots <= FIRST_STATE_SLOTS,
                "block 0 has more than {FIRST_STATE_SLOTS} slots; {ADVICE}"
            );
            let came = came.into_iter();
            slots.extend(came.map(|(key, slot)| (key, U256::from_be_bytes(slot.value.0))));
            start = page.next_key.filter(|next| *next > first);
        }
        Ok(slots)
    }

    /// The state after the first block.
    fn state(&mut self, header: &Header) -> anyhow::Result<FirstState> {
        let FirstState { mut accounts, mut codes } = FirstState::default();
        let mut start = Some(B256::ZERO);
        while let Some(first) = start {
            let params = json!(["0x0", first, FIRST_STATE_PAGE, false, false, true]);
            let page = self.call::<AccountPage>("debug_accountRange", params);
            let page = page.map_err(without_state)?;
            let mut last = None;
            for (name, shown) in page.accounts {
                let key = shown.key.map_or_else(|| hashed_name(&name), Ok)?;
                ensure!(key >= first, "debug_accountRange gives accounts from before {first}");
                last = last.max(Some(key));
                let PageAccount { balance, nonce, root, code_hash, code, storage, .. } = shown;
                if code_hash != KECCAK256_EMPTY {
                    ensure!(keccak256(&code) == code_hash, "account {name} has another code");
                    codes.insert(code_hash, code);
                }
                let mut slots = storage.into_iter().map(slot).collect::<anyhow::Result<_>>()?;
                if root != EMPTY_ROOT_HASH && BTreeMap::is_empty(&slots) {
                    slots = self.slots(header, key)?;
                }
                let info = AccountInfo { nonce, balance, code_hash };
                accounts.insert(key, FirstAccount { info, storage_root: Some(root), slots });
            }
            ensure!(
                accounts.len() <= FIRST_STATE_ACCOUNTS,
                "block 0 has more than {FIRST_STATE_ACCOUNTS} accounts; {ADVICE}"
            );
            let after = last.and_then(|last| U256::from_be_bytes(last.0).checked_add(U256::ONE));
            let more = page.next.is_some_and(|next| !next.is_null());
            start = after.filter(|_| more).map(B256::from);
        }
        ensure!(
            !accounts.is_empty() || header.state_root == EMPTY_ROOT_HASH,
            "it gives no accounts of block 0; {ADVICE}"
        );
        Ok(FirstState { accounts, codes })
    }
}

impl FirstState {
    /// That of the accounts of a genesis file.
    fn of_genesis(alloc: BTreeMap<Address, GenesisAccount>) -> anyhow::Result<Self> {
        ensure!(
            alloc.len() <= FIRST_STATE_ACCOUNTS,
            "block 0 has more than {FIRST_STATE_ACCOUNTS} accounts; {ADVICE}"
        );
        let mut state = Self::default();
        for (address, account) in alloc {
            let code = account.code.filter(|code| !code.is_empty());
            let code_hash = code.as_ref().map_or(KECCAK256_EMPTY, keccak256);
            state.codes.extend(code.map(|code| (code_hash, code)));
            let nonce = account.nonce.unwrap_or_default();
            let info = AccountInfo { nonce, balance: account.balance, code_hash };
            let slots = account.storage.into_iter().flatten();
            let slots = slots.filter(|(_, value)| !value.is_zero());
            let slots = slots.map(|(key, value)| (keccak256(key), value.into())).collect();
            let account = FirstAccount { info, storage_root: None, slots };
            state.accounts.insert(keccak256(address), account);
        }
        Ok(state)
    }
}

/// Whether no answer came, or only a part of one: a later try may get it.
fn is_unanswered(error: &anyhow::Error) -> bool {
    use ClientError::{Broken, Closed, Connect, Timeout};
    let fault = error.downcast_ref();
    matches!(fault, Some(Broken { .. } | Closed { .. } | Connect { .. } | Timeout { .. }))
}

/// Why there is no state, and what to do. That no answer came says nothing about the state.
fn without_state(error: ClientError) -> anyhow::Error {
    match error {
        ClientError::Rpc(answered) if answered.is(Code::MethodNotFound) => anyhow!(
            "it has no debug_accountRange, which gives the state of block 0 (geth: --http.api \
             eth,debug, or its socket); {ADVICE}"
        ),
        ClientError::Rpc(answered) => anyhow!(
            "it does not give the state of block 0 ({answered}): after some blocks it may have \
             been deleted there; {ADVICE}"
        ),
        error => error.into(),
    }
}

/// The hash of an address that is the name of an account, or that hash.
fn hashed_name(name: &str) -> anyhow::Result<B256> {
    let hash = name.strip_prefix("pre(").and_then(|rest| rest.strip_suffix(')'));
    let hash = match hash {
        Some(hash) => hash.parse().ok(),
        None => name.parse::<Address>().ok().map(keccak256),
    };
    hash.with_context(|| format!("an account is called {name:?}"))
}

/// A slot by the hash of its key. Its value is hex, with or without 0x.
fn slot((key, value): (B256, String)) -> anyhow::Result<(B256, U256)> {
    let digits = value.strip_prefix("0x").unwrap_or(&value);
    let value = U256::from_str_radix(digits, 16);
    Ok((keccak256(key), value.with_context(|| format!("slot {key} is {digits:?}"))?))
}
