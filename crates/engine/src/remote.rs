//! Floor 0. The state that a chain begins with, where it is elsewhere: what is read of it is asked
//! for once, and checked by the hashes in the block's header.

use crate::error::NO_PANIC;
use crate::limits::{REMOTE_BYTES, REMOTE_KEYS, REMOTE_SEARCH_KEYS, REMOTE_SEARCH_NIBBLES};
use alloy_consensus::Header;
use alloy_primitives::map::{B256Map, HashSet};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use state::RemoteNodes;
use state::limits::PAGE_BYTES;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use trie::keccak::keccak256_many;
use trie::versioned::{NamedNode, NodeAddress, NodePlace, RecordError, Version, remote_record};
use trie::{Account, EMPTY_ROOT_HASH, NodeSource, SparseTrie, hashed_slot};
use witness::StateError;

/// Blocks before a block to which `BLOCKHASH` goes back.
const BLOCKHASH_DEPTH: u64 = 256;

/// A block of another chain, on which one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteBlock {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// The root of the state after it.
    pub state_root: B256,
}

impl RemoteBlock {
    /// The block with this header.
    pub fn of(header: &Header) -> Self {
        let Header { number, state_root, .. } = *header;
        Self { number, hash: header.hash_slow(), state_root }
    }
}

impl fmt::Display for RemoteBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} ({})", self.number, self.hash)
    }
}

/// The nodes that prove an account (EIP-1186), and one of its slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteProof {
    /// The nodes of the account, in any order.
    pub account: Vec<Bytes>,
    /// The nodes of the slot.
    pub storage: Vec<Bytes>,
}

/// A node that has the state after a block. Nothing that it answers is believed. Errors are texts
/// that name it.
pub trait Upstream: fmt::Debug + Send + Sync {
    /// Its name in errors.
    fn name(&self) -> String;

    /// The proof of an account, and of one of its slots where that is asked for.
    ///
    /// # Errors
    /// If there is no answer.
    fn proof(
        &self,
        block: &RemoteBlock,
        address: Address,
        slot: Option<U256>,
    ) -> Result<RemoteProof, String>;

    /// The code of an account.
    ///
    /// # Errors
    /// If there is no answer.
    fn code(&self, block: &RemoteBlock, address: Address) -> Result<Bytes, String>;

    /// The RLP of the header of the block with this hash.
    ///
    /// # Errors
    /// If there is no answer, or no such block.
    fn header(&self, hash: B256) -> Result<Bytes, String>;

    /// A slot that is set, and whose hash is the first one that is not below `from`.
    ///
    /// # Errors
    /// If there is no answer, or the node does not know the slots behind hashes.
    fn next_slot(&self, block: &RemoteBlock, address: Address, from: B256) -> Result<U256, String>;

    /// Takes notice of something that has been checked: a node, a code, or the RLP of a header.
    fn keep(&self, item: &Bytes);
}

/// The states after blocks of other chains, as far as they were read: nodes by the addresses that
/// records name them by, and all that was fetched by its hash.
#[derive(Debug, Default)]
pub struct Remote {
    fetched: RwLock<Fetched>,
    asked: Mutex<AskedKeys>,
    /// Those under way.
    fetches: Mutex<HashSet<Fetch>>,
    fetch_ended: Condvar,
}

#[derive(Debug, Default)]
struct Fetched {
    blocks: Vec<(RemoteBlock, Arc<dyn Upstream>)>,
    /// The nodes that have addresses, in their order.
    nodes: Vec<RemoteNode>,
    /// Nodes, codes and headers by their hashes.
    items: B256Map<Bytes>,
    bytes: usize,
}

/// A node that has an address, be it there or not.
#[derive(Debug, Clone, Copy)]
struct RemoteNode {
    named: NamedNode,
    /// The block in whose state it is, by its index.
    block: usize,
    /// The index of the first node that it names, once these have addresses.
    first_child: Option<usize>,
}

/// The keys that have been asked for: proofs are asked for by them, not by their hashes.
#[derive(Debug, Default)]
struct AskedKeys {
    /// By their hashes.
    accounts: BTreeMap<B256, Address>,
    /// By the hashes of the account and of the slot.
    slots: BTreeMap<(B256, B256), U256>,
    /// Accounts by the hashes of their codes.
    codes: B256Map<Address>,
}

/// A key whose proof is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Fetch {
    block: usize,
    address: Address,
    slot: Option<U256>,
}

impl Remote {
    /// Adds the state after a block. `known` are nodes, codes and headers that were fetched before,
    /// if they are what they should be.
    #[expect(clippy::missing_panics_doc, reason = "nothing panics while it has the lock")]
    pub fn add(
        &self,
        block: RemoteBlock,
        upstream: Arc<dyn Upstream>,
        known: impl IntoIterator<Item = Bytes>,
    ) {
        let mut fetched = self.fetched.write().expect(NO_PANIC);
        fetched.blocks.push((block, upstream));
        for item in known {
            fetched.insert(keccak256(&item), item);
        }
    }

    /// The state after a block that was added, the last one of that hash.
    pub(crate) fn version(&self, block_hash: B256) -> Option<Version> {
        let mut fetched = self.fetched.write().expect(NO_PANIC);
        let index = fetched.blocks.iter().rposition(|(block, _)| block.hash == block_hash)?;
        let root = fetched.blocks[index].0.state_root;
        if root == EMPTY_ROOT_HASH {
            return Some(Version::EMPTY);
        }
        let address = fetched.name(index, NamedNode { hash: root, place: NodePlace::ROOT });
        Some(Version { root, address })
    }

    /// Takes notice of an account that is about to be read.
    pub(crate) fn ask(&self, hashed_address: B256, address: Address) {
        self.asked().of_bounded_size().accounts.insert(hashed_address, address);
    }

    /// Takes notice of a slot that is about to be read, of an account that was.
    pub(crate) fn ask_slot(&self, hashed_address: B256, hashed_slot: B256, slot: U256) {
        self.asked().of_bounded_size().slots.insert((hashed_address, hashed_slot), slot);
    }

    /// Takes notice of the code that an account has.
    pub(crate) fn has_code(&self, address: Address, code_hash: B256) {
        if code_hash != KECCAK256_EMPTY {
            self.asked().of_bounded_size().codes.entry(code_hash).or_insert(address);
        }
    }

    /// The code with this hash.
    pub(crate) fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        if let Some(code) = self.item(&code_hash) {
            return Ok(code);
        }
        let address = self.asked().codes.get(&code_hash).copied();
        let address = address.ok_or(StateError::MissingCode(code_hash))?;
        let mut fault = String::new();
        for (block, upstream) in self.blocks().iter().rev() {
            let code = upstream.code(block, address).map_err(StateError::Remote)?;
            let got = keccak256(&code);
            if got == code_hash {
                self.keep(upstream, code_hash, &code);
                return Ok(code);
            }
            let name = upstream.name();
            fault = format!(
                "{name}: eth_getCode of {address} at {block} does not fit: the code hashes to \
                 {got}, the account says {code_hash}"
            );
        }
        Err(StateError::Remote(fault))
    }

    /// Whether a block with this number is an ancestor that a block may ask for by `BLOCKHASH`.
    pub(crate) fn reaches(&self, number: u64) -> bool {
        let is_near = |first: u64| first.saturating_sub(number) <= BLOCKHASH_DEPTH;
        self.blocks().iter().any(|(block, _)| is_near(block.number))
    }

    /// The header of the block with this hash, which is an ancestor of one that was added.
    pub(crate) fn header(&self, hash: B256) -> Result<(Header, Bytes), StateError> {
        if let Some(rlp) = self.item(&hash) {
            return Ok((decode_header(&rlp)?, rlp));
        }
        let mut fault = StateError::Remote("no block was added".into());
        for (_, upstream) in self.blocks().iter().rev() {
            let rlp = match upstream.header(hash) {
                Ok(rlp) => rlp,
                Err(error) => {
                    fault = StateError::Remote(error);
                    continue;
                }
            };
            let got = keccak256(&rlp);
            if got != hash {
                let name = upstream.name();
                fault = StateError::Remote(format!(
                    "{name}: the header of block {hash} does not fit: it hashes to {got}"
                ));
                continue;
            }
            let header = decode_header(&rlp)?;
            self.keep(upstream, hash, &rlp);
            return Ok((header, rlp));
        }
        Err(fault)
    }

    fn keep(&self, upstream: &Arc<dyn Upstream>, hash: B256, item: &Bytes) {
        self.fetched.write().expect(NO_PANIC).insert(hash, item.clone());
        upstream.keep(item);
    }

    fn item(&self, hash: &B256) -> Option<Bytes> {
        self.fetched.read().expect(NO_PANIC).items.get(hash).cloned()
    }

    fn blocks(&self) -> Vec<(RemoteBlock, Arc<dyn Upstream>)> {
        self.fetched.read().expect(NO_PANIC).blocks.clone()
    }

    fn asked(&self) -> MutexGuard<'_, AskedKeys> {
        self.asked.lock().expect(NO_PANIC)
    }

    /// Fetches a node that was named and is not there: the proof of a key below it.
    fn fetch(&self, node: &RemoteNode) -> Result<(), String> {
        let (block, upstream) = {
            let fetched = self.fetched.read().expect(NO_PANIC);
            if fetched.bytes > REMOTE_BYTES {
                let most = REMOTE_BYTES >> 30;
                return Err(format!("over {most} GiB of the state have been fetched: too much"));
            }
            fetched.blocks[node.block].clone()
        };
        let (address, slot) = self.key_below(&block, &*upstream, &node.named.place)?;
        let fetch = Fetch { block: node.block, address, slot };
        let Some(_turn) = self.turn(fetch) else { return Ok(()) };
        if self.item(&node.named.hash).is_some() {
            return Ok(());
        }
        let proof = upstream.proof(&block, address, slot)?;
        let of_slot = slot.map_or(String::new(), |slot| format!(", slot {slot:#x},"));
        let unfit = |fault: &dyn fmt::Display| {
            let (name, root) = (upstream.name(), block.state_root);
            format!(
                "{name}: eth_getProof of {address}{of_slot} at {block} does not fit its state root \
                 {root}: {fault}"
            )
        };
        let nodes = verified(&block, address, slot, proof).map_err(|fault| unfit(&fault))?;
        for rlp in nodes {
            self.keep(&upstream, keccak256(&rlp), &rlp);
        }
        let is_there = self.item(&node.named.hash).is_some();
        is_there.then_some(()).ok_or_else(|| unfit(&format!("it lacks {}", node.named.hash)))
    }

    /// The right to make a fetch; `None` after another thread has made it.
    fn turn(&self, fetch: Fetch) -> Option<Turn<'_>> {
        let mut under_way = self.fetches.lock().expect(NO_PANIC);
        if under_way.insert(fetch) {
            return Some(Turn { remote: self, fetch });
        }
        while under_way.contains(&fetch) {
            under_way = self.fetch_ended.wait(under_way).expect(NO_PANIC);
        }
        None
    }

    /// An account, and a slot where the place is in its storage, whose hash is below the place.
    fn key_below(
        &self,
        block: &RemoteBlock,
        upstream: &dyn Upstream,
        place: &NodePlace,
    ) -> Result<(Address, Option<U256>), String> {
        let first = place.first_key();
        let Some(owner) = place.owner else {
            let mut after = self.asked().accounts.range(first..).next().map(|it| (*it.0, *it.1));
            after = after.filter(|(hash, _)| place.is_above(hash));
            let found = after.map(|(_, address)| address);
            let found = found.or_else(|| {
                let found = search(place, 20)?;
                Some(Address::from_slice(&found[12..]))
            });
            return found.map(|address| (address, None)).ok_or_else(|| {
                let depth = place.depth;
                format!(
                    "the accounts whose hashes begin with the first {depth} digits of {first} are \
                     needed, as after an account beside them was removed, and no such address is \
                     known"
                )
            });
        };
        let asked = self.asked();
        let address = asked.accounts.get(&owner).copied();
        let address =
            address.ok_or_else(|| format!("no address with the hash {owner} is known"))?;
        let after = asked.slots.range((owner, first)..).next();
        let after = after.filter(|((of, hash), _)| *of == owner && place.is_above(hash));
        if let Some(slot) = after.map(|(_, slot)| *slot) {
            return Ok((address, Some(slot)));
        }
        drop(asked);
        if let Some(found) = search(place, 32) {
            return Ok((address, Some(found.into())));
        }
        let next = upstream.next_slot(block, address, first);
        let fault = match next {
            Ok(slot) if place.is_above(&hashed_slot(slot)) => return Ok((address, Some(slot))),
            Ok(_) => "the slot that debug_storageRangeAt names is another".to_owned(),
            Err(error) => error,
        };
        let depth = place.depth;
        Err(format!(
            "the slots of {address} whose hashes begin with the first {depth} digits of {first} \
             are needed, as after a slot beside them was cleared, and no such slot is known \
             ({fault})"
        ))
    }
}

impl AskedKeys {
    /// The same, with room for one more: a key that is read again is taken notice of again.
    fn of_bounded_size(&mut self) -> &mut Self {
        if self.accounts.len() + self.slots.len() + self.codes.len() >= REMOTE_KEYS {
            *self = Self::default();
        }
        self
    }
}

/// The right to make a fetch, until it is dropped.
struct Turn<'a> {
    remote: &'a Remote,
    fetch: Fetch,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.remote.fetches.lock().expect(NO_PANIC).remove(&self.fetch);
        self.remote.fetch_ended.notify_all();
    }
}

impl RemoteNodes for Remote {
    fn record(&self, at: NodeAddress) -> Result<Vec<u8>, RecordError> {
        let index = (at.offset() - NodeAddress::FIRST_REMOTE) / PAGE_BYTES as u64;
        let index = usize::try_from(index).expect("addresses are given in memory");
        let named = self.fetched.read().expect(NO_PANIC).nodes.get(index).copied();
        let node =
            named.ok_or_else(|| RecordError::Remote(format!("no node has the address {at:?}")))?;
        while self.item(&node.named.hash).is_none() {
            self.fetch(&node).map_err(RecordError::Remote)?;
        }
        let record = self.fetched.write().expect(NO_PANIC).record(index);
        record.map_err(|reason| {
            let hash = node.named.hash;
            RecordError::Remote(format!("node {hash} of the state is malformed: {reason}"))
        })
    }
}

impl Fetched {
    fn insert(&mut self, hash: B256, item: Bytes) {
        self.bytes += item.len();
        self.items.insert(hash, item);
    }

    /// Gives a node an address.
    fn name(&mut self, block: usize, named: NamedNode) -> NodeAddress {
        self.nodes.push(RemoteNode { named, block, first_child: None });
        self.bytes += size_of::<RemoteNode>();
        address_of(self.nodes.len() - 1)
    }

    /// The record of a node that is there. When it is made for the first time, the nodes that it
    /// names get their addresses.
    fn record(&mut self, index: usize) -> Result<Vec<u8>, &'static str> {
        let RemoteNode { named, block, first_child } = self.nodes[index];
        let rlp = self.items[&named.hash].clone();
        if let Some(first) = first_child {
            let mut children = first..;
            let mut next = |_| address_of(children.next().expect("it has no end"));
            return remote_record(&rlp, &named.place, &mut next);
        }
        let (first, length) = (self.nodes.len(), self.nodes.len());
        let record = remote_record(&rlp, &named.place, |child| self.name(block, child));
        match record.is_ok() {
            true => self.nodes[index].first_child = Some(first),
            false => self.nodes.truncate(length),
        }
        record
    }
}

fn address_of(index: usize) -> NodeAddress {
    NodeAddress::new(NodeAddress::FIRST_REMOTE + (index * PAGE_BYTES) as u64)
}

fn decode_header(rlp: &[u8]) -> Result<Header, StateError> {
    alloy_rlp::decode_exact::<Header>(rlp)
        .map_err(|fault| StateError::Remote(format!("a header cannot be read: {fault}")))
}

/// The nodes of a proof that are on the paths of its keys.
fn verified(
    block: &RemoteBlock,
    address: Address,
    slot: Option<U256>,
    proof: RemoteProof,
) -> Result<Vec<Bytes>, trie::Error> {
    let all = proof.account.into_iter().chain(proof.storage);
    let nodes = ProofNodes { all: trie::by_hash(all), used: RefCell::default() };
    let hashed_address = keccak256(address);
    let mut state = SparseTrie::new(block.state_root);
    let account = state.get(hashed_address.as_slice(), &nodes)?.map(Account::from_rlp).transpose();
    let malformed = |reason| trie::Error::MalformedValue { key: hashed_address, reason };
    if let (Some(slot), Some(account)) = (slot, account.map_err(malformed)?) {
        SparseTrie::new(account.storage_root).get(hashed_slot(slot).as_slice(), &nodes)?;
    }
    Ok(nodes.used.into_inner())
}

/// The nodes of a proof, and those that were used.
struct ProofNodes {
    all: B256Map<Bytes>,
    used: RefCell<Vec<Bytes>>,
}

impl NodeSource for ProofNodes {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        let node = self.all.get(hash)?.clone();
        self.used.borrow_mut().push(node.clone());
        Some(node)
    }
}

/// Looks for bytes whose hash is below a place: the last `bytes` of what it returns. `None` where
/// that would take too long.
fn search(place: &NodePlace, bytes: usize) -> Option<B256> {
    const AT_ONCE: u64 = 64;
    if usize::from(place.depth) > REMOTE_SEARCH_NIBBLES {
        return None;
    }
    let mut hashes = [B256::ZERO; AT_ONCE as usize];
    (0..REMOTE_SEARCH_KEYS / AT_ONCE).find_map(|part| {
        let key = |index: u64| B256::from(U256::from(part * AT_ONCE + index));
        let keys: [B256; AT_ONCE as usize] = std::array::from_fn(|index| key(index as u64));
        let inputs: [&[u8]; AT_ONCE as usize] =
            std::array::from_fn(|index| &keys[index][32 - bytes..]);
        keccak256_many(&inputs, &mut hashes);
        let found = hashes.iter().position(|hash| place.is_above(hash))?;
        Some(keys[found])
    })
}

#[cfg(test)]
mod tests;
