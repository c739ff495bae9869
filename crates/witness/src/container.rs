//! SSZ serialisation for containers of one's own: strict reading, plain writing.
//!
//! A [`Layout`] splits a container into its fixed-size part, read through [`Fixed`], and its
//! variable-size fields; [`Offsets`] writes the offsets. `read_*` and `write_*` are for lists:
//! those of fixed-size [`Item`]s and those of byte strings.
//!
//! ```
//! use alloy_primitives::Bytes;
//! use deponent_witness::container::{Layout, Offsets, UNLIMITED, read_byte_lists,
//! write_byte_lists};
//!
//! // { number: uint64, names: List[ByteList] }
//! const LAYOUT: Layout<1> =
//!     Layout { name: "example", fixed_bytes: 12, variable: [("names", 8)] };
//!
//! let names = vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")];
//! let mut out = 7_u64.to_le_bytes().to_vec();
//! Offsets::behind(LAYOUT.fixed_bytes).write(0, &mut out);
//! write_byte_lists(&names, &mut out);
//!
//! let input = Bytes::from(out);
//! let (mut fixed, [list]) = LAYOUT.split(&input)?;
//! assert_eq!(fixed.u64(), 7);
//! assert_eq!(fixed.behind_offset(read_byte_lists("names", &list, UNLIMITED)?), names);
//! LAYOUT.split(&input.slice(..11)).expect_err("cut");
//! # Ok::<(), deponent_witness::container::SszError>(())
//! ```
//!
//! Rules of consensus-specs `ssz/simple-serialize.md` at a08d8a6e. Reading accepts exactly the
//! bytes that writing makes: no gaps between parts, no bytes left over.

use crate::{Items, NodeList, Witness};
use alloy_primitives::Bytes;
use std::ops::Range;

mod items;

const OFFSET_BYTES: usize = 4;

/// The reason why bytes are not a value of the schema, or why a value has no encoding in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SszError {
    /// The field that was being read or written.
    pub field: &'static str,
    /// The problem with it.
    pub problem: SszProblem,
}

/// The problem of an [`SszError`]. All counts are in bytes unless they say items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SszProblem {
    /// A fixed-size value, or the fixed-size part of one, of another length.
    #[error("{got} bytes where {expected} are due")]
    Length {
        /// Bytes found.
        got: usize,
        /// Bytes the schema has.
        expected: usize,
    },
    /// The first offset does not point right behind the fixed-size part.
    #[error("the first offset is {got}, not {expected}")]
    FirstOffset {
        /// Offset found.
        got: usize,
        /// Length of the fixed-size part.
        expected: usize,
    },
    /// A list of offsets that cannot be one: empty, cut inside an offset, or longer than the list.
    #[error("{offsets_bytes} bytes of offsets in a list of {got} bytes")]
    Offsets {
        /// Length of the list of offsets, by its first offset.
        offsets_bytes: usize,
        /// Length of the whole list.
        got: usize,
    },
    /// A part that ends before it starts or behind the end of what it is part of.
    #[error("from {start} to {end} in {got} bytes")]
    Extent {
        /// Where the part starts.
        start: usize,
        /// Where the part ends: the start of the next one.
        end: usize,
        /// Length of what it is part of.
        got: usize,
    },
    /// A list of fixed-size items with a piece of an item at its end.
    #[error("{got} bytes are not a multiple of {item_bytes}")]
    Multiple {
        /// Length of the list.
        got: usize,
        /// Length of an item.
        item_bytes: usize,
    },
    /// More items than the schema allows.
    #[error("{got} items, over the limit of {limit}")]
    TooManyItems {
        /// Items found.
        got: usize,
        /// Items allowed.
        limit: usize,
    },
    /// More bytes than the schema, or a 32-bit offset, allows.
    #[error("{got} bytes, over the limit of {limit}")]
    TooLong {
        /// Bytes found.
        got: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// A schema id that is none of those that are read here.
    #[error("there is no schema {0:#06x}")]
    Schema(u16),
    /// A boolean that is neither 0 nor 1.
    #[error("{0} is not a boolean")]
    Boolean(u8),
    /// A byte that stands for none of the values of its type.
    #[error("{0} is none of its values")]
    Value(u8),
    /// A field of the schema for which there is no value.
    #[error("missing")]
    Missing,
    /// Text that is not UTF-8.
    #[error("not UTF-8")]
    Text,
    /// An EIP-7685 request without content.
    #[error("a request without content")]
    EmptyRequest,
    /// An EIP-7685 request type that is unknown, or not above the one before it.
    #[error("request type {0} is unknown or out of order")]
    RequestType(u8),
}

impl SszProblem {
    /// This problem, found in `field`.
    pub fn at(self, field: &'static str) -> SszError {
        SszError { field, problem: self }
    }
}

/// The positions of the offsets of a container's variable-size fields.
#[derive(Debug)]
pub struct Layout<const N: usize> {
    /// Name of the container.
    pub name: &'static str,
    /// Bytes of the fixed-size part, offsets included.
    pub fixed_bytes: usize,
    /// Each variable-size field and the place of its offset in the fixed-size part.
    pub variable: [(&'static str, usize); N],
}

impl<const N: usize> Layout<N> {
    /// Splits a container into its fixed-size part and its variable-size fields.
    ///
    /// # Errors
    /// When `input` is shorter than the fixed-size part, the first offset does not point right
    /// behind that part, or offsets do not ascend or point behind the end.
    pub fn split<'a>(&self, input: &'a Bytes) -> Result<(Fixed<'a>, [Bytes; N]), SszError> {
        let Some(fixed) = input.get(..self.fixed_bytes) else {
            let problem = SszProblem::Length { got: input.len(), expected: self.fixed_bytes };
            return Err(problem.at(self.name));
        };
        let starts = self.variable.map(|(_, place)| offset_at(fixed, place));
        if let Some(&got) = starts.first().filter(|&&first| first != self.fixed_bytes) {
            return Err(SszProblem::FirstOffset { got, expected: self.fixed_bytes }.at(self.name));
        }
        let mut fields = [const { Bytes::new() }; N];
        for (index, (field, _)) in self.variable.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(input.len());
            fields[index] = part(field, input, starts[index], end)?;
        }
        Ok((Fixed(fixed), fields))
    }

    /// As [`split`](Self::split), with empty fields behind those of this layout: for containers
    /// that later forks append to.
    ///
    /// # Errors
    /// As [`split`](Self::split).
    pub fn split_to<'a, const M: usize>(
        &self,
        input: &'a Bytes,
    ) -> Result<(Fixed<'a>, [Bytes; M]), SszError> {
        const { assert!(N <= M, "no field is dropped") };
        let (fixed, fields) = self.split(input)?;
        let mut padded = [const { Bytes::new() }; M];
        padded[..N].clone_from_slice(&fields);
        Ok((fixed, padded))
    }
}

/// The part of a fixed-size value that has not been read yet.
///
/// Its length was checked before the first read, so reads within the layout cannot fail.
#[derive(Debug)]
pub struct Fixed<'a>(&'a [u8]);

impl<'a> Fixed<'a> {
    /// A fixed-size value of `expected` bytes.
    ///
    /// # Errors
    /// When `input` has another length.
    pub fn exact(field: &'static str, input: &'a [u8], expected: usize) -> Result<Self, SszError> {
        match input.len() {
            got if got == expected => Ok(Self(input)),
            got => Err(SszProblem::Length { got, expected }.at(field)),
        }
    }

    /// The next `N` bytes, as any type that is made of them.
    ///
    /// # Panics
    /// When fewer bytes are left: the layout has fewer than its reader takes.
    pub fn bytes<const N: usize, T: From<[u8; N]>>(&mut self) -> T {
        let (value, rest) = self.0.split_first_chunk().expect("the layout has this many bytes");
        self.0 = rest;
        T::from(*value)
    }

    /// The next 8 bytes, a little-endian number.
    ///
    /// # Panics
    /// As [`bytes`](Self::bytes).
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// The next byte, a boolean.
    ///
    /// # Errors
    /// When the byte is neither 0 nor 1.
    ///
    /// # Panics
    /// As [`bytes`](Self::bytes).
    pub fn boolean(&mut self, field: &'static str) -> Result<bool, SszError> {
        match self.bytes::<1, [u8; 1]>() {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(SszProblem::Boolean(other).at(field)),
        }
    }

    /// Steps over the offset of `value`, which [`Layout::split`] has followed.
    pub fn behind_offset<T>(&mut self, value: T) -> T {
        let _: [u8; OFFSET_BYTES] = self.bytes();
        value
    }
}

/// A value of fixed size: a container of byte vectors and little-endian numbers.
pub trait Item: Sized {
    /// Bytes of each field, in order.
    const FIELDS_BYTES: &'static [usize];

    /// Bytes of the value.
    const BYTES: usize = {
        let (mut sum, mut index) = (0, 0);
        while index < Self::FIELDS_BYTES.len() {
            sum += Self::FIELDS_BYTES[index];
            index += 1;
        }
        sum
    };

    /// Reads the value; `fixed` has at least [`Self::BYTES`] left.
    fn read(fixed: &mut Fixed<'_>) -> Self;

    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);
}

/// Reads an `Optional[T]` of a fixed-size value.
///
/// # Errors
/// When `input` is neither empty nor one value.
pub fn read_optional<T: Item>(field: &'static str, input: &[u8]) -> Result<Option<T>, SszError> {
    let mut items = read_items(field, input)?;
    check_count(field, items.len(), OPTIONAL.items)?;
    Ok(items.pop())
}

/// Reads a list of at most `limit` fixed-size items.
///
/// # Errors
/// When there are more, or the last one is cut.
pub fn read_limited<T: Item>(
    field: &'static str,
    input: &[u8],
    limit: usize,
) -> Result<Vec<T>, SszError> {
    check_count(field, input.len() / T::BYTES, limit)?;
    read_items(field, input)
}

/// Reads a list of fixed-size items. Memory is bounded by the length of `input`.
///
/// # Errors
/// When the last item is cut.
pub fn read_items<T: Item>(field: &'static str, input: &[u8]) -> Result<Vec<T>, SszError> {
    let chunks = input.chunks_exact(T::BYTES);
    if !chunks.remainder().is_empty() {
        return Err(SszProblem::Multiple { got: input.len(), item_bytes: T::BYTES }.at(field));
    }
    Ok(chunks.map(|chunk| T::read(&mut Fixed(chunk))).collect())
}

/// Appends a list of fixed-size items.
pub fn write_items<T: Item>(items: &[T], out: &mut Vec<u8>) {
    items.iter().for_each(|item| item.write(out));
}

/// Bounds on a list of byte lists; `usize::MAX` where the schema has none.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Items in the list.
    pub items: usize,
    /// Bytes in one item.
    pub item_bytes: usize,
}

/// The bounds of a progressive list of progressive byte lists.
pub const UNLIMITED: Limits = Limits { items: usize::MAX, item_bytes: usize::MAX };

/// The bounds of `Optional[T]`, which is `List[T, 1]`.
pub const OPTIONAL: Limits = Limits { items: 1, item_bytes: usize::MAX };

/// Bytes that 32-bit offsets reach.
pub const MAX_BYTES: usize = u32::MAX as usize;

impl Limits {
    /// Refuses `items` when they are too many or one is too long.
    ///
    /// # Errors
    /// The first bound that is exceeded.
    pub fn check(&self, field: &'static str, items: Items<'_>) -> Result<(), SszError> {
        check_count(field, items.len(), self.items)?;
        items.iter().try_for_each(|item| check_length(field, item.len(), self.item_bytes))
    }
}

/// Refuses more than `limit` bytes.
///
/// # Errors
/// [`SszProblem::TooLong`] in `field`.
pub fn check_length(field: &'static str, got: usize, limit: usize) -> Result<(), SszError> {
    if got > limit { Err(SszProblem::TooLong { got, limit }.at(field)) } else { Ok(()) }
}

/// Refuses more than `limit` items.
///
/// # Errors
/// [`SszProblem::TooManyItems`] in `field`.
pub fn check_count(field: &'static str, got: usize, limit: usize) -> Result<(), SszError> {
    if got > limit { Err(SszProblem::TooManyItems { got, limit }.at(field)) } else { Ok(()) }
}

/// Reads a list of byte lists, each a slice of `input`.
///
/// Each item costs four bytes of offset, so memory is bounded by the length of `input`; the count
/// is checked against it before anything is allocated.
///
/// # Errors
/// When the offsets are malformed, or a limit is exceeded.
pub fn read_byte_lists(
    field: &'static str,
    input: &Bytes,
    limits: Limits,
) -> Result<Vec<Bytes>, SszError> {
    let items = byte_lists(field, input, limits)?;
    let mut slices = Vec::with_capacity(items.len());
    for item in items {
        slices.push(input.slice_ref(item?));
    }
    Ok(slices)
}

/// The byte lists of a list.
fn byte_lists<'a>(
    field: &'static str,
    input: &'a [u8],
    limits: Limits,
) -> Result<impl ExactSizeIterator<Item = Result<&'a [u8], SszError>>, SszError> {
    let got = input.len();
    let offsets_bytes = if got < OFFSET_BYTES { 0 } else { offset_at(input, 0) };
    let is_empty = got == 0;
    if !is_empty && (offsets_bytes == 0 || offsets_bytes % OFFSET_BYTES != 0 || offsets_bytes > got)
    {
        return Err(SszProblem::Offsets { offsets_bytes, got }.at(field));
    }
    let count = offsets_bytes / OFFSET_BYTES;
    check_count(field, count, limits.items)?;
    let mut start = offsets_bytes;
    Ok((0..count).map(move |index| {
        let next = (index + 1) * OFFSET_BYTES;
        let end = if next < offsets_bytes { offset_at(input, next) } else { got };
        let item = &input[within(field, got, start, end)?];
        check_length(field, item.len(), limits.item_bytes)?;
        start = end;
        Ok(item)
    }))
}

const WITNESS: Layout<3> = Layout {
    name: "witness",
    fixed_bytes: 12,
    variable: [("state", 0), ("codes", 4), ("headers", 8)],
};

/// Reads an `ExecutionWitness` under the limits that a schema has for its three lists, in order.
///
/// # Errors
/// When `input` is not an encoding of a witness, or a limit is exceeded.
pub fn read_witness(input: &Bytes, limits: [Limits; 3]) -> Result<Witness, SszError> {
    let (_, [state, codes, headers]) = WITNESS.split(input)?;
    Ok(Witness {
        state: NodeList::of_piece(&state, byte_lists("state", &state, limits[0])?)?,
        codes: read_byte_lists("codes", &codes, limits[1])?,
        headers: read_byte_lists("headers", &headers, limits[2])?,
    })
}

/// Bytes of a list of byte lists.
pub fn byte_lists_bytes(items: &[Bytes]) -> usize {
    items.iter().map(|item| OFFSET_BYTES + item.len()).sum()
}

/// Appends a list of byte lists.
pub fn write_byte_lists(items: &[Bytes], out: &mut Vec<u8>) {
    let mut offsets = Offsets::behind(OFFSET_BYTES * items.len());
    items.iter().for_each(|item| offsets.write(item.len(), out));
    items.iter().for_each(|item| out.extend_from_slice(item));
}

/// Offsets of parts that follow each other.
#[derive(Debug)]
pub struct Offsets(usize);

impl Offsets {
    /// The first part stands right behind the fixed-size part.
    pub fn behind(fixed_bytes: usize) -> Self {
        Self(fixed_bytes)
    }

    /// Appends the offset of the next part, which is `part_bytes` long.
    ///
    /// # Panics
    /// When the offset is over 32 bits: the writer checks the whole length first.
    pub fn write(&mut self, part_bytes: usize, out: &mut Vec<u8>) {
        let offset = u32::try_from(self.0).expect("the whole length was checked");
        out.extend_from_slice(&offset.to_le_bytes());
        self.0 += part_bytes;
    }
}

fn part(field: &'static str, input: &Bytes, start: usize, end: usize) -> Result<Bytes, SszError> {
    Ok(input.slice(within(field, input.len(), start, end)?))
}

/// A range of an input that has `got` bytes.
fn within(
    field: &'static str,
    got: usize,
    start: usize,
    end: usize,
) -> Result<Range<usize>, SszError> {
    match start > end || end > got {
        true => Err(SszProblem::Extent { start, end, got }.at(field)),
        false => Ok(start..end),
    }
}

/// The offset at `place`, which is in bounds.
fn offset_at(input: &[u8], place: usize) -> usize {
    let offset = input[place..].first_chunk().expect("an offset was found to be in bounds");
    u32::from_le_bytes(*offset) as usize
}

#[cfg(test)]
mod tests;
