//! `deponent import`.

use std::path::PathBuf;

use alloy_primitives::B256;
use alloy_rpc_types_engine::ForkchoiceState;
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use engine::{Engine, Missing, Verdict};
use files::{BlockForm, ChainFile, FileBlock, Gap, Progress, gaps, in_order};

use super::storage::StorageArgs;
use super::{number, open};
use crate::console::{counted, say};

/// Blocks imported before the head is moved: a crash loses no more.
const BLOCKS_A_HEAD: u64 = 64;

/// The number of gaps between files that a message names.
const GAPS_NAMED: usize = 8;

/// The arguments of `deponent import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Chain files and folders of them, in any order: engine_newPayload requests as JSON lines,
    /// RLP, era1, ere or era, plain or compressed (gzip, zstd); - reads the standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The data directory.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// The chain's rules and first block, a genesis.json: needed in an empty data directory.
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    #[command(flatten)]
    storage: StorageArgs,
}

/// Runs `deponent import`.
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<()> {
    let engine = open(&args.datadir, args.chain.as_deref(), &args.storage)?;
    let last = engine.heads().head;
    let head = number(&engine, last)?;
    let files = in_order(&args.files)?;
    refuse_gaps(&engine, &files, head)?;
    let mut import = Import { head, engine, last, is_new: false, imported: 0 };
    for file in files {
        let imported = import.file(file);
        // Valid blocks are kept, even if a later one is invalid.
        import.choose_head()?;
        import.engine.persist()?;
        imported?;
    }
    let head = import.engine.heads().head;
    let imported = counted(import.imported, "block");
    say!("{imported} imported; the head is block {}, {head}", import.head);
    Ok(())
}

/// Refuses files between which blocks are missing, or between which and the chain.
fn refuse_gaps(engine: &Engine, files: &[ChainFile], head: u64) -> anyhow::Result<()> {
    // A file may go on from a block that is there but is not canonical.
    let gaps = gaps(files, head, |file| anyhow::Ok(engine.number(&file.parent_hash)?.is_some()))?;
    if gaps.is_empty() {
        return Ok(());
    }
    let named = gaps.iter().take(GAPS_NAMED).map(|gap| {
        let Gap { first, last, before, after } = gap;
        let missing = match first == last {
            true => format!("block {first} is missing"),
            false => format!("blocks {first} to {last} are missing"),
        };
        let ends = match before {
            Some(before) => format!("{} ends with", before.display()),
            None => "the chain ends with".into(),
        };
        let (end, begin, after) = (first - 1, last + 1, after.display());
        format!("{missing}: {ends} block {end}, {after} begins with block {begin}")
    });
    let more = gaps.len().saturating_sub(GAPS_NAMED);
    let more = (more > 0).then(|| format!("and {} more", counted(more, "gap")));
    bail!(named.chain(more).collect::<Vec<_>>().join("\n"))
}

struct Import {
    engine: Engine,
    /// The number of the last block read, or of the head where none was.
    head: u64,
    /// The hash of that block.
    last: B256,
    /// Whether this import brought that block.
    is_new: bool,
    imported: u64,
}

impl Import {
    fn file(&mut self, file: ChainFile) -> anyhow::Result<()> {
        let ChainFile { first_number, first_hash, .. } = file;
        let path = file.path.clone();
        let reader = file.read()?;
        // Archives have one branch. Other files may have several, from below the head on.
        let first = match reader.form() {
            BlockForm::Era1 | BlockForm::Ere | BlockForm::Era => {
                self.check_branch(first_number, first_hash)
                    .with_context(|| path.display().to_string())?;
                self.head + 1
            }
            BlockForm::Rlp | BlockForm::Json => {
                number(&self.engine, self.engine.heads().genesis)? + 1
            }
        };
        let mut reader = reader.from_number(first);
        let mut progress = Progress::new("importing", reader.file_bytes(), 0);
        while let Some(block) = reader.next() {
            self.block(block?, &mut progress)?;
            progress.bytes(reader.done_bytes());
        }
        progress.finish();
        Ok(())
    }

    /// Checks that an archive's first block, if it is not above the head, is of this chain: its
    /// blocks up to the head are not read.
    fn check_branch(&self, number: u64, hash: B256) -> anyhow::Result<()> {
        let ours = self.engine.canonical_hash(number)?.filter(|_| number <= self.head);
        ensure!(
            ours.is_none_or(|ours| ours == hash),
            "it begins with block {number}, {hash}; block {number} of this chain is {}: the file \
             is of another chain",
            ours.unwrap_or_default()
        );
        Ok(())
    }

    fn block(&mut self, found: FileBlock, progress: &mut Progress) -> anyhow::Result<()> {
        let FileBlock { block, position, .. } = found;
        let (number, gas_used, hash) = (block.header.number, block.header.gas_used, block.hash());
        if self.engine.number(&hash)?.is_some() {
            // It was imported before, but may not be the head yet.
            (self.head, self.last, self.is_new) = (number, hash, false);
            return Ok(());
        }
        match self.engine.new_block(block)? {
            Verdict::Valid => {}
            Verdict::Invalid { reason, .. } => {
                bail!("{position}: block {number} ({hash}) is invalid: {reason}")
            }
            Verdict::Syncing(missing) => {
                let first = self.engine.heads().genesis;
                let (head, last) = (self.head, self.last);
                let hint = match missing {
                    Missing::Block { number, .. }
                        if Some(number) == self.engine.number(&first)? =>
                    {
                        ": the file is of another chain"
                    }
                    _ => "",
                };
                // Three parts, each of which is printed whole.
                let here =
                    format!("this chain begins with {first}, and its head is block {head}, {last}");
                let refused = format!("{position}: block {number}, {hash}, cannot be run");
                return Err(anyhow!(here).context(format!("{missing}{hint}")).context(refused));
            }
        }
        (self.head, self.last, self.is_new) = (number, hash, true);
        self.imported += 1;
        progress.block(number, gas_used);
        if self.imported.is_multiple_of(BLOCKS_A_HEAD) {
            self.choose_head()?;
        }
        Ok(())
    }

    /// Makes the last block the head, unless it is an ancestor of it. A block that was there before
    /// never takes back finalized ones, and its state may have been pruned.
    fn choose_head(&mut self) -> anyhow::Result<()> {
        let heads = self.engine.heads();
        if self.engine.canonical_hash(self.head)? != Some(self.last) {
            let mut state = ForkchoiceState { head_block_hash: self.last, ..Default::default() };
            if !self.is_new {
                state.safe_block_hash = heads.safe.unwrap_or_default();
                state.finalized_block_hash = heads.finalized.unwrap_or_default();
            }
            match self.engine.choose_head(state) {
                Ok(outcome) if outcome.is_applied => return Ok(()),
                Err(error) if self.is_new || !is_about_the_head(&error) => {
                    return Err(error.into());
                }
                Ok(_) | Err(_) => {}
            }
        }
        self.last = heads.head;
        self.head = number(&self.engine, self.last)?;
        Ok(())
    }
}

/// Whether the error only says that this block cannot be the head.
fn is_about_the_head(error: &engine::Error) -> bool {
    matches!(error, engine::Error::InvalidForkchoiceState(_) | engine::Error::TooDeepReorg(_))
}
