//! `deponent dev`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::dev::limits::{BALANCE, BASE_FEE, CHAIN_ID, GAS_LIMIT};
use ::dev::{DevGenesis, Mining};
use alloy_hardforks::EthereumHardfork;
use alloy_primitives::U256;
use alloy_primitives::utils::{format_ether, parse_ether};
use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use engine::EngineOptions;
use rpc::AllowedOrigins;
use state::{JournalMode, Options as DatabaseOptions};

use super::node::StopSignals;
use crate::console::say;
use crate::dev::{DERIVATION_PATH, DevOptions, ForkPoint, GivenRules, MNEMONIC, Wallet};
use crate::flags::values::{
    LOCALHOST, Threshold, count, parse_duration, parse_ip, parse_page, parse_port,
};
use crate::limits::DEV_CHAIN_HISTORY;
use crate::{Node, NodeOptions};

/// The arguments of `deponent dev`.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// The port of JSON-RPC over HTTP and WebSocket; 0 takes any free one.
    #[arg(long, short = 'p', value_name = "PORT", value_parser = parse_port,
          default_value_t = 8545)]
    port: u16,
    /// The address on which it listens.
    #[arg(long, value_name = "IP", value_parser = parse_ip, default_value_t = LOCALHOST)]
    host: IpAddr,
    /// The number of accounts.
    #[arg(long, short = 'a', value_name = "ACCOUNTS", default_value_t = 10,
          value_parser = parse_accounts)]
    accounts: u32,
    /// The balance of each account, in ether.
    #[arg(long, value_name = "ETHER", value_parser = parse_balance)]
    balance: Option<U256>,
    /// The phrase of BIP-39 from which the accounts are derived.
    #[arg(long, short = 'm', value_name = "PHRASE", default_value = MNEMONIC)]
    mnemonic: String,
    /// Mine a block after each such time, as 2s or 500ms, instead of one for each transaction.
    #[arg(long, short = 'b', value_name = "TIME", value_parser = parse_block_time)]
    block_time: Option<Duration>,
    /// Mine no block unless evm_mine or anvil_mine asks for it.
    #[arg(long, conflicts_with = "block_time")]
    no_mining: bool,
    /// The fork of the first block: paris, shanghai, cancun, prague, osaka or amsterdam
    /// [default: osaka; with --fork-url that of its block].
    #[arg(long, value_name = "FORK", value_parser = parse_fork)]
    hardfork: Option<EthereumHardfork>,
    /// A later fork and its time, in seconds since 1970 or from the start on: amsterdam=+600.
    #[arg(long = "fork-at", value_name = "FORK=TIME", value_parser = parse_later)]
    fork_at: Vec<(EthereumHardfork, ForkTime)>,
    /// The chain's identifier [default: 31337; with --fork-url the endpoint's].
    #[arg(long, value_name = "ID", value_parser = count::<u64>)]
    chain_id: Option<u64>,
    /// The gas limit of blocks [default: 30000000; with --fork-url that of its block].
    #[arg(long, value_name = "GAS", value_parser = count::<u64>)]
    gas_limit: Option<u64>,
    /// The base fee of the first block, in wei.
    #[arg(long, value_name = "WEI", value_parser = count::<u64>,
          default_value_t = BASE_FEE)]
    base_fee: u64,
    /// The time of the first block, in seconds since 1970 [default: now].
    #[arg(long, value_name = "TIME", value_parser = count::<u64>)]
    timestamp: Option<u64>,
    /// Keep the chain in this directory, and go on with it the next time [default: a directory that
    /// is removed at the end].
    #[arg(long, value_name = "DIR")]
    datadir: Option<PathBuf>,
    /// Begin with a block of another chain, whose state is read from this endpoint of JSON-RPC and
    /// checked: http://HOST:PORT/PATH, https, ws or wss, or the path of a Unix socket.
    #[arg(long, short = 'f', value_name = "URL",
          conflicts_with_all = ["datadir", "timestamp", "base_fee"])]
    fork_url: Option<String>,
    /// The number of that block [default: the endpoint's head].
    #[arg(long, value_name = "N", value_parser = count::<u64>, requires = "fork_url")]
    fork_block_number: Option<u64>,
    /// Keep nothing of the state at the endpoint on disk.
    #[arg(long, requires = "fork_url")]
    no_storage_caching: bool,
    /// Web pages that may call it, as origins or names; * for any.
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = parse_page,
          default_value = "*")]
    allow_origin: Vec<String>,
    /// The answer to web3_clientVersion [default: the node's own]. Hardhat's helpers take a chain
    /// for tests whose name begins with anvil or hardhat.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    client_version: Option<String>,
    /// Print nothing at the start but the address.
    #[arg(long, short = 'q')]
    quiet: bool,
}

/// When a fork is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForkTime {
    At(u64),
    After(u64),
}

fn parse_accounts(text: &str) -> Result<u32, String> {
    let expected = || "expected a number of accounts, from 0 to 1000".to_owned();
    text.parse().ok().filter(|accounts| *accounts <= 1000).ok_or_else(expected)
}

fn parse_balance(text: &str) -> Result<U256, String> {
    parse_ether(text).map_err(|_| "expected a number of ether, as 10000 or 0.5".into())
}

fn parse_block_time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().ok().map(Duration::from_secs);
    let duration = match parse_duration(text) {
        Ok(Threshold(duration)) => duration,
        Err(_) => seconds,
    };
    let expected = "expected the time between blocks, as 2s, 500ms or 12";
    duration.filter(|time| !time.is_zero()).ok_or_else(|| expected.into())
}

fn parse_fork(text: &str) -> Result<EthereumHardfork, String> {
    let expected = "expected paris, shanghai, cancun, prague, osaka or amsterdam";
    let fork = text.parse().ok().filter(|fork| *fork >= EthereumHardfork::Paris);
    fork.ok_or_else(|| expected.into())
}

fn parse_later(text: &str) -> Result<(EthereumHardfork, ForkTime), String> {
    let expected = || "expected a fork and its time, as amsterdam=+600".to_owned();
    let (fork, time) = text.split_once('=').ok_or_else(expected)?;
    let time = match time.strip_prefix('+') {
        Some(after) => after.parse().map(ForkTime::After),
        None => time.parse().map(ForkTime::At),
    };
    Ok((parse_fork(fork)?, time.map_err(|_| expected())?))
}

/// Runs a chain for tests until it is stopped.
pub(crate) fn run_dev(args: DevArgs) -> anyhow::Result<()> {
    let wallet = Wallet::from_mnemonic(&args.mnemonic, args.accounts).context("--mnemonic")?;
    let temporary = match args.datadir {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("no temporary directory")?),
    };
    let directory = args.datadir.as_deref().or_else(|| temporary.as_ref().map(|it| it.path()));
    let directory = directory.expect("one of them").to_owned();
    let options = dev_options(&args, wallet.clone(), directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut signals = StopSignals::new()?;
        let fork = options.dev.as_ref().and_then(|dev| dev.fork.clone());
        let node = Node::start(options).await?;
        if !args.quiet {
            print_accounts(&args, &wallet)?;
            match fork {
                Some(fork) => print_fork(&fork)?,
                None => print_chain(&args)?,
            }
        }
        say!("Listening on {}", node.http_addr);
        signals.next().await;
        let engine = node.engine().clone();
        node.stop().await;
        engine.persist()?;
        anyhow::Ok(())
    });
    runtime.shutdown_background();
    outcome
}

fn dev_options(args: &DevArgs, wallet: Wallet, directory: PathBuf) -> anyhow::Result<NodeOptions> {
    let is_begun = directory.join("chain").exists();
    let fork = args.fork_url.as_deref().map(|url| find_fork(args, url)).transpose()?;
    let genesis = match &fork {
        _ if is_begun => None,
        // Of a fork the header is another's.
        Some(_) => Some(alloy_genesis::Genesis::default()),
        None => Some(genesis(args, &wallet)?),
    };
    let mining = Mining {
        is_automatic: !args.no_mining && args.block_time.is_none(),
        interval: args.block_time,
    };
    let mut options = NodeOptions::new(alloy_genesis::Genesis::default(), directory);
    options.genesis = genesis;
    options.http = SocketAddr::new(args.host, args.port);
    options.http_origins = AllowedOrigins {
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
        options.calls.time = None;
    }
    let client_version = args.client_version.clone();
    let balance = args.balance.unwrap_or(BALANCE);
    let fork = fork.map(Arc::new);
    options.dev = Some(DevOptions { mining, wallet, client_version, fork, balance });
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
fn find_fork(args: &DevArgs, url: &str) -> anyhow::Result<ForkPoint> {
    let given = GivenRules {
        chain_id: args.chain_id,
        fork: args.hardfork,
        later: later_forks(args, now()),
    };
    let is_cached = !args.no_storage_caching;
    ForkPoint::find(url, args.fork_block_number, &given, is_cached).context("--fork-url")
}

fn genesis(args: &DevArgs, wallet: &Wallet) -> anyhow::Result<alloy_genesis::Genesis> {
    let timestamp = args.timestamp.unwrap_or_else(now);
    let hardfork = args.hardfork.unwrap_or(EthereumHardfork::Osaka);
    let mut genesis = DevGenesis {
        chain_id: args.chain_id.unwrap_or(CHAIN_ID),
        fork: hardfork,
        later: later_forks(args, timestamp),
        gas_limit: args.gas_limit.unwrap_or(GAS_LIMIT),
        base_fee: args.base_fee,
        timestamp,
        ..DevGenesis::default()
    };
    if let Some((fork, _)) = genesis.later.iter().find(|(fork, _)| *fork <= hardfork) {
        bail!("--fork-at {fork}: the first block has {hardfork} already");
    }
    for address in wallet.keys().iter().map(|(address, _)| *address) {
        genesis = genesis.rich(address, args.balance.unwrap_or(BALANCE));
    }
    Ok(genesis.build()?.file)
}

/// Prints the accounts as anvil does.
fn print_accounts(args: &DevArgs, wallet: &Wallet) -> anyhow::Result<()> {
    let balance = format_ether(args.balance.unwrap_or(BALANCE));
    say!("Deponent {}: a chain for tests\n", crate::console::VERSION);
    say!("Available Accounts\n==================\n");
    for (index, (address, _)) in wallet.keys().iter().enumerate() {
        say!("({index}) {address} ({balance} ETH)");
    }
    say!("\nPrivate Keys\n==================\n");
    for (index, (_, secret)) in wallet.keys().iter().enumerate() {
        say!("({index}) {secret}");
    }
    say!("\nWallet\n==================");
    say!("Mnemonic:          {}", args.mnemonic);
    say!("Derivation path:   {DERIVATION_PATH}\n");
    Ok(())
}

/// Prints with what a chain begins, as anvil does.
fn print_chain(args: &DevArgs) -> anyhow::Result<()> {
    say!("\nChain ID\n==================\n\n{}", args.chain_id.unwrap_or(CHAIN_ID));
    say!("\nBase Fee\n==================\n\n{}", args.base_fee);
    say!("\nGas Limit\n==================\n\n{}\n", args.gas_limit.unwrap_or(GAS_LIMIT));
    Ok(())
}

/// Prints the block of another chain with which this one begins, and its rules.
fn print_fork(fork: &ForkPoint) -> anyhow::Result<()> {
    let ForkPoint { endpoint, header, rules, .. } = fork;
    say!("Fork\n==================\n");
    say!("Endpoint:       {endpoint}");
    say!("Block number:   {}", header.number);
    say!("Block hash:     {}", header.hash_slow());
    say!("Timestamp:      {}", header.timestamp);
    say!("Chain ID:       {}", rules.config.chain_id);
    say!("Hardfork:       {}, by {}\n", rules.fork.to_string().to_lowercase(), rules.source);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_forks_are_read_as_they_are_written() {
        assert_eq!(parse_block_time("12"), Ok(Duration::from_secs(12)));
        assert_eq!(parse_block_time("500ms"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1s", "soon", ""] {
            assert!(parse_block_time(text).unwrap_err().contains("12"), "{text}");
        }
        let amsterdam = EthereumHardfork::Amsterdam;
        assert_eq!(parse_later("amsterdam=+600"), Ok((amsterdam, ForkTime::After(600))));
        assert_eq!(parse_later("amsterdam=9"), Ok((amsterdam, ForkTime::At(9))));
        for text in ["amsterdam", "london=1", "amsterdam=soon"] {
            parse_later(text).unwrap_err();
        }
        assert_eq!(parse_balance("0.5"), Ok(U256::from(5 * 10u128.pow(17))));
    }
}
