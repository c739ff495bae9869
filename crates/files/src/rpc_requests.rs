//! The execution requests of a block (EIP-7685), which no method tells: deposits are in its
//! receipts; withdrawal and consolidation requests stay in the storage of their contracts, in
//! queues of which a block takes the first ones. The hash in the header says what was right.

use alloy_eips::eip7685::{EMPTY_REQUESTS_HASH, Requests};
use alloy_eips::{eip7002, eip7251};
use alloy_primitives::{Address, B256, Bytes, U256, b256};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::AnswerError;
use crate::json::parse;

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

/// Finds the requests (EIP-7685) of block `number` that hash to `expected`, out of its receipts and
/// of the state after it and after its parent. `call` is given a method and its parameters.
///
/// # Errors
/// Those of `call`; [`AnswerError`] if an answer is not what its method answers, or if there are
/// requests of other kinds.
pub fn rpc_requests<E: From<AnswerError>>(
    number: u64,
    expected: B256,
    mut call: impl FnMut(&str, &str) -> Result<Box<RawValue>, E>,
) -> Result<Requests, E> {
    if expected == EMPTY_REQUESTS_HASH {
        return Ok(Requests::default());
    }
    let deposits = deposits(&mut call, number)?;
    let found = list(&deposits, &[]);
    if found.requests_hash() == expected {
        return Ok(found);
    }
    let mut taken = Vec::new();
    for queue in &QUEUES {
        taken.push(queue.next(&mut call, number)?);
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
    let problem =
        format!("neither its receipts nor the queues of its contracts give the hash {expected}");
    Err(AnswerError::content(problem).into())
}

/// The result of a call, as the type that its method answers.
fn ask<T: DeserializeOwned, E: From<AnswerError>>(
    call: &mut impl FnMut(&str, &str) -> Result<Box<RawValue>, E>,
    method: &str,
    params: &serde_json::Value,
) -> Result<T, E> {
    let answer = call(method, &params.to_string())?;
    let answer = parse(answer.get().as_bytes());
    Ok(answer.map_err(|problem| AnswerError::content(problem).of(method))?)
}

/// The list whose hash is in the header: deposits, then requests of the queues; empty ones are left
/// out.
fn list(deposits: &[u8], queues: &[Vec<u8>]) -> Requests {
    let kinds = QUEUES.iter().map(|queue| queue.kind).zip(queues.iter().map(|data| &data[..]));
    let all = std::iter::once((0, deposits)).chain(kinds).filter(|(_, data)| !data.is_empty());
    Requests::new(all.map(|(kind, data)| Bytes::from([&[kind], data].concat())).collect())
}

fn deposits<E: From<AnswerError>>(
    call: &mut impl FnMut(&str, &str) -> Result<Box<RawValue>, E>,
    number: u64,
) -> Result<Vec<u8>, E> {
    #[derive(Deserialize)]
    struct Receipt {
        logs: Vec<Log>,
    }
    #[derive(Deserialize)]
    struct Log {
        topics: Vec<B256>,
        data: Bytes,
    }
    let params = json!([format!("{number:#x}")]);
    let receipts: Vec<Receipt> = ask(call, "eth_getBlockReceipts", &params)?;
    let logs = receipts.into_iter().flat_map(|receipt| receipt.logs);
    let is_deposit =
        |log: &Log| log.topics.first() == Some(&DEPOSIT_EVENT) && log.data.len() == DEPOSIT_BYTES;
    let fields = logs.filter(is_deposit).map(|log| DEPOSIT_FIELDS.map(|at| log.data[at].to_vec()));
    Ok(fields.flatten().flatten().collect())
}

impl Queue {
    /// The requests that are first in the queue at the end of a block's transactions.
    fn next<E: From<AnswerError>>(
        &self,
        call: &mut impl FnMut(&str, &str) -> Result<Box<RawValue>, E>,
        number: u64,
    ) -> Result<Vec<Vec<u8>>, E> {
        let before = number.saturating_sub(1);
        let head = self.read(call, before, &[QUEUE_HEAD])?.first().copied().unwrap_or_default();
        // Requests that were taken are not cleared.
        let start = u64::try_from(head).ok().and_then(|head| head.checked_mul(self.slots));
        let start = start.and_then(|at| at.checked_add(QUEUE_START));
        let most = self.most * self.slots;
        let end = start.and_then(|start| start.checked_add(most));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(AnswerError::content(format!("the queue begins at {head}")).into());
        };
        let slots: Vec<u64> = (start..end).collect();
        let words = self.read(call, number, &slots)?;
        Ok(words.chunks_exact(self.slots as usize).map(|words| self.request(words)).collect())
    }

    fn request(&self, words: &[U256]) -> Vec<u8> {
        let bytes: Vec<u8> = words.iter().flat_map(U256::to_be_bytes::<32>).collect();
        let mut request = bytes[12..32 + self.input_bytes].to_vec();
        let end = request.len();
        request[end - self.little_endian..].reverse();
        request
    }

    fn read<E: From<AnswerError>>(
        &self,
        call: &mut impl FnMut(&str, &str) -> Result<Box<RawValue>, E>,
        number: u64,
        slots: &[u64],
    ) -> Result<Vec<U256>, E> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Proof {
            storage_proof: Vec<Slot>,
        }
        #[derive(Deserialize)]
        struct Slot {
            value: U256,
        }
        const METHOD: &str = "eth_getProof";
        let keys: Vec<B256> = slots.iter().map(|slot| U256::from(*slot).into()).collect();
        let params = json!([self.contract, keys, format!("{number:#x}")]);
        let proof: Proof = ask(call, METHOD, &params)?;
        if proof.storage_proof.len() != slots.len() {
            return Err(AnswerError::content("a proof of other slots").of(METHOD).into());
        }
        Ok(proof.storage_proof.into_iter().map(|slot| slot.value).collect())
    }
}
