//! Files whose checksums are right, whatever else they hold: changed bytes alone would never get
//! past these.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use alloy_primitives::Bytes;
use engine::{Engine, EngineOptions};
use state::{Database, JournalChoice, MemoryDisk};

use super::{OPTIONS, chain, genesis, is_block_file, pieces, with_file};

/// An era1 file: each piece is an entry, its type and its value, which is packed where the type
/// says so.
pub fn era1_file(data: &[u8]) -> bool {
    e2store_file(data, &[1, 2, 3, 4, 5])
}

/// An ere file, in the same way.
pub fn ere_file(data: &[u8]) -> bool {
    e2store_file(data, &[3, 4, 10, 11])
}

/// A file of entries, those of the types `packed` packed.
fn e2store_file(data: &[u8], packed: &[u8]) -> bool {
    let mut file = b"e2\0\0\0\0\0\0".to_vec();
    for piece in pieces(data) {
        let Some((kind, value)) = piece.split_first_chunk::<2>() else { continue };
        let value = match kind {
            [kind, 0] if packed.contains(kind) => snappy_frames(value),
            _ => value.to_vec(),
        };
        file.extend_from_slice(kind);
        file.extend_from_slice(&(value.len() as u32).to_le_bytes());
        file.extend_from_slice(&[0, 0]);
        file.extend_from_slice(&value);
    }
    with_file(&file, is_block_file)
}

/// A stream of snappy's frames with the content as it is, and its checksum:
/// <https://github.com/google/snappy/blob/main/framing_format.txt>.
fn snappy_frames(content: &[u8]) -> Vec<u8> {
    let mut frames = b"\xff\x06\0\0sNaPpY".to_vec();
    let checksum = crc(0x82f6_3b78, content).rotate_right(15).wrapping_add(0xa282_ead8);
    frames.push(1);
    frames.extend_from_slice(&(content.len() as u32 + 4).to_le_bytes()[..3]);
    frames.extend_from_slice(&checksum.to_le_bytes());
    frames.extend_from_slice(content);
    frames
}

/// The journal of a node that was killed: each piece is a record, and the node starts again.
pub fn journal(data: &[u8]) -> bool {
    static FILES: OnceLock<BTreeMap<String, Vec<u8>>> = OnceLock::new();
    let mut files = FILES.get_or_init(killed_node).clone();
    let name = |name: &&String| name.starts_with("journal-");
    let name = files.keys().find(name).expect("it has a journal").clone();
    let sequence = u64::from_str_radix(&name["journal-".len()..], 16).expect("digits");
    let file = files.get_mut(&name).expect("it is there");
    file.truncate(FILE_HEADER_BYTES);
    for record in pieces(data) {
        let (address, length) = (sequence << 32 | file.len() as u64, record.len() as u32);
        let checked = [&address.to_le_bytes(), &length.to_le_bytes()[..], &record].concat();
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(&crc(0xedb8_8320, &checked).to_le_bytes());
        file.extend_from_slice(&record);
    }
    let Ok(store) = Database::open(MemoryDisk::with_contents(&files), &OPTIONS) else {
        return false;
    };
    assert_eq!(store.journal().tails(), [], "the checksums are right");
    Engine::open(chain().clone(), None, store, EngineOptions::default()).is_ok()
}

/// The bytes before the first record of a file of the store.
const FILE_HEADER_BYTES: usize = 64;

/// The files of a node that was killed after a fork choice.
fn killed_node() -> BTreeMap<String, Vec<u8>> {
    let disk = MemoryDisk::new();
    let open = || Database::open(disk.clone(), &OPTIONS).expect("memory");
    let genesis = engine::Genesis::new(&genesis(), chain()).expect("a genesis");
    let options = EngineOptions::default();
    drop(Engine::open(chain().clone(), Some(genesis), open(), options).expect("it starts"));
    let choice = JournalChoice { number: 1, choice: Bytes::new() };
    open().journal().append_choice(choice).expect("memory");
    disk.contents()
}

/// The CRC of 32 bits with this polynomial, its bits in reverse.
fn crc(polynomial: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (polynomial & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}
