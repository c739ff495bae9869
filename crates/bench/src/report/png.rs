//! Drawings as PNG (RFC 2083), for places that show no SVG: on white, twice as large as drawn.
//!
//! Shapes are rectangles, lines, discs and text; the letters are those of a crate, since a machine
//! that measures need not have fonts.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use spleen_font::{FONT_12X24, Glyph, PSF2Font};

use super::draw::{Anchor, Ink, Scene, Shape};
use super::svg::{colour, dashes};

/// Pixels of a unit of the drawing.
const SCALE: f64 = 2.0;
/// From the top of a letter's bitmap to the line on which letters stand, in pixels.
const BASELINE: f64 = 19.0;

/// The bytes of the file.
pub(super) fn file(scene: &Scene) -> Vec<u8> {
    let mut canvas = Canvas::new(scene.width, scene.height);
    for shape in &scene.shapes {
        canvas.draw(shape);
    }
    canvas.encoded()
}

/// The pixels of a letter. The font lists letters that look alike in one entry, which is found by
/// all of them together.
fn glyph(font: &mut PSF2Font<'static>, letter: char) -> Option<Glyph<'static>> {
    let mut bytes = [0; 4];
    let entry = match letter {
        'µ' => "µμ",
        '–' => "-",
        letter => letter.encode_utf8(&mut bytes),
    };
    font.glyph_for_utf8(entry.as_bytes())
}

struct Canvas {
    width: usize,
    height: usize,
    /// Red, green and blue, row by row.
    pixels: Vec<u8>,
    font: PSF2Font<'static>,
}

impl Canvas {
    fn new(width: f64, height: f64) -> Self {
        let [width, height] = [width, height].map(|side| (side * SCALE).ceil() as usize);
        let font = PSF2Font::new(FONT_12X24).expect("the crate's own font is one");
        Self { width, height, pixels: vec![0xff; 3 * width * height], font }
    }

    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Rect { at: [x, y], size: [width, height], ink, .. } => {
                let [left, top, right, bottom] =
                    [*x, *y, x + width, y + height].map(|side| side * SCALE);
                let share = |low: f64, high: f64, at: f64| {
                    (high.min(at + 0.5) - low.max(at - 0.5)).clamp(0.0, 1.0)
                };
                self.paint([left, top, right, bottom], *ink, |[x, y]| {
                    share(left, right, x) * share(top, bottom, y)
                });
            }
            Shape::Line { from, to, ink } => self.stroke(*from, *to, 1.0, *ink),
            Shape::Curve { points, series } => self.curve(points, *series),
            Shape::Mark { at, series, .. } => self.stroke(*at, *at, 7.0, Ink::Series(*series)),
            Shape::Text { at, anchor, ink, text } => self.text(*at, *anchor, *ink, text),
        }
    }

    /// Covers each pixel of a box, from left, top to right, bottom, by a share of itself.
    fn paint(&mut self, sides: [f64; 4], ink: Ink, share: impl Fn([f64; 2]) -> f64) {
        let rgb = u32::from_str_radix(&colour(ink)[1..], 16).unwrap_or_default().to_be_bytes();
        let [left, top, right, bottom] = sides;
        let range = |from: f64, to: f64, end: usize| {
            (from.floor().max(0.0) as usize)..(to.ceil().max(0.0) as usize).min(end)
        };
        for y in range(top, bottom, self.height) {
            for x in range(left, right, self.width) {
                let share = share([x as f64 + 0.5, y as f64 + 0.5]);
                let at = 3 * (y * self.width + x);
                for (old, new) in self.pixels[at..at + 3].iter_mut().zip(&rgb[1..]) {
                    let mixed = f64::from(*old) * (1.0 - share) + f64::from(*new) * share;
                    *old = mixed.round() as u8;
                }
            }
        }
    }

    /// A line with round ends; a disc where it has no length.
    fn stroke(&mut self, from: [f64; 2], to: [f64; 2], width: f64, ink: Ink) {
        let [[ax, ay], [bx, by]] = [from, to].map(|end| end.map(|place| place * SCALE));
        let half = width * SCALE / 2.0;
        let sides = [ax.min(bx), ay.min(by), ax.max(bx), ay.max(by)];
        let [left, top, right, bottom] = sides;
        let around = [left - half - 1.0, top - half - 1.0, right + half + 1.0, bottom + half + 1.0];
        let length = (bx - ax).powi(2) + (by - ay).powi(2);
        self.paint(around, ink, |[x, y]| {
            let along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length.max(1e-9);
            let along = along.clamp(0.0, 1.0);
            let distance = (x - ax - along * (bx - ax)).hypot(y - ay - along * (by - ay));
            (half + 0.5 - distance).clamp(0.0, 1.0)
        });
    }

    fn curve(&mut self, points: &[[f64; 2]], series: usize) {
        let pattern = dashes(series);
        let (mut dash, mut left) = (0, pattern.first().copied().unwrap_or(f64::INFINITY));
        for pair in points.windows(2) {
            let ([mut at, to], mut goes_on) = ([pair[0], pair[1]], true);
            while goes_on {
                let length = (to[0] - at[0]).hypot(to[1] - at[1]);
                goes_on = left < length;
                let share = if goes_on { left / length } else { 1.0 };
                let next = [0, 1].map(|axis| at[axis] + (to[axis] - at[axis]) * share);
                if dash % 2 == 0 {
                    self.stroke(at, next, 1.8, Ink::Series(series));
                }
                (at, left) = (next, left - length);
                if goes_on {
                    dash = (dash + 1) % pattern.len();
                    left = pattern[dash];
                }
            }
        }
    }

    fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, ink: Ink, text: &str) {
        let width = f64::from(self.font.width);
        let before = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => 0.5,
            Anchor::End => 1.0,
        };
        let left = (x * SCALE - before * width * text.chars().count() as f64).round();
        let top = (y * SCALE - BASELINE).round();
        for (place, letter) in text.chars().enumerate() {
            let known = glyph(&mut self.font, letter);
            let rows = known.or_else(|| glyph(&mut self.font, '?')).into_iter().flatten();
            for (row, pixels) in rows.enumerate() {
                for column in pixels.enumerate().filter_map(|(at, is_set)| is_set.then_some(at)) {
                    let [x, y] = [left + place as f64 * width + column as f64, top + row as f64];
                    self.paint([x, y, x + 1.0, y + 1.0], ink, |_| 1.0);
                }
            }
        }
    }

    fn encoded(&self) -> Vec<u8> {
        let mut lines = ZlibEncoder::new(Vec::new(), Compression::default());
        for row in self.pixels.chunks_exact(3 * self.width) {
            // No filter.
            lines.write_all(&[0]).expect("a vector takes everything");
            lines.write_all(row).expect("a vector takes everything");
        }
        let lines = lines.finish().expect("a vector takes everything");
        let mut header = [self.width, self.height].map(|side| (side as u32).to_be_bytes()).concat();
        // Eight bits a colour, three colours, and the only ways there are.
        header.extend([8, 2, 0, 0, 0]);
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, content) in [(b"IHDR", &header), (b"IDAT", &lines), (b"IEND", &Vec::new())] {
            let mut crc = Crc::new();
            crc.update(kind);
            crc.update(content);
            file.extend((content.len() as u32).to_be_bytes());
            file.extend(kind);
            file.extend(content);
            file.extend(crc.sum().to_be_bytes());
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_the_letters_of_reports() {
        let mut font = PSF2Font::new(FONT_12X24).expect("a font");
        for letter in "Az09%/µ×…·–é".chars() {
            assert!(glyph(&mut font, letter).is_some(), "{letter}");
        }
        assert!(glyph(&mut font, '\u{1f600}').is_none());
    }
}
