//! The rules and the first state of the chain, for both kinds of node.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alloy_primitives::Address;
use anyhow::{Context, ensure};
use deponent_node::demo::World;
use serde_json::{Value, json};

use super::traffic;

/// Validators, whose keys are Prysm's for tests.
pub(crate) const VALIDATORS: u64 = 64;
/// Slots of an epoch: as on mainnet, since the states of Prysm have the length of two epochs in
/// their type, and cannot be written with another.
pub(crate) const SLOTS: u64 = 32;
/// The first epoch of Fulu, which is Osaka for execution clients. Electra begins at the genesis.
pub(crate) const FULU_EPOCH: u64 = 1;
/// The first epoch with more blobs (EIP-7892).
pub(crate) const BLOBS_EPOCH: u64 = 2;
/// Blobs of a block from then on: the target, and the most.
const BLOBS: [u64; 2] = [8, 12];
/// Blocks by which votes on deposits are behind.
pub(crate) const FOLLOW_DISTANCE: u64 = 8;
pub(crate) const CHAIN_ID: u64 = 1337;
/// The time from the files to the genesis, in which the programs start.
const DELAY: Duration = Duration::from_secs(45);
/// The deposit contract.
pub(crate) const DEPOSITS: Address = Address::repeat_byte(0x42);

/// A chain, whose files are in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    folder: PathBuf,
    pub(crate) slot_seconds: u64,
    /// In seconds since 1970.
    pub(crate) genesis_time: u64,
}

impl Chain {
    /// Writes the files of a chain that begins soon.
    pub(crate) fn make(folder: &Path, prysmctl: &Path, slot_seconds: u64) -> anyhow::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let genesis_time = (now + DELAY).as_secs();
        let chain = Self { folder: folder.into(), slot_seconds, genesis_time };
        std::fs::write(chain.config(), chain.config_text())?;
        std::fs::write(chain.bootstrap(), "[]\n")?;
        let deposits = folder.join("deposits.json");
        chain.generate(prysmctl, &["--geth-genesis-json-out", text(&deposits)?])?;
        let deposits: Value = serde_json::from_slice(&std::fs::read(&deposits)?)?;
        let genesis = chain.execution_genesis_text(&deposits)?;
        std::fs::write(chain.execution_genesis(), genesis)?;
        let genesis = chain.execution_genesis();
        chain.generate(prysmctl, &["--geth-genesis-json-in", text(&genesis)?])?;
        Ok(chain)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("config.yaml")
    }

    /// The beacon nodes that all know: none.
    pub(crate) fn bootstrap(&self) -> PathBuf {
        self.folder.join("bootstrap.yaml")
    }

    pub(crate) fn beacon_genesis(&self) -> PathBuf {
        self.folder.join("genesis.ssz")
    }

    pub(crate) fn execution_genesis(&self) -> PathBuf {
        self.folder.join("genesis.json")
    }

    /// When an epoch begins, in seconds since 1970.
    pub(crate) const fn time_of(&self, epoch: u64) -> u64 {
        self.genesis_time + epoch * SLOTS * self.slot_seconds
    }

    pub(crate) fn slots(&self, count: u64) -> Duration {
        Duration::from_secs(count * self.slot_seconds)
    }

    /// The genesis state of the beacon chain.
    fn generate(&self, prysmctl: &Path, more: &[&str]) -> anyhow::Result<()> {
        let (time, validators) = (self.genesis_time.to_string(), VALIDATORS.to_string());
        let (config, state) = (self.config(), self.beacon_genesis());
        let mut command = Command::new(prysmctl);
        command.args(["testnet", "generate-genesis", "--fork", "electra"]);
        command.args(["--num-validators", &validators, "--genesis-time", &time]);
        command.args(["--chain-config-file", text(&config)?, "--output-ssz", text(&state)?]);
        let output = command.args(more).output();
        let output = output.with_context(|| format!("{} does not start", prysmctl.display()))?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "prysmctl ends with {}: {words}", output.status);
        Ok(())
    }

    /// The configuration of the beacon chain: mainnet's preset, with shorter slots.
    fn config_text(&self) -> String {
        let Self { slot_seconds, genesis_time, .. } = self;
        let mut text = format!(
            "PRESET_BASE: 'mainnet'\n\
             CONFIG_NAME: 'deponent-devnet'\n\
             MIN_GENESIS_ACTIVE_VALIDATOR_COUNT: {VALIDATORS}\n\
             MIN_GENESIS_TIME: {genesis_time}\n\
             GENESIS_DELAY: 0\n\
             SECONDS_PER_SLOT: {slot_seconds}\n\
             SLOT_DURATION_MS: {}\n\
             SLOTS_PER_EPOCH: {SLOTS}\n\
             SECONDS_PER_ETH1_BLOCK: {slot_seconds}\n\
             ETH1_FOLLOW_DISTANCE: {FOLLOW_DISTANCE}\n\
             TERMINAL_TOTAL_DIFFICULTY: 0\n\
             DEPOSIT_CHAIN_ID: {CHAIN_ID}\n\
             DEPOSIT_NETWORK_ID: {CHAIN_ID}\n\
             DEPOSIT_CONTRACT_ADDRESS: {DEPOSITS}\n\
             GENESIS_FORK_VERSION: 0x10000042\n",
            slot_seconds * 1000
        );
        let forks = ["ALTAIR", "BELLATRIX", "CAPELLA", "DENEB", "ELECTRA", "FULU"];
        for (number, fork) in (0x11..).zip(forks) {
            let epoch = if fork == "FULU" { FULU_EPOCH } else { 0 };
            text +=
                &format!("{fork}_FORK_VERSION: {number:#x}000042\n{fork}_FORK_EPOCH: {epoch}\n");
        }
        let [_, most] = BLOBS;
        text +=
            &format!("BLOB_SCHEDULE:\n  - EPOCH: {BLOBS_EPOCH}\n    MAX_BLOBS_PER_BLOCK: {most}\n");
        text
    }

    /// The genesis of execution clients: the demo's, with the forks of this chain, the accounts
    /// that send, and the deposit contract as prysmctl has it.
    fn execution_genesis_text(&self, deposits: &Value) -> anyhow::Result<String> {
        let mut genesis = World::new(0)?.genesis;
        traffic::fund(&mut genesis)?;
        let mut genesis = serde_json::to_value(&genesis)?;
        genesis["timestamp"] = json!(format!("{:#x}", self.genesis_time));
        let config = &mut genesis["config"];
        config["chainId"] = json!(CHAIN_ID);
        config["osakaTime"] = json!(self.time_of(FULU_EPOCH));
        config["bpo1Time"] = json!(self.time_of(BLOBS_EPOCH));
        config["depositContractAddress"] = json!(DEPOSITS);
        let [target, most] = BLOBS;
        // As EIP-7892 has it: twice the target's rate of change is kept.
        let fraction = 5_007_716 * target / 6;
        config["blobSchedule"]["bpo1"] =
            json!({ "target": target, "max": most, "baseFeeUpdateFraction": fraction });
        let alloc = deposits["alloc"].as_object().context("no alloc in prysmctl's genesis")?;
        let is_it = |key: &str| key.parse::<Address>().is_ok_and(|found| found == DEPOSITS);
        let (_, contract) =
            alloc.iter().find(|(key, _)| is_it(key)).context("no deposit contract there")?;
        genesis["alloc"][DEPOSITS.to_string()] = contract.clone();
        Ok(serde_json::to_string_pretty(&genesis)?)
    }
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
