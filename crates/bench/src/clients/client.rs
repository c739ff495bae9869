//! The clients under test: how each is started, and where it listens.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use alloy_primitives::B256;
use anyhow::{Context, bail};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chain::format::Payload;
use crate::clients::process::{self, Process};
use crate::clients::target::{Port, Target, Targets};
use crate::clients::wire::{Connection, Timing};
use crate::fault::Fault;
use crate::report::Document;
use crate::transports::transport_names_of;

/// How an answer says that there is no witness.
const NO_BYTES: [&str; 3] = ["null", "\"\"", "\"0x\""];

/// How often a payload is sent that takes too long; each time takes ten minutes.
const PATIENCE: usize = 2;

/// An execution client that we know how to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ours.
    Deponent,
    /// go-ethereum.
    Geth,
    /// reth.
    Reth,
}

impl Kind {
    /// As the command line calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deponent => "deponent",
            Self::Geth => "geth",
            Self::Reth => "reth",
        }
    }
}

/// A client, and what it is asked for: `geth`, `deponent`, `deponent+witness`, `deponent+ssz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    /// The client.
    pub kind: Kind,
    /// How each payload is sent, where the answer is to have the witness: [`Contender::WITNESS`],
    /// or the name of a transport.
    pub witness: Option<&'static str>,
}

impl Contender {
    /// `engine_newPayloadWithWitness` where otherwise `engine_newPayload` is called.
    pub const WITNESS: &'static str = "witness";

    /// The transport over which witnesses are asked for, unless they come as the verdict alone
    /// does.
    pub(crate) fn transport(&self) -> Option<&'static str> {
        self.witness.filter(|name| *name != Self::WITNESS)
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        self.witness.map_or(Ok(()), |name| write!(f, "+{name}"))
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, witness) = match text.split_once('+') {
            Some((name, witness)) => (name, Some(witness)),
            None => (text, None),
        };
        let kind = match name {
            "deponent" => Kind::Deponent,
            "geth" => Kind::Geth,
            "reth" => Kind::Reth,
            _ => return Err(format!("{text}: deponent, geth or reth, with or without +witness")),
        };
        let known = || {
            let found = transport_names_of(kind).find(|known| Some(*known) == witness);
            found.ok_or_else(|| {
                let names = transport_names_of(kind).collect::<Vec<_>>().join(", +");
                format!("{text}: the witness comes by +{}, +{names}", Self::WITNESS)
            })
        };
        Ok(match witness {
            None => Self { kind, witness: None },
            Some(Self::WITNESS) => Self { kind, witness: Some(Self::WITNESS) },
            Some(_) => Self { kind, witness: Some(known()?) },
        })
    }
}

/// A client's program and what it is given beside what the benchmark needs.
#[derive(Clone, Debug)]
pub struct Program {
    /// Which one it is.
    pub kind: Kind,
    /// Where it lies.
    pub binary: PathBuf,
    /// Further arguments.
    pub arguments: Vec<String>,
    /// The most memory that it may have, in bytes: needs cgroups of version 1, writable.
    pub memory_bytes: Option<u64>,
    /// The most that it may read, and write and sync, in bytes a second each, of the device that
    /// its directory is on: needs cgroups of version 1, writable.
    pub disk_bytes: Option<u64>,
}

impl Program {
    /// How it is started.
    pub(crate) fn target(&self) -> anyhow::Result<Target> {
        let mut target = Targets::read(None)?.target(self.kind.name())?.with_binary(&self.binary);
        target.arguments.clone_from(&self.arguments);
        Ok(target)
    }

    /// The program's own words about its version.
    pub(crate) fn version(&self) -> anyhow::Result<String> {
        self.target()?.version()
    }

    /// Says in a document that it ran under this name, with a Unix socket or without, and within
    /// which bounds.
    pub(crate) fn enter(
        &self,
        name: &str,
        with_socket: bool,
        document: &mut Document,
    ) -> anyhow::Result<()> {
        let target = self.target()?;
        document.client(name, &target.version()?, &target.shown(with_socket));
        if let Some(bytes) = self.memory_bytes {
            document.text(format!("{name} had at most {} MiB of memory.", bytes >> 20));
        }
        if let Some(bytes) = self.disk_bytes {
            document.text(format!("{name} had the disk at {bytes} bytes a second."));
        }
        Ok(())
    }

    /// Starts it on a directory, which is made from the genesis when it is empty.
    pub(crate) fn start(&self, data: &Path, genesis: &Path) -> anyhow::Result<Client> {
        self.target()?.start_as(self.command(data)?, data, genesis, false)
    }

    /// The same, and it listens on a Unix socket too, where the program can do that.
    pub(crate) fn start_with_socket(&self, data: &Path, genesis: &Path) -> anyhow::Result<Client> {
        self.target()?.start_as(self.command(data)?, data, genesis, true)
    }

    /// The program without arguments, in cgroups of its own where it is bounded: a shell enters
    /// them and becomes the program.
    fn command(&self, data: &Path) -> anyhow::Result<Command> {
        let groups = self.groups(data);
        if groups.is_empty() {
            return Ok(process::bound_to_us(&self.binary));
        }
        for group in &groups {
            std::fs::create_dir_all(group)
                .context("no cgroup: is this version 1, and are we root?")?;
        }
        if let Some(bytes) = self.memory_bytes {
            let group = cgroup("memory", data);
            std::fs::write(group.join("memory.limit_in_bytes"), bytes.to_string())?;
        }
        if let Some(bytes) = self.disk_bytes {
            let limit = format!("{} {bytes}", device(data)?);
            for file in ["read_bps_device", "write_bps_device"] {
                let file = cgroup("blkio", data).join(format!("blkio.throttle.{file}"));
                std::fs::write(file, &limit).context("the device cannot be throttled")?;
            }
        }
        let mut command = process::bound_to_us("sh".as_ref());
        command.args(["-c", ENTER, "sh"]).arg(groups.len().to_string());
        command.args(groups.iter().map(|group| group.join("cgroup.procs"))).arg(&self.binary);
        Ok(command)
    }

    /// The cgroups of a client on this directory.
    fn groups(&self, data: &Path) -> Vec<PathBuf> {
        let memory = self.memory_bytes.map(|_| cgroup("memory", data));
        let disk = self.disk_bytes.map(|_| cgroup("blkio", data));
        memory.into_iter().chain(disk).collect()
    }

    /// Removes what a stopped client on this directory leaves in the system.
    pub(crate) fn clean_up(&self, data: &Path) {
        for group in self.groups(data) {
            // It is empty, and harmless should it stay.
            std::fs::remove_dir(group).ok();
        }
    }
}

/// Enters as many cgroups as the first argument says, and becomes what follows them.
const ENTER: &str = r#"n=$1; shift
while [ $n -gt 0 ]; do echo $$ > "$1" || exit 1; shift; n=$((n - 1)); done
exec "$@""#;

fn cgroup(controller: &str, data: &Path) -> PathBuf {
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("/sys/fs/cgroup/{controller}/deponent-bench-{name}"))
}

/// The device that a directory is on, as cgroups name it; of a partition, the whole disk.
fn device(data: &Path) -> anyhow::Result<String> {
    let number = std::fs::metadata(data)?.dev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let entry = Path::new("/sys/dev/block").join(&number);
    match entry.join("partition").exists() {
        true => Ok(std::fs::read_to_string(entry.canonicalize()?.join("../dev"))?.trim().into()),
        false => Ok(number),
    }
}

/// A running client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: String,
    /// Which port has `testing_buildBlockV1`.
    pub(crate) builds_on: Option<Port>,
    pub(crate) engine: Connection,
    pub(crate) public: Connection,
    /// Where it takes WebSockets.
    pub(crate) websocket: String,
    /// Where it was told to listen beside its ports.
    pub(crate) socket: Option<PathBuf>,
    pub(crate) process: Process,
}

/// The blocks that a fork choice names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub(crate) head: B256,
    pub(crate) safe: B256,
    pub(crate) finalized: B256,
}

impl Client {
    /// As [`Connection::new_payload`].
    pub(crate) fn new_payload(
        &mut self,
        payload: &Payload,
        with_witness: bool,
    ) -> anyhow::Result<Timing> {
        self.engine.new_payload(payload, with_witness)
    }

    /// `engine_newPayload` again while the client gives up on it: at the end of its time geth says
    /// so, or hangs up, and goes on with the block all the same.
    pub(crate) fn new_payload_patiently(&mut self, payload: &Payload) -> anyhow::Result<()> {
        for _ in 0..PATIENCE {
            let outcome = self.new_payload(payload, false);
            let gave_up = |error: &anyhow::Error| match Fault::of(error) {
                Some(Fault::HungUp | Fault::Truncated) => true,
                _ => format!("{error:#}").contains("timed out"),
            };
            if !outcome.as_ref().is_err_and(gave_up) {
                return outcome.map(drop);
            }
        }
        bail!("block {} takes too long", payload.number)
    }

    /// As [`Connection::forkchoice_updated`].
    pub(crate) fn forkchoice_updated(&mut self, heads: Heads) -> anyhow::Result<Timing> {
        self.engine.forkchoice_updated(heads)
    }

    /// The number of the head.
    pub(crate) fn block_number(&mut self) -> anyhow::Result<u64> {
        let (_, result) = self.public.call("eth_blockNumber", "[]")?;
        let number: alloy_primitives::U64 = serde_json::from_str(result.get())?;
        Ok(number.to())
    }

    /// `testing_buildBlockV1`.
    pub(crate) fn build(&mut self, params: &Value) -> anyhow::Result<Value> {
        let port = match self.builds_on {
            Some(Port::Engine) => &mut self.engine,
            Some(Port::Public) => &mut self.public,
            None => bail!("{} builds no blocks for us", self.name),
        };
        let (_, result) = port.call("testing_buildBlockV1", &params.to_string())?;
        Ok(serde_json::from_str(result.get())?)
    }
}

/// Sees to it that a payload's answer is `VALID` of this very block, and has the witness if it was
/// asked for; anything else is a [`Fault`].
pub(crate) fn check_verdict(
    payload: &Payload,
    with_witness: bool,
    result: &RawValue,
) -> anyhow::Result<()> {
    let fields = rpc::response::fields(result, ["status", "latestValidHash", "witness"]);
    let [status, valid, witness] = fields.context(Fault::Garbled)?;
    let fault = match status.map_or("none", |status| status.get()) {
        "\"VALID\"" => {
            let valid: Option<B256> = valid.and_then(|hash| serde_json::from_str(hash.get()).ok());
            let is_there = witness.is_some_and(|bytes| !NO_BYTES.contains(&bytes.get()));
            match valid {
                valid if valid != Some(payload.hash) => Some(Fault::Lying),
                _ if with_witness && !is_there => Some(Fault::NoWitness),
                _ => None,
            }
        }
        "\"SYNCING\"" | "\"ACCEPTED\"" => Some(Fault::Behind),
        _ => Some(Fault::Lying),
    };
    match fault {
        Some(fault) => {
            let method = payload.method(with_witness);
            Err(fault.error(format!("{method} answers {:.500}", result.get())))
        }
        None => Ok(()),
    }
}

impl Connection {
    /// `engine_newPayload`, with or without the witness; anything but `VALID` of this very block,
    /// and the witness, is a [`Fault`].
    pub(crate) fn new_payload(
        &mut self,
        payload: &Payload,
        with_witness: bool,
    ) -> anyhow::Result<Timing> {
        let method = payload.method(with_witness);
        let (timing, result) = self.call(&method, payload.params())?;
        check_verdict(payload, with_witness, result)?;
        Ok(timing)
    }

    /// `engine_newPayload` of a block that is invalid; anything but `INVALID` is a [`Fault`].
    pub(crate) fn invalid_payload(&mut self, payload: &Payload) -> anyhow::Result<()> {
        let (_, result) = self.call(&payload.method(false), payload.params())?;
        let status = rpc::response::field(result, "status").context(Fault::Garbled)?;
        let fault = match status.get() {
            "\"INVALID\"" => return Ok(()),
            "\"SYNCING\"" | "\"ACCEPTED\"" => Fault::Behind,
            _ => Fault::Lying,
        };
        let said = result.get();
        Err(fault
            .error(format!("block {}, which is invalid, is answered {said:.500}", payload.hash)))
    }

    /// `engine_forkchoiceUpdated` without payload attributes.
    pub(crate) fn forkchoice_updated(&mut self, heads: Heads) -> anyhow::Result<Timing> {
        let Heads { head, safe, finalized } = heads;
        let params = serde_json::json!([{
            "headBlockHash": head, "safeBlockHash": safe, "finalizedBlockHash": finalized,
        }, null]);
        let (timing, result) = self.call("engine_forkchoiceUpdatedV3", &params.to_string())?;
        let status = rpc::response::field(result, "payloadStatus").and_then(|payload| {
            rpc::response::field(payload, "status").map(|status| status.get().to_owned())
        });
        let fault = match status.context(Fault::Garbled)?.as_str() {
            "\"VALID\"" => return Ok(timing),
            "\"SYNCING\"" => Fault::Behind,
            _ => Fault::Lying,
        };
        let said = result.get();
        Err(fault.error(format!("the fork choice {head} is answered {said:.500}")))
    }

    /// What `engine_getClientVersionV1` says, where it is there.
    pub(crate) fn client_version(&mut self) -> Option<String> {
        let ours = serde_json::json!([{
            "code": "XX", "name": "deponent bench", "version": env!("CARGO_PKG_VERSION"),
            "commit": "0x00000000",
        }]);
        let (_, said) = self.call("engine_getClientVersionV1", &ours.to_string()).ok()?;
        let said: Value = serde_json::from_str(said.get()).ok()?;
        let words = ["name", "version", "commit"].map(|key| said[0][key].as_str());
        Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    /// The hash of the head; the Engine API's port has that method, too.
    pub(crate) fn head(&mut self) -> anyhow::Result<B256> {
        let (_, result) = self.call("eth_getBlockByNumber", "[\"latest\",false]")?;
        let hash = rpc::response::field(result, "hash")?;
        Ok(serde_json::from_str(hash.get())?)
    }
}
