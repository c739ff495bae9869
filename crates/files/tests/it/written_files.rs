//! Exported files are read again, and an interrupted export is continued.

use std::fs;
use std::path::Path;

use alloy_consensus::Header;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{Bytes, keccak256};
use deponent_files::{BlockForm, BlockWriter, ExportBlock, FileBlock};
use execution::{Block, SealedBlock};
use serde_json::Value;

use super::era_files::made;
use super::era1_files::mined;
use super::{blocks, read, rlp};
use testing::{Folder, Random, fixtures};

fn export(block: &FileBlock) -> ExportBlock<'_> {
    let FileBlock { block, requests, access_list, .. } = block;
    ExportBlock { block, requests: requests.as_ref(), access_list: access_list.as_ref() }
}

fn write(path: &Path, form: BlockForm, blocks: &[FileBlock]) {
    let mut writer = BlockWriter::create(path, form).expect("begun");
    blocks.iter().for_each(|block| writer.write(export(block)).expect("written"));
    assert!(!path.exists(), "a file has its name when it is whole");
    writer.finish().expect("finished");
}

#[test]
fn files_that_are_written_are_read_again() {
    let Some(fixtures) = fixtures() else { return };
    let folder = Folder::new();
    let payloads = read(&fixtures.join("hivechain-osaka-200/newpayload.fixed.json"));
    for (name, form) in [
        ("chain.rlp", BlockForm::Rlp),
        ("chain.rlp.gz", BlockForm::Rlp),
        ("payloads.jsonl", BlockForm::Json),
        ("payloads.jsonl.gz", BlockForm::Json),
    ] {
        let path = folder.path(name);
        write(&path, form, &payloads);
        let found = read(&path);
        assert_eq!(blocks(&found), blocks(&payloads), "{name}");
        if form == BlockForm::Json {
            let requests = |blocks: &[FileBlock]| -> Vec<_> {
                blocks.iter().map(|block| block.requests.clone()).collect()
            };
            assert_eq!(requests(&found), requests(&payloads));
        }
    }
    assert_eq!(fs::read(folder.path("chain.rlp")).expect("a file"), rlp(&blocks(&payloads)));
    // Line for line what hive has, but for the ids.
    let hive =
        fs::read(fixtures.join("hivechain-osaka-200/newpayload.fixed.json")).expect("a file");
    let hive: Vec<Value> = serde_json::from_slice(&hive).expect("JSON");
    let ours = fs::read_to_string(folder.path("payloads.jsonl")).expect("a file");
    for (ours, hive) in ours.lines().zip(&hive) {
        let ours: Value = serde_json::from_str(ours).expect("JSON");
        assert_eq!((&ours["method"], &ours["params"]), (&hive["method"], &hive["params"]));
    }
}

#[test]
fn payloads_of_every_fork_are_written() {
    let folder = Folder::new();
    let mut all = Vec::new();
    for fork in ["bellatrix", "capella", "deneb", "electra"] {
        all.extend((1..20).map(|number| {
            let made = made(fork, number);
            (made.block, made.requests, None)
        }));
    }
    let list = Bytes::from_static(&[0xc1, 0xc0]);
    let last = made("electra", 5);
    let mut block = last.block.into_block();
    block.header = Header {
        block_access_list_hash: Some(keccak256(&list)),
        slot_number: Some(99),
        ..block.header
    };
    all.push((SealedBlock::new(block), last.requests, Some(list)));
    let path = folder.path("payloads.jsonl");
    let mut writer = BlockWriter::create(&path, BlockForm::Json).expect("begun");
    for (block, requests, list) in &all {
        let (requests, access_list) = (requests.as_ref(), list.as_ref());
        writer.write(ExportBlock { block, requests, access_list }).expect("written");
    }
    writer.finish().expect("finished");
    for (found, (block, requests, list)) in read(&path).iter().zip(&all) {
        assert_eq!((&found.block, &found.requests), (block, requests));
        assert_eq!(&found.access_list, list);
    }
}

#[test]
fn what_no_payload_describes_is_refused() {
    let folder = Folder::new();
    let path = folder.path("payloads.jsonl");
    let mut writer = BlockWriter::create(&path, BlockForm::Json).expect("begun");
    let mut refused = |block: &SealedBlock, requests, access_list, words: &str| {
        let error = writer.write(ExportBlock { block, requests, access_list });
        let error = error.expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    let none = Requests::default();
    let (list, other) = (Bytes::from_static(&[0xc0]), Bytes::new());
    refused(&mined(0, 1)[0].0, None, None, "block 0 is of proof of work");
    let electra = made("electra", 7);
    refused(&electra.block, None, None, "has requests, which are not kept");
    refused(&electra.block, Some(&none), None, "has other requests");
    let mut block: Block = electra.block.clone().into_block();
    block.header.block_access_list_hash = Some(keccak256(&list));
    let amsterdam = SealedBlock::new(block);
    refused(&amsterdam, electra.requests.as_ref(), None, "has a block access list, which");
    refused(&amsterdam, electra.requests.as_ref(), Some(&other), "another block access");
    refused(&amsterdam, electra.requests.as_ref(), Some(&list), "has no slot number");
    for form in [BlockForm::Era, BlockForm::Era1, BlockForm::Ere] {
        let error = BlockWriter::create(&path, form).expect_err("refused").to_string();
        assert!(error.contains("written as RLP or JSON"), "{error}");
    }
}

#[test]
fn an_interrupted_file_is_gone_on_with_wherever_it_was_cut() {
    let folder = Folder::new();
    let all: Vec<FileBlock> = {
        let chain = folder
            .write("chain.rlp", rlp(&(1..6).map(|n| made("capella", n).block).collect::<Vec<_>>()));
        read(&chain)
    };
    for (form, name) in [(BlockForm::Rlp, "out.rlp"), (BlockForm::Json, "out.jsonl")] {
        let path = folder.path(name);
        write(&path, form, &all);
        let whole = fs::read(&path).expect("a file");
        let partial = folder.path(&format!("{name}.partial"));
        // At both ends everywhere, and now and then between them.
        let cuts = (0..=whole.len()).filter(|cut| {
            let from_end = whole.len() - cut;
            *cut < 12 || from_end < 12 || cut % 97 == 0
        });
        for cut in cuts {
            fs::remove_file(&path).expect("removed");
            fs::write(&partial, &whole[..cut]).expect("written");
            let mut writer = BlockWriter::resume(&path, form).expect("gone on with");
            for block in &all {
                writer.write(export(block)).expect("written");
            }
            assert_eq!(writer.bytes(), whole.len() as u64);
            writer.finish().expect("finished");
            assert_eq!(fs::read(&path).expect("a file"), whole, "cut at {cut}");
            assert!(!partial.exists());
        }
        let other = if form == BlockForm::Rlp { BlockForm::Json } else { BlockForm::Rlp };
        let file = folder.path(&format!("other.{name}"));
        write(&file, other, &all);
        let other = fs::read(&file).expect("a file");
        // It is written anew from where it differs: a bit, more behind the end, the other form.
        let mut random = Random::seeded();
        let flipped = (0..40).map(|_| {
            let mut flipped = whole.clone();
            flipped[random.below(whole.len())] ^= 1 << random.below(8);
            flipped
        });
        let more = [&whole[..], &[0; 5000]].concat();
        for content in flipped.chain([more, other]) {
            fs::write(&partial, &content).expect("written");
            let mut writer = BlockWriter::resume(&path, form).expect("gone on with");
            for block in &all {
                writer.write(export(block)).expect("written");
            }
            writer.finish().expect("finished");
            assert!(fs::read(&path).expect("a file") == whole);
        }
        // A shorter range takes the beginning of a longer one.
        fs::write(&partial, &whole).expect("written");
        let mut writer = BlockWriter::resume(&path, form).expect("gone on with");
        writer.write(export(&all[0])).expect("written");
        writer.finish().expect("finished");
        assert_eq!(blocks(&read(&path)), blocks(&all[..1]));
    }
    // A packed file begins anew.
    let path = folder.path("out.rlp.gz");
    fs::write(folder.path("out.rlp.gz.partial"), "anything").expect("written");
    let mut writer = BlockWriter::resume(&path, BlockForm::Rlp).expect("begun");
    writer.write(export(&all[0])).expect("written");
    writer.finish().expect("finished");
    assert_eq!(read(&path).len(), 1);
}

/// Another user may write to the directory, and has put a link to a file of ours there.
#[test]
fn an_unfinished_file_that_is_a_link_is_not_written_through() {
    let folder = Folder::new();
    let made: Vec<_> = (1..4).map(|number| made("capella", number).block).collect();
    let all = read(&folder.write("chain.rlp", rlp(&made)));
    let (path, victim) = (folder.path("out.rlp"), folder.path("victim"));
    let partial = folder.path("out.rlp.partial");
    let whole = rlp(&made);
    for content in [&whole[..], &whole[..whole.len() / 2], b""] {
        fs::write(&victim, content).expect("written");
        // A new file takes the place of the link.
        std::os::unix::fs::symlink(&victim, &partial).expect("a link");
        write(&path, BlockForm::Rlp, &all);
        assert_eq!(fs::read(&path).expect("a file"), whole);
        assert!(!path.is_symlink());
        assert_eq!(fs::read(&victim).expect("a file"), content);
        fs::remove_file(&path).expect("removed");
        if content.is_empty() {
            continue;
        }
        // An export that would continue it is refused.
        let hard: fn(&Path, &Path) -> std::io::Result<()> = |from, to| fs::hard_link(from, to);
        for link in [hard, |from, to| std::os::unix::fs::symlink(from, to)] {
            link(&victim, &partial).expect("a link");
            let error = BlockWriter::resume(&path, BlockForm::Rlp).expect_err("refused");
            let error = error.to_string();
            let words = ["it is a link", "Too many levels of symbolic links"];
            assert!(words.iter().any(|words| error.contains(words)), "{error}");
            assert_eq!(fs::read(&victim).expect("a file"), content);
            fs::remove_file(&partial).expect("removed");
        }
    }
}
