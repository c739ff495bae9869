//! How two witnesses differ.

use std::collections::{BTreeMap, HashSet};

use alloy_primitives::B256;
use alloy_primitives::map::B256Map;
use serde_json::{Value, json};

use super::Inspected;
use super::summary::{Count, Item, account_name, items};
use super::table::{Table, grouped, items_table};

/// The items that only one of two witnesses has, and how their order and form differ.
pub(super) struct Difference<'a> {
    sides: [DiffSide<'a>; 2],
    /// The items that both have, each once.
    common: Count,
}

struct DiffSide<'a> {
    /// The name by which it was asked for.
    name: &'a str,
    number: u64,
    hash: B256,
    all: Count,
    /// How its order and form differ from the canonical ones.
    form: &'a [String],
    /// The items that only this one has, in their order.
    only: Vec<Item>,
}

impl<'a> Difference<'a> {
    pub(super) fn new(sides: [&'a Inspected; 2], names: [&'a str; 2]) -> Self {
        let all = sides.map(|side| items(&side.inspection, &side.names).collect::<Vec<_>>());
        let key = |item: &Item| (list_of(item), item.hash);
        let sets = all.each_ref().map(|items| items.iter().map(key).collect::<HashSet<_>>());
        let mut common = Count::default();
        for item in &all[0] {
            if item.left_over != Some(TWICE) && sets[1].contains(&key(item)) {
                common = common.and_bytes(item.bytes);
            }
        }
        let side = |index: usize| {
            let (inspected, others) = (sides[index], &sets[1 - index]);
            let sum = all[index].iter().fold(Count::default(), |sum, i| sum.and_bytes(i.bytes));
            let is_only = |item: &&Item| !others.contains(&key(item));
            DiffSide {
                name: names[index],
                number: inspected.given.block.header.number,
                hash: inspected.given.block.hash(),
                all: sum,
                form: &inspected.form,
                only: all[index].iter().filter(is_only).cloned().collect(),
            }
        };
        Self { sides: [side(0), side(1)], common }
    }

    /// Whether both have the same items.
    pub(super) fn is_same(&self) -> bool {
        self.sides.iter().all(|side| side.only.is_empty())
    }

    /// Whether both have the same order and form.
    pub(super) fn has_same_form(&self) -> bool {
        self.sides[0].form == self.sides[1].form
    }

    /// The verdict and its reason, in words.
    fn verdict(&self, is_same: bool) -> String {
        match (is_same, self.is_same(), self.has_same_form()) {
            (true, _, true) => "SAME: items and order are the same".into(),
            (true, _, false) => {
                "SAME: the items are the same, and order or form alone differ".into()
            }
            (false, true, _) => "DIFFERENT: order or form alone; the items are the same".into(),
            (false, false, _) => "DIFFERENT: items that only one of them has".into(),
        }
    }

    pub(super) fn text(&self, is_same: bool, rows: usize) -> String {
        let mut out = format!("{}\n", self.verdict(is_same));
        let mut line = |name: &str, value: String| out += &format!("{name:<8}{value}\n");
        for (letter, side) in ["A", "B"].into_iter().zip(&self.sides) {
            line(letter, format!("{}: block {} ({})", side.name, side.number, side.hash));
            line("", side.all.text());
            let form = if side.form.is_empty() { "canonical".into() } else { side.form.join("; ") };
            line("", format!("order and form: {form}"));
        }
        if self.sides[0].hash != self.sides[1].hash {
            line("note", "these are different blocks".into());
        }
        line("both", self.common.text());
        for (letter, side) in ["A", "B"].into_iter().zip(&self.sides) {
            if side.only.is_empty() {
                continue;
            }
            out += &format!("\nonly in {letter}: {}\n", side.only_count().text());
            let mut table = Table::new(["items", "bytes", "whose"]);
            for (whose, count) in side.by_owner() {
                table.row([grouped(count.items), grouped(count.bytes), whose]);
            }
            out += &table.text();
            let shown = &side.only[..rows.min(side.only.len())];
            out += &items_table("item", shown);
            if shown.len() < side.only.len() {
                out += &format!("{} more: --rows\n", grouped(side.only.len() - shown.len()));
            }
        }
        out
    }

    pub(super) fn json(&self, is_same: bool, rows: usize) -> String {
        let side = |side: &DiffSide<'_>| -> Value {
            json!({
                "input": side.name,
                "number": side.number,
                "hash": side.hash,
                "items": side.all.items,
                "bytes": side.all.bytes,
                "form": side.form,
                "only": side.only[..rows.min(side.only.len())],
                "onlyItems": side.only.len(),
                "onlyBytes": side.only_count().bytes,
            })
        };
        let value = json!({
            "verdict": if is_same { "SAME" } else { "DIFFERENT" },
            "sameItems": self.is_same(),
            "sameForm": self.has_same_form(),
            "both": self.common,
            "a": side(&self.sides[0]),
            "b": side(&self.sides[1]),
        });
        format!("{value}\n")
    }
}

impl DiffSide<'_> {
    fn only_count(&self) -> Count {
        self.only.iter().fold(Count::default(), |sum, item| sum.and_bytes(item.bytes))
    }

    /// The items that only this one has, by whose they are, the most bytes first.
    fn by_owner(&self) -> Vec<(String, Count)> {
        let mut owners: B256Map<(String, Count)> = B256Map::default();
        let mut others: BTreeMap<&str, Count> = BTreeMap::new();
        for item in &self.only {
            let of = match item.account {
                Some(account) => {
                    let name = account_name(item.account, item.address).unwrap_or_default();
                    &mut owners.entry(account).or_insert((name, Count::default())).1
                }
                None => others.entry(item.left_over.unwrap_or(item.kind)).or_default(),
            };
            *of = of.and_bytes(item.bytes);
        }
        let others = others.into_iter().map(|(kind, count)| {
            let name = match kind {
                "account node" => "account trie, above the leaves",
                kind => kind,
            };
            (name.to_owned(), count)
        });
        let mut all: Vec<_> = owners.into_values().chain(others).collect();
        all.sort_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then_with(|| a.0.cmp(&b.0)));
        all
    }
}

const TWICE: &str = "given twice";

/// The list of a witness that an item is in.
fn list_of(item: &Item) -> &'static str {
    match item.kind {
        "code" | "header" => item.kind,
        _ => "node",
    }
}
