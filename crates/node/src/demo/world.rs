//! A chain on which one transaction makes a witness of any size.
//!
//! The genesis holds contracts of the largest size, each with another code, at consecutive
//! addresses. A loop asks for the `EXTCODESIZE` of a range of them: 2,637 gas a contract on Osaka,
//! and each adds its whole code to the witness.

use alloy_consensus::{SignableTransaction, TxEip1559};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::{eip2935, eip4788, eip7002, eip7251};
use alloy_genesis::{ChainConfig, Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, address, bytes, keccak256};
use anyhow::Context;
use execution::Transaction;
use k256::ecdsa::SigningKey;

/// Bytes of each contract's code: the limit of EIP-170.
pub const CODE_BYTES: usize = 24_576;

/// Gas that the loop takes for one contract: a cold `EXTCODESIZE` (2,600) and the loop around it.
const GAS_A_CONTRACT: u64 = 2_637;

const CHAIN_ID: u64 = 764_773;
const FIRST_CONTRACT: Address = address!("0xc0de000000000000000000000000000000000000");
const LOOP: Address = address!("0x100900000000000000000000000000000000c0de");

/// Reads `start` and `end` from the call's data and asks for the code size of each address from
/// `start` to before `end`.
const LOOP_CODE: Bytes = bytes!("6000355b803b50600101806020351160035700");

/// The genesis, and the key of the account that pays.
#[derive(Debug)]
pub struct World {
    /// A geth-style genesis: Osaka from the first block on.
    pub genesis: Genesis,
    key: SigningKey,
}

impl World {
    /// A world of `contracts` contracts.
    pub fn new(contracts: usize) -> anyhow::Result<Self> {
        let key = SigningKey::from_slice(keccak256("deponent demo").as_slice())?;
        let point = key.verifying_key().to_encoded_point(false);
        let sender = Address::from_raw_public_key(&point.as_bytes()[1..]);
        let account = |code| GenesisAccount { code: Some(code), ..GenesisAccount::default() };
        let mut genesis = Genesis {
            config: config(),
            gas_limit: 60_000_000,
            timestamp: 1_767_747_671,
            ..Genesis::default()
        };
        let system = [
            (eip4788::BEACON_ROOTS_ADDRESS, eip4788::BEACON_ROOTS_CODE.clone()),
            (eip2935::HISTORY_STORAGE_ADDRESS, eip2935::HISTORY_STORAGE_CODE.clone()),
            (
                eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS,
                eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_CODE.clone(),
            ),
            (
                eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
                eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_CODE.clone(),
            ),
        ];
        for (address, code) in system {
            genesis.alloc.insert(address, account(code).with_nonce(Some(1)));
        }
        genesis.alloc.insert(LOOP, account(LOOP_CODE));
        let rich = GenesisAccount::default().with_balance(U256::from(10).pow(U256::from(24)));
        genesis.alloc.insert(sender, rich);
        for index in 0..contracts {
            genesis.alloc.insert(contract(index), account(code(index)));
        }
        Ok(Self { genesis, key })
    }

    /// A signed transaction that reads the code sizes of `contracts` contracts.
    pub fn read_codes(&self, nonce: u64, contracts: usize) -> anyhow::Result<Bytes> {
        let end = U256::from_be_slice(FIRST_CONTRACT.as_slice()) + U256::from(contracts);
        let input = [contract(0).into_word(), B256::from(end)].concat().into();
        let gas_limit = 30_000 + GAS_A_CONTRACT * contracts as u64;
        self.sign(nonce, TxKind::Call(LOOP), input, gas_limit)
    }

    /// A signed transaction of the paying account, as blocks hold it.
    pub fn sign(
        &self,
        nonce: u64,
        to: TxKind,
        input: Bytes,
        gas_limit: u64,
    ) -> anyhow::Result<Bytes> {
        let transaction = TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit,
            max_fee_per_gas: 100_000_000_000,
            max_priority_fee_per_gas: 1_000_000_000,
            to,
            input,
            ..TxEip1559::default()
        };
        let hash = transaction.signature_hash();
        let (signature, recovery) = self
            .key
            .sign_prehash_recoverable(hash.as_slice())
            .context("the demo's key cannot sign")?;
        let signature =
            Signature::from_bytes_and_parity(&signature.to_bytes(), recovery.is_y_odd());
        let signed = Transaction::from(transaction.into_signed(signature));
        Ok(signed.encoded_2718().into())
    }
}

fn config() -> ChainConfig {
    ChainConfig {
        chain_id: CHAIN_ID,
        homestead_block: Some(0),
        eip150_block: Some(0),
        eip155_block: Some(0),
        eip158_block: Some(0),
        byzantium_block: Some(0),
        constantinople_block: Some(0),
        petersburg_block: Some(0),
        istanbul_block: Some(0),
        berlin_block: Some(0),
        london_block: Some(0),
        merge_netsplit_block: Some(0),
        terminal_total_difficulty: Some(U256::ZERO),
        terminal_total_difficulty_passed: true,
        shanghai_time: Some(0),
        cancun_time: Some(0),
        prague_time: Some(0),
        osaka_time: Some(0),
        blob_schedule: [
            ("cancun".into(), alloy_eips::eip7840::BlobParams::cancun()),
            ("prague".into(), alloy_eips::eip7840::BlobParams::prague()),
            ("osaka".into(), alloy_eips::eip7840::BlobParams::osaka()),
        ]
        .into(),
        deposit_contract_address: Some(alloy_eips::eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS),
        ..ChainConfig::default()
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
