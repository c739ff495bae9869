use clap::Parser;

use super::*;

fn parse(line: &str) -> Result<crate::CommandLine, clap::Error> {
    crate::CommandLine::try_parse_from(std::iter::once("bench").chain(line.split(' ')))
}

#[test]
fn zero_of_what_is_measured_is_refused() {
    for line in [
        "replay p --rounds",
        "replay p --count",
        "replay p --engine-url u --jwt-secret f --answer-time",
        "compare p --rounds",
        "quick --rounds",
        "state --blocks",
        "state --rounds",
        "depths --blocks",
        "generate --warm-blocks",
        "generate --block-mgas 1",
        "generate --reorgs",
        "generate --branches",
        "state --branches 1,",
        "transports --rounds",
        "transports --large-rounds",
        "transports --sizes 17,",
        "witness --rounds",
        "witness --minutes",
        "crowd --connections",
        "crowd --seconds",
        "rpc --rounds",
        "rpc --calls",
        "rpc --connections",
        "rpc --depth",
        "rpc --threads",
        "overhead --connections",
        "extract --from 1 --to 2 --out o --timeout",
    ] {
        let with = |count| parse(&format!("{line} {count}").replace(", ", ","));
        let said = with("0").expect_err(line).to_string();
        assert!(said.contains("it has to be 1 at least"), "{line}: {said}");
        with("1").unwrap_or_else(|error| panic!("{line}: {error}"));
        with("x").expect_err(line);
    }
}

#[test]
fn flags_of_a_start_are_refused_beside_a_client_that_runs() {
    let running = "replay p --engine-url u --jwt-secret f";
    for flag in ["--genesis g", "--targets t", "--clients geth", "--rounds 2", "--sweep k=1,2"] {
        let said = parse(&format!("{running} {flag}")).expect_err(flag).to_string();
        let name = flag.split(' ').next().expect("a name");
        assert!(said.contains(name) && said.contains("cannot be used with"), "{said}");
        parse(&format!("replay p {flag}")).unwrap_or_else(|error| panic!("{flag}: {error}"));
    }
    for flag in ["--witness", "--ws-url u", "--reconnect 5", "--answer-time 5"] {
        let said = parse(&format!("replay p {flag}")).expect_err(flag).to_string();
        assert!(said.contains("--engine-url"), "{said}");
        parse(&format!("{running} {flag}")).unwrap_or_else(|error| panic!("{flag}: {error}"));
    }
}

#[test]
fn every_command_that_starts_clients_takes_the_same_flags() {
    for command in
        ["quick", "state", "depths", "transports", "witness", "crowd", "replay p", "compare p"]
    {
        let flags = "--clients geth,deponent+witness --geth g --reth r --deponent d --geth-args x \
                     --targets t --dir d --results r --reimport geth --ignore-load";
        parse(&format!("{command} {flags}")).unwrap_or_else(|error| panic!("{command}: {error}"));
    }
}

#[test]
fn a_slot_takes_time() {
    parse("soak --slot 1ms").expect("short");
    let error = parse("soak --slot 0s").expect_err("a run that would not end").to_string();
    assert!(error.contains("expected a time of 1ms at least"), "{error}");
}

#[test]
fn a_client_that_has_no_program_or_no_such_wire_is_named() {
    let said = |list: &str| {
        let line = ["deponent-bench", "compare", "p", "--genesis", "g", "--clients", list];
        let line = line.into_iter().chain(["--geth", "/none", "--reth", "/none"]);
        format!("{:#}", crate::run(line).expect_err(list))
    };
    assert!(said("geth,deponent").contains("--geth /none is no file"), "{}", said("geth"));
    assert!(said("besu+witness").contains("no witnesses"), "{}", said("besu+witness"));
    assert!(said("geth+ssz").contains("--geth"), "{}", said("geth+ssz"));
    assert!(said("deponent+x").contains("no wire x"), "{}", said("deponent+x"));
    assert!(said("ghet").contains("no target ghet"), "{}", said("ghet"));
}

#[test]
fn a_busy_machine_and_unequal_work_withhold_verdicts() {
    use crate::run::sample::Block;
    let run = |client: &str, round| Run {
        blocks: vec![Block { new_payload: 1.0, ..Block::default() }; 3],
        ..Run::of(client, round)
    };
    let runs: Vec<Run> =
        (0..LEAST_PAIRS).flat_map(|round| ["a", "b"].map(|client| run(client, round))).collect();
    let report = |measured: &Measured| {
        let mut document = Document::new("t");
        document.machine.busy.clone_from(&measured.busy);
        verdicts(&mut document, measured, Compared::OnSameBlocks);
        crate::report::markdown(&[document])
    };
    let mut measured = Measured { runs, ..Measured::default() };
    assert!(report(&measured).contains("no difference"), "{}", report(&measured));
    measured.busy = Some("it was busy".into());
    let said = report(&measured);
    assert!(said.contains("The machine was busy: it was busy"), "{said}");
    assert!(!said.contains("no difference"), "{said}");
    measured.busy = None;
    measured.runs[0].blocks.pop();
    let said = report(&measured);
    assert!(said.contains("unequal") && !said.contains("no difference"), "{said}");
}
