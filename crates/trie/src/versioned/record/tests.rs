use super::*;

#[test]
fn a_branch_knows_its_children() {
    let hash = |byte| [&[HASH_HEADER][..], &[byte; 32]].concat();
    let embedded = [0xc2, 0x20, 0x05];
    let mut items = vec![vec![NO_CHILD]; 17];
    (items[3], items[7], items[15]) = (hash(3), embedded.to_vec(), hash(15));
    let payload = items.concat();
    let mut children = [NodeAddress::NONE; 16];
    (children[3], children[15]) = (NodeAddress::new(33), NodeAddress::new(1515));
    let mut record = Vec::new();
    begin_branch(&mut record, &children);
    record.extend([0xf8, payload.len() as u8]);
    record.extend(&payload);
    let expected_len = record.len();
    record.extend([0xee; 40]);

    let Ok(RecordNode::Branch(branch)) = parse(&record) else { panic!("it is a branch") };
    assert_eq!(branch.start + branch.rlp.len(), expected_len);
    assert_eq!(branch.children(), Ok(1 << 3 | 1 << 7 | 1 << 15));
    for nibble in 0..16 {
        let expected = match nibble {
            3 => RecordChild::Record { address: NodeAddress::new(33), hash: &[3; 32] },
            7 => RecordChild::Embedded(&embedded),
            15 => RecordChild::Record { address: NodeAddress::new(1515), hash: &[15; 32] },
            _ => RecordChild::Empty,
        };
        assert_eq!(branch.child(nibble), Ok(expected));
    }
}

#[test]
fn records_are_laid_out_as_documented() {
    let address = NodeAddress::new(0x0102_0304_0506);
    let mut record = Vec::new();
    begin_extension(&mut record, address);
    assert_eq!(record, [2, 6, 5, 4, 3, 2, 1]);
    begin_account_leaf(&mut record, address);
    assert_eq!(record, [4, 6, 5, 4, 3, 2, 1]);
    begin_slot_leaf(&mut record);
    assert_eq!(record, [3]);
    let mut children = [NodeAddress::NONE; 16];
    (children[0], children[9]) = (address, NodeAddress::new(1));
    begin_branch(&mut record, &children);
    assert_eq!(record, [1, 0x01, 0x02, 6, 5, 4, 3, 2, 1, 1, 0, 0, 0, 0, 0]);
}
