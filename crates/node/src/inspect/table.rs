//! Summaries as text for a terminal.

use crate::console::counted;

use super::summary::{Count, Item, Summary, account_name};

/// The tables of a witness.
pub(super) fn text(summary: &Summary, form: &[String]) -> String {
    let Summary { number, hash, kinds, depths, accounts, all, .. } = summary;
    let mut out = String::new();
    let mut line = |name: &str, value: String| out += &format!("{name:<16}{value}\n");
    line("block", format!("{number} ({hash})"));
    line(
        "state before",
        match summary.state_root {
            Some(root) => root.to_string(),
            None => "unknown: the header of the block's parent is missing".to_owned(),
        },
    );
    let (transactions, gas) = (summary.transactions, grouped(summary.gas_used as usize));
    line("transactions", format!("{transactions}, {gas} gas"));
    line("witness", all.text());
    if !form.is_empty() {
        line("form", form.join("; "));
    }
    let mut table = Table::new(["items", "bytes", "share", "kind"]);
    for (name, kind) in [
        ("nodes of the account trie", kinds.account_nodes),
        ("nodes of storages", kinds.storage_nodes),
        ("codes", kinds.codes),
        ("headers", kinds.headers),
        ("unreached, malformed or given twice", kinds.unreached),
    ] {
        let share = format!("{:.1}%", 100.0 * kind.bytes as f64 / all.bytes.max(1) as f64);
        table.row([grouped(kind.items), grouped(kind.bytes), share, name.to_owned()]);
    }
    out += &table.text();
    out += &depth_table(&depths.account, &depths.storage);
    out += &format!(
        "\n{}, {} with storage, {} with code; the addresses of {} are known\n",
        counted(grouped(accounts.total), "account"),
        grouped(accounts.with_storage),
        grouped(accounts.with_code),
        grouped(accounts.named)
    );
    let mut table = Table::new(["bytes", "nodes", "storage", "code", "depth", "account"]);
    for account in &accounts.list {
        table.row([
            grouped(account.bytes),
            grouped(account.storage_nodes),
            grouped(account.storage_bytes),
            grouped(account.code_bytes),
            if account.storage_nodes > 0 {
                account.storage_depth.to_string()
            } else {
                "–".into()
            },
            account_name(Some(account.hashed_address), account.address).unwrap_or_default(),
        ]);
    }
    let mut rest = |count: Count, name: String| {
        let [dash] = ["–".to_owned()];
        let bytes = grouped(count.bytes);
        table.row([bytes, dash.clone(), dash.clone(), dash.clone(), dash, name]);
    };
    if accounts.others.items > 0 {
        rest(accounts.others, counted(grouped(accounts.others.items), "other account"));
    }
    let upper = counted(grouped(accounts.upper_nodes.items), "node");
    rest(accounts.upper_nodes, format!("{upper} of the account trie above all leaves"));
    out += &table.text();
    out += &items_table("largest item", &summary.largest);
    if !summary.left_over.is_empty() {
        out += &items_table("left over", &summary.left_over);
    }
    out
}

impl Count {
    /// The items and their bytes.
    pub(super) fn text(&self) -> String {
        let (items, bytes) = (grouped(self.items), grouped(self.bytes));
        format!("{}, {}", counted(items, "item"), counted(bytes, "byte"))
    }
}

fn depth_table(account: &[Count], storage: &[Count]) -> String {
    let mut table = Table::new(["account nodes", "bytes", "storage nodes", "bytes", "depth"]);
    for depth in 0..account.len().max(storage.len()) {
        let cells = |counts: &[Count]| {
            let Count { items, bytes } = counts.get(depth).copied().unwrap_or_default();
            [grouped(items), grouped(bytes)]
        };
        let ([a, b], [c, d]) = (cells(account), cells(storage));
        table.row([a, b, c, d, depth.to_string()]);
    }
    table.text()
}

/// Items, each with what it is and whose.
pub(super) fn items_table(title: &str, items: &[Item]) -> String {
    let mut table = Table::new(["bytes", title]);
    for item in items {
        let whose = item.whose();
        let what = match item.kind {
            // A node is named by where it is, as long as it is somewhere.
            "account node" | "storage node" => format!("{} {whose}", item.kind),
            "code" | "header" => {
                let digits = item.hash.to_string();
                format!("{} {}…{} {whose}", item.kind, &digits[..10], &digits[58..])
            }
            kind => format!("{kind} {} {whose}", item.hash),
        };
        table.row([grouped(item.bytes), what]);
    }
    table.text()
}

/// A table whose last column is text, and the others are numbers.
pub(super) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(names: [&str; N]) -> Self {
        Self { rows: vec![names.map(str::to_owned)] }
    }

    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// The rows behind an empty line, the columns as wide as their widest cells.
    pub(super) fn text(&self) -> String {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let mut out = String::from("\n");
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                match column + 1 == N {
                    true => out += &format!("{cell}\n"),
                    false => out += &format!("{cell:>width$}  ", width = widths[column]),
                }
            }
        }
        out
    }
}

/// A number with its digits in groups of three.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        let numbers = [0, 7, 999, 1000, 65_536, 1_234_567];
        let expected = ["0", "7", "999", "1,000", "65,536", "1,234,567"];
        assert_eq!(numbers.map(grouped), expected);
    }
}
