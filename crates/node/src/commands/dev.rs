//! `deponent dev`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ::dev::limits::{BALANCE, BASE_FEE, CHAIN_ID, GAS_LIMIT};
use ::dev::{DevGenesis, Mining};
use alloy_genesis::GenesisAccount;
use alloy_hardforks::EthereumHardfork;
use alloy_primitives::U256;
use alloy_primitives::utils::format_ether;
use anyhow::{Context as _, bail, ensure};
use engine::{Engine, EngineOptions, StateNames};
use files::read_genesis;
use rpc::AllowedOrigins;
use serde_json::json;
use state::{JournalMode, Options as DatabaseOptions};

use super::dev_args::{DevArgs, ForkTime};
use super::rpc_args::Bound;
use super::signals::StopSignals;
use crate::api::{accounts_of, dumped};
use crate::console::say;
use crate::dev::{DevOptions, ForkPoint, GivenRules, Wallet, print_blocks};
use crate::limits::{DEV_CHAIN_HISTORY, FORK_EVM_TIME};
use crate::{Node, NodeOptions, Offered, PublicPort};

/// Runs a chain for tests until it is stopped.
pub(crate) fn run_dev(args: DevArgs) -> anyhow::Result<()> {
    let path = &args.derivation_path;
    let wallet = Wallet::on_path(&args.mnemonic, path, args.accounts);
    let wallet = wallet.context("--mnemonic")?;
    let temporary = match args.datadir {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("no temporary directory")?),
    };
    let directory = args.datadir.as_deref().or_else(|| temporary.as_ref().map(|it| it.path()));
    let directory = directory.expect("one of them").to_owned();
    let is_begun = directory.join("chain").exists();
    let options = dev_options(&args, wallet.clone(), directory, is_begun)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut signals = StopSignals::new()?;
        let fork = options.dev.as_ref().and_then(|dev| dev.fork.clone());
        let node = Node::start(options).await?;
        let engine = node.engine().clone();
        if is_begun {
            check_begun(&args, &engine)?;
        }
        if let Some((file, may_be_absent)) = args.state_to_load() {
            load_state(&node, file, may_be_absent)?;
        }
        write_config(&args, &wallet, &engine)?;
        if !args.idle.given.is_empty() {
            eprintln!("deponent: flags without effect here: --{}", args.idle.given.join(", --"));
        }
        if !args.quiet {
            print_accounts(&args, &wallet, &engine)?;
            match fork {
                Some(fork) => print_fork(&fork)?,
                None => print_chain(&args, &engine, is_begun)?,
            }
        }
        say!("Listening on {}", node.http_addr);
        if !args.quiet {
            print_blocks(&engine);
        }
        signals.next().await;
        let dumped = args.state_to_dump().map(|file| dump_state(&node, &file));
        node.stop().await;
        engine.persist()?;
        dumped.unwrap_or(Ok(()))
    });
    runtime.shutdown_background();
    outcome
}

/// Sets the accounts of a file.
fn load_state(node: &Node, file: &Path, may_be_absent: bool) -> anyhow::Result<()> {
    let state = match std::fs::read(file) {
        Err(fault) if may_be_absent && fault.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.with_context(|| format!("cannot read the state in {}", file.display()))?,
    };
    let accounts = accounts_of(&state).map_err(anyhow::Error::msg);
    let accounts = accounts.with_context(|| file.display().to_string())?;
    node.dev_chain().expect("a chain for tests").load(&accounts)?;
    Ok(())
}

/// Writes all accounts to a file, which is there as a whole or as it was.
fn dump_state(node: &Node, file: &Path) -> anyhow::Result<()> {
    let json = dumped(node.dev_chain().expect("a chain for tests"));
    let json = json.with_context(|| format!("no state is written to {}", file.display()))?;
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    let written = std::fs::write(&partial, json).and_then(|()| std::fs::rename(&partial, file));
    written.with_context(|| format!("cannot write the state to {}", file.display()))
}

fn dev_options(
    args: &DevArgs,
    wallet: Wallet,
    directory: PathBuf,
    is_begun: bool,
) -> anyhow::Result<NodeOptions> {
    let fork = args.fork()?.map(|(url, number)| find_fork(args, url, number)).transpose()?;
    let file = args.init.as_deref().map(read_genesis).transpose().context("--init")?;
    let genesis = match &fork {
        _ if is_begun => None,
        // Of a fork the header is another's.
        Some(_) => Some(alloy_genesis::Genesis::default()),
        None => Some(genesis(args, &wallet, file.as_ref())?),
    };
    let mining = Mining {
        is_automatic: !args.no_mining && (args.block_time.is_none() || args.mixed_mining),
        interval: args.block_time,
    };
    let mut options = NodeOptions::new(alloy_genesis::Genesis::default(), directory);
    options.genesis = genesis;
    let address = SocketAddr::new(args.host, args.port);
    options.ports.http = Some(PublicPort { address, offered: Offered::default() });
    options.ports.ipc.clone_from(&args.ipc);
    options.ports.http_origins = AllowedOrigins {
        hosts: vec!["*".into()],
        http: args.allow_origin.clone(),
        websocket: args.allow_origin.clone(),
    };
    options.txpool.pool.minimum_tip = 0;
    options.txpool.send.fee_cap = None;
    options.txpool.send.allows_unprotected = true;
    options.testing = true;
    if args.fork_url.is_some() {
        // A call waits for the endpoint.
        options.calls.time = Some(FORK_EVM_TIME);
    }
    if let Some(Bound(time)) = args.evm_timeout {
        options.calls.time = time;
    }
    options.dev = Some(DevOptions {
        mining,
        wallet,
        client_version: args.client_version.clone(),
        fork: fork.map(Arc::new),
        balance: args.balance.unwrap_or(BALANCE),
        impersonates_all: args.auto_impersonate,
        names: file.map(|file| names(&file)).unwrap_or_default(),
    });
    options.engine_options = EngineOptions {
        // A fork may go on from a much older block.
        retain_history: if args.fork_url.is_some() { u64::MAX } else { DEV_CHAIN_HISTORY },
        target_gas_limit: args.gas_limit.filter(|_| args.fork_url.is_some()),
        low_priority: false,
        ..EngineOptions::default()
    };
    options.database = DatabaseOptions { journal: JournalMode::Off, ..options.database };
    Ok(options)
}

/// The accounts and slots of a genesis file.
fn names(file: &alloy_genesis::Genesis) -> StateNames {
    let slots = |account: &GenesisAccount| {
        let keys = account.storage.iter().flat_map(BTreeMap::keys);
        keys.map(|key| U256::from_be_bytes(key.0)).collect()
    };
    file.alloc.iter().map(|(address, account)| (*address, slots(account))).collect()
}

/// Writes what the start prints, in anvil's form.
fn write_config(args: &DevArgs, wallet: &Wallet, engine: &Engine) -> anyhow::Result<()> {
    let Some(file) = &args.config_out else { return Ok(()) };
    let head = engine.block(engine.heads().head)?.context("there is no head")?;
    let header = &head.block.header;
    let base_fee = header.base_fee_per_gas.unwrap_or_default();
    let (addresses, keys): (Vec<_>, Vec<_>) = wallet.keys().iter().copied().unzip();
    let config = json!({
        "available_accounts": addresses,
        "private_keys": keys,
        "wallet": {"derivation_path": args.derivation_path, "mnemonic": args.mnemonic},
        "chain_id": engine.chain().chain_id(),
        "block_number": header.number,
        "block_hash": head.hash(),
        "base_fee": base_fee.to_string(),
        "gas_price": execution::next_base_fee(header).to_string(),
        "gas_limit": header.gas_limit.to_string(),
        "genesis_timestamp": header.timestamp.to_string(),
    });
    let written = std::fs::write(file, config.to_string());
    written.with_context(|| format!("--config-out: cannot write {}", file.display()))
}

/// The time now, in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The later forks, with their times.
fn later_forks(args: &DevArgs, start: u64) -> Vec<(EthereumHardfork, u64)> {
    let at = |(fork, time): &(_, _)| match time {
        ForkTime::At(time) => (*fork, *time),
        ForkTime::After(seconds) => (*fork, start.saturating_add(*seconds)),
    };
    args.fork_at.iter().map(at).collect()
}

/// The block of another chain with which this one begins.
fn find_fork(args: &DevArgs, url: &str, number: Option<i64>) -> anyhow::Result<ForkPoint> {
    let given = GivenRules {
        chain_id: args.chain_id,
        fork: args.hardfork,
        later: later_forks(args, now()),
    };
    let is_cached = !args.no_storage_caching;
    ForkPoint::find(url, number, &given, is_cached).context("--fork-url")
}

fn genesis(
    args: &DevArgs,
    wallet: &Wallet,
    file: Option<&alloy_genesis::Genesis>,
) -> anyhow::Result<alloy_genesis::Genesis> {
    let timestamp = args.timestamp.or(file.map(|file| file.timestamp)).unwrap_or_else(now);
    let file_fee = file.and_then(|file| file.base_fee_per_gas).and_then(|fee| fee.try_into().ok());
    let file_id = file.map(|file| file.config.chain_id);
    let hardfork = args.hardfork.unwrap_or(EthereumHardfork::Osaka);
    let mut genesis = DevGenesis {
        chain_id: args.chain_id.or(file_id).unwrap_or(CHAIN_ID),
        fork: hardfork,
        later: later_forks(args, timestamp),
        gas_limit: args.gas_limit.or(file.map(|file| file.gas_limit)).unwrap_or(GAS_LIMIT),
        base_fee: args.base_fee.or(file_fee).unwrap_or(BASE_FEE),
        timestamp,
        ..DevGenesis::default()
    };
    if let Some((fork, _)) = genesis.later.iter().find(|(fork, _)| *fork <= hardfork) {
        bail!("--fork-at {fork}: the first block has {hardfork} already");
    }
    for address in wallet.keys().iter().map(|(address, _)| *address) {
        genesis = genesis.rich(address, args.balance.unwrap_or(BALANCE));
    }
    genesis.accounts.extend(file.into_iter().flat_map(|file| file.alloc.clone()));
    Ok(genesis.build()?.file)
}

/// Refuses flags that are not what the chain in the directory began with.
fn check_begun(args: &DevArgs, engine: &Engine) -> anyhow::Result<()> {
    let directory = args.datadir.as_deref().unwrap_or(Path::new("")).display();
    let first = engine.block(engine.heads().genesis)?.context("there is no first block")?;
    let (header, chain) = (&first.block.header, engine.chain());
    let same = |flag: &str, given: Option<String>, there: String| {
        ensure!(
            given.as_ref().is_none_or(|given| *given == there),
            "{flag} {}: the chain in {directory} began with {there}. Leave the flag out to go on \
             with it, or name another directory with --datadir",
            given.unwrap_or_default(),
        );
        Ok(())
    };
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let fork = |fork: EthereumHardfork| fork.to_string().to_lowercase();
    same("--chain-id", number(args.chain_id), chain.chain_id().to_string())?;
    same("--hardfork", args.hardfork.map(fork), fork(chain.fork_of(header)))?;
    same("--gas-limit", number(args.gas_limit), header.gas_limit.to_string())?;
    let base_fee = header.base_fee_per_gas.unwrap_or_default().to_string();
    same("--base-fee", number(args.base_fee), base_fee)?;
    same("--timestamp", number(args.timestamp), header.timestamp.to_string())?;
    let first = [("--fork-at", !args.fork_at.is_empty()), ("--init", args.init.is_some())];
    for (flag, _) in first.iter().filter(|(_, is_given)| *is_given) {
        eprintln!("deponent: {flag} has no effect: the chain in {directory} has begun");
    }
    Ok(())
}

/// Prints the accounts as anvil does, with what they have.
fn print_accounts(args: &DevArgs, wallet: &Wallet, engine: &Engine) -> anyhow::Result<()> {
    let state = engine.state(engine.heads().head)?;
    say!("Deponent {}: a chain for tests\n", crate::console::VERSION);
    say!("Available Accounts\n==================\n");
    for (index, (address, _)) in wallet.keys().iter().enumerate() {
        let balance = state.account(*address)?.map_or(U256::ZERO, |account| account.balance);
        say!("({index}) {address} ({} ETH)", format_ether(balance));
    }
    say!("\nPrivate Keys\n==================\n");
    for (index, (_, secret)) in wallet.keys().iter().enumerate() {
        say!("({index}) {secret}");
    }
    say!("\nWallet\n==================");
    say!("Mnemonic:          {}", args.mnemonic);
    say!("Derivation path:   {}\n", args.derivation_path);
    Ok(())
}

/// Prints with what a chain begins or goes on, as anvil does.
fn print_chain(args: &DevArgs, engine: &Engine, is_begun: bool) -> anyhow::Result<()> {
    let head = engine.block(engine.heads().head)?.context("there is no head")?;
    let (header, chain) = (&head.block.header, engine.chain());
    say!("\nChain ID\n==================\n\n{}", chain.chain_id());
    let base_fee = header.base_fee_per_gas.unwrap_or_default();
    say!("\nBase Fee\n==================\n\n{base_fee}");
    say!("\nGas Limit\n==================\n\n{}", header.gas_limit);
    let fork = chain.fork_of(header).to_string().to_lowercase();
    say!("\nHardfork\n==================\n\n{fork}\n");
    if let Some(directory) = args.datadir.as_deref().filter(|_| is_begun) {
        let directory = directory.display();
        say!("Block\n==================\n\n{} of {directory}\n", header.number);
    }
    Ok(())
}

/// Prints the block of another chain with which this one begins, and its rules.
fn print_fork(fork: &ForkPoint) -> anyhow::Result<()> {
    let ForkPoint { endpoint, header, rules, unanswered, .. } = fork;
    say!("Fork\n==================\n");
    say!("Endpoint:       {endpoint}");
    if let Some(reason) = unanswered {
        say!("Kept on disk:   the block and what was read of its state, since {reason}");
    }
    say!("Block number:   {}", header.number);
    say!("Block hash:     {}", header.hash_slow());
    say!("Timestamp:      {}", header.timestamp);
    say!("Chain ID:       {}", rules.config.chain_id);
    say!("Hardfork:       {}, by {}\n", rules.fork.to_string().to_lowercase(), rules.source);
    Ok(())
}
