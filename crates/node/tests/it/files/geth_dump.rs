//! A chain begins with a state dump of geth's. Runs when a geth binary is there: `GETH`, on the
//! path, or where `go install` puts it.

use std::fs;
use std::path::Path;
use std::process::Command;

use testing::Folder;
use testing::geth::{Geth, path_text as text};

use super::read;
use crate::support::published_chain;

/// Where geth leaves out what it knows only the hashes of, that is refused and said.
#[test]
fn a_chain_begins_with_a_dump_of_geth() {
    let Some((fixtures, genesis)) = published_chain() else { return };
    let Some(geth) = Geth::find(fixtures.join("genesis.json")) else { return };
    let folder = Folder::new();
    let (data, chain_file) = (folder.path("theirs"), fixtures.join("chain.rlp"));
    geth.import(&data, &chain_file);
    let chain = read(&chain_file);
    let header = &chain.last().expect("blocks").block.header;
    let number = header.number.to_string();
    let head = folder.write("head", alloy_rlp::encode(header));
    let dump = folder.write("dump.jsonl", geth.run(&data, &["dump", &number]));

    let hashed = folder.path("hashed");
    geth.run(&hashed, &["init", text(&geth.genesis)]);
    geth.run(&hashed, &["--gcmode", "archive", "import", text(&chain_file)]);
    let without = geth.run(&hashed, &["dump", &number]);
    let without = folder.write("without.jsonl", without);
    let by_hash = geth.run(&hashed, &["dump", "--incompletes", &number]);
    let by_hash = folder.write("by-hash.jsonl", by_hash);

    let genesis = folder.write("genesis.json", genesis);
    let ours = folder.path("from-dump");
    let deponent = |command: &str, genesis: &Path, arguments: &[&Path]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_deponent"));
        run.arg(command).arg("--chain").arg(genesis).arg("--datadir").arg(&ours).args(arguments);
        let output = run.output().expect("run");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).expect("UTF-8"))
    };
    let init = |dump: &Path| {
        deponent("init", &genesis, &["--state".as_ref(), dump, "--header".as_ref(), &head])
    };
    for (dump, lacks) in [(&without, "accounts"), (&by_hash, "slots")] {
        let (done, said) = init(dump);
        assert!(!done && said.contains(lacks) && said.contains("--cache.preimages"), "{said}");
    }
    let (done, said) = init(&dump);
    assert!(done && said.contains(&header.hash_slow().to_string()), "{said}");
    // The genesis file, whose block it does not begin with, may come to name more forks.
    let import = |genesis: &Path| deponent("import", genesis, &[&chain_file]);
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
