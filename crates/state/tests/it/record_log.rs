//! The log of records: what was appended is there again, up to where the process ended.

use deponent_state::{MemoryDisk, RecordLog};
use std::collections::BTreeMap;
use testing::Random;

type Files = BTreeMap<String, Vec<u8>>;

fn read(files: &Files) -> (RecordLog, Vec<Vec<u8>>) {
    let mut records = Vec::new();
    let disk = MemoryDisk::with_contents(files);
    let log = RecordLog::open(disk, |record| records.push(record.to_vec())).expect("readable");
    (log, records)
}

fn record(random: &mut Random) -> Vec<u8> {
    let length = random.below(60);
    (0..length).map(|_| random.number() as u8).collect()
}

#[test]
fn the_records_before_any_cut_of_the_file_are_read_and_nothing_else() {
    let mut random = Random::seeded();
    let disk = MemoryDisk::new();
    let mut log = RecordLog::open(disk.clone(), |_| panic!("there are none")).expect("new");
    let mut ends = vec![(0, 0)];
    let mut records = Vec::new();
    for _ in 0..12 {
        records.push(record(&mut random));
        log.append(&records[records.len() - 1]).expect("written");
        ends.push((log.bytes() as usize, records.len()));
    }
    let files = disk.contents();
    let (name, whole) = files.first_key_value().expect("a file");
    assert_eq!((files.len(), whole.len() as u64), (1, log.bytes()));
    for cut in 0..=whole.len() {
        let files = Files::from([(name.clone(), whole[..cut].to_vec())]);
        let count = ends.iter().rev().find(|(end, _)| *end <= cut).expect("the start").1;
        let (log, found) = read(&files);
        assert_eq!(found, records[..count], "{cut}");
        let is_whole = cut == 0 || ends[1..].iter().any(|(end, _)| *end == cut) || cut == 64;
        assert_eq!(log.tails().is_empty(), is_whole, "{cut}");
    }
}

#[test]
fn processes_go_on_where_others_ended_and_a_rewrite_leaves_one_file() {
    let mut random = Random::seeded();
    let (mut files, mut expected) = (Files::new(), Vec::new());
    for process in 0..40 {
        let disk = MemoryDisk::with_contents(&files);
        let mut found = Vec::new();
        let mut log =
            RecordLog::open(disk.clone(), |record| found.push(record.to_vec())).expect("readable");
        assert_eq!(found, expected, "{process}");
        for _ in 0..random.below(5) {
            expected.push(record(&mut random));
            log.append(&expected[expected.len() - 1]).expect("written");
        }
        if random.one_in(3) {
            let before = disk.contents();
            let kept: Vec<_> = expected.iter().filter(|_| random.one_in(2)).cloned().collect();
            log.rewrite(kept.clone().into_iter()).expect("written");
            let after = disk.contents();
            assert_eq!(after.len(), 1);
            // A process that ends in between leaves the old files and a part of the new one.
            let (name, whole) = after.first_key_value().expect("a file");
            let mut both = before;
            both.insert(name.clone(), whole[..random.below(whole.len() + 1)].to_vec());
            let (_, found) = read(&both);
            assert_eq!(found[..expected.len()], expected);
            assert_eq!(found[expected.len()..], kept[..found.len() - expected.len()]);
            expected = kept;
        }
        files = disk.contents();
    }
}
