//! Chain files as geth and hive write them: the RLP of the blocks, concatenated.

use alloy_consensus::Header;
use alloy_rlp::Decodable;
use execution::SealedBlock;

use crate::FileBlock;
use crate::block::Seen;
use crate::error::Error;
use crate::input::Input;
use crate::limits::BLOCK_BYTES;

/// The next block; `None` at the end. Blocks below `first` are skipped after their header; `seen`
/// counts them too.
pub(super) fn next(
    input: &mut Input,
    buffer: &mut Vec<u8>,
    first: u64,
    seen: &mut Seen,
) -> Result<Option<FileBlock>, Error> {
    loop {
        let offset = input.offset();
        let Some(prefix_bytes) = next_list(input, buffer)? else { return Ok(None) };
        let wrong = |problem: String| input.error(offset, problem);
        let number = number(&buffer[prefix_bytes..])
            .map_err(|error| wrong(format!("the header of a block expected: {error}")))?;
        if number < first {
            seen.block(Some(number));
            continue;
        }
        let block = execution::decode_block(buffer).map_err(|error| wrong(error.to_string()))?;
        seen.block(Some(number));
        return Ok(Some(FileBlock::of(block).at(offset)));
    }
}

/// Reads the next list into `buffer`. Returns the length of its prefix in bytes.
fn next_list(input: &mut Input, buffer: &mut Vec<u8>) -> Result<Option<usize>, Error> {
    let offset = input.offset();
    let shown = input.fill(9)?;
    let Some(&first) = shown.first() else { return Ok(None) };
    let (prefix_bytes, content_bytes) = match first {
        0xc0..=0xf7 => (1, u64::from(first - 0xc0)),
        0xf8.. => {
            let length_bytes = usize::from(first - 0xf7);
            let Some(length) = shown.get(1..=length_bytes) else {
                return Err(input.cut_off(offset, 1 + length_bytes as u64));
            };
            let length = length.iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
            (1 + length_bytes, length)
        }
        _ => {
            let problem = format!("a block as an RLP list expected, byte {first:#04x} found");
            return Err(input.error(offset, problem));
        }
    };
    if content_bytes > BLOCK_BYTES {
        let problem = format!("a list of {content_bytes} bytes, no block has over {BLOCK_BYTES}");
        return Err(input.error(offset, problem));
    }
    buffer.clear();
    input.read_into(buffer, prefix_bytes as u64 + content_bytes)?;
    Ok(Some(prefix_bytes))
}

/// The block's number, from its header.
fn number(mut content: &[u8]) -> alloy_rlp::Result<u64> {
    Ok(Header::decode(&mut content)?.number)
}

/// Appends a block's RLP.
pub(super) fn write(out: &mut Vec<u8>, block: &SealedBlock) {
    alloy_rlp::Encodable::encode(&**block, out);
}
