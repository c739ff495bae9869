//! The addresses of accounts of which a witness has the hashes.

use alloy_consensus::Transaction as _;
use alloy_primitives::map::{B256Map, B256Set};
use alloy_primitives::{Address, B256, Bytes, U256, address};
use execution::SealedBlock;
use trie::keccak::keccak256_many;
use witness::{Inspection, Witness};

use crate::limits::NAMES_TRIED;

/// Addresses by their hashes.
#[derive(Debug, Default)]
pub(crate) struct AccountNames(B256Map<Address>);

/// The contracts that blocks call at their start and end (EIP-4788, 2935, 7002, 7251), and the
/// caller of those.
const SYSTEM: [Address; 5] = [
    address!("0x000F3df6D732807Ef1319fB7B8bB8522d0Beac02"),
    address!("0x0000F90827F1C53a10cb7A02335B175320002935"),
    address!("0x00000961Ef480Eb55e80D19ad83579A64c007002"),
    address!("0x0000BBdDc7CE488642fb579F8B00f3a590007251"),
    address!("0xfffffffffffffffffffffffffffffffffffffffe"),
];

/// The highest number of a precompile (EIP-7951).
const PRECOMPILES: u64 = 0x100;

impl AccountNames {
    /// Looks for the addresses of all accounts in a witness: among `known`, in its block, in the
    /// values of slots and in codes. A hash confirms each, so that no other can be taken for it.
    pub(crate) fn find(
        inspection: &Inspection,
        witness: &Witness,
        block: &SealedBlock,
        known: impl Iterator<Item = Address>,
    ) -> Self {
        let accounts = inspection.accounts.iter();
        let mut wanted: B256Set = accounts.map(|account| account.hashed_address).collect();
        let mut tried = known
            .chain(SYSTEM)
            .chain(of_block(block))
            .chain(
                (1..=PRECOMPILES).map(|number| Address::left_padding_from(&number.to_be_bytes())),
            )
            .chain(inspection.slot_values.iter().map(of_word))
            .chain(block.body.transactions.iter().flat_map(|tx| of_input(tx.input())))
            .chain(witness.codes.iter().flat_map(of_code))
            .take(NAMES_TRIED);
        let mut names = B256Map::default();
        let (mut some, mut hashes) = (Vec::new(), Vec::new());
        while !wanted.is_empty() {
            some.clear();
            some.extend(tried.by_ref().take(1024));
            if some.is_empty() {
                break;
            }
            hashes.resize(some.len(), B256::ZERO);
            let keys: Vec<_> = some.iter().map(|address| address.as_slice()).collect();
            keccak256_many(&keys, &mut hashes);
            let found = some.iter().zip(&hashes).filter(|(_, hash)| wanted.remove(*hash));
            names.extend(found.map(|(address, hash)| (*hash, *address)));
        }
        Self(names)
    }

    /// The address with this hash, where it is known.
    pub(crate) fn get(&self, hashed_address: &B256) -> Option<Address> {
        self.0.get(hashed_address).copied()
    }

    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The addresses that a block names: its fee recipient, those of its withdrawals, and those in its
/// transactions. Senders are not among them.
fn of_block(block: &SealedBlock) -> impl Iterator<Item = Address> {
    let (header, body) = (&block.header, &block.body);
    let withdrawals = body.withdrawals.iter().flat_map(|list| list.iter());
    let transactions = body.transactions.iter().flat_map(|tx| {
        let listed = tx.access_list().into_iter().flat_map(|list| list.iter());
        let authorizations = tx.authorization_list().unwrap_or_default().iter();
        let delegated = authorizations
            .flat_map(|signed| signed.recover_authority().ok().into_iter().chain([signed.address]));
        tx.to().into_iter().chain(listed.map(|item| item.address)).chain(delegated)
    });
    let ommers = body.ommers.iter().map(|ommer| ommer.beneficiary);
    let withdrawals = withdrawals.map(|withdrawal| withdrawal.address);
    std::iter::once(header.beneficiary).chain(ommers).chain(withdrawals).chain(transactions)
}

/// The low twenty bytes of a word.
fn of_word(word: &U256) -> Address {
    Address::from_word(B256::from(*word))
}

/// The words of a call's arguments that could be addresses.
fn of_input(input: &Bytes) -> impl Iterator<Item = Address> {
    let arguments = input.get(4..).unwrap_or_default().chunks_exact(32);
    arguments.filter(|word| word[..12] == [0; 12]).map(|word| Address::from_slice(&word[12..]))
}

/// The addresses that a code pushes, or delegates to.
fn of_code(code: &Bytes) -> impl Iterator<Item = Address> {
    const PUSH20: u8 = 0x73;
    let delegate = code.strip_prefix(&[0xef, 0x01, 0x00]).filter(|rest| rest.len() == 20);
    let pushed = code.windows(21).filter(|window| window[0] == PUSH20);
    let pushed = pushed.map(|window| Address::from_slice(&window[1..]));
    delegate.map(Address::from_slice).into_iter().chain(pushed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    #[test]
    fn addresses_are_found_wherever_they_stand() {
        let addresses = |bytes: [u8; 6]| bytes.map(Address::repeat_byte);
        let [known, recipient, slot, pushed, delegate, absent] = addresses([1, 2, 3, 4, 5, 6]);
        let mut inspection = Inspection::default();
        let all = [known, recipient, slot, pushed, delegate, absent, SYSTEM[0]];
        for address in all {
            inspection.accounts.push(witness::InspectedAccount {
                hashed_address: keccak256(address),
                account: witness::Account::default(),
                leaf_bytes: 0,
                storage: witness::ItemCount::default(),
                shared_nodes: 0,
                storage_depth: 0,
                code_bytes: 0,
            });
        }
        inspection.slot_values.push(U256::from_be_bytes(slot.into_word().0) | (U256::ONE << 160));
        let code = [&[0x60, 0x00, 0x73][..], pushed.as_slice(), &[0x00]].concat();
        let marker = [&[0xef, 0x01, 0x00][..], delegate.as_slice()].concat();
        let codes = vec![code.into(), marker.into()];
        let witness = Witness { codes, ..Witness::default() };
        let header = alloy_consensus::Header { beneficiary: recipient, ..Default::default() };
        let block = SealedBlock::new(alloy_consensus::Block::new(header, Default::default()));
        let names = AccountNames::find(&inspection, &witness, &block, [known].into_iter());
        let found: Vec<_> = all.map(|address| names.get(&keccak256(address))).into();
        let mut expected: Vec<_> = all.map(Some).into();
        expected[5] = None;
        assert_eq!(found, expected);
        assert_eq!(names.len(), 6);
    }
}
