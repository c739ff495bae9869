//! Texts of the program about itself: its version, its errors, and the lines that it prints.

use std::fmt;
use std::io::Write;

use anyhow::Context;

/// The version with the commit that was built, which tells builds of one version apart.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("DEPONENT_COMMIT_SHOWN"));

/// An error with its causes, on one line.
pub(crate) fn printed(error: &anyhow::Error) -> String {
    rpc::on_one_line(error.as_ref())
}

/// A number with its noun, in the plural unless there is one: `1 block`, `2 witnesses`.
pub(crate) fn counted(count: impl fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let ending = match (&*count, noun.ends_with('s')) {
        ("1", _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{ending}")
}

/// Prints a line.
///
/// # Errors
/// When the standard output is closed or full.
pub(crate) fn print_line(line: fmt::Arguments<'_>) -> anyhow::Result<()> {
    write_line(&mut std::io::stdout().lock(), line).context("cannot write to the standard output")
}

/// Writes a line, which may have several, at once: a reader that takes its beginning alone, as
/// `head` does, has all of it in the pipe before it goes.
fn write_line(out: &mut impl Write, line: fmt::Arguments<'_>) -> std::io::Result<()> {
    out.write_all(format!("{line}\n").as_bytes())
}

/// `println!` that does not panic, in a function that returns `anyhow::Result`.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::console::print_line(format_args!($($text)*))?
    };
}
pub(crate) use say;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_several_lines_is_one_write() {
        struct Once(Vec<u8>);
        impl Write for Once {
            fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
                if !self.0.is_empty() {
                    return Err(std::io::ErrorKind::BrokenPipe.into());
                }
                self.0 = text.to_vec();
                Ok(text.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut out = Once(Vec::new());
        write_line(&mut out, format_args!("{}\n{}", "a", 1)).expect("one write");
        assert_eq!(out.0, b"a\n1\n");
    }

    #[test]
    fn one_is_singular() {
        let all = [0, 1, 2, 11].map(|count| counted(count, "block"));
        assert_eq!(all, ["0 blocks", "1 block", "2 blocks", "11 blocks"]);
        assert_eq!(counted("1,001", "witness"), "1,001 witnesses");
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("refused").context("no answer: refused").context("status");
        assert_eq!(printed(&error), "status: no answer: refused");
        let error = anyhow::anyhow!("b").context("a");
        assert_eq!(printed(&error), "a: b");
    }
}
