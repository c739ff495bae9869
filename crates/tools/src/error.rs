//! How a command ends.

use std::fmt;

/// A command that was called wrongly: nothing was asked of the endpoint.
#[derive(Debug)]
pub(crate) struct Misuse(String);

impl Misuse {
    /// A fault of the arguments, in words that say what was wrong and what to do.
    pub(crate) fn error(words: impl fmt::Display) -> anyhow::Error {
        Self(words.to_string()).into()
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// The exit status for an error: 2 where the command was called wrongly, else 1.
pub fn exit_status(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<Misuse>().is_some() { 2 } else { 1 }
}

/// The result of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The printed text, with the end of its last line.
    pub text: String,
    /// The failure after all, such as a transaction that was included and reverted.
    pub failure: Option<String>,
    /// A remark for the person who reads it, beside the text.
    pub note: Option<String>,
}

impl Output {
    /// One line, or several.
    pub(crate) fn of(text: impl fmt::Display) -> Self {
        let mut text = text.to_string();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Self { text, ..Self::default() }
    }
}
