//! The SSZ containers of the REST API, read strictly and within bounds, and written.
//!
//! As in execution-apis #793 (`src/engine/refactor-ssz.md` at
//! d39e9a2710bf5f75eddee44fe8c2a6844bea23f0) and, for the witness, #885 at e473f589. One type
//! stands for a container of all forks; a field that a fork lacks is `None` and not on the wire.
//! Reading accepts exactly the bytes that writing makes. It copies what is small and takes slices
//! of the rest; memory is bounded by the length of the input.

mod blobs;

use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{B256, Bytes, FixedBytes, U256};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3,
    ExecutionPayloadV4, ForkchoiceState, PayloadAttributes, PayloadId,
};
use serde::{Deserialize, Serialize};
use witness::container::{
    self, Fixed, Item, Layout, MAX_BYTES, OPTIONAL, Offsets, SszError, SszProblem, UNLIMITED,
    byte_lists_bytes, check_length, read_byte_lists, read_limited, read_optional, write_byte_lists,
    write_items,
};
use witness::ssz::{Lists, Sink};
use witness::{PublicKey, Witness};

pub use blobs::{
    BlobCells, BlobWithCellProofs, KzgProof, write_blobs_v1, write_blobs_v2, write_blobs_v4,
};

use crate::Fork;
use crate::limits::{
    ACCESS_LIST_BYTES, BLOB_BYTES, BLOB_HASHES, BODIES, CELLS, COMMITMENTS, ERROR_BYTES,
    EXTRA_DATA_BYTES, REQUESTS, TRANSACTIONS, WITHDRAWALS, WITNESS_HEADERS, WITNESS_ITEMS,
};

/// `ExecutionPayloadEnvelope`: the body of `POST /payloads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionPayloadEnvelope {
    /// The block.
    pub payload: ExecutionPayload,
    /// The root of the parent beacon block, from Cancun on.
    pub parent_beacon_block_root: Option<B256>,
    /// The EIP-7685 requests, from Prague on.
    pub execution_requests: Option<Vec<Bytes>>,
}

impl ExecutionPayloadEnvelope {
    const BASE: Layout<1> = Layout { name: "envelope", fixed_bytes: 4, variable: [("payload", 0)] };
    const CANCUN: Layout<1> =
        Layout { name: "envelope", fixed_bytes: 36, variable: [("payload", 0)] };
    const PRAGUE: Layout<2> = Layout {
        name: "envelope",
        fixed_bytes: 40,
        variable: [("payload", 0), ("execution_requests", 36)],
    };

    /// Reads the envelope of a fork.
    ///
    /// # Errors
    /// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
    pub fn decode(fork: Fork, input: &Bytes) -> Result<Self, SszError> {
        let (mut fixed, [payload, requests]) = match fork {
            Fork::Paris | Fork::Shanghai => Self::BASE.split_to(input)?,
            Fork::Cancun => Self::CANCUN.split_to(input)?,
            Fork::Prague | Fork::Osaka | Fork::Amsterdam => Self::PRAGUE.split_to(input)?,
        };
        let payload = fixed.behind_offset(read_payload(fork, &payload)?);
        let root = (fork >= Fork::Cancun).then(|| fixed.bytes());
        let requests = (fork >= Fork::Prague).then(|| read_requests(&requests)).transpose()?;
        Ok(Self { payload, parent_beacon_block_root: root, execution_requests: requests })
    }

    /// Writes the envelope of the fork whose fields it has.
    ///
    /// # Errors
    /// When it is longer than offsets reach.
    pub fn encode(&self) -> Result<Vec<u8>, SszError> {
        let requests = self.execution_requests.as_deref();
        encode_envelope(&self.payload, self.parent_beacon_block_root, requests)
    }
}

/// Writes an envelope of the fork whose fields there are.
pub(crate) fn encode_envelope(
    payload: &ExecutionPayload,
    parent_beacon_block_root: Option<B256>,
    requests: Option<&[Bytes]>,
) -> Result<Vec<u8>, SszError> {
    type Envelope = ExecutionPayloadEnvelope;
    let fixed_bytes = match (parent_beacon_block_root, requests) {
        (None, _) => Envelope::BASE.fixed_bytes,
        (Some(_), None) => Envelope::CANCUN.fixed_bytes,
        (Some(_), Some(_)) => Envelope::PRAGUE.fixed_bytes,
    };
    let payload_bytes = payload_bytes(payload);
    let requests_bytes = requests.map_or(0, byte_lists_bytes);
    let mut out = buffer("envelope", fixed_bytes + payload_bytes + requests_bytes)?;
    let mut offsets = Offsets::behind(fixed_bytes);
    offsets.write(payload_bytes, &mut out);
    if let Some(root) = &parent_beacon_block_root {
        root.write(&mut out);
        if requests.is_some() {
            offsets.write(requests_bytes, &mut out);
        }
    }
    write_payload(payload, &mut out);
    if parent_beacon_block_root.is_some() {
        write_byte_lists(requests.unwrap_or_default(), &mut out);
    }
    Ok(out)
}

/// `PayloadStatus`, in JSON `PayloadStatusV1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PayloadStatus {
    /// The status of the block or head.
    pub status: Status,
    /// The last valid block of the branch, as far as that is known.
    pub latest_valid_hash: Option<B256>,
    /// The rule broken.
    pub validation_error: Option<String>,
}

/// The values of `PayloadStatus.status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the specification's names")]
pub enum Status {
    Valid,
    Invalid,
    Syncing,
    Accepted,
    /// The answer of the first version of `engine_newPayload` to a payload that does not hash to
    /// its block hash. In SSZ it is INVALID.
    InvalidBlockHash,
}

impl Status {
    /// The value in SSZ.
    const fn ssz(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Invalid | Self::InvalidBlockHash => 1,
            Self::Syncing => 2,
            Self::Accepted => 3,
        }
    }
}

impl PayloadStatus {
    const LAYOUT: Layout<2> = Layout {
        name: "payload_status",
        fixed_bytes: 9,
        variable: [("latest_valid_hash", 1), ("validation_error", 5)],
    };

    /// Reads a status.
    ///
    /// # Errors
    /// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
    pub fn decode(input: &Bytes) -> Result<Self, SszError> {
        let (mut fixed, [hash, error]) = Self::LAYOUT.split(input)?;
        let status = match fixed.bytes::<1, [u8; 1]>() {
            [0] => Status::Valid,
            [1] => Status::Invalid,
            [2] => Status::Syncing,
            [3] => Status::Accepted,
            [other] => return Err(SszProblem::Value(other).at("status")),
        };
        let limits = container::Limits { item_bytes: ERROR_BYTES, ..OPTIONAL };
        let error = read_byte_lists("validation_error", &error, limits)?.pop();
        let text = |error: Bytes| String::from_utf8(error.into());
        let error = error.map(text).transpose();
        Ok(Self {
            status,
            latest_valid_hash: read_optional("latest_valid_hash", &hash)?,
            validation_error: error.map_err(|_| SszProblem::Text.at("validation_error"))?,
        })
    }

    /// Writes the status; an error that is too long is cut.
    pub fn encode(&self) -> Vec<u8> {
        let error = self.validation_error.as_deref();
        let error = error.map(|text| &text[..text.floor_char_boundary(ERROR_BYTES)]);
        let mut out = vec![self.status.ssz()];
        let mut offsets = Offsets::behind(Self::LAYOUT.fixed_bytes);
        offsets.write(self.latest_valid_hash.map_or(0, |_| B256::BYTES), &mut out);
        offsets.write(0, &mut out);
        write_items(self.latest_valid_hash.as_slice(), &mut out);
        if let Some(error) = error {
            Offsets::behind(4).write(0, &mut out);
            out.extend_from_slice(error.as_bytes());
        }
        out
    }
}

/// A value with its witness: `PayloadStatusWithWitness` of #885, and ours of a built payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithWitness<T> {
    /// The status, or the built payload.
    pub content: T,
    /// The witness, in a VALID answer.
    pub witness: Option<Witness>,
    /// The signers' keys, one a transaction, in order. Some clients send none.
    pub public_keys: Vec<PublicKey>,
}

/// The fields of [`WithWitness`], and those of clients that know no `public_keys`.
const WITH_WITNESS: Layout<3> = Layout {
    name: "payload_status_with_witness",
    fixed_bytes: 12,
    variable: [("payload_status", 0), ("witness", 4), ("public_keys", 8)],
};
const WITHOUT_KEYS: Layout<2> = Layout {
    name: "payload_status_with_witness",
    fixed_bytes: 8,
    variable: [("payload_status", 0), ("witness", 4)],
};

impl<T> WithWitness<T> {
    /// Reads either form, told apart by the first offset: 12, or 8 where there is no field of keys.
    fn read(
        input: &Bytes,
        read: impl FnOnce(&Bytes) -> Result<T, SszError>,
    ) -> Result<Self, SszError> {
        let has_no_keys = input.starts_with(&(WITHOUT_KEYS.fixed_bytes as u32).to_le_bytes());
        let (_, [content, witness, keys]) = match has_no_keys {
            true => WITHOUT_KEYS.split_to(input)?,
            false => WITH_WITNESS.split_to(input)?,
        };
        let witness = read_byte_lists("witness", &witness, OPTIONAL)?.pop();
        let limits = [WITNESS_ITEMS, WITNESS_ITEMS, WITNESS_HEADERS];
        let witness = witness.map(|witness| container::read_witness(&witness, limits));
        Ok(Self {
            content: read(&content)?,
            witness: witness.transpose()?,
            public_keys: read_limited("public_keys", &keys, TRANSACTIONS.items)?,
        })
    }
}

impl WithWitness<PayloadStatus> {
    /// Reads a status and its witness.
    ///
    /// # Errors
    /// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
    pub fn decode(input: &Bytes) -> Result<Self, SszError> {
        Self::read(input, PayloadStatus::decode)
    }
}

impl WithWitness<BuiltPayload> {
    /// Reads a built payload of a fork and its witness.
    ///
    /// # Errors
    /// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
    pub fn decode(fork: Fork, input: &Bytes) -> Result<Self, SszError> {
        Self::read(input, |built| BuiltPayload::decode(fork, built))
    }
}

/// Writes a [`WithWitness`] around `content`, which is written already, as byte strings that follow
/// each other: the witness's large items are among them as they are, uncopied.
///
/// # Errors
/// When it is longer than offsets reach; nothing is written then.
pub fn with_witness_parts(
    content: &[u8],
    witness: Option<&Witness>,
    public_keys: &[PublicKey],
) -> Result<Vec<Bytes>, SszError> {
    let mut parts = Vec::new();
    write_with_witness(content, witness.map(Lists::from), public_keys, &mut parts)?;
    Ok(parts)
}

/// The number of bytes that [`write_with_witness`] hands over.
pub fn with_witness_bytes(
    content: &[u8],
    witness: Option<Lists<'_>>,
    public_keys: &[PublicKey],
) -> usize {
    let witness_bytes = witness.map_or(0, |witness| 4 + witness.encoded_len());
    let keys_bytes = PublicKey::BYTES * public_keys.len();
    WITH_WITNESS.fixed_bytes + content.len() + witness_bytes + keys_bytes
}

/// As [`with_witness_parts`], handed to `sink`.
///
/// # Errors
/// As [`with_witness_parts`].
#[expect(clippy::missing_panics_doc, reason = "the whole length was checked")]
pub fn write_with_witness(
    content: &[u8],
    witness: Option<Lists<'_>>,
    public_keys: &[PublicKey],
    sink: &mut impl Sink,
) -> Result<(), SszError> {
    let all_bytes = with_witness_bytes(content, witness, public_keys);
    check_length(WITH_WITNESS.name, all_bytes, MAX_BYTES)?;
    let keys_bytes = PublicKey::BYTES * public_keys.len();
    let witness_bytes = all_bytes - WITH_WITNESS.fixed_bytes - content.len() - keys_bytes;
    let mut head = Vec::with_capacity(WITH_WITNESS.fixed_bytes + content.len() + 4);
    let mut offsets = Offsets::behind(WITH_WITNESS.fixed_bytes);
    offsets.write(content.len(), &mut head);
    offsets.write(witness_bytes, &mut head);
    offsets.write(keys_bytes, &mut head);
    head.extend_from_slice(content);
    let Some(witness) = witness else {
        write_items(public_keys, &mut head);
        sink.bytes(head);
        return Ok(());
    };
    Offsets::behind(4).write(0, &mut head);
    sink.bytes(head);
    witness.write(sink).expect("the whole length was checked");
    if !public_keys.is_empty() {
        sink.bytes(public_keys.concat());
    }
    Ok(())
}

/// `ForkchoiceUpdate`: the body of `POST /forkchoice`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkchoiceUpdate {
    /// Head, safe and finalized block.
    pub forkchoice_state: ForkchoiceState,
    /// The attributes of the payload to build, if any.
    pub payload_attributes: Option<PayloadAttributes>,
    /// The columns in custody, from Amsterdam on, where they change.
    pub custody_columns: Option<FixedBytes<16>>,
}

impl ForkchoiceUpdate {
    const BASE: Layout<1> = Layout {
        name: "forkchoice_update",
        fixed_bytes: 100,
        variable: [("payload_attributes", 96)],
    };
    const AMSTERDAM: Layout<2> = Layout {
        name: "forkchoice_update",
        fixed_bytes: 104,
        variable: [("payload_attributes", 96), ("custody_columns", 100)],
    };

    /// Reads the update of a fork.
    ///
    /// # Errors
    /// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
    pub fn decode(fork: Fork, input: &Bytes) -> Result<Self, SszError> {
        let (mut fixed, [attributes, columns]) = match fork {
            Fork::Amsterdam => Self::AMSTERDAM.split_to(input)?,
            _ => Self::BASE.split_to(input)?,
        };
        Ok(Self {
            forkchoice_state: ForkchoiceState {
                head_block_hash: fixed.bytes(),
                safe_block_hash: fixed.bytes(),
                finalized_block_hash: fixed.bytes(),
            },
            payload_attributes: read_optional_attributes(fork, &attributes)?,
            custody_columns: read_optional("custody_columns", &columns)?,
        })
    }

    /// Writes the update of a fork; fields that the fork lacks are left out.
    pub fn encode(&self, fork: Fork) -> Vec<u8> {
        let mut attributes = Vec::new();
        if let Some(given) = &self.payload_attributes {
            if fork > Fork::Paris {
                Offsets::behind(4).write(0, &mut attributes);
            }
            write_attributes(fork, given, &mut attributes);
        }
        let ForkchoiceState { head_block_hash, safe_block_hash, finalized_block_hash } =
            self.forkchoice_state;
        let mut out = Vec::new();
        write_items(&[head_block_hash, safe_block_hash, finalized_block_hash], &mut out);
        if fork < Fork::Amsterdam {
            Offsets::behind(Self::BASE.fixed_bytes).write(0, &mut out);
            out.extend_from_slice(&attributes);
            return out;
        }
        let mut offsets = Offsets::behind(Self::AMSTERDAM.fixed_bytes);
        offsets.write(attributes.len(), &mut out);
        offsets.write(0, &mut out);
        out.extend_from_slice(&attributes);
        write_items(self.custody_columns.as_slice(), &mut out);
        out
    }
}

/// `ForkchoiceUpdateResponse`, in JSON the answer to `engine_forkchoiceUpdated`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkchoiceUpdateResponse {
    /// The status of the head.
    pub payload_status: PayloadStatus,
    /// The build that was begun.
    pub payload_id: Option<PayloadId>,
}

impl ForkchoiceUpdateResponse {
    const LAYOUT: Layout<2> = Layout {
        name: "forkchoice_update_response",
        fixed_bytes: 8,
        variable: [("payload_status", 0), ("payload_id", 4)],
    };

    /// Reads an answer.
    ///
    /// # Errors
    /// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
    pub fn decode(input: &Bytes) -> Result<Self, SszError> {
        let (_, [status, id]) = Self::LAYOUT.split(input)?;
        let id: Option<FixedBytes<8>> = read_optional("payload_id", &id)?;
        Ok(Self {
            payload_status: PayloadStatus::decode(&status)?,
            payload_id: id.map(|id| PayloadId::new(id.0)),
        })
    }

    /// Writes the answer.
    pub fn encode(&self) -> Vec<u8> {
        let status = self.payload_status.encode();
        let mut out = Vec::new();
        let mut offsets = Offsets::behind(Self::LAYOUT.fixed_bytes);
        offsets.write(status.len(), &mut out);
        offsets.write(0, &mut out);
        out.extend_from_slice(&status);
        out.extend_from_slice(self.payload_id.as_ref().map_or(&[], |id| id.0.as_slice()));
        out
    }
}

/// `BuiltPayload`: the answer to `GET /payloads/{id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltPayload {
    /// The block.
    pub payload: ExecutionPayload,
    /// The earnings of the fee recipient, in wei.
    pub block_value: U256,
    /// The blobs of its transactions, and whether to prefer the block to a builder's, from Cancun
    /// on.
    pub blobs: Option<(BlobsBundle, bool)>,
    /// The EIP-7685 requests, from Prague on.
    pub execution_requests: Option<Vec<Bytes>>,
}

impl BuiltPayload {
    const BASE: Layout<1> =
        Layout { name: "built_payload", fixed_bytes: 36, variable: [("payload", 0)] };
    const CANCUN: Layout<2> = Layout {
        name: "built_payload",
        fixed_bytes: 41,
        variable: [("payload", 0), ("blobs_bundle", 36)],
    };
    const PRAGUE: Layout<3> = Layout {
        name: "built_payload",
        fixed_bytes: 45,
        variable: [("payload", 0), ("blobs_bundle", 36), ("execution_requests", 40)],
    };

    /// Reads the payload of a fork.
    ///
    /// # Errors
    /// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
    pub fn decode(fork: Fork, input: &Bytes) -> Result<Self, SszError> {
        let (mut fixed, [payload, bundle, requests]) = match fork {
            Fork::Paris | Fork::Shanghai => Self::BASE.split_to(input)?,
            Fork::Cancun => Self::CANCUN.split_to(input)?,
            Fork::Prague | Fork::Osaka | Fork::Amsterdam => Self::PRAGUE.split_to(input)?,
        };
        let payload = fixed.behind_offset(read_payload(fork, &payload)?);
        let block_value = U256::from_le_bytes::<32>(fixed.bytes());
        if fork < Fork::Cancun {
            return Ok(Self { payload, block_value, blobs: None, execution_requests: None });
        }
        let bundle = fixed.behind_offset(BlobsBundle::read(fork, &bundle)?);
        let requests = match fork >= Fork::Prague {
            true => Some(fixed.behind_offset(read_requests(&requests)?)),
            false => None,
        };
        let overrides = fixed.boolean("should_override_builder")?;
        let blobs = Some((bundle, overrides));
        Ok(Self { payload, block_value, blobs, execution_requests: requests })
    }

    /// Writes the payload of the fork whose fields it has.
    ///
    /// # Errors
    /// When it is longer than offsets reach.
    pub fn encode(&self) -> Result<Vec<u8>, SszError> {
        let payload_bytes = payload_bytes(&self.payload);
        let requests = self.execution_requests.as_deref();
        let requests_bytes = requests.map_or(0, byte_lists_bytes);
        let (fixed_bytes, bundle_bytes) = match (&self.blobs, requests) {
            (None, _) => (Self::BASE.fixed_bytes, 0),
            (Some((bundle, _)), None) => (Self::CANCUN.fixed_bytes, bundle.ssz_bytes()),
            (Some((bundle, _)), Some(_)) => (Self::PRAGUE.fixed_bytes, bundle.ssz_bytes()),
        };
        let all_bytes = fixed_bytes + payload_bytes + bundle_bytes + requests_bytes;
        let mut out = buffer("built_payload", all_bytes)?;
        let mut offsets = Offsets::behind(fixed_bytes);
        offsets.write(payload_bytes, &mut out);
        out.extend_from_slice(&self.block_value.to_le_bytes::<32>());
        if let Some((bundle, overrides)) = &self.blobs {
            offsets.write(bundle.ssz_bytes(), &mut out);
            if requests.is_some() {
                offsets.write(requests_bytes, &mut out);
            }
            out.push((*overrides).into());
        }
        write_payload(&self.payload, &mut out);
        if let Some((bundle, _)) = &self.blobs {
            bundle.write(&mut out);
            write_byte_lists(requests.unwrap_or_default(), &mut out);
        }
        Ok(out)
    }
}

/// `BlobsBundleV1` and `V2`, which differ in the number of proofs that they may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobsBundle {
    /// The KZG commitments, one a blob.
    pub commitments: Vec<FixedBytes<48>>,
    /// The proofs: one a blob, from Osaka on one a cell.
    pub proofs: Vec<FixedBytes<48>>,
    /// The blobs, 131,072 bytes each.
    pub blobs: Vec<Bytes>,
}

impl BlobsBundle {
    const LAYOUT: Layout<3> = Layout {
        name: "blobs_bundle",
        fixed_bytes: 12,
        variable: [("commitments", 0), ("proofs", 4), ("blobs", 8)],
    };

    fn read(fork: Fork, input: &Bytes) -> Result<Self, SszError> {
        let (_, [commitments, proofs, blobs]) = Self::LAYOUT.split(input)?;
        let proofs_limit = COMMITMENTS * if fork < Fork::Osaka { 1 } else { CELLS };
        if !blobs.len().is_multiple_of(BLOB_BYTES) {
            let problem = SszProblem::Multiple { got: blobs.len(), item_bytes: BLOB_BYTES };
            return Err(problem.at("blobs"));
        }
        container::check_count("blobs", blobs.len() / BLOB_BYTES, COMMITMENTS)?;
        let starts = (0..blobs.len()).step_by(BLOB_BYTES);
        Ok(Self {
            commitments: read_limited("commitments", &commitments, COMMITMENTS)?,
            proofs: read_limited("proofs", &proofs, proofs_limit)?,
            blobs: starts.map(|start| blobs.slice(start..start + BLOB_BYTES)).collect(),
        })
    }

    fn ssz_bytes(&self) -> usize {
        let points = self.commitments.len() + self.proofs.len();
        Self::LAYOUT.fixed_bytes + 48 * points + BLOB_BYTES * self.blobs.len()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut offsets = Offsets::behind(Self::LAYOUT.fixed_bytes);
        offsets.write(48 * self.commitments.len(), out);
        offsets.write(48 * self.proofs.len(), out);
        offsets.write(0, out);
        write_items(&self.commitments, out);
        write_items(&self.proofs, out);
        self.blobs.iter().for_each(|blob| out.extend_from_slice(blob));
    }
}

/// The one list of a request: `BodiesByHashRequest`, and those of `/blobs/v1` to `v3`.
const HASHES: Layout<1> =
    Layout { name: "request", fixed_bytes: 4, variable: [("block_hashes", 0)] };
const BLOBS: Layout<1> =
    Layout { name: "request", fixed_bytes: 4, variable: [("versioned_hashes", 0)] };
const BLOBS_V4: Layout<1> =
    Layout { name: "request", fixed_bytes: 20, variable: [("versioned_hashes", 0)] };

/// Reads `BodiesByHashRequest`. More hashes than [`BODIES`] are
/// [`TooManyItems`](SszProblem::TooManyItems).
///
/// # Errors
/// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
pub fn read_bodies_request(input: &Bytes) -> Result<Vec<B256>, SszError> {
    let (_, [hashes]) = HASHES.split(input)?;
    read_limited("block_hashes", &hashes, BODIES)
}

/// Reads the request of `POST /blobs/vN`: the versioned hashes, and from the fourth version on
/// which cells are wanted. More hashes than [`BLOB_HASHES`] are
/// [`TooManyItems`](SszProblem::TooManyItems).
///
/// # Errors
/// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
pub fn read_blobs_request(
    version: u8,
    input: &Bytes,
) -> Result<(Vec<B256>, Option<FixedBytes<16>>), SszError> {
    let (mut fixed, [hashes]) = match version {
        1..=3 => BLOBS.split(input)?,
        _ => BLOBS_V4.split(input)?,
    };
    let hashes = fixed.behind_offset(read_limited("versioned_hashes", &hashes, BLOB_HASHES)?);
    Ok((hashes, (version > 3).then(|| fixed.bytes())))
}

/// Writes a request that is a list of hashes: of bodies, or of blobs in versions 1 to 3.
pub fn write_hashes_request(hashes: &[B256]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HASHES.fixed_bytes + B256::BYTES * hashes.len());
    Offsets::behind(HASHES.fixed_bytes).write(0, &mut out);
    write_items(hashes, &mut out);
    out
}

/// `ExecutionPayloadBody`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionPayloadBody {
    /// The transactions in their EIP-2718 form.
    pub transactions: Vec<Bytes>,
    /// The withdrawals, from Shanghai on.
    pub withdrawals: Vec<Withdrawal>,
    /// RLP of the block access list, from Amsterdam on.
    pub block_access_list: Bytes,
}

impl ExecutionPayloadBody {
    const PARIS: Layout<1> =
        Layout { name: "body", fixed_bytes: 4, variable: [("transactions", 0)] };
    const SHANGHAI: Layout<2> = Layout {
        name: "body",
        fixed_bytes: 8,
        variable: [("transactions", 0), ("withdrawals", 4)],
    };
    const AMSTERDAM: Layout<3> = Layout {
        name: "body",
        fixed_bytes: 12,
        variable: [("transactions", 0), ("withdrawals", 4), ("block_access_list", 8)],
    };

    fn read(fork: Fork, input: &Bytes) -> Result<Self, SszError> {
        let (_, [transactions, withdrawals, block_access_list]) = match fork {
            Fork::Paris => Self::PARIS.split_to(input)?,
            Fork::Amsterdam => Self::AMSTERDAM.split_to(input)?,
            _ => Self::SHANGHAI.split_to(input)?,
        };
        check_length("block_access_list", block_access_list.len(), ACCESS_LIST_BYTES)?;
        Ok(Self {
            transactions: read_byte_lists("transactions", &transactions, TRANSACTIONS)?,
            withdrawals: read_limited("withdrawals", &withdrawals, WITHDRAWALS)?,
            block_access_list,
        })
    }

    fn ssz_bytes(&self, fork: Fork) -> usize {
        let mut bytes = Self::PARIS.fixed_bytes + byte_lists_bytes(&self.transactions);
        if fork > Fork::Paris {
            bytes += 4 + Withdrawal::BYTES * self.withdrawals.len();
        }
        if fork >= Fork::Amsterdam {
            bytes += 4 + self.block_access_list.len();
        }
        bytes
    }

    fn write(&self, fork: Fork, out: &mut Vec<u8>) {
        let mut offsets = Offsets::behind(match fork {
            Fork::Paris => Self::PARIS.fixed_bytes,
            Fork::Amsterdam => Self::AMSTERDAM.fixed_bytes,
            _ => Self::SHANGHAI.fixed_bytes,
        });
        offsets.write(byte_lists_bytes(&self.transactions), out);
        if fork > Fork::Paris {
            offsets.write(Withdrawal::BYTES * self.withdrawals.len(), out);
        }
        if fork >= Fork::Amsterdam {
            offsets.write(0, out);
        }
        write_byte_lists(&self.transactions, out);
        if fork > Fork::Paris {
            write_items(&self.withdrawals, out);
        }
        if fork >= Fork::Amsterdam {
            out.extend_from_slice(&self.block_access_list);
        }
    }
}

/// `BodiesResponse`: a body for each block, `None` where it is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodiesResponse {
    /// One entry for each block, in the order of the request.
    pub entries: Vec<Option<ExecutionPayloadBody>>,
}

impl BodiesResponse {
    const LAYOUT: Layout<1> = Layout { name: "bodies", fixed_bytes: 4, variable: [("entries", 0)] };
    const ENTRY: Layout<1> = Layout { name: "entries", fixed_bytes: 5, variable: [("body", 1)] };

    /// Reads an answer for a fork. The body of an entry that is not available is ignored.
    ///
    /// # Errors
    /// When `input` is not exactly such a container, or exceeds a limit; the error names the field.
    pub fn decode(fork: Fork, input: &Bytes) -> Result<Self, SszError> {
        let (_, [entries]) = Self::LAYOUT.split(input)?;
        let limits = container::Limits { items: BODIES, ..UNLIMITED };
        let read = |entry: Bytes| {
            let (mut fixed, [body]) = Self::ENTRY.split(&entry)?;
            let available = fixed.boolean("available")?;
            let body = ExecutionPayloadBody::read(fork, &body)?;
            Ok(available.then_some(body))
        };
        let entries = read_byte_lists("entries", &entries, limits)?;
        Ok(Self { entries: entries.into_iter().map(read).collect::<Result<_, _>>()? })
    }

    /// Writes the answer for a fork.
    ///
    /// # Errors
    /// When it is longer than offsets reach.
    pub fn encode(&self, fork: Fork) -> Result<Vec<u8>, SszError> {
        let zero = ExecutionPayloadBody::default();
        let body = |entry: &Option<ExecutionPayloadBody>| {
            4 + Self::ENTRY.fixed_bytes + entry.as_ref().unwrap_or(&zero).ssz_bytes(fork)
        };
        let entries_bytes: usize = self.entries.iter().map(body).sum();
        let mut out = buffer("bodies", Self::LAYOUT.fixed_bytes + entries_bytes)?;
        Offsets::behind(Self::LAYOUT.fixed_bytes).write(0, &mut out);
        let mut offsets = Offsets::behind(4 * self.entries.len());
        self.entries.iter().for_each(|entry| offsets.write(body(entry) - 4, &mut out));
        for entry in &self.entries {
            out.push(entry.is_some().into());
            Offsets::behind(Self::ENTRY.fixed_bytes).write(0, &mut out);
            entry.as_ref().unwrap_or(&zero).write(fork, &mut out);
        }
        Ok(out)
    }
}

const PAYLOAD_PARIS: Layout<2> = Layout {
    name: "payload",
    fixed_bytes: 508,
    variable: [("extra_data", 436), ("transactions", 504)],
};
const PAYLOAD_SHANGHAI: Layout<3> = Layout {
    name: "payload",
    fixed_bytes: 512,
    variable: [("extra_data", 436), ("transactions", 504), ("withdrawals", 508)],
};
const PAYLOAD_CANCUN: Layout<3> = Layout { fixed_bytes: 528, ..PAYLOAD_SHANGHAI };
const PAYLOAD_AMSTERDAM: Layout<4> = Layout {
    name: "payload",
    fixed_bytes: 540,
    variable: [
        ("extra_data", 436),
        ("transactions", 504),
        ("withdrawals", 508),
        ("block_access_list", 528),
    ],
};

fn read_payload(fork: Fork, input: &Bytes) -> Result<ExecutionPayload, SszError> {
    let (mut fixed, [extra_data, transactions, withdrawals, block_access_list]) = match fork {
        Fork::Paris => PAYLOAD_PARIS.split_to(input)?,
        Fork::Shanghai => PAYLOAD_SHANGHAI.split_to(input)?,
        Fork::Cancun | Fork::Prague | Fork::Osaka => PAYLOAD_CANCUN.split_to(input)?,
        Fork::Amsterdam => PAYLOAD_AMSTERDAM.split_to(input)?,
    };
    check_length("extra_data", extra_data.len(), EXTRA_DATA_BYTES)?;
    check_length("block_access_list", block_access_list.len(), ACCESS_LIST_BYTES)?;
    let transactions = read_byte_lists("transactions", &transactions, TRANSACTIONS)?;
    let withdrawals = read_limited("withdrawals", &withdrawals, WITHDRAWALS)?;
    let first = ExecutionPayloadV1 {
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
        transactions: fixed.behind_offset(transactions),
    };
    let withdrawals = (fork >= Fork::Shanghai).then(|| fixed.behind_offset(withdrawals));
    let blob_gas = (fork >= Fork::Cancun).then(|| [fixed.u64(), fixed.u64()]);
    let list = (fork >= Fork::Amsterdam).then(|| fixed.behind_offset(block_access_list));
    let slot_number = (fork >= Fork::Amsterdam).then(|| fixed.u64());
    Ok(payload_of_fields(first, withdrawals, blob_gas, list.zip(slot_number)))
}

/// The payload of the structure whose fields there are: `blob_gas` used and in excess, and what
/// Amsterdam adds, the access list and the slot.
pub(crate) fn payload_of_fields(
    first: ExecutionPayloadV1,
    withdrawals: Option<Vec<Withdrawal>>,
    blob_gas: Option<[u64; 2]>,
    amsterdam: Option<(Bytes, u64)>,
) -> ExecutionPayload {
    let Some(withdrawals) = withdrawals else { return ExecutionPayload::V1(first) };
    let second = ExecutionPayloadV2 { payload_inner: first, withdrawals };
    let Some([blob_gas_used, excess_blob_gas]) = blob_gas else {
        return ExecutionPayload::V2(second);
    };
    let third = ExecutionPayloadV3 { payload_inner: second, blob_gas_used, excess_blob_gas };
    let Some((block_access_list, slot_number)) = amsterdam else {
        return ExecutionPayload::V3(third);
    };
    ExecutionPayload::V4(ExecutionPayloadV4 {
        payload_inner: third,
        block_access_list,
        slot_number,
    })
}

fn payload_bytes(payload: &ExecutionPayload) -> usize {
    let first = payload.as_v1();
    let mut bytes = PAYLOAD_PARIS.fixed_bytes;
    bytes += first.extra_data.len() + byte_lists_bytes(&first.transactions);
    if let Some(second) = payload.as_v2() {
        bytes += 4 + Withdrawal::BYTES * second.withdrawals.len();
    }
    if payload.as_v3().is_some() {
        bytes += 2 * 8;
    }
    if let Some(fourth) = payload.as_v4() {
        bytes += 4 + 8 + fourth.block_access_list.len();
    }
    bytes
}

fn write_payload(payload: &ExecutionPayload, out: &mut Vec<u8>) {
    let first = payload.as_v1();
    let withdrawals = payload.as_v2().map(|second| &second.withdrawals[..]);
    let fourth = payload.as_v4();
    let mut offsets = Offsets::behind(match payload {
        ExecutionPayload::V1(_) => PAYLOAD_PARIS.fixed_bytes,
        ExecutionPayload::V2(_) => PAYLOAD_SHANGHAI.fixed_bytes,
        ExecutionPayload::V3(_) => PAYLOAD_CANCUN.fixed_bytes,
        ExecutionPayload::V4(_) => PAYLOAD_AMSTERDAM.fixed_bytes,
    });
    out.extend_from_slice(first.parent_hash.as_slice());
    out.extend_from_slice(first.fee_recipient.as_slice());
    out.extend_from_slice(first.state_root.as_slice());
    out.extend_from_slice(first.receipts_root.as_slice());
    out.extend_from_slice(first.logs_bloom.as_slice());
    out.extend_from_slice(first.prev_randao.as_slice());
    for number in [first.block_number, first.gas_limit, first.gas_used, first.timestamp] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    offsets.write(first.extra_data.len(), out);
    out.extend_from_slice(&first.base_fee_per_gas.to_le_bytes::<32>());
    out.extend_from_slice(first.block_hash.as_slice());
    offsets.write(byte_lists_bytes(&first.transactions), out);
    if let Some(withdrawals) = withdrawals {
        offsets.write(Withdrawal::BYTES * withdrawals.len(), out);
    }
    if let Some(third) = payload.as_v3() {
        out.extend_from_slice(&third.blob_gas_used.to_le_bytes());
        out.extend_from_slice(&third.excess_blob_gas.to_le_bytes());
    }
    if let Some(fourth) = fourth {
        offsets.write(fourth.block_access_list.len(), out);
        out.extend_from_slice(&fourth.slot_number.to_le_bytes());
    }
    out.extend_from_slice(&first.extra_data);
    write_byte_lists(&first.transactions, out);
    write_items(withdrawals.unwrap_or_default(), out);
    out.extend_from_slice(fourth.map_or(&[][..], |fourth| &fourth.block_access_list));
}

fn read_requests(input: &Bytes) -> Result<Vec<Bytes>, SszError> {
    read_byte_lists("execution_requests", input, REQUESTS)
}

/// Bytes of Paris's attributes, which have a fixed size and so no offset inside their option.
const ATTRIBUTES_BYTES: usize = 8 + 32 + 20;

const ATTRIBUTES_SHANGHAI: Layout<1> = Layout {
    name: "payload_attributes",
    fixed_bytes: ATTRIBUTES_BYTES + 4,
    variable: [("withdrawals", ATTRIBUTES_BYTES)],
};
const ATTRIBUTES_CANCUN: Layout<1> = Layout { fixed_bytes: 96, ..ATTRIBUTES_SHANGHAI };
const ATTRIBUTES_AMSTERDAM: Layout<1> = Layout { fixed_bytes: 112, ..ATTRIBUTES_SHANGHAI };

fn read_optional_attributes(
    fork: Fork,
    input: &Bytes,
) -> Result<Option<PayloadAttributes>, SszError> {
    if fork > Fork::Paris {
        let found = read_byte_lists("payload_attributes", input, OPTIONAL)?.pop();
        return found.map(|attributes| read_attributes(fork, &attributes)).transpose();
    }
    if input.is_empty() {
        return Ok(None);
    }
    let mut fixed = Fixed::exact("payload_attributes", input, ATTRIBUTES_BYTES)?;
    Ok(Some(read_first_attributes(&mut fixed)))
}

fn read_first_attributes(fixed: &mut Fixed<'_>) -> PayloadAttributes {
    PayloadAttributes {
        timestamp: fixed.u64(),
        prev_randao: fixed.bytes(),
        suggested_fee_recipient: fixed.bytes(),
        ..PayloadAttributes::default()
    }
}

/// Reads the attributes of a fork from Shanghai on.
fn read_attributes(fork: Fork, input: &Bytes) -> Result<PayloadAttributes, SszError> {
    let (mut fixed, [withdrawals]) = match fork {
        Fork::Paris | Fork::Shanghai => ATTRIBUTES_SHANGHAI.split(input)?,
        Fork::Cancun | Fork::Prague | Fork::Osaka => ATTRIBUTES_CANCUN.split(input)?,
        Fork::Amsterdam => ATTRIBUTES_AMSTERDAM.split(input)?,
    };
    let first = read_first_attributes(&mut fixed);
    let withdrawals = read_limited("withdrawals", &withdrawals, WITHDRAWALS)?;
    Ok(PayloadAttributes {
        withdrawals: Some(fixed.behind_offset(withdrawals)),
        parent_beacon_block_root: (fork >= Fork::Cancun).then(|| fixed.bytes()),
        slot_number: (fork >= Fork::Amsterdam).then(|| fixed.u64()),
        target_gas_limit: (fork >= Fork::Amsterdam).then(|| fixed.u64()),
        ..first
    })
}

fn write_attributes(fork: Fork, attributes: &PayloadAttributes, out: &mut Vec<u8>) {
    out.extend_from_slice(&attributes.timestamp.to_le_bytes());
    out.extend_from_slice(attributes.prev_randao.as_slice());
    out.extend_from_slice(attributes.suggested_fee_recipient.as_slice());
    if fork == Fork::Paris {
        return;
    }
    let layout = match fork {
        Fork::Paris | Fork::Shanghai => ATTRIBUTES_SHANGHAI,
        Fork::Cancun | Fork::Prague | Fork::Osaka => ATTRIBUTES_CANCUN,
        Fork::Amsterdam => ATTRIBUTES_AMSTERDAM,
    };
    Offsets::behind(layout.fixed_bytes).write(0, out);
    if fork >= Fork::Cancun {
        attributes.parent_beacon_block_root.unwrap_or_default().write(out);
    }
    if fork >= Fork::Amsterdam {
        for number in [attributes.slot_number, attributes.target_gas_limit] {
            out.extend_from_slice(&number.unwrap_or_default().to_le_bytes());
        }
    }
    write_items(attributes.withdrawals.as_deref().unwrap_or_default(), out);
}

/// A buffer for this many bytes, if offsets reach that far.
fn buffer(container: &'static str, bytes: usize) -> Result<Vec<u8>, SszError> {
    check_length(container, bytes, MAX_BYTES)?;
    Ok(Vec::with_capacity(bytes))
}

#[cfg(test)]
mod tests;
