//! `deponent export`.

use std::path::PathBuf;
use std::sync::Arc;

use alloy_primitives::B256;
use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use engine::{BlockRecord, Engine, EngineOptions};

use super::number;
use super::storage::StorageArgs;
use crate::console::{counted, say};
use crate::data_directory::{Retention, open_engine};
use crate::flags::values::count;
use files::limits::ARCHIVE_BLOCKS;
use files::{ArchiveFolder, ArchiveForm, BlockForm, BlockWriter, ExportBlock, Progress, is_stream};

/// The arguments of `deponent export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The file to write, compressed if its name ends in .gz; - writes the standard output. For
    /// era1 and ere the directory of the files.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The data directory.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// The number of the first block [default: that after the genesis; for era1 and ere the
    /// genesis, or the first multiple of 8192].
    #[arg(long, value_name = "NUMBER", value_parser = count::<u64>)]
    from: Option<u64>,
    /// The number of the last block [default: the head; for era1 the last block of proof of work].
    #[arg(long, value_name = "NUMBER", value_parser = count::<u64>)]
    to: Option<u64>,
    /// The form of the file.
    #[arg(long, value_enum, default_value_t = ExportForm::Rlp)]
    format: ExportForm,
    #[command(flatten)]
    storage: StorageArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportForm {
    /// One block's RLP after the other, as geth exports it.
    Rlp,
    /// One engine_newPayload request a line, as JSON.
    Payloads,
    /// Archives of 8192 proof-of-work blocks each, with receipts and checksums.txt, as geth's
    /// import-history reads them.
    Era1,
    /// As era1, of blocks before and after the merge.
    Ere,
    /// Refused with the reason.
    #[value(hide = true)]
    Era,
}

/// Runs `deponent export`.
pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<()> {
    ensure!(
        args.format != ExportForm::Era,
        "era files hold beacon blocks and beacon states, which only a consensus client has: it \
         writes them; --format ere writes the same blocks of execution, with receipts"
    );
    // An export neither prunes nor copies witnesses.
    let options = EngineOptions {
        retain_history: u64::MAX,
        retain_witness_blocks: 0,
        retain_witness_bytes: u64::MAX,
        ..args.storage.engine(Retention::default())
    };
    let engine = open_engine(&args.datadir, None, args.storage.database(), |_| Ok(options))?;
    match args.format {
        ExportForm::Rlp => export_file(args, &engine, BlockForm::Rlp),
        ExportForm::Payloads => export_file(args, &engine, BlockForm::Json),
        ExportForm::Era1 => export_archives(args, &engine, ArchiveForm::Era1),
        ExportForm::Ere => export_archives(args, &engine, ArchiveForm::Ere),
        ExportForm::Era => unreachable!("refused above"),
    }
}

fn export_file(args: &ExportArgs, engine: &Engine, form: BlockForm) -> anyhow::Result<()> {
    let head = number(engine, engine.heads().head)?;
    let begin_number = number(engine, engine.heads().genesis)?;
    let (first, last) = (args.from.unwrap_or(begin_number + 1), args.to.unwrap_or(head));
    ensure!(begin_number <= first, "the chain begins with block {begin_number}");
    check_range(first, last, head)?;
    let mut writer = BlockWriter::resume(&args.file, form)?;
    let mut progress = Progress::counting("exporting", "blocks", last + 1 - first, 0);
    for number in first..=last {
        let record = canonical(engine, number)?;
        writer.write(ExportBlock {
            block: &record.block,
            requests: Some(&record.requests),
            access_list: record.block_access_list.as_ref(),
        })?;
        progress.block(number, record.block.header.gas_used);
        progress.count(number + 1 - first);
    }
    writer.finish()?;
    progress.finish();
    match is_stream(&args.file) {
        true => eprintln!("blocks {first} to {last} are written"),
        false => say!("blocks {first} to {last} are in {}", args.file.display()),
    }
    Ok(())
}

fn export_archives(args: &ExportArgs, engine: &Engine, form: ArchiveForm) -> anyhow::Result<()> {
    const BLOCKS: u64 = ARCHIVE_BLOCKS as u64;
    let begin_number = number(engine, engine.heads().genesis)?;
    // The body of a first block that is not the genesis is not known.
    let whole = if begin_number == 0 { 0 } else { (begin_number / BLOCKS + 1) * BLOCKS };
    let first = args.from.unwrap_or(whole);
    ensure!(first.is_multiple_of(BLOCKS), "archives begin at multiples of {BLOCKS}");
    ensure!(begin_number <= first, "the chain begins with block {begin_number}");
    let head = number(engine, engine.heads().head)?;
    ensure!(
        first <= head,
        "the chain begins with block {begin_number} and its head is block {head}: an archive would \
         begin with block {first}"
    );
    let last = match (args.to, form) {
        (Some(last), _) => last,
        (None, ArchiveForm::Era1) => last_of_work(engine, first, head)?,
        (None, ArchiveForm::Ere) => head,
    };
    check_range(first, last, head)?;
    let folder = ArchiveFolder::open(&args.file, network(engine.chain().chain_id()), form)?;
    let total = last + 1 - first;
    let mut progress = Progress::counting("exporting", "blocks", total, 0);
    for start in (first..=last).step_by(ARCHIVE_BLOCKS) {
        let end = last.min(start + BLOCKS - 1);
        if let Some((number, hash)) = folder.last_block(start / BLOCKS)? {
            ensure!(
                engine.canonical_hash(number)? == Some(hash),
                "{} has a file that begins at block {start} and ends with block {number}, {hash}, \
                 which is not of this chain",
                args.file.display()
            );
            if number >= end {
                progress.count(end + 1 - first);
                continue;
            }
        }
        let mut writer = folder.begin()?;
        for number in start..=end {
            let record = canonical(engine, number)?;
            let receipts = alloy_rlp::encode(&record.receipts);
            writer.write(&record.block, &receipts, record.total_difficulty)?;
            progress.block(number, record.block.header.gas_used);
            progress.count(number + 1 - first);
        }
        folder.finish(writer)?;
    }
    let files = folder.write_checksums()?;
    progress.finish();
    let files = counted(files, "file");
    say!("blocks {first} to {last} are in {}: {files} there", args.file.display());
    Ok(())
}

fn check_range(first: u64, last: u64, head: u64) -> anyhow::Result<()> {
    ensure!(last <= head, "block {last} is above the head, which is block {head}");
    ensure!(first <= last, "block {first} is above the last one, block {last}");
    Ok(())
}

fn canonical(engine: &Engine, number: u64) -> anyhow::Result<Arc<BlockRecord>> {
    let hash: Option<B256> = engine.canonical_hash(number)?;
    let record = hash.map(|hash| engine.block(hash)).transpose()?.flatten();
    let record = record.with_context(|| format!("there is no block {number}"))?;
    ensure!(
        record.has_body(),
        "the chain begins with the state after block {number}, whose body is not known"
    );
    Ok(record)
}

/// The last proof-of-work block from `first` on, by binary search: proof of stake never ends.
fn last_of_work(engine: &Engine, first: u64, head: u64) -> anyhow::Result<u64> {
    let is_of_work =
        |number| anyhow::Ok(!canonical(engine, number)?.block.header.difficulty.is_zero());
    let (mut of_work, mut of_stake) = (first, head + 1);
    if !is_of_work(first)? {
        bail!("block {first} is of proof of stake, which era1 files do not hold");
    }
    while of_work + 1 < of_stake {
        let middle = of_work + (of_stake - of_work) / 2;
        *(if is_of_work(middle)? { &mut of_work } else { &mut of_stake }) = middle;
    }
    Ok(of_work)
}

/// The network's name in the names of geth's archives.
const fn network(chain_id: u64) -> &'static str {
    match chain_id {
        1 => "mainnet",
        560_048 => "hoodi",
        11_155_111 => "sepolia",
        _ => "unknown",
    }
}
