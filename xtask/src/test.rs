use crate::{Failure, cargo, run, tidy};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// `cargo xtask test`, and with `ci` also `cargo xtask ci`: what takes seconds comes first, the
/// tests last.
pub(crate) fn run_all(ci: bool) -> Result<(), Failure> {
    require(ci)?;
    if component("fmt") {
        run(cargo(&["fmt", "--all", "--check"]))?;
    }
    tidy::check()?;
    if component("clippy") {
        run(cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    }
    if ci {
        let mut rustdoc = cargo(&["doc", "--workspace", "--no-deps"]);
        rustdoc.env("RUSTDOCFLAGS", "-D warnings");
        run(rustdoc)?;
        if component("deny") {
            run(cargo(&["deny", "check"]))?;
        }
    }
    let mut tests = cargo(&["test", "--workspace"]);
    if ci {
        tests.env("CI", "true");
    }
    run(tests)
}

/// Names everything that is missing before the first minute is spent, and what it is for.
fn require(ci: bool) -> Result<(), Failure> {
    if !answers(Command::new("cc").arg("--version")) {
        return Err(Failure::new(
            "no C compiler: `cc` is needed by the curve and hash libraries (Debian: apt-get \
             install gcc libc6-dev)",
        ));
    }
    let hint = "so the published tests cannot run; docs/conformance.md says where they come from";
    match std::env::var_os("DEPONENT_FIXTURES").map(PathBuf::from) {
        Some(fixtures) if !fixtures.is_dir() => {
            let fixtures = fixtures.display();
            return Err(Failure::new(format!("DEPONENT_FIXTURES={fixtures} is no folder, {hint}")));
        }
        Some(fixtures) if fixtures.is_relative() => {
            return Err(Failure::new(format!(
                "DEPONENT_FIXTURES={} is relative: tests run in other folders; give it whole",
                fixtures.display()
            )));
        }
        Some(_) => {}
        None if ci => return Err(Failure::new(format!("DEPONENT_FIXTURES is not set, {hint}"))),
        None => println!("DEPONENT_FIXTURES is not set, {hint}"),
    }
    let hint =
        "viem, ethers and web3.py read from a node; docs/transports.md says how it is filled";
    match std::env::var_os("DEPONENT_TOOLS").map(PathBuf::from) {
        Some(tools) if !tools.is_absolute() || !tools.is_dir() => {
            let tools = tools.display();
            return Err(Failure::new(format!(
                "DEPONENT_TOOLS={tools} is not the whole path of a folder, from which {hint}"
            )));
        }
        Some(_) => {}
        None if ci => {
            return Err(Failure::new(format!(
                "DEPONENT_TOOLS is not set, the folder from which {hint}"
            )));
        }
        None => println!("DEPONENT_TOOLS is not set, the folder from which {hint}"),
    }
    if !has_geth() {
        println!("no geth on PATH or in ~/go/bin, so the tests beside geth cannot run");
    }
    Ok(())
}

fn has_geth() -> bool {
    let in_home = std::env::home_dir().map(|home| home.join("go/bin/geth"));
    in_home.is_some_and(|geth| geth.is_file()) || answers(Command::new("geth").arg("version"))
}

/// Whether `cargo NAME` is installed; says so when it is not.
fn component(name: &str) -> bool {
    let installed = answers(&mut cargo(&[name, "--version"]));
    if !installed {
        println!("cargo {name} is not installed, so it is skipped");
    }
    installed
}

fn answers(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
