//! The order of clients that are measured one after the other.

/// The client, among `count`, whose turn is the `place`-th of this round.
///
/// Each has each place, and each comes before each other as often as behind it: the order is turned
/// by one from round to round, and goes the other way round in every second `count` of them.
pub(crate) const fn whose(round: usize, place: usize, count: usize) -> usize {
    let is_backwards = (round / count) % 2 == 1;
    let place = if is_backwards { count - 1 - place } else { place };
    (round + place) % count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_before_each_other_as_often_as_behind_it() {
        for count in 1..6 {
            let mut places = vec![vec![0; count]; count];
            let mut before = vec![vec![0; count]; count];
            for round in 0..2 * count {
                let order: Vec<_> = (0..count).map(|place| whose(round, place, count)).collect();
                for (place, client) in order.iter().enumerate() {
                    places[*client][place] += 1;
                    for later in &order[place + 1..] {
                        before[*client][*later] += 1;
                    }
                }
            }
            assert_eq!(places, vec![vec![2; count]; count]);
            for (a, b) in (0..count).flat_map(|a| (0..a).map(move |b| (a, b))) {
                assert_eq!((before[a][b], before[b][a]), (count, count), "{a} and {b} of {count}");
            }
        }
    }
}
