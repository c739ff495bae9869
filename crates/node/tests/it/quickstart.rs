//! docs/quickstart.md, run as it is: each step's commands in one bash, and under each the output
//! that the page shows, but for what differs from run to run.

use std::path::Path;
use std::process::Command;

/// A step of the page: its commands, and the output shown under them.
struct Step {
    commands: String,
    shown: Option<String>,
}

/// The blocks of the page that begin with ```bash, each with the ```text after it.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut parts = page.split("\n```");
    parts.next();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (kind, text) = block.split_once('\n').expect("a block has a kind");
        match kind {
            "bash" => steps.push(Step { commands: text.into(), shown: None }),
            "text" => steps.last_mut().expect("it has commands").shown = Some(text.into()),
            // Those that a test cannot run: a build.
            "sh" => {}
            other => panic!("a block of {other:?}"),
        }
    }
    steps
}

/// The page's output without what is another one in each run: hashes, sizes that depend on them,
/// times, colours and ports.
fn comparable(text: &str) -> Vec<String> {
    let word = |word: &str| {
        let is_hex = |text: &str| text.len() > 10 && text.chars().all(|c| c.is_ascii_hexdigit());
        let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        match core.strip_prefix("0x") {
            Some(digits) if is_hex(digits) || digits.contains('…') => word.replace(core, "HASH"),
            _ if core.starts_with("127.0.0.1:") => "PORT".into(),
            _ if core.parse::<f64>().is_ok() && core.contains('.') => "TIME".into(),
            _ if core.starts_with("0.1.0") => "VERSION".into(),
            _ => word.to_owned(),
        }
    };
    let parts = |line: &str| -> String {
        let spaced = line.replace('=', "= ").replace(',', ", ").replace(':', ": ");
        let spaced = spaced.replace("127.0.0.1: ", "127.0.0.1:");
        spaced.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(parts).filter(|line| !line.is_empty()).collect()
}

#[test]
fn every_step_of_the_quickstart_does_what_the_page_shows() {
    let tools = ["bash", "jq", "curl", "openssl"];
    let missing: Vec<_> = tools
        .into_iter()
        .filter(|tool| Command::new(tool).arg("version").output().is_err())
        .collect();
    if !missing.is_empty() {
        assert!(std::env::var_os("CI").is_none(), "CI needs {missing:?}");
        println!("not run: no {missing:?}");
        return;
    }
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(clone.join("docs/quickstart.md")).expect("a page");
    let steps = steps(&page);
    assert!(steps.len() > 8, "{} steps", steps.len());
    let program = Path::new(env!("CARGO_BIN_EXE_deponent")).parent().expect("a folder");
    // The page's ports may be taken: the node takes free ones, and the calls go there.
    let replaced = [
        ("$clone/target/release", program.to_str().expect("UTF-8")),
        ("http_port=8545 engine_port=8551", "http_port=0 engine_port=0"),
        ("127.0.0.1:$engine_port", "$(sed -n 's/.*engine=\\([0-9.:]*\\).*/\\1/p' node.log)"),
        ("127.0.0.1:$http_port", "$(sed -n 's/.*http=\\([0-9.:]*\\).*/\\1/p' node.log)"),
    ];
    let mut script = String::from("exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n");
    for (number, step) in steps.iter().enumerate() {
        let commands =
            replaced.iter().fold(step.commands.clone(), |text, (from, to)| text.replace(from, to));
        script.extend([&commands, "\necho \"@@@ end of step ", &number.to_string(), "\"\n"]);
    }
    let output = Command::new("bash").arg("-c").arg(&script).current_dir(&clone).output();
    let output = output.expect("bash runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {said}", output.status);
    let mut rest = &*said;
    for (number, step) in steps.iter().enumerate() {
        let end = format!("@@@ end of step {number}\n");
        let (found, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}: {said}"));
        rest = after;
        if let Some(shown) = &step.shown {
            assert_eq!(comparable(found), comparable(shown), "{}\ngave\n{found}", step.commands);
        }
    }
}
