use std::collections::BTreeMap;

use clap::Arg;

use super::*;

const PAGE: &str = include_str!("../../../../docs/operations.md");

fn node_flags() -> Vec<Arg> {
    flags::flags_of(&Cli::command(), "node")
}

fn name(flag: &Arg) -> &str {
    flag.get_long().expect("flags have names")
}

/// The configuration that a command line makes, or what is said against it.
fn config(arguments: &[&str]) -> Result<String, String> {
    let given = ["deponent", "config"].iter().chain(arguments).map(OsString::from);
    let matches = flags::read(Cli::command(), &given.collect::<Vec<_>>());
    let matches = matches.map_err(|fault| fault.to_string())?;
    let Cli { command, .. } = Cli::from_arg_matches(&matches).map_err(|fault| fault.to_string())?;
    let Command::Config(args) = command else { panic!("another command") };
    let (_, matches) = matches.subcommand().expect("config");
    Ok(flags::effective(&Cli::command(), matches, &args.computed(), &[]))
}

/// A value that a flag takes, and which is not its default.
fn sample(flag: &Arg) -> String {
    let kind = flag.get_value_names().map_or("", |names| names[0].as_str());
    match (name(flag), kind) {
        ("log.level", _) => "warn,deponent_engine=trace".into(),
        ("log.format", _) => "json".into(),
        ("http.api" | "ws.api", _) => "eth,debug".into(),
        (_, "METHODS") => "eth_*,!eth_getLogs".into(),
        (_, "BYTES") => "3GiB".into(),
        (_, "PORT") => "4242".into(),
        (_, "DURATION") => "1500ms".into(),
        (_, "TAG") => "safe".into(),
        (_, "URLS") => "http://127.0.0.1:4318,/run/geth.ipc".into(),
        (_, "URL") => "http://127.0.0.1:4318".into(),
        (_, "IP") => "127.0.0.9".into(),
        (_, "HASH") => format!("0x{}", "ab".repeat(32)),
        (_, "SOURCES") => "http://127.0.0.1:8545,ws://[::1]:8546".into(),
        (_, "FILE" | "DIR" | "DIR|FILE") => "/a \"b\" \\ c\u{7f}é".into(),
        (_, "NAMES" | "PAGES") => "one.example,two.example".into(),
        (_, "BLOCKS" | "KEYS" | "THREADS" | "FILES" | "WEI" | "GAS" | "BLOBS") => "17".into(),
        (_, "PERCENT" | "COUNT" | "ETHER") => "18".into(),
        (_, "DATA") => "0x64657631".into(),
        (_, "BOOL") => (flag.get_default_values()[0] != "true").to_string(),
        (_, "ENODES" | "METHOD" | "MODE" | "NUMBER" | "ID" | "NAME") => "true".into(),
        (name, kind) => panic!("what is a {kind} of --{name}?"),
    }
}

#[test]
fn every_flag_goes_into_a_file_and_comes_out_of_it_again() {
    // It is not allowed beside --ipcdisable, on the command line.
    let flags = node_flags();
    let given = flags.iter().filter(|flag| name(flag) != "ipcpath");
    let given: Vec<_> = given.map(|flag| format!("--{}={}", name(flag), sample(flag))).collect();
    let printed = config(&given.iter().map(String::as_str).collect::<Vec<_>>()).expect("taken");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("node.toml");
    std::fs::write(&file, &printed).expect("written");
    let file = format!("--config={}", file.display());
    assert_eq!(config(&[&file]).expect("read again"), printed);

    let default = config(&[]).expect("no flag is required");
    // An empty list would read as no namespace at all.
    assert!(default.contains("# \"http.api\" is not set\n"), "{default}");
    for flag in &flags {
        let line = |text: &str| {
            let key = format!("{:?}", name(flag));
            let mut lines = text.lines().map(|line| line.trim_start_matches("# ").to_owned());
            lines.find(|line| line.starts_with(&key)).unwrap_or_else(|| panic!("no {key}: {text}"))
        };
        assert_ne!(line(&default), line(&printed), "the sample of it is its default");
    }
    // The command line wins, also against a switch, and against what excludes its flag.
    let printed = config(&[&file, "--http.port=99", "--testing=false", "--ws.api=net"]).unwrap();
    for line in [r#""http.port" = 99"#, r#""testing" = false"#, r#""ws.api" = ["net"]"#] {
        assert!(printed.lines().any(|found| found == line), "{line}: {printed}");
    }
    config(&[&file, "--ipcpath=/x", "--ipcdisable=false"]).expect_err("both are given");
    config(&[&file, "--ipcpath=/x"]).expect("the file's --ipcdisable is no flag given");
}

#[test]
fn a_key_that_is_no_flag_is_refused_with_the_nearest_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("node.toml");
    let flag = format!("--config={}", file.display());
    let refused = |text: &str, words: &[&str]| {
        std::fs::write(&file, text).expect("written");
        let said = config(&[&flag]).expect_err(text);
        for words in words.iter().chain(&["node.toml"]) {
            assert!(said.contains(words), "{words}: {said}");
        }
    };
    refused("[http]\nprot = 1\n", &[r#""http.prot""#, r#""http.port""#]);
    refused("\"print-limits\" = true\n", &[r#""print-limits""#]);
    refused("chain = [\"a\"]\n", &[r#""chain" is a list"#]);
    refused("chain = 1.5\n", &[r#""chain" is a float"#]);
    refused("chain =\n", &["line 1"]);
    refused("\"http.port\" = 70000\n", &["'70000'", "--http.port", "65535"]);
    refused("testing = \"maybe\"\n", &["'maybe'", "--testing"]);
    std::fs::write(&file, "[http]\nport = 7\nvhosts = [\"a\", \"b\"]\n").expect("written");
    let printed = config(&[&flag]).expect("tables are paths");
    assert!(printed.contains("\"http.port\" = 7\n"), "{printed}");
    assert!(printed.contains("\"http.vhosts\" = [\"a\", \"b\"]\n"), "{printed}");
    let absent = config(&["--config=/absent.toml"]).expect_err("it is not there");
    assert!(absent.contains("--config /absent.toml: "), "{absent}");
}

#[test]
fn a_wrong_value_is_named_with_its_flag_and_what_is_allowed() {
    let mut refused = 0;
    for flag in node_flags() {
        let given = format!("--{}=no such value", name(&flag));
        let Err(said) = config(&[&given]) else { continue };
        refused += 1;
        let allowed = ["expected", "possible values", "a level is"];
        assert!(allowed.iter().any(|words| said.contains(words)), "{said}");
        for words in ["no such value", &format!("--{}", name(&flag))] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    assert!(refused > 20, "{refused}");
    let small = config(&["--memory=1GiB"]).expect_err("too little");
    assert!(small.contains("--memory") && small.contains("2GiB at least"), "{small}");
}

/// The default of a flag as its help has it.
fn default(flag: &Arg) -> String {
    let values: Vec<_> = flag.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    let help = flag.get_long_help().or(flag.get_help()).map(ToString::to_string);
    let help = help.unwrap_or_default();
    let said = help.split_once("[default: ").and_then(|(_, rest)| rest.split_once(']'));
    match (said, &*values.join(",")) {
        (Some((said, _)), _) => said.into(),
        (None, "false") => "off".into(),
        (None, "true") => "on".into(),
        (None, "") => "none".into(),
        (None, values) => values.into(),
    }
}

#[test]
fn every_flag_is_in_the_documentation_with_its_default() {
    // Rows of tables: flags, default, reason.
    let mut documented = BTreeMap::new();
    for line in PAGE.lines().filter(|line| line.starts_with("| `--")) {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [flags, default, reason] = cells[..] else { panic!("three cells: {line}") };
        assert!(!reason.is_empty(), "{line}");
        for flag in flags.split(", ") {
            let flag = flag.trim_matches('`').trim_start_matches("--").to_owned();
            documented.insert(flag, default.replace('`', ""));
        }
    }
    let mut command = Cli::command();
    command.build();
    let node = command.find_subcommand("node").expect("node");
    let ours = node.get_arguments().filter(|flag| flag.get_long().is_some());
    let ours: BTreeMap<_, _> = ours.map(|flag| (name(flag).to_owned(), default(flag))).collect();
    assert!(ours.contains_key("help") && ours.contains_key("version"), "{ours:?}");
    let differ = |(flag, default): &(&String, &String)| documented.get(*flag) != Some(*default);
    let wrong: Vec<_> =
        ours.iter().filter(differ).map(|(flag, text)| (flag, text, documented.get(flag))).collect();
    assert!(wrong.is_empty(), "flag, default, documented: {wrong:#?}");
    let unknown: Vec<_> = documented.keys().filter(|flag| !ours.contains_key(*flag)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// All flags that take a value, each with the command that has it.
fn valued_flags(command: &clap::Command, path: &[String]) -> Vec<(Vec<String>, Arg)> {
    let valued = |flag: &&Arg| {
        flag.get_long().is_some()
            && flag.get_action().takes_values()
            && !flag.is_require_equals_set()
    };
    let own = command.get_arguments().filter(valued).map(|flag| (path.to_vec(), flag.clone()));
    let inner = command
        .get_subcommands()
        .flat_map(|inner| valued_flags(inner, &[path, &[inner.get_name().to_owned()]].concat()));
    own.chain(inner).collect()
}

#[test]
fn a_negative_number_behind_a_space_is_the_value_of_its_flag() {
    let mut command = Cli::command();
    command.build();
    let (mut commands, mut refused) = (std::collections::BTreeSet::new(), 0);
    for (path, flag) in valued_flags(&command, &[]) {
        for value in ["-1", "-1GiB"] {
            let flag = format!("--{}", name(&flag));
            let program = OsString::from("deponent");
            let given = path.iter().chain([&flag]).map(OsString::from);
            let given: Vec<_> = [program].into_iter().chain(given).chain([value.into()]).collect();
            // Where another flag is missing this one was read.
            let Err(said) = flags::read(Cli::command(), &given) else { continue };
            let said = said.to_string();
            assert!(!said.contains("unexpected argument"), "{given:?}: {said}");
            if !said.contains("invalid value") {
                continue;
            }
            (refused, _) = (refused + 1, commands.insert(path.clone()));
            let allowed = ["expected", "possible values", "a level is"];
            assert!(allowed.iter().any(|words| said.contains(words)), "{given:?}: {said}");
            assert!(said.contains(&flag) && said.contains(value), "{given:?}: {said}");
        }
    }
    assert!(refused > 60 && commands.len() > 6, "{refused} of {commands:?}");
    for given in [["bench", "--x", "-1"], ["--", "--x", "-1"]] {
        let given = given.map(OsString::from);
        assert_eq!(flags::with_negative_values(&given), given);
    }
}

#[test]
fn names_pages_and_threads_that_cannot_be_are_refused() {
    let wrong = [
        ("http.vhosts", "a b", "a host name without a port"),
        ("http.vhosts", "node.example:8545", "a host name without a port"),
        ("http.vhosts", "localhost,", "a host name without a port"),
        ("metrics.vhosts", "a/b", "a host name without a port"),
        ("authrpc.vhosts", "http://a", "a host name without a port"),
        ("http.corsdomain", "ht!tp://x", "as https://app.example"),
        ("http.corsdomain", "https://app.example/", "as https://app.example"),
        ("http.corsdomain", "https://*.example", "as https://app.example"),
        ("ws.origins", "", "as https://app.example"),
        ("ws.origins", "a:70000", "as https://app.example"),
        ("engine.ahead-threads", "100000000", "from 0 to 1024"),
        ("engine.trie-workers", "1025", "from 0 to 1024"),
    ];
    for (flag, value, allowed) in wrong {
        let said = config(&[&format!("--{flag}"), value]).expect_err(value);
        for words in [&format!("'{value}'"), &format!("--{flag}"), allowed] {
            let is_part = value.ends_with(',') && words.contains(value);
            assert!(is_part || said.contains(words), "{words}: {said}");
        }
    }
    let right = [
        "--http.vhosts=localhost, node_1.example,10.0.0.1,::1",
        "--authrpc.vhosts=*",
        "--http.corsdomain=*,null,app.example,app.example:8080,chrome-extension://abc",
        "--ws.origins=http://localhost:3000,http://[::1]:3000,https://app.example",
        "--engine.ahead-threads=1024",
    ];
    config(&right).expect("all of them can be");
}

#[test]
fn completions_and_man_pages_have_the_flags() {
    let mut completed = Vec::new();
    clap_complete::generate(Shell::Bash, &mut Cli::command(), "deponent", &mut completed);
    let completed = String::from_utf8(completed).expect("UTF-8");
    assert!(node_flags().iter().all(|flag| completed.contains(&format!("--{}", name(flag)))));
    let help = Cli::command().find_subcommand_mut("node").expect("node").render_help().to_string();
    for heading in ["Chain and files:", "Public port", "Engine API", "Memory", "Peer-to-peer"] {
        assert!(help.contains(heading), "{help}");
    }
}

#[test]
fn help_lists_each_command_in_one_group() {
    let command = Cli::command();
    let mut names: Vec<_> =
        command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    names.push("help".to_owned());
    let mut listed: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    names.sort_unstable();
    listed.sort_unstable();
    assert_eq!(names, listed);
    let help = grouped(command).render_help().to_string();
    assert!(help.contains("\n  tx           Print a transaction\n"), "{help}");
    assert!(help.contains("--log.level") && help.contains("-h, --help"), "{help}");
}

/// The words that refuse a command line.
fn fault(line: &str) -> String {
    let given: Vec<_> = line.split(' ').map(OsString::from).collect();
    let fault = flags::read(Cli::command(), &given).expect_err(line);
    with_words(fault, named(&given)).to_string()
}

#[test]
fn flags_and_commands_of_other_programs_lead_to_ours() {
    for (line, words) in [
        ("deponent dev --code-size-limit 99999", "there is no --code-size-limit here: codes have"),
        ("deponent dev --genesis=genesis.json", "--init FILE"),
        ("deponent dev -p 0 --optimism", "the rules are those of Ethereum"),
        ("deponent dev -s 3", "--state writes at the end"),
        ("deponent node --dev", "deponent dev runs a chain for tests"),
        ("deponent node --chain g --miner.gaslimit 5", "--builder.gas-limit"),
        ("deponent send 0x12 --account me", "--keystore FILE"),
        ("deponent chain-id", "deponent chain chainId"),
        ("deponent node --jwt-secret j", "--authrpc.jwtsecret FILE"),
        ("deponent node --rpc http://x", "deponent follow --rpc URL"),
        ("deponent version", "deponent --version"),
        ("deponent snapshot dump", "geth snapshot dump makes one"),
        ("deponent dump", "deponent init --state reads it"),
        ("deponent anvil", "deponent dev"),
        ("deponent dev --no-such-flag", "unexpected argument '--no-such-flag'"),
        ("deponent no-such-command", "unrecognized subcommand"),
    ] {
        let said = fault(line);
        assert!(said.contains(words) && said.contains("--help"), "{line}: {said}");
    }
}

#[test]
fn a_chain_for_tests_starts_with_flags_of_anvil() {
    let dev = |line: &str| {
        let given: Vec<_> = line.split(' ').map(OsString::from).collect();
        let matches = flags::read(Cli::command(), &given).expect(line);
        let Cli { command, .. } = Cli::from_arg_matches(&matches).expect(line);
        let Command::Dev(args) = command else { panic!("another command: {line}") };
        format!("{args:?}")
    };
    for (line, part) in [
        ("deponent dev --no-mine --silent --auto-unlock", "no_mining: true"),
        ("deponent dev --blockTime 2 --mixed-mining", "mixed_mining: true"),
        ("deponent dev --rpc-url http://x --fork-block-number -5", "fork_block_number: Some(-5)"),
        ("deponent dev --block-base-fee-per-gas 0", "base_fee: Some(0)"),
        ("deponent dev --ipc", "ipc: Some(\"/tmp/anvil.ipc\")"),
        ("deponent dev --steps-tracing -vvv -j 2 --prune-history --timeout=5", "\"verbosity\""),
        ("deponent dev --state a.json --chainId 0x7a69", "chain_id: Some(31337)"),
    ] {
        let read = dev(line);
        assert!(read.contains(part), "{line}: {read}");
    }
    assert!(fault("deponent dev --state a --dump-state b").contains("cannot be used with"));
}

#[test]
fn the_page_of_the_chain_for_tests_has_all_its_flags() {
    let page = include_str!("../../../../docs/dev.md");
    let mut command = Cli::command();
    command.build();
    let dev = command.find_subcommand("dev").expect("dev");
    let shown = dev.get_arguments().filter(|flag| !flag.is_hide_set() && !flag.is_global_set());
    let names = shown.filter_map(Arg::get_long).filter(|name| !matches!(*name, "help" | "version"));
    let missing: Vec<_> = names.filter(|name| !page.contains(&format!("`--{name}"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
