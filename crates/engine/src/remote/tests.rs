use super::*;
use crate::samples::*;
use crate::world::{self, Signer, StartAccount};
use crate::{Amendment, Engine, EngineOptions, Error, Genesis, Verdict};
use alloy_primitives::TxKind;
use execution::{Call, CallOutcome, Deadline, Overrides, Transaction};
use state::{Database, MemoryDisk};
use testing::Random;

/// Reads the slot, the balance, the hash of a code and the hash of a block that its input names,
/// sets the slot to the fourth word, and logs and returns what it has read.
const READER: [u8; 49] = [
    0x60, 0x00, 0x35, 0x54, 0x60, 0x00, 0x52, 0x60, 0x20, 0x35, 0x31, 0x60, 0x20, 0x52, 0x60, 0x20,
    0x35, 0x3f, 0x60, 0x40, 0x52, 0x60, 0x40, 0x35, 0x40, 0x60, 0x60, 0x52, 0x60, 0x60, 0x35, 0x60,
    0x00, 0x35, 0x55, 0x60, 0x80, 0x60, 0x00, 0xa0, 0x60, 0x80, 0x60, 0x00, 0xf3, 0x00, 0x00, 0x00,
    0x00,
];

/// A way in which an endpoint lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    OtherBlock,
    OtherAccount,
    ChangedByte,
    LacksLast,
    Nothing,
    OtherCode,
    OtherHeader,
    IsGone,
}

/// An endpoint in this process.
#[derive(Debug)]
struct Endpoint {
    engine: Arc<Engine>,
    lie: Mutex<Lie>,
    asked: Mutex<Vec<(Address, Option<U256>)>>,
    kept: Mutex<Vec<Bytes>>,
    /// The slots that it knows the hashes of.
    slots: Vec<U256>,
}

impl Endpoint {
    fn of(engine: Arc<Engine>, slots: Vec<U256>) -> Arc<Self> {
        let (lie, asked, kept) = (Mutex::new(Lie::None), Mutex::default(), Mutex::default());
        Arc::new(Self { engine, lie, asked, kept, slots })
    }

    fn lie(&self) -> Result<Lie, String> {
        match *self.lie.lock().unwrap() {
            Lie::IsGone => Err("nobody is there".into()),
            lie => Ok(lie),
        }
    }
}

impl Upstream for Endpoint {
    fn name(&self) -> String {
        "a test's endpoint".into()
    }

    fn proof(
        &self,
        block: &RemoteBlock,
        address: Address,
        slot: Option<U256>,
    ) -> Result<RemoteProof, String> {
        let lie = self.lie()?;
        self.asked.lock().unwrap().push((address, slot));
        let hash = match lie {
            Lie::OtherBlock => self.engine.heads().genesis,
            _ => block.hash,
        };
        let of = if lie == Lie::OtherAccount { Address::repeat_byte(9) } else { address };
        let view = self.engine.state(hash).unwrap();
        let mut proof = view.proof(of, slot.as_slice()).unwrap();
        let storage = proof.storage.pop().map(|slot| slot.proof).unwrap_or_default();
        let mut proof = RemoteProof { account: proof.proof, storage };
        let last = match proof.storage.is_empty() {
            true => &mut proof.account,
            false => &mut proof.storage,
        };
        match lie {
            Lie::LacksLast => drop(last.pop()),
            Lie::Nothing => proof = RemoteProof::default(),
            Lie::ChangedByte => {
                let mut bytes = last.pop().unwrap().to_vec();
                *bytes.last_mut().unwrap() ^= 1;
                last.push(bytes.into());
            }
            // More than was asked for is no harm.
            _ => last.push(Bytes::from_static(&[0x80])),
        }
        Ok(proof)
    }

    fn code(&self, block: &RemoteBlock, address: Address) -> Result<Bytes, String> {
        match self.lie()? {
            Lie::OtherCode => Ok(Bytes::from_static(&[1, 2, 3])),
            _ => Ok(self.engine.state(block.hash).unwrap().code(address).unwrap()),
        }
    }

    fn header(&self, hash: B256) -> Result<Bytes, String> {
        let hash = match self.lie()? {
            Lie::OtherHeader => self.engine.heads().head,
            _ => hash,
        };
        let record = self.engine.block(hash).unwrap().ok_or("no such block")?;
        Ok(alloy_rlp::encode(&record.block.header).into())
    }

    fn next_slot(&self, _: &RemoteBlock, _: Address, from: B256) -> Result<U256, String> {
        let after = self.slots.iter().filter(|slot| hashed_slot(**slot) >= from);
        let next = after.min_by_key(|slot| hashed_slot(**slot)).copied();
        next.ok_or_else(|| "it has no debug_storageRangeAt".into())
    }

    fn keep(&self, item: &Bytes) {
        self.kept.lock().unwrap().push(item.clone());
    }
}

/// A chain that has its whole state, and one that begins with its head.
struct Pair {
    far: Arc<Engine>,
    endpoint: Arc<Endpoint>,
    near: Engine,
    head: B256,
    nonce: u64,
}

fn dev_file(alloc: impl IntoIterator<Item = (Address, StartAccount)>) -> alloy_genesis::Genesis {
    let mut config = world::config("osaka");
    config.extra_fields.insert("deponentDev".into(), true.into());
    let mut file = genesis_file(config);
    file.alloc.extend(world::genesis_alloc(alloc));
    file
}

/// A chain that begins with a block of another one.
fn forked(far: &Engine, head: B256, endpoint: Arc<Endpoint>, known: Vec<Bytes>) -> Engine {
    let header = far.block(head).unwrap().unwrap().block.header.clone();
    let remote = Arc::new(Remote::default());
    remote.add(RemoteBlock::of(&header), endpoint, known);
    let options = EngineOptions { remote: Some(remote), ..EngineOptions::default() };
    let database = Database::open(MemoryDisk::new(), &state::Options::default()).unwrap();
    let first = Genesis { header, alloc: BTreeMap::new() };
    Engine::open(far.chain().clone(), Some(first), database, options).unwrap()
}

impl Pair {
    fn new(file: &alloy_genesis::Genesis, slots: Vec<U256>) -> Self {
        let far = Arc::new(engine_from(file));
        let head = *branch(&far, far.heads().genesis, 0, 3).last().unwrap();
        assert_eq!(choose(&far, head), Verdict::Valid);
        let endpoint = Endpoint::of(far.clone(), slots);
        let near = forked(&far, head, endpoint.clone(), Vec::new());
        Self { far, endpoint, near, head, nonce: 3 }
    }

    fn nonce(&mut self) -> u64 {
        self.nonce += 1;
        self.nonce - 1
    }

    /// Adds a block with these transactions to both, and compares all that it leaves.
    fn extend(&mut self, transactions: Vec<Transaction>) {
        let built = build(&self.near, self.head, transactions.clone(), 0).block;
        let block = build(&self.far, self.head, transactions, 0).block;
        assert_eq!(built, block);
        self.head = block.hash();
        for engine in [&self.near, &*self.far] {
            assert_eq!(engine.new_block(block.clone()).unwrap(), Verdict::Valid);
        }
        let [near, far] = [&self.near, &*self.far].map(|engine| engine.block(self.head).unwrap());
        assert_eq!(near.unwrap().receipts, far.unwrap().receipts);
        let witness = self.near.witness(self.head).unwrap().unwrap();
        assert_eq!(witness, self.far.witness(self.head).unwrap().unwrap());
        execution::verify(self.near.chain(), &block, None, &witness).unwrap();
    }

    fn call(&self, call: &Call) {
        let [near, far] = [&self.near, &*self.far].map(|engine| call_on(engine, self.head, call));
        assert_eq!(near.unwrap(), far.unwrap(), "{call:?}");
    }
}

fn call_on(engine: &Engine, block: B256, call: &Call) -> Result<CallOutcome, Error> {
    engine.call(block, call, &Overrides::default(), &Deadline::never())
}

/// Four words of input.
fn input(slot: U256, address: Address, number: u64, value: U256) -> Bytes {
    let words = [slot.into(), address.into_word(), U256::from(number).into(), value.into()];
    words.map(|word: B256| word.0).concat().into()
}

fn addresses(random: &mut Random, count: usize) -> Vec<Address> {
    let address =
        |random: &mut Random| Address::from_word(keccak256(random.number().to_be_bytes()));
    (0..count).map(|_| address(random)).collect()
}

/// The slow twin: a chain that has its whole state.
#[test]
fn a_chain_on_a_state_that_is_elsewhere_is_the_chain_that_has_it() {
    let random = &mut Random::seeded();
    let (contracts, others) = (addresses(random, 6), addresses(random, 120));
    let mut alloc: Vec<_> = others.iter().map(|address| (*address, StartAccount::rich())).collect();
    for (index, address) in contracts.iter().enumerate() {
        let slots = (0..[0, 1, 2, 17, 60, 300][index]).map(|slot| (slot, slot + 1));
        // Two have the same storage, and two the same code.
        let code = if index < 4 { READER.to_vec() } else { [&READER[..], &[index as u8]].concat() };
        alloc.push((*address, StartAccount::contract(code).storage(slots)));
    }
    let mut pair = Pair::new(&dev_file(alloc), Vec::new());
    let everyone = [&contracts[..], &others, &addresses(random, 20)].concat();
    for round in 0..40 {
        let some_input = |random: &mut Random| {
            let value = if random.one_in(2) { 0 } else { random.below(9) as u64 };
            let slot = U256::from(random.below(320));
            input(slot, random.pick(&everyone), random.below(12) as u64, U256::from(value))
        };
        for _ in 0..6 {
            let to = TxKind::Call(random.pick(&contracts));
            let input = some_input(random);
            pair.call(&Call { to, gas: 500_000, input, ..Call::default() });
        }
        let transactions = (0..random.below(5)).map(|_| {
            let nonce = pair.nonce();
            let (input, other) = (some_input(random), random.pick(&everyone));
            match random.below(4) {
                0 => sender().transact(nonce, TxKind::Call(other), U256::from(1), Bytes::new()),
                // A creation runs its input.
                1 => sender().transact(nonce, TxKind::Create, U256::ZERO, READER.into()),
                _ => sender().call(nonce, random.pick(&contracts), input),
            }
        });
        let transactions = transactions.collect();
        pair.extend(transactions);
        let [near, far] = [&pair.near, &*pair.far].map(|engine| engine.state(pair.head).unwrap());
        let (who, slots) = (random.pick(&everyone), [random.below(320), random.below(320)]);
        let slots = slots.map(U256::from);
        assert_eq!(near.proof(who, &slots).unwrap(), far.proof(who, &slots).unwrap(), "{round}");
        assert_eq!(near.code(who).unwrap(), far.code(who).unwrap());
    }
    let asked = pair.endpoint.asked.lock().unwrap().clone();
    let unique: HashSet<_> = asked.iter().collect();
    assert_eq!(unique.len(), asked.len(), "each proof is asked for once");
}

#[test]
fn what_was_kept_is_not_asked_for_again() {
    let contract = Address::repeat_byte(0x51);
    let account = StartAccount::contract(READER).storage((0..50).map(|slot| (slot, 7)));
    let pair = Pair::new(&dev_file([(contract, account)]), Vec::new());
    let call = Call {
        to: TxKind::Call(contract),
        gas: 500_000,
        input: input(U256::from(4), contract, 1, U256::ZERO),
        ..Call::default()
    };
    pair.call(&call);
    let kept = std::mem::take(&mut *pair.endpoint.kept.lock().unwrap());
    *pair.endpoint.lie.lock().unwrap() = Lie::IsGone;
    let again = forked(&pair.far, pair.head, pair.endpoint.clone(), kept);
    let expected = call_on(&pair.far, pair.head, &call).unwrap();
    assert_eq!(call_on(&again, pair.head, &call).unwrap(), expected);
    let other = Call { input: input(U256::from(5), contract, 1, U256::ZERO), ..call };
    let error = call_on(&again, pair.head, &other).unwrap_err();
    assert!(error.to_string().contains("nobody is there"), "{error}");
}

#[test]
fn a_lie_is_an_error_that_says_what_does_not_fit() {
    let contract = Address::repeat_byte(0x51);
    let account = StartAccount::contract(READER).storage((0..50).map(|slot| (slot, 7)));
    let others = (0..50).map(|byte| (Address::repeat_byte(byte), StartAccount::rich()));
    let file = dev_file(others.chain([(contract, account)]));
    let call = Call {
        to: TxKind::Call(contract),
        gas: 500_000,
        input: input(U256::from(4), contract, 1, U256::ZERO),
        ..Call::default()
    };
    let pair = Pair::new(&file, Vec::new());
    let expected = call_on(&pair.far, pair.head, &call).unwrap();
    for (lie, words) in [
        (Lie::OtherBlock, "does not fit its state root"),
        (Lie::OtherAccount, "does not fit its state root"),
        (Lie::ChangedByte, "does not fit its state root"),
        (Lie::LacksLast, "does not fit its state root"),
        (Lie::Nothing, "does not fit its state root"),
        (Lie::OtherCode, "eth_getCode of 0x5151515151515151515151515151515151515151 at block 3"),
        (Lie::OtherHeader, "the header of block"),
        (Lie::IsGone, "nobody is there"),
    ] {
        let near = forked(&pair.far, pair.head, pair.endpoint.clone(), Vec::new());
        *pair.endpoint.lie.lock().unwrap() = lie;
        let error = call_on(&near, pair.head, &call).unwrap_err();
        assert!(matches!(&error, Error::State(error) if error.is_remote()), "{lie:?}: {error:?}");
        let said = error.to_string();
        assert!(said.contains(words), "{lie:?}: {said}");
        let is_named = said.contains("a test's endpoint: ");
        assert!(is_named || matches!(lie, Lie::IsGone), "{lie:?}: {said}");
        // Nothing of it was kept.
        *pair.endpoint.lie.lock().unwrap() = Lie::None;
        assert_eq!(call_on(&near, pair.head, &call).unwrap(), expected, "{lie:?}");
    }
}

/// Two slots whose hashes share their first eight digits, which takes hours to look for otherwise.
fn neighbours(random: &mut Random) -> (U256, U256) {
    let mut by_prefix = BTreeMap::new();
    loop {
        let slot = U256::from(random.number());
        let prefix: [u8; 4] = hashed_slot(slot)[..4].try_into().unwrap();
        if let Some(other) = by_prefix.insert(prefix, slot).filter(|other| *other != slot) {
            return (slot, other);
        }
    }
}

#[test]
fn a_slot_is_cleared_whose_neighbour_nobody_has_read() {
    let random = &mut Random::seeded();
    let contract = Address::repeat_byte(0x51);
    let (cleared, neighbour) = neighbours(random);
    let account = StartAccount {
        // They are long enough to be nodes of their own.
        storage: [(cleared, U256::MAX), (neighbour, U256::MAX)].into(),
        ..StartAccount::contract(READER)
    };
    let file = dev_file([(contract, account)]);
    let clear = |nonce| sender().call(nonce, contract, input(cleared, contract, 0, U256::ZERO));
    let mut known = Pair::new(&file, vec![cleared, neighbour]);
    known.extend(vec![clear(3)]);
    // An endpoint that does not name the neighbour.
    let pair = Pair::new(&file, Vec::new());
    let attributes = attributes(&pair.near, pair.head);
    let error =
        pair.near.build(pair.head, attributes.clone(), vec![clear(3)], Bytes::new()).unwrap_err();
    for words in ["the slots of 0x5151", "was cleared", "it has no debug_storageRangeAt"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    // Other blocks are built, and once the neighbour has been read, this one too.
    pair.near.build(pair.head, attributes.clone(), Vec::new(), Bytes::new()).unwrap();
    pair.near.state(pair.head).unwrap().storage(contract, neighbour).unwrap();
    pair.near.build(pair.head, attributes, vec![clear(3)], Bytes::new()).unwrap();
}

#[test]
fn amendments_of_a_state_that_is_elsewhere() {
    let contract = Address::repeat_byte(0x51);
    let account = StartAccount::contract(READER).storage((0..50).map(|slot| (slot, 7)));
    let file = dev_file([(contract, account)]);
    // The endpoint's state does not change.
    let (mut pair, twin) = (Pair::new(&file, Vec::new()), Pair::new(&file, Vec::new()));
    let (who, slot) = (Signer::new(7).address(), U256::from(3));
    let amendments = [
        (who, Amendment::Balance(U256::from(10u128.pow(20)))),
        (contract, Amendment::Storage { slot, value: U256::ZERO }),
        (contract, Amendment::Storage { slot: U256::from(4), value: U256::from(9) }),
        (contract, Amendment::Code(Bytes::from_static(&[0]))),
    ];
    let before = pair.near.state_handle(pair.head).unwrap();
    let root = |engine: &Engine| engine.state(pair.head).unwrap().root();
    let first = root(&pair.near);
    for engine in [&pair.near, &*twin.far] {
        engine.amend(pair.head, &amendments).unwrap();
    }
    assert_eq!(root(&pair.near), root(&twin.far));
    pair.near.restore(&before).unwrap();
    assert_eq!(root(&pair.near), first);
    pair.near.amend(pair.head, &amendments).unwrap();
    let nonce = pair.nonce();
    let block = build(&pair.near, pair.head, vec![sender().call(nonce, contract, [])], 0).block;
    for engine in [&pair.near, &*twin.far] {
        assert_eq!(engine.new_block(block.clone()).unwrap(), Verdict::Valid);
    }
}

#[test]
fn a_hash_below_a_place_is_found() {
    let random = &mut Random::seeded();
    for depth in 0..5 {
        let key = keccak256(random.number().to_be_bytes());
        let place = NodePlace { depth, ..NodePlace::storage(B256::ZERO) };
        let place = NodePlace { key, ..place };
        let slot = search(&place, 32).unwrap();
        assert!(place.is_above(&hashed_slot(slot.into())));
        let address = search(&place, 20).unwrap();
        assert!(place.is_above(&keccak256(&address[12..])));
    }
    let depth = REMOTE_SEARCH_NIBBLES as u8 + 1;
    assert_eq!(search(&NodePlace { depth, ..NodePlace::ROOT }, 32), None);
}
