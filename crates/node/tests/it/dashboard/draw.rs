//! The panels of a dashboard with their data, drawn as SVG.

use std::fmt::Write;

/// A panel with its data.
pub(super) struct Panel {
    pub(super) title: String,
    /// The name of a unit in Grafana.
    pub(super) unit: String,
    /// Whether it shows the last value alone.
    pub(super) is_stat: bool,
    /// Left, top, width and height in cells of the dashboard's grid.
    pub(super) place: [f64; 4],
    pub(super) series: Vec<Series>,
}

/// A line of a panel.
pub(super) struct Series {
    pub(super) name: String,
    /// Seconds since the start, and values.
    pub(super) points: Vec<(f64, f64)>,
}

/// Pixels of a cell of the grid.
const CELL: [f64; 2] = [50.0, 28.0];

const COLOURS: [&str; 8] =
    ["#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#5794f2", "#b877d9", "#8ab8ff"];

/// Lines that a legend has at most; the rest is a number.
const LEGEND: usize = 5;

/// The whole dashboard.
pub(super) fn dashboard(panels: &[Panel]) -> String {
    let rows = panels.iter().map(|panel| panel.place[1] + panel.place[3]).fold(0.0, f64::max);
    let (width, height) = (24.0 * CELL[0], rows * CELL[1] + 8.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#111217\"/>\n"
    );
    for panel in panels {
        draw(&mut svg, panel);
    }
    svg + "</svg>\n"
}

fn draw(svg: &mut String, panel: &Panel) {
    let [x, y, w, h] = panel.place;
    let (left, top) = (x * CELL[0] + 4.0, y * CELL[1] + 4.0);
    let (width, height) = (w * CELL[0] - 8.0, h * CELL[1] - 8.0);
    let title = escaped(&panel.title);
    write!(
        svg,
        "<g transform=\"translate({left:.0},{top:.0})\"><rect width=\"{width:.0}\" \
         height=\"{height:.0}\" rx=\"3\" fill=\"#181b1f\" stroke=\"#2c3235\"/>\
         <text x=\"8\" y=\"16\" fill=\"#d8d9da\" font-weight=\"bold\">{title}</text>"
    )
    .expect("a text takes all");
    match panel.is_stat {
        true => stat(svg, panel, [width, height]),
        false => lines(svg, panel, [width, height]),
    }
    *svg += "</g>\n";
}

fn stat(svg: &mut String, panel: &Panel, [width, height]: [f64; 2]) {
    let Some(series) = panel.series.first() else { return };
    let last = series.points.iter().rev().find(|(_, value)| value.is_finite());
    let value = last.map_or(f64::NAN, |(_, value)| *value);
    let is_name = panel.title == "Version";
    let shown = if is_name { escaped(&series.name) } else { amount(value, &panel.unit) };
    let size = if is_name { 14 } else { 26 };
    let (x, y) = (width / 2.0, height / 2.0 + 16.0);
    write!(
        svg,
        "<text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"#73bf69\" font-size=\"{size}\" \
         text-anchor=\"middle\">{shown}</text>"
    )
    .expect("a text takes all");
}

fn lines(svg: &mut String, panel: &Panel, [width, height]: [f64; 2]) {
    let finite = |series: &Series| {
        let points = series.points.iter().copied();
        points.filter(|(_, value)| value.is_finite()).collect::<Vec<_>>()
    };
    let drawn: Vec<_> = panel.series.iter().map(|of| (of.name.as_str(), finite(of))).collect();
    let drawn: Vec<_> = drawn.into_iter().filter(|(_, points)| !points.is_empty()).collect();
    let all = || drawn.iter().flat_map(|(_, points)| points);
    let most = all().map(|(_, value)| *value).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let start = all().map(|(time, _)| *time).fold(f64::MAX, f64::min);
    let end = all().map(|(time, _)| *time).fold(start + 1.0, f64::max);
    let shown = drawn.len().min(LEGEND);
    let (x0, y0) = (64.0, 26.0);
    let (w, h) = (width - x0 - 10.0, height - y0 - 20.0 - 13.0 * shown as f64);
    for part in [0.0, 0.5, 1.0] {
        let (y, value) = (y0 + h * (1.0 - part), amount(most * part, &panel.unit));
        write!(
            svg,
            "<path d=\"M{x0} {y:.1}h{w:.1}\" stroke=\"#2c3235\"/><text x=\"{:.0}\" y=\"{:.1}\" \
             fill=\"#9fa7b3\" text-anchor=\"end\">{value}</text>",
            x0 - 6.0,
            y + 4.0
        )
        .expect("a text takes all");
    }
    for (at, (name, points)) in drawn.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let place = |(time, value): &(f64, f64)| {
            format!(
                "{:.1},{:.1}",
                x0 + w * (time - start) / (end - start),
                y0 + h * (1.0 - value / most)
            )
        };
        let line = points.iter().map(place).collect::<Vec<_>>().join(" ");
        write!(svg, "<polyline points=\"{line}\" fill=\"none\" stroke=\"{colour}\"/>")
            .expect("a text takes all");
        if at < shown {
            let rest = drawn.len() - shown;
            let more =
                if at + 1 == shown && rest > 0 { format!(" and {rest} more") } else { "".into() };
            let y = y0 + h + 16.0 + 13.0 * at as f64;
            let last = amount(points[points.len() - 1].1, &panel.unit);
            write!(
                svg,
                "<rect x=\"10\" y=\"{:.1}\" width=\"10\" height=\"3\" fill=\"{colour}\"/>\
                 <text x=\"26\" y=\"{y:.1}\" fill=\"#9fa7b3\">{}{more}: {last}</text>",
                y - 5.0,
                escaped(name)
            )
            .expect("a text takes all");
        }
    }
}

/// A value in a unit, short.
fn amount(value: f64, unit: &str) -> String {
    let scaled = |steps: &[(f64, &str)], suffix: &str| {
        let found = steps.iter().find(|(from, _)| value.abs() >= *from);
        let (from, name) = found.or(steps.last()).expect("a step");
        format!("{}{name}{suffix}", short(value / from))
    };
    let bytes = [(1.0e9, " GB"), (1.0e6, " MB"), (1.0e3, " kB"), (1.0, " B")];
    match unit {
        "s" if value >= 86_400.0 => format!("{} d", short(value / 86_400.0)),
        "s" => scaled(&[(1.0, " s"), (1.0e-3, " ms"), (1.0e-6, " µs")], ""),
        "bytes" => scaled(&bytes, ""),
        "Bps" => scaled(&bytes, "/s"),
        "percentunit" => format!("{} %", short(100.0 * value)),
        "reqps" => format!("{}/s", short(value)),
        _ => scaled(&[(1.0e9, " G"), (1.0e6, " M"), (1.0e3, " k"), (1.0, "")], ""),
    }
}

fn short(value: f64) -> String {
    if value >= 100.0 || value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    format!("{value:.1}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
