//! Creations where there is something already, in frames that revert and in others: the block
//! access list (EIP-7928) names exactly what the block asks for, and so does the witness.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address};
use deponent_execution::{AccessList, RunOptions, Transaction, recover_senders, run};
use proptest::prelude::*;
use testing::asm::*;
use testing::world::{self, Signer, StartAccount, World};
use witness::{Account, BlockState, Change, State, StateError};

const FACTORY: Address = address!("0x00000000000000000000000000000000000000b1");
const REVERTING_FACTORY: Address = address!("0x00000000000000000000000000000000000000b2");
const NOBODY: Address = address!("0x00000000000000000000000000000000000000b9");

/// Contracts that call a factory with their input, and then revert, or not.
const CALLERS: [(Address, Address, bool); 4] = [
    (address!("0x00000000000000000000000000000000000000c1"), FACTORY, false),
    (address!("0x00000000000000000000000000000000000000c2"), FACTORY, true),
    (address!("0x00000000000000000000000000000000000000c3"), REVERTING_FACTORY, false),
    (address!("0x00000000000000000000000000000000000000c4"), REVERTING_FACTORY, true),
];

fn sender() -> Signer {
    Signer::new(1)
}

/// Init codes that read, write, create, revert and deploy.
fn init_codes() -> [Vec<u8>; 5] {
    let load = [PUSH0, SLOAD, POP];
    [
        deploy(&idle(1)),
        [look(BALANCE, NOBODY), revert()].concat(),
        [set(0, 1), set(1, 0), deploy(&idle(2))].concat(),
        // Without input, they create an account without code.
        [create2(), vec![POP], look(BALANCE, NOBODY), revert()].concat(),
        [&load[..], &create2(), &[POP], &deploy(&idle(3))].concat(),
    ]
}

/// An account that is there before the block.
#[derive(Debug, Clone, Copy)]
enum Before {
    Nothing,
    Storage,
    Code,
    Balance,
}

impl Before {
    fn account(self) -> Option<StartAccount> {
        match self {
            Self::Nothing => None,
            Self::Storage => Some(StartAccount::default().storage([(0, 7), (3, 9)])),
            Self::Code => Some(StartAccount::contract(idle(9)).storage([(0, 7)])),
            Self::Balance => Some(StartAccount::rich()),
        }
    }
}

/// The creator of a contract: a factory, one of [`CALLERS`], or a transaction.
#[derive(Debug, Clone, Copy)]
enum Creator {
    Factory(Address),
    Caller(usize),
    Transaction,
}

/// A world with this at the addresses of all creations that are possible.
fn world(before: impl Fn(usize) -> Before) -> World {
    let factory = |end: &[u8]| [&load_input(), &create2(), &call_created()[..], end].concat();
    let mut accounts = vec![
        (sender().address(), StartAccount::rich()),
        (FACTORY, StartAccount::contract(factory(&[]))),
        (REVERTING_FACTORY, StartAccount::contract(factory(&revert()))),
    ];
    for (address, factory, reverts) in CALLERS {
        let end = if reverts { revert() } else { Vec::new() };
        let code = [load_input(), call_on(factory), look(BALANCE, NOBODY), end].concat();
        accounts.push((address, StartAccount::contract(code)));
    }
    let of_factories = [FACTORY, REVERTING_FACTORY]
        .into_iter()
        .flat_map(|factory| init_codes().map(|init_code| create2_address(factory, &init_code)));
    let of_transactions = (0..8).map(|nonce| sender().address().create(nonce));
    for (index, created) in of_factories.chain(of_transactions).enumerate() {
        accounts.extend(before(index).account().map(|account| (created, account)));
    }
    World::new(world::chain("amsterdam"), accounts)
}

fn transactions(steps: &[(Creator, usize)]) -> Vec<Transaction> {
    let transaction = |(nonce, (creator, init_code)): (u64, &(Creator, usize))| {
        let input = Bytes::from(init_codes()[*init_code].clone());
        let to = match creator {
            Creator::Factory(factory) => TxKind::Call(*factory),
            Creator::Caller(at) => TxKind::Call(CALLERS[*at].0),
            Creator::Transaction => TxKind::Create,
        };
        sender().transact(nonce, to, U256::ZERO, input)
    };
    (0..).zip(steps).map(transaction).collect()
}

/// A state that notes which accounts and slots a block asks for.
#[derive(Debug)]
struct Noted<S> {
    state: S,
    asked: BTreeMap<Address, BTreeSet<U256>>,
}

impl<S: State> State for Noted<S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        self.asked.entry(address).or_default();
        self.state.account(address)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.asked.entry(address).or_default().insert(slot);
        self.state.storage(address, slot)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        self.state.code(code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.state.block_hash(number)
    }
}

impl<S: BlockState> BlockState for Noted<S> {
    fn restart(&mut self) -> Result<(), StateError> {
        self.asked.clear();
        self.state.restart()
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        self.state.apply(changes)
    }

    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        self.state.apply_transaction(changes)
    }
}

/// Runs a block with these creations, checks its witness in every way, and that its access list
/// names what was asked for; returns that. Slots of accounts without storage are not asked for.
fn check(world: &World, steps: &[(Creator, usize)]) -> BTreeMap<Address, BTreeSet<U256>> {
    let block = world.block(transactions(steps));
    let validated = world.check(&block).expect("a valid block");
    let list = validated.executed.block_access_list.expect("Amsterdam has one");
    let list = AccessList::decode(&list, block.header.gas_limit).expect("RLP").expect("in order");
    let has_storage = |address| world.account(address).storage_root != trie::EMPTY_ROOT_HASH;
    let listed = list.accounts().iter().map(|account| {
        let slots = account.slots().filter(|_| has_storage(account.address()));
        (account.address(), slots.collect())
    });
    let senders = recover_senders(&block.body.transactions).expect("signed");
    let mut noted = Noted { state: world.state(), asked: BTreeMap::new() };
    run(&world.chain, &block, &senders, RunOptions::default(), &mut noted).expect("it runs");
    let mut asked = noted.asked;
    asked.iter_mut().filter(|(address, _)| !has_storage(**address)).for_each(|(_, slots)| {
        slots.clear();
    });
    assert_eq!(asked, listed.collect(), "{steps:?}");
    asked
}

/// "Target addresses of CREATE/CREATE2 (even when creation fails)", but no address that the init
/// code would have accessed: it never runs (EIP-7610).
#[test]
fn the_target_of_a_creation_that_collides_is_accessed_and_no_more() {
    let collide = world(|_| Before::Storage);
    for (creator, created) in [
        (Creator::Transaction, sender().address().create(0)),
        (Creator::Factory(FACTORY), create2_address(FACTORY, &init_codes()[3])),
        (Creator::Factory(REVERTING_FACTORY), create2_address(REVERTING_FACTORY, &init_codes()[3])),
    ] {
        let asked = check(&collide, &[(creator, 3)]);
        assert!(asked.contains_key(&created), "{creator:?}");
        assert!(asked[&created].is_empty() && !asked.contains_key(&NOBODY), "{creator:?}");
        assert!(!asked.contains_key(&create2_address(created, &[])), "{creator:?}");
        // Without a collision the init code runs, and reverts.
        let asked = check(&world(|_| Before::Nothing), &[(creator, 3)]);
        assert!(asked.contains_key(&created) && asked.contains_key(&NOBODY), "{creator:?}");
        assert!(asked.contains_key(&create2_address(created, &[])), "{creator:?}");
    }
}

fn before() -> impl Strategy<Value = Before> {
    prop_oneof![
        2 => Just(Before::Nothing),
        3 => Just(Before::Storage),
        1 => Just(Before::Code),
        1 => Just(Before::Balance),
    ]
}

fn creator() -> impl Strategy<Value = Creator> {
    prop_oneof![
        Just(Creator::Factory(FACTORY)),
        Just(Creator::Factory(REVERTING_FACTORY)),
        (0..CALLERS.len()).prop_map(Creator::Caller),
        Just(Creator::Transaction),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn lists_and_witnesses_name_what_blocks_with_creations_ask_for(
        before in prop::collection::vec(before(), 18),
        steps in prop::collection::vec((creator(), 0..5_usize), 1..8),
    ) {
        check(&world(|index| before[index]), &steps);
    }
}
