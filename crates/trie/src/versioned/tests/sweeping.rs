//! Sweeps between blocks.

use super::*;

proptest! {
    #[test]
    fn a_swept_version_is_the_same_in_new_places(
        scenes in prop::collection::vec((scene(), 0..2_000u64), 1..8)
    ) {
        let mut world = World::default();
        let mut known = Known { version: Version::EMPTY, flat: Flat::default() };
        let (mut below, mut cursor) = (world.records.end(), SweepCursor::default());
        for (scene, budget) in &scenes {
            known = world.perform(&known, scene);
            for _ in 0..2 {
                let next = slice(&mut world, &mut known, below, &cursor, *budget);
                cursor = next.unwrap_or_default();
                if next.is_none() {
                    below = world.records.end();
                }
            }
        }
        // Two whole cycles of small slices.
        for _ in 0..2 {
            while let Some(next) = slice(&mut world, &mut known, below, &cursor, 300) {
                assert!(next > cursor);
                cursor = next;
            }
            cursor = SweepCursor::default();
            below = world.records.end();
        }
    }

    #[test]
    fn a_sweep_without_bound_is_a_whole_cycle(scenes in prop::collection::vec(scene(), 1..4)) {
        let mut world = World::default();
        let mut known = Known { version: Version::EMPTY, flat: Flat::default() };
        for scene in &scenes {
            known = world.perform(&known, scene);
        }
        let below = world.records.end();
        let next = slice(&mut world, &mut known, below, &SweepCursor::default(), u64::MAX);
        assert_eq!(next, None);
        // A node that is above the bound is not copied again.
        let end = world.records.end();
        slice(&mut world, &mut known, below, &SweepCursor::default(), u64::MAX);
        assert_eq!(world.records.end(), end);
    }
}

/// Sweeps a part of the version, and checks it.
fn slice(
    world: &mut World,
    known: &mut Known,
    below: NodeAddress,
    cursor: &SweepCursor,
    budget: u64,
) -> Option<SweepCursor> {
    let (records, mut sink) = (&world.records, world.records.clone());
    let go_on = &mut |walked| walked < budget;
    let swept = sweep(records, &known.version, below, cursor, go_on, &mut sink);
    let (version, next) = swept.unwrap();
    assert_eq!(version.root, known.version.root);
    known.version = version;
    world.check(known);
    if next.is_none() {
        let lowest = check_nodes(&world.records, &version, true);
        assert!(lowest.is_none_or(|lowest| lowest >= below));
    }
    next
}
