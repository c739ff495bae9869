//! The clients under test, as data: how each is started, made ready, and where it listens.
//!
//! The head of `targets.toml`, which has the known clients, explains the keys of a table.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use rpc::JwtSecret;
use serde::Deserialize;
use toml::{Table, Value};

use crate::chain::world::short_hash;
use crate::clients::bounds::Bounds;
use crate::clients::client::{BuilderPort, Client};
use crate::clients::port::Port;
use crate::clients::process::Process;

/// The clients that we know.
const KNOWN: &str = include_str!("targets.toml");
/// Between two attempts to connect to a client that does not say when it listens.
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// A client that we know how to start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    /// As messages call it.
    #[serde(skip)]
    pub(crate) name: String,
    /// The table that it is, or is like.
    #[serde(skip)]
    pub(crate) table: String,
    /// Arguments beside those of its table.
    #[serde(skip)]
    pub(crate) arguments: Vec<String>,
    /// The most that it may use.
    #[serde(skip)]
    pub(crate) bounds: Bounds,
    program: String,
    also: Option<String>,
    version: Vec<String>,
    #[serde(default)]
    version_line: String,
    #[serde(default)]
    init: Vec<String>,
    #[serde(default)]
    init_makes: String,
    start: Vec<String>,
    #[serde(default)]
    ipc: Vec<String>,
    #[serde(default)]
    no_ipc: Vec<String>,
    #[serde(default)]
    import: Vec<String>,
    engine: Option<Listens>,
    public: Option<Listens>,
    websocket: Option<Listens>,
    builds_on: Option<BuilderPort>,
    #[serde(default)]
    pub(crate) reset: Reset,
    #[serde(default)]
    pub(crate) witness: bool,
    #[serde(default)]
    pub(crate) rest: bool,
    config: Option<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default = "usual_seconds")]
    start_seconds: u64,
    #[serde(default = "usual_seconds")]
    answer_seconds: u64,
    #[serde(default = "usual_seconds")]
    stop_seconds: u64,
}

/// geth's journal of 5 GB of state takes some seconds; ours may read a genesis of gigabytes first.
const fn usual_seconds() -> u64 {
    600
}

/// The place of an address in a line of the log.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listens {
    /// Words of the line.
    line: String,
    /// The text before the address.
    after: String,
}

impl Listens {
    fn find(&self, line: &str) -> Option<String> {
        let at = line.contains(&self.line).then_some(line)?.split(&self.after).nth(1)?;
        let address = at.split_whitespace().next()?;
        Some(address.rsplit("://").next()?.to_owned())
    }
}

/// The way in which a directory is reset before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reset {
    /// A copy of one that was prepared is put in its place.
    #[default]
    Copy,
    /// It is made again from the genesis, and what is not measured is imported again.
    Delete,
}

/// The tables of targets: those that we know, and those of a file before them.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    known: Table,
    file: Option<(PathBuf, Table)>,
}

impl Targets {
    /// Those that we know, and those of `file`.
    pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        let known = KNOWN.parse().expect("a test reads it");
        let read = |path: &Path| {
            let text = fs::read_to_string(path)
                .with_context(|| format!("no targets in {}", path.display()))?;
            let table = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
            anyhow::Ok((path.to_owned(), table))
        };
        Ok(Self { known, file: file.map(read).transpose()? })
    }

    /// All names, for messages.
    pub(crate) fn names(&self) -> Vec<&str> {
        let file = self.file.iter().flat_map(|(_, table)| table.keys());
        let mut names: Vec<&str> = self.known.keys().chain(file).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The target called `name`.
    pub(crate) fn target(&self, name: &str) -> anyhow::Result<Target> {
        let table = self.table(name, &mut Vec::new())?;
        let source = match &self.file {
            Some((path, table)) if table.contains_key(name) => path.display().to_string(),
            _ => "targets.toml".into(),
        };
        let mut target: Target = table.try_into().map_err(|error: toml::de::Error| {
            // The error speaks of the value alone.
            let said = error.to_string().trim().replace('\n', ", ");
            anyhow!("{source}, table [{name}]: {said}; correct that key")
        })?;
        target.check().with_context(|| format!("{source}, table [{name}]"))?;
        target.name = name.into();
        target.table = name.into();
        Ok(target)
    }

    /// A table with all keys that it has from others; `seen` are those that led to it.
    fn table(&self, name: &str, seen: &mut Vec<String>) -> anyhow::Result<Table> {
        let own = self.file.as_ref().and_then(|(path, table)| Some((path, table.get(name)?)));
        let mut table = self.known.get(name).and_then(Value::as_table).cloned();
        if let Some((path, own)) = own {
            let at = || format!("{}: {name}", path.display());
            let mut own = own.as_table().cloned().with_context(|| {
                format!("{} is not a table: write [{name}], and its keys below", at())
            })?;
            if let Some(like) = own.remove("like") {
                let like = like.as_str().with_context(|| format!("{}: like is no name", at()))?;
                seen.push(name.into());
                ensure!(!seen.iter().any(|seen| seen == like), "{}: like = {like}: a circle", at());
                table = Some(self.table(like, seen)?);
            }
            table.get_or_insert_default().extend(own);
        }
        let names = self.names().join(", ");
        table.with_context(|| format!("no target {name}: there are {names}; others with --targets"))
    }
}

/// The values of the names that a table's arguments may have in braces.
type Places = BTreeMap<&'static str, String>;

/// Those names, beside `config`.
const PLACES: [&str; 7] =
    ["datadir", "genesis", "jwt", "ipc", "engine_port", "http_port", "ws_port"];

/// Fills the `{names}` in `text`, of the key `key`.
fn fill(key: &str, text: &str, places: &Places) -> anyhow::Result<String> {
    let mut pieces = text.split('{');
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once('}').with_context(|| {
            format!("key {key}: {text} has a brace without an end: write {{datadir}} or the like")
        })?;
        let value = places
            .get(name)
            .with_context(|| format!("key {key}: {{{name}}} in {text} is nothing that we know"))?;
        filled.push_str(value);
        filled.push_str(rest);
    }
    Ok(filled)
}

fn fill_all(key: &str, arguments: &[String], places: &Places) -> anyhow::Result<Vec<String>> {
    arguments.iter().map(|text| fill(key, text, places)).collect()
}

impl Target {
    /// Finds mistakes before anything is started.
    fn check(&self) -> anyhow::Result<()> {
        let mut places: Places = PLACES.map(|name| (name, String::new())).into();
        places.extend(self.config.iter().map(|text| ("config", text.clone())));
        for (key, arguments) in [
            ("init", &self.init),
            ("start", &self.start),
            ("ipc", &self.ipc),
            ("no_ipc", &self.no_ipc),
            ("import", &self.import),
        ] {
            fill_all(key, arguments, &places)?;
        }
        self.paths()?;
        for (key, listens, port) in
            [("engine", &self.engine, "{engine_port}"), ("public", &self.public, "{http_port}")]
        {
            ensure!(
                listens.is_some() || self.start.iter().any(|argument| argument.contains(port)),
                "nothing says where it listens: put {port} into start, or add the key {key}"
            );
        }
        Ok(())
    }

    /// The paths at which the program is looked for.
    fn paths(&self) -> anyhow::Result<Vec<PathBuf>> {
        let here = std::env::current_exe().unwrap_or_default();
        let home = std::env::home_dir().unwrap_or_default();
        let folders = [("home", &*home), ("here", here.parent().unwrap_or(&home))];
        let places = folders.map(|(name, folder)| (name, folder.display().to_string())).into();
        let mut paths = Vec::new();
        let program = fill("program", &self.program, &places)?;
        if program.contains('/') {
            paths.push(PathBuf::from(program));
        } else {
            paths.push(here.with_file_name(&program));
            let path = std::env::var_os("PATH").unwrap_or_default();
            paths.extend(std::env::split_paths(&path).map(|folder| folder.join(&program)));
        }
        if let Some(also) = &self.also {
            paths.push(fill("also", also, &places)?.into());
        }
        Ok(paths)
    }

    /// The program, when it is there.
    pub(crate) fn binary(&self) -> Option<PathBuf> {
        self.paths().ok()?.into_iter().find(|path| path.is_file())
    }

    fn needed_binary(&self) -> anyhow::Result<PathBuf> {
        self.binary().with_context(|| {
            let (name, program) = (&self.name, &self.program);
            format!("no program of {name}: {program} is not there; set program in its table")
        })
    }

    /// Replaces the program.
    pub(crate) fn with_binary(mut self, binary: &Path) -> Self {
        self.program = binary.display().to_string();
        self
    }

    /// Gives the value of an argument that is there once, in its table or not yet.
    pub(crate) fn set_argument(&mut self, flag: &str, value: String) {
        match self.start.iter().position(|argument| argument == flag) {
            Some(at) if at + 1 < self.start.len() => self.start[at + 1] = value,
            _ => self.arguments.extend([flag.to_owned(), value]),
        }
    }

    /// The version that the program prints, without spaces.
    pub(crate) fn version(&self) -> anyhow::Result<String> {
        let binary = self.needed_binary()?;
        let output = Command::new(&binary)
            .args(&self.version)
            .output()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().find_map(|line| line.strip_prefix(&self.version_line));
        Ok(version.unwrap_or_default().trim().replace(' ', "-"))
    }

    /// A short name for what its directory depends on, beside the version: where the program lies,
    /// and the arguments that it gets.
    pub(crate) fn key(&self) -> anyhow::Result<String> {
        let binary = self.needed_binary()?;
        let path = binary.canonicalize().with_context(|| format!("no {}", binary.display()))?;
        let Self { init, start, arguments, import, config, environment, .. } = self;
        let given = (init, start, arguments, import, config, environment);
        Ok(short_hash(&(path, given)))
    }

    /// Itself for blocks that are not measured: without the arguments that are, and without bounds.
    pub(crate) fn importing(&self) -> Self {
        Self { arguments: self.import.clone(), bounds: Bounds::default(), ..self.clone() }
    }

    /// The arguments that it is started with, for reports: places are named in braces.
    pub(crate) fn shown(&self, with_socket: bool) -> Vec<String> {
        let ipc = if with_socket { &self.ipc } else { &self.no_ipc };
        [&self.start, ipc, &self.arguments].into_iter().flatten().cloned().collect()
    }

    /// Starts it on a directory, which is made from the genesis when it is empty, with a Unix
    /// socket or without.
    pub(crate) fn start(
        &self,
        data: &Path,
        genesis: &Path,
        with_socket: bool,
    ) -> anyhow::Result<Client> {
        let at = || format!("{} on {}", self.name, data.display());
        self.start_at(data, genesis, with_socket).with_context(at)
    }

    fn start_at(&self, data: &Path, genesis: &Path, with_socket: bool) -> anyhow::Result<Client> {
        fs::create_dir_all(data).with_context(|| format!("cannot make {}", data.display()))?;
        let data = data.canonicalize()?;
        let mut command = self.bounds.command(&self.needed_binary()?, &data)?;
        let [secret_file, socket, config] =
            ["jwt.hex", "bench.ipc", "bench.config"].map(|name| data.join(name));
        let secret = JwtSecret::load_or_create(&secret_file)?;
        let shown = [&data, genesis, &secret_file, &socket].map(|path| path.display().to_string());
        let values = shown.into_iter().chain(free_ports()?.map(|port| port.to_string()));
        let mut places: Places = PLACES.into_iter().zip(values).collect();
        if let Some(text) = &self.config {
            fs::write(&config, text)
                .with_context(|| format!("cannot write {}", config.display()))?;
            places.insert("config", config.display().to_string());
        }
        if !self.init.is_empty() && !data.join(&self.init_makes).exists() {
            let output = Command::new(self.needed_binary()?)
                .args(fill_all("init", &self.init, &places)?)
                .envs(&self.environment)
                .output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{} init: {said}", self.name);
        }
        let ipc = if with_socket { &self.ipc } else { &self.no_ipc };
        command
            .envs(&self.environment)
            .args(fill_all("start", &self.start, &places)?)
            .args(fill_all("ipc", ipc, &places)?)
            .args(&self.arguments);
        let end = Instant::now() + Duration::from_secs(self.start_seconds);
        let mut process = Process::start(command, &data.join("bench.log"))?;
        process.stop_time = Duration::from_secs(self.stop_seconds);
        let [engine, public, websocket] = self.addresses(&mut process, &places, end)?;
        let opened = Port::open(&engine, Some(secret))
            .and_then(|engine| Ok((engine, Port::open(&public, None)?)));
        let opened = opened.map_err(|error| process.blame(error))?;
        let mut client = Client {
            name: self.name.clone(),
            builds_on: self.builds_on,
            engine: opened.0,
            websocket: if websocket.is_empty() { public } else { websocket },
            public: opened.1,
            socket: with_socket.then_some(socket),
            process: Some(process),
        };
        client.engine.set_patience(Duration::from_secs(self.answer_seconds));
        Ok(client)
    }

    /// The addresses at which it listens: the Engine API, the public port, and WebSockets, which is
    /// empty where they are on the public port.
    fn addresses(
        &self,
        process: &mut Process,
        places: &Places,
        end: Instant,
    ) -> anyhow::Result<[String; 3]> {
        let told = [&self.engine, &self.public, &self.websocket];
        let mut found: [Option<String>; 3] = [None, None, None];
        while (0..3).any(|port| told[port].is_some() && found[port].is_none()) {
            let (port, address) = process.wait_for("where it listens", end, |line| {
                let mut ports = (0..3).filter(|port| found[*port].is_none());
                ports.find_map(|port| Some((port, told[port].as_ref()?.find(line)?)))
            })?;
            found[port] = Some(address);
        }
        for (port, place) in [(0, "engine_port"), (1, "http_port")] {
            if told[port].is_none() {
                let address = format!("127.0.0.1:{}", places[place]);
                while TcpStream::connect(&address).is_err() {
                    if let Some(how) = process.ended() {
                        bail!("it {how} before it listened at {address}: {}", process.last_words());
                    }
                    ensure!(Instant::now() < end, "it does not listen at {address} in time");
                    std::thread::sleep(POLL_PAUSE);
                }
                found[port] = Some(address);
            }
        }
        Ok(found.map(Option::unwrap_or_default))
    }
}

/// Ports that are free now.
fn free_ports() -> anyhow::Result<[u16; 3]> {
    let bind = || TcpListener::bind("127.0.0.1:0");
    // All at once, or they would be the same.
    let [a, b, c] = [bind()?, bind()?, bind()?];
    Ok([a.local_addr()?.port(), b.local_addr()?.port(), c.local_addr()?.port()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Targets {
        let known = KNOWN.parse().expect("TOML");
        let file = (PathBuf::from("mine.toml"), text.parse().expect("TOML"));
        Targets { known, file: Some(file) }
    }

    #[test]
    fn all_known_clients_can_be_read() {
        let targets = Targets::read(None).expect("TOML");
        assert_eq!(targets.names().len(), 6);
        for name in targets.names() {
            targets.target(name).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
        assert!(targets.target("geth").expect("it has them").witness);
        assert!(!targets.target("besu").expect("it has none").witness);
    }

    #[test]
    fn a_name_is_looked_for_beside_this_program_first() {
        let this = std::env::current_exe().expect("a program");
        let ours = Targets::read(None).expect("TOML").target("deponent").expect("a table");
        let paths = ours.paths().expect("places");
        assert_eq!(paths[0], this.with_file_name("deponent"));
        assert!(paths.len() > 1, "those on the path");
        let beside = targets("[x]\nlike = \"deponent\"\nprogram = \"{here}/x\"\n").target("x");
        let paths = beside.expect("complete").paths().expect("places");
        assert_eq!(paths, [this.with_file_name("x")]);
    }

    #[test]
    fn a_file_overrides_keys_adds_clients_and_inherits() {
        let targets = targets(
            "[geth]\nprogram = \"/opt/geth\"\n[other]\nlike = \"geth\"\nanswer_seconds = 5\n",
        );
        let geth = targets.target("geth").expect("complete");
        assert_eq!((geth.program.as_str(), geth.answer_seconds), ("/opt/geth", 600));
        let other = targets.target("other").expect("complete");
        assert_eq!((other.program.as_str(), other.answer_seconds), ("/opt/geth", 5));
        assert_eq!(other.init, geth.init);
    }

    #[test]
    fn an_argument_of_the_table_is_replaced_and_another_one_is_added() {
        let mut target = Targets::read(None).expect("TOML").target("deponent").expect("a table");
        target.set_argument("--http.port", "4000".into());
        target.set_argument("--follow", "127.0.0.1:4001".into());
        let shown = target.shown(false);
        let value = |flag: &str| {
            let mut places = shown.iter().enumerate().filter(|(_, argument)| *argument == flag);
            let (at, _) = places.next().expect("it is there");
            assert_eq!(places.count(), 0, "{flag} is there twice");
            shown[at + 1].as_str()
        };
        assert_eq!((value("--http.port"), value("--follow")), ("4000", "127.0.0.1:4001"));
    }

    #[test]
    fn mistakes_name_the_file_the_key_and_what_to_do() {
        let check = |text: &str, name: &str, words: &[&str]| {
            let error = targets(text).target(name).expect_err(text);
            let said = format!("{error:#}");
            for word in words {
                assert!(said.contains(word), "{word} is not in {said}");
            }
        };
        check("[geth]\nstart = 5\n", "geth", &["mine.toml", "[geth]", "start", "correct"]);
        check("[geth]\nstrat = []\n", "geth", &["mine.toml", "[geth]", "strat"]);
        check("[geth]\nstart = [\"{data}\"]\n", "geth", &["mine.toml", "start", "{data}"]);
        check("[reth]\nstart = [\"{config}\"]\n", "reth", &["mine.toml", "start", "{config}"]);
        check("[geth]\nstart = [\"{jwt\"]\n", "geth", &["mine.toml", "start", "brace"]);
        check("[x]\nprogram = \"x\"\n", "x", &["mine.toml", "[x]", "version"]);
        check(
            "[x]\nprogram = \"x\"\nversion = []\nstart = []\n",
            "x",
            &["mine.toml", "[x]", "{engine_port}", "key engine"],
        );
        check("geth = 5\n", "geth", &["mine.toml", "geth", "write [geth]"]);
        check("", "ghet", &["no target ghet", "geth", "--targets"]);
        check("[x]\nlike = \"y\"\n[y]\nlike = \"x\"\n", "x", &["mine.toml", "circle"]);
    }

    #[test]
    fn a_line_of_a_log_has_the_address() {
        let check = |line: &str, after: &str, text: &str, expected: Option<&str>| {
            let listens = Listens { line: line.into(), after: after.into() };
            assert_eq!(listens.find(text).as_deref(), expected, "{text}");
        };
        let geth = "INFO HTTP server started endpoint=127.0.0.1:4000 auth=true prefix=";
        check("auth=true", "endpoint=", geth, Some("127.0.0.1:4000"));
        check("auth=false", "endpoint=", geth, None);
        let reth = "RPC WS server started url=ws://127.0.0.1:4001";
        check("RPC WS server started", "url=", reth, Some("127.0.0.1:4001"));
        check("RPC WS server started", "uri=", reth, None);
    }
}
