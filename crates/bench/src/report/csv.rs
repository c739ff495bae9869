//! Tables as comma-separated values (RFC 4180).

use super::{Cell, Content, Document, Table, file_name};

/// A table with a line of headings. Numbers have all their digits; what is missing is empty.
pub fn csv(table: &Table) -> String {
    let line = |fields: Vec<String>| fields.join(",") + "\r\n";
    let mut out = line(table.columns.iter().map(|column| quote(&column.heading())).collect());
    for row in &table.rows {
        let fields = row.iter().zip(&table.columns).map(|(cell, column)| match cell {
            Cell::Number(value) => value.to_string(),
            Cell::Missing => String::new(),
            cell => quote(&cell.show(column.unit)),
        });
        out += &line(fields.collect());
    }
    out
}

fn quote(field: &str) -> String {
    match field.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.into(),
    }
}

/// The tables of documents with names of their files: the place in the report, the heading that
/// it is under, and the title.
pub(super) fn files(documents: &[Document]) -> Vec<(String, String)> {
    let (mut files, mut section) = (Vec::new(), "");
    let shown: Vec<_> = documents.iter().map(Document::as_shown).collect();
    for content in shown.iter().flat_map(|document| &document.content) {
        match content {
            Content::Section(heading) => section = heading,
            Content::Table(table) => {
                let name = file_name(files.len() + 1, &format!("{section} {}", table.title));
                files.push((name + ".csv", csv(table)));
            }
            _ => {}
        }
    }
    files
}
