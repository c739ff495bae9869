use crate::evm::environment;
use crate::{ChainSpec, Transaction};
use alloy_consensus::{Header, Transaction as _};
use alloy_primitives::Address;
use revm::context_interface::Cfg as _;
use revm::context_interface::cfg::gas_params::Eip2780TxInfo;
use revm::primitives::hardfork::SpecId;

/// The gas that a transaction must bring along, whatever it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntrinsicGas {
    /// Gas that is charged before it runs, for its base, its data and its lists (EIP-2780 from
    /// Amsterdam on).
    pub intrinsic: u64,
    /// The least gas that it is charged for its data (EIP-7623); zero before Prague.
    pub floor: u64,
}

/// The intrinsic and the floor gas of a transaction by the rules of the block with this header.
pub fn intrinsic_gas(
    chain: &ChainSpec,
    header: &Header,
    transaction: &Transaction,
    sender: Address,
) -> IntrinsicGas {
    let cfg = environment(chain, header).cfg_env;
    let lists = transaction.access_list();
    let slots = lists.map_or(0, |list| list.storage_keys_count());
    let authorizations = transaction.authorization_list().map_or(0, <[_]>::len);
    let transfer = cfg.is_amsterdam_eip2780_enabled().then(|| Eip2780TxInfo {
        value: transaction.value(),
        is_self_transfer: transaction.to() == Some(sender),
    });
    let gas = cfg.gas_params().initial_tx_gas(
        transaction.input(),
        transaction.is_create(),
        lists.map_or(0, |list| list.len()) as u64,
        slots as u64,
        authorizations as u64,
        transfer,
    );
    let has_state_gas = cfg.is_amsterdam_eip8037_enabled();
    let has_floor = cfg.spec().is_enabled_in(SpecId::PRAGUE);
    IntrinsicGas {
        intrinsic: if has_state_gas { gas.initial_total_gas() } else { gas.initial_regular_gas() },
        floor: if has_floor { gas.floor_gas() } else { 0 },
    }
}
