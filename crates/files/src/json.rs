use alloy_primitives::hex;
use serde::Deserialize;

use crate::error::{Error, quote};
use crate::input::Input;
use crate::limits::{JSON_DEPTH, LOOK_AHEAD_BYTES, WORD_BYTES};

/// Reads JSON in order, piece by piece, in bounded memory.
///
/// Of skipped values only brackets and quotes are checked, not the grammar; callers parse the
/// values that they take.
#[derive(Debug)]
pub(super) struct Scanner {
    input: Input,
    /// The line of the next byte, from 1.
    line: u64,
}

impl Scanner {
    /// Reads from the position of `input`, on `line`.
    pub(super) const fn new(input: Input, line: u64) -> Self {
        Self { input, line }
    }

    pub(super) const fn input(&self) -> &Input {
        &self.input
    }

    pub(super) const fn line(&self) -> u64 {
        self.line
    }

    /// An error at the current position.
    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        self.input.error(self.input.offset(), problem).on_line(self.line)
    }

    /// Shows the next byte that is not white space; `None` at the end of the file.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Error> {
        loop {
            let shown = self.input.fill(1)?;
            let Some(&first) = shown.first() else { return Ok(None) };
            if !is_space(first) {
                return Ok(Some(first));
            }
            let spaces = shown.iter().position(|byte| !is_space(*byte)).unwrap_or(shown.len());
            self.line += newlines(&shown[..spaces]);
            self.input.advance(spaces);
        }
    }

    /// Shows up to some KiB after white space.
    pub(super) fn look_ahead(&mut self) -> Result<&[u8], Error> {
        self.peek()?;
        self.input.fill(LOOK_AHEAD_BYTES)
    }

    /// Shows the next `bytes` after white space, fewer only at the end.
    pub(super) fn preview(&mut self, bytes: usize) -> Result<&[u8], Error> {
        self.peek()?;
        self.input.preview(bytes)
    }

    /// Consumes white space and `expected`.
    #[inline]
    pub(super) fn expect(&mut self, expected: u8) -> Result<(), Error> {
        match self.peek()? {
            Some(byte) if byte == expected => {
                self.input.advance(1);
                Ok(())
            }
            other => Err(self.error(format!(
                "'{}' expected, {} found",
                char::from(expected),
                name(other)
            ))),
        }
    }

    /// Moves to the value of the next member of an object whose brace is consumed, and puts the
    /// member's name into `name`. `false` at the end of the object.
    pub(super) fn member(&mut self, first: bool, name: &mut Vec<u8>) -> Result<bool, Error> {
        match self.peek()? {
            Some(b'}') => {
                self.input.advance(1);
                return Ok(false);
            }
            Some(b'"') if first => {}
            _ if first => self.expect(b'"')?,
            _ => self.expect(b',')?,
        }
        self.string(name, WORD_BYTES)?;
        self.expect(b':')?;
        Ok(true)
    }

    /// The content of a string, of at most `limit` bytes.
    pub(super) fn string(&mut self, out: &mut Vec<u8>, limit: usize) -> Result<(), Error> {
        out.clear();
        self.expect(b'"')?;
        loop {
            let shown = self.input.fill(1)?;
            if shown.is_empty() {
                return Err(self.error("the file ends inside a string"));
            }
            let special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
            let plain = shown.iter().position(special);
            let (taken, byte) = match plain {
                Some(at) => (at, Some(shown[at])),
                None => (shown.len(), None),
            };
            if out.len() + taken > limit {
                return Err(self.error(format!("a string of more than {limit} bytes")));
            }
            out.extend_from_slice(&shown[..taken]);
            self.input.advance(taken + usize::from(byte.is_some()));
            match byte {
                None => {}
                Some(b'"') => return Ok(()),
                Some(b'\\') => self.escape(out)?,
                Some(b'\n') => return Err(self.error("the line ends inside a string")),
                Some(_) => return Err(self.error("a control character inside a string")),
            }
        }
    }

    /// The escape after a backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let [byte] = self.input.array()?;
        out.push(match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let digits = self.input.array::<4>()?;
                let code = std::str::from_utf8(&digits).ok();
                let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let Some(character) = code.and_then(char::from_u32) else {
                    return Err(self.error("an escape that is no character"));
                };
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(self.error("an escape that JSON does not have")),
        });
        Ok(())
    }

    /// The content of a string, or the letters of a number or of `null`, of at most `limit` bytes.
    /// Returns whether it is a string.
    pub(super) fn word(&mut self, out: &mut Vec<u8>, limit: usize) -> Result<bool, Error> {
        match self.peek()? {
            Some(b'"') => {
                self.string(out, limit)?;
                Ok(true)
            }
            Some(b'{' | b'[' | b'}' | b']' | b',' | b':') | None => {
                let found = self.peek()?;
                Err(self.error(format!("a string or number expected, {} found", name(found))))
            }
            Some(_) => {
                out.clear();
                self.letters(out, limit)?;
                Ok(false)
            }
        }
    }

    fn letters(&mut self, out: &mut Vec<u8>, limit: usize) -> Result<(), Error> {
        loop {
            let shown = self.input.fill(1)?;
            let end = shown.iter().position(|byte| is_space(*byte) || b",]}:\"".contains(byte));
            let taken = end.unwrap_or(shown.len());
            if out.len() + taken > limit {
                return Err(self.error(format!("a word of more than {limit} bytes")));
            }
            out.extend_from_slice(&shown[..taken]);
            let ended = end.is_some() || shown.is_empty();
            self.input.advance(taken);
            if ended {
                return Ok(());
            }
        }
    }

    /// Skips the next value, of any length.
    pub(super) fn skip_value(&mut self) -> Result<(), Error> {
        self.walk(&mut |_| true)
    }

    /// The text of the next value, of at most `limit` bytes.
    pub(super) fn value(&mut self, out: &mut Vec<u8>, limit: usize) -> Result<(), Error> {
        out.clear();
        self.walk(&mut |text| {
            let fits = out.len() + text.len() <= limit;
            if fits {
                out.extend_from_slice(text);
            }
            fits
        })
    }

    /// Passes the text of the next value to `take`, until that refuses.
    fn walk(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
        let first = self.peek()?;
        if matches!(first, Some(b'}' | b']' | b',' | b':') | None) {
            return Err(self.error(format!("a value expected, {} found", name(first))));
        }
        let (start, line) = (self.input.offset(), self.line);
        let begun = |input: &Input, problem: &str| input.error(start, problem).on_line(line);
        let mut walk = ValueEnd::default();
        while !walk.ended {
            let shown = self.input.fill(1)?;
            if shown.is_empty() {
                if walk.in_word {
                    return Ok(());
                }
                return Err(begun(&self.input, "the file ends inside this value"));
            }
            let taken = walk.over(shown);
            let fits = take(&shown[..taken]);
            self.line += newlines(&shown[..taken]);
            self.input.advance(taken);
            if !fits {
                return Err(begun(&self.input, "a value that is too long"));
            }
            if walk.line_ended {
                return Err(self.error("the line ends inside a string"));
            }
            if walk.depth > JSON_DEPTH {
                let problem = format!("more than {JSON_DEPTH} brackets inside one another");
                return Err(self.error(problem));
            }
        }
        Ok(())
    }
}

/// Finds the end of a value.
#[derive(Default)]
struct ValueEnd {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether it is in a number, `true`, `false` or `null` outside all brackets.
    in_word: bool,
    ended: bool,
    /// Whether a line has ended inside a string.
    line_ended: bool,
}

impl ValueEnd {
    /// The number of bytes of `text` that belong to the value.
    fn over(&mut self, text: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            if self.in_string {
                if self.escaped {
                    self.escaped = false;
                    at += 1;
                    continue;
                }
                let rest = &text[at..];
                let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'));
                let Some(plain) = plain else { return text.len() };
                at += plain + 1;
                match rest[plain] {
                    b'"' => self.in_string = false,
                    b'\\' => self.escaped = true,
                    _ => {
                        self.line_ended = true;
                        return at - 1;
                    }
                }
                self.ended = !self.in_string && self.depth == 0;
            } else {
                match byte {
                    b'"' if !self.in_word => self.in_string = true,
                    b'{' | b'[' if !self.in_word => self.depth += 1,
                    b'}' | b']' if self.depth > 0 => {
                        self.depth -= 1;
                        self.ended = self.depth == 0;
                    }
                    _ if self.depth == 0 => {
                        if is_space(byte) || b",]}:\"{[".contains(&byte) {
                            self.ended = true;
                            return at;
                        }
                        self.in_word = true;
                    }
                    _ => {}
                }
                at += 1;
            }
            if self.ended || self.depth > JSON_DEPTH {
                return at;
            }
        }
        at
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn newlines(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The bytes of a text that is one value in hex: with `0x` or without, in quotes as JSON has it or
/// not, white space and a byte order mark around it allowed. `None` for any other content.
pub fn unhexed(content: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(content).ok()?.trim_start_matches('\u{feff}').trim();
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    hex::decode(quoted.unwrap_or(text)).ok()
}

/// Whether a value that begins so is hex, in quotes or not.
pub(super) const fn begins_hex(first: u8) -> bool {
    first == b'"' || first.is_ascii_hexdigit()
}

/// The name of a byte in errors.
pub(super) fn name(byte: Option<u8>) -> String {
    match byte {
        None => "the end of the file".into(),
        Some(byte @ 0x21..=0x7e) => format!("'{}'", char::from(byte)),
        Some(byte) => format!("byte {byte:#04x}"),
    }
}

/// A value of JSON, or what is wrong with it and where.
pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| {
        // For a value on one line, the column suffices.
        // The text of a value of the wrong type is in there.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let problem = error.to_string();
        let problem =
            problem.strip_suffix(&place).map_or(quote(&problem), |what| quote(what) + &place);
        problem.replace(" at line 1 column ", ", at its byte ")
    })
}

/// As [`parse`], of an object: serde would take an array for the list of its members.
pub(super) fn parse_object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    match text.trim_ascii_start().first() {
        Some(b'{') => parse(text),
        _ => Err("an object expected".into()),
    }
}
