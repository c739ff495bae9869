//! era files made here by the book, of made blocks of every fork and of real ones.

use alloy_consensus::proofs::{calculate_transaction_root, calculate_withdrawals_root};
use alloy_consensus::{Block, BlockBody, Header, SignableTransaction, TxEip4844};
use alloy_eips::Encodable2718;
use alloy_eips::eip4844::kzg_to_versioned_hash;
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{Address, B256, Bytes, Signature, U256, hex};
use deponent_files::{BlockForm, BlockReader};
use execution::{SealedBlock, Transaction};
use serde_json::Value;

use super::{blocks, entry, packed_entry, read, refused, try_read};
use testing::{Folder, fixtures};

/// A block with what a beacon block has of it beside.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) block: SealedBlock,
    pub(crate) requests: Option<Requests>,
    commitments: Vec<Bytes>,
}

/// The forks of the consensus layer with payloads; Fulu's blocks are Electra's.
const FORKS: [&str; 4] = ["bellatrix", "capella", "deneb", "electra"];

/// A block of a fork, with something in every field that it has.
pub(crate) fn made(fork: &str, number: u64) -> Made {
    let since =
        |name| FORKS.iter().position(|f| *f == fork) >= FORKS.iter().position(|f| *f == name);
    let commitments: Vec<Bytes> = (0..number % 4).map(|i| vec![i as u8; 48].into()).collect();
    let commitments = if since("deneb") { commitments } else { vec![] };
    let mut transactions: Vec<Transaction> = (0..number % 3)
        .map(|nonce| {
            let legacy = alloy_consensus::TxLegacy { nonce, ..Default::default() };
            legacy.into_signed(Signature::new(U256::from(1), U256::from(2), false)).into()
        })
        .collect();
    if !commitments.is_empty() {
        let hashes = commitments.iter().map(|commitment| kzg_to_versioned_hash(commitment));
        let blobs = TxEip4844 { blob_versioned_hashes: hashes.collect(), ..Default::default() };
        let signature = Signature::new(U256::from(3), U256::from(4), true);
        transactions.push(blobs.into_signed(signature).into());
    }
    let withdrawal = |index| Withdrawal {
        index,
        validator_index: 2 * index,
        address: Address::repeat_byte(index as u8),
        amount: 3 * index,
    };
    let withdrawals: Option<Vec<Withdrawal>> =
        since("capella").then(|| (0..number % 5).map(withdrawal).collect());
    let request =
        |kind: u8, bytes: usize| Bytes::from([vec![kind], vec![0xa0 + kind; bytes]].concat());
    let requests = since("electra").then(|| {
        let all = [request(0, 2 * 192), request(1, 76), request(2, 3 * 116)];
        let chosen = (0..3).filter(|kind| number & (1 << kind) != 0);
        Requests::new(chosen.map(|kind| all[kind].clone()).collect())
    });
    let word = |byte: u64| B256::repeat_byte((byte + number) as u8);
    let header = Header {
        parent_hash: word(1),
        beneficiary: Address::repeat_byte(2),
        state_root: word(3),
        receipts_root: word(4),
        logs_bloom: [5; 256].into(),
        mix_hash: word(6),
        number,
        gas_limit: 7_000 + number,
        gas_used: 8_000 + number,
        timestamp: 9_000 + number,
        extra_data: vec![10; (number % 33) as usize].into(),
        base_fee_per_gas: Some(11 + number),
        transactions_root: calculate_transaction_root(&transactions),
        withdrawals_root: withdrawals.as_ref().map(|list| calculate_withdrawals_root(list)),
        blob_gas_used: since("deneb").then_some(12 + number),
        excess_blob_gas: since("deneb").then_some(13 + number),
        parent_beacon_block_root: since("deneb").then_some(word(14)),
        requests_hash: requests.as_ref().map(Requests::requests_hash),
        ..Header::default()
    };
    let body = BlockBody { transactions, ommers: vec![], withdrawals: withdrawals.map(Into::into) };
    Made { block: SealedBlock::new(Block { header, body }), requests, commitments }
}

/// A part of an SSZ container.
enum Field {
    Fixed(Vec<u8>),
    Variable(Vec<u8>),
}

use Field::{Fixed, Variable};

/// An SSZ container, by the definition.
fn container(fields: &[Field]) -> Vec<u8> {
    let fixed_bytes: usize = fields
        .iter()
        .map(|field| match field {
            Fixed(bytes) => bytes.len(),
            Variable(_) => 4,
        })
        .sum();
    let (mut fixed, mut variable) = (Vec::new(), Vec::new());
    for field in fields {
        match field {
            Fixed(bytes) => fixed.extend(bytes),
            Variable(bytes) => {
                fixed.extend(((fixed_bytes + variable.len()) as u32).to_le_bytes());
                variable.extend(bytes);
            }
        }
    }
    [fixed, variable].concat()
}

fn number(number: u64) -> Field {
    Fixed(number.to_le_bytes().to_vec())
}

/// An SSZ list of byte lists.
fn byte_lists(items: &[Vec<u8>]) -> Vec<u8> {
    container(&items.iter().map(|item| Variable(item.clone())).collect::<Vec<_>>())
}

fn execution_payload(block: &SealedBlock) -> Vec<u8> {
    let header = &block.header;
    let transactions: Vec<_> = block.body.transactions.iter().map(|tx| tx.encoded_2718()).collect();
    let base_fee = U256::from(header.base_fee_per_gas.expect("London"));
    let mut fields = vec![
        Fixed(header.parent_hash.to_vec()),
        Fixed(header.beneficiary.to_vec()),
        Fixed(header.state_root.to_vec()),
        Fixed(header.receipts_root.to_vec()),
        Fixed(header.logs_bloom.to_vec()),
        Fixed(header.mix_hash.to_vec()),
        number(header.number),
        number(header.gas_limit),
        number(header.gas_used),
        number(header.timestamp),
        Variable(header.extra_data.to_vec()),
        Fixed(base_fee.to_le_bytes::<32>().to_vec()),
        Fixed(block.hash().to_vec()),
        Variable(byte_lists(&transactions)),
    ];
    if let Some(withdrawals) = &block.body.withdrawals {
        let items = withdrawals.iter().map(|withdrawal| {
            let Withdrawal { index, validator_index, address, amount } = withdrawal;
            let numbers = [index.to_le_bytes(), validator_index.to_le_bytes()].concat();
            [&numbers[..], &address[..], &amount.to_le_bytes()].concat()
        });
        fields.push(Variable(items.flatten().collect()));
    }
    if let (Some(used), Some(excess)) = (header.blob_gas_used, header.excess_blob_gas) {
        fields.extend([number(used), number(excess)]);
    }
    container(&fields)
}

/// A `SignedBeaconBlock` with a payload, or none of Altair or of phase0.
fn beacon_block(slot: u64, made: Result<&Made, &str>) -> Vec<u8> {
    let some = |bytes: usize| Variable(vec![0x5e; bytes]);
    let mut body = vec![
        Fixed(vec![1; 96]), // randao_reveal
        Fixed(vec![2; 72]), // eth1_data
        Fixed(vec![3; 32]), // graffiti
        some(0),            // proposer_slashings
        some(17),           // attester_slashings
        some(500),          // attestations
        some(0),            // deposits
        some(112),          // voluntary_exits
    ];
    let mut parent_root = B256::repeat_byte(4);
    if made.err() != Some("phase0") {
        body.push(Fixed(vec![5; 160])); // sync_aggregate
    }
    if let Ok(Made { block, requests, commitments }) = made {
        let header = &block.header;
        body.push(Variable(execution_payload(block)));
        if block.body.withdrawals.is_some() {
            body.push(some(172)); // bls_to_execution_changes
        }
        if let Some(root) = header.parent_beacon_block_root {
            parent_root = root;
            body.push(Variable(commitments.concat()));
        }
        if let Some(requests) = requests {
            let list = |kind| {
                let list = requests.iter().find(|request| request[0] == kind);
                Variable(list.map_or(vec![], |list| list[1..].to_vec()))
            };
            body.push(Variable(container(&[list(0), list(1), list(2)])));
        }
    }
    let message = container(&[
        number(slot),
        number(77), // proposer_index
        Fixed(parent_root.to_vec()),
        Fixed(vec![6; 32]), // state_root
        Variable(container(&body)),
    ]);
    container(&[Variable(message), Fixed(vec![8; 96])])
}

/// The payload of before the merge: all its fields are zero.
fn no_block() -> Made {
    let header = Header { base_fee_per_gas: Some(0), ..Header::default() };
    let block = SealedBlock::new(Block { header, body: BlockBody::default() });
    Made { block, requests: None, commitments: vec![] }
}

fn beacon_block_before_the_merge(slot: u64) -> Vec<u8> {
    let made = no_block();
    let mut ssz = beacon_block(slot, Ok(&made));
    let payload = execution_payload(&made.block);
    let at = ssz.windows(payload.len()).position(|window| window == payload).expect("a payload");
    ssz[at..at + 436].fill(0);
    ssz[at + 440..at + 504].fill(0);
    ssz
}

/// A group of an era file, behind `before` bytes: beacon blocks with their slots, and a state.
fn group(first: u64, slots: u64, beacon_blocks: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut out = entry(0x3265, &[]);
    let mut offsets = vec![0; slots as usize];
    for (slot, ssz) in beacon_blocks {
        offsets[(slot - first) as usize] = out.len() as i64;
        out.extend(packed_entry(1, ssz));
    }
    let state = out.len() as i64;
    out.extend(packed_entry(2, &[9; 100_000]));
    out.extend(entry(0x77, b"another"));
    let mut index = |first: u64, offsets: &[i64]| {
        let begins = out.len() as i64;
        let relative = offsets.iter().map(|offset| if *offset == 0 { 0 } else { offset - begins });
        let mut words = vec![first as i64];
        words.extend(relative.chain([offsets.len() as i64]));
        let value: Vec<u8> = words.into_iter().flat_map(i64::to_le_bytes).collect();
        out.extend(entry(0x3269, &value));
    };
    if slots > 0 {
        index(first, &offsets);
    }
    index(first + slots, &[state]);
    out
}

/// An era file with a block of each fork and each number, its empty slots, and its beacon blocks
/// without a payload.
pub(crate) fn era(numbers: u64) -> (Vec<u8>, Vec<Made>) {
    let mut beacon = vec![
        (1, beacon_block(1, Err("phase0"))),
        (2, beacon_block(2, Err("altair"))),
        (4, beacon_block_before_the_merge(4)),
    ];
    let mut all = Vec::new();
    for fork in FORKS {
        for number in 1..=numbers {
            let made = made(fork, number);
            let slot = 5 + 2 * all.len() as u64;
            beacon.push((slot, beacon_block(slot, Ok(&made))));
            all.push(made);
        }
    }
    let slots = 8 + 2 * all.len() as u64;
    (group(0, slots, &beacon), all)
}

#[test]
fn a_file_made_by_the_book_is_read() {
    let folder = Folder::new();
    let (bytes, all) = era(35);
    let path = folder.write("mine.era", &bytes);
    assert_eq!(BlockReader::open(&path).expect("open").form(), BlockForm::Era);
    let found = read(&path);
    assert_eq!(found.len(), all.len());
    for (found, made) in found.iter().zip(&all) {
        assert_eq!(found.block, made.block);
        assert_eq!(found.requests, made.requests);
    }
    // Groups behind each other, the first without a block.
    let path = folder.write("mine.era", [group(0, 0, &[]), bytes.clone(), bytes].concat());
    assert_eq!(read(&path).len(), 2 * all.len());

    let rest = BlockReader::open(&path).expect("open").from_number(30);
    let found: Vec<_> = rest.map(|block| block.expect("a block").block.header.number).collect();
    assert_eq!(found, [30, 31, 32, 33, 34, 35].repeat(8));
}

#[test]
fn real_blocks_go_through_an_era_file() {
    let Some(fixtures) = fixtures() else { return };
    let mut all: Vec<Made> = Vec::new();
    let with = |found: deponent_files::FileBlock| {
        let deponent_files::FileBlock { block, requests, .. } = found;
        let requests = block.header.requests_hash.map(|_| requests.unwrap_or_default());
        Made { block, requests, commitments: vec![] }
    };
    // From the merge on; with requests.
    let chain = read(&fixtures.join("execution-apis/tests/chain.rlp"));
    let merged = |block: &deponent_files::FileBlock| {
        let header = &block.block.header;
        header.difficulty.is_zero() && header.requests_hash.is_none()
    };
    all.extend(chain.into_iter().filter(merged).map(with));
    all.extend(read(&fixtures.join("geth-ethtest/newpayload.fixed.json")).into_iter().map(with));
    // Mainnet's.
    for name in ["mainnet-20612842", "mainnet-20852412", "mainnet-21429063", "mainnet-21688509"] {
        let text = std::fs::read(fixtures.join(format!("blocks/{name}.json"))).expect("a file");
        let document: Value = serde_json::from_slice(&text).expect("JSON");
        let rlp = hex::decode(document["block"].as_str().expect("hex")).expect("hex");
        let block = execution::decode_block(&rlp).expect("a block");
        all.push(Made { block, requests: None, commitments: vec![] });
    }
    all.retain(|made| made.block.header.blob_gas_used.is_none_or(|used| used == 0));
    assert!(all.len() > 500, "{}", all.len());
    let beacon: Vec<_> =
        (0..).zip(&all).map(|(slot, made)| (slot, beacon_block(slot, Ok(made)))).collect();
    let folder = Folder::new();
    let path = folder.write("real.era", group(0, beacon.len() as u64, &beacon));
    let expected: Vec<_> = all.iter().map(|made| made.block.clone()).collect();
    assert_eq!(blocks(&read(&path)), expected);
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_place() {
    let folder = Folder::new();
    let good = made("electra", 7);
    let check_ssz = |ssz: Vec<u8>, words: &[&str]| {
        let path = folder.write("mine.era", group(0, 9, &[(3, ssz)]));
        refused(&path, &[&["block 1 of the file, byte 8: "], words].concat());
    };
    let ssz = beacon_block(3, Ok(&good));
    let change = |wrong: &dyn Fn(&mut Made)| {
        let mut made = good.clone();
        wrong(&mut made);
        beacon_block(3, Ok(&made))
    };
    check_ssz(change(&|made| made.requests = Some(Requests::default())), &["slot 3", "blockHash"]);
    check_ssz(change(&|made| made.commitments[0] = vec![9; 48].into()), &["versioned hashes"]);
    check_ssz(change(&|made| made.commitments[0] = vec![9; 47].into()), &["blob_kzg_commitments"]);
    let request =
        |kind: u8, bytes| Requests::new(vec![[vec![kind], vec![0; bytes]].concat().into()]);
    check_ssz(change(&|made| made.requests = Some(request(1, 75))), &["requests of type 1 of 75"]);
    let mut wrong = ssz.clone();
    wrong[100 + 84 + 200] ^= 1;
    check_ssz(wrong, &["slot 3", "none from phase0 to Fulu has"]);
    check_ssz(vec![], &["SignedBeaconBlock: a field from 0 to 4 of 0"]);
    check_ssz(vec![0xff; 100], &["SignedBeaconBlock: the first field at 4294967295, not 100"]);
    for end in 0..ssz.len() {
        let (found, error) =
            try_read(&folder.write("mine.era", group(0, 9, &[(3, ssz[..end].into())])));
        assert!(found.is_empty() && error.is_some(), "{end}");
    }

    let two = [(3, ssz.clone()), (5, beacon_block(5, Ok(&good)))];
    let whole = group(0, 9, &two);
    for end in 9..whole.len() {
        let (found, error) = try_read(&folder.write("mine.era", &whole[..end]));
        assert!(found.len() <= 2 && error.is_some(), "{end}");
    }
    let path = folder.write("mine.era", group(0, 9, &[(5, ssz.clone()), (3, ssz.clone())]));
    refused(&path, &["the block of slot 3 after that of 3"]);
    // The index has a slot that no block is of.
    refused(&folder.write("mine.era", group(0, 9, &[(4, ssz.clone())])), &["SlotIndex from 0 on"]);
    let mut wrong = whole.clone();
    let at = whole.len() - (8 + 24) - 8 - 5 * 8;
    wrong[at] ^= 1;
    refused(&folder.write("mine.era", wrong), &["SlotIndex from 0 on is not that of the 2 blocks"]);
    let behind = [whole.clone(), packed_entry(1, &ssz)].concat();
    refused(&folder.write("mine.era", behind), &["behind the era's state"]);
    let cut = whole.len() - (8 + 24);
    refused(&folder.write("mine.era", &whole[..cut]), &["SlotIndex expected, the era ends"]);
    let cut = [&whole[..8], &packed_entry(1, &ssz)].concat();
    refused(&folder.write("mine.era", cut), &["CompressedBeaconState expected, the era ends"]);
}
