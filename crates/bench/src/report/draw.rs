//! The layout of charts: the same drawing for the page and for the files.
//!
//! A drawing's text is of one size whatever its width, so that it can be read on a phone, for which
//! it is laid out narrow, and on a screen.

use super::chart::{Axis, Bars, Lines, Series};
use super::{Answer, Unit};

/// The width of a phone's page, and that of a screen's and of a file.
pub(super) const NARROW: f64 = 340.0;
pub(super) const WIDE: f64 = 760.0;
/// The width of a character, and the height of a line of text.
const CHARACTER: f64 = 7.0;
const LINE: f64 = 18.0;
/// Around everything.
const EDGE: f64 = 8.0;
/// Curves of at most so many points show them.
const MARKED_POINTS: usize = 24;
const BAR_HEIGHT: f64 = 14.0;
/// From one bar to the next: its name, and itself.
const BAR_STEP: f64 = 40.0;

/// A drawing.
#[derive(Debug, Default)]
pub(super) struct Scene {
    pub(super) title: String,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) shapes: Vec<Shape>,
}

/// A colour: what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Text,
    Quiet,
    Grid,
    /// One of a series.
    Series(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug)]
pub(super) enum Shape {
    Rect { at: [f64; 2], size: [f64; 2], ink: Ink, said: String },
    Line { from: [f64; 2], to: [f64; 2], ink: Ink },
    Curve { points: Vec<[f64; 2]>, series: usize },
    Mark { at: [f64; 2], series: usize, said: String },
    Text { at: [f64; 2], anchor: Anchor, ink: Ink, text: String },
}

impl Scene {
    fn new(title: &str, width: f64) -> Self {
        let mut scene = Self { title: title.into(), width, ..Self::default() };
        let room = ((width - 2.0 * EDGE) / CHARACTER) as usize;
        for line in wrapped(title, room) {
            scene.height += LINE;
            scene.text([EDGE, scene.height - 4.0], Anchor::Start, Ink::Text, line);
        }
        scene
    }

    fn text(&mut self, at: [f64; 2], anchor: Anchor, ink: Ink, text: impl Into<String>) {
        self.shapes.push(Shape::Text { at, anchor, ink, text: text.into() });
    }

    fn line(&mut self, from: [f64; 2], to: [f64; 2], ink: Ink) {
        self.shapes.push(Shape::Line { from, to, ink });
    }

    /// The numbers, lines and name of the axis below, from `top` on.
    fn axis_below(&mut self, scale: &Scale, name: String, top: f64) {
        let bottom = self.height;
        for (x, number) in scale.ticks(|text| (text.chars().count() as f64 + 1.5) * CHARACTER) {
            self.line([x, top], [x, bottom], Ink::Grid);
            self.text([x, bottom + 15.0], Anchor::Middle, Ink::Quiet, number);
        }
        let [from, to] = scale.range;
        self.line([from, bottom], [to, bottom], Ink::Quiet);
        self.text([(from + to) / 2.0, bottom + 32.0], Anchor::Middle, Ink::Quiet, name);
        self.height += 42.0;
    }

    /// The names of series, in lines; each after a sample of it.
    fn legend<'a>(&mut self, names: impl Iterator<Item = &'a str>, is_curve: bool) {
        let mut x = EDGE;
        self.height += LINE;
        for (series, name) in names.enumerate() {
            let name = shortened(name, ((self.width - 44.0) / CHARACTER) as usize);
            let width = 30.0 + (name.chars().count() as f64 + 2.0) * CHARACTER;
            if x > EDGE && x + width > self.width {
                x = EDGE;
                self.height += LINE;
            }
            let y = self.height - 8.0;
            self.shapes.push(match is_curve {
                true => Shape::Curve { points: vec![[x, y], [x + 24.0, y]], series },
                false => Shape::Rect {
                    at: [x + 8.0, y - 6.0],
                    size: [12.0; 2],
                    ink: Ink::Series(series),
                    said: String::new(),
                },
            });
            self.text([x + 30.0, y + 4.0], Anchor::Start, Ink::Quiet, name);
            x += width;
        }
        self.height += 4.0;
    }
}

/// The text in lines of at most so many characters, broken between words.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let word = shortened(word, room);
        let last = lines.last_mut().expect("there is one");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > room {
            lines.push(word);
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(&word);
        }
    }
    lines
}

fn shortened(text: &str, room: usize) -> String {
    match text.chars().count() > room {
        true => text.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
        false => text.into(),
    }
}

/// The places of an axis' numbers in a drawing.
struct Scale {
    unit: Unit,
    logarithmic: bool,
    /// The numbers at both ends.
    domain: [f64; 2],
    /// The places of both ends.
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
                let all =
                    decades.flat_map(|decade| digits.iter().map(move |d| d * 10f64.powi(decade)));
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

/// The smallest of 1, 2 or 5 times a power of ten that is not below `least`.
fn step(least: f64) -> f64 {
    let decade = 10f64.powi(least.log10().floor() as i32);
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

/// Curves, and their legend; none where nothing can be shown.
pub(super) fn lines(chart: &Lines, width: f64) -> Option<Scene> {
    let mut scene = Scene::new(&chart.title, width);
    let (left, right) = (EDGE + 6.0 * CHARACTER, width - 2.0 * EDGE);
    scene.height += LINE;
    scene.text([EDGE, scene.height - 4.0], Anchor::Start, Ink::Quiet, name(&chart.y));
    let top = scene.height + 8.0;
    scene.height = top + (width * 0.42).clamp(200.0, 300.0);
    // A point that one axis cannot show counts on neither.
    let can = |axis: &Axis, value: f64| !axis.logarithmic || value > 0.0;
    let is_shown = |[x, y]: &&[f64; 2]| can(&chart.x, *x) && can(&chart.y, *y);
    let shown = || chart.series.iter().flat_map(|series| series.points.iter().filter(is_shown));
    let x = Scale::new(&chart.x, shown().map(|point| point[0]), [left, right])?;
    let y = Scale::new(&chart.y, shown().map(|point| point[1]), [scene.height, top])?;
    for (place, number) in y.ticks(|_| LINE) {
        scene.line([left, place], [right, place], Ink::Grid);
        scene.text([left - 5.0, place + 4.0], Anchor::End, Ink::Quiet, number);
    }
    scene.axis_below(&x, name(&chart.x), top);
    for (series, Series { name, points }) in chart.series.iter().enumerate() {
        let place = |[a, b]: &[f64; 2]| [x.place(*a), y.place(*b)];
        let curve: Vec<_> = points.iter().filter(is_shown).map(place).collect();
        scene.shapes.push(Shape::Curve { points: curve, series });
        let marked = points.iter().filter(is_shown);
        for point @ [a, b] in marked.take_while(|_| points.len() <= MARKED_POINTS) {
            let [a, b] = [chart.x.unit.with_symbol(*a), chart.y.unit.with_symbol(*b)];
            let said = format!("{name}: {a}, {b}");
            scene.shapes.push(Shape::Mark { at: place(point), series, said });
        }
    }
    scene.legend(chart.series.iter().map(|series| &*series.name), true);
    Some(scene)
}

/// Stacked bars, and their legend; none where nothing can be shown.
pub(super) fn bars(chart: &Bars, width: f64) -> Option<Scene> {
    let mut scene = Scene::new(&chart.title, width);
    let totals = chart.bars.iter().map(|bar| bar.total());
    let scale = Scale::new(&chart.axis, totals, [EDGE, width - 2.0 * EDGE])?;
    let top = scene.height + 6.0;
    scene.height = top + BAR_STEP * chart.bars.len() as f64;
    scene.axis_below(&scale, name(&chart.axis), top);
    let mut names: Vec<&str> = Vec::new();
    for (index, bar) in chart.bars.iter().enumerate() {
        let (y, unit) = (top + BAR_STEP * index as f64, chart.axis.unit);
        let sum = unit.with_symbol(bar.total());
        let room = (width / CHARACTER) as usize - sum.chars().count() - 5;
        scene.text([EDGE, y + 14.0], Anchor::Start, Ink::Text, shortened(&bar.name, room));
        scene.text([width - 2.0 * EDGE, y + 14.0], Anchor::End, Ink::Text, sum);
        let mut end = 0.0;
        for part in &bar.parts {
            let known = names.iter().position(|name| *name == part.name);
            let series = known.unwrap_or_else(|| {
                names.push(&part.name);
                names.len() - 1
            });
            let from = scale.place(end);
            end += part.value;
            scene.shapes.push(Shape::Rect {
                at: [from, y + 20.0],
                size: [(scale.place(end) - from).max(0.0), BAR_HEIGHT],
                ink: Ink::Series(series),
                said: format!("{}, {}: {}", bar.name, part.name, unit.with_symbol(part.value)),
            });
        }
    }
    scene.legend(names.into_iter(), false);
    Some(scene)
}

/// A bar for each side of an answer, as long as its time beside the first side's, with the interval
/// that it lies in.
pub(super) fn ratios(answer: &Answer, width: f64) -> Option<Scene> {
    let title = format!("{}: time beside {}, shorter is faster", answer.of, answer.base);
    let mut scene = Scene::new(&title, width);
    let ends = answer.sides.iter().flat_map(|side| [side.ratio, side.interval[1]]);
    let shown = ends.filter(|end| end.is_finite()).chain([1.0]);
    let axis = Axis::new(format!("time / time of {}", answer.base), Unit::Ratio);
    let scale = Scale::new(&axis, shown, [EDGE, width - 2.0 * EDGE])?;
    let top = scene.height + 6.0;
    scene.height = top + BAR_STEP * (answer.sides.len() + 1) as f64;
    let bottom = scene.height;
    scene.axis_below(&scale, axis.name.clone(), top);
    let base = (answer.base.as_str(), 1.0, [1.0; 2], String::from("1"));
    let sides = answer
        .sides
        .iter()
        .map(|side| (side.name.as_str(), side.ratio, side.interval, side.numbers()));
    for (index, (name, ratio, interval, words)) in [base].into_iter().chain(sides).enumerate() {
        let y = top + BAR_STEP * index as f64;
        let room = (width / CHARACTER) as usize - words.chars().count() - 5;
        scene.text([EDGE, y + 14.0], Anchor::Start, Ink::Text, shortened(name, room));
        scene.text([width - 2.0 * EDGE, y + 14.0], Anchor::End, Ink::Text, &*words);
        if !ratio.is_finite() {
            continue;
        }
        scene.shapes.push(Shape::Rect {
            at: [scale.place(0.0), y + 20.0],
            size: [scale.place(ratio) - scale.place(0.0), BAR_HEIGHT],
            ink: Ink::Series(index),
            said: format!("{name}: {words}"),
        });
        if let (true, [low, high]) = (index > 0, interval.map(|end| scale.place(end))) {
            let middle = y + 20.0 + BAR_HEIGHT / 2.0;
            scene.line([low, middle], [high, middle], Ink::Text);
            for end in [low, high] {
                scene.line([end, middle - 5.0], [end, middle + 5.0], Ink::Text);
            }
        }
    }
    let one = scale.place(1.0);
    scene.line([one, top], [one, bottom], Ink::Quiet);
    Some(scene)
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
        assert!(lines(&chart, WIDE).is_none());
        chart.series("zero", [[0.0, 1.0]]);
        assert!(lines(&chart, WIDE).is_none());
        chart.series("", [[-1.0, 900.0], [1.0, 1.0], [f64::NAN, 1.0], [10.0, 2.0]]);
        let shapes = lines(&chart, NARROW).expect("two points").shapes;
        let marks = shapes.iter().filter(|shape| matches!(shape, Shape::Mark { .. }));
        assert_eq!(marks.count(), 2, "{shapes:?}");
    }
}
