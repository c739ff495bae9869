//! Where witnesses come from: endpoints of JSON-RPC, and folders.

use std::fmt;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::{B256, U64};
use anyhow::{Context, anyhow, bail, ensure};
use client::EndpointAddress;
use execution::SealedBlock;
use rpc::{ClientError, Code, shown_address};
use serde::Deserialize;
use serde_json::{Value, json};

use super::fetch::{FetchTask, Fetched};
use crate::foreign_witness::ForeignWitness;
use crate::limits::{STATELESS_ANSWER_BYTES, STATELESS_CALL_TIME, STATELESS_LONGEST_ANSWER_BYTES};
use crate::verify::{BlockSource, block_of_file};

/// A place that witnesses come from.
#[derive(Clone)]
pub struct WitnessSource {
    /// As logs and metrics name it: without passwords and paths of URLs, which may be secrets.
    pub(crate) name: String,
    place: Place,
}

#[derive(Clone)]
enum Place {
    Endpoint { address: EndpointAddress, has_sessions: bool },
    Folder(PathBuf),
}

impl WitnessSource {
    /// Reads a URL of `http`, `https`, `ws` or `wss`, `HOST:PORT`, the path of a Unix socket, or
    /// that of a folder.
    ///
    /// # Errors
    /// If the text is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.contains("://") && Path::new(text).is_dir() {
            return Ok(Self { name: text.to_owned(), place: Place::Folder(text.into()) });
        }
        let expected = |fault: &dyn fmt::Display| {
            format!(
                "expected a URL (http, https, ws or wss), HOST:PORT, the path of a Unix socket or \
                 a folder: {fault}"
            )
        };
        let is_path = !text.contains("://") && (text.contains('/') || Path::new(text).exists());
        if is_path {
            let data = Path::new(text).metadata().map_err(|fault| expected(&fault))?;
            if !data.file_type().is_socket() {
                return Err(expected(&"it is neither a socket nor a folder"));
            }
        }
        let address = EndpointAddress::parse(text, None, None).map_err(|fault| expected(&fault))?;
        let has_sessions = text.starts_with("ws") || is_path;
        Ok(Self { name: shown_address(text), place: Place::Endpoint { address, has_sessions } })
    }

    /// The address, where it can tell of its witnesses by itself.
    pub(crate) const fn sessions(&self) -> Option<&EndpointAddress> {
        match &self.place {
            Place::Endpoint { address, has_sessions: true } => Some(address),
            _ => None,
        }
    }
}

impl fmt::Debug for WitnessSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WitnessSource").field(&self.name).finish()
    }
}

/// A value of `deponent_subscribeWitnesses`.
#[derive(Debug, Deserialize)]
pub(crate) struct ToldWitness {
    pub(crate) hash: B256,
    pub(crate) status: String,
}

/// The methods by which clients give a witness: by the block's hash, or by its number alone.
const METHODS: [(&str, bool); 3] = [
    ("debug_executionWitnessByBlockHash", true),
    ("debug_executionWitnessByHash", true),
    ("debug_executionWitness", false),
];

/// A source, as one thread calls it.
pub(crate) struct Caller {
    source: WitnessSource,
    /// Held while a long answer is read, of which there is one at a time.
    long: Arc<Mutex<()>>,
    endpoint: Option<BlockSource>,
    /// The one of [`METHODS`] that it has.
    method: usize,
}

/// An answer that was got, or why there is none.
type SourceAnswer = anyhow::Result<Fetched>;

impl Caller {
    pub(crate) const fn new(source: WitnessSource, long: Arc<Mutex<()>>) -> Self {
        Self { source, long, endpoint: None, method: 0 }
    }

    /// Asks for what the task is about.
    ///
    /// # Errors
    /// Why there is no answer that can be used. That the source does not have it is none.
    pub(crate) fn fetch(&mut self, task: FetchTask) -> SourceAnswer {
        let fetched = match &self.source.place {
            Place::Folder(folder) => return from_folder(folder, task, &self.long),
            Place::Endpoint { address, .. } => {
                let address = address.clone();
                match task {
                    FetchTask::Block(hash) => self.block(&address, hash),
                    FetchTask::Witness { hash, number } => self.witness(&address, hash, number),
                }
            }
        };
        if fetched.is_err() {
            self.endpoint = None;
        }
        fetched
    }

    fn block(&mut self, address: &EndpointAddress, hash: B256) -> SourceAnswer {
        let endpoint = self.endpoint(address)?;
        match endpoint.block_by_hash(hash) {
            Ok(block) => checked(block, hash),
            Err(error) if is_answer(&error) => {
                // It may hide a connection that is lost.
                self.endpoint = None;
                Ok(Fetched::Absent)
            }
            Err(error) => Err(error),
        }
    }

    /// A connection, which is opened where there is none.
    fn endpoint(&mut self, address: &EndpointAddress) -> anyhow::Result<&mut BlockSource> {
        if self.endpoint.is_none() {
            let endpoint = address.connect(STATELESS_CALL_TIME, STATELESS_ANSWER_BYTES)?;
            self.endpoint = Some(BlockSource::new(endpoint));
        }
        Ok(self.endpoint.as_mut().expect("it was opened"))
    }

    fn witness(&mut self, address: &EndpointAddress, hash: B256, number: u64) -> SourceAnswer {
        loop {
            let (method, is_by_hash) = METHODS[self.method];
            let block = if is_by_hash { json!(hash) } else { json!(U64::from(number)) };
            let params = json!([block]);
            let answer = match self.endpoint(address)?.call(method, &params) {
                Err(error) if is_long(&error) => self.long_call(address, method, &params),
                answer => answer,
            };
            match answer {
                Ok(answer) => {
                    let text = std::str::from_utf8(&answer).context(method)?;
                    return read(text).with_context(|| method.to_owned());
                }
                Err(error) if is_unknown(&error) && self.method + 1 < METHODS.len() => {
                    self.method += 1;
                }
                Err(error) if is_unknown(&error) => {
                    self.method = 0;
                    return Err(error.context("it gives no witnesses"));
                }
                Err(error) if is_answer(&error) => return Ok(Fetched::Absent),
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks for a long answer, when no other one is read.
    fn long_call(
        &mut self,
        address: &EndpointAddress,
        method: &str,
        params: &Value,
    ) -> anyhow::Result<alloy_primitives::Bytes> {
        self.endpoint = None;
        let _one_at_a_time = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoint = address.connect(STATELESS_CALL_TIME, STATELESS_LONGEST_ANSWER_BYTES)?;
        BlockSource::new(endpoint).call(method, params)
    }
}

/// Whether an answer is longer than was allowed; a session ends with one.
fn is_long(error: &anyhow::Error) -> bool {
    let fault = error.chain().find_map(|cause| cause.downcast_ref());
    matches!(fault, Some(ClientError::TooLong { .. } | ClientError::Closed { .. }))
}

/// Whether the source has answered, and does not have the block.
fn is_answer(error: &anyhow::Error) -> bool {
    let fault = error.chain().find_map(|cause| cause.downcast_ref());
    matches!(fault, None | Some(ClientError::Rpc(_)))
}

/// Whether the source has no such method.
fn is_unknown(error: &anyhow::Error) -> bool {
    let fault = error.chain().find_map(|cause| cause.downcast_ref());
    matches!(fault, Some(ClientError::Rpc(answered)) if answered.is(Code::MethodNotFound))
}

/// A witness in the form of any tool.
fn read(text: &str) -> SourceAnswer {
    Ok(held(ForeignWitness::read(text).map_err(|fault| anyhow!(fault))?))
}

fn held(given: ForeignWitness) -> Fetched {
    let witness = given.witness;
    let items: usize = witness.lists().into_iter().map(|list| list.iter().count()).sum();
    let bytes = witness.content_bytes() + ITEM_BYTES * items;
    Fetched::Witness(witness, bytes)
}

/// Bytes that an item takes beside its content.
const ITEM_BYTES: usize = 64;

/// A block whose body is the one that its header names.
fn checked(block: SealedBlock, hash: B256) -> SourceAnswer {
    ensure!(block.hash() == hash, "it gave block {} for {hash}", block.hash());
    execution::validate_body_roots(&block).context("its body is another block's")?;
    Ok(Fetched::Block(Arc::new(block)))
}

/// The content of a file in a folder, whose name is the block's hash.
fn from_folder(folder: &Path, task: FetchTask, long: &Mutex<()>) -> SourceAnswer {
    let Some(path) = file_of(folder, task) else { return Ok(Fetched::Absent) };
    let (content, _one_at_a_time) = match files::read_file(&path, STATELESS_ANSWER_BYTES as u64) {
        // It may be longer: as of answers, one such is read at a time.
        Err(error) if error.is_content() => {
            let turn = long.lock().unwrap_or_else(PoisonError::into_inner);
            (files::read_file(&path, STATELESS_LONGEST_ANSWER_BYTES as u64)?, Some(turn))
        }
        content => (content?, None),
    };
    match task {
        FetchTask::Witness { .. } => match ForeignWitness::read_file(&content) {
            Ok(given) => Ok(held(given)),
            Err(fault) => bail!("{}: {fault}", path.display()),
        },
        FetchTask::Block(hash) => match block_of_file(&content)? {
            Some(block) => checked(block, hash),
            None => Ok(Fetched::Absent),
        },
    }
}

/// The endings of files of witnesses, and of packed ones.
const ENDINGS: [&str; 4] = ["", ".ssz", ".rlp", ".json"];
const PACKED: [&str; 3] = ["", ".zst", ".gz"];

/// The file of a block, if it is there: `HASH`, or `NUMBER-HASH`, with an ending.
fn file_of(folder: &Path, task: FetchTask) -> Option<PathBuf> {
    let hash = task.hash();
    let bare = alloy_primitives::hex::encode(hash);
    let mut names = vec![hash.to_string(), bare.clone()];
    if let FetchTask::Witness { number, .. } = task {
        names.extend([format!("{number}-{hash}"), format!("{number}-{bare}")]);
    }
    let endings = ENDINGS.iter().flat_map(|ending| PACKED.map(|packed| (ending, packed)));
    let endings: Vec<_> = endings.collect();
    names.iter().find_map(|name| {
        let files = endings.iter().map(|(ending, packed)| format!("{name}{ending}{packed}"));
        files.map(|file| folder.join(file)).find(|path| path.is_file())
    })
}
