//! The prices of storage by EIP-1283, which Constantinople had and Petersburg took back: the
//! library's formula of EIP-2200 with other parameters, and without the least gas that this wants
//! to be left.

use revm::context_interface::cfg::gas::{SSTORE_RESET, SSTORE_SET};
use revm::context_interface::cfg::{GasId, GasParams};
use revm::interpreter::instructions::host::sstore_with_gas_accounting;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{Host, InstructionContext, InstructionExecResult, InstructionResult};

/// SLOAD_GAS of EIP-1283. No fork that the library knows has this price of a write.
const SLOAD_GAS: u64 = 200;

pub(crate) fn put_in_force(params: &mut GasParams) {
    let [set, reset] = [SSTORE_SET, SSTORE_RESET].map(|gas| gas - SLOAD_GAS);
    params.override_gas([
        (GasId::sstore_static(), SLOAD_GAS),
        (GasId::sstore_set_without_load_cost(), set),
        (GasId::sstore_set_refund(), set),
        (GasId::sstore_reset_without_cold_load_cost(), reset),
        (GasId::sstore_reset_refund(), reset),
    ]);
}

pub(crate) fn is_in_force(params: &GasParams) -> bool {
    params.sstore_static_gas() == SLOAD_GAS
}

/// SSTORE where these prices are in force.
pub(crate) fn sstore<H: Host>(
    context: InstructionContext<'_, H, EthInterpreter>,
) -> InstructionExecResult {
    sstore_with_gas_accounting(context, |context, _, stored| {
        let params = context.host.gas_params();
        let gas = params.sstore_dynamic_gas(true, &stored.data, false);
        let refund = params.sstore_refund(true, &stored.data);
        if !context.interpreter.gas.record_regular_cost(gas) {
            return Err(InstructionResult::OutOfGas);
        }
        context.interpreter.gas.record_refund(refund);
        Ok(())
    })
}
