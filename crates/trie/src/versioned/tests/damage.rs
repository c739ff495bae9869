//! Records that are not what was written.

use super::*;

/// Does everything that reads records. Whatever they hold, it returns.
fn use_all(records: &MemoryRecords, known: &Known, block: &Block) {
    let mut any_error = None;
    for address in known.flat.0.keys().chain(block.keys()) {
        let found = account(records, &known.version, address);
        if let Ok(Some((_, storage))) = &found {
            let slots = known.flat.0.get(address).into_iter().flat_map(|(_, slots)| slots.keys());
            for hashed_slot in slots {
                any_error = slot(records, storage, hashed_slot).err().or(any_error);
            }
        }
        any_error = found.err().or(any_error);
    }
    let mut sink = records.clone();
    let end = records.end();
    let swept =
        sweep(records, &known.version, end, &SweepCursor::default(), &mut |_| true, &mut sink);
    any_error = swept.err().or(any_error);
    any_error = finish(records, known, block).err().or(any_error);
    if let Some(error) = any_error {
        assert!(
            matches!(
                error,
                Error::Record(_) | Error::MalformedRecord { .. } | Error::MalformedValue { .. }
            ),
            "{error:?}"
        );
    }
}

fn finish(records: &MemoryRecords, known: &Known, block: &Block) -> Result<(), Error> {
    let mut trie = BlockTrie::new(records.clone(), known.version)?;
    for (address, access) in block {
        let shard = trie.shard_mut(address);
        shard.touch(address)?;
        for slot in &access.slots_read {
            shard.touch_slot(address, slot)?;
        }
        if let Some(change) = &access.change {
            shard.set_ahead(address, change.account, &change.storage)?;
            shard.hash_ahead(20)?;
        }
    }
    trie.finish(&changes(block), &run_serially)?;
    trie.write(&mut records.clone());
    Lister::default().list(records, &trie.witness_addresses())?;
    Ok(())
}

proptest! {
    #[test]
    fn damaged_records_are_errors_and_no_panics(
        first in scene(),
        second in scene(),
        third in scene(),
        damages in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..12
        ),
    ) {
        let mut world = World::default();
        let mut known = Known { version: Version::EMPTY, flat: Flat::default() };
        for scene in [&first, &second] {
            known = world.perform(&known, scene);
        }
        let addresses: Vec<_> = world.records.addresses(world.records.start()).collect();
        for (record, at, byte, kind) in damages.into_iter().filter(|_| !addresses.is_empty()) {
            let address = addresses[record.index(addresses.len())];
            let good = world.records.record(address).unwrap();
            let mut bad = good.to_vec();
            let at = at.index(bad.len());
            match kind {
                0 => bad.truncate(at),
                1 => bad[at] = byte,
                2 => bad[at.min(12)] ^= 1 << (byte % 8),
                _ => bad[at] ^= 1 << (byte % 8),
            }
            world.records.replace(address, &bad);
            use_all(&world.records, &known, &third.block);
            world.records.replace(address, &good);
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        for kind in 1..5 {
            let mut record = bytes.clone();
            if let Some(first) = record.first_mut() {
                *first = kind;
            }
            match record::parse(&record) {
                Ok(record::RecordNode::Branch(branch)) => {
                    let _ = branch.children();
                    for nibble in 0..16 {
                        let _ = branch.child(nibble);
                    }
                }
                _ => continue,
            }
        }
        let _ = record::parse_embedded(&bytes);
    }
}

#[test]
fn a_record_that_is_missing_is_an_error() {
    let records = MemoryRecords::default();
    let version = Version { root: B256::repeat_byte(1), address: NodeAddress::new(7) };
    let missing = Err(Error::Record(RecordError::Store("no record 7".to_owned())));
    assert_eq!(account(&records, &version, &B256::ZERO), missing);
    assert_eq!(BlockTrie::new(records, version).map(|_| None), missing);
}
