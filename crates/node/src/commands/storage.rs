//! The options that the commands on a data directory share.

use clap::Args;
use engine::EngineOptions;
use state::{JournalMode, Options as DatabaseOptions};

use crate::data_directory::Retention;
use crate::flags::values::{count, parse_bytes, shown_bytes};
use crate::memory::DEFAULT_MEMORY;

/// Caches, and how much of the past is kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory and storage")]
pub(crate) struct StorageArgs {
    #[arg(long = "cache.bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("Memory for the cache of state pages, as 512MiB or 2GiB",
                              DEFAULT_MEMORY.pages))]
    pub(super) cache_bytes: Option<u64>,
    #[arg(long = "cache.code-bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("Memory for the cache of analysed contract codes, in bytes; a \
                               quarter as much again holds codes as they are stored",
                              DEFAULT_MEMORY.codes))]
    pub(super) code_cache_bytes: Option<u64>,
    #[arg(long = "history.retain-blocks", value_name = "BLOCKS", value_parser = count::<u64>,
          help = of_the_node("State history to keep, in blocks before the head",
                             &Retention::default().history.to_string()))]
    retain_history: Option<u64>,
    #[arg(long = "witness.retain-blocks", value_name = "BLOCKS", value_parser = count::<u64>,
          help = of_the_node("Witnesses to keep as copies that outlive the state, in blocks \
                              before the head", &Retention::default().witness_blocks.to_string()))]
    retain_witness_blocks: Option<u64>,
    #[arg(long = "witness.retain-bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = of_the_node("Disk space for those copies, in bytes; the newest are kept",
                             &shown_bytes(Retention::default().witness_bytes)))]
    retain_witness_bytes: Option<u64>,
}

/// The help of an option whose default is what the node noted in the data directory.
fn of_the_node(what: &str, default: &str) -> String {
    format!("{what} [default: {default}] (of commands other than node: as the node last ran)")
}

/// The help of an option of memory.
pub(super) fn with_default(what: &str, default: u64) -> String {
    format!("{what} [default: {}]", shown_bytes(default))
}

impl StorageArgs {
    pub(crate) fn database(&self) -> DatabaseOptions {
        DatabaseOptions {
            cache_bytes: self.cache_bytes.unwrap_or(DEFAULT_MEMORY.pages),
            code_cache_bytes: self.code_cache_bytes.unwrap_or(DEFAULT_MEMORY.codes) / 4,
            // No command promises anyone a block before it is persisted.
            journal: JournalMode::Off,
            ..DatabaseOptions::default()
        }
    }

    /// The engine's options; `kept` holds for retention options that are not given.
    pub(crate) fn engine(&self, kept: Retention) -> EngineOptions {
        let options = EngineOptions {
            code_cache_bytes: self.code_cache_bytes.unwrap_or(DEFAULT_MEMORY.codes) as usize,
            // No command serves witnesses.
            witness_cache_bytes: 0,
            ..EngineOptions::default()
        };
        let kept = Retention {
            history: self.retain_history.unwrap_or(kept.history),
            witness_blocks: self.retain_witness_blocks.unwrap_or(kept.witness_blocks),
            witness_bytes: self.retain_witness_bytes.unwrap_or(kept.witness_bytes),
        };
        kept.apply(options)
    }
}
