//! Witnesses of given items, encoded in the slow and obvious way: what decoders are tested with,
//! and what the null server sends.

/// Headers, codes and nodes.
pub(super) type Items = [Vec<Vec<u8>>; 3];

fn rlp_head(short: u8, len: usize) -> Vec<u8> {
    if len < 56 {
        return vec![short + len as u8];
    }
    let digits: Vec<u8> = len.to_be_bytes().into_iter().skip_while(|d| *d == 0).collect();
    [vec![short + 55 + digits.len() as u8], digits].concat()
}

pub(super) fn rlp_string(bytes: &[u8]) -> Vec<u8> {
    match bytes {
        [byte] if *byte < 0x80 => vec![*byte],
        _ => [rlp_head(0x80, bytes.len()), bytes.to_vec()].concat(),
    }
}

pub(super) fn rlp_list(content: &[u8]) -> Vec<u8> {
    [rlp_head(0xc0, content.len()), content.to_vec()].concat()
}

/// `[headers, codes, state]`, with an empty list of keys behind them or without.
pub(super) fn as_rlp(items: &Items, with_keys: bool) -> Vec<u8> {
    let [headers, codes, state] = items;
    let strings = |items: &[Vec<u8>]| {
        rlp_list(&items.iter().flat_map(|item| rlp_string(item)).collect::<Vec<u8>>())
    };
    let mut lists = [rlp_list(&headers.concat()), strings(codes), strings(state)].concat();
    lists.extend(with_keys.then_some(0xc0));
    rlp_list(&lists)
}

pub(super) fn ssz_variable(parts: &[Vec<u8>]) -> Vec<u8> {
    let (mut offsets, mut at) = (Vec::new(), parts.len() * 4);
    for part in parts {
        offsets.extend((at as u32).to_le_bytes());
        at += part.len();
    }
    [offsets, parts.concat()].concat()
}

/// A `PayloadStatusWithWitness` that is `VALID`, with public keys or without.
pub(super) fn as_ssz(items: &Items, with_keys: bool) -> Vec<u8> {
    let [headers, codes, state] = items;
    let lists = [state, codes, headers].map(|list| ssz_variable(list));
    let mut status = vec![0, 9, 0, 0, 0, 41, 0, 0, 0];
    status.extend([7; 32]);
    let witness = ssz_variable(&[ssz_variable(&lists)]);
    let mut fields = vec![status, witness];
    fields.extend(with_keys.then(|| vec![4; 65 * 3]));
    ssz_variable(&fields)
}
