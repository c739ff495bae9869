//! The files of `integrations/` and `packaging/`: their flags are those of the program, and their
//! data can be read.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// The names after `--` in a text.
fn flags(text: &str) -> BTreeSet<&str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let names = text.split("--").skip(1).map(|rest| {
        let name = rest.split(|c| !is_of_name(c)).next().expect("a part");
        name.trim_end_matches(['.', '-'])
    });
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

#[test]
fn all_flags_are_those_of_the_program() {
    let help = Command::new(env!("CARGO_BIN_EXE_deponent")).args(["node", "--help"]).output();
    let help = String::from_utf8(help.expect("run").stdout).expect("UTF-8");
    let known = flags(&help);
    // The node's part of each file, and how many flags it has at least.
    for (name, begin, least) in [
        ("integrations/hive/deponent.sh", "exec deponent node", 15),
        ("integrations/benchmarkoor/deponent.go", "return []string{", 10),
        ("integrations/ethereum-package/deponent_launcher.star", "cmd = [", 15),
    ] {
        let text = read(name);
        let (_, command) = text.split_once(begin).expect("its command");
        let used = flags(command);
        assert!(used.len() >= least, "{name}: {used:?}");
        let unknown: Vec<_> = used.difference(&known).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?} are no flags of deponent node");
    }
}

#[test]
fn the_configurations_name_the_ports_and_can_be_read() {
    let entry = read("integrations/eest-execution-witness-dashboard/el-clients.json");
    let entry: Value = serde_json::from_str(&entry).expect("JSON");
    let entry = &entry["clients"]["deponent"];
    assert_eq!(entry["hive_client"], "deponent");
    assert_eq!(entry["transport"], "json-rpc-rlp");
    let github = entry["github"].as_str().expect("a text");
    assert_eq!(entry["repo"], format!("https://github.com/{github}.git"));
    assert!(read("integrations/hive/Dockerfile.git").contains(&format!("ARG github={github}\n")));
    let zkboost: toml::Table = read("integrations/zkboost/config.toml").parse().expect("TOML");
    assert_eq!(zkboost["el_engine_endpoint"].as_str(), Some("http://127.0.0.1:8551"));
    let variables = read("integrations/rsp-ethproofs/deponent.env");
    for line in ["HTTP_RPC_URL=http://127.0.0.1:8545", "WS_RPC_URL=ws://127.0.0.1:8545"] {
        assert!(variables.lines().any(|found| found == line), "{line}");
    }
    let exporter = read("integrations/ethereum-metrics-exporter/config.yaml");
    assert!(exporter.contains("url: http://127.0.0.1:8545"));
}
