//! Ordered lists of nodes, as the `state` of a witness.

use alloy_primitives::Bytes;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Index;

/// An ordered list of byte strings, the RLP of trie nodes, as slices of shared pieces of memory.
///
/// A witness has thousands of nodes in few pieces. An entry of this list takes 16 bytes; a
/// [`Bytes`] takes 32, and changes the reference count of its piece, which takes as long as to copy
/// a small node.
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
#[derive(Default)]
pub struct NodeList {
    pieces: Vec<Bytes>,
    spans: Vec<NodeSpan>,
}

/// The span of a node in its piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeSpan {
    pub(crate) start: usize,
    pub(crate) piece: u32,
    pub(crate) len: u32,
}

const _: () = assert!(size_of::<NodeSpan>() <= 16);

impl NodeList {
    /// A list of nodes that are slices of one piece.
    ///
    /// # Errors
    /// The first error among `nodes`.
    ///
    /// # Panics
    /// If a node is no slice of the piece, or has 4 GiB or more.
    pub fn of_piece<'a, E>(
        piece: &'a Bytes,
        nodes: impl ExactSizeIterator<Item = Result<&'a [u8], E>>,
    ) -> Result<Self, E> {
        let mut list = Self { pieces: vec![piece.clone()], spans: Vec::with_capacity(nodes.len()) };
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
    /// If it is no slice of the piece, or has 4 GiB or more.
    pub fn push_slice(&mut self, node: &[u8]) {
        let piece = self.pieces.last().map_or(&[][..], |piece| piece);
        let start = node.as_ptr().addr().wrapping_sub(piece.as_ptr().addr());
        let is_within = start <= piece.len() && node.len() <= piece.len() - start;
        assert!(is_within || node.is_empty(), "the node is a slice of the last piece");
        self.push_span(if is_within { start } else { 0 }, node.len());
    }

    fn push_span(&mut self, start: usize, len: usize) {
        let len = u32::try_from(len).expect("a node has less than 4 GiB");
        let piece = self.pieces.len().saturating_sub(1);
        let piece = u32::try_from(piece).expect("there are fewer pieces");
        self.spans.push(NodeSpan { start, piece, len });
    }

    /// Appends a node that has memory of its own.
    ///
    /// # Panics
    /// If it is of 4 GiB or more.
    pub fn push(&mut self, node: Bytes) {
        let len = node.len();
        self.push_piece(node);
        self.push_span(0, len);
    }

    /// The number of nodes.
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The sum of the lengths of all nodes, in bytes.
    pub fn content_bytes(&self) -> usize {
        self.spans.iter().map(|span| span.len as usize).sum()
    }

    /// The number of pieces of memory that the nodes are slices of.
    pub const fn pieces_count(&self) -> usize {
        self.pieces.len()
    }

    /// Copies the nodes into pieces of `piece_bytes`, or as long as the node that is longer.
    #[expect(clippy::missing_panics_doc, reason = "a node is never without a piece")]
    pub fn compact(&self, piece_bytes: usize) -> Self {
        let mut left = self.content_bytes();
        let mut pieces: Vec<Vec<u8>> = Vec::with_capacity(left / piece_bytes + 2);
        let mut spans = Vec::with_capacity(self.len());
        for node in self {
            if pieces.last().is_none_or(|piece| piece.len() + node.len() > piece.capacity()) {
                pieces.push(Vec::with_capacity(left.min(piece_bytes).max(node.len())));
            }
            let number = pieces.len() as u32 - 1;
            let piece = pieces.last_mut().expect("there is one");
            spans.push(NodeSpan { start: piece.len(), piece: number, len: node.len() as u32 });
            piece.extend_from_slice(node);
            left -= node.len();
        }
        Self { pieces: pieces.into_iter().map(Bytes::from).collect(), spans }
    }

    /// Removes all nodes and keeps the memory of the list.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.spans.clear();
    }

    /// A node, by its place in the order.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.spans.get(index).map(|span| self.at(span))
    }

    #[inline]
    fn at(&self, span: &NodeSpan) -> &[u8] {
        // A node without bytes needs no piece.
        let piece = self.pieces.get(span.piece as usize).map_or(&[][..], |piece| piece);
        &piece[span.start..][..span.len as usize]
    }

    /// A node, which keeps its piece in memory.
    pub fn share(&self, index: usize) -> Option<Bytes> {
        self.spans.get(index).map(|span| self.share_at(span))
    }

    fn share_at(&self, span: &NodeSpan) -> Bytes {
        let end = span.start + span.len as usize;
        let piece = self.pieces.get(span.piece as usize);
        piece.map_or_else(Bytes::new, |piece| piece.slice(span.start..end))
    }

    /// The nodes, in their order.
    pub fn iter(&self) -> NodeIter<'_> {
        NodeIter { list: self, spans: self.spans.iter() }
    }

    /// The nodes, each of which keeps its piece in memory.
    pub fn iter_shared(&self) -> impl ExactSizeIterator<Item = Bytes> {
        self.spans.iter().map(|span| self.share_at(span))
    }

    /// Puts another node, with memory of its own, in the place of one.
    ///
    /// # Panics
    /// If there is none, or the other is of 4 GiB or more.
    pub fn replace(&mut self, index: usize, node: Bytes) {
        assert!(index < self.len(), "there is a node to replace");
        self.push(node);
        self.spans.swap_remove(index);
    }

    /// Takes a node out.
    ///
    /// # Panics
    /// If there is none.
    pub fn remove(&mut self, index: usize) -> Bytes {
        let span = self.spans.remove(index);
        self.share_at(&span)
    }

    /// Puts the nodes into lexicographic order, each once.
    pub fn sort(&mut self) {
        let mut spans = std::mem::take(&mut self.spans);
        spans.sort_unstable_by_key(|span| self.at(span));
        spans.dedup_by(|one, other| self.at(one) == self.at(other));
        self.spans = spans;
    }

    /// A list of these spans of pieces.
    pub(crate) fn new(pieces: Vec<Bytes>, spans: Vec<NodeSpan>) -> Self {
        Self { pieces, spans }
    }

    /// The memory of the spans.
    pub(crate) fn into_spans(self) -> Vec<NodeSpan> {
        self.spans
    }
}

impl Clone for NodeList {
    fn clone(&self) -> Self {
        Self { pieces: self.pieces.clone(), spans: self.spans.clone() }
    }

    /// Keeps the memory of the list.
    fn clone_from(&mut self, other: &Self) {
        self.pieces.clone_from(&other.pieces);
        self.spans.clone_from(&other.spans);
    }
}

impl Index<usize> for NodeList {
    type Output = [u8];

    fn index(&self, index: usize) -> &[u8] {
        self.at(&self.spans[index])
    }
}

/// The nodes of a [`NodeList`].
#[derive(Clone, Debug)]
pub struct NodeIter<'a> {
    list: &'a NodeList,
    spans: std::slice::Iter<'a, NodeSpan>,
}

impl<'a> Iterator for NodeIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.spans.next().map(|span| self.list.at(span))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl DoubleEndedIterator for NodeIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.spans.next_back().map(|span| self.list.at(span))
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
        self.spans.reserve(count);
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

/// Compares the nodes, not their places in memory.
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
        let rng = &mut StdRng::seed_from_u64(testing::seed());
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
            assert_eq!(list.compact(3), list);
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
