//! era1 files: geth's own, and ones made here by the book.

use std::fs;

use alloy_consensus::proofs::{
    calculate_ommers_root, calculate_receipt_root, calculate_transaction_root,
};
use alloy_consensus::{
    Block, BlockBody, Eip658Value, Header, Receipt, ReceiptEnvelope, SignableTransaction, TxLegacy,
};
use alloy_primitives::{Address, B256, Bytes, Log, Signature, TxKind, U256, hex};
use deponent_files::{BlockForm, BlockReader, Era1Writer};
use execution::{SealedBlock, Transaction};
use sha2::{Digest, Sha256};

use super::{blocks, entry, packed_entry, read, refused, try_read};
use testing::{Folder, geth};

/// A block with the RLP of the list of its receipts, and the total difficulty with it.
pub(crate) type Mined = (SealedBlock, Vec<u8>, U256);

/// A chain that is made here: proof of work from `first` on, each block with a transaction and its
/// receipt, and every other one with an ommer.
pub(crate) fn mined(first: u64, length: u64) -> Vec<Mined> {
    let (mut parent, mut total) = (B256::ZERO, U256::from(first));
    let blocks = (first..first + length).map(|number| {
        let legacy = TxLegacy {
            nonce: number,
            gas_price: 1,
            gas_limit: 21_000,
            to: TxKind::Call(Address::repeat_byte(7)),
            value: U256::from(number),
            input: vec![0xab; (number % 300) as usize].into(),
            ..TxLegacy::default()
        };
        let signature = Signature::new(U256::from(number + 1), U256::from(5), number % 2 == 0);
        let transactions: Vec<Transaction> = match number {
            0 => vec![],
            _ => vec![legacy.into_signed(signature).into()],
        };
        let receipt = |_: &Transaction| {
            let log = Log::new_unchecked(Address::ZERO, vec![parent], Bytes::new());
            let status = match number % 2 {
                0 => Eip658Value::Eip658(true),
                _ => Eip658Value::PostState(parent),
            };
            let receipt = Receipt { status, cumulative_gas_used: 21_000, logs: vec![log] };
            match number % 3 {
                0 => ReceiptEnvelope::Eip2930(receipt.with_bloom()),
                _ => ReceiptEnvelope::Legacy(receipt.with_bloom()),
            }
        };
        let receipts: Vec<ReceiptEnvelope> = transactions.iter().map(receipt).collect();
        let ommer = Header { number, extra_data: "ommer".into(), ..Header::default() };
        let ommers = if number % 2 == 1 { vec![ommer] } else { vec![] };
        let header = Header {
            parent_hash: parent,
            number,
            difficulty: U256::from(1000 + number),
            transactions_root: calculate_transaction_root(&transactions),
            receipts_root: calculate_receipt_root(&receipts),
            ommers_hash: calculate_ommers_root(&ommers),
            gas_limit: 5000,
            timestamp: 10 * number,
            ..Header::default()
        };
        let body = BlockBody { transactions, ommers, withdrawals: None };
        let block = SealedBlock::new(Block { header, body });
        (parent, total) = (block.hash(), total + block.header.difficulty);
        (block, alloy_rlp::encode(&receipts), total)
    });
    blocks.collect()
}

/// The entries of an era1 file, each with its type.
pub(crate) fn entries(chain: &[Mined], with_receipts: bool) -> Vec<(u16, Vec<u8>)> {
    let mut entries = vec![(0x3265, entry(0x3265, &[]))];
    let mut offsets = Vec::new();
    let mut length = entries[0].1.len();
    for (block, receipts, total) in chain {
        offsets.push(length as i64);
        let mut tuple = vec![
            (3, packed_entry(3, &alloy_rlp::encode(&block.header))),
            (4, packed_entry(4, &alloy_rlp::encode(&block.body))),
        ];
        if with_receipts {
            tuple.push((5, packed_entry(5, receipts)));
        }
        tuple.push((6, entry(6, &total.to_le_bytes::<32>())));
        length += tuple.iter().map(|(_, entry)| entry.len()).sum::<usize>();
        entries.extend(tuple);
    }
    let root = accumulator(chain);
    entries.push((7, entry(7, &root[..])));
    length += 40;
    let mut index = chain[0].0.header.number.to_le_bytes().to_vec();
    for offset in &offsets {
        index.extend((offset - length as i64).to_le_bytes());
    }
    index.extend((offsets.len() as u64).to_le_bytes());
    entries.push((0x3266, entry(0x3266, &index)));
    entries
}

pub(crate) fn era1(chain: &[Mined]) -> Vec<u8> {
    joined(&entries(chain, true))
}

fn joined(entries: &[(u16, Vec<u8>)]) -> Vec<u8> {
    entries.iter().flat_map(|(_, entry)| entry.clone()).collect()
}

/// `hash_tree_root` of `List[HeaderRecord, 8192]`, by the definition, over all 8192 leaves.
fn accumulator(chain: &[Mined]) -> B256 {
    let pair = |left: &[u8], right: &[u8]| Sha256::digest([left, right].concat()).to_vec();
    let mut layer: Vec<Vec<u8>> = vec![vec![0; 32]; 8192];
    for (leaf, (block, _, total)) in layer.iter_mut().zip(chain) {
        *leaf = pair(&block.hash()[..], &total.to_le_bytes::<32>());
    }
    while layer.len() > 1 {
        layer = layer.chunks(2).map(|two| pair(&two[0], &two[1])).collect();
    }
    let mut length = [0; 32];
    length[..8].copy_from_slice(&(chain.len() as u64).to_le_bytes());
    B256::from_slice(&pair(&layer[0], &length))
}

#[test]
fn geths_files_are_read() {
    for (name, first, head) in [
        ("sepolia-00000-643a00f7.era1", 0, None),
        ("sepolia-00021-b8814b14.era1", 21 * 8192, None::<B256>),
    ] {
        let Some(path) = geth::archive(name) else { return };
        let reader = BlockReader::open(&path).expect("open");
        assert_eq!(reader.form(), BlockForm::Era1);
        let found = read(&path);
        assert_eq!(found.len(), 8192);
        assert_eq!(found[0].block.header.number, first);
        assert!(found.windows(2).all(|pair| {
            pair[1].block.header.parent_hash == pair[0].block.hash()
                && pair[1].total_difficulty
                    == Some(pair[0].total_difficulty.unwrap() + pair[1].block.header.difficulty)
        }));
        assert_eq!(found[0].block.hash(), head.unwrap_or(found[0].block.hash()));
        // The genesis of Sepolia is well known.
        if first == 0 {
            let genesis = "25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9";
            assert_eq!(hex::encode(found[0].block.hash()), genesis);
        }
    }
}

/// geth's files are written again with the same accumulator root in their names.
#[test]
fn geths_files_are_written_again_under_their_names() {
    let name = "sepolia-00021-b8814b14.era1";
    let Some(path) = geth::archive(name) else { return };
    let folder = Folder::new();
    let receipts = receipts_of(&fs::read(&path).expect("a file"));
    let mut writer = Era1Writer::create(folder.directory(), "sepolia").expect("begun");
    for (block, receipts) in read(&path).iter().zip(&receipts) {
        assert!(!writer.is_full());
        let total = block.total_difficulty.expect("a total difficulty");
        writer.write(&block.block, receipts, total).expect("written");
    }
    assert!(writer.is_full());
    let written = writer.finish().expect("finished");
    assert_eq!(written, folder.path(name));
    assert_eq!(blocks(&read(&written)), blocks(&read(&path)));
    assert_eq!(receipts_of(&fs::read(&written).expect("a file")), receipts);
}

/// The unpacked receipts of all blocks.
pub(crate) fn receipts_of(mut file: &[u8]) -> Vec<Vec<u8>> {
    use std::io::Read;
    let mut found = Vec::new();
    while let [k0, k1, l0, l1, l2, l3, _, _, rest @ ..] = file {
        let length = u32::from_le_bytes([*l0, *l1, *l2, *l3]) as usize;
        if u16::from_le_bytes([*k0, *k1]) == 5 {
            let mut receipts = Vec::new();
            snap::read::FrameDecoder::new(&rest[..length])
                .read_to_end(&mut receipts)
                .expect("snappy");
            found.push(receipts);
        }
        file = &rest[length..];
    }
    found
}

#[test]
fn a_file_made_by_the_book_is_read() {
    let folder = Folder::new();
    for (first, length) in [(0, 1), (0, 57), (8192, 33)] {
        let chain = mined(first, length);
        let found = read(&folder.write("mine.era1", era1(&chain)));
        assert_eq!(found.len(), chain.len());
        for (found, (block, _, total)) in found.iter().zip(&chain) {
            assert_eq!((&found.block, found.total_difficulty), (block, Some(*total)));
        }
        let without = joined(&entries(&chain, false));
        assert_eq!(read(&folder.write("mine.era1", without)).len(), chain.len());
        // Entries of other types may stand before the accumulator.
        let mut more = entries(&chain, true);
        more.insert(more.len() - 2, (0x99, entry(0x99, b"more")));
        let index = more.pop().expect("the index");
        let shifted = fix_index(&index.1, -12);
        more.push((0x3266, shifted));
        assert_eq!(read(&folder.write("mine.era1", joined(&more))).len(), chain.len());
    }
}

/// The index entry with all offsets changed.
fn fix_index(entry: &[u8], by: i64) -> Vec<u8> {
    let mut words: Vec<i64> =
        entry[8..].as_chunks().0.iter().map(|word| i64::from_le_bytes(*word)).collect();
    let last = words.len() - 1;
    words[1..last].iter_mut().for_each(|word| *word += by);
    [entry[..8].to_vec(), words.into_iter().flat_map(i64::to_le_bytes).collect()].concat()
}

#[test]
fn our_files_are_those_by_the_book() {
    let folder = Folder::new();
    let chain = mined(0, 57);
    let mut writer = Era1Writer::create(folder.directory(), "mine").expect("begun");
    for (block, receipts, total) in &chain {
        writer.write(block, receipts, *total).expect("written");
    }
    let path = writer.finish().expect("finished");
    let root = hex::encode(&accumulator(&chain)[..4]);
    assert_eq!(path, folder.path(&format!("mine-00000-{root}.era1")));
    assert_eq!(fs::read(&path).expect("a file"), era1(&chain));
    assert_eq!(fs::read_dir(folder.directory()).expect("a folder").count(), 1);

    // A name that says something else is found out.
    for name in ["mine-00001-{}.era1", "mine-00000-00000000.era1"] {
        let other = folder.path(&name.replace("{}", &root));
        fs::rename(&path, &other).expect("renamed");
        refused(&other, &["the content is that of a file NETWORK-00000-", &root]);
        fs::rename(&other, &path).expect("renamed");
    }
    let free = folder.write("mine-again.era1", fs::read(&path).expect("a file"));
    assert_eq!(read(&free).len(), 57);
}

#[test]
fn from_a_number_on_the_whole_file_is_checked_still() {
    let folder = Folder::new();
    let chain = mined(0, 40);
    let path = folder.write("mine.era1", era1(&chain));
    let rest = BlockReader::open(&path).expect("open").from_number(30);
    let rest: Vec<_> = rest.map(|block| block.expect("a block").block).collect();
    let expected: Vec<_> = chain[30..].iter().map(|(block, ..)| block.clone()).collect();
    assert_eq!(rest, expected);
    let mut all = entries(&chain, true);
    let place = all.len() - 2;
    all[place].1[20] ^= 1;
    let path = folder.write("mine.era1", joined(&all));
    let mut rest = BlockReader::open(&path).expect("open").from_number(100);
    let error = rest.next().expect("an error").expect_err("an error").to_string();
    assert!(error.contains("Accumulator"), "{error}");
}

#[test]
fn what_a_writer_cannot_hold_is_refused() {
    let folder = Folder::new();
    let chain = mined(0, 3);
    let create = || Era1Writer::create(folder.directory(), "mine").expect("begun");
    let refused = |writer: &mut Era1Writer, mined: &Mined, word: &str| {
        let error = writer.write(&mined.0, &mined.1, mined.2).expect_err("refused").to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(&mut create(), &chain[1], "begins at a multiple of 8192");
    let mut writer = create();
    let (block, receipts, total) = &chain[0];
    writer.write(block, receipts, *total).expect("written");
    refused(&mut writer, &chain[2], "not the one after block 0");
    let (block, receipts, total) = chain[1].clone();
    refused(&mut writer, &(block.clone(), receipts, total + U256::from(1)), "total difficulty");
    refused(&mut writer, &(block.clone(), vec![0xc0], total), "receipts root");
    refused(&mut writer, &(block, vec![0x80], total), "its receipts");
    let error = create().finish().expect_err("refused").to_string();
    assert!(error.contains("needs a block"), "{error}");
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_place() {
    let folder = Folder::new();
    let chain = mined(0, 5);
    let all = entries(&chain, true);
    #[allow(clippy::type_complexity)] // the entries of an e2store file
    let check = |change: &dyn Fn(&mut Vec<(u16, Vec<u8>)>), words: &[&str]| {
        let mut wrong = all.clone();
        change(&mut wrong);
        refused(&folder.write("mine.era1", joined(&wrong)), &[&["byte "], words].concat());
    };
    // Blocks are at 1, 5, 9, 13 and 17, the accumulator at 21, the index at 22.
    check(&|all| drop(all.remove(2)), &["CompressedBody expected, CompressedReceipts found"]);
    check(&|all| all[2] = all[5].clone(), &["CompressedReceipts out of place"]);
    check(&|all| all[6] = all[9].clone(), &["CompressedBody expected, CompressedHeader found"]);
    check(&|all| drop(all.remove(4)), &["TotalDifficulty expected, CompressedHeader found"]);
    check(&|all| drop(all.remove(21)), &["BlockIndex out of place"]);
    check(&|all| all.truncate(21), &["Accumulator expected, the file ends"]);
    check(&|all| all.truncate(22), &["BlockIndex expected, the file ends"]);
    check(&|all| all.truncate(2), &["CompressedBody expected, the file ends"]);
    check(&|all| all.push(all[1].clone()), &["CompressedHeader out of place"]);
    check(&|all| all.swap(6, 10), &["the body of block 1", "transactions root"]);
    check(&|all| all.swap(7, 15), &["receipts of block 1: root"]);
    check(&|all| drop(all.drain(5..9)), &["block 2 of the file", "block 2 on", "after block 0"]);
    check(&|all| all[8].1[8] ^= 1, &["total difficulty", "of block 1"]);
    check(&|all| all[4].1[8] ^= 1, &["total difficulty", "of block 0"]);
    check(&|all| all[21].1[8] ^= 1, &["that of the blocks is"]);
    check(&|all| all[22].1[8] ^= 1, &["BlockIndex is not that of the 5 blocks from 0 on"]);
    check(&|all| all[22].1[16] ^= 1, &["BlockIndex is not that"]);
    check(&|all| *all[22].1.last_mut().expect("bytes") = 9, &["says that it has"]);
    check(&|all| all[5].1[40] ^= 1, &["CompressedHeader: snappy frames expected"]);
    check(&|all| all[6].1[7] = 1, &["e2store entry ends with [0, 1]"]);
    check(&|all| all[5] = (3, packed_entry(3, &[0xc0])), &["CompressedHeader: "]);
    // It packs into 3 KB.
    let long = packed_entry(3, &[0; (64 << 10) + 1]);
    check(&|all| all[5] = (3, long.clone()), &["CompressedHeader unpacks to over 65536 bytes"]);
    check(&|all| all[6] = (4, packed_entry(4, &[0xc0])), &["CompressedBody: "]);
    check(&|all| all[7] = (5, packed_entry(5, &[0xc2, 0x81])), &["CompressedReceipts: "]);
    check(&|all| all[8] = (6, entry(6, &[0; 31])), &["TotalDifficulty of 31 bytes"]);
    let whole = joined(&all);
    for end in 9..whole.len() {
        let path = folder.write("mine.era1", &whole[..end]);
        let (found, error) = try_read(&path);
        assert!(found.len() <= 5 && error.is_some(), "{end}");
    }
    // A block whose roots are zero: it begins as an era1 file does, and ends as an ere file.
    let ere = geth::archive("noreceipts/sepolia-00000-deadbeef-noreceipts.ere");
    if let Some(ere) = ere {
        refused(&ere, &["the body of block 0: transactions root"]);
        let mut passed_over = BlockReader::open(&ere).expect("open").from_number(1);
        let error = passed_over.next().expect("an error").expect_err("an error").to_string();
        assert!(error.contains("the content is that of a file NETWORK-00000-"), "{error}");
        assert_eq!(passed_over.form(), BlockForm::Ere);
    }
}
