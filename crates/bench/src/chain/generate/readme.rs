//! The README.md beside a chain: what is in it, what it was made from, and how it is replayed.

use std::fmt::Write as _;

use crate::chain::format::{About, Chain, Part};
use crate::chain::world::{World, option_name};

/// The command that makes a chain of these sizes.
pub(super) fn command(world: &World) -> String {
    let [low, high] = world.block_gas.map(|gas| gas / 1_000_000);
    let World { name, warm_blocks, kind, fork, reorgs, branches, .. } = world;
    let (kind, fork) = (option_name(kind), option_name(fork));
    let mut command = format!(
        "deponent bench generate --kind {kind} --fork {fork} --preset {name} \
         --warm-blocks {warm_blocks} --block-mgas {low} {high}"
    );
    if World::preset(name).is_some_and(|preset| preset.reorgs != *reorgs) {
        command += &format!(" --reorgs {reorgs}");
    }
    if !branches.is_empty() {
        let lengths: Vec<String> = branches.iter().map(u64::to_string).collect();
        command += &format!(" --branches {}", lengths.join(","));
    }
    command
}

/// The text, which follows from the chain alone.
pub(super) fn of(world: &World, chain: &Chain) -> anyhow::Result<String> {
    let mut parts = String::new();
    for part in Part::ALL {
        let (path, blocks) = (chain.part(part), chain.count(part)?);
        let above = if part == Part::State { "../" } else { "" };
        let file = path.file_name().unwrap_or_default().display();
        let numbers = About::of(&path)?
            .map_or_else(String::new, |about| format!("{} to {}", about.from, about.to));
        writeln!(parts, "| {above}{file} | {blocks} | {numbers} | {} |", part.about())?;
    }
    let World { name, seed, accounts, slots, contracts, senders, .. } = world;
    let command = command(world);
    let [state, empty, warm] = [Part::State, Part::Empty, Part::Warm].map(|part| {
        let path = chain.part(part);
        path.file_name().unwrap_or_default().display().to_string()
    });
    Ok(format!(
        "# A chain of `deponent bench`\n\
         \n\
         Made by `{command}`, from the seed {seed}; the same command gives the same bytes. All \
         sizes are in `world.json`.\n\
         \n\
         The state begins with {accounts} accounts and {slots} storage slots of {contracts} \
         contracts; {senders} accounts send. The sizes are called {name}.\n\
         \n\
         | file | blocks | numbers | what |\n\
         |---|---:|---|---|\n\
         | ../genesis.json | | 0 | the genesis, in geth's format |\n\
         {parts}\
         \n\
         Each file goes on where the one before ends. Its first line says what it is, each further \
         one is a call of `engine_newPayload`; `zstdcat` shows it.\n\
         \n\
         ```sh\n\
         deponent bench replay {warm} --genesis ../genesis.json --setup ../{state},{empty}\n\
         deponent bench compare {warm} --genesis ../genesis.json --setup ../{state},{empty} \
         --clients geth,deponent\n\
         deponent import --chain ../genesis.json --datadir DIR ../{state} {empty} {warm}\n\
         ```\n"
    ))
}
