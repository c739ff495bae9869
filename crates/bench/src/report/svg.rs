//! Drawings as SVG: for the page, which has the colours, and as files, which have their own.

use super::draw::{Anchor, Ink, Scene, Shape};

/// Colours of series, and of everything else, on white: those of the page's light scheme.
pub(super) const COLOURS: [&str; 8] =
    ["#0b6bb5", "#d1570b", "#118a63", "#a8479a", "#b08900", "#4da3d6", "#7a5a3a", "#5b5f97"];

/// The colour of an ink on white.
pub(super) const fn colour(ink: Ink) -> &'static str {
    match ink {
        Ink::Text => "#1c1e21",
        Ink::Quiet => "#63676d",
        Ink::Grid => "#d9dce0",
        Ink::Series(series) => COLOURS[series % COLOURS.len()],
    }
}

/// The dashes of a series' line: lengths drawn and left out, in turns. They differ where a
/// colour comes again.
pub(super) const fn dashes(series: usize) -> &'static [f64] {
    match (series + series / COLOURS.len()) % 4 {
        0 => &[],
        1 => &[8.0, 3.0],
        2 => &[3.0, 2.5],
        _ => &[9.0, 3.0, 2.0, 3.0],
    }
}

/// A file of its own, on white.
pub(super) fn file(scene: &Scene) -> String {
    let Scene { width, height, .. } = scene;
    let body = body(scene, &|ink| colour(ink).to_owned());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height:.0}\" \
         width=\"{width}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11.5\">\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>{body}</svg>\n"
    )
}

/// A part of the page, of a class that says for which screens.
pub(super) fn inline(scene: &Scene, class: &str) -> String {
    let Scene { title, width, height, .. } = scene;
    let body = body(scene, &|ink| match ink {
        Ink::Text => "var(--text)".into(),
        Ink::Quiet => "var(--quiet)".into(),
        Ink::Grid => "var(--line)".into(),
        Ink::Series(series) => format!("var(--c{})", series % COLOURS.len()),
    });
    format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height:.0}\" role=\"img\" \
         aria-label=\"{}\">{body}</svg>",
        escape(title)
    )
}

fn body(scene: &Scene, colour: &dyn Fn(Ink) -> String) -> String {
    scene.shapes.iter().map(|shape| one(shape, colour)).collect()
}

fn one(shape: &Shape, colour: &dyn Fn(Ink) -> String) -> String {
    let said = |said: &str| match said {
        "" => String::new(),
        said => format!("<title>{}</title>", escape(said)),
    };
    match shape {
        Shape::Rect { at: [x, y], size: [width, height], ink, said: words } => format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{}\">{}</rect>",
            colour(*ink),
            said(words)
        ),
        Shape::Line { from: [x1, y1], to: [x2, y2], ink } => format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{}\"/>",
            colour(*ink)
        ),
        Shape::Curve { points, series } => {
            let places: Vec<_> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
            let dashes: Vec<_> = dashes(*series).iter().map(f64::to_string).collect();
            format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" \
                 stroke-linejoin=\"round\" stroke-dasharray=\"{}\"/>",
                places.join(" "),
                colour(Ink::Series(*series)),
                if dashes.is_empty() { "none".into() } else { dashes.join(" ") },
            )
        }
        Shape::Mark { at: [x, y], series, said: words } => format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{}\">{}</circle>",
            colour(Ink::Series(*series)),
            said(words)
        ),
        Shape::Text { at: [x, y], anchor, ink, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{}\">{}</text>",
                colour(*ink),
                escape(text)
            )
        }
    }
}

/// The text as a page or a drawing shows it, in an element or in an attribute.
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
