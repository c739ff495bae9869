//! Transactions of all types, sent to a node so that each block that is built of its pool has some.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_consensus::{
    BlobTransactionSidecar, BlobTransactionSidecarEip7594, BlobTransactionSidecarVariant,
    EthereumTxEnvelope, SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip4844WithSidecar,
    TxEip7702, TxLegacy,
};
use alloy_eips::Encodable2718;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip4844::{Blob, Bytes48};
use alloy_eips::eip7594::CELLS_PER_EXT_BLOB;
use alloy_eips::eip7702::Authorization;
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U64, U256, bytes, keccak256};
use anyhow::Context;
use rpc::{Client, ClientError};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::chain::{CHAIN_ID, DEPOSITS};
use super::deposit;

/// Accounts that send to one node, each transactions of another kind.
const SENDERS: u64 = 8;
/// The account that sends blobs.
const BLOBS: u64 = 5;
/// The account that makes a deposit, once.
const DEPOSITOR: u64 = SENDERS;
/// Nodes that are sent to, each by accounts of its own.
const NODES: u64 = 2;
/// Between two looks at the pool.
const PAUSE: Duration = Duration::from_millis(300);
/// The time in which a node answers.
const PATIENCE: Duration = Duration::from_secs(5);
const GWEI: u128 = 1_000_000_000;
/// A contract that counts its calls in slot 0, and logs the count.
const COUNTER: Address = Address::repeat_byte(0xc7);
const COUNTER_CODE: Bytes = bytes!("5f546001018060005560005260205fa0");
/// Deploys a contract of one byte, `STOP`.
const DEPLOY: Bytes = bytes!("600160005360016000f3");

/// Gives the accounts that send money, and adds the contract that they call.
pub(crate) fn fund(genesis: &mut Genesis) -> anyhow::Result<()> {
    for node in 0..NODES {
        for index in 0..=DEPOSITOR {
            let rich = GenesisAccount::default().with_balance(U256::from(10).pow(U256::from(24)));
            genesis.alloc.insert(Account::new(node, index)?.address, rich);
        }
    }
    let contract = GenesisAccount { code: Some(COUNTER_CODE), ..GenesisAccount::default() };
    genesis.alloc.insert(COUNTER, contract);
    Ok(())
}

/// The transactions that a node took, and those that it refused.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    /// The words of refusals, and how often each came.
    pub(crate) refused: BTreeMap<String, u64>,
}

/// Sends to one node until it is dropped.
#[derive(Debug)]
pub(crate) struct Traffic {
    tally: Arc<Mutex<Tally>>,
    has_blobs: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Traffic {
    /// Keeps transactions in the pool of the node at `address`, the one with this number. Blobs
    /// have cell proofs from `osaka_time` on. The first node is sent a deposit too.
    pub(crate) fn start(node: u64, address: String, osaka_time: u64) -> anyhow::Result<Self> {
        let senders: anyhow::Result<Vec<_>> =
            (0..SENDERS).map(|index| Account::new(node, index)).collect();
        let depositor = (node == 0).then(|| Account::new(node, DEPOSITOR)).transpose()?;
        let tally = Arc::<Mutex<Tally>>::default();
        let has_blobs = Arc::new(AtomicBool::new(true));
        let mut sender = Sender {
            address,
            osaka_time,
            senders: senders?,
            depositor,
            has_blobs: Arc::clone(&has_blobs),
            tally: Arc::clone(&tally),
        };
        let task = tokio::spawn(async move {
            loop {
                // A node that is down is sent to again when it is back.
                sender.fill().await.ok();
                tokio::time::sleep(PAUSE).await;
            }
        });
        Ok(Self { tally, has_blobs, task })
    }

    /// Whether blobs are sent from now on.
    pub(crate) fn send_blobs(&self, are_sent: bool) {
        self.has_blobs.store(are_sent, Ordering::Relaxed);
    }

    pub(crate) fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().expect("nobody panics with the lock")
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
struct Sender {
    address: String,
    osaka_time: u64,
    senders: Vec<Account>,
    /// Until it has sent its deposit.
    depositor: Option<Account>,
    has_blobs: Arc<AtomicBool>,
    tally: Arc<Mutex<Tally>>,
}

impl Sender {
    /// Has each account send a transaction that has none waiting, unless one of each waits.
    async fn fill(&mut self) -> Result<(), ClientError> {
        let mut client = Client::connect(&self.address, None).await?;
        client.set_timeout(PATIENCE);
        let status: Value = client.call("txpool_status", json!([])).await?;
        let waiting: U64 = serde_json::from_value(status["pending"].clone()).unwrap_or_default();
        if waiting >= U64::from(SENDERS) {
            return Ok(());
        }
        let head: Value = client.call("eth_getBlockByNumber", json!(["latest", false])).await?;
        let time: U64 = serde_json::from_value(head["timestamp"].clone()).unwrap_or_default();
        let has_blobs = self.has_blobs.load(Ordering::Relaxed);
        for account in self.senders.iter().filter(|account| has_blobs || account.index != BLOBS) {
            let mut nonce_at = async |block: &str| {
                let params = json!([account.address, block]);
                client.call::<U64>("eth_getTransactionCount", params).await
            };
            let nonce = nonce_at("pending").await?;
            if nonce > nonce_at("latest").await? {
                continue;
            }
            let raw = account.transaction(nonce.to(), time.to::<u64>() >= self.osaka_time);
            self.send(&mut client, &raw).await?;
        }
        if let Some(account) = &self.depositor {
            self.send(&mut client, &account.deposit()).await?;
            self.depositor = None;
        }
        Ok(())
    }

    /// Sends a transaction, and notes the answer.
    async fn send(&self, client: &mut Client, raw: &Bytes) -> Result<(), ClientError> {
        let answer = client.call::<B256>("eth_sendRawTransaction", json!([raw])).await;
        let mut tally = self.tally.lock().expect("nobody panics with the lock");
        match answer {
            Ok(_) => tally.sent += 1,
            Err(ClientError::Rpc(error)) => {
                *tally.refused.entry(error.message.to_string()).or_default() += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// An account that sends transactions of one kind.
#[derive(Debug)]
struct Account {
    index: u64,
    key: B256,
    address: Address,
}

impl Account {
    fn new(node: u64, index: u64) -> anyhow::Result<Self> {
        let key = keccak256(format!("deponent devnet {node} {index}"));
        let address = sign_message(key, key)?
            .recover_address_from_prehash(&key)
            .context("a signature has a signer")?;
        Ok(Self { index, key, address })
    }

    fn sign(&self, hash: B256) -> Signature {
        sign_message(self.key, hash).expect("the key signed before")
    }

    /// The transaction with a nonce, as it is sent.
    fn transaction(&self, nonce: u64, with_cells: bool) -> Bytes {
        let plain = |to, input, gas_limit| TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit,
            max_fee_per_gas: 100 * GWEI,
            max_priority_fee_per_gas: GWEI,
            to,
            value: U256::from(nonce),
            input,
            ..TxEip1559::default()
        };
        let call = TxKind::Call(COUNTER);
        let transfer = TxKind::Call(Address::with_last_byte(0xbb));
        match self.index {
            0 => self.legacy(nonce, transfer),
            1 => self.with_access_list(nonce, call),
            2 => self.envelope(plain(transfer, Bytes::new(), 21_000)),
            3 => {
                self.envelope(TxEip1559 { value: U256::ZERO, ..plain(call, Bytes::new(), 90_000) })
            }
            4 => self.envelope(TxEip1559 {
                value: U256::ZERO,
                ..plain(TxKind::Create, DEPLOY, 200_000)
            }),
            BLOBS => self.with_blob(nonce, with_cells),
            6 => self.delegation(nonce),
            _ => self.envelope(plain(transfer, vec![0xda; 4096].into(), 300_000)),
        }
    }

    /// The first transaction of the account that makes a deposit.
    fn deposit(&self) -> Bytes {
        self.envelope(TxEip1559 {
            chain_id: CHAIN_ID,
            gas_limit: 300_000,
            max_fee_per_gas: 100 * GWEI,
            max_priority_fee_per_gas: GWEI,
            to: TxKind::Call(DEPOSITS),
            value: deposit::value(),
            input: deposit::call(),
            ..TxEip1559::default()
        })
    }

    fn envelope(&self, tx: TxEip1559) -> Bytes {
        let signature = self.sign(tx.signature_hash());
        EthereumTxEnvelope::<TxEip4844>::from(tx.into_signed(signature)).encoded_2718().into()
    }

    fn legacy(&self, nonce: u64, to: TxKind) -> Bytes {
        let chain_id = Some(CHAIN_ID);
        let gas_price = 100 * GWEI;
        let tx =
            TxLegacy { chain_id, nonce, gas_price, gas_limit: 21_000, to, ..Default::default() };
        let signature = self.sign(tx.signature_hash());
        EthereumTxEnvelope::<TxEip4844>::from(tx.into_signed(signature)).encoded_2718().into()
    }

    fn with_access_list(&self, nonce: u64, to: TxKind) -> Bytes {
        let item = AccessListItem { address: COUNTER, storage_keys: vec![B256::ZERO] };
        let tx = TxEip2930 {
            chain_id: CHAIN_ID,
            nonce,
            gas_price: 100 * GWEI,
            gas_limit: 90_000,
            to,
            access_list: AccessList(vec![item]),
            ..TxEip2930::default()
        };
        let signature = self.sign(tx.signature_hash());
        EthereumTxEnvelope::<TxEip4844>::from(tx.into_signed(signature)).encoded_2718().into()
    }

    /// Delegates the account to the contract, and calls itself.
    fn delegation(&self, nonce: u64) -> Bytes {
        let authorization =
            Authorization { chain_id: U256::from(CHAIN_ID), address: COUNTER, nonce: nonce + 1 };
        let signature = self.sign(authorization.signature_hash());
        let tx = TxEip7702 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: 200_000,
            max_fee_per_gas: 100 * GWEI,
            max_priority_fee_per_gas: GWEI,
            to: self.address,
            authorization_list: vec![authorization.into_signed(signature)],
            ..TxEip7702::default()
        };
        let signature = self.sign(tx.signature_hash());
        EthereumTxEnvelope::<TxEip4844>::from(tx.into_signed(signature)).encoded_2718().into()
    }

    /// A blob of zeros, whose commitment and proofs are the point at infinity.
    fn with_blob(&self, nonce: u64, with_cells: bool) -> Bytes {
        let mut point = Bytes48::default();
        point[0] = 0xc0;
        let (blobs, commitments) = (vec![Blob::ZERO], vec![point]);
        let sidecar: BlobTransactionSidecarVariant = if with_cells {
            let cell_proofs = vec![point; CELLS_PER_EXT_BLOB];
            BlobTransactionSidecarEip7594 { blobs, commitments, cell_proofs }.into()
        } else {
            BlobTransactionSidecar { blobs, commitments, proofs: vec![point] }.into()
        };
        let tx = TxEip4844 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: 21_000,
            max_fee_per_gas: 100 * GWEI,
            max_priority_fee_per_gas: GWEI,
            to: Address::with_last_byte(0xbc),
            max_fee_per_blob_gas: 100 * GWEI,
            blob_versioned_hashes: sidecar.versioned_hashes().collect(),
            ..TxEip4844::default()
        };
        let tx = TxEip4844WithSidecar { tx, sidecar };
        let signature = self.sign(tx.signature_hash());
        let tx = tx.into_signed(signature);
        EthereumTxEnvelope::<TxEip4844WithSidecar>::Eip4844(tx).encoded_2718().into()
    }
}
