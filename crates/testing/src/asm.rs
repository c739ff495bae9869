//! An assembler of EVM code: opcodes, and short sequences of them.

use alloy_primitives::{Address, Bytes, keccak256};

/// `ADD`.
pub const ADD: u8 = 0x01;
/// `BALANCE`.
pub const BALANCE: u8 = 0x31;
/// `CALLER`.
pub const CALLER: u8 = 0x33;
/// `EXTCODESIZE`.
pub const EXTCODESIZE: u8 = 0x3b;
/// `EXTCODECOPY`.
pub const EXTCODECOPY: u8 = 0x3c;
/// `EXTCODEHASH`.
pub const EXTCODEHASH: u8 = 0x3f;
/// `BLOCKHASH`.
pub const BLOCKHASH: u8 = 0x40;
/// `COINBASE`.
pub const COINBASE: u8 = 0x41;
/// `NUMBER`.
pub const NUMBER: u8 = 0x43;
/// `POP`.
pub const POP: u8 = 0x50;
/// `SLOAD`.
pub const SLOAD: u8 = 0x54;
/// `SSTORE`.
pub const SSTORE: u8 = 0x55;
/// `GAS`.
pub const GAS: u8 = 0x5a;
/// `PUSH0`.
pub const PUSH0: u8 = 0x5f;
/// `CALL`.
pub const CALL: u8 = 0xf1;
/// `CALLCODE`.
pub const CALLCODE: u8 = 0xf2;
/// `DELEGATECALL`.
pub const DELEGATECALL: u8 = 0xf4;
/// `STATICCALL`.
pub const STATICCALL: u8 = 0xfa;
/// `SELFDESTRUCT`.
pub const SELFDESTRUCT: u8 = 0xff;

const ADDRESS: u8 = 0x30;
const CALLDATASIZE: u8 = 0x36;
const CALLDATACOPY: u8 = 0x37;
const CODECOPY: u8 = 0x39;
const CREATE: u8 = 0xf0;
const CREATE2: u8 = 0xf5;
const RETURN: u8 = 0xf3;
const REVERT: u8 = 0xfd;
const STOP: u8 = 0x00;
const DUP6: u8 = 0x85;
const LOG0: u8 = 0xa0;

/// Puts up to 32 bytes on the stack.
pub fn push(bytes: &[u8]) -> Vec<u8> {
    [&[PUSH0 + bytes.len() as u8], bytes].concat()
}

/// Reads something of an account and forgets it: BALANCE, EXTCODESIZE or EXTCODEHASH.
pub fn look(op: u8, address: Address) -> Vec<u8> {
    [&push(address.as_slice()), &[op, POP][..]].concat()
}

/// Copies no bytes of an account's code.
pub fn copy_nothing(address: Address) -> Vec<u8> {
    [&[PUSH0; 3][..], &push(address.as_slice()), &[EXTCODECOPY]].concat()
}

/// Calls with nearly all gas and no input: CALL, CALLCODE, DELEGATECALL or STATICCALL.
pub fn call(op: u8, address: Address) -> Vec<u8> {
    let zeros = if matches!(op, CALL | CALLCODE) { 5 } else { 4 };
    [&vec![PUSH0; zeros][..], &push(address.as_slice()), &[GAS, op, POP]].concat()
}

/// Calls with this much gas, and with the bytes in memory that [`load_input`] put there.
pub fn call_with(address: Address, gas: u16, value: u8) -> Vec<u8> {
    let input = [PUSH0, PUSH0, CALLDATASIZE, PUSH0];
    [
        &input[..],
        &push(&[value]),
        &push(address.as_slice()),
        &push(&gas.to_be_bytes()),
        &[CALL, POP],
    ]
    .concat()
}

/// As [`call_with`], with nearly all gas and no value.
pub fn call_on(address: Address) -> Vec<u8> {
    let input = [PUSH0, PUSH0, CALLDATASIZE, PUSH0, PUSH0];
    [&input[..], &push(address.as_slice()), &[GAS, CALL, POP]].concat()
}

/// Copies the calldata to memory.
pub fn load_input() -> Vec<u8> {
    vec![CALLDATASIZE, PUSH0, PUSH0, CALLDATACOPY]
}

/// Logs the bytes in memory, as many as the calldata has, with the topics on the stack.
pub fn log_input(topics: u8) -> Vec<u8> {
    vec![CALLDATASIZE, PUSH0, LOG0 + topics]
}

/// CREATE with the bytes in memory as init code; leaves the address on the stack.
pub fn create() -> Vec<u8> {
    vec![CALLDATASIZE, PUSH0, PUSH0, CREATE]
}

/// CREATE2 with salt zero, else as [`create`].
pub fn create2() -> Vec<u8> {
    vec![PUSH0, CALLDATASIZE, PUSH0, PUSH0, CREATE2]
}

/// The address that [`create2`] in the code of `creator` gives.
pub fn create2_address(creator: Address, init_code: &[u8]) -> Address {
    creator.create2([0; 32], keccak256(init_code))
}

/// Calls the address on the stack.
pub fn call_created() -> Vec<u8> {
    vec![PUSH0, PUSH0, PUSH0, PUSH0, PUSH0, DUP6, GAS, CALL, POP]
}

/// Sends the address on the stack some wei.
pub fn pay_created(value: u8) -> Vec<u8> {
    let memory = [PUSH0, PUSH0, PUSH0, PUSH0];
    [&memory[..], &push(&[value]), &[DUP6, GAS, CALL, POP]].concat()
}

/// Ends the contract, in its own favour.
pub fn selfdestruct() -> Bytes {
    vec![ADDRESS, SELFDESTRUCT].into()
}

/// Stores what is on the stack in a slot.
pub fn store(slot: u8) -> Vec<u8> {
    [&push(&[slot]), &[SSTORE][..]].concat()
}

/// Stores a value in a slot.
pub fn set(slot: u8, value: u8) -> Vec<u8> {
    [&push(&[value]), &push(&[slot]), &[SSTORE][..]].concat()
}

/// Reads the hash of the block `distance` before the running one.
pub fn block_hash(distance: u16) -> Vec<u8> {
    const SUB: u8 = 0x03;
    [&push(&distance.to_be_bytes()), &[NUMBER, SUB, BLOCKHASH, POP][..]].concat()
}

/// Reverts without data.
pub fn revert() -> Vec<u8> {
    vec![PUSH0, PUSH0, REVERT]
}

/// A code of its own kind that does nothing.
pub fn idle(tag: u8) -> Bytes {
    vec![STOP, tag].into()
}

/// Init code that deploys `code`.
pub fn deploy(code: &[u8]) -> Vec<u8> {
    let length = push(&(code.len() as u16).to_be_bytes());
    let copy = [&length, &push(&[12]), &[PUSH0, CODECOPY][..]].concat();
    [&copy, &length, &[PUSH0, RETURN][..], code].concat()
}
