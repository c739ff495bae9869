use super::*;
use crate::chain::stored::stored_block;
use crate::options::EngineOptions;
use crate::samples::*;
use crate::shared::Shared;
use crate::{Built, Missing, world};
use alloy_consensus::proofs;
use alloy_eips::eip7840::BlobParams;
use alloy_primitives::{U256, keccak256};
use state::MemoryDisk;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, OnceLock};
use testing::disks::{Access, WatchedDisk};

const UNKNOWN: B256 = B256::repeat_byte(0xee);

fn genesis(engine: &Engine) -> B256 {
    engine.heads().genesis
}

fn invalid(verdict: Verdict) -> (Option<B256>, String) {
    match verdict {
        Verdict::Invalid { latest_valid_hash, reason } => (latest_valid_hash, reason),
        other => panic!("{other:?}"),
    }
}

/// A chain on which the fork before, and all of the block's, are active.
fn all_forks() -> Vec<(&'static str, alloy_genesis::ChainConfig)> {
    let mut forks: Vec<_> = ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"]
        .map(|fork| (fork, world::config(fork)))
        .into();
    let mut blobs = world::config("osaka");
    (blobs.bpo1_time, blobs.bpo2_time) = (Some(0), Some(20));
    schedule_blobs(&mut blobs);
    forks.push(("bpo", blobs));
    forks
}

/// Mainnet's parameters, for a configuration with the forks that change these alone.
fn schedule_blobs(config: &mut alloy_genesis::ChainConfig) {
    let entries = [("bpo1", BlobParams::bpo1()), ("bpo2", BlobParams::bpo2())];
    config.blob_schedule.extend(entries.map(|(name, params)| (name.to_owned(), params)));
}

/// Builds `length` blocks. Each is valid, also when it is known, and so is its witness, which
/// verifies it statelessly and is recorded again then.
fn check_built(fork: &str, engine: &Engine, length: u64) {
    let mut parent = genesis(engine);
    let first = engine.block(parent).unwrap().unwrap().block.clone();
    assert_eq!(engine.new_block(first).unwrap(), Verdict::Valid);
    for number in 1..=length {
        let transactions = vec![count(engine, parent)];
        let Built { block, block_access_list, witness, .. } =
            build(engine, parent, transactions, 0);
        let verified = execution::verify(engine.chain(), &block, None, &witness).unwrap();
        assert_eq!(verified.witness, witness);
        let payload = payload(&block, block_access_list.clone());
        for _ in 0..2 {
            let verdict = engine.new_payload(payload.clone()).unwrap();
            assert_eq!(verdict, Verdict::Valid, "{fork}: {number}");
        }
        let record = engine.block(block.hash()).unwrap().unwrap();
        assert_eq!(record.block, block);
        assert_eq!(record.number(), number);
        assert_eq!(record.senders, [sender().address()]);
        assert_eq!(record.block_access_list, block_access_list);
        assert_eq!(*engine.witness(block.hash()).unwrap().unwrap(), witness, "{fork}");
        let hashes: Vec<_> = witness.codes.iter().map(keccak256).collect();
        assert!(!hashes.is_empty());
        assert_eq!(engine.assembled(block.hash()).unwrap().unwrap().code_hashes[..], hashes);
        assert_eq!(choose(engine, block.hash()), Verdict::Valid);
        parent = block.hash();
    }
}

#[test]
fn what_is_built_is_valid_under_every_fork() {
    for (fork, config) in all_forks() {
        check_built(fork, &engine_of(config), 3);
    }
}

#[test]
fn a_chain_crosses_its_forks() {
    let mut config = world::config("paris");
    config.shanghai_time = Some(20);
    config.cancun_time = Some(40);
    config.prague_time = Some(60);
    config.osaka_time = Some(80);
    config.bpo1_time = Some(100);
    config.bpo2_time = Some(120);
    config.amsterdam_time = Some(140);
    schedule_blobs(&mut config);
    check_built("all", &engine_of(config), 15);
}

#[test]
fn a_block_whose_parent_is_unknown_is_not_judged() {
    let engine = engine();
    let block = build(&engine, genesis(&engine), Vec::new(), 0).block;
    let orphan = changed(&block, |block| block.header.parent_hash = UNKNOWN);
    let missing = Missing::Block { number: 0, hash: UNKNOWN };
    assert_eq!(engine.new_block(orphan.clone()).unwrap(), Verdict::Syncing(missing));
    assert!(engine.block(orphan.hash()).unwrap().is_none());
    let before = engine.heads();
    let missing = Missing::Head { hash: orphan.hash() };
    assert_eq!(choose(&engine, orphan.hash()), Verdict::Syncing(missing));
    assert_eq!(engine.heads(), before);
}

#[test]
fn an_invalid_block_and_its_descendants_are_remembered() {
    let engine = engine();
    let valid = extend(&engine, genesis(&engine), 0);
    let block = build(&engine, valid, Vec::new(), 0).block;
    let bad = changed(&block, |block| block.header.state_root = UNKNOWN);
    let expected = invalid(engine.new_block(bad.clone()).unwrap());
    assert_eq!(expected.0, Some(valid));
    assert!(expected.1.starts_with("state root 0xeeee"), "{}", expected.1);
    assert_eq!(invalid(engine.new_block(bad.clone()).unwrap()), expected);
    let mut parent = bad.hash();
    for number in 3..6 {
        let child = changed(&block, |block| {
            (block.header.parent_hash, block.header.number) = (parent, number);
        });
        assert_eq!(invalid(engine.new_block(child.clone()).unwrap()), expected);
        assert_eq!(invalid(choose(&engine, child.hash())), expected);
        parent = child.hash();
    }
    assert_eq!(invalid(choose(&engine, bad.hash())), expected);
    assert_eq!(engine.heads().head, genesis(&engine));
    assert_eq!(engine.new_block(block).unwrap(), Verdict::Valid);
}

#[test]
fn a_body_that_is_not_the_headers_condemns_nobody() {
    let engine = engine();
    let block = build(&engine, genesis(&engine), vec![count(&engine, genesis(&engine))], 0).block;
    let other = changed(&block, |block| block.body.transactions.clear());
    assert_eq!(other.hash(), block.hash());
    let (latest_valid_hash, reason) = invalid(engine.new_block(other).unwrap());
    assert_eq!(latest_valid_hash, None);
    assert!(reason.starts_with("transactions root"), "{reason}");
    let other = changed(&block, |block| block.body.withdrawals = None);
    invalid(engine.new_block(other).unwrap());
    assert_eq!(engine.new_block(block).unwrap(), Verdict::Valid);
}

#[test]
fn a_payload_whose_hash_or_versioned_hashes_are_wrong_condemns_nobody() {
    let engine = engine();
    let block = build(&engine, genesis(&engine), vec![sender().blob(0, COUNTER)], 0).block;
    let right = payload(&block, None);
    let mut misnamed = right.clone();
    let ExecutionPayload::V3(inner) = &mut misnamed.execution else { panic!("Osaka") };
    inner.payload_inner.payload_inner.gas_used += 1;
    let mut all = vec![(misnamed, "block hash mismatch")];
    for hashes in [vec![], vec![UNKNOWN], vec![UNKNOWN; 2]] {
        let mut cancun = right.sidecar.cancun().unwrap().clone();
        cancun.versioned_hashes = hashes;
        let prague = right.sidecar.prague().unwrap().clone();
        let sidecar = ExecutionPayloadSidecar::v4(cancun, prague);
        all.push((Payload { sidecar, ..right.clone() }, "ersioned hashes"));
    }
    for (wrong, expected) in all {
        let (latest_valid_hash, reason) = invalid(engine.new_payload(wrong).unwrap());
        assert_eq!(latest_valid_hash, None);
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(engine.new_payload(right).unwrap(), Verdict::Valid);
}

#[test]
fn neither_choices_nor_new_blocks_read_the_disk_also_after_a_restart() {
    let disk = MemoryDisk::new();
    let reads = Arc::new(AtomicUsize::new(0));
    let reopen = || {
        let (reads, here) = (reads.clone(), std::thread::current().id());
        let watch = move |_: &str, access| {
            let is_read = matches!(access, Access::Read(_));
            if is_read && std::thread::current().id() == here {
                reads.fetch_add(1, Ordering::Relaxed);
            }
        };
        // Nothing of the index stays in memory but what the engine keeps.
        let options = state::Options { index_cache_bytes: 0, ..state::Options::default() };
        let disk = WatchedDisk::new(disk.clone(), watch);
        let file = genesis_file(world::config("osaka"));
        open(disk, &file, &options, EngineOptions::default()).unwrap()
    };
    let engine = reopen();
    let chain = branch(&engine, genesis(&engine), 1, 40);
    choose(&engine, chain[39]);
    drop(engine);
    let engine = reopen();
    let mut head = chain[39];
    for tag in 2..8 {
        // Each on the last, but one beside it.
        let parent = if tag == 5 { chain[39] } else { head };
        let block = build(&engine, parent, vec![count(&engine, parent)], tag).block;
        head = block.hash();
        reads.store(0, Ordering::Relaxed);
        assert_eq!(engine.new_payload(payload(&block, None)).unwrap(), Verdict::Valid);
        // Others may stand on a block that was there at the start: that is looked up.
        let is_looked_up = reads.swap(0, Ordering::Relaxed) > 0;
        assert_eq!(is_looked_up, parent == chain[39], "{tag}");
        let choice = heads(head, chain[7], chain[3]);
        let outcome = engine.forkchoice_updated(choice, None).unwrap();
        assert_eq!((outcome.verdict, reads.load(Ordering::Relaxed)), (Verdict::Valid, 0), "{tag}");
    }
    assert_eq!(engine.canonical_hash(8).unwrap(), Some(chain[7]));
    assert_eq!(reads.load(Ordering::Relaxed), 0);
    // Reads are counted: of a block further back its link alone is in memory.
    engine.block(chain[0]).unwrap().unwrap();
    assert!(reads.load(Ordering::Relaxed) > 0);
}

/// A second caller gets a verdict as soon as a block is known.
#[test]
fn a_block_is_in_the_journal_before_it_is_known() {
    let engine = Arc::new(OnceLock::<Engine>::new());
    let (next, known) = (Arc::<Mutex<B256>>::default(), Arc::<Mutex<Vec<bool>>>::default());
    let (opened, asked, found) = (Arc::downgrade(&engine), next.clone(), known.clone());
    let disk = WatchedDisk::new(MemoryDisk::new(), move |name, access| {
        if name.starts_with("journal-")
            && access == Access::Write
            && let Some(engine) = opened.upgrade()
            && let Some(engine) = engine.get()
        {
            let block = engine.block(*asked.lock().unwrap()).unwrap();
            found.lock().unwrap().push(block.is_some());
        }
    });
    let file = genesis_file(world::config("osaka"));
    let options = EngineOptions::default();
    engine.set(open(disk, &file, &state::Options::default(), options).unwrap()).unwrap();
    let engine = engine.get().unwrap();
    let mut parent = genesis(engine);
    for tag in 1..4 {
        let block = build(engine, parent, vec![count(engine, parent)], tag).block;
        parent = block.hash();
        *next.lock().unwrap() = parent;
        assert_eq!(engine.new_payload(payload(&block, None)).unwrap(), Verdict::Valid);
        assert!(engine.block(parent).unwrap().is_some());
    }
    // The header of the journal's file, and a record each.
    assert_eq!(*known.lock().unwrap(), [false; 4]);
}

/// Else the next choice would be taken for one that the database has passed.
#[test]
fn numbers_of_choices_go_on_where_the_journal_is_lost() {
    let file = genesis_file(world::config("osaka"));
    let open_on = |disk: MemoryDisk| {
        open(disk, &file, &state::Options::default(), EngineOptions::default()).unwrap()
    };
    let last = |engine: &Engine| engine.shared.chain.database.journal().last_choice();
    let disk = MemoryDisk::new();
    let engine = open_on(disk.clone());
    let chain = branch(&engine, genesis(&engine), 1, 3);
    choose(&engine, chain[2]);
    let before = last(&engine).unwrap().number;
    engine.persist().unwrap();
    drop(engine);
    let mut files = disk.contents();
    files.retain(|name, _| !name.starts_with("journal-"));
    let engine = open_on(MemoryDisk::with_contents(&files));
    assert_eq!((engine.heads().head, last(&engine)), (chain[2], None));
    choose(&engine, chain[1]);
    assert_eq!(last(&engine).unwrap().number, before + 1);
}

#[test]
fn safe_and_finalized_are_on_the_branch_of_the_head() {
    let engine = engine();
    let chain = branch(&engine, genesis(&engine), 1, 3);
    let other = branch(&engine, genesis(&engine), 2, 2);
    let choose = |state| engine.forkchoice_updated(state, None);
    choose(heads(chain[2], chain[1], chain[0])).unwrap();
    let expected = engine.heads();
    assert_eq!((expected.safe, expected.finalized), (Some(chain[1]), Some(chain[0])));
    for state in [
        heads(chain[2], other[0], chain[0]),
        heads(chain[2], chain[1], other[1]),
        heads(chain[2], UNKNOWN, chain[0]),
        heads(chain[2], chain[1], UNKNOWN),
        heads(chain[1], chain[2], chain[0]),
        heads(other[1], chain[1], B256::ZERO),
    ] {
        let error = choose(state).unwrap_err();
        assert!(matches!(error, Error::InvalidForkchoiceState(_)), "{error}");
        assert_eq!(engine.heads(), expected);
        assert_eq!(engine.canonical_hash(1).unwrap(), Some(chain[0]));
    }
    // The zero hash names none: what was named before stays.
    choose(heads(chain[2], B256::ZERO, B256::ZERO)).unwrap();
    assert_eq!(engine.heads(), expected);
}

#[test]
fn a_head_before_the_finalized_block_is_valid_and_nothing_is_built_on_it() {
    let engine = engine();
    let chain = branch(&engine, genesis(&engine), 1, 3);
    engine.forkchoice_updated(heads(chain[2], chain[1], chain[1]), None).unwrap();
    let before = engine.heads();
    let outcome = choose_and_build(&engine, chain[0]).unwrap();
    assert_eq!((outcome.verdict, outcome.payload_id), (Verdict::Valid, None));
    assert_eq!(engine.heads(), before);
}

#[test]
fn a_build_is_finished_when_it_is_asked_for_and_then_kept() {
    let engine = engine();
    let head = extend(&engine, genesis(&engine), 0);
    let outcome = choose_and_build(&engine, head).unwrap();
    assert_eq!(outcome.verdict, Verdict::Valid);
    let id = outcome.payload_id.unwrap();
    assert_eq!(choose_and_build(&engine, head).unwrap().payload_id, Some(id));
    let built = engine.built(id).unwrap().unwrap();
    assert!(built.with_witness);
    assert_eq!(built.block.header.parent_hash, head);
    assert!(Arc::ptr_eq(&built, &engine.built(id).unwrap().unwrap()));
    let payload = payload(&built.block, None);
    assert_eq!(engine.new_payload(payload).unwrap(), Verdict::Valid);
    assert_eq!(*engine.witness(built.block.hash()).unwrap().unwrap(), built.witness);
    let unknown = alloy_rpc_types_engine::PayloadId::new([9; 8]);
    assert!(engine.built(unknown).unwrap().is_none());
}

/// A block of so many transactions, without and with one that has an impossible signature.
fn check_wrong_signature(fork: &str, count: u64, wrong: usize) {
    let engine = engine_of(world::config(fork));
    let first = genesis(&engine);
    let transactions: Vec<_> = (0..count).map(|nonce| sender().call(nonce, COUNTER, [])).collect();
    let Built { block, block_access_list, .. } = build(&engine, first, transactions, 0);
    let right = payload(&block, block_access_list.clone());
    let mut block = block.into_block();
    block.body.transactions[wrong] = spoilt(&block.body.transactions[wrong]);
    block.header.transactions_root = proofs::calculate_transaction_root(&block.body.transactions);
    let block = SealedBlock::new(block);
    let new_payload = || engine.new_payload(payload(&block, block_access_list.clone())).unwrap();
    let (latest_valid_hash, reason) = invalid(new_payload());
    assert_eq!(latest_valid_hash, Some(first));
    let expected = format!("transaction {wrong}: the sender's signature");
    assert!(reason.starts_with(&expected), "{fork}, {count}: {reason}");
    assert!(engine.block(block.hash()).unwrap().is_none());
    // It is remembered.
    assert_eq!(invalid(new_payload()).1, reason);
    let hash = right.execution.block_hash();
    assert_eq!(engine.new_payload(right).unwrap(), Verdict::Valid);
    let senders = &engine.block(hash).unwrap().unwrap().senders;
    assert_eq!(*senders, vec![sender().address(); count as usize]);
}

#[test]
fn senders_are_recovered_in_order_and_a_wrong_signature_is_named() {
    for fork in ["osaka", "amsterdam"] {
        check_wrong_signature(fork, 1, 0);
        check_wrong_signature(fork, 3, 2);
        check_wrong_signature(fork, 40, 0);
        check_wrong_signature(fork, 40, 30);
        check_wrong_signature(fork, 40, 39);
    }
}

#[test]
fn a_witness_is_put_together_again_the_same() {
    let engine = engine();
    let chain = branch(&engine, genesis(&engine), 1, 3);
    let side = branch(&engine, chain[0], 2, 2);
    let blocks = [&chain[..], &side].concat();
    let witness = |hash: &B256| engine.witness(*hash).unwrap().unwrap();
    let before: Vec<_> = blocks.iter().map(witness).collect();
    for persisted in [false, true] {
        if persisted {
            engine.persist().unwrap();
        }
        for (hash, before) in blocks.iter().zip(&before) {
            let again = witness(hash);
            assert_eq!(again, *before);
            // That of the newest stays at hand when others are asked for.
            assert_eq!(Arc::ptr_eq(&again, before), hash == blocks.last().unwrap());
            assert!(Arc::ptr_eq(&again, &witness(hash)));
        }
    }
    assert!(engine.witness(genesis(&engine)).unwrap().is_none());
    assert!(engine.witness(B256::ZERO).unwrap().is_none());
}

#[test]
fn the_latest_valid_hash_is_zero_where_that_block_was_mined() {
    for (difficulty, is_mined) in [(0, false), (1, true)] {
        let mut file = genesis_file(world::config("osaka"));
        file.difficulty = U256::from(difficulty);
        let engine = engine_from(&file);
        let first = genesis(&engine);
        let block = build(&engine, first, Vec::new(), 0).block;
        let bad = changed(&block, |block| block.header.state_root = UNKNOWN);
        let (latest_valid_hash, _) = invalid(engine.new_block(bad.clone()).unwrap());
        let expected = if is_mined { B256::ZERO } else { first };
        assert_eq!(latest_valid_hash, Some(expected));
        let child = changed(&bad, |child| child.header.parent_hash = bad.hash());
        assert_eq!(invalid(engine.new_block(child).unwrap()).0, Some(expected));
    }
}

#[test]
fn a_consensus_layer_begins_with_the_last_block_of_proof_of_work() {
    for (difficulty, may_begin) in [(4, false), (5, true)] {
        let mut file = genesis_file(world::config("osaka"));
        file.config.terminal_total_difficulty = Some(U256::from(5));
        file.config.terminal_total_difficulty_passed = false;
        file.difficulty = U256::from(difficulty);
        let engine = engine_from(&file);
        let first = genesis(&engine);
        let outcome = choose_and_build(&engine, first).unwrap();
        assert_eq!(outcome.is_applied, may_begin);
        assert_eq!(outcome.payload_id.is_some(), may_begin);
        if may_begin {
            assert_eq!(outcome.verdict, Verdict::Valid);
        } else {
            assert_eq!(invalid(outcome.verdict).0, Some(B256::ZERO));
        }
        let state = heads(first, B256::ZERO, B256::ZERO);
        assert!(engine.choose_head(state).unwrap().is_applied);
    }
}

#[test]
fn below_the_first_block_of_a_chain_there_is_none() {
    let mut file = genesis_file(world::config("osaka"));
    file.number = Some(3);
    let engine = engine_from(&file);
    let first = genesis(&engine);
    let block = build(&engine, first, Vec::new(), 0).block;
    assert_eq!(engine.new_block(block.clone()).unwrap(), Verdict::Valid);
    assert_eq!(choose(&engine, block.hash()), Verdict::Valid);
    let range = |start, end| engine.canonical_range(start, end).unwrap();
    assert_eq!(range(1, 9), [None, None, Some(first), Some(block.hash())]);
    assert_eq!(range(1, 3), [None, None]);
    assert_eq!(range(4, 5), [Some(block.hash())]);
    assert_eq!(range(5, u64::MAX), []);
}

#[test]
fn a_thread_that_makes_an_earlier_witness_keeps_no_block_waiting() {
    let engine = engine();
    let parent = branch(&engine, genesis(&engine), 1, 2)[1];
    let block = build(&engine, parent, vec![count(&engine, parent)], 0).block;
    let recent = &engine.shared.recent;
    let earlier = recent.entry(&genesis(&engine));
    earlier
        .get_or_assemble(|| {
            let payload = payload(&block, None);
            let (verdict, assembled) = engine.new_payload_with_witness(payload).unwrap();
            assert_eq!((verdict, assembled.is_some()), (Verdict::Valid, true));
            Ok::<_, ()>(None)
        })
        .unwrap();
    let newest = RecentWitness::new(UNKNOWN, Weak::new(), Vec::new());
    recent.begin(newest.clone());
    newest
        .get_or_assemble(|| {
            assert!(engine.witness(parent).unwrap().is_some());
            Ok::<_, ()>(None)
        })
        .unwrap();
}

#[test]
fn readers_see_whole_blocks_while_others_are_validated() {
    let maker = engine();
    let chain = branch(&maker, genesis(&maker), 1, 40);
    let blocks: Vec<_> = chain.iter().map(|hash| maker.block(*hash).unwrap().unwrap()).collect();
    let engine = engine();
    let done = AtomicBool::new(false);
    let read = || {
        let mut last = 0;
        loop {
            let stop = done.load(Ordering::Acquire);
            let head = engine.block(engine.heads().head).unwrap().unwrap();
            let number = head.block.header.number;
            assert!(number >= last, "the head went back");
            last = number;
            assert!(number == 0 || engine.witness(head.block.hash()).unwrap().is_some());
            assert!((0..=number).all(|number| engine.canonical_hash(number).unwrap().is_some()));
            if stop {
                return last;
            }
        }
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3).map(|_| scope.spawn(read)).collect();
        for record in &blocks {
            assert_eq!(engine.new_block(record.block.clone()).unwrap(), Verdict::Valid);
            assert_eq!(choose(&engine, record.block.hash()), Verdict::Valid);
        }
        done.store(true, Ordering::Release);
        for reader in readers {
            assert_eq!(reader.join().expect("no reader panicked"), 40);
        }
    });
}

#[test]
fn a_reason_is_no_longer_than_a_reader_needs() {
    let long = |text: &str| shortened(&InvalidBlock::Payload(text.repeat(3000)));
    for text in ["a", "\u{e9}", "\u{1f600}"] {
        let reason = long(text);
        assert!(
            (limits::REASON_BYTES - 3..=limits::REASON_BYTES).contains(&reason.len()),
            "{text}"
        );
    }
    assert_eq!(shortened(&InvalidBlock::Payload("short".into())), "payload: short");
}

#[test]
fn the_head_moves_while_everything_is_persisted_again_and_again() {
    let engine = engine();
    let chain = branch(&engine, genesis(&engine), 1, 6);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    engine.persist().unwrap();
                }
            });
        }
        for round in 0..20_000 {
            assert_eq!(choose(&engine, chain[round % chain.len()]), Verdict::Valid);
        }
        done.store(true, Ordering::Release);
    });
}

/// A block whose state could not be written, as on a full disk, is not called too old.
#[test]
fn what_could_not_be_written_is_not_called_pruned() {
    let engine = engine();
    let hash = extend(&engine, engine.heads().genesis, 0);
    let Shared { chain, background, .. } = &*engine.shared;
    chain.sealed(background, &engine.block(hash).unwrap().unwrap()).unwrap();
    let read = || Arc::into_inner(stored_block(&chain.database, &hash).unwrap().unwrap());
    assert_eq!(chain.is_pruned(&read().unwrap()), Ok(false));
    for (failed, expected) in [
        (Error::Storage("full".into()), Err(Error::Storage("full".into()))),
        (Error::Pruned(hash), Ok(true)),
    ] {
        let record = BlockRecord { seal: Seal::kept(Err(failed)), ..read().unwrap() };
        assert_eq!(chain.is_pruned(&record), expected);
    }
}
