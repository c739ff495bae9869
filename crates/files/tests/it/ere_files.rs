//! ere files made here by the book, over the merge and on both sides of it.

use std::fs;
use std::ops::Range;

use alloy_consensus::proofs::{calculate_receipt_root, calculate_transaction_root};
use alloy_consensus::{
    Block, BlockBody, Eip658Value, Header, Receipt, ReceiptEnvelope, SignableTransaction, TxEip1559,
};
use alloy_eips::eip2718::Typed2718;
use alloy_primitives::{Address, B256, Bytes, Log, Signature, U256, hex};
use alloy_rlp::{Decodable, Encodable};
use deponent_files::{BlockForm, BlockReader, EreWriter};
use execution::{SealedBlock, Transaction};
use sha2::{Digest, Sha256};

use super::era1_files::{Mined, era1, mined, receipts_of};
use super::{blocks, entry, packed_entry, read, refused, try_read};
use testing::{Folder, Random, geth};

/// Blocks of proof of stake behind `chain`, or from `first` on.
fn staked(chain: &[Mined], first: u64, length: u64) -> Vec<Mined> {
    let (mut parent, total) = match chain.last() {
        Some((block, _, total)) => (block.hash(), *total),
        None => (B256::repeat_byte(1), U256::from(5)),
    };
    let blocks = (first..first + length).map(|number| {
        let transactions: Vec<Transaction> = (0..number % 4)
            .map(|nonce| {
                let transaction = TxEip1559 { nonce, ..TxEip1559::default() };
                let signature = Signature::new(U256::from(number + 1), U256::from(7), true);
                transaction.into_signed(signature).into()
            })
            .collect();
        let receipts: Vec<ReceiptEnvelope> = (0..number % 4)
            .map(|at| {
                let log = |topics: u64| {
                    let topics = (0..topics).map(|_| parent).collect();
                    Log::new_unchecked(Address::repeat_byte(9), topics, Bytes::from(vec![7; 40]))
                };
                let status = Eip658Value::Eip658(at != 1);
                let logs = (0..at + number % 5).map(log).collect();
                let receipt = Receipt { status, cumulative_gas_used: 21_000 * at, logs };
                ReceiptEnvelope::Eip1559(receipt.with_bloom())
            })
            .collect();
        let header = Header {
            parent_hash: parent,
            number,
            transactions_root: calculate_transaction_root(&transactions),
            receipts_root: calculate_receipt_root(&receipts),
            withdrawals_root: Some(alloy_consensus::EMPTY_ROOT_HASH),
            base_fee_per_gas: Some(7),
            ..Header::default()
        };
        let body = BlockBody { transactions, ommers: vec![], withdrawals: Some(Vec::new().into()) };
        let block = SealedBlock::new(Block { header, body });
        parent = block.hash();
        (block, alloy_rlp::encode(&receipts), total)
    });
    blocks.collect()
}

/// A chain from `first` on: so many blocks of proof of work, then so many of proof of stake.
pub(crate) fn merged(first: u64, work: u64, stake: u64) -> Vec<Mined> {
    let mut chain = mined(first, work);
    chain.extend(staked(&chain, first + work, stake));
    chain
}

/// The list of slim receipts, by the definition.
fn slim(receipts: &[u8]) -> Vec<u8> {
    let receipts = Vec::<ReceiptEnvelope>::decode(&mut &*receipts).expect("receipts");
    let one = |receipt: &ReceiptEnvelope| {
        let whole = receipt.as_receipt().expect("a receipt");
        let mut content = Vec::new();
        receipt.ty().encode(&mut content);
        whole.status.encode(&mut content);
        whole.cumulative_gas_used.encode(&mut content);
        whole.logs.encode(&mut content);
        list(&content)
    };
    list(&receipts.iter().flat_map(one).collect::<Vec<u8>>())
}

fn list(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    alloy_rlp::Header { list: true, payload_length: content.len() }.encode(&mut out);
    out.extend(content);
    out
}

/// The parts that a file has beside headers and bodies, and their order in its index.
#[derive(Clone, Copy)]
struct Parts {
    receipts: bool,
    proofs: bool,
    totals: bool,
    index: [u16; 5],
}

const ALL: Parts = Parts { receipts: true, proofs: true, totals: true, index: [3, 4, 10, 6, 11] };

/// As geth and this crate write it.
const NO_PROOFS: Parts = Parts { proofs: false, ..ALL };

fn pair(left: &[u8], right: &[u8]) -> Vec<u8> {
    Sha256::digest([left, right].concat()).to_vec()
}

/// All layers of the tree of `List[HeaderRecord, 8192]`, the leaves first, by the definition.
fn layers(chain: &[Mined]) -> Vec<Vec<Vec<u8>>> {
    let of_work = |block: &&Mined| !block.0.header.difficulty.is_zero();
    let mut leaves: Vec<Vec<u8>> = vec![vec![0; 32]; 8192];
    for (leaf, (block, _, total)) in leaves.iter_mut().zip(chain.iter().filter(of_work)) {
        *leaf = pair(&block.hash()[..], &total.to_le_bytes::<32>());
    }
    let mut layers = vec![leaves];
    while layers[layers.len() - 1].len() > 1 {
        let last = &layers[layers.len() - 1];
        layers.push(last.chunks(2).map(|two| pair(&two[0], &two[1])).collect());
    }
    layers
}

fn length_of_work(chain: &[Mined]) -> [u8; 32] {
    let of_work = chain.iter().filter(|block| !block.0.header.difficulty.is_zero()).count();
    U256::from(of_work).to_le_bytes()
}

/// A proof of block `at`: that it is in the accumulator, or one that ends in the beacon chain.
fn proof(chain: &[Mined], layers: &[Vec<Vec<u8>>], at: usize) -> Vec<u8> {
    let mut hashes = vec![];
    let kind: u8 = if chain[at].0.header.difficulty.is_zero() { 2 } else { 0 };
    if kind == 0 {
        hashes.extend(chain[at].2.to_le_bytes::<32>());
        for (depth, layer) in layers[..13].iter().enumerate() {
            hashes.extend(&layer[(at >> depth) ^ 1]);
        }
        hashes.extend(length_of_work(chain));
    } else {
        hashes.extend([0xbe; 700]);
    }
    list(&[alloy_rlp::encode(kind), alloy_rlp::encode(Bytes::from(hashes))].concat())
}

/// The entries of an ere file, each with its type.
fn entries(chain: &[Mined], parts: Parts) -> Vec<(u16, Vec<u8>)> {
    let layers = layers(chain);
    let accumulator = pair(&layers[13][0], &length_of_work(chain));
    let has_totals = parts.totals && !chain[0].0.header.difficulty.is_zero();
    let value = |kind: u16, at: usize| {
        let (block, receipts, total) = &chain[at];
        match kind {
            3 => packed_entry(3, &alloy_rlp::encode(&block.header)),
            4 => packed_entry(4, &alloy_rlp::encode(&block.body)),
            10 => packed_entry(10, &slim(receipts)),
            11 => packed_entry(11, &proof(chain, &layers, at)),
            _ => entry(6, &total.to_le_bytes::<32>()),
        }
    };
    let has = |kind: &u16| match kind {
        10 => parts.receipts,
        11 => parts.proofs,
        6 => has_totals,
        _ => true,
    };
    let mut entries = vec![(0x3265, entry(0x3265, &[]))];
    for kind in [3, 4, 10, 11, 6].into_iter().filter(has) {
        entries.extend((0..chain.len()).map(|at| (kind, value(kind, at))));
    }
    if !chain[0].0.header.difficulty.is_zero() {
        entries.push((7, entry(7, &accumulator)));
    }
    let index = index(&entries, chain[0].0.header.number, parts.index);
    entries.push((0x3267, index));
    entries
}

/// The index behind the entries.
fn index(entries: &[(u16, Vec<u8>)], first: u64, order: [u16; 5]) -> Vec<u8> {
    let begins: usize = entries.iter().map(|(_, entry)| entry.len()).sum();
    let offsets = |kind: u16| {
        let mut at = 0_usize;
        let mut offsets = Vec::new();
        for (found, entry) in entries {
            if *found == kind {
                offsets.push((at as u64).wrapping_sub(begins as u64));
            }
            at += entry.len();
        }
        offsets
    };
    let columns: Vec<Vec<u64>> =
        order.into_iter().map(offsets).filter(|offsets| !offsets.is_empty()).collect();
    let mut words = vec![first];
    for at in 0..columns[0].len() {
        words.extend(columns.iter().map(|offsets| offsets[at]));
    }
    words.extend([columns.len() as u64, columns[0].len() as u64]);
    entry(0x3267, &words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
}

fn joined(entries: &[(u16, Vec<u8>)]) -> Vec<u8> {
    entries.iter().flat_map(|(_, entry)| entry.clone()).collect()
}

/// An ere file as geth writes it.
pub(crate) fn ere(chain: &[Mined]) -> Vec<u8> {
    joined(&entries(chain, NO_PROOFS))
}

fn sealed(chain: &[Mined]) -> Vec<SealedBlock> {
    chain.iter().map(|(block, ..)| block.clone()).collect()
}

/// Before the merge, over it, behind it; with one block, too.
const CHAINS: [(u64, u64, u64); 7] =
    [(0, 1, 0), (0, 57, 0), (8192, 33, 0), (0, 20, 13), (16384, 1, 1), (8192, 0, 40), (8192, 0, 1)];

#[test]
fn files_made_by_the_book_are_read() {
    let folder = Folder::new();
    for (first, work, stake) in CHAINS {
        let chain = merged(first, work, stake);
        for receipts in [true, false] {
            for proofs in [true, false] {
                for totals in [true, false] {
                    for index in [[3, 4, 10, 6, 11], [3, 4, 10, 11, 6], [4, 3, 6, 10, 11]] {
                        let parts = Parts { receipts, proofs, totals, index };
                        let path = folder.write("mine.ere", joined(&entries(&chain, parts)));
                        assert_eq!(blocks(&read(&path)), sealed(&chain));
                    }
                }
            }
        }
        let path = folder.write("mine.ere", ere(&chain));
        let mut reader = BlockReader::open(&path).expect("open");
        assert!(chain.len() == 1 || reader.form() == BlockForm::Ere);
        assert_eq!(reader.by_ref().count(), chain.len());
        assert_eq!(reader.form(), BlockForm::Ere);
        // Entries of other types may stand before the index.
        let mut more = entries(&chain, ALL);
        more.pop();
        more.push((0x99, entry(0x99, b"more")));
        let index = index(&more, first, ALL.index);
        more.push((0x3267, index));
        let path = folder.write("mine.ere", joined(&more));
        assert_eq!(blocks(&read(&path)), sealed(&chain));
    }
}

fn written(folder: &Folder, chain: &[Mined]) -> std::path::PathBuf {
    let mut writer = EreWriter::create(folder.directory(), "mine").expect("begun");
    for (block, receipts, total) in chain {
        writer.write(block, receipts, *total).expect("written");
    }
    assert_eq!(writer.first_number(), Some(chain[0].0.header.number));
    writer.finish().expect("finished")
}

#[test]
fn our_files_are_those_by_the_book() {
    for (first, work, stake) in CHAINS {
        let folder = Folder::new();
        let chain = merged(first, work, stake);
        let path = written(&folder, &chain);
        let hash = hex::encode(&chain[chain.len() - 1].0.hash()[..4]);
        let era = first / 8192;
        assert_eq!(path, folder.path(&format!("mine-{era:05}-{hash}-noproofs.ere")));
        assert_eq!(fs::read(&path).expect("a file"), ere(&chain));
        // Nothing that waited on the disk is left.
        assert_eq!(fs::read_dir(folder.directory()).expect("a folder").count(), 1);
        assert_eq!(blocks(&read(&path)), sealed(&chain));

        // A name that says something else is found out, whatever its profile.
        for name in ["mine-00009-{}.ere", "mine-{era}-00000000-noproofs-noreceipts.ere"] {
            let name = name.replace("{}", &hash).replace("{era}", &format!("{era:05}"));
            let other = folder.path(&name);
            fs::rename(&path, &other).expect("renamed");
            let words = format!("{}: the content is that of a file NETWORK-", other.display());
            refused(&other, &[&words, &format!("{hash}.ere")]);
            fs::rename(&other, &path).expect("renamed");
        }
        for name in [format!("m-n-{era:05}-{hash}.ere"), "anything.ere".into()] {
            let free = folder.write(&name, fs::read(&path).expect("a file"));
            assert_eq!(read(&free).len(), chain.len());
        }
    }
}

/// An era1 file of the same blocks is the plain twin: it has each block in one place.
#[test]
fn random_chains_are_the_same_through_both_archives() {
    let mut random = Random::seeded();
    for _ in 0..20 {
        let folder = Folder::new();
        let first = 8192 * random.below(3) as u64;
        let chain = mined(first, 1 + random.below(200) as u64);
        let (ours, twin) = (written(&folder, &chain), folder.write("twin.era1", era1(&chain)));
        let from = first + random.below(chain.len() + 3) as u64;
        let rest = |path: &std::path::Path| -> Vec<SealedBlock> {
            let reader = BlockReader::open(path).expect("open").from_number(from);
            reader.map(|block| block.expect("a block").block).collect()
        };
        assert_eq!(rest(&ours), rest(&twin));
        assert_eq!(blocks(&read(&ours)), blocks(&read(&twin)));
    }
}

/// Blocks of Sepolia, a whole archive of them.
#[test]
fn real_blocks_go_through_an_ere_file() {
    let Some(path) = geth::archive("sepolia-00021-b8814b14.era1") else { return };
    let folder = Folder::new();
    let receipts = receipts_of(&fs::read(&path).expect("a file"));
    let real = read(&path);
    let chain: Vec<Mined> = real
        .iter()
        .zip(receipts)
        .map(|(found, receipts)| {
            (found.block.clone(), receipts, found.total_difficulty.expect("in era1 files"))
        })
        .collect();
    assert_eq!(blocks(&read(&written(&folder, &chain))), blocks(&real));
}

#[test]
fn from_a_number_on_the_whole_file_is_checked_still() {
    let folder = Folder::new();
    let chain = merged(0, 30, 10);
    let all = entries(&chain, ALL);
    let end = |all: &[(u16, Vec<u8>)], from: u64| {
        let path = folder.write("mine.ere", joined(all));
        let rest = BlockReader::open(&path).expect("open").from_number(from);
        let (found, errors): (Vec<_>, Vec<_>) = rest.partition(Result::is_ok);
        let error = errors.into_iter().next().map(|error| error.expect_err("one").to_string());
        (found.len(), error)
    };
    assert_eq!(end(&all, 35), (5, None));
    assert_eq!(end(&all, 100), (0, None));
    let mut wrong = all.clone();
    let place = all.len() - 2;
    wrong[place].1[20] ^= 1;
    let (found, error) = end(&wrong, 100);
    assert_eq!(found, 0);
    assert!(error.expect("an error").contains("Accumulator"));
}

/// A fault behind the bodies is found out, too; the blocks were right.
#[test]
fn a_file_that_is_wrong_is_refused_with_its_place() {
    let folder = Folder::new();
    let chain = merged(0, 3, 2);
    let all = entries(&chain, ALL);
    #[allow(clippy::type_complexity)] // the entries of an e2store file
    let check = |change: &dyn Fn(&mut Vec<(u16, Vec<u8>)>), words: &[&str]| {
        let mut wrong = all.clone();
        change(&mut wrong);
        refused(&folder.write("mine.ere", joined(&wrong)), &[&["byte "], words].concat());
    };
    let (header, body, receipts, proof, total) = (1, 6, 11, 16, 21);
    let (root, index) = (26, 27);
    assert_eq!(all.len(), index + 1);
    check(&|all| drop(all.remove(body + 4)), &["CompressedBody of 4 blocks", "5 headers"]);
    check(&|all| drop(all.remove(header + 4)), &["more than 4 of CompressedBody"]);
    check(&|all| drop(all.remove(header + 1)), &["block 2 on", "after block 0"]);
    check(&|all| drop(all.remove(receipts)), &["CompressedSlimReceipts: unexpected list"]);
    check(&|all| drop(all.remove(receipts + 4)), &["CompressedSlimReceipts of 4 blocks"]);
    check(&|all| drop(all.drain(body..receipts)), &["CompressedSlimReceipts out of place"]);
    check(&|all| all.swap(body + 1, body + 3), &["the body of block 1", "root"]);
    check(
        &|all| all.swap(receipts + 1, receipts + 2),
        &["block 2 of the file", "receipts of block 1: root"],
    );
    check(&|all| all[total + 1].1[8] ^= 1, &["total difficulty", "of block 1"]);
    check(
        &|all| all[total + 4].1[8] ^= 1,
        &["block 5 of the file", "total difficulty", "of block 4"],
    );
    check(&|all| all[root].1[8] ^= 1, &["Accumulator", "that of the blocks is"]);
    check(&|all| drop(all.remove(total + 4)), &["TotalDifficulty of 4 blocks, where Accumulator"]);
    check(&|all| all.swap(total, proof), &["Proof out of place"]);
    check(&|all| all.swap(body, receipts), &["CompressedSlimReceipts out of place"]);
    check(&|all| all[index].1[8] ^= 1, &["DynamicBlockIndex is not that of the 5 parts"]);
    check(&|all| all[index].1[16] ^= 1, &["DynamicBlockIndex is not that"]);
    check(&|all| all[index].1[8 + 8 + 8 * 12] ^= 1, &["DynamicBlockIndex is not that"]);
    check(
        &|all| *all[index].1.iter_mut().rev().nth(7).expect("a count") = 9,
        &["says that it has"],
    );
    check(&|all| all[index].1.iter_mut().rev().take(16).for_each(|byte| *byte = 0xff), &["says"]);
    check(&|all| all[index] = (0x3267, entry(0x3267, &[0; 16])), &["without a count"]);
    check(
        &|all| all[index] = (0x3267, entry(0x3267, &[0; 24])),
        &["DynamicBlockIndex is not that"],
    );
    check(&|all| all.push(all[index].clone()), &["DynamicBlockIndex out of place"]);
    check(&|all| all.push(all[total].clone()), &["TotalDifficulty out of place"]);
    check(&|all| all.insert(root, all[root].clone()), &["Accumulator out of place"]);
    check(&|all| all.insert(3, all[0].clone()), &["Version out of place"]);
    check(&|all| all.truncate(index), &["DynamicBlockIndex expected, the file ends"]);
    check(&|all| all.truncate(body), &["DynamicBlockIndex expected, the file ends"]);
    check(&|all| drop(all.drain(body..index)), &["CompressedBody expected, the index found"]);
    check(&|all| all[body] = (4, packed_entry(4, &[0xc0])), &["CompressedBody: "]);
    check(&|all| all[header + 1].1[40] ^= 1, &["CompressedHeader: snappy frames expected"]);
    // The same first part twice in the index.
    check(
        &|all| {
            let words: &mut [[u8; 8]] = all[index].1.as_chunks_mut().0;
            (0..5).for_each(|row| words[2 + 5 * row + 1] = words[2 + 5 * row]);
        },
        &["DynamicBlockIndex is not that"],
    );
    let whole = joined(&all);
    for end in 9..whole.len() {
        let (found, error) = try_read(&folder.write("mine.ere", &whole[..end]));
        assert!(found.len() <= 5 && error.is_some(), "{end}");
    }
}

#[test]
fn proofs_that_the_accumulator_does_not_bear_out_are_refused() {
    let folder = Folder::new();
    let chain = merged(0, 3, 2);
    let all = entries(&chain, ALL);
    let layers = layers(&chain);
    let check = |at: usize, rlp: Vec<u8>, words: &[&str]| {
        let mut wrong = all.clone();
        wrong[16 + at] = (11, packed_entry(11, &rlp));
        refused(&folder.write("mine.ere", joined(&wrong)), &[&["byte "], words].concat());
    };
    let ours = |at: usize| proof(&chain, &layers, at);
    let flipped = |mut rlp: Vec<u8>, at: usize| {
        let place = rlp.len() - at;
        rlp[place] ^= 1;
        rlp
    };
    check(1, ours(0), &["that of the block before in"]);
    check(2, flipped(ours(2), 1), &["that of the block before in"]);
    check(3, ours(0), &["of type 0, the block is of proof of stake"]);
    check(0, list(&[0x80, 0x80]), &["0 bytes of type 0"]);
    check(0, list(&[0x80]), &["Proof: "]);
    check(0, list(&[0x80, 0x80, 0x80]), &["Proof: "]);
    check(0, vec![0; 5000], &["Proof unpacks to over 4096 bytes"]);
    // All are wrong in the same way: the accumulator tells.
    let alone = merged(8192, 1, 2);
    let wrong = flipped(proof(&alone, &self::layers(&alone), 0), 1);
    let mut all = entries(&alone, ALL);
    all.pop();
    all[10] = (11, packed_entry(11, &wrong));
    let index = index(&all, 8192, ALL.index);
    all.push((0x3267, index));
    let path = folder.write("mine.ere", joined(&all));
    refused(&path, &["the proofs end in", "the accumulator is"]);
}

/// A few kilobytes that unpack to a lot, and lists of more than there can be.
#[test]
fn what_unpacks_to_too_much_is_refused() {
    let folder = Folder::new();
    let chain = merged(8192, 0, 3);
    let all = entries(&chain, ALL);
    let check = |at: usize, packed: (u16, Vec<u8>), words: &str| {
        let mut wrong = all.clone();
        wrong[at] = packed;
        refused(&folder.write("mine.ere", joined(&wrong)), &[words]);
    };
    let bomb = |kind: u16, bytes: usize| (kind, packed_entry(kind, &vec![0; bytes]));
    check(2, bomb(3, (64 << 10) + 1), "CompressedHeader unpacks to over 65536 bytes");
    check(4, bomb(4, (256 << 20) + 1), "CompressedBody unpacks to over 268435456 bytes");
    check(7, bomb(10, (256 << 20) + 1), "CompressedSlimReceipts unpacks to over 268435456 bytes");
    // More receipts than transactions, of which block 8192 has none.
    let many = list(&vec![0xc0; 1 << 20]);
    check(7, (10, packed_entry(10, &many)), "CompressedSlimReceipts: ");
    // Headers that are long together.
    let mut entries = vec![entry(0x3265, &[])];
    let mut parent = B256::ZERO;
    for number in 0..1200 {
        let extra_data = Bytes::from(vec![0; 60_000]);
        let header = Header { number, parent_hash: parent, extra_data, ..Header::default() };
        parent = header.hash_slow();
        entries.push(packed_entry(3, &alloy_rlp::encode(&header)));
    }
    let path = folder.write("mine.ere", entries.concat());
    assert!(path.metadata().expect("a file").len() < 5 << 20);
    refused(&path, &["headers of over 67108864 bytes in one ere file"]);
    // So many that their number is wrong.
    let header = |number: u64| Header { number, ..Header::default() };
    let long = entry(3, &vec![0xff; 1 << 20]);
    refused(
        &folder.write("mine.ere", [entry(0x3265, &[]), long].concat()),
        &["CompressedHeader: snappy frames expected"],
    );
    let one = packed_entry(3, &alloy_rlp::encode(header(0)));
    let claims = [&3_u16.to_le_bytes()[..], &u32::MAX.to_le_bytes(), &[0, 0, 1]].concat();
    let file = [entry(0x3265, &[]), one, claims].concat();
    refused(&folder.write("mine.ere", file), &["the file ends after 1 of them"]);
}

#[test]
fn what_a_writer_cannot_hold_is_refused() {
    let folder = Folder::new();
    let chain = merged(0, 2, 2);
    let create = || EreWriter::create(folder.directory(), "mine").expect("begun");
    let refused = |writer: &mut EreWriter, block: &Mined, word: &str| {
        let error = writer.write(&block.0, &block.1, block.2).expect_err("refused").to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(&mut create(), &chain[1], "begins at a multiple of 8192");
    let mut writer = create();
    let write = |writer: &mut EreWriter, blocks: Range<usize>| {
        for (block, receipts, total) in &chain[blocks] {
            writer.write(block, receipts, *total).expect("written");
        }
    };
    write(&mut writer, 0..1);
    refused(&mut writer, &chain[2], "not the one after block 0");
    let (block, receipts, total) = chain[1].clone();
    refused(&mut writer, &(block.clone(), receipts, total + U256::from(1)), "total difficulty");
    refused(&mut writer, &(block.clone(), vec![0xc0], total), "receipts root");
    refused(&mut writer, &(block, vec![0x80], total), "its receipts");
    write(&mut writer, 1..3);
    let header = Header {
        number: 3,
        parent_hash: chain[2].0.hash(),
        difficulty: U256::from(1),
        ..Header::default()
    };
    let late = SealedBlock::new(Block { header, body: BlockBody::default() });
    refused(&mut writer, &(late, vec![0xc0], total + U256::from(1)), "of proof of work after one");
    let error = create().finish().expect_err("refused").to_string();
    assert!(error.contains("needs a block"), "{error}");
}
