//! Prysm drives our node: the shortest scenario of the example `devnet`. Runs where Prysm's
//! programs are (integrations/consensus/README.md).

#[path = "../../examples/devnet/net/mod.rs"]
mod net;

use net::Options;

#[tokio::test(flavor = "multi_thread")]
async fn prysm_finalizes_blocks_of_ours_before_and_after_a_fork() {
    let Some(prysm) = net::prysm_folder().filter(|at| net::missing_programs(at).is_empty()) else {
        println!(
            "not run: no Prysm in DEPONENT_PRYSM or DEPONENT_TOOLS/prysm; \
             integrations/consensus/README.md says how to build it"
        );
        return;
    };
    let files = tempfile::tempdir().expect("a temporary directory");
    let options = Options {
        program: env!("CARGO_BIN_EXE_deponent").into(),
        prysm,
        files: files.path().into(),
        slot_seconds: 2,
    };
    if let Err(fault) = net::run(options, &["plain"]).await {
        panic!("{fault:?}; files in {}", files.keep().display());
    }
}
