//! Everyday tools: transactions as they are sent, a pool's log, the methods of a chain for tests,
//! and the contract ABI as text.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, U256, keccak256};
use clap::Parser;
use deponent_node::{DevOptions, Node, NodeOptions, Wallet};
use dev::{DevGenesis, Mining};
use execution::recover_senders;
use pool::{Pool, Pooled, SenderState};
use state::{MemoryDisk, RecordLog};

use super::{IS_PATIENT, chain, pieces};

/// A bound on an answer; none takes as long on a healthy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The phrase of the accounts that tools know.
const PHRASE: &str = "test test test test test test test test test test test junk";

/// A transaction as it is sent, of which there is one way to write it.
pub fn raw_transaction(data: &[u8]) -> bool {
    let Ok(sent) = pool::decode(data) else { return false };
    // The hash of one with blobs is without them.
    if sent.sidecar.is_none() {
        assert_eq!(*sent.transaction.tx_hash(), keccak256(data));
    }
    // Signatures may be anything.
    let _ = recover_senders(std::slice::from_ref(&sent.transaction));
    true
}

/// The log of a pool, with the right checksums: each piece is a record.
pub fn pool_log(data: &[u8]) -> bool {
    let disk = MemoryDisk::new();
    let mut log = RecordLog::open(disk.clone(), |_| {}).expect("memory");
    for piece in pieces(data) {
        log.append(&piece).expect("memory");
    }
    drop(log);
    let head = Header { gas_limit: 36_000_000, base_fee_per_gas: Some(7), ..Header::default() };
    let balance = U256::from(10).pow(U256::from(18));
    let state = SenderState { balance, ..SenderState::default() };
    let anybody = Anybody(state);
    let open = || {
        let (options, senders) = (pool::Options::default(), Box::new(anybody));
        let pool = Pool::new(chain().clone(), options, senders, head.clone());
        let content = pool.with_log(disk.clone()).expect("memory").content();
        let hashes = |lists: BTreeMap<Address, Vec<Arc<Pooled>>>| -> Vec<_> {
            lists.into_values().flatten().map(|pooled| pooled.hash()).collect()
        };
        [hashes(content.pending), hashes(content.queued)]
    };
    let found = open();
    // It was written anew.
    assert_eq!(open(), found);
    found.iter().any(|hashes| !hashes.is_empty())
}

/// All accounts are the same.
#[derive(Clone, Copy, Debug)]
struct Anybody(SenderState);

impl pool::Senders for Anybody {
    fn sender(&self, _: B256, _: Address) -> Result<SenderState, String> {
        Ok(self.0)
    }
}

/// A message to a chain for tests: `eth`, `debug`, `txpool`, `evm`, `anvil` and the rest.
pub fn dev_port(data: &[u8]) -> bool {
    // The corpus is read by a chain that no other input has changed.
    static PORTS: [OnceLock<SocketAddr>; 2] = [const { OnceLock::new() }; 2];
    let port = &PORTS[usize::from(IS_PATIENT.load(Ordering::Relaxed))];
    let mut socket = TcpStream::connect(port.get_or_init(dev_chain)).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        data.len()
    );
    let mut answer = Vec::new();
    // It may have hung up.
    let _ = socket.write_all(&[head.as_bytes(), data].concat());
    if let Err(error) = socket.read_to_end(&mut answer) {
        let is_late = error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!is_late, "no answer in {PATIENCE:?} to {}", String::from_utf8_lossy(data));
    }
    let answer = String::from_utf8_lossy(&answer);
    // Within a string its quotes would be escaped.
    assert!(!answer.contains("\"code\":-32603"), "{answer}");
    answer.contains("\"result\":")
}

/// Starts a chain for tests, for as long as the process lasts.
fn dev_chain() -> SocketAddr {
    let wallet = Wallet::from_mnemonic(PHRASE, 2).expect("a phrase");
    let mut genesis = DevGenesis { timestamp: 1_700_000_000, ..DevGenesis::default() };
    for (address, _) in wallet.keys() {
        genesis = genesis.rich(*address, dev::limits::BALANCE);
    }
    let folder = tempfile::tempdir().expect("a directory");
    let file = genesis.build().expect("a genesis").file;
    let mut options = NodeOptions::new(file, folder.path().to_owned());
    options.txpool.pool.minimum_tip = 0;
    options.testing = true;
    let mining = Mining { is_automatic: true, interval: None };
    options.dev = Some(DevOptions { mining, wallet, ..DevOptions::default() });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let node = runtime.block_on(Node::start(options)).expect("it starts");
    let address = node.http_addr;
    // All of them last as long as the process.
    std::mem::forget((node, runtime, folder));
    address
}

/// The arguments of `deponent abi`, each a line.
pub fn abi_text(data: &[u8]) -> bool {
    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        abi: tools::AbiArgs,
    }
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(Cli { abi }) = Cli::try_parse_from(std::iter::once("abi").chain(text.lines())) else {
        return false;
    };
    match tools::run(&tools::Command::Abi(abi)) {
        Ok(output) => !output.text.is_empty(),
        Err(error) => {
            assert!(format!("{error:#}").len() < 10_000, "{error:#}");
            false
        }
    }
}
