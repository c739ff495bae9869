//! The README.md beside a chain of witness sizes.

use super::{WitnessSizes, reads};
use crate::chain::world::{ChainKind, option_name};

/// The command that makes such a chain.
pub(super) fn command(world: &WitnessSizes) -> String {
    format!(
        "deponent bench generate --kind {} --fork {} --sizes {} --codes {} --read {}",
        option_name(&ChainKind::WitnessSize),
        option_name(&world.fork),
        sizes(world),
        option_name(&world.codes),
        option_name(&world.read)
    )
}

fn sizes(world: &WitnessSizes) -> String {
    world.sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// The text, which follows from the chain alone.
pub(super) fn of(world: &WitnessSizes) -> String {
    let (command, sizes, seed) = (command(world), sizes(world), world.seed);
    let rows: String = world
        .sizes
        .iter()
        .map(|size| {
            format!("| w{size}.jsonl.zst | 1 | reads {} codes: {size} MB |\n", reads(*size))
        })
        .collect();
    let first = world.sizes[0];
    format!(
        "# A chain of witness sizes, of `deponent bench`\n\
         \n\
         Made by `{command}`, from the seed {seed}; the same command gives the same bytes.\n\
         \n\
         | file | blocks | what |\n\
         |---|---:|---|\n\
         | genesis.json | | the genesis, in geth's format |\n\
         | state.jsonl.zst | {} | deploys {} codes of 24,576 bytes, and an empty block |\n\
         {rows}\
         \n\
         The blocks of the sizes are siblings on the last block of `state.jsonl.zst`. The first \
         line of each file says what it is, each further one is a call of `engine_newPayload`; \
         `zstdcat` shows it.\n\
         \n\
         ```sh\n\
         deponent bench witness --chain . --sizes {sizes} --depth-size {first} \\\n\
         \x20   --compare geth,deponent\n\
         deponent bench transports --chain . --sizes {sizes}\n\
         deponent bench replay w{first}.jsonl.zst --genesis genesis.json --setup state.jsonl.zst\n\
         ```\n",
        world.prague_blocks() + 1,
        world.count(),
    )
}
