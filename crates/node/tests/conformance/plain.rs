//! Blocks with proof of work, as RLP, on a chain of its own, with nodes and codes by hash, on which
//! the branch with the most total difficulty is the canonical one. The engine, which leaves that
//! choice to others, comes to the same answers and witnesses.

use crate::blocks::{Judge, difference, set_head, unknown_parent};
use crate::fixture::Test;
use crate::report::Witnesses;
use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, Bytes, U256, keccak256};
use engine::{Engine, Genesis, Verdict};
use execution::{BlockError, ChainSpec, OMMER_GENERATIONS, RunOptions, SealedBlock};
use std::rc::Rc;
use testing::world::Validated;
use trie::{EMPTY_ROOT_HASH, NodeSource, StateTrie};
use witness::{AccountInfo, Ancestor, Change, Source, TrieState, Witness};

pub(crate) fn run(test: &Test, chain: ChainSpec, witnesses: &mut Witnesses) -> Result<(), String> {
    let genesis = test.genesis()?;
    let mut judge = Judge::new(&genesis);
    let mut plain = Plain::new(chain.clone(), &genesis)?;
    let engine = Engine::new(chain, genesis).map_err(|error| error.to_string())?;
    for (index, fixture) in test.blocks.iter().enumerate() {
        let context = |error: String| format!("block {index}: {error}");
        let exception = fixture.exception();
        let block = match (execution::decode_block(&fixture.rlp), &exception) {
            (Ok(block), _) => block,
            (Err(_), Some(_)) => continue,
            (Err(error), None) => return Err(context(error.to_string())),
        };
        if plain.blocks.contains_key(&block.hash()) {
            continue;
        }
        let verdict =
            engine.new_block(block.clone()).map_err(|error| context(error.to_string()))?;
        match (plain.import(&block).map_err(context)?, exception) {
            (Answer::Valid(witness), None) => {
                same_witness(&engine, block.hash(), &witness).map_err(context)?;
                judge.witness(&plain.chain, &block, &witness, witnesses).map_err(context)?;
            }
            (Answer::Valid(_), Some(exception)) => {
                return Err(context(format!("valid, expected {exception}")));
            }
            (Answer::Invalid(reason), Some(_)) => {
                same_reason(&verdict, &reason).map_err(context)?
            }
            (Answer::UnknownParent, Some(exception)) if unknown_parent(&exception) => {}
            (answer, exception) => {
                return Err(context(format!("{answer:?}, expected {exception:?}")));
            }
        }
    }
    match plain.head {
        head if head == test.lastblockhash => set_head(&engine, head),
        head => Err(format!("the head is {head}, not {}", test.lastblockhash)),
    }
}

fn same_witness(engine: &Engine, hash: B256, expected: &Witness) -> Result<(), String> {
    let witness = engine.witness(hash).map_err(|error| error.to_string())?;
    let witness = witness.ok_or("the engine does not find it valid")?;
    match *witness == *expected {
        true => Ok(()),
        false => Err(difference("the engine's witness", expected, &witness)),
    }
}

fn same_reason(verdict: &Verdict, expected: &str) -> Result<(), String> {
    match verdict {
        Verdict::Invalid { reason, .. } if expected.starts_with(reason) => Ok(()),
        verdict => Err(format!("the engine says {verdict:?}, not: {expected}")),
    }
}

#[derive(Debug)]
enum Answer {
    Valid(Witness),
    Invalid(String),
    UnknownParent,
}

#[derive(Debug)]
struct Plain {
    chain: ChainSpec,
    nodes: B256Map<Bytes>,
    codes: B256Map<Bytes>,
    /// Valid blocks with the total difficulty up to each.
    blocks: B256Map<(Rc<SealedBlock>, U256)>,
    head: B256,
}

impl Plain {
    fn new(chain: ChainSpec, genesis: &Genesis) -> Result<Self, String> {
        let mut codes = B256Map::default();
        let changes = genesis.alloc.iter().map(|(address, account)| {
            let code = account.code.clone().unwrap_or_default();
            let code_hash = keccak256(&code);
            codes.insert(code_hash, code);
            let (nonce, balance) = (account.nonce.unwrap_or(0), account.balance);
            let slots = account.storage.iter().flatten().filter(|(_, value)| !value.is_zero());
            Change {
                address: *address,
                account: Some(AccountInfo { nonce, balance, code_hash }),
                storage_wiped: false,
                slots: slots.map(|(slot, value)| ((*slot).into(), (*value).into())).collect(),
            }
        });
        let changes: Vec<_> = changes.collect();
        let changes = Change::hashed(&changes);
        let mut trie = StateTrie::new(EMPTY_ROOT_HASH);
        let root = trie.apply(&changes, &B256Map::<Bytes>::default());
        let root = root.map_err(|error| error.to_string())?;
        if root != genesis.header.state_root {
            return Err(format!("genesis has another state root: {root}"));
        }
        let mut nodes = B256Map::default();
        trie.new_nodes(&mut |hash, rlp| drop(nodes.insert(hash, rlp)));
        let block = execution::Block { header: genesis.header.clone(), body: Default::default() };
        let block = Rc::new(SealedBlock::new(block));
        let (head, difficulty) = (block.hash(), block.header.difficulty);
        let blocks = B256Map::from_iter([(head, (block, difficulty))]);
        Ok(Self { chain, nodes, codes, blocks, head })
    }

    fn import(&mut self, block: &SealedBlock) -> Result<Answer, String> {
        let Some((parent, total_difficulty)) = self.blocks.get(&block.header.parent_hash).cloned()
        else {
            return Ok(Answer::UnknownParent);
        };
        let validated = match self.validate(block, &parent, total_difficulty) {
            Ok(validated) => validated,
            Err(BlockError::Invalid(reason)) => return Ok(Answer::Invalid(reason.to_string())),
            Err(error) => return Err(error.to_string()),
        };
        self.nodes.extend(validated.new_nodes);
        self.codes.extend(validated.executed.new_codes);
        let total_difficulty = total_difficulty + block.header.difficulty;
        let (head, head_difficulty) = &self.blocks[&self.head];
        let is_merged = block.header.difficulty.is_zero();
        if is_merged || (!head.header.difficulty.is_zero() && total_difficulty > *head_difficulty) {
            self.head = block.hash();
        }
        self.blocks.insert(block.hash(), (Rc::new(block.clone()), total_difficulty));
        Ok(Answer::Valid(validated.witness))
    }

    fn validate(
        &self,
        block: &SealedBlock,
        parent: &SealedBlock,
        total_difficulty: U256,
    ) -> Result<Validated, BlockError> {
        let chain = &self.chain;
        execution::validate_body_roots(block)?;
        let transactions = &block.body.transactions;
        let senders = execution::recover_senders_at(chain, block.header.number, transactions)?;
        let view = View { plain: self, parent: parent.hash() };
        let ancestors: Vec<_> = view.ancestors().take(OMMER_GENERATIONS).collect();
        execution::validate_ancestry(chain, block, total_difficulty, &ancestors)?;
        let mut state = TrieState::new(parent.header.state_root, &view);
        let (header, hash) = (&parent.header, parent.hash());
        let executed = execution::validate(
            chain,
            header,
            hash,
            block,
            &senders,
            RunOptions::default(),
            &mut state,
        )?;
        let witness = executed.witness(&mut state, &block.header)?;
        let mut new_nodes = Vec::new();
        state.new_nodes(&mut |hash, rlp| new_nodes.push((hash, rlp)));
        Ok(Validated { executed, witness, new_nodes })
    }
}

/// The state and the ancestors as a child of `parent` sees them.
#[derive(Debug)]
struct View<'a> {
    plain: &'a Plain,
    parent: B256,
}

impl<'a> View<'a> {
    /// The parent and all before it.
    fn ancestors(&self) -> impl Iterator<Item = &'a SealedBlock> + use<'a> {
        let blocks = &self.plain.blocks;
        let next = |block: &&SealedBlock| Some(&*blocks.get(&block.header.parent_hash)?.0);
        std::iter::successors(blocks.get(&self.parent).map(|(block, _)| &**block), next)
    }
}

impl NodeSource for View<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.plain.nodes.get(hash).cloned()
    }
}

impl Source for View<'_> {
    fn code(&self, code_hash: &B256) -> Option<Bytes> {
        self.plain.codes.get(code_hash).cloned()
    }

    fn ancestor(&self, number: u64) -> Option<Ancestor> {
        let block = self.ancestors().find(|block| block.header.number == number)?;
        let rlp = alloy_rlp::encode(&block.header).into();
        Some(Ancestor { hash: block.hash(), rlp })
    }
}
