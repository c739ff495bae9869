use std::collections::{HashMap, HashSet};

use alloy_consensus::{
    EthereumTxEnvelope, Header, SignableTransaction as _, TxEip1559, TxEip4844,
    TxEip4844WithSidecar,
};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_eips::eip4844::BlobTransactionSidecar;
use alloy_eips::eip4844::{Blob, Bytes48, kzg_to_versioned_hash};
use alloy_eips::eip7594::{
    BlobTransactionSidecarEip7594, BlobTransactionSidecarVariant, CELLS_PER_EXT_BLOB,
};
use alloy_primitives::{Address, B256, TxKind, U256};
use deponent_pool::{HeadChange, Options, Pool, Returned, SenderState, Sent, decode};
use state::MemoryDisk;
use testing::world::{CHAIN_ID, Signer, chain};

use crate::header;

/// The point at infinity: commitment and proofs of a blob of zeros.
fn infinity() -> Bytes48 {
    let mut point = [0; 48];
    point[0] = 0xc0;
    point.into()
}

fn zeros(blobs: usize) -> BlobTransactionSidecarEip7594 {
    BlobTransactionSidecarEip7594 {
        blobs: vec![Blob::ZERO; blobs],
        commitments: vec![infinity(); blobs],
        cell_proofs: vec![infinity(); blobs * CELLS_PER_EXT_BLOB],
    }
}

fn hash() -> B256 {
    kzg_to_versioned_hash(infinity().as_slice())
}

fn signer() -> Signer {
    Signer::new(1)
}

/// A transaction with these blobs, as it is sent.
fn sent(nonce: u64, fee: u128, sidecar: impl Into<BlobTransactionSidecarVariant>) -> Vec<u8> {
    let sidecar = sidecar.into();
    let tx = TxEip4844 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: 100_000,
        max_fee_per_gas: fee,
        max_priority_fee_per_gas: fee.min(2),
        to: Address::repeat_byte(7),
        max_fee_per_blob_gas: fee,
        blob_versioned_hashes: sidecar.versioned_hashes().collect(),
        ..TxEip4844::default()
    };
    let signature = signer().sign(tx.signature_hash());
    let tx = TxEip4844WithSidecar { tx, sidecar };
    EthereumTxEnvelope::<TxEip4844WithSidecar>::Eip4844(tx.into_signed(signature)).encoded_2718()
}

fn open(disk: MemoryDisk, options: Options, nonce: u64) -> Pool {
    let balance = U256::from(10).pow(U256::from(18));
    let state = SenderState { nonce, balance, code_hash: B256::ZERO };
    let senders = Box::new(HashMap::from([(signer().address(), state)]));
    let pool = Pool::new(chain("osaka"), options, senders, header(7));
    pool.with_log(disk).expect("a log in order")
}

fn add(pool: &Pool, bytes: &[u8]) -> Result<B256, String> {
    let sent = decode(bytes).map_err(|refusal| refusal.to_string())?;
    pool.add(sent).map(|added| added.hash).map_err(|refusal| refusal.to_string())
}

#[test]
fn blobs_are_found_by_their_hashes_and_outlast_the_process() {
    let disk = MemoryDisk::new();
    let pool = open(disk.clone(), Options::default(), 0);
    let first = add(&pool, &sent(0, 100, zeros(2))).expect("in order");
    let second = add(&pool, &sent(1, 100, zeros(1))).expect("in order");
    let check = |pool: &Pool| {
        let found = pool.blobs(&[B256::ZERO, hash()]);
        assert_eq!(found[0], None);
        let blob = found[1].as_ref().expect("it is there");
        assert_eq!(blob.blob(), Blob::ZERO.as_slice());
        assert_eq!(blob.cell_proofs(), [infinity(); CELLS_PER_EXT_BLOB]);
        assert_eq!(blob.blob_proof(), infinity());
        assert!(blob.cells().iter().all(|cell| *cell == [0; 2048]));
    };
    check(&pool);
    assert_eq!(pool.status().pending, 2);
    assert_eq!(pool.best(7).next().expect("the first").hash(), first);
    let again = open(MemoryDisk::with_contents(&disk.contents()), Options::default(), 0);
    check(&again);
    for (hash, nonce) in [(first, 0), (second, 1)] {
        let [one, other] = [&pool, &again].map(|pool| pool.transaction(hash).expect("there"));
        assert_eq!((other.nonce(), other.transaction()), (nonce, one.transaction()));
        assert!(other.sidecar().is_some() && other.sidecar() == one.sidecar());
    }
}

#[test]
fn blob_proofs_are_replaced_by_cell_proofs() {
    let (blobs, commitments, proofs) = (vec![Blob::ZERO], vec![infinity()], vec![infinity()]);
    let old = BlobTransactionSidecar { blobs, commitments, proofs };
    let pool = open(MemoryDisk::new(), Options::default(), 0);
    let hash = add(&pool, &sent(0, 100, old.clone())).expect("in order");
    let pooled = pool.transaction(hash).expect("there");
    assert_eq!(**pooled.sidecar().expect("blobs"), zeros(1));
    let mut wrong = old;
    wrong.proofs[0] = Bytes48::ZERO;
    let refused = add(&pool, &sent(1, 100, wrong)).expect_err("no point");
    assert!(refused.starts_with("KZG verification error: "), "{refused}");
}

#[test]
fn a_false_sidecar_is_refused() {
    let pool = open(MemoryDisk::new(), Options::default(), 0);
    let check = |change: &dyn Fn(&mut BlobTransactionSidecarEip7594), words: &str| {
        let mut sidecar = zeros(1);
        change(&mut sidecar);
        let mut sent = decode(&sent(0, 100, zeros(1))).expect("in order");
        sent.sidecar = Some(sidecar.into());
        let refused = pool.add(sent).expect_err("refused").to_string();
        assert!(refused.starts_with(words), "{refused}");
    };
    // Generator of the group: a point, but of another blob.
    let generator = Bytes48::from(alloy_primitives::hex!(
        "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905"
        "a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
    ));
    check(&|it| it.cell_proofs[127] = generator, "KZG verification error: invalid proof");
    check(&|it| it.blobs[0][31] = 1, "KZG verification error: invalid proof");
    check(&|it| it.blobs[0][0] = 0xff, "KZG verification error: ");
    check(&|it| it.commitments[0] = generator, "blob 0: computed hash 0x");
    check(&|it| it.commitments.clear(), "invalid number of 0 blob commitments compared to 1");
    check(&|it| it.blobs.clear(), "invalid number of 0 blobs compared to 1");
    check(&|it| it.cell_proofs.truncate(1), "Wrong sidecar format: invalid number of 1 blob");
    let sent = decode(&sent(0, 100, zeros(1))).expect("in order");
    let bare: Sent = sent.transaction.into();
    assert_eq!(pool.add(bare).unwrap_err().to_string(), "missing sidecar in blob transaction");
    assert_eq!(pool.status().pending, 0);
}

#[test]
fn blobs_have_geths_rules_of_their_own() {
    let pool = open(MemoryDisk::new(), Options::default(), 0);
    add(&pool, &sent(0, 100, zeros(1))).expect("in order");
    let refused = |bytes: Vec<u8>| add(&pool, &bytes).expect_err("refused");
    assert_eq!(refused(sent(2, 100, zeros(1))), "nonce too high: tx nonce 2, gapped nonce 1");
    let underpriced = "replacement transaction underpriced: new tx gas tip cap 2 <= 2 queued";
    assert_eq!(refused(sent(0, 199, zeros(1))), underpriced);
    let many = "transaction blob limit exceeded: blob count 7, limit 6";
    assert_eq!(refused(sent(1, 100, zeros(7))), many);
    let tx = TxEip1559 {
        chain_id: CHAIN_ID,
        nonce: 1,
        gas_limit: 21_000,
        max_fee_per_gas: 100,
        max_priority_fee_per_gas: 1,
        to: TxKind::Call(Address::ZERO),
        ..TxEip1559::default()
    };
    let signature = signer().sign(tx.signature_hash());
    let plain = EthereumTxEnvelope::<TxEip4844WithSidecar>::Eip1559(tx.into_signed(signature))
        .encoded_2718();
    assert_eq!(refused(plain), "address already reserved");
    for nonce in 1..16 {
        add(&pool, &sent(nonce, 100, zeros(1))).expect("in order");
    }
    assert_eq!(refused(sent(16, 100, zeros(1))), "account limit exceeded: pooled 16 txs");
    // Without room the last one goes, which is the new one.
    let sidecar_bytes = 2 * 140_000;
    let options = Options { sidecar_bytes, ..Options::default() };
    let pool = open(MemoryDisk::new(), options, 0);
    add(&pool, &sent(0, 100, zeros(2))).expect("in order");
    let refused = add(&pool, &sent(1, 100, zeros(1))).expect_err("no room");
    assert_eq!(refused, "transaction underpriced");
}

#[test]
fn blobs_of_a_block_come_back_with_it_until_it_is_finalized() {
    let disk = MemoryDisk::new();
    let pool = open(disk.clone(), Options::default(), 0);
    let hash_of = add(&pool, &sent(0, 100, zeros(1))).expect("in order");
    let transaction = pool.transaction(hash_of).expect("there").transaction().clone();
    drop(pool);
    // The nonce is one more once the block is the head.
    let included = |finalized| HeadChange {
        head: Header { number: 5, ..header(7) },
        included: HashSet::from([hash_of]),
        returned: Vec::new(),
        finalized,
    };
    for finalized in [Some(4), Some(5)] {
        let senders = Nonce::default();
        let nonce = senders.clone();
        let pool = Pool::new(chain("osaka"), Options::default(), Box::new(senders), header(7));
        pool.add(decode(&sent(0, 100, zeros(1))).expect("in order")).expect("in order");
        nonce.0.store(1, std::sync::atomic::Ordering::Relaxed);
        pool.head_changed(included(finalized)).expect("readable");
        assert_eq!(pool.status().pending, 0);
        let is_final = finalized == Some(5);
        assert_eq!(pool.blobs(&[hash()])[0].is_none(), is_final);
        nonce.0.store(0, std::sync::atomic::Ordering::Relaxed);
        let sender = signer().address();
        let back = Returned { transaction: transaction.clone(), hash: hash_of, sender };
        let change = HeadChange { head: header(7), returned: vec![back], ..HeadChange::default() };
        pool.head_changed(change).expect("readable");
        assert_eq!(pool.status().pending, usize::from(!is_final));
        assert_eq!(pool.blobs(&[hash()])[0].is_none(), is_final);
    }
}

/// Accounts with money and this nonce.
#[derive(Debug, Clone, Default)]
struct Nonce(std::sync::Arc<std::sync::atomic::AtomicU64>);

impl deponent_pool::Senders for Nonce {
    fn sender(&self, _: B256, _: Address) -> Result<SenderState, String> {
        let nonce = self.0.load(std::sync::atomic::Ordering::Relaxed);
        let balance = U256::from(10).pow(U256::from(18));
        Ok(SenderState { nonce, balance, code_hash: B256::ZERO })
    }
}
