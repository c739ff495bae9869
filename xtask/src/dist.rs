//! `cargo xtask dist`: what is released, in `target/dist`. `--check` looks at it as far as the
//! machine can: without a container engine no image is built.

mod checks;
mod debian;
mod dockerfile;

use crate::{Failure, cargo, root, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shells with completions, and the names of their files in the archive.
const SHELLS: [(&str, &str); 3] =
    [("bash", "deponent.bash"), ("fish", "deponent.fish"), ("zsh", "_deponent")];

/// The program's commands that have a page of their own.
const PAGES: [&str; 25] = [
    "node",
    "follow",
    "dev",
    "config",
    "verify",
    "init",
    "import",
    "export",
    "db",
    "completions",
    "call",
    "estimate",
    "send",
    "block",
    "tx",
    "receipt",
    "logs",
    "balance",
    "nonce",
    "code",
    "storage",
    "chain",
    "gas-price",
    "rpc",
    "abi",
];

/// Files of the repository that the archive has beside the program.
const DOCUMENTS: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"];

/// The packages to be made, and what they are made of.
#[derive(Debug)]
struct Dist {
    /// The program.
    binary: PathBuf,
    /// `target/dist`.
    folder: PathBuf,
    version: String,
    /// The time of the commit, in seconds: files are dated by it, so that the same commit makes
    /// the same bytes.
    time: u64,
}

/// `cargo xtask dist [--binary FILE] [--check | --files]`.
pub(crate) fn run_with(arguments: &[&str]) -> Result<(), Failure> {
    let mut binary = None;
    let (mut is_checked, mut is_files) = (false, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match (*argument, arguments.as_slice()) {
            ("--check", _) => is_checked = true,
            ("--files", _) => is_files = true,
            ("--binary", [file, ..]) => {
                binary = Some(PathBuf::from(file));
                arguments.next();
            }
            (other, _) => {
                let message =
                    format!("dist does not know {other:?}: [--binary FILE] [--check | --files]");
                return Err(Failure { status: 2, ..Failure::new(message) });
            }
        }
    }
    let dist = Dist::new(binary)?;
    if is_files {
        return checks::files(&dist);
    }
    let archive = dist.archive()?;
    let package = debian::package(&dist)?;
    dist.sums(&[&archive, &package])?;
    for file in [&archive, &package] {
        println!("{} {} bytes", file.display(), bytes(file)?);
    }
    if is_checked { checks::all(&dist, &archive, &package) } else { Ok(()) }
}

impl Dist {
    /// Builds the program, unless there is one, and empties the folder.
    fn new(binary: Option<PathBuf>) -> Result<Self, Failure> {
        let binary = match binary {
            Some(binary) => binary,
            None => {
                let package = ["--package", "deponent-node", "--bin", "deponent"];
                run(cargo(&[&["build", "--release", "--locked"], &package[..]].concat()))?;
                root().join("target/release/deponent")
            }
        };
        let folder = root().join("target/dist");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|fault| failed(&folder, &fault))?;
        }
        make_folder(&folder)?;
        let binary = fs::canonicalize(&binary).map_err(|fault| failed(&binary, &fault))?;
        let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]))?;
        let time = time.trim().parse().map_err(|_| Failure::new("git tells no time"))?;
        Ok(Self { binary, folder, version: env!("CARGO_PKG_VERSION").into(), time })
    }

    /// The text that the program prints.
    fn printed(&self, arguments: &[&str]) -> Result<String, Failure> {
        output(Command::new(&self.binary).args(arguments))
    }

    fn name(&self) -> String {
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        format!("deponent-{}-{arch}-{os}", self.version)
    }

    /// The archive of a release: the program, its licences, completions and man pages.
    fn archive(&self) -> Result<PathBuf, Failure> {
        let tree = self.folder.join("tree").join(self.name());
        copy(&self.binary, &tree.join("deponent"), 0o755)?;
        for name in DOCUMENTS {
            copy(&root().join(name), &tree.join(name), 0o644)?;
        }
        copy(&root().join("packaging/deponent.service"), &tree.join("deponent.service"), 0o644)?;
        copy(&root().join("packaging/deponent.toml"), &tree.join("deponent.toml"), 0o644)?;
        for (shell, name) in SHELLS {
            let text = self.printed(&["completions", shell])?;
            write(&tree.join("completions").join(name), text.as_bytes(), 0o644)?;
        }
        for (name, text) in self.pages()? {
            write(&tree.join("man").join(name), text.as_bytes(), 0o644)?;
        }
        let archive = self.folder.join(format!("{}.tar.gz", self.name()));
        self.pack(&tree, &archive)?;
        Ok(archive)
    }

    /// The man pages, each with its name.
    fn pages(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut pages = vec![("deponent.1".into(), self.printed(&["man"])?)];
        for name in PAGES {
            pages.push((format!("deponent-{name}.1"), self.printed(&["man", name])?));
        }
        Ok(pages)
    }

    /// Packs a folder, the same bytes from the same files: in order, dated by the commit, of
    /// nobody, and without a date of gzip's own.
    fn pack(&self, tree: &Path, archive: &Path) -> Result<(), Failure> {
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
        tar.arg(format!("--mtime=@{}", self.time)).args(["--use-compress-program=gzip -9n"]);
        tar.arg("--create").arg("--file").arg(archive);
        let parent = tree.parent().expect("it is in a folder");
        tar.arg("--directory").arg(parent).arg(tree.file_name().expect("it has a name"));
        output(&mut tar).map(drop)
    }

    /// `SHA256SUMS`, as `sha256sum --check` reads it.
    fn sums(&self, files: &[&Path]) -> Result<(), Failure> {
        let names = files.iter().map(|file| file.file_name().expect("it has a name"));
        let sums = output(Command::new("sha256sum").args(names).current_dir(&self.folder))?;
        write(&self.folder.join("SHA256SUMS"), sums.as_bytes(), 0o644)
    }
}

fn failed(path: &Path, fault: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {fault}", path.display()))
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|fault| failed(folder, &fault))
}

fn bytes(file: &Path) -> Result<u64, Failure> {
    fs::metadata(file).map(|file| file.len()).map_err(|fault| failed(file, &fault))
}

/// Writes a file with this mode, and the folders above it.
fn write(path: &Path, text: &[u8], mode: u32) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    make_folder(path.parent().expect("it is in a folder"))?;
    fs::write(path, text).map_err(|fault| failed(path, &fault))?;
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(|fault| failed(path, &fault))
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
    let bytes = fs::read(from).map_err(|fault| failed(from, &fault))?;
    write(to, &bytes, mode)
}

/// Runs a command to its end; its standard output.
fn output(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|fault| Failure::new(format!("{name}: {fault}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let arguments: Vec<_> = command.get_args().map(|part| part.to_string_lossy()).collect();
    let (printed, complaints) = (text(&output.stdout), text(&output.stderr));
    let arguments = arguments.join(" ");
    Err(Failure::new(format!("{name} {arguments}: {}\n{printed}{complaints}", output.status)))
}
