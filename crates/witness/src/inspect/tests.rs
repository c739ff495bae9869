use super::*;
use alloy_consensus::Header;
use alloy_primitives::{Bytes, map::B256Set};
use std::collections::BTreeMap;
use testing::Random;
use testing::oracle::{Entries, NaiveTrie, list};

fn header(number: u64, parent_hash: B256, state_root: B256) -> Bytes {
    alloy_rlp::encode(Header { number, parent_hash, state_root, ..Header::default() }).into()
}

/// A state in the form of its tries.
struct NaiveState {
    accounts: NaiveTrie,
    storages: BTreeMap<B256, NaiveTrie>,
    code_hashes: BTreeMap<B256, B256>,
}

fn key(random: &mut Random) -> B256 {
    keccak256(random.number().to_be_bytes())
}

fn random_state(random: &mut Random, codes: &[Bytes]) -> NaiveState {
    let mut state = NaiveState {
        accounts: NaiveTrie::default(),
        storages: BTreeMap::new(),
        code_hashes: BTreeMap::new(),
    };
    let (mut accounts, mut last) = (Entries::new(), Entries::new());
    for _ in 0..random.below(60) {
        let slots: Entries = match random.below(4) {
            0 => Entries::new(),
            // The storage of another account, as clones have it, or most of it.
            1 => last.clone(),
            2 => last.iter().skip(1).map(|(key, value)| (key.clone(), value.clone())).collect(),
            _ => (0..random.below(50))
                .map(|_| {
                    let value = U256::from(1 + random.below(1 << 40)) << random.below(200);
                    (key(random).to_vec(), alloy_rlp::encode(value))
                })
                .collect(),
        };
        let storage = NaiveTrie::new(&slots);
        last = slots;
        let code = random.below(3 * codes.len());
        let code_hash = codes.get(code).map_or(KECCAK256_EMPTY, keccak256);
        let account = Account { storage_root: storage.root, code_hash, ..Account::default() };
        let hashed_address = key(random);
        accounts.insert(hashed_address.to_vec(), account.to_rlp());
        state.storages.insert(hashed_address, storage);
        state.code_hashes.insert(hashed_address, code_hash);
    }
    state.accounts = NaiveTrie::new(&accounts);
    state
}

/// The nodes of a trie that a witness has, with all above them, and how many those are.
fn reached<'a>(
    trie: &'a NaiveTrie,
    given: &'a B256Set,
) -> impl Iterator<Item = (B256, String, usize)> + 'a {
    trie.nodes.iter().filter_map(move |(path, rlp)| {
        let above: Vec<_> =
            trie.nodes.iter().filter(|(upper, _)| path.starts_with(upper)).collect();
        let is_reached = above.iter().all(|(_, upper)| given.contains(&keccak256(upper)));
        let digits: String = path.iter().map(|nibble| format!("{nibble:x}")).collect();
        is_reached.then(|| (keccak256(rlp), digits, above.len() - 1))
    })
}

/// Against the same told from the locations of all nodes in tries that are built at once.
#[test]
fn items_are_whose_they_are_in_tries_that_are_built_at_once() {
    let random = &mut Random::seeded();
    for _ in 0..testing::rounds("INSPECT_ROUNDS", 60, 2000) {
        let codes: Vec<Bytes> = (0..8u8).map(|i| vec![i; 1 + usize::from(i)].into()).collect();
        let state = random_state(random, &codes);
        let tries = || std::iter::once(&state.accounts).chain(state.storages.values());
        let all: Vec<Bytes> = tries().flat_map(|trie| trie.nodes.values().cloned()).collect();
        let kept = 1 + random.below(8);
        let mut nodes: Vec<Bytes> =
            all.iter().filter(|_| random.below(8) < kept).cloned().collect();
        nodes.extend((0..random.below(3)).map(|i| Bytes::from(vec![0xc0 + i as u8; 40])));
        nodes.sort_by_key(|_| random.below(1 << 30));
        let (first, root) = (header(7, B256::ZERO, B256::ZERO), state.accounts.root);
        let parent = header(8, keccak256(&first), root);
        let headers = vec![parent.clone(), header(3, B256::ZERO, root), first];
        let witness = Witness { state: nodes.clone().into(), codes: codes.clone(), headers };
        let inspection = Inspection::new(&witness, keccak256(&parent));

        let given: B256Set = nodes.iter().map(keccak256).collect();
        let mut expected = BTreeMap::new();
        let mut leaves = Vec::new();
        for (hash, path, depth) in reached(&state.accounts, &given) {
            let leaf = state.storages.keys().find(|key| {
                let is_below = format!("{key:x}").starts_with(&path);
                let alone = |other: &&B256| format!("{other:x}").starts_with(&path);
                is_below && state.storages.keys().filter(alone).count() == 1
            });
            leaves.extend(leaf.copied());
            expected.entry(hash).or_insert((
                NodeUse::AccountTrie { leaf: leaf.copied() },
                path,
                depth,
            ));
        }
        leaves.sort_unstable();
        for leaf in &leaves {
            for (hash, path, depth) in reached(&state.storages[leaf], &given) {
                expected.entry(hash).or_insert((NodeUse::Storage(*leaf), path, depth));
            }
        }
        let mut seen = B256Set::default();
        for (node, rlp) in inspection.nodes.iter().zip(&nodes) {
            let unreached = (NodeUse::Unreached, String::new(), 0);
            let mut wanted = expected.get(&keccak256(rlp)).unwrap_or(&unreached).clone();
            if !seen.insert(node.hash) {
                wanted = (NodeUse::Repeated, String::new(), 0);
            }
            assert_eq!((node.usage, node.path.clone(), node.depth), wanted);
            assert_eq!((node.hash, node.bytes), (keccak256(rlp), rlp.len()));
        }
        let addresses: Vec<_> = inspection.accounts.iter().map(|a| a.hashed_address).collect();
        assert_eq!(addresses, leaves);
        check_sums(&inspection, &witness, &state);
    }
}

/// Sums agree with their parts.
fn check_sums(inspection: &Inspection, witness: &Witness, state: &NaiveState) {
    let kinds = inspection.kinds();
    assert_eq!(kinds.iter().map(|kind| kind.bytes).sum::<usize>(), witness.content_bytes());
    let items: usize = kinds.iter().map(|kind| kind.items).sum();
    assert_eq!(items, witness.lists().map(Items::len).iter().sum::<usize>());
    for (kind, depths) in [InspectedKind::AccountNodes, InspectedKind::StorageNodes]
        .into_iter()
        .zip(inspection.depths())
    {
        assert_eq!(
            depths.iter().map(|depth| depth.bytes).sum::<usize>(),
            kinds[kind as usize].bytes
        );
        assert_eq!(
            depths.iter().map(|depth| depth.items).sum::<usize>(),
            kinds[kind as usize].items
        );
    }
    let storage = inspection.accounts.iter().map(|account| account.storage.bytes).sum::<usize>();
    assert_eq!(storage, kinds[InspectedKind::StorageNodes as usize].bytes);
    let codes = inspection.accounts.iter().map(|account| account.code_bytes).sum::<usize>();
    assert_eq!(codes, kinds[InspectedKind::Codes as usize].bytes);
    for code in &inspection.codes {
        let mut of = inspection.accounts.iter().map(|account| account.hashed_address);
        let has_it = |address: &B256| state.code_hashes[address] == code.hash;
        assert_eq!(of.clone().filter(has_it).count(), code.accounts);
        assert_eq!(of.find(has_it), code.first);
    }
    let ancestors: Vec<_> = inspection.headers.iter().map(|header| header.is_ancestor).collect();
    assert_eq!(ancestors, [true, false, true]);
    assert_eq!(kinds[InspectedKind::Headers as usize].items, 2);
}

#[test]
fn without_the_parents_header_nothing_is_reached() {
    let witness = Witness {
        state: vec![Bytes::from(vec![0xc0; 40])].into(),
        codes: vec![Bytes::from(vec![1])],
        headers: vec![header(1, B256::ZERO, B256::ZERO), Bytes::from(vec![0xc0])],
    };
    let inspection = Inspection::new(&witness, B256::repeat_byte(1));
    assert_eq!(inspection.state_root, None);
    assert_eq!(inspection.kinds()[InspectedKind::Unreached as usize].items, 4);
    assert_eq!(inspection.headers[1].number, None);
}

#[test]
fn leaves_without_accounts_and_items_given_twice_are_said_to_be_such() {
    let path = [&[0x20][..], &[7; 32]].concat();
    let leaf = Bytes::from(list(&[&path[..], &[0x80]].map(alloy_rlp::encode)));
    let parent = header(8, B256::ZERO, keccak256(&leaf));
    let code = Bytes::from(vec![1]);
    let witness = Witness {
        state: vec![leaf.clone(), leaf].into(),
        codes: vec![code.clone(), code],
        headers: vec![parent.clone(), parent.clone()],
    };
    let inspection = Inspection::new(&witness, keccak256(&parent));
    let usages: Vec<_> = inspection.nodes.iter().map(|node| node.usage).collect();
    assert_eq!(usages, [NodeUse::Malformed("leaf without account"), NodeUse::Repeated]);
    let repeated: Vec<_> = inspection.codes.iter().map(|code| code.is_repeated).collect();
    assert_eq!(repeated, [false, true]);
    let ancestors: Vec<_> = inspection.headers.iter().map(|header| header.is_ancestor).collect();
    assert_eq!(ancestors, [true, false]);
}
