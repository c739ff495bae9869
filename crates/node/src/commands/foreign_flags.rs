//! Flags and commands of other programs: those that need no effect here, and what stands in the
//! place of others.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// Whether a flag has a value.
#[derive(Debug, Clone, Copy)]
enum Takes {
    Nothing,
    Value,
    Perhaps,
}

/// A flag that is accepted, so that scripts start, and has no effect.
struct Idle {
    name: &'static str,
    aliases: &'static [&'static str],
    short: Option<char>,
    takes: Takes,
}

const fn idle(name: &'static str, takes: Takes) -> Idle {
    Idle { name, aliases: &[], short: None, takes }
}

/// Flags of anvil for what is always so here, or for bounds that are not needed.
const IDLE: [Idle; 17] = [
    Idle { aliases: &["tracing"], ..idle("steps-tracing", Takes::Nothing) },
    Idle { aliases: &["no-rpc-rate-limit"], ..idle("no-rate-limit", Takes::Nothing) },
    Idle { aliases: &["no-priority-fee"], ..idle("disable-min-priority-fee", Takes::Nothing) },
    Idle { aliases: &["tx-gas-limit"], ..idle("enable-tx-gas-limit", Takes::Nothing) },
    idle("no-request-size-limit", Takes::Nothing),
    Idle { aliases: &["jobs"], short: Some('j'), ..idle("threads", Takes::Value) },
    Idle { short: Some('v'), ..idle("verbosity", Takes::Nothing) },
    idle("max-persisted-states", Takes::Value),
    idle("prune-history", Takes::Perhaps),
    idle("transaction-block-keeper", Takes::Value),
    idle("compute-units-per-second", Takes::Value),
    idle("retries", Takes::Value),
    idle("timeout", Takes::Value),
    idle("fork-retry-backoff", Takes::Value),
    idle("memory-limit", Takes::Value),
    idle("cache-path", Takes::Value),
    idle("color", Takes::Value),
];

/// The flags of [`IDLE`] that are given.
#[derive(Debug, Default)]
pub(crate) struct IdleFlags {
    pub(super) given: Vec<&'static str>,
}

impl Args for IdleFlags {
    fn augment_args(command: Command) -> Command {
        IDLE.iter().fold(command, |command, flag| {
            let arg = Arg::new(flag.name).long(flag.name).aliases(flag.aliases).hide(true);
            let arg = match flag.takes {
                Takes::Nothing => arg.action(ArgAction::Count),
                Takes::Value => arg.value_name("VALUE"),
                Takes::Perhaps => arg.value_name("VALUE").num_args(0..=1),
            };
            command.arg(match flag.short {
                Some(short) => arg.short(short),
                None => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for IdleFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        let names = IDLE.iter().map(|flag| flag.name);
        Ok(Self { given: names.filter(|name| is_given(name)).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Flags of other programs, with the words about what does here what they do there: the command,
/// the flags, the words.
const INSTEAD: &[(&str, &[&str], &str)] = &[
    (
        "dev",
        &["--genesis", "--chain"],
        "--init FILE takes accounts from a genesis file; deponent node --chain FILE runs its chain",
    ),
    ("dev", &["--number"], "the first block has number 0, or with --fork-url that of its block"),
    ("dev", &["--order"], "transactions are mined by their tips, a sender's by nonce"),
    ("dev", &["--gas-price"], "--base-fee is the base fee of the first block; no tip is too low"),
    (
        "dev",
        &["--code-size-limit", "--disable-code-size-limit"],
        "codes have at most 24576 bytes, as on mainnet (EIP-170)",
    ),
    ("dev", &["--disable-block-gas-limit"], "--gas-limit raises it"),
    (
        "dev",
        &["--disable-pool-balance-checks"],
        "who sends must be able to pay: anvil_setBalance gives ether",
    ),
    ("dev", &["--mnemonic-random", "--mnemonic-seed-unsafe"], "--mnemonic takes a phrase"),
    (
        "dev",
        &["--state-interval", "-s"],
        "--state writes at the end, and anvil_dumpState answers at any time",
    ),
    ("dev", &["--preserve-historical-states"], "--datadir keeps blocks and their states"),
    ("dev", &["--max-transactions"], "--gas-limit bounds a block"),
    ("dev", &["--slots-in-an-epoch"], "an epoch has 32 slots"),
    ("dev", &["--fork-chain-id"], "--chain-id names another identifier than the endpoint's"),
    ("dev", &["--fork-header"], "what the endpoint asks for must be in its URL"),
    (
        "dev",
        &["--fork-transaction-hash"],
        "a chain begins with a whole block: --fork-block-number names it",
    ),
    ("dev", &["--fork"], "--fork-url names the endpoint"),
    (
        "dev",
        &["--print-traces", "--enable-trace-printing"],
        "debug_traceTransaction has traces, and deponent call --trace prints them",
    ),
    ("dev", &["--disable-console-log", "--no-console-log"], "--quiet prints nothing"),
    ("dev", &["--no-cors"], "--allow-origin names the web pages that may call it"),
    ("dev", &["--json", "--md"], "--log.format json is the form of the log"),
    (
        "dev",
        &["--celo", "--optimism", "--network", "-n"],
        "the rules are those of Ethereum; --hardfork names the fork",
    ),
    (
        "dev",
        &["--disable-default-create2-deployer", "--no-create2"],
        "the deployer is there; anvil_setCode takes its code away",
    ),
    ("dev", &["--hostname", "--http.addr", "--ws.addr"], "--host names the address"),
    ("dev", &["--http.port", "--ws.port"], "--port names the port of both"),
    ("dev", &["--http", "--ws", "--http.api", "--ws.api"], "all methods are on --port, over both"),
    ("dev", &["--http.corsdomain", "--ws.origins"], "--allow-origin names web pages"),
    ("dev", &["--evm-version"], "--hardfork names the fork"),
    ("node", &["--dev", "--dev.period"], "deponent dev runs a chain for tests"),
    (
        "node",
        &["--mainnet", "--sepolia", "--holesky", "--hoodi"],
        "--chain FILE names the genesis file, which geth dumpgenesis writes",
    ),
    ("node", &["--jwt-secret"], "--authrpc.jwtsecret FILE has the secret of the Engine API"),
    (
        "node",
        &["--rpc"],
        "--follow URL names where missing blocks come from; deponent follow --rpc URL follows a \
         head without a consensus client",
    ),
    ("follow", &["--jwt-secret"], "--authrpc.jwtsecret FILE has the secret of the Engine API"),
    ("node", &["--miner.gaslimit"], "--builder.gas-limit is the gas limit of blocks"),
    ("node", &["--miner.extradata"], "--builder.extra-data is put into blocks"),
    ("node", &["--miner.gasprice"], "--txpool.pricelimit is the least tip"),
    (
        "node",
        &["--mine", "--miner.etherbase", "--miner.pending.feeRecipient", "--miner.recommit"],
        "the consensus client asks for blocks, and names the recipient of their fees",
    ),
    ("node", &["--cache", "--cache.database", "--cache.trie"], "--memory bounds all memory"),
    ("node", &["--gcmode"], "--history.retain-blocks says how many states are kept"),
    ("node", &["--verbosity", "--vmodule"], "--log.level is the level of the log"),
    (
        "node",
        &["--txpool.journal", "--txpool.rejournal", "--txpool.nolocals", "--txpool.locals"],
        "the pool is kept in DIR/pool, and knows no local senders",
    ),
    (
        "node",
        &["--txpool.globalqueue"],
        "--txpool.globalslots bounds the transactions of all senders",
    ),
    ("node", &["--blobpool.datadir"], "the pool is kept in DIR/pool"),
    (
        "node",
        &["--unlock", "--password", "--keystore", "--allow-insecure-unlock"],
        "a node holds no keys: deponent send signs",
    ),
    ("node", &["--state.scheme", "--db.engine"], "there is one kind of database"),
    ("node", &["--http.rpcprefix", "--ws.rpcprefix"], "JSON-RPC is at the path /"),
    (
        "send",
        &["--account", "--ledger", "--trezor", "--aws", "--mnemonic", "--interactive", "-i"],
        "--keystore FILE, DEPONENT_PRIVATE_KEY or --private-key has the key, and --unlocked lets \
         the endpoint sign",
    ),
    ("send", &["--password"], "--password-file FILE has the password of the keystore"),
    ("send", &["--confirmations"], "the receipt is printed once a block has the transaction"),
    ("send", &["--chain", "--chain-id"], "the endpoint says which chain it has"),
    ("send", &["--data"], "data stand behind the address: deponent send 0x12.. 0x1234"),
    ("call", &["--data"], "data stand behind the address: deponent call 0x12.. 0x1234"),
];

/// Commands of other programs, with those that do the same here.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["anvil", "hardhat"], "deponent dev runs a chain for tests"),
    (&["cast"], "its commands are those of deponent: call, send, block, logs, rpc, .."),
    (&["block-number", "bn"], "deponent block -f number"),
    (&["chain-id"], "deponent chain chainId"),
    (&["client"], "deponent chain client"),
    (&["base-fee"], "deponent block -f baseFeePerGas"),
    (&["age"], "deponent block -f timestamp"),
    (&["sig"], "deponent abi selector 'f(uint256)'"),
    (&["sig-event"], "deponent abi event 'Sent(address indexed,uint256)'"),
    (&["calldata"], "deponent abi calldata 'f(uint256)' 7"),
    (&["abi-encode"], "deponent abi encode 'f(uint256)' 7"),
    (&["abi-decode", "decode-abi", "4byte-decode"], "deponent abi decode 'f()(uint256)' 0x.."),
    (&["decode-error"], "deponent abi error 0x.."),
    (
        &["decode-event"],
        "deponent abi event 'Sent(address indexed,uint256)' --topic .. --data 0x..",
    ),
    (&["proof"], "deponent storage 0x12.. 0 --proof"),
    (&["publish"], "deponent rpc eth_sendRawTransaction 0x.."),
    (&["run"], "deponent rpc debug_traceTransaction 0x.., or deponent call --trace"),
    (&["access-list"], "deponent send --access-list auto, or deponent rpc eth_createAccessList"),
    (&["tx-pool"], "deponent rpc txpool_status"),
    (&["wallet", "account"], "keystores of geth and of Foundry are taken by deponent send"),
    (&["attach", "console"], "deponent rpc METHOD calls any method"),
    (&["dumpgenesis"], "geth dumpgenesis writes the genesis of a public network"),
    (&["version"], "deponent --version"),
    (&["snapshot", "dump"], "geth snapshot dump makes one, and deponent init --state reads it"),
    (&["removedb"], "deponent db unwind drops blocks; a data directory may be deleted"),
];

/// The fault of a command line, with what stands here in the place of a flag or a command of
/// another program, where it has one.
pub(crate) fn with_words(fault: Error, command: Option<&str>) -> Error {
    let said = |kind| match fault.get(kind) {
        Some(ContextValue::String(said)) => Some(said.split('=').next().unwrap_or(said)),
        _ => None,
    };
    let instead = match fault.kind() {
        ErrorKind::UnknownArgument => said(ContextKind::InvalidArg).and_then(|flag| {
            let of = |(of, flags, _): &&(&str, &[&str], &str)| {
                Some(*of) == command && flags.contains(&flag)
            };
            let (_, _, words) = INSTEAD.iter().find(of)?;
            Some(format!("there is no {flag} here: {words}"))
        }),
        ErrorKind::InvalidSubcommand => said(ContextKind::InvalidSubcommand).and_then(|name| {
            let (_, words) = COMMANDS.iter().find(|(names, _)| names.contains(&name))?;
            Some(format!("there is no command {name} here: {words}"))
        }),
        _ => None,
    };
    match instead {
        Some(words) => {
            let text = format!("{words}\n\nFor more information, try '--help'.\n");
            Error::raw(fault.kind(), text)
        }
        None => fault,
    }
}
