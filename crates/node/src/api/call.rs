//! `eth_call`: a message call on the state after any kept block.

use std::collections::HashMap;

use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, hex};
use engine::StateAt;
use engine_api::json::{Data, Entries, FixedData, Object, Quantity, Quantity256};
use execution::{
    AccountOverride, BlockOverrides, Call, CallOutcome, Overrides, StateOverrides, StorageOverride,
    UnsignedCall, revert_reason,
};
use rpc::{Error, Json, Params};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Api, state};
use crate::limits::{OVERRIDDEN_ACCOUNTS, TRANSACTION_BLOBS};

/// `eth_call`.
pub(super) fn call(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let Asked { at, call, overrides } = asked(api, params, api.bounds.gas)?;
    let outcome = api.engine.call(at, &call, &overrides, &api.bounds.deadline());
    match outcome.map_err(|error| api.call_refusal(error))? {
        CallOutcome::Returned(output) => Json::of(&output),
        CallOutcome::Reverted(output) => Err(reverted(&output)),
        CallOutcome::Halted(reason) | CallOutcome::Refused(reason) => {
            Err(Error::failed_call(reason))
        }
    }
}

/// The parameters of a method that makes calls.
pub(super) struct Asked {
    pub(super) at: StateAt,
    pub(super) call: Call,
    pub(super) overrides: Overrides,
}

/// Reads the parameters; a call that says nothing of its gas has `default_gas`.
pub(super) fn asked(api: &Api, mut params: Params<'_>, default_gas: u64) -> Result<Asked, Error> {
    let call = called(api, &mut params, default_gas)?;
    let at = state::block(api, &mut params)?;
    let state: Option<Overridden> = params.optional("state overrides")?;
    let in_block: Option<Object<OverriddenBlock>> = params.optional("block overrides")?;
    params.end()?;
    Ok(Asked { at, call, overrides: overridden(state, in_block)? })
}

/// Reads the parameter that says what is called.
pub(super) fn called(api: &Api, params: &mut Params<'_>, default_gas: u64) -> Result<Call, Error> {
    let Object(request): Object<Request> = params.next("call")?;
    let unsigned = request.call(api.engine.chain().chain_id())?;
    Ok(with_gas(unsigned, default_gas, api.bounds.gas))
}

/// The call with the gas that it may have, at most so much; one that says nothing of it has
/// `default_gas`.
pub(super) fn with_gas(unsigned: UnsignedCall, default_gas: u64, most: u64) -> Call {
    let UnsignedCall { call, gas, .. } = unsigned;
    Call { gas: gas.map_or(default_gas, |gas| gas.min(most)), ..call }
}

/// The overrides of state and block.
pub(super) fn overridden(
    state: Option<Overridden>,
    in_block: Option<Object<OverriddenBlock>>,
) -> Result<Overrides, Error> {
    let state = overrides(state.map_or_else(Vec::new, |Entries(accounts)| accounts))?;
    let in_block =
        in_block.map_or_else(|| Ok(BlockOverrides::default()), |Object(it)| it.read())?;
    Ok(Overrides { state, block: in_block })
}

/// The error of a call that reverted with `output`.
pub(super) fn reverted(output: &[u8]) -> Error {
    Error::reverted(revert_reason(output).as_deref(), hex::encode_prefixed(output))
}

/// `GenericTransaction`, as far as it says what a call does.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Request {
    from: Option<FixedData<20>>,
    to: Option<FixedData<20>>,
    gas: Option<Quantity>,
    pub(super) gas_price: Option<Quantity256>,
    pub(super) max_fee_per_gas: Option<Quantity256>,
    pub(super) max_priority_fee_per_gas: Option<Quantity256>,
    pub(super) max_fee_per_blob_gas: Option<Quantity256>,
    value: Option<Quantity256>,
    input: Option<Data>,
    /// The older name of `input`, which counts where both are there.
    data: Option<Data>,
    access_list: Option<Vec<Object<AccessItem>>>,
    pub(super) blob_versioned_hashes: Option<Vec<FixedData<32>>>,
    pub(super) authorization_list: Option<Vec<Object<AuthorizationFields>>>,
    chain_id: Option<Quantity>,
    nonce: Option<Quantity>,
    /// The sidecar of blobs, which cast sends along: no call sees it, but for the hashes.
    #[serde(rename = "blobs")]
    _blobs: Option<IgnoredAny>,
    #[serde(rename = "commitments")]
    _commitments: Option<IgnoredAny>,
    #[serde(rename = "proofs")]
    _proofs: Option<IgnoredAny>,
    #[serde(rename = "cellProofs")]
    _cell_proofs: Option<IgnoredAny>,
    /// The other members say what is called, but for type 1 with a gas price.
    #[serde(rename = "type")]
    kind: Option<Quantity>,
}

/// `AccessListEntry`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AccessItem {
    address: FixedData<20>,
    storage_keys: Vec<FixedData<32>>,
}

impl From<AccessItem> for AccessListItem {
    fn from(item: AccessItem) -> Self {
        let storage_keys = item.storage_keys.into_iter().map(B256::from).collect();
        Self { address: item.address.into(), storage_keys }
    }
}

/// `Authorization`, one of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AuthorizationFields {
    chain_id: Quantity256,
    address: FixedData<20>,
    nonce: Quantity,
    /// A value above 1 makes the signature invalid, which is no error.
    #[serde(alias = "v")]
    y_parity: Quantity,
    r: Quantity256,
    s: Quantity256,
}

impl From<AuthorizationFields> for SignedAuthorization {
    fn from(fields: AuthorizationFields) -> Self {
        let (Quantity256(chain_id), address) = (fields.chain_id, fields.address.into());
        let inner = Authorization { chain_id, address, nonce: fields.nonce.0 };
        let y_parity = u8::try_from(fields.y_parity.0).unwrap_or(u8::MAX);
        Self::new_unchecked(inner, y_parity, fields.r.0, fields.s.0)
    }
}

impl Request {
    /// Whether it names an access list, be it empty, or the type that has one (EIP-2930).
    pub(super) fn names_access_list(&self) -> bool {
        self.access_list.is_some() || self.kind.as_ref().is_some_and(|kind| kind.0 == 1)
    }

    /// The sender; this one where none is named.
    pub(super) fn sender_or(&mut self, usual: Option<Address>) -> Option<Address> {
        if self.from.is_none() {
            self.from = usual.map(|usual| FixedData(usual.into()));
        }
        self.from.as_ref().map(|from| Address::from(from.0))
    }

    /// Checks what a transaction that is sent needs beyond a call, with geth's words.
    pub(super) fn check_to_send(&self) -> Result<(), Error> {
        if let (Some(input), Some(data)) = (&self.input, &self.data)
            && input.0 != data.0
        {
            return Err(unfit(
                "both \"data\" and \"input\" are set and not equal. Please use \"input\" to pass \
                 transaction call data",
            ));
        }
        match self.blob_versioned_hashes.as_ref().map(Vec::len) {
            Some(0) => return Err(unfit("need at least 1 blob for a blob transaction")),
            Some(count) if count > TRANSACTION_BLOBS => {
                let most = TRANSACTION_BLOBS;
                let words = format!("too many blobs in transaction (have={count}, max={most})");
                return Err(unfit(words));
            }
            _ => {}
        }
        if self.to.is_some() {
            return Ok(());
        }
        if self.blob_versioned_hashes.is_some() {
            return Err(unfit("missing \"to\" in blob transaction"));
        }
        if self.input.as_ref().or(self.data.as_ref()).is_none_or(|data| data.0.is_empty()) {
            return Err(unfit("contract creation without any data provided"));
        }
        if self.authorization_list.is_some() {
            return Err(unfit(
                "authorizationList provided for contract creation, but \"to\" field is missing",
            ));
        }
        Ok(())
    }

    /// The call, unless its fields contradict each other.
    pub(super) fn call(self, chain_id: u64) -> Result<UnsignedCall, Error> {
        let fees = self.max_fee_per_gas.or(self.max_priority_fee_per_gas);
        if self.gas_price.is_some() && fees.is_some() {
            return Err(unfit(
                "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
            ));
        }
        if self.to.is_none() && self.blob_versioned_hashes.is_some() {
            return Err(unfit("blob transaction of type create"));
        }
        if self.to.is_none() && self.authorization_list.is_some() {
            return Err(unfit("EIP-7702 transaction cannot be used to create contract"));
        }
        if let Some(Quantity(got)) = self.chain_id.filter(|got| got.0 != chain_id) {
            let problem = format!("chainId does not match node's (have={got}, want={chain_id})");
            return Err(unfit(problem));
        }
        let blob_hashes = self.blob_versioned_hashes.map(|hashes| all(Some(hashes)));
        let authorization_list = self.authorization_list.map(|list| objects(Some(list)));
        if blob_hashes.is_some() && authorization_list.is_some() {
            let problem = "no transaction has both blobVersionedHashes and an authorizationList";
            return Err(Error::invalid_params(problem));
        }
        let max_fee = self.gas_price.or(self.max_fee_per_gas);
        let max_priority_fee = self.gas_price.or(self.max_priority_fee_per_gas);
        let call = Call {
            from: self.from.map_or(Address::ZERO, Address::from),
            to: self.to.map_or(TxKind::Create, |to| TxKind::Call(to.into())),
            gas: 0,
            max_fee_per_gas: fee(max_fee)?,
            max_priority_fee_per_gas: fee(max_priority_fee)?,
            value: self.value.map_or(U256::ZERO, |value| value.0),
            input: self.input.or(self.data).map_or_else(Bytes::new, |data| data.0),
            access_list: AccessList(objects(self.access_list)),
            blob_hashes,
            max_fee_per_blob_gas: fee(self.max_fee_per_blob_gas)?,
            authorization_list,
        };
        let (gas, nonce) = (self.gas.map(|gas| gas.0), self.nonce.map(|nonce| nonce.0));
        Ok(UnsignedCall { call, gas, nonce, has_gas_price: self.gas_price.is_some() })
    }
}

/// The error of parameters that contradict each other, in geth's words.
pub(super) fn unfit(problem: impl Into<String>) -> Error {
    Error::failed_call(problem.into())
}

/// The entries of a list that may be absent.
fn all<T, U: From<T>>(given: Option<Vec<T>>) -> Vec<U> {
    given.into_iter().flatten().map(U::from).collect()
}

fn objects<T, U: From<T>>(given: Option<Vec<Object<T>>>) -> Vec<U> {
    given.into_iter().flatten().map(|Object(item)| item.into()).collect()
}

fn fee(given: Option<Quantity256>) -> Result<u128, Error> {
    let fee = given.map_or(U256::ZERO, |fee| fee.0);
    fee.try_into().map_err(|_| Error::invalid_params(format!("a fee of {fee} is over 128 bits")))
}

/// The state overrides of accounts, as geth takes them.
pub(super) type Overridden = Entries<FixedData<20>, Object<OverriddenAccount>, OVERRIDDEN_ACCOUNTS>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OverriddenAccount {
    balance: Option<Quantity256>,
    nonce: Option<Quantity>,
    code: Option<Data>,
    state: Option<Slots>,
    state_diff: Option<Slots>,
    move_precompile_to_address: Option<FixedData<20>>,
}

/// The block overrides, as geth takes them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OverriddenBlock {
    number: Option<Quantity256>,
    difficulty: Option<Quantity256>,
    time: Option<Quantity>,
    gas_limit: Option<Quantity>,
    fee_recipient: Option<FixedData<20>>,
    prev_randao: Option<FixedData<32>>,
    base_fee_per_gas: Option<Quantity256>,
    blob_base_fee: Option<Quantity256>,
    beacon_root: Option<FixedData<32>>,
    withdrawals: Option<Vec<Object<WithdrawalFields>>>,
}

/// The block overrides that were read.
#[derive(Default)]
pub(super) struct ReadBlock {
    pub(super) block: BlockOverrides,
    pub(super) beacon_root: Option<B256>,
    pub(super) withdrawals: Vec<Withdrawal>,
}

impl OverriddenBlock {
    fn read(self) -> Result<BlockOverrides, Error> {
        let (beacon_root, withdrawals) = (self.beacon_root.is_some(), self.withdrawals.is_some());
        for (name, given) in [("beaconRoot", beacon_root), ("withdrawals", withdrawals)] {
            if given {
                return Err(unfit(format!(
                    "block override \"{name}\" is not supported for this RPC method"
                )));
            }
        }
        Ok(self.read_all()?.block)
    }

    /// All of them, as a simulation takes them.
    pub(super) fn read_all(self) -> Result<ReadBlock, Error> {
        let word = |name: &str, given: Option<Quantity256>| match given {
            Some(Quantity256(value)) => u64::try_from(value).map(Some).map_err(|_| {
                Error::invalid_params(format!("block override {name}: {value} is over 64 bits"))
            }),
            None => Ok(None),
        };
        let block = BlockOverrides {
            number: word("number", self.number)?,
            timestamp: self.time.map(|time| time.0),
            gas_limit: self.gas_limit.map(|limit| limit.0),
            beneficiary: self.fee_recipient.map(Address::from),
            prev_randao: self.prev_randao.map(B256::from),
            base_fee_per_gas: word("baseFeePerGas", self.base_fee_per_gas)?,
            blob_base_fee: self.blob_base_fee.map(|price| fee(Some(price))).transpose()?,
            difficulty: self.difficulty.map(|difficulty| difficulty.0),
        };
        let withdrawals = self.withdrawals.into_iter().flatten();
        Ok(ReadBlock {
            block,
            beacon_root: self.beacon_root.map(B256::from),
            withdrawals: withdrawals.map(|Object(one)| one.into()).collect(),
        })
    }
}

/// `Withdrawal`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WithdrawalFields {
    index: Quantity,
    validator_index: Quantity,
    address: FixedData<20>,
    amount: Quantity,
}

impl From<WithdrawalFields> for Withdrawal {
    fn from(fields: WithdrawalFields) -> Self {
        Self {
            index: fields.index.0,
            validator_index: fields.validator_index.0,
            address: fields.address.into(),
            amount: fields.amount.0,
        }
    }
}

type Slots = HashMap<FixedData<32>, FixedData<32>>;

impl OverriddenAccount {
    /// How many slots are overridden.
    pub(super) fn slots_count(&self) -> usize {
        [&self.state, &self.state_diff].into_iter().flatten().map(HashMap::len).sum()
    }
}

pub(super) fn overrides(
    given: Vec<(FixedData<20>, Object<OverriddenAccount>)>,
) -> Result<StateOverrides, Error> {
    let word = |FixedData(bytes): FixedData<32>| U256::from_be_bytes(bytes);
    let slots =
        |slots: Slots| slots.into_iter().map(|(slot, value)| (word(slot), word(value))).collect();
    let account = |(address, Object(given)): (FixedData<20>, Object<OverriddenAccount>)| {
        let address = Address::from(address);
        let storage = match (given.state, given.state_diff) {
            (Some(_), Some(_)) => {
                return Err(unfit(format!("account {address} has both 'state' and 'stateDiff'")));
            }
            (Some(state), None) => Some(StorageOverride::Whole(slots(state))),
            (None, diff) => diff.map(|diff| StorageOverride::Some(slots(diff))),
        };
        let account = AccountOverride {
            balance: given.balance.map(|balance| balance.0),
            nonce: given.nonce.map(|nonce| nonce.0),
            code: given.code.map(|code| code.0),
            storage,
            precompile_moved_to: given.move_precompile_to_address.map(Address::from),
        };
        Ok((address, account))
    };
    given.into_iter().map(account).collect()
}
