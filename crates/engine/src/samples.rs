//! Floor 5. A chain for tests, and payloads on it.

use crate::world::{self, Signer, StartAccount};
use crate::{
    BuildRequest, Built, Engine, EngineOptions, Error, ForkchoiceOutcome, Genesis, Payload, Verdict,
};
use alloy_consensus::Signed;
use alloy_genesis::ChainConfig;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bytes, Signature, U256};
use alloy_rpc_types_engine::{ExecutionPayload, ForkchoiceState, PayloadAttributes};
use execution::{ChainSpec, SealedBlock, Transaction};
use state::{Database, Disk};

/// A contract that stores the block's number in the slot with that number.
pub(crate) const COUNTER: Address = Address::repeat_byte(0xc0);

pub(crate) fn counter() -> (Address, StartAccount) {
    (COUNTER, StartAccount::contract(vec![0x43, 0x43, 0x55]))
}

pub(crate) fn sender() -> Signer {
    Signer::new(1)
}

/// The genesis of [`engine`], as a geth-style file describes it.
pub(crate) fn genesis_file(config: ChainConfig) -> alloy_genesis::Genesis {
    let alloc = world::genesis_alloc([(sender().address(), StartAccount::rich()), counter()]);
    alloy_genesis::Genesis { config, gas_limit: 30_000_000, alloc, ..Default::default() }
}

/// The rules and the first block that a file describes.
pub(crate) fn read(file: &alloy_genesis::Genesis) -> (ChainSpec, Genesis) {
    let chain = ChainSpec::from_config(&file.config).unwrap();
    let genesis = Genesis::new(file, &chain).unwrap();
    (chain, genesis)
}

/// The chain on this disk, which begins with this file.
pub(crate) fn open(
    disk: impl Disk + 'static,
    file: &alloy_genesis::Genesis,
    database: &state::Options,
    options: EngineOptions,
) -> Result<Engine, Error> {
    let (chain, genesis) = read(file);
    Engine::open(chain, Some(genesis), Database::open(disk, database)?, options)
}

pub(crate) fn engine_from(file: &alloy_genesis::Genesis) -> Engine {
    let (chain, genesis) = read(file);
    Engine::new(chain, genesis).unwrap()
}

pub(crate) fn engine_of(config: ChainConfig) -> Engine {
    engine_from(&genesis_file(config))
}

pub(crate) fn engine() -> Engine {
    engine_of(world::config("osaka"))
}

pub(crate) fn attributes(engine: &Engine, parent: B256) -> PayloadAttributes {
    let timestamp = engine.block(parent).unwrap().unwrap().block.header.timestamp + 12;
    let chain = engine.chain();
    let shanghai = chain.is_shanghai_active_at_timestamp(timestamp);
    let cancun = chain.is_cancun_active_at_timestamp(timestamp);
    let amsterdam = chain.is_amsterdam_active_at_timestamp(timestamp);
    PayloadAttributes {
        timestamp,
        prev_randao: B256::repeat_byte(1),
        suggested_fee_recipient: world::COINBASE,
        withdrawals: shanghai.then(Vec::new),
        parent_beacon_block_root: cancun.then_some(B256::repeat_byte(2)),
        slot_number: amsterdam.then_some(timestamp / 12),
        target_gas_limit: None,
    }
}

/// A payload on `parent` with these transactions; `tag` makes it another one than its twins.
pub(crate) fn build(
    engine: &Engine,
    parent: B256,
    transactions: Vec<Transaction>,
    tag: u8,
) -> Built {
    let extra_data = Bytes::from(vec![tag]);
    engine.build(parent, attributes(engine, parent), transactions, extra_data).unwrap()
}

/// The next transaction of the sender, who sent one in each block before.
pub(crate) fn count(engine: &Engine, parent: B256) -> Transaction {
    sender().call(engine.block(parent).unwrap().unwrap().block.header.number, COUNTER, [])
}

/// A call with an impossible signature.
pub(crate) fn spoilt(call: &Transaction) -> Transaction {
    let signed = call.as_eip1559().expect("calls have a dynamic fee");
    let signature = Signature::new(U256::ZERO, signed.signature().s(), false);
    Signed::new_unhashed(signed.tx().clone(), signature).into()
}

/// Adds a valid block to `parent` and returns its hash.
pub(crate) fn extend(engine: &Engine, parent: B256, tag: u8) -> B256 {
    let block = build(engine, parent, vec![count(engine, parent)], tag).block;
    let hash = block.hash();
    assert_eq!(engine.new_block(block).unwrap(), Verdict::Valid);
    hash
}

/// A chain of `length` valid blocks on `parent`.
pub(crate) fn branch(engine: &Engine, parent: B256, tag: u8, length: usize) -> Vec<B256> {
    let mut parent = parent;
    let next = || {
        parent = extend(engine, parent, tag);
        parent
    };
    std::iter::repeat_with(next).take(length).collect()
}

pub(crate) fn payload(block: &SealedBlock, access_list: Option<Bytes>) -> Payload {
    let list = access_list.unwrap_or_default();
    let (execution, sidecar) =
        ExecutionPayload::from_block_unchecked_with_bal(block.hash(), block, list);
    Payload { execution, sidecar }
}

/// The block with a changed header, and the hash that belongs to it.
pub(crate) fn changed(
    block: &SealedBlock,
    change: impl FnOnce(&mut execution::Block),
) -> SealedBlock {
    let mut block = block.clone().into_block();
    change(&mut block);
    SealedBlock::new(block)
}

pub(crate) fn heads(head: B256, safe: B256, finalized: B256) -> ForkchoiceState {
    ForkchoiceState {
        head_block_hash: head,
        safe_block_hash: safe,
        finalized_block_hash: finalized,
    }
}

/// Chooses a head and nothing else.
pub(crate) fn choose(engine: &Engine, head: B256) -> Verdict {
    engine.forkchoice_updated(heads(head, B256::ZERO, B256::ZERO), None).unwrap().verdict
}

pub(crate) fn choose_and_build(engine: &Engine, head: B256) -> Result<ForkchoiceOutcome, Error> {
    let request =
        BuildRequest { attributes: attributes(engine, head), version: 3, with_witness: true };
    engine.forkchoice_updated(heads(head, B256::ZERO, B256::ZERO), Some(request))
}
