//! Chains whose blocks have witnesses of given sizes: contracts are deployed until there are
//! enough, and each block reads the codes of as many of them as its size takes. The blocks are
//! siblings, so that any number of them can be measured in any order.

mod codes;
mod readme;

use std::path::{Path, PathBuf};

use alloy_primitives::{Address, Bytes, TxKind, U256, hex};
use anyhow::ensure;
use serde::Serialize;
use serde_json::json;

use self::codes::{CODE_BYTES, Contracts};
use crate::chain::format::{self, Chain, Part};
use crate::chain::generate::{Blueprint, Driver};
use crate::chain::workload::{BlockPlan, PlannedKind, PlannedTransaction};
use crate::chain::world::{self, Alloc, FUNDER, Fork, pieces, sender, short_hash};
use crate::clients::target::Target;

/// It changes when the same sizes begin to give other blocks.
const GENERATION: u32 = 1;

/// The limit of each block: the state's use less than half of it, so that the base fee falls.
const GAS_LIMIT: u64 = 5_000_000_000;
/// Gas of one deployment, and what there is for it.
const DEPLOY_GAS: u64 = 5_200_000;
/// The same of one read.
const READ_GAS: u64 = 3_300;
const DEPLOYMENTS_A_TRANSACTION: u64 = 100;
const DEPLOYMENTS_A_BLOCK: u64 = 400;
/// Osaka allows a transaction 2^24 gas (EIP-7825).
const READS_A_TRANSACTION: u64 = 5_000;

const MEGABYTE: u64 = 1_000_000;
/// Trie nodes in the witness for each code: 170 bytes when all accounts are read, 600 when few are.
const NODE_BYTES: u64 = 350;

/// The content of the codes of a chain of witness sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Codes {
    /// Bytes that cannot be made smaller.
    Random,
    /// Code as compilers make it: zstd packs it into less than half.
    Realistic,
    /// One word, over and over.
    Compressible,
}

/// How the codes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Read {
    /// `EXTCODESIZE`.
    Size,
    /// `EXTCODECOPY` of one word.
    Copy,
    /// `CALL`, which stops at once.
    Call,
}

/// Sizes of the witnesses, and what is in them; the chain follows from them alone.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WitnessSizes {
    /// The seed of all random choices.
    pub seed: u64,
    /// The rules of the blocks.
    pub fork: Fork,
    /// In megabytes: a block for each.
    pub sizes: Vec<u64>,
    /// The content of the codes.
    pub codes: Codes,
    /// How they are read.
    pub read: Read,
}

/// The chain of these sizes below `folder`, made by `builder` if it is not there yet: in
/// `genesis.json` and `state.jsonl.zst` what is built on, in `w17.jsonl.zst`.. a block each.
///
/// # Errors
/// Whatever keeps the builder from making the blocks as they are planned.
pub(crate) fn generate(
    world: &WitnessSizes,
    folder: &Path,
    builder: &Target,
) -> anyhow::Result<Chain> {
    let own = folder.join("chains").join(world.name());
    let chain = Chain { state: own.clone(), folder: own, longest_branch: 0 };
    let readme = chain.folder.join("README.md");
    if readme.is_file() {
        return Ok(chain);
    }
    ensure!(!world.sizes.is_empty() && !world.sizes.contains(&0), "sizes are 1 MB and more");
    std::fs::create_dir_all(&chain.folder)?;
    let contracts = Contracts::new(world.seed, world.codes, world.read);
    let state = world.state(&contracts);
    let nonce = state.iter().map(|block| block.transactions.len()).sum();
    format::write_genesis(&chain.genesis(), &world.genesis(&contracts))?;
    let plan = Blueprint {
        gas_limit: GAS_LIMIT,
        fork: world.fork,
        prague_blocks: world.prague_blocks(),
        seed: world.seed,
        command: readme::command(world),
    };
    let mut driver = Driver::start(plan, &chain, Part::State, folder, builder)?;
    driver.part(&chain, Part::State, state.into_iter())?;
    world.check(&contracts, &mut driver)?;
    for size in &world.sizes {
        driver.aside(chain.witness_size(*size), &world.block(*size, nonce, &contracts))?;
    }
    driver.end(&chain)?;
    std::fs::write(readme, readme::of(world))?;
    Ok(chain)
}

impl Chain {
    /// The file of the block with a witness of so many megabytes.
    fn witness_size(&self, megabytes: u64) -> PathBuf {
        self.folder.join(format!("w{megabytes}.jsonl.zst"))
    }
}

impl WitnessSizes {
    fn name(&self) -> String {
        format!("witness-size-{}", short_hash(&(GENERATION, self)))
    }

    /// The number of codes.
    fn count(&self) -> u64 {
        self.sizes.iter().copied().map(reads).max().unwrap_or_default()
    }

    fn genesis(&self, contracts: &Contracts) -> serde_json::Value {
        let wealth = json!({"balance": U256::from(10).pow(U256::from(30))});
        let mut alloc =
            Alloc::from_iter([(Address::from_private_key(&sender(FUNDER)).to_string(), wealth)]);
        let Contracts { factory, factory_code, reader, reader_code, .. } = contracts;
        for (address, code) in [(factory, factory_code), (reader, reader_code)] {
            let account = json!({"balance": "0x0", "nonce": "0x1", "code": code});
            alloc.insert(address.to_string(), account);
        }
        world::genesis(alloc, GAS_LIMIT, self.prague_blocks(), self.fork)
    }

    /// The number of blocks that deploy codes: by the rules of Prague, which bounds no
    /// transaction's gas.
    fn prague_blocks(&self) -> u64 {
        self.count().div_ceil(DEPLOYMENTS_A_BLOCK)
    }

    /// The blocks that deploy the codes, and one without transactions.
    fn state(&self, contracts: &Contracts) -> Vec<BlockPlan> {
        let mut nonce = 0;
        let mut blocks: Vec<BlockPlan> = pieces(0, self.count(), DEPLOYMENTS_A_BLOCK)
            .map(|[from, to]| {
                let transactions = pieces(from, to, DEPLOYMENTS_A_TRANSACTION).map(|[from, to]| {
                    nonce += 1;
                    let input = codes::range(from, to);
                    call(contracts.factory, input, (to - from) * DEPLOY_GAS, nonce - 1)
                });
                BlockPlan::plain(transactions.collect())
            })
            .collect();
        blocks.push(BlockPlan::plain(Vec::new()));
        blocks
    }

    /// The block with a witness of so many megabytes.
    fn block(&self, megabytes: u64, nonce: usize, contracts: &Contracts) -> BlockPlan {
        let pieces = pieces(0, reads(megabytes), READS_A_TRANSACTION).enumerate();
        let transactions = pieces.map(|(index, [from, to])| {
            let input = codes::range(from, to);
            call(contracts.reader, input, (to - from) * READ_GAS, (nonce + index) as u64)
        });
        BlockPlan::plain(transactions.collect())
    }

    /// Checks that the last code is as planned.
    fn check(&self, contracts: &Contracts, driver: &mut Driver) -> anyhow::Result<()> {
        let address = contracts.address(self.count() - 1);
        let code: String = driver.client.public.read("eth_getCode", (address, "latest"))?;
        let is_there = code == hex::encode_prefixed(contracts.code(address));
        ensure!(is_there, "{address} has another code than planned, of {} bytes", code.len() / 2);
        Ok(())
    }
}

/// The number of codes that a block reads whose witness has so many megabytes.
fn reads(megabytes: u64) -> u64 {
    megabytes * MEGABYTE / (CODE_BYTES + NODE_BYTES)
}

fn call(to: Address, input: Bytes, gas: u64, nonce: u64) -> PlannedTransaction {
    PlannedTransaction {
        sender: FUNDER,
        nonce,
        to: TxKind::Call(to),
        value: 0,
        input,
        gas_limit: gas + 100_000,
        kind: PlannedKind::Eip1559,
    }
}
