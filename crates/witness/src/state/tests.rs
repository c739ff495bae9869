use super::*;
use crate::WitnessIndex;
use alloy_primitives::map::B256Map;
use trie::{AccountChange, AccountInfo, EMPTY_ROOT_HASH};

/// A state of 40 accounts, every other with a code and 20 slots, and its parent header.
#[derive(Debug)]
struct World {
    root: B256,
    nodes: B256Map<Bytes>,
    codes: B256Map<Bytes>,
}

impl World {
    fn new() -> Self {
        let mut codes = B256Map::default();
        let mut accounts = Vec::new();
        for number in 0..40u8 {
            let mut info = AccountInfo {
                nonce: 1,
                balance: U256::from(number),
                code_hash: alloy_primitives::KECCAK256_EMPTY,
            };
            let mut storage = Vec::new();
            if number % 2 == 0 {
                let code = Bytes::from(vec![number; 40]);
                info.code_hash = keccak256(&code);
                codes.insert(info.code_hash, code);
                storage.extend((0..20u64).map(|slot| (hashed(slot), U256::from(slot + 1))));
            }
            let hashed_address = keccak256(Address::repeat_byte(number));
            let account = Some(info);
            accounts.push(AccountChange { hashed_address, account, storage_wiped: false, storage });
        }
        let mut trie = StateTrie::new(EMPTY_ROOT_HASH);
        let root = trie.apply(&StateChanges { accounts }, &B256Map::<Bytes>::default()).unwrap();
        let mut nodes = B256Map::default();
        trie.new_nodes(&mut |hash, rlp| drop(nodes.insert(hash, rlp)));
        Self { root, nodes, codes }
    }
}

fn hashed(slot: u64) -> B256 {
    keccak256(U256::from(slot).to_be_bytes::<32>())
}

impl NodeSource for World {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.nodes.get(hash).cloned()
    }
}

impl Source for World {
    fn code(&self, code_hash: &B256) -> Option<Bytes> {
        self.codes.get(code_hash).cloned()
    }

    fn ancestor(&self, number: u64) -> Option<Ancestor> {
        (number == 7).then(|| {
            let root = alloy_rlp::encode(self.root);
            let string = alloy_rlp::encode([0; 32]);
            let fields = [&string[..], &string, &string, &root, &[0x80; 4], &[7]].concat();
            let rlp = Bytes::from(crate::samples::list(&fields));
            Ancestor { hash: keccak256(&rlp), rlp }
        })
    }
}

/// Everything that can be read: present and absent accounts and slots, a code, a block hash.
fn read(state: &mut impl State) -> Result<Vec<String>, StateError> {
    let mut answers = Vec::new();
    for number in [0, 2, 3, 200] {
        let address = Address::repeat_byte(number);
        let account = state.account(address)?;
        answers.push(format!("{account:?}"));
        for slot in [0, 7, 99] {
            answers.push(format!("{:?}", state.storage(address, U256::from(slot))?));
        }
    }
    answers.push(format!("{:?}", state.code(keccak256([2; 40]))?));
    answers.push(format!("{:?}", state.block_hash(7)?));
    Ok(answers)
}

fn recorded(world: &World) -> (Vec<String>, Witness) {
    let mut state = TrieState::new(world.root, world);
    let answers = read(&mut state).unwrap();
    let code = world.codes[&keccak256([2; 40])].clone();
    (answers, state.witness(vec![code], 7, 7).unwrap())
}

fn index(world: &World, witness: &Witness) -> WitnessIndex {
    WitnessIndex::new(witness, world.ancestor(7).unwrap().hash).unwrap()
}

#[test]
fn a_witness_answers_as_the_state_did_that_it_was_recorded_from() {
    let world = World::new();
    let (answers, witness) = recorded(&world);
    assert!(witness.state.len() < world.nodes.len());
    let index = index(&world, &witness);
    let mut state = TrieState::new(index.state_root(), &index);
    assert_eq!(read(&mut state), Ok(answers));
    assert_eq!(state.witness(witness.codes.clone(), 7, 7), Ok(witness));
}

#[test]
fn a_node_that_was_removed_or_altered_is_an_error_and_never_absence() {
    let world = World::new();
    let (_, witness) = recorded(&world);
    for at in 0..witness.state.len() {
        let hash = keccak256(&witness.state[at]);
        let mut removed = witness.clone();
        removed.state.remove(at);
        let mut altered = witness.clone();
        let mut node = altered.state[at].to_vec();
        let middle = node.len() / 2;
        node[middle] ^= 1;
        altered.state.replace(at, node.into());
        for witness in [removed, altered] {
            let index = index(&world, &witness);
            let error = read(&mut TrieState::new(index.state_root(), &index));
            assert_eq!(error, Err(StateError::Trie(trie::Error::MissingNode { hash })));
        }
    }
}

#[test]
fn a_code_or_an_ancestor_that_is_not_there_is_an_error() {
    let world = World::new();
    let (_, mut witness) = recorded(&world);
    let hash = keccak256(&witness.codes[0]);
    witness.codes = vec![Bytes::from_static(&[3; 40])];
    let index = index(&world, &witness);
    let mut state = TrieState::new(index.state_root(), &index);
    assert_eq!(read(&mut state), Err(StateError::MissingCode(hash)));
    assert_eq!(state.block_hash(6), Err(StateError::MissingHeader(6)));
    assert_eq!(state.witness(Vec::new(), 6, 7), Err(StateError::MissingHeader(6)));
}

#[test]
fn nodes_and_codes_that_nothing_asks_for_do_no_harm() {
    let world = World::new();
    let (answers, mut witness) = recorded(&world);
    let recorded = witness.clone();
    witness.state.extend(world.nodes.values().cloned());
    witness.state.push(Bytes::from_static(b"no node at all"));
    witness.codes.push(Bytes::from_static(b"no code of anyone"));
    let index = index(&world, &witness);
    let mut state = TrieState::new(index.state_root(), &index);
    assert_eq!(read(&mut state), Ok(answers));
    assert_eq!(state.witness(recorded.codes.clone(), 7, 7), Ok(recorded));
}

#[test]
fn sorting_puts_each_node_and_code_once_and_in_order_and_leaves_headers_alone() {
    let items = |items: &[&'static [u8]]| {
        items.iter().map(|item| Bytes::from_static(item)).collect::<Vec<_>>()
    };
    let mut witness = Witness {
        state: items(&[b"b", b"a", b"ab", b"b"]).into(),
        codes: items(&[b"2", b"", b"1", b"2"]),
        headers: items(&[b"z", b"y", b"y"]),
    };
    assert_eq!(witness.content_bytes(), 5 + 3 + 3);
    witness.sort();
    assert_eq!(witness.state, items(&[b"a", b"ab", b"b"]));
    assert_eq!(witness.codes, items(&[b"", b"1", b"2"]));
    assert_eq!(witness.headers, items(&[b"z", b"y", b"y"]));
}
