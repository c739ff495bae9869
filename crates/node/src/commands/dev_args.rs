//! The arguments of `deponent dev`: most are named as anvil names them.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy_hardforks::EthereumHardfork;
use alloy_primitives::U256;
use alloy_primitives::utils::parse_ether;
use anyhow::bail;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::foreign_flags::IdleFlags;
use super::rpc_args::{Bound, parse_time};
use crate::dev::{DERIVATION_PATH, MNEMONIC};
use crate::flags::values::{
    LOCALHOST, Threshold, count, parse_duration, parse_ip, parse_page, parse_port,
};

/// The arguments of `deponent dev`.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// The port of JSON-RPC over HTTP and WebSocket; 0 takes any free one.
    #[arg(long, short = 'p', value_name = "PORT", value_parser = parse_port,
          default_value_t = 8545)]
    pub(super) port: u16,
    /// The address on which it listens.
    #[arg(long, value_name = "IP", value_parser = parse_ip, default_value_t = LOCALHOST)]
    pub(super) host: IpAddr,
    /// A Unix socket that has the same methods, and those of the Engine API [default: none; without
    /// a path /tmp/anvil.ipc].
    #[arg(long, alias = "ipcpath", value_name = "PATH", num_args = 0..=1,
          default_missing_value = "/tmp/anvil.ipc")]
    pub(super) ipc: Option<PathBuf>,
    /// Web pages that may call it, as origins or names; * for any.
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = parse_page,
          default_value = "*")]
    pub(super) allow_origin: Vec<String>,
    /// The answer to web3_clientVersion [default: the node's own]. Hardhat's helpers take a chain
    /// for tests whose name begins with anvil or hardhat.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) client_version: Option<String>,
    /// Write accounts, keys and what the chain begins with to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(super) config_out: Option<PathBuf>,
    /// Print nothing but the address: neither accounts nor, later, blocks, transactions and what
    /// contracts say by console.log.
    #[arg(long, short = 'q', alias = "silent")]
    pub(super) quiet: bool,
    /// The number of accounts.
    #[arg(long, short = 'a', value_name = "ACCOUNTS", default_value_t = 10,
          value_parser = parse_accounts, help_heading = "Accounts")]
    pub(super) accounts: u32,
    /// The balance of each account, in ether [default: 10000].
    #[arg(long, value_name = "ETHER", value_parser = parse_balance, help_heading = "Accounts")]
    pub(super) balance: Option<U256>,
    /// The phrase of BIP-39 from which the accounts are derived.
    #[arg(long, short = 'm', value_name = "PHRASE", default_value = MNEMONIC,
          help_heading = "Accounts")]
    pub(super) mnemonic: String,
    /// The path of the accounts, which their number follows (BIP-44).
    #[arg(long, value_name = "PATH", value_parser = parse_path, default_value = DERIVATION_PATH,
          help_heading = "Accounts")]
    pub(super) derivation_path: String,
    /// Let every account send transactions without a signature.
    #[arg(long, alias = "auto-unlock", help_heading = "Accounts")]
    pub(super) auto_impersonate: bool,
    /// Mine a block after each such time, as 2s or 500ms, instead of one for each transaction.
    #[arg(long, short = 'b', alias = "blockTime", value_name = "TIME",
          value_parser = parse_block_time, help_heading = "Mining")]
    pub(super) block_time: Option<Duration>,
    /// Mine a block for each transaction too, beside those of --block-time.
    #[arg(long, requires = "block_time", help_heading = "Mining")]
    pub(super) mixed_mining: bool,
    /// Mine no block unless evm_mine or anvil_mine asks for it.
    #[arg(long, alias = "no-mine", conflicts_with = "block_time", help_heading = "Mining")]
    pub(super) no_mining: bool,
    /// The fork of the first block: paris, shanghai, cancun, prague, osaka or amsterdam
    /// [default: osaka; with --fork-url that of its block].
    #[arg(long, value_name = "FORK", value_parser = parse_fork, help_heading = "Chain")]
    pub(super) hardfork: Option<EthereumHardfork>,
    /// A later fork and its time, in seconds since 1970 or from the start on: amsterdam=+600.
    #[arg(long = "fork-at", value_name = "FORK=TIME", value_parser = parse_later,
          help_heading = "Chain")]
    pub(super) fork_at: Vec<(EthereumHardfork, ForkTime)>,
    /// The chain's identifier [default: 31337; with --fork-url the endpoint's].
    #[arg(long, alias = "chainId", value_name = "ID", value_parser = parse_chain_id,
          help_heading = "Chain")]
    pub(super) chain_id: Option<u64>,
    /// The gas limit of blocks [default: 30000000; with --fork-url that of its block].
    #[arg(long, value_name = "GAS", value_parser = count::<u64>, help_heading = "Chain")]
    pub(super) gas_limit: Option<u64>,
    /// The base fee of the first block, in wei [default: 1000000000].
    #[arg(long, alias = "block-base-fee-per-gas", value_name = "WEI", value_parser = count::<u64>,
          help_heading = "Chain")]
    pub(super) base_fee: Option<u64>,
    /// The time of the first block, in seconds since 1970 [default: now].
    #[arg(long, value_name = "TIME", value_parser = count::<u64>, help_heading = "Chain")]
    pub(super) timestamp: Option<u64>,
    /// Begin with the accounts of this genesis file, and with its identifier, time, gas limit and
    /// base fee where no flag says another. Its forks are left out: --hardfork names one.
    #[arg(long, value_name = "FILE", help_heading = "Chain")]
    pub(super) init: Option<PathBuf>,
    /// Keep the chain in this directory, and go on with it the next time [default: a directory that
    /// is removed at the end].
    #[arg(long, value_name = "DIR", help_heading = "Chain")]
    pub(super) datadir: Option<PathBuf>,
    /// Set the accounts of this file at the start, if it is there, and write all accounts to it at
    /// the end: JSON, as anvil has it, of accounts alone. --datadir keeps blocks, too.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load_state", "dump_state"],
          help_heading = "Chain")]
    pub(super) state: Option<PathBuf>,
    /// Set the accounts of such a file at the start.
    #[arg(long, value_name = "FILE", help_heading = "Chain")]
    pub(super) load_state: Option<PathBuf>,
    /// Write all accounts to such a file at the end; to state.json in it, if it is a directory.
    #[arg(long, value_name = "FILE", help_heading = "Chain")]
    pub(super) dump_state: Option<PathBuf>,
    /// Begin with a block of another chain, whose state is read from this endpoint of JSON-RPC and
    /// checked: http://HOST:PORT/PATH, https, ws or wss, or the path of a Unix socket. @N behind it
    /// is the number of the block.
    #[arg(long, short = 'f', alias = "rpc-url", value_name = "URL",
          conflicts_with_all = ["datadir", "timestamp", "base_fee", "dump_state", "state", "init"],
          help_heading = "Another chain")]
    pub(super) fork_url: Option<String>,
    /// The number of that block; one below 0 counts back from the endpoint's head
    /// [default: the endpoint's head].
    #[arg(long, value_name = "N", value_parser = parse_fork_block, requires = "fork_url",
          help_heading = "Another chain")]
    pub(super) fork_block_number: Option<i64>,
    /// How long one answer may run calls, and wait for the endpoint of a fork in all; 0 is no bound
    /// [default: 5s; with --fork-url 30s].
    #[arg(long = "rpc.evmtimeout", value_name = "DURATION", value_parser = parse_time,
          help_heading = "Another chain")]
    pub(super) evm_timeout: Option<Bound>,
    /// Keep nothing of the state at the endpoint on disk.
    #[arg(long, requires = "fork_url", help_heading = "Another chain")]
    pub(super) no_storage_caching: bool,
    #[command(flatten)]
    pub(super) idle: IdleFlags,
}

impl DevArgs {
    /// The file whose accounts are set at the start, and whether it may be absent.
    pub(super) fn state_to_load(&self) -> Option<(&Path, bool)> {
        let is_absent_at_first = self.state.as_deref().map(|file| (file, true));
        is_absent_at_first.or_else(|| Some((self.load_state.as_deref()?, false)))
    }

    /// The file to which all accounts are written at the end.
    pub(super) fn state_to_dump(&self) -> Option<PathBuf> {
        let file = self.state.as_ref().or(self.dump_state.as_ref())?;
        Some(if file.is_dir() { file.join("state.json") } else { file.clone() })
    }

    /// The endpoint of another chain, and the number of its block.
    ///
    /// # Errors
    /// If there are two numbers.
    pub(super) fn fork(&self) -> anyhow::Result<Option<(&str, Option<i64>)>> {
        let Some(url) = self.fork_url.as_deref() else { return Ok(None) };
        let number = |(url, number): (&'_ str, &str)| {
            let is_number =
                !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
            // Before the name of a host there is a user.
            let is_behind =
                url.split_once("://").is_none_or(|(_, host)| host.contains([':', '/', '.']));
            if is_number && is_behind { number.parse::<i64>().ok() } else { None }
        };
        let split = url.rsplit_once('@');
        match (split.and_then(number), self.fork_block_number) {
            (Some(_), Some(_)) => {
                bail!("--fork-url names a block behind @, and --fork-block-number another one")
            }
            (Some(number), None) => Ok(split.map(|(url, _)| (url, Some(number)))),
            (None, number) => Ok(Some((url, number))),
        }
    }
}

/// When a fork is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForkTime {
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

/// An identifier, in decimal or in hex.
fn parse_chain_id(text: &str) -> Result<u64, String> {
    let id = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let expected = "expected a number from 1 to 2^64-1, as 31337 or 0x7a69";
    id.filter(|id| *id > 0).ok_or_else(|| expected.into())
}

fn parse_fork_block(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        "expected the number of a block, or one below 0 that counts back from the head".to_owned()
    })
}

/// The path of accounts, with a slash at its end.
fn parse_path(text: &str) -> Result<String, String> {
    let path = format!("{}/", text.trim_end_matches('/'));
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let is_number = |part: &&str| {
        part.trim_end_matches(['\'', 'h']).parse::<u32>().is_ok_and(|number| number < 1 << 31)
    };
    let is_path = parts[0] == "m" && parts[1..].iter().all(is_number);
    let expected = "expected a path of BIP-32, as m/44'/60'/0'/0/";
    is_path.then_some(path).ok_or_else(|| expected.into())
}

fn parse_block_time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
    let duration = match parse_duration(text) {
        Ok(Threshold(duration)) => duration,
        Err(_) => seconds,
    };
    let expected = "expected the time between blocks, as 2s, 500ms or 12";
    duration.filter(|time| !time.is_zero()).ok_or_else(|| expected.into())
}

fn parse_fork(text: &str) -> Result<EthereumHardfork, String> {
    let expected = "expected paris, shanghai, cancun, prague, osaka or amsterdam, or latest for \
                    osaka; forks before the merge are not there";
    if text == "latest" {
        return Ok(EthereumHardfork::Osaka);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_forks_are_read_as_they_are_written() {
        assert_eq!(parse_block_time("12"), Ok(Duration::from_secs(12)));
        assert_eq!(parse_block_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_block_time("2.5"), Ok(Duration::from_millis(2500)));
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
        assert_eq!(parse_fork("latest"), Ok(EthereumHardfork::Osaka));
        assert_eq!((parse_chain_id("0x7a69"), parse_chain_id("5")), (Ok(31337), Ok(5)));
        for text in ["0", "0x", "-1", "mainnet"] {
            assert!(parse_chain_id(text).unwrap_err().contains("31337"), "{text}");
        }
        assert_eq!(parse_fork_block("-5"), Ok(-5));
        assert_eq!(parse_path("m/44'/60'/1'/0"), Ok("m/44'/60'/1'/0/".into()));
        for text in ["", "44'/60'", "m/x"] {
            assert!(parse_path(text).unwrap_err().contains("BIP-32"), "{text}");
        }
    }
}
