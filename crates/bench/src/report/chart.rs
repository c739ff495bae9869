//! Charts as SVG, for a page that has colours for the classes `s0` to `s7` and dashes for `d1` to
//! `d3`.
//!
//! A drawing is as wide as a phone's page and is shown little larger than drawn, so that its text
//! can be read on both. Names of series are left to a legend beside it, which wraps.

use super::html::escape;
use super::{Axis, Bars, Lines, Series, Unit};

/// Colours that the page has.
const COLOURS: usize = 8;
const WIDTH: f64 = 380.0;
/// Where the plot lies: room for numbers to the left and below, and for half a number to the right.
const LEFT: f64 = 44.0;
const RIGHT: f64 = 362.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 214.0;
/// Below the plot: numbers and the axis' name.
const BELOW: f64 = 38.0;
/// About what a character takes to the right, of the size that the page gives them.
const CHARACTER: f64 = 6.2;
/// Curves of at most so many points show them.
const MARKED_POINTS: usize = 24;
/// From one bar to the next: its name, and itself.
const BAR_STEP: f64 = 36.0;
const BAR_HEIGHT: f64 = 14.0;
/// Characters of a bar's name that have room.
const BAR_NAME: usize = 44;

/// Where numbers of an axis lie in a drawing.
struct Scale {
    unit: Unit,
    logarithmic: bool,
    /// The numbers at both ends.
    domain: [f64; 2],
    /// Where the ends are drawn.
    range: [f64; 2],
}

impl Scale {
    /// A scale that has room for `values`; none when none of them can be shown.
    fn new(axis: &Axis, values: impl Iterator<Item = f64>, range: [f64; 2]) -> Option<Self> {
        let shown = values.filter(|value| !axis.logarithmic || *value > 0.0);
        let ends = shown.fold(None, |ends: Option<[f64; 2]>, value| {
            Some(ends.map_or([value; 2], |[low, high]| [low.min(value), high.max(value)]))
        });
        let [low, high] = ends?;
        let domain = match (axis.logarithmic, axis.unit) {
            (true, _) => [low / 1.1, high * 1.1],
            (false, Unit::Percent) if low >= 0.0 && high <= 100.0 => [0.0, 100.0],
            (false, _) if low == 0.0 && high == 0.0 => [0.0, 1.0],
            (false, _) => {
                let [low, high] = [low.min(0.0), high.max(0.0)];
                let step = step((high - low) / 5.0);
                [(low / step).floor() * step, (high / step).ceil() * step]
            }
        };
        Some(Self { unit: axis.unit, logarithmic: axis.logarithmic, domain, range })
    }

    fn place(&self, value: f64) -> f64 {
        let along = |value: f64| if self.logarithmic { value.log10() } else { value };
        let [low, high] = self.domain.map(along);
        let [from, to] = self.range;
        from + (along(value) - low) / (high - low) * (to - from)
    }

    /// Round numbers, `distance` from each other at least.
    fn ticks(&self, distance: impl Fn(&str) -> f64) -> Vec<(f64, String)> {
        let [low, high] = self.domain;
        let mut values = Vec::new();
        if self.logarithmic {
            for digits in [&[1.0][..], &[1.0, 2.0, 5.0]] {
                let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
                let all = decades.flat_map(|decade| digits.iter().map(move |d| d * ten(decade)));
                values = all.filter(|value| (low..=high).contains(value)).collect();
                if values.len() > 2 {
                    break;
                }
            }
        }
        if values.len() < 3 {
            let step = step((high - low) / 5.0);
            let first = (low / step - 1e-9).ceil() as i64;
            let last = (high / step + 1e-9).floor() as i64;
            values = (first..=last).map(|index| index as f64 * step).collect();
        }
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for value in values {
            let (place, text) = (self.place(value), number(value, self.unit));
            let is_free = |last: &(f64, String)| {
                (place - last.0).abs() >= (distance(&text) + distance(&last.1)) / 2.0
            };
            if ticks.last().is_none_or(is_free) {
                ticks.push((place, text));
            }
        }
        ticks
    }
}

fn ten(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

/// The smallest of 1, 2 or 5 times a power of ten that is not below `least`.
fn step(least: f64) -> f64 {
    let decade = ten(least.log10().floor() as i32);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(decade * 10.0)
}

/// A round number in few characters.
fn number(value: f64, unit: Unit) -> String {
    let short = |value: f64| {
        let text = format!("{value:.9}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let text = match value.abs() {
        large if large >= 1e6 => format!("{}M", short(value / 1e6)),
        large if large >= 1e4 => format!("{}k", short(value / 1e3)),
        _ => short(value),
    };
    if unit == Unit::Percent { text + "%" } else { text }
}

/// An axis' name with its unit, where the numbers do not have it.
fn name(axis: &Axis) -> String {
    match (axis.unit, axis.unit.symbol()) {
        (Unit::Percent, _) | (_, "") => axis.name.clone(),
        (_, symbol) => format!("{}, {symbol}", axis.name),
    }
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(text))
}

fn line(class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) -> String {
    format!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
}

fn drawing(title: &str, height: f64, content: &str) -> String {
    let title = escape(title);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">{content}</svg>"
    )
}

/// The numbers, lines and name of the axis below.
fn below(scale: &Scale, axis: &Axis, bottom: f64) -> String {
    let mut out = String::new();
    for (x, number) in scale.ticks(|text| (text.chars().count() as f64 + 1.5) * CHARACTER) {
        out += &line("grid", [x, TOP], [x, bottom]);
        out += &text(x, bottom + 15.0, "middle", &number);
    }
    let [from, to] = scale.range;
    out += &line("axis", [from, bottom], [to, bottom]);
    out + &text((from + to) / 2.0, bottom + 31.0, "middle", &name(axis))
}

/// The classes of a series: its colour, and how its line is dashed.
fn class(series: usize) -> String {
    format!("s{} d{}", series % COLOURS, kind(series))
}

/// Of the four kinds of lines and markers, that of a series: another one when its colour comes
/// again.
fn kind(series: usize) -> usize {
    (series + series / COLOURS) % 4
}

/// What shows a point of a series, around 0, 0.
fn marker(series: usize) -> &'static str {
    match kind(series) {
        0 => "<circle r=\"3.5\"/>",
        1 => "<rect x=\"-3\" y=\"-3\" width=\"6\" height=\"6\"/>",
        2 => "<path d=\"M0-4.2 4 3H-4Z\"/>",
        _ => "<path d=\"M0-4.4 4.4 0 0 4.4-4.4 0Z\"/>",
    }
}

/// A legend, whose pictures are drawn by `sample`.
fn legend<'a>(names: impl Iterator<Item = &'a str>, sample: impl Fn(usize) -> String) -> String {
    let entry = |(series, name)| {
        let (class, sample, name) = (class(series), sample(series), escape(name));
        format!(
            "<li><svg class=\"key {class}\" viewBox=\"-13 -6 26 12\" aria-hidden=\"true\">{sample}\
             </svg>{name}</li>"
        )
    };
    format!("<ul class=\"legend\">{}</ul>", names.enumerate().map(entry).collect::<String>())
}

/// Curves, and their legend.
pub(super) fn lines(chart: &Lines) -> String {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    // What one axis cannot show counts on neither.
    let can = |axis: &Axis, value: f64| !axis.logarithmic || value > 0.0;
    let is_marked = |series: &Series| series.points.len() <= MARKED_POINTS;
    let is_shown = |[x, y]: &[f64; 2]| can(&chart.x, *x) && can(&chart.y, *y);
    let shown = || points().filter(|point| is_shown(point));
    let x = Scale::new(&chart.x, shown().map(|point| point[0]), [LEFT, RIGHT]);
    let y = Scale::new(&chart.y, shown().map(|point| point[1]), [BOTTOM, TOP]);
    let (Some(x), Some(y)) = (x, y) else { return nothing() };
    let mut out = below(&x, &chart.x, BOTTOM);
    for (place, number) in y.ticks(|_| 18.0) {
        out += &line("grid", [LEFT, place], [RIGHT, place]);
        out += &text(LEFT - 5.0, place + 4.0, "end", &number);
    }
    for (index, series) in chart.series.iter().enumerate() {
        let shown: Vec<&[f64; 2]> = series.points.iter().filter(|point| is_shown(point)).collect();
        let places = shown.iter().map(|[a, b]| format!("{:.1},{:.1}", x.place(*a), y.place(*b)));
        let places = places.collect::<Vec<_>>().join(" ");
        out += &format!("<g class=\"{}\"><polyline points=\"{places}\"/>", class(index));
        if is_marked(series) {
            for [a, b] in shown {
                let said = format!(
                    "{}: {} {}, {} {}",
                    series.name,
                    chart.x.unit.show(*a),
                    chart.x.unit.symbol(),
                    chart.y.unit.show(*b),
                    chart.y.unit.symbol(),
                );
                out += &format!(
                    "<g transform=\"translate({:.1} {:.1})\">{}<title>{}</title></g>",
                    x.place(*a),
                    y.place(*b),
                    marker(index),
                    escape(&said),
                );
            }
        }
        out += "</g>";
    }
    let names = chart.series.iter().map(|series| series.name.as_str());
    let sample = |index| {
        let marker = if is_marked(&chart.series[index]) { marker(index) } else { "" };
        format!("<polyline points=\"-12,0 12,0\"/>{marker}")
    };
    let above = escape(&name(&chart.y));
    let (drawing, legend) = (drawing(&chart.title, BOTTOM + BELOW, &out), legend(names, sample));
    format!("<p class=\"up\">{above}</p>{drawing}{legend}")
}

/// Stacked bars, and their legend.
pub(super) fn bars(chart: &Bars) -> String {
    let total = |bar: &super::Bar| bar.parts.iter().map(|part| part.value).sum::<f64>();
    let Some(scale) = Scale::new(&chart.axis, chart.bars.iter().map(total), [8.0, RIGHT]) else {
        return nothing();
    };
    let bottom = TOP + BAR_STEP * chart.bars.len() as f64;
    let mut out = below(&scale, &chart.axis, bottom);
    let mut names: Vec<&str> = Vec::new();
    for (index, bar) in chart.bars.iter().enumerate() {
        let top = TOP + BAR_STEP * index as f64;
        let mut name: String = bar.name.chars().take(BAR_NAME).collect();
        if bar.name.chars().count() > BAR_NAME {
            name.push('…');
        }
        let (unit, mut end) = (chart.axis.unit, 0.0);
        out += &text(8.0, top + 12.0, "start", &name);
        let sum = format!("{} {}", unit.show(total(bar)), unit.symbol());
        out += &text(RIGHT, top + 12.0, "end", sum.trim_end());
        for part in &bar.parts {
            let known = names.iter().position(|name| *name == part.name);
            let series = known.unwrap_or_else(|| {
                names.push(&part.name);
                names.len() - 1
            });
            let from = scale.place(end);
            end += part.value;
            let said = format!("{}, {}: {}", bar.name, part.name, unit.show(part.value));
            out += &format!(
                "<rect class=\"{}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
                 height=\"{BAR_HEIGHT}\"><title>{} {}</title></rect>",
                class(series),
                top + 17.0,
                (scale.place(end) - from).max(0.0),
                escape(&said),
                unit.symbol(),
            );
        }
    }
    let sample = |_| "<rect x=\"-6\" y=\"-6\" width=\"12\" height=\"12\"/>".to_owned();
    drawing(&chart.title, bottom + BELOW, &out) + &legend(names.into_iter(), sample)
}

fn nothing() -> String {
    "<p class=\"none\">Nothing was measured.</p>".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(logarithmic: bool, values: &[f64]) -> Scale {
        let axis = Axis { name: String::new(), unit: Unit::Ms, logarithmic };
        Scale::new(&axis, values.iter().copied(), [0.0, 300.0]).expect("something to show")
    }

    #[test]
    fn ticks_are_round_numbers_with_room_between_them() {
        let check = |logarithmic, values: &[f64], expected: &[&str]| {
            let ticks = scale(logarithmic, values).ticks(|_| 30.0);
            let texts: Vec<&str> = ticks.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(texts, expected, "{values:?}");
        };
        check(false, &[17.0, 500.0], &["0", "100", "200", "300", "400", "500"]);
        check(false, &[0.004], &["0", "0.001", "0.002", "0.003", "0.004"]);
        check(false, &[0.0], &["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        check(false, &[123_456.0], &["0", "50k", "100k", "150k"]);
        check(true, &[0.3, 700.0], &["1", "10", "100"]);
        check(true, &[17.0, 500.0], &["20", "50", "100", "200", "500"]);
        check(true, &[100.0, 100.0], &["95", "100", "105", "110"]);
    }

    #[test]
    fn values_lie_where_the_ticks_say() {
        let linear = scale(false, &[500.0]);
        assert_eq!([0.0, 250.0, 500.0].map(|value| linear.place(value)), [0.0, 150.0, 300.0]);
        let logarithmic = scale(true, &[1.1, 1000.0 / 1.1]);
        for (value, expected) in [(1.0, 0.0), (10.0, 100.0), (100.0, 200.0), (1000.0, 300.0)] {
            let place = logarithmic.place(value);
            assert!((place - expected).abs() < 1e-6, "{value} lies at {place}");
        }
    }

    #[test]
    fn what_cannot_be_shown_is_left_out() {
        let axis = |name: &str| Axis::new(name, Unit::Seconds);
        let mut chart = Lines::new("", axis("x").logarithmic(), axis("y"));
        assert_eq!(lines(&chart), nothing());
        chart.series("zero", [[0.0, 1.0]]);
        assert_eq!(lines(&chart), nothing());
        chart.series("", [[-1.0, 900.0], [1.0, 1.0], [f64::NAN, 1.0], [10.0, 2.0]]);
        let drawn = lines(&chart);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        assert_eq!(drawn.matches("<title>").count(), 2, "{drawn}");
    }
}
