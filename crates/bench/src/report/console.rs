//! Documents for a terminal: numbers, and where the words on how they were measured are.

use super::document::first_words;
use super::{Content, Document, Table, Unit};

/// Documents as aligned text. Charts are left to the page: what they show is in tables too; and so
/// are the words on how it was measured.
pub fn console(documents: &[Document]) -> String {
    documents.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(document: &Document) -> String {
    let document = &*document.as_shown();
    let mut out = underlined(&document.title, '=');
    for line in first_words(document) {
        out += &format!("\n{}\n", plain(&line));
    }
    for content in &document.content {
        match content {
            Content::Section(heading) => out += &format!("\n{}", underlined(heading, '-')),
            Content::Text(text) => out += &format!("\n{}\n", plain(text)),
            Content::Table(table) => out += &format!("\n{}", self::table(table)),
            Content::Method(_) | Content::Lines(_) | Content::Bars(_) => {}
        }
    }
    out += "\n";
    for ran in &document.clients {
        let words = [&ran.name, &ran.version].into_iter().chain(&ran.arguments);
        out += &format!("{}\n", words.map(|word| plain(word)).collect::<Vec<_>>().join(" "));
    }
    out += &format!("{}\n{}\n", plain(&document.machine.words()), document.made);
    out + &format!("$ {}\n", plain(&document.command))
}

fn underlined(text: &str, line: char) -> String {
    let text = plain(text);
    format!("{text}\n{}\n", line.to_string().repeat(text.chars().count()))
}

fn table(table: &Table) -> String {
    let headings = table.columns.iter().map(|column| plain(&column.heading())).collect();
    let mut lines: Vec<Vec<String>> = vec![headings];
    for row in &table.rows {
        let cells = row.iter().zip(&table.columns);
        lines.push(cells.map(|(cell, column)| plain(&cell.show(column.unit))).collect());
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..table.columns.len()).filter_map(width).collect();
    let mut out = format!("{}\n", plain(&table.title));
    for line in &lines {
        let mut text = String::from(" ");
        for ((cell, column), width) in line.iter().zip(&table.columns).zip(&widths) {
            text += &match column.unit {
                Unit::Text => format!(" {cell:<width$} "),
                _ => format!(" {cell:>width$} "),
            };
        }
        out += &format!("{}\n", text.trim_end());
    }
    out
}

/// The text on one line, without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
