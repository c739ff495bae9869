//! Witnesses for the tests of the encodings: random ones, and the vectors that other encoders made.

use crate::limits::COPIED_ITEM_BYTES;
use crate::{DecodeError, Items, Witness};
use alloy_primitives::Bytes;
use alloy_rlp::Header;
use proptest::prelude::*;
use serde::Deserialize;

/// One encoding, both ways.
pub(crate) struct Format {
    pub(crate) encode: fn(&Witness) -> Vec<u8>,
    pub(crate) decode: fn(&Bytes) -> Result<Witness, DecodeError>,
}

impl Format {
    pub(crate) fn check_round_trip(&self, witness: &Witness) {
        let encoded = Bytes::from((self.encode)(witness));
        assert_eq!((self.decode)(&encoded).as_ref(), Ok(witness));
    }

    /// No beginning of an encoding is an encoding.
    pub(crate) fn check_truncations(&self, witness: &Witness) {
        let encoded = Bytes::from((self.encode)(witness));
        for end in 0..encoded.len() {
            let decoded = (self.decode)(&encoded.slice(..end));
            assert!(decoded.is_err(), "{end} of {} bytes give {decoded:?}", encoded.len());
        }
    }

    /// Whatever the bytes are, the decoder answers; what it accepts is a witness like any other.
    pub(crate) fn check_noise(&self, bytes: Vec<u8>) {
        if let Ok(witness) = (self.decode)(&bytes.into()) {
            self.check_round_trip(&witness);
        }
    }

    pub(crate) fn check_mutation(&self, witness: &Witness, mutation: &Mutation) {
        self.check_noise(mutation.apply((self.encode)(witness)));
    }
}

/// Something that happens to bytes on their way.
#[derive(Debug, Clone)]
pub(crate) enum Mutation {
    Set(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, u8),
    Swap(prop::sample::Index, prop::sample::Index),
}

impl Mutation {
    pub(crate) fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let length = bytes.len();
        match self {
            Self::Set(at, value) => bytes[at.index(length)] = *value,
            Self::Remove(at) => drop(bytes.remove(at.index(length))),
            Self::Insert(at, value) => bytes.insert(at.index(length + 1), *value),
            Self::Swap(one, other) => bytes.swap(one.index(length), other.index(length)),
        }
        bytes
    }
}

pub(crate) fn any_mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        any::<(prop::sample::Index, u8)>().prop_map(|(at, value)| Mutation::Set(at, value)),
        any::<prop::sample::Index>().prop_map(Mutation::Remove),
        any::<(prop::sample::Index, u8)>().prop_map(|(at, value)| Mutation::Insert(at, value)),
        any::<(prop::sample::Index, prop::sample::Index)>()
            .prop_map(|(one, other)| Mutation::Swap(one, other)),
    ]
}

/// Content of any length, often one at which an encoding changes its form.
fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 0..=2),
        1 => prop::collection::vec(any::<u8>(), 54..=57),
        1 => prop::collection::vec(any::<u8>(), 254..=257),
        1 => prop::collection::vec(any::<u8>(), 0..100),
    ]
}

fn items() -> impl Strategy<Value = Vec<Bytes>> {
    prop::collection::vec(content().prop_map(Bytes::from), 0..6)
}

/// An RLP list with this payload, which is all that the encodings know of a header.
pub(crate) fn list(payload: &[u8]) -> Vec<u8> {
    let mut rlp = Vec::new();
    Header { list: true, payload_length: payload.len() }.encode(&mut rlp);
    rlp.extend_from_slice(payload);
    rlp
}

pub(crate) fn any_witness() -> impl Strategy<Value = Witness> {
    let headers = prop::collection::vec(content().prop_map(|c| list(&c).into()), 0..4);
    (items(), items(), headers).prop_map(|(state, codes, headers)| Witness {
        state: state.into(),
        codes,
        headers,
    })
}

/// A witness as another encoder wrote it: hex, but for `json`.
#[derive(Deserialize)]
pub(crate) struct Vector {
    state: Vec<String>,
    codes: Vec<String>,
    headers: Vec<String>,
    rlp: String,
    ssz: String,
    pub(crate) json: String,
}

impl Vector {
    pub(crate) fn witness(&self) -> Witness {
        let items = |texts: &[String]| texts.iter().map(|text| unhex(text)).collect::<Vec<_>>();
        let Self { state, codes, headers, .. } = self;
        Witness { state: items(state).into(), codes: items(codes), headers: items(headers) }
    }

    pub(crate) fn rlp(&self) -> Bytes {
        unhex(&self.rlp)
    }

    pub(crate) fn ssz(&self) -> Bytes {
        unhex(&self.ssz)
    }
}

fn unhex(text: &str) -> Bytes {
    const_hex::decode(text).expect("hex").into()
}

/// The files of `vectors/witness`.
pub(crate) fn vectors() -> Vec<Vector> {
    let files = [
        include_str!("../../../vectors/witness/empty.json"),
        include_str!("../../../vectors/witness/small.json"),
        include_str!("../../../vectors/witness/boundaries.json"),
    ];
    files.map(|file| serde_json::from_str(file).expect("a vector")).into()
}

/// A witness of a few short items, for tests that go through every byte of an encoding.
pub(crate) fn small() -> Witness {
    Witness {
        state: vec![Bytes::from_static(&[7; 60]), Bytes::from_static(&[8; 33])].into(),
        codes: vec![Bytes::from_static(&[0]), Bytes::from_static(&[0x60, 1, 0x50])],
        headers: vec![list(&[1, 2, 3]).into(), list(&[0x11; 70]).into()],
    }
}

/// Asserts that the slices handed to a sink are the items themselves, in this order, with nothing
/// but framing around them.
pub(crate) fn check_uncopied<'a>(
    items: impl IntoIterator<Item = &'a [u8]>,
    write: impl FnOnce(&mut dyn FnMut(&[u8])),
) {
    let mut slices = Vec::new();
    write(&mut |slice| slices.push((slice.as_ptr(), slice.len())));
    let mut slices = slices.into_iter();
    for item in items {
        let this = (item.as_ptr(), item.len());
        assert!(slices.any(|slice| slice == this), "an item of {} bytes was copied", item.len());
    }
}

/// Asserts that a decoded item is a slice of the input.
pub(crate) fn check_borrowed(witness: &Witness, input: &Bytes) {
    let whole = input.as_ptr_range();
    for item in witness.lists().into_iter().flat_map(Items::iter) {
        assert!(item.is_empty() || whole.contains(&item.as_ptr()), "an item was copied");
    }
}

/// The parts are `encoded`, and every large item is one of them, where it lies.
pub(crate) fn check_parts(witness: &Witness, parts: Vec<Bytes>, encoded: Vec<u8>) {
    assert_eq!(parts.concat(), encoded);
    assert!(parts.iter().all(|part| !part.is_empty()));
    let items = witness.lists().into_iter().flat_map(Items::iter);
    for item in items.filter(|item| item.len() >= COPIED_ITEM_BYTES) {
        let is_item = |part: &Bytes| part.as_ptr() == item.as_ptr() && part.len() == item.len();
        assert!(parts.iter().any(is_item), "an item was copied");
    }
}
