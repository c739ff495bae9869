//! The slow twin of `execution::stateless`: a second encoder and Merkleizer of stateless inputs,
//! written from the text of the specifications. It shares the values with the first, and no code.
//!
//! A value is a tree of [`Ssz`]. Serialisation and Merkleization are the recursive definitions of
//! consensus-specs `ssz/simple-serialize.md` at a08d8a6e, EIP-7495 and EIP-7916 at EIPs f767a1e8,
//! with every zero leaf in place.

use execution::stateless::request::{ExecutionPayload, ExecutionRequests};
use execution::stateless::{NewPayloadRequest, ProtocolFork, StatelessInput};
use sha2::{Digest, Sha256};
use witness::Items;

type Chunk = [u8; 32];

/// A value of SSZ, with as much of its type as its encoding and its root depend on. No list here is
/// one of numbers.
enum Ssz {
    /// A number in little-endian bytes, or a byte vector.
    Vector(Vec<u8>),
    /// A byte list with room for so many bytes.
    Bytes(Vec<u8>, usize),
    ProgressiveBytes(Vec<u8>),
    /// A list of values that has no root here.
    List(Vec<Self>),
    ProgressiveList(Vec<Self>),
    Container(Vec<Self>),
    /// All of its fields are active.
    ProgressiveContainer(Vec<Self>),
}

/// The encoding of `input`, behind the id of its schema.
pub fn encoding(input: &StatelessInput) -> Vec<u8> {
    let mut fields = vec![
        request(&input.new_payload_request),
        Ssz::Container(input.witness.lists().into_iter().map(items).collect()),
        number(input.chain_id),
    ];
    if let Some(keys) = &input.public_keys {
        fields.push(Ssz::ProgressiveList(keys.iter().map(|key| vector(&key[..])).collect()));
    }
    let fork = input.new_payload_request.fork;
    let number = 0x0e + ProtocolFork::ALL.iter().position(|other| *other == fork).expect("one");
    let mut encoding = vec![number as u8, 1];
    encoding.extend(Ssz::Container(fields).serialize());
    encoding
}

/// The root of `request`.
pub fn root(given: &NewPayloadRequest) -> [u8; 32] {
    request(given).hash_tree_root()
}

fn number(number: u64) -> Ssz {
    Ssz::Vector(number.to_le_bytes().to_vec())
}

fn vector(bytes: &[u8]) -> Ssz {
    Ssz::Vector(bytes.to_vec())
}

fn items(items: Items<'_>) -> Ssz {
    Ssz::List(items.iter().map(|item| Ssz::ProgressiveBytes(item.to_vec())).collect())
}

fn request(request: &NewPayloadRequest) -> Ssz {
    let mut fields = vec![payload(request.fork, &request.execution_payload)];
    if request.fork >= ProtocolFork::Cancun {
        let hashes = request.versioned_hashes.iter();
        fields.push(Ssz::ProgressiveList(hashes.map(|hash| vector(&hash[..])).collect()));
        fields.push(vector(&request.parent_beacon_block_root[..]));
    }
    if request.fork >= ProtocolFork::Prague {
        fields.push(requests(request.fork, &request.execution_requests));
    }
    Ssz::ProgressiveContainer(fields)
}

fn payload(fork: ProtocolFork, payload: &ExecutionPayload) -> Ssz {
    let transactions = payload.transactions.iter();
    let transactions = transactions.map(|bytes| Ssz::ProgressiveBytes(bytes.to_vec()));
    let mut fields = vec![
        vector(&payload.parent_hash[..]),
        vector(&payload.fee_recipient[..]),
        vector(&payload.state_root[..]),
        vector(&payload.receipts_root[..]),
        vector(&payload.logs_bloom[..]),
        vector(&payload.prev_randao[..]),
        number(payload.block_number),
        number(payload.gas_limit),
        number(payload.gas_used),
        number(payload.timestamp),
        Ssz::Bytes(payload.extra_data.to_vec(), 32),
        vector(&payload.base_fee_per_gas.to_le_bytes::<32>()),
        vector(&payload.block_hash[..]),
        Ssz::ProgressiveList(transactions.collect()),
    ];
    if fork >= ProtocolFork::Shanghai {
        let withdrawals = payload.withdrawals.iter().map(|withdrawal| {
            Ssz::Container(vec![
                number(withdrawal.index),
                number(withdrawal.validator_index),
                vector(&withdrawal.address[..]),
                number(withdrawal.amount),
            ])
        });
        fields.push(Ssz::ProgressiveList(withdrawals.collect()));
    }
    if fork >= ProtocolFork::Cancun {
        fields.extend([number(payload.blob_gas_used), number(payload.excess_blob_gas)]);
    }
    if fork >= ProtocolFork::Amsterdam {
        fields.push(Ssz::ProgressiveBytes(payload.block_access_list.to_vec()));
        fields.push(number(payload.slot_number));
    }
    Ssz::ProgressiveContainer(fields)
}

fn requests(fork: ProtocolFork, requests: &ExecutionRequests) -> Ssz {
    let deposits = requests.deposits.iter().map(|deposit| {
        Ssz::Container(vec![
            vector(&deposit.pubkey[..]),
            vector(&deposit.withdrawal_credentials[..]),
            number(deposit.amount),
            vector(&deposit.signature[..]),
            number(deposit.index),
        ])
    });
    let withdrawals = requests.withdrawals.iter().map(|withdrawal| {
        Ssz::Container(vec![
            vector(&withdrawal.source_address[..]),
            vector(&withdrawal.validator_pubkey[..]),
            number(withdrawal.amount),
        ])
    });
    let consolidations = requests.consolidations.iter().map(|consolidation| {
        Ssz::Container(vec![
            vector(&consolidation.source_address[..]),
            vector(&consolidation.source_pubkey[..]),
            vector(&consolidation.target_pubkey[..]),
        ])
    });
    let mut fields = vec![
        Ssz::ProgressiveList(deposits.collect()),
        Ssz::ProgressiveList(withdrawals.collect()),
        Ssz::ProgressiveList(consolidations.collect()),
    ];
    if fork >= ProtocolFork::Amsterdam {
        let deposits = requests.builder_deposits.iter().map(|deposit| {
            Ssz::Container(vec![
                vector(&deposit.pubkey[..]),
                vector(&deposit.withdrawal_credentials[..]),
                number(deposit.amount),
                vector(&deposit.signature[..]),
            ])
        });
        let exits = requests.builder_exits.iter();
        let exits = exits.map(|exit| {
            Ssz::Container(vec![vector(&exit.source_address[..]), vector(&exit.pubkey[..])])
        });
        fields.push(Ssz::ProgressiveList(deposits.collect()));
        fields.push(Ssz::ProgressiveList(exits.collect()));
    }
    Ssz::ProgressiveContainer(fields)
}

impl Ssz {
    fn is_fixed_size(&self) -> bool {
        match self {
            Self::Vector(_) => true,
            Self::Container(fields) | Self::ProgressiveContainer(fields) => {
                fields.iter().all(Self::is_fixed_size)
            }
            _ => false,
        }
    }

    fn serialize(&self) -> Vec<u8> {
        match self {
            Self::Vector(bytes) | Self::Bytes(bytes, _) | Self::ProgressiveBytes(bytes) => {
                bytes.clone()
            }
            Self::List(values)
            | Self::ProgressiveList(values)
            | Self::Container(values)
            | Self::ProgressiveContainer(values) => series(values),
        }
    }

    fn hash_tree_root(&self) -> Chunk {
        let roots = |values: &[Self]| values.iter().map(Self::hash_tree_root).collect::<Vec<_>>();
        match self {
            Self::Vector(bytes) => merkleize(&pack(bytes), pack(bytes).len()),
            Self::Bytes(bytes, limit) => {
                with_length(merkleize(&pack(bytes), limit.div_ceil(32)), bytes.len())
            }
            Self::ProgressiveBytes(bytes) => {
                with_length(merkleize_progressive(&pack(bytes), 1), bytes.len())
            }
            Self::List(_) => unreachable!("no list of the request is one"),
            Self::ProgressiveList(values) => {
                with_length(merkleize_progressive(&roots(values), 1), values.len())
            }
            Self::Container(fields) => merkleize(&roots(fields), fields.len()),
            Self::ProgressiveContainer(fields) => {
                let mut active = [0; 32];
                (0..fields.len()).for_each(|index| active[index / 8] |= 1 << (index % 8));
                hash(&merkleize_progressive(&roots(fields), 1), &active)
            }
        }
    }
}

/// Values one after the other, those of variable size behind the offsets that stand in their place.
fn series(values: &[Ssz]) -> Vec<u8> {
    let parts: Vec<_> = values.iter().map(Ssz::serialize).collect();
    let places = values.iter().zip(&parts);
    let fixed: usize =
        places.map(|(value, part)| if value.is_fixed_size() { part.len() } else { 4 }).sum();
    let (mut front, mut back) = (Vec::new(), Vec::new());
    for (value, part) in values.iter().zip(&parts) {
        if value.is_fixed_size() {
            front.extend_from_slice(part);
        } else {
            front.extend_from_slice(&((fixed + back.len()) as u32).to_le_bytes());
            back.extend_from_slice(part);
        }
    }
    front.extend(back);
    front
}

fn pack(bytes: &[u8]) -> Vec<Chunk> {
    let padded = |part: &[u8]| {
        let mut chunk = [0; 32];
        chunk[..part.len()].copy_from_slice(part);
        chunk
    };
    bytes.chunks(32).map(padded).collect()
}

fn merkleize(chunks: &[Chunk], room: usize) -> Chunk {
    let leaves = room.next_power_of_two();
    if leaves == 1 {
        return chunks.first().copied().unwrap_or_default();
    }
    let (left, right) = chunks.split_at(chunks.len().min(leaves / 2));
    hash(&merkleize(left, leaves / 2), &merkleize(right, leaves / 2))
}

fn merkleize_progressive(chunks: &[Chunk], leaves: usize) -> Chunk {
    if chunks.is_empty() {
        return [0; 32];
    }
    let (these, later) = chunks.split_at(chunks.len().min(leaves));
    hash(&merkleize(these, leaves), &merkleize_progressive(later, 4 * leaves))
}

fn with_length(root: Chunk, length: usize) -> Chunk {
    let mut chunk = [0; 32];
    chunk[..8].copy_from_slice(&(length as u64).to_le_bytes());
    hash(&root, &chunk)
}

fn hash(left: &Chunk, right: &Chunk) -> Chunk {
    Sha256::new().chain_update(left).chain_update(right).finalize().into()
}
