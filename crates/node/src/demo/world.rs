//! A chain on which one transaction makes a witness of any size.
//!
//! The genesis holds contracts of the largest size, each with another code, at consecutive
//! addresses. A loop asks for the `EXTCODESIZE` of a range of them: 2,637 gas a contract on Osaka,
//! and each adds its whole code to the witness.

use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_consensus::{SignableTransaction, TxEip1559};
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address, bytes, keccak256};
use alloy_rpc_types_engine::{
    CancunPayloadFields, ExecutionPayload, ExecutionPayloadSidecar, PayloadAttributes,
    PraguePayloadFields,
};
use anyhow::Context;
use engine::Engine;
use execution::Transaction;

/// Bytes of each contract's code: the limit of EIP-170.
const CODE_BYTES: usize = 24_576;

/// Gas that the loop takes for one contract: a cold `EXTCODESIZE` (2,600) and the loop around it.
const GAS_A_CONTRACT: u64 = 2_637;

const FIRST_CONTRACT: Address = address!("0xc0de000000000000000000000000000000000000");
const LOOP: Address = address!("0x100900000000000000000000000000000000c0de");

/// Reads `start` and `end` from the call's data and asks for the code size of each address from
/// `start` to before `end`.
const LOOP_CODE: Bytes = bytes!("6000355b803b50600101806020351160035700");

const SECONDS_A_SLOT: u64 = 12;

/// A genesis, and the account that pays for all transactions.
#[derive(Debug)]
pub struct World {
    /// A geth-style genesis: Osaka from the first block on, as in `docs/genesis.json`.
    pub genesis: Genesis,
    key: B256,
    /// The nonce of the next transaction of [`World::build`].
    nonce: u64,
}

impl World {
    /// A world of `contracts` contracts.
    ///
    /// # Errors
    /// If the paying account's key cannot sign.
    pub fn new(contracts: usize) -> anyhow::Result<Self> {
        let key = keccak256("deponent demo");
        let sender = sign_message(key, key)?.recover_address_from_prehash(&key)?;
        let account = |code| GenesisAccount { code: Some(code), ..GenesisAccount::default() };
        let mut genesis: Genesis = serde_json::from_str(include_str!("genesis.json"))?;
        genesis.timestamp = 1_767_747_671;
        genesis.alloc.insert(LOOP, account(LOOP_CODE));
        let rich = GenesisAccount::default().with_balance(U256::from(10).pow(U256::from(24)));
        genesis.alloc.insert(sender, rich);
        for index in 0..contracts {
            genesis.alloc.insert(contract(index), account(code(index)));
        }
        Ok(Self { genesis, key, nonce: 0 })
    }

    /// Builds the payload of a block on the head that reads the codes of `contracts` contracts.
    ///
    /// # Errors
    /// If the engine does not build it.
    pub fn build(
        &mut self,
        engine: &Engine,
        contracts: usize,
    ) -> anyhow::Result<(ExecutionPayload, ExecutionPayloadSidecar)> {
        let head = engine.heads().head;
        let parent = engine.block(head)?.context("the head is unknown")?;
        let root = B256::repeat_byte(0xbe);
        let attributes = PayloadAttributes {
            timestamp: parent.block.header.timestamp + SECONDS_A_SLOT,
            prev_randao: B256::with_last_byte(1),
            suggested_fee_recipient: Address::repeat_byte(0xfe),
            withdrawals: Some(Vec::new()),
            parent_beacon_block_root: Some(root),
            ..PayloadAttributes::default()
        };
        let mut transactions = Vec::new();
        if contracts > 0 {
            transactions.push(self.read_codes(self.nonce, contracts)?);
            self.nonce += 1;
        }
        let built = engine.build(head, attributes, transactions, Bytes::new())?;
        let hash = built.block.hash();
        let (payload, _) = ExecutionPayload::from_block_unchecked(hash, &built.block);
        let sidecar = ExecutionPayloadSidecar::v4(
            CancunPayloadFields::new(root, Vec::new()),
            PraguePayloadFields::new(built.requests),
        );
        Ok((payload, sidecar))
    }

    /// A signed transaction that reads the code sizes of `contracts` contracts.
    ///
    /// # Errors
    /// If the key cannot sign.
    pub fn read_codes(&self, nonce: u64, contracts: usize) -> anyhow::Result<Transaction> {
        let end = U256::from_be_slice(FIRST_CONTRACT.as_slice()) + U256::from(contracts);
        let input = [contract(0).into_word(), B256::from(end)].concat().into();
        let gas_limit = 30_000 + GAS_A_CONTRACT * contracts as u64;
        self.sign(nonce, TxKind::Call(LOOP), input, gas_limit)
    }

    /// A signed transaction of the paying account.
    ///
    /// # Errors
    /// If the key cannot sign.
    pub fn sign(
        &self,
        nonce: u64,
        to: TxKind,
        input: Bytes,
        gas_limit: u64,
    ) -> anyhow::Result<Transaction> {
        let transaction = TxEip1559 {
            chain_id: self.genesis.config.chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas: 100_000_000_000,
            max_priority_fee_per_gas: 1_000_000_000,
            to,
            input,
            ..TxEip1559::default()
        };
        let signature = sign_message(self.key, transaction.signature_hash())?;
        Ok(transaction.into_signed(signature).into())
    }
}

fn contract(index: usize) -> Address {
    let address = U256::from_be_slice(FIRST_CONTRACT.as_slice()) + U256::from(index);
    Address::from_word(address.into())
}

/// A code that no other contract has and no compression makes smaller: `STOP`, then bytes of
/// splitmix64.
fn code(index: usize) -> Bytes {
    let mut state = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut code = Vec::with_capacity(CODE_BYTES);
    while code.len() < CODE_BYTES {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        code.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    code[0] = 0;
    code.into()
}
