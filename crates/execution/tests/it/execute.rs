//! The canonical witness besides its trie nodes: one rule of `docs/witness.md` a test.

use alloy_eips::eip7702::SignedAuthorization;
use alloy_eips::{eip2935, eip4788, eip6110, eip7002, eip7251};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address, keccak256};
use deponent_execution::{AccessList, Transaction};
use testing::asm::*;
use testing::world::{self, Signer, StartAccount, World, marker};

const MAIN: Address = address!("0x00000000000000000000000000000000000000a1");
const INNER: Address = address!("0x00000000000000000000000000000000000000a2");
const TWIN: Address = address!("0x00000000000000000000000000000000000000a3");
const NOBODY: Address = address!("0x00000000000000000000000000000000000000a4");

fn sender() -> Signer {
    Signer::new(1)
}

/// The code at [`TWIN`], which the tests create again elsewhere.
fn twin() -> Bytes {
    idle(0x33)
}

fn main_code(script: &[&[u8]]) -> Bytes {
    [&script.concat()[..], &[0, 0xa1]].concat().into()
}

/// A world with a rich sender, [`MAIN`] with this script, the twin, and these accounts.
fn world(script: &[&[u8]], more: Vec<(Address, StartAccount)>) -> World {
    let accounts = vec![
        (sender().address(), StartAccount::rich()),
        (MAIN, StartAccount::contract(main_code(script))),
        (TWIN, StartAccount::contract(twin())),
    ];
    World::new(world::chain("osaka"), accounts.into_iter().chain(more))
}

/// Runs a block with these transactions, checks its witness in every way, and compares `codes`
/// with the codes of Osaka's system contracts and `expected`.
fn check(world: &World, transactions: Vec<Transaction>, expected: &[Bytes]) {
    let block = world.block(transactions);
    let validated = world.check(&block).unwrap();
    assert!(validated.executed.receipts.iter().all(|receipt| receipt.status()));
    let mut expected = [&system_codes(), expected].concat();
    expected.sort_unstable();
    assert_eq!(validated.witness.codes, expected);
}

fn system_codes() -> Vec<Bytes> {
    vec![
        eip4788::BEACON_ROOTS_CODE.clone(),
        eip2935::HISTORY_STORAGE_CODE.clone(),
        eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_CODE.clone(),
        eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_CODE.clone(),
    ]
}

/// One transaction that runs `script` in [`MAIN`], whose code is expected besides `expected`.
fn check_script(script: &[&[u8]], more: Vec<(Address, StartAccount)>, expected: &[Bytes]) {
    let input = deploy(&twin());
    let expected = [&[main_code(script)], expected].concat();
    check(&world(script, more), vec![sender().call(0, MAIN, input)], &expected);
}

#[test]
fn system_contracts_are_read_in_every_block() {
    check(&world(&[], Vec::new()), Vec::new(), &[]);
    let count = |fork, count: usize| {
        let world = World::new(world::chain(fork), []);
        assert_eq!(world.check(&world.block(Vec::new())).unwrap().witness.codes.len(), count);
    };
    count("paris", 0);
    count("shanghai", 0);
    count("cancun", 1);
    count("prague", 4);
    // Both builder contracts have the same code in these tests.
    count("amsterdam", 5);
}

#[test]
fn extcodesize_and_extcodecopy_read_the_code() {
    check_script(&[&look(EXTCODESIZE, TWIN)], Vec::new(), &[twin()]);
    check_script(&[&copy_nothing(TWIN)], Vec::new(), &[twin()]);
}

#[test]
fn extcodehash_and_balance_do_not_read_the_code() {
    check_script(&[&look(EXTCODEHASH, TWIN), &look(BALANCE, TWIN)], Vec::new(), &[]);
}

#[test]
fn every_kind_of_call_reads_the_code() {
    for op in [CALL, CALLCODE, DELEGATECALL, STATICCALL] {
        check_script(&[&call(op, TWIN)], Vec::new(), &[twin()]);
    }
}

#[test]
fn accounts_without_code_and_precompiles_have_none_to_read() {
    let identity = Address::with_last_byte(4);
    let script = [
        call(CALL, NOBODY),
        look(EXTCODESIZE, NOBODY),
        call(CALL, sender().address()),
        copy_nothing(sender().address()),
        call(CALL, identity),
        look(EXTCODESIZE, identity),
    ]
    .concat();
    check_script(&[&script], Vec::new(), &[]);
}

#[test]
fn a_read_in_a_reverted_frame_counts() {
    let inner: Bytes = [look(EXTCODESIZE, TWIN), revert()].concat().into();
    let more = vec![(INNER, StartAccount::contract(inner.clone()))];
    check_script(&[&call(CALL, INNER)], more, &[inner, twin()]);
}

#[test]
fn a_read_counts_only_when_its_gas_was_paid() {
    let inner: Bytes = look(EXTCODESIZE, TWIN).into();
    // PUSH20 takes 3 and the cold account 2600.
    for (gas, expected) in [(2602, vec![]), (2603, vec![twin()])] {
        let more = vec![(INNER, StartAccount::contract(inner.clone()))];
        let script = call_with(INNER, gas, 0);
        check_script(&[&script], more, &[vec![inner.clone()], expected].concat());
    }
}

#[test]
fn a_call_that_cannot_be_paid_for_still_reads_the_code() {
    check_script(&[&call_with(TWIN, 50_000, 1)], Vec::new(), &[twin()]);
}

#[test]
fn a_code_created_in_the_transaction_is_not_read_from_the_state() {
    let script = [load_input(), create(), call_created()].concat();
    let new = idle(0x77);
    let world = world(&[&script], Vec::new());
    check(&world, vec![sender().call(0, MAIN, deploy(&new))], &[main_code(&[&script])]);
}

#[test]
fn a_code_created_in_an_earlier_transaction_is_not_read_from_the_state() {
    let created = sender().address().create(0);
    let script = [call(CALL, created), look(EXTCODESIZE, created)].concat();
    let world = world(&[&script], Vec::new());
    let create = sender().transact(0, TxKind::Create, U256::ZERO, deploy(&idle(0x77)).into());
    check(&world, vec![create, sender().call(1, MAIN, [])], &[main_code(&[&script])]);
}

#[test]
fn a_twin_of_a_code_created_by_an_earlier_transaction_is_not_read_from_the_state() {
    let script = [look(EXTCODESIZE, TWIN), call(CALL, TWIN)].concat();
    let world = world(&[&script], Vec::new());
    let create = sender().transact(0, TxKind::Create, U256::ZERO, deploy(&twin()).into());
    check(&world, vec![create, sender().call(1, MAIN, [])], &[main_code(&[&script])]);
}

#[test]
fn a_twin_of_a_code_created_in_the_same_transaction_is_not_read_from_the_state() {
    let script = [load_input(), create(), look(EXTCODESIZE, TWIN), call(CALL, TWIN)].concat();
    check_script(&[&script], Vec::new(), &[]);
}

#[test]
fn a_node_that_only_the_end_of_a_transaction_reads_is_missed_as_any_other() {
    // The first run fails twice: at the twin's code, and at the fee recipient, whose node is gone.
    let others = (0..60).map(|byte| (Address::repeat_byte(byte), StartAccount::rich()));
    let more = [(world::COINBASE, StartAccount::rich())].into_iter().chain(others).collect();
    let script = [load_input(), create(), look(EXTCODESIZE, TWIN)].concat();
    check_script(&[&script], more, &[]);
}

#[test]
fn a_twin_read_before_its_code_is_created_counts() {
    let script = [load_input(), look(EXTCODESIZE, TWIN), create(), call(CALL, TWIN)].concat();
    check_script(&[&script], Vec::new(), &[twin()]);
    let world = world(&[&look(EXTCODESIZE, TWIN)], Vec::new());
    let create = sender().transact(1, TxKind::Create, U256::ZERO, deploy(&twin()).into());
    let transactions = vec![sender().call(0, MAIN, []), create];
    check(&world, transactions, &[main_code(&[&look(EXTCODESIZE, TWIN)]), twin()]);
}

#[test]
fn a_twin_read_after_a_reverted_creation_counts() {
    let inner: Bytes = [load_input(), create(), revert()].concat().into();
    let script = [load_input(), call_on(INNER), look(EXTCODESIZE, TWIN)].concat();
    let more = vec![(INNER, StartAccount::contract(inner.clone()))];
    check_script(&[&script], more, &[inner, twin()]);
}

#[test]
fn a_twin_read_inside_the_frame_that_reverts_its_creation_does_not_count() {
    let inner: Bytes = [load_input(), create(), look(EXTCODESIZE, TWIN), revert()].concat().into();
    let script = [load_input(), call_on(INNER)].concat();
    let more = vec![(INNER, StartAccount::contract(inner.clone()))];
    check_script(&[&script], more.clone(), std::slice::from_ref(&inner));
    // Behind the frame it is read again, from the state.
    let again = [&script[..], &look(EXTCODESIZE, TWIN)].concat();
    check_script(&[&again], more.clone(), &[inner.clone(), twin()]);
    let world = world(&[&script], more);
    let input = deploy(&twin());
    let reader = sender().call(1, TWIN, []);
    let expected = [main_code(&[&script]), inner, twin()];
    check(&world, vec![sender().call(0, MAIN, input), reader], &expected);
}

/// From Amsterdam on (EIP-8246) a contract that ends with its transaction may leave a balance, and
/// its account is emptied instead of deleted.
#[test]
fn a_code_whose_contract_ends_with_its_transaction_has_been_written() {
    let fleeting = selfdestruct();
    for (fork, value) in [("osaka", 1), ("amsterdam", 0), ("amsterdam", 1)] {
        let call = pay_created(value);
        let script = [load_input(), create(), call].concat();
        let mut main = StartAccount::contract(main_code(&[&script]));
        main.balance = U256::from(1);
        let accounts = [
            (sender().address(), StartAccount::rich()),
            (MAIN, main),
            (TWIN, StartAccount::contract(fleeting.clone())),
            (INNER, StartAccount::contract(look(EXTCODESIZE, TWIN))),
        ];
        let world = World::new(world::chain(fork), accounts);
        let create = sender().call(0, MAIN, deploy(&fleeting));
        let block = world.block(vec![create, sender().call(1, INNER, [])]);
        let codes = world.check(&block).unwrap().witness.codes;
        assert!(codes.contains(&main_code(&[&script])));
        assert!(!codes.contains(&fleeting), "{fork}");
    }
}

#[test]
fn a_code_created_again_where_the_creation_is_reverted_stays_written() {
    let inner: Bytes = [load_input(), create(), revert()].concat().into();
    let script = [load_input(), create(), call_on(INNER)].concat();
    let mut world = world(&[&script], vec![(INNER, StartAccount::contract(inner))]);
    let block = world.block(vec![sender().call(0, MAIN, deploy(&idle(0x77)))]);
    let validated = world.check(&block).unwrap();
    world.extend(&block, validated);
    check(&world, vec![sender().call(1, MAIN.create(1), [])], &[idle(0x77)]);
}

#[test]
fn a_twin_created_in_an_inner_frame_that_succeeds_is_not_read_from_the_state() {
    let inner: Bytes = [load_input(), create()].concat().into();
    let script = [load_input(), call_on(INNER), look(EXTCODESIZE, TWIN)].concat();
    let more = vec![(INNER, StartAccount::contract(inner.clone()))];
    check_script(&[&script], more, &[inner]);
}

#[test]
fn a_constructor_reads_the_state_as_it_is_before_its_contract_has_code() {
    let read = look(EXTCODESIZE, TWIN);
    let copy = deploy(&twin());
    // The same init code behind the read, with the offset of the code moved by it.
    let mut init = [&read[..], &copy].concat();
    init[read.len() + 4] += read.len() as u8;
    let world = world(&[], Vec::new());
    let create = sender().transact(0, TxKind::Create, U256::ZERO, init.into());
    check(&world, vec![create], &[twin()]);
}

#[test]
fn a_failed_creation_reads_its_factory_and_writes_nothing() {
    let script = [load_input(), create(), look(EXTCODESIZE, TWIN)].concat();
    let world = world(&[&script], Vec::new());
    let input = [revert(), twin().to_vec()].concat();
    check(&world, vec![sender().call(0, MAIN, input)], &[main_code(&[&script]), twin()]);
}

#[test]
fn a_twin_of_a_code_that_a_reverted_transaction_created_counts() {
    let inner: Bytes = [load_input(), create(), revert()].concat().into();
    let more = vec![(INNER, StartAccount::contract(inner.clone()))];
    let script = look(EXTCODESIZE, TWIN);
    let world = world(&[&script], more);
    let transactions = vec![sender().call(0, INNER, deploy(&twin())), sender().call(1, MAIN, [])];
    let validated = world.check(&world.block(transactions)).unwrap();
    assert!(!validated.executed.receipts[0].status());
    assert!(validated.witness.codes.contains(&twin()));
}

/// An account that delegates to [`TWIN`] before the block.
fn delegated() -> Signer {
    Signer::new(2)
}

fn delegated_to(target: Address) -> (Address, StartAccount) {
    let account = StartAccount { code: marker(target), ..StartAccount::rich() };
    (delegated().address(), account)
}

#[test]
fn a_call_to_a_delegated_account_reads_its_marker_and_the_delegate() {
    let more = vec![delegated_to(TWIN)];
    for op in [CALL, CALLCODE, DELEGATECALL, STATICCALL] {
        let script = call(op, delegated().address());
        check_script(&[&script], more.clone(), &[marker(TWIN), twin()]);
    }
    let unpaid = call_with(delegated().address(), 50_000, 1);
    check_script(&[&unpaid], more.clone(), &[marker(TWIN), twin()]);
    let transaction = sender().call(0, delegated().address(), []);
    check(&world(&[], more), vec![transaction], &[marker(TWIN), twin()]);
}

#[test]
fn looking_at_a_delegated_account_reads_its_marker_at_most() {
    let more = vec![delegated_to(TWIN)];
    let address = delegated().address();
    check_script(&[&look(EXTCODESIZE, address)], more.clone(), &[marker(TWIN)]);
    check_script(&[&copy_nothing(address)], more.clone(), &[marker(TWIN)]);
    check_script(&[&look(EXTCODEHASH, address)], more, &[]);
}

#[test]
fn the_marker_of_a_delegated_sender_is_read() {
    let world = world(&[], vec![delegated_to(TWIN)]);
    check(&world, vec![delegated().call(0, NOBODY, [])], &[marker(TWIN)]);
}

#[test]
fn a_chain_of_delegations_is_followed_one_step() {
    let last = Signer::new(3).address();
    let more = vec![
        delegated_to(last),
        (last, StartAccount { code: marker(TWIN), ..StartAccount::rich() }),
    ];
    let script = call(CALL, delegated().address());
    check_script(&[&script], more, &[marker(last), marker(TWIN)]);
}

#[test]
fn a_delegation_set_earlier_in_the_block_has_no_marker_to_read() {
    let script = call(CALL, delegated().address());
    let world = world(&[&script], Vec::new());
    let authorization = delegated().authorize(0, TWIN);
    let set = sender().delegate(0, NOBODY, [], vec![authorization.clone()]);
    check(&world, vec![set, sender().call(1, MAIN, [])], &[main_code(&[&script]), twin()]);
    let both = sender().delegate(0, MAIN, [], vec![authorization]);
    check(&world, vec![both], &[main_code(&[&script]), twin()]);
}

#[test]
fn a_marker_that_the_block_wrote_elsewhere_is_not_read_from_the_state() {
    let other = Signer::new(3);
    let script = call(CALL, delegated().address());
    let world = world(&[&script], vec![delegated_to(TWIN)]);
    let expected = [main_code(&[&script]), twin()];
    let authorization = other.authorize(0, TWIN);
    let same = sender().delegate(0, MAIN, [], vec![authorization.clone()]);
    check(&world, vec![same], &expected);
    let earlier = sender().delegate(0, NOBODY, [], vec![authorization]);
    check(&world, vec![earlier, sender().call(1, MAIN, [])], &expected);
}

#[test]
fn a_delegation_that_the_block_changes_again_writes_its_marker_too() {
    let other = Signer::new(3);
    let script = call(CALL, delegated().address());
    let world = world(&[&script], vec![delegated_to(TWIN)]);
    let set =
        |nonce, target| sender().delegate(nonce, NOBODY, [], vec![other.authorize(nonce, target)]);
    let block = vec![set(0, INNER), set(1, TWIN), sender().call(2, MAIN, [])];
    check(&world, block, &[main_code(&[&script]), twin()]);
}

#[test]
fn a_marker_read_before_the_block_writes_it_counts() {
    let other = Signer::new(3);
    let script = call(CALL, delegated().address());
    let world = world(&[&script], vec![delegated_to(TWIN)]);
    let expected = [main_code(&[&script]), twin(), marker(TWIN)];
    let set = |nonce, to| sender().delegate(nonce, to, [], vec![other.authorize(0, TWIN)]);
    check(&world, vec![sender().call(0, MAIN, []), set(1, NOBODY)], &expected);
    // The sender's own marker is read before the authorizations.
    let by_delegated = delegated().delegate(0, MAIN, [], vec![other.authorize(0, TWIN)]);
    check(&world, vec![by_delegated], &expected);
}

#[test]
fn an_authorization_that_does_not_hold_writes_no_marker() {
    let other = Signer::new(3);
    let script = call(CALL, delegated().address());
    let world = world(&[&script], vec![delegated_to(TWIN)]);
    let expected = [main_code(&[&script]), twin(), marker(TWIN)];
    let set = sender().delegate(0, MAIN, [], vec![other.authorize(7, TWIN)]);
    check(&world, vec![set], &expected);
}

/// From Amsterdam on (EIP-2780), a list whose gas runs out is undone. What it wrote until then
/// hides the pre-state from itself, not from the transactions after it.
#[test]
fn an_undone_list_hides_a_marker_from_itself_only() {
    let (other, address) = (Signer::new(3), delegated().address());
    let write = other.authorize(0, TWIN);
    let write_and_read = vec![write.clone(), delegated().authorize(0, INNER)];
    check_undone_list(NOBODY, &write_and_read, world::COINBASE, &[], &[idle(1)]);
    // The beneficiary changes whatever comes of the list.
    check_undone_list(NOBODY, &write_and_read, address, &[], &[idle(1)]);
    // The recipient's is read behind the list, before the access to the delegate is paid for.
    check_undone_list(address, &[write], world::COINBASE, &[twin()], &[twin()]);
}

/// Runs a transaction to `to` with this list, which first gives another account the marker that
/// [`delegated`] has, with more gas each time: alone, and before a call to [`delegated`]. `alone`
/// and `both` are the codes read when the gas suffices.
fn check_undone_list(
    to: Address,
    list: &[SignedAuthorization],
    beneficiary: Address,
    alone: &[Bytes],
    both: &[Bytes],
) {
    let accounts = [
        (sender().address(), StartAccount::rich()),
        delegated_to(TWIN),
        (TWIN, StartAccount::contract(twin())),
        (INNER, StartAccount::contract(idle(1))),
    ];
    let world = World::new(world::chain("amsterdam"), accounts);
    let system = world.check(&world.block(Vec::new())).unwrap().witness.codes;
    let run = |gas_limit, transactions: &[Transaction], alone_or_undone: [&[Bytes]; 2]| {
        let mut draft = world.draft(transactions.to_vec(), Vec::new());
        draft.header.beneficiary = beneficiary;
        let block = world.seal(draft).ok()?;
        let validated = world.check(&block).unwrap();
        let codes = validated.witness.codes.clone();
        let list = validated.executed.block_access_list.clone().unwrap();
        let list = AccessList::decode(&list, block.header.gas_limit).unwrap().unwrap();
        let is_read = list.place(&delegated().address()).is_some();
        let mut after = world.clone();
        after.extend(&block, validated);
        let is_undone = after.account(Signer::new(3).address()).nonce == 0;
        let expected = alone_or_undone[usize::from(is_undone)];
        let mut expected = [&system, expected].concat();
        expected.sort_unstable();
        assert_eq!(codes, expected, "{gas_limit} gas, read: {is_read}, undone: {is_undone}");
        Some((is_read, is_undone))
    };
    let mut outcomes = Vec::new();
    for gas_limit in (20_000..600_000).step_by(2_000) {
        let set = sender().delegate_with_gas(gas_limit, 0, to, [], list.to_vec());
        let Some(outcome) = run(gas_limit, std::slice::from_ref(&set), [alone, &[]]) else {
            continue;
        };
        outcomes.push(outcome);
        let call = sender().call(1, delegated().address(), []);
        run(gas_limit, &[set, call], [both, &[marker(TWIN), twin()]]).unwrap();
    }
    outcomes.dedup();
    assert_eq!(outcomes.last(), Some(&(true, false)));
    assert!(outcomes.contains(&(true, true)), "{outcomes:?}");
}

/// Storage without code or nonce can only come from a genesis.
#[test]
fn storage_without_code_stays_when_its_account_changes() {
    // The value of slot 0 goes to slot 1.
    let copy = [&[PUSH0, SLOAD][..], &store(1)].concat();
    let account = StartAccount::rich().storage([(0, 7)]);
    let other = delegated();
    let more = vec![(other.address(), account), (INNER, StartAccount::contract(copy))];
    let world = world(&[], more);
    let authorization = other.authorize(0, INNER);
    let pay = sender().transact(0, TxKind::Call(other.address()), U256::from(1), Bytes::new());
    let delegate = |nonce, to| sender().delegate(nonce, to, [], vec![authorization.clone()]);
    let call = |nonce| sender().call(nonce, other.address(), []);
    for transactions in [
        vec![delegate(0, other.address())],
        vec![delegate(0, NOBODY), call(1)],
        vec![pay, delegate(1, other.address()), call(2)],
    ] {
        let mut after = world.clone();
        let block = world.block(transactions);
        let validated = world.check(&block).unwrap();
        after.extend(&block, validated);
        let slot = witness::State::storage(&mut after.state(), other.address(), U256::from(1));
        assert_eq!(slot.unwrap(), U256::from(7));
    }
}

#[test]
fn changing_a_delegation_reads_the_old_marker_only() {
    let world = world(&[], vec![delegated_to(TWIN), (INNER, StartAccount::contract(idle(1)))]);
    let old = marker(TWIN);
    let set = |target| sender().delegate(0, NOBODY, [], vec![delegated().authorize(0, target)]);
    check(&world, vec![set(INNER)], std::slice::from_ref(&old));
    check(&world, vec![set(Address::ZERO)], std::slice::from_ref(&old));
    let call = sender().call(1, delegated().address(), []);
    check(&world, vec![set(INNER), call.clone()], &[old.clone(), idle(1)]);
    check(&world, vec![set(TWIN), call], &[old, twin()]);
}

#[test]
fn a_creation_where_there_is_storage_collides() {
    let script = [load_input(), create2(), store(0)].concat();
    let init = deploy(&idle(0x77));
    let created = create2_address(MAIN, &init);
    let main = StartAccount::contract(main_code(&[&script])).storage([(0, 5)]);
    let slot_after = |more: Vec<(Address, StartAccount)>| {
        let more = [vec![(MAIN, main.clone())], more].concat();
        let mut world = world(&[&script], more);
        let block = world.block(vec![sender().call(0, MAIN, init.clone())]);
        let validated = world.check(&block).unwrap();
        world.extend(&block, validated);
        assert_eq!(world.account(MAIN).nonce, 2);
        witness::State::storage(&mut world.state(), MAIN, U256::ZERO).unwrap()
    };
    let storage_only = StartAccount::default().storage([(1, 1)]);
    assert_eq!(slot_after(Vec::new()), U256::from_be_slice(created.as_slice()));
    assert_eq!(
        slot_after(vec![(created, StartAccount::rich())]),
        U256::from_be_slice(created.as_slice())
    );
    assert_eq!(slot_after(vec![(created, storage_only)]), U256::ZERO);
    assert_eq!(slot_after(vec![(created, StartAccount::contract(idle(1)))]), U256::ZERO);
}

#[test]
fn a_creating_transaction_whose_address_has_storage_fails() {
    let created = sender().address().create(0);
    let storage_only = StartAccount::default().storage([(1, 1)]);
    let world = world(&[], vec![(created, storage_only)]);
    let create = sender().transact(0, TxKind::Create, U256::ZERO, deploy(&twin()).into());
    let validated = world.check(&world.block(vec![create])).unwrap();
    assert!(!validated.executed.receipts[0].status());
    assert_eq!(validated.executed.gas_used, 1_000_000);
}

/// It is empty, so the first to touch it deletes it, with its storage (EIP-161).
#[test]
fn where_storage_was_deleted_there_is_no_collision() {
    let created = sender().address().create(1);
    let storage_only = StartAccount::default().storage([(1, 1)]);
    let mut world = world(&[], vec![(created, storage_only)]);
    let create = sender().transact(1, TxKind::Create, U256::ZERO, deploy(&twin()).into());
    let block = world.block(vec![sender().call(0, created, []), create]);
    let validated = world.check(&block).unwrap();
    assert!(validated.executed.receipts[1].status());
    world.extend(&block, validated);
    assert_eq!(world.account(created).code_hash, alloy_primitives::keccak256(twin()));
    assert_eq!(
        witness::State::storage(&mut world.state(), created, U256::from(1)).unwrap(),
        U256::ZERO
    );
}

/// Before Prague a code that looks like a delegation is a code as any other, whose first
/// instruction there is not (EIP-7702).
#[test]
fn a_code_delegates_from_prague_on() {
    let odd = Address::repeat_byte(0xdd);
    let target = StartAccount::contract(set(1, 7));
    let accounts = vec![
        (sender().address(), StartAccount::rich()),
        (MAIN, StartAccount::contract(main_code(&[&call(CALL, odd)]))),
        (odd, StartAccount::contract(world::marker(INNER))),
        (INNER, target),
    ];
    let slot_after = |fork: &str| {
        let mut world = World::new(world::chain(fork), accounts.clone());
        let block = world.block(vec![sender().call(0, MAIN, [])]);
        let validated = world.check(&block).unwrap();
        let has_target = validated.witness.codes.contains(&set(1, 7).into());
        world.extend(&block, validated);
        let slot = witness::State::storage(&mut world.state(), odd, U256::from(1)).unwrap();
        (slot, has_target)
    };
    for fork in ["paris", "shanghai", "cancun"] {
        assert_eq!(slot_after(fork), (U256::ZERO, false), "{fork}");
    }
    assert_eq!(slot_after("prague"), (U256::from(7), true));
}

/// As much as the specifications say; from Amsterdam on with gas for sixteen new slots apart
/// (EIP-8037), which calls within it have too.
#[test]
fn a_system_call_has_thirty_million_gas() {
    let system = eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS;
    let slots_after = |fork: &str| {
        let code = [&[GAS, PUSH0, SSTORE][..], &call_with(INNER, 50_000, 0), &[0]].concat();
        let accounts = vec![
            (sender().address(), StartAccount::rich()),
            (system, StartAccount::contract(code)),
            (INNER, StartAccount::contract(set(0, 1))),
        ];
        let mut world = World::new(world::chain(fork), accounts);
        let block = world.block(Vec::new());
        let validated = world.check(&block).unwrap();
        world.extend(&block, validated);
        let mut state = world.state();
        [system, INNER].map(|it| witness::State::storage(&mut state, it, U256::ZERO).unwrap())
    };
    let gas = U256::from(30_000_000 - 2);
    for fork in ["prague", "osaka", "amsterdam"] {
        assert_eq!(slots_after(fork), [gas, U256::ONE], "{fork}");
    }
}

/// System contracts that create others: no known chain has such, but a genesis may.
#[test]
fn system_calls_are_followed_as_transactions_are() {
    let system = eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS;
    let init = deploy(&twin());
    let store_code = |code: &[u8]| -> Vec<u8> {
        // Its init code follows its own.
        let length = u8::try_from(init.len()).unwrap();
        let head = |offset: u8| {
            let copy = [0x60, length, 0x60, offset, PUSH0, 0x39];
            [&copy[..], &[0x60, length, PUSH0, PUSH0, 0xf0], code, &[0]].concat()
        };
        let offset = u8::try_from(head(0).len()).unwrap();
        [head(offset), init.clone()].concat()
    };
    // A read of another account with the code that it creates.
    let code = store_code(&[&[POP], &look(EXTCODESIZE, TWIN)[..]].concat());
    let accounts =
        [(system, StartAccount::contract(code.clone())), (TWIN, StartAccount::contract(twin()))];
    let world = World::new(world::chain("osaka"), accounts);
    let validated = world.check(&world.block(Vec::new())).unwrap();
    let mut expected = system_codes();
    expected[2] = code.into();
    expected.sort_unstable();
    assert_eq!(validated.witness.codes, expected);
    // Where there is storage it creates nothing (EIP-7610).
    let code = store_code(&[PUSH0, SSTORE]);
    let created = system.create(1);
    for has_storage in [false, true] {
        let there = StartAccount::rich().storage(has_storage.then_some((1, 1)));
        let accounts = [(system, StartAccount::contract(code.clone())), (created, there)];
        let mut world = World::new(world::chain("osaka"), accounts);
        let block = world.block(Vec::new());
        let validated = world.check(&block).unwrap();
        world.extend(&block, validated);
        let stored = witness::State::storage(&mut world.state(), system, U256::ZERO).unwrap();
        let expected = if has_storage { B256::ZERO } else { created.into_word() };
        assert_eq!(B256::from(stored), expected);
    }
}

#[test]
fn a_block_begins_with_the_beacon_root_and_then_its_parent() {
    let systems = [eip4788::BEACON_ROOTS_ADDRESS, eip2935::HISTORY_STORAGE_ADDRESS];
    let accounts = systems.map(|system| (system, StartAccount::contract(call(CALL, INNER))));
    // It keeps its last caller.
    let inner = StartAccount::contract(vec![CALLER, PUSH0, SSTORE, 0]);
    for fork in ["prague", "amsterdam"] {
        let all = accounts.iter().cloned().chain([(INNER, inner.clone())]);
        let mut world = World::new(world::chain(fork), all);
        let block = world.block(Vec::new());
        let validated = world.check(&block).unwrap();
        world.extend(&block, validated);
        let last = witness::State::storage(&mut world.state(), INNER, U256::ZERO).unwrap();
        assert_eq!(B256::from(last), systems[1].into_word(), "{fork}");
    }
}

#[test]
fn headers_reach_as_far_as_blockhash_did() {
    for (distance, expected) in [(1, 1), (2, 2), (17, 17), (256, 256), (257, 1), (300, 1), (0, 1)] {
        let world = world(&[&block_hash(distance)], Vec::new()).with_ancestors(300);
        let block = world.block(vec![sender().call(0, MAIN, [])]);
        let headers = world.check(&block).unwrap().witness.headers;
        assert_eq!(headers.len(), expected, "BLOCKHASH of the block {distance} before");
        assert_eq!(headers.last().unwrap()[..], alloy_rlp::encode(world.parent())[..]);
    }
}

#[test]
fn a_header_less_than_blockhash_reaches_is_an_error() {
    let script = [block_hash(3), block_hash(2)].concat();
    let world = world(&[&script], Vec::new()).with_ancestors(10);
    let block = world.block(vec![sender().call(0, MAIN, [])]);
    let mut witness = world.check(&block).unwrap().witness;
    assert_eq!(witness.headers.len(), 3);
    witness.headers.remove(0);
    let error = deponent_execution::verify(&world.chain, &block, None, &witness).unwrap_err();
    let missing = witness::StateError::MissingHeader(block.header.number - 3);
    assert_eq!(error.missing(), Some(&missing));
}

/// The data of a deposit's log, and its fields: each byte is its field's number.
fn deposit() -> (Vec<u8>, Vec<u8>) {
    let word = |value: usize| U256::from(value).to_be_bytes::<32>();
    let (mut data, mut fields) = (Vec::new(), Vec::new());
    for offset in [160, 256, 320, 384, 512] {
        data.extend(word(offset));
    }
    for (number, length) in (1..).zip([48usize, 32, 8, 96, 8]) {
        data.extend(word(length));
        data.extend(vec![number; length]);
        fields.extend(vec![number; length]);
        data.resize(data.len().next_multiple_of(32), 7);
    }
    (data, fields)
}

/// The deposit contract's code here: it logs the calldata with this many topics.
fn depositing(topics: u8) -> World {
    let event = keccak256("DepositEvent(bytes,bytes,bytes,bytes,bytes)");
    let words = [event.0, [2; 32], [3; 32], [4; 32]];
    let words: Vec<_> = words[..topics.into()].iter().rev().flat_map(|word| push(word)).collect();
    let code = [&load_input()[..], &words, &log_input(topics)].concat();
    let contract = eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS;
    world(&[], vec![(contract, StartAccount::contract(code))])
}

fn deposit_call(data: &[u8]) -> Transaction {
    sender().call(0, eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS, data.to_vec())
}

#[test]
fn a_deposit_has_one_layout() {
    let (mut data, _) = deposit();
    assert_eq!(data.len(), 576);
    let world = depositing(1);
    let is_valid = |data: &[u8]| {
        let draft = world.draft(vec![deposit_call(data)], Vec::new());
        world.seal(draft).is_ok()
    };
    assert!(is_valid(&data));
    for at in (0..160).chain(160..192).chain(256..288).chain(320..352) {
        let mut other = data.clone();
        other[at] ^= 1;
        assert!(!is_valid(&other), "byte {at}");
    }
    for length in 0..data.len() {
        assert!(!is_valid(&data[..length]), "{length} bytes");
    }
    data.extend([0; 32]);
    assert!(!is_valid(&data), "longer");
    assert!(!is_valid(&[0; 576]));
}

#[test]
fn a_deposit_may_have_more_topics() {
    for count in 0..=4u8 {
        let world = depositing(count);
        let (data, fields) = deposit();
        let block = world.block(vec![deposit_call(&data)]);
        let requests = world.check(&block).unwrap().executed.requests;
        let expected = [&[eip6110::DEPOSIT_REQUEST_TYPE], &fields[..]].concat();
        let expected = if count == 0 { Vec::new() } else { vec![Bytes::from(expected)] };
        assert_eq!(requests.take(), expected, "{count} topics");
    }
}
