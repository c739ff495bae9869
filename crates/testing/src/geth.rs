//! The go-ethereum binary that some tests run beside.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The program that `GETH` names, else the one on `PATH`, else the one in `~/go/bin`.
pub fn binary() -> Option<PathBuf> {
    let home = std::env::home_dir().map(|home| home.join("go/bin/geth"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("geth"));
    let named = std::env::var_os("GETH").map(PathBuf::from);
    named.into_iter().chain(on_path).chain(home).find(|file| file.is_file())
}

/// An era1 or ere file of go-ethereum's tests, where its sources are in the cache of Go modules;
/// where not, a line on the standard output says so.
pub fn archive(name: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("GOMODCACHE").map(PathBuf::from).or_else(|| {
        let output = Command::new("go").args(["env", "GOMODCACHE"]).output().ok()?;
        Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
    });
    let versions = std::fs::read_dir(cache.unwrap_or_default().join("github.com/ethereum"));
    let folders = versions.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files = folders.map(|folder| folder.join("core/rawdb/eradb/testdata").join(name));
    let found = files.find(|file| file.is_file());
    if found.is_none() {
        println!(
            "not run: no {name}; `go mod download github.com/ethereum/go-ethereum@v1.17.8` has it"
        );
    }
    found
}

/// geth's commands on the data directories of one chain.
#[derive(Debug)]
pub struct Geth {
    binary: PathBuf,
    /// The chain's genesis file.
    pub genesis: PathBuf,
}

impl Geth {
    /// `None` where there is no geth; a line on the standard output then says so.
    pub fn find(genesis: PathBuf) -> Option<Self> {
        let binary = binary();
        if binary.is_none() {
            println!(
                "not run: no geth. `go install \
                 github.com/ethereum/go-ethereum/cmd/geth@v1.17.8`, or name it in GETH"
            );
        }
        binary.map(|binary| Self { binary, genesis })
    }

    /// Imports a chain file into a new data directory, as an archive with preimages of all keys.
    ///
    /// # Panics
    /// If geth fails.
    pub fn import(&self, data: &Path, chain: &Path) {
        self.run(data, &["--cache.preimages", "init", path_text(&self.genesis)]);
        self.run(data, &["--gcmode", "archive", "--cache.preimages", "import", path_text(chain)]);
    }

    /// Runs a command to its end, and returns its standard output.
    ///
    /// # Panics
    /// If geth fails.
    pub fn run(&self, data: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.binary);
        let output = command.arg("--datadir").arg(data).args(arguments).output().expect("run");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "geth {arguments:?}: {log}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Starts a node on a new data directory, without peers, with an engine port of this secret.
    ///
    /// # Panics
    /// If geth fails.
    pub fn start(&self, data: &Path, jwt_file: &Path, arguments: &[&str]) -> RunningGeth {
        self.run(data, &["init", path_text(&self.genesis)]);
        let mut command = Command::new(&self.binary);
        command.arg("--datadir").arg(data).arg("--authrpc.jwtsecret").arg(jwt_file);
        command.args(["--authrpc.addr", "127.0.0.1", "--authrpc.port", "0", "--port", "0"]);
        command.args(["--nodiscover", "--maxpeers", "0", "--syncmode", "full"]).args(arguments);
        let mut process =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("geth starts");
        let log = BufReader::new(process.stderr.take().expect("piped"));
        let engine_address = String::new();
        let mut geth = RunningGeth { process, engine_address, http_address: None };
        let mut lines = log.lines().map_while(Result::ok);
        for line in lines.by_ref().filter(|line| line.contains("HTTP server started")) {
            let endpoint = line.split("endpoint=").nth(1).and_then(|rest| rest.split(' ').next());
            let address = endpoint.expect("geth says where it listens").to_owned();
            // The engine port is opened last.
            if line.contains("auth=true") {
                geth.engine_address = address;
                break;
            }
            geth.http_address = Some(address);
        }
        assert!(!geth.engine_address.is_empty(), "geth opens no engine port");
        // Its log must be read on, or geth would wait for room in the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        geth
    }
}

/// A node of geth's, killed on drop.
#[derive(Debug)]
pub struct RunningGeth {
    process: Child,
    /// The address of its engine port.
    pub engine_address: String,
    /// The address of its public port, where `--http` asked for one.
    pub http_address: Option<String>,
}

impl Drop for RunningGeth {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A path as an argument.
///
/// # Panics
/// If it is not UTF-8.
pub fn path_text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
