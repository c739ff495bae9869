//! From a genesis's configuration to the rules of a chain.

use EthereumHardfork::*;
use alloy_consensus::Header;
use alloy_eips::eip6110;
use alloy_evm::eth::spec::EthExecutorSpec;
use alloy_genesis::ChainConfig;
use alloy_hardforks::{EthereumHardfork, EthereumHardforks, ForkCondition};
use alloy_primitives::{Address, U256};
use deponent_execution::*;
use testing::world;

/// The configuration of a chain on which these forks, and all before Shanghai, are active from
/// these times on.
fn config(times: &str) -> ChainConfig {
    let mut config: serde_json::Value = serde_json::to_value(world::config("paris")).unwrap();
    let times: serde_json::Value = serde_json::from_str(times).unwrap();
    config.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
    serde_json::from_value(config).unwrap()
}

fn spec(times: &str) -> ChainSpec {
    ChainSpec::from_config(&config(times)).unwrap()
}

fn refused(times: &str, expected: ChainSpecError) {
    assert_eq!(ChainSpec::from_config(&config(times)), Err(expected));
}

const ALL: &str = r#"{"shanghaiTime": 10, "cancunTime": 20, "pragueTime": 30, "osakaTime": 40,
    "bpo1Time": 50, "bpo2Time": 60, "amsterdamTime": 70, "blobSchedule": {
        "bpo1": {"target": 10, "max": 15, "baseFeeUpdateFraction": 8346193},
        "bpo2": {"target": 14, "max": 21, "baseFeeUpdateFraction": 11684671}}}"#;

/// Target and maximum of blobs in a block.
fn blobs(chain: &ChainSpec, timestamp: u64) -> Option<(u64, u64)> {
    chain.blob_params(timestamp).map(|params| (params.target_blob_count, params.max_blob_count))
}

#[test]
fn each_fork_is_active_from_its_time_on() {
    let chain = spec(ALL);
    let forks = [Paris, Shanghai, Cancun, Prague, Osaka, Bpo1, Bpo2, Amsterdam];
    for (at, fork) in (0..).step_by(10).zip(forks) {
        assert_eq!(chain.fork_at(at), fork);
        assert_eq!(chain.fork_at(at + 9), fork);
    }
    assert_eq!(chain.fork_at(u64::MAX), Amsterdam);
    assert_eq!(chain.chain_id(), world::CHAIN_ID);
}

#[test]
fn a_block_with_proof_of_work_is_of_the_fork_of_its_number() {
    let mainnet = ChainSpec::from_chain_id(1).unwrap();
    let fork = |number, difficulty| {
        let difficulty = U256::from(difficulty);
        mainnet.fork_of(&Header { number, difficulty, timestamp: 0, ..Header::default() })
    };
    for (number, expected) in [
        (46_147, Frontier),
        (1_150_000, Homestead),
        (4_370_000, Byzantium),
        (12_964_999, Berlin),
        (12_965_000, London),
        (15_537_393, GrayGlacier),
    ] {
        assert_eq!(fork(number, 1), expected);
    }
    assert_eq!(fork(15_537_394, 0), Paris);
}

#[test]
fn forks_at_one_time_are_all_active() {
    let chain = spec(r#"{"shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0}"#);
    assert_eq!(chain.fork_at(0), Prague);
    assert!(chain.is_shanghai_active_at_timestamp(0));
    assert!(!chain.is_osaka_active_at_timestamp(u64::MAX));
    assert_eq!(blobs(&chain, 0), Some((6, 9)));
}

#[test]
fn a_chain_without_times_stays_at_paris() {
    let chain = spec("{}");
    assert_eq!(chain.fork_at(u64::MAX), Paris);
    assert_eq!(chain.blob_params(u64::MAX), None);
}

#[test]
fn forks_out_of_order_are_refused() {
    let expected = ChainSpecError::ForkOrder {
        earlier: Shanghai,
        earlier_at: 11,
        later: Cancun,
        later_at: 10,
    };
    refused(r#"{"shanghaiTime": 11, "cancunTime": 10}"#, expected);
    let expected = ChainSpecError::ForkOrder {
        earlier: Osaka,
        earlier_at: 50,
        later: Amsterdam,
        later_at: 49,
    };
    let times = r#"{"shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0, "osakaTime": 50,
        "amsterdamTime": 49}"#;
    refused(times, expected);
}

#[test]
fn a_fork_without_the_one_before_it_is_refused() {
    let missing = |earlier, later| ChainSpecError::ForkMissing { earlier, later };
    refused(r#"{"cancunTime": 0}"#, missing(Shanghai, Cancun));
    refused(r#"{"shanghaiTime": 0, "pragueTime": 0}"#, missing(Cancun, Prague));
    let times = r#"{"shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0, "amsterdamTime": 0}"#;
    refused(times, missing(Osaka, Amsterdam));
}

#[test]
fn a_fork_after_a_merge_that_never_comes_is_refused() {
    let times = r#"{"shanghaiTime": 9, "cancunTime": 10}"#;
    let config = ChainConfig { terminal_total_difficulty: None, ..config(times) };
    let expected = ChainSpecError::MergeMissing(Shanghai);
    assert_eq!(ChainSpec::from_config(&config), Err(expected));
}

#[test]
fn blob_parameters_alone_do_not_change_before_osaka() {
    let before = r#""shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0"#;
    let missing = ChainSpecError::ForkMissing { earlier: Osaka, later: Bpo1 };
    refused(&format!(r#"{{{before}, "bpo1Time": 5}}"#), missing);
    // Mainnet's numbers are mainnet's; geth demands an entry, too.
    for (name, fork) in [("bpo1", Bpo1), ("bpo2", Bpo2), ("bpo5", Bpo5)] {
        let times = format!(r#"{{{before}, "osakaTime": 5, "{name}Time": 6}}"#);
        refused(&times, ChainSpecError::MissingBlobSchedule(fork));
    }
    let order =
        ChainSpecError::ForkOrder { earlier: Osaka, earlier_at: 10, later: Bpo2, later_at: 9 };
    refused(&format!(r#"{{{before}, "osakaTime": 10, "bpo2Time": 9}}"#), order);
}

#[test]
fn a_fork_without_rules_is_refused() {
    let config = ChainConfig { bogota_time: Some(1 << 60), ..config(ALL) };
    let expected = ChainSpecError::UnsupportedFork(Bogota);
    assert_eq!(ChainSpec::from_config(&config), Err(expected));
}

#[test]
fn blob_parameters_are_those_of_mainnet_where_the_schedule_is_silent() {
    let chain = spec(ALL);
    let expected = [
        (0, None),
        (19, None),
        (20, Some((3, 6))),
        (30, Some((6, 9))),
        (40, Some((6, 9))),
        (50, Some((10, 15))),
        (60, Some((14, 21))),
        (70, Some((14, 21))),
    ];
    for (timestamp, expected) in expected {
        assert_eq!(blobs(&chain, timestamp), expected, "at {timestamp}");
    }
}

#[test]
fn blob_parameters_of_the_schedule_come_before_those_of_mainnet() {
    let entry = r#"{"target": 4, "max": 12, "baseFeeUpdateFraction": 5000000}"#;
    let times = format!(
        r#"{{"shanghaiTime": 0, "cancunTime": 0, "pragueTime": 30, "osakaTime": 40, "bpo1Time": 50,
        "blobSchedule": {{"prague": {entry}, "bpo1": {entry}}}}}"#
    );
    let chain = spec(&times);
    assert_eq!([0, 30, 40, 50].map(|at| blobs(&chain, at).unwrap().1), [6, 12, 9, 12]);
    let params = [0, 30, 40, 50].map(|at| chain.blob_params(at).unwrap());
    assert_eq!(params.map(|params| params.max_blobs_per_tx), [6, 12, 6, 6]);
    assert_eq!(params.map(|params| params.update_fraction), [3338477, 5000000, 5007716, 5000000]);
    // The reserve price (EIP-7918) is that of Osaka.
    assert_eq!(params.map(|params| params.blob_base_cost), [0, 0, 1 << 13, 1 << 13]);
}

#[test]
fn blob_parameters_that_make_no_sense_are_refused() {
    let bad = [(4, 3, 1), (0, 0, 1), (1, 2, 0), (1, 65_536, 1)];
    for (target, max, fraction) in bad {
        let times = format!(
            r#"{{"shanghaiTime": 0, "cancunTime": 0, "blobSchedule": {{"cancun":
            {{"target": {target}, "max": {max}, "baseFeeUpdateFraction": {fraction}}}}}}}"#
        );
        let fork = Cancun;
        refused(&times, ChainSpecError::BlobSchedule { fork, target, max, fraction });
    }
}

#[test]
fn mainnet_has_the_forks_and_blob_parameters_that_it_activated() {
    let chain = ChainSpec::from_chain_id(1).unwrap();
    let activations = [
        (1_681_338_455, Paris, Shanghai, None),
        (1_710_338_135, Shanghai, Cancun, Some((3, 6))),
        (1_746_612_311, Cancun, Prague, Some((6, 9))),
        (1_764_798_551, Prague, Osaka, Some((6, 9))),
        (1_765_290_071, Osaka, Bpo1, Some((10, 15))),
        (1_767_747_671, Bpo1, Bpo2, Some((14, 21))),
    ];
    for (time, before, fork, expected) in activations {
        assert_eq!((chain.fork_at(time - 1), chain.fork_at(time)), (before, fork));
        assert_eq!(blobs(&chain, time), expected, "{fork}");
    }
    let fractions = activations
        .map(|(time, ..)| chain.blob_params(time))
        .map(|params| params.map(|params| (params.update_fraction, params.max_blobs_per_tx)));
    let expected = [
        None,
        Some((3_338_477, 6)),
        Some((5_007_716, 9)),
        Some((5_007_716, 6)),
        Some((8_346_193, 6)),
        Some((11_684_671, 6)),
    ];
    assert_eq!(fractions, expected);
    assert!(chain.is_paris_active_at_block(15_537_394));
    assert!(!chain.is_paris_active_at_block(15_537_393));
}

#[test]
fn public_test_networks_are_built_in_and_others_are_not() {
    for chain_id in [11155111, 17000, 560048] {
        let chain = ChainSpec::from_chain_id(chain_id).unwrap();
        assert_eq!(chain.chain_id(), chain_id);
        assert!(chain.is_osaka_active_at_timestamp(1_767_747_671), "{chain_id}");
    }
    assert_eq!(ChainSpec::from_chain_id(2), Err(ChainSpecError::UnknownChain(2)));
}

#[test]
fn deposits_are_made_at_the_contract_of_the_chain() {
    let deposit = |chain: &ChainSpec| chain.deposit_contract_address().unwrap();
    let mainnet = ChainSpec::from_chain_id(1).unwrap();
    assert_eq!(deposit(&mainnet), eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS);
    assert_eq!(deposit(&spec(ALL)), eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS);
    let other = Address::repeat_byte(7);
    let config = ChainConfig { deposit_contract_address: Some(other), ..config(ALL) };
    assert_eq!(deposit(&ChainSpec::from_config(&config).unwrap()), other);
}

#[test]
fn a_chain_is_past_the_merge_when_its_total_difficulty_says_so() {
    let paris = |difficulty: u64, passed, netsplit| {
        let config = ChainConfig {
            terminal_total_difficulty: Some(U256::from(difficulty)),
            terminal_total_difficulty_passed: passed,
            merge_netsplit_block: netsplit,
            ..config("{}")
        };
        ChainSpec::from_config(&config).unwrap()
    };
    assert!(paris(0, false, None).is_paris_active_at_block(0));
    assert!(paris(7, true, None).is_paris_active_at_block(0));
    assert!(!paris(7, false, None).is_paris_active_at_block(1 << 60));
    assert!(!paris(7, false, Some(5)).is_paris_active_at_block(4));
    assert!(paris(7, false, Some(5)).is_paris_active_at_block(5));
}

#[test]
fn forks_by_number_are_in_order_too() {
    let numbers = r#"{"byzantiumBlock": 9, "constantinopleBlock": null, "petersburgBlock": null,
        "istanbulBlock": 9}"#;
    refused(numbers, ChainSpecError::ForkMissing { earlier: Petersburg, later: Istanbul });
    let numbers = r#"{"byzantiumBlock": 9, "constantinopleBlock": 9, "petersburgBlock": 9,
        "istanbulBlock": 8}"#;
    let (earlier, later) = (Petersburg, Istanbul);
    let order = ChainSpecError::ForkOrder { earlier, earlier_at: 9, later, later_at: 8 };
    refused(numbers, order);
    let apart = ChainSpecError::ForksApart("eip155Block", "eip158Block");
    refused(r#"{"eip155Block": 0, "eip158Block": 7}"#, apart);
    // Constantinople may last a while.
    let apart = spec(
        r#"{"constantinopleBlock": 0, "petersburgBlock": 7, "istanbulBlock": 7,
        "berlinBlock": 7, "londonBlock": 7}"#,
    );
    assert!(apart.is_constantinople_active_at_block(6) && !apart.is_petersburg_active_at_block(6));
    // The forks that only put the difficulty bomb off may be left out, and the DAO's.
    spec(r#"{"muirGlacierBlock": 0, "arrowGlacierBlock": 7, "grayGlacierBlock": null}"#);
}

#[test]
fn the_dao_fork_is_one_of_mainnet() {
    let dao = |id| ChainSpec::from_chain_id(id).unwrap().ethereum_fork_activation(Dao);
    assert_eq!(dao(1), ForkCondition::Block(1_920_000));
    assert_eq!(dao(11155111), ForkCondition::Never);
    assert_eq!(spec(r#"{"daoForkBlock": 7}"#).ethereum_fork_activation(Dao), ForkCondition::Never);
    let supported = spec(r#"{"daoForkBlock": 7, "daoForkSupport": true}"#);
    assert_eq!(supported.ethereum_fork_activation(Dao), ForkCondition::Block(7));
}
