//! The contracts of the workload. All have one runtime, followed by bytes that make their codes as
//! large and as different from each other as those of a public network.
//!
//! Word 0 of the call's data is the method. A slot with an index is an entry of a mapping at
//! position 0, as Solidity lays it out: `keccak256(index . 0)`.

use std::sync::LazyLock;

use alloy_primitives::{Address, Bytes, U256};

use crate::chain::asm::assemble;
use crate::random::Random;

/// A method of the contracts, with the words of its call.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum Method {
    /// Sets the slots from word 1 to before word 2 to 80 bits of their own keys.
    Fill = 1,
    /// Sends 56 bits of wei to each derived account from word 1 to before word 2.
    Pay,
    /// Moves word 3 from the balance of index word 1 to that of word 2.
    Transfer,
    /// Sets the allowance of spender word 2 for owner word 1 to word 3.
    Approve,
    /// Makes token word 1 for owner word 2: two entries and a counter.
    Mint,
    /// Clears the slot with index word 1.
    Burn,
    /// Reads the slots whose indices follow.
    Read,
    /// Hashes and multiplies, word 1 times.
    Compute,
    /// Moves tokens of two contracts, and changes reserves and ticks: see [`Swap`].
    Swap,
    /// Makes the calls that follow: address, length, data.
    Multicall,
}

/// Gas of one slot that [`Method::Fill`] sets, and of one account that
/// [`Method::Pay`] makes.
pub(crate) const FILL_GAS: u64 = 22_280;
pub(crate) const PAY_GAS: u64 = 34_480;

const RUNTIME: &str = "
    0 calldataload
    dup1 1 eq @fill jumpi   dup1 2 eq @pay jumpi    dup1 3 eq @transfer jumpi
    dup1 4 eq @approve jumpi dup1 5 eq @mint jumpi  dup1 6 eq @burn jumpi
    dup1 7 eq @read jumpi   dup1 8 eq @compute jumpi dup1 9 eq @swap jumpi
    dup1 10 eq @multicall jumpi
    0 0 revert

  :fill
    64 calldataload 32 calldataload                         // end i
  :fill_next
    dup1 0 mstore 64 0 keccak256                            // end i key
    dup1 176 shr 1 or swap1 sstore
    1 add dup2 dup2 lt @fill_next jumpi
    stop

  :pay
    64 calldataload 32 calldataload                         // end i
  :pay_next
    dup1 0 mstore 32 0 keccak256                            // end i hash
    0 0 0 0 dup5 200 shr dup6 0 call pop pop
    1 add dup2 dup2 lt @pay_next jumpi
    stop

  :transfer
    0 sload pop                                             // paused?
    32 calldataload 0 mstore 64 0 keccak256
    dup1 sload 96 calldataload swap1 sub swap1 sstore
    64 calldataload 0 mstore 64 0 keccak256
    dup1 sload 96 calldataload add swap1 sstore
    96 calldataload 0 mstore
    64 calldataload 32 calldataload 3723432333 32 0 log3
    1 0 mstore 32 0 return

  :approve
    32 calldataload 0 mstore 1 32 mstore 64 0 keccak256
    32 mstore 64 calldataload 0 mstore
    96 calldataload 64 0 keccak256 sstore
    96 calldataload 0 mstore
    64 calldataload 32 calldataload 2354230569 32 0 log3
    1 0 mstore 32 0 return

  :mint
    2 sload 1 add 2 sstore
    32 calldataload 0 mstore 2 32 mstore
    64 calldataload 64 0 keccak256 sstore
    64 calldataload 0 mstore 0 32 mstore 64 0 keccak256
    dup1 sload 1 add swap1 sstore
    32 calldataload 64 calldataload 0 3723432333 0 0 log4
    stop

  :burn
    32 calldataload 0 mstore 0 64 0 keccak256 sstore
    stop

  :read
    32
  :read_next
    dup1 calldatasize eq @end jumpi
    dup1 calldataload 0 mstore 64 0 keccak256 sload pop
    32 add @read_next jump

  :compute
    32 calldataload
  :compute_next                                             // n
    64 0 keccak256 dup1 0 mstore
    4294967291 dup2 dup3 mulmod 32 mstore pop
    1 swap1 sub dup1 @compute_next jumpi
    stop

  :swap
    8 sload 9 sload add 10 sload add pop
    192 calldataload
  :swap_math
    64 0 keccak256 dup1 0 mstore
    4294967291 dup2 dup3 mulmod 32 mstore pop
    1 swap1 sub dup1 @swap_math jumpi pop
    224
  :tick_next                                                // place
    dup1 calldatasize eq @ticks_done jumpi
    dup1 calldataload 0 mstore 3 32 mstore 64 0 keccak256
    dup1 sload 1 add swap1 sstore
    32 add @tick_next jump
  :ticks_done
    pop
    3 0 mstore 96 calldataload 32 mstore 128 calldataload 64 mstore 160 calldataload 96 mstore
    0 0 128 0 0 32 calldataload gas call pop
    128 calldataload 32 mstore 96 calldataload 64 mstore
    0 0 128 0 0 64 calldataload gas call pop
    8 sload 160 calldataload add 8 sstore
    timestamp 9 sstore
    160 calldataload 0 mstore
    96 calldataload 32 calldataload 3614461986 64 0 log3
    stop

  :multicall
    32
  :call_next                                                // place
    dup1 calldatasize eq @end jumpi
    dup1 32 add calldataload                                // place length
    dup1 dup3 64 add 0 calldatacopy
    0 0 dup3 0 0 dup7 calldataload gas call pop
    add 64 add @call_next jump

  :end
    stop
";

/// Assembled once.
static CODE: LazyLock<Vec<u8>> = LazyLock::new(|| assemble(RUNTIME));

/// A contract's code: the runtime, then `STOP` and bytes like no other, up to `len`.
pub(crate) fn code(seed: u64, len: usize) -> Bytes {
    let mut code = CODE.clone();
    code.push(0);
    let padding = len.saturating_sub(code.len());
    code.extend(Random::new(seed).bytes(padding));
    code.into()
}

/// Creation code that sets two slots and leaves a contract of `len` bytes, which only stops.
pub(crate) fn deployment(seed: u64, len: u16) -> Bytes {
    let head = |start: usize| {
        let text = "1 0 sstore caller 1 sstore #LEN #START 0 codecopy #LEN 0 return";
        assemble(&text.replace("LEN", &len.to_string()).replace("START", &start.to_string()))
    };
    let mut code = head(head(0).len());
    code.push(0);
    code.extend(Random::new(seed).bytes(usize::from(len) - 1));
    code.into()
}

/// Creation code that ends its own contract, which is gone after the transaction (EIP-6780).
pub(crate) fn short_life() -> Bytes {
    assemble("1 0 sstore caller selfdestruct").into()
}

impl Method {
    /// The data of a call.
    pub(crate) fn call(self, arguments: &[u64]) -> Bytes {
        words(&[&[self as u64], arguments].concat()).into()
    }
}

/// A trade with a pool.
#[derive(Debug)]
pub(crate) struct Swap {
    /// The two tokens.
    pub(crate) tokens: [Address; 2],
    /// Index of the trader's balances.
    pub(crate) trader: u64,
    /// Index of the pool's balances.
    pub(crate) pool: u64,
    pub(crate) amount: u64,
    /// Rounds of arithmetic, about 110 gas each.
    pub(crate) rounds: u64,
    /// Entries of the pool's mapping at position 3 that change.
    pub(crate) ticks: Vec<u64>,
}

impl Swap {
    pub(crate) fn data(&self) -> Bytes {
        let mut data = words(&[Method::Swap as u64]);
        self.tokens.iter().for_each(|token| data.extend_from_slice(token.into_word().as_slice()));
        data.extend(words(&[self.trader, self.pool, self.amount, self.rounds]));
        data.extend(words(&self.ticks));
        data.into()
    }
}

/// The data of [`Method::Multicall`].
pub(crate) fn multicall(calls: &[(Address, Bytes)]) -> Bytes {
    let mut data = words(&[Method::Multicall as u64]);
    for (target, input) in calls {
        data.extend_from_slice(target.into_word().as_slice());
        data.extend(words(&[input.len() as u64]));
        data.extend_from_slice(input);
    }
    data.into()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| U256::from(*word).to_be_bytes::<32>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_as_long_as_asked_and_differ() {
        let (a, b) = (code(1, 5000), code(2, 5000));
        assert_eq!((a.len(), b.len()), (5000, 5000));
        assert_ne!(a, b);
        assert_eq!(a[..CODE.len()], b[..CODE.len()]);
    }

    #[test]
    fn a_deployment_returns_what_follows_its_head() {
        let code = deployment(3, 700);
        let head = code.len() - 700;
        assert_eq!(code[head], 0);
        let pushed = [&[0x61][..], &(head as u16).to_be_bytes()].concat();
        assert!(code[..head].windows(3).any(|window| window == pushed));
    }
}
