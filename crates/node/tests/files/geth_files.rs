//! Files that geth writes are read, and geth reads those that are written here. Runs when a geth
//! binary is there: `GETH`, on the path, or where `go install` puts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use deponent_node::files::{
    BlockWriter, Era1Writer, ExportBlock, Form, Progress, SortOptions, SortedState,
};

use super::era1_files::receipts_of;
use super::states::{root_of, sorted_entries};
use super::{Folder, blocks, fixtures, geth, read};

#[test]
fn files_of_geth_are_read_and_geth_reads_ours() {
    let Some(fixtures) = fixtures().map(|fixtures| fixtures.join("execution-apis/tests")) else {
        return;
    };
    let Some(geth) = geth::binary() else {
        println!(
            "not run: no geth. `go install github.com/ethereum/go-ethereum/cmd/geth@v1.17.8`, or \
             name it in GETH"
        );
        return;
    };
    let folder = Folder::new();
    let (theirs, again) = (folder.path("theirs"), folder.path("again"));
    let geth = Geth { binary: geth, genesis: fixtures.join("genesis.json") };
    let chain = read(&fixtures.join("chain.rlp"));
    geth.import(&theirs, &fixtures.join("chain.rlp"));

    for name in ["chain.rlp", "chain.rlp.gz"] {
        let path = folder.path(name);
        geth.run(&theirs, &["export", text(&path)]);
        // geth's begins with genesis.
        assert_eq!(blocks(&read(&path))[1..], blocks(&chain)[..], "{name}");
    }
    check_era1(&geth, &theirs, &folder);
    check_dump(&geth, &theirs, &folder);

    let ours = folder.path("ours.rlp.gz");
    let mut writer = BlockWriter::create(&ours, Form::Rlp).expect("begun");
    for block in &chain {
        let export = ExportBlock { block: &block.block, requests: None, access_list: None };
        writer.write(export).expect("written");
    }
    writer.finish().expect("finished");
    geth.import(&again, &ours);
    let head = chain.len().to_string();
    assert_eq!(geth.run(&again, &["dump", &head]), geth.run(&theirs, &["dump", &head]));
}

/// A state of geth's, line by line, has the root that it says, and a chain can begin with it.
/// Where geth leaves out what it knows only the hashes of, that is refused and said.
fn check_dump(geth: &Geth, data: &Path, folder: &Folder) {
    let chain = read(&folder.path("chain.rlp"));
    let header = &chain.last().expect("blocks").block.header;
    let number = header.number.to_string();
    let head = folder.write("head", alloy_rlp::encode(header));
    let dump = folder.write("dump.jsonl", geth.run(data, &["dump", &number]));
    let options = SortOptions::new(&folder.path("sorted"));
    let sorted = SortedState::prepare(&dump, &options, &mut Progress::silent()).expect("sorted");
    assert_eq!(sorted.root(), Some(header.state_root));
    assert_eq!(root_of(sorted_entries(&sorted).into_iter()), header.state_root);

    let hashed = folder.path("hashed");
    geth.run(&hashed, &["init", text(&geth.genesis)]);
    geth.run(&hashed, &["--gcmode", "archive", "import", text(&folder.path("chain.rlp"))]);
    let without = geth.run(&hashed, &["dump", &number]);
    let without = folder.write("without.jsonl", without);
    let by_hash = geth.run(&hashed, &["dump", "--incompletes", &number]);
    let by_hash = folder.write("by-hash.jsonl", by_hash);

    let genesis = fs::read_to_string(&geth.genesis).expect("a genesis");
    // We have these two forks at once only; no block of this chain tells them apart.
    let genesis = genesis.replace(r#""petersburgBlock": 15"#, r#""petersburgBlock": 12"#);
    let genesis = folder.write("genesis.json", genesis);
    let ours = folder.path("from-dump");
    let init = |dump: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
        command.arg("init").arg("--chain").arg(&genesis).arg("--datadir").arg(&ours);
        let output = command.arg("--state").arg(dump).arg("--header").arg(&head).output();
        let output = output.expect("run");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).expect("UTF-8"))
    };
    for (dump, lacks) in [(&without, "accounts"), (&by_hash, "slots")] {
        let (done, said) = init(dump);
        assert!(!done && said.contains(lacks) && said.contains("--cache.preimages"), "{said}");
    }
    let (done, said) = init(&dump);
    assert!(done && said.contains(&header.hash_slow().to_string()), "{said}");
    // The genesis file, whose block it does not begin with, may come to name more forks.
    let import = |genesis: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
        command.arg("import").arg("--chain").arg(genesis).arg("--datadir").arg(&ours);
        let output = command.arg(folder.path("chain.rlp")).output().expect("run");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).expect("UTF-8"))
    };
    let (done, said) = import(&genesis);
    assert!(
        done && said.contains(&format!("0 blocks imported; the head is block {number}")),
        "{said}"
    );
    let other = fs::read_to_string(&genesis).expect("a file");
    let id = other.find("\"chainId\":").expect("it has one") + 10;
    let other =
        folder.write("other.json", format!("{} 1{}", &other[..id], other[id..].trim_start()));
    let (done, said) = import(&other);
    assert!(!done && said.contains("is the one given"), "{said}");
}

/// geth's era1 file is read, and written again under its name.
fn check_era1(geth: &Geth, data: &Path, folder: &Folder) {
    let chain = read(&folder.path("chain.rlp"));
    let mined = chain.iter().take_while(|block| !block.block.header.difficulty.is_zero()).count();
    assert!(mined > 30);
    let (history, last) = (folder.path("history"), (mined - 1).to_string());
    geth.run(data, &["export-history", "--era.format", "era1", text(&history), "0", &last]);
    let files = fs::read_dir(&history).expect("a folder").flatten().map(|entry| entry.path());
    let path = files.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "era1"));
    let path = path.expect("an era1 file");
    let found = read(&path);
    assert_eq!(blocks(&found), blocks(&chain)[..mined]);
    let receipts = receipts_of(&fs::read(&path).expect("a file"));
    let mut writer = Era1Writer::create(folder.0.path(), "unknown").expect("begun");
    for (block, receipts) in found.iter().zip(&receipts) {
        let total = block.total_difficulty.expect("a total difficulty");
        writer.write(&block.block, receipts, total).expect("written");
    }
    let written = writer.finish().expect("finished");
    assert_eq!(written.file_name(), path.file_name());
}

struct Geth {
    binary: PathBuf,
    genesis: PathBuf,
}

impl Geth {
    fn import(&self, data: &Path, chain: &Path) {
        self.run(data, &["--cache.preimages", "init", text(&self.genesis)]);
        self.run(data, &["--gcmode", "archive", "--cache.preimages", "import", text(chain)]);
    }

    /// Runs a command to its end, and gives what it has printed.
    fn run(&self, data: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.binary);
        let output = command.arg("--datadir").arg(data).args(arguments).output().expect("run");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "geth {arguments:?}: {log}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
