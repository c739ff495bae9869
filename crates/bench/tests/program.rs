//! The program `deponent-bench` from outside: its exit status, and its words on the standard error.

use std::process::{Command, Output, Stdio};

fn bench(arguments: &[&str], stdout: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent-bench"));
    command.args(arguments).stdout(stdout).output().expect("the program runs")
}

#[track_caller]
fn check(output: &Output, status: i32, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert_eq!(said.matches(words).count(), 1, "{words}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// A saved report.
const REPORT: &str = r#"{"version":1,"reports":[{"title":"T","command":"","made":"","machine":
    {"processor":"","cores":1,"memoryBytes":1,"kernel":"","load":""},"clients":[],"content":
    [{"table":{"title":"T","columns":[{"name":"a","unit":"ms"}],"rows":[[1]]}}]}]}"#;

/// As the commands of a node: EX_IOERR for a disk, a file or an output that takes no more.
#[test]
fn an_output_that_takes_no_more_is_exit_status_74() {
    let dir = tempfile::tempdir().expect("a directory");
    let report = dir.path().join("report.json").display().to_string();
    std::fs::write(&report, REPORT).expect("written");
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux").into();
    check(&bench(&["report", &report], full()), 74, "(os error 28)");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    // A reader that has gone is no fault of a disk.
    check(&bench(&["report", &report], writer.into()), 1, "(os error 32)");
}

#[test]
fn a_reason_of_the_system_is_said_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let absent = dir.path().join("absent.ipc").display().to_string();
    let out = dir.path().join("out").display().to_string();
    for command in [
        &["report", &absent][..],
        &["rpc", "--url", &absent],
        &["rpc", "--url", "http://127.0.0.1:1", "--jwt-secret", &absent],
        &["extract", "--from", "1", "--to", "2", "--rpc", &absent, "--out", &out],
    ] {
        check(&bench(command, Stdio::null()), 1, "(os error 2)");
    }
}
