//! Foreign text in messages and logs: cut, and safe to print.

use std::error::Error;
use std::fmt::{self, Write};
use std::iter;

use crate::limits::{MESSAGE_CHARS, QUOTE_CHARS};

/// The start of a foreign text, short enough to be repeated in a message: 200 characters, and `...`
/// where there are more.
///
/// Control characters, and those that turn the direction of writing, are escaped as in Rust. A text
/// whose control characters are escaped already stays as it is, so that nothing is escaped twice.
///
/// ```
/// assert_eq!(deponent_rpc::quote("one\ntwo"), r"one\ntwo");
/// assert_eq!(deponent_rpc::quote(deponent_rpc::quote("one\ntwo")), r"one\ntwo");
/// assert_eq!(deponent_rpc::quote("a".repeat(9_000_000)).len(), 203);
/// ```
pub fn quote(text: impl fmt::Display) -> String {
    cut(text, QUOTE_CHARS)
}

/// A message of ours that may repeat foreign texts: as [`quote`], with 1,000 characters.
pub fn shortened(text: impl fmt::Display) -> String {
    cut(text, MESSAGE_CHARS)
}

/// An error with its causes, on one line. Each may quote a file or a server: it is
/// [`shortened`]. A cause that ends the text before it is not said again: errors of libraries say
/// their causes themselves.
///
/// ```
/// let cause = std::io::Error::from_raw_os_error(2);
/// let error = deponent_rpc::JwtError::Read { path: "jwt.hex".into(), reason: cause };
/// assert_eq!(deponent_rpc::on_one_line(&error).matches("os error 2").count(), 1);
/// ```
pub fn on_one_line(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    for cause in iter::successors(Some(error), |error| (*error).source()) {
        let text = shortened(cause);
        if texts.last().is_none_or(|last| !last.ends_with(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}

/// The address of a server as messages and logs show it: [`quote`]d, and of a URL no more than its
/// scheme, host and port. A user, a password, a path and a query may all be secrets: hosted
/// endpoints have a key in the path.
///
/// ```
/// assert_eq!(deponent_rpc::shown_address("https://me:secret@node:1/key?a=b"), "https://node:1");
/// assert_eq!(deponent_rpc::shown_address("/run/geth.ipc"), "/run/geth.ipc");
/// ```
pub fn shown_address(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (&address[..scheme.len() + 3], rest),
        None => ("", address),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let host = match authority.rfind('@') {
        Some(at) => at + 1,
        // A password with a slash in it ends the authority too early; its beginning is no port.
        None if has_no_port(authority) => rest.rfind('@').map_or(0, |at| at + 1),
        None => 0,
    };
    let shown = &rest[host..];
    let end =
        shown.find(['/', '?', '#']).filter(|end| !scheme.is_empty() || has_port(&shown[..*end]));
    quote(format_args!("{scheme}{}", &shown[..end.unwrap_or(shown.len())]))
}

/// Whether it is `HOST:PORT`, so that what follows is the path of a URL whose scheme is missing.
fn has_port(authority: &str) -> bool {
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether something else than a port follows the last colon of an authority.
fn has_no_port(authority: &str) -> bool {
    let end = authority.rsplit_once(':').map(|(_, end)| end);
    end.is_some_and(|end| !end.ends_with(']') && !end.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Writes no more than the start, however long the text is.
fn cut(text: impl fmt::Display, most_chars: usize) -> String {
    let mut start = Start { text: String::new(), left: most_chars };
    if write!(start, "{text}").is_err() {
        start.text.push_str("...");
    }
    start.text
}

struct Start {
    text: String,
    left: usize,
}

impl Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            match is_unsafe_to_print(character) {
                true => self.text.extend(character.escape_default()),
                false => self.text.push(character),
            }
        }
        Ok(())
    }
}

/// Whether a terminal, or a reader of logs by lines, would take the character for more than itself.
fn is_unsafe_to_print(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' |
                    '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_foreign_text_is_cut_between_characters() {
        assert_eq!(quote("short"), "short");
        let whole = "é".repeat(QUOTE_CHARS);
        assert_eq!(quote(&whole), whole);
        assert_eq!(quote(format!("{whole}é")), format!("{whole}..."));
    }

    #[test]
    fn a_shown_address_has_no_user_no_password_and_no_path() {
        let check = |address, shown| assert_eq!(shown_address(address), shown);
        check("http://user:word@node:8545/path?a=b", "http://node:8545");
        check("wss://user:w@rd@node", "wss://node");
        check("user:word@node:1", "node:1");
        check("http://user:w/rd@node:1", "http://node:1");
        check("http://user:w/r@d@[::1]:1", "http://[::1]:1");
        check("http://user:w/rd@node:1/key", "http://node:1");
        check("ftp://user:word@\n", r"ftp://\n");
        check("http://node:1/@scope/a@b", "http://node:1");
        check("http://[::1]/a@b", "http://[::1]");
        check("wss://node?key=1", "wss://node");
        check("node:1/key", "node:1");
        check("me:word@node:1/key", "node:1");
        for whole in ["/run/a@b.ipc", "run/geth.ipc", "a:b/geth.ipc", "node:1", "https://node", ""]
        {
            check(whole, whole);
        }
    }

    #[test]
    fn control_characters_are_escaped_once() {
        let text = "\u{1b}[31m \"red\"\\ \u{7f}\u{202e}\r\n";
        let escaped = r#"\u{1b}[31m "red"\ \u{7f}\u{202e}\r\n"#;
        assert_eq!(quote(text), escaped);
        assert_eq!(quote(quote(text)), escaped);
    }

    /// A text that would be 9 exabytes long is written no further than its start.
    #[test]
    fn the_rest_of_a_text_is_not_even_written() {
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (0..u64::MAX).try_for_each(|_| f.write_str("x"))
            }
        }
        assert_eq!(quote(Endless).len(), QUOTE_CHARS + 3);
        assert_eq!(shortened(Endless).len(), MESSAGE_CHARS + 3);
    }
}
