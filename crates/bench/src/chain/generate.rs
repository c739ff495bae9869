//! Makes a chain: plans its transactions, signs them, and lets a client build the blocks.

mod readme;

use std::path::{Path, PathBuf};
use std::time::Instant;

use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, B256, keccak256};
use alloy_rpc_types_engine::PayloadAttributes;
use anyhow::ensure;
use indicatif::ProgressIterator as _;

use crate::chain::format::{self, About, Chain, Part, Payload, Writer};
use crate::chain::sign::sign_all;
use crate::chain::workload::{self, BlockPlan, Workload};
use crate::chain::world::{CHAIN_ID, Fork, World};
use crate::clients::client::Client;
use crate::clients::prepare::{self, Ancestry};
use crate::clients::target::Target;
use crate::progress;

/// Proposers take turns.
const FEE_RECIPIENTS: u64 = 40;

/// The chain of these sizes below `folder`, made by `builder` as far as it is not there yet.
///
/// The builder is a client with `testing_buildBlockV1`; any gives the same chain. geth fails at
/// blocks with blobs: it wants the blobs.
pub(crate) fn generate(world: &World, folder: &Path, builder: &Target) -> anyhow::Result<Chain> {
    let chain = Chain::of(world, &folder.join("chains"));
    let parts = Part::ALL.into_iter().filter(|part| !chain.has(*part));
    let Some(first) = parts.into_iter().next() else { return Ok(chain) };
    std::fs::create_dir_all(&chain.folder)?;
    let state = workload::state_blocks(world);
    if !chain.genesis().exists() {
        format::write_genesis(&chain.genesis(), &world.genesis(state.len() as u64))?;
    }
    std::fs::write(chain.folder.join("world.json"), serde_json::to_vec_pretty(world)?)?;
    let plan = Blueprint {
        gas_limit: world.gas_limit(),
        fork: world.fork,
        prague_blocks: state.len() as u64,
        seed: world.seed,
        command: readme::command(world),
    };
    let mut driver = Driver::start(plan, &chain, first, folder, builder)?;
    driver.all(world, &chain, first, state)?;
    driver.end(&chain)?;
    std::fs::write(chain.folder.join("README.md"), readme::of(world, &chain)?)?;
    Ok(chain)
}

/// The properties that all blocks of a chain share.
pub(crate) struct Blueprint {
    pub(crate) gas_limit: u64,
    pub(crate) fork: Fork,
    /// The number of blocks of Prague before it.
    pub(crate) prague_blocks: u64,
    pub(crate) seed: u64,
    /// Makes the chain again.
    pub(crate) command: String,
}

/// Builds and validates block after block.
pub(crate) struct Driver {
    plan: Blueprint,
    pub(crate) client: Client,
    /// The directory of the client.
    data: PathBuf,
    started: Instant,
    ancestry: Ancestry,
    head: B256,
    number: u64,
}

impl Driver {
    /// Starts `builder` below `folder`, with all blocks of the chain before `first`.
    pub(crate) fn start(
        plan: Blueprint,
        chain: &Chain,
        first: Part,
        folder: &Path,
        builder: &Target,
    ) -> anyhow::Result<Self> {
        let data = prepare::working_folder(folder, "building")?;
        if first != Part::State {
            prepare::place(builder, &chain.ground(), folder, &data)?;
        }
        let mut builder = builder.clone();
        if builder.table == "geth" {
            // It would move the limit to its own.
            builder.arguments.push(format!("--miner.gaslimit={}", plan.gas_limit));
        }
        let mut client = builder.start(&data, &chain.genesis(), false)?;
        let before = chain.before(first);
        prepare::feed(&mut client, &before, chain.longest_branch)?;
        let started = Instant::now();
        let ancestry = Ancestry::of(&before, chain.longest_branch)?;
        let (number, head) = client.public.head()?;
        Ok(Self { plan, client, data, started, ancestry, head, number })
    }

    /// Stops the client, and removes what it had.
    pub(crate) fn end(self, chain: &Chain) -> anyhow::Result<()> {
        self.client.stop()?;
        std::fs::remove_dir_all(&self.data)?;
        let seconds = self.started.elapsed().as_secs_f64();
        eprintln!("{} is made: {seconds:.0} s", chain.folder.display());
        Ok(())
    }

    /// Makes the parts from `first` on. The plans of those before are drawn again, so that the
    /// nonces and the keys touched last are known.
    fn all(
        &mut self,
        world: &World,
        chain: &Chain,
        first: Part,
        state: Vec<BlockPlan>,
    ) -> anyhow::Result<()> {
        let funded: usize = state.iter().map(|block| block.transactions.len()).sum();
        let mut workload = Workload::new(world, funded as u64);
        if first == Part::State {
            self.part(chain, Part::State, state.into_iter())?;
        }
        let empty = (0..world.empty_blocks).map(|_| BlockPlan::plain(Vec::new()));
        if first <= Part::Empty {
            self.part(chain, Part::Empty, empty)?;
        }
        for (part, blocks) in [
            (Part::Warm, world.warm_blocks),
            (Part::Reorgs, reorg_numbers(world)),
            (Part::Cold, world.cold_blocks),
        ] {
            if part < first {
                (0..blocks).for_each(|_| drop(workload.block()));
            } else if part == Part::Reorgs {
                self.reorgs(world, chain, &mut workload)?;
            } else {
                self.part(chain, part, (0..blocks).map(|_| workload.block()))?;
            }
        }
        Ok(())
    }

    /// A file that has blocks of so many numbers, from the next one on.
    fn begin(&self, path: PathBuf, numbers: u64) -> anyhow::Result<Writer> {
        let numbers = self.number + 1..=self.number + numbers;
        let Blueprint { seed, command, .. } = &self.plan;
        let about = About::new(CHAIN_ID, self.head, numbers, Some(*seed), command);
        let mut writer = Writer::create(path)?;
        writer.about(&about)?;
        Ok(writer)
    }

    /// A file with one block, which does not become the head.
    pub(crate) fn aside(&mut self, path: PathBuf, plan: &BlockPlan) -> anyhow::Result<()> {
        let mut writer = self.begin(path, 1)?;
        let payload = self.build(plan, 0)?;
        writer.push(&payload)?;
        self.client.new_payload_patiently(&payload)?;
        writer.end()
    }

    pub(crate) fn part(
        &mut self,
        chain: &Chain,
        part: Part,
        plans: impl Iterator<Item = BlockPlan>,
    ) -> anyhow::Result<()> {
        let blocks = plans.size_hint().0;
        let mut writer = self.begin(chain.part(part), blocks as u64)?;
        let bar = progress::bar(part.name(), blocks);
        for plan in plans.progress_with(bar) {
            let payload = self.build(&plan, 0)?;
            self.push(&mut writer, &payload)?;
        }
        writer.end()
    }

    /// Groups of blocks, each built twice on one parent: first the branch that stays, then the one
    /// that the next group leaves; and a last block, which leaves the last of these. Both have the
    /// same transactions, unless the world says how long branches are.
    fn reorgs(
        &mut self,
        world: &World,
        chain: &Chain,
        workload: &mut Workload,
    ) -> anyhow::Result<()> {
        let numbers = reorg_numbers(world);
        let mut writer = self.begin(chain.part(Part::Reorgs), numbers)?;
        let bar = progress::bar(Part::Reorgs.name(), 2 * numbers as usize - 1);
        for blocks in world.branch_lengths() {
            let draw =
                |from: &mut Workload| (0..blocks).map(|_| from.block()).collect::<Vec<BlockPlan>>();
            let own = (!world.branches.is_empty()).then(|| draw(&mut workload.branch()));
            let staying = draw(workload);
            let leaving = own.as_ref().unwrap_or(&staying);
            // geth builds on its head alone: both first blocks are built before either is there.
            let firsts = [self.build(&staying[0], 0)?, self.build(&leaving[0], 1)?];
            let (start, mut end) = (self.number, None);
            for (branch, first) in firsts.into_iter().enumerate() {
                self.number = start;
                self.push(&mut writer, &first)?;
                bar.inc(1);
                for plan in &[&staying, leaving][branch][1..] {
                    let payload = self.build(plan, branch as u64)?;
                    self.push(&mut writer, &payload)?;
                    bar.inc(1);
                }
                end.get_or_insert((self.head, self.number));
            }
            let (head, number) = end.expect("there are two branches");
            self.choose(head, number)?;
        }
        let last = self.build(&workload.block(), 0)?;
        self.push(&mut writer, &last)?;
        bar.inc(1);
        writer.end()
    }

    /// A payload on the head. `branch` goes into its random value, and so into its hash.
    fn build(&mut self, plan: &BlockPlan, branch: u64) -> anyhow::Result<Payload> {
        let number = self.number + 1;
        let withdrawals = plan.withdrawals.iter().enumerate().map(|(place, address)| Withdrawal {
            index: number * 16 + place as u64,
            validator_index: number % 1000 * 16 + place as u64,
            address: *address,
            amount: workload::withdrawal_gwei(number, place),
        });
        let proposer = keccak256(format!("proposer {}", number % FEE_RECIPIENTS));
        let is_amsterdam = self.plan.fork == Fork::Amsterdam && number > self.plan.prague_blocks;
        let attributes = PayloadAttributes {
            timestamp: World::time(number),
            prev_randao: keccak256(format!("randao {number} {branch}")),
            suggested_fee_recipient: Address::from_word(proposer),
            withdrawals: Some(withdrawals.collect()),
            parent_beacon_block_root: Some(keccak256(format!("beacon block {number}"))),
            slot_number: is_amsterdam.then_some(number),
            target_gas_limit: is_amsterdam.then_some(self.plan.gas_limit),
        };
        let transactions = sign_all(&plan.transactions);
        let call = self.client.build(self.head, &attributes, &transactions, None)?;
        let payload = Payload::sending(&call)?;
        let planned = transactions.len();
        ensure!(payload.transactions == planned, "{} of {planned}", payload.transactions);
        Ok(payload)
    }

    /// Writes a payload, which becomes the head.
    fn push(&mut self, writer: &mut Writer, payload: &Payload) -> anyhow::Result<()> {
        writer.push(payload)?;
        self.client.new_payload_patiently(payload)?;
        self.ancestry.push(payload);
        self.choose(payload.hash, payload.number)
    }

    fn choose(&mut self, head: B256, number: u64) -> anyhow::Result<()> {
        self.client.engine.forkchoice_updated(self.ancestry.heads(head))?;
        (self.head, self.number) = (head, number);
        Ok(())
    }
}

/// Numbers of the blocks of the part with reorganizations.
fn reorg_numbers(world: &World) -> u64 {
    world.branch_lengths().sum::<u64>() + 1
}
