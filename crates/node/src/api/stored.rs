//! Codes of a witness, which are read from their files while they are sent.

use rpc::MappedFiles;

/// The files that stores of this process have mapped, as far as they are not in memory.
#[derive(Debug)]
pub(crate) struct Stored;

impl MappedFiles for Stored {
    fn have(&self, bytes: &[u8]) -> bool {
        state::is_out_of_memory(bytes)
    }

    fn read(&self, bytes: &[u8], out: &mut [u8]) -> bool {
        state::read_mapped(bytes, out)
    }
}
