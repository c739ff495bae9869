//! Sending transactions, and those that wait in the pool.

use std::sync::Arc;

use ::pool::{Content, Pool, Pooled, Refusal, Sent, decode};
use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, U64};
use engine_api::json::{Data, FixedData};
use rpc::{Code, Error, Json, Later, Params, Pieces};
use serde_json::json;

use super::Api;
use super::inclusion::wait_for;
use crate::limits::POOL_ANSWER_BYTES;
use crate::pool_feed::SendBounds;
use crate::unmined::Unmined;

/// `eth_sendRawTransaction`.
pub(super) fn send_raw(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Data(bytes) = params.next("transaction")?;
    params.end()?;
    Json::of(&submit(api, decode(&bytes).map_err(refused)?)?)
}

fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Unreadable(_) => Error::new(Code::Internal, refusal),
        _ => Error::new(Code::Server, refusal).in_message(),
    }
}

/// Hands a transaction to the pool, and returns its hash.
fn submit(api: &Api, sent: Sent) -> Result<B256, Error> {
    let (pool, bounds) = api.pool()?;
    bounds
        .check(&sent.transaction)
        .map_err(|words| Error::new(Code::Server, words).in_message())?;
    if let Some(dev) = &api.dev {
        return match dev.chain.send(sent) {
            Ok(hash) => Ok(hash),
            // An account that cannot be read is at its endpoint.
            Err(::dev::Error::Refused(refusal)) if dev.fork().is_some() => {
                Err(Error::new(Code::Server, refusal).in_message())
            }
            Err(::dev::Error::Refused(refusal)) => Err(refused(refusal)),
            Err(error) => Err(super::dev::failed(error)),
        };
    }
    Ok(pool.add(sent).map_err(refused)?.hash)
}

/// `eth_sendRawTransactionSync` (EIP-7966): the receipt, once the transaction is in a canonical
/// block.
pub(super) fn send_raw_and_wait(api: &Api, mut params: Params<'_>) -> Result<Later, Error> {
    let Data(bytes) = params.next("transaction")?;
    let most = params.optional("milliseconds")?;
    params.end()?;
    let sent = decode(&bytes).map_err(refused)?;
    let hash = *sent.transaction.tx_hash();
    wait_for(api, hash, most, || submit(api, sent).map(|_| ()))
}

/// `txpool_status`.
pub(super) fn status(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let status = api.pool()?.0.status();
    let [pending, queued] = [status.pending, status.queued].map(U64::from);
    Json::of(&json!({"pending": pending, "queued": queued}))
}

/// `txpool_content`: without those that have blobs, as geth.
pub(super) fn content(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    PoolAnswer::default().lists(&without_blobs(api.pool()?.0.content()), shown)
}

/// `txpool_inspect`: a line of text for each transaction.
pub(super) fn inspect(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let content = without_blobs(api.pool()?.0.content());
    PoolAnswer::default().lists(&content, |pooled| serde_json::to_vec(&line(pooled)))
}

/// `txpool_contentFrom`: the transactions of one sender.
pub(super) fn content_from(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let sender: FixedData<20> = params.next("address")?;
    params.end()?;
    let content = api.pool()?.0.content_from(Address::from(sender));
    let Content { pending, queued } = without_blobs(content);
    let mut answer = PoolAnswer::default();
    for (start, lists) in [("{\"pending\":", pending), (",\"queued\":", queued)] {
        answer.push(start.as_bytes().to_vec())?;
        let transactions: Vec<_> = lists.into_values().flatten().collect();
        answer.transactions(&transactions, &shown)?;
    }
    answer.push(b"}".to_vec())?;
    Ok(answer.pieces.into())
}

/// The senders whose transactions have no blobs; no sender has both.
fn without_blobs(mut content: Content) -> Content {
    for lists in [&mut content.pending, &mut content.queued] {
        lists.retain(|_, list| !list.iter().any(|pooled| pooled.transaction().is_eip4844()));
    }
    content
}

impl Api {
    /// The pool, and the bounds of sending.
    pub(super) fn pool(&self) -> Result<&(Arc<Pool>, SendBounds), Error> {
        self.pool.as_ref().ok_or_else(|| Error::new(Code::Server, "there is no transaction pool"))
    }

    /// The nonce after the last pending transaction of a sender in the pool.
    pub(super) fn next_nonce(&self, sender: Address) -> Option<u64> {
        self.pool.as_ref()?.0.next_nonce(sender)
    }

    /// The transaction with this sender and nonce in the pool.
    pub(super) fn waiting_of(&self, sender: Address, nonce: u64) -> Option<Arc<Pooled>> {
        self.pool.as_ref()?.0.transaction_of(sender, nonce)
    }

    /// The transaction with this hash in the pool.
    pub(super) fn waiting(&self, hash: B256) -> Option<Arc<Pooled>> {
        self.pool.as_ref()?.0.transaction(hash)
    }
}

fn shown(pooled: &Pooled) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Unmined::new(pooled))
}

/// A transaction in geth's words.
fn line(pooled: &Pooled) -> String {
    let transaction = pooled.transaction();
    let to = transaction.to().map(|to| to.to_checksum(None));
    let to = to.unwrap_or_else(|| "contract creation".into());
    let (value, gas) = (transaction.value(), transaction.gas_limit());
    format!("{to}: {value} wei + {gas} gas × {} wei", transaction.max_fee_per_gas())
}

/// An answer that grows transaction by transaction, up to a bound.
#[derive(Default)]
struct PoolAnswer {
    pieces: Pieces,
    bytes: usize,
}

impl PoolAnswer {
    /// An object of both parts of the pool, of its senders, and of their transactions by nonce.
    fn lists(
        mut self,
        content: &Content,
        shown: impl Fn(&Pooled) -> serde_json::Result<Vec<u8>>,
    ) -> Result<Json, Error> {
        let parts = [("{\"pending\":{", &content.pending), ("},\"queued\":{", &content.queued)];
        for (start, lists) in parts {
            self.push(start.as_bytes().to_vec())?;
            for (index, (sender, transactions)) in lists.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                let sender = sender.to_checksum(None);
                self.push(format!("{comma}\"{sender}\":").into_bytes())?;
                self.transactions(transactions, &shown)?;
            }
        }
        self.push(b"}}".to_vec())?;
        Ok(self.pieces.into())
    }

    fn transactions(
        &mut self,
        transactions: &[Arc<Pooled>],
        shown: &impl Fn(&Pooled) -> serde_json::Result<Vec<u8>>,
    ) -> Result<(), Error> {
        for (index, pooled) in transactions.iter().enumerate() {
            let start = if index == 0 { '{' } else { ',' };
            let mut text = format!("{start}\"{}\":", pooled.nonce()).into_bytes();
            text.extend(shown(pooled).map_err(|fault| Error::new(Code::Internal, fault))?);
            self.push(text)?;
        }
        self.push(if transactions.is_empty() { b"{}".to_vec() } else { b"}".to_vec() })
    }

    fn push(&mut self, text: Vec<u8>) -> Result<(), Error> {
        self.bytes += text.len();
        if self.bytes > POOL_ANSWER_BYTES {
            let detail = format_args!(
                "the pool has more than {} MiB of transactions as JSON: ask for them sender by \
                 sender with txpool_contentFrom",
                POOL_ANSWER_BYTES >> 20
            );
            return Err(Error::new(Code::LimitExceeded, detail));
        }
        self.pieces.push(text);
        Ok(())
    }
}
