//! Payloads and blocks as JSON values in sequence, usually one a line, in the forms of clients and
//! their tests.

use std::borrow::Cow;

use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{Address, B256, Bloom, Bytes, U64, U256};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3,
    ExecutionPayloadV4,
};
use engine_api::json::{List, Object};
use engine_api::limits::{COMMITMENTS, JSON_WITHDRAWALS, REQUESTS, TRANSACTIONS};
use execution::SealedBlock;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::FileBlock;
use crate::block::Seen;
use crate::error::{Error, quote};
use crate::json::{Scanner, begins_hex, name, parse, parse_object, unhexed};
use crate::limits::{BLOCK_JSON_BYTES, PARAMS};
use crate::rpc_block;
use crate::seal::{PayloadParameters, seal};

/// The state of reading a file of payloads.
#[derive(Default)]
pub(super) struct Payloads {
    /// Whether the position is inside a list of requests.
    in_list: bool,
    /// Whether a value of that list has been read.
    behind_value: bool,
    text: Vec<u8>,
}

impl Payloads {
    /// The next block; `None` at the end. Blocks below `first` are skipped.
    pub(super) fn next(
        &mut self,
        json: &mut Scanner,
        first: u64,
        seen: &mut Seen,
    ) -> Result<Option<FileBlock>, Error> {
        while self.go_to_value(json)? {
            let (offset, line) = (json.input().offset(), json.line());
            json.value(&mut self.text, BLOCK_JSON_BYTES)?;
            let block = self
                .block(first)
                .map_err(|problem| json.input().error(offset, problem).on_line(line))?;
            match block {
                FileValue::Block(block) => {
                    seen.block(Some(block.block.header.number));
                    return Ok(Some(block.at(offset)));
                }
                FileValue::Below(number) => seen.block(Some(number)),
                FileValue::Other => {}
            }
        }
        Ok(None)
    }

    /// Moves to the next value; `false` at the end.
    fn go_to_value(&mut self, json: &mut Scanner) -> Result<bool, Error> {
        loop {
            let next = json.peek()?;
            match next {
                None if self.in_list => return Err(json.error("the file ends inside a list")),
                None => return Ok(false),
                Some(b']') if self.in_list => {
                    json.expect(b']')?;
                    *self = Self { text: std::mem::take(&mut self.text), ..Self::default() };
                }
                Some(b',') if self.in_list && self.behind_value => {
                    json.expect(b',')?;
                    self.behind_value = false;
                }
                Some(b'{') if !self.in_list || !self.behind_value => {
                    self.behind_value = true;
                    return Ok(true);
                }
                Some(first) if !self.in_list && begins_hex(first) => return Ok(true),
                // A list: of parameters, or of requests.
                Some(b'[') if !self.in_list => {
                    if !is_list_of_requests(json)? {
                        return Ok(true);
                    }
                    json.expect(b'[')?;
                    (self.in_list, self.behind_value) = (true, false);
                }
                other => {
                    let problem = format!("a payload in JSON expected, {} found", name(other));
                    return Err(json.error(problem));
                }
            }
        }
    }

    fn block(&self, first: u64) -> Result<FileValue, String> {
        match self.text.first() {
            Some(b'[') => params(parse::<List<_, PARAMS>>(&self.text)?.0, first),
            Some(b'{') => object(&self.text, first),
            // `deponent rpc debug_getRawBlock` prints that.
            _ => {
                let rlp =
                    unhexed(&self.text).ok_or("neither JSON nor the RLP of a block in hex")?;
                raw_block(rpc_block::decode(&rlp)?, first)
            }
        }
    }
}

enum FileValue {
    Block(Box<FileBlock>),
    /// A block below the first one requested, with its number.
    Below(u64),
    /// A request without a block.
    Other,
}

/// Whether the first item of the next list is a request: an object that has a method or parameters
/// before any field of a payload.
fn is_list_of_requests(json: &mut Scanner) -> Result<bool, Error> {
    const NAMES: [&[u8]; 5] = [b"jsonrpc", b"id", b"method", b"params", b"result"];
    let shown = json.look_ahead()?;
    let mut rest = shown[1..].trim_ascii_start();
    // An empty list is not a list of parameters either.
    if rest.starts_with(b"]") {
        return Ok(true);
    }
    if !rest.starts_with(b"{") {
        return Ok(false);
    }
    rest = rest[1..].trim_ascii_start();
    let name = rest.strip_prefix(b"\"").and_then(|rest| rest.split(|byte| *byte == b'"').next());
    Ok(name.is_some_and(|name| NAMES.contains(&name)))
}

/// The members by which the forms of an object differ.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectMembers<'a> {
    /// In the header of a file of `deponent bench`: its kind.
    deponent: Option<String>,
    version: Option<u32>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<List<&'a RawValue, PARAMS>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    jsonrpc: Option<IgnoredAny>,
    block_hash: Option<IgnoredAny>,
    hash: Option<IgnoredAny>,
}

fn object(text: &[u8], first: u64) -> Result<FileValue, String> {
    let form: ObjectMembers<'_> = parse_object(text)?;
    match form {
        ObjectMembers { deponent: Some(what), version, .. } => {
            if (&*what, version) == ("payloads", Some(1)) {
                return Ok(FileValue::Other);
            }
            let version = version.unwrap_or_default();
            let what = quote(what);
            Err(format!("a file of {what}, version {version}; payloads, version 1 are read"))
        }
        ObjectMembers { method: Some(method), params: Some(list), .. } => {
            if method.starts_with("engine_newPayload") {
                params(list.0, first)
            } else if method.starts_with("engine_forkchoiceUpdated") {
                Ok(FileValue::Other)
            } else {
                let method = quote(method);
                Err(format!("a request of {method}, where engine_newPayload is expected"))
            }
        }
        ObjectMembers { params: Some(list), .. } => params(list.0, first),
        ObjectMembers { result: Some(result), .. } => match result.get().as_bytes() {
            hex @ [b'"', ..] => raw_block(rpc_block::decode_raw(hex)?, first),
            block => whole_block(block, first),
        },
        ObjectMembers { error: Some(error), .. } => Err(answered_error(error.get())),
        ObjectMembers { block_hash: Some(_), .. } => {
            let fields: PayloadFields = parse_object(text)?;
            fields.block(first)
        }
        ObjectMembers { hash: Some(_), .. } => whole_block(text, first),
        // A `null` is no member here.
        ObjectMembers { jsonrpc: Some(_), .. } => {
            Err("an answer of JSON-RPC whose result is null: \
                                                       the server has no such block"
                .into())
        }
        _ => Err("a request of engine_newPayload, an ExecutionPayload or a block expected: \
                  none of method, params, result, blockHash and hash found"
            .into()),
    }
}

/// The error that a server answered, in words.
fn answered_error(error: &str) -> String {
    #[derive(Deserialize)]
    struct AnsweredError<'a> {
        code: i64,
        #[serde(borrow)]
        message: Cow<'a, str>,
    }
    let shown = match parse_object::<AnsweredError<'_>>(error.as_bytes()) {
        Ok(AnsweredError { code, message }) => format!("{} ({code})", quote(message)),
        Err(_) => quote(error),
    };
    format!("an answer of JSON-RPC that is an error: {shown}")
}

/// The parameters of any version of `engine_newPayload`.
fn params(list: Vec<&RawValue>, first: u64) -> Result<FileValue, String> {
    let parameter = |index: usize| list.get(index).map(|value| value.get().as_bytes());
    let text = parameter(0).ok_or("a payload expected, the list of parameters is empty")?;
    let mut fields: PayloadFields =
        parse_object(text).map_err(|problem| format!("the payload: {problem}"))?;
    if let Some(text) = parameter(1) {
        fields.versioned_hashes = parse(text)?;
    }
    if let Some(text) = parameter(2) {
        fields.parent_beacon_block_root = parse(text)?;
    }
    if let Some(text) = parameter(3) {
        fields.execution_requests = parse(text)?;
    }
    if list.len() > 4 {
        return Err(format!("{} parameters, engine_newPayload takes at most 4", list.len()));
    }
    fields.block(first)
}

/// `ExecutionPayloadV1` to `V4`, and the other parameters where they stand beside its fields.
/// Unknown members are ignored: the block hash proves that everything needed was read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayloadFields {
    parent_hash: B256,
    fee_recipient: Address,
    state_root: B256,
    receipts_root: B256,
    logs_bloom: Bloom,
    prev_randao: B256,
    block_number: U64,
    gas_limit: U64,
    gas_used: U64,
    timestamp: U64,
    extra_data: Bytes,
    base_fee_per_gas: U256,
    block_hash: B256,
    transactions: List<Bytes, { TRANSACTIONS.items }>,
    withdrawals: Option<List<Object<Withdrawal>, JSON_WITHDRAWALS>>,
    blob_gas_used: Option<U64>,
    excess_blob_gas: Option<U64>,
    block_access_list: Option<Bytes>,
    slot_number: Option<U64>,
    parent_beacon_block_root: Option<B256>,
    #[serde(alias = "expectedBlobVersionedHashes")]
    versioned_hashes: Option<List<B256, COMMITMENTS>>,
    execution_requests: Option<List<Bytes, { REQUESTS.items }>>,
}

impl PayloadFields {
    fn block(mut self, first: u64) -> Result<FileValue, String> {
        let number: u64 = self.block_number.to();
        if number < first {
            return Ok(FileValue::Below(number));
        }
        if self.blob_gas_used.is_some() && self.parent_beacon_block_root.is_none() {
            return Err(format!("block {number}: parentBeaconBlockRoot is missing"));
        }
        let beside = PayloadParameters {
            beacon_root: self.parent_beacon_block_root,
            versioned_hashes: self.versioned_hashes.take().map(|list| list.0),
            requests: self.execution_requests.take().map(|list| Requests::new(list.0)),
        };
        Ok(FileValue::Block(seal(self.into_payload(), beside)?.into()))
    }

    fn into_payload(self) -> ExecutionPayload {
        let first = ExecutionPayloadV1 {
            parent_hash: self.parent_hash,
            fee_recipient: self.fee_recipient,
            state_root: self.state_root,
            receipts_root: self.receipts_root,
            logs_bloom: self.logs_bloom,
            prev_randao: self.prev_randao,
            block_number: self.block_number.to(),
            gas_limit: self.gas_limit.to(),
            gas_used: self.gas_used.to(),
            timestamp: self.timestamp.to(),
            extra_data: self.extra_data,
            base_fee_per_gas: self.base_fee_per_gas,
            block_hash: self.block_hash,
            transactions: self.transactions.0,
        };
        let Some(List(withdrawals)) = self.withdrawals else {
            return ExecutionPayload::V1(first);
        };
        let withdrawals = withdrawals.into_iter().map(|Object(withdrawal)| withdrawal).collect();
        let second = ExecutionPayloadV2 { payload_inner: first, withdrawals };
        let (Some(used), Some(excess)) = (self.blob_gas_used, self.excess_blob_gas) else {
            return ExecutionPayload::V2(second);
        };
        let third = ExecutionPayloadV3 {
            payload_inner: second,
            blob_gas_used: used.to(),
            excess_blob_gas: excess.to(),
        };
        let (Some(block_access_list), Some(slot)) = (self.block_access_list, self.slot_number)
        else {
            return ExecutionPayload::V3(third);
        };
        ExecutionPayload::V4(ExecutionPayloadV4 {
            payload_inner: third,
            block_access_list,
            slot_number: slot.to(),
        })
    }
}

/// A block as in answers of `debug_getRawBlock`.
fn raw_block(block: SealedBlock, first: u64) -> Result<FileValue, String> {
    if block.header.number < first {
        return Ok(FileValue::Below(block.header.number));
    }
    Ok(FileValue::Block(FileBlock::of(block).into()))
}

/// A block as in answers of `eth_getBlockByNumber`, with whole transactions.
fn whole_block(text: &[u8], first: u64) -> Result<FileValue, String> {
    let block = rpc_block::read(text)?;
    if block.header.number < first {
        return Ok(FileValue::Below(block.header.number));
    }
    Ok(FileValue::Block(FileBlock::of(rpc_block::seal(block)?).into()))
}
