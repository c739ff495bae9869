use super::*;
use alloy_primitives::B64;
use execution::Block;
use std::collections::BTreeMap;
use testing::Random;

/// A block of a tree of blocks, with what a verification of it would say.
struct TestBlock {
    block: Arc<SealedBlock>,
    parent: Option<usize>,
    breaks_a_rule: bool,
}

fn block(parent: &SealedBlock, nonce: u64) -> Arc<SealedBlock> {
    let header = Header {
        parent_hash: parent.hash(),
        number: parent.header.number + 1,
        nonce: B64::from(nonce),
        ..Header::default()
    };
    Arc::new(SealedBlock::new(Block { header, body: Default::default() }))
}

fn first() -> SealedBlock {
    SealedBlock::new(Block { header: Header::default(), body: Default::default() })
}

/// A tree of so many blocks on the first one, some of which break a rule.
fn tree(random: &mut Random, count: usize) -> Vec<TestBlock> {
    let (first, mut blocks) = (first(), Vec::<TestBlock>::new());
    for index in 0..count {
        let parent = random.below(index + 1).checked_sub(1);
        let on = parent.map_or(&first, |parent| &blocks[parent].block);
        let block = block(on, index as u64);
        blocks.push(TestBlock { block, parent, breaks_a_rule: random.one_in(8) });
    }
    blocks
}

/// The verdicts in the end, by the definition.
fn expected(blocks: &[TestBlock]) -> Vec<Judgement> {
    let mut all: Vec<Judgement> = Vec::new();
    for block in blocks {
        let of_parent = block.parent.map_or(Judgement::Valid, |parent| all[parent].clone());
        all.push(match of_parent {
            Judgement::Valid if block.breaks_a_rule => Judgement::Invalid {
                latest_valid: block.block.header.parent_hash,
                reason: block.block.hash().to_string(),
            },
            of_parent => of_parent,
        });
    }
    all
}

/// Blocks and witnesses come in any order, from sources that lack them, give bad ones or fail.
fn check(random: &mut Random) {
    let blocks = tree(random, 40);
    let by_hash: BTreeMap<B256, usize> =
        blocks.iter().enumerate().map(|(index, block)| (block.block.hash(), index)).collect();
    let mut chain = Chain::new(3, None, Some(first().hash()));
    let mut now = Instant::now();
    // Some come from the consensus client, and some have to be fetched.
    let mut sent: Vec<_> = (0..blocks.len()).filter(|_| random.one_in(2)).collect();
    for index in 0..blocks.len() {
        let is_parent = blocks.iter().any(|block| block.parent == Some(index));
        if !is_parent && !sent.contains(&index) {
            sent.push(index);
        }
    }
    for step in 0.. {
        assert!(step < 100_000, "it goes on for ever");
        now += Duration::from_millis(random.below(500) as u64);
        if !sent.is_empty() && random.one_in(3) {
            let index = sent.swap_remove(random.below(sent.len()));
            chain.add(blocks[index].block.clone(), now);
        }
        let source = random.below(3);
        if let Ok(task) = chain.next_task(source, now) {
            let fetched = match (task, random.below(4)) {
                (_, 0) => Fetched::Failed,
                (_, 1) => Fetched::Absent,
                (FetchTask::Block(hash), _) if hash == first().hash() => Fetched::Absent,
                (FetchTask::Block(hash), _) => Fetched::Block(blocks[by_hash[&hash]].block.clone()),
                (FetchTask::Witness { .. }, _) => {
                    Fetched::Witness(Witness::default(), random.below(20 << 20))
                }
            };
            chain.take(source, task, fetched, now);
        }
        judge_one(random, &mut chain, &blocks, &by_hash, now);
        if sent.is_empty() && chain.waiting_len() == 0 {
            break;
        }
    }
    for (block, expected) in blocks.iter().zip(expected(&blocks)) {
        let hash = block.block.hash();
        assert_eq!(chain.judged[&hash].judgement, expected, "{}", block.block.header.number);
    }
    assert!(chain.children.is_empty(), "{:?}", chain.children);
}

/// Does the next job, if there is one.
fn judge_one(
    random: &mut Random,
    chain: &mut Chain,
    blocks: &[TestBlock],
    by_hash: &BTreeMap<B256, usize>,
    now: Instant,
) {
    let Some(job) = chain.next_job() else { return };
    let (Job::Check { block, .. } | Job::Verify { block, .. }) = &job;
    let (hash, parent) = (block.hash(), block.header.parent_hash);
    assert!(chain.is_valid(&parent), "it is judged before its parent");
    let wrong = || Err(hash.to_string());
    match job {
        Job::Check { block, .. } if blocks[by_hash[&hash]].breaks_a_rule && hash[0] < 128 => {
            chain.judge(&block, wrong());
        }
        Job::Check { block, .. } => chain.checked(&block.hash()),
        Job::Verify { given, .. } if random.one_in(3) => {
            chain.refuse(&hash, given.source, now);
        }
        Job::Verify { block, given } => {
            chain.trust(given.source);
            let parent = by_hash.get(&parent).map(|index| blocks[*index].block.header.clone());
            let parent = parent.unwrap_or_else(|| first().header.clone());
            let breaks_a_rule = blocks[by_hash[&hash]].breaks_a_rule;
            chain.judge(&block, if breaks_a_rule { wrong() } else { Ok(parent) });
        }
    }
}

#[test]
fn verdicts_are_those_of_the_definition_in_whatever_order_things_come() {
    let mut random = Random::seeded();
    for _ in 0..100 {
        check(&mut random);
    }
}

/// A long gap is walked with links alone, and filled from below.
#[test]
fn a_gap_of_large_blocks_takes_bounded_memory() {
    let mut blocks = vec![Arc::new(first())];
    for number in 0..400 {
        let mut header = block(&blocks[number], 0).header.clone();
        // Alone in a body, this takes no room: ommers do.
        header.extra_data = vec![0; 32].into();
        let ommers = vec![Header { extra_data: vec![7; 100_000].into(), ..Header::default() }];
        let body = alloy_consensus::BlockBody { ommers, ..Default::default() };
        blocks.push(Arc::new(SealedBlock::new(Block { header, body })));
    }
    let (anchor, head) = (blocks[0].hash(), blocks[400].clone());
    let by_hash: BTreeMap<_, _> =
        blocks.iter().map(|block| (block.hash(), block.clone())).collect();
    let mut chain = Chain::new(1, None, Some(anchor));
    let mut now = Instant::now();
    chain.add(head.clone(), now);
    let (mut most_bytes, mut steps) = (0, 0);
    while chain.status(&head.hash()).is_none() {
        steps += 1;
        assert!(steps < 10_000, "it goes on for ever");
        now += Duration::from_secs(2);
        if let Ok(task) = chain.next_task(0, now) {
            let fetched = match task {
                FetchTask::Block(hash) => Fetched::Block(by_hash[&hash].clone()),
                FetchTask::Witness { .. } => Fetched::Witness(Witness::default(), 1 << 20),
            };
            chain.take(0, task, fetched, now);
        }
        match chain.next_job() {
            Some(Job::Check { block, .. }) => chain.checked(&block.hash()),
            Some(Job::Verify { block, .. }) => {
                let parent = by_hash[&block.header.parent_hash].header.clone();
                chain.judge(&block, Ok(parent));
            }
            None => {}
        }
        let whole = chain.waiting.values().filter_map(|waiting| waiting.block.as_deref());
        let bytes = whole.map(held_bytes).sum::<usize>() + chain.whole_bytes;
        most_bytes = most_bytes.max(bytes);
    }
    let bound = STATELESS_PAYLOAD_BYTES + STATELESS_BODY_BYTES + 400_000;
    assert!(most_bytes <= bound, "{most_bytes} bytes");
    assert_eq!(chain.status(&head.hash()).expect("judged").status, Status::Valid);
}

#[test]
fn the_oldest_verdicts_are_forgotten_but_not_those_of_the_heads() {
    let (mut chain, now) = (Chain::new(1, None, Some(first().hash())), Instant::now());
    let mut last = Arc::new(first());
    let choice = |head, finalized| ForkchoiceState {
        head_block_hash: head,
        safe_block_hash: finalized,
        finalized_block_hash: finalized,
    };
    let mut finalized = B256::ZERO;
    for number in 1..=STATELESS_BLOCKS as u64 + 100 {
        let next = block(&last, number);
        chain.add(next.clone(), now);
        let parent = last.header.clone();
        chain.judge(&next, Ok(parent));
        if number == 50 {
            finalized = next.hash();
        }
        if number % 1000 == 50 {
            let status = chain.choose(choice(next.hash(), finalized), now).expect("a chain");
            assert_eq!(status.status, Status::Valid);
        }
        last = next;
    }
    chain.choose(choice(last.hash(), finalized), now).expect("a chain");
    assert_eq!(chain.judged.len(), STATELESS_BLOCKS);
    assert_eq!(chain.header(&finalized).expect("it is kept").number, 50);
    assert_eq!(
        chain.canonical(last.header.number - 8000).map(|hash| chain.is_valid(&hash)),
        Some(true)
    );
    assert_eq!(chain.canonical(51), None, "it was forgotten");
    // The ancestors of a block on a forgotten one are not fetched.
    let stray = block(&block(&first(), 1), 7);
    chain.add(stray, now);
    assert_eq!(chain.next_task(0, now), Err(None));
}

#[test]
fn what_no_source_gives_is_named_once_all_were_asked_for_a_while() {
    let first = first();
    let one = block(&first, 1);
    let two = block(&one, 2);
    let three = block(&two, 3);
    let mut chain = Chain::new(2, None, Some(first.hash()));
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    chain.add(three, start);
    let absent = |chain: &mut Chain, source, now| {
        while let Ok(task) = chain.next_task(source, now) {
            chain.take(source, task, Fetched::Absent, now);
        }
    };
    absent(&mut chain, 0, start);
    assert_eq!(chain.lacking(at(60)), None, "the other source was not asked");
    absent(&mut chain, 1, at(2));
    assert_eq!(chain.lacking(at(11)), None, "it may come");
    let hash = two.hash();
    let since = Duration::from_secs(12);
    let lacking = Lacking { hash, number: Some(2), is_block: true, since };
    let words = format!("block 2 ({hash}) is missing, and no source gives it");
    assert_eq!(chain.lacking(at(12)).map(|lacking| lacking.to_string()), Some(words));
    assert_eq!(chain.lacking(at(12)), Some(lacking));
    // The blocks come from the consensus client, and no witness comes.
    chain.add(two, at(13));
    chain.add(one.clone(), at(13));
    assert_eq!(chain.lacking(at(26)), None, "no witness was asked for");
    for source in [0, 1] {
        for seconds in [14, 20] {
            absent(&mut chain, source, at(seconds));
        }
    }
    let words = format!("no source gives the witness of block 1 ({})", one.hash());
    assert_eq!(chain.lacking(at(26)).map(|lacking| lacking.to_string()), Some(words));
}

#[test]
fn the_latest_block_is_the_one_that_the_chain_begins_with_until_there_is_a_head() {
    let (first, now) = (first(), Instant::now());
    assert!(Chain::new(1, None, None).latest().is_none());
    let two = block(&block(&first, 1), 2);
    let latest = |chain: &Chain| chain.latest().map(|(hash, header)| (hash, header.number));
    let begun = Chain::new(1, Some(first.clone()), None);
    assert_eq!(latest(&begun), Some((first.hash(), 0)));
    let mut chain = Chain::new(1, Some(first.clone()), Some(two.hash()));
    assert_eq!(latest(&chain), Some((first.hash(), 0)), "the anchor's header is not known");
    assert_eq!(chain.block(&first.hash()).as_deref(), Some(&first));
    assert_eq!(chain.canonical_range(0, 5), [Some(first.hash())]);
    chain.add(two.clone(), now);
    assert_eq!(latest(&chain), Some((two.hash(), 2)));
    assert_eq!(chain.block(&two.hash()), Some(two.clone()));
    let three = block(&two, 3);
    chain.add(three.clone(), now);
    chain.judge(&three, Ok(two.header.clone()));
    assert_eq!(latest(&chain), Some((two.hash(), 2)), "it is no head yet");
    let head_block_hash = three.hash();
    let state = ForkchoiceState { head_block_hash, ..ForkchoiceState::default() };
    assert_eq!(chain.choose(state, now).map(|status| status.status), Ok(Status::Valid));
    assert_eq!(latest(&chain), Some((three.hash(), 3)));
    let [one, two, three] = [first.hash(), two.hash(), three.hash()].map(Some);
    for (start, most, expected) in [
        (0, 9, &[one, None, two, three][..]),
        (0, 2, &[one, None]),
        (1, 2, &[None, two]),
        (3, 1, &[three]),
        (4, 1024, &[]),
        (u64::MAX, u64::MAX, &[]),
        (0, 0, &[]),
    ] {
        assert_eq!(chain.canonical_range(start, most), expected, "{start}, {most}");
    }
}
