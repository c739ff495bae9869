use super::*;

#[track_caller]
fn check(nodes: &[u64]) {
    let read_set = ReadSet::new(nodes.len(), vec![B256::repeat_byte(3); nodes.len() % 3], 7);
    assert_eq!(read_set.listed(), None);
    let addresses = nodes.iter().map(|offset| NodeAddress::new(*offset)).collect();
    read_set.list(|| ReadNodes { addresses, bytes: None });
    assert_eq!(ReadSet::from_stored(&read_set.to_stored()).unwrap(), read_set);
}

#[test]
fn what_is_stored_is_read_back() {
    check(&[]);
    check(&[1]);
    check(&[0x7f, 0x80, 0x81, 0x3fff, 0x4000, 1 << 47, (1 << 48) - 1]);
    check(&(1..1000).map(|n: u64| n * n * 97).collect::<Vec<_>>());
}

#[test]
fn damage_is_an_error() {
    let read_set = ReadSet::new(1, Vec::new(), 1);
    let addresses = vec![NodeAddress::new((1 << 48) - 1)];
    read_set.list(|| ReadNodes { addresses, bytes: None });
    let stored = read_set.to_stored();
    for length in 0..stored.len() {
        ReadSet::from_stored(&stored[..length]).unwrap_err();
    }
    for at in 0..stored.len() {
        for bit in 0..8 {
            let mut damaged = stored.to_vec();
            damaged[at] ^= 1 << bit;
            let _ = ReadSet::from_stored(&damaged);
        }
    }
}
