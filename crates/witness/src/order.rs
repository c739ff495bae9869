//! The order of headers, which tools write in either direction.

use alloy_primitives::B256;
use alloy_primitives::keccak256;

use crate::Witness;
use crate::index::Links;

/// The order in which the headers of a witness were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderOrder {
    /// By ascending number, each once: the canonical order.
    Ascending,
    /// By descending number, each once, as geth has them.
    Descending,
    /// Another, or some more than once.
    Mixed,
}

impl Witness {
    /// Puts `headers` into canonical order, by ascending number and each once, and says which order
    /// they were in. Where one of them cannot be read, all stay as they are:
    /// [`WitnessIndex::new`](crate::WitnessIndex::new) says why, and checks that they are a chain.
    pub fn sort_headers(&mut self) -> HeaderOrder {
        let read = |rlp| Some((Links::decode(rlp).ok()?.number, keccak256(rlp)));
        let Some(keys) = self.headers.iter().map(|rlp| read(rlp)).collect::<Option<Vec<_>>>()
        else {
            return HeaderOrder::Ascending;
        };
        let is_sorted = |by: fn(&(u64, B256), &(u64, B256)) -> bool| keys.is_sorted_by(by);
        if is_sorted(|one, next| one.0 < next.0) {
            return HeaderOrder::Ascending;
        }
        let is_descending = is_sorted(|one, next| one.0 > next.0);
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|at| keys[*at]);
        order.dedup_by_key(|at| keys[*at]);
        self.headers = order.into_iter().map(|at| self.headers[at].clone()).collect();
        if is_descending { HeaderOrder::Descending } else { HeaderOrder::Mixed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_consensus::Header;
    use alloy_primitives::Bytes;

    fn header(number: u64) -> Bytes {
        alloy_rlp::encode(Header { number, ..Default::default() }).into()
    }

    #[test]
    fn headers_are_sorted_from_any_order() {
        let check = |numbers: &[u64], expected: HeaderOrder| {
            let headers = numbers.iter().map(|number| header(*number)).collect();
            let mut witness = Witness { headers, ..Witness::default() };
            assert_eq!(witness.sort_headers(), expected, "{numbers:?}");
            let mut sorted = numbers.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            let sorted: Vec<_> = sorted.into_iter().map(header).collect();
            assert_eq!(witness.headers, sorted, "{numbers:?}");
            assert_eq!(witness.sort_headers(), HeaderOrder::Ascending);
        };
        check(&[], HeaderOrder::Ascending);
        check(&[7], HeaderOrder::Ascending);
        check(&[7, 8, 300], HeaderOrder::Ascending);
        check(&[300, 8, 7], HeaderOrder::Descending);
        check(&[8, 300, 7], HeaderOrder::Mixed);
        check(&[7, 7], HeaderOrder::Mixed);
        check(&[8, 8, 7], HeaderOrder::Mixed);
    }

    #[test]
    fn what_is_no_header_stays_where_it_is() {
        let headers = vec![header(2), Bytes::from_static(b"\xc0"), header(1)];
        let mut witness = Witness { headers: headers.clone(), ..Witness::default() };
        assert_eq!(witness.sort_headers(), HeaderOrder::Ascending);
        assert_eq!(witness.headers, headers);
    }
}
