//! Codes that a client holds already: it is sent each of them once a connection.
//!
//! A client that keeps every code that it is sent on a connection says so with the header
//! [`CODES`], whatever its value, when it asks for a witness. Codes are numbered as they are sent,
//! from 0. The answer has those that the client has not been sent yet, and the numbers of the
//! others: `{ answer: PayloadStatusWithWitness, held_codes: List[uint32] }`. Its header says which
//! number the first of its codes has; where that is 0, the client forgets all that it held.
//!
//! So the two sides need not agree on sets or their digests: both number the codes that went over
//! the wire, and a connection that ends takes the numbers with it.

use std::sync::{Arc, Mutex};

use alloy_primitives::Bytes;
use alloy_primitives::map::{B256Map, Entry};
use engine::Assembled;
use rpc::rest::{HeaderName, HeaderValue, Request};
use witness::Witness;

use super::body::WitnessBody;
use crate::limits::HELD_CODES;

/// Asks for the codes that are not held alone, and says where their numbers begin.
pub(super) const CODES: HeaderName = HeaderName::from_static(engine_api::headers::CODES);

/// The numbers of the codes that were sent on a connection.
#[derive(Clone, Debug, Default)]
struct SentCodes(Arc<Mutex<B256Map<u32>>>);

/// Which codes of a witness its client is sent.
#[derive(Debug)]
pub(super) struct UnheldCodes {
    /// Those that it does not hold.
    codes: Vec<Bytes>,
    /// The number of the first of them.
    first: u32,
    /// The numbers of the others.
    held: Vec<u32>,
}

/// Leaves out what the client holds, if it asks for that. What is in the witness counts as sent.
pub(super) fn unheld(request: &Request, assembled: &Assembled) -> Option<UnheldCodes> {
    if !request.headers.contains_key(CODES) {
        return None;
    }
    let sent = request.connection.with(|sent: &mut SentCodes| sent.clone());
    let mut numbers = sent.0.lock().expect("nothing panics while it is held");
    Some(leave_out(&mut numbers, assembled, HELD_CODES))
}

/// Forgets what was sent, when it turns out not to be.
pub(super) fn forget(request: &Request) {
    request.connection.with(|sent: &mut SentCodes| *sent = SentCodes::default());
}

fn leave_out(numbers: &mut B256Map<u32>, assembled: &Assembled, most: usize) -> UnheldCodes {
    let Assembled { witness, code_hashes } = assembled;
    let new = code_hashes.iter().filter(|hash| !numbers.contains_key(*hash)).count();
    if numbers.len() + new > most {
        numbers.clear();
    }
    let first = numbers.len() as u32;
    let (mut codes, mut held) = (Vec::new(), Vec::new());
    for (code, hash) in witness.codes.iter().zip(code_hashes.iter()) {
        let next = numbers.len() as u32;
        match numbers.entry(*hash) {
            Entry::Occupied(number) => held.push(*number.get()),
            Entry::Vacant(entry) => {
                entry.insert(next);
                codes.push(code.clone());
            }
        }
    }
    UnheldCodes { codes, first, held }
}

impl UnheldCodes {
    /// The value of [`CODES`] in the answer.
    pub(super) fn header(&self) -> HeaderValue {
        self.first.into()
    }

    /// The witness with the codes that are sent, and the numbers of the others behind it.
    pub(super) fn witness_body(self, witness: Arc<Witness>) -> WitnessBody {
        let held = self.held.iter().flat_map(|number| number.to_le_bytes()).collect();
        WitnessBody::in_part(witness, self.codes, held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;
    use proptest::prelude::*;

    fn assembled(codes: &[u16]) -> Assembled {
        let mut codes: Vec<_> = codes.iter().map(|code| Bytes::from(code.to_be_bytes())).collect();
        codes.sort_unstable();
        codes.dedup();
        let code_hashes = codes.iter().map(keccak256).collect();
        let state = vec![Bytes::from_static(b"node")];
        let witness =
            Witness { state: state.into(), codes, headers: vec![Bytes::from_static(b"header")] };
        Assembled { witness: witness.into(), code_hashes }
    }

    proptest! {
        /// A client that does as the module says has every witness whole.
        #[test]
        fn what_is_left_out_is_what_the_client_holds(
            blocks in prop::collection::vec(prop::collection::vec(0..60_u16, 0..20), 1..20),
            most in 20..60_usize,
        ) {
            let (mut numbers, mut table) = (B256Map::default(), Vec::new());
            for codes in &blocks {
                let assembled = assembled(codes);
                let UnheldCodes { codes, first, held } = leave_out(&mut numbers, &assembled, most);
                if first == 0 {
                    table.clear();
                }
                prop_assert_eq!(first as usize, table.len());
                table.extend(codes.iter().cloned());
                prop_assert!(table.len() <= most);
                let held = held.iter().map(|number| table[*number as usize].clone());
                let mut codes: Vec<_> = codes.into_iter().chain(held).collect();
                codes.sort_unstable();
                prop_assert_eq!(&codes, &assembled.witness.codes);
            }
        }
    }

    #[test]
    fn a_code_is_sent_once() {
        let mut numbers = B256Map::default();
        let first = leave_out(&mut numbers, &assembled(&[1, 2, 3]), 10);
        assert_eq!((first.codes.len(), first.first, &first.held[..]), (3, 0, &[][..]));
        let all = assembled(&[2, 3, 4]);
        let again = leave_out(&mut numbers, &all, 10);
        assert_eq!(again.codes, [Bytes::from(4_u16.to_be_bytes())]);
        assert_eq!((again.first, &again.held[..]), (3, &[1, 2][..]));
        let body = again.witness_body(all.witness).body_with(b"VALID", &[]).unwrap();
        assert!(body.to_vec().ends_with(b"header\x01\0\0\0\x02\0\0\0"));
    }
}
