//! The same payloads over the other wire: SSZ, through the answers of the REST API, on an engine of
//! its own. Status, latest valid hash, whether there is an error, and the witness must be those of
//! JSON-RPC.

use alloy_consensus::Transaction as _;
use alloy_eips::Decodable2718;
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::ForkchoiceState;
use client::Fork;
use client::ssz::{ForkchoiceUpdate, ForkchoiceUpdateResponse, PayloadStatus, Status, WithWitness};
use deponent_node::Api;
use deponent_node::rest::rules;
use engine::{Engine, Genesis};
use engine_api::NewPayload;
use execution::{ChainSpec, Transaction};
use rpc::rest::{HeaderMap, HeaderValue, Method, Request, Resources as _, Response, StatusCode};
use rpc::{Code, Error, Json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The results of the comparisons.
#[derive(Default)]
pub(crate) struct Counts {
    /// Payloads that were answered alike.
    alike: usize,
    /// Payloads that cannot be, by the reason.
    exempt: BTreeMap<&'static str, usize>,
}

impl Counts {
    pub(crate) fn merge(&mut self, other: Self) {
        self.alike += other.alike;
        for (reason, count) in other.exempt {
            *self.exempt.entry(reason).or_default() += count;
        }
    }

    pub(crate) fn print(&self) {
        println!("payloads answered alike over JSON-RPC and over SSZ: {}", self.alike);
        for (reason, count) in &self.exempt {
            println!("payloads that SSZ has other answers to: {count}: {reason}");
        }
    }
}

/// An answer of either wire; those of JSON-RPC have no public keys.
pub(crate) type Answer = WithWitness<PayloadStatus>;

/// Reads an answer of JSON-RPC.
pub(crate) fn read(answer: &Json) -> Result<Answer, String> {
    let text = String::from_utf8(answer.to_vec()).map_err(|error| error.to_string())?;
    Answer::from_json(&text).map_err(|error| format!("answer: {error}"))
}

/// A chain that is spoken to over REST alone.
pub(crate) struct Rest {
    api: Api,
    engine: Arc<Engine>,
    /// Set if SSZ could not carry a valid block, so that the chain ends before it.
    is_behind: bool,
}

impl Rest {
    pub(crate) fn new(chain: ChainSpec, genesis: Genesis) -> Result<Self, String> {
        let engine = Engine::new(chain, genesis).map_err(|error| error.to_string())?;
        let engine = Arc::new(engine);
        let api = Api::engine_port(engine.clone(), false);
        Ok(Self { api, engine, is_behind: false })
    }

    /// Sends a payload, compares the answer, and makes the block the head when it is VALID.
    pub(crate) fn payload(
        &mut self,
        version: u8,
        params: &str,
        expected: &Result<Answer, Error>,
        counts: &mut Counts,
    ) -> Result<(), String> {
        if self.is_behind {
            return counts.exempt("blocks after one that SSZ cannot carry");
        }
        let Ok(call) = NewPayload::from_json(version, params) else {
            return match expected {
                Err(error) if error.is(Code::InvalidParams) => {
                    counts.exempt("parameters without something that a container always has")
                }
                _ => Err("the parameters have no SSZ form".into()),
            };
        };
        let timestamp = call.payload.timestamp();
        let era = self.engine.chain().fork_at(timestamp);
        // The fork of the block where the version is for it, so that both say that it is not.
        let candidates = forks(version).iter();
        let fork = candidates.copied().find(|fork| rules(*fork).contains(&era));
        let fork = fork.unwrap_or(*forks(version).last().expect("each version is for some"));
        let answer = self.post("payloads/witness", fork, encode(&call)?);
        let exempt = exemption(version, &call, rules(fork).contains(&era), expected);
        if let Some(reason) = exempt {
            self.is_behind =
                matches!(expected, Ok(answer) if answer.content.status == Status::Valid);
            return counts.exempt(reason);
        }
        compare(&answer, expected)?;
        counts.alike += 1;
        match expected.as_ref().map(|answer| &answer.content) {
            Ok(PayloadStatus { status: Status::Valid, latest_valid_hash: Some(hash), .. }) => {
                self.set_head(fork, *hash)
            }
            _ => Ok(()),
        }
    }

    fn set_head(&self, fork: Fork, head: B256) -> Result<(), String> {
        let state = ForkchoiceState { head_block_hash: head, ..ForkchoiceState::default() };
        let update = ForkchoiceUpdate {
            forkchoice_state: state,
            payload_attributes: None,
            custody_columns: None,
        };
        let answer = self.post("forkchoice", fork, update.encode(fork));
        let read = ForkchoiceUpdateResponse::decode(&answer.body.to_vec().into());
        match read.map_err(|error| error.to_string())?.payload_status {
            PayloadStatus { status: Status::Valid, latest_valid_hash: Some(hash), .. }
                if hash == head =>
            {
                Ok(())
            }
            status => Err(format!("forkchoice: {status:?}")),
        }
    }

    fn post(&self, endpoint: &str, fork: Fork, body: Vec<u8>) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/octet-stream"));
        headers.insert("eth-execution-version", HeaderValue::from_static(fork.name()));
        self.api.answer(Request {
            method: Method::POST,
            path: format!("/engine/v1/{endpoint}"),
            query: None,
            headers,
            body: body.into(),
            takes_files: false,
            connection: Default::default(),
        })
    }

    /// The head, `None` when it cannot be the other chain's.
    pub(crate) fn head(&self) -> Option<B256> {
        (!self.is_behind).then(|| self.engine.heads().head)
    }
}

impl Counts {
    fn exempt(&mut self, reason: &'static str) -> Result<(), String> {
        *self.exempt.entry(reason).or_default() += 1;
        Ok(())
    }
}

fn encode(call: &NewPayload) -> Result<Vec<u8>, String> {
    call.to_ssz().map_err(|error| error.to_string())
}

/// Why SSZ may answer otherwise, by the specification.
fn exemption(
    version: u8,
    call: &NewPayload,
    is_of_fork: bool,
    expected: &Result<Answer, Error>,
) -> Option<&'static str> {
    let payload = &call.payload;
    let decoded = payload.transactions().iter().map(|raw| Transaction::decode_2718_exact(raw).ok());
    let decoded: Option<Vec<_>> = decoded.collect();
    let own = decoded.iter().flatten().filter_map(|tx| tx.blob_versioned_hashes()).flatten();
    let is_invalid = matches!(expected, Ok(answer) if answer.content.status == Status::Invalid);
    if version >= 3 && decoded.is_some() && is_invalid && !own.eq(&call.versioned_hashes) {
        return Some("wrong expectedBlobVersionedHashes, which SSZ has not");
    }
    if version == 1 && !is_of_fork && is_invalid {
        return Some("the first version for a later fork, INVALID there, unsupported-fork here");
    }
    let withdrawals = payload.as_v2().map_or(0, |second| second.withdrawals.len());
    if is_invalid && payload.as_v1().extra_data.len() > 32 {
        return Some("extra data of more than 32 bytes, which SSZ cannot carry");
    }
    if withdrawals > 16 {
        return Some("more than 16 withdrawals, which SSZ cannot carry");
    }
    None
}

fn compare(answer: &Response, expected: &Result<Answer, Error>) -> Result<(), String> {
    let body = Bytes::from(answer.body.to_vec());
    let problem = || String::from_utf8_lossy(&body).into_owned();
    let expected = match expected {
        Ok(expected) => expected,
        Err(error) => {
            let kinds = match error.is(Code::UnsupportedFork) {
                true => &["unsupported-fork"][..],
                // A container is of one fork, so that fields too many or too few are one of these.
                false => &["invalid-body", "ssz-decode-error", "unsupported-fork"],
            };
            let is_kind = |kind: &&str| problem().contains(&format!("/engine-api/errors/{kind}"));
            return match answer.status.is_client_error() && kinds.iter().any(is_kind) {
                true => Ok(()),
                false => Err(format!("SSZ: {} {}, JSON: {error}", answer.status, problem())),
            };
        }
    };
    if answer.status != StatusCode::OK {
        let expected = &expected.content;
        return Err(format!("SSZ: {} {}, JSON: {expected:?}", answer.status, problem()));
    }
    let read = Answer::decode(&body).map_err(|error| error.to_string())?;
    let (found, expected_status) = (&read.content, &expected.content);
    // JSON-RPC's first version alone has a status of its own for a wrong hash.
    let same_status = found.status == expected_status.status
        || (found.status, expected_status.status) == (Status::Invalid, Status::InvalidBlockHash);
    let same = same_status
        && found.latest_valid_hash == expected_status.latest_valid_hash
        && found.validation_error.is_some() == expected_status.validation_error.is_some();
    if !same {
        return Err(format!("SSZ: {found:?}, JSON: {expected_status:?}"));
    }
    if read.witness != expected.witness {
        return Err("the witness over SSZ is not the one over JSON-RPC".into());
    }
    match (found.status, answer.headers.get("deponent-witness"), read.public_keys.is_empty()) {
        (Status::Valid, Some(_), _) | (Status::Invalid | Status::Syncing, None, true) => Ok(()),
        _ => Err("the headers or keys are not those of the status".into()),
    }
}

/// The forks whose envelopes have the same fields as the parameters of a version.
const fn forks(version: u8) -> &'static [Fork] {
    match version {
        1 => &[Fork::Paris],
        2 => &[Fork::Paris, Fork::Shanghai],
        3 => &[Fork::Cancun],
        4 => &[Fork::Prague, Fork::Osaka],
        _ => &[Fork::Amsterdam],
    }
}
