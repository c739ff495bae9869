//! Which codes a block must have had, by its instructions: the EVM runs it on a flat state, without
//! any part of `execution`, and an inspector follows what is called and looked at.
//!
//! It knows of no cache, so it sees what one could hide from those who listen at the state alone:
//! a code that is read again when what had written it was undone. It is a lower bound: what an
//! instruction read before it ran out of gas, and what authorization lists read, is not in it.

use crate::judge::{FlatState, Log};
use alloy_evm::eth::{EthEvmBuilder, EthEvmContext};
use alloy_evm::{EthEvm, Evm, EvmEnv, FromRecoveredTx};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::map::B256Set;
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use execution::{ChainSpec, Receipt, SealedBlock};
use revm::DatabaseCommit;
use revm::bytecode::opcode;
use revm::context::{DBErrorMarker, TxEnv};
use revm::context_interface::transaction::AuthorizationTr;
use revm::database_interface::Database;
use revm::inspector::Inspector;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{Jumps, LoopControl};
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};
use revm::state::{AccountInfo, Bytecode};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fmt, mem};
use testing::world::marker;
use witness::{State, StateError};

/// The hashes of codes that a block has read from the state before it. `None` where this EVM cannot
/// tell: before Prague, where a creation met storage without code (EIP-7610), and where it does not
/// come to what the receipts say.
pub(crate) fn codes(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &[Address],
    receipts: &[Receipt],
    state: &FlatState,
) -> Option<BTreeSet<B256>> {
    let header = &block.header;
    if !chain.is_prague_active_at_timestamp(header.timestamp) {
        return None;
    }
    let blobs = chain.blob_params(header.timestamp);
    let env = EvmEnv::for_eth_block(header, chain, chain.chain_id(), blobs);
    let db = revm::database::State::builder().with_database(Flat(Log::new(state))).build();
    let follower = Follower::new(state);
    let evm = EthEvmBuilder::new(db, env).inspector(follower).build().into_inner();
    let mut evm = EthEvm::new(evm, true);
    for ((transaction, sender), receipt) in
        block.body.transactions.iter().zip(senders).zip(receipts)
    {
        let code_hash = evm.db_mut().basic(*sender).ok()?.map(|account| account.code_hash);
        let follower = evm.inspector_mut();
        // EIP-3607: the sender's code is looked at.
        follower.read(code_hash.unwrap_or(KECCAK256_EMPTY));
        let environment = TxEnv::from_recovered_tx(transaction, *sender);
        // Writes of the list cannot be distinguished from codes that were there.
        let markers = environment.authorization_list.iter();
        let markers = markers.map(|one| keccak256(marker(one.address())));
        follower.in_transaction.extend(markers);
        let outcome = evm.transact_raw(environment).ok()?;
        let follower = evm.inspector_mut();
        if follower.is_lost || outcome.result.is_success() != receipt.status() {
            return None;
        }
        let written = mem::take(&mut follower.in_transaction);
        follower.written.extend(written);
        evm.db_mut().commit(outcome.state);
    }
    BLOCKS.fetch_add(1, Ordering::Relaxed);
    Some(mem::take(&mut evm.inspector_mut().read))
}

/// Blocks that were followed to their end.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn blocks() -> usize {
    BLOCKS.load(Ordering::Relaxed)
}

/// Codes that were written, and those that were read and were not.
#[derive(Debug)]
struct Follower<'a> {
    before: &'a FlatState,
    /// By transactions before.
    written: B256Set,
    /// By this one, in order, in frames that were not undone.
    in_transaction: Vec<B256>,
    /// How many there were when the open frames began.
    frames: Vec<usize>,
    read: BTreeSet<B256>,
    /// The account that the running instruction looks at.
    looked_at: Option<Address>,
    is_lost: bool,
}

impl<'a> Follower<'a> {
    fn new(before: &'a FlatState) -> Self {
        Self {
            before,
            written: B256Set::default(),
            in_transaction: Vec::new(),
            frames: Vec::new(),
            read: BTreeSet::new(),
            looked_at: None,
            is_lost: false,
        }
    }

    fn read(&mut self, code_hash: B256) {
        let is_written =
            self.written.contains(&code_hash) || self.in_transaction.contains(&code_hash);
        if code_hash != KECCAK256_EMPTY && !is_written {
            self.read.insert(code_hash);
        }
    }

    fn end_frame(&mut self, is_undone: bool) {
        let begun = self.frames.pop().expect("each frame that ends has begun");
        if is_undone {
            self.in_transaction.truncate(begun);
        }
    }
}

type Context<'a> = EthEvmContext<revm::database::State<Flat<'a>>>;

/// The hash of an account's code as it is now; the account is loaded.
fn code_hash(context: &Context<'_>, address: &Address) -> B256 {
    let account = context.journaled_state.inner.state.get(address);
    account.map_or(KECCAK256_EMPTY, |account| account.info.code_hash)
}

impl<'a> Inspector<Context<'a>, EthInterpreter> for Follower<'a> {
    fn step(&mut self, interpreter: &mut Interpreter, _: &mut Context<'a>) {
        let looks = [opcode::EXTCODESIZE, opcode::EXTCODECOPY];
        let is_look = looks.contains(&interpreter.bytecode.opcode());
        let address = interpreter.stack.data().last().filter(|_| is_look);
        self.looked_at = address.map(|word| Address::from_word(B256::from(*word)));
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut Context<'a>) {
        if let Some(address) = self.looked_at.take()
            && interpreter.bytecode.is_not_end()
        {
            self.read(code_hash(context, &address));
        }
    }

    fn call(&mut self, context: &mut Context<'a>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.frames.push(self.in_transaction.len());
        let called = code_hash(context, &inputs.bytecode_address);
        self.read(called);
        // That of the account that it delegates to.
        self.read(inputs.known_bytecode.0);
        None
    }

    fn call_end(&mut self, _: &mut Context<'a>, _: &CallInputs, outcome: &mut CallOutcome) {
        self.end_frame(!outcome.result.is_ok());
    }

    fn create(
        &mut self,
        context: &mut Context<'a>,
        inputs: &mut CreateInputs,
    ) -> Option<CreateOutcome> {
        self.frames.push(self.in_transaction.len());
        let creator = context.journaled_state.inner.state.get(&inputs.caller());
        let nonce = creator.map_or(0, |account| account.info.nonce);
        let created = keccak256(inputs.created_address(nonce));
        self.is_lost |= self.before.has_storage(&created);
        None
    }

    fn create_end(&mut self, _: &mut Context<'a>, _: &CreateInputs, outcome: &mut CreateOutcome) {
        let is_created = outcome.result.is_ok() && outcome.address.is_some();
        self.end_frame(!is_created);
        if is_created {
            self.in_transaction.push(keccak256(&outcome.result.output));
        }
    }
}

/// The state before the block, as the EVM wants it.
#[derive(Debug)]
struct Flat<'a>(Log<'a>);

/// The item that the flat state lacks.
#[derive(Debug)]
struct Lacking(StateError);

impl DBErrorMarker for Lacking {}

impl std::error::Error for Lacking {}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<StateError> for Lacking {
    fn from(error: StateError) -> Self {
        Self(error)
    }
}

impl Database for Flat<'_> {
    type Error = Lacking;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Lacking> {
        let account = self.0.account(address)?;
        Ok(account.map(|account| AccountInfo {
            balance: account.balance,
            nonce: account.nonce,
            code_hash: account.code_hash,
            code: None,
            ..AccountInfo::default()
        }))
    }

    fn code_by_hash(&mut self, code_hash: B256) -> Result<Bytecode, Lacking> {
        if code_hash == KECCAK256_EMPTY {
            return Ok(Bytecode::default());
        }
        Ok(Bytecode::new_raw(self.0.code(code_hash)?))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Lacking> {
        Ok(self.0.storage(address, slot)?)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, Lacking> {
        Ok(self.0.block_hash(number)?)
    }
}
