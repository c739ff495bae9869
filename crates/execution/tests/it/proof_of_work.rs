//! Blocks of proof of work: difficulty, ommers, the DAO's headers.

use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::{
    BlockBody, Eip658Value, Header, SignableTransaction, TxLegacy, TxReceipt, proofs,
};
use alloy_genesis::ChainConfig;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use deponent_execution::*;
use std::path::PathBuf;
use testing::world::{self, COINBASE, GAS_PRICE, Signer, StartAccount, World, old_chain};

/// The lowest difficulty of a block.
const DIFFICULTY_MINIMUM: U256 = U256::from_limbs([131_072, 0, 0, 0]);

fn mainnet() -> ChainSpec {
    ChainSpec::from_chain_id(1).unwrap()
}

/// A header with this number, time and difficulty, and no ommers.
fn header(number: u64, timestamp: u64, difficulty: u64) -> Header {
    let difficulty = U256::from(difficulty);
    let ommers_hash = EMPTY_OMMER_ROOT_HASH;
    Header { number, timestamp, difficulty, ommers_hash, gas_limit: 1_000_000, ..Header::default() }
}

/// The difficulty after a block `number` of a million times 2048, `seconds` later, above that
/// block's, in steps of a million.
fn check_steps(chain: &ChainSpec, number: u64, ommers: bool, seconds: u64, expected: i64) {
    let mut parent = header(number, 1000, 2_048_000_000);
    if ommers {
        parent.ommers_hash = B256::repeat_byte(1);
    }
    let difficulty: i64 = next_difficulty(chain, &parent, 1000 + seconds).to();
    assert_eq!(difficulty, 2_048_000_000 + 1_000_000 * expected, "{seconds} s");
}

#[test]
fn a_late_block_makes_the_next_one_easier() {
    let frontier = old_chain("frontier");
    for (seconds, steps) in [(1, 1), (12, 1), (13, -1), (1_000_000, -1)] {
        check_steps(&frontier, 7, false, seconds, steps);
        check_steps(&frontier, 7, true, seconds, steps);
    }
    let homestead = old_chain("homestead");
    for (seconds, steps) in [(1, 1), (9, 1), (10, 0), (19, 0), (20, -1), (999, -98), (1000, -99)] {
        check_steps(&homestead, 7, true, seconds, steps);
    }
    check_steps(&homestead, 7, true, u64::MAX - 1000, -99);
    let byzantium = old_chain("byzantium");
    for (seconds, steps) in [(1, 1), (8, 1), (9, 0), (18, -1), (899, -98), (900, -99), (909, -99)] {
        check_steps(&byzantium, 7, false, seconds, steps);
        let after_ommers = if seconds < 909 { steps + 1 } else { steps };
        check_steps(&byzantium, 7, true, seconds, after_ommers);
    }
}

#[test]
fn the_difficulty_has_a_floor_and_no_ceiling() {
    let chain = old_chain("frontier");
    let next = |difficulty, seconds| {
        let parent = Header { difficulty, ..header(7, 0, 0) };
        next_difficulty(&chain, &parent, seconds)
    };
    assert_eq!(next(U256::ZERO, 1), DIFFICULTY_MINIMUM);
    assert_eq!(next(DIFFICULTY_MINIMUM, 100), DIFFICULTY_MINIMUM);
    assert_eq!(next(U256::MAX, 1), U256::MAX);
    let parent = header(1 << 62, 0, 1_000_000);
    assert_eq!(next_difficulty(&chain, &parent, 1), U256::MAX);
}

#[test]
fn the_bomb_doubles_and_is_put_off_by_forks() {
    let (homestead, mainnet) = (old_chain("homestead"), mainnet());
    // Blocks before and at doublings and forks, and the exponents of two there.
    let cases = [
        (&homestead, 199_999, None),
        (&homestead, 200_000, Some(0)),
        (&homestead, 299_999, Some(0)),
        (&homestead, 300_000, Some(1)),
        (&mainnet, 4_369_999, Some(41)),
        (&mainnet, 4_370_000, Some(11)),
        (&mainnet, 7_279_999, Some(40)),
        (&mainnet, 7_280_000, Some(20)),
        (&mainnet, 9_199_999, Some(39)),
        (&mainnet, 9_200_000, Some(0)),
        (&mainnet, 12_964_999, Some(37)),
        (&mainnet, 12_965_000, Some(30)),
        (&mainnet, 13_772_999, Some(38)),
        (&mainnet, 13_773_000, Some(28)),
        (&mainnet, 15_049_999, Some(41)),
        (&mainnet, 15_050_000, Some(34)),
    ];
    for (chain, number, exponent) in cases {
        // No change but the bomb's.
        let seconds = if chain.is_byzantium_active_at_block(number) { 9 } else { 10 };
        let parent = header(number - 1, 1000, 1_000_000);
        let difficulty = next_difficulty(chain, &parent, 1000 + seconds);
        let bomb = difficulty - parent.difficulty;
        let expected = exponent.map_or(U256::ZERO, |exponent: usize| U256::ONE << exponent);
        assert_eq!(bomb, expected, "{number}");
    }
}

#[test]
fn the_first_blocks_of_mainnet_have_their_difficulties() {
    let genesis = header(0, 0, 17_179_869_184);
    let first = next_difficulty(&mainnet(), &genesis, 1_438_269_988);
    assert_eq!(first, U256::from(17_171_480_576u64));
    let parent = Header { difficulty: first, ..header(1, 1_438_269_988, 0) };
    let second = next_difficulty(&mainnet(), &parent, 1_438_270_017);
    assert_eq!(second, U256::from(17_163_096_064u64));
}

/// The published difficulties, where `DEPONENT_FIXTURES` names a folder that has them.
#[test]
fn published_difficulties_are_ours() {
    let Some(folder) = std::env::var_os("DEPONENT_FIXTURES").map(PathBuf::from) else { return };
    let muir =
        ChainConfig { istanbul_block: Some(0), muir_glacier_block: Some(0), ..config("byzantium") };
    let files = [
        ("ethereum-tests/BasicTests/difficultyMainNetwork.json", mainnet()),
        ("ethereum-tests/BasicTests/difficultyCustomMainNetwork.json", mainnet()),
        ("legacytests/BasicTests/difficultyFrontier.json", old_chain("frontier")),
        ("legacytests/BasicTests/difficultyHomestead.json", old_chain("homestead")),
        ("legacytests/BasicTests/difficultyByzantium.json", old_chain("byzantium")),
        ("legacytests/BasicTests/difficultyConstantinople.json", old_chain("istanbul")),
        ("legacytests/BasicTests/difficultyEIP2384.json", spec(&muir)),
        ("legacytests/BasicTests/difficultyEIP2384_random.json", spec(&muir)),
        ("legacytests/BasicTests/difficultyEIP2384_random_to20M.json", spec(&muir)),
    ];
    for (file, chain) in files {
        let Ok(text) = std::fs::read(folder.join(file)) else { continue };
        let tests: serde_json::Value = serde_json::from_slice(&text).unwrap();
        for (name, test) in tests.as_object().unwrap() {
            let number = |field: &str| -> U256 { test[field].as_str().unwrap().parse().unwrap() };
            let ommers = test["parentUncles"]
                .as_str()
                .is_some_and(|hash| hash != "0x00" && hash != EMPTY_OMMER_ROOT_HASH.to_string());
            let parent = Header {
                number: number("currentBlockNumber").to::<u64>() - 1,
                timestamp: number("parentTimestamp").to(),
                difficulty: number("parentDifficulty"),
                ommers_hash: if ommers { B256::ZERO } else { EMPTY_OMMER_ROOT_HASH },
                ..Header::default()
            };
            let got = next_difficulty(&chain, &parent, number("currentTimestamp").to());
            assert_eq!(got, number("currentDifficulty"), "{file}: {name}");
        }
    }
}

fn config(fork: &str) -> ChainConfig {
    let active = (fork == "byzantium").then_some(0);
    ChainConfig {
        chain_id: world::CHAIN_ID,
        homestead_block: Some(0),
        eip150_block: active,
        eip155_block: active,
        eip158_block: active,
        byzantium_block: active,
        constantinople_block: active,
        ..ChainConfig::default()
    }
}

fn spec(config: &ChainConfig) -> ChainSpec {
    ChainSpec::from_config(config).unwrap()
}

/// The valid header of a block with proof of work, with a change, and the rule that it breaks then.
fn check(chain: &ChainSpec, change: impl Fn(&mut Header), expected: Result<(), InvalidBlock>) {
    let world = World::new(chain.clone(), []);
    let mut header = world.draft(Vec::new(), Vec::new()).header;
    change(&mut header);
    let parent = world.parent();
    assert_eq!(validate_header(chain, &header, parent, parent.hash_slow()), expected);
}

#[test]
fn a_header_with_proof_of_work_has_its_own_rules() {
    for fork in ["frontier", "homestead", "byzantium", "constantinople", "istanbul", "london"] {
        let chain = old_chain(fork);
        check(&chain, |_| {}, Ok(()));
        check(&chain, |header| header.nonce = [1; 8].into(), Ok(()));
        check(&chain, |header| header.ommers_hash = B256::ZERO, Ok(()));
        for got in [U256::ZERO, U256::from(1_000_000), U256::MAX] {
            let parent = World::new(chain.clone(), []).parent().clone();
            let expected = next_difficulty(&chain, &parent, parent.timestamp + 12);
            let change = |header: &mut Header| header.difficulty = got;
            match got == expected {
                true => check(&chain, change, Ok(())),
                false => check(&chain, change, Err(InvalidBlock::Difficulty { got, expected })),
            }
        }
    }
    let unexpected = |field| InvalidBlock::UnexpectedField { field, timestamp: 12 };
    let chain = old_chain("istanbul");
    let error = unexpected("base fee per gas");
    check(&chain, |header| header.base_fee_per_gas = Some(7), Err(error));
    let error = unexpected("withdrawals root");
    check(&chain, |header| header.withdrawals_root = Some(B256::ZERO), Err(error));
}

#[test]
fn the_first_block_of_london_doubles_the_gas_limit() {
    let config = ChainConfig { istanbul_block: Some(0), ..config("byzantium") };
    let config = ChainConfig { berlin_block: Some(0), london_block: Some(1), ..config };
    let chain = spec(&config);
    let parent = 100_000_000;
    let limit = |limit| move |header: &mut Header| header.gas_limit = limit;
    check(&chain, limit(2 * parent), Ok(()));
    check(&chain, limit(2 * parent + 2 * parent / 1024 - 1), Ok(()));
    for got in [parent, 2 * parent + 2 * parent / 1024] {
        let error = InvalidBlock::GasLimit { got, parent: 2 * parent };
        check(&chain, limit(got), Err(error));
    }
    let error = InvalidBlock::BaseFee { got: None, expected: 1_000_000_000 };
    let change = |header: &mut Header| {
        (header.gas_limit, header.base_fee_per_gas) = (2 * parent, None);
    };
    check(&chain, change, Err(error));
}

#[test]
fn the_first_blocks_after_the_dao_fork_say_so() {
    let config = ChainConfig { dao_fork_block: Some(1), dao_fork_support: true, ..config("") };
    let chain = spec(&config);
    let says = |header: &mut Header| header.extra_data = b"dao-hard-fork".into();
    let check_at = |number: u64, change: fn(&mut Header), expected| {
        let parent = header(number - 1, 1000, 1_000_000);
        let mut header = header(number, 1010, 1_000_000);
        header.parent_hash = parent.hash_slow();
        change(&mut header);
        assert_eq!(validate_header(&chain, &header, &parent, parent.hash_slow()), expected);
    };
    for number in 1..=10 {
        check_at(number, says, Ok(()));
        check_at(number, |_| {}, Err(InvalidBlock::DaoExtraData(number)));
    }
    check_at(11, |_| {}, Ok(()));
    check_at(11, says, Ok(()));
}

#[test]
fn proof_of_work_ends_when_the_total_difficulty_is_reached() {
    let config =
        ChainConfig { terminal_total_difficulty: Some(U256::from(1000)), ..config("byzantium") };
    let check = |config: &ChainConfig, difficulty: u64, total: u64, is_right: bool| {
        let block = Block { header: header(5, 0, difficulty), body: BlockBody::default() };
        let total_difficulty = U256::from(total);
        let answer =
            validate_ancestry(&spec(config), &SealedBlock::new(block), total_difficulty, &[]);
        let terminal = U256::from(1000);
        let difficulty = U256::from(difficulty);
        let error = InvalidBlock::Merge { difficulty, total_difficulty, terminal };
        assert_eq!(answer, if is_right { Ok(()) } else { Err(error) }, "{difficulty}, {total}");
    };
    let passed = ChainConfig { terminal_total_difficulty_passed: true, ..config.clone() };
    for total in [0, 999] {
        check(&config, 7, total, true);
        check(&config, 0, total, false);
        check(&passed, 7, total, true);
        check(&passed, 0, total, true);
    }
    for total in [1000, 2000] {
        check(&config, 7, total, false);
        check(&config, 0, total, true);
        check(&passed, 7, total, false);
    }
}

#[test]
fn a_chain_says_by_number_or_by_total_difficulty_where_proof_of_work_ends() {
    let mainnet = mainnet();
    assert_eq!(
        [15_537_393, 15_537_394].map(|at| mainnet.is_merged_at(at)),
        [Some(false), Some(true)]
    );
    assert_eq!(old_chain("london").is_merged_at(u64::MAX), Some(false));
    assert_eq!(world::chain("paris").is_merged_at(0), Some(true));
    let terminal_total_difficulty = Some(U256::from(1000));
    let chain = spec(&ChainConfig { terminal_total_difficulty, ..config("byzantium") });
    assert_eq!(chain.is_merged_at(1), None);
    // A block without proof of work has none after it.
    let parent = Header { number: 1, ommers_hash: EMPTY_OMMER_ROOT_HASH, ..header(1, 0, 0) };
    let child = Header { parent_hash: parent.hash_slow(), ..header(2, 9, 131_072) };
    let (field, expected) = ("difficulty", "zero");
    let error = InvalidBlock::ProofOfWorkField { field, expected };
    assert_eq!(validate_header(&chain, &child, &parent, parent.hash_slow()), Err(error));
}

/// A chain of ten empty blocks, genesis first, and their rules.
fn ancestors() -> (ChainSpec, Vec<SealedBlock>) {
    let chain = old_chain("byzantium");
    let first = Block { header: header(0, 0, 1_000_000), body: BlockBody::default() };
    let mut blocks = vec![SealedBlock::new(first)];
    for _ in 0..10 {
        let block = child(&chain, blocks.last().unwrap(), 0, Vec::new());
        blocks.push(block);
    }
    (chain, blocks)
}

/// An empty block on `parent`, one of many.
fn child(chain: &ChainSpec, parent: &SealedBlock, which: u8, ommers: Vec<Header>) -> SealedBlock {
    let timestamp = parent.header.timestamp + 10;
    let header = Header {
        parent_hash: parent.hash(),
        ommers_hash: proofs::calculate_ommers_root(&ommers),
        beneficiary: Address::repeat_byte(which),
        difficulty: next_difficulty(chain, &parent.header, timestamp),
        ..header(parent.header.number + 1, timestamp, 0)
    };
    SealedBlock::new(Block { header, body: BlockBody { ommers, ..BlockBody::default() } })
}

/// A block with these ommers on the last of `blocks`, and what is said of it.
fn check_ommers(chain: &ChainSpec, blocks: &[SealedBlock], ommers: Vec<Header>, expected: &str) {
    let block = child(chain, blocks.last().unwrap(), 0, ommers);
    validate_body_roots(&block).unwrap();
    let behind: Vec<_> = blocks.iter().rev().collect();
    let answer = validate_ancestry(chain, &block, U256::ZERO, &behind);
    let answer = answer.err().map_or(String::new(), |error| error.to_string());
    assert_eq!(answer, expected);
}

#[test]
fn ommers_are_children_of_the_six_blocks_before_the_parent() {
    let (chain, blocks) = ancestors();
    let ommer = |back: usize, which| {
        let parent = &blocks[blocks.len() - 1 - back];
        child(&chain, parent, which, Vec::new()).into_block().header
    };
    for back in 1..=6 {
        check_ommers(&chain, &blocks, vec![ommer(back, 1)], "");
        check_ommers(&chain, &blocks, vec![ommer(back, 1), ommer(1, 2)], "");
    }
    let apart = "ommer 0 is no child of one of the six blocks before the parent";
    check_ommers(&chain, &blocks, vec![ommer(0, 1)], apart);
    check_ommers(&chain, &blocks, vec![ommer(7, 1)], apart);
    // A short chain has fewer.
    check_ommers(&chain, &blocks[..3], vec![ommer(8, 1)], apart);
    let three = vec![ommer(1, 1), ommer(1, 2), ommer(1, 3)];
    check_ommers(&chain, &blocks, three, "3 ommers, at most 2 allowed");
}

#[test]
fn an_ommer_is_a_header_in_order_that_was_not_there_before() {
    let (chain, mut blocks) = ancestors();
    let ancestor = blocks[8].header.clone();
    check_ommers(&chain, &blocks, vec![ancestor], "ommer 0 is an ancestor");
    let ommer = child(&chain, &blocks[8], 1, Vec::new()).into_block().header;
    let twice = vec![ommer.clone(), ommer.clone()];
    check_ommers(&chain, &blocks, twice, "ommer 1 has been one before");
    let wrong = Header { difficulty: ommer.difficulty + U256::ONE, ..ommer.clone() };
    let (got, expected) = (wrong.difficulty, ommer.difficulty);
    let reason = format!("ommer 0 difficulty {got}, must be {expected}");
    check_ommers(&chain, &blocks, vec![wrong], &reason);
    let merged = Header { difficulty: U256::ZERO, ..ommer.clone() };
    check_ommers(&chain, &blocks, vec![merged], "ommer 0 has no proof of work");
    let block = child(&chain, &blocks[10], 0, vec![ommer.clone()]);
    blocks.push(block);
    check_ommers(&chain, &blocks, vec![ommer], "ommer 0 has been one before");
}

#[test]
fn before_homestead_signatures_may_have_two_forms_and_name_no_chain() {
    let order = U256::from_be_slice(&alloy_primitives::hex!(
        "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
    ));
    let signer = Signer::new(1);
    let tx = TxLegacy { to: TxKind::Call(COINBASE), ..TxLegacy::default() };
    let low = signer.sign(tx.signature_hash());
    let high = Signature::new(low.r(), order - low.s(), !low.v());
    let [low, high] = [low, high].map(|signature| tx.clone().into_signed(signature).into());
    let named = signer.legacy(0, TxKind::Call(COINBASE), []);
    let check = |fork, transaction, is_right: bool| {
        let sender = recover_signer_at(&old_chain(fork), 1, 0, transaction);
        let sender = sender.ok().map(|signer| signer.address);
        assert_eq!(sender, is_right.then(|| signer.address()), "{fork}");
    };
    for (fork, is_high_right, is_named_right) in
        [("frontier", true, false), ("homestead", false, false), ("eip158", false, true)]
    {
        check(fork, &low, true);
        check(fork, &high, is_high_right);
        check(fork, &named, is_named_right);
    }
}

#[test]
fn receipts_before_byzantium_have_the_root_after_their_transaction() {
    let (signer, store) = (Signer::new(1), Address::repeat_byte(0xa1));
    // Stores the gas that is left.
    let code = vec![0x5a, 0x60, 1, 0x55];
    let accounts =
        [(signer.address(), StartAccount::rich()), (store, StartAccount::contract(code))];
    let roots = |fork: &str| {
        let mut world = World::new(old_chain(fork), accounts.clone());
        let to = [COINBASE, store, store].map(TxKind::Call);
        let send = |(nonce, to)| signer.unprotected(nonce, to, U256::ONE, []);
        let block = world.block((0..).zip(to).map(send).collect());
        let validated = world.check(&block).unwrap();
        assert_eq!(decode_block(&alloy_rlp::encode(&*block)).unwrap(), block);
        let receipts = validated.executed.receipts.clone();
        world.extend(&block, validated);
        let reward = world.account(COINBASE).balance / U256::from(10).pow(U256::from(18));
        let roots = receipts.iter().filter_map(|receipt| match receipt {
            Receipt::Legacy(receipt) => match receipt.receipt.status_or_post_state() {
                Eip658Value::PostState(root) => Some(root),
                Eip658Value::Eip658(_) => None,
            },
            _ => None,
        });
        let mut roots: Vec<_> = roots.collect();
        roots.sort_unstable();
        roots.dedup();
        (roots.len(), reward.to::<u64>())
    };
    assert_eq!(GAS_PRICE, 1_000_000_000);
    assert_eq!(roots("frontier"), (3, 5));
    assert_eq!(roots("homestead"), (3, 5));
    assert_eq!(roots("eip158"), (3, 5));
    assert_eq!(roots("byzantium"), (0, 3));
    assert_eq!(roots("constantinople"), (0, 2));
    assert_eq!(roots("istanbul"), (0, 2));
}

/// The gas that a call of `code` uses, whose slot 0 holds `original`, on a chain of a fork.
fn gas_used(fork: &str, code: &str, original: u64) -> u64 {
    let (signer, contract) = (Signer::new(1), Address::repeat_byte(0xa1));
    let code: Bytes = code.parse().unwrap();
    let accounts = [
        (signer.address(), StartAccount::rich()),
        (contract, StartAccount::contract(code).storage([(0, original)])),
    ];
    let world = World::new(old_chain(fork), accounts);
    let call = signer.unprotected(0, TxKind::Call(contract), U256::ZERO, []);
    let validated = world.check(&world.block(vec![call])).unwrap();
    let receipt = &validated.executed.receipts[0];
    assert!(receipt.status());
    receipt.cumulative_gas_used()
}

/// The test cases of EIP-1283, with what the forks beside Constantinople have used.
#[test]
fn storage_is_metered_by_its_net_change_in_constantinople_alone() {
    for (code, used, refund, original, before) in [
        ("0x60006000556000600055", 412, 0, 0, (10_012, 0)),
        ("0x60006000556001600055", 20_212, 0, 0, (25_012, 0)),
        ("0x60016000556000600055", 20_212, 19_800, 0, (25_012, 15_000)),
        ("0x60016000556002600055", 20_212, 0, 0, (25_012, 0)),
        ("0x60016000556001600055", 20_212, 0, 0, (25_012, 0)),
        ("0x60006000556000600055", 5_212, 15_000, 1, (10_012, 15_000)),
        ("0x60006000556001600055", 5_212, 4_800, 1, (25_012, 15_000)),
        ("0x60006000556002600055", 5_212, 0, 1, (25_012, 15_000)),
        ("0x60026000556000600055", 5_212, 15_000, 1, (10_012, 15_000)),
        ("0x60026000556003600055", 5_212, 0, 1, (10_012, 0)),
        ("0x60026000556001600055", 5_212, 4_800, 1, (10_012, 0)),
        ("0x60026000556002600055", 5_212, 0, 1, (10_012, 0)),
        ("0x60016000556000600055", 5_212, 15_000, 1, (10_012, 15_000)),
        ("0x60016000556002600055", 5_212, 0, 1, (10_012, 0)),
        ("0x60016000556001600055", 412, 0, 1, (10_012, 0)),
        ("0x600160005560006000556001600055", 40_218, 19_800, 0, (45_018, 15_000)),
        ("0x600060005560016000556000600055", 10_218, 19_800, 1, (30_018, 30_000)),
    ] {
        let in_all = |used: u64, refund: u64| 21_000 + used - refund.min((21_000 + used) / 2);
        let found = gas_used("constantinople", code, original);
        assert_eq!(found, in_all(used, refund), "{code} on {original}");
        assert_eq!(gas_used("byzantium", code, original), in_all(before.0, before.1), "{code}");
    }
}

/// Until EIP-161 an account that gets nothing is created, or stays, whoever ran the transaction and
/// when.
#[test]
fn a_beneficiary_that_a_free_transaction_pays_nothing_is_there_as_ever() {
    let signer = Signer::new(1);
    let send = |nonce| {
        let to = TxKind::Call(Address::repeat_byte(0xa1));
        let (gas_limit, value) = (21_000, U256::ONE);
        let tx = TxLegacy { nonce, gas_limit, to, value, ..TxLegacy::default() };
        let signature = signer.sign(tx.signature_hash());
        tx.into_signed(signature).into()
    };
    for fork in ["frontier", "homestead", "eip158"] {
        for there in [None, Some((COINBASE, StartAccount::default()))] {
            let accounts = [(signer.address(), StartAccount::rich())];
            let world = World::new(old_chain(fork), accounts.into_iter().chain(there));
            let block = world.block(vec![send(0), send(1)]);
            world.check(&block).unwrap_or_else(|error| panic!("{fork}: {error}"));
        }
    }
}

/// A witness does not have the ancestors, but what can be said without them is.
#[test]
fn ommers_are_checked_without_their_ancestors_too() {
    let (chain, blocks) = ancestors();
    let world = World::new(chain.clone(), [(Address::ZERO, StartAccount::rich())]);
    let witness = world.check(&world.block(Vec::new())).unwrap().witness;
    let check = |ommers: Vec<Header>, expected: &str| {
        let Block { mut header, mut body } = world.block(Vec::new()).into_block();
        header.ommers_hash = proofs::calculate_ommers_root(&ommers);
        body.ommers = ommers;
        let block = SealedBlock::new(Block { header, body });
        let error = verify(&world.chain, &block, None, &witness).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    let ommer = child(&chain, &blocks[8], 1, Vec::new()).into_block().header;
    let apart = "ommer 0 is no child of one of the six blocks before the parent";
    check(vec![ommer.clone()], apart);
    check(vec![ommer; 3], "3 ommers, at most 2 allowed");
}
