//! The options that the commands on a data directory share.

use clap::Args;
use engine::EngineOptions;
use state::{JournalMode, Options as DatabaseOptions};

use crate::data_directory::Retention;
use crate::memory::DEFAULT_MEMORY;

/// Caches, and how much of the past is kept.
#[derive(Debug, Args)]
pub(crate) struct StorageArgs {
    #[arg(long = "cache.bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("Memory for the cache of state pages, in bytes; the suffixes K, M, G \
                               and T are powers of 1024", DEFAULT_MEMORY.pages))]
    pub(super) cache_bytes: Option<u64>,
    #[arg(long = "cache.code-bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("Memory for the cache of analysed contract codes, in bytes; a \
                               quarter as much again holds codes as they are stored",
                              DEFAULT_MEMORY.codes))]
    pub(super) code_cache_bytes: Option<u64>,
    #[arg(long = "history.retain-blocks", value_name = "BLOCKS",
          help = of_the_node("State history to keep, in blocks before the head",
                             Retention::default().history))]
    retain_history: Option<u64>,
    #[arg(long = "witness.retain-blocks", value_name = "BLOCKS",
          help = of_the_node("Witnesses to keep as copies that outlive the state, in blocks \
                              before the head", Retention::default().witness_blocks))]
    retain_witness_blocks: Option<u64>,
    #[arg(long = "witness.retain-bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = of_the_node("Disk space for those copies, in bytes; the newest are kept",
                             Retention::default().witness_bytes))]
    retain_witness_bytes: Option<u64>,
}

/// The help of an option whose default is what the node noted in the data directory.
fn of_the_node(what: &str, default: u64) -> String {
    format!("{what} [default: {default}; for commands other than node: as the node last ran]")
}

/// The help of an option of memory.
pub(super) fn with_default(what: &str, default: u64) -> String {
    format!("{what} [default: {default}]")
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

/// Parses a number of bytes: digits, and optionally one of the suffixes K, M, G and T, which are
/// powers of 1024 and may be followed by `iB`.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = match text.strip_suffix("iB") {
        Some(text) if !text.ends_with(|last: char| last.is_ascii_digit()) => text,
        _ => text,
    };
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        Some((at, 'T' | 't')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a number of bytes, such as 4096, 512M or 4G".into())
}
