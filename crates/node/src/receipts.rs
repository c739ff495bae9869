//! Receipts, as JSON-RPC shows them.

use alloy_consensus::Transaction as _;
use alloy_rpc_types_eth::{Log, TransactionReceipt};
use engine::BlockRecord;
use execution::ChainSpec;
use rpc::{Code, Error, Json, Pieces};

type ShownReceipt = TransactionReceipt<alloy_consensus::ReceiptEnvelope<Log>>;

/// The receipt of the block's transaction at `index`.
pub(crate) fn receipt(chain: &ChainSpec, record: &BlockRecord, index: usize) -> ShownReceipt {
    let before = Before::of(&record.receipts[..index]);
    shown_receipt(record, index, before, blob_fee(chain, record))
}

/// The receipts of a block, each in a list of its own.
pub(crate) fn single_receipts(chain: &ChainSpec, record: &BlockRecord) -> Result<Vec<Json>, Error> {
    let blob_fee = blob_fee(chain, record);
    let mut before = Before::default();
    let single = record.receipts.iter().enumerate().map(|(index, receipt)| {
        let shown = Json::of(&[shown_receipt(record, index, before, blob_fee)]);
        before = before.and(receipt);
        shown
    });
    single.collect()
}

/// The receipts of a block. They are rendered one by one: all logs of a block may have 70 MB as
/// JSON, and more as values.
pub(crate) fn block_receipts(chain: &ChainSpec, record: &BlockRecord) -> Result<Json, Error> {
    let blob_fee = blob_fee(chain, record);
    let mut before = Before::default();
    let mut shown = Pieces::from(vec![b'[']);
    for (index, receipt) in record.receipts.iter().enumerate() {
        let receipt_shown = shown_receipt(record, index, before, blob_fee);
        let mut text = if index == 0 { Vec::new() } else { vec![b','] };
        serde_json::to_writer(&mut text, &receipt_shown)
            .map_err(|fault| Error::new(Code::Internal, fault))?;
        shown.push(text);
        before = before.and(receipt);
    }
    shown.push(vec![b']']);
    Ok(shown.into())
}

fn blob_fee(chain: &ChainSpec, record: &BlockRecord) -> Option<u128> {
    let header = &record.block.header;
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
    record: &BlockRecord,
    index: usize,
    before: Before,
    blob_fee: Option<u128>,
) -> ShownReceipt {
    let BlockRecord { block, senders, receipts, .. } = record;
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
