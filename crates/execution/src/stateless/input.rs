//! The private input of a stateless validation: a payload, its witness and its public keys.
//!
//! `StatelessInput` of EIP-8025 (EIPs f767a1e8), as SSZ behind the two bytes of [`SCHEMA_ID`]. The
//! same schema is in execution-specs `forks/amsterdam/stateless_ssz.py` at 3f042e0b and, generated
//! from annotations, in `stateless.py` at c1200883. The builder requests are EIP-8282 (EIPs
//! 036365cb).
//!
//! Progressive lists and containers serialise like plain ones and have no capacity; they differ in
//! the root. `NewPayloadRequest` and `StatelessInput` themselves are plain containers.

use super::merkle::{
    byte_list_root, byte_vector_root, container_root, item_list_root, progressive_byte_list_root,
    progressive_container_root, progressive_list_root, u64_root,
};
use crate::{PublicKey, SealedBlock};
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
use witness::Witness;
use witness::container::{
    self, Item, Layout, Limits, Offsets, SszError, SszProblem, UNLIMITED, byte_lists_bytes,
    read_byte_lists, read_items, read_witness, write_byte_lists, write_items,
};

/// The schema read and written here: fork 0x15 (Amsterdam), revision 1. Big-endian before an input.
pub const SCHEMA_ID: u16 = 0x1501;

/// Bytes of extra data in a block: the `MAX_EXTRA_DATA_BYTES` of EIP-8025.
pub const EXTRA_DATA_BYTES: usize = 32;

/// Bytes of one trie node, `MAX_BYTES_PER_WITNESS_NODE` of EIP-8025: a full branch has 532.
pub const NODE_BYTES: usize = 1 << 10;

/// Bytes of one contract code, `MAX_BYTES_PER_CODE` of EIP-8025: the limit of EIP-7954.
pub const CODE_BYTES: usize = 1 << 16;

/// Bytes of one header, `MAX_BYTES_PER_HEADER` of EIP-8025.
pub const HEADER_BYTES: usize = 1 << 10;

/// Headers in a witness, `MAX_WITNESS_HEADERS` of EIP-8025: the reach of `BLOCKHASH`.
pub const HEADERS: usize = 256;

/// Bytes of SSZ in an input: its offsets are 32 bits wide.
pub const INPUT_BYTES: usize = container::MAX_BYTES;

const STATE_LIMITS: Limits = Limits { items: usize::MAX, item_bytes: NODE_BYTES };
const CODES_LIMITS: Limits = Limits { items: usize::MAX, item_bytes: CODE_BYTES };
const HEADERS_LIMITS: Limits = Limits { items: HEADERS, item_bytes: HEADER_BYTES };
const WITNESS_LIMITS: [Limits; 3] = [STATE_LIMITS, CODES_LIMITS, HEADERS_LIMITS];

const INPUT: Layout<3> = Layout {
    name: "stateless_input",
    fixed_bytes: 20,
    variable: [("new_payload_request", 0), ("witness", 4), ("public_keys", 16)],
};

const REQUEST: Layout<3> = Layout {
    name: "new_payload_request",
    fixed_bytes: 44,
    variable: [("execution_payload", 0), ("versioned_hashes", 4), ("execution_requests", 40)],
};

const PAYLOAD: Layout<4> = Layout {
    name: "execution_payload",
    fixed_bytes: 540,
    variable: [
        ("extra_data", 436),
        ("transactions", 504),
        ("withdrawals", 508),
        ("block_access_list", 528),
    ],
};

const EXECUTION_REQUESTS: Layout<5> = Layout {
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

/// The input of a stateless validation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatelessInput {
    /// The payload to validate and what the consensus layer says of it.
    pub new_payload_request: NewPayloadRequest,
    /// The part of the state that the payload's execution needs.
    pub witness: Witness,
    /// The chain that the payload is for.
    pub chain_id: u64,
    /// The signers' public keys, one per transaction in payload order. Decoding checks neither
    /// their count nor their content: a user of a key must verify it against the signature and
    /// its recovery id.
    pub public_keys: Vec<PublicKey>,
}

/// The Engine API's request to validate a payload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewPayloadRequest {
    /// The block.
    pub execution_payload: ExecutionPayload,
    /// Versioned hashes of all blobs (EIP-4844), in order of the transactions.
    pub versioned_hashes: Vec<B256>,
    /// Root of the parent beacon block (EIP-4788).
    pub parent_beacon_block_root: B256,
    /// The requests of the execution layer to the consensus layer.
    pub execution_requests: ExecutionRequests,
}

/// An Amsterdam block as the Engine API has it (`ExecutionPayloadV4`).
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
    pub withdrawals: Vec<Withdrawal>,
    pub blob_gas_used: u64,
    pub excess_blob_gas: u64,
    /// RLP of the block access list (EIP-7928).
    pub block_access_list: Bytes,
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
    /// Builder deposits (EIP-8282), type 3.
    pub builder_deposits: Vec<BuilderDepositRequest>,
    /// Builder exits (EIP-8282), type 4.
    pub builder_exits: Vec<BuilderExitRequest>,
}

impl StatelessInput {
    /// Reads an input; its byte strings are slices of `input`.
    ///
    /// Memory is bounded by the length of `input`: at most eight times as much beside it.
    ///
    /// # Errors
    /// When `input` is not what [`Self::encode`] makes of any value.
    pub fn decode(input: &Bytes) -> Result<Self, SszError> {
        let Some(schema) = input.first_chunk() else {
            return Err(SszProblem::Length { got: input.len(), expected: 2 }.at("schema_id"));
        };
        let got = u16::from_be_bytes(*schema);
        if got != SCHEMA_ID {
            return Err(SszProblem::Schema { got, expected: SCHEMA_ID }.at("schema_id"));
        }
        let body = input.slice(schema.len()..);
        let (mut fixed, [request, witness, public_keys]) = INPUT.split(&body)?;
        Ok(Self {
            new_payload_request: fixed.behind_offset(NewPayloadRequest::read(&request)?),
            // These limits are not those of the witness endpoint.
            witness: fixed.behind_offset(read_witness(&witness, WITNESS_LIMITS)?),
            chain_id: fixed.u64(),
            public_keys: fixed.behind_offset(read_items("public_keys", &public_keys)?),
        })
    }

    /// The encoding in one buffer.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn encode(&self) -> Result<Vec<u8>, SszError> {
        self.check()?;
        let mut out = Vec::with_capacity(size_of::<u16>() + self.ssz_bytes());
        self.write(&mut |part| out.extend_from_slice(part))?;
        Ok(out)
    }

    /// Hands the encoding to `sink` slice by slice, in order; the witness's items are passed as
    /// they are, uncopied.
    ///
    /// # Errors
    /// When the input breaks a limit of the schema; nothing has been written then.
    #[expect(clippy::missing_panics_doc, reason = "the whole length was checked")]
    pub fn write(&self, sink: &mut impl FnMut(&[u8])) -> Result<(), SszError> {
        self.check()?;
        sink(&self.before_witness());
        witness::ssz::write(&self.witness, sink).expect("the whole length was checked");
        self.public_keys.iter().for_each(|key| sink(key.as_slice()));
        Ok(())
    }

    /// The encoding as byte strings that follow each other, to be sent without being joined: the
    /// witness's large items are among them as they are, uncopied.
    ///
    /// # Errors
    /// As for [`Self::write`].
    #[expect(clippy::missing_panics_doc, reason = "the whole length was checked")]
    pub fn parts(&self) -> Result<Vec<Bytes>, SszError> {
        self.check()?;
        let mut parts = vec![self.before_witness().into()];
        let witness = witness::ssz::parts(&self.witness);
        parts.extend(witness.expect("the whole length was checked"));
        parts.push(self.public_keys.concat().into());
        Ok(parts)
    }

    /// The schema id, the fixed-size part and the request.
    fn before_witness(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&SCHEMA_ID.to_be_bytes());
        let mut offsets = Offsets::behind(INPUT.fixed_bytes);
        offsets.write(self.new_payload_request.ssz_bytes(), &mut out);
        offsets.write(witness::ssz::encoded_len(&self.witness), &mut out);
        out.extend_from_slice(&self.chain_id.to_le_bytes());
        offsets.write(0, &mut out);
        self.new_payload_request.write(&mut out);
        out
    }

    /// Bytes of the encoding behind the schema id.
    fn ssz_bytes(&self) -> usize {
        INPUT.fixed_bytes
            + self.new_payload_request.ssz_bytes()
            + witness::ssz::encoded_len(&self.witness)
            + PublicKey::BYTES * self.public_keys.len()
    }

    fn check(&self) -> Result<(), SszError> {
        let extra_data = &self.new_payload_request.execution_payload.extra_data;
        container::check_length("extra_data", extra_data.len(), EXTRA_DATA_BYTES)?;
        let lists = self.witness.lists().into_iter().zip(WITNESS_LIMITS);
        for ((items, limits), field) in lists.zip(["state", "codes", "headers"]) {
            limits.check(field, items)?;
        }
        container::check_length(INPUT.name, self.ssz_bytes(), INPUT_BYTES)
    }
}

impl NewPayloadRequest {
    /// The request that describes an Amsterdam block with these requests (EIP-7685) and this
    /// access list, as RLP.
    ///
    /// # Errors
    /// When a field of Amsterdam's header is missing, or the requests are not well formed.
    pub fn of_block(
        block: &SealedBlock,
        requests: &[Bytes],
        block_access_list: Bytes,
    ) -> Result<Self, SszError> {
        let header = &block.header;
        let missing = |field| SszProblem::Missing.at(field);
        let base_fee = header.base_fee_per_gas.ok_or(missing("base_fee_per_gas"))?;
        let withdrawals = block.body.withdrawals.clone().ok_or(missing("withdrawals"))?;
        let transactions = &block.body.transactions;
        let execution_payload = ExecutionPayload {
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
            base_fee_per_gas: U256::from(base_fee),
            block_hash: block.hash(),
            transactions: transactions.iter().map(|tx| tx.encoded_2718().into()).collect(),
            withdrawals: withdrawals.into_inner(),
            blob_gas_used: header.blob_gas_used.ok_or(missing("blob_gas_used"))?,
            excess_blob_gas: header.excess_blob_gas.ok_or(missing("excess_blob_gas"))?,
            block_access_list,
            slot_number: header.slot_number.ok_or(missing("slot_number"))?,
        };
        let root = header.parent_beacon_block_root;
        let hashes = transactions.iter().flat_map(|tx| tx.blob_versioned_hashes());
        Ok(Self {
            execution_payload,
            versioned_hashes: hashes.flatten().copied().collect(),
            parent_beacon_block_root: root.ok_or(missing("parent_beacon_block_root"))?,
            execution_requests: ExecutionRequests::from_requests(requests)?,
        })
    }

    /// The SSZ root: what a stateless validation makes public of its input.
    ///
    /// A request whose extra data is too long to be encoded has a root that no valid one has.
    pub fn hash_tree_root(&self) -> B256 {
        container_root(&[
            self.execution_payload.root(),
            item_list_root(&self.versioned_hashes),
            self.parent_beacon_block_root,
            self.execution_requests.root(),
        ])
    }

    fn read(input: &Bytes) -> Result<Self, SszError> {
        let (mut fixed, [payload, versioned_hashes, requests]) = REQUEST.split(input)?;
        Ok(Self {
            execution_payload: fixed.behind_offset(ExecutionPayload::read(&payload)?),
            versioned_hashes: fixed
                .behind_offset(read_items("versioned_hashes", &versioned_hashes)?),
            parent_beacon_block_root: fixed.bytes(),
            execution_requests: fixed.behind_offset(ExecutionRequests::read(&requests)?),
        })
    }

    fn ssz_bytes(&self) -> usize {
        REQUEST.fixed_bytes
            + self.execution_payload.ssz_bytes()
            + B256::BYTES * self.versioned_hashes.len()
            + self.execution_requests.ssz_bytes()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut offsets = Offsets::behind(REQUEST.fixed_bytes);
        offsets.write(self.execution_payload.ssz_bytes(), out);
        offsets.write(B256::BYTES * self.versioned_hashes.len(), out);
        out.extend_from_slice(self.parent_beacon_block_root.as_slice());
        offsets.write(self.execution_requests.ssz_bytes(), out);
        self.execution_payload.write(out);
        write_items(&self.versioned_hashes, out);
        self.execution_requests.write(out);
    }
}

impl ExecutionPayload {
    fn read(input: &Bytes) -> Result<Self, SszError> {
        let (mut fixed, fields) = PAYLOAD.split(input)?;
        let [extra_data, transactions, withdrawals, block_access_list] = fields;
        container::check_length("extra_data", extra_data.len(), EXTRA_DATA_BYTES)?;
        Ok(Self {
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
            withdrawals: fixed.behind_offset(read_items("withdrawals", &withdrawals)?),
            blob_gas_used: fixed.u64(),
            excess_blob_gas: fixed.u64(),
            block_access_list: fixed.behind_offset(block_access_list),
            slot_number: fixed.u64(),
        })
    }

    fn ssz_bytes(&self) -> usize {
        PAYLOAD.fixed_bytes
            + self.extra_data.len()
            + byte_lists_bytes(&self.transactions)
            + Withdrawal::BYTES * self.withdrawals.len()
            + self.block_access_list.len()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut offsets = Offsets::behind(PAYLOAD.fixed_bytes);
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
        offsets.write(Withdrawal::BYTES * self.withdrawals.len(), out);
        out.extend_from_slice(&self.blob_gas_used.to_le_bytes());
        out.extend_from_slice(&self.excess_blob_gas.to_le_bytes());
        offsets.write(self.block_access_list.len(), out);
        out.extend_from_slice(&self.slot_number.to_le_bytes());
        out.extend_from_slice(&self.extra_data);
        write_byte_lists(&self.transactions, out);
        write_items(&self.withdrawals, out);
        out.extend_from_slice(&self.block_access_list);
    }

    fn root(&self) -> B256 {
        let transactions: Vec<B256> =
            self.transactions.iter().map(|bytes| progressive_byte_list_root(bytes)).collect();
        progressive_container_root(&[
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
            item_list_root(&self.withdrawals),
            u64_root(self.blob_gas_used),
            u64_root(self.excess_blob_gas),
            progressive_byte_list_root(&self.block_access_list),
            u64_root(self.slot_number),
        ])
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
                return Err(SszProblem::EmptyRequest.at(EXECUTION_REQUESTS.name));
            };
            if previous >= Some(request_type) {
                return Err(SszProblem::RequestType(request_type).at(EXECUTION_REQUESTS.name));
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
                    return Err(SszProblem::RequestType(unknown).at(EXECUTION_REQUESTS.name));
                }
            }
        }
        Ok(read)
    }

    fn read(input: &Bytes) -> Result<Self, SszError> {
        let (_, fields) = EXECUTION_REQUESTS.split(input)?;
        let [deposits, withdrawals, consolidations, builder_deposits, builder_exits] = fields;
        Ok(Self {
            deposits: read_items("deposits", &deposits)?,
            withdrawals: read_items("withdrawals", &withdrawals)?,
            consolidations: read_items("consolidations", &consolidations)?,
            builder_deposits: read_items("builder_deposits", &builder_deposits)?,
            builder_exits: read_items("builder_exits", &builder_exits)?,
        })
    }

    fn ssz_bytes(&self) -> usize {
        EXECUTION_REQUESTS.fixed_bytes + self.fields_bytes().iter().sum::<usize>()
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

    fn write(&self, out: &mut Vec<u8>) {
        let mut offsets = Offsets::behind(EXECUTION_REQUESTS.fixed_bytes);
        self.fields_bytes().iter().for_each(|&field_bytes| offsets.write(field_bytes, out));
        write_items(&self.deposits, out);
        write_items(&self.withdrawals, out);
        write_items(&self.consolidations, out);
        write_items(&self.builder_deposits, out);
        write_items(&self.builder_exits, out);
    }

    fn root(&self) -> B256 {
        progressive_container_root(&[
            item_list_root(&self.deposits),
            item_list_root(&self.withdrawals),
            item_list_root(&self.consolidations),
            item_list_root(&self.builder_deposits),
            item_list_root(&self.builder_exits),
        ])
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

#[cfg(test)]
mod tests;
