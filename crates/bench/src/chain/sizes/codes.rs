//! The contracts of a chain of witness sizes. A *factory* makes codes of the largest size with
//! `CREATE2`, whose salts count from 0; a *reader* derives the same addresses and reads. Each word
//! of a code is one of a dictionary, in which some bits are replaced by those of a hash that goes
//! on from the contract's address.

use alloy_primitives::{Address, Bytes, U256, keccak256};

use super::{Codes, Read};
use crate::chain::asm::assemble;
use crate::random::Random;

/// Bytes of each code: the limit of EIP-170.
pub(super) const CODE_BYTES: u64 = 24_576;
const WORD: usize = 32;
/// Words of the dictionary of realistic codes; a power of 2.
const WORDS: usize = 64;

/// Deploys the codes with the salts from word 0 to before word 1. Behind it lies what makes one.
const FACTORY: &str = "
    LENGTH dup1 codesize sub 0 codecopy
    32 calldataload 0 calldataload                          // end salt
  :next
    dup1 LENGTH 0 0 create2
    @made jumpi 0 0 revert
  :made
    1 add dup2 dup2 lt @next jumpi
    stop
";

/// Returns a code. The dictionary lies behind it: pairs of a word and of the bits replaced in it.
const MAKER: &str = "
    LENGTH dup1 codesize sub 24608 codecopy
    address 24576 mstore
    0                                                       // place
  :next
    32 24576 keccak256 dup1 24576 mstore                    // place hash
    dup1 INDEX and                                          // place hash entry
    dup1 24608 add mload swap1 24640 add mload              // place hash word bits
    dup3 and or dup3 mstore pop                             // place
    32 add 24576 dup2 lt @next jumpi
    address 0 mstore                                        // begins with `STOP`
    24576 0 return
";

/// Reads the codes with the salts from word 0 to before word 1. Behind it lies what their addresses
/// are the hashes of (EIP-1014).
const READER: &str = "
    85 dup1 codesize sub 0 codecopy
    32 calldataload 0 calldataload                          // end salt
  :next
    dup1 21 mstore
    READ
    1 add dup2 dup2 lt @next jumpi
    stop
";

/// The contracts that a genesis has, and what they make.
#[derive(Debug)]
pub(super) struct Contracts {
    pub(super) factory: Address,
    pub(super) factory_code: Bytes,
    pub(super) reader: Address,
    pub(super) reader_code: Bytes,
    /// The init code.
    maker: Vec<u8>,
    dictionary: Vec<[[u8; WORD]; 2]>,
}

impl Contracts {
    pub(super) fn new(seed: u64, codes: Codes, read: Read) -> Self {
        let address = |name| Address::from_word(keccak256(format!("deponent bench {name} {seed}")));
        let (factory, reader) = (address("factory"), address("reader"));
        let dictionary = dictionary(seed, codes);
        let maker = MAKER.replace("INDEX", &((dictionary.len() - 1) * 2 * WORD).to_string());
        let maker = before(&maker, dictionary.as_flattened().as_flattened());
        let read = match read {
            Read::Size => "85 0 keccak256 extcodesize pop",
            Read::Copy => "32 0 96 85 0 keccak256 extcodecopy",
            Read::Call => "0 0 0 0 0 85 0 keccak256 0 call pop",
        };
        let preimage = [&[0xff], &factory[..], &[0; WORD], &keccak256(&maker)[..]].concat();
        Self {
            factory,
            factory_code: before(FACTORY, &maker).into(),
            reader,
            reader_code: before(&READER.replace("READ", read), &preimage).into(),
            maker,
            dictionary,
        }
    }

    /// The address of the code with a salt.
    pub(super) fn address(&self, salt: u64) -> Address {
        self.factory.create2_from_code(U256::from(salt).to_be_bytes(), &self.maker)
    }

    /// The code at an address, made the slow way.
    pub(super) fn code(&self, address: Address) -> Vec<u8> {
        let (mut code, mut hash) = (address.into_word().to_vec(), address.into_word());
        for place in 0..CODE_BYTES as usize / WORD {
            hash = keccak256(hash);
            let entry = (usize::from(hash[30]) << 8 | usize::from(hash[31])) / (2 * WORD);
            let [word, bits] = self.dictionary[entry & (self.dictionary.len() - 1)];
            if place > 0 {
                code.extend((0..WORD).map(|at| word[at] | bits[at] & hash[at]));
            }
        }
        code
    }
}

/// The words from one salt to before another.
pub(super) fn range(from: u64, to: u64) -> Bytes {
    [from, to].map(|salt| U256::from(salt).to_be_bytes::<WORD>()).concat().into()
}

/// Code, and behind it what it takes from its own end.
fn before(text: &str, data: &[u8]) -> Vec<u8> {
    let mut code = assemble(&text.replace("LENGTH", &data.len().to_string()));
    code.extend_from_slice(data);
    code
}

/// Words, and the bits that are replaced in each.
fn dictionary(seed: u64, codes: Codes) -> Vec<[[u8; WORD]; 2]> {
    match codes {
        Codes::Random => vec![[[0; WORD], [0xff; WORD]]],
        Codes::Compressible => vec![[[0x5b; WORD], [0; WORD]]],
        Codes::Realistic => {
            let mut random = Random::new(seed);
            (0..WORDS).map(|_| idioms(&mut random)).collect()
        }
    }
}

/// The sequences that compilers write most, in hex; `xx` is any byte, `1x` the high byte of a place
/// in the code.
const IDIOMS: &str = "
    604051        600080fd      5b50611xxx56          8152602001    611xxx565b    15611xxx57
    8063xxxxxxxx14611xxx57      505050565b            915050919050
    73ffffffffffffffffffffffffffffffffffffffff16      60xx54        60xx8201      908152
    600435        81019080      6001600160a01b0316    825260200152  5f5f9054
    611xxx611xxx565b            60405180910390fd      808310611xxx57
    63xxxxxxxx60e01b            919290                3d60003e3d6000fd
";

/// A word of idioms, cut off where it ends, and the bits that are any.
fn idioms(random: &mut Random) -> [[u8; WORD]; 2] {
    let (all, mut digits) = (IDIOMS.split_whitespace().collect::<Vec<_>>(), String::new());
    while digits.len() < 2 * WORD {
        digits += all[random.below(all.len() as u64) as usize];
    }
    let half = |any: [u8; 2], own: fn(u8) -> u8| {
        std::array::from_fn(|at| {
            let pair = &digits.as_bytes()[2 * at..2 * at + 2];
            pair.iter().zip(any).fold(0, |byte, (digit, any)| {
                byte << 4 | if *digit == b'x' { any } else { own(*digit) }
            })
        })
    };
    let digit = |digit: u8| (digit as char).to_digit(16).expect("hex digits") as u8;
    [half([0, 0], digit), half([0xf, 0xf], |_| 0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_as_compressible_as_they_are_called() {
        let check = |codes, [low, high]: [f64; 2]| {
            let contracts = Contracts::new(1, codes, Read::Copy);
            let all: Vec<u8> =
                (0..40).flat_map(|salt| contracts.code(contracts.address(salt))).collect();
            assert_eq!(all.len() as u64, 40 * CODE_BYTES);
            let packed = zstd::bulk::compress(&all, 3).expect("it is compressed").len();
            let ratio = all.len() as f64 / packed as f64;
            assert!((low..high).contains(&ratio), "{codes:?}: {ratio}");
        };
        check(Codes::Random, [0.9, 1.01]);
        check(Codes::Realistic, [2.0, 3.2]);
        check(Codes::Compressible, [100.0, 100_000.0]);
    }

    #[test]
    fn codes_differ_and_stop_at_once() {
        let contracts = Contracts::new(7, Codes::Realistic, Read::Size);
        let [one, other] = [0, 1].map(|salt| contracts.code(contracts.address(salt)));
        assert_ne!(one, other);
        assert_eq!((one[0], other[0]), (0, 0));
    }
}
