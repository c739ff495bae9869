//! Brings a client to where a part of the chain begins, and keeps its directory for next time.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use alloy_primitives::B256;
use anyhow::Context;

use crate::chain::format::{Chain, Part, Payload};
use crate::clients::client::{Client, Heads, Program};
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
    /// No block yet of `chain`.
    fn of(chain: &Chain) -> Self {
        let deeper = (chain.longest_branch as usize).saturating_sub(SAFE_DEPTH);
        Self { deeper, ..Self::default() }
    }

    /// All blocks before `part`.
    pub(crate) fn before(chain: &Chain, part: Part) -> anyhow::Result<Self> {
        let mut ancestry = Self::of(chain);
        for earlier in Part::ALL.into_iter().take_while(|earlier| *earlier != part) {
            if chain.has(earlier) {
                chain.payloads(earlier)?.try_for_each(|payload| {
                    ancestry.push(&payload?);
                    anyhow::Ok(())
                })?;
            }
        }
        Ok(ancestry)
    }

    pub(crate) fn push(&mut self, payload: &Payload) {
        self.parents.insert(payload.hash, payload.parent);
    }

    /// The fork choice for `head`.
    pub(crate) fn heads(&self, head: B256) -> Heads {
        let safe = self.ancestor(head, SAFE_DEPTH + self.deeper);
        Heads { head, safe, finalized: self.ancestor(head, FINALIZED_DEPTH + self.deeper) }
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

/// Feeds a client all blocks before `part` that it does not have; how many.
pub(crate) fn catch_up(client: &mut Client, chain: &Chain, part: Part) -> anyhow::Result<u64> {
    let earlier = Part::ALL.into_iter().take_while(|earlier| *earlier != part);
    let earlier: Vec<Part> = earlier.filter(|earlier| chain.has(*earlier)).collect();
    let blocks = earlier.iter().map(|earlier| chain.count(*earlier)).sum::<anyhow::Result<_>>()?;
    if earlier.contains(&Part::Reorgs) {
        // Of the head's number and a few lower there may be blocks on another branch that it does
        // not have, which the next ones are on.
        let have = client.block_number()?;
        for payload in chain.payloads(Part::Reorgs)? {
            let payload = payload?;
            if (have.saturating_sub(chain.longest_branch)..=have).contains(&payload.number) {
                client.new_payload_patiently(&payload)?;
            }
        }
    }
    let payloads = earlier.into_iter().map(|earlier| chain.payloads(earlier));
    let payloads = payloads.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten();
    feed(client, Ancestry::of(chain), blocks, payloads)
}

/// Feeds a client those of some `blocks` that it does not have; how many.
pub(crate) fn feed(
    client: &mut Client,
    mut ancestry: Ancestry,
    blocks: usize,
    payloads: impl Iterator<Item = anyhow::Result<Payload>>,
) -> anyhow::Result<u64> {
    let have = client.block_number()?;
    let bar = progress::bar(format!("{} catches up", client.name), blocks);
    let mut fed = 0;
    for payload in payloads {
        let payload = payload?;
        ancestry.push(&payload);
        if payload.number > have {
            client
                .new_payload_patiently(&payload)
                .and_then(|()| client.forkchoice_updated(ancestry.heads(payload.hash)))
                .map_err(|error| client.process.blame(error))?;
            fed += 1;
        }
        bar.inc(1);
    }
    Ok(fed)
}

/// The directory of a client that has the state: made once for each chain and version.
///
/// A client that keeps its state in memory leaves an empty one, and catches up whenever it starts.
pub(crate) fn prepared(program: &Program, chain: &Chain, folder: &Path) -> anyhow::Result<PathBuf> {
    let data = prepared_folder(program, chain, folder)?;
    let mut program = program.clone();
    program.arguments = program.target()?.importing().arguments;
    prepare(&data, |unfinished| {
        let mut client = program.start(unfinished, &chain.genesis())?;
        let blocks = catch_up(&mut client, chain, Part::MEASURED[0])?;
        Ok((client, blocks))
    })?;
    Ok(data)
}

/// Makes the directory `data`, unless it is there: `import` is given another name to start a client
/// on, feeds it, and returns it with how many blocks that were.
pub(crate) fn prepare(
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
    client.process.stop()?;
    let seconds = started.elapsed().as_secs_f64();
    let said = serde_json::json!({"blocks": blocks, "seconds": seconds});
    fs::write(unfinished.join("import.json"), said.to_string())?;
    fs::rename(&unfinished, data)?;
    eprintln!("{} has {blocks} blocks after {seconds:.0} s", data.display());
    Ok(())
}

fn prepared_folder(program: &Program, chain: &Chain, folder: &Path) -> anyhow::Result<PathBuf> {
    let chain_name = chain.state.file_name().context("a chain has a folder")?;
    let name = format!("{}-{}", program.kind.name(), program.version()?);
    Ok(folder.join("prepared").join(chain_name).join(name))
}

/// Where the copies of this run go; those that runs before it have left are removed.
pub(crate) fn working_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    let running = folder.join("running");
    remove_left(&running)?;
    let own = running.join(std::process::id().to_string());
    fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
    Ok(own)
}

/// Throws a client's prepared directory away, for one whose files have another format by now.
pub(crate) fn forget(program: &Program, chain: &Chain, folder: &Path) -> anyhow::Result<()> {
    Ok(fs::remove_dir_all(prepared_folder(program, chain, folder)?).or_else(absent)?)
}

/// Copies a prepared directory. Files that are never changed once written are linked.
pub(crate) fn copy_prepared(from: &Path, to: &Path) -> anyhow::Result<()> {
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

/// Removes the folders below `folder` that processes which are no more have left.
pub(crate) fn remove_left(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(entry.file_name()).exists() {
            fs::remove_dir_all(entry.path()).or_else(absent)?;
        }
    }
    Ok(())
}

/// That something is not there is as good as having removed it.
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
        let parents = (1..=80).map(|number| (hash(number), hash(number - 1))).collect();
        let mut ancestry = Ancestry { parents, deeper: 0 };
        let heads = ancestry.heads(hash(80));
        assert_eq!((heads.head, heads.safe, heads.finalized), (hash(80), hash(48), hash(16)));
        let heads = ancestry.heads(hash(40));
        assert_eq!((heads.safe, heads.finalized), (hash(8), B256::ZERO));
        // Where branches of 37 blocks are left.
        ancestry.deeper = 5;
        let heads = ancestry.heads(hash(80));
        assert_eq!((heads.safe, heads.finalized), (hash(43), hash(11)));
    }
}
