//! Random transactions, sent to both pools over IPC: geth and we take and refuse the same, for the
//! same reasons, and have the same ones pending and queued.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::geth::LOGGERS;
use crate::geth_estimates::answer;
use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_consensus::{
    EthereumTxEnvelope, SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip4844WithSidecar,
    TxEip7702, TxLegacy,
};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip4844::{Blob, Bytes48, kzg_to_versioned_hash};
use alloy_eips::eip7594::{BlobTransactionSidecarEip7594, CELLS_PER_EXT_BLOB};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, bytes, hex, keccak256};
use rpc::SessionClient;
use serde_json::{Value, json};
use testing::Random;

/// Accounts that send. The first ones send blobs alone, the next ones have delegated.
const SENDERS: usize = 24;
const BLOB_SENDERS: usize = 3;
const DELEGATED: usize = 6;

/// A time in which a pool has looked at what it was sent, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(30);

fn key(index: usize) -> B256 {
    keccak256(format!("pool {index}"))
}

fn address(index: usize) -> Address {
    let key = key(index);
    let signature = sign_message(key, key).expect("a key");
    signature.recover_address_from_prehash(&key).expect("its signature")
}

/// Gives the senders money, and some of them a delegation.
pub(crate) fn fund(genesis: &mut Genesis) {
    for index in 0..SENDERS {
        let delegated = (BLOB_SENDERS..DELEGATED).contains(&index);
        let delegation = [&hex!("ef0100")[..], LOGGERS[0].as_slice()].concat();
        let account = GenesisAccount {
            code: delegated.then(|| delegation.into()),
            ..GenesisAccount::default().with_balance(U256::from(10).pow(U256::from(18)))
        };
        genesis.alloc.insert(address(index), account);
    }
}

/// Both pools, and what is known of the senders.
pub(crate) struct Pools<'a> {
    pub(crate) sessions: &'a [SessionClient; 2],
    pub(crate) chain_id: u64,
    /// The next nonce of each sender, with its transactions in the pool.
    next: Vec<u64>,
    pub(crate) differ: Vec<String>,
    /// How often an answer was a hash, and each other one.
    pub(crate) answers: BTreeMap<String, usize>,
}

impl<'a> Pools<'a> {
    pub(crate) fn new(sessions: &'a [SessionClient; 2], chain_id: u64) -> Self {
        let next = vec![0; SENDERS];
        Self { sessions, chain_id, next, differ: Vec::new(), answers: BTreeMap::new() }
    }

    /// Sends so many random transactions to both.
    pub(crate) async fn send(&mut self, random: &mut Random, count: u32) {
        for _ in 0..count {
            let of = random.below(SENDERS);
            let raw = self.transaction(random, of);
            let mut answers = Vec::new();
            for session in self.sessions {
                answers.push(answer(session, "eth_sendRawTransaction", &json!([raw])).await);
            }
            // We look at the nonce before the proofs, and geth after them.
            let is_false = answers[1].to_string().contains("KZG verification error");
            if answers[0] != answers[1] && !(is_false && answers[0].is_array()) {
                let [ours, geth] = [&answers[0], &answers[1]];
                self.differ.push(format!("{raw:.300}: ours {ours}, geth's {geth}"));
            }
            let words = answers[0].as_str().map_or(&answers[0], |_| &Value::Null).to_string();
            let words = words.split(&[':', ','][..]).nth(1).unwrap_or("taken").to_owned();
            *self.answers.entry(words).or_default() += 1;
            self.next[of] = self.settled(of).await;
        }
    }

    /// The next nonce of a sender, when both pools have the same.
    async fn settled(&mut self, of: usize) -> u64 {
        let params = json!([address(of), "pending"]);
        let begun = Instant::now();
        loop {
            let mut counts = Vec::new();
            for session in self.sessions {
                counts.push(answer(session, "eth_getTransactionCount", &params).await);
            }
            if counts[0] == counts[1] || begun.elapsed() > PATIENCE {
                if counts[0] != counts[1] {
                    for session in self.sessions {
                        let latest = json!([address(of), "latest"]);
                        counts.push(answer(session, "eth_getTransactionCount", &latest).await);
                        let from = json!([address(of)]);
                        counts.push(answer(session, "txpool_contentFrom", &from).await);
                    }
                    self.differ.push(format!("next nonce of {of}: ours and geth's {counts:?}"));
                }
                let text = counts[0].as_str().expect("a quantity");
                return u64::from_str_radix(&text[2..], 16).expect("a number");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Both have the same transactions, when they have looked at the head; geth tells of none that
    /// have blobs.
    pub(crate) async fn compare(&mut self) {
        let begun = Instant::now();
        loop {
            let mut contents = Vec::new();
            for session in self.sessions {
                let content = answer(session, "txpool_content", &json!([])).await;
                contents.push(["pending", "queued"].map(|list| hashes(&content[list])));
            }
            if contents[0] == contents[1] {
                break;
            }
            if begun.elapsed() > PATIENCE {
                self.differ.push(format!("ours {:?}\ngeth {:?}", contents[0], contents[1]));
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for of in 0..SENDERS {
            self.next[of] = self.settled(of).await;
        }
    }

    /// A transaction that a pool may take, or has a reason to refuse.
    fn transaction(&self, random: &mut Random, of: usize) -> Bytes {
        let next = self.next[of];
        let nonce = match random.below(8) {
            // With blobs, geth keeps some for a minute when the account has sent nine.
            0 if of >= BLOB_SENDERS || next < 9 => next + 1 + random.below(3) as u64,
            1 | 2 => next.saturating_sub(1),
            _ => next,
        };
        let chain_id = if random.one_in(30) { self.chain_id + 1 } else { self.chain_id };
        let gwei = 1_000_000_000;
        let tip = random.pick(&[0, 1, gwei, gwei, gwei * 11 / 10, gwei * 2, gwei * 4]);
        let cap =
            random.pick(&[1, gwei / 2, gwei * 10, gwei * 10, gwei * 10, gwei * 11, gwei * 20]);
        let gas = match random.below(12) {
            0 => 20_000,
            1 => 1 << 25,
            other => [60_000, 200_000][other % 2],
        };
        let value = random.pick(&[0, 0, 0, 1, 1, 1, 10_u128.pow(17), 10_u128.pow(19)]);
        let (value, list) = (U256::from(value), access_list(random));
        let (to, input) = target(random);
        let signed = |hash| sign_message(key(of), hash).expect("a key");
        let kind = if of < BLOB_SENDERS { 3 } else { random.pick(&[0, 1, 2, 2, 4]) };
        let transaction: EthereumTxEnvelope<TxEip4844> = match kind {
            0 => {
                // We look at the length first.
                let is_short = input.len() < 1_000;
                let chain_id = (!is_short || !random.one_in(10)).then_some(chain_id);
                let gas_price = cap.max(tip);
                let tx = TxLegacy { chain_id, nonce, gas_price, gas_limit: gas, to, value, input };
                let signature = signed(tx.signature_hash());
                tx.into_signed(signature).into()
            }
            1 => {
                let (gas_price, access_list) = (cap.max(tip), list);
                let gas_limit = gas;
                let tx = TxEip2930 {
                    chain_id,
                    nonce,
                    gas_price,
                    gas_limit,
                    to,
                    value,
                    access_list,
                    input,
                };
                let signature = signed(tx.signature_hash());
                tx.into_signed(signature).into()
            }
            2 => {
                let tx = TxEip1559 {
                    chain_id,
                    nonce,
                    gas_limit: gas,
                    max_fee_per_gas: cap,
                    max_priority_fee_per_gas: tip,
                    to,
                    value,
                    access_list: list,
                    input,
                };
                let signature = signed(tx.signature_hash());
                tx.into_signed(signature).into()
            }
            3 => {
                let fees = random.pick(&[[tip, cap], [tip * 2, cap * 2], [tip * 4, cap * 4]]);
                let tx = TxEip4844 {
                    chain_id,
                    nonce,
                    gas_limit: gas,
                    max_fee_per_gas: fees[1],
                    max_priority_fee_per_gas: fees[0],
                    to: LOGGERS[0],
                    value: value.min(U256::ONE),
                    access_list: list,
                    max_fee_per_blob_gas: random.pick(&[0, 1, gwei]),
                    input,
                    ..TxEip4844::default()
                };
                return blobs(random, of, tx);
            }
            _ => {
                let tx = TxEip7702 {
                    chain_id,
                    nonce,
                    gas_limit: gas,
                    max_fee_per_gas: cap,
                    max_priority_fee_per_gas: tip,
                    to: LOGGERS[1],
                    value,
                    access_list: list,
                    authorization_list: self.authorizations(random),
                    input,
                };
                let signature = signed(tx.signature_hash());
                tx.into_signed(signature).into()
            }
        };
        transaction.encoded_2718().into()
    }

    fn authorizations(&self, random: &mut Random) -> Vec<SignedAuthorization> {
        let count = random.pick(&[0, 1, 1, 2]);
        let authorization = |_| {
            let of = BLOB_SENDERS + random.below(SENDERS - BLOB_SENDERS);
            let chain_id = random.pick(&[0, self.chain_id, self.chain_id, self.chain_id + 1]);
            let authorization = Authorization {
                chain_id: U256::from(chain_id),
                address: random.pick(&[LOGGERS[0], Address::ZERO]),
                nonce: self.next[of] + random.below(2) as u64,
            };
            let signature = sign_message(key(of), authorization.signature_hash());
            authorization.into_signed(signature.expect("a key"))
        };
        (0..count).map(authorization).collect()
    }
}

fn access_list(random: &mut Random) -> AccessList {
    let item = |of: Address, slots: u64| AccessListItem {
        address: of,
        storage_keys: (0..slots).map(|slot| B256::from(U256::from(slot))).collect(),
    };
    match random.below(4) {
        0 => AccessList(vec![item(LOGGERS[0], 2), item(Address::repeat_byte(3), 0)]),
        _ => AccessList::default(),
    }
}

fn target(random: &mut Random) -> (TxKind, Bytes) {
    let words = [B256::with_last_byte(1), B256::with_last_byte(2)].concat();
    match random.below(10) {
        0 => (TxKind::Create, bytes!("600160005360016000f3")),
        1 if random.one_in(4) => (TxKind::Create, vec![0; 49_153].into()),
        2 if random.one_in(4) => {
            (TxKind::Call(Address::repeat_byte(0x66)), vec![1; 132_000].into())
        }
        1..=6 => (TxKind::Call(random.pick(&LOGGERS)), words.into()),
        _ => (TxKind::Call(Address::repeat_byte(0x66)), Bytes::new()),
    }
}

/// A transaction with blobs of zeros, whose commitments and proofs are the point at infinity, or
/// with something wrong about them.
fn blobs(random: &mut Random, of: usize, mut tx: TxEip4844) -> Bytes {
    let mut infinity = Bytes48::default();
    infinity[0] = 0xc0;
    let count = random.pick(&[1, 1, 2]);
    let mut sidecar = BlobTransactionSidecarEip7594 {
        blobs: vec![Blob::ZERO; count],
        commitments: vec![infinity; count],
        cell_proofs: vec![infinity; count * CELLS_PER_EXT_BLOB],
    };
    tx.blob_versioned_hashes = vec![kzg_to_versioned_hash(infinity.as_slice()); count];
    match random.below(12) {
        0 => sidecar.blobs[0][31] = 1,
        1 => tx.blob_versioned_hashes[0] = B256::ZERO,
        2 => tx.blob_versioned_hashes.push(B256::with_last_byte(1)),
        3 => drop(sidecar.cell_proofs.pop()),
        4 => {
            let signature = sign_message(key(of), tx.signature_hash()).expect("a key");
            let alone: EthereumTxEnvelope<TxEip4844> = tx.into_signed(signature).into();
            return alone.encoded_2718().into();
        }
        _ => {}
    }
    let tx = TxEip4844WithSidecar { tx, sidecar };
    let signature = sign_message(key(of), tx.signature_hash()).expect("a key");
    let signed = tx.into_signed(signature);
    EthereumTxEnvelope::<TxEip4844WithSidecar<_>>::Eip4844(signed).encoded_2718().into()
}

/// The hashes in a list of `txpool_content` by sender and nonce, but for senders of blobs.
fn hashes(list: &Value) -> BTreeMap<String, Value> {
    let blobs: Vec<_> = (0..BLOB_SENDERS).map(|of| address(of).to_checksum(None)).collect();
    let senders = list.as_object().into_iter().flatten();
    let senders = senders.filter(|(sender, _)| !blobs.contains(sender));
    let nonces = |(sender, list): (&String, &Value)| {
        let list = list.as_object().expect("an object").clone();
        let hash =
            |(nonce, sent): (String, Value)| (format!("{sender} {nonce}"), sent["hash"].clone());
        list.into_iter().map(hash).collect::<Vec<_>>()
    };
    senders.flat_map(nonces).collect()
}
