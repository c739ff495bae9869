//! Documents as one page: the answer first, how it was found folded below. Everything is in the
//! file, and nothing in it runs.

use super::document::first_words;
use super::draw::{self, NARROW, Scene, WIDE};
use super::svg::{self, escape};
use super::{Cell, Column, Content, Document, Table, Unit};

const STYLE: &str = include_str!("page.css");

/// Documents as one page with tables and charts, for screens of any size and for paper.
pub fn html(documents: &[Document]) -> String {
    let title = match documents {
        [document] => escape(&document.title),
        documents => format!("{} reports", documents.len()),
    };
    let mut body = String::new();
    if documents.len() > 1 {
        let entry = |(index, document): (usize, &Document)| {
            format!("<li><a href=\"#report-{index}\">{}</a></li>", escape(&document.title))
        };
        let entries: String = documents.iter().enumerate().map(entry).collect();
        body += &format!("<nav><ul>{entries}</ul></nav>\n");
    }
    for (index, document) in documents.iter().enumerate() {
        body += &format!("<article id=\"report-{index}\">\n{}</article>\n", article(document));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n\
         </html>\n"
    )
}

fn article(document: &Document) -> String {
    let document = &*document.as_shown();
    let mut out = format!("<h1>{}</h1>\n", escape(&document.title));
    let class = if document.machine.busy.is_some() { "answer busy" } else { "answer" };
    for line in first_words(document) {
        out += &format!("<p class=\"{class}\">{}</p>\n", escape(&line));
    }
    for answer in &document.answers {
        out += &figure(&answer.of, |width| draw::ratios(answer, width));
    }
    let mut method = String::new();
    for piece in &document.content {
        match piece {
            Content::Section(heading) => out += &format!("<h2>{}</h2>\n", escape(heading)),
            Content::Text(text) => out += &format!("<p>{}</p>\n", escape(text)),
            Content::Method(text) => method += &format!("<p>{}</p>\n", escape(text)),
            Content::Table(table) => out += &self::table(table),
            Content::Lines(chart) => {
                out += &figure(&chart.title, |width| draw::lines(chart, width));
            }
            Content::Bars(chart) => out += &figure(&chart.title, |width| draw::bars(chart, width)),
        }
    }
    let Document { command, made, machine, clients, .. } = document;
    let mut ran = String::new();
    for client in clients {
        let [name, version] = [&client.name, &client.version].map(|text| escape(text));
        let arguments = escape(&client.arguments.join(" "));
        ran += &format!("<dt>{name}</dt><dd>{version} <code>{arguments}</code></dd>\n");
    }
    let [command, machine, made] = [command, &machine.words(), made].map(|text| escape(text));
    out + &format!(
        "<details>\n<summary>How it was measured</summary>\n{method}\
         <pre><code>{command}</code></pre>\n\
         <dl>\n{ran}<dt>machine</dt><dd>{machine}</dd>\n<dt>time</dt><dd>{made}</dd>\n</dl>\n\
         </details>\n"
    )
}

/// A drawing for each kind of screen.
fn figure(title: &str, draw: impl Fn(f64) -> Option<Scene>) -> String {
    match [WIDE, NARROW].map(draw) {
        [Some(wide), Some(narrow)] => format!(
            "<figure>{}{}</figure>\n",
            svg::inline(&wide, "wide"),
            svg::inline(&narrow, "narrow")
        ),
        _ => format!("<p class=\"none\">{}: nothing was measured.</p>\n", escape(title)),
    }
}

/// A table, whose first columns of names are one, so that a phone has room for numbers.
fn table(table: &Table) -> String {
    let columns = &table.columns;
    let names = columns.iter().take_while(|column| column.unit == Unit::Text).count();
    let class = |unit| if unit == Unit::Text { "" } else { " class=\"number\"" };
    let heading = |column: &Column| {
        let (class, name) = (class(column.unit), escape(&column.name));
        let unit = match column.unit.symbol() {
            symbol if column.heading() != column.name => format!(" <small>{symbol}</small>"),
            _ => String::new(),
        };
        format!("<th{class}>{name}{unit}</th>")
    };
    let cell = |(cell, column): (&Cell, &Column)| {
        let class = match (cell, column.unit) {
            (Cell::Answer(true), _) => " class=\"yes\"",
            (Cell::Answer(false), _) => " class=\"no\"",
            (Cell::Missing, _) => " class=\"none\"",
            (Cell::Text(_), unit) if unit != Unit::Text => " class=\"none\"",
            (_, unit) => class(unit),
        };
        format!("<td{class}>{}</td>", escape(&cell.show(column.unit)))
    };
    let joined = |words: Vec<String>| match words.is_empty() {
        true => String::new(),
        false => words.join(" <i>·</i> "),
    };
    let first = joined(columns[..names].iter().map(|column| escape(&column.name)).collect());
    let headings: String = columns[names..].iter().map(heading).collect();
    let row = |row: &Vec<Cell>| {
        let first =
            joined(row[..names].iter().map(|cell| escape(&cell.show(Unit::Text))).collect());
        let cells: String = row[names..].iter().zip(&columns[names..]).map(cell).collect();
        let first = if names > 0 { format!("<th>{first}</th>") } else { first };
        format!("<tr>{first}{cells}</tr>\n")
    };
    let rows: String = table.rows.iter().map(row).collect();
    let first = if names > 0 { format!("<th>{first}</th>") } else { first };
    format!(
        "<h3>{}</h3>\n<div class=\"scroll\"><table>\n<thead><tr>{first}{headings}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n",
        escape(&table.title)
    )
}
