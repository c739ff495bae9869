//! Receipts, as JSON-RPC shows them.

use alloy_consensus::Transaction as _;
use alloy_primitives::Address;
use alloy_rpc_types_eth::{Log, TransactionReceipt};
use engine::{BlockRecord, PendingBlock};
use execution::{ChainSpec, Receipt, SealedBlock};
use rpc::{Code, Error, Json, Pieces};

type ShownReceipt = TransactionReceipt<alloy_consensus::ReceiptEnvelope<Log>>;

/// A block of the chain, or the pending one, with what its transactions left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contents<'a> {
    pub(crate) block: &'a SealedBlock,
    pub(crate) senders: &'a [Address],
    pub(crate) receipts: &'a [Receipt],
}

impl<'a> From<&'a BlockRecord> for Contents<'a> {
    fn from(record: &'a BlockRecord) -> Self {
        let BlockRecord { block, senders, receipts, .. } = record;
        Self { block, senders, receipts }
    }
}

impl<'a> From<&'a PendingBlock> for Contents<'a> {
    fn from(pending: &'a PendingBlock) -> Self {
        let PendingBlock { block, senders, receipts, .. } = pending;
        Self { block, senders, receipts }
    }
}

/// The receipt of the block's transaction at `index`.
pub(crate) fn receipt(chain: &ChainSpec, record: &BlockRecord, index: usize) -> ShownReceipt {
    let before = Before::of(&record.receipts[..index]);
    shown_receipt(record.into(), index, before, blob_fee(chain, &record.block))
}

/// The receipts of a block, each in a list of its own.
pub(crate) fn single_receipts(chain: &ChainSpec, record: &BlockRecord) -> Result<Vec<Json>, Error> {
    let blob_fee = blob_fee(chain, &record.block);
    let mut before = Before::default();
    let single = record.receipts.iter().enumerate().map(|(index, receipt)| {
        let shown = Json::of(&[shown_receipt(record.into(), index, before, blob_fee)]);
        before = before.and(receipt);
        shown
    });
    single.collect()
}

/// The receipts of a block. They are rendered one by one: all logs of a block may have 70 MB as
/// JSON, and more as values.
pub(crate) fn block_receipts(chain: &ChainSpec, contents: Contents<'_>) -> Result<Json, Error> {
    let blob_fee = blob_fee(chain, contents.block);
    let mut before = Before::default();
    let mut shown = Pieces::from(vec![b'[']);
    for (index, receipt) in contents.receipts.iter().enumerate() {
        let receipt_shown = shown_receipt(contents, index, before, blob_fee);
        let mut text = if index == 0 { Vec::new() } else { vec![b','] };
        serde_json::to_writer(&mut text, &receipt_shown)
            .map_err(|fault| Error::new(Code::Internal, fault))?;
        shown.push(text);
        before = before.and(receipt);
    }
    shown.push(vec![b']']);
    Ok(shown.into())
}

fn blob_fee(chain: &ChainSpec, block: &SealedBlock) -> Option<u128> {
    let header = &block.header;
    header.blob_fee(chain.blob_params(header.timestamp)?)
}

/// The sums of the receipts before one.
#[derive(Clone, Copy, Default)]
struct Before {
    gas: u64,
    logs: u64,
}

impl Before {
    fn of(receipts: &[execution::Receipt]) -> Self {
        receipts.iter().fold(Self::default(), Self::and)
    }

    fn and(self, receipt: &execution::Receipt) -> Self {
        let logs = self.logs + receipt.logs().len() as u64;
        Self { gas: receipt.cumulative_gas_used(), logs }
    }
}

/// The receipt of the block's transaction at `index`.
fn shown_receipt(
    contents: Contents<'_>,
    index: usize,
    before: Before,
    blob_fee: Option<u128>,
) -> ShownReceipt {
    let Contents { block, senders, receipts } = contents;
    let (hash, header) = (block.hash(), &block.header);
    let (transaction, sender) = (&block.body.transactions[index], &senders[index]);
    let receipt = &receipts[index];
    let mut log_index = before.logs;
    let inner = receipt.clone().map_logs(|inner| {
        log_index += 1;
        Log {
            inner,
            block_hash: Some(hash),
            block_number: Some(header.number),
            block_timestamp: Some(header.timestamp),
            transaction_hash: Some(*transaction.hash()),
            transaction_index: Some(index as u64),
            log_index: Some(log_index - 1),
            removed: false,
        }
    });
    let blob_gas_used = transaction.blob_gas_used();
    TransactionReceipt {
        inner,
        transaction_hash: *transaction.hash(),
        transaction_index: Some(index as u64),
        block_hash: Some(hash),
        block_number: Some(header.number),
        gas_used: receipt.cumulative_gas_used() - before.gas,
        effective_gas_price: transaction.effective_gas_price(header.base_fee_per_gas),
        blob_gas_used,
        blob_gas_price: blob_gas_used.and(blob_fee),
        from: *sender,
        to: transaction.to(),
        contract_address: transaction.is_create().then(|| sender.create(transaction.nonce())),
    }
}
