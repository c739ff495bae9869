//! A call of `engine_newPayload`.

use alloy_eips::eip7685::Requests;
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    CancunPayloadFields, ExecutionPayload, ExecutionPayloadSidecar, PraguePayloadFields,
};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::json::{Data, FixedData, List, Object, PayloadFields, missing, unknown};
use crate::limits::{COMMITMENTS, REQUESTS};
use crate::ssz::encode_envelope;
use crate::{Error, Fork, SszError};

/// A payload to validate, and what is sent beside it: the parameters of `engine_newPayload` of any
/// version over JSON-RPC, and the envelope of `POST payloads` over REST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayload {
    /// The block.
    pub payload: ExecutionPayload,
    /// The versioned hashes of all blobs, in order of the transactions; empty before Cancun. Not
    /// part of the envelope in SSZ.
    pub versioned_hashes: Vec<B256>,
    /// The root of the parent beacon block, from Cancun on.
    pub parent_beacon_block_root: Option<B256>,
    /// The EIP-7685 requests, from Prague on.
    pub execution_requests: Option<Vec<Bytes>>,
}

impl NewPayload {
    /// The call for a payload with what alloy has beside it.
    ///
    /// # Errors
    /// [`Error::Missing`] when the sidecar lacks what a payload of this version needs.
    pub fn new(
        payload: ExecutionPayload,
        sidecar: &ExecutionPayloadSidecar,
    ) -> Result<Self, Error> {
        if payload.as_v3().is_none() {
            return Ok(Self {
                payload,
                versioned_hashes: Vec::new(),
                parent_beacon_block_root: None,
                execution_requests: None,
            });
        }
        let cancun = sidecar.cancun().ok_or(Error::Missing("the parent beacon block root"))?;
        let execution_requests = match sidecar.prague().is_some() || payload.as_v4().is_some() {
            true => {
                let requests = sidecar.requests().map(Requests::iter);
                Some(requests.ok_or(Error::Missing("the requests"))?.cloned().collect())
            }
            false => None,
        };
        Ok(Self {
            payload,
            versioned_hashes: cancun.versioned_hashes.clone(),
            parent_beacon_block_root: Some(cancun.parent_beacon_block_root),
            execution_requests,
        })
    }

    /// The names of the parameters that `version` of `engine_newPayload` takes.
    pub const fn parameters(version: u8) -> &'static [&'static str] {
        match version {
            ..3 => PARAMETERS.split_at(1).0,
            3 => PARAMETERS.split_at(3).0,
            4.. => &PARAMETERS,
        }
    }

    /// Reads [`parameters`](Self::parameters) strictly; those behind them are not looked at.
    ///
    /// # Errors
    /// [`Error::Json`] when the parameters are not those of the version. What the fork of the
    /// payload decides, and the order of the requests, is not checked.
    pub fn read(version: u8, params: &[&RawValue]) -> Result<Self, Error> {
        let Object(fields): Object<PayloadFields> = read(params, 0)?;
        fields.check(version)?;
        let (mut versioned_hashes, mut parent_beacon_block_root) = (Vec::new(), None);
        if version >= 3 {
            let List(hashes): List<FixedData<32>, COMMITMENTS> = read(params, 1)?;
            let root: FixedData<32> = read(params, 2)?;
            versioned_hashes = hashes.into_iter().map(B256::from).collect();
            parent_beacon_block_root = Some(root.into());
        }
        let mut execution_requests = None;
        if version >= 4 {
            let List(requests): List<Data, { REQUESTS.items }> = read(params, 3)?;
            execution_requests = Some(requests.into_iter().map(|data| data.0).collect());
        }
        let payload = fields.into_payload();
        Ok(Self { payload, versioned_hashes, parent_beacon_block_root, execution_requests })
    }

    /// As [`read`](Self::read), from a JSON array of all parameters.
    ///
    /// # Errors
    /// As [`read`](Self::read), and when there are more parameters.
    pub fn from_json(version: u8, params: &str) -> Result<Self, Error> {
        let names = Self::parameters(version);
        let List(params): List<&RawValue, 16> = serde_json::from_str(params)?;
        if params.len() > names.len() {
            let names = names.join(", ");
            return Err(Error::Json(format!("{} params instead of {names}", params.len())));
        }
        Self::read(version, &params)
    }

    /// Checks the one member that the fork decides about: shanghai.md, `engine_newPayloadV2`, takes
    /// either structure.
    ///
    /// # Errors
    /// When withdrawals are missing from Shanghai on, or are there before.
    pub fn check_withdrawals(&self, has_fork_withdrawals: bool) -> Result<(), Error> {
        match (has_fork_withdrawals, self.payload.as_v2().is_some()) {
            (true, false) => Err(missing("withdrawals")),
            (false, true) => Err(unknown("withdrawals", 1)),
            _ => Ok(()),
        }
    }

    /// The parameters over JSON-RPC, a JSON array: those of the version whose fields there are.
    ///
    /// # Errors
    /// [`Error::Json`] when a value has no form in JSON, which none of alloy's lacks.
    pub fn to_json(&self) -> Result<Box<RawValue>, Error> {
        let Self { payload, versioned_hashes: hashes, .. } = self;
        let params = match (self.parent_beacon_block_root, &self.execution_requests) {
            (None, _) => to_raw_value(&(payload,)),
            (Some(root), None) => to_raw_value(&(payload, hashes, root)),
            (Some(root), Some(requests)) => to_raw_value(&(payload, hashes, root, requests)),
        };
        Ok(params?)
    }

    /// The body of `POST payloads`: an `ExecutionPayloadEnvelope` of the fork whose fields there
    /// are.
    ///
    /// # Errors
    /// When it is longer than the offsets of SSZ reach.
    pub fn to_ssz(&self) -> Result<Vec<u8>, SszError> {
        let requests = self.execution_requests.as_deref();
        encode_envelope(&self.payload, self.parent_beacon_block_root, requests)
    }

    /// The forks whose containers have these fields, newest first: Prague's are Osaka's.
    pub const fn forks(&self) -> &'static [Fork] {
        match self.payload {
            ExecutionPayload::V1(_) => &[Fork::Paris],
            ExecutionPayload::V2(_) => &[Fork::Shanghai],
            ExecutionPayload::V3(_) if self.execution_requests.is_none() => &[Fork::Cancun],
            ExecutionPayload::V3(_) => &[Fork::Osaka, Fork::Prague],
            ExecutionPayload::V4(_) => &[Fork::Amsterdam],
        }
    }

    /// The values beside the payload, in alloy's type.
    pub fn sidecar(&self) -> ExecutionPayloadSidecar {
        let Some(root) = self.parent_beacon_block_root else {
            return ExecutionPayloadSidecar::none();
        };
        let cancun = CancunPayloadFields::new(root, self.versioned_hashes.clone());
        let Some(requests) = &self.execution_requests else {
            return ExecutionPayloadSidecar::v3(cancun);
        };
        let requests = Requests::from_requests(requests.iter().cloned());
        ExecutionPayloadSidecar::v4(cancun, PraguePayloadFields::new(requests))
    }
}

/// The parameters of the newest version.
const PARAMETERS: [&str; 4] = [
    "executionPayload",
    "expectedBlobVersionedHashes",
    "parentBeaconBlockRoot",
    "executionRequests",
];

fn read<'a, T: Deserialize<'a>>(params: &[&'a RawValue], index: usize) -> Result<T, Error> {
    let name = PARAMETERS[index];
    let param = params.get(index);
    let param = param.ok_or_else(|| Error::Json(format!("params[{index}] ({name}) is missing")))?;
    serde_json::from_str(param.get())
        .map_err(|fault| Error::Json(format!("params[{index}] ({name}): {fault}")))
}

#[cfg(test)]
mod tests;
