//! `deponent-bench` as a program. Of its package the library alone is here, so a test program that
//! is started again is it.

use std::path::Path;
use std::process::Command;

/// Before the arguments of the benchmark; what follows is no test's name.
const SEPARATOR: &str = "--";

/// `deponent-bench`, which finds the `deponent` of this package on its path.
pub(crate) fn bench_program() -> Command {
    let (_, module) = module_path!().split_once("::").expect("a module of a test program");
    let mut command = Command::new(std::env::current_exe().expect("a test program"));
    command.args(["--exact", &format!("{module}::itself"), "--nocapture", SEPARATOR]);
    let folder = Path::new(env!("CARGO_BIN_EXE_deponent")).parent().expect("it is in a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [folder.to_owned()].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).expect("folders without colons"));
    command
}

/// The program, where it is started as [`bench_program`]; otherwise nothing is tested.
#[test]
fn itself() {
    let mut arguments = std::env::args_os().skip_while(|argument| argument != SEPARATOR);
    if arguments.next().is_some() {
        let arguments = ["deponent-bench".into()].into_iter().chain(arguments);
        std::process::exit(bench::main_of(arguments).into());
    }
}
