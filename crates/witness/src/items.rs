use alloy_primitives::Bytes;
use trie::NodeList;

/// The items of one list of a [`Witness`](crate::Witness), in their order.
#[derive(Clone, Copy, Debug)]
pub enum Items<'a> {
    /// The items of its state.
    Nodes(&'a NodeList),
    /// The items of its codes or headers.
    Strings(&'a [Bytes]),
}

impl<'a> Items<'a> {
    /// The number of items.
    pub const fn len(self) -> usize {
        match self {
            Self::Nodes(nodes) => nodes.len(),
            Self::Strings(strings) => strings.len(),
        }
    }

    /// Whether there is no item.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Bytes of all items.
    pub fn content_bytes(self) -> usize {
        match self {
            Self::Nodes(nodes) => nodes.content_bytes(),
            Self::Strings(strings) => strings.iter().map(|string| string.len()).sum(),
        }
    }

    /// An item.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        match self {
            Self::Nodes(nodes) => nodes.get(index),
            Self::Strings(strings) => strings.get(index).map(|string| &string[..]),
        }
    }

    /// An item, as a slice of the memory that it is in.
    pub fn share(self, index: usize) -> Option<Bytes> {
        match self {
            Self::Nodes(nodes) => nodes.share(index),
            Self::Strings(strings) => strings.get(index).cloned(),
        }
    }

    /// All items.
    #[expect(clippy::missing_panics_doc, reason = "indices are below the length")]
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        (0..self.len()).map(move |index| self.get(index).expect("it is below the length"))
    }

    /// All items, as slices of the memory that they are in.
    #[expect(clippy::missing_panics_doc, reason = "indices are below the length")]
    pub fn iter_shared(self) -> impl ExactSizeIterator<Item = Bytes> {
        (0..self.len()).map(move |index| self.share(index).expect("it is below the length"))
    }
}

impl<'a> From<&'a NodeList> for Items<'a> {
    fn from(nodes: &'a NodeList) -> Self {
        Self::Nodes(nodes)
    }
}

impl<'a> From<&'a [Bytes]> for Items<'a> {
    fn from(strings: &'a [Bytes]) -> Self {
        Self::Strings(strings)
    }
}

impl<'a> From<&'a Vec<Bytes>> for Items<'a> {
    fn from(strings: &'a Vec<Bytes>) -> Self {
        Self::Strings(strings)
    }
}
