//! The benchmarks in miniature: this program, and geth where it is, run a chain that
//! this program built. What it measures means nothing here; that it runs does.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::report::markdown;
use bench::{
    Chain, Codes, Contender, CrowdOptions, Fork, Kind, Options, Part, Program, Read,
    TransportOptions, WitnessOptions, WitnessSizes, World,
};
use serde_json::{Value, json};
use testing::geth;

#[test]
fn the_benchmarks_run_in_miniature() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let deponent = program(Kind::Deponent, env!("CARGO_BIN_EXE_deponent").into());
    let mini = World::preset("mini").expect("a preset");
    let world = World { branches: vec![1, 3], ..mini };
    let chain = bench::generate(&world, directory.path(), &deponent).expect("a chain");
    check_branches(&chain);
    let contender = |kind, witness| Contender { kind, witness };
    let mut contenders = vec![
        (contender(Kind::Deponent, None), deponent.clone()),
        (contender(Kind::Deponent, Some(Contender::WITNESS)), deponent.clone()),
        (contender(Kind::Deponent, Some("descriptor")), deponent.clone()),
        (contender(Kind::Deponent, Some("mapped-codes")), deponent),
    ];
    match geth::binary() {
        Some(geth) => contenders.push((contender(Kind::Geth, None), program(Kind::Geth, geth))),
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
        alternate: true,
        invalid: true,
    };
    let results = directory.path().join("results");
    let outcome =
        bench::state(&options, &chain, directory.path(), &results).expect("every block is valid");
    let blocks = (world.warm_blocks + world.empty_blocks + world.cold_blocks) as usize;
    assert!(outcome.samples > blocks * options.contenders.len());
    let report = markdown(&[outcome.document]);
    for words in ["## warm", "## empty", "## cold", "## reorgs", "forkchoiceUpdated p99, ms"] {
        assert!(report.contains(words), "{words} is not in {report}");
    }
    for name in ["samples.jsonl", "report.html", "report.json"] {
        assert!(results.join(name).is_file(), "{name}");
    }
    check_alternation(&results, options.contenders.len());
    let ours = &options.contenders[..1];
    let report = bench::depths(ours, usize::MAX, &chain, directory.path(), &results);
    let report = markdown(&[report.expect("every block is valid")]);
    assert!(report.contains("| deponent | 8 | 1 |"), "{report}");
    assert!(report.contains("| yes |") && !report.contains("refused"), "{report}");
    transports(&chain, directory.path());
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
    let mut seen = std::collections::BTreeSet::new();
    for transaction in blocks.iter().flat_map(|(_, transactions)| transactions) {
        assert!(seen.insert(transaction.as_str()), "{transaction} is on both branches");
    }
}

/// Clients that are asked for witnesses are so in half of each part's blocks: in groups of as many
/// in a row as there are clients, by the Thue-Morse sequence.
fn check_alternation(results: &Path, clients: usize) {
    let samples = std::fs::read_to_string(results.join("samples.jsonl")).expect("they are there");
    let mut seen = std::collections::BTreeMap::<_, usize>::new();
    for line in samples.lines() {
        let sample: Value = serde_json::from_str(line).expect("JSON");
        let client = sample["client"].as_str().expect("a name");
        let index = seen.entry(format!("{client} {}", sample["part"])).or_default();
        let group = *index / clients;
        let is_expected = client.contains('+') && group.count_ones().is_multiple_of(2);
        *index += 1;
        assert_eq!(sample["with_witness"], is_expected, "{sample}");
        // A verdict has 162 bytes, and the witness of any block has more.
        let bytes = sample["answer_bytes"].as_u64().expect("known");
        assert_eq!(bytes > 1_000, is_expected, "{sample}");
    }
    assert!(seen.values().any(|count| *count > clients), "some part has blocks without");
}

/// The first warm block over all transports, with siblings that are built for the purpose.
fn transports(chain: &Chain, directory: &Path) {
    let published = directory.join("published");
    publish(chain, &published);
    let mut programs = vec![program(Kind::Deponent, env!("CARGO_BIN_EXE_deponent").into())];
    programs.extend(geth::binary().map(|geth| program(Kind::Geth, geth)));
    let peer_transports = ["json", "ipc", "ws"].map(str::to_owned);
    let options = TransportOptions {
        programs,
        transports: Vec::new(),
        peer_transports: peer_transports.to_vec(),
        sizes: vec![1],
        rounds: [2, 2],
        pause: Duration::ZERO,
    };
    let results = directory.join("transports");
    let outcome = bench::transports(&options, &published, directory, &results);
    let outcome = outcome.expect("every block has a witness over every transport");
    let samples = std::fs::read_to_string(results.join("samples.jsonl")).expect("they are there");
    let samples: Vec<Value> =
        samples.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(samples.len(), outcome.samples);
    let mut witnesses = std::collections::BTreeMap::new();
    for sample in &samples {
        let whole = sample["whole_us"].as_f64().expect("a number");
        let parts = ["first_byte_us", "last_byte_us"].map(|name| sample[name].as_f64());
        assert!(parts.into_iter().all(|part| part.is_some_and(|part| part <= whole)), "{sample}");
        let witness = [&sample["digest"], &sample["items"], &sample["witness_bytes"]];
        let witness = witness.map(|value| value.as_u64().expect("a number"));
        // geth's may have codes that the block itself created.
        let first = witnesses.entry(sample["client"].to_string()).or_insert(witness);
        assert_eq!(*first, witness, "{sample}");
    }
    let report = markdown(&[outcome.document]);
    let row = |client: &str, name: &str| report.contains(&format!("| {client} | {name} |"));
    for name in bench::transport_names() {
        assert!(row("deponent", name), "{name} is not in {report}");
    }
    crowd(&published, directory);
    witness(options.programs.clone(), &published, directory);
    if let [_, _] = &options.programs[..] {
        assert!(peer_transports.iter().all(|name| row("geth", name)), "{report}");
    }
}

/// Its witness with its verdict and after it, and below further blocks.
fn witness(programs: Vec<Program>, published: &Path, directory: &Path) {
    let depths = [0, 3, 140];
    let options = WitnessOptions {
        transports: ["json", "ssz-unix"].map(str::to_owned).to_vec(),
        peer_transports: vec!["json".into()],
        sizes: vec![1],
        rounds: 1,
        depths: depths.to_vec(),
        depth_size: 1,
        pause: Duration::ZERO,
        most: Duration::from_secs(3600),
        programs,
    };
    let results = directory.join("witness");
    let outcome = bench::witness(&options, published, directory, &results);
    let outcome = outcome.expect("every block is valid");
    let samples = std::fs::read_to_string(results.join("samples.jsonl")).expect("they are there");
    let samples: Vec<Value> =
        samples.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(samples.len(), outcome.samples);
    // A first and a repeated call, of each flow in two rounds, and of each depth.
    let of = |client: &'static str| samples.iter().filter(move |sample| sample["client"] == client);
    assert_eq!(of("deponent").count(), 2 * (3 * 2 + depths.len()));
    let mut contents = std::collections::BTreeSet::new();
    for sample in of("deponent") {
        assert!(sample["refusal"].is_null(), "{sample}");
        let is_first = sample["flow"] == "decoupled" && sample["repeated"] == false;
        let was_sent = is_first && sample["depth"].is_null();
        assert_eq!(sample["payload_us"].is_number(), was_sent, "{sample}");
        contents.insert(sample["call"]["content"].as_u64());
    }
    // In one call or two, now or later, over each transport.
    assert_eq!(contents.len(), 1, "{contents:?}");
    if options.programs.len() > 1 {
        assert_eq!(of("geth").count(), 2 * (2 * 2 + depths.len()));
        let decoupled = |sample: &&Value| sample["flow"] == "decoupled";
        let answered = |sample: &&Value| sample["depth"] != 140 && !sample["call"].is_null();
        assert_eq!(of("geth").filter(decoupled).filter(answered).count(), 2 * 4);
    }
    let report = markdown(&[outcome.document]);
    for words in ["| deponent | decoupled | public port |", "| deponent | coupled | ssz-unix |"] {
        assert!(report.contains(words), "{words} is not in {report}");
    }
    assert!(report.contains("| deponent | 140 |"), "{report}");
}

/// Small calls beside its witness.
fn crowd(published: &Path, directory: &Path) {
    let options = CrowdOptions {
        program: program(Kind::Deponent, env!("CARGO_BIN_EXE_deponent").into()),
        size: 1,
        transports: ["json", "ssz-unix", "descriptor"].map(str::to_owned).to_vec(),
        clients: 150,
        time: Duration::from_millis(200),
    };
    let report = bench::crowd(&options, published, directory, &directory.join("crowd"));
    let report = markdown(&[report.expect("every call is answered")]);
    for name in ["nothing", "json", "ssz-unix", "descriptor"] {
        assert!(report.contains(&format!("| {name} | ")), "{name} is not in {report}");
    }
}

#[test]
fn witnesses_are_as_large_as_asked_and_a_seed_gives_the_same_bytes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let deponent = program(Kind::Deponent, env!("CARGO_BIN_EXE_deponent").into());
    for (fork, codes, read) in [
        (Fork::Osaka, Codes::Random, Read::Size),
        (Fork::Amsterdam, Codes::Realistic, Read::Copy),
        (Fork::Osaka, Codes::Compressible, Read::Call),
    ] {
        let world = WitnessSizes { seed: 1, fork, sizes: vec![1, 3], codes, read };
        let make = |name: &str| {
            let folder = directory.path().join(name);
            bench::generate_sizes(&world, &folder, &deponent).expect("a chain").folder
        };
        let (one, other) = (make("one"), make("other"));
        for name in ["genesis.json", "README.md", "state.jsonl.zst", "w1.jsonl.zst", "w3.jsonl.zst"]
        {
            let [one, other] =
                [&one, &other].map(|folder| std::fs::read(folder.join(name)).expect("it was made"));
            assert!(one == other, "{name} of {codes:?}");
        }
        let options = TransportOptions {
            programs: vec![deponent.clone()],
            transports: vec!["ssz".into()],
            peer_transports: Vec::new(),
            sizes: vec![1, 3],
            rounds: [1, 1],
            pause: Duration::ZERO,
        };
        let results = directory.path().join(format!("{codes:?}"));
        bench::transports(&options, &one, directory.path(), &results).expect("witnesses");
        let samples =
            std::fs::read_to_string(results.join("samples.jsonl")).expect("they are there");
        assert_eq!(samples.lines().count(), 4);
        for sample in samples.lines() {
            let sample: Value = serde_json::from_str(sample).expect("JSON");
            let [size, bytes] =
                ["size", "witness_bytes"].map(|name| sample[name].as_f64().expect("a number"));
            let ratio = bytes / (size * 1e6);
            assert!((0.97..1.03).contains(&ratio), "{codes:?}, {size} MB: {bytes}");
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

const fn program(kind: Kind, binary: PathBuf) -> Program {
    Program { kind, binary, arguments: Vec::new(), memory_bytes: None, disk_bytes: None }
}
