//! Brings a client to where the measured blocks begin, and keeps its directory for next time.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use alloy_primitives::B256;
use alloy_rpc_types_engine::ForkchoiceState;
use anyhow::Context;

use crate::chain::format::{About, Ground, Payload, count_of, payloads_of};
use crate::chain::world::short_hash;
use crate::clients::client::Client;
use crate::clients::target::{Reset, Target};
use crate::progress;

/// How far behind the head consensus clients name a block safe, and finalized.
const SAFE_DEPTH: usize = 32;
const FINALIZED_DEPTH: usize = 64;

/// The blocks of a chain by their parents, for the fork choice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ancestry {
    parents: HashMap<B256, B256>,
    /// By how much deeper the safe and the finalized block are than usually: no branch is left that
    /// has one of them.
    deeper: usize,
}

impl Ancestry {
    /// The blocks of payload files, on a chain whose branches have at most so many blocks.
    pub(crate) fn of(files: &[PathBuf], longest_branch: u64) -> anyhow::Result<Self> {
        let deeper = (longest_branch as usize).saturating_sub(SAFE_DEPTH);
        let mut ancestry = Self { deeper, ..Self::default() };
        payloads_of(files)?.try_for_each(|payload| {
            ancestry.push(&payload?);
            anyhow::Ok(())
        })?;
        Ok(ancestry)
    }

    pub(crate) fn push(&mut self, payload: &Payload) {
        self.parents.insert(payload.hash, payload.parent);
    }

    /// The fork choice for `head`.
    pub(crate) fn heads(&self, head: B256) -> ForkchoiceState {
        ForkchoiceState {
            head_block_hash: head,
            safe_block_hash: self.ancestor(head, SAFE_DEPTH + self.deeper),
            finalized_block_hash: self.ancestor(head, FINALIZED_DEPTH + self.deeper),
        }
    }

    /// The ancestor `depth` blocks before `hash`; zero when the chain is not that long.
    pub(crate) fn ancestor(&self, hash: B256, depth: usize) -> B256 {
        let mut at = hash;
        for _ in 0..depth {
            match self.parents.get(&at) {
                Some(parent) => at = *parent,
                None => return B256::ZERO,
            }
        }
        at
    }
}

/// Feeds a client the blocks of payload files that it does not have; how many. Of the head's number
/// and up to `longest_branch` lower ones there may be blocks on another branch that it lacks.
pub(crate) fn feed(
    client: &mut Client,
    files: &[PathBuf],
    longest_branch: u64,
) -> anyhow::Result<u64> {
    let have = client.block_number()?;
    if longest_branch == 0 && has_all(files, have)? {
        return Ok(0);
    }
    let mut ancestry = Ancestry::of(&[], longest_branch)?;
    let bar = progress::bar(format!("{} catches up", client.name), count_of(files)?);
    let mut fed = 0;
    for payload in payloads_of(files)? {
        let payload = payload?;
        ancestry.push(&payload);
        let is_new = payload.number > have;
        if is_new || payload.number + longest_branch > have {
            let sent = client.new_payload_patiently(&payload).and_then(|()| match is_new {
                true => client.engine.forkchoice_updated(ancestry.heads(payload.hash)).map(drop),
                false => Ok(()),
            });
            sent.map_err(|error| client.blame(error))?;
        }
        fed += u64::from(is_new);
        bar.inc(1);
    }
    Ok(fed)
}

/// Whether block `have` is behind all blocks of files whose first lines say which they have.
fn has_all(files: &[PathBuf], have: u64) -> anyhow::Result<bool> {
    for file in files {
        if About::of(file)?.is_none_or(|about| about.to > have) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The kept directory of a client that has all blocks of the ground: it belongs to its program,
/// version and arguments.
pub(crate) fn kept_folder(
    target: &Target,
    ground: &Ground,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    let files = std::iter::once(&ground.genesis).chain(&ground.setup).map(|path| {
        let read = || anyhow::Ok((path.canonicalize()?, fs::metadata(path)?));
        let (path, file) = read().with_context(|| format!("no {}", path.display()))?;
        let changed = file.modified()?.duration_since(std::time::UNIX_EPOCH)?.as_nanos();
        Ok((path, file.len(), changed.to_string()))
    });
    let files = short_hash(&files.collect::<anyhow::Result<Vec<_>>>()?);
    let (name, version) = (file_name(&target.table), target.version()?);
    let name = format!("{name}-{}-{}", file_name(&version), target.key()?);
    Ok(folder.join("prepared").join(files).join(name))
}

/// Removes the directory that is kept of a client.
pub(crate) fn forget(target: &Target, ground: &Ground, folder: &Path) -> anyhow::Result<()> {
    let kept = kept_folder(&target.importing(), ground, folder)?;
    Ok(fs::remove_dir_all(kept).or_else(absent)?)
}

/// Makes the directory `data` of a client that has all blocks of the ground: a copy of the one that
/// is kept in `folder`, and made first if it is not there.
///
/// A client that keeps its newest blocks in memory lacks them after each start: [`start`] feeds it.
pub(crate) fn place(
    target: &Target,
    ground: &Ground,
    folder: &Path,
    data: &Path,
) -> anyhow::Result<()> {
    fs::remove_dir_all(data).or_else(absent)?;
    // The import is the same whatever is measured on it.
    let plain = target.importing();
    let import = |data: &Path| {
        let mut client = plain.start(data, &ground.genesis, false)?;
        let blocks = feed(&mut client, &ground.setup, 0)?;
        anyhow::Ok((client, blocks))
    };
    if target.reset == Reset::Delete {
        return import(data)?.0.stop();
    }
    let kept = kept_folder(&plain, ground, folder)?;
    prepare(&kept, import).with_context(|| format!("cannot make {}", kept.display()))?;
    copy_prepared(&kept, data).with_context(|| format!("cannot copy it to {}", data.display()))
}

/// Starts a client on a directory that [`place`] made, or where it ran before, and feeds it the
/// blocks of the ground that it lacks.
pub(crate) fn start(
    target: &Target,
    ground: &Ground,
    data: &Path,
    with_socket: bool,
) -> anyhow::Result<Client> {
    let mut client = target.start(data, &ground.genesis, with_socket)?;
    feed(&mut client, &ground.setup, 0)?;
    Ok(client)
}

/// Makes the directory `data`, unless it is there: `import` is given another name to start a client
/// on, feeds it, and returns it with how many blocks that were.
fn prepare(
    data: &Path,
    import: impl FnOnce(&Path) -> anyhow::Result<(Client, u64)>,
) -> anyhow::Result<()> {
    if data.is_dir() {
        return Ok(());
    }
    let mut unfinished = data.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    fs::remove_dir_all(&unfinished).or_else(absent)?;
    eprintln!("{} is being made", data.display());
    let started = Instant::now();
    let (client, blocks) = import(&unfinished)?;
    client.stop()?;
    let seconds = started.elapsed().as_secs_f64();
    let said = serde_json::json!({"blocks": blocks, "seconds": seconds});
    fs::write(unfinished.join("import.json"), said.to_string())?;
    fs::rename(&unfinished, data)?;
    eprintln!("{} has {blocks} blocks after {seconds:.0} s", data.display());
    Ok(())
}

/// A folder below `folder` for the copies of this run; those that ended processes have left are
/// removed.
pub(crate) fn working_folder(folder: &Path, purpose: &str) -> anyhow::Result<PathBuf> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let running = folder.join(purpose);
    for entry in fs::read_dir(&running).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.split('-').next()).unwrap_or_default();
        if !Path::new("/proc").join(process).exists() {
            fs::remove_dir_all(entry.path()).or_else(absent)?;
        }
    }
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let own = running.join(format!("{}-{next}", std::process::id()));
    fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
    Ok(own)
}

/// A name of a client, as a part of paths.
pub(crate) fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.=_".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

/// Copies a prepared directory. Files that are never changed once written are linked.
fn copy_prepared(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    let entries = fs::read_dir(from).with_context(|| format!("no {}", from.display()))?;
    let mut entries = entries.collect::<Result<Vec<fs::DirEntry>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for (index, entry) in entries.iter().enumerate() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        let next = entries.get(index + 1).map(fs::DirEntry::file_name);
        if kind.is_dir() {
            copy_prepared(&source, &target)?;
        } else if is_final(&entry.file_name(), next.as_deref()) {
            fs::hard_link(&source, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

/// Whether a file is never changed: the tables of geth's database, and the segments of our logs
/// but the last one of each, after which the directory has another.
fn is_final(name: &OsStr, next: Option<&OsStr>) -> bool {
    let log = |name: &OsStr| {
        let (log, start) = name.to_str()?.rsplit_once('-')?;
        let is_segment = start.len() == 16 && start.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_segment.then(|| log.to_owned())
    };
    let is_table = Path::new(name).extension().is_some_and(|extension| extension == "sst");
    is_table || log(name).is_some() && log(name) == next.and_then(log)
}

/// A missing file is as good as a removed one.
pub(crate) fn absent(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_segments_with_a_successor_are_final() {
        let check = |name: &str, next: Option<&str>, expected| {
            assert_eq!(is_final(name.as_ref(), next.map(OsStr::new)), expected, "{name} {next:?}");
        };
        check("000123.sst", None, true);
        check("000124.log", Some("000125.log"), false);
        check("nodes-0000000000000000", Some("nodes-0000000010000000"), true);
        check("nodes-0000000010000000", Some("witnesses-0000000000000000"), false);
        check("nodes-0000000010000000", None, false);
        check("MANIFEST-000001", Some("MANIFEST-000002"), false);
    }

    #[test]
    fn a_fork_choice_names_ancestors_or_none() {
        let hash = |number: u8| B256::repeat_byte(number);
        let parents: HashMap<B256, B256> =
            (1..=80).map(|number| (hash(number), hash(number - 1))).collect();
        let check = |deeper: usize, head: u8, safe: B256, finalized: B256| {
            let heads = Ancestry { parents: parents.clone(), deeper }.heads(hash(head));
            assert_eq!(heads.head_block_hash, hash(head));
            assert_eq!((heads.safe_block_hash, heads.finalized_block_hash), (safe, finalized));
        };
        check(0, 80, hash(48), hash(16));
        check(0, 40, hash(8), B256::ZERO);
        // Where branches of 37 blocks are left.
        check(5, 80, hash(43), hash(11));
    }
}
