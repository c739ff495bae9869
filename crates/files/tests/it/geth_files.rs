//! Files that geth writes are read, and geth reads those that are written here. Runs when a geth
//! binary is there: `GETH`, on the path, or where `go install` puts it.

use std::fs;
use std::path::Path;

use deponent_files::{
    BlockForm, BlockWriter, Era1Writer, ExportBlock, Progress, SortOptions, SortedState,
};

use super::era1_files::receipts_of;
use super::states::{root_of, sorted_entries};
use super::{blocks, read};
use testing::geth::{Geth, path_text};
use testing::{Folder, fixtures};

#[test]
fn files_of_geth_are_read_and_geth_reads_ours() {
    let Some(fixtures) = fixtures().map(|fixtures| fixtures.join("execution-apis/tests")) else {
        return;
    };
    let Some(geth) = Geth::find(fixtures.join("genesis.json")) else { return };
    let folder = Folder::new();
    let (theirs, again) = (folder.path("theirs"), folder.path("again"));
    let chain = read(&fixtures.join("chain.rlp"));
    geth.import(&theirs, &fixtures.join("chain.rlp"));

    for name in ["chain.rlp", "chain.rlp.gz"] {
        let path = folder.path(name);
        geth.run(&theirs, &["export", path_text(&path)]);
        // geth's begins with genesis.
        assert_eq!(blocks(&read(&path))[1..], blocks(&chain)[..], "{name}");
    }
    check_era1(&geth, &theirs, &folder);
    check_ere(&geth, &theirs, &folder);
    check_dump(&geth, &theirs, &folder);

    let ours = folder.path("ours.rlp.gz");
    let mut writer = BlockWriter::create(&ours, BlockForm::Rlp).expect("begun");
    for block in &chain {
        let export = ExportBlock { block: &block.block, requests: None, access_list: None };
        writer.write(export).expect("written");
    }
    writer.finish().expect("finished");
    geth.import(&again, &ours);
    let head = chain.len().to_string();
    assert_eq!(geth.run(&again, &["dump", &head]), geth.run(&theirs, &["dump", &head]));
}

/// A state dump of geth's has the root that it states.
fn check_dump(geth: &Geth, data: &Path, folder: &Folder) {
    let chain = read(&folder.path("chain.rlp"));
    let header = &chain.last().expect("blocks").block.header;
    let number = header.number.to_string();
    let dump = folder.write("dump.jsonl", geth.run(data, &["dump", &number]));
    let options = SortOptions::new(&folder.path("sorted"));
    let sorted = SortedState::prepare(&dump, &options, &mut Progress::silent()).expect("sorted");
    assert_eq!(sorted.root(), Some(header.state_root));
    assert_eq!(root_of(sorted_entries(&sorted).into_iter()), header.state_root);
}

/// geth's ere file over the merge is read.
fn check_ere(geth: &Geth, data: &Path, folder: &Folder) {
    let chain = read(&folder.path("chain.rlp"));
    let (history, last) = (folder.path("ere"), (chain.len() - 1).to_string());
    geth.run(data, &["export-history", "--era.format", "ere", path_text(&history), "0", &last]);
    let files = fs::read_dir(&history).expect("a folder").flatten().map(|entry| entry.path());
    let path = files.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "ere"));
    assert_eq!(blocks(&read(&path.expect("an ere file"))), blocks(&chain));
}

/// geth's era1 file is read, and written again under its name.
fn check_era1(geth: &Geth, data: &Path, folder: &Folder) {
    let chain = read(&folder.path("chain.rlp"));
    let mined = chain.iter().take_while(|block| !block.block.header.difficulty.is_zero()).count();
    assert!(mined > 30);
    let (history, last) = (folder.path("history"), (mined - 1).to_string());
    geth.run(data, &["export-history", "--era.format", "era1", path_text(&history), "0", &last]);
    let files = fs::read_dir(&history).expect("a folder").flatten().map(|entry| entry.path());
    let path = files.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "era1"));
    let path = path.expect("an era1 file");
    let found = read(&path);
    assert_eq!(blocks(&found), blocks(&chain)[..mined]);
    let receipts = receipts_of(&fs::read(&path).expect("a file"));
    let mut writer = Era1Writer::create(folder.directory(), "unknown").expect("begun");
    for (block, receipts) in found.iter().zip(&receipts) {
        let total = block.total_difficulty.expect("a total difficulty");
        writer.write(&block.block, receipts, total).expect("written");
    }
    let written = writer.finish().expect("finished");
    assert_eq!(written.file_name(), path.file_name());
}
