use super::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// The slow twin keeps every floor.
#[test]
fn floors_are_those_of_all_versions_that_are_kept() {
    let mut random = StdRng::seed_from_u64(testing::seed());
    for _ in 0..200 {
        let mut floors = Floors { first: 0, start: NodeAddress::new(0), added: BTreeMap::new() };
        let mut all: Vec<(u64, NodeAddress)> = Vec::new();
        for _ in 0..60 {
            let number = random.random_range(0..40);
            let floor = NodeAddress::new(random.random_range(0..8));
            if random.random_ratio(1, 4) {
                all.retain(|(at, _)| *at >= number);
                let expected = all.iter().fold(floor, |least, (_, floor)| least.min(*floor));
                assert_eq!(floors.cut(number, floor), expected);
            } else {
                all.push((number, floor));
                floors.add(number, &SweepState { floor, ..SweepState::default() });
            }
            assert!(floors.added.len() <= 8, "one for each floor, not for each number");
        }
    }
}
