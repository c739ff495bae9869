//! `blockchain_test`: blocks as RLP.

use crate::fixture::{Test, UNNAMED};
use crate::inputs;
use crate::judge::FlatState;
use crate::report::Witnesses;
use alloy_primitives::B256;
use alloy_rpc_types_engine::ForkchoiceState;
use engine::{Engine, Verdict};
use execution::{ChainSpec, SealedBlock, verify};
use std::collections::BTreeMap;
use witness::{Items, Witness};

pub(crate) fn run(test: &Test, chain: ChainSpec, witnesses: &mut Witnesses) -> Result<(), String> {
    let genesis = test.genesis()?;
    let mut judge = Judge::new(&genesis);
    let engine = Engine::new(chain, genesis).map_err(|error| error.to_string())?;
    for (index, fixture) in test.blocks.iter().enumerate() {
        let context = |error| format!("block {index}: {error}");
        let block = match execution::decode_block(&fixture.rlp) {
            Ok(block) => block,
            Err(_) if fixture.exception().is_some() => continue,
            Err(error) => return Err(context(error.to_string())),
        };
        let verdict =
            engine.new_block(block.clone()).map_err(|error| context(error.to_string()))?;
        match (&verdict, &fixture.exception()) {
            (Verdict::Valid, None) => {
                set_head(&engine, block.hash()).map_err(context)?;
                judge.block(&engine, &block, witnesses).map_err(context)?;
            }
            (Verdict::Valid, Some(exception)) => {
                return Err(context(format!("valid, expected {exception}")));
            }
            (Verdict::Invalid { reason, .. }, Some(exception)) => {
                check_reason(exception, reason).map_err(context)?;
            }
            (Verdict::Syncing(_), Some(exception)) if unknown_parent(exception) => {}
            (verdict, None) => {
                if let (Some(_), Verdict::Invalid { reason, .. }) =
                    (&fixture.execution_witness, verdict)
                {
                    *witnesses.moved.entry(rule(reason)).or_default() += 1;
                }
                return Err(context(format!("{verdict:?}")));
            }
            (verdict, Some(exception)) => {
                return Err(context(format!("{verdict:?}, expected {exception}")));
            }
        }
    }
    set_head(&engine, test.lastblockhash).map_err(|error| format!("last block: {error}"))
}

/// An error where a block that breaks another rule is refused only for what came of running it.
pub(crate) fn check_reason(exception: &str, reason: &str) -> Result<(), String> {
    // As `InvalidBlock` says it.
    const OUTCOMES: [&str; 2] = ["execution gives", "execution used"];
    // Words of the exceptions that say so, in capitals but for those of the legacy tests.
    const NAMED: [&str; 10] = [
        "ROOT",
        "HASH",
        "BLOOM",
        "GAS_USED",
        "REQUESTS",
        "ACCESS_LIST",
        "StateRoot",
        "LogBloom",
        "GasUsed",
        "Receipts",
    ];
    let is_outcome = OUTCOMES.iter().any(|words| reason.contains(words));
    let is_named = NAMED.iter().any(|word| exception.contains(word));
    let is_expected = is_named || exception == UNNAMED;
    match is_outcome && !is_expected {
        true => Err(format!("refused since {reason}, expected {exception}")),
        false => Ok(()),
    }
}

pub(crate) fn set_head(engine: &Engine, hash: B256) -> Result<(), String> {
    let state = ForkchoiceState { head_block_hash: hash, ..ForkchoiceState::default() };
    let outcome = engine.choose_head(state).map_err(|error| error.to_string())?;
    match outcome.verdict {
        Verdict::Valid if engine.heads().head == hash => Ok(()),
        verdict => Err(format!("head {hash}: {verdict:?}")),
    }
}

/// The second judge's state after each block, branches included.
pub(crate) struct Judge {
    states: BTreeMap<B256, FlatState>,
}

impl Judge {
    pub(crate) fn new(genesis: &engine::Genesis) -> Self {
        let hash = genesis.header.hash_slow();
        Self { states: BTreeMap::from([(hash, FlatState::new(genesis))]) }
    }

    /// Judges the witness of a valid block: enough for a stateless verifier, nothing in it that
    /// the verifier does not read, equal to the second judge's, intact in every encoding.
    pub(crate) fn block(
        &mut self,
        engine: &Engine,
        block: &SealedBlock,
        witnesses: &mut Witnesses,
    ) -> Result<(), String> {
        let witness = engine.witness(block.hash()).map_err(|error| error.to_string())?;
        let witness = witness.ok_or("no witness")?;
        self.witness(engine.chain(), block, &witness, witnesses)
    }

    /// As [`block`](Self::block), for a block and a witness of no engine.
    pub(crate) fn witness(
        &mut self,
        chain: &ChainSpec,
        block: &SealedBlock,
        witness: &Witness,
        witnesses: &mut Witnesses,
    ) -> Result<(), String> {
        let verified =
            verify(chain, block, None, witness).map_err(|error| format!("stateless: {error}"))?;
        if verified.witness != *witness {
            let title = "the verifier reads another witness";
            return Err(difference(title, &verified.witness, witness));
        }
        inputs::encoded(chain, block, &verified)?;
        let transactions = &block.body.transactions;
        let senders = execution::recover_senders_at(chain, block.header.number, transactions)
            .map_err(|error| error.to_string())?;
        let mut state = self.states[&block.header.parent_hash].clone();
        let expected = state.advance(chain, block, &senders)?;
        self.states.insert(block.hash(), state);
        if expected != *witness {
            return Err(difference("second judge", &expected, witness));
        }
        let rlp = witness::rlp::decode(&witness::rlp::encode(witness).into());
        let ssz = witness::ssz::encode(witness).and_then(|ssz| witness::ssz::decode(&ssz.into()));
        let mut json = Vec::new();
        witness::json::write(witness, &mut json);
        for decoded in [rlp, ssz, witness::json::decode(&json)] {
            if decoded.as_ref() != Ok(witness) {
                return Err(format!("an encoding does not decode to the same: {decoded:?}"));
            }
        }
        witnesses.verified += 1;
        Ok(())
    }
}

pub(crate) fn difference(title: &str, expected: &Witness, got: &Witness) -> String {
    let mut text = title.to_owned();
    let lists = expected.lists().into_iter().zip(got.lists());
    for (field, (expected, got)) in ["state", "codes", "headers"].into_iter().zip(lists) {
        let lacks = |list: Items<'_>, item: &[u8]| !list.iter().any(|other| *item == *other);
        let missing: Vec<_> = expected.iter_shared().filter(|item| lacks(got, item)).collect();
        let extra: Vec<_> = got.iter_shared().filter(|item| lacks(expected, item)).collect();
        if !missing.is_empty() || !extra.is_empty() {
            text += &format!("; {field}: missing {missing:?}, extra {extra:?}");
        } else if !expected.iter().eq(got.iter()) {
            text += &format!("; {field}: another order");
        }
    }
    text.truncate(1500);
    text
}

/// The rule that a reason names, without its numbers.
fn rule(reason: &str) -> String {
    let words =
        reason.split_whitespace().filter(|w| !w.contains("0x") && !w.contains(char::is_numeric));
    words.collect::<Vec<_>>().join(" ")
}

/// Checks for a block that is to be refused because its parent is unknown: our answer is `SYNCING`.
pub(crate) fn unknown_parent(exception: &str) -> bool {
    exception.starts_with("UnknownParent")
        || exception.contains("UNKNOWN_PARENT")
        || exception == UNNAMED
}
