//! Documents as one page: everything is in the file, and nothing in it runs.

use super::{Cell, Content, Document, Table, Unit, chart};

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
    let Document { title, command, made, machine, clients, content } = document;
    let mut out = format!("<h1>{}</h1>\n", escape(title));
    let mut charts = String::new();
    for piece in content {
        let figure = match piece {
            Content::Lines(chart) => Some((&chart.title, chart::lines(chart))),
            Content::Bars(chart) => Some((&chart.title, chart::bars(chart))),
            _ => None,
        };
        match figure {
            Some((title, drawing)) => {
                let caption = escape(title);
                charts +=
                    &format!("<figure><figcaption>{caption}</figcaption>{drawing}</figure>\n");
            }
            // Charts that follow each other stand side by side where there is room.
            None => out += &beside_each_other(&mut charts),
        }
        match piece {
            Content::Section(heading) => out += &format!("<h2>{}</h2>\n", escape(heading)),
            Content::Text(text) => out += &format!("<p>{}</p>\n", escape(text)),
            Content::Table(table) => out += &self::table(table),
            Content::Lines(_) | Content::Bars(_) => {}
        }
    }
    out += &beside_each_other(&mut charts);
    let mut ran = String::new();
    for client in clients {
        let [name, version] = [&client.name, &client.version].map(|text| escape(text));
        let arguments = escape(&client.arguments.join(" "));
        ran += &format!("<dt>{name}</dt><dd>{version} <code>{arguments}</code></dd>\n");
    }
    let [command, machine, made] = [command, &machine.words(), made].map(|text| escape(text));
    out + &format!(
        "<section class=\"setting\">\n<h2>How it was run</h2>\n<pre><code>{command}</code></pre>\n\
         <dl>\n{ran}<dt>machine</dt><dd>{machine}</dd>\n<dt>time</dt><dd>{made}</dd>\n</dl>\n\
         </section>\n"
    )
}

fn beside_each_other(charts: &mut String) -> String {
    match std::mem::take(charts) {
        charts if charts.is_empty() => charts,
        charts => format!("<div class=\"charts\">\n{charts}</div>\n"),
    }
}

fn table(table: &Table) -> String {
    let class = |unit| if unit == Unit::Text { "" } else { " class=\"number\"" };
    let heading = |column: &super::Column| {
        let (class, name) = (class(column.unit), escape(&column.name));
        let unit = match column.unit.symbol() {
            symbol if column.heading() != column.name => format!(" <small>{symbol}</small>"),
            _ => String::new(),
        };
        format!("<th{class}>{name}{unit}</th>")
    };
    let cell = |(cell, column): (&Cell, &super::Column)| {
        let class = match (cell, column.unit) {
            (Cell::Answer(true), _) => " class=\"yes\"",
            (Cell::Answer(false), _) => " class=\"no\"",
            (Cell::Missing, _) => " class=\"none\"",
            (Cell::Text(_), unit) if unit != Unit::Text => " class=\"none\"",
            (_, unit) => class(unit),
        };
        format!("<td{class}>{}</td>", escape(&cell.show(column.unit)))
    };
    let headings: String = table.columns.iter().map(heading).collect();
    let row = |row: &Vec<Cell>| {
        let cells: String = row.iter().zip(&table.columns).map(cell).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = table.rows.iter().map(row).collect();
    format!(
        "<h3>{}</h3>\n<div class=\"wide\"><table>\n<thead><tr>{headings}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n",
        escape(&table.title)
    )
}

/// The text as a page shows it, in an element or in an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // Those that pages may not have, and those that turn the text around them.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
