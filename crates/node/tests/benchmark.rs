//! The benchmark of the state in miniature: this program, and geth where it is, run a chain that
//! this program built. What it measures means nothing here; that it runs does.

#[path = "common/geth.rs"]
mod geth;

use std::path::PathBuf;
use std::time::Duration;

use bench::{Contender, Kind, Options, Part, Program, World};

#[test]
fn the_state_benchmark_runs_in_miniature() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let deponent = program(Kind::Deponent, env!("CARGO_BIN_EXE_deponent").into());
    let world = World::preset("mini").expect("a preset");
    let chain = bench::generate(&world, directory.path(), &deponent).expect("a chain");
    let contender = |kind, with_witness| Contender { kind, with_witness };
    let mut contenders = vec![
        (contender(Kind::Deponent, false), deponent.clone()),
        (contender(Kind::Deponent, true), deponent),
    ];
    match geth::binary() {
        Some(geth) => contenders.push((contender(Kind::Geth, false), program(Kind::Geth, geth))),
        None => println!("without geth: there is none"),
    }
    let options = Options {
        contenders,
        parts: Part::MEASURED.to_vec(),
        blocks: usize::MAX >> 1,
        warm_up: 2,
        pause: Duration::ZERO,
        freeze: true,
        drop_page_cache: false,
    };
    let results = directory.path().join("results");
    let outcome =
        bench::state(&options, &chain, directory.path(), &results).expect("every block is valid");
    let blocks = (world.warm_blocks + world.empty_blocks + world.cold_blocks) as usize;
    assert!(outcome.samples > blocks * options.contenders.len());
    for words in ["## warm", "## empty", "## cold", "## reorgs", "forkchoiceUpdated p99, ms"] {
        assert!(outcome.report.contains(words), "{words} is not in {}", outcome.report);
    }
    assert!(results.join("samples.jsonl").is_file());
    let ours = &options.contenders[..1];
    let report = bench::depths(ours, usize::MAX, &chain, directory.path(), &results);
    let report = report.expect("every block is valid");
    assert!(report.contains("| deponent | 8 | 1 |"), "{report}");
    assert!(report.contains("| yes |") && !report.contains("refused"), "{report}");
}

const fn program(kind: Kind, binary: PathBuf) -> Program {
    Program { kind, binary, arguments: Vec::new(), memory_bytes: None, disk_bytes: None }
}
