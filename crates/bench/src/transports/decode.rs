//! Answers decoded into slices of memory that was touched before: JSON while it arrives, SSZ where
//! it lies. First touch of fresh memory costs more than anything else that happens to a witness.

use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::time::{Duration, Instant};

use alloy_primitives::{B256, hex};
use anyhow::{Context, bail, ensure};
use rpc::response;

/// Digits that are read at once: they are unhexed while they are in the cache.
const RING_BYTES: usize = 256 << 10;
/// Digits that are unhexed at once, which takes two looks at them: they are in the first-level
/// cache.
const PIECE_BYTES: usize = 16 << 10;
/// Read at once where nothing is done with it.
const READ_BYTES: usize = 1 << 20;
/// What a JSON answer may hold before its witness.
const TEXT_BYTES: usize = 64 << 10;

/// When parts of an answer were here, counted from before the request was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    start: Instant,
    pub(super) first_byte: Duration,
    pub(super) last_byte: Duration,
    /// When the items were there.
    pub(super) whole: Duration,
    /// Spent in decoding, at whatever time.
    pub(super) decoding: Duration,
    pub(super) answer_bytes: usize,
}

impl Timing {
    pub(super) fn start() -> Self {
        let [first_byte, last_byte, whole, decoding] = [Duration::ZERO; 4];
        Self { start: Instant::now(), first_byte, last_byte, whole, decoding, answer_bytes: 0 }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The items are there; since the last byte they were decoded.
    pub(super) fn end(&mut self) {
        self.whole = self.elapsed();
        self.decoding = self.whole - self.last_byte;
    }
}

/// Where the items of a witness lie.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) headers: Vec<Range<usize>>,
    pub(super) codes: Vec<Range<usize>>,
    pub(super) state: Vec<Range<usize>>,
}

impl Lists {
    const fn all(&mut self) -> [&mut Vec<Range<usize>>; 3] {
        [&mut self.headers, &mut self.codes, &mut self.state]
    }
}

/// What answers are decoded to.
#[derive(Debug)]
pub(super) struct Memory {
    bytes: Vec<u8>,
    ring: Vec<u8>,
    /// How many bytes the last answer took.
    pub(super) filled: usize,
    pub(super) lists: Lists,
}

impl Memory {
    /// Memory for `bytes`, all of it touched; it grows where that is not enough.
    pub(super) fn touched(bytes: usize) -> Self {
        let bytes = vec![1; bytes + READ_BYTES];
        Self { bytes, ring: vec![1; RING_BYTES], filled: 0, lists: Lists::default() }
    }

    /// What `lists` has slices of.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads an answer of JSON-RPC that has a witness in RLP: its digits are read into a small
    /// ring and unhexed from there.
    pub(super) fn read_json(
        &mut self,
        body: &mut dyn Read,
        timing: &mut Timing,
    ) -> anyhow::Result<()> {
        let (mut scan, mut rlp) = (Scan::default(), RlpScan::default());
        loop {
            let count = read(body, &mut self.ring)?;
            if count == 0 {
                break;
            }
            timing.answer_bytes += count;
            let begun = Instant::now();
            for piece in self.ring[..count].chunks(PIECE_BYTES) {
                scan.push(piece, &mut self.bytes)?;
                rlp.push(&self.bytes[..scan.filled], &mut self.lists)?;
            }
            timing.decoding += begun.elapsed();
        }
        timing.last_byte = timing.elapsed();
        let begun = Instant::now();
        self.filled = scan.end()?;
        rlp.end(&self.bytes[..self.filled], &mut self.lists)?;
        timing.decoding += begun.elapsed();
        timing.whole = timing.elapsed();
        Ok(())
    }

    /// Reads an answer of JSON-RPC that is an object with the lists of a witness, its items digits.
    /// Headers that are objects (geth's) stay as JSON.
    pub(super) fn read_object(
        &mut self,
        body: &mut dyn Read,
        timing: &mut Timing,
    ) -> anyhow::Result<()> {
        for list in self.lists.all() {
            list.clear();
        }
        let mut scan = ObjectScan::default();
        loop {
            let count = read(body, &mut self.ring)?;
            if count == 0 {
                break;
            }
            timing.answer_bytes += count;
            let begun = Instant::now();
            scan.push(&self.ring[..count], &mut self.bytes, &mut self.lists)?;
            timing.decoding += begun.elapsed();
        }
        timing.last_byte = timing.elapsed();
        self.filled = scan.end(&self.lists)?;
        timing.whole = timing.elapsed();
        Ok(())
    }

    /// Reads a `PayloadStatusWithWitness` to where it stays.
    pub(super) fn read_ssz(
        &mut self,
        body: &mut dyn Read,
        timing: &mut Timing,
    ) -> anyhow::Result<()> {
        self.read_all(body, timing)?;
        ssz(&self.bytes, 0..self.filled, &mut self.lists)?;
        timing.end();
        Ok(())
    }

    /// Decodes the body that was read, which lacks the codes whose numbers go to `held`.
    pub(super) fn decode_lacking(&mut self, held: &mut Vec<u32>) -> anyhow::Result<()> {
        ssz_lacking(&self.bytes[..self.filled], &mut self.lists, held)
    }

    /// Reads a body to where it stays.
    pub(super) fn read_all(
        &mut self,
        body: &mut dyn Read,
        timing: &mut Timing,
    ) -> anyhow::Result<()> {
        self.filled = 0;
        loop {
            room(&mut self.bytes, self.filled + READ_BYTES);
            let count = read(body, &mut self.bytes[self.filled..])?;
            if count == 0 {
                break;
            }
            self.filled += count;
        }
        timing.answer_bytes = self.filled;
        timing.last_byte = timing.elapsed();
        Ok(())
    }
}

/// Reads what is there, or waits for it; zero at the end.
fn read(body: &mut dyn Read, into: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match body.read(into) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Makes `bytes` at least so long.
fn room(bytes: &mut Vec<u8>, len: usize) {
    if bytes.len() < len {
        bytes.resize(len.max(bytes.len() * 2), 0);
    }
}

/// A JSON answer that comes in pieces.
#[derive(Debug, Default)]
struct Scan {
    /// All but the witness's digits: an answer with an empty witness.
    text: Vec<u8>,
    place: Place,
    /// A digit whose other half has not come.
    odd: Option<u8>,
    /// Bytes that came of the witness.
    filled: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Before,
    Digits,
    After,
}

impl Scan {
    fn push(&mut self, piece: &[u8], bytes: &mut Vec<u8>) -> anyhow::Result<()> {
        match self.place {
            Place::Before => {
                self.text.extend_from_slice(piece);
                if let Some(at) = digits(&self.text) {
                    self.place = Place::Digits;
                    let begun = self.text.split_off(at);
                    return self.push(&begun, bytes);
                }
                let len = self.text.len();
                ensure!(len <= TEXT_BYTES + RING_BYTES, "{len} bytes without a witness");
            }
            Place::Digits => return self.unhex(piece, bytes),
            Place::After => self.text.extend_from_slice(piece),
        }
        Ok(())
    }

    fn unhex(&mut self, mut piece: &[u8], bytes: &mut Vec<u8>) -> anyhow::Result<()> {
        room(bytes, self.filled + piece.len() / 2 + 1);
        if let (Some(odd), [first, rest @ ..]) = (self.odd, piece) {
            self.decode(&[odd, *first], bytes).context("an odd number of digits")?;
            (self.odd, piece) = (None, rest);
        }
        let (pairs, odd) = piece.split_at(piece.len() & !1);
        // Nearly every piece is digits alone; the closing quote is looked for where one is not.
        if odd != b"\"" && self.decode(pairs, bytes).is_ok() {
            self.odd = odd.first().copied();
            return Ok(());
        }
        let end = piece.iter().position(|byte| *byte == b'"').context("no hex digit")?;
        self.decode(&piece[..end], bytes)?;
        self.place = Place::After;
        self.text.extend_from_slice(&piece[end..]);
        Ok(())
    }

    fn decode(&mut self, digits: &[u8], bytes: &mut [u8]) -> anyhow::Result<()> {
        let into = &mut bytes[self.filled..self.filled + digits.len() / 2];
        hex::decode_to_slice(digits, into)?;
        self.filled += digits.len() / 2;
        Ok(())
    }

    /// Checks the status; how many bytes the witness has.
    fn end(self) -> anyhow::Result<usize> {
        let result = response::result(&self.text)?;
        let [status] = response::fields(result, ["status"])?;
        let is_valid = status.is_some_and(|status| status.get() == "\"VALID\"");
        ensure!(is_valid, "no witness: {:.500}", result.get());
        ensure!(self.place == Place::After, "VALID, with no witness");
        Ok(self.filled)
    }
}

/// An answer with the lists of a witness that comes in pieces.
#[derive(Debug, Default)]
struct ObjectScan {
    /// The beginning of all that is no item.
    text: Vec<u8>,
    within: Within,
    /// Braces and brackets that are open.
    depth: usize,
    /// The last name at the depth of the lists' names.
    name: Vec<u8>,
    /// The place in [`Lists::all`] of the list that is open.
    list: Option<usize>,
    /// Where the item begins that is open.
    start: usize,
    odd: Option<u8>,
    filled: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Structure,
    /// A string that is no item; the next character of it may be escaped.
    Text {
        escaped: bool,
    },
    /// An item's first characters, of which so many were `0x`.
    Prefix(usize),
    Digits,
    /// An item that is an object.
    Object {
        in_text: bool,
        escaped: bool,
    },
}

impl ObjectScan {
    /// Braces and brackets around the names of the lists, and around their items.
    const NAMES: usize = 2;
    const ITEMS: usize = 3;
    const LISTS: [&[u8]; 3] = [b"headers", b"codes", b"state"];
    /// Looked through at once for an item's end.
    const STEP_BYTES: usize = 1 << 10;

    fn push(
        &mut self,
        mut piece: &[u8],
        bytes: &mut Vec<u8>,
        lists: &mut Lists,
    ) -> anyhow::Result<()> {
        room(bytes, self.filled + piece.len() + 1);
        loop {
            if self.within == Within::Digits {
                let steps = piece.chunks(Self::STEP_BYTES);
                let whole = steps.take_while(|step| !step.contains(&b'"')).map(<[u8]>::len).sum();
                let (_, last): (&[u8], &[u8]) = piece.split_at(whole);
                let quote = last.iter().position(|byte| *byte == b'"');
                let (digits, rest) = piece.split_at(whole + quote.unwrap_or_default());
                self.unhex(digits, bytes)?;
                piece = rest;
            }
            let Some((byte, rest)) = piece.split_first() else { return Ok(()) };
            piece = rest;
            self.step(*byte, bytes, lists)?;
        }
    }

    fn unhex(&mut self, mut digits: &[u8], bytes: &mut [u8]) -> anyhow::Result<()> {
        let mut decode = |digits: &[u8]| {
            let into = &mut bytes[self.filled..self.filled + digits.len() / 2];
            self.filled += digits.len() / 2;
            hex::decode_to_slice(digits, into).context("an item is not hex")
        };
        if let (Some(odd), [first, rest @ ..]) = (self.odd, digits) {
            decode(&[odd, *first])?;
            (self.odd, digits) = (None, rest);
        }
        let (pairs, odd) = digits.split_at(digits.len() & !1);
        decode(pairs)?;
        self.odd = self.odd.or_else(|| odd.first().copied());
        Ok(())
    }

    /// One character outside of an item's digits.
    fn step(&mut self, byte: u8, bytes: &mut [u8], lists: &mut Lists) -> anyhow::Result<()> {
        let is_item = self.depth == Self::ITEMS && self.list.is_some();
        match &mut self.within {
            Within::Object { in_text, escaped } => {
                bytes[self.filled] = byte;
                self.filled += 1;
                match byte {
                    _ if *escaped => *escaped = false,
                    b'\\' => *escaped = *in_text,
                    b'"' => *in_text = !*in_text,
                    b'{' if !*in_text => self.depth += 1,
                    b'}' if !*in_text => self.depth -= 1,
                    _ => {}
                }
                if self.depth == Self::ITEMS {
                    self.end_item(lists);
                }
                return Ok(());
            }
            Within::Digits => {
                ensure!(self.odd.is_none(), "an item has an odd number of digits");
                self.end_item(lists);
                return Ok(());
            }
            Within::Prefix(count) => {
                ensure!(b"0x".get(*count) == Some(&byte), "an item without 0x");
                *count += 1;
                if *count == 2 {
                    self.within = Within::Digits;
                    self.start = self.filled;
                }
                return Ok(());
            }
            Within::Text { escaped } => {
                match byte {
                    _ if *escaped => *escaped = false,
                    b'\\' => *escaped = true,
                    b'"' => self.within = Within::Structure,
                    _ => {}
                }
                if self.within != Within::Structure && self.depth == Self::NAMES {
                    self.name.push(byte);
                }
            }
            Within::Structure => match byte {
                b'"' if is_item => {
                    self.within = Within::Prefix(0);
                    return Ok(());
                }
                b'{' if is_item => {
                    self.start = self.filled;
                    bytes[self.filled] = byte;
                    self.filled += 1;
                    self.depth += 1;
                    self.within = Within::Object { in_text: false, escaped: false };
                    return Ok(());
                }
                b'"' => {
                    self.within = Within::Text { escaped: false };
                    if self.depth == Self::NAMES {
                        self.name.clear();
                    }
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    if byte == b'[' && self.depth == Self::ITEMS {
                        self.list = Self::LISTS.iter().position(|name| *name == self.name);
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.checked_sub(1).context("it is no JSON")?;
                    self.list = None;
                }
                _ => {}
            },
        }
        let is_between_items = is_item && byte != b']';
        if !is_between_items && self.text.len() < TEXT_BYTES {
            self.text.push(byte);
        }
        Ok(())
    }

    fn end_item(&mut self, lists: &mut Lists) {
        self.within = Within::Structure;
        if let Some(list) = self.list {
            lists.all()[list].push(self.start..self.filled);
        }
    }

    /// How many bytes the items have.
    fn end(self, lists: &Lists) -> anyhow::Result<usize> {
        let result = response::result(&self.text)?;
        let has_lists = !lists.headers.is_empty() && self.depth == 0;
        ensure!(has_lists, "no witness: {:.500}", result.get());
        Ok(self.filled)
    }
}

/// Where the digits of the witness begin, once that is there.
fn digits(text: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"\"witness\"";
    let mut at = text.windows(NAME.len()).position(|window| window == NAME)? + NAME.len();
    for part in [&b":"[..], b"\"0x"] {
        at += text[at..].iter().position(|byte| !byte.is_ascii_whitespace())?;
        at += text[at..].starts_with(part).then_some(part.len())?;
    }
    Some(at)
}

/// Finds the items of `[headers, codes, state, keys]`, where the last may be missing, while the
/// bytes come: those that came just now are in the cache.
#[derive(Debug, Default)]
struct RlpScan {
    /// Where the next item begins, or the next list.
    at: usize,
    /// Where the whole ends, once its header is here.
    whole: Option<usize>,
    /// Lists that are found already.
    done: usize,
    /// Where the list ends whose items are found now.
    list: Option<usize>,
}

impl RlpScan {
    /// Goes on as far as there are headers.
    fn push(&mut self, bytes: &[u8], lists: &mut Lists) -> anyhow::Result<()> {
        while self.at.saturating_add(RLP_HEADER_BYTES) <= bytes.len() && self.done < 3 {
            self.step(bytes, lists)?;
        }
        Ok(())
    }

    /// There are no more bytes.
    fn end(mut self, bytes: &[u8], lists: &mut Lists) -> anyhow::Result<()> {
        while self.done < 3 {
            self.step(bytes, lists)?;
        }
        ensure!(self.whole == Some(bytes.len()), "the RLP is not one list");
        Ok(())
    }

    fn step(&mut self, bytes: &[u8], lists: &mut Lists) -> anyhow::Result<()> {
        let at = self.at;
        let Some(whole) = self.whole else {
            let whole = rlp_item(bytes, usize::MAX, at)?;
            ensure!(whole.is_list, "the RLP is not one list");
            (self.whole, self.at) = (Some(whole.content.end), whole.content.start);
            lists.all().into_iter().for_each(Vec::clear);
            return Ok(());
        };
        let Some(end) = self.list else {
            let list = rlp_item(bytes, whole, at)?;
            ensure!(list.is_list, "no list at byte {at}");
            (self.list, self.at) = (Some(list.content.end), list.content.start);
            return Ok(());
        };
        if at == end {
            (self.list, self.done) = (None, self.done + 1);
            return Ok(());
        }
        let Lists { headers, codes, state } = lists;
        let (items, are_lists) = [(headers, true), (codes, false), (state, false)]
            .into_iter()
            .nth(self.done)
            .expect("there are three");
        let item = rlp_item(bytes, end, at)?;
        ensure!(item.is_list == are_lists, "an item of the wrong kind at byte {at}");
        let start = if are_lists { at } else { item.content.start };
        items.push(start..item.content.end);
        self.at = item.content.end;
        Ok(())
    }
}

/// The longest header of an item.
const RLP_HEADER_BYTES: usize = 9;

struct RlpItem {
    is_list: bool,
    content: Range<usize>,
}

/// The item that begins at `at` and ends before `end`; its header is within `bytes`.
fn rlp_item(bytes: &[u8], end: usize, at: usize) -> anyhow::Result<RlpItem> {
    let cut = || format!("the RLP is cut at byte {at}");
    let first = *bytes.get(at).with_context(cut)?;
    let long = |digits: usize| {
        let digits = bytes.get(at + 1..at + 1 + digits).with_context(cut)?;
        let len = digits
            .iter()
            .try_fold(0usize, |len, digit| Some(len.checked_mul(256)? + usize::from(*digit)));
        anyhow::Ok((1 + digits.len(), len.with_context(cut)?))
    };
    let (head, len) = match first {
        ..0x80 => (0, 1),
        0x80..0xb8 => (1, usize::from(first - 0x80)),
        0xb8..0xc0 => long(usize::from(first - 0xb7))?,
        0xc0..0xf8 => (1, usize::from(first - 0xc0)),
        0xf8.. => long(usize::from(first - 0xf7))?,
    };
    let start = at + head;
    ensure!(len <= end.saturating_sub(start), cut());
    Ok(RlpItem { is_list: first >= 0xc0, content: start..start + len })
}

/// Checks that a `PayloadStatus` is `VALID`, of this block.
pub(super) fn ssz_verdict(bytes: &[u8], hash: &B256) -> anyhow::Result<()> {
    let (status, rest) = bytes.split_first().context("an answer without a status")?;
    ensure!(*status == 0, "the status is {status}, and VALID is 0");
    // Two offsets are between: that of the hash, and that of an error, which is not there.
    let valid = rest.get(8..).filter(|valid| valid.len() == hash.len());
    ensure!(valid == Some(&hash[..]), "VALID, and in {} bytes not the block's hash", bytes.len());
    Ok(())
}

/// The items of a `PayloadStatusWithWitness` that is `VALID`, with public keys or without.
pub(super) fn ssz(bytes: &[u8], within: Range<usize>, lists: &mut Lists) -> anyhow::Result<()> {
    let fields = ssz_offset(bytes, &within, 0)?;
    ensure!(fields == 8 || fields == 12, "no PayloadStatusWithWitness: it begins with {fields}");
    let whole = ssz_fields(bytes, within, fields / 4)?;
    ensure!(bytes[whole[0].clone()].first() == Some(&0), "the status is not VALID");
    let optional = &whole[1];
    ensure!(!optional.is_empty(), "no witness");
    let [witness] = &ssz_fields(bytes, optional.clone(), 1)?[..] else {
        bail!("more than one witness");
    };
    let [state, codes, headers] = &ssz_fields(bytes, witness.clone(), 3)?[..] else {
        bail!("no three lists");
    };
    ssz_items(bytes, state.clone(), &mut lists.state)?;
    ssz_items(bytes, codes.clone(), &mut lists.codes)?;
    ssz_items(bytes, headers.clone(), &mut lists.headers)
}

/// The items of `{ answer: PayloadStatusWithWitness, held_codes: List[uint32] }`; the numbers of
/// the codes that are held go to `held`.
fn ssz_lacking(bytes: &[u8], lists: &mut Lists, held: &mut Vec<u32>) -> anyhow::Result<()> {
    let [answer, numbers] = &ssz_fields(bytes, 0..bytes.len(), 2)?[..] else {
        bail!("no two fields");
    };
    ssz(bytes, answer.clone(), lists)?;
    let (numbers, rest) = bytes[numbers.clone()].as_chunks();
    ensure!(rest.is_empty(), "a number is cut");
    held.clear();
    held.extend(numbers.iter().map(|digits| u32::from_le_bytes(*digits)));
    Ok(())
}

/// Where a code lies in the server's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodePlace {
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// The items of `{ answer: PayloadStatusWithWitness, mapped_codes: List[CodePlace] }`.
pub(super) fn ssz_mapped(
    bytes: &[u8],
    lists: &mut Lists,
    places: &mut Vec<CodePlace>,
) -> anyhow::Result<()> {
    let [answer, found] = &ssz_fields(bytes, 0..bytes.len(), 2)?[..] else {
        bail!("no two fields");
    };
    ssz(bytes, answer.clone(), lists)?;
    let (found, rest) = bytes[found.clone()].as_chunks::<20>();
    ensure!(rest.is_empty(), "a place is cut");
    let number = |digits: &[u8]| u64::from_le_bytes(digits.try_into().expect("there are eight"));
    places.clear();
    places.extend(found.iter().map(|place| CodePlace {
        segment: number(&place[..8]),
        offset: number(&place[8..16]),
        length: u32::from_le_bytes(place[16..].try_into().expect("there are four")),
    }));
    Ok(())
}

/// The offset that stands `at` bytes after the beginning of `within`.
fn ssz_offset(bytes: &[u8], within: &Range<usize>, at: usize) -> anyhow::Result<usize> {
    let digits = bytes[within.clone()].get(at..at + 4).context("an offset is cut")?;
    let digits: [u8; 4] = digits.try_into().expect("there are four");
    Ok(u32::from_le_bytes(digits) as usize)
}

/// Fields of variable size: `count` offsets, and what lies between them.
fn ssz_fields(
    bytes: &[u8],
    within: Range<usize>,
    count: usize,
) -> anyhow::Result<Vec<Range<usize>>> {
    let mut fields = Vec::with_capacity(count);
    ssz_between(bytes, within, count, &mut fields)?;
    Ok(fields)
}

/// A list of byte lists.
fn ssz_items(
    bytes: &[u8],
    within: Range<usize>,
    items: &mut Vec<Range<usize>>,
) -> anyhow::Result<()> {
    items.clear();
    if within.is_empty() {
        return Ok(());
    }
    let first = ssz_offset(bytes, &within, 0)?;
    ensure!(first > 0 && first.is_multiple_of(4), "a list begins with the offset {first}");
    ssz_between(bytes, within, first / 4, items)
}

fn ssz_between(
    bytes: &[u8],
    within: Range<usize>,
    count: usize,
    items: &mut Vec<Range<usize>>,
) -> anyhow::Result<()> {
    let mut from = ssz_offset(bytes, &within, 0)?;
    ensure!(from == count * 4, "{count} offsets end at {from}");
    for index in 1..=count {
        let to = match index == count {
            true => within.len(),
            false => ssz_offset(bytes, &within, index * 4)?,
        };
        ensure!(from <= to && to <= within.len(), "the offsets {from} and {to}");
        items.push(within.start + from..within.start + to);
        from = to;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::encode::{Items, as_rlp, as_ssz, rlp_list, rlp_string, ssz_variable};
    use super::*;
    use crate::random::Random;

    fn random_items(random: &mut Random) -> Items {
        let bytes = |random: &mut Random, most: u64| {
            let len = random.below(most) as usize;
            random.bytes(len)
        };
        let list = |random: &mut Random| {
            let (count, most) = (random.below(40), [3, 60, 300, 70_000][random.below(4) as usize]);
            (0..count).map(|_| bytes(random, most)).collect::<Vec<_>>()
        };
        let [state, codes] = [list(random), list(random)];
        let headers = list(random).into_iter().map(|fields| rlp_list(&rlp_string(&fields)));
        [headers.collect(), codes, state]
    }

    /// A body that comes in pieces of random lengths.
    struct Pieces<'a> {
        left: &'a [u8],
        random: Random,
        most: u64,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let most = 1 + self.random.below(self.most) as usize;
            let count = most.min(into.len()).min(self.left.len());
            let (piece, left) = self.left.split_at(count);
            into[..count].copy_from_slice(piece);
            self.left = left;
            Ok(count)
        }
    }

    fn found(memory: &Memory) -> Items {
        let Lists { headers, codes, state } = &memory.lists;
        [headers, codes, state]
            .map(|list| list.iter().map(|item| memory.bytes()[item.clone()].to_vec()).collect())
    }

    fn json(rlp: &[u8], random: &mut Random) -> String {
        let [a, b] = [["", " "], ["", "\n\t "]].map(|spaces| spaces[random.below(2) as usize]);
        let witness = format!("\"witness\"{a}:{b}\"{}\"", hex::encode_prefixed(rlp));
        let [before, after] = match random.below(2) {
            0 => ["\"status\":\"VALID\",", ",\"latestValidHash\":null"],
            _ => ["\"validationError\":null,", ",\"status\":\"VALID\""],
        };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{{before}{witness}{after}}}}}\n")
    }

    fn rlp(bytes: &[u8], lists: &mut Lists) -> anyhow::Result<()> {
        let mut scan = RlpScan::default();
        for part in [bytes.len() / 3, bytes.len() / 2] {
            scan.push(&bytes[..part], lists)?;
        }
        scan.end(bytes, lists)
    }

    #[test]
    fn random_witnesses_are_read_in_any_encoding_and_in_any_pieces() {
        for seed in 0..60 {
            println!("seed {seed}");
            let mut random = Random::new(seed);
            let items = random_items(&mut random);
            let with_keys = random.below(2) == 0;
            // Memory that is too small grows; what an earlier answer has left is forgotten.
            let mut memory = Memory::touched(0);
            for most in [1, 2, 5, 1 << 10, 1 << 19] {
                let text = json(&as_rlp(&items, with_keys), &mut random);
                let left = text.as_bytes();
                let mut body = Pieces { left, random: Random::new(seed), most };
                let mut timing = Timing::start();
                memory.read_json(&mut body, &mut timing).expect("a witness");
                assert_eq!(timing.answer_bytes, text.len());
                assert!(found(&memory) == items, "JSON in pieces of {most}");
                let encoded = as_ssz(&items, with_keys);
                let mut body = Pieces { left: &encoded, random: Random::new(seed), most };
                memory.read_ssz(&mut body, &mut timing).expect("a witness");
                assert_eq!(timing.answer_bytes, encoded.len());
                assert!(found(&memory) == items, "SSZ in pieces of {most}");
            }
            let numbers: Vec<u32> = (0..random.below(20)).map(|_| random.word() as u32).collect();
            let digits = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let encoded = ssz_variable(&[as_ssz(&items, with_keys), digits]);
            let mut held = vec![7];
            memory.bytes = encoded.clone();
            ssz_lacking(&encoded, &mut memory.lists, &mut held).expect("a witness");
            assert!(found(&memory) == items && held == numbers, "without codes that are held");
            let places: Vec<CodePlace> = numbers
                .iter()
                .map(|&length| CodePlace { segment: random.word(), offset: random.word(), length })
                .collect();
            let digits = places.iter().flat_map(|CodePlace { segment, offset, length }| {
                let numbers = [segment.to_le_bytes(), offset.to_le_bytes()];
                [&numbers.concat()[..], &length.to_le_bytes()].concat()
            });
            let encoded = ssz_variable(&[as_ssz(&items, with_keys), digits.collect()]);
            let mut read = vec![CodePlace { segment: 7, offset: 7, length: 7 }];
            memory.bytes = encoded.clone();
            ssz_mapped(&encoded, &mut memory.lists, &mut read).expect("a witness");
            assert!(found(&memory) == items && read == places, "without codes in files");
        }
    }

    /// An object with the lists in any order, and geth's headers for some of the headers.
    fn object(items: &Items, headers: &[String], random: &mut Random) -> String {
        let [a, b] = [["", " "], ["", "\n\t "]].map(|spaces| spaces[random.below(2) as usize]);
        let digits = |list: &[Vec<u8>]| -> Vec<String> {
            list.iter().map(|item| format!("\"{}\"", hex::encode_prefixed(item))).collect()
        };
        let mut lists = vec![
            ("headers", headers.to_vec()),
            ("codes", digits(&items[1])),
            ("state", digits(&items[2])),
            ("keys", vec!["\"0x00\"".into(), "\"\\\"state\"".into()]),
        ];
        lists.rotate_left(random.below(4) as usize);
        let lists: Vec<String> = lists
            .into_iter()
            .map(|(name, list)| format!("\"{name}\"{a}:{b}[{}]", list.join(&format!("{a},{b}"))))
            .collect();
        format!("{{\"id\":1,\"result\":{{{}}}}}\n", lists.join(&format!(",{b}")))
    }

    #[test]
    fn random_objects_are_read_in_any_pieces() {
        for seed in 0..60 {
            println!("seed {seed}");
            let mut random = Random::new(seed);
            let mut items = random_items(&mut random);
            items[0].push(vec![7]);
            let mut headers = Vec::new();
            for item in &mut items[0] {
                if random.below(2) == 0 {
                    let object = r#"{"extra": "}\"{[\\", "list": [1, {"of": "0x"}, []]}"#;
                    headers.push(object.to_owned());
                    *item = object.into();
                } else {
                    headers.push(format!("\"{}\"", hex::encode_prefixed(&*item)));
                }
            }
            let mut memory = Memory::touched(0);
            for most in [1, 2, 5, 1 << 10, 1 << 19] {
                let text = object(&items, &headers, &mut random);
                let mut body = Pieces { left: text.as_bytes(), random: Random::new(seed), most };
                let mut timing = Timing::start();
                memory.read_object(&mut body, &mut timing).expect("a witness");
                assert_eq!(timing.answer_bytes, text.len());
                assert!(found(&memory) == items, "in pieces of {most}");
                let cut = random.below(text.len() as u64 - 3) as usize;
                let mut body = &text.as_bytes()[..cut];
                memory.read_object(&mut body, &mut timing).expect_err("it is cut");
            }
        }
        let check = |text: &str, expected: &str| {
            let mut memory = Memory::touched(0);
            let outcome = memory.read_object(&mut text.as_bytes(), &mut Timing::start());
            let error = format!("{:#}", outcome.expect_err(text));
            assert!(error.contains(expected), "{error}");
        };
        check(r#"{"id":1,"error":{"code":-32000,"message":"no \"state\" here"}}"#, "here");
        check(r#"{"id":1,"result":null}"#, "no witness");
        check(r#"{"result":{"state":["0x1"],"headers":["0x"]}}"#, "odd");
        check(r#"{"result":{"state":["0xgg"],"headers":["0x"]}}"#, "not hex");
        check(r#"{"result":{"state":["00"],"headers":["0x"]}}"#, "without 0x");
    }

    #[test]
    fn cut_and_changed_answers_are_refused_or_read() {
        for seed in 0..30 {
            println!("seed {seed}");
            let mut random = Random::new(seed);
            let items = random_items(&mut random);
            let (mut lists, rlp_bytes, ssz_bytes) =
                (Lists::default(), as_rlp(&items, true), as_ssz(&items, true));
            for _ in 0..200 {
                let cut = random.below(rlp_bytes.len() as u64) as usize;
                assert!(rlp(&rlp_bytes[..cut], &mut lists).is_err(), "RLP cut at {cut}");
                let whole_ssz = |bytes: &[u8], lists: &mut Lists| ssz(bytes, 0..bytes.len(), lists);
                for (bytes, read) in
                    [(&rlp_bytes, rlp as fn(&[u8], &mut Lists) -> _), (&ssz_bytes, whole_ssz)]
                {
                    let mut changed = bytes.clone();
                    let place = random.below(bytes.len().min(200) as u64) as usize;
                    changed[place] = random.below(256) as u8;
                    lists = Lists::default();
                    if read(&changed, &mut lists).is_ok() {
                        for item in lists.headers.iter().chain(&lists.codes).chain(&lists.state) {
                            assert!(changed.get(item.clone()).is_some(), "{item:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_verdict_is_valid_and_of_the_block() {
        let status = |status: u8, hash: &[u8]| {
            let end = 9 + hash.len() as u8;
            [&[status, 9, 0, 0, 0, end, 0, 0, 0][..], hash].concat()
        };
        let (ours, other) = (B256::repeat_byte(7), B256::repeat_byte(8));
        let check = |bytes: &[u8]| ssz_verdict(bytes, &ours).map_err(|error| error.to_string());
        assert_eq!(check(&status(0, &ours[..])), Ok(()));
        let refusals = [
            (vec![], "an answer without a status"),
            (status(1, &[]), "the status is 1, and VALID is 0"),
            (status(2, &ours[..]), "the status is 2, and VALID is 0"),
            (status(0, &[]), "VALID, and in 9 bytes not the block's hash"),
            (status(0, &other[..]), "VALID, and in 41 bytes not the block's hash"),
            (vec![0; 5], "VALID, and in 5 bytes not the block's hash"),
        ];
        for (bytes, expected) in refusals {
            assert_eq!(check(&bytes), Err(expected.into()));
        }
    }

    #[test]
    fn answers_without_a_witness_say_what_they_said() {
        let check = |text: &str, expected: &str| {
            let mut memory = Memory::touched(0);
            let outcome = memory.read_json(&mut text.as_bytes(), &mut Timing::start());
            let error = format!("{:#}", outcome.expect_err(text));
            assert!(error.contains(expected), "{error}");
        };
        check(r#"{"id":1,"error":{"code":-32603,"message":"it broke"}}"#, "it broke");
        check(r#"{"result":{"status":"VALID"}}"#, "no witness");
        check(r#"{"result":{"status":"VALID","witness":null}}"#, "no witness");
        check(r#"{"result":{"status":"INVALID","witness":"0xc0"}}"#, "INVALID");
        check(r#"{"result":{"status":"VALID","witness":"0xc"}}"#, "odd");
        check(r#"{"result":{"status":"VALID","witness":"0xcg"}}"#, "nvalid");
        check(r#"{"result":{"status":"VALID","witness":"0x"}}"#, "cut");
        let mut memory = Memory::touched(0);
        let accepted: &[u8] = &[12, 0, 0, 0, 21, 0, 0, 0, 21, 0, 0, 0, 3, 9, 0, 0, 0, 9, 0, 0, 0];
        let outcome = memory.read_ssz(&mut { accepted }, &mut Timing::start());
        assert!(outcome.expect_err("ACCEPTED").to_string().contains("not VALID"));
    }
}
