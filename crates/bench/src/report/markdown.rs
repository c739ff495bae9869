//! Documents in Markdown.

use super::document::first_words;
use super::{Cell, Content, Document, Table, Unit};

/// Documents in Markdown, one after the other. Charts are left to the other forms: what they show
/// is in tables too.
pub fn markdown(documents: &[Document]) -> String {
    documents.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(document: &Document) -> String {
    let document = &*document.as_shown();
    let mut out = format!("# {}\n", escape(&document.title));
    for line in first_words(document) {
        out += &format!("\n**{}**\n", escape(&line));
    }
    for content in &document.content {
        match content {
            Content::Section(heading) => out += &format!("\n## {}\n", escape(heading)),
            Content::Text(text) => out += &format!("\n{}\n", escape(text)),
            Content::Table(table) => out += &format!("\n{}", self::table(table)),
            Content::Method(_) | Content::Lines(_) | Content::Bars(_) => {}
        }
    }
    let Document { command, made, machine, clients, .. } = document;
    out += "\n## How it was measured\n";
    for piece in &document.content {
        if let Content::Method(text) = piece {
            out += &format!("\n{}\n", escape(text));
        }
    }
    out += &format!("\n```sh\n{command}\n```\n\n");
    for ran in clients {
        out += &format!("- {}: {}", escape(&ran.name), escape(&ran.version));
        if !ran.arguments.is_empty() {
            out += &format!(", `{}`", ran.arguments.join(" ").replace('`', "'"));
        }
        out += "\n";
    }
    out + &format!("- {}\n- {made}\n", escape(&machine.words()))
}

fn table(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let columns = &table.columns;
    let mut out = format!("**{}**\n\n", escape(&table.title));
    out += &line(columns.iter().map(|column| escape(&column.heading())).collect());
    let side = |unit| if unit == Unit::Text { "---|" } else { "--:|" };
    out += &format!("|{}\n", columns.iter().map(|column| side(column.unit)).collect::<String>());
    for row in &table.rows {
        let cells = row.iter().zip(columns).map(|(cell, column)| match cell {
            Cell::Answer(false) => "**no**".into(),
            cell => escape(&cell.show(column.unit)),
        });
        out += &line(cells.collect());
    }
    out
}

/// The text without what Markdown would take for its own, on one line.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '\\' | '|' | '<' | '*' | '`' | '[' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}
