//! Files that are broken anywhere: an error with the file's name, never a panic, and never a block
//! that was not in the file.

use execution::SealedBlock;

use super::block_files::gzip;
use super::era_files::{era, made};
use super::era1_files::{era1, mined};
use super::ere_files::{ere, merged};
use super::{blocks, check_error, read, rlp, try_read};
use testing::{Folder, Random};

/// Ways in which each file is broken.
const TRIES: usize = 400;

fn check(name: &str, file: &[u8], random: &mut Random, original: Option<&[SealedBlock]>) {
    let folder = Folder::new();
    for attempt in 0..TRIES {
        let path = folder.write(name, random.damaged(file));
        let (found, error) = try_read(&path);
        if let Some(error) = error {
            check_error(&path, &error, &[]);
        }
        if let Some(original) = original {
            assert!(found.iter().all(|block| original.contains(block)), "{name}, {attempt}");
        }
    }
}

#[test]
fn files_broken_anywhere_are_refused() {
    let mut random = Random::seeded();
    let folder = Folder::new();
    let mine = mined(0, 12);
    let proof_of_work: Vec<SealedBlock> = mine.iter().map(|(block, ..)| block.clone()).collect();
    check("any.rlp", &rlp(&proof_of_work), &mut random, None);
    check("any.era1", &era1(&mine), &mut random, Some(&proof_of_work));
    let chain = merged(0, 7, 5);
    let original: Vec<SealedBlock> = chain.iter().map(|(block, ..)| block.clone()).collect();
    check("any.ere", &ere(&chain), &mut random, Some(&original));
    let (bytes, all) = era(3);
    let original: Vec<SealedBlock> = all.iter().map(|made| made.block.clone()).collect();
    check("any.era", &bytes, &mut random, Some(&original));
    check("any.era.gz", &gzip(&bytes), &mut random, Some(&original));
    let path = folder.path("any.jsonl");
    let mut writer =
        deponent_files::BlockWriter::create(&path, deponent_files::BlockForm::Json).expect("begun");
    for made in &all {
        let (block, requests) = (&made.block, made.requests.as_ref());
        let export = deponent_files::ExportBlock { block, requests, access_list: None };
        writer.write(export).expect("written");
    }
    writer.finish().expect("finished");
    assert_eq!(blocks(&read(&path)), original);
    check("any.jsonl", &std::fs::read(&path).expect("a file"), &mut random, Some(&original));
}

#[test]
fn files_of_random_bytes_are_refused() {
    let mut random = Random::seeded();
    let folder = Folder::new();
    let block = rlp(&[made("capella", 2).block]);
    let heads: [&[u8]; 13] = [
        b"e2\0\0\0\0\0\0\x03\0\x0a\0\0\0\0\0\xff\x06\0\0sNaPpY\x03\0\x40\0\0\0\0\0",
        b"",
        b"e2\0\0\0\0\0\0\x03\0\x40\0\0\0\0\0\xff\x06\0\0sNaPpY",
        b"e2\0\0\0\0\0\0\x01\0\x40\0\0\0\0\0\xff\x06\0\0sNaPpY",
        b"e2\0\0\0\0\0\0\x02\0\0\0\0\0\0\0i2\x18\0\0\0\0\0",
        b"\x1f\x8b\x08\0\0\0\0\0\0\0",
        b"\x28\xb5\x2f\xfd",
        b"\x28\xb5\x2f\xfd\xa4",
        b"\xf9\x02\x01\xf9\x01\xf0",
        b"{\"params\":[{",
        b"[{\"method\":\"",
        b"{\"blockHash\":",
        &block,
    ];
    for attempt in 0..2000 {
        let head = heads[attempt % heads.len()];
        let tail = (0..random.below(300)).map(|_| random.number() as u8);
        let path = folder.write("any", head.iter().copied().chain(tail).collect::<Vec<u8>>());
        let (_, error) = try_read(&path);
        if let Some(error) = error {
            check_error(&path, &error, &[]);
        }
    }
}
