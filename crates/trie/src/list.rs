//! Nodes in order, as the state of a witness is.

use alloy_primitives::Bytes;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Index;

/// Byte strings in order, as slices of pieces of memory that they share: RLP of trie nodes.
///
/// A witness has thousands of nodes in few pieces. Here a node is where it lies, in 16 bytes; a
/// list of [`Bytes`] takes 32, and each is one more holder of its piece to be counted, which takes
/// as long as to copy a small node.
///
/// ```
/// # use deponent_trie::NodeList;
/// let mut nodes = NodeList::default();
/// let piece = alloy_primitives::Bytes::from_static(b"leaf branch");
/// nodes.push_piece(piece.clone());
/// nodes.push_slice(&piece[5..]);
/// nodes.push_slice(&piece[..4]);
/// nodes.sort();
/// assert!(nodes.iter().eq([&b"branch"[..], b"leaf"]));
/// ```
#[derive(Clone, Default)]
pub struct NodeList {
    pieces: Vec<Bytes>,
    places: Vec<Place>,
}

/// Where a node lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) piece: u32,
    pub(crate) len: u32,
}

const _: () = assert!(size_of::<Place>() <= 16);

impl NodeList {
    /// Nodes that are slices of one piece; the first error ends it.
    ///
    /// # Panics
    /// If one does not lie there, or is of 4 GiB or more.
    pub fn of_piece<'a, E>(
        piece: &'a Bytes,
        nodes: impl ExactSizeIterator<Item = Result<&'a [u8], E>>,
    ) -> Result<Self, E> {
        let mut list =
            Self { pieces: vec![piece.clone()], places: Vec::with_capacity(nodes.len()) };
        for node in nodes {
            list.push_slice(node?);
        }
        Ok(list)
    }

    /// Adds memory that nodes are slices of.
    pub fn push_piece(&mut self, piece: Bytes) {
        self.pieces.push(piece);
    }

    /// Appends a node that is a slice of the last piece.
    ///
    /// # Panics
    /// If it does not lie there, or is of 4 GiB or more.
    pub fn push_slice(&mut self, node: &[u8]) {
        let piece = self.pieces.last().map_or(&[][..], |piece| piece);
        let start = node.as_ptr().addr().wrapping_sub(piece.as_ptr().addr());
        let is_within = start <= piece.len() && node.len() <= piece.len() - start;
        assert!(is_within || node.is_empty(), "the node is a slice of the last piece");
        self.push_place(if is_within { start } else { 0 }, node.len());
    }

    fn push_place(&mut self, start: usize, len: usize) {
        let len = u32::try_from(len).expect("a node has less than 4 GiB");
        let piece = self.pieces.len().saturating_sub(1);
        let piece = u32::try_from(piece).expect("there are fewer pieces");
        self.places.push(Place { start, piece, len });
    }

    /// Appends a node that has memory of its own.
    ///
    /// # Panics
    /// If it is of 4 GiB or more.
    pub fn push(&mut self, node: Bytes) {
        let len = node.len();
        self.push_piece(node);
        self.push_place(0, len);
    }

    /// How many nodes there are.
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of all nodes.
    pub fn content_bytes(&self) -> usize {
        self.places.iter().map(|place| place.len as usize).sum()
    }

    /// Makes room for so many nodes more.
    pub fn reserve(&mut self, count: usize) {
        self.places.reserve(count);
    }

    /// Lets go of all nodes, and keeps room for as many.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.places.clear();
    }

    /// A node, by its place in the order.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.places.get(index).map(|place| self.at(place))
    }

    #[inline]
    fn at(&self, place: &Place) -> &[u8] {
        // A node without bytes needs no piece.
        let piece = self.pieces.get(place.piece as usize).map_or(&[][..], |piece| piece);
        &piece[place.start..][..place.len as usize]
    }

    /// A node, which keeps its piece in memory.
    pub fn share(&self, index: usize) -> Option<Bytes> {
        self.places.get(index).map(|place| self.share_at(place))
    }

    fn share_at(&self, place: &Place) -> Bytes {
        let end = place.start + place.len as usize;
        let piece = self.pieces.get(place.piece as usize);
        piece.map_or_else(Bytes::new, |piece| piece.slice(place.start..end))
    }

    /// The nodes, in their order.
    pub fn iter(&self) -> NodeIter<'_> {
        NodeIter { list: self, places: self.places.iter() }
    }

    /// The nodes, each of which keeps its piece in memory.
    pub fn iter_shared(&self) -> impl ExactSizeIterator<Item = Bytes> {
        self.places.iter().map(|place| self.share_at(place))
    }

    /// Puts another node, with memory of its own, in the place of one.
    ///
    /// # Panics
    /// If there is none, or the other is of 4 GiB or more.
    pub fn replace(&mut self, index: usize, node: Bytes) {
        assert!(index < self.len(), "there is a node to replace");
        self.push(node);
        self.places.swap_remove(index);
    }

    /// Takes a node out.
    ///
    /// # Panics
    /// If there is none.
    pub fn remove(&mut self, index: usize) -> Bytes {
        let place = self.places.remove(index);
        self.share_at(&place)
    }

    /// Puts the nodes into lexicographic order, each once.
    pub fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by_key(|place| self.at(place));
        places.dedup_by(|one, other| self.at(one) == self.at(other));
        self.places = places;
    }

    /// Nodes where they lie in pieces.
    pub(crate) fn new(pieces: Vec<Bytes>, places: Vec<Place>) -> Self {
        Self { pieces, places }
    }

    /// The room for where nodes lie.
    pub(crate) fn into_places(self) -> Vec<Place> {
        self.places
    }
}

impl Index<usize> for NodeList {
    type Output = [u8];

    fn index(&self, index: usize) -> &[u8] {
        self.at(&self.places[index])
    }
}

/// The nodes of a [`NodeList`].
#[derive(Clone, Debug)]
pub struct NodeIter<'a> {
    list: &'a NodeList,
    places: std::slice::Iter<'a, Place>,
}

impl<'a> Iterator for NodeIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.places.next().map(|place| self.list.at(place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl DoubleEndedIterator for NodeIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.places.next_back().map(|place| self.list.at(place))
    }
}

impl ExactSizeIterator for NodeIter<'_> {}

impl FusedIterator for NodeIter<'_> {}

impl<'a> IntoIterator for &'a NodeList {
    type Item = &'a [u8];
    type IntoIter = NodeIter<'a>;

    fn into_iter(self) -> NodeIter<'a> {
        self.iter()
    }
}

impl Extend<Bytes> for NodeList {
    fn extend<I: IntoIterator<Item = Bytes>>(&mut self, nodes: I) {
        let nodes = nodes.into_iter();
        let (count, _) = nodes.size_hint();
        self.pieces.reserve(count);
        self.places.reserve(count);
        nodes.for_each(|node| self.push(node));
    }
}

impl FromIterator<Bytes> for NodeList {
    fn from_iter<I: IntoIterator<Item = Bytes>>(nodes: I) -> Self {
        let mut list = Self::default();
        list.extend(nodes);
        list
    }
}

impl From<Vec<Bytes>> for NodeList {
    fn from(nodes: Vec<Bytes>) -> Self {
        Self::from_iter(nodes)
    }
}

/// As the nodes are, wherever they lie.
impl PartialEq for NodeList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for NodeList {}

impl PartialEq<Vec<Bytes>> for NodeList {
    fn eq(&self, other: &Vec<Bytes>) -> bool {
        self.iter().eq(other.iter().map(|node| &node[..]))
    }
}

impl fmt::Debug for NodeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter_shared()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Against a vector of byte strings.
    #[test]
    fn nodes_are_those_that_were_added() {
        let seed = rand::random();
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
        for _ in 0..200 {
            let (mut list, mut slow) = (NodeList::default(), Vec::<Bytes>::new());
            let mut piece = Bytes::new();
            for _ in 0..rng.random_range(0..60) {
                match rng.random_range(0..6) {
                    0 => {
                        piece =
                            (0..rng.random_range(0..40)).map(|_| rng.random_range(0..3)).collect();
                        list.push_piece(piece.clone());
                    }
                    1 => {
                        piece = vec![rng.random_range(0..3); rng.random_range(0..4)].into();
                        list.push(piece.clone());
                        slow.push(piece.clone());
                    }
                    2 if !slow.is_empty() => {
                        let index = rng.random_range(0..slow.len());
                        assert_eq!(list.remove(index), slow.remove(index));
                    }
                    3 if !slow.is_empty() => {
                        let index = rng.random_range(0..slow.len());
                        piece = vec![7; rng.random_range(0..3)].into();
                        list.replace(index, piece.clone());
                        slow[index] = piece.clone();
                    }
                    _ => {
                        let end = rng.random_range(0..=piece.len());
                        let node = piece.slice(rng.random_range(0..=end)..end);
                        list.push_slice(&node);
                        slow.push(node);
                    }
                }
            }
            assert!(list.iter().eq(slow.iter().map(|node| &node[..])));
            assert!(list.iter().rev().eq(slow.iter().rev().map(|node| &node[..])));
            assert!(list.iter_shared().eq(slow.iter().cloned()));
            let by_index = |index| (list.share(index), list.get(index).map(Bytes::copy_from_slice));
            for index in 0..slow.len() {
                assert_eq!(by_index(index), (Some(slow[index].clone()), Some(slow[index].clone())));
                assert_eq!(&list[index], &slow[index][..]);
            }
            assert_eq!(by_index(slow.len()), (None, None));
            assert_eq!((list.len(), list.is_empty()), (slow.len(), slow.is_empty()));
            assert_eq!(list.content_bytes(), slow.iter().map(|node| node.len()).sum::<usize>());
            assert_eq!(list, slow);
            assert_eq!(list, NodeList::from(slow.clone()));
            assert_ne!(list, [&slow[..], &[Bytes::new()]].concat());
            assert_eq!(format!("{list:?}"), format!("{slow:?}"));
            list.sort();
            slow.sort_unstable();
            slow.dedup();
            assert_eq!(list, slow);
        }
    }

    #[test]
    fn nodes_of_a_piece_are_those_before_an_error() {
        let piece = Bytes::from_static(b"leaf branch");
        let nodes = [Ok(&piece[5..]), Ok(&piece[..4])];
        let list = NodeList::of_piece(&piece, nodes.into_iter());
        assert_eq!(list, Ok::<_, ()>(vec![piece.slice(5..), piece.slice(..4)].into()));
        let nodes = [Ok(&piece[5..]), Err("no node"), Err("no node either")];
        assert_eq!(NodeList::of_piece(&piece, nodes.into_iter()), Err("no node"));
    }

    #[test]
    #[should_panic(expected = "there is a node to replace")]
    fn a_node_that_is_not_there_is_not_replaced() {
        NodeList::from(vec![Bytes::new()]).replace(1, Bytes::new());
    }

    #[test]
    #[should_panic(expected = "a slice of the last piece")]
    fn a_slice_of_something_else_is_refused() {
        let mut list = NodeList::default();
        list.push_piece(Bytes::from(vec![1; 100]));
        list.push_slice(&[1; 100]);
    }
}
