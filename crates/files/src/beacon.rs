//! Execution payloads in SSZ `SignedBeaconBlock`s, from Bellatrix to Fulu.
//!
//! The offset of the body's first variable-size field identifies the fork: each fork has added to
//! the fixed-size part (consensus-specs `specs/*/beacon-chain.md` at v1.6.0, `BeaconBlockBody`).
//! The block hash then proves that everything was decoded correctly.

use alloy_eips::eip4844::kzg_to_versioned_hash;
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{B256, Bytes, U256};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3,
};

use crate::seal::PayloadParameters;

/// The parts of a beacon block that execution needs.
pub(super) struct BeaconBlock {
    pub(super) slot: u64,
    pub(super) payload: Payload,
}

/// The payload of a beacon block.
pub(super) enum Payload {
    /// There is none before the merge.
    None,
    /// That of a block below the first one requested, with its number: it is not read.
    Below(u64),
    Whole(Box<ExecutionPayload>, PayloadParameters),
}

/// The offset of `proposer_slashings` in each fork, with the mainnet preset.
const PHASE0: usize = 220;
const ALTAIR: usize = 380;
const BELLATRIX: usize = 384;
const CAPELLA: usize = 388;
const DENEB: usize = 392;
/// Electra and Fulu.
const ELECTRA: usize = 396;

/// Offsets in a body's fixed-size part.
const PROPOSER_SLASHINGS_AT: usize = 200;
const EXECUTION_PAYLOAD_AT: usize = 380;
const CHANGES_AT: usize = 384;
const COMMITMENTS_AT: usize = 388;
const REQUESTS_AT: usize = 392;

/// Offsets in a payload.
const BLOCK_NUMBER_AT: usize = 404;
const BLOCK_HASH_AT: usize = 472;

const COMMITMENT_BYTES: usize = 48;
const WITHDRAWAL_BYTES: usize = 44;

/// The sizes of a deposit, a withdrawal and a consolidation request in bytes.
const REQUEST_BYTES: [usize; 3] = [192, 76, 116];

impl BeaconBlock {
    /// Reads an SSZ `SignedBeaconBlock`. The payload of a block below `first` is not read.
    pub(super) fn read(ssz: &[u8], first: u64) -> Result<Self, String> {
        // message offset, signature
        let signed = Container { name: "SignedBeaconBlock", bytes: ssz };
        let [message] = signed.parts([0], 100)?;
        // slot, proposer_index, parent_root, state_root, body offset
        let block = Container { name: "BeaconBlock", bytes: message };
        let [body] = block.parts([80], 84)?;
        let slot = block.number(0)?;
        let parent_root = B256::from(block.fixed(16)?);
        let body = Container { name: "BeaconBlockBody", bytes: body };
        let fork = body.offset(PROPOSER_SLASHINGS_AT)?;
        let payload = match fork {
            PHASE0 | ALTAIR => Payload::None,
            BELLATRIX | CAPELLA | DENEB | ELECTRA => {
                let body = Body { fork, parent_root, body };
                body.payload(first).map_err(|problem| format!("slot {slot}: {problem}"))?
            }
            other => {
                return Err(format!(
                    "slot {slot}: a BeaconBlockBody whose fixed-size part has {other} bytes: \
                     none from phase0 to Fulu has"
                ));
            }
        };
        Ok(Self { slot, payload })
    }
}

struct Body<'a> {
    fork: usize,
    parent_root: B256,
    body: Container<'a>,
}

impl Body<'_> {
    fn payload(&self, first: u64) -> Result<Payload, String> {
        let Self { fork, parent_root, body } = *self;
        let mut parts: [&[u8]; 4] = [&[]; 4];
        match fork {
            BELLATRIX => parts[..1].copy_from_slice(&body.parts([EXECUTION_PAYLOAD_AT], 0)?),
            CAPELLA => {
                let places = [EXECUTION_PAYLOAD_AT, CHANGES_AT];
                parts[..2].copy_from_slice(&body.parts(places, 0)?);
            }
            DENEB => {
                let places = [EXECUTION_PAYLOAD_AT, CHANGES_AT, COMMITMENTS_AT];
                parts[..3].copy_from_slice(&body.parts(places, 0)?);
            }
            _ => {
                let places = [EXECUTION_PAYLOAD_AT, CHANGES_AT, COMMITMENTS_AT, REQUESTS_AT];
                parts = body.parts(places, 0)?;
            }
        }
        let [payload, _, commitments, lists] = parts;
        let payload = Container { name: "ExecutionPayload", bytes: payload };
        let Some(execution) = execution(&payload, fork, first)? else {
            let is_none = B256::from(payload.fixed(BLOCK_HASH_AT)?).is_zero();
            let number = payload.number(BLOCK_NUMBER_AT)?;
            return Ok(if is_none { Payload::None } else { Payload::Below(number) });
        };
        let mut beside = PayloadParameters::default();
        if fork >= DENEB {
            let bytes = commitments.len();
            if bytes % COMMITMENT_BYTES != 0 {
                return Err(format!("blob_kzg_commitments of {bytes} bytes"));
            }
            let commitments = commitments.chunks(COMMITMENT_BYTES);
            beside.versioned_hashes = Some(commitments.map(kzg_to_versioned_hash).collect());
            beside.beacon_root = Some(parent_root);
        }
        if fork >= ELECTRA {
            beside.requests = Some(requests(lists)?);
        }
        Ok(Payload::Whole(execution.into(), beside))
    }
}

/// The fields of the payload; `None` for the empty payload before the merge, and for that of a
/// block below `first`.
fn execution(
    payload: &Container<'_>,
    fork: usize,
    first: u64,
) -> Result<Option<ExecutionPayload>, String> {
    const EXTRA_DATA_AT: usize = 436;
    const TRANSACTIONS_AT: usize = 504;
    const WITHDRAWALS_AT: usize = 508;
    let (extra_data, transactions, mut withdrawals): (_, _, &[u8]) = match fork {
        BELLATRIX => {
            let [extra_data, list] = payload.parts([EXTRA_DATA_AT, TRANSACTIONS_AT], 508)?;
            (extra_data, list, &[])
        }
        _ => {
            let places = [EXTRA_DATA_AT, TRANSACTIONS_AT, WITHDRAWALS_AT];
            let fixed_bytes = if fork == CAPELLA { 512 } else { 528 };
            let [extra_data, list, withdrawals] = payload.parts(places, fixed_bytes)?;
            (extra_data, list, withdrawals)
        }
    };
    let block_hash = B256::from(payload.fixed(BLOCK_HASH_AT)?);
    let block_number = payload.number(BLOCK_NUMBER_AT)?;
    if block_hash.is_zero() || block_number < first {
        return Ok(None);
    }
    let inner = ExecutionPayloadV1 {
        parent_hash: payload.fixed(0)?.into(),
        fee_recipient: payload.fixed(32)?.into(),
        state_root: payload.fixed(52)?.into(),
        receipts_root: payload.fixed(84)?.into(),
        logs_bloom: payload.fixed::<256>(116)?.into(),
        prev_randao: payload.fixed(372)?.into(),
        block_number,
        gas_limit: payload.number(412)?,
        gas_used: payload.number(420)?,
        timestamp: payload.number(428)?,
        extra_data: Bytes::copy_from_slice(extra_data),
        base_fee_per_gas: U256::from_le_bytes(payload.fixed::<32>(440)?),
        block_hash,
        transactions: list(transactions)?,
    };
    if fork == BELLATRIX {
        return Ok(Some(ExecutionPayload::V1(inner)));
    }
    let mut second = ExecutionPayloadV2 { payload_inner: inner, withdrawals: Vec::new() };
    while !withdrawals.is_empty() {
        let Some((own, rest)) = withdrawals.split_at_checked(WITHDRAWAL_BYTES) else {
            return Err(format!("{} bytes at the end of the withdrawals", withdrawals.len()));
        };
        second.withdrawals.push(withdrawal(own)?);
        withdrawals = rest;
    }
    if fork == CAPELLA {
        return Ok(Some(ExecutionPayload::V2(second)));
    }
    Ok(Some(ExecutionPayload::V3(ExecutionPayloadV3 {
        payload_inner: second,
        blob_gas_used: payload.number(512)?,
        excess_blob_gas: payload.number(520)?,
    })))
}

fn withdrawal(bytes: &[u8]) -> Result<Withdrawal, String> {
    let fields = Container { name: "Withdrawal", bytes };
    Ok(Withdrawal {
        index: fields.number(0)?,
        validator_index: fields.number(8)?,
        address: fields.fixed(16)?.into(),
        amount: fields.number(36)?,
    })
}

/// A list of byte lists.
fn list(bytes: &[u8]) -> Result<Vec<Bytes>, String> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let list = Container { name: "transactions", bytes };
    let first = list.offset(0)?;
    if first == 0 || first % 4 != 0 || first > bytes.len() {
        return Err(format!("the first transaction at {first} of {}", bytes.len()));
    }
    let mut items = Vec::with_capacity(first / 4);
    for place in (0..first).step_by(4) {
        let end = if place + 4 < first { list.offset(place + 4)? } else { bytes.len() };
        items.push(Bytes::copy_from_slice(list.between(list.offset(place)?, end)?));
    }
    Ok(items)
}

/// `ExecutionRequests` in the form of EIP-7685: the type and the SSZ of each non-empty list.
fn requests(bytes: &[u8]) -> Result<Requests, String> {
    let lists = Container { name: "ExecutionRequests", bytes };
    let parts: [&[u8]; 3] = lists.parts([0, 4, 8], 12)?;
    let mut requests = Requests::default();
    for ((kind, item_bytes), part) in (0u8..).zip(REQUEST_BYTES).zip(parts) {
        if part.len() % item_bytes != 0 {
            return Err(format!("requests of type {kind} of {} bytes", part.len()));
        }
        if !part.is_empty() {
            requests.push_request([&[kind], part].concat().into());
        }
    }
    Ok(requests)
}

/// The bytes of an SSZ container.
#[derive(Clone, Copy)]
struct Container<'a> {
    name: &'static str,
    bytes: &'a [u8],
}

impl<'a> Container<'a> {
    /// The variable-size fields whose offsets stand at `places`: all fields of the container, or
    /// the last ones. The first begins at `fixed_bytes`, unless that is 0.
    fn parts<const N: usize>(
        &self,
        places: [usize; N],
        fixed_bytes: usize,
    ) -> Result<[&'a [u8]; N], String> {
        let mut starts = [0; N];
        for (start, place) in starts.iter_mut().zip(places) {
            *start = self.offset(place)?;
        }
        if fixed_bytes != 0 && starts[0] != fixed_bytes {
            let Self { name, .. } = self;
            return Err(format!("{name}: the first field at {}, not {fixed_bytes}", starts[0]));
        }
        let mut parts = [[].as_slice(); N];
        for index in 0..N {
            let end = starts.get(index + 1).copied().unwrap_or(self.bytes.len());
            parts[index] = self.between(starts[index], end)?;
        }
        Ok(parts)
    }

    fn between(&self, start: usize, end: usize) -> Result<&'a [u8], String> {
        let bytes = self.bytes.len();
        let part = self.bytes.get(start..end);
        part.ok_or_else(|| format!("{}: a field from {start} to {end} of {bytes}", self.name))
    }

    fn fixed<const BYTES: usize>(&self, place: usize) -> Result<[u8; BYTES], String> {
        let field = self.between(place, place.saturating_add(BYTES))?;
        Ok(field.try_into().expect("it has that length"))
    }

    fn number(&self, place: usize) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.fixed(place)?))
    }

    fn offset(&self, place: usize) -> Result<usize, String> {
        Ok(u32::from_le_bytes(self.fixed(place)?) as usize)
    }
}
