//! The execution requests of a block (EIP-7685), which no method tells: deposits are in its
//! receipts; withdrawal and consolidation requests stay in the storage of their contracts, in
//! queues of which a block takes the first ones. The hash in the header says what was right.

use alloy_eips::eip7685::Requests;
use alloy_eips::{eip7002, eip7251};
use alloy_primitives::{Address, B256, Bytes, U256, b256};
use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::json;

use crate::load::Caller;

/// `DepositEvent(bytes,bytes,bytes,bytes,bytes)`, and how long its data is.
const DEPOSIT_EVENT: B256 =
    b256!("649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5");
const DEPOSIT_BYTES: usize = 576;
/// The places of the key, the credentials, the amount, the signature and the index in the data.
const DEPOSIT_FIELDS: [std::ops::Range<usize>; 5] =
    [192..240, 288..320, 352..360, 416..512, 544..552];

/// Slots of a queue: where its first request is, and where its requests begin.
const QUEUE_HEAD: u64 = 2;
const QUEUE_START: u64 = 4;

/// A contract that keeps requests in a queue.
struct Queue {
    contract: Address,
    kind: u8,
    /// Slots of a request: who made it, then what it was given.
    slots: u64,
    /// Bytes of what it was given.
    input_bytes: usize,
    /// Requests that a block takes, at most.
    most: u64,
    /// The last bytes of the input that are turned around.
    little_endian: usize,
}

const QUEUES: [Queue; 2] = [
    Queue {
        contract: eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS,
        kind: eip7002::WITHDRAWAL_REQUEST_TYPE,
        slots: 3,
        input_bytes: 56,
        most: 16,
        little_endian: 8,
    },
    Queue {
        contract: eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
        kind: eip7251::CONSOLIDATION_REQUEST_TYPE,
        slots: 4,
        input_bytes: 96,
        most: 2,
        little_endian: 0,
    },
];

/// The requests of a block that hash to `expected`.
///
/// # Errors
/// The endpoint lacks receipts, or the state of the block and its parent; or there are requests of
/// other kinds.
pub(super) fn requests(
    caller: &mut Caller,
    number: u64,
    expected: B256,
) -> anyhow::Result<Requests> {
    let deposits = deposits(caller, number)?;
    let found = list(&deposits, &[]);
    if found.requests_hash() == expected {
        return Ok(found);
    }
    let mut taken = Vec::new();
    for queue in &QUEUES {
        taken.push(queue.next(caller, number)?);
    }
    for withdrawals in 0..=taken[0].len() {
        for consolidations in 0..=taken[1].len() {
            let queues = [&taken[0][..withdrawals], &taken[1][..consolidations]].map(<[_]>::concat);
            let found = list(&deposits, &queues);
            if found.requests_hash() == expected {
                return Ok(found);
            }
        }
    }
    anyhow::bail!("neither its receipts nor the queues of its contracts give the hash {expected}")
}

/// The list whose hash is in the header: deposits, then requests of the queues; empty ones are left
/// out.
fn list(deposits: &[u8], queues: &[Vec<u8>]) -> Requests {
    let kinds = QUEUES.iter().map(|queue| queue.kind).zip(queues.iter().map(|data| &data[..]));
    let all = std::iter::once((0, deposits)).chain(kinds).filter(|(_, data)| !data.is_empty());
    Requests::new(all.map(|(kind, data)| Bytes::from([&[kind], data].concat())).collect())
}

fn deposits(caller: &mut Caller, number: u64) -> anyhow::Result<Vec<u8>> {
    #[derive(Deserialize)]
    struct Receipt {
        logs: Vec<Log>,
    }
    #[derive(Deserialize)]
    struct Log {
        topics: Vec<B256>,
        data: Bytes,
    }
    let params = json!([format!("{number:#x}")]).to_string();
    let receipts = caller.call("eth_getBlockReceipts", &params)?;
    let receipts: Vec<Receipt> = serde_json::from_str(receipts.get()).context("no receipts")?;
    let logs = receipts.into_iter().flat_map(|receipt| receipt.logs);
    let is_deposit =
        |log: &Log| log.topics.first() == Some(&DEPOSIT_EVENT) && log.data.len() == DEPOSIT_BYTES;
    let fields = logs.filter(is_deposit).map(|log| DEPOSIT_FIELDS.map(|at| log.data[at].to_vec()));
    Ok(fields.flatten().flatten().collect())
}

impl Queue {
    /// The requests that are first in the queue at the end of a block's transactions.
    fn next(&self, caller: &mut Caller, number: u64) -> anyhow::Result<Vec<Vec<u8>>> {
        let [head] = self.read(caller, number - 1, &[QUEUE_HEAD])?[..] else {
            anyhow::bail!("one slot was asked for");
        };
        let head = u64::try_from(head).context("the queue's head")?;
        // Requests that were taken are not cleared.
        let start = head.checked_mul(self.slots).and_then(|at| at.checked_add(QUEUE_START));
        let start = start.context("the queue's head")?;
        let slots: Vec<u64> = (0..self.most * self.slots).map(|at| start + at).collect();
        let words = self.read(caller, number, &slots)?;
        Ok(words.chunks_exact(self.slots as usize).map(|words| self.request(words)).collect())
    }

    fn request(&self, words: &[U256]) -> Vec<u8> {
        let bytes: Vec<u8> = words.iter().flat_map(U256::to_be_bytes::<32>).collect();
        let mut request = bytes[12..32 + self.input_bytes].to_vec();
        let end = request.len();
        request[end - self.little_endian..].reverse();
        request
    }

    fn read(&self, caller: &mut Caller, number: u64, slots: &[u64]) -> anyhow::Result<Vec<U256>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Proof {
            storage_proof: Vec<Slot>,
        }
        #[derive(Deserialize)]
        struct Slot {
            value: U256,
        }
        let keys: Vec<B256> = slots.iter().map(|slot| U256::from(*slot).into()).collect();
        let params = json!([self.contract, keys, format!("{number:#x}")]).to_string();
        let proof = caller.call("eth_getProof", &params)?;
        let proof: Proof = serde_json::from_str(proof.get()).context("not a proof")?;
        ensure!(proof.storage_proof.len() == slots.len(), "a proof of other slots");
        Ok(proof.storage_proof.into_iter().map(|slot| slot.value).collect())
    }
}
