//! The published tests of the JSON-RPC methods (execution-apis `tests`), one connection to the
//! program on their chain: what it answers to each request is the published answer, but for the
//! tests of `published.txt`. `cargo xtask conformance --rpc DIR` runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use crate::persistence::Process;
use crate::schema::schemas;
use crate::support::published_chain;
use serde_json::{Value, json};

/// A line of `published.txt`: a test whose answer is another one here.
struct Exception {
    test: &'static str,
    /// How the run tells the difference.
    difference: &'static str,
    /// The rest of the line.
    reason: &'static str,
}

impl Exception {
    fn all() -> Vec<Self> {
        let lines = include_str!("published.txt").lines().filter(|line| !line.starts_with('#'));
        let read = |line: &'static str| {
            let parts = line.split_once(" | ").expect("a test and more");
            let (test, (difference, reason)) =
                (parts.0, parts.1.split_once(" | ").expect("a difference and a reason"));
            Self { test, difference, reason }
        };
        lines.map(read).collect()
    }
}

/// The published answers are geth's: by them faults of the schemas are told from ours.
#[test]
fn the_published_answers_fit_the_schemas() {
    let Some((folder, _)) = published_chain() else { return };
    let schemas = schemas();
    let mut checked = 0;
    for test in Test::all(&folder) {
        for (request, answer) in &test.exchanges {
            let Some(result) = answer.get("result") else { continue };
            let method = method(request);
            assert_eq!(schemas.fault(&method, result), None, "{}", test.name);
            checked += usize::from(schemas.has(&method));
        }
    }
    assert!(checked > 150, "{checked}");
}

/// A published test.
struct Test {
    /// `METHOD/NAME.io`.
    name: String,
    exchanges: Vec<(String, Value)>,
    /// Whether only the form of the answers is specified.
    is_of_form: bool,
}

impl Test {
    fn read(folder: &Path, file: &Path) -> Self {
        let text = fs::read_to_string(file).expect("a file");
        let with =
            |sign: &'static str| text.lines().filter_map(move |line| line.strip_prefix(sign));
        let answers: Vec<Value> =
            with("<< ").map(|json| serde_json::from_str(json).expect("JSON")).collect();
        let requests: Vec<String> = with(">> ").map(str::to_owned).collect();
        assert_eq!(requests.len(), answers.len(), "{}", file.display());
        Self {
            name: file.strip_prefix(folder).expect("below").display().to_string(),
            exchanges: requests.into_iter().zip(answers).collect(),
            is_of_form: with("// ").any(|comment| comment.starts_with("speconly")),
        }
    }

    /// All tests in the folder, in the order of their names.
    fn all(folder: &Path) -> Vec<Self> {
        let entries = |folder: &Path| -> Vec<PathBuf> {
            let mut paths: Vec<_> = fs::read_dir(folder)
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .collect();
            paths.sort();
            paths
        };
        let methods = entries(folder).into_iter().filter(|path| path.is_dir());
        let files = methods.flat_map(|method| entries(&method));
        files.map(|file| Self::read(folder, &file)).collect()
    }

    /// The first difference between the answers and the published ones.
    fn failure(&self, mut ask: impl FnMut(&str) -> io::Result<Value>) -> Option<String> {
        self.exchanges.iter().find_map(|(request, expected)| match ask(request) {
            Ok(found) => self.difference(request, expected, &found),
            Err(fault) => Some(format!("no answer: {fault}")),
        })
    }

    /// Where an answer is wrong: by the published one, or by the schema of its method.
    fn difference(&self, request: &str, expected: &Value, found: &Value) -> Option<String> {
        difference("", expected, found, self.is_of_form).or_else(|| {
            let fault = schemas().fault(&method(request), found.get("result")?)?;
            Some(format!("by its schema in the OpenRPC document, {fault}"))
        })
    }

    fn method(&self) -> &str {
        self.name.split('/').next().expect("a method")
    }
}

/// The method of a request, of which a test may have several.
fn method(request: &str) -> String {
    let request: Value = serde_json::from_str(request).expect("JSON");
    request["method"].as_str().unwrap_or_default().to_owned()
}

/// Where two answers differ first. Of answers of one form objects have the same members, values are
/// of the same JSON types, each item of a list is like one of the published list's, if that has
/// any, and errors have the same code.
fn difference(at: &str, expected: &Value, found: &Value, is_of_form: bool) -> Option<String> {
    let shown = || Some(format!("{at}: published {}, here {}", short(expected), short(found)));
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let names: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
            names.into_iter().find_map(|name| match (expected.get(name), found.get(name)) {
                (Some(one), Some(other)) => {
                    difference(&format!("{at}/{name}"), one, other, is_of_form)
                }
                (Some(value), None) => Some(format!("{at}/{name}: {} is missing", short(value))),
                (None, value) => {
                    Some(format!("{at}/{name}: {} is too much", short(value.expect("one has it"))))
                }
            })
        }
        (Value::Array(expected), Value::Array(found)) if is_of_form => {
            let first = expected.first()?;
            if found.is_empty() {
                return shown();
            }
            found.iter().enumerate().find_map(|(index, item)| {
                let at = format!("{at}/{index}");
                let is_like = |one: &Value| difference(&at, one, item, true).is_none();
                match expected.iter().any(is_like) {
                    true => None,
                    false => difference(&at, first, item, true),
                }
            })
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let pairs = expected.iter().zip(found).enumerate();
            pairs.into_iter().find_map(|(index, (one, other))| {
                difference(&format!("{at}/{index}"), one, other, false)
            })
        }
        _ if is_of_form && at != "/error/code" => {
            (std::mem::discriminant(expected) != std::mem::discriminant(found)).then(shown)?
        }
        _ => (expected != found).then(shown)?,
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

/// The program on the published chain, and its Unix socket.
async fn started(dir: &Path, folder: &Path, genesis: &str) -> (Process, PathBuf) {
    let genesis_file = dir.join("genesis.json");
    fs::write(&genesis_file, genesis).expect("written");
    let import = Command::new(env!("CARGO_BIN_EXE_deponent"))
        .arg("import")
        .args(["--chain".as_ref(), genesis_file.as_os_str(), "--datadir".as_ref()])
        .args([dir.join("data"), folder.join("chain.rlp")])
        .output()
        .expect("the program runs");
    assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    let socket = dir.join("node.ipc");
    let ipc = ["--ipcpath", socket.to_str().expect("UTF-8")];
    let mut node = Process::start_with(dir, &ipc).await;
    let head = fs::read_to_string(folder.join("headfcu.json")).expect("a file");
    let head: Value = serde_json::from_str(&head).expect("JSON");
    let method = head["method"].as_str().expect("a name").to_owned();
    let answer: Result<Value, _> = node.engine.call(&method, &head["params"]).await;
    assert_eq!(answer.expect("an answer")["payloadStatus"]["status"], "VALID");
    (node, socket)
}

/// The tests and what is wrong with each.
fn failures(tests: &[Test], socket: &Path) -> io::Result<Vec<Option<String>>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let reader = BufReader::new(stream.try_clone()?);
    let mut answers = serde_json::Deserializer::from_reader(reader).into_iter::<Value>();
    let mut ask = |request: &str| {
        writeln!(stream, "{request}")?;
        answers
            .next()
            .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?
            .map_err(Into::into)
    };
    Ok(tests.iter().map(|test| test.failure(&mut ask)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_answers_are_ours() {
    let Some((folder, genesis)) = published_chain() else { return };
    let tests = Test::all(&folder);
    let dir = tempfile::tempdir().expect("a directory");
    let (node, socket) = started(dir.path(), &folder, &genesis).await;
    let failures = failures(&tests, &socket);
    node.kill();
    let failures = failures.expect("a connection");

    let exceptions = Exception::all();
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (test, failure) in tests.iter().zip(&failures) {
        let listed = exceptions.iter().find(|exception| exception.test == test.name);
        let column = match (failure, listed) {
            (None, None) => 0,
            (Some(failure), Some(listed)) if failure == listed.difference => 1,
            (Some(failure), _) => {
                wrong.push(format!("{}: {failure}", test.name));
                2
            }
            (None, Some(_)) => {
                wrong.push(format!("{} passes, and published.txt lists it", test.name));
                2
            }
        };
        counts.entry(test.method()).or_default()[column] += 1;
    }
    for Exception { test, difference, reason } in &exceptions {
        println!("{test} differs: {difference}: {reason}");
        if !tests.iter().any(|it| it.name == *test) {
            wrong.push(format!("{test} of published.txt is no test"));
        }
    }
    println!("\n{:<42}{:>8}{:>8}{:>8}", "method", "passed", "listed", "failed");
    let row = |name: &str, [passed, listed, failed]: [usize; 3]| {
        println!("{name:<42}{passed:>8}{listed:>8}{failed:>8}");
    };
    counts.iter().for_each(|(method, counts)| row(method, *counts));
    let sum = |column: usize| counts.values().map(|counts| counts[column]).sum();
    row("all", [0, 1, 2].map(sum));
    for line in &wrong {
        println!("FAILED {line}");
    }
    assert!(wrong.is_empty() && tests.len() > 200, "{} of {} tests", wrong.len(), tests.len());
}

/// The published tests ask for no uncles; their chain has some.
#[tokio::test(flavor = "multi_thread")]
async fn the_uncles_of_the_published_chain_are_told() {
    let Some((folder, genesis)) = published_chain() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let (node, socket) = started(dir.path(), &folder, &genesis).await;
    let address = format!("unix:{}", socket.display());
    let mut client = rpc::Client::connect(&address, None).await.expect("a connection");
    let mut ask = async |method: &str, params: Value| -> Value {
        client.call(method, params).await.expect("an answer")
    };
    let mut sum = 0;
    for number in 0..=54 {
        let number = format!("{number:#x}");
        let block = ask("eth_getBlockByNumber", json!([number, false])).await;
        let (hash, uncles) = (&block["hash"], block["uncles"].as_array().expect("a list"));
        let count = json!(format!("{:#x}", uncles.len()));
        assert_eq!(ask("eth_getUncleCountByBlockNumber", json!([number])).await, count);
        assert_eq!(ask("eth_getUncleCountByBlockHash", json!([hash])).await, count);
        for at in 0..=uncles.len() {
            let index = format!("{at:#x}");
            let uncle = ask("eth_getUncleByBlockNumberAndIndex", json!([number, index])).await;
            assert_eq!(uncle["hash"], uncles.get(at).cloned().unwrap_or_default());
            assert_eq!(ask("eth_getUncleByBlockHashAndIndex", json!([hash, index])).await, uncle);
            if !uncle.is_null() {
                sum += 1;
                assert_eq!(uncle["uncles"], json!([]), "{uncle}");
                assert!(uncle["size"].is_string() && uncle.get("transactions").is_none());
            }
        }
    }
    assert_eq!(sum, 18);
    node.kill();
}

#[test]
fn answers_of_one_form_have_the_same_members_types_and_codes() {
    let one = json!({"result": {"a": [{"x": "0x1"}, {"y": 1}], "b": null}});
    let check = |other: Value, expected: &str| {
        let found = difference("", &one, &other, true).unwrap_or_default();
        assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{found}");
    };
    check(json!({"result": {"a": [{"y": 7}], "b": null}}), "");
    check(json!({"result": {"a": [{"z": 7}], "b": null}}), "/result/a/0/x: ");
    check(json!({"result": {"a": [], "b": null}}), "/result/a: ");
    check(json!({"result": {"a": [{"y": 7}], "b": 0}}), "/result/b: ");
    check(json!({"result": {"a": [{"y": 7}]}}), "/result/b: ");
    assert_eq!(difference("", &json!([]), &json!([1]), true), None);
    assert!(difference("", &json!([]), &json!([1]), false).is_some());
    let [one, other] = [3, 4].map(|code| json!({"error": {"code": code}}));
    assert!(difference("", &one, &other, true).is_some_and(|words| words.contains("/error/code")));
}
