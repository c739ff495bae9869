//! The benchmarks in miniature: this program, and geth where it is, run a chain that
//! this program built. What it measures means nothing here; that it runs does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bench::{Chain, Part, World};
use serde_json::{Value, json};
use testing::geth;

/// Runs a command of the benchmark in this process, on this program.
fn run(command: &str, flags: &[&str], dir: &Path) {
    let own = ["--deponent", env!("CARGO_BIN_EXE_deponent")].map(str::to_owned);
    let dir = ["--dir".to_owned(), dir.display().to_string()];
    let arguments = ["deponent-bench".to_owned(), command.to_owned()];
    let flags = flags.iter().map(|flag| (*flag).to_owned());
    bench::run(arguments.into_iter().chain(flags).chain(own).chain(dir))
        .unwrap_or_else(|error| panic!("{command}: {error:#}"));
}

/// These clients, and geth where it is.
fn with_geth(clients: &str) -> String {
    if geth::binary().is_some() {
        return format!("{clients},geth");
    }
    println!("without geth: there is none");
    clients.into()
}

/// The samples and the report of a folder.
fn results(folder: &Path) -> (Vec<Value>, String) {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let samples = read("samples.jsonl");
    let samples = samples.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for name in ["report.html", "report.json"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    (samples, read("report.md"))
}

#[test]
fn the_benchmarks_run_in_miniature() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let dir = directory.path();
    let mini = World::preset("mini").expect("a preset");
    let world = World { branches: vec![1, 3], ..mini };
    let clients = with_geth("deponent,deponent+witness,deponent+descriptor,deponent+mapped-codes");
    let folder = dir.join("state");
    let path = folder.display().to_string();
    let chain = ["--preset", "mini", "--branches", "1,3"];
    let flags = [
        "--clients",
        &clients,
        "--results",
        &path,
        "--warm-up",
        "2",
        "--pause",
        "0",
        "--keep-page-cache",
        "--alternate",
        "--invalid",
        "--ignore-load",
    ];
    run("state", &[&chain[..], &flags].concat(), dir);
    let chain_flags = chain;
    let chain = Chain::of(&world, &dir.join("chains"));
    check_branches(&chain);
    let (samples, report) = results(&folder);
    let blocks = (world.warm_blocks + world.empty_blocks + world.cold_blocks) as usize;
    let count = clients.split(',').count();
    assert!(samples.len() > blocks * count);
    for words in ["## warm", "## empty", "## cold", "## reorgs"] {
        assert!(report.contains(words), "{words} is not in {report}");
    }
    assert!(!report.contains("fault"), "{report}");
    check_alternation(&samples, count);

    // Parts of which some blocks are measured alone.
    let folder = dir.join("state-part");
    let path = folder.display().to_string();
    let flags = ["--clients", "deponent", "--blocks", "2", "--warm-up", "1", "--parts"];
    let flags = [&flags[..], &["warm,reorgs,cold", "--results", &path, "--ignore-load"]].concat();
    run("state", &[&chain_flags[..], &flags].concat(), dir);
    let (samples, report) = results(&folder);
    assert_eq!(samples.len(), 1 + 2 + 2 + 2, "{report}");

    let folder = dir.join("quick");
    let path = folder.display().to_string();
    let flags = ["--clients", "deponent,deponent+witness", "--blocks", "2", "--rounds", "1"];
    run("quick", &[&flags[..], &["--results", &path, "--ignore-load"]].concat(), dir);
    let (samples, report) = results(&folder);
    assert_eq!(samples.len(), 2 * 12);
    assert!(report.contains("verdicts on newPayload"), "{report}");

    let folder = dir.join("depths");
    let path = folder.display().to_string();
    let flags = ["--clients", "deponent", "--depths", "0,8", "--results", &path];
    run("depths", &[&chain_flags[..], &flags].concat(), dir);
    let (_, report) = results(&folder);
    assert!(report.contains("| deponent | 8 | 1 |") && report.contains("| yes |"), "{report}");
    transports(&chain, dir);
}

/// Branches of the given lengths, which share no transaction.
fn check_branches(chain: &Chain) {
    let blocks: Vec<(u64, Vec<Value>)> = chain
        .payloads(Part::Reorgs)
        .expect("it was made")
        .map(|payload| {
            let payload = payload.expect("a payload");
            let params: Value = serde_json::from_str(payload.params()).expect("JSON");
            let transactions = params[0]["transactions"].as_array().expect("a list");
            (payload.number, transactions.clone())
        })
        .collect();
    let numbers: Vec<u64> = blocks.iter().map(|(number, _)| number - blocks[0].0).collect();
    assert_eq!(numbers, [0, 0, 1, 2, 3, 1, 2, 3, 4]);
    let mut seen = BTreeSet::new();
    for transaction in blocks.iter().flat_map(|(_, transactions)| transactions) {
        assert!(seen.insert(transaction.as_str()), "{transaction} is on both branches");
    }
}

/// Clients that are asked for witnesses are so in half of each part's blocks: in groups of as many
/// in a row as there are clients, by the Thue-Morse sequence.
fn check_alternation(samples: &[Value], clients: usize) {
    let mut seen = BTreeMap::<_, usize>::new();
    for sample in samples {
        let client = sample["client"].as_str().expect("a name");
        let block = &sample["block"];
        let index = seen.entry(format!("{client} {}", block["stage"])).or_default();
        let group = *index / clients;
        let is_expected = client.contains('+') && group.count_ones().is_multiple_of(2);
        *index += 1;
        assert_eq!(block["with_witness"], is_expected, "{sample}");
        // A verdict has 162 bytes, and the witness of any block has more.
        let bytes = block["answer_bytes"].as_u64().expect("known");
        assert_eq!(bytes > 1_000, is_expected, "{sample}");
    }
    assert!(seen.values().any(|count| *count > clients), "some part has blocks without");
}

/// The first warm block over all wires, with siblings that are built for the purpose.
fn transports(chain: &Chain, dir: &Path) {
    let published = dir.join("published");
    publish(chain, &published);
    let published = published.display().to_string();
    let clients = with_geth("deponent");
    let folder = |name: &str| (dir.join(name), dir.join(name).display().to_string());
    let usual = ["--chain", &published, "--sizes", "1", "--pause", "0", "--ignore-load"];
    let all = ["--clients", &clients, "--peer-transports", "json,ipc,ws"];

    let (at, path) = folder("transports");
    let rounds = ["--rounds", "2", "--large-rounds", "2", "--results", &path];
    run("transports", &[&usual[..], &all, &rounds].concat(), dir);
    let (samples, report) = results(&at);
    let wires = "json json-unix ipc ws ssz ssz-unix descriptor held-codes mapped-codes";
    let mut witnesses = BTreeMap::new();
    for sample in &samples {
        let block = &sample["block"];
        let [first, last, whole] = ["first_byte", "last_byte", "new_payload"]
            .map(|name| block[name].as_f64().expect("a number"));
        assert!(first <= last && last <= whole, "{sample}");
        let client = sample["client"].as_str().expect("a name").split('+').next();
        // geth's may have codes that the block itself created.
        let witness = witnesses.entry(client.map(str::to_owned)).or_insert(&block["witness"]);
        assert!(witness["count"].as_u64() > Some(1), "{sample}");
        assert_eq!(**witness, block["witness"], "{sample}");
    }
    // A lane that did not start is in the report too, without a sample.
    let measured = |lane: String| samples.iter().any(|sample| sample["client"] == lane.as_str());
    for wire in wires.split(' ') {
        assert!(measured(format!("deponent+{wire}")), "{wire} has no sample: {report}");
    }
    if clients.contains("geth") {
        for wire in ["json", "ipc", "ws"] {
            assert!(measured(format!("geth+{wire}")), "{wire} has no sample: {report}");
        }
    }

    let (at, path) = folder("crowd");
    let crowd = ["--clients", "deponent", "--transports", "json,ssz-unix,descriptor"];
    let crowd = [&crowd[..], &["--connections", "150", "--seconds", "1", "--results", &path]];
    run("crowd", &[&usual[..], &crowd.concat()].concat(), dir);
    let report = std::fs::read_to_string(at.join("report.md")).expect("it was written");
    for name in ["nothing", "deponent+json", "deponent+ssz-unix", "deponent+descriptor"] {
        assert!(report.contains(&format!("| {name} | ")), "{name} is not in {report}");
    }

    let (at, path) = folder("witness");
    let flags = ["--rounds", "1", "--depths", "0,3,140", "--depth-size", "1", "--results", &path];
    let wires = ["--clients", &clients, "--transports", "json,ssz-unix"];
    run("witness", &[&usual[..], &wires, &flags].concat(), dir);
    check_witnesses(&at);
}

/// A witness with its verdict and after it, asked for again, and below further blocks.
fn check_witnesses(folder: &Path) {
    let (samples, report) = results(folder);
    let mut contents = BTreeSet::new();
    for sample in samples.iter().filter(|sample| {
        sample["client"].as_str().is_some_and(|client| client.starts_with("deponent"))
    }) {
        let block = &sample["block"];
        let asked = block["asked"].as_array().expect("a list");
        let is_later = sample["client"] == "deponent+public-port";
        assert_eq!(asked.len(), 1 + usize::from(is_later), "{sample}");
        let of_block = (!is_later).then_some(&block["witness"]);
        for witness in of_block.into_iter().chain(asked.iter().map(|asked| &asked["witness"])) {
            contents.insert(witness["content"].as_u64().expect("a witness"));
        }
    }
    // In one call or two, now or again, over each wire.
    assert_eq!(contents.len(), 1, "{contents:?}");
    for words in ["| deponent+public-port |", "| deponent+ssz-unix |", "| 140 |"] {
        assert!(report.contains(words), "{words} is not in {report}");
    }
}

#[test]
fn witnesses_are_as_large_as_asked_and_a_seed_gives_the_same_bytes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (fork, codes, read) in [
        ("osaka", "random", "size"),
        ("amsterdam", "realistic", "copy"),
        ("osaka", "compressible", "call"),
    ] {
        let make = |name: &str| -> PathBuf {
            let dir = directory.path().join(name).join(codes);
            let kind = ["--kind", "witness-size", "--sizes", "1,3"];
            let flags = ["--fork", fork, "--codes", codes, "--read", read];
            run("generate", &[&kind[..], &flags].concat(), &dir);
            let mut folders = std::fs::read_dir(dir.join("chains")).expect("it was made");
            folders.next().expect("a chain").expect("a folder").path()
        };
        let (one, other) = (make("one"), make("other"));
        for name in ["genesis.json", "README.md", "state.jsonl.zst", "w1.jsonl.zst", "w3.jsonl.zst"]
        {
            let [one, other] =
                [&one, &other].map(|folder| std::fs::read(folder.join(name)).expect("it was made"));
            assert!(one == other, "{name} of {codes}");
        }
        let results = directory.path().join(format!("results-{codes}"));
        let (chain, path) = (one.display().to_string(), results.display().to_string());
        let flags = ["--chain", &chain, "--results", &path, "--sizes", "1,3", "--pause", "0"];
        let rounds = ["--transports", "ssz", "--rounds", "1", "--large-rounds", "1"];
        let clients = ["--clients", "deponent", "--ignore-load"];
        run("transports", &[&flags[..], &rounds, &clients].concat(), directory.path());
        let (samples, _) = self::results(&results);
        assert_eq!(samples.len(), 4);
        for sample in samples {
            let block = &sample["block"];
            let size = block["stage"].as_str().expect("a size").trim_end_matches(" MB");
            let size: f64 = size.parse().expect("a number");
            let bytes = block["witness"]["bytes"].as_f64().expect("a witness");
            let ratio = bytes / (size * 1e6);
            assert!((0.97..1.03).contains(&ratio), "{codes}, {size} MB: {bytes}");
        }
    }
}

/// A chain whose first warm block has the label `w1`, in the form of the published one.
fn publish(chain: &Chain, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::copy(chain.genesis(), folder.join("genesis.json")).expect("a copy");
    let mut lines = String::new();
    for (part, label) in [(Part::State, "setup"), (Part::Empty, "setup"), (Part::Warm, "w1")] {
        let most = if part == Part::Warm { 1 } else { usize::MAX };
        for payload in chain.payloads(part).expect("it was made").take(most) {
            let payload = payload.expect("a payload");
            let params: Value = serde_json::from_str(payload.params()).expect("JSON");
            let line = json!({"label": label, "variant": 0, "params": params});
            lines.push_str(&format!("{line}\n"));
        }
    }
    std::fs::write(folder.join("payloads.jsonl"), lines).expect("written");
}
