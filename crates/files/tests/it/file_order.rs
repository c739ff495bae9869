//! Chain files are put in the order of their blocks, and the blocks between them that are missing
//! are found.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use deponent_files::{ChainFile, Error, Gap, gaps, in_order};
use execution::SealedBlock;

use super::block_files::gzip;
use super::era_files::era;
use super::era1_files::{Mined, era1, mined};
use super::ere_files::ere;
use super::rlp;
use testing::{Folder, Random};

/// A file of these blocks in one of the forms.
fn write(folder: &Folder, name: usize, form: usize, chain: &[Mined]) -> PathBuf {
    let blocks: Vec<SealedBlock> = chain.iter().map(|(block, ..)| block.clone()).collect();
    match form {
        0 => folder.write(&format!("{name}.rlp"), rlp(&blocks)),
        1 => folder.write(&format!("{name}.rlp.gz"), gzip(&rlp(&blocks))),
        2 => folder.write(&format!("{name}.era1"), era1(chain)),
        3 => folder.write(&format!("{name}.era1.gz"), gzip(&era1(chain))),
        4 => folder.write(&format!("{name}.ere.gz"), gzip(&ere(chain))),
        _ => folder.write(&format!("{name}.ere"), ere(chain)),
    }
}

/// The gaps of files on a chain that ends with block `reach`.
fn gaps_of(files: &[ChainFile], reach: u64) -> Vec<Gap> {
    gaps(files, reach, |_| Ok::<_, ()>(false)).expect("no error")
}

/// The plain twin: the numbers that no file has.
#[test]
fn the_gaps_of_random_files_are_the_numbers_in_none() {
    let mut random = Random::seeded();
    let chain = mined(0, 200);
    for _ in 0..60 {
        let (folder, reach) = (Folder::new(), random.below(20) as u64);
        let mut paths = Vec::new();
        let mut there: BTreeSet<u64> = (0..=reach).collect();
        for name in 0..1 + random.below(6) {
            let first = random.below(190);
            let last = (first + random.below(40)).min(199);
            there.extend(first as u64..=last as u64);
            paths.push(write(&folder, name, random.below(6), &chain[first..=last]));
        }
        let files = in_order(&paths).expect("in order");
        assert_eq!(files.len(), paths.len());
        assert!(files.is_sorted_by_key(|file| file.first_number));
        for file in &files {
            let block = &chain[file.first_number as usize].0;
            assert_eq!(
                (file.first_hash, file.parent_hash),
                (block.hash(), block.header.parent_hash)
            );
        }
        let found = gaps_of(&files, reach);
        let highest_first = files.last().expect("files").first_number;
        let missing: Vec<u64> = (0..highest_first).filter(|at| !there.contains(at)).collect();
        let named: Vec<u64> = found.iter().flat_map(|gap| gap.first..=gap.last).collect();
        assert_eq!(named, missing);
        for gap in found {
            let of = |path: &PathBuf| files.iter().find(|file| file.path == *path).expect("one");
            assert_eq!(of(&gap.after).first_number, gap.last + 1);
            let before = gap.before.as_ref().map_or(Some(reach), |path| of(path).last_number);
            assert_eq!(before, Some(gap.first - 1));
        }
    }
}

#[test]
fn a_folder_stands_for_the_chain_files_in_it() {
    let folder = Folder::new();
    let chain = mined(0, 30);
    fs::create_dir(folder.path("parts")).expect("made");
    fs::create_dir(folder.path("parts/more.rlp")).expect("made");
    fs::write(folder.path("parts/checksums.txt"), "0x00").expect("written");
    fs::write(folder.path("parts/1.era1.partial"), "unfinished").expect("written");
    let later = write(&folder, 9, 0, &chain[20..]);
    for (name, form, range) in [(2, 5, 10..20), (1, 2, 0..10), (3, 1, 5..15)] {
        let path = write(&folder, name, form, &chain[range]);
        fs::rename(&path, folder.path("parts").join(path.file_name().expect("a name")))
            .expect("renamed");
    }
    let files = in_order(&[later, folder.path("parts")]).expect("in order");
    let names = files.iter().map(|file| file.path.file_name().expect("one").to_str());
    let names: Vec<_> = names.map(|name| name.expect("UTF-8")).collect();
    assert_eq!(names, ["1.era1", "3.rlp.gz", "2.ere", "9.rlp"]);
    assert!(gaps_of(&files, 0).is_empty());
    let first = files.into_iter().next().expect("one");
    assert_eq!(first.read().expect("it opens").count(), 10);

    fs::create_dir(folder.path("none")).expect("made");
    let error = in_order(&[folder.path("none")]).expect_err("refused").to_string();
    assert!(error.contains("no chain file in this folder"), "{error}");
    let error = in_order(&[folder.path("absent")]).expect_err("refused");
    assert!(!error.is_content(), "{error}");
}

/// A file that goes on from a block of the chain beside the head has no gap before it.
#[test]
fn a_file_on_a_known_block_has_no_gap_before_it() {
    let folder = Folder::new();
    let chain = mined(0, 30);
    let paths = [write(&folder, 1, 0, &chain[10..12]), write(&folder, 2, 5, &chain[20..])];
    let files = in_order(&paths).expect("in order");
    let parent = chain[19].0.hash();
    let found = gaps(&files, 3, |file| Ok::<_, Error>(file.parent_hash == parent));
    let gap = Gap { first: 4, last: 9, before: None, after: paths[0].clone() };
    assert_eq!(found.expect("no error"), [gap]);
}

#[test]
fn beacon_blocks_are_counted_by_their_payloads() {
    let folder = Folder::new();
    let (bytes, _) = era(12);
    let later = write(&folder, 1, 0, &mined(0, 20)[15..]);
    let files = in_order(&[later, folder.write("any.era", bytes)]).expect("in order");
    assert_eq!((files[0].first_number, files[0].last_number), (1, Some(12)));
    let [gap] = &gaps_of(&files, 0)[..] else { panic!("one") };
    assert_eq!((gap.first, gap.last), (13, 14));
}

#[test]
fn a_file_that_is_broken_is_found_out_beforehand() {
    let folder = Folder::new();
    let chain = mined(0, 30);
    let last = write(&folder, 9, 0, &chain[20..]);
    let refused = |path: PathBuf, words: &str| {
        let error = in_order(&[path, last.clone()]).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    for (name, bytes) in [("any.era1", era1(&chain[..9])), ("any.ere", ere(&chain[..9]))] {
        for count in [0, 8193, u64::MAX] {
            let end = bytes.len() - 8;
            let wrong = [&bytes[..end], &count.to_le_bytes()].concat();
            refused(folder.write(name, wrong), &format!("it counts {count} blocks"));
        }
        let cut = folder.write(name, &bytes[..bytes.len() - 500]);
        refused(cut, "its end is not that of an index");
    }
    let blocks: Vec<SealedBlock> = chain[..9].iter().map(|(block, ..)| block.clone()).collect();
    let bytes = rlp(&blocks);
    refused(folder.write("any.rlp", &bytes[..bytes.len() - 1]), "block 9 of the file");
    refused(folder.write("any.rlp", b""), "this one is empty");
}
