//! `deponent bench replay` and `compare` in miniature: this program, and geth where it is, run
//! payload files of a chain that this program built, and are killed and stopped meanwhile.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use crate::support::bench_program::bench_program;
use bench::report::{Document, read};
use bench::{Chain, ChainKind, Fork, Part, Payload, World};
use testing::geth;

/// A chain, and the folder that it is in.
static CHAIN: LazyLock<(tempfile::TempDir, Chain)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let chain = generate(&World::preset("mini").expect("a preset"), folder.path(), &[]);
    (folder, chain)
});

/// A hostile chain, which has no blobs, so that geth builds on it too.
static HOSTILE: LazyLock<(tempfile::TempDir, Chain)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let world = World { kind: ChainKind::Hostile, ..World::preset("mini").expect("a preset") };
    let chain = generate(&world, folder.path(), &["--kind", "hostile"]);
    (folder, chain)
});

/// The mini chain in a folder, with these flags, which are to make this world.
fn generate(world: &World, folder: &Path, flags: &[&str]) -> Chain {
    let mut command = bench_program();
    command.args(["generate", "--preset", "mini", "--dir"]).arg(folder).args(flags);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
    Chain::of(world, &folder.join("chains"))
}

/// reth-bench's columns.
const COLUMNS: &str = "block_number,gas_limit,transaction_count,gas_used,new_payload_latency,\
                       fcu_latency,total_latency,";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary directory"));
        std::fs::create_dir(folder.results()).expect("a folder");
        folder
    }

    fn results(&self) -> PathBuf {
        self.0.path().join("results")
    }

    /// A command on parts of the chain.
    fn command(&self, command: &str, parts: &[Part], flags: &[&str]) -> Command {
        let chain = &CHAIN.1;
        let mut run = bench_program();
        run.args([command]).args(parts.iter().map(|part| chain.part(*part)));
        run.arg("--genesis").arg(chain.genesis()).arg("--setup").arg(chain.part(Part::State));
        run.arg("--dir").arg(self.0.path()).arg("--results").arg(self.results()).args(flags);
        run.arg("--ignore-load");
        run
    }

    fn run(&self, command: &str, parts: &[Part], flags: &[&str]) -> Output {
        let output = self.command(command, parts, flags).output().expect("it runs");
        self.check_that_nothing_is_left();
        output
    }

    fn report(&self) -> Document {
        let text = std::fs::read_to_string(self.results().join("report.json")).expect("a report");
        read(&text).expect("it can be read").remove(0)
    }

    fn file(&self, name: &str) -> String {
        let path = self.results().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The processes that run below this folder.
    fn clients(&self) -> Vec<String> {
        let running = self.0.path().join("running").display().to_string();
        let entries = std::fs::read_dir("/proc").expect("it is there").flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let runs = |id: &String| {
            let line = std::fs::read(Path::new("/proc").join(id).join("cmdline"));
            id.parse::<u32>().is_ok()
                && String::from_utf8_lossy(&line.unwrap_or_default()).contains(&running)
        };
        names.filter(runs).collect()
    }

    fn check_that_nothing_is_left(&self) {
        assert_eq!(self.clients(), Vec::<String>::new());
        let left = std::fs::read_dir(self.0.path().join("running")).into_iter().flatten().count();
        assert_eq!(left, 0);
    }
}

fn words(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

#[test]
fn a_replay_waits_for_persistence_and_has_reth_benchs_columns() {
    let folder = Folder::new();
    let parts = [Part::Empty, Part::Warm, Part::Reorgs, Part::Cold];
    let flags = ["--target", "deponent+witness", "--wait-for-persistence=2", "--warm-up", "2"];
    let output = folder.run("replay", &parts, &[&flags[..], &["--reorg", "3"]].concat());
    assert!(output.status.success(), "{}", words(&output));
    let csv = folder.file("combined_latency.csv");
    assert!(csv.starts_with(COLUMNS), "{csv}");
    let world = World::preset("mini").expect("a preset");
    let blocks = world.empty_blocks + world.warm_blocks + world.cold_blocks - 2;
    assert!(csv.lines().count() as u64 > blocks, "{csv}");
    assert!(
        folder.file("total_gas.csv").starts_with("block_number,transaction_count,gas_used,time\n")
    );
    let markdown = folder.file("report.md");
    for words in ["newPayload", "p95", "persistence wait", "fork choice back", "wall clock"] {
        assert!(markdown.contains(words), "{words} is not in {markdown}");
    }
    assert!(folder.report().clients[0].version.contains("deponent"));
}

#[test]
fn a_sweep_restarts_the_client_and_goes_on_after_a_value_that_it_refuses() {
    let folder = Folder::new();
    let sweep = ["--sweep", "engine.multiproof-chunk-size=15,none,60", "--rounds", "2"];
    let output = folder.run("replay", &[Part::Empty, Part::Warm], &sweep);
    assert!(output.status.success(), "{}", words(&output));
    let markdown = folder.file("report.md");
    assert!(markdown.contains("does not start"), "{markdown}");
    let json = folder.file("report.json");
    assert!(json.contains("sweep of engine.multiproof-chunk-size"), "{json}");
    for name in ["engine.multiproof-chunk-size=15-1", "engine.multiproof-chunk-size=60-2"] {
        assert!(folder.file(&format!("{name}/combined_latency.csv")).lines().count() > 10);
    }
}

#[test]
fn two_earlier_runs_are_compared_where_their_blocks_are_the_same() {
    let folders = [Folder::new(), Folder::new(), Folder::new()];
    let parts = [&[Part::Empty, Part::Warm][..], &[Part::Empty, Part::Warm], &[Part::Empty]];
    for ((folder, parts), target) in
        folders.iter().zip(parts).zip(["deponent", "deponent+witness", "deponent"])
    {
        let output = folder.run("replay", parts, &["--target", target]);
        assert!(output.status.success(), "{}", words(&output));
    }
    let compare = |a: &Folder, b: &Folder| {
        let mut report = bench_program();
        report.args(["report", "--compare"]).arg(a.results()).arg(b.results());
        report.arg("--out").arg(a.0.path().join("compared")).output().expect("it runs")
    };
    let [a, b, fewer] = &folders;
    let output = compare(a, b);
    assert!(output.status.success(), "{}", words(&output));
    let text = std::fs::read_to_string(a.0.path().join("compared/report.md")).expect("a report");
    for words in ["not interleaved", "| B deponent+witness | A deponent | p50 |"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let output = compare(a, fewer);
    assert!(!output.status.success() && words(&output).contains("no verdict"), "{output:?}");
}

/// The files of a chain, but for the genesis.
fn files(chain: &Chain) -> Vec<PathBuf> {
    let parts = Part::ALL.map(|part| chain.part(part));
    parts.into_iter().chain([chain.folder.join("README.md")]).collect()
}

#[test]
fn a_seed_gives_the_same_bytes_and_the_files_can_be_imported() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let world = World::preset("mini").expect("a preset");
    let again = generate(&world, folder.path(), &[]);
    for (one, other) in files(&CHAIN.1).iter().zip(files(&again)) {
        let [one, other] = [one, &other].map(|path| std::fs::read(path).expect("it was made"));
        assert!(one == other, "{}", again.folder.display());
    }
    let readme = std::fs::read_to_string(again.folder.join("README.md")).expect("it was made");
    for words in
        ["../state.jsonl.zst", "--preset mini", "from the seed 1", "| empty.jsonl.zst | 3 |"]
    {
        assert!(readme.contains(words), "{words} is not in {readme}");
    }
    // All kinds of transactions; those with blobs say which.
    let mut types = std::collections::BTreeMap::<u8, usize>::new();
    for payload in of_warm(&again) {
        let params: serde_json::Value = serde_json::from_str(payload.params()).expect("JSON");
        let transactions = params[0]["transactions"].as_array().expect("a list").iter();
        let types_of = transactions.map(|raw| {
            let head = raw.as_str().and_then(|raw| raw.get(2..4)).expect("bytes");
            u8::from_str_radix(head, 16).expect("hex digits")
        });
        types_of.for_each(|head| *types.entry(head.min(5)).or_default() += 1);
        let hashes = params[1].as_array().expect("a list").len();
        let blob_gas = format!("{:#x}", hashes << 17);
        assert_eq!(params[0]["blobGasUsed"], blob_gas);
    }
    assert_eq!(types.keys().copied().collect::<Vec<u8>>(), [2, 3, 4, 5], "{types:?}");
    let mut import = Command::new(env!("CARGO_BIN_EXE_deponent"));
    import.arg("import").arg("--chain").arg(again.genesis());
    import.arg("--datadir").arg(folder.path().join("data"));
    import.args([Part::State, Part::Empty].map(|part| again.part(part)));
    let output = import.output().expect("it runs");
    assert!(output.status.success() && words(&output).contains("blocks imported"), "{output:?}");
}

#[test]
fn a_hostile_chain_runs_with_its_deep_reorganizations() {
    let (folder, chain) = (Folder::new(), &HOSTILE.1);
    let world = World::preset("mini").expect("a preset");
    assert_eq!(chain.state.file_name(), CHAIN.1.state.file_name());
    assert_ne!(chain.folder.file_name(), CHAIN.1.folder.file_name());
    let reorgs: Vec<u64> = chain
        .payloads(Part::Reorgs)
        .expect("it was made")
        .map(|payload| payload.expect("a payload").number)
        .collect();
    // Each branch begins again where the one before did, and the next one on that; one block more
    // leaves the last of them.
    let back = |pair: &[u64]| pair[0].checked_sub(pair[1]);
    let steps: Vec<u64> = reorgs.windows(2).filter_map(back).collect();
    assert_eq!((reorgs.len(), steps), (2 * (32 + 16) + 1, vec![31, 15]));
    let target = if geth::binary().is_some() { "geth" } else { "deponent+witness" };
    let mut run = bench_program();
    run.arg("replay");
    run.args([Part::Warm, Part::Reorgs, Part::Cold].map(|part| chain.part(part)));
    run.arg("--genesis").arg(chain.genesis()).arg("--dir").arg(folder.0.path());
    for part in [Part::State, Part::Empty] {
        run.arg("--setup").arg(chain.part(part));
    }
    let output = run.args(["--target", target]).arg("--results").arg(folder.results()).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
    let rows = folder.file("combined_latency.csv").lines().count() as u64;
    assert_eq!(rows, 1 + world.warm_blocks + world.cold_blocks + reorgs.len() as u64);
}

#[test]
fn a_chain_of_amsterdam_has_access_lists() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let world = World { fork: Fork::Amsterdam, ..World::preset("mini").expect("a preset") };
    let chain = generate(&world, folder.path(), &["--fork", "amsterdam"]);
    let transactions =
        |chain| of_warm(chain).iter().map(|payload| payload.transactions).collect::<Vec<usize>>();
    assert_eq!(transactions(&chain), transactions(&CHAIN.1));
    for payload in of_warm(&chain) {
        let params: serde_json::Value = serde_json::from_str(payload.params()).expect("JSON");
        let list = params[0]["blockAccessList"].as_str().expect("a list");
        assert!(list.len() > 1_000, "{}", list.len());
    }
}

/// The payloads of the warm part.
fn of_warm(chain: &Chain) -> Vec<Payload> {
    let payloads = chain.payloads(Part::Warm).expect("it was made");
    payloads.collect::<Result<_, _>>().expect("payloads")
}

/// A replay in which the client, or the replay itself, gets a signal after two blocks.
fn after(signal: &str, is_for_client: bool) -> (Folder, String) {
    let folder = Folder::new();
    // Once two lines are read, there are two blocks.
    let samples = folder.results().join("samples.jsonl");
    assert!(Command::new("mkfifo").arg(&samples).status().expect("it runs").success());
    let targets = folder.0.path().join("targets.toml");
    std::fs::write(&targets, "[mine]\nlike = \"deponent\"\nanswer_seconds = 10\n")
        .expect("written");
    let targets = targets.display().to_string();
    // In slots of a second it is far from its end then.
    let flags = ["--targets", &targets, "--target", "mine", "--wait-time", "1s"];
    let mut command = folder.command("replay", &[Part::Empty, Part::Warm], &flags);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let replay = command.spawn().expect("it runs");
    let id = replay.id().to_string();
    let replay = std::thread::spawn(move || replay.wait_with_output().expect("it ends"));
    let mut lines = BufReader::new(std::fs::File::open(samples).expect("a pipe")).lines();
    for _ in 0..2 {
        lines.next().expect("a block").expect("a line");
    }
    let clients = folder.clients();
    assert_eq!(clients.len(), 1);
    let whom = if is_for_client { &clients[0] } else { &id };
    assert!(Command::new("kill").args([signal, whom]).status().expect("it runs").success());
    let further = lines.map_while(Result::ok).count();
    let output = replay.join().expect("it ends");
    assert!(!output.status.success());
    folder.check_that_nothing_is_left();
    let blocks = folder.file("combined_latency.csv").lines().count() - 1;
    assert_eq!(blocks, 2 + further, "what was measured is kept");
    let report = folder.file("report.md");
    (folder, report)
}

#[test]
fn a_client_that_is_killed_died_and_what_was_measured_is_kept() {
    let (_folder, report) = after("-KILL", true);
    assert!(report.contains("died") && report.contains("killed by signal 9"), "{report}");
}

#[test]
fn a_client_that_stands_still_hangs_and_what_was_measured_is_kept() {
    let (_folder, report) = after("-STOP", true);
    assert!(report.contains("hanging"), "{report}");
}

#[test]
fn an_interrupt_ends_the_clients_and_what_was_measured_is_kept() {
    let (_folder, report) = after("-INT", false);
    assert!(report.contains("interrupted"), "{report}");
}

#[test]
fn clients_are_compared_by_block_and_by_run() {
    let folder = Folder::new();
    let clients = match geth::binary() {
        Some(_) => "geth,deponent,deponent+witness",
        None => "deponent,deponent+witness",
    };
    let flags = ["--clients", clients, "--warm-up", "2", "--rounds", "2"];
    let output = folder.run("compare", &[Part::Empty, Part::Warm], &flags);
    assert!(output.status.success(), "{}", words(&output));
    let markdown = folder.file("report.md");
    assert!(markdown.contains("verdict") && markdown.contains("floor"), "{markdown}");
    // Of a dozen blocks none is beyond the p99.
    for line in markdown.lines().filter(|line| line.contains("| p50 |") || line.contains("| p90 |"))
    {
        assert!(!line.contains("too few pairs"), "{markdown}");
    }
    let unknown = markdown.lines().filter(|line| line.contains("| p99 |"));
    assert!(unknown.clone().count() > 0, "{markdown}");
    assert!(unknown.clone().all(|line| line.contains("too few pairs")), "{markdown}");
    assert!(markdown.contains("and not on the programs"), "{markdown}");
    let again = folder.run("compare", &[Part::Empty], &flags);
    assert!(words(&again).contains("has the report of another run"), "{}", words(&again));
    std::fs::remove_dir_all(folder.results()).expect("it is there");
    let flags = [&flags[..4], &["--by-run", "--rounds", "3"]].concat();
    let output = folder.run("compare", &[Part::Empty], &flags);
    assert!(output.status.success(), "{}", words(&output));
}

#[test]
fn a_line_that_is_no_payload_is_named_before_anything_is_started() {
    let folder = Folder::new();
    let broken = folder.0.path().join("broken.jsonl");
    std::fs::write(&broken, "\n{}\n").expect("written");
    let mut command = folder.command("replay", &[Part::Empty], &["--target", "deponent"]);
    let output = command.arg(&broken).output().expect("it runs");
    assert!(!output.status.success());
    assert!(words(&output).contains("broken.jsonl, line 2"), "{}", words(&output));
    assert!(!folder.0.path().join("prepared").exists());
}

#[test]
fn a_client_that_does_not_tell_what_it_persisted_is_named() {
    let Some(_) = geth::binary() else { return println!("without geth: there is none") };
    let folder = Folder::new();
    let flags = ["--target", "geth", "--wait-for-persistence"];
    let output = folder.run("replay", &[Part::Empty], &flags);
    assert!(!output.status.success());
    assert!(words(&output).contains("leave out --wait-for-persistence"), "{}", words(&output));
}
