//! What the top level of an answer says, read by hand: its id, and whether it is an error.
//!
//! Values are stepped over, not looked into, so what is wrong within one goes unnoticed.

use std::ops::Range;

/// A text that is no answer, nor a batch of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The members of one answer, as they stand there. Of a name that comes twice the last one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    pub(super) id: Option<&'a [u8]>,
    /// What is not `null`.
    pub(super) error: Option<&'a [u8]>,
    pub(super) has_result: bool,
    /// Whether the result is `null`.
    pub(super) is_null: bool,
}

impl Answer<'_> {
    /// The id, where it is a number without sign, fraction and exponent.
    pub(super) fn number(&self) -> Option<u64> {
        let digits = self.id?;
        let step = |number: u64, digit: &u8| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        };
        digits.iter().try_fold(0, step)
    }

    fn note_result(&mut self, value: &[u8]) {
        (self.has_result, self.is_null) = (true, value == b"null");
    }

    /// The code of the error; zero where that has none.
    pub(super) fn code(&self) -> Option<i64> {
        let error: serde_json::Value = serde_json::from_slice(self.error?).unwrap_or_default();
        Some(error["code"].as_i64().unwrap_or(0))
    }
}

/// Reads an answer, or each answer of a batch; whether it is a batch. Those of a batch that is
/// malformed further on have been read then.
pub(super) fn read<'a>(
    text: &'a [u8],
    mut each: impl FnMut(Answer<'a>),
) -> Result<bool, Malformed> {
    let mut scan = Scan { text, at: 0 };
    let is_batch = scan.next()? == b'[';
    if is_batch {
        scan.list(b']', |scan| {
            each(scan.answer()?);
            Ok(())
        })?;
        scan.end()?;
    } else {
        let answer = scan.answer()?;
        scan.end()?;
        each(answer);
    }
    Ok(is_batch)
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// The next byte that is no white space.
    fn next(&mut self) -> Result<u8, Malformed> {
        loop {
            let byte = *self.text.get(self.at).ok_or(Malformed)?;
            if !is_space(byte) {
                return Ok(byte);
            }
            self.at += 1;
        }
    }

    /// Nothing follows.
    fn end(&mut self) -> Result<(), Malformed> {
        self.next().map_or(Ok(()), |_| Err(Malformed))
    }

    fn take(&mut self, expected: u8) -> Result<(), Malformed> {
        let found = self.next()?;
        self.at += 1;
        if found == expected { Ok(()) } else { Err(Malformed) }
    }

    /// What stands between brackets, `end` being the second one, and commas.
    fn list(
        &mut self,
        end: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.at += 1;
        if self.next()? != end {
            item(self)?;
            while self.next()? == b',' {
                self.at += 1;
                item(self)?;
            }
        }
        self.take(end)
    }

    fn answer(&mut self) -> Result<Answer<'a>, Malformed> {
        if self.next()? != b'{' {
            return Err(Malformed);
        }
        let mut answer = Answer::default();
        self.list(b'}', |scan| {
            let name = scan.name()?;
            scan.take(b':')?;
            let value = scan.value()?;
            match &scan.text[name.clone()] {
                b"\"id\"" => answer.id = Some(value),
                b"\"error\"" => answer.error = Some(value),
                b"\"result\"" => answer.note_result(value),
                other if other.contains(&b'\\') => {
                    match serde_json::from_slice::<String>(other).map_err(|_| Malformed)?.as_str() {
                        "id" => answer.id = Some(value),
                        "error" => answer.error = Some(value),
                        "result" => answer.note_result(value),
                        _ => {}
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        answer.error = answer.error.filter(|error| *error != b"null");
        Ok(answer)
    }

    /// A string, with its quotes.
    fn name(&mut self) -> Result<Range<usize>, Malformed> {
        if self.next()? != b'"' {
            return Err(Malformed);
        }
        let start = self.at;
        self.at += End::default().find(&self.text[start..]).ok_or(Malformed)?;
        Ok(start..self.at)
    }

    fn value(&mut self) -> Result<&'a [u8], Malformed> {
        let first = self.next()?;
        let rest = &self.text[self.at..];
        let len = match first {
            b'"' | b'{' | b'[' => End::default().find(rest).ok_or(Malformed)?,
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}') || is_space(*byte);
                rest.iter().position(ends).unwrap_or(rest.len())
            }
        };
        self.at += len;
        if len == 0 { Err(Malformed) } else { Ok(&rest[..len]) }
    }
}

/// White space of JSON.
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Finds where an object, a list or a string ends that comes in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl End {
    /// How many bytes of the next piece belong to it; none where all do and it goes on.
    pub(super) fn find(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            at += 1;
            if self.escaped {
                self.escaped = false;
                continue;
            }
            if self.in_string {
                // Most of a long answer is inside of its strings.
                if byte != b'"' && byte != b'\\' {
                    let ends = |byte: &u8| *byte == b'"' || *byte == b'\\';
                    at += piece[at..].iter().position(ends).unwrap_or(piece.len() - at);
                    continue;
                }
                self.escaped = byte == b'\\';
                self.in_string = self.escaped;
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => continue,
                }
            }
            if self.depth == 0 && !self.in_string {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;
    use crate::random::Random;

    /// The id, the error, and whether there is a result.
    type Found = (Option<Value>, Option<Value>, bool);

    /// The slow twin.
    fn slow(text: &[u8]) -> Option<Vec<Found>> {
        let answers = match serde_json::from_slice(text).ok()? {
            Value::Array(answers) => answers,
            answer => vec![answer],
        };
        let each = |answer: &Value| {
            let answer = answer.as_object()?;
            let error = answer.get("error").filter(|error| !error.is_null());
            Some((answer.get("id").cloned(), error.cloned(), answer.contains_key("result")))
        };
        answers.iter().map(each).collect()
    }

    fn fast(text: &[u8]) -> Option<Vec<Found>> {
        let mut answers = Vec::new();
        let value = |text: &[u8]| serde_json::from_slice(text).expect("a part of JSON");
        read(text, |answer| {
            let (id, error) = (answer.id.map(value), answer.error.map(value));
            if let Some(number) = answer.number() {
                assert_eq!(id, Some(number.into()));
            }
            let code = error.as_ref().map(|error: &Value| error["code"].as_i64().unwrap_or(0));
            assert_eq!(answer.code(), code);
            answers.push((id, error, answer.has_result));
        })
        .ok()?;
        Some(answers)
    }

    fn value(random: &mut Random, depth: u32) -> Value {
        match random.below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => random.chance(0.5).into(),
            2 => (random.word() as i64 >> random.below(64)).into(),
            3 => (random.unit() * 1e9).into(),
            4 => string(random).into(),
            5 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
            _ => object(random, depth),
        }
    }

    fn object(random: &mut Random, depth: u32) -> Value {
        let mut members = Map::new();
        for _ in 0..random.below(6) {
            let names = ["id", "error", "result", "jsonrpc", "code", "", "{\"id\":1}"];
            let name = names[random.below(names.len() as u64) as usize];
            members.insert(name.into(), value(random, depth.saturating_sub(1)));
        }
        members.into()
    }

    fn string(random: &mut Random) -> String {
        let pieces = ["\"", "\\", "{", "}", "[", "]", ",", ":", "id", "\n", "é", "0x12", "\u{1}"];
        (0..random.below(8)).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect()
    }

    /// White space around what stands outside of strings, and some escapes that need not be.
    fn spread(text: &str, random: &mut Random) -> String {
        let (mut spread, mut end) = (String::new(), End::default());
        for letter in text.chars() {
            let mut bytes = [0; 4];
            let was_in_string = end.in_string;
            end.find(letter.encode_utf8(&mut bytes).as_bytes());
            let between = !was_in_string && matches!(letter, '{' | '}' | '[' | ']' | ',' | ':');
            let mut space = |spread: &mut String| {
                if between && random.chance(0.2) {
                    spread.push([' ', '\n', '\r', '\t'][random.below(4) as usize]);
                }
            };
            space(&mut spread);
            match letter {
                'i' | 'r' if was_in_string && end.in_string && !end.escaped => {
                    let escape = random.chance(0.1);
                    let plain = letter.to_string();
                    spread.push_str(&if escape {
                        format!("\\u{:04x}", letter as u32)
                    } else {
                        plain
                    });
                }
                letter => spread.push(letter),
            }
            let mut space = |spread: &mut String| {
                if between && random.chance(0.2) {
                    spread.push(' ');
                }
            };
            space(&mut spread);
        }
        spread
    }

    #[test]
    fn answers_are_read_as_a_parser_of_everything_reads_them() {
        let seed = 0x5eed;
        let mut random = Random::new(seed);
        for round in 0..20_000 {
            let answer = match random.chance(0.3) {
                true => (0..random.below(5)).map(|_| object(&mut random, 4)).collect(),
                false => object(&mut random, 4),
            };
            let text = spread(&answer.to_string(), &mut random);
            let text = text.trim().as_bytes();
            let expected = slow(text);
            assert!(expected.is_some(), "seed {seed}, round {round}: the text is no JSON");
            let shown = String::from_utf8_lossy(text);
            assert_eq!(fast(text), expected, "seed {seed}, round {round}: {shown}");
            // Cut anywhere, it is no answer; cut anywhere, the pieces end where the whole does.
            let cut = random.below(text.len() as u64) as usize;
            assert_eq!(fast(&text[..cut]), None, "seed {seed}, round {round}: {shown} at {cut}");
            let mut end = End::default();
            assert_eq!(end.find(&text[..cut]), None, "seed {seed}, round {round}: {shown}");
            let rest = Some(text.len() - cut);
            assert_eq!(end.find(&text[cut..]), rest, "seed {seed}, round {round}: {shown}");
        }
    }

    #[test]
    fn what_is_no_answer_is_malformed() {
        for text in [
            "",
            " ",
            "1",
            "\"id\"",
            "null",
            "{",
            "}",
            "{]",
            "[}",
            "{}{}",
            "{} x",
            "[1]",
            "[{},]",
            "[{} {}]",
            "{\"id\"}",
            "{\"id\":}",
            "{\"id\":1,}",
            "{\"id\" 1}",
            "{id:1}",
            "[[]]",
            "{\"id\":1 2}",
            "{\"\\x\":1}",
            "[",
            "{\"id\":\"",
        ] {
            assert_eq!(fast(text.as_bytes()), None, "{text}");
            assert_eq!(slow(text.as_bytes()), None, "{text}");
        }
    }
}
