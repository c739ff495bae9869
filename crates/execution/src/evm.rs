//! The EVM that runs blocks: the library's, with the gas of system calls that the specifications
//! define.

use crate::ChainSpec;
use crate::cache::BlockCache;
use crate::codes::{CodeInspector, Context};
use crate::net_gas;
use crate::recorder::{ReadError, TransactionCodes};
use crate::rules::BlockRules;
use alloy_consensus::Header;
use alloy_evm::eth::EthEvmBuilder;
use alloy_evm::precompiles::PrecompilesMap;
use alloy_evm::{Evm, EvmEnv};
use alloy_primitives::{Address, Bytes};
use revm::bytecode::opcode;
use revm::context::result::{EVMError, HaltReason, ResultAndState};
use revm::context::{BlockEnv, CfgEnv, ContextSetters, TxEnv};
use revm::database_interface::bal::EvmDatabaseError;
use revm::handler::instructions::EthInstructions;
use revm::handler::system_call::SystemCallTx;
use revm::handler::{EthFrame, EvmTr, Handler};
use revm::inspector::{InspectEvm, Inspector, InspectorHandler};
use revm::interpreter::instructions::contract;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{
    GasTracker, InitialAndFloorGas, Instruction, InstructionContext, InstructionExecResult,
};
use revm::primitives::hardfork::SpecId;
use revm::{ExecuteEvm, context};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use witness::State;

/// The gas of a system call (EIP-4788, EIP-2935, EIP-7002, EIP-7251).
const SYSTEM_CALL_GAS: u64 = 30_000_000;

/// The block and the chain as the EVM reads them.
pub(crate) fn environment(chain: &ChainSpec, header: &Header) -> EvmEnv {
    let blobs = chain.blob_params(header.timestamp);
    let rules = BlockRules::new(chain, header);
    let mut env = EvmEnv::for_eth_block(header, rules, chain.chain_id(), blobs);
    env.cfg_env.disable_eip3607 = chain.is_dev();
    if chain.has_net_gas(header.number) {
        net_gas::put_in_force(&mut env.cfg_env.gas_params);
    }
    env
}

/// The EVM of a block on `db`. Its inspector is off; the recorder notes contract creations.
pub(crate) fn evm<S: State>(db: &mut BlockCache<S>, env: EvmEnv) -> BlockEvm<'_, S> {
    evm_with(db, env, None, CodeInspector::default())
}

/// As [`evm`], with more instructions replaced, at the gas price of the replaced ones, and under
/// another inspector.
pub(crate) fn evm_with<'a, S: State, I>(
    db: &'a mut BlockCache<S>,
    env: EvmEnv,
    more: impl IntoIterator<Item = (u8, Instruction<EthInterpreter, Context<'a, S>>)>,
    inspector: I,
) -> BlockEvm<'a, S, I>
where
    I: Inspector<Context<'a, S>>,
{
    let has_net_gas = net_gas::is_in_force(&env.cfg_env.gas_params);
    let mut evm = EthEvmBuilder::new(db, env).inspector(inspector).build().into_inner();
    let noting = [
        (opcode::CREATE, Instruction::new(create::<S, false>)),
        (opcode::CREATE2, Instruction::new(create::<S, true>)),
    ];
    let store = has_net_gas.then_some((opcode::SSTORE, Instruction::new(net_gas::sstore)));
    for (code, instruction) in noting.into_iter().chain(store).chain(more) {
        let gas = evm.instruction.gas_table()[usize::from(code)];
        evm.instruction.insert_instruction(code, instruction, gas);
    }
    BlockEvm::new(evm)
}

fn create<S: State, const CREATE2: bool>(
    context: InstructionContext<'_, Context<'_, S>, EthInterpreter>,
) -> InstructionExecResult {
    context.host.journaled_state.database.recorder().note_creation();
    contract::create::<CREATE2, _, _>(context)
}

/// The library's EVM.
pub(crate) type LibraryEvm<'a, S, I = CodeInspector> = context::Evm<
    Context<'a, S>,
    I,
    EthInstructions<EthInterpreter, Context<'a, S>>,
    PrecompilesMap,
    EthFrame,
>;

/// The EVM on a block's state.
#[derive(Debug)]
pub(crate) struct BlockEvm<'a, S: State, I = CodeInspector> {
    inner: LibraryEvm<'a, S, I>,
    /// Whether the inspector is on.
    inspects: bool,
}

impl<'a, S: State, I> BlockEvm<'a, S, I> {
    /// With the inspector off.
    pub(crate) const fn new(inner: LibraryEvm<'a, S, I>) -> Self {
        Self { inner, inspects: false }
    }
}

impl<'a, S: State, I: Inspector<Context<'a, S>>> BlockEvm<'a, S, I> {
    fn system_call(
        &mut self,
        tx: TxEnv,
        reservoir: u64,
        inspects: bool,
    ) -> Result<ResultAndState, EVMError<EvmDatabaseError<ReadError>>> {
        self.inner.ctx.set_tx(tx);
        let mut call = SystemCall { reservoir, evm: PhantomData };
        let result = if inspects {
            call.inspect_run_system_call(&mut self.inner)
        } else {
            call.run_system_call(&mut self.inner)
        };
        let state = self.inner.finalize();
        Ok(ResultAndState::new(result?, state))
    }
}

impl<'a, S: State, I> Deref for BlockEvm<'a, S, I> {
    type Target = Context<'a, S>;

    fn deref(&self) -> &Context<'a, S> {
        &self.inner.ctx
    }
}

impl<'a, S: State, I> DerefMut for BlockEvm<'a, S, I> {
    fn deref_mut(&mut self) -> &mut Context<'a, S> {
        &mut self.inner.ctx
    }
}

impl<'a, S: State, I: Inspector<Context<'a, S>>> Evm for BlockEvm<'a, S, I> {
    type DB = &'a mut BlockCache<S>;
    type Tx = TxEnv;
    type Error = EVMError<EvmDatabaseError<ReadError>>;
    type HaltReason = HaltReason;
    type Spec = SpecId;
    type BlockEnv = BlockEnv;
    type Precompiles = PrecompilesMap;
    type Inspector = I;

    fn block(&self) -> &BlockEnv {
        &self.inner.ctx.block
    }

    fn cfg_env(&self) -> &CfgEnv<SpecId> {
        &self.inner.ctx.cfg
    }

    fn chain_id(&self) -> u64 {
        self.inner.ctx.cfg.chain_id
    }

    fn transact_raw(&mut self, tx: TxEnv) -> Result<ResultAndState, Self::Error> {
        if self.inspects { self.inner.inspect_tx(tx) } else { self.inner.transact(tx) }
    }

    /// Runs a system call. The library adds the gas that EIP-8037 reserves for new slots on every
    /// fork, and as gas for anything. Code reads are recorded as those of a transaction.
    fn transact_system_call(
        &mut self,
        caller: Address,
        contract: Address,
        data: Bytes,
    ) -> Result<ResultAndState, Self::Error> {
        let mut tx = TxEnv::new_system_tx_with_caller(caller, contract, data);
        let for_state = tx.gas_limit.saturating_sub(SYSTEM_CALL_GAS);
        let reservoir = if self.cfg_env().enable_amsterdam_eip8037 { for_state } else { 0 };
        tx.gas_limit = SYSTEM_CALL_GAS + reservoir;
        let db = self.db_mut();
        db.recorder().transaction = TransactionCodes::default();
        let always_exact = db.recorder().always_exact;
        if always_exact {
            db.restart_exactly();
        }
        let mut output = self.system_call(tx.clone(), reservoir, always_exact);
        if self.db_mut().is_ambiguous(output.as_ref().ok().map(|output| &output.state)) {
            self.inner.ctx.error = Ok(());
            self.db_mut().restart_exactly();
            output = self.system_call(tx, reservoir, true);
        }
        let output = output?;
        self.db_mut().note_written(&output.state);
        Ok(output)
    }

    fn finish(self) -> (Self::DB, EvmEnv) {
        let Context { block, cfg, journaled_state, .. } = self.inner.ctx;
        (journaled_state.database, EvmEnv { block_env: block, cfg_env: cfg })
    }

    fn set_inspector_enabled(&mut self, enabled: bool) {
        self.inspects = enabled;
    }

    fn components(&self) -> (&Self::DB, &I, &PrecompilesMap) {
        let inner = &self.inner;
        (&inner.ctx.journaled_state.database, &inner.inspector, &inner.precompiles)
    }

    fn components_mut(&mut self) -> (&mut Self::DB, &mut I, &mut PrecompilesMap) {
        let inner = &mut self.inner;
        (&mut inner.ctx.journaled_state.database, &mut inner.inspector, &mut inner.precompiles)
    }
}

/// A system call with a separate reservoir of gas for state.
struct SystemCall<E> {
    reservoir: u64,
    evm: PhantomData<E>,
}

impl<'a, S: State, I: Inspector<Context<'a, S>>> InspectorHandler
    for SystemCall<LibraryEvm<'a, S, I>>
{
    type IT = EthInterpreter;
}

impl<'a, S: State, I> Handler for SystemCall<LibraryEvm<'a, S, I>> {
    type Evm = LibraryEvm<'a, S, I>;
    type Error = EVMError<EvmDatabaseError<ReadError>>;
    type HaltReason = HaltReason;

    fn tx_gas(&self, evm: &mut Self::Evm, _: &InitialAndFloorGas) -> GasTracker {
        let gas_limit = evm.ctx_ref().tx.gas_limit;
        GasTracker::new(gas_limit, gas_limit - self.reservoir, self.reservoir)
    }
}
