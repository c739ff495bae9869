//! The payload of a stateless input with all that the consensus layer says of it: its bytes, and
//! the root that a stateless validation makes public.
//!
//! The containers are those of EIP-8025 (EIPs f767a1e8), the builder requests those of EIP-8282
//! (EIPs 036365cb). `NewPayloadRequest`, `ExecutionPayload` and `ExecutionRequests` are progressive
//! containers (EIP-7495), the first of them since tests-zkevm v21.0.7 (execution-specs #3913); the
//! same is in consensus-specs, `specs/_features/eip8025/beacon-chain.md` of October 2026. Their
//! bytes are those of plain ones.

use super::fork::ProtocolFork;
use super::merkle::{
    byte_list_root, byte_vector_root, item_list_root, progressive_byte_list_root,
    progressive_container_root, progressive_list_root, u64_root,
};
use crate::SealedBlock;
use alloy_consensus::Transaction as _;
use alloy_eips::Encodable2718;
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip6110::{DEPOSIT_REQUEST_TYPE, DepositRequest};
use alloy_eips::eip7002::{WITHDRAWAL_REQUEST_TYPE, WithdrawalRequest};
use alloy_eips::eip7251::{CONSOLIDATION_REQUEST_TYPE, ConsolidationRequest};
use alloy_eips::eip7685::Requests;
use alloy_eips::eip8282::{
    BUILDER_DEPOSIT_REQUEST_TYPE, BUILDER_EXIT_REQUEST_TYPE, BuilderDepositRequest,
    BuilderExitRequest,
};
use alloy_primitives::{Address, B256, Bloom, Bytes, U256};
use witness::container::{
    self, Item, Layout, Offsets, SszError, SszProblem, UNLIMITED, byte_lists_bytes,
    read_byte_lists, read_items, read_limited, write_byte_lists, write_items,
};

/// Bytes of extra data in a block: the `MAX_EXTRA_DATA_BYTES` of EIP-8025.
pub const EXTRA_DATA_BYTES: usize = 32;

/// Versioned hashes of a payload, `MAX_BLOB_COMMITMENTS_PER_BLOCK` of the consensus layer. The list
/// is progressive nevertheless: its root does not know the limit (consensus-specs #5643).
pub const VERSIONED_HASHES: usize = 4096;

const PARIS_REQUEST: Layout<1> =
    Layout { name: "new_payload_request", fixed_bytes: 4, variable: [("execution_payload", 0)] };

const CANCUN_REQUEST: Layout<2> = Layout {
    name: "new_payload_request",
    fixed_bytes: 40,
    variable: [("execution_payload", 0), ("versioned_hashes", 4)],
};

const PRAGUE_REQUEST: Layout<3> = Layout {
    name: "new_payload_request",
    fixed_bytes: 44,
    variable: [("execution_payload", 0), ("versioned_hashes", 4), ("execution_requests", 40)],
};

const PARIS_PAYLOAD: Layout<2> = Layout {
    name: "execution_payload",
    fixed_bytes: 508,
    variable: [("extra_data", 436), ("transactions", 504)],
};

const SHANGHAI_PAYLOAD: Layout<3> = Layout {
    name: "execution_payload",
    fixed_bytes: 512,
    variable: [("extra_data", 436), ("transactions", 504), ("withdrawals", 508)],
};

const CANCUN_PAYLOAD: Layout<3> = Layout { fixed_bytes: 528, ..SHANGHAI_PAYLOAD };

const AMSTERDAM_PAYLOAD: Layout<4> = Layout {
    name: "execution_payload",
    fixed_bytes: 540,
    variable: [
        ("extra_data", 436),
        ("transactions", 504),
        ("withdrawals", 508),
        ("block_access_list", 528),
    ],
};

const PRAGUE_REQUESTS: Layout<3> = Layout {
    name: "execution_requests",
    fixed_bytes: 12,
    variable: [("deposits", 0), ("withdrawals", 4), ("consolidations", 8)],
};

const AMSTERDAM_REQUESTS: Layout<5> = Layout {
    name: "execution_requests",
    fixed_bytes: 20,
    variable: [
        ("deposits", 0),
        ("withdrawals", 4),
        ("consolidations", 8),
        ("builder_deposits", 12),
        ("builder_exits", 16),
    ],
};

/// The Engine API's request to validate a payload.
///
/// A field that blocks of the fork do not have is empty or zero, and is neither written nor part of
/// the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewPayloadRequest {
    /// The fork, which says what fields there are.
    pub fork: ProtocolFork,
    /// The block.
    pub execution_payload: ExecutionPayload,
    /// Versioned hashes of all blobs (EIP-4844), in order of the transactions; from Cancun on, at
    /// most [`VERSIONED_HASHES`].
    pub versioned_hashes: Vec<B256>,
    /// Root of the parent beacon block (EIP-4788), from Cancun on.
    pub parent_beacon_block_root: B256,
    /// The requests of the execution layer to the consensus layer, from Prague on.
    pub execution_requests: ExecutionRequests,
}

/// A block as the Engine API has it (`ExecutionPayloadV1` to `V4`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the specification's")]
pub struct ExecutionPayload {
    pub parent_hash: B256,
    pub fee_recipient: Address,
    pub state_root: B256,
    pub receipts_root: B256,
    pub logs_bloom: Bloom,
    pub prev_randao: B256,
    pub block_number: u64,
    pub gas_limit: u64,
    pub gas_used: u64,
    pub timestamp: u64,
    /// At most [`EXTRA_DATA_BYTES`].
    pub extra_data: Bytes,
    pub base_fee_per_gas: U256,
    pub block_hash: B256,
    /// Each in its EIP-2718 form.
    pub transactions: Vec<Bytes>,
    /// From Shanghai on.
    pub withdrawals: Vec<Withdrawal>,
    /// From Cancun on.
    pub blob_gas_used: u64,
    /// From Cancun on.
    pub excess_blob_gas: u64,
    /// RLP of the block access list (EIP-7928), from Amsterdam on.
    pub block_access_list: Bytes,
    /// From Amsterdam on.
    pub slot_number: u64,
}

/// The execution layer's requests, by type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionRequests {
    /// Validator deposits (EIP-6110), type 0.
    pub deposits: Vec<DepositRequest>,
    /// Validator withdrawals (EIP-7002), type 1.
    pub withdrawals: Vec<WithdrawalRequest>,
    /// Validator consolidations (EIP-7251), type 2.
    pub consolidations: Vec<ConsolidationRequest>,
    /// Builder deposits (EIP-8282), type 3, from Amsterdam on.
    pub builder_deposits: Vec<BuilderDepositRequest>,
    /// Builder exits (EIP-8282), type 4, from Amsterdam on.
    pub builder_exits: Vec<BuilderExitRequest>,
}

impl NewPayloadRequest {
    /// The request that describes a block of `fork` with these requests (EIP-7685) and this access
    /// list, as RLP; before Amsterdam the list is empty.
    ///
    /// # Errors
    /// When a field of the fork's header is missing, or the requests are not well formed.
    pub fn of_block(
        fork: ProtocolFork,
        block: &SealedBlock,
        requests: &[Bytes],
        block_access_list: Bytes,
    ) -> Result<Self, SszError> {
        let root = block.header.parent_beacon_block_root;
        let hashes = block.body.transactions.iter().flat_map(|tx| tx.blob_versioned_hashes());
        Ok(Self {
            fork,
            execution_payload: ExecutionPayload::of_block(fork, block, block_access_list)?,
            versioned_hashes: hashes.flatten().copied().collect(),
            parent_beacon_block_root: from(
                fork,
                ProtocolFork::Cancun,
                "parent_beacon_block_root",
                root,
            )?,
            execution_requests: ExecutionRequests::from_requests(requests)?,
        })
    }

    /// The SSZ root: what a stateless validation makes public of its input.
    ///
    /// A request whose extra data is too long to be encoded has a root that no valid one has.
    pub fn hash_tree_root(&self) -> B256 {
        let mut fields = vec![self.execution_payload.root(self.fork)];
        if self.fork >= ProtocolFork::Cancun {
            fields.push(item_list_root(&self.versioned_hashes));
            fields.push(self.parent_beacon_block_root);
        }
        if self.fork >= ProtocolFork::Prague {
            fields.push(self.execution_requests.root(self.fork));
        }
        progressive_container_root(&fields)
    }

    pub(super) fn read(fork: ProtocolFork, input: &Bytes) -> Result<Self, SszError> {
        let (mut fixed, [payload, versioned_hashes, requests]) = match fork {
            ProtocolFork::Paris | ProtocolFork::Shanghai => PARIS_REQUEST.split_to(input)?,
            ProtocolFork::Cancun => CANCUN_REQUEST.split_to(input)?,
            _ => PRAGUE_REQUEST.split_to(input)?,
        };
        let mut read = Self {
            fork,
            execution_payload: fixed.behind_offset(ExecutionPayload::read(fork, &payload)?),
            ..Self::default()
        };
        if fork >= ProtocolFork::Cancun {
            let hashes = read_limited("versioned_hashes", &versioned_hashes, VERSIONED_HASHES)?;
            read.versioned_hashes = fixed.behind_offset(hashes);
            read.parent_beacon_block_root = fixed.bytes();
        }
        if fork >= ProtocolFork::Prague {
            read.execution_requests = ExecutionRequests::read(fork, &requests)?;
        }
        Ok(read)
    }

    /// Whether it is within the limits of the schema.
    pub(super) fn check(&self) -> Result<(), SszError> {
        let extra_data = &self.execution_payload.extra_data;
        container::check_length("extra_data", extra_data.len(), EXTRA_DATA_BYTES)?;
        let hashes = self.versioned_hashes.len();
        container::check_count("versioned_hashes", hashes, VERSIONED_HASHES)
    }

    pub(super) fn ssz_bytes(&self) -> usize {
        let payload = self.execution_payload.ssz_bytes(self.fork);
        let hashes = B256::BYTES * self.versioned_hashes.len();
        match self.fork {
            ProtocolFork::Paris | ProtocolFork::Shanghai => PARIS_REQUEST.fixed_bytes + payload,
            ProtocolFork::Cancun => CANCUN_REQUEST.fixed_bytes + payload + hashes,
            fork => {
                let requests = self.execution_requests.ssz_bytes(fork);
                PRAGUE_REQUEST.fixed_bytes + payload + hashes + requests
            }
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let fork = self.fork;
        let mut offsets = Offsets::behind(match fork {
            ProtocolFork::Paris | ProtocolFork::Shanghai => PARIS_REQUEST.fixed_bytes,
            ProtocolFork::Cancun => CANCUN_REQUEST.fixed_bytes,
            _ => PRAGUE_REQUEST.fixed_bytes,
        });
        offsets.write(self.execution_payload.ssz_bytes(fork), out);
        if fork >= ProtocolFork::Cancun {
            offsets.write(B256::BYTES * self.versioned_hashes.len(), out);
            out.extend_from_slice(self.parent_beacon_block_root.as_slice());
        }
        if fork >= ProtocolFork::Prague {
            offsets.write(self.execution_requests.ssz_bytes(fork), out);
        }
        self.execution_payload.write(fork, out);
        if fork >= ProtocolFork::Cancun {
            write_items(&self.versioned_hashes, out);
        }
        if fork >= ProtocolFork::Prague {
            self.execution_requests.write(fork, out);
        }
    }
}

/// A header's field that there is from a fork on, and its default before.
fn from<T: Default>(
    fork: ProtocolFork,
    first: ProtocolFork,
    field: &'static str,
    value: Option<T>,
) -> Result<T, SszError> {
    match value {
        Some(value) if fork >= first => Ok(value),
        None if fork >= first => Err(SszProblem::Missing.at(field)),
        _ => Ok(T::default()),
    }
}

impl ExecutionPayload {
    fn of_block(
        fork: ProtocolFork,
        block: &SealedBlock,
        block_access_list: Bytes,
    ) -> Result<Self, SszError> {
        use ProtocolFork::{Amsterdam, Cancun, Paris, Shanghai};
        let header = &block.header;
        let withdrawals = block.body.withdrawals.clone();
        let transactions = block.body.transactions.iter();
        let base_fee = header.base_fee_per_gas;
        Ok(Self {
            parent_hash: header.parent_hash,
            fee_recipient: header.beneficiary,
            state_root: header.state_root,
            receipts_root: header.receipts_root,
            logs_bloom: header.logs_bloom,
            prev_randao: header.mix_hash,
            block_number: header.number,
            gas_limit: header.gas_limit,
            gas_used: header.gas_used,
            timestamp: header.timestamp,
            extra_data: header.extra_data.clone(),
            base_fee_per_gas: U256::from(from(fork, Paris, "base_fee_per_gas", base_fee)?),
            block_hash: block.hash(),
            transactions: transactions.map(|tx| tx.encoded_2718().into()).collect(),
            withdrawals: from(fork, Shanghai, "withdrawals", withdrawals)?.into_inner(),
            blob_gas_used: from(fork, Cancun, "blob_gas_used", header.blob_gas_used)?,
            excess_blob_gas: from(fork, Cancun, "excess_blob_gas", header.excess_blob_gas)?,
            block_access_list,
            slot_number: from(fork, Amsterdam, "slot_number", header.slot_number)?,
        })
    }

    fn read(fork: ProtocolFork, input: &Bytes) -> Result<Self, SszError> {
        let (mut fixed, fields) = match fork {
            ProtocolFork::Paris => PARIS_PAYLOAD.split_to(input)?,
            ProtocolFork::Shanghai => SHANGHAI_PAYLOAD.split_to(input)?,
            ProtocolFork::Amsterdam => AMSTERDAM_PAYLOAD.split_to(input)?,
            _ => CANCUN_PAYLOAD.split_to(input)?,
        };
        let [extra_data, transactions, withdrawals, block_access_list] = fields;
        container::check_length("extra_data", extra_data.len(), EXTRA_DATA_BYTES)?;
        let mut read = Self {
            parent_hash: fixed.bytes(),
            fee_recipient: fixed.bytes(),
            state_root: fixed.bytes(),
            receipts_root: fixed.bytes(),
            logs_bloom: fixed.bytes(),
            prev_randao: fixed.bytes(),
            block_number: fixed.u64(),
            gas_limit: fixed.u64(),
            gas_used: fixed.u64(),
            timestamp: fixed.u64(),
            extra_data: fixed.behind_offset(extra_data),
            base_fee_per_gas: U256::from_le_bytes::<32>(fixed.bytes()),
            block_hash: fixed.bytes(),
            transactions: fixed.behind_offset(read_byte_lists(
                "transactions",
                &transactions,
                UNLIMITED,
            )?),
            ..Self::default()
        };
        if fork >= ProtocolFork::Shanghai {
            read.withdrawals = fixed.behind_offset(read_items("withdrawals", &withdrawals)?);
        }
        if fork >= ProtocolFork::Cancun {
            read.blob_gas_used = fixed.u64();
            read.excess_blob_gas = fixed.u64();
        }
        if fork >= ProtocolFork::Amsterdam {
            read.block_access_list = fixed.behind_offset(block_access_list);
            read.slot_number = fixed.u64();
        }
        Ok(read)
    }

    fn ssz_bytes(&self, fork: ProtocolFork) -> usize {
        let before = self.extra_data.len() + byte_lists_bytes(&self.transactions);
        let withdrawals = Withdrawal::BYTES * self.withdrawals.len();
        match fork {
            ProtocolFork::Paris => PARIS_PAYLOAD.fixed_bytes + before,
            ProtocolFork::Shanghai => SHANGHAI_PAYLOAD.fixed_bytes + before + withdrawals,
            ProtocolFork::Amsterdam => {
                let list = self.block_access_list.len();
                AMSTERDAM_PAYLOAD.fixed_bytes + before + withdrawals + list
            }
            _ => CANCUN_PAYLOAD.fixed_bytes + before + withdrawals,
        }
    }

    fn write(&self, fork: ProtocolFork, out: &mut Vec<u8>) {
        let mut offsets = Offsets::behind(match fork {
            ProtocolFork::Paris => PARIS_PAYLOAD.fixed_bytes,
            ProtocolFork::Shanghai => SHANGHAI_PAYLOAD.fixed_bytes,
            ProtocolFork::Amsterdam => AMSTERDAM_PAYLOAD.fixed_bytes,
            _ => CANCUN_PAYLOAD.fixed_bytes,
        });
        out.extend_from_slice(self.parent_hash.as_slice());
        out.extend_from_slice(self.fee_recipient.as_slice());
        out.extend_from_slice(self.state_root.as_slice());
        out.extend_from_slice(self.receipts_root.as_slice());
        out.extend_from_slice(self.logs_bloom.as_slice());
        out.extend_from_slice(self.prev_randao.as_slice());
        for number in [self.block_number, self.gas_limit, self.gas_used, self.timestamp] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        offsets.write(self.extra_data.len(), out);
        out.extend_from_slice(&self.base_fee_per_gas.to_le_bytes::<32>());
        out.extend_from_slice(self.block_hash.as_slice());
        offsets.write(byte_lists_bytes(&self.transactions), out);
        if fork >= ProtocolFork::Shanghai {
            offsets.write(Withdrawal::BYTES * self.withdrawals.len(), out);
        }
        if fork >= ProtocolFork::Cancun {
            out.extend_from_slice(&self.blob_gas_used.to_le_bytes());
            out.extend_from_slice(&self.excess_blob_gas.to_le_bytes());
        }
        if fork >= ProtocolFork::Amsterdam {
            offsets.write(self.block_access_list.len(), out);
            out.extend_from_slice(&self.slot_number.to_le_bytes());
        }
        out.extend_from_slice(&self.extra_data);
        write_byte_lists(&self.transactions, out);
        if fork >= ProtocolFork::Shanghai {
            write_items(&self.withdrawals, out);
        }
        if fork >= ProtocolFork::Amsterdam {
            out.extend_from_slice(&self.block_access_list);
        }
    }

    fn root(&self, fork: ProtocolFork) -> B256 {
        let transactions: Vec<B256> =
            self.transactions.iter().map(|bytes| progressive_byte_list_root(bytes)).collect();
        let mut fields = vec![
            self.parent_hash,
            byte_vector_root(self.fee_recipient.as_slice()),
            self.state_root,
            self.receipts_root,
            byte_vector_root(self.logs_bloom.as_slice()),
            self.prev_randao,
            u64_root(self.block_number),
            u64_root(self.gas_limit),
            u64_root(self.gas_used),
            u64_root(self.timestamp),
            byte_list_root(&self.extra_data, EXTRA_DATA_BYTES),
            self.base_fee_per_gas.to_le_bytes::<32>().into(),
            self.block_hash,
            progressive_list_root(&transactions),
        ];
        if fork >= ProtocolFork::Shanghai {
            fields.push(item_list_root(&self.withdrawals));
        }
        if fork >= ProtocolFork::Cancun {
            fields.extend([u64_root(self.blob_gas_used), u64_root(self.excess_blob_gas)]);
        }
        if fork >= ProtocolFork::Amsterdam {
            fields.push(progressive_byte_list_root(&self.block_access_list));
            fields.push(u64_root(self.slot_number));
        }
        progressive_container_root(&fields)
    }
}

impl ExecutionRequests {
    /// The requests as blocks commit to them (EIP-7685): one byte string per type that has any, the
    /// type before its items.
    pub fn to_requests(&self) -> Requests {
        let mut requests = Requests::default();
        push(&mut requests, DEPOSIT_REQUEST_TYPE, &self.deposits);
        push(&mut requests, WITHDRAWAL_REQUEST_TYPE, &self.withdrawals);
        push(&mut requests, CONSOLIDATION_REQUEST_TYPE, &self.consolidations);
        push(&mut requests, BUILDER_DEPOSIT_REQUEST_TYPE, &self.builder_deposits);
        push(&mut requests, BUILDER_EXIT_REQUEST_TYPE, &self.builder_exits);
        requests
    }

    /// Reads what [`Self::to_requests`] makes; the Engine API has requests in this form.
    ///
    /// # Errors
    /// When types are unknown or not ascending, or a type's content is empty or ends within an
    /// item.
    pub fn from_requests(requests: &[Bytes]) -> Result<Self, SszError> {
        let mut read = Self::default();
        let mut previous = None;
        for request in requests {
            let Some((&request_type, items)) = request.split_first().filter(|(_, i)| !i.is_empty())
            else {
                return Err(SszProblem::EmptyRequest.at(AMSTERDAM_REQUESTS.name));
            };
            if previous >= Some(request_type) {
                return Err(SszProblem::RequestType(request_type).at(AMSTERDAM_REQUESTS.name));
            }
            previous = Some(request_type);
            match request_type {
                DEPOSIT_REQUEST_TYPE => read.deposits = read_items("deposits", items)?,
                WITHDRAWAL_REQUEST_TYPE => read.withdrawals = read_items("withdrawals", items)?,
                CONSOLIDATION_REQUEST_TYPE => {
                    read.consolidations = read_items("consolidations", items)?;
                }
                BUILDER_DEPOSIT_REQUEST_TYPE => {
                    read.builder_deposits = read_items("builder_deposits", items)?;
                }
                BUILDER_EXIT_REQUEST_TYPE => {
                    read.builder_exits = read_items("builder_exits", items)?;
                }
                unknown => {
                    return Err(SszProblem::RequestType(unknown).at(AMSTERDAM_REQUESTS.name));
                }
            }
        }
        Ok(read)
    }

    fn read(fork: ProtocolFork, input: &Bytes) -> Result<Self, SszError> {
        let (_, fields) = match fork {
            ProtocolFork::Amsterdam => AMSTERDAM_REQUESTS.split_to(input)?,
            _ => PRAGUE_REQUESTS.split_to(input)?,
        };
        let [deposits, withdrawals, consolidations, builder_deposits, builder_exits] = fields;
        Ok(Self {
            deposits: read_items("deposits", &deposits)?,
            withdrawals: read_items("withdrawals", &withdrawals)?,
            consolidations: read_items("consolidations", &consolidations)?,
            builder_deposits: read_items("builder_deposits", &builder_deposits)?,
            builder_exits: read_items("builder_exits", &builder_exits)?,
        })
    }

    fn ssz_bytes(&self, fork: ProtocolFork) -> usize {
        let fields = self.fields_bytes();
        match fork {
            ProtocolFork::Amsterdam => {
                AMSTERDAM_REQUESTS.fixed_bytes + fields.iter().sum::<usize>()
            }
            _ => PRAGUE_REQUESTS.fixed_bytes + fields[..3].iter().sum::<usize>(),
        }
    }

    fn fields_bytes(&self) -> [usize; 5] {
        [
            DepositRequest::BYTES * self.deposits.len(),
            WithdrawalRequest::BYTES * self.withdrawals.len(),
            ConsolidationRequest::BYTES * self.consolidations.len(),
            BuilderDepositRequest::BYTES * self.builder_deposits.len(),
            BuilderExitRequest::BYTES * self.builder_exits.len(),
        ]
    }

    fn write(&self, fork: ProtocolFork, out: &mut Vec<u8>) {
        let fields = self.fields_bytes();
        let (fixed_bytes, fields) = match fork {
            ProtocolFork::Amsterdam => (AMSTERDAM_REQUESTS.fixed_bytes, &fields[..]),
            _ => (PRAGUE_REQUESTS.fixed_bytes, &fields[..3]),
        };
        let mut offsets = Offsets::behind(fixed_bytes);
        fields.iter().for_each(|&field_bytes| offsets.write(field_bytes, out));
        write_items(&self.deposits, out);
        write_items(&self.withdrawals, out);
        write_items(&self.consolidations, out);
        if fork >= ProtocolFork::Amsterdam {
            write_items(&self.builder_deposits, out);
            write_items(&self.builder_exits, out);
        }
    }

    fn root(&self, fork: ProtocolFork) -> B256 {
        let mut fields = vec![
            item_list_root(&self.deposits),
            item_list_root(&self.withdrawals),
            item_list_root(&self.consolidations),
        ];
        if fork >= ProtocolFork::Amsterdam {
            fields.push(item_list_root(&self.builder_deposits));
            fields.push(item_list_root(&self.builder_exits));
        }
        progressive_container_root(&fields)
    }
}

fn push<T: Item>(requests: &mut Requests, request_type: u8, items: &[T]) {
    if items.is_empty() {
        return;
    }
    let mut request = vec![request_type];
    write_items(items, &mut request);
    requests.push_request(request.into());
}
